/* Each fence is signalled twice.
 * caught by: fences/signal-once
 * and by: threads/signals, health/lost-fences, health/lost-later, health/reset
 * says: the plugin called for a fence 2 times */
#include "base.h"

static heddle_status run_signal(heddle_pstream *stream, base_task *task, heddle_error *err) {
  base_run_signal(stream, task, err);
  return base_run_signal(stream, task, err);
}

static heddle_status signal(heddle_pstream *stream, heddle_pfence fence, uint64_t value, heddle_error *err) {
  base_task task = {.run = run_signal, .always = true, .fence = fence, .value = value};
  return base_push(stream, &task, err);
}

#define base_fence_signal signal
#include "tables.h"
