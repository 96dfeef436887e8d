/* modules/tvm/library_object.c: an open library as a module: its functions by name, and beside it the models that it
 * carries, as its blob says who imports whom. */
#include <string.h>

#include "core/alloc.h"
#include "modules/tvm/convert.h"
#include "modules/tvm/library.h"
#include "modules/tvm/object.h"

typedef struct library_object {
  heddle_object head;
  heddle_module *m;
} library_object;

static int find(heddle_object *self, const char *name, heddle_function **out);

static void finish(heddle_object *self) {
  heddle_module_release(((library_object *)(void *)self)->m);
}

static const heddle__object_type library_type = {.kind = "library", .find = find, .finish = finish};

/* ---- functions */

typedef struct library_function {
  heddle_object *library;
  char name[];
} library_function;

static void finish_function(void *self) {
  library_function *f = self;
  heddle__object_release(f->library);
  heddle__free(f);
}

static int call(void *self, const heddle__word *args, const int32_t *codes, int32_t n, heddle__word *ret,
                int32_t *ret_code) {
  library_function *f = self;
  return heddle__values_call(((library_object *)(void *)f->library)->m, f->name, args, codes, n, ret, ret_code);
}

static int find(heddle_object *self, const char *name, heddle_function **out) {
  const library_object *o = (library_object *)(void *)self;
  if (heddle__library_code(o->m->library, name) == NULL) return 0;
  size_t n = strlen(name) + 1;
  library_function *f = heddle__alloc(1, sizeof *f + n);
  if (f != NULL) {
    memcpy(f->name, name, n);
    if ((*out = heddle__function_new(name, call, f, finish_function)) == NULL) heddle__free(f);
  }
  if (*out == NULL) {
    heddle__tvm_say(NULL, "out of memory: a function of a library");
    return -1;
  }
  f->library = heddle__object_retain(self);
  return 0;
}

/* ---- modules */

heddle_object *heddle__library_object(heddle_module *m) {
  library_object *o = (library_object *)(void *)heddle__object_new(&library_type, sizeof *o);
  if (o == NULL) {
    heddle__tvm_say(NULL, "out of memory: a library as a module");
    return NULL;
  }
  o->m = heddle_module_retain(m);
  return heddle__library_tree(&o->head, m);
}

heddle_module *heddle__object_library(heddle_object *o) {
  if (o == NULL) return NULL;
  if (o->type == &library_type) return ((library_object *)(void *)o)->m;
  for (uint32_t i = 0; i < o->n_imports; i++) {
    heddle_module *m = heddle__object_library(o->imports[i]);
    if (m != NULL) return m;
  }
  return NULL;
}
