/* modules/tvm/library_tree.c: the modules of a library that users see as such: the models in it, each importing what the
 * blob says, and the library itself. The root is what loading gives. */
#include "core/alloc.h"
#include "modules/tvm/library.h"
#include "modules/tvm/object.h"

/* Whether a module is seen as one: all but those that stand between others, such as constants. */
static bool is_seen(const heddle__submodule *m) {
  return m->graph.data != NULL || m->n_children == 0;
}

/* The imports of the i-th module: of its children those that are seen; a model imports the library too where another kind
 * stands between. is_library: the library is the root. */
static bool import(heddle_object **objects, const heddle__blob *blob, uint32_t i, heddle_object *library,
                   bool is_library) {
  const heddle__submodule *m = &blob->modules[i];
  for (uint32_t k = 0; k < m->n_children; k++) {
    heddle_object *child = objects[blob->children[m->first_child + k]];
    if (child != NULL && !heddle__object_import(objects[i], child)) return false;
  }
  bool is_model = m->graph.data != NULL && !is_library;
  return !is_model || heddle__object_library(objects[i]) != NULL || heddle__object_import(objects[i], library);
}

/* Where the blob has no tree, all modules are imports of the library, but for models where one of these is the root. */
static bool import_all(heddle_object **objects, const heddle__blob *blob, heddle_object *library, bool is_library) {
  bool good = true;
  for (uint32_t i = 0; i < blob->n_modules && good; i++) {
    if (objects[i] == NULL || (!is_library && blob->modules[i].graph.data != NULL)) continue;
    good = heddle__object_import(library, objects[i]);
  }
  return good;
}

heddle_object *heddle__library_tree(heddle_object *library, heddle_module *m) {
  const heddle__blob *blob = &m->library->blob;
  if (blob->n_modules == 0) return library;
  heddle_object **objects = heddle__alloc(blob->n_modules, sizeof(heddle_object *)), *root = NULL;
  bool good = objects != NULL, is_library = blob->modules[blob->root].graph.data == NULL;
  for (uint32_t i = 0; i < blob->n_modules && good; i++) {
    const heddle__submodule *one = &blob->modules[i];
    if (i != blob->host && !is_seen(one)) continue;
    objects[i] = i == blob->host           ? heddle__object_retain(library)
                 : one->graph.data != NULL ? heddle__factory_object(m, one->model_name)
                                           : heddle__code_object(m, i);
    good = objects[i] != NULL;
  }
  for (uint32_t i = blob->n_modules; i-- > 0 && good;) /* a child's imports first: its library is looked for */
    good = objects[i] == NULL || import(objects, blob, i, library, is_library);
  if (good && blob->host == blob->n_modules) good = import_all(objects, blob, library, is_library);
  if (good) root = heddle__object_retain(is_library ? library : objects[blob->root]);
  else heddle__tvm_say(NULL, "out of memory: the modules of a library");
  for (uint32_t i = 0; i < blob->n_modules && objects != NULL; i++) heddle__object_release(objects[i]);
  heddle__free((void *)objects);
  heddle__object_release(library);
  return root;
}
