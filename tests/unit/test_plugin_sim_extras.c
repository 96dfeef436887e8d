/* labels: threads
 * Sim's injected failures, captures, modules, times, external memory. */
#include "sim_host.h"

#include <fcntl.h>
#include <unistd.h>

/* ---- failures ---- */

static void the_nth_call_fails(void **state) {
  sim_test t;
  (void)state;
  sim_open(&t, 2, "fail", "alloc:2,stream:2@1,h2d:1@1,signal:1", NULL);
  heddle_pmemory_desc d = {.struct_size = sizeof d, .bytes = 64, .align = 1};
  heddle_pbuffer *a = sim_buf(&t, t.dev[0], HEDDLE_MEMORY_DEVICE, 64), *b = NULL;
  FAILS(&t, HEDDLE_ENOMEM, "'alloc'", t.p->memory->alloc(t.dev[1], &d, &b, &t.err)); /* the second of all devices */
  b = sim_buf(&t, t.dev[1], HEDDLE_MEMORY_DEVICE, 64);
  heddle_pstream *s0 = sim_stream(&t, t.dev[0]), *s1 = sim_stream(&t, t.dev[1]), *s2 = NULL;
  FAILS(&t, HEDDLE_EFAILED, "'stream'", t.p->stream->create(t.dev[1], 0, 0, &s2, &t.err));
  uint8_t bytes[64] = {0};
  OK(&t, t.p->copy->write(s0, a, 0, bytes, 64, &t.err));
  FAILS(&t, HEDDLE_EFAILED, "'h2d'", t.p->copy->write(s1, b, 0, bytes, 64, &t.err));
  OK(&t, t.p->copy->write(s1, b, 0, bytes, 64, &t.err));
  FAILS(&t, HEDDLE_EFAILED, "'signal'", t.p->fence->signal(s0, 1, 1, &t.err));
  assert_int_equal(sim_wait(&t, 1, 1), HEDDLE_EFAILED); /* a waiter gets the failure */
  sim_sync(&t, s0);
  sim_sync(&t, s1);
  t.p->memory->free(t.dev[0], a);
  t.p->memory->free(t.dev[1], b);
  t.p->stream->close(s0);
  t.p->stream->close(s1);
  sim_close(&t);
}

static void a_fault_is_sticky(void **state) {
  sim_test t;
  (void)state;
  sim_open(&t, 2, "fail", "fill:2@0:async:fault", NULL);
  heddle_pstream *s = sim_stream(&t, t.dev[0]), *other = sim_stream(&t, t.dev[1]);
  heddle_pbuffer *a = sim_buf(&t, t.dev[0], HEDDLE_MEMORY_DEVICE, 64);
  sim_fill(&t, s, a, 64, 1);
  sim_fill(&t, s, a, 64, 2);
  OK(&t, t.p->fence->signal(s, 1, 1, &t.err));
  assert_int_equal(sim_wait(&t, 1, 1), HEDDLE_EDEVICE);
  assert_int_equal(t.faults, 1);
  assert_int_equal(t.fault_cookie, 100);
  heddle_pmemory_desc d = {.struct_size = sizeof d, .bytes = 64, .align = 1};
  heddle_pbuffer *b = NULL;
  heddle_pstream *s2 = NULL;
  FAILS(&t, HEDDLE_EDEVICE, "'fill'", t.p->device->health(t.dev[0], &t.err));
  FAILS(&t, HEDDLE_EDEVICE, "'fill'", t.p->memory->alloc(t.dev[0], &d, &b, &t.err));
  FAILS(&t, HEDDLE_EDEVICE, "'fill'", t.p->stream->create(t.dev[0], 0, 0, &s2, &t.err));
  FAILS(&t, HEDDLE_EDEVICE, "'fill'", t.p->stream->sync(s, SECOND, &t.err));
  FAILS(&t, HEDDLE_EDEVICE, "'fill'", t.p->stream->query(s, &t.err));
  FAILS(&t, HEDDLE_EDEVICE, "'fill'", t.p->copy->fill(s, a, 0, 4, 0, &t.err));
  FAILS(&t, HEDDLE_EDEVICE, "'fill'", t.p->fence->signal(s, 2, 1, &t.err));
  FAILS(&t, HEDDLE_EDEVICE, "'fill'", t.p->device->idle(t.dev[0], SECOND, &t.err));
  OK(&t, t.p->device->health(t.dev[1], &t.err)); /* the others go on */
  sim_sync(&t, other);
  t.p->memory->free(t.dev[0], a);
  t.p->stream->close(s);
  t.p->stream->close(other);
  assert_int_equal(sim_query(&t, t.dev[0], HEDDLE_QUERY_LIVE_OBJECTS), 0);
  t.p->device->close(t.dev[0]);
  heddle_pdevice_options options = {.struct_size = sizeof options};
  OK(&t, t.p->device->open(t.self, 0, &options, &t.dev[0], &t.err)); /* reopening recovers it */
  s = sim_stream(&t, t.dev[0]);
  a = sim_buf(&t, t.dev[0], HEDDLE_MEMORY_DEVICE, 64);
  sim_fill(&t, s, a, 64, 3);
  sim_expect(&t, s, a, 16, 3);
  t.p->memory->free(t.dev[0], a);
  t.p->stream->close(s);
  assert_int_equal(t.faults, 1);
  sim_close(&t);
}

