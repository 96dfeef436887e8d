/* tests/batch/test_batch_times.c: when a request passed what, and the steps of its run.
 * labels: threads
 */
#include "batch/batch_rig.h"

#define FOREVER_NS (UINT64_C(3600) * 1000 * MS)
#define WITH_STEPS ((heddle_batch_call){.flags = HEDDLE_BATCH_CALL_STEPS})

static heddle_batch_times times_of(heddle_batch_request *r) {
  heddle_batch_times all = {.struct_size = sizeof all};
  OK(heddle_batch_request_times(r, &all, &err));
  return all;
}

static void ends(heddle_batch_request *r, heddle_status status) {
  assert_int_equal(heddle_batch_request_wait(r, HEDDLE_FOREVER, &err), status);
}

static void times_are_in_order(void **state) {
  (void)state;
  batch_rig t;
  heddle_batch_request *r[3];
  doubling(&t, "", "cpu", ITEMS, OPTIONS(.max_items = 3, .max_delay_ns = FOREVER_NS));
  const uint64_t before = clock_ns();
  for (int i = 0; i < 2; i++) r[i] = submitted(t.b, items(1, (float)i), i == 0 ? WITH_STEPS : (heddle_batch_call){0});
  FAILS(heddle_batch_request_times(r[0], &(heddle_batch_times){.struct_size = sizeof(heddle_batch_times)}, &err),
        HEDDLE_EBUSY);
  sleep_ms(30);
  r[2] = submitted(t.b, items(1, 2), WITH_STEPS);
  for (int i = 0; i < 3; i++) ends(r[i], HEDDLE_OK);
  const uint64_t after = clock_ns();
  for (int i = 0; i < 3; i++) {
    const heddle_batch_times a = times_of(r[i]);
    assert_true(before <= a.accepted_ns && a.accepted_ns <= a.taken_ns && a.taken_ns <= a.run_ns);
    assert_true(a.run_ns <= a.ran_ns && a.ran_ns <= a.ended_ns && a.ended_ns <= after);
    assert_true((a.taken_ns - a.accepted_ns >= 29 * MS) == (i < 2) || i == 2); /* the first two waited for the third */
    assert_int_equal(a.items, 3);
    assert_int_equal(a.rows, 3);
    assert_int_equal(a.n_steps > 0, i != 1); /* who did not ask for steps has none */
    for (size_t k = 0; k < a.n_steps; k++) {
      assert_true(a.run_ns <= a.steps[k].start_ns && a.steps[k].start_ns <= a.steps[k].end_ns);
      assert_true(a.steps[k].end_ns <= a.ran_ns);
      assert_string_equal(a.steps[k].device, "cpu:0");
      assert_string_equal(a.steps[k].op, "Add");
      assert_string_equal(a.steps[k].name, "y");
    }
  }
  const heddle_batch_times first = times_of(r[0]), last = times_of(r[2]);
  assert_int_equal(first.n_steps, 1);
  assert_ptr_equal(first.steps, last.steps); /* of one run */
  heddle_batch_request_release(r[0]);
  assert_string_equal(last.steps[0].op, "Add");
  ends_doubled(r[1], 1);
  ends_doubled(r[2], 2);
  batch_end(&t);
}

/* A request whose memory is used again has nothing of the one before; one that never ran has no later times. */
static void what_did_not_happen_is_zero(void **state) {
  (void)state;
  batch_rig t;
  doubling(&t, "", "cpu", ITEMS, OPTIONS(.max_items = 8, .max_delay_ns = 0));
  ends_doubled(submitted(t.b, items(2, 1), WITH_STEPS), 1);
  heddle_batcher_release(t.b);
  OK(heddle_batcher_create(t.model, OPTIONS(.max_items = 8, .max_delay_ns = FOREVER_NS), &t.b, &err));
  heddle_batch_request *r = submitted(t.b, items(1, 1), WITH_STEPS);
  OK(heddle_batch_request_cancel(r));
  ends(r, HEDDLE_ECANCELED);
  const heddle_batch_times a = times_of(r);
  assert_true(a.accepted_ns > 0 && a.ended_ns >= a.accepted_ns);
  assert_int_equal(a.taken_ns + a.run_ns + a.ran_ns + a.items + a.rows + a.n_steps, 0);
  assert_null(a.steps);
  heddle_batch_request_release(r);
  /* an older caller's structure ends before the steps */
  char room[sizeof(heddle_batch_times)];
  memset(room, 7, sizeof room);
  heddle_batch_times *small = (heddle_batch_times *)(void *)room;
  small->struct_size = offsetof(heddle_batch_times, steps);
  r = submitted(t.b, items(8, 0), WITH_STEPS);
  ends(r, HEDDLE_OK);
  OK(heddle_batch_request_times(r, small, &err));
  assert_int_equal(small->items, 8);
  assert_int_equal(room[sizeof room - 1], 7);
  FAILS(heddle_batch_request_times(NULL, small, &err), HEDDLE_EINVAL);
  FAILS(heddle_batch_request_times(r, NULL, &err), HEDDLE_EINVAL);
  heddle_batch_request_release(r);
  batch_end(&t);
}

/* Nobody waits for a timed run any more: it is cancelled as others are. */
static void a_timed_run_is_cancelled(void **state) {
  (void)state;
  batch_rig t;
  doubling(&t, "sim.delay_us=60000", "sim:0", ITEMS, OPTIONS(.max_items = 1));
  heddle_batch_request *r = submitted(t.b, items(1, 1), WITH_STEPS);
  while (stats_of(t.b).running == 0) sleep_ms(1);
  sleep_ms(20);
  heddle_batch_request_cancel(r);
  ends(r, HEDDLE_ECANCELED);
  heddle_batch_request_release(r);
  ends_doubled(submitted(t.b, items(1, 5), WITH_STEPS), 5);
  batch_end(&t);
}

CASES(CASE(times_are_in_order), CASE(what_did_not_happen_is_zero), CASE(a_timed_run_is_cancelled))
