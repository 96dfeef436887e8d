/* The rule by which heddle bench takes times, with a clock and a sleep of its own: how many runs a measurement has, how
 * the number grows, what a clock that stands still does, when it sleeps, and the statistics, against numbers computed by
 * hand. */
#include "cases.h"

#include "tools/measure.c"

enum { MOST = 32 };

/* A subject whose runs take ns_per_run of its own clock, but the first of zeros measurements none. */
typedef struct subject {
  uint64_t ns_per_run, zeros;
  uint64_t fails_at; /* the measurement that fails, from 1; 0: none */
  uint32_t warm_ups, measurements, sleeps, told;
  uint64_t numbers[MOST];     /* of runs, by measurement */
  uint32_t slept_after[MOST]; /* results that there were, by sleep */
  double slept_ms;
} subject;

static heddle_status warm_up(void *ctx, heddle_error *err) {
  subject *s = ctx;
  (void)err;
  assert_int_equal(s->measurements, 0);
  s->warm_ups++;
  return HEDDLE_OK;
}

static heddle_status time_runs(void *ctx, uint64_t number, uint64_t *ns, heddle_error *err) {
  subject *s = ctx;
  (void)err;
  assert_true(s->measurements < MOST);
  s->numbers[s->measurements++] = number;
  *ns = s->measurements <= s->zeros ? 0 : number * s->ns_per_run;
  return s->measurements == s->fails_at ? HEDDLE_EFAILED : HEDDLE_OK;
}

static void sleep_for(void *ctx, double ms) {
  subject *s = ctx;
  s->slept_after[s->sleeps++] = s->told;
  s->slept_ms += ms;
}

static void tell(void *ctx, uint64_t i, uint64_t n) {
  subject *s = ctx;
  assert_true(i == s->told && i < n);
  s->told++;
}

static heddle_status take(subject *s, measure_rule rule, double *results, uint64_t *number) {
  const measure_subject calls = {s, warm_up, time_runs, sleep_for, tell};
  if (rule.zero_limit == 0) rule.zero_limit = 100;
  if (rule.repeats_to_cooldown == 0) rule.repeats_to_cooldown = 1;
  return measure(&rule, &calls, results, number, NULL);
}

/* One untimed run, then repeat measurements of number runs each; results are seconds of one run. */
static void counts_runs(void **state) {
  (void)state;
  subject s = {.ns_per_run = 3000};
  double results[4];
  uint64_t number = 0;
  assert_int_equal(take(&s, (measure_rule){.repeat = 4, .number = 7}, results, &number), HEDDLE_OK);
  assert_int_equal(s.warm_ups, 1);
  assert_int_equal(s.measurements, 4);
  assert_int_equal(s.sleeps, 0);
  assert_int_equal(number, 7);
  for (int i = 0; i < 4; i++) {
    assert_int_equal(s.numbers[i], 7);
    assert_float_equal(results[i], 3e-6, 1e-18);
  }
}

/* From 1 run of 1 ms to at least 10 ms: 10 / 1 + 1 = 11 runs are enough, and the next repeats begin with 11. */
static void grows_to_what_is_enough(void **state) {
  (void)state;
  subject s = {.ns_per_run = 1000000};
  double results[3];
  uint64_t number = 0;
  assert_int_equal(take(&s, (measure_rule){.repeat = 3, .number = 1, .min_repeat_ms = 10}, results, &number),
                   HEDDLE_OK);
  const uint64_t expected[] = {1, 11, 11, 11};
  assert_int_equal(s.measurements, 4);
  assert_memory_equal(s.numbers, expected, sizeof expected);
  assert_int_equal(number, 11);
  assert_float_equal(results[0], 1e-3, 1e-15);
}

/* What is nearly enough grows by 1.618, rounded down: 100 runs of 0.09 ms take 9 of 9.5 ms. 9.5 / 0.09 + 1 is 106. */
static void grows_by_the_golden_ratio_at_least(void **state) {
  (void)state;
  subject s = {.ns_per_run = 90000};
  double results[1];
  uint64_t number = 0;
  assert_int_equal(take(&s, (measure_rule){.repeat = 1, .number = 100, .min_repeat_ms = 9.5}, results, &number),
                   HEDDLE_OK);
  assert_int_equal(s.measurements, 2);
  assert_int_equal(s.numbers[1], 161);
  assert_int_equal(number, 161);
}

