/* core/linked.c: the plugins that are linked into the program (heddle_plugin_register). */
#include <pthread.h>

#include "core/error.h"
#include "core/registry.h"

enum { MOST_LINKED = 64 };

static struct {
  pthread_mutex_t lock;
  bool closed; /* a context was made */
  uint32_t count;
  heddle_plugin_entry_fn entry[MOST_LINKED];
} linked = {.lock = PTHREAD_MUTEX_INITIALIZER};

heddle_status heddle_plugin_register(heddle_plugin_entry_fn entry, heddle_error *err) {
  heddle_status s = HEDDLE_OK;
  bool known = false;
  if (entry == NULL) return heddle__fail(err, HEDDLE_EINVAL, "a plugin cannot be registered: entry is NULL");
  pthread_mutex_lock(&linked.lock);
  for (uint32_t i = 0; i < linked.count && !known; i++) known = linked.entry[i] == entry;
  if (known) s = HEDDLE_OK;
  else if (linked.closed)
    s = heddle__fail(err, HEDDLE_EBUSY, "a plugin has to be registered before the first context is created");
  else if (linked.count == MOST_LINKED)
    s = heddle__fail(err, HEDDLE_ELIMIT, "more than %d plugins cannot be registered", (int)MOST_LINKED);
  else linked.entry[linked.count++] = entry;
  pthread_mutex_unlock(&linked.lock);
  return s;
}

heddle_status heddle__linked_each(heddle_status (*add)(heddle_context *ctx, heddle_plugin_entry_fn entry,
                                                       heddle_error *err),
                                  heddle_context *ctx, heddle_error *err) {
  pthread_mutex_lock(&linked.lock);
  linked.closed = true;
  pthread_mutex_unlock(&linked.lock);
  heddle_status s = HEDDLE_OK; /* the list is final */
  for (uint32_t i = 0; i < linked.count && s == HEDDLE_OK; i++) s = add(ctx, linked.entry[i], err);
  return s;
}
