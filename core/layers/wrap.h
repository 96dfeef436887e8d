/* core/layers/wrap.h: the few words that every wrapped function is written with.
 * For wrap_core.c and wrap_op.c only; a wrapped function has a parameter err. */
#ifndef HEDDLE_CORE_LAYERS_WRAP_H
#define HEDDLE_CORE_LAYERS_WRAP_H

#include "core/layers/call.h"

typedef heddle__wrap W;

#define BEGIN(what, how) heddle__call c = {.name = what, .flags = how, .err = err}
#define NEXT (c.layers->next)

/* Calls the plugin, where no layer answered for it. */
#define CALL(expression) \
  do { \
    if (heddle__before(&c)) c.status = (expression); \
    heddle__after(&c); \
  } while (0)

/* Wraps what came back; where that fails, it is given back to the plugin. */
#define GIVE(kind, type, device, parent, give_back) \
  W *w = given(&c, kind, real, device, parent); \
  if (w == NULL && real != NULL && c.status == HEDDLE_ENOMEM) give_back; \
  if (w != NULL) *out = (type *)(void *)w

/* Something must come back with a success, and nothing with a failure. */
static inline W *given(heddle__call *c, heddle__kind kind, void *real, W *device, W *parent) {
  if (c->status == HEDDLE_OK && real == NULL) heddle__broken(c, HEDDLE_EABI, "it said yes and gave nothing");
  if (c->status != HEDDLE_OK && real != NULL) {
    heddle__broken(c, HEDDLE_EABI, "it failed and gave something");
    return NULL;
  }
  return c->status == HEDDLE_OK ? heddle__give(c, kind, real, device, parent) : NULL;
}

/* What the plugin lacks stays NULL. */
#define PUT(group, member) \
  if (layers->tables.group.member != NULL) layers->tables.group.member = group##_##member

#endif
