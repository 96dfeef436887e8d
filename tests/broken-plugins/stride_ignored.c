/* The values of a region are read at the distance that this header has.
 * caught by: query/newer
 * and by: query/older
 * says: newer */
#include "base.h"

static heddle_status mine_op_query(heddle_pinstance *self, uint32_t index, const heddle_pregion *region,
                                   heddle_offer_fn offer, void *sink, heddle_error *err) {
  heddle_pregion mine = *region;
  mine.values.stride = sizeof(heddle_pvalue);
  region = &mine;
  return base_op_query(self, index, region, offer, sink, err);
}

#define base_op_query mine_op_query
#include "tables.h"
