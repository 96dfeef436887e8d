/* tests/batch/test_batch.c: when requests run and in which order, the bounded queue, deadlines, cancellation, close.
 * labels: threads
 */
#include "batch/batch_rig.h"

#define SLOW "sim.delay_us=40000" /* a run takes tens of milliseconds */
#define FOREVER_NS (UINT64_C(3600) * 1000 * MS)

static void requests_share_a_run(void **state) {
  (void)state;
  batch_rig t;
  heddle_batch_request *r[8];
  doubling(&t, "", "cpu", ITEMS, OPTIONS(.max_items = 8, .max_delay_ns = FOREVER_NS));
  for (int i = 0; i < 7; i++) r[i] = submitted(t.b, items(1, (float)(10 * i)), (heddle_batch_call){0});
  sleep_ms(20);
  assert_int_equal(stats_of(t.b).queued, 7);
  FAILS(heddle_batch_request_wait(r[0], 0, &err), HEDDLE_EBUSY);
  r[7] = submitted(t.b, items(1, 70), (heddle_batch_call){0});
  for (int i = 0; i < 8; i++) ends_doubled(r[i], (float)(10 * i));
  heddle_batcher_stats s = stats_of(t.b);
  assert_int_equal(s.runs, 1);
  assert_int_equal(s.items, 8);
  assert_int_equal(s.filled, 0);
  assert_int_equal(s.requests, 8);
  assert_int_equal(s.succeeded, 8);
  assert_int_equal(s.most_items, 8);
  assert_int_equal(s.queued + s.running, 0);
  batch_end(&t);
}

static void the_delay_is_a_bound(void **state) {
  (void)state;
  batch_rig t;
  doubling(&t, "", "cpu", ITEMS, OPTIONS(.max_items = 64, .max_delay_ns = 40 * MS));
  for (int i = 0; i < 5; i++) {
    const uint64_t before = clock_ns();
    ends_doubled(submitted(t.b, items(1, (float)i), (heddle_batch_call){0}), (float)i);
    const uint64_t took = clock_ns() - before;
    assert_true(took >= 39 * MS);
    if (i > 0 && took > 400 * MS) fail_msg("%llu ms", (unsigned long long)(took / MS));
  }
  /* The first of three is not held up by those behind it; a deadline halves the delay. */
  heddle_batch_request *r[3];
  for (int i = 0; i < 3; i++) r[i] = submitted(t.b, items(1, (float)i), (heddle_batch_call){0}), sleep_ms(5);
  for (int i = 0; i < 3; i++) ends_doubled(r[i], (float)i);
  assert_int_equal(stats_of(t.b).runs, 6);
  batch_end(&t);
}

static void a_deadline_shortens_the_delay(void **state) {
  (void)state;
  batch_rig t;
  doubling(&t, "", "cpu", ITEMS, OPTIONS(.max_items = 64, .max_delay_ns = FOREVER_NS));
  ends_doubled(submitted(t.b, items(1, 1), (heddle_batch_call){.deadline_ns = 2000 * MS}), 1);
  batch_end(&t);
}

static void higher_priorities_run_first(void **state) {
  (void)state;
  batch_rig t;
  static diary d;
  static const int priorities[] = {0, 5, 3, 0, 5, -2, INT32_MAX}, expected[] = {6, 1, 4, 2, 0, 3, 5};
  note notes[7];
  heddle_batch_request *r[7];
  doubling(&t, SLOW, "sim:0", ITEMS, OPTIONS(.max_items = 1));
  heddle_batch_request *first = block(&t, 0);
  for (int i = 0; i < 7; i++) {
    notes[i] = (note){&d, i};
    r[i] = submitted(t.b, items(1, (float)i),
                     (heddle_batch_call){.priority = priorities[i], .done = write_note, .user = &notes[i]});
  }
  for (int i = 0; i < 7; i++) ends_doubled(r[i], (float)i);
  ends_doubled(first, 0);
  for (int i = 0; i < 7; i++) assert_int_equal(d.order[i], expected[i]);
  batch_end(&t);
}

