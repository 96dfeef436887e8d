/* plugins/common/check/offer.h: what the core, its check layer and the conformance kit say alike of an offer that cannot be
 * read. */
#ifndef HEDDLE_PLUGINS_COMMON_CHECK_OFFER_H
#define HEDDLE_PLUGINS_COMMON_CHECK_OFFER_H

#include "heddle/plugin.h"

/* What is wrong, NULL where the members up to those of ABI 1.0 can be read. */
static inline const char *offer_fault(const heddle_poffer *offer) {
  return HEDDLE_HAS(heddle_poffer, offer, cost_ns) ? NULL : "an offer is NULL or its struct_size is not set";
}

#endif
