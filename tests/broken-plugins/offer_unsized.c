/* An offer whose struct_size is not set.
 * caught by: query/offers
 * and by: query, numerics, calls, leaks, process/calls, threads, errors
 * says: an offer is NULL or its struct_size is not set */
#include "base.h"

typedef struct sink {
  heddle_offer_fn offer;
  void *sink;
} sink;

static heddle_status unsized(void *to, const heddle_poffer *offer, heddle_error *err) {
  heddle_poffer mine = *offer;
  mine.struct_size = 0;
  return ((sink *)to)->offer(((sink *)to)->sink, &mine, err);
}

static heddle_status query(heddle_pinstance *self, uint32_t index, const heddle_pregion *region, heddle_offer_fn offer,
                           void *to, heddle_error *err) {
  sink both = {offer, to};
  return base_op_query(self, index, region, unsized, &both, err);
}

#define base_op_query query
#include "tables.h"
