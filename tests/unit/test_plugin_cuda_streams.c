/* labels: serial
 * timeout: 60
 * Streams, events and fences of the GPU plugins on the double of a driver: order, also across devices; what a fault, a
 * hang and a call that the driver refuses do to those who wait; streams that are closed with work in them. */
#include "cuda_gate.h"

#include <time.h>

enum { WORDS = 4096, BYTES = 4 * WORDS };

/* ---------------------------------------------------------------- order */

static void work_of_two_streams_is_ordered_by_events(void **state) {
  sim_test t;
  (void)state;
  setenv("FAKE_GPU_DELAY", "300", 0); /* each piece of work is held up by as many microseconds at most */
  cuda_open(&t, 1, NULL);
  gate_watch(&t);
  heddle_pdevice *dev = t.dev[0];
  heddle_pstream *a = sim_stream(&t, dev), *b = sim_stream(&t, dev);
  heddle_pbuffer *x = sim_buf(&t, dev, HEDDLE_MEMORY_DEVICE, BYTES), *y = sim_buf(&t, dev, HEDDLE_MEMORY_DEVICE, BYTES);
  heddle_pevent *there = sim_event(&t, dev), *back = sim_event(&t, dev);
  OK(&t, t.p->event->wait(b, there, &t.err)); /* never recorded: already reached */
  sim_sync(&t, b);
  for (uint32_t round = 1; round < 40; round++) {
    OK(&t, t.p->event->wait(a, back, &t.err));
    sim_fill(&t, a, x, BYTES, round);
    OK(&t, t.p->event->record(there, a, &t.err));
    OK(&t, t.p->event->wait(b, there, &t.err));
    OK(&t, t.p->copy->d2d(b, y, 0, x, 0, BYTES, &t.err));
    OK(&t, t.p->event->record(back, b, &t.err));
    if (round % 8 == 0) sim_expect(&t, b, y, WORDS, round);
  }
  sim_expect(&t, b, y, WORDS, 39);
  t.p->event->free(there);
  t.p->event->free(back);
  t.p->memory->free(dev, x);
  t.p->memory->free(dev, y);
  t.p->stream->close(a);
  t.p->stream->close(b);
  sim_close(&t);
}

/* A wait means the record before it, not one that comes later. */
static void a_wait_keeps_its_record(void **state) {
  sim_test t;
  (void)state;
  cuda_open(&t, 1, NULL);
  gate_watch(&t);
  heddle_pdevice *dev = t.dev[0];
  heddle_pstream *a = sim_stream(&t, dev), *b = sim_stream(&t, dev);
  heddle_pbuffer *x = sim_buf(&t, dev, HEDDLE_MEMORY_DEVICE, BYTES);
  heddle_pevent *e = sim_event(&t, dev);
  sim_fill(&t, a, x, BYTES, 1);
  OK(&t, t.p->event->record(e, a, &t.err));
  OK(&t, t.p->event->wait(b, e, &t.err));
  gate_shut(&t, a);
  OK(&t, t.p->event->record(e, a, &t.err)); /* behind the gate */
  sim_expect(&t, b, x, WORDS, 1);           /* and b does not wait for it */
  OK(&t, t.p->event->wait(b, e, &t.err));
  FAILS(&t, HEDDLE_ETIMEOUT, "did not finish", t.p->stream->sync(b, SECOND / 50, &t.err));
  FAILS(&t, HEDDLE_EBUSY, "work left", t.p->stream->query(b, &t.err));
  t.p->event->free(e); /* with a wait for it under way */
  gate_open(&t);
  sim_sync(&t, b);
  OK(&t, t.p->stream->query(b, &t.err));
  sim_sync(&t, a);
  t.p->memory->free(dev, x);
  t.p->stream->close(a);
  t.p->stream->close(b);
  sim_close(&t);
}

