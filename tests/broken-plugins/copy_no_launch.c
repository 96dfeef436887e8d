/* A launch cannot be bound to a stream of kind COPY.
 * caught by: streams/of-copy-run
 * says: op.bind */
#include "base.h"

static heddle_status mine_op_bind(heddle_pop *op, heddle_pstream *stream, const heddle_pbind *operands,
                                  heddle_plaunch **out, heddle_error *err) {
  if (stream->kind == HEDDLE_STREAM_COPY) return p_fail(err, HEDDLE_EUNSUPPORTED, 0, "a stream for copies");
  return base_op_bind(op, stream, operands, out, err);
}

#define base_op_bind mine_op_bind
#include "tables.h"
