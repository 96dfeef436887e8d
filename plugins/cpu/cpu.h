/* The cpu plugin's own types, shared by its files. Every object knows its device, whose counters say what is alive;
 * what is not inline here is in the file of its noun. */
#ifndef HEDDLE_PLUGINS_CPU_CPU_H
#define HEDDLE_PLUGINS_CPU_CPU_H

#include "plugins/common/perror.h"

#include <stdatomic.h>
#include <stdbool.h>

/* What operators get at least, and offsets keep: a cache line, which is also the widest vector register. */
#define CPU_ALIGNMENT UINT64_C(64)

struct heddle_pinstance {
  const heddle_host *host;
  struct onednn *onednn; /* NULL: built without it, or switched off */
  atomic_flag told;      /* the warning that reduced precision was asked for, which this CPU lacks, was given */
  bool fuse;             /* setting: chains of elementwise nodes, and a product with what follows it, become one */
};

/* The counters are statistics: relaxed order is enough. */
struct heddle_pdevice {
  const heddle_host *host;
  struct onednn *onednn; /* the instance's */
  atomic_int_least64_t live_buffers, live_bytes, live_objects;
};

/* A range of host memory. owned: base came from the host's alloc. Immutable. */
struct heddle_pbuffer {
  heddle_pdevice *dev;
  char *base;
  uint64_t bytes;
  bool owned, view;
};

/* A stream of an inline device has no state: work is finished before the next piece comes. */
struct heddle_pstream {
  heddle_pdevice *dev;
};

/* Allocates zeroed bookkeeping, or fails with what it was for. */
heddle_status cpu_new(const heddle_host *host, uint64_t bytes, const char *what, void **out, heddle_error *err);

/* Address of bytes [offset, offset + bytes) of buffer; HEDDLE_EINVAL with what it was for where that is not inside.
 * buffer NULL is only right for 0 bytes, and gives NULL. */
heddle_status cpu_range(const heddle_pbuffer *buffer, uint64_t offset, uint64_t bytes, const char *what, char **out,
                        heddle_error *err);

static inline void cpu_count(atomic_int_least64_t *counter, int64_t by) {
  atomic_fetch_add_explicit(counter, by, memory_order_relaxed);
}

extern const heddle_device_table cpu_device_table;
extern const heddle_memory_table cpu_memory_table;
extern const heddle_copy_table cpu_copy_table;
extern const heddle_stream_table cpu_stream_table;
extern const heddle_op_table cpu_op_table;
extern const heddle_timing_table cpu_timing_table;

/* op.partition. */
heddle_status cpu_partition(heddle_pinstance *self, uint32_t index, const heddle_pregion *region,
                            heddle_propose_fn propose, void *sink, heddle_error *err);

/* Fills the description of the one device. Any thread. */
void cpu_describe(const heddle_host *host, heddle_pdevice_desc *desc);

#endif
