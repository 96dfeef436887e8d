/* Of a row only as many elements are added as a grid has groups.
 * caught by: numerics/run:Add
 * and by: numerics/%
 * says: result 0[65535] */
#include "base.h"

static heddle_status run_launch(heddle_pstream *stream, base_task *task, heddle_error *err) {
  heddle_plaunch launch = *task->launch;
  base_task part = *task;
  if (launch.op->kind == BASE_ADD && launch.n > 65535) launch.n = 65535;
  part.launch = &launch;
  return base_run_launch(stream, &part, err);
}

static heddle_status run(heddle_plaunch *launch, heddle_error *err) {
  base_task task = {.run = run_launch, .launch = launch};
  return base_push(launch->stream, &task, err);
}

#define base_op_run run
#include "tables.h"
