/* modules/tvm/library_tree.c: the modules of a library that users see as such: the models in it, each importing what the
 * blob says, and the library itself. The root is what loading gives. */
#include "core/alloc.h"
#include "modules/tvm/library.h"
#include "modules/tvm/object.h"

/* A model's imports: of its children the models and the library; where another kind stands between (constants), the
 * library too. */
static bool import(heddle_object **objects, const heddle__blob *blob, uint32_t i, heddle_object *library) {
  const heddle__submodule *m = &blob->modules[i];
  for (uint32_t k = 0; k < m->n_children; k++) {
    heddle_object *child = objects[blob->children[m->first_child + k]];
    if (child != NULL && !heddle__object_import(objects[i], child)) return false;
  }
  bool is_model = objects[i] != library && objects[blob->root] != library;
  return !is_model || heddle__object_library(objects[i]) != NULL || heddle__object_import(objects[i], library);
}

heddle_object *heddle__library_tree(heddle_object *library, heddle_module *m) {
  const heddle__blob *blob = &m->library->blob;
  if (blob->n_modules == 0) return library;
  heddle_object **objects = heddle__alloc(blob->n_modules, sizeof(heddle_object *)), *root = NULL;
  bool good = objects != NULL;
  for (uint32_t i = 0; i < blob->n_modules && good; i++) {
    if (i == blob->host) objects[i] = heddle__object_retain(library);
    else if (blob->modules[i].graph.data != NULL) {
      objects[i] = heddle__factory_object(m, blob->modules[i].model_name);
      good = objects[i] != NULL;
    }
  }
  for (uint32_t i = blob->n_modules; i-- > 0 && good;) /* a child's imports first: its library is looked for */
    good = objects[i] == NULL || import(objects, blob, i, library);
  if (good) root = heddle__object_retain(objects[blob->root] != NULL ? objects[blob->root] : library);
  else heddle__tvm_say(NULL, "out of memory: the modules of a library");
  for (uint32_t i = 0; i < blob->n_modules && objects != NULL; i++) heddle__object_release(objects[i]);
  heddle__free((void *)objects);
  heddle__object_release(library);
  return root;
}