/* A fault ends a hang on another stream of the device. */
static void a_fault_ends_a_hang(void **state) {
  sim_test t;
  (void)state;
  sim_open(&t, 1, "hang", "1", "fail", "fill:2:fault", NULL);
  heddle_pstream *s = sim_stream(&t, t.dev[0]);
  heddle_pbuffer *a = sim_buf(&t, t.dev[0], HEDDLE_MEMORY_DEVICE, 64);
  sim_fill(&t, s, a, 64, 1);
  OK(&t, t.p->fence->signal(s, 1, 1, &t.err));
  FAILS(&t, HEDDLE_ETIMEOUT, "", t.p->stream->sync(s, SECOND / 50, &t.err));
  FAILS(&t, HEDDLE_EDEVICE, "'fill'", t.p->copy->fill(s, a, 0, 64, 2, &t.err));
  assert_int_equal(sim_wait(&t, 1, 1), HEDDLE_EDEVICE);
  t.p->memory->free(t.dev[0], a);
  FAILS(&t, HEDDLE_EDEVICE, "", t.p->device->idle(t.dev[0], 5 * SECOND, &t.err));
  t.p->stream->close(s);
  sim_close(&t);
}

/* ---- capture ---- */

static void a_capture_replays_its_row(void **state) {
  sim_test t;
  (void)state;
  sim_open(&t, 2, "delay_us", "20", NULL);
  const heddle_capture_table *c = t.p->capture;
  heddle_pstream *s = sim_stream(&t, t.dev[0]), *s2 = sim_stream(&t, t.dev[0]), *far = sim_stream(&t, t.dev[1]);
  heddle_pbuffer *in = sim_buf(&t, t.dev[0], HEDDLE_MEMORY_PINNED, 256), *out = sim_buf(&t, t.dev[0], 1, 256);
  heddle_pbuffer *a = sim_buf(&t, t.dev[0], 0, 256), *b = sim_buf(&t, t.dev[0], 0, 1024);
  heddle_pevent *e = sim_event(&t, t.dev[0]);
  heddle_pgraph *g = NULL, *none = NULL;
  uint32_t *pin = (uint32_t *)(void *)sim_map(&t, t.dev[0], in), *pout = (uint32_t *)(void *)sim_map(&t, t.dev[0], out);
  FAILS(&t, HEDDLE_EINVAL, "none was begun", c->end(s, &none, &t.err));
  OK(&t, c->begin(s, &t.err));
  OK(&t, t.p->copy->h2d(s, a, 0, in, 0, 256, &t.err));
  for (uint32_t i = 0; i < 100; i++) sim_fill(&t, s, b, 1024, i);
  OK(&t, t.p->copy->d2d(s, b, 0, a, 0, 128, &t.err));
  OK(&t, t.p->copy->d2h(s, out, 0, b, 0, 256, &t.err));
  FAILS(&t, HEDDLE_EINVAL, "capture", t.p->stream->submit(s, &t.err));
  FAILS(&t, HEDDLE_EINVAL, "capture", t.p->stream->sync(s, SECOND, &t.err));
  FAILS(&t, HEDDLE_EINVAL, "capture", t.p->event->record(e, s, &t.err));
  FAILS(&t, HEDDLE_EINVAL, "capture", t.p->event->wait(s, e, &t.err));
  FAILS(&t, HEDDLE_EINVAL, "capture", t.p->fence->signal(s, 1, 1, &t.err));
  FAILS(&t, HEDDLE_EINVAL, "capture", t.p->fence->wait(s, 1, 1, &t.err));
  FAILS(&t, HEDDLE_EINVAL, "capture", t.p->copy->write(s, a, 0, pin, 4, &t.err));
  FAILS(&t, HEDDLE_EINVAL, "capture", t.p->copy->read(s, pout, a, 0, 4, &t.err));
  FAILS(&t, HEDDLE_EINVAL, "capture", c->begin(s, &t.err));
  OK(&t, c->end(s, &g, &t.err));
  for (int i = 0; i < 64; i++) pin[i] = 1, pout[i] = 0;
  sim_sync(&t, s);
  assert_int_equal(pout[0], 0); /* recording does nothing */
  for (uint32_t round = 1; round < 5; round++) {
    heddle_pstream *on = round % 2 == 0 ? s : s2;
    for (int i = 0; i < 64; i++) pin[i] = round;
    OK(&t, c->replay(g, on, &t.err));
    sim_sync(&t, on);
    assert_int_equal(pout[0], round);
    assert_int_equal(pout[31], round);
    assert_int_equal(pout[32], 99);
  }
  FAILS(&t, HEDDLE_EINVAL, "no capture", c->replay(g, far, &t.err));
  OK(&t, c->begin(far, &t.err)); /* left open: close ends it */
  c->free(g);
  t.p->event->free(e);
  t.p->memory->free(t.dev[0], in);
  t.p->memory->free(t.dev[0], out);
  t.p->memory->free(t.dev[0], a);
  t.p->memory->free(t.dev[0], b);
  t.p->stream->close(s);
  t.p->stream->close(s2);
  t.p->stream->close(far);
  sim_close(&t);
}

