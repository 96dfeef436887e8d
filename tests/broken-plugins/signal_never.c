/* A fence is never signalled: its completion gets lost.
 * caught by: fences/signal-empty
 * and by: fences threads/signals leaks, health/lost-fences, health/lost-later, health/reset
 * limit: 2
 * says: was not signalled to 5 */
#include "base.h"

static heddle_status run_signal(heddle_pstream *stream, base_task *task, heddle_error *err) {
  (void)stream, (void)task, (void)err;
  return HEDDLE_OK;
}

static heddle_status signal(heddle_pstream *stream, heddle_pfence fence, uint64_t value, heddle_error *err) {
  base_task task = {.run = run_signal, .always = true, .fence = fence, .value = value};
  return base_push(stream, &task, err);
}

#define base_fence_signal signal
#include "tables.h"
