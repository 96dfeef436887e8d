/* labels: serial
 * timeout: 60
 * Times of the GPU plugins on the double of a driver: marks in order on one clock for all streams of a device, which
 * keeps pace with the host's, also after longer than a float of milliseconds is exact. */
#include "cuda_gate.h"

enum { BYTES = 1 << 16 };

static void marks_are_on_one_clock(void **state) {
  sim_test t;
  heddle_ptimer *timer = NULL, *other = NULL;
  uint64_t device[2], host[2], ns[8], second[2];
  (void)state;
  setenv("FAKE_GPU_DELAY", "500", 0);
  cuda_open(&t, 2, NULL);
  gate_watch(&t);
  heddle_pdevice *dev = t.dev[0];
  heddle_pbuffer *b = sim_buf(&t, dev, HEDDLE_MEMORY_DEVICE, BYTES);
  heddle_pstream *s = sim_stream(&t, dev), *s2 = sim_stream(&t, dev), *far = sim_stream(&t, t.dev[1]);
  heddle_pevent *e = sim_event(&t, dev);
  OK(&t, t.p->timing->create(dev, 8, &timer, &t.err));
  OK(&t, t.p->timing->create(dev, 2, &other, &t.err));
  FAILS(&t, HEDDLE_EBUSY, "slot 0 was never marked", t.p->timing->read(timer, 0, 1, ns, &t.err));
  FAILS(&t, HEDDLE_EINVAL, "slot 8", t.p->timing->mark(s, timer, 8, &t.err));
  FAILS(&t, HEDDLE_EINVAL, "no timer of this device", t.p->timing->mark(far, timer, 0, &t.err));
  FAILS(&t, HEDDLE_EINVAL, "a timer with 8", t.p->timing->read(timer, 7, 2, ns, &t.err));
  OK(&t, t.p->timing->calibrate(dev, &device[0], &host[0], &t.err));
  for (uint32_t i = 0; i < 8; i++) { /* in turns on two streams */
    heddle_pstream *on = i % 2 == 0 ? s : s2;
    OK(&t, t.p->event->wait(on, e, &t.err));
    OK(&t, t.p->timing->mark(on, timer, i, &t.err));
    sim_fill(&t, on, b, BYTES, 2 + i);
    OK(&t, t.p->event->record(e, on, &t.err));
  }
  gate_shut(&t, s2);
  OK(&t, t.p->timing->mark(s2, other, 0, &t.err));
  FAILS(&t, HEDDLE_EBUSY, "reached slot 0", t.p->timing->read(other, 0, 1, second, &t.err));
  gate_open(&t);
  sim_expect(&t, s2, b, BYTES / 4, 9);
  OK(&t, t.p->timing->calibrate(dev, &device[1], &host[1], &t.err));
  OK(&t, t.p->timing->read(timer, 0, 8, ns, &t.err));
  OK(&t, t.p->timing->read(other, 0, 1, second, &t.err));
  for (int i = 1; i < 8; i++) assert_true(ns[i] > ns[i - 1]);
  assert_true(ns[0] >= device[0] && ns[7] <= second[0] && second[0] <= device[1]);
  const double rate = (double)(device[1] - device[0]) / (double)(host[1] - host[0]);
  if (!(rate > 0.5 && rate < 2)) fail_msg("the device's clock runs %g times as fast as the host's", rate);
  OK(&t, t.p->timing->mark(s, timer, 0, &t.err)); /* a slot can be used again */
  sim_sync(&t, s);
  OK(&t, t.p->timing->read(timer, 0, 1, second, &t.err));
  assert_true(second[0] > ns[7]);
  t.p->timing->free(timer);
  t.p->timing->free(other);
  t.p->event->free(e);
  t.p->memory->free(dev, b);
  t.p->stream->close(s);
  t.p->stream->close(s2);
  t.p->stream->close(far);
  sim_close(&t);
}