/* ---- modules ---- */

static heddle_pargument buffer_at(heddle_pbuffer *b, uint64_t offset) {
  return (heddle_pargument){b, offset, 0};
}

static heddle_pargument inline_bytes(uint64_t bits, uint64_t size) {
  return (heddle_pargument){NULL, bits, size};
}

static void modules_have_kernels(void **state) {
  static const char text[] = "# three\nsum = add_f32\n  twice=scale_f32  # by a factor\n\nmove = copy_u8";
  static const uint32_t grid[3] = {2, 1, 1}, block[3] = {32, 1, 1}, big[3] = {2048, 1, 1};
  sim_test t;
  (void)state;
  sim_open(&t, 1, NULL);
  const heddle_module_table *m = t.p->module;
  heddle_pmodule *mod = NULL, *bad = NULL;
  heddle_pkernel *sum = NULL, *twice = NULL, *move = NULL;
  heddle_pkernel_info info = {.struct_size = sizeof info};
  assert_string_equal(m->formats(t.self, 0), "sim");
  FAILS(&t, HEDDLE_EUNSUPPORTED, "'ptx'", m->load(t.dev[0], "ptx", text, sizeof text - 1, &bad, &t.err));
  FAILS(&t, HEDDLE_ECOMPILE, "line 2", m->load(t.dev[0], "sim", "\nx = sqrt_f32", 13, &bad, &t.err));
  FAILS(&t, HEDDLE_ECOMPILE, "line 1", m->load(t.dev[0], "sim", "= add_f32", 9, &bad, &t.err));
  FAILS(&t, HEDDLE_ECOMPILE, "second", m->load(t.dev[0], "sim", "a=add_f32\na=copy_u8", 19, &bad, &t.err));
  OK(&t, m->load(t.dev[0], "sim", text, sizeof text - 1, &mod, &t.err));
  OK(&t, m->kernel_get(mod, "sum", &sum, &info, &t.err));
  OK(&t, m->kernel_get(mod, "twice", &twice, NULL, &t.err));
  OK(&t, m->kernel_get(mod, "move", &move, NULL, &t.err));
  assert_int_equal(info.max_threads, 1024);
  FAILS(&t, HEDDLE_ENOTFOUND, "'nix'", m->kernel_get(mod, "nix", &sum, NULL, &t.err));

  heddle_pstream *s = sim_stream(&t, t.dev[0]);
  heddle_pbuffer *a = sim_buf(&t, t.dev[0], 0, 1024), *b = sim_buf(&t, t.dev[0], 0, 1024);
  float x[256], got[256], factor = 2;
  uint32_t bits;
  memcpy(&bits, &factor, 4);
  for (int i = 0; i < 256; i++) x[i] = (float)i;
  OK(&t, t.p->copy->write(s, a, 0, x, 1024, &t.err));
  sim_fill(&t, s, b, 1024, 0);
  heddle_pargument scale[] = {buffer_at(a, 0), buffer_at(b, 0), inline_bytes(bits, 4), inline_bytes(256, 4)};
  OK(&t, m->launch(s, twice, grid, block, 0, scale, 4, &t.err)); /* 64 threads, so 64 elements */
  heddle_pargument add[] = {buffer_at(a, 0), buffer_at(b, 0), buffer_at(b, 0), inline_bytes(50, 8)};
  OK(&t, m->launch(s, sum, grid, block, 0, add, 4, &t.err));
  OK(&t, t.p->copy->read(s, got, b, 0, 1024, &t.err));
  for (int i = 0; i < 256; i++) assert_true(got[i] == (i < 50 ? 3.0f * (float)i : i < 64 ? 2.0f * (float)i : 0.0f));
  heddle_pargument copy[] = {buffer_at(a, 4), buffer_at(b, 1001), inline_bytes(20, 4)};
  OK(&t, m->launch(s, move, grid, block, 0, copy, 3, &t.err));
  OK(&t, t.p->copy->read(s, got, b, 1001, 20, &t.err));
  assert_memory_equal(got, x + 1, 20);
  FAILS(&t, HEDDLE_EINVAL, "do not lie in", (copy[2].offset = 24, m->launch(s, move, grid, block, 0, copy, 3, &t.err)));
  FAILS(&t, HEDDLE_EINVAL, "threads", m->launch(s, move, grid, big, 0, copy, 3, &t.err));
  FAILS(&t, HEDDLE_EINVAL, "arguments", m->launch(s, sum, grid, block, 0, add, 3, &t.err));
  FAILS(&t, HEDDLE_EINVAL, "multiple of 4", (add[0].offset = 2, m->launch(s, sum, grid, block, 0, add, 4, &t.err)));
  FAILS(&t, HEDDLE_EINVAL, "must be a buffer", (add[0].size = 4, m->launch(s, sum, grid, block, 0, add, 4, &t.err)));
  m->unload(mod);
  t.p->memory->free(t.dev[0], a);
  t.p->memory->free(t.dev[0], b);
  t.p->stream->close(s);
  sim_close(&t);
}

