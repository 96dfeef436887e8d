/* core/layers/layers.h: layers between the core and a plugin: check, fault, log; the setting "layers" lists them.
 * One interposer wraps every table and handle, and calls each layer before and after a call; a layer is a pair
 * of functions. With no layers the plugin's own tables are used and nothing is in the way. */
#ifndef HEDDLE_CORE_LAYERS_H
#define HEDDLE_CORE_LAYERS_H

#include "core/config.h"
#include "core/fence.h"
#include "core/registry.h"

/* What every struct heddle__layers begins with. */
typedef struct heddle__layers_head {
  heddle_pinstance *instance; /* the plugin's, as the wrapped tables take it */
  void (*release)(struct heddle__layers *layers);
} heddle__layers_head;

/* Reads the setting and, where it lists layers, sets plugin->use and plugin->layers. HEDDLE_EINVAL for a layer that
 * does not exist. */
heddle_status heddle__layers_create(heddle__plugin *plugin, heddle_error *err);

/* After everything that was made through it is gone; what is left is reported in the log. Takes NULL. */
void heddle__layers_release(struct heddle__layers *layers);

/* The instance as the wrapped tables take it; the same one where layers is NULL. */
heddle_pinstance *heddle__layers_instance(struct heddle__layers *layers, heddle_pinstance *instance);

/* Sets plugin->use and plugin->layers by a list of names, which has at least one; origin is where the setting stands. What
 * it made in part is in plugin->layers, too. */
heddle_status heddle__layers_wrap(heddle__plugin *plugin, const char *list, const char *origin, heddle_error *err);

#endif
