/* modules/tvm/object.c: counting of modules, and the search for functions among a module's imports. */
#include "modules/tvm/object.h"

#include "core/alloc.h"

heddle_object *heddle__object_new(const heddle__object_type *type, size_t bytes) {
  heddle_object *o = heddle__alloc(1, bytes);
  if (o == NULL) return NULL;
  o->mark = HEDDLE__OBJECT_MARK;
  o->type = type;
  atomic_init(&o->references, 1);
  return o;
}

heddle_object *heddle__object_retain(heddle_object *o) {
  atomic_fetch_add_explicit(&o->references, 1, memory_order_relaxed);
  return o;
}

void heddle__object_release(heddle_object *o) {
  if (o == NULL || atomic_fetch_sub_explicit(&o->references, 1, memory_order_acq_rel) != 1) return;
  if (o->type->finish != NULL) o->type->finish(o);
  for (uint32_t i = 0; i < o->n_imports; i++) heddle__object_release(o->imports[i]);
  heddle__free((void *)o->imports);
  heddle__free(o);
}

bool heddle__object_import(heddle_object *o, heddle_object *of) {
  heddle_object **more = heddle__grow((void *)o->imports, o->n_imports, (size_t)o->n_imports + 1, sizeof(void *));
  if (more == NULL) return false;
  o->imports = more;
  o->imports[o->n_imports++] = heddle__object_retain(of);
  return true;
}

static bool reaches(const heddle_object *from, const heddle_object *to) {
  bool found = from == to;
  for (uint32_t i = 0; i < from->n_imports && !found; i++) found = reaches(from->imports[i], to);
  return found;
}

bool heddle__object_add(heddle_object *o, heddle_object *of) {
  if (reaches(of, o)) heddle__tvm_say(NULL, "an import: the module is the one that would import it, or imports that");
  else if (heddle__object_import(o, of)) return true;
  else heddle__tvm_say(NULL, "out of memory: an import");
  return false;
}

int heddle__object_find(heddle_object *o, const char *name, bool imports, heddle_function **out) {
  *out = NULL;
  int rc = o->type->find(o, name, out);
  for (uint32_t i = 0; i < o->n_imports && imports && rc == 0 && *out == NULL; i++)
    rc = heddle__object_find(o->imports[i], name, true, out);
  return rc;
}

static void release_self(void *self) {
  heddle__object_release(self);
}

heddle_function *heddle__object_method(heddle_object *o, const char *name, heddle__tvm_fn call) {
  heddle_function *f = heddle__function_new(name, call, o, release_self);
  if (f != NULL) heddle__object_retain(o);
  return f;
}