static void a_full_queue_pushes_back(void **state) {
  (void)state;
  batch_rig t;
  doubling(&t, "sim.delay_us=150000", "sim:0", ITEMS, OPTIONS(.max_items = 1, .max_queue = 2));
  heddle_batch_request *r[4] = {block(&t, 0)}, *none = NULL;
  r[1] = submitted(t.b, items(1, 1), (heddle_batch_call){0});
  r[2] = submitted(t.b, items(1, 2), (heddle_batch_call){0});
  heddle_tensor *x = items(1, 3);
  heddle_batch_call c = call_of(&x);
  FAILS(heddle_batcher_submit(t.b, &c, &none, &err), HEDDLE_EBUSY);
  assert_null(none);
  c.deadline_ns = MS;
  c.wait_ns = HEDDLE_FOREVER;
  FAILS(heddle_batcher_submit(t.b, &c, &none, &err), HEDDLE_ETIMEOUT);
  c.deadline_ns = 0;
  OK(heddle_batcher_submit(t.b, &c, &r[3], &err)); /* waits until a run begins */
  heddle_tensor_release(x);
  for (int i = 0; i < 4; i++) ends_doubled(r[i], (float)i);
  heddle_batcher_stats s = stats_of(t.b);
  assert_int_equal(s.rejected, 2);
  assert_int_equal(s.requests, 4);
  batch_end(&t);
}

static void deadlines_pass(void **state) {
  (void)state;
  batch_rig t;
  static diary d;
  note notes[2] = {{&d, 0}, {&d, 1}};
  doubling(&t, "sim.delay_us=300000", "sim:0", ITEMS, OPTIONS(.max_items = 2, .max_delay_ns = 5 * MS));
  heddle_batch_request *running, *waiting, *other;
  running =
      submitted(t.b, items(1, 1), (heddle_batch_call){.deadline_ns = 20 * MS, .done = write_note, .user = &notes[0]});
  other = submitted(t.b, items(1, 2), (heddle_batch_call){0}); /* in the same run */
  while (stats_of(t.b).running < 2) sleep_ms(1);
  waiting =
      submitted(t.b, items(1, 3), (heddle_batch_call){.deadline_ns = 5 * MS, .done = write_note, .user = &notes[1]});
  const uint64_t before = clock_ns();
  FAILS(heddle_batch_request_wait(running, HEDDLE_FOREVER, &err), HEDDLE_ETIMEOUT);
  FAILS(heddle_batch_request_wait(waiting, HEDDLE_FOREVER, &err), HEDDLE_ETIMEOUT);
  if (clock_ns() - before > 1000 * MS) fail_msg("the deadlines passed late");
  heddle_tensor *y = NULL;
  FAILS(heddle_batch_request_output(running, 0, &y, &err), HEDDLE_EINVAL);
  assert_int_equal(heddle_batch_request_cancel(running), HEDDLE_EBUSY);
  heddle_batch_request_release(running);
  heddle_batch_request_release(waiting);
  ends_doubled(other, 2);
  assert_int_equal(d.n, 2);
  assert_int_equal(d.status[0], HEDDLE_ETIMEOUT);
  assert_int_equal(d.status[1], HEDDLE_ETIMEOUT);
  assert_int_equal(stats_of(t.b).expired, 2);
  batch_end(&t);
}

static void requests_are_cancelled(void **state) {
  (void)state;
  batch_rig t;
  doubling(&t, "sim.delay_us=200000", "sim:0", ITEMS, OPTIONS(.max_items = 2));
  heddle_batch_request *alone = block(&t, 0), *waiting, *pair[2];
  waiting = submitted(t.b, items(1, 1), (heddle_batch_call){0});
  assert_int_equal(heddle_batch_request_cancel(waiting), HEDDLE_OK);
  FAILS(heddle_batch_request_wait(waiting, 0, &err), HEDDLE_ECANCELED);
  assert_int_equal(stats_of(t.b).queued, 0);
  assert_int_equal(heddle_batch_request_cancel(waiting), HEDDLE_EBUSY);
  assert_int_equal(heddle_batch_request_cancel(alone), HEDDLE_OK); /* its run is cancelled too */
  FAILS(heddle_batch_request_wait(alone, 0, &err), HEDDLE_ECANCELED);
  heddle_batch_request_release(waiting);
  heddle_batch_request_release(alone);
  for (int i = 0; i < 2; i++) pair[i] = submitted(t.b, items(1, (float)i), (heddle_batch_call){0});
  while (stats_of(t.b).queued > 0) sleep_ms(1);
  assert_int_equal(heddle_batch_request_cancel(pair[0]), HEDDLE_OK); /* the run goes on for the other */
  ends_doubled(pair[1], 1);
  heddle_batch_request_release(pair[0]);
  assert_int_equal(stats_of(t.b).cancelled, 3);
  batch_end(&t);
}

