/* executor/weights.c: asks the cache of packed weights (executor/weights/) for plans that pack much, unless it is off. */
#include "executor/weights.h"

#include <string.h>

#include "core/parts.h"
#include "core/registry.h"

#define LEAST_BYTES (UINT64_C(1) << 20) /* below, packing costs no more than a file */
enum { MOST_ALIGN = 4096, MOST_IMPORT_ALIGN = 64 };

bool heddle__weights_holds(const heddle__plan *plan, uint32_t alloc) {
  if (plan->allocs[alloc].kind != HEDDLE__ALLOC_CONSTANT) return false;
  const heddle__instance *inst = &plan->instances[plan->allocs[alloc].instance];
  const heddle_device *dev = plan->devices[plan->spaces[inst->space].device].dev;
  return plan->values[inst->value].layout != 0 && inst->bytes > 0 && inst->align <= MOST_ALIGN &&
         (inst->align & (inst->align - 1)) == 0 && heddle__device_inline(dev) &&
         dev->desc.import_alignment - 1 < MOST_IMPORT_ALIGN;
}

heddle__weights *heddle__weights_open(heddle_model *m, const heddle__plan *plan) {
  const char *folder = NULL, *origin = "default";
  uint64_t bytes = 0;
  for (uint32_t i = 0; i < plan->n_allocs && bytes < LEAST_BYTES; i++)
    if (heddle__weights_holds(plan, i)) bytes += plan->instances[plan->allocs[i].instance].bytes;
  if (bytes < LEAST_BYTES) return NULL;
  if (!heddle__config_get(m->ctx->config, "weights.cache_dir", &folder, &origin) || heddle__config_is_off(folder))
    folder = NULL;
#if HEDDLE_HAS_WEIGHTS
  return heddle__weights_begin(m, plan, folder, origin);
#else
  if (folder != NULL && strcmp(origin, "default") != 0)
    heddle__logf(&m->ctx->log, HEDDLE_LOG_WARN, "weights",
                 "packed weights are not kept: this build of Heddle has no "
                 "cache of them (built with HEDDLE_WEIGHTS=OFF)");
  return NULL;
#endif
}

#if !HEDDLE_HAS_WEIGHTS
void *heddle__weights_at(const heddle__weights *w, uint32_t alloc, uint64_t *bytes) {
  (void)w, (void)alloc, (void)bytes; /* there is none */
  return NULL;
}

void heddle__weights_close(heddle__weights *w, bool good) {
  (void)w, (void)good;
}
#endif
