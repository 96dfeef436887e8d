/* labels: vulkan
 * timeout: 300
 * The vulkan plugin on devices that lavapipe is not: several queues and one that only copies, memory of its own that is
 * mapped without being coherent, no clock to ask; and on one that is lost, or hangs. vulkan_shim.c makes it one. */
#include "vulkan_host.h"
#include "vulkan_shim.h"

#include "op_case.h"
#include "plugins/vulkan/vulkan.h"

#ifndef HEDDLE_TEST_VULKAN_SHIM /* no loader was found, or the plugin is not built */
#define HEDDLE_TEST_VULKAN_SHIM "/nonexistent"
#define HEDDLE_TEST_VULKAN_LOADER "/nonexistent"
#endif

/* Puts the shim in the loader's place. */
static vulkan_shim *lie(void) {
  vulkan_environment();
  if (access(HEDDLE_TEST_VULKAN_SHIM, F_OK) != 0) SKIP("the shim is not built: no Vulkan loader was found");
  void *library = dlopen(HEDDLE_TEST_VULKAN_SHIM, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (library == NULL) fail_msg("%s", dlerror());
  vulkan_shim *shim = dlsym(library, "vulkan_shim_settings");
  assert_non_null(shim);
  shim->loader = HEDDLE_TEST_VULKAN_LOADER;
  return shim;
}

/* Without the validation layer, which does not see what the shim keeps to itself. */
static void open_plain(sim_test *t, const char *timeline) {
  sim_enter(t, "timeline", timeline, NULL);
  OK(t, t->p->open_instance(&t->fake.table, &t->self, &t->err));
  heddle_pdevice_options options = {.struct_size = sizeof options, .cookie = 100};
  OK(t, t->p->device->open(t->self, 0, &options, &t->dev[0], &t->err));
}

/* A word goes round all queues, through one that only copies, ordered by events. */
static void queues_are_used_together(void **state) {
  enum { STREAMS = 5, BYTES = 65536, ROUNDS = 30 };
  sim_test t;
  heddle_pstream *s[STREAMS];
  heddle_pbuffer *b[STREAMS];
  heddle_pevent *e[STREAMS];
  heddle_pgraph *g = NULL;
  heddle_ptimer *timer = NULL;
  uint64_t ns[2] = {0};
  (void)state;
  vulkan_shim *shim = lie();
  shim->families = 1;
  vulkan_open(&t, 1, NULL);
  heddle_pdevice *dev = t.dev[0];
  for (uint32_t i = 0; i < STREAMS; i++) {
    const uint32_t kind = i == STREAMS - 1 ? HEDDLE_STREAM_COPY : HEDDLE_STREAM_COMPUTE;
    OK(&t, t.p->stream->create(dev, kind, 0, &s[i], &t.err));
    b[i] = sim_buf(&t, dev, HEDDLE_MEMORY_DEVICE, BYTES);
    e[i] = sim_event(&t, dev);
  }
  assert_int_equal(shim->copy_pools, 1);
  for (uint32_t k = 1; k <= ROUNDS; k++) {
    OK(&t, t.p->event->wait(s[0], e[STREAMS - 1], &t.err));
    sim_fill(&t, s[0], b[0], BYTES, k);
    OK(&t, t.p->event->record(e[0], s[0], &t.err));
    for (uint32_t i = 1; i < STREAMS; i++) {
      OK(&t, t.p->event->wait(s[i], e[i - 1], &t.err));
      OK(&t, t.p->copy->d2d(s[i], b[i], 0, b[i - 1], 0, BYTES, &t.err));
      OK(&t, t.p->event->record(e[i], s[i], &t.err));
      OK(&t, t.p->fence->signal(s[i], i, k, &t.err));
    }
  }
  heddle_pstream *copies = s[STREAMS - 1];
  sim_expect(&t, copies, b[STREAMS - 1], BYTES / 4, ROUNDS);
  for (uint32_t i = 1; i < STREAMS; i++) assert_int_equal(sim_wait(&t, i, ROUNDS), HEDDLE_OK);

  OK(&t, t.p->timing->create(dev, 2, &timer, &t.err));
  for (uint32_t i = 0; i < 2; i++) { /* the host resets these */
    OK(&t, t.p->timing->mark(copies, timer, i, &t.err));
    sim_fill(&t, copies, b[0], BYTES, i);
  }
  sim_sync(&t, copies);
  OK(&t, t.p->timing->read(timer, 0, 2, ns, &t.err));
  assert_true(ns[1] > ns[0]);
  t.p->timing->free(timer);

  FAILS(&t, HEDDLE_EUNSUPPORTED, "only copies", t.p->capture->begin(copies, &t.err));
  OK(&t, t.p->capture->begin(s[0], &t.err));
  sim_fill(&t, s[0], b[0], BYTES, 7);
  OK(&t, t.p->capture->end(s[0], &g, &t.err));
  FAILS(&t, HEDDLE_EINVAL, "only copies", t.p->capture->replay(g, copies, &t.err));
  OK(&t, t.p->capture->replay(g, s[1], &t.err));
  sim_expect(&t, s[1], b[0], BYTES / 4, 7);
  t.p->capture->free(g);
  for (uint32_t i = 0; i < STREAMS; i++) {
    t.p->event->free(e[i]);
    t.p->memory->free(dev, b[i]);
    t.p->stream->close(s[i]);
  }
  sim_close(&t);
}

/* Mapped memory is flushed and invalidated, by the host and by plain reads and writes, in whole granules. */
static void memory_that_is_not_coherent(void **state) {
  enum { BYTES = 3000000 };
  sim_test t;
  heddle_pdevice_desc desc = {.struct_size = sizeof desc};
  (void)state;
  vulkan_shim *shim = lie();
  shim->discrete = 1;
  vulkan_open(&t, 1, NULL);
  heddle_pdevice *dev = t.dev[0];
  OK(&t, t.p->device_describe(t.self, 0, &desc, &t.err));
  assert_int_equal(desc.caps, HEDDLE_CAP_NONCOHERENT | HEDDLE_CAP_VIEWS | HEDDLE_CAP_POLLED);
  heddle_pstream *s = sim_stream(&t, dev);
  heddle_pbuffer *pinned = sim_buf(&t, dev, HEDDLE_MEMORY_PINNED, 1000);
  heddle_pbuffer *a = sim_buf(&t, dev, HEDDLE_MEMORY_DEVICE, BYTES);
  uint8_t *host = sim_map(&t, dev, pinned), *own = malloc(BYTES);
  for (int i = 0; i < 1000; i++) host[i] = (uint8_t)(i * 3);
  OK(&t, t.p->memory->flush(dev, pinned, 7, 993, &t.err));
  assert_int_equal(shim->flushes, 1);
  OK(&t, t.p->copy->h2d(s, a, 0, pinned, 7, 993, &t.err));
  memset(host, 0, 7);
  OK(&t, t.p->copy->d2h(s, pinned, 0, a, 10, 5, &t.err));
  sim_sync(&t, s);
  OK(&t, t.p->memory->invalidate(dev, pinned, 0, 5, &t.err));
  assert_int_equal(shim->flushes, 2);
  for (int i = 0; i < 5; i++) assert_int_equal(host[i], (uint8_t)((i + 17) * 3));
  for (int i = 0; i < BYTES; i++) own[i] = (uint8_t)(i >> 5);
  OK(&t, t.p->copy->write(s, a, 0, own, BYTES, &t.err)); /* three pieces of staging memory */
  assert_int_equal(shim->flushes, 5);
  memset(own, 0, BYTES);
  OK(&t, t.p->copy->read(s, own, a, 0, BYTES, &t.err));
  assert_int_equal(shim->flushes, 8);
  for (int i = 0; i < BYTES; i++) {
    if (own[i] != (uint8_t)(i >> 5)) fail_msg("byte %d is %d", i, own[i]);
  }
  free(own);
  t.p->memory->free(dev, a);
  t.p->memory->free(dev, pinned);
  t.p->stream->close(s);
  sim_close(&t);
}

static void clocks_are_compared_by_a_submission(void **state) {
  sim_test t;
  uint64_t device[2] = {0}, host[2] = {0};
  (void)state;
  vulkan_shim *shim = lie();
  shim->no_clock = 1;
  vulkan_open(&t, 1, NULL);
  const int32_t before = shim->submissions;
  for (int i = 0; i < 2; i++) {
    OK(&t, t.p->timing->calibrate(t.dev[0], &device[i], &host[i], &t.err));
    nanosleep(&(struct timespec){0, 50000000}, NULL);
  }
  assert_int_equal(shim->submissions, before + 2);
  const double rate = (double)(device[1] - device[0]) / (double)(host[1] - host[0]);
  if (!(rate > 0.5 && rate < 2)) fail_msg("the device's clock runs %g times as fast as the host's", rate);
  sim_close(&t);
}

static heddle_status take_offer(void *sink, const heddle_poffer *offer, heddle_error *err) {
  (void)offer, (void)err;
  ++*(int *)sink;
  return HEDDLE_OK;
}

/* A device may have four buffers a shader and no more: what needs more is refused before it is compiled. */
static void shaders_keep_to_the_devices_buffers(void **state) {
  static const heddle_dtype f32 = {2, 32, 1};
  sim_test t;
  op_case c;
  int offers = 0;
  (void)state;
  vulkan_shim *shim = lie();
  shim->few_buffers = 1;
  vulkan_open(&t, 1, NULL);
  op_case_init(&c, "Add");
  for (int i = 0; i < 2; i++) op_input(&c, f32, SHAPE(1, 64));
  op_output(&c, f32, SHAPE(1, 64));
  OK(&t, t.p->op->query(t.self, 0, &c.region, take_offer, &offers, &t.err));
  op_case_free(&c);
  op_case_init(&c, "BatchNormalization");
  op_input(&c, f32, SHAPE(3, 2, 3, 8));
  for (int i = 0; i < 4; i++) op_input(&c, f32, SHAPE(1, 3));
  op_output(&c, f32, SHAPE(3, 2, 3, 8));
  FAILS(&t, HEDDLE_EUNSUPPORTED, "has 7 buffers", t.p->op->query(t.self, 0, &c.region, take_offer, &offers, &t.err));
  op_case_free(&c);
  assert_int_equal(offers, 1);
  sim_close(&t);
}

/* All calls fail with the message of the first, waiters get the failure, and all can be freed. */
static void a_lost_device_stays_lost(void **state) {
  sim_test t;
  heddle_pbuffer *none = NULL;
  char first[256];
  (void)state;
  vulkan_shim *shim = lie();
  open_plain(&t, "1");
  heddle_pdevice *dev = t.dev[0];
  heddle_pstream *s = sim_stream(&t, dev), *other = sim_stream(&t, dev);
  heddle_pbuffer *b = sim_buf(&t, dev, HEDDLE_MEMORY_DEVICE, 4096);
  heddle_pevent *e = sim_event(&t, dev);
  heddle_pgraph *g = NULL;
  OK(&t, t.p->capture->begin(s, &t.err));
  sim_fill(&t, s, b, 4096, 1);
  OK(&t, t.p->capture->end(s, &g, &t.err));
  shim->hang = 1;
  OK(&t, t.p->capture->replay(g, s, &t.err));
  OK(&t, t.p->fence->signal(s, 1, 1, &t.err)); /* under way when the device is lost */
  shim->hang = 0;
  shim->lose = 1;
  sim_fill(&t, other, b, 4096, 2);
  FAILS(&t, HEDDLE_EDEVICE, "VK_ERROR_DEVICE_LOST", t.p->fence->signal(other, 2, 1, &t.err));
  snprintf(first, sizeof first, "%.200s", t.err.text);
  assert_int_equal(sim_wait(&t, 1, 1), HEDDLE_EDEVICE);
  assert_int_equal(sim_wait(&t, 2, 1), HEDDLE_EDEVICE);
  FAILS(&t, HEDDLE_EDEVICE, first, t.p->stream->sync(s, 20 * SECOND, &t.err));
  FAILS(&t, HEDDLE_EDEVICE, first, t.p->stream->query(s, &t.err));
  FAILS(&t, HEDDLE_EDEVICE, first, t.p->device->health(dev, &t.err));
  FAILS(&t, HEDDLE_EDEVICE, first, t.p->device->idle(dev, 20 * SECOND, &t.err));
  FAILS(&t, HEDDLE_EDEVICE, first, t.p->copy->fill(s, b, 0, 4, 0, &t.err));
  FAILS(&t, HEDDLE_EDEVICE, first, t.p->event->record(e, s, &t.err));
  FAILS(&t, HEDDLE_EDEVICE, first, t.p->capture->replay(g, s, &t.err));
  heddle_pmemory_desc wish = {.struct_size = sizeof wish, .bytes = 64, .align = 1};
  FAILS(&t, HEDDLE_EDEVICE, first, t.p->memory->alloc(dev, &wish, &none, &t.err));
  assert_int_equal(t.faults, 1);
  assert_int_equal(t.fault_cookie, 100);
  t.p->capture->free(g);
  t.p->event->free(e);
  t.p->memory->free(dev, b);
  t.p->stream->close(s);
  t.p->stream->close(other);
  (sim_close)(&t);
}

static void a_lost_device_without_timelines(void **state) {
  sim_test t;
  (void)state;
  vulkan_shim *shim = lie();
  open_plain(&t, "0");
  heddle_pstream *s = sim_stream(&t, t.dev[0]);
  heddle_pbuffer *b = sim_buf(&t, t.dev[0], HEDDLE_MEMORY_DEVICE, 4096);
  shim->hang = 1;
  sim_fill(&t, s, b, 4096, 1);
  OK(&t, t.p->fence->signal(s, 1, 1, &t.err));
  shim->hang = 0;
  shim->lose = 1;
  sim_fill(&t, s, b, 4096, 1);
  FAILS(&t, HEDDLE_EDEVICE, "VK_ERROR_DEVICE_LOST", t.p->stream->submit(s, &t.err));
  FAILS(&t, HEDDLE_EDEVICE, "VK_ERROR_DEVICE_LOST", t.p->stream->sync(s, 20 * SECOND, &t.err));
  assert_int_equal(sim_wait(&t, 1, 1), HEDDLE_EDEVICE);
  t.p->memory->free(t.dev[0], b);
  t.p->stream->close(s);
  (sim_close)(&t);
}

/* Work that never ends: waits end in time, and closing ends in time. */
static void a_device_that_hangs_is_left_behind(void **state) {
  sim_test t;
  (void)state;
  vulkan_shim *shim = lie();
  open_plain(&t, "1");
  heddle_pstream *s = sim_stream(&t, t.dev[0]);
  heddle_pbuffer *b = sim_buf(&t, t.dev[0], HEDDLE_MEMORY_DEVICE, 4096);
  shim->hang = 1;
  sim_fill(&t, s, b, 4096, 1);
  OK(&t, t.p->fence->signal(s, 1, 1, &t.err));
  FAILS(&t, HEDDLE_ETIMEOUT, "within", t.p->stream->sync(s, SECOND / 100, &t.err));
  FAILS(&t, HEDDLE_EBUSY, "work left", t.p->stream->query(s, &t.err));
  FAILS(&t, HEDDLE_ETIMEOUT, "within", t.p->device->idle(t.dev[0], SECOND / 100, &t.err));
  const uint64_t start = fake_now_ns(NULL);
  t.p->stream->close(s);
  t.p->device->close(t.dev[0]);
  t.p->close_instance(t.self);
  assert_true(fake_now_ns(NULL) - start < 20 * SECOND);
  assert_int_equal(t.faults, 0);
}

static void fills(sim_test *t) {
  enum { BYTES = 4096 };
  heddle_pdevice *dev = t->dev[0];
  heddle_pstream *s = sim_stream(t, dev);
  heddle_pbuffer *b = sim_buf(t, dev, HEDDLE_MEMORY_DEVICE, BYTES),
                 *pinned = sim_buf(t, dev, HEDDLE_MEMORY_PINNED, BYTES);
  sim_fill(t, s, b, BYTES, 9);
  sim_expect(t, s, b, BYTES / 4, 9);
  t->p->memory->free(dev, pinned);
  t->p->memory->free(dev, b);
  t->p->stream->close(s);
}

/* The type that looks best is none for buffers. */
static void memory_is_of_a_type_that_buffers_take(void **state) {
  sim_test t;
  (void)state;
  vulkan_shim *shim = lie();
  shim->other_type = 1;
  open_plain(&t, "1");
  fills(&t);
  sim_close(&t);
}

/* A device of Vulkan 1.3 behind a loader of 1.1 is used as one of 1.1. */
static void no_more_than_the_loader_knows_is_used(void **state) {
  sim_test t;
  (void)state;
  vulkan_shim *shim = lie();
  shim->old_loader = 1;
  open_plain(&t, "1");
  assert_true(t.dev[0]->info->api_version < VK_API_VERSION_1_2);
  assert_int_equal(t.dev[0]->info->spirv, 0x10300);
  fills(&t);
  sim_close(&t);
}

/* The queue's thread wakes late: who asks the stream learns of a completion from the timeline. */
static void completions_are_seen_by_who_asks(void **state) {
  enum { BYTES = 4096, LATE_MS = 1500 };
  heddle_pdevice_desc desc = {.struct_size = sizeof desc};
  sim_test t;
  (void)state;
  vulkan_shim *shim = lie();
  open_plain(&t, "1");
  OK(&t, t.p->device_describe(t.self, 0, &desc, &t.err));
  if ((desc.caps & HEDDLE_CAP_POLLED) == 0) SKIP("the device has no timeline semaphores");
  heddle_pstream *s = sim_stream(&t, t.dev[0]);
  heddle_pbuffer *b = sim_buf(&t, t.dev[0], HEDDLE_MEMORY_DEVICE, BYTES);
  sim_fill(&t, s, b, BYTES, 1);
  sim_sync(&t, s);
  shim->late_waits = LATE_MS;
  const uint64_t begin = t.fake.table.now_ns(t.fake.table.ctx);
  for (uint64_t i = 1; i <= 3; i++) {
    sim_fill(&t, s, b, BYTES, (uint32_t)i);
    OK(&t, t.p->fence->signal(s, 1, i, &t.err));
  }
  uint64_t now = begin;
  while (sim_test_fence(&t, 1, 3) != HEDDLE_OK && now < begin + 20 * SECOND) {
    (void)t.p->stream->query(s, NULL);
    now = t.fake.table.now_ns(t.fake.table.ctx);
  }
  assert_int_equal(sim_test_fence(&t, 1, 3), HEDDLE_OK);
  assert_true(now - begin < LATE_MS * UINT64_C(1000000));
  shim->late_waits = 0;
  t.p->memory->free(t.dev[0], b);
  t.p->stream->close(s);
  sim_close(&t);
}

static void drivers_of_layered_implementations_are_asked_for(void **state) {
  sim_test t;
  (void)state;
  vulkan_shim *shim = lie();
  shim->portable = 1;
  open_plain(&t, "1");
  assert_int_equal(shim->asked_portable, 1);
  sim_close(&t);
}

CASES(CASE(memory_is_of_a_type_that_buffers_take), CASE(no_more_than_the_loader_knows_is_used),
      CASE(drivers_of_layered_implementations_are_asked_for), CASE(completions_are_seen_by_who_asks),
      CASE(queues_are_used_together), CASE(memory_that_is_not_coherent), CASE(clocks_are_compared_by_a_submission),
      CASE(shaders_keep_to_the_devices_buffers), CASE(a_lost_device_stays_lost), CASE(a_lost_device_without_timelines),
      CASE(a_device_that_hangs_is_left_behind))
