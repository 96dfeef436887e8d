/* modules/tvm/own_object.c: modules of the application: a kind, and a function that finds functions by name. */
#include <string.h>

#include "core/alloc.h"
#include "core/error.h"
#include "heddle/function.h"
#include "modules/tvm/object.h"

typedef struct own_object {
  heddle_object head;
  heddle__object_type type;
  heddle_find_fn find;
  heddle_release_fn release;
  void *self;
  char kind[];
} own_object;

static int find(heddle_object *self, const char *name, heddle_function **out) {
  const own_object *o = (own_object *)(void *)self;
  heddle_error err = {0};
  heddle_status s = o->find(o->self, name, out, &err);
  if (s == HEDDLE_OK) return 0;
  *out = NULL;
  err.status = s;
  if (err.text[0] == '\0') heddle__fail(&err, s, "a module of the application failed to find '%.200s'", name);
  heddle__tvm_say_error(NULL, &err);
  return -1;
}

static void finish(heddle_object *self) {
  const own_object *o = (own_object *)(void *)self;
  if (o->release != NULL) o->release(o->self);
}

heddle_status heddle_object_create(const char *kind, heddle_find_fn find_function, void *self,
                                   heddle_release_fn release, heddle_object **out, heddle_error *err) {
  if (kind == NULL || kind[0] == '\0' || find_function == NULL || out == NULL)
    return heddle__fail(err, HEDDLE_EINVAL, "a module needs a kind, a function that finds functions, and a place");
  const size_t n = strlen(kind) + 1;
  own_object *o = (own_object *)(void *)heddle__object_new(NULL, sizeof *o + n);
  if (o == NULL) return heddle__no_memory(err, "a module");
  memcpy(o->kind, kind, n);
  o->type = (heddle__object_type){.kind = o->kind, .find = find, .finish = finish};
  o->head.type = &o->type;
  o->find = find_function;
  o->release = release;
  o->self = self;
  *out = &o->head;
  return HEDDLE_OK;
}