/* Over more than a second the clock takes a nearer event to count from, and this cannot be seen. */
static void the_clock_keeps_pace(void **state) {
  enum { ROUNDS = 5 };
  sim_test t;
  heddle_ptimer *timer = NULL;
  uint64_t ns[ROUNDS], again[ROUNDS], device[ROUNDS + 1], host[ROUNDS + 1];
  (void)state;
  cuda_open(&t, 1, NULL);
  heddle_pdevice *dev = t.dev[0];
  heddle_pstream *s = sim_stream(&t, dev);
  OK(&t, t.p->timing->create(dev, ROUNDS, &timer, &t.err));
  for (uint32_t i = 0; i < ROUNDS; i++) {
    OK(&t, t.p->timing->calibrate(dev, &device[i], &host[i], &t.err));
    OK(&t, t.p->timing->mark(s, timer, i, &t.err));
    sim_sync(&t, s);
    nanosleep(&(struct timespec){0, 400000000}, NULL);
    OK(&t, t.p->timing->read(timer, i, 1, &ns[i], &t.err)); /* before the clock moved on */
  }
  OK(&t, t.p->timing->calibrate(dev, &device[ROUNDS], &host[ROUNDS], &t.err));
  OK(&t, t.p->timing->read(timer, 0, ROUNDS, again, &t.err)); /* and after */
  for (int i = 0; i < ROUNDS; i++) {
    assert_true(ns[i] > device[i] && ns[i] < device[i + 1]);
    const int64_t moved = (int64_t)(again[i] - ns[i]);
    if (moved < -2000 || moved > 2000) fail_msg("mark %d moved by %lld ns", i, (long long)moved);
    const int64_t off = (int64_t)((device[i + 1] - device[i]) - (host[i + 1] - host[i]));
    if (off < -100000000 || off > 100000000) fail_msg("in round %d the clocks part by %lld ns", i, (long long)off);
  }
  t.p->timing->free(timer);
  t.p->stream->close(s);
  sim_close(&t);
}

/* A mark in a capture gives the time of each replay, where the driver has such marks; else a message reports it. */
static void marks_in_a_capture(void **state) {
  sim_test t;
  heddle_ptimer *timer = NULL;
  heddle_pgraph *g = NULL;
  uint64_t ns[2], last = 0;
  (void)state;
  setenv("FAKE_GPU_STRICT", "0", 1); /* a time is asked for before the first replay */
  cuda_open(&t, 1, NULL);
  heddle_pstream *s = sim_stream(&t, t.dev[0]);
  heddle_pbuffer *b = sim_buf(&t, t.dev[0], HEDDLE_MEMORY_DEVICE, BYTES);
  OK(&t, t.p->timing->create(t.dev[0], 2, &timer, &t.err));
  OK(&t, t.p->capture->begin(s, &t.err));
  heddle_status marked = t.p->timing->mark(s, timer, 0, &t.err);
  if (marked != HEDDLE_OK) FAILS(&t, HEDDLE_EUNSUPPORTED, "inside a capture", t.p->timing->mark(s, timer, 0, &t.err));
  for (uint32_t i = 0; i < 8; i++) sim_fill(&t, s, b, BYTES, i);
  if (marked == HEDDLE_OK) OK(&t, t.p->timing->mark(s, timer, 1, &t.err));
  OK(&t, t.p->capture->end(s, &g, &t.err)); /* the capture is whole either way */
  if (marked == HEDDLE_OK) FAILS(&t, HEDDLE_EBUSY, "no replay", t.p->timing->read(timer, 1, 1, ns, &t.err));
  for (int round = 0; round < 3; round++) {
    OK(&t, t.p->capture->replay(g, s, &t.err));
    sim_expect(&t, s, b, BYTES / 4, 7);
    if (marked != HEDDLE_OK) continue;
    OK(&t, t.p->timing->read(timer, 0, 2, ns, &t.err));
    assert_true(ns[0] > last && ns[1] > ns[0]);
    last = ns[1];
  }
  t.p->capture->free(g);
  t.p->timing->free(timer);
  t.p->memory->free(t.dev[0], b);
  t.p->stream->close(s);
  sim_close(&t);
}

/* The n-th allocation or call fails: no timer, and the next is made as ever. */
static void a_timer_that_cannot_be_made(void **state) {
  sim_test t;
  int done = 0;
  (void)state;
  setenv("FAKE_GPU_FAIL", "cuEventCreate:4:2", 1);
  cuda_open(&t, 1, NULL);
  uint64_t device = 0, host = 0;
  for (long n = 1; n < 6 && !done; n++) {
    heddle_ptimer *timer = NULL;
    t.fake.fail_at = atomic_load(&t.fake.calls) + n;
    heddle_status s = t.p->timing->create(t.dev[0], 4, &timer, &t.err);
    done = t.fake.fail_at > atomic_load(&t.fake.calls) && s == HEDDLE_OK;
    t.fake.fail_at = 0;
    if (s != HEDDLE_OK) assert_int_equal(s, HEDDLE_ENOMEM);
    t.p->timing->free(timer);
  }
  assert_true(done);
  assert_int_equal(sim_query(&t, t.dev[0], HEDDLE_QUERY_LIVE_OBJECTS), 0);
  OK(&t, t.p->timing->calibrate(t.dev[0], &device, &host, &t.err));
  sim_close(&t);
}

CASES(CASE_LABELS(marks_are_on_one_clock, "threads"), CASE_LABELS(the_clock_keeps_pace, "slow"),
      CASE(marks_in_a_capture), CASE(a_timer_that_cannot_be_made))
