/* The null plugin: it is found, described, opened and closed, has every function that plugin.h requires, and refuses
 * with a message. */
#include "op_case.h"

static void describes_itself(void **state) {
  fake_device d;
  heddle_pdevice_desc desc = {.struct_size = sizeof desc};
  uint32_t count = 0;
  (void)state;
  fake_device_open(&d, "null");
  assert_string_equal(d.plugin->name, "null");
  assert_int_equal(d.plugin->abi_major, HEDDLE_ABI_MAJOR);
  assert_int_equal(d.plugin->device_count(d.self, &count, &d.err), HEDDLE_OK);
  assert_int_equal(count, 1);
  assert_int_equal(d.plugin->device_describe(d.self, 0, &desc, &d.err), HEDDLE_OK);
  assert_int_equal(desc.type, HEDDLE_DEVICE_EXT);
  assert_string_equal(desc.name, "null");
  assert_true(desc.max_streams >= 1 && desc.alignment >= 1);
  assert_int_equal(d.plugin->device_describe(d.self, 1, &desc, &d.err), HEDDLE_ENODEV);
  fake_device_close(&d);
}

static void has_what_is_required(void **state) {
  fake_device d;
  (void)state;
  fake_device_open(&d, "null");
  const heddle_plugin *p = d.plugin;
  assert_true(p->close_instance && p->open_instance && p->device_count && p->device_describe);
  assert_true(p->device->close && p->device->open && p->device->query && p->device->health && p->device->idle);
  assert_true(p->memory->free && p->memory->alloc && p->memory->map && p->memory->unmap);
  assert_true(p->copy->h2d && p->copy->d2h && p->copy->write && p->copy->read && p->copy->d2d && p->copy->fill);
  assert_true(p->stream->close && p->stream->create && p->stream->submit && p->stream->sync && p->stream->query);
  assert_true(p->event->free && p->event->create && p->event->record && p->event->wait);
  assert_true(p->fence->signal && p->op->launch_free && p->op->op_free);
  assert_true(p->op->query && p->op->prepare && p->op->bind && p->op->run);
  fake_device_close(&d);
}

static void refuses_in_words(void **state) {
  fake_device d;
  op_case c;
  heddle_pbuffer *buffer = NULL;
  heddle_pstream *stream = NULL;
  heddle_pmemory_desc desc = {.struct_size = sizeof desc, .bytes = 16, .align = 16};
  (void)state;
  fake_device_open(&d, "null");
  assert_int_equal(d.plugin->memory->alloc(d.dev, &desc, &buffer, &d.err), HEDDLE_EUNSUPPORTED);
  assert_int_equal(d.err.status, HEDDLE_EUNSUPPORTED);
  assert_non_null(strstr(d.err.text, "null:0: memory"));
  assert_int_equal(d.plugin->memory->alloc(d.dev, &desc, &buffer, NULL), HEDDLE_EUNSUPPORTED);
  assert_int_equal(d.plugin->stream->create(d.dev, 0, 0, &stream, &d.err), HEDDLE_EUNSUPPORTED);
  assert_true(buffer == NULL && stream == NULL);
  op_case_init(&c, "Add");
  op_input(&c, F32, SHAPE(1, 1));
  op_output(&c, F32, SHAPE(1, 1));
  op_expect_refused(&d, &c, "runs no operators");
  op_case_free(&c);
  assert_int_equal(d.plugin->device->health(d.dev, &d.err), HEDDLE_OK);
  assert_int_equal(d.plugin->device->idle(d.dev, 0, &d.err), HEDDLE_OK);
  fake_device_close(&d);
}

static void frees_take_null(void **state) {
  fake_device d;
  (void)state;
  fake_device_open(&d, "null");
  d.plugin->memory->free(d.dev, NULL);
  d.plugin->stream->close(NULL);
  d.plugin->event->free(NULL);
  d.plugin->op->launch_free(NULL);
  d.plugin->op->op_free(NULL);
  d.plugin->device->close(NULL);
  d.plugin->close_instance(NULL);
  fake_device_close(&d);
}

static void refuses_another_major(void **state) {
  fake_host host;
  heddle_error err;
  (void)state;
  fake_host_init(&host);
  host.table.abi_major = HEDDLE_ABI_MAJOR + 1;
  heddle_plugin_entry_fn entry = fake_entry("null");
  assert_non_null(entry);
  assert_null(entry(&host.table, &err));
  assert_int_equal(err.status, HEDDLE_EABI);
}

CASES(CASE(describes_itself), CASE(has_what_is_required), CASE(refuses_in_words), CASE(frees_take_null),
      CASE(refuses_another_major))
