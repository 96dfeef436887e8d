/* graph/ops.c: finds libheddle_ops.so, once. */
#include "graph/ops.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <string.h>

#include "core/beside.h"

const heddle__ops_table *heddle__ops(void) {
  static _Atomic(const heddle__ops_table *) found;
  const heddle__ops_table *table = atomic_load_explicit(&found, memory_order_acquire);
  if (table != NULL) return table;
  heddle__ops_entry_fn entry = NULL;
  void *symbol = heddle__beside("libheddle_ops.so.0", RTLD_LOCAL, "heddle_ops_entry", "operators need", NULL);
  memcpy(&entry, &symbol, sizeof entry);
  table = entry != NULL ? entry() : NULL;
  if (table == NULL || strcmp(table->version, heddle_version()) != 0) return NULL;
  atomic_store_explicit(&found, table, memory_order_release);
  return table;
}
