/* The hundredth run of a launch is a run of nothing: a ring of a hundred places loses one.
 * caught by: numerics/repeats
 * says: result 0[
 * and by: numerics/% */
#include "base.h"

static heddle_status run_launch(heddle_pstream *stream, base_task *task, heddle_error *err) {
  heddle_plaunch *l = task->launch;
  if (l->op->kind == BASE_RELU && ++l->m % 100 == 0) return HEDDLE_OK; /* of Relu no size is m */
  return base_run_launch(stream, task, err);
}

static heddle_status run(heddle_plaunch *launch, heddle_error *err) {
  base_task task = {.run = run_launch, .launch = launch};
  return base_push(launch->stream, &task, err);
}

#define base_op_run run
#include "tables.h"
