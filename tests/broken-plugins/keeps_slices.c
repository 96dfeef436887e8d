/* A launch keeps the slices of its operands.
 * caught by: numerics/kept
 * and by: numerics/%, regions/%, layouts/%, calls/run%, threads/%, leaks/%, process/%, streams/of-copy-run, capture/%, errors/%
 * says: op.run */
#include "base.h"

static heddle_status mine_op_bind(heddle_pop *op, heddle_pstream *stream, const heddle_pbind *operands,
                                  heddle_plaunch **out, heddle_error *err) {
  const heddle_status status = base_op_bind(op, stream, operands, out, err);
  if (status == HEDDLE_OK) (*out)->more = operands->outputs;
  return status;
}

static heddle_status mine_op_run(heddle_plaunch *launch, heddle_error *err) {
  const heddle_pslice *result = launch->more;
  if (result->bytes != 0 && (char *)launch->out != result->buffer->bytes + result->offset)
    return p_fail(err, HEDDLE_EFAILED, 0, "another place");
  return base_op_run(launch, err);
}

#define base_op_bind mine_op_bind
#define base_op_run mine_op_run
#include "tables.h"
