/* core/layers/layers.h: layers between the core and a plugin: check, fault, log; the setting "layers" lists them.
 * One interposer wraps every table and handle, and asks each layer before a call and tells it after; a layer is a pair
 * of functions. With no layers the plugin's own tables are used and nothing is in the way: all of this is then not even
 * loaded, since it is in libheddle_layers.so beside libheddle, which core/layers.c opens. */
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

/* ---- between libheddle and libheddle_layers.so (core/beside.h) */

/* What libheddle gives: the functions of these names. */
typedef struct heddle__layers_host {
  void *(*alloc)(size_t count, size_t size);
  void (*free)(void *p);
  bool (*config_get)(const heddle__config *config, const char *key, const char **value, const char **origin);
  bool (*config_is_off)(const char *value);
  heddle_status (*context_number)(heddle_context *ctx, const char *key, int64_t fallback, int64_t min, int64_t max,
                                  int64_t *out, heddle_error *err);
  void (*vlogf)(const heddle__log *log, int32_t level, const char *component, const char *format, va_list args);
  uint64_t (*now_ns)(void);
  heddle_status (*thread_start)(pthread_t *out, void *(*run)(void *), void *arg, const char *what, heddle_error *err);
  heddle_status (*waker_init)(heddle__waker *w, heddle_error *err);
  void (*waker_finish)(heddle__waker *w);
  void (*waker_wake)(heddle__waker *w);
  bool (*waker_wait)(heddle__waker *w, unsigned seen, uint64_t deadline_ns);
  heddle_status (*fence_create)(heddle__waker *waker, heddle__fence **out, heddle_error *err);
  void (*fence_free)(heddle__fence *f);
  heddle_pfence (*fence_handle)(const heddle__fence *f);
  void (*fence_signal)(heddle_pfence fence, uint64_t value);
  void (*fence_fail)(heddle_pfence fence, heddle_status status, const char *text);
  heddle_status (*fence_error)(heddle__fence *f, heddle_error *err);
} heddle__layers_host;

/* What libheddle_layers.so gives: create sets plugin->use and plugin->layers by a list of names, which has at least
 * one; origin is where the setting stands. What it made in part is in plugin->layers, too. */
typedef struct heddle__layers_table {
  const char *version;
  heddle_status (*create)(heddle__plugin *plugin, const char *list, const char *origin, heddle_error *err);
} heddle__layers_table;

#endif
