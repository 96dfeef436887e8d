/* The first of the host's extensions is taken for the one that is looked for.
 * caught by: settings/strangers
 * says: extension */
#include "base.h"

typedef struct power {
  heddle_pextension head;
  uint64_t watts;
} power;

static heddle_status mine_open_instance(const heddle_host *host, heddle_pinstance **out, heddle_error *err) {
  if (HEDDLE_HAS(heddle_host, host, extensions) && host->extensions != NULL) {
    const power *found = (const power *)(const void *)host->extensions;
    if (found->head.version > 1)
      return p_fail(err, HEDDLE_EFAILED, 0, "the host's extension has version %u", found->head.version);
  }
  return base_open_instance(host, out, err);
}

#define base_open_instance mine_open_instance
#include "tables.h"
