/* executor/weights.c: opens libheddle_weights.so for plans that pack much, unless the cache is off. */
#include "executor/weights.h"

#include "core/alloc.h"
#include "core/beside.h"
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

static const heddle__weights_host host = {heddle__alloc,         heddle__free,           heddle__vlogf,
                                          heddle__weights_holds, heddle__context_number, heddle__now_ns,
                                          heddle_tensor_wrap,    heddle_tensor_release};

heddle__weights *heddle__weights_open(heddle_model *m, const heddle__plan *plan) {
  const char *folder, *origin;
  const void *table = NULL;
  uint64_t bytes = 0;
  heddle_error why;
  for (uint32_t i = 0; i < plan->n_allocs && bytes < LEAST_BYTES; i++)
    if (heddle__weights_holds(plan, i)) bytes += plan->instances[plan->allocs[i].instance].bytes;
  if (bytes < LEAST_BYTES || !heddle__config_get(m->ctx->config, "weights.cache_dir", &folder, &origin) ||
      heddle__config_is_off(folder))
    return NULL;
  if (heddle__open_beside("libheddle_weights.so.0", "the cache of packed weights needs", "heddle_weights_entry", 0,
                          NULL, &table, &why) != HEDDLE_OK) {
    heddle__logf(&m->ctx->log, HEDDLE_LOG_WARN, "weights", "packed weights are not kept: %s", why.text);
    return NULL;
  }
  return ((const heddle__weights_table *)table)->open(&host, m, plan, folder, origin);
}