static void events_reach_other_devices(void **state) {
  sim_test t, other;
  (void)state;
  setenv("FAKE_GPU_DELAY", "300", 0);
  cuda_open(&t, 2, NULL);
  gate_watch(&t);
  cuda_open(&other, 1, NULL);
  heddle_pstream *a = sim_stream(&t, t.dev[0]), *b = sim_stream(&t, t.dev[1]), *c = sim_stream(&other, other.dev[0]);
  heddle_pbuffer *x = sim_buf(&t, t.dev[0], HEDDLE_MEMORY_DEVICE, BYTES);
  heddle_pbuffer *y = sim_buf(&t, t.dev[1], HEDDLE_MEMORY_DEVICE, BYTES);
  heddle_pevent *e = sim_event(&t, t.dev[0]);
  for (uint32_t round = 1; round < 30; round++) { /* the same event on both devices in turn */
    sim_fill(&t, a, x, BYTES, round);
    OK(&t, t.p->event->record(e, a, &t.err));
    OK(&t, t.p->event->wait(b, e, &t.err));
    OK(&t, t.p->copy->peer(b, t.dev[1], y, 0, t.dev[0], x, 0, BYTES, &t.err));
    OK(&t, t.p->event->record(e, b, &t.err));
    OK(&t, t.p->event->wait(a, e, &t.err));
    if (round % 7 == 0) sim_expect(&t, b, y, WORDS, round);
  }
  sim_expect(&t, b, y, WORDS, 29);
  FAILS(&t, HEDDLE_EINVAL, "another instance", t.p->event->record(e, c, &t.err));
  FAILS(&t, HEDDLE_EINVAL, "another instance", t.p->event->wait(c, e, &t.err));
  t.p->event->free(e);
  t.p->memory->free(t.dev[0], x);
  t.p->memory->free(t.dev[1], y);
  t.p->stream->close(a);
  t.p->stream->close(b);
  t.p->stream->close(c);
  sim_close(&other);
  sim_close(&t);
}

/* ---------------------------------------------------------------- streams */

static void a_closed_stream_goes_on(void **state) {
  sim_test t;
  (void)state;
  cuda_open(&t, 1, NULL);
  gate_watch(&t);
  heddle_pdevice *dev = t.dev[0];
  heddle_pbuffer *x = sim_buf(&t, dev, HEDDLE_MEMORY_DEVICE, BYTES);
  heddle_pstream *idle = sim_stream(&t, dev), *a = sim_stream(&t, dev);
  t.p->stream->close(idle);
  gate_shut(&t, a);
  sim_fill(&t, a, x, BYTES, 5);
  t.p->stream->close(a);
  assert_int_equal(sim_query(&t, dev, HEDDLE_QUERY_LIVE_OBJECTS), 0);
  const int made = gate_calls("cuStreamCreateWithPriority");
  heddle_pstream *b = sim_stream(&t, dev); /* not the one that is still at work */
  sim_fill(&t, b, x, BYTES, 4);
  sim_sync(&t, b);
  FAILS(&t, HEDDLE_ETIMEOUT, "", t.p->device->idle(dev, SECOND / 50, &t.err));
  gate_open(&t);
  OK(&t, t.p->device->idle(dev, 20 * SECOND, &t.err));
  sim_expect(&t, b, x, WORDS, 5);
  t.p->stream->close(b);
  for (int i = 0; i < 50; i++) { /* closed ones are used again */
    heddle_pstream *s = sim_stream(&t, dev);
    sim_fill(&t, s, x, BYTES, (uint32_t)i);
    sim_expect(&t, s, x, WORDS, (uint32_t)i);
    t.p->stream->close(s);
  }
  assert_int_equal(gate_calls("cuStreamCreateWithPriority"), made);
  t.p->memory->free(dev, x);
  sim_close(&t);
}

