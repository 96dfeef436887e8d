/* core/layers.c: the setting "layers"; the layers are in core/layers/. */
#include "core/layers/layers.h"

#include <stdio.h>

#include "core/parts.h"

heddle_status heddle__layers_create(heddle__plugin *plugin, heddle_error *err) {
  const char *list, *origin;
  char key[sizeof plugin->name + 8];
  snprintf(key, sizeof key, "%s.layers", plugin->name);
  if (!heddle__config_get(plugin->ctx->config, key, &list, &origin) &&
      !heddle__config_get(plugin->ctx->config, "layers", &list, &origin))
    return HEDDLE_OK;
  if (heddle__config_is_off(list) || list[0] == '\0') return HEDDLE_OK;
#if HEDDLE_HAS_LAYERS
  return heddle__layers_wrap(plugin, list, origin, err);
#else
  return heddle__left_out(err, "layers, which the setting 'layers' asks for", "HEDDLE_LAYERS");
#endif
}

void heddle__layers_release(struct heddle__layers *layers) {
  if (layers != NULL) ((heddle__layers_head *)layers)->release(layers);
}

heddle_pinstance *heddle__layers_instance(struct heddle__layers *layers, heddle_pinstance *instance) {
  return layers != NULL ? ((heddle__layers_head *)layers)->instance : instance;
}
