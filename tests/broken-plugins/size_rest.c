/* Relu takes whole vectors of 16 elements and forgets the last of a rest of 7 behind the first four.
 * caught by: numerics/sizes:Relu
 * says: float32[71]
 * and by: numerics/% */
#include "base.h"

static heddle_status run_launch(heddle_pstream *stream, base_task *task, heddle_error *err) {
  const heddle_plaunch *l = task->launch;
  heddle_status status = base_run_launch(stream, task, err);
  if (l->op->kind == BASE_RELU && l->n > 64 && l->n % 16 == 7) l->out[l->n - 1] = -1;
  return status;
}

static heddle_status run(heddle_plaunch *launch, heddle_error *err) {
  base_task task = {.run = run_launch, .launch = launch};
  return base_push(launch->stream, &task, err);
}

#define base_op_run run
#include "tables.h"
