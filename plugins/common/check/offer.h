/* plugins/common/check/offer.h: what the core, its check layer, the conformance kit and plugins say alike of an offer: that
 * it cannot be read, and of its lists of entries, which begin with an input and an output. */
#ifndef HEDDLE_PLUGINS_COMMON_CHECK_OFFER_H
#define HEDDLE_PLUGINS_COMMON_CHECK_OFFER_H

#include <stdbool.h>
#include <string.h>

#include "heddle/plugin.h"

/* Numbers of an entry of in_place and of extends. */
enum { OFFER_IN_PLACE = 2, OFFER_EXTENDS = 3 };

/* What is wrong, NULL where the members up to those of ABI 1.0 can be read. */
static inline const char *offer_fault(const heddle_poffer *offer) {
  return HEDDLE_HAS(heddle_poffer, offer, cost_ns) ? NULL : "an offer is NULL or its struct_size is not set";
}

/* The first entry that names an input or output which the region does not have; n where there is none. */
static inline uint64_t offer_bad_entry(const heddle_pregion *r, const int32_t *entries, uint64_t n, uint32_t width) {
  uint64_t i = 0;
  while (i < n && entries[width * i] >= 0 && (uint32_t)entries[width * i] < r->n_inputs &&
         entries[width * i + 1] >= 0 && (uint32_t)entries[width * i + 1] < r->n_outputs)
    i++;
  return i;
}

/* Whether all of some entries are among others. */
static inline bool offer_has_all(const int32_t *all, uint64_t n_all, const int32_t *some, uint64_t n_some,
                                 uint32_t width) {
  for (uint64_t i = 0; i < n_some; i++) {
    uint64_t k = 0;
    while (k < n_all && memcmp(all + width * k, some + width * i, width * sizeof *all) != 0) k++;
    if (k == n_all) return false;
  }
  return true;
}

#endif
