/* A refused allocation is printed to standard error.
 * caught by: process/output
 * says: standard outputs */
#include "base.h"

#include <stdio.h>

static heddle_status mine_memory_alloc(heddle_pdevice *dev, const heddle_pmemory_desc *desc, heddle_pbuffer **out,
                                       heddle_error *err) {
  const heddle_status status = base_memory_alloc(dev, desc, out, err);
  if (status != HEDDLE_OK) fprintf(stderr, "status %d\n", status);
  return status;
}

#define base_memory_alloc mine_memory_alloc
#include "tables.h"
