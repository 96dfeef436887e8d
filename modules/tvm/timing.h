/* modules/tvm/timing.h: repeated measurements as TVM's time evaluators take them: number runs a measurement, repeat
 * measurements, more runs where they were too short, pauses between. */
#ifndef HEDDLE_MODULES_TVM_TIMING_H
#define HEDDLE_MODULES_TVM_TIMING_H

#include "modules/tvm/args.h"

typedef struct heddle__timing {
  int64_t number, repeat, min_repeat_ms, limit_zero, cooldown_ms, repeats_to_cooldown;
  int (*before)(void *user); /* called before each repeat, outside of its time; -1 with words. NULL: nothing is */
} heddle__timing;

/* From position i on, in that order; what is not there is 1, 1, 0, 100, 0, 1. False with words. */
bool heddle__timing_args(const heddle__args *a, int32_t i, heddle__timing *out);

/* Runs something number times and says how long that took in ns. -1 with words. */
typedef int (*heddle__measure_fn)(void *user, int64_t number, uint64_t *ns);

/* A measurement that counts: number is what its time is to be divided by. */
typedef void (*heddle__measured_fn)(void *user, int64_t repeat, int64_t number, uint64_t ns);

/* -1 where a measurement failed. Blocks. */
int heddle__timing_run(const heddle__timing *t, heddle__measure_fn measure, heddle__measured_fn measured, void *user);

/* Nanoseconds of a clock that only goes forward. */
uint64_t heddle__timing_now(void);

#endif
