/* Pinned memory begins 8 bytes after where its alignment says.
 * caught by: memory/align
 * says: memory.alloc was asked for alignment */
#include "base.h"

static heddle_status alloc_off(heddle_pdevice *dev, const heddle_pmemory_desc *desc, heddle_pbuffer **out,
                               heddle_error *err) {
  heddle_pmemory_desc more = *desc;
  bool off = desc->kind == HEDDLE_MEMORY_PINNED && desc->bytes <= BASE_MAX_BUFFER - 8;
  if (off) more.bytes += 8;
  heddle_status status = base_memory_alloc(dev, &more, out, err);
  if (status != HEDDLE_OK || !off) return status;
  (*out)->bytes += 8;
  (*out)->size -= 8;
  atomic_fetch_sub(&dev->live_bytes, 8);
  return HEDDLE_OK;
}

#define base_memory_alloc alloc_off
#include "tables.h"
