/* core/layers/layers.h: layers between the core and a plugin: check, fault, log; the setting "layers" lists them.
 * One interposer wraps every table and handle, and asks each layer before a call and tells it after; a layer is a pair
 * of functions. With no layers the plugin's own tables are used and nothing is in the way. */
#ifndef HEDDLE_CORE_LAYERS_H
#define HEDDLE_CORE_LAYERS_H

#include "core/registry.h"

struct heddle__layers;

/* Reads the setting and, where it lists layers, sets plugin->use and plugin->layers. HEDDLE_EINVAL for a layer that
 * does not exist. */
heddle_status heddle__layers_create(heddle__plugin *plugin, heddle_error *err);

/* After everything that was made through it is gone; what is left is reported in the log. Takes NULL. */
void heddle__layers_release(struct heddle__layers *layers);

/* The instance as the wrapped tables take it; the same one where layers is NULL. */
heddle_pinstance *heddle__layers_instance(struct heddle__layers *layers, heddle_pinstance *instance);

#endif
