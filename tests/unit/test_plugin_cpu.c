/* labels: threads
 * The cpu plugin apart from its operators' results: devices, memory, copies, streams, times, binding, and what it does
 * when memory is out. */
#include "op_case.h"

static heddle_pbuffer *alloc(fake_device *d, uint64_t bytes) {
  heddle_pbuffer *buffer = NULL;
  heddle_pmemory_desc desc = {.struct_size = sizeof desc, .kind = HEDDLE_MEMORY_DEVICE, .bytes = bytes, .align = 64};
  assert_int_equal(d->plugin->memory->alloc(d->dev, &desc, &buffer, &d->err), HEDDLE_OK);
  return buffer;
}

static int64_t live(fake_device *d, uint32_t key) {
  int64_t value = -1;
  assert_int_equal(d->plugin->device->query(d->dev, key, &value, &d->err), HEDDLE_OK);
  return value;
}

static void describes_itself(void **state) {
  fake_device d;
  heddle_pdevice_desc desc = {.struct_size = sizeof desc};
  uint64_t free_bytes = 0, total = 0;
  uint32_t count = 0;
  int64_t value = 0;
  (void)state;
  fake_device_open(&d, "cpu");
  assert_string_equal(d.plugin->name, "cpu");
  assert_int_equal(d.plugin->device_count(d.self, &count, &d.err), HEDDLE_OK);
  assert_int_equal(count, 1);
  assert_int_equal(d.plugin->device_describe(d.self, 0, &desc, &d.err), HEDDLE_OK);
  assert_int_equal(desc.type, HEDDLE_DEVICE_CPU);
  assert_true(desc.caps == (HEDDLE_CAP_INLINE | HEDDLE_CAP_VIEWS) && desc.alignment == 64 &&
              desc.import_alignment == 1);
  assert_true(desc.name[0] != '\0' && desc.driver[0] != '\0' && desc.memory_bytes > 0 && desc.compute_units == 1);
  assert_int_equal(d.plugin->device_describe(d.self, 1, &desc, &d.err), HEDDLE_ENODEV);
  assert_int_equal(d.plugin->device->memory_now(d.dev, &free_bytes, &total, &d.err), HEDDLE_OK);
  assert_true(total == desc.memory_bytes && free_bytes <= total);
  assert_int_equal(d.plugin->device->query(d.dev, 999, &value, &d.err), HEDDLE_EUNSUPPORTED);
  assert_null(d.plugin->event);
  assert_null(d.plugin->fence);
  assert_null(d.plugin->capture);
  fake_device_close(&d);
}

static void counts_memory(void **state) {
  fake_device d;
  heddle_pbuffer *view = NULL, *import = NULL, *again = NULL;
  char mine[100];
  void *address = NULL, *inner = NULL;
  uint64_t native = 0;
  (void)state;
  fake_device_open(&d, "cpu");
  const heddle_memory_table *m = d.plugin->memory;
  heddle_pbuffer *buffer = alloc(&d, 1000), *empty = alloc(&d, 0);
  assert_int_equal(m->map(d.dev, buffer, &address, &d.err), HEDDLE_OK);
  assert_int_equal((uintptr_t)address % 64, 0);
  memset(address, 1, 1000);
  assert_int_equal(m->view(d.dev, buffer, 128, 872, &view, &d.err), HEDDLE_OK);
  assert_int_equal(m->map(d.dev, view, &inner, &d.err), HEDDLE_OK);
  assert_ptr_equal(inner, (char *)address + 128);
  assert_int_equal(m->native(d.dev, view, &native, &d.err), HEDDLE_OK);
  assert_int_equal(native, (uintptr_t)inner);
  m->unmap(d.dev, view);
  assert_int_equal(m->import_host(d.dev, mine + 1, 99, &import, &d.err), HEDDLE_OK);
  assert_int_equal(live(&d, HEDDLE_QUERY_LIVE_BUFFERS), 4);
  assert_int_equal(live(&d, HEDDLE_QUERY_LIVE_BYTES), 1000);

  assert_int_equal(m->view(d.dev, buffer, 128, 873, &again, &d.err), HEDDLE_EINVAL);
  assert_int_equal(m->view(d.dev, buffer, 1001, 0, &again, &d.err), HEDDLE_EINVAL);
  assert_int_equal(m->view(d.dev, buffer, UINT64_MAX, 2, &again, &d.err), HEDDLE_EINVAL);
  assert_int_equal(m->view(d.dev, buffer, 4, 4, &again, &d.err), HEDDLE_EINVAL);
  assert_int_equal(m->view(d.dev, view, 0, 4, &again, &d.err), HEDDLE_EINVAL);
  assert_int_equal(m->import_host(d.dev, NULL, 4, &again, &d.err), HEDDLE_EINVAL);
  assert_null(again);
  m->free(d.dev, view);
  m->free(d.dev, import);
  m->free(d.dev, empty);
  m->free(d.dev, buffer);
  m->free(d.dev, NULL);
  fake_device_close(&d);
}

