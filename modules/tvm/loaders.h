/* modules/tvm/loaders.h: modules inside of libraries that the application reads and runs: the loaders that it registered,
 * by kind, what they made, and its functions as compiled code and users call them. */
#ifndef HEDDLE_MODULES_TVM_LOADERS_H
#define HEDDLE_MODULES_TVM_LOADERS_H

#include "modules/tvm/blob.h"
#include "modules/tvm/registry.h"

/* heddle_module_register_loader. Any thread. */
heddle_status heddle__loader_register(const char *kind, const heddle_module_loader *loader, void *self,
                                      heddle_error *err);

/* loader_functions.c: what heddle_function_register_loader registers, whose self is the loader's function, and how it finds a
 * function of a module that it made; *out: one reference, or NULL. */
extern const heddle_module_loader heddle__functions_loader;
heddle_status heddle__functions_find(void *module, const char *name, heddle_function **out, heddle_error *err);

/* For heddle__blob_read: modules of kinds that it does not know go to the loaders. */
extern const heddle__blob_loaders heddle__loaders;

/* A function of such a module, which lives as long as it; *out NULL: it has none of that name. HEDDLE_ENOMEM. */
heddle_status heddle__loaded_find(heddle__loaded *module, const char *name, heddle_function **out, heddle_error *err);

/* Has the application write the module, with write; *saves false: its loader saves none. */
heddle_status heddle__loaded_save(const heddle__loaded *module, void (*write)(void *to, const void *data, size_t bytes),
                                  void *to, bool *saves, heddle_error *err);

/* The i-th name that the module lists; NULL past the end. */
const char *heddle__loaded_name(const heddle__loaded *module, uint32_t i);

/* A call with values as the application has them; function is what heddle__loaded_find gave. */
heddle_status heddle__loaded_call(heddle_function *function, const heddle_value *args, uint32_t n, heddle_value *result,
                                  heddle_error *err);

#endif
