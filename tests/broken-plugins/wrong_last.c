/* The last element of what MatMul gives is wrong by a tenth.
 * caught by: numerics/run:MatMul
 * and by: numerics
 * says: result 0[4,2] is */
#include "base.h"

static heddle_status run_wrong(heddle_pstream *stream, base_task *task, heddle_error *err) {
  heddle_status status = base_run_launch(stream, task, err);
  const heddle_pop *op = task->launch->op;
  if (op->kind == BASE_MATMUL && op->m * op->n != 0) {
    float *last = &task->launch->out[op->m * op->n - 1];
    *last = *last * 1.1f + 0.1f;
  }
  return status;
}

static heddle_status run(heddle_plaunch *launch, heddle_error *err) {
  base_task task = {.run = run_wrong, .launch = launch};
  return base_push(launch->stream, &task, err);
}

#define base_op_run run
#include "tables.h"