/* A measurement that takes just as long as asked is taken. */
static void is_content_with_the_time_itself(void **state) {
  (void)state;
  subject s = {.ns_per_run = 2000000};
  double results[1];
  uint64_t number = 0;
  assert_int_equal(take(&s, (measure_rule){.repeat = 1, .number = 5, .min_repeat_ms = 10}, results, &number),
                   HEDDLE_OK);
  assert_int_equal(s.measurements, 1);
}

/* Where no time passes the number stays, and there are so many measurements at most for a result. */
static void does_not_wait_for_a_clock_that_stands(void **state) {
  (void)state;
  subject s = {.zeros = UINT64_MAX};
  double results[2];
  uint64_t number = 0;
  const measure_rule rule = {.repeat = 2, .number = 3, .min_repeat_ms = 1, .zero_limit = 4};
  assert_int_equal(take(&s, rule, results, &number), HEDDLE_OK);
  assert_int_equal(s.measurements, 8);
  for (int i = 0; i < 8; i++) assert_int_equal(s.numbers[i], 3);
  assert_true(results[0] == 0 && results[1] == 0);

  subject late = {.zeros = 2, .ns_per_run = 1000000}; /* two without time, then it grows as ever */
  assert_int_equal(take(&late, rule, results, &number), HEDDLE_OK);
  assert_int_equal(late.measurements, 4);
  assert_int_equal(late.numbers[2], 3);

  subject no_wish = {.zeros = UINT64_MAX}; /* without min_repeat_ms one is enough */
  assert_int_equal(take(&no_wish, (measure_rule){.repeat = 2, .number = 3}, results, &number), HEDDLE_OK);
  assert_int_equal(no_wish.measurements, 2);
}

/* Between groups: of one, after each result but the last; of two in five, after the second and the fourth. */
static void cools_down_between_groups(void **state) {
  (void)state;
  double results[5];
  uint64_t number = 0;
  subject s = {.ns_per_run = 1};
  measure_rule rule = {.repeat = 3, .number = 1, .cooldown_ms = 20, .repeats_to_cooldown = 1};
  assert_int_equal(take(&s, rule, results, &number), HEDDLE_OK);
  assert_int_equal(s.sleeps, 2);
  assert_true(s.slept_after[0] == 1 && s.slept_after[1] == 2);
  assert_float_equal(s.slept_ms, 40, 0);

  subject pairs = {.ns_per_run = 1};
  rule.repeat = 5;
  rule.repeats_to_cooldown = 2;
  assert_int_equal(take(&pairs, rule, results, &number), HEDDLE_OK);
  assert_int_equal(pairs.sleeps, 2);
  assert_true(pairs.slept_after[0] == 2 && pairs.slept_after[1] == 4);
}

static void ends_with_the_first_failure(void **state) {
  (void)state;
  subject s = {.ns_per_run = 1, .fails_at = 2};
  double results[5];
  uint64_t number = 0;
  assert_int_equal(take(&s, (measure_rule){.repeat = 5, .number = 1, .min_repeat_ms = 9}, results, &number),
                   HEDDLE_EFAILED);
  assert_int_equal(s.measurements, 2);
}

/* 2, 4, 4, 4, 5, 5, 7, 9: mean 5, population's standard deviation 2. */
static void summarises(void **state) {
  (void)state;
  const double results[] = {9, 2, 4, 5, 4, 7, 4, 5};
  double sorted[8];
  measure_summary m = measure_summarise(results, sorted, 8);
  assert_float_equal(m.mean, 5, 1e-12);
  assert_float_equal(m.median, 4.5, 1e-12);
  assert_float_equal(m.std, 2, 1e-12);
  assert_float_equal(m.min, 2, 0);
  assert_float_equal(m.max, 9, 0);
  m = measure_summarise(results, sorted, 3); /* 9, 2, 4 */
  assert_float_equal(m.median, 4, 0);
  m = measure_summarise(results, sorted, 1);
  assert_true(m.mean == 9 && m.median == 9 && m.std == 0 && m.min == 9 && m.max == 9);
}

CASES(CASE(counts_runs), CASE(grows_to_what_is_enough), CASE(grows_by_the_golden_ratio_at_least),
      CASE(is_content_with_the_time_itself), CASE(does_not_wait_for_a_clock_that_stands),
      CASE(cools_down_between_groups), CASE(ends_with_the_first_failure), CASE(summarises))
