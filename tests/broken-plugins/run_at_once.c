/* A launch runs in the call of op.run, before what its stream has ahead of it.
 *
 * caught by: streams/order-runs
 * says: a launch between two copies of a stream
 * and by: numerics/% calls/% capture/% streams/% fences/% events/%
 */
#include "base.h"

static heddle_status mine_op_run(heddle_plaunch *launch, heddle_error *err) {
  base_task task = {.launch = launch};
  heddle_status status = base_check(launch->op->dev, err);
  return status == HEDDLE_OK ? base_run_launch(launch->stream, &task, err) : status;
}

#define base_op_run mine_op_run
#include "tables.h"
