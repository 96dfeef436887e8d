/* Each buffer leaves a page of shared memory mapped.
 * caught by: leaks/buffers
 * and by: leaks/%
 * says: mappings */
#define _GNU_SOURCE
#include "base.h"

#include <sys/mman.h>

static heddle_status mine_memory_alloc(heddle_pdevice *dev, const heddle_pmemory_desc *desc, heddle_pbuffer **out,
                                       heddle_error *err) {
  if (mmap(NULL, 4096, PROT_READ, MAP_SHARED | MAP_ANONYMOUS, -1, 0) == MAP_FAILED)
    return p_fail(err, HEDDLE_ENOMEM, 0, "no page");
  return base_memory_alloc(dev, desc, out, err);
}

#define base_memory_alloc mine_memory_alloc
#include "tables.h"