/* ---- times ---- */

static void clocks_differ_until_calibrated(void **state) {
  sim_test t;
  (void)state;
  sim_open(&t, 2, NULL);
  const heddle_timing_table *c = t.p->timing;
  uint64_t offset[2];
  for (int i = 0; i < 2; i++) {
    uint64_t device, host, before, times[2];
    heddle_pstream *s = sim_stream(&t, t.dev[i]);
    heddle_pbuffer *b = sim_buf(&t, t.dev[i], 0, 1 << 20);
    heddle_ptimer *timer = NULL;
    heddle_pgraph *g = NULL;
    OK(&t, c->create(t.dev[i], 2, &timer, &t.err));
    OK(&t, c->calibrate(t.dev[i], &device, &host, &t.err));
    offset[i] = device - host;
    FAILS(&t, HEDDLE_EBUSY, "slot 0", c->read(timer, 0, 2, times, &t.err));
    FAILS(&t, HEDDLE_EINVAL, "slot 2", c->mark(s, timer, 2, &t.err));
    FAILS(&t, HEDDLE_EINVAL, "timer with 2", c->read(timer, 1, 2, times, &t.err));
    before = fake_now_ns(NULL);
    OK(&t, t.p->capture->begin(s, &t.err)); /* in a capture too */
    OK(&t, c->mark(s, timer, 0, &t.err));
    sim_fill(&t, s, b, 1 << 20, 0);
    OK(&t, c->mark(s, timer, 1, &t.err));
    OK(&t, t.p->capture->end(s, &g, &t.err));
    OK(&t, t.p->capture->replay(g, s, &t.err));
    sim_sync(&t, s);
    OK(&t, c->read(timer, 0, 2, times, &t.err));
    assert_true(times[0] < times[1]);
    assert_true(times[0] - offset[i] >= before && times[1] - offset[i] <= fake_now_ns(NULL));
    t.p->capture->free(g);
    c->free(timer);
    t.p->memory->free(t.dev[i], b);
    t.p->stream->close(s);
  }
  assert_true(offset[0] != offset[1]);
  sim_close(&t);
}