/* A run that is left by its last request is cancelled. One that has not begun when its request goes is not. */
static void a_run_for_nobody_is_cancelled(void **state) {
  (void)state;
  batch_rig t;
  doubling(&t, "sim.delay_us=200000", "sim:0", ITEMS, OPTIONS(.max_items = 2));
  uint64_t tried = 0;
  bool cancelled = false;
  while (!cancelled && tried < 8) {
    heddle_batch_request *r = block(&t, 0);
    sleep_ms(5);
    heddle_batch_request_cancel(r);
    heddle_batch_request_release(r);
    ends_doubled(submitted(t.b, items(1, 1), (heddle_batch_call){0}), 1);
    cancelled = stats_of(t.b).runs < 2 * ++tried;
  }
  assert_true(cancelled);
  batch_end(&t);
}

static void pending(batch_rig *t, heddle_batch_request **r) {
  doubling(t, SLOW, "sim:0", ITEMS, OPTIONS(.max_items = 4, .max_delay_ns = FOREVER_NS));
  for (int i = 0; i < 6; i++) r[i] = submitted(t->b, items(1, (float)i), (heddle_batch_call){0});
}

static void close_waits_for_requests(void **state) {
  (void)state;
  batch_rig t;
  heddle_batch_request *r[6], *none;
  pending(&t, r);
  FAILS(heddle_batcher_close(t.b, 0, 0, &err), HEDDLE_ETIMEOUT);
  OK(heddle_batcher_close(t.b, 0, HEDDLE_FOREVER, &err));
  for (int i = 0; i < 6; i++) {
    OK(heddle_batch_request_wait(r[i], 0, &err));
    ends_doubled(r[i], (float)i);
  }
  heddle_tensor *x = items(1, 0);
  heddle_batch_call c = call_of(&x);
  FAILS(heddle_batcher_submit(t.b, &c, &none, &err), HEDDLE_ECANCELED);
  OK(heddle_batcher_close(t.b, 1, 0, &err));
  heddle_tensor_release(x);
  batch_end(&t);
}

static void close_cancels_requests(void **state) {
  (void)state;
  for (int i = 0; i < 2; i++) { /* by close, and by the last release */
    batch_rig t;
    heddle_batch_request *r[6];
    heddle_status s;
    int cancelled = 0;
    pending(&t, r);
    if (i == 0) OK(heddle_batcher_close(t.b, 1, HEDDLE_FOREVER, &err));
    else heddle_batcher_release(t.b), t.b = NULL;
    for (int k = 0; k < 6; k++) {
      s = heddle_batch_request_wait(r[k], 0, &err); /* requests may outlive their batcher */
      cancelled += s == HEDDLE_ECANCELED;
      if (s != HEDDLE_OK && s != HEDDLE_ECANCELED) fail_msg("%s", err.text);
      heddle_batch_request_release(r[k]);
    }
    assert_true(cancelled >= 2); /* the last two waited */
    batch_end(&t);
  }
}

static void drain_does_not_wait_for_others(void **state) {
  (void)state;
  batch_rig t;
  heddle_batch_request *r[6];
  pending(&t, r);
  FAILS(heddle_batcher_drain(t.b, 0, &err), HEDDLE_ETIMEOUT);
  OK(heddle_batcher_drain(t.b, HEDDLE_FOREVER, &err));
  for (int i = 0; i < 6; i++) ends_doubled(r[i], (float)i);
  r[0] = submitted(t.b, items(1, 0), (heddle_batch_call){0});
  sleep_ms(20);
  assert_int_equal(stats_of(t.b).queued, 1); /* waits for others again */
  heddle_batch_request_release(r[0]);
  batch_end(&t);
}

/* ---- threads */

typedef struct client {
  heddle_batcher *b;
  int number, failed;
} client;