static void streams_have_priorities(void **state) {
  static const int32_t wanted[] = {0, 1, -1, 100, -100, INT32_MAX, INT32_MIN};
  sim_test t;
  heddle_pstream *s = NULL;
  (void)state;
  cuda_open(&t, 1, NULL);
  gate_watch(&t);
  for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++) {
    OK(&t,
       t.p->stream->create(t.dev[0], i % 2 == 0 ? HEDDLE_STREAM_COMPUTE : HEDDLE_STREAM_COPY, wanted[i], &s, &t.err));
    OK(&t, t.p->stream->submit(s, &t.err));
    sim_sync(&t, s);
    t.p->stream->close(s);
  }
  FAILS(&t, HEDDLE_EINVAL, "kind 7", t.p->stream->create(t.dev[0], 7, 0, &s, &t.err));
  sim_close(&t);
}

static void memory_runs_out(void **state) {
  sim_test t;
  int done = 0;
  (void)state;
  cuda_open(&t, 2, NULL);
  gate_watch(&t);
  for (long n = 1; n < 40 && !done; n++) {
    heddle_pstream *s = NULL;
    heddle_pevent *e = NULL;
    t.fake.fail_at = atomic_load(&t.fake.calls) + n;
    heddle_status status = t.p->stream->create(t.dev[0], 0, 0, &s, &t.err);
    if (status == HEDDLE_OK) gate_shut(&t, s); /* a fence: the watch's thread starts */
    if (status == HEDDLE_OK) status = t.p->event->create(t.dev[1], &e, &t.err);
    for (uint32_t i = 0; i < 20 && status == HEDDLE_OK; i++) status = t.p->fence->signal(s, 1 + i, 7, &t.err);
    done = t.fake.fail_at > atomic_load(&t.fake.calls);
    t.fake.fail_at = 0;
    gate_open(&t);
    if (!done) assert_int_equal(status, HEDDLE_ENOMEM);
    t.p->event->free(e);
    if (s != NULL) sim_sync(&t, s);
    t.p->stream->close(s);
  }
  assert_true(done);
  sim_close(&t);
}

/* ---------------------------------------------------------------- fences */

static void fences_are_told_in_order(void **state) {
  sim_test t;
  (void)state;
  cuda_open(&t, 1, NULL);
  gate_watch(&t);
  heddle_pdevice *dev = t.dev[0];
  heddle_pbuffer *x = sim_buf(&t, dev, HEDDLE_MEMORY_DEVICE, BYTES);
  heddle_pstream *s = sim_stream(&t, dev);
  for (int round = 0; round < 3; round++) {
    const long calls = atomic_load(&t.fake.calls);
    gate_shut(&t, s); /* so that all are under way at once */
    for (uint64_t i = 1; i <= 100; i++) {
      sim_fill(&t, s, x, BYTES, (uint32_t)i);
      OK(&t, t.p->fence->signal(s, 7, (uint64_t)round * 100 + i, &t.err));
    }
    if (round > 0) assert_int_equal(atomic_load(&t.fake.calls), calls); /* room is kept */
    assert_int_equal(sim_test_fence(&t, 7, (uint64_t)round * 100 + 1), HEDDLE_EBUSY);
    gate_open(&t);
    assert_int_equal(sim_wait(&t, 7, (uint64_t)round * 100 + 100), HEDDLE_OK);
    sim_sync(&t, s);
    assert_int_equal(t.fences[7].value, (uint64_t)round * 100 + 100);
    assert_int_equal(gate_told[7], (round + 1) * 100);
  }
  t.p->memory->free(dev, x);
  t.p->stream->close(s);
  sim_close(&t);
}