static void refuses_bad_allocations(void **state) {
  fake_device d;
  heddle_pbuffer *buffer = NULL;
  heddle_pmemory_desc desc = {.struct_size = sizeof desc, .kind = HEDDLE_MEMORY_PINNED, .bytes = 8, .align = 4096};
  (void)state;
  fake_device_open(&d, "cpu");
  const heddle_memory_table *m = d.plugin->memory;
  assert_int_equal(m->alloc(d.dev, &desc, &buffer, &d.err), HEDDLE_OK);
  m->free(d.dev, buffer);
  buffer = NULL;
  desc.align = 8192;
  assert_int_equal(m->alloc(d.dev, &desc, &buffer, &d.err), HEDDLE_EINVAL);
  desc.align = 96;
  assert_int_equal(m->alloc(d.dev, &desc, &buffer, &d.err), HEDDLE_EINVAL);
  desc.align = 0;
  desc.kind = HEDDLE_MEMORY_UNIFIED;
  assert_int_equal(m->alloc(d.dev, &desc, &buffer, &d.err), HEDDLE_EUNSUPPORTED);
  desc.kind = HEDDLE_MEMORY_DEVICE;
  desc.bytes = UINT64_MAX;
  assert_int_equal(m->alloc(d.dev, &desc, &buffer, &d.err), HEDDLE_ENOMEM);
  desc.bytes = UINT64_MAX / 4;
  assert_int_equal(m->alloc(d.dev, &desc, &buffer, &d.err), HEDDLE_ENOMEM);
  assert_null(buffer);
  fake_device_close(&d);
}

static void copies_touch_their_range_only(void **state) {
  fake_device d;
  unsigned char bytes[64], got[64];
  (void)state;
  fake_device_open(&d, "cpu");
  const heddle_copy_table *c = d.plugin->copy;
  heddle_pbuffer *a = alloc(&d, 64), *b = alloc(&d, 64);
  for (int i = 0; i < 64; i++) bytes[i] = (unsigned char)i;
  assert_int_equal(c->write(d.stream, a, 0, bytes, 64, &d.err), HEDDLE_OK);
  assert_int_equal(c->fill(d.stream, b, 0, 64, 0x04030201, &d.err), HEDDLE_OK);
  assert_int_equal(c->d2d(d.stream, b, 9, a, 20, 7, &d.err), HEDDLE_OK);
  assert_int_equal(c->read(d.stream, got, b, 0, 64, &d.err), HEDDLE_OK);
  for (int i = 0; i < 64; i++) assert_int_equal(got[i], i >= 9 && i < 16 ? 20 + i - 9 : i % 4 + 1);
  assert_int_equal(c->h2d(d.stream, b, 0, a, 0, 64, &d.err), HEDDLE_OK);
  assert_int_equal(c->d2h(d.stream, b, 0, a, 32, 32, &d.err), HEDDLE_OK);
  assert_int_equal(c->read(d.stream, got, b, 0, 64, &d.err), HEDDLE_OK);
  for (int i = 0; i < 64; i++) assert_int_equal(got[i], i < 32 ? i + 32 : i);

  assert_int_equal(c->d2d(d.stream, b, 60, a, 0, 5, &d.err), HEDDLE_EINVAL);
  assert_int_equal(c->d2d(d.stream, b, 0, a, 60, 5, &d.err), HEDDLE_EINVAL);
  assert_int_equal(c->d2d(d.stream, b, 0, a, UINT64_MAX, 5, &d.err), HEDDLE_EINVAL);
  assert_int_equal(c->write(d.stream, b, 1, bytes, 64, &d.err), HEDDLE_EINVAL);
  assert_int_equal(c->read(d.stream, got, b, 65, 0, &d.err), HEDDLE_EINVAL);
  assert_int_equal(c->fill(d.stream, b, 2, 4, 0, &d.err), HEDDLE_EINVAL);
  assert_int_equal(c->fill(d.stream, b, 0, 6, 0, &d.err), HEDDLE_EINVAL);
  assert_int_equal(c->d2d(d.stream, b, 64, a, 64, 0, &d.err), HEDDLE_OK);
  d.plugin->memory->free(d.dev, a);
  d.plugin->memory->free(d.dev, b);
  fake_device_close(&d);
}

