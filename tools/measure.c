/* tools/measure.c: the rule by which heddle bench takes times, which is that of TVM's time_evaluator but for when it
 * sleeps, and the statistics of the results. */
#include "measure.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define GROWTH 1.618
#define MOST_RUNS 1e15 /* a double counts that far one by one */

static uint64_t grown(uint64_t number, double took_ms, double wanted_ms) {
  double enough = wanted_ms / (took_ms / (double)number) + 1, more = (double)number * GROWTH;
  if (enough < more) enough = more;
  return enough < MOST_RUNS ? (uint64_t)enough : (uint64_t)MOST_RUNS;
}

heddle_status measure(const measure_rule *rule, const measure_subject *subject, double *results, uint64_t *number,
                      heddle_error *err) {
  heddle_status s = subject->warm_up(subject->ctx, err);
  *number = rule->number;
  for (uint64_t i = 0; i < rule->repeat && s == HEDDLE_OK; i++) {
    if (i > 0 && rule->cooldown_ms > 0 && i % rule->repeats_to_cooldown == 0)
      subject->sleep(subject->ctx, rule->cooldown_ms);
    subject->tell(subject->ctx, i, rule->repeat);
    double took_ms = 0;
    uint64_t zeros = 0;
    do {
      uint64_t ns = 0;
      if (took_ms > 0) *number = grown(*number, took_ms, rule->min_repeat_ms);
      s = subject->time(subject->ctx, *number, &ns, err);
      zeros += ns == 0;
      took_ms = (double)ns / 1e6;
    } while (s == HEDDLE_OK && took_ms < rule->min_repeat_ms && zeros < rule->zero_limit);
    results[i] = took_ms / 1e3 / (double)*number;
  }
  return s;
}

static int by_size(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return x < y ? -1 : x > y;
}

measure_summary measure_summarise(const double *results, double *sorted, size_t n) {
  measure_summary m = {0};
  memcpy(sorted, results, n * sizeof *sorted);
  qsort(sorted, n, sizeof *sorted, by_size);
  for (size_t i = 0; i < n; i++) m.mean += sorted[i] / (double)n;
  for (size_t i = 0; i < n; i++) m.std += (sorted[i] - m.mean) * (sorted[i] - m.mean) / (double)n;
  m.std = sqrt(m.std);
  m.median = (sorted[(n - 1) / 2] + sorted[n / 2]) / 2;
  m.min = sorted[0];
  m.max = sorted[n - 1];
  return m;
}
