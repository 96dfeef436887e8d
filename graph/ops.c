/* graph/ops.c: finds libheddle_ops.so, once. */
#include "graph/ops.h"

#include <stdatomic.h>

#include "core/beside.h"

const heddle__ops_table *heddle__ops(void) {
  static _Atomic(const heddle__ops_table *) found;
  const void *table = atomic_load_explicit(&found, memory_order_acquire);
  if (table != NULL) return table;
  if (heddle__open_beside("libheddle_ops.so.0", "operators need", "heddle_ops_entry", 0, NULL, &table, NULL) !=
      HEDDLE_OK)
    return NULL;
  atomic_store_explicit(&found, table, memory_order_release);
  return table;
}