/* A call that the driver refuses once: waiters get the failure, and the stream goes on when that was reported. */
static void a_refused_call_fails_what_is_behind_it(void **state) {
  sim_test t;
  (void)state;
  setenv("FAKE_GPU_FAIL", "cuMemsetD32Async:2:1,cuLaunchHostFunc:2:1,cuEventRecord:2:1", 1);
  cuda_open(&t, 1, NULL);
  gate_watch(&t);
  heddle_pdevice *dev = t.dev[0];
  heddle_pbuffer *x = sim_buf(&t, dev, HEDDLE_MEMORY_DEVICE, BYTES);
  heddle_pstream *a = sim_stream(&t, dev), *b = sim_stream(&t, dev);
  heddle_pevent *e = sim_event(&t, dev);
  sim_fill(&t, a, x, BYTES, 1);
  OK(&t, t.p->fence->signal(a, 1, 1, &t.err)); /* the first host function */
  FAILS(&t, HEDDLE_EFAILED, GPU_PLUGIN ":0", t.p->copy->fill(a, x, 0, BYTES, 2, &t.err));
  FAILS(&t, HEDDLE_EFAILED, "(1)", t.p->fence->signal(a, 2, 1, &t.err)); /* work before it is missing */
  OK(&t, t.p->event->record(e, a, &t.err));
  FAILS(&t, HEDDLE_EFAILED, "waited for an event whose work failed", t.p->event->wait(b, e, &t.err));
  FAILS(&t, HEDDLE_EFAILED, "(1)", t.p->stream->sync(a, SECOND, &t.err));
  FAILS(&t, HEDDLE_EFAILED, "waited", t.p->stream->sync(b, SECOND, &t.err));
  assert_int_equal(sim_wait(&t, 1, 1), HEDDLE_OK);
  assert_int_equal(sim_wait(&t, 2, 1), HEDDLE_EFAILED);
  FAILS(&t, HEDDLE_EFAILED, "signal a fence", t.p->fence->signal(a, 3, 1, &t.err)); /* the second */
  assert_int_equal(sim_wait(&t, 3, 1), HEDDLE_EFAILED);
  FAILS(&t, HEDDLE_EFAILED, "signal a fence", t.p->stream->sync(a, SECOND, &t.err));
  FAILS(&t, HEDDLE_EFAILED, "record an event", t.p->event->record(e, a, &t.err));
  FAILS(&t, HEDDLE_EFAILED, "record an event", t.p->stream->sync(a, SECOND, &t.err));
  sim_fill(&t, a, x, BYTES, 3); /* all is well again */
  OK(&t, t.p->fence->signal(a, 4, 1, &t.err));
  OK(&t, t.p->event->record(e, a, &t.err));
  OK(&t, t.p->event->wait(b, e, &t.err));
  sim_expect(&t, b, x, WORDS, 3);
  sim_sync(&t, a);
  for (int i = 1; i < 5; i++) assert_int_equal(gate_told[i], 1);
  assert_int_equal(t.faults, 0);
  t.p->event->free(e);
  t.p->memory->free(dev, x);
  t.p->stream->close(a);
  t.p->stream->close(b);
  sim_close(&t);
}

/* ---------------------------------------------------------------- faults and hangs */

/* The driver makes no host functions after a fault: each fence is failed once nevertheless, without a sync, and the other
 * device goes on. */
