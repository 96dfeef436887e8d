/* bench/cl_check.h: ends a program where a call of OpenCL failed: with 77 where there is no platform. */
#ifndef BENCH_CL_CHECK_H
#define BENCH_CL_CHECK_H

#include <CL/cl.h>
#include <stdio.h>
#include <stdlib.h>

static inline void cl_check(cl_int code, const char *what) {
  if (code == CL_SUCCESS) return;
  fprintf(stderr, "%s: %d\n", what, code);
  exit(code == -1001 ? 77 : 1);
}

#endif
