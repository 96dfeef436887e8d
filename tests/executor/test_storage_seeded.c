/* tests/executor/test_storage_seeded.c: the storage pass on seeded plans and on many values: they are proved, come out
 * the same each time, and a failed allocation is an error. */
#include "executor/storage_rig.h"

static uint32_t below(uint64_t *random, uint32_t n) {
  *random = *random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
  return (uint32_t)(*random >> 33) % n;
}

static maker *random_plan(uint64_t seed, uint32_t n_steps) {
  static uint32_t writer[MOST_INSTANCES];
  uint64_t random = seed * 977 + 5;
  maker *m = start(1 + below(&random, 4));
  for (uint32_t k = 0; k < n_steps; k++) {
    uint32_t in[2] = {NONE, NONE}, wait[2] = {NONE, NONE}, n = m->plan->n_values;
    for (int j = 0; j < 2 && n > 0; j++) {
      if (below(&random, 3) == 0) continue;
      do in[j] = n - 1 - below(&random, n < 9 ? n : 9);
      while (m->plan->instances[in[j]].role == HEDDLE__ROLE_WORKSPACE);
      wait[j] = writer[in[j]];
    }
    uint64_t bytes = below(&random, 3) == 0 ? 1 + below(&random, 6000) : 2048;
    uint32_t out = temp(m, 1, bytes);
    writer[out] = add(m, (op){below(&random, m->plan->n_streams), wait[0], wait[1], in[0], in[1], out, NONE});
    if (below(&random, 2) == 0) allow_in_place(m, writer[out], both, m->plan->regions[writer[out]].n_inputs);
  }
  return m;
}

static void seeded_plans_are_proved(void **state) {
  (void)state;
  for (uint64_t seed = 0; seed < 120; seed++) {
    maker *m = random_plan(seed, 4 + (uint32_t)seed % 90);
    m->plan->req.slots = seed % 5 == 4;
    if (seed % 7 == 6) m->devices[1].desc.max_buffer_bytes = 6200;
    place(m);
    finish(m);
  }
}

static void the_same_plan_gets_the_same_bytes(void **state) {
  (void)state;
  static uint64_t offsets[MOST_INSTANCES];
  for (int round = 0; round < 2; round++) {
    maker *m = random_plan(7, 300);
    place(m);
    for (uint32_t i = 0; i < m->plan->n_instances; i++) {
      if (round == 1) assert_int_equal(offsets[i], offset_of(m, i));
      offsets[i] = offset_of(m, i);
    }
    finish(m);
  }
}

/* More pairs conflict than are kept as lists. */
static void many_values_of_streams_that_never_meet(void **state) {
  (void)state;
  maker *m = start(2);
  for (uint32_t t = 0; t < 2; t++) {
    for (uint32_t k = 0, last = NONE; k < 2200; k++) {
      uint32_t out = temp(m, 1, 256 * (1 + k % 3));
      add(m, (op){t, NONE, NONE, last, NONE, out, NONE});
      last = out;
    }
  }
  place(m);
  assert_int_equal(total(m, 1), 2 * (768 + 512 + 256));
  m->plan->req.slots = true;
  place(m);
  assert_int_equal(total(m, 1), 2 * (768 + 512 + 256));
  finish(m);
}

static void every_failed_allocation_is_an_error(void **state) {
  (void)state;
  for (int slots = 0; slots < 2; slots++) {
    heddle_status s = HEDDLE_ENOMEM;
    for (uint64_t n = 1; s != HEDDLE_OK; n++) {
      heddle_error err = {0};
      maker *m = random_plan(3, 60);
      m->plan->req.slots = slots == 1;
      heddle__alloc_fail_at(n);
      s = heddle__pass_storage(m->plan, &err);
      heddle__alloc_fail_at(0);
      assert_true(s == HEDDLE_OK || s == HEDDLE_ENOMEM);
      assert_true(n < 1000);
      assert_int_equal(s != HEDDLE_OK, err.text[0] != '\0');
      finish(m);
    }
  }
}

CASES(CASE(seeded_plans_are_proved), CASE(the_same_plan_gets_the_same_bytes),
      CASE(many_values_of_streams_that_never_meet), CASE(every_failed_allocation_is_an_error))
