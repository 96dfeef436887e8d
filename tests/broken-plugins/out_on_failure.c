/* An allocation that fails leaves an address in its out-argument.
 * caught by: errors/outs
 * and by: memory/limit memory/absurd errors, health/lost%
 * says: out-argument */
#include "base.h"

static heddle_status alloc_garbage(heddle_pdevice *dev, const heddle_pmemory_desc *desc, heddle_pbuffer **out,
                                   heddle_error *err) {
  heddle_status status = base_memory_alloc(dev, desc, out, err);
  if (status != HEDDLE_OK) *out = (heddle_pbuffer *)(void *)dev;
  return status;
}

#define base_memory_alloc alloc_garbage
#include "tables.h"