static void streams_are_always_done(void **state) {
  fake_device d;
  heddle_pstream *other = NULL;
  (void)state;
  fake_device_open(&d, "cpu");
  assert_int_equal(d.plugin->stream->create(d.dev, HEDDLE_STREAM_COPY, 5, &other, &d.err), HEDDLE_OK);
  assert_int_equal(d.plugin->stream->submit(other, &d.err), HEDDLE_OK);
  assert_int_equal(d.plugin->stream->sync(other, 0, &d.err), HEDDLE_OK);
  assert_int_equal(d.plugin->stream->query(other, &d.err), HEDDLE_OK);
  assert_int_equal(live(&d, HEDDLE_QUERY_LIVE_OBJECTS), 2);
  d.plugin->stream->close(other);
  d.plugin->stream->close(NULL);
  fake_device_close(&d);
}

static void marks_go_forward(void **state) {
  fake_device d;
  heddle_ptimer *timer = NULL;
  uint64_t ns[3] = {0, 0, 0}, here = 0, there = 0;
  (void)state;
  fake_device_open(&d, "cpu");
  const heddle_timing_table *t = d.plugin->timing;
  assert_int_equal(t->create(d.dev, 3, &timer, &d.err), HEDDLE_OK);
  for (uint32_t i = 0; i < 3; i++) assert_int_equal(t->mark(d.stream, timer, i, &d.err), HEDDLE_OK);
  assert_int_equal(t->mark(d.stream, timer, 3, &d.err), HEDDLE_EINVAL);
  assert_int_equal(t->read(timer, 0, 3, ns, &d.err), HEDDLE_OK);
  assert_true(ns[0] > 0 && ns[0] <= ns[1] && ns[1] <= ns[2]);
  assert_int_equal(t->read(timer, 2, 2, ns, &d.err), HEDDLE_EINVAL);
  assert_int_equal(t->read(timer, 4, UINT32_MAX, ns, &d.err), HEDDLE_EINVAL);
  assert_int_equal(t->calibrate(d.dev, &there, &here, &d.err), HEDDLE_OK);
  assert_true(here == there && here >= ns[2]);
  t->free(timer);
  t->free(NULL);
  fake_device_close(&d);
}

