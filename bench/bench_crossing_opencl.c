/* bench/bench_crossing_opencl.c: cpu and the first OpenCL device alternating 100 times, by Heddle with copies, by Heddle
 * with shared pages, and by two programs written by hand on OpenCL.
 * Usage: bench_crossing_opencl PLUGIN_FOLDER ELEMENTS; then on standard input "WHAT COUNT" with WHAT one of heddle,
 * shared, blocking, callback, answered with nanoseconds of 100 alternations, or "copied 1" with the bytes that a run
 * with shared pages copies. Without OpenCL it ends with status 77. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef HEDDLE_BENCH_OPENCL
#include "hand_chain.h"
#include "hand_host.h"
#include "hand_opencl.h"

enum { PAIRS = 100 };

static heddle_executor *prepare(heddle_context **ctx, const char *unified, int64_t elements) {
  static const char *const devices[2] = {"cpu", "opencl:0"};
  heddle_error err;
  heddle_setting settings[] = {{"threads", "1"}, {"opencl.unified", unified}};
  check(heddle_context_create(settings, 2, NULL, NULL, ctx, &err), &err);
  return hand_chain(*ctx, 2 * PAIRS, elements, devices);
}

static void run_once(heddle_executor *ex) {
  heddle_error err;
  check(heddle_executor_run(ex, HEDDLE_FOREVER, &err), &err);
}

static double bytes_copied(heddle_executor *ex) {
  heddle_error err;
  heddle_executor_stats before = {.struct_size = sizeof before}, after = {.struct_size = sizeof after};
  check(heddle_executor_get_stats(ex, &before, &err), &err);
  run_once(ex);
  check(heddle_executor_get_stats(ex, &after, &err), &err);
  return (double)(after.bytes_copied - before.bytes_copied);
}

int main(int argc, char **argv) {
  heddle_context *copying, *sharing;
  char line[128], what[32];
  int count;
  const int64_t elements = argc == 3 ? strtoll(argv[2], NULL, 10) : 0;
  if (elements <= 0) {
    fprintf(stderr, "usage: bench_crossing_opencl PLUGIN_FOLDER ELEMENTS\n");
    return 2;
  }
  heddle_executor *copies = prepare(&copying, "0", elements), *shares = prepare(&sharing, "1", elements);
  hand_cl_prepare(argv[1], elements);
  while (fgets(line, sizeof line, stdin) != NULL && sscanf(line, "%31s %d", what, &count) == 2 && count > 0) {
    const double start = now_ns();
    double copied = -1;
    for (int i = 0; i < count; i++) {
      if (strcmp(what, "copied") == 0) copied = bytes_copied(shares);
      else if (strcmp(what, "heddle") == 0) run_once(copies);
      else if (strcmp(what, "shared") == 0) run_once(shares);
      else
        for (int k = 0; k < PAIRS; k++) hand_cl_pair(strcmp(what, "blocking") == 0);
    }
    printf("%.1f\n", copied >= 0 ? copied : (now_ns() - start) / count);
    fflush(stdout);
  }
  heddle_executor_release(copies);
  heddle_executor_release(shares);
  heddle_context_release(copying);
  heddle_context_release(sharing);
  return 0;
}
#else
int main(void) {
  fprintf(stderr, "built without OpenCL\n");
  return 77;
}
#endif
