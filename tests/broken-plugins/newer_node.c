/* The version of a node is read whether the host has it or not.
 * caught by: query/older
 * says: older */
#include "base.h"

static heddle_status mine_op_query(heddle_pinstance *self, uint32_t index, const heddle_pregion *region,
                                   heddle_offer_fn offer, void *sink, heddle_error *err) {
  const heddle_pnode *node = region->nodes.data;
  if (node->since_version == 0 || node->since_version > 100)
    return p_fail(err, HEDDLE_EUNSUPPORTED, 0, "node '%s': %s of no version", node->name, node->op);
  return base_op_query(self, index, region, offer, sink, err);
}

#define base_op_query mine_op_query
#include "tables.h"