static void a_fault_reaches_every_fence(void **state) {
  sim_test t;
  (void)state;
  setenv("FAKE_GPU_FAULT", "fill:3:700", 1);
  setenv("FAKE_GPU_STRICT", "0", 1); /* memory cannot be freed on a lost device */
  cuda_open(&t, 2, NULL);
  gate_watch(&t);
  heddle_pdevice *dev = t.dev[0];
  heddle_pbuffer *x = sim_buf(&t, dev, HEDDLE_MEMORY_DEVICE, BYTES);
  heddle_pbuffer *y = sim_buf(&t, t.dev[1], HEDDLE_MEMORY_DEVICE, BYTES);
  heddle_pstream *a = sim_stream(&t, dev), *b = sim_stream(&t, dev), *far = sim_stream(&t, t.dev[1]);
  heddle_pstream *left = NULL;
  heddle_pevent *e = sim_event(&t, dev);
  sim_fill(&t, a, x, BYTES, 1);
  OK(&t, t.p->fence->signal(a, 1, 1, &t.err));
  assert_int_equal(sim_wait(&t, 1, 1), HEDDLE_OK);
  sim_fill(&t, far, y, BYTES, 6);
  sim_sync(&t, far);
  gate_shut(&t, a);
  sim_fill(&t, a, x, BYTES, 2); /* the fault */
  for (uint64_t i = 2; i < 30; i++) OK(&t, t.p->fence->signal(a, i, 1, &t.err));
  OK(&t, t.p->event->record(e, a, &t.err));
  OK(&t, t.p->event->wait(b, e, &t.err));
  OK(&t, t.p->fence->signal(b, 30, 1, &t.err));
  gate_open(&t);
  for (uint64_t i = 2; i < 31; i++) {
    assert_int_equal(sim_wait(&t, i, 1), HEDDLE_EDEVICE);
    if (strstr(t.fences[i].text, "(700)") == NULL) fail_msg("fence %u: %s", (unsigned)i, t.fences[i].text);
  }
  FAILS(&t, HEDDLE_EDEVICE, "(700)", t.p->stream->sync(a, SECOND, &t.err));
  FAILS(&t, HEDDLE_EDEVICE, "(700)", t.p->stream->sync(b, SECOND, &t.err));
  FAILS(&t, HEDDLE_EDEVICE, "(700)", t.p->stream->query(b, &t.err));
  FAILS(&t, HEDDLE_EDEVICE, "(700)", t.p->copy->fill(b, x, 0, 4, 1, &t.err));
  FAILS(&t, HEDDLE_EDEVICE, "(700)", t.p->stream->create(dev, 0, 0, &left, &t.err));
  FAILS(&t, HEDDLE_EDEVICE, "(700)", t.p->device->idle(dev, SECOND, &t.err));
  FAILS(&t, HEDDLE_EDEVICE, "(700)", t.p->fence->signal(a, 31, 1, &t.err));
  assert_int_equal(sim_wait(&t, 31, 1), HEDDLE_EDEVICE);
  sim_expect(&t, far, y, WORDS, 6);
  OK(&t, t.p->fence->signal(far, 32, 1, &t.err));
  assert_int_equal(sim_wait(&t, 32, 1), HEDDLE_OK);
  for (int i = 1; i < 33; i++) assert_int_equal(gate_told[i], 1);
  assert_int_equal(t.faults, 1);
  assert_int_equal(t.fault_cookie, 100);
  FAILS(&t, HEDDLE_EFAILED, "waited for an event whose work failed", t.p->event->wait(far, e, &t.err));
  FAILS(&t, HEDDLE_EFAILED, "(700)", t.p->stream->sync(far, SECOND, &t.err));
  sim_expect(&t, far, y, WORDS, 6);
  t.p->event->free(e);
  t.p->memory->free(dev, x);
  t.p->memory->free(t.dev[1], y);
  t.p->stream->close(a);
  t.p->stream->close(b);
  t.p->stream->close(far);
  sim_close(&t);
}

