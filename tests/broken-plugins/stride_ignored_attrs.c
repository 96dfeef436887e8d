/* The nodes of a region are read at the distance that this header has.
 * caught by: query/newer
 * and by: query/older
 * says: newer host */
#include "base.h"

static heddle_status mine_op_query(heddle_pinstance *self, uint32_t index, const heddle_pregion *region,
                                   heddle_offer_fn offer, void *sink, heddle_error *err) {
  const heddle_pnode *node = region->nodes.data;
  if (region->nodes.stride != sizeof *node || node->struct_size != sizeof *node)
    return p_fail(err, HEDDLE_EUNSUPPORTED, 0, "node '%s': %s of another header", node->name, node->op);
  return base_op_query(self, index, region, offer, sink, err);
}

#define base_op_query mine_op_query
#include "tables.h"
