/* An Add is wrong once a Relu was prepared in the same process: no case alone sees it (tests/conformance/test_causes.py). */
#include "base.h"

static atomic_bool relu_was;

static heddle_status prepare(heddle_pdevice *dev, const heddle_pregion *region, uint32_t offer, heddle_pop **out,
                             heddle_error *err) {
  heddle_status status = base_op_prepare(dev, region, offer, out, err);
  if (status == HEDDLE_OK && (*out)->kind == BASE_RELU) atomic_store(&relu_was, true);
  return status;
}

static heddle_status run_launch(heddle_pstream *stream, base_task *task, heddle_error *err) {
  const heddle_plaunch *l = task->launch;
  heddle_status status = base_run_launch(stream, task, err);
  if (l->op->kind == BASE_ADD && l->n > 0 && atomic_load(&relu_was)) l->out[0] += 1;
  return status;
}

static heddle_status run(heddle_plaunch *launch, heddle_error *err) {
  base_task task = {.run = run_launch, .launch = launch};
  return base_push(launch->stream, &task, err);
}

#define base_op_prepare prepare
#define base_op_run run
#include "tables.h"