/* ---- external memory ---- */

static void memory_is_shared_by_descriptor(void **state) {
  sim_test t;
  (void)state;
  sim_open(&t, 2, "external", "1", NULL);
  const heddle_external_table *x = t.p->external;
  heddle_pbuffer *a = sim_buf(&t, t.dev[0], 0, 10000), *small = sim_buf(&t, t.dev[0], 0, 64), *b = NULL;
  heddle_pstream *s = sim_stream(&t, t.dev[0]), *s1 = sim_stream(&t, t.dev[1]);
  int64_t fd = -1;
  FAILS(&t, HEDDLE_EUNSUPPORTED, "4096", x->export_memory(t.dev[0], small, HEDDLE_EXTERNAL_OPAQUE_FD, &fd, &t.err));
  FAILS(&t, HEDDLE_EUNSUPPORTED, "kind 2", x->export_memory(t.dev[0], a, HEDDLE_EXTERNAL_DMA_BUF, &fd, &t.err));
  OK(&t, x->export_memory(t.dev[0], a, HEDDLE_EXTERNAL_OPAQUE_FD, &fd, &t.err));
  FAILS(&t, HEDDLE_EINVAL, "from a file", x->import_memory(t.dev[1], 1, fd, 1 << 20, &b, &t.err));
  FAILS(&t, HEDDLE_EINVAL, "handle -1", x->import_memory(t.dev[1], 1, -1, 10000, &b, &t.err));
  int null = open("/dev/null", O_RDWR);
  assert_true(null >= 0);
  FAILS(&t, HEDDLE_EINVAL, "from a file", x->import_memory(t.dev[1], 1, null, 1, &b, &t.err));
  close(null);
  OK(&t, x->import_memory(t.dev[1], HEDDLE_EXTERNAL_OPAQUE_FD, fd, 10000, &b, &t.err));
  sim_fill(&t, s, a, 10000, 0x77);
  sim_sync(&t, s);
  t.p->memory->free(t.dev[0], small);
  sim_expect(&t, s1, b, 2500, 0x77);
  t.p->memory->free(t.dev[1], b);
  assert_int_equal(fcntl((int)fd, F_GETFD), -1); /* taken over, and closed */
  t.p->memory->free(t.dev[0], a);
  t.p->stream->close(s);
  t.p->stream->close(s1);
  sim_close(&t);

  sim_open(&t, 1, NULL);
  a = sim_buf(&t, t.dev[0], 0, 10000);
  FAILS(&t, HEDDLE_EUNSUPPORTED, "external", x->export_memory(t.dev[0], a, HEDDLE_EXTERNAL_OPAQUE_FD, &fd, &t.err));
  t.p->memory->free(t.dev[0], a);
  sim_close(&t);
}

