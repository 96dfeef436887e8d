/* modules/tvm/object.h: modules and arrays as counted values: what TVM's C API has as TVMModuleHandle and
 * TVMArrayHandle, and calls give as results. A module is something whose functions are found by name: an open library,
 * a model inside of one, an executor, what an application's loader made. */
#ifndef HEDDLE_MODULES_TVM_OBJECT_H
#define HEDDLE_MODULES_TVM_OBJECT_H

#include "modules/tvm/registry.h"

typedef struct heddle__object_type {
  const char *kind; /* "library", "GraphExecutorFactory", "GraphExecutor", ... */
  /* A function by name, with one reference and, where it needs one, a reference on self; *out NULL: there is none of that
   * name here. 0, or -1 with words (heddle__tvm_say). Imports are not its business. */
  int (*find)(heddle_object *self, const char *name, heddle_function **out);
  void (*finish)(heddle_object *self); /* what is behind the head; not the head, nor imports */
} heddle__object_type;

/* The head of every module. Read-only after it is made, but for imports, which one thread changes while no other
 * thread uses the module (as TVM has it), and the count. */
struct heddle_object {
  uint64_t mark; /* HEDDLE__OBJECT_MARK */
  const heddle__object_type *type;
  atomic_uint references;
  uint32_t n_imports;
  heddle_object **imports; /* each with a reference */
};

/* bytes: of the struct that begins with the head, zeroed behind it. One reference; NULL where memory is out. */
heddle_object *heddle__object_new(const heddle__object_type *type, size_t bytes);
heddle_object *heddle__object_retain(heddle_object *o);
void heddle__object_release(heddle_object *o);                   /* takes NULL */
bool heddle__object_import(heddle_object *o, heddle_object *of); /* takes a reference of its own; false: no memory */

/* The same for what users ask: false with words, where it would import itself too. */
bool heddle__object_add(heddle_object *o, heddle_object *of);

/* A function of the module or, with imports, of the first of its imports that has one, depth first; as type->find. */
int heddle__object_find(heddle_object *o, const char *name, bool imports, heddle_function **out);

/* A function of a module: call gets the module as its self; the function holds a reference on it. NULL: no memory. */
heddle_function *heddle__object_method(heddle_object *o, const char *name, heddle__tvm_fn call);

/* ---- arrays: a handle is a DLTensor that is counted, and holds a tensor of libheddle's */

typedef struct heddle__array {
  heddle__dltensor t; /* first: the handle is used as a DLTensor. strides NULL where it is compact */
  heddle_tensor *of;
  atomic_uint references;
  struct heddle__array *next; /* object.c */
} heddle__array;

/* Takes over the reference on a tensor (not where it fails: NULL, memory is out). bool is (1, 1) as of the packed
 * generations. */
heddle__array *heddle__array_new(heddle_tensor *t);
heddle__array *heddle__array_retain(heddle__array *a);
void heddle__array_release(heddle__array *a); /* takes NULL */

/* The array that a DLTensor is the head of, with a reference; NULL: it is none of ours. Any thread. */
heddle__array *heddle__array_find(const void *tensor);

/* The tensor that an argument (PACKED_TENSOR, PACKED_NDARRAY) names, with a reference: an array's own, whichever code it
 * comes with; else a view of the DLTensor's memory, on the host or whole on a device, which must not outlive that. NULL
 * with words, which name the argument by its number. bool is (6, 8), however the DLTensor has it. */
heddle_tensor *heddle__argument_tensor(const heddle__word *args, const int32_t *codes, int32_t i);

/* ---- libheddle's side */

/* The context of TVM's C API: one for the process, made when it is first needed from environment and config file, and
 * never freed. NULL with a message. Any thread. */
heddle_context *heddle__api_context(void);

/* The device of a type of DLPack's and a number within its kind (TVM's cpu(0), opencl(1)), of a context or of that one;
 * NULL with words that list what there is. */
heddle_device *heddle__numbered_device(heddle_context *ctx, int32_t type, int32_t number);
heddle_device *heddle__api_device(int32_t type, int32_t number);

/* A library, or whatever a loader makes of the file, as a module; format "" or NULL: from the name. NULL with words. */
heddle_object *heddle__api_load(const char *path, const char *format);

/* The module of an open library (the root of its import tree: the library, or a model whose import the library is), with
 * one reference; takes its own reference on m. NULL with words. */
heddle_object *heddle__library_object(heddle_module *m);

/* What code of a library is given of the modules that those of the library import (TVMModImport): borrowed, and never
 * freed. 0, *out NULL: none has a function of that name; -1 with words. */
int heddle__library_imported(const struct heddle__tvm_library *l, const char *name, heddle_function **out);

/* executor_object.c: the executor of a graph as a module. library: NULL or a module that is or imports a library. devices:
 * pairs of type and number, the first is the default. Its methods are those of CAPABILITIES A5; params may be NULL.
 * NULL with words. debug: with the methods of the debug executor as well. */
heddle_object *heddle__executor_object(const char *graph, size_t graph_bytes, heddle_object *library,
                                       const int32_t (*devices)[2], uint32_t n_devices, const void *params,
                                       size_t params_bytes, bool debug);

/* factory_object.c: the model of a library that has this name (blob.h: model_name), as a module; the caller adds what it
 * imports. Takes its own reference on m. NULL with words. */
heddle_object *heddle__factory_object(heddle_module *m, const char *model_name);

/* code_object.c: the i-th module in a library's blob, code for a device or what a loader of the application made, as a
 * module. Takes its own reference on m. NULL: no memory. */
heddle_object *heddle__code_object(heddle_module *m, uint32_t i);

/* library_tree.c: the root of the import tree that a library carries, of models and the library, which it takes over.
 * NULL with words. */
heddle_object *heddle__library_tree(heddle_object *library, heddle_module *m);

/* library_object.c: the library that a module is, or the first among its imports; borrowed, NULL: none. */
heddle_module *heddle__object_library(heddle_object *o);

#endif
