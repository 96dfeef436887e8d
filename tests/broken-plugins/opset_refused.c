/* Nodes of opsets that are newer than 28 are refused, whatever their definition.
 * caught by: query/opsets
 * says: which has the same definition */
#include "base.h"

static heddle_status query(heddle_pinstance *self, uint32_t index, const heddle_pregion *region, heddle_offer_fn offer,
                           void *sink, heddle_error *err) {
  const heddle_pnode *node = region->nodes.data;
  if (node->domain[0] == '\0' && node->opset > 28)
    return p_fail(err, HEDDLE_EUNSUPPORTED, 0, "node '%s': %s of opset %u", node->name, node->op, node->opset);
  return base_op_query(self, index, region, offer, sink, err);
}

#define base_op_query query
#include "tables.h"
