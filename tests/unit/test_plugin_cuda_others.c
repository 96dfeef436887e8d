/* timeout: 60
 * What the plugin cuda owes to others, on the double of its driver: a program's own captures and memory in the same process,
 * and the devices that are not lost. */
#include "cuda_host.h"

#include "gpu_double.h"
#include "plugins/common/gpu/gpu.h"

enum { BYTES = 4096, WORDS = BYTES / 4, GLOBAL_MODE = 0 };

/* A program's context of the device, which goes on when the plugin has let go of its own. */
static void retain(heddle_pdevice *dev, bool on) {
  int (*get)(void **, int) = (int (*)(void **, int))(uintptr_t)double_symbol("cuDevicePrimaryCtxRetain");
  int (*put)(int) = (int (*)(int))(uintptr_t)double_symbol("cuDevicePrimaryCtxRelease_v2");
  void *context = NULL;
  assert_int_equal(on ? get(&context, dev->info->device) : put(0), 0);
}

/* Everything that asks, allocates or waits, while the program captures so that no thread may. */
static void use_all(sim_test *t, heddle_pdevice *dev) {
  static _Alignas(4096) uint32_t own[WORDS];
  uint64_t free_bytes = 0, all = 0;
  heddle_pbuffer *imported = NULL;
  heddle_pbuffer *a = sim_buf(t, dev, HEDDLE_MEMORY_DEVICE, BYTES), *b = sim_buf(t, dev, HEDDLE_MEMORY_PINNED, BYTES);
  heddle_pstream *s = sim_stream(t, dev), *other = sim_stream(t, dev);
  heddle_pevent *e = sim_event(t, dev);
  OK(t, t->p->memory->import_host(dev, own, BYTES, &imported, &t->err));
  OK(t, t->p->copy->write(s, a, 0, own, BYTES, &t->err));
  sim_fill(t, s, a, BYTES, 5);
  OK(t, t->p->event->record(e, s, &t->err));
  OK(t, t->p->event->wait(other, e, &t->err));
  sim_expect(t, other, a, WORDS, 5);
  OK(t, t->p->fence->signal(s, 1, 1, &t->err));
  assert_int_equal(sim_wait(t, 1, 1), HEDDLE_OK);
  sim_sync(t, s);
  OK(t, t->p->device->memory_now(dev, &free_bytes, &all, &t->err));
  OK(t, t->p->device->idle(dev, 20 * SECOND, &t->err));
  t->p->event->free(e);
  t->p->memory->free(dev, imported);
  t->p->memory->free(dev, a);
  t->p->memory->free(dev, b);
  t->p->stream->close(s);
  t->p->stream->close(other);
}

static void beside_a_capture(const char *pools) {
  sim_test t;
  gpu_scope scope;
  void *stream = NULL, *graph = NULL;
  cuda_open(&t, 1, "pools", pools, NULL);
  heddle_pdevice *dev = t.dev[0];
  const gpu_driver *d = dev->driver;
  assert_int_equal(dev->vendor->enter(dev, &scope), 0);
  assert_int_equal(d->stream_create(&stream, GPU_STREAM_NON_BLOCKING, 0), 0);
  assert_int_equal(d->capture_begin(stream, GLOBAL_MODE), 0);
  gpu_leave(dev, &scope);
  use_all(&t, dev);
  assert_int_equal(dev->vendor->enter(dev, &scope), 0);
  assert_int_equal(d->capture_end(stream, &graph), 0);
  gpu_leave(dev, &scope);
  int mode = GPU_CAPTURE_RELAXED; /* the thread's manners are what they were */
  assert_int_equal(d->thread_capture_mode(&mode), 0);
  assert_int_equal(mode, GLOBAL_MODE);
  assert_int_equal(d->graph_destroy(graph), 0);
  assert_int_equal(dev->vendor->enter(dev, &scope), 0);
  assert_int_equal(d->stream_destroy(stream), 0);
  gpu_leave(dev, &scope);
  sim_close(&t);
  double_is_clean();
}

static void captures_of_the_program_go_on(void **state) {
  (void)state;
  beside_a_capture("1");
}

static void captures_of_the_program_go_on_beside_blocks(void **state) {
  (void)state;
  beside_a_capture("0");
}

