/* An allocation over the limit gives less than was asked for.
 * caught by: memory/limit
 * and by: memory/absurd errors
 * says: where HEDDLE_ELIMIT is promised */
#include "base.h"

static heddle_status alloc_less(heddle_pdevice *dev, const heddle_pmemory_desc *desc, heddle_pbuffer **out,
                                heddle_error *err) {
  heddle_pmemory_desc less = *desc;
  if (less.bytes > BASE_MAX_BUFFER) less.bytes = 4096;
  return base_memory_alloc(dev, &less, out, err);
}

#define base_memory_alloc alloc_less
#include "tables.h"