/* An Add of a row and a scalar in one buffer, with everything wrong that can be. */
static void bind_checks_its_ranges(void **state) {
  fake_device d;
  op_case c;
  heddle_pop *op = NULL;
  heddle_plaunch *launch = NULL, *second = NULL;
  heddle_pstream *foreign = NULL;
  heddle_pdevice *dev = NULL;
  heddle_pdevice_options options = {.struct_size = sizeof options};
  float *at;
  (void)state;
  fake_device_open(&d, "cpu");
  const heddle_op_table *o = d.plugin->op;
  op_case_init(&c, "Add");
  op_input(&c, F32, SHAPE(1, 10));
  op_input(&c, F32, SHAPE(1, 1));
  op_output(&c, F32, SHAPE(1, 10));
  heddle_pbuffer *buffer = alloc(&d, 256);
  assert_int_equal(d.plugin->memory->map(d.dev, buffer, (void **)&at, &d.err), HEDDLE_OK);
  for (int i = 0; i < 64; i++) at[i] = (float)i;

  heddle_pslice inputs[2] = {{buffer, 0, 40}, {buffer, 64, 4}}, output = {buffer, 128, 40};
  const heddle_pslice good[2] = {inputs[0], inputs[1]};
  heddle_pbind bind = {sizeof bind, 0, inputs, &output, 2, 1, {NULL, 0, 0}};
  assert_int_equal(o->prepare(d.dev, &c.region, 1, &op, &d.err), HEDDLE_EINVAL);
  assert_int_equal(o->prepare(d.dev, &c.region, 0, &op, &d.err), HEDDLE_OK);

  inputs[0].bytes = 36; /* too small */
  assert_int_equal(o->bind(op, d.stream, &bind, &launch, &d.err), HEDDLE_EINVAL);
  inputs[0] = (heddle_pslice){buffer, 220, 40}; /* over the end */
  assert_int_equal(o->bind(op, d.stream, &bind, &launch, &d.err), HEDDLE_EINVAL);
  inputs[0] = (heddle_pslice){buffer, UINT64_MAX - 3, 40};
  assert_int_equal(o->bind(op, d.stream, &bind, &launch, &d.err), HEDDLE_EINVAL);
  inputs[0] = (heddle_pslice){buffer, 2, 40}; /* between elements */
  assert_int_equal(o->bind(op, d.stream, &bind, &launch, &d.err), HEDDLE_EINVAL);
  inputs[0] = (heddle_pslice){NULL, 0, 40};
  assert_int_equal(o->bind(op, d.stream, &bind, &launch, &d.err), HEDDLE_EINVAL);
  inputs[0] = good[0];
  bind.n_inputs = 1;
  assert_int_equal(o->bind(op, d.stream, &bind, &launch, &d.err), HEDDLE_EINVAL);
  bind.n_inputs = 2;
  assert_int_equal(d.plugin->device->open(d.self, 0, &options, &dev, &d.err), HEDDLE_OK);
  assert_int_equal(d.plugin->stream->create(dev, 0, 0, &foreign, &d.err), HEDDLE_OK);
  assert_int_equal(o->bind(op, foreign, &bind, &launch, &d.err), HEDDLE_EINVAL);
  d.plugin->stream->close(foreign);
  d.plugin->device->close(dev);
  assert_null(launch);

  assert_int_equal(o->bind(op, d.stream, &bind, &launch, &d.err), HEDDLE_OK);
  inputs[1].offset = 68;
  output.offset = 192;
  assert_int_equal(o->bind(op, d.stream, &bind, &second, &d.err), HEDDLE_OK);
  assert_int_equal(o->run(launch, &d.err), HEDDLE_OK);
  assert_int_equal(o->run(second, &d.err), HEDDLE_OK);
  for (int i = 0; i < 10; i++) assert_true(at[32 + i] == (float)(i + 16) && at[48 + i] == (float)(i + 17));
  assert_true(at[42] == 42 && at[58] == 58);
  assert_int_equal(live(&d, HEDDLE_QUERY_LIVE_OBJECTS), 4);
  o->launch_free(launch);
  o->launch_free(second);
  o->launch_free(NULL);
  o->op_free(op);
  o->op_free(NULL);
  d.plugin->memory->free(d.dev, buffer);
  op_case_free(&c);
  fake_device_close(&d);
}

static void refuses_foreign_layouts_and_regions(void **state) {
  fake_device d;
  op_case c;
  heddle_pop *op = NULL;
  (void)state;
  fake_device_open(&d, "cpu");
  op_case_init(&c, "Relu");
  op_input(&c, F32, SHAPE(1, 10));
  op_output(&c, F32, SHAPE(1, 10));
  c.values[0].v.layout = 7;
  op_expect_refused(&d, &c, "row-major");
  c.values[0].v.layout = 0;
  c.region.n_outputs = 0;
  op_expect_refused(&d, &c, "one output of its region");
  c.region.n_outputs = 1;
  c.region.n_inputs = 0;
  op_expect_refused(&d, &c, "not an input of its region");
  c.region.n_inputs = 1;
  c.node_inputs[0] = 99;
  op_expect_refused(&d, &c, "operand 0 is missing");
  heddle_pnode two[2] = {c.node, c.node}; /* no chain */
  c.region.nodes = (heddle_parray){two, 2, sizeof two[0]};
  assert_int_equal(op_query(&d, &c), HEDDLE_EUNSUPPORTED);
  assert_int_equal(d.plugin->op->prepare(d.dev, &c.region, 0, &op, &d.err), HEDDLE_EUNSUPPORTED);
  op_case_free(&c);
  fake_device_close(&d);
}

