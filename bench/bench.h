/* bench/bench.h: what the benchmark programs share. Public headers only, so that a program of its own can use it. */
#ifndef BENCH_BENCH_H
#define BENCH_BENCH_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "heddle/heddle.h"

/* Ends the program where a call failed: with 77 where there is no such device, which is no fault of the program's. */
static inline void check(heddle_status s, const heddle_error *err) {
  if (s == HEDDLE_OK) return;
  fprintf(stderr, "%s: %s\n", heddle_status_name(s), err->text);
  exit(s == HEDDLE_ENODEV || s == HEDDLE_ENOTFOUND ? 77 : 1);
}

static inline double now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

/* The largest difference between output 0 of the last run and theirs, n floats; NaN where one of them is. */
static inline double difference_to(heddle_executor *ex, const float *theirs, int n) {
  heddle_error err;
  heddle_tensor *t;
  double most = 0;
  check(heddle_executor_view_output(ex, 0, &t, &err), &err);
  const float *ours = heddle_tensor_data(t);
  for (int i = 0; i < n; i++) {
    const double d = fabs((double)ours[i] - (double)theirs[i]);
    if (!(d <= most)) most = d;
  }
  heddle_tensor_release(t);
  return most;
}

#endif
