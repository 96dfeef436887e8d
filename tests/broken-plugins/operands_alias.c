/* Add gives its operand where both operands are the same memory.
 * caught by: numerics/same-operands
 * says: both operands in the same memory
 * and by: numerics/% */
#include "base.h"

static heddle_status run_launch(heddle_pstream *stream, base_task *task, heddle_error *err) {
  const heddle_plaunch *l = task->launch;
  heddle_status status = base_run_launch(stream, task, err);
  for (uint64_t i = 0; l->op->kind == BASE_ADD && l->a == l->b && i < l->n; i++) l->out[i] = l->a[i];
  return status;
}

static heddle_status run(heddle_plaunch *launch, heddle_error *err) {
  base_task task = {.run = run_launch, .launch = launch};
  return base_push(launch->stream, &task, err);
}

#define base_op_run run
#include "tables.h"