static void *send_requests(void *arg) {
  client *c = arg;
  for (int i = 0; i < 20; i++) {
    const float first = (float)(c->number * 100 + i);
    heddle_tensor *x = items(1 + i % 3, first), *y = NULL;
    heddle_batch_call call = call_of(&x);
    heddle_error e;
    call.wait_ns = HEDDLE_FOREVER;
    call.priority = i % 3;
    bool right = heddle_batcher_run(c->b, &call, &y, 1, &e) == HEDDLE_OK;
    for (uint64_t k = 0; right && k < heddle_tensor_bytes(y) / 4; k++) right = data_of(y)[k] == 2 * (first + (float)k);
    c->failed += !right;
    heddle_tensor_release(x);
    heddle_tensor_release(y);
  }
  return NULL;
}

static void sixty_four_threads(void **state) {
  (void)state;
  batch_rig t;
  client clients[64];
  pthread_t threads[64];
  doubling(&t, "", "cpu", ITEMS, OPTIONS(.max_items = 16, .max_queue = 32, .workers = 3, .max_delay_ns = MS));
  for (int i = 0; i < 64; i++) {
    clients[i] = (client){t.b, i, 0};
    assert_int_equal(pthread_create(&threads[i], NULL, send_requests, &clients[i]), 0);
  }
  for (int i = 0; i < 64; i++) {
    pthread_join(threads[i], NULL);
    assert_int_equal(clients[i].failed, 0);
  }
  heddle_batcher_stats s = stats_of(t.b);
  assert_int_equal(s.requests, 64 * 20);
  assert_int_equal(s.succeeded, s.requests);
  assert_true(s.runs < s.requests);
  batch_end(&t);
}

/* Deadlines, cancellations and closes beside each other. */
static void *disturb(void *arg) {
  client *c = arg;
  for (int i = 0; i < 30; i++) {
    heddle_tensor *x = items(1, (float)i);
    heddle_batch_request *r = NULL;
    heddle_batch_call call = call_of(&x);
    call.wait_ns = MS;
    call.deadline_ns = i % 3 == 0 ? MS / 2 : 0;
    const heddle_status s = heddle_batcher_submit(c->b, &call, &r, NULL);
    if (s == HEDDLE_OK && i % 2 == 0) heddle_batch_request_cancel(r);
    if (s == HEDDLE_OK && i % 5 != 0) {
      const heddle_status ended = heddle_batch_request_wait(r, HEDDLE_FOREVER, NULL);
      if (ended != HEDDLE_OK && ended != HEDDLE_ECANCELED && ended != HEDDLE_ETIMEOUT) c->failed++;
    }
    heddle_batch_request_release(r);
    heddle_tensor_release(x);
  }
  return NULL;
}

static void all_at_once(void **state) {
  (void)state;
  batch_rig t;
  client clients[8];
  pthread_t threads[8];
  doubling(&t, "sim.delay_us=300", "sim:0", ITEMS, OPTIONS(.max_items = 4, .workers = 2, .max_delay_ns = MS / 4));
  for (int i = 0; i < 8; i++) {
    clients[i] = (client){t.b, i, 0};
    assert_int_equal(pthread_create(&threads[i], NULL, disturb, &clients[i]), 0);
  }
  sleep_ms(20);
  OK(heddle_batcher_drain(t.b, HEDDLE_FOREVER, &err));
  OK(heddle_batcher_close(t.b, 1, HEDDLE_FOREVER, &err));
  for (int i = 0; i < 8; i++) {
    pthread_join(threads[i], NULL);
    assert_int_equal(clients[i].failed, 0);
  }
  heddle_batcher_stats s = stats_of(t.b);
  assert_int_equal(s.requests, s.succeeded + s.cancelled + s.expired + s.failed);
  assert_int_equal(s.failed, 0);
  batch_end(&t);
}

CASES(CASE(requests_share_a_run), CASE(the_delay_is_a_bound), CASE(a_deadline_shortens_the_delay),
      CASE(higher_priorities_run_first), CASE(a_full_queue_pushes_back), CASE(deadlines_pass),
      CASE(requests_are_cancelled), CASE(a_run_for_nobody_is_cancelled), CASE(close_waits_for_requests),
      CASE(close_cancels_requests), CASE(drain_does_not_wait_for_others), CASE(sixty_four_threads), CASE(all_at_once))
