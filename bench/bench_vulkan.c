/* bench/bench_vulkan.c: a chain of 1,000 Adds on the first Vulkan device, through the public API and by hand: one command
 * buffer that was recorded before (hand_vulkan.h).
 * Of the lines on standard input, "heddle RUNS" and "hand RUNS" are answered with the nanoseconds of one run, the mean
 * over RUNS, and "compare 1" with the largest difference of both results. Both compute 1,024 floats.
 * Without Vulkan it ends with status 77. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef HEDDLE_BENCH_VULKAN
#include "bench/bench.h"
#include "hand_chain.h"
#include "hand_vulkan.h"

enum { NODES = 1000, WIDTH = 1024 };

static void run_once(heddle_executor *ex) {
  heddle_error err;
  check(heddle_executor_run(ex, HEDDLE_FOREVER, &err), &err);
}

static double timed(const char *who, heddle_executor *ex, int runs) {
  const int by_hand = strcmp(who, "hand") == 0;
  const double start = now_ns();
  for (int i = 0; i < runs; i++) {
    if (by_hand) hand_vk_run();
    else run_once(ex);
  }
  return (now_ns() - start) / runs;
}

static double difference(heddle_executor *ex) {
  run_once(ex);
  hand_vk_run();
  return difference_to(ex, hand_vk_result(), WIDTH);
}

int main(void) {
  static const char *const devices[2] = {"vulkan:0", "vulkan:0"};
  heddle_error err;
  heddle_context *ctx;
  char line[128], name[64];
  int runs;
  hand_vk_prepare(NODES, WIDTH, HAND_CHAIN_VALUE);
  heddle_setting settings[] = {{"vulkan.fuse", "0"}}; /* a step a node is what is measured */
  check(heddle_context_create(settings, 1, NULL, NULL, &ctx, &err), &err);
  heddle_executor *ex = hand_chain(ctx, NODES, WIDTH, devices);
  while (fgets(line, sizeof line, stdin) != NULL && sscanf(line, "%63s %d", name, &runs) == 2 && runs > 0) {
    printf("%.9g\n", strcmp(name, "compare") == 0 ? difference(ex) : timed(name, ex, runs));
    fflush(stdout);
  }
  heddle_executor_release(ex);
  heddle_context_release(ctx);
  return 0;
}
#else
int main(void) {
  fprintf(stderr, "bench_vulkan: built without Vulkan\n");
  return 77;
}
#endif