/* What a stream put in behind a wait for another device fails when that is lost, and nothing that was before. */
static void a_lost_device_reaches_who_waits_for_it(void **state) {
  sim_test t;
  (void)state;
  setenv("FAKE_GPU_FAULT", "fill:2:719", 1);
  setenv("FAKE_GPU_STRICT", "0", 1); /* memory cannot be freed on a lost device */
  cuda_open(&t, 2, NULL);
  gate_watch(&t);
  heddle_pbuffer *x = sim_buf(&t, t.dev[0], HEDDLE_MEMORY_DEVICE, BYTES);
  heddle_pstream *a = sim_stream(&t, t.dev[0]), *bad = sim_stream(&t, t.dev[0]);
  heddle_pstream *far = sim_stream(&t, t.dev[1]), *free_one = sim_stream(&t, t.dev[1]);
  heddle_pevent *e = sim_event(&t, t.dev[0]);
  sim_fill(&t, a, x, BYTES, 1);
  OK(&t, t.p->event->record(e, a, &t.err));
  OK(&t, t.p->event->wait(free_one, e, &t.err));
  OK(&t, t.p->fence->signal(free_one, 1, 1, &t.err)); /* this wait is passed */
  assert_int_equal(sim_wait(&t, 1, 1), HEDDLE_OK);
  gate_shut(&t, a);
  gate_await();
  OK(&t, t.p->event->record(e, a, &t.err));
  OK(&t, t.p->fence->signal(far, 2, 1, &t.err));
  OK(&t, t.p->event->wait(far, e, &t.err));
  OK(&t, t.p->fence->signal(far, 3, 1, &t.err));
  assert_int_equal(sim_wait(&t, 2, 1), HEDDLE_OK);
  sim_fill(&t, bad, x, BYTES, 2); /* the fault, while a is still held back */
  FAILS(&t, HEDDLE_EDEVICE, "(719)", t.p->stream->sync(bad, 20 * SECOND, &t.err));
  assert_int_equal(sim_wait(&t, 3, 1), HEDDLE_EFAILED);
  if (strstr(t.fences[3].text, GPU_PLUGIN ":1 waited for an event whose work failed: " GPU_PLUGIN ":0") == NULL)
    fail_msg("%s", t.fences[3].text);
  gate_open(&t);
  OK(&t, t.p->fence->signal(free_one, 4, 1, &t.err));
  assert_int_equal(sim_wait(&t, 4, 1), HEDDLE_OK);
  sim_sync(&t, free_one);
  FAILS(&t, HEDDLE_EFAILED, GPU_PLUGIN ":0", t.p->stream->sync(far, 20 * SECOND, &t.err));
  OK(&t, t.p->fence->signal(far, 5, 1, &t.err)); /* reported: the stream goes on */
  assert_int_equal(sim_wait(&t, 5, 1), HEDDLE_OK);
  for (int i = 1; i < 6; i++) assert_int_equal(gate_told[i], 1);
  assert_int_equal(t.faults, 1);
  t.p->event->free(e);
  t.p->memory->free(t.dev[0], x);
  t.p->stream->close(a);
  t.p->stream->close(bad);
  t.p->stream->close(far);
  t.p->stream->close(free_one);
  sim_close(&t);
}

/* Work that never ends: waits end by their limit, other streams go on, and a device that is closed is left behind. */
static void a_hang_ends_by_the_limit(void **state) {
  sim_test t;
  struct timespec from, to;
  (void)state;
  cuda_open(&t, 1, NULL);
  gate_watch(&t);
  heddle_pdevice *dev = t.dev[0];
  heddle_pbuffer *x = sim_buf(&t, dev, HEDDLE_MEMORY_DEVICE, BYTES);
  heddle_pstream *a = sim_stream(&t, dev), *b = sim_stream(&t, dev);
  gate_shut(&t, a);
  OK(&t, t.p->fence->signal(a, 1, 1, &t.err));
  clock_gettime(CLOCK_MONOTONIC, &from);
  FAILS(&t, HEDDLE_ETIMEOUT, "did not finish", t.p->stream->sync(a, SECOND / 10, &t.err));
  clock_gettime(CLOCK_MONOTONIC, &to);
  const double took = (double)(to.tv_sec - from.tv_sec) + (double)(to.tv_nsec - from.tv_nsec) / 1e9;
  if (!(took >= 0.1 && took < 5)) fail_msg("a limit of 0.1 s took %g s", took);
  FAILS(&t, HEDDLE_ETIMEOUT, "did not finish", t.p->stream->sync(a, 0, &t.err));
  FAILS(&t, HEDDLE_EBUSY, "work left", t.p->stream->query(a, &t.err));
  FAILS(&t, HEDDLE_ETIMEOUT, "", t.p->device->idle(dev, SECOND / 50, &t.err));
  OK(&t, t.p->device->health(dev, &t.err));
  sim_fill(&t, b, x, BYTES, 8);
  sim_expect(&t, b, x, WORDS, 8);
  assert_int_equal(sim_test_fence(&t, 1, 1), HEDDLE_EBUSY);
  gate_open(&t);
  sim_sync(&t, a);
  assert_int_equal(sim_test_fence(&t, 1, 1), HEDDLE_OK);
  t.p->memory->free(dev, x);
  t.p->stream->close(a);
  t.p->stream->close(b);
  sim_close(&t);
}

/* ---------------------------------------------------------------- threads */

