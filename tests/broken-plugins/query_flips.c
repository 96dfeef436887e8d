/* Every second question about an operator is answered with no.
 * caught by: query/pure
 * and by: query numerics layouts
 * says: query gives two answers */
#include "base.h"

static _Atomic unsigned asked;

static heddle_status query(heddle_pinstance *self, uint32_t index, const heddle_pregion *region, heddle_offer_fn offer,
                           void *sink, heddle_error *err) {
  if (atomic_fetch_add(&asked, 1) % 2 == 1) return p_fail(err, HEDDLE_EUNSUPPORTED, 0, "not this time");
  return base_op_query(self, index, region, offer, sink, err);
}

#define base_op_query query
#include "tables.h"