/* ---- leaving ---- */

static atomic_int gate; /* 1: closed, 2: a thread waits at it, 0: open */

static heddle_status query_at_the_gate(void *ctx, heddle_pfence fence, uint64_t value) {
  (void)ctx, (void)fence, (void)value;
  int closed = 1;
  atomic_compare_exchange_strong(&gate, &closed, 2);
  while (atomic_load(&gate) != 0) nanosleep(&(struct timespec){0, 1000000}, NULL);
  return HEDDLE_EBUSY;
}

/* A command that really runs on while its device is closed: close gives up on it, and takes nothing from under it. */
static void close_leaves_a_stuck_thread_behind(void **state) {
  static sim_test t; /* outlives the thread */
  (void)state;
  sim_open(&t, 1, NULL);
  t.fake.table.fence_query = query_at_the_gate;
  atomic_store(&gate, 1);
  heddle_pstream *s = sim_stream(&t, t.dev[0]);
  heddle_pbuffer *b = sim_buf(&t, t.dev[0], 0, 4096);
  OK(&t, t.p->fence->wait(s, 1, 1, &t.err));
  sim_fill(&t, s, b, 4096, 1);
  OK(&t, t.p->fence->signal(s, 2, 1, &t.err));
  while (atomic_load(&gate) != 2) nanosleep(&(struct timespec){0, 1000000}, NULL);
  FAILS(&t, HEDDLE_ETIMEOUT, "", t.p->device->idle(t.dev[0], 1000, &t.err));
  t.p->memory->free(t.dev[0], b);
  t.p->stream->close(s);
  uint64_t start = fake_now_ns(NULL);
  t.p->device->close(t.dev[0]);
  assert_true(fake_now_ns(NULL) - start < 3 * SECOND);
  t.p->close_instance(t.self);
  assert_true(atomic_load(&t.fake.live) > 0);
  atomic_store(&gate, 0);
  nanosleep(&(struct timespec){0, 100000000}, NULL);
  assert_int_equal(t.fences[2].failed, HEDDLE_OK); /* it made no more calls */
  assert_int_equal(t.fences[2].value, 0);
}

/* Threads of sim sleep, work and hang while the process ends: nothing may crash or wait for them. */
static void a_process_may_end_without_closing(void **state) {
  static sim_test t;
  (void)state;
  sim_open(&t, 0, "delay_us", "50", NULL);
  sim_open_with(&t, 0, "hang", "0");
  sim_open_with(&t, 1, "hang", "1");
  for (int i = 0; i < 2; i++) {
    heddle_pstream *s = sim_stream(&t, t.dev[i]);
    heddle_pbuffer *b = sim_buf(&t, t.dev[i], 0, 1 << 20);
    for (uint32_t k = 0; k < 200; k++) sim_fill(&t, s, b, 1 << 20, k);
    OK(&t, t.p->stream->submit(s, &t.err));
  }
}

CASES(CASE(the_nth_call_fails), CASE(a_fault_is_sticky), CASE(a_fault_ends_a_hang), CASE(a_capture_replays_its_row),
      CASE(modules_have_kernels), CASE(clocks_differ_until_calibrated), CASE(memory_is_shared_by_descriptor),
      CASE(close_leaves_a_stuck_thread_behind), CASE(a_process_may_end_without_closing))
