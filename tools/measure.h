/* tools/measure.h: how heddle bench takes times: the rule of repeats and of the number of runs in each, and what is
 * said of the results. What is run, the clock and the sleep are the caller's, so that tests have their own. */
#ifndef HEDDLE_TOOLS_MEASURE_H
#define HEDDLE_TOOLS_MEASURE_H

#include <stddef.h>
#include <stdint.h>

#include "heddle/status.h"

typedef struct measure_rule {
  uint64_t repeat;              /* measurements, at least 1 */
  uint64_t number;              /* runs in the first one, at least 1 */
  double min_repeat_ms;         /* a measurement that is shorter is taken again with more runs */
  uint64_t zero_limit;          /* most of them, for one result, in which no time passes */
  double cooldown_ms;           /* of sleep between groups of measurements */
  uint64_t repeats_to_cooldown; /* in a group, at least 1 */
} measure_rule;

typedef struct measure_subject {
  void *ctx;
  /* Runs once; the time is not looked at. */
  heddle_status (*warm_up)(void *ctx, heddle_error *err);
  /* Runs so many times and gives the nanoseconds of all of them together. */
  heddle_status (*time)(void *ctx, uint64_t number, uint64_t *ns, heddle_error *err);
  void (*sleep)(void *ctx, double ms);
  /* Before result i of n is measured. */
  void (*tell)(void *ctx, uint64_t i, uint64_t n);
} measure_subject;

/* Warms up once, then measures rule->repeat times; results gets the seconds of one run from each, *number the runs in
 * the last measurement. One that takes less than min_repeat_ms is taken again with max(min_repeat_ms / (its time of one
 * run) + 1, 1.618 times as many) runs, rounded down; with as many where the clock saw no time pass, which ends after
 * zero_limit of those. The number stays grown. Sleeps between groups, not before the first or after the last. */
heddle_status measure(const measure_rule *rule, const measure_subject *subject, double *results, uint64_t *number,
                      heddle_error *err);

typedef struct measure_summary {
  double mean, median, std, min, max;
} measure_summary;

/* std is that of the population. sorted is scratch of n, at least 1. */
measure_summary measure_summarise(const double *results, double *sorted, size_t n);

#endif