/* Fails each allocation of opening, preparing and binding in turn. */
static void memory_may_run_out_anywhere(void **state) {
  long failures = 0;
  (void)state;
  for (long n = 1;; n++) {
    fake_device d;
    op_case c;
    heddle_pbuffer *buffers[3] = {NULL, NULL, NULL};
    heddle_pop *op = NULL;
    heddle_plaunch *launch = NULL;
    heddle_ptimer *timer = NULL;
    heddle_pmemory_desc desc = {.struct_size = sizeof desc, .bytes = 40};
    op_case_init(&c, "Concat");
    op_attr_int(&c, "axis", 0);
    op_input(&c, F32, SHAPE(1, 4));
    op_input(&c, F32, SHAPE(1, 6));
    op_output(&c, F32, SHAPE(1, 10));
    fake_device_open(&d, "cpu");
    d.host.fail_at = atomic_load(&d.host.calls) + n;
    heddle_status s = HEDDLE_OK;
    for (int i = 0; i < 3 && s == HEDDLE_OK; i++) {
      s = d.plugin->memory->alloc(d.dev, &desc, &buffers[i], &d.err);
    }
    if (s == HEDDLE_OK) s = op_query(&d, &c);
    if (s == HEDDLE_OK) s = d.plugin->op->prepare(d.dev, &c.region, 0, &op, &d.err);
    heddle_pslice inputs[2] = {{buffers[0], 0, 16}, {buffers[1], 0, 24}}, output = {buffers[2], 0, 40};
    heddle_pbind bind = {sizeof bind, 0, inputs, &output, 2, 1, {NULL, 0, 0}};
    if (s == HEDDLE_OK) s = d.plugin->op->bind(op, d.stream, &bind, &launch, &d.err);
    if (s == HEDDLE_OK) s = d.plugin->timing->create(d.dev, 4, &timer, &d.err);
    d.host.fail_at = 0;
    d.plugin->timing->free(timer);
    d.plugin->op->launch_free(launch);
    d.plugin->op->op_free(op);
    for (int i = 0; i < 3; i++) d.plugin->memory->free(d.dev, buffers[i]);
    op_case_free(&c);
    fake_device_close(&d);
    if (s == HEDDLE_OK) break;
    assert_int_equal(s, HEDDLE_ENOMEM);
    assert_int_equal(d.err.status, HEDDLE_ENOMEM);
    failures++;
  }
  assert_true(failures >= 10);
}

typedef struct listed {
  int count;
  bool has_conv;
} listed;

static heddle_status take_listed(void *sink, const char *domain, const char *op, uint32_t first, uint32_t last,
                                 const char *dtypes, heddle_error *err) {
  listed *l = sink;
  (void)err;
  const bool own = strcmp(domain, "heddle") == 0;
  assert_true(own || domain[0] == '\0');
  assert_true(own ? first == 1 && last == 1 : first >= 13 && first <= last && last <= 28);
  assert_true(dtypes[0] != '\0');
  l->count++;
  if (strcmp(op, "Conv") == 0) l->has_conv = true;
  return HEDDLE_OK;
}

static void lists_its_operators(void **state) {
  fake_device d;
  listed l = {0, false};
  (void)state;
  fake_device_open(&d, "cpu");
  assert_int_equal(d.plugin->op->list(d.self, 0, take_listed, &l, &d.err), HEDDLE_OK);
  assert_true(l.has_conv);
  assert_true(l.count >= 191);
  fake_device_close(&d);
}

static void small_work_is_not_split(void **state) {
  fake_device d;
  op_case c;
  (void)state;
  fake_device_open(&d, "cpu");
  d.host.threads = FAKE_THREADS;
  op_case_init(&c, "MatMul");
  op_fill(op_input(&c, F32, SHAPE(2, 32, 32)), 1024, 1);
  op_fill(op_input(&c, F32, SHAPE(2, 32, 32)), 1024, 2);
  op_output(&c, F32, SHAPE(2, 32, 32));
  op_case_run(&d, &c);
  assert_int_equal(atomic_load(&d.host.parallel_calls), 0);
  op_case_free(&c);
  fake_device_close(&d);
}

static void refuses_another_major(void **state) {
  fake_host host;
  heddle_error err;
  (void)state;
  fake_host_init(&host);
  host.table.abi_major = HEDDLE_ABI_MAJOR + 1;
  heddle_plugin_entry_fn entry = fake_entry("cpu");
  assert_non_null(entry);
  assert_null(entry(&host.table, &err));
  assert_int_equal(err.status, HEDDLE_EABI);
}

CASES(CASE(describes_itself), CASE(counts_memory), CASE(refuses_bad_allocations), CASE(copies_touch_their_range_only),
      CASE(streams_are_always_done), CASE(marks_go_forward), CASE(bind_checks_its_ranges),
      CASE(refuses_foreign_layouts_and_regions), CASE(memory_may_run_out_anywhere), CASE(lists_its_operators),
      CASE(small_work_is_not_split), CASE(refuses_another_major))