typedef struct team {
  sim_test *t;
  heddle_pstream *stream;
  heddle_pbuffer *buffer;
  atomic_bool stop;
  uint32_t number, bad;
} team;

static void *work(void *arg) {
  team *w = arg;
  sim_test *t = w->t;
  heddle_error err;
  for (uint64_t i = 1; i <= 300; i++) {
    heddle_pgraph *g = NULL;
    const bool recorded = i % 16 == 0;
    if (recorded && t->p->capture->begin(w->stream, &err) != HEDDLE_OK) w->bad++;
    if (t->p->copy->fill(w->stream, w->buffer, 0, BYTES, (uint32_t)i, &err) != HEDDLE_OK) w->bad++;
    if (recorded && t->p->capture->end(w->stream, &g, &err) != HEDDLE_OK) w->bad++;
    if (recorded && g != NULL && t->p->capture->replay(g, w->stream, &err) != HEDDLE_OK) w->bad++;
    if (t->p->fence->signal(w->stream, w->number, i, &err) != HEDDLE_OK) w->bad++;
    if (i % 10 == 0 && sim_wait(t, w->number, i) != HEDDLE_OK) w->bad++;
    if (i % 50 == 0 && t->p->stream->sync(w->stream, 20 * SECOND, &err) != HEDDLE_OK) w->bad++;
    t->p->capture->free(g);
  }
  return NULL;
}

static void *ask(void *arg) {
  team *w = arg;
  heddle_error err;
  while (!atomic_load(&w->stop)) {
    const heddle_status s = w->t->p->stream->query(w->stream, &err);
    if (s != HEDDLE_OK && s != HEDDLE_EBUSY) w->bad++;
    nanosleep(&(struct timespec){0, 20000}, NULL);
  }
  return NULL;
}

/* Streams of their own for several threads, and for each another thread that asks, also while a capture is recorded. */
static void threads_use_streams_of_their_own(void **state) {
  enum { TEAMS = 4 };
  sim_test t;
  team at[TEAMS], from[TEAMS];
  pthread_t workers[TEAMS], askers[TEAMS];
  (void)state;
  cuda_open(&t, 2, NULL);
  gate_watch(&t);
  for (uint32_t i = 0; i < TEAMS; i++) {
    heddle_pdevice *dev = t.dev[i % 2];
    at[i] = (team){.t = &t, .stream = sim_stream(&t, dev), .number = i + 1};
    at[i].buffer = sim_buf(&t, dev, HEDDLE_MEMORY_DEVICE, BYTES);
    from[i] = at[i];
    assert_int_equal(pthread_create(&workers[i], NULL, work, &at[i]), 0);
    assert_int_equal(pthread_create(&askers[i], NULL, ask, &from[i]), 0);
  }
  for (uint32_t i = 0; i < TEAMS; i++) {
    pthread_join(workers[i], NULL);
    atomic_store(&from[i].stop, true);
    pthread_join(askers[i], NULL);
    assert_int_equal(at[i].bad + from[i].bad, 0);
    assert_int_equal(gate_told[i + 1], 300);
    sim_expect(&t, at[i].stream, at[i].buffer, WORDS, 300);
    t.p->memory->free(t.dev[i % 2], at[i].buffer);
    t.p->stream->close(at[i].stream);
  }
  sim_close(&t);
}

CASES(CASE_LABELS(work_of_two_streams_is_ordered_by_events, "threads"), CASE_LABELS(a_wait_keeps_its_record, "threads"),
      CASE_LABELS(events_reach_other_devices, "threads"), CASE_LABELS(a_closed_stream_goes_on, "threads"),
      CASE(streams_have_priorities), CASE(memory_runs_out), CASE_LABELS(fences_are_told_in_order, "threads"),
      CASE(a_refused_call_fails_what_is_behind_it), CASE_LABELS(a_fault_reaches_every_fence, "threads"),
      CASE_LABELS(a_lost_device_reaches_who_waits_for_it, "threads"), CASE(a_hang_ends_by_the_limit),
      CASE_LABELS(threads_use_streams_of_their_own, "threads"))
