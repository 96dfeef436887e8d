/* timeout: 60
 * Completions of the plugin cuda by the numbers that its streams write, on the double of CUDA's driver: seen before the
 * driver's call, signalled once, done without where the driver does not write them. */
#include "cuda_host.h"

#include "gpu_double.h"
#include "plugins/common/gpu/gpu.h"

enum { BYTES = 4096 };

static atomic_int signalled;

static void count_signals(void *ctx, heddle_pfence fence, uint64_t value) {
  atomic_fetch_add(&signalled, 1);
  sim_test_signal(ctx, fence, value);
}

static uint64_t now_ms(const sim_test *t) {
  return t->fake.table.now_ns(t->fake.table.ctx) / 1000000;
}

/* Host functions begin late: who asks the stream learns of a completion by the number that the stream wrote. */
static void completions_are_seen_before_the_drivers_call(void **state) {
  sim_test t;
  heddle_pdevice_desc desc = {.struct_size = sizeof desc};
  (void)state;
  setenv("FAKE_GPU_HOST_DELAY", "1500000", 1);
  cuda_open(&t, 1, NULL);
  OK(&t, t.p->device_describe(t.self, 0, &desc, &t.err));
  assert_true((desc.caps & HEDDLE_CAP_POLLED) != 0);
  heddle_pbuffer *b = sim_buf(&t, t.dev[0], HEDDLE_MEMORY_DEVICE, BYTES);
  heddle_pstream *s = sim_stream(&t, t.dev[0]);
  const uint64_t begin = now_ms(&t);
  sim_fill(&t, s, b, BYTES, 3);
  OK(&t, t.p->fence->signal(s, 1, 5, &t.err));
  while (sim_test_fence(&t, 1, 5) != HEDDLE_OK && now_ms(&t) < begin + 5000) (void)t.p->stream->query(s, NULL);
  assert_int_equal(sim_test_fence(&t, 1, 5), HEDDLE_OK);
  assert_true(now_ms(&t) < begin + 1400);
  sim_sync(&t, s); /* behind the driver's call */
  assert_true(now_ms(&t) >= begin + 1490);
  OK(&t, t.p->stream->query(s, &t.err));
  t.p->memory->free(t.dev[0], b);
  t.p->stream->close(s);
  sim_close(&t);
  double_is_clean();
}

static void without_counters_the_drivers_call_signals(void **state) {
  sim_test t;
  heddle_pdevice_desc desc = {.struct_size = sizeof desc};
  (void)state;
  setenv("FAKE_GPU_HOST_DELAY", "200000", 1);
  cuda_open(&t, 1, "counters", "0", NULL);
  OK(&t, t.p->device_describe(t.self, 0, &desc, &t.err));
  assert_true((desc.caps & HEDDLE_CAP_POLLED) == 0);
  heddle_pstream *s = sim_stream(&t, t.dev[0]);
  const uint64_t begin = now_ms(&t);
  OK(&t, t.p->fence->signal(s, 1, 5, &t.err));
  while (sim_test_fence(&t, 1, 5) != HEDDLE_OK && now_ms(&t) < begin + 5000) (void)t.p->stream->query(s, NULL);
  assert_true(now_ms(&t) >= begin + 190);
  assert_int_equal(double_calls("cuStreamWriteValue64_v2"), 0);
  t.p->stream->close(s);
  sim_close(&t);
  double_is_clean();
}

/* A driver that refuses to write numbers is done without. */
static void a_counter_that_is_refused_is_done_without(void **state) {
  sim_test t;
  (void)state;
  setenv("FAKE_GPU_FAIL", "cuStreamWriteValue64_v2:2+:801", 1);
  cuda_open(&t, 1, NULL);
  heddle_pstream *s = sim_stream(&t, t.dev[0]);
  for (uint64_t i = 1; i <= 40; i++) {
    OK(&t, t.p->fence->signal(s, 1, i, &t.err));
    assert_int_equal(sim_wait(&t, 1, i), HEDDLE_OK);
  }
  assert_int_equal(double_calls("cuStreamWriteValue64_v2"), 2);
  t.p->stream->close(s);
  sim_close(&t);
  double_is_clean();
}

typedef struct asker {
  sim_test *t;
  heddle_pstream *s;
  atomic_bool stop;
} asker;

static void *ask_on(void *arg) {
  asker *a = arg;
  while (!atomic_load(&a->stop)) (void)a->t->p->stream->query(a->s, NULL);
  return NULL;
}

/* Two threads that ask, and the driver's calls: each fence is signalled once. */
static void completions_are_signalled_once(void **state) {
  enum { SIGNALS = 3000 };
  sim_test t;
  pthread_t threads[2];
  (void)state;
  cuda_environment();
  sim_enter(&t, NULL);
  t.fake.table.fence_signal = count_signals;
  cuda_open_devices(&t, 1);
  heddle_pbuffer *b = sim_buf(&t, t.dev[0], HEDDLE_MEMORY_DEVICE, BYTES);
  asker a = {.t = &t, .s = sim_stream(&t, t.dev[0])};
  for (int i = 0; i < 2; i++) assert_int_equal(pthread_create(&threads[i], NULL, ask_on, &a), 0);
  for (uint64_t i = 1; i <= SIGNALS; i++) {
    if (i % 7 == 0) sim_fill(&t, a.s, b, BYTES, (uint32_t)i);
    OK(&t, t.p->fence->signal(a.s, 1, i, &t.err));
    if (i % 40 == 0) assert_int_equal(sim_wait(&t, 1, i), HEDDLE_OK);
  }
  assert_int_equal(sim_wait(&t, 1, SIGNALS), HEDDLE_OK);
  sim_sync(&t, a.s);
  atomic_store(&a.stop, true);
  for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
  assert_int_equal(atomic_load(&signalled), SIGNALS);
  t.p->memory->free(t.dev[0], b);
  t.p->stream->close(a.s);
  sim_close(&t);
  double_is_clean();
}

CASES(CASE(completions_are_seen_before_the_drivers_call), CASE(without_counters_the_drivers_call_signals),
      CASE(a_counter_that_is_refused_is_done_without), CASE(completions_are_signalled_once))
