/* tests/stress/test_memory.c: every single allocation of a whole life fails once, from the creation of the context to
 * the last output: libheddle's own, and those that plugins take from their host, which are counted in the same place.
 * tests/executor/test_faults.c does this for an open context and for every call of a device.
 * labels: slow timeout: 600
 */
#include "cases.h"

#include "core/alloc.h"
#include "job.h"

static heddle_status life(const char *devices, heddle_error *err) {
  const heddle_setting settings[] = {{"log", "off"}, {"sim.devices", "2"}};
  heddle_context *ctx = NULL;
  heddle_status s = heddle_context_create(settings, 2, NULL, NULL, &ctx, err);
  if (s == HEDDLE_OK) s = job_whole(ctx, devices, 1, err);
  heddle_context_release(ctx);
  return s;
}

enum { IN_A_ROW = 300 }; /* a context does without a plugin that finds no memory: one success is not the end */

static void every_allocation(const char *devices) {
  heddle_error err = {0};
  if (life(devices, &err) != HEDDLE_OK) fail_msg("%s", err.text); /* what is made once in a process is made now */
  size_t before = heddle__alloc_live();
  unsigned failures = 0, good = 0;
  for (unsigned n = 1; n < 100000; n++) {
    memset(&err, 0, sizeof err);
    heddle__alloc_fail_at(n);
    heddle_status s = life(devices, &err);
    heddle__alloc_fail_at(0);
    if (s != HEDDLE_OK && err.text[0] == '\0') fail_msg("allocation %u: status %d without words", n, s);
    if (s != HEDDLE_OK && err.status != s) fail_msg("allocation %u: status %d, error %d", n, s, err.status);
    if (heddle__alloc_live() != before)
      fail_msg("allocation %u (%s): %zu blocks are left over", n, err.text, heddle__alloc_live() - before);
    failures += s != HEDDLE_OK;
    good = s == HEDDLE_OK ? good + 1 : 0;
    if (good == IN_A_ROW) break;
  }
  if (failures < 200) fail_msg("only %u allocations failed", failures);
  printf("%u allocations failed\n", failures);
  if (life(devices, &err) != HEDDLE_OK) fail_msg("afterwards: %s", err.text);
}

static void on_all_devices(void **state) {
  (void)state;
  every_allocation(NULL);
}

static void on_one_device(void **state) {
  (void)state;
  every_allocation("sim:1");
}

CASES(CASE(on_all_devices), CASE_TWICE(on_one_device))