/* What was freed is the system's again when the device is closed, though other code holds its context. */
static void a_closed_device_keeps_no_memory(void **state) {
  sim_test t;
  gpu_scope scope;
  uint64_t kept = 0;
  (void)state;
  cuda_open(&t, 1, NULL);
  heddle_pdevice *dev = t.dev[0];
  const gpu_driver driver = *dev->driver;
  void *pool = dev->pool;
  assert_non_null(pool);
  retain(dev, true);
  t.p->memory->free(dev, sim_buf(&t, dev, HEDDLE_MEMORY_DEVICE, 1 << 20));
  assert_int_equal(dev->vendor->enter(dev, &scope), 0);
  assert_int_equal(driver.stream_sync(dev->service), 0);
  gpu_leave(dev, &scope);
  assert_int_equal(driver.pool_get(pool, GPU_POOL_RESERVED, &kept), 0);
  assert_true(kept >= 1 << 20);
  assert_int_equal(double_live("pools"), 1);
  sim_close(&t);
  assert_int_equal(double_live("pools"), 0); /* and what it kept with it */
  retain(dev, false);
  double_is_clean();
}

/* A call on two devices may answer with the fault of either: only that one is lost. */
static void a_lost_device_is_not_the_other(void **state) {
  sim_test t;
  gpu_scope scope;
  (void)state;
  setenv("FAKE_GPU_FAULT", "fill:1:719", 1);
  setenv("FAKE_GPU_FAIL", "cuMemcpyPeerAsync:1:719,cuStreamWaitEvent:1:700", 1);
  setenv("FAKE_GPU_STRICT", "0", 1); /* memory cannot be freed on a lost device */
  cuda_open(&t, 3, "devices", "0,1,0", NULL);
  heddle_pdevice *dev = t.dev[1];
  heddle_pbuffer *x = sim_buf(&t, t.dev[0], HEDDLE_MEMORY_DEVICE, BYTES),
                 *y = sim_buf(&t, dev, HEDDLE_MEMORY_DEVICE, BYTES);
  heddle_pbuffer *z = sim_buf(&t, t.dev[2], HEDDLE_MEMORY_DEVICE, BYTES);
  heddle_pstream *bad = sim_stream(&t, t.dev[0]), *s = sim_stream(&t, t.dev[0]), *far = sim_stream(&t, dev);
  heddle_pstream *same = sim_stream(&t, t.dev[2]);
  heddle_pevent *e = sim_event(&t, t.dev[0]);
  OK(&t, t.p->event->record(e, s, &t.err));
  sim_fill(&t, bad, x, BYTES, 1);
  assert_int_equal(t.dev[0]->vendor->enter(t.dev[0], &scope), 0); /* the plugin has not noticed yet */
  while (t.dev[0]->driver->stream_query(bad->handle) == 600) continue;
  gpu_leave(t.dev[0], &scope);

  FAILS(&t, HEDDLE_EFAILED, "cuda:1: wait for an event: cuda:0: ", t.p->event->wait(far, e, &t.err));
  OK(&t, t.p->device->health(dev, &t.err));
  FAILS(&t, HEDDLE_EDEVICE, "(719)", t.p->device->health(t.dev[0], &t.err));
  FAILS(&t, HEDDLE_EFAILED, "(719)", t.p->stream->sync(far, 20 * SECOND, &t.err));
  FAILS(&t, HEDDLE_EFAILED, "cuda:0: ", t.p->copy->peer(far, dev, y, 0, t.dev[0], x, 0, BYTES, &t.err));
  FAILS(&t, HEDDLE_EFAILED, "(719)", t.p->stream->sync(far, 20 * SECOND, &t.err));
  FAILS(&t, HEDDLE_EDEVICE, "(7", t.p->copy->peer(same, t.dev[2], z, 0, t.dev[0], x, 0, BYTES, &t.err));
  FAILS(&t, HEDDLE_EDEVICE, "(7", t.p->device->health(t.dev[2], &t.err)); /* the same context */
  sim_fill(&t, far, y, BYTES, 3);
  sim_expect(&t, far, y, WORDS, 3);
  assert_int_equal(t.faults, 2);
  t.p->event->free(e);
  t.p->memory->free(t.dev[0], x);
  t.p->memory->free(dev, y);
  t.p->memory->free(t.dev[2], z);
  t.p->stream->close(bad);
  t.p->stream->close(s);
  t.p->stream->close(far);
  t.p->stream->close(same);
  sim_close(&t);
}

CASES(CASE(captures_of_the_program_go_on), CASE(captures_of_the_program_go_on_beside_blocks),
      CASE(a_closed_device_keeps_no_memory), CASE(a_lost_device_is_not_the_other))
