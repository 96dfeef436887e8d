/* core/layers.c: the setting "layers", and the door to libheddle_layers.so, where the layers are (core/layers/). */
#include "core/layers/layers.h"

#include <stdio.h>

#include "core/alloc.h"
#include "core/beside.h"
#include "core/thread.h"

static const heddle__layers_host host = {
    .alloc = heddle__alloc,
    .free = heddle__free,
    .config_get = heddle__config_get,
    .config_is_off = heddle__config_is_off,
    .context_number = heddle__context_number,
    .vlogf = heddle__vlogf,
    .now_ns = heddle__now_ns,
    .thread_start = heddle__thread_start,
    .waker_init = heddle__waker_init,
    .waker_finish = heddle__waker_finish,
    .waker_wake = heddle__waker_wake,
    .waker_wait = heddle__waker_wait,
    .fence_create = heddle__fence_create,
    .fence_free = heddle__fence_free,
    .fence_handle = heddle__fence_handle,
    .fence_signal = heddle__fence_signal,
    .fence_fail = heddle__fence_fail,
    .fence_error = heddle__fence_error,
};

heddle_status heddle__layers_create(heddle__plugin *plugin, heddle_error *err) {
  const char *list, *origin;
  const void *table = NULL;
  char key[sizeof plugin->name + 8];
  snprintf(key, sizeof key, "%s.layers", plugin->name);
  if (!heddle__config_get(plugin->ctx->config, key, &list, &origin) &&
      !heddle__config_get(plugin->ctx->config, "layers", &list, &origin))
    return HEDDLE_OK;
  if (heddle__config_is_off(list) || list[0] == '\0') return HEDDLE_OK;
  heddle_status s = heddle__open_beside("libheddle_layers.so.0", "the setting 'layers' needs", "heddle_layers_entry", 0,
                                        &host, &table, err);
  return s == HEDDLE_OK ? ((const heddle__layers_table *)table)->create(plugin, list, origin, err) : s;
}

void heddle__layers_release(struct heddle__layers *layers) {
  if (layers != NULL) ((heddle__layers_head *)layers)->release(layers);
}

heddle_pinstance *heddle__layers_instance(struct heddle__layers *layers, heddle_pinstance *instance) {
  return layers != NULL ? ((heddle__layers_head *)layers)->instance : instance;
}
