/* modules/tvm/code_object.c: what a library carries besides its own code and models, as a module: code for a device, whose
 * kernels are launched by the library's functions and are no functions here, or what a loader of the application made,
 * which has functions. */
#include <string.h>

#include "core/alloc.h"
#include "modules/tvm/library.h"
#include "modules/tvm/loaders.h"
#include "modules/tvm/object.h"

typedef struct code_object {
  heddle_object head;
  heddle__object_type type; /* its own, for the kind */
  heddle_module *m;
  heddle__loaded *loaded; /* the blob's, or NULL */
} code_object;

/* A function of the loader's module, which lives as long as the library. */
typedef struct loaded_function {
  heddle_object *of;
  heddle_function *f;
} loaded_function;

static void finish_function(void *self) {
  heddle__object_release(((loaded_function *)self)->of);
  heddle__free(self);
}

static int call(void *self, const heddle__word *args, const int32_t *codes, int32_t n, heddle__word *ret,
                int32_t *ret_code) {
  return heddle__function_call(((loaded_function *)self)->f, args, codes, n, ret, ret_code);
}

static int find_function(heddle_object *self, const char *name, heddle_function **out) {
  const code_object *o = (code_object *)(void *)self;
  heddle_error err = {0};
  heddle_function *loaded = NULL;
  if (o->loaded == NULL) return 0;
  heddle_status s = heddle__loaded_find(o->loaded, name, &loaded, &err);
  if (s == HEDDLE_OK && loaded == NULL) return 0;
  loaded_function *f = s == HEDDLE_OK ? heddle__alloc(1, sizeof *f) : NULL;
  if (f != NULL) *f = (loaded_function){self, loaded};
  *out = f != NULL ? heddle__function_new(name, call, f, finish_function) : NULL;
  if (*out != NULL) {
    heddle__object_retain(self);
    return 0;
  }
  heddle__free(f);
  if (s == HEDDLE_OK) heddle__tvm_say(NULL, "out of memory: a function of a module in a library");
  else heddle__tvm_say_error(NULL, &err);
  return -1;
}

static void finish(heddle_object *self) {
  heddle_module_release(((code_object *)(void *)self)->m);
}

heddle_object *heddle__code_object(heddle_module *m, uint32_t i) {
  const heddle__submodule *code = &m->library->blob.modules[i];
  code_object *o = (code_object *)(void *)heddle__object_new(NULL, sizeof *o);
  if (o == NULL) return NULL;
  o->type = (heddle__object_type){.kind = code->kind, .find = find_function, .finish = finish};
  o->head.type = &o->type;
  o->m = heddle_module_retain(m);
  o->loaded = code->loaded;
  return &o->head;
}
