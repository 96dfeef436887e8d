/* A fence is raised one higher than was asked.
 * caught by: fences/signal-empty
 * and by: fences threads/signals, health/lost-fences, health/lost-later
 * says: a fence signalled to 5 is at 6 */
#include "base.h"

static heddle_status run_signal(heddle_pstream *stream, base_task *task, heddle_error *err) {
  task->value++;
  return base_run_signal(stream, task, err);
}

static heddle_status signal(heddle_pstream *stream, heddle_pfence fence, uint64_t value, heddle_error *err) {
  base_task task = {.run = run_signal, .always = true, .fence = fence, .value = value};
  return base_push(stream, &task, err);
}

#define base_fence_signal signal
#include "tables.h"
