/* heddle/function.h: functions as values, functions by name, and modules whose functions are found by name.
 * A program that uses it links with libheddle_tvm.so in addition to libheddle; heddle.h does not include it. Compiled
 * libraries call functions that are registered here by name, and functions that they receive as arguments. TVM's C API
 * (tvm/runtime/c_runtime_api.h) has the same functions and modules under its own names.
 *
 * Objects are reference-counted: create, find, load and calls return one reference. No lock is held while a function
 * runs, so a function may register, find and call others. Any thread; only calls and loads block. Where memory is out
 * the status is HEDDLE_ENOMEM. */
#ifndef HEDDLE_FUNCTION_H
#define HEDDLE_FUNCTION_H

#include "heddle/module.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A function of the application. Arguments are borrowed for the call. A tensor may be a view of memory that compiled
 * code owns: copy data that must outlive the call. Modules and functions may be retained. *result is zeroed on entry. A
 * tensor, a module or a function stored in it transfers a reference to the caller; strings and bytes are copied on
 * return. The status and message of a failure reach the caller, also through compiled code, and name the node of a
 * graph that called the function. */
typedef heddle_status (*heddle_callback)(void *self, const heddle_value *args, uint32_t n_args, heddle_value *result,
                                         heddle_error *err);

/* Creates a function. release may be NULL; release(self) is called once when the last reference is dropped, on any
 * thread. It is not called if this call fails. */
HEDDLE_API heddle_status heddle_function_create(heddle_callback call, void *self, heddle_release_fn release,
                                                heddle_function **out, heddle_error *err);

/* Retain adds a reference and returns f; release drops one. */
HEDDLE_API heddle_function *heddle_function_retain(heddle_function *f); /* takes NULL */
HEDDLE_API void heddle_function_release(heddle_function *f);            /* takes NULL */

/* Calls a function and waits for the work that it launches. result may be NULL: the function's result is then released.
 * HEDDLE_EINVAL for an argument of an unknown kind; otherwise the status and message that the function failed with,
 * HEDDLE_EFAILED if it gave no status. Tensors for a function of a compiled library must have the
 * alignment of heddle_tensor_create. */
HEDDLE_API heddle_status heddle_function_call(heddle_function *f, const heddle_value *args, uint32_t n_args,
                                              heddle_value *result, heddle_error *err);

/* ---- functions by name, for this process */

/* register gives a function a name and retains it: HEDDLE_EINVAL if the name is taken and replace is 0. Code that
 * already has the previous function keeps it. find returns a function by its name. remove ends the name. */
HEDDLE_API heddle_status heddle_function_register(const char *name, heddle_function *f, int replace, heddle_error *err);
HEDDLE_API heddle_function *heddle_function_find(const char *name);                   /* one reference, or NULL */
HEDDLE_API heddle_status heddle_function_remove(const char *name, heddle_error *err); /* HEDDLE_ENOTFOUND */

/* All names in alphabetical order, valid until this thread's next call of this function. */
HEDDLE_API heddle_status heddle_function_names(const char *const **out, size_t *n, heddle_error *err);

/* ---- modules: a library, a model inside one, an executor, a module that a loader of the application made */

/* Loads the module of a file: a shared library, or the result of the registered function
 * "runtime.module.loadfile_FORMAT". format NULL: the suffix of the file. Its devices belong to one context, which this
 * function and TVM's C API share; it is created from the environment and the configuration file on first use. *out
 * receives one reference. The status is that of the part that failed, and HEDDLE_EFAILED where it has none. */
HEDDLE_API heddle_status heddle_object_load(const char *path, const char *format, heddle_object **out,
                                            heddle_error *err);

/* heddle_object_of creates the module of an open library, and keeps the library open. heddle_object_library returns the
 * library of a module, borrowed; NULL if the module neither is nor imports a library. */
HEDDLE_API heddle_status heddle_object_of(heddle_module *m, heddle_object **out, heddle_error *err);
HEDDLE_API heddle_module *heddle_object_library(heddle_object *o);

/* Retain adds a reference and returns o; release drops one. kind is borrowed from the module. */
HEDDLE_API heddle_object *heddle_object_retain(heddle_object *o);  /* takes NULL */
HEDDLE_API void heddle_object_release(heddle_object *o);           /* takes NULL */
HEDDLE_API const char *heddle_object_kind(const heddle_object *o); /* "library", "GraphExecutor", ... */

/* Creates a module of the application, of a kind that is copied. find(self, name, ...) gives a function with one reference, which
 * holds what it needs of self; NULL: there is none of that name. It is called from any thread, several at once. release may be
 * NULL; release(self) is called once with the last reference, on any thread; not if this call fails. */
typedef heddle_status (*heddle_find_fn)(void *self, const char *name, heddle_function **out, heddle_error *err);
HEDDLE_API heddle_status heddle_object_create(const char *kind, heddle_find_fn find, void *self,
                                              heddle_release_fn release, heddle_object **out, heddle_error *err);

/* Finds a function of the module or, if imports is not 0, of the first imported module that has it.
 * *out receives one reference. HEDDLE_ENOTFOUND. */
HEDDLE_API heddle_status heddle_object_function(heddle_object *o, const char *name, int imports, heddle_function **out,
                                                heddle_error *err);

/* Adds an import and retains it. No other thread may use the module during the call. HEDDLE_EINVAL for a cycle. */
HEDDLE_API heddle_status heddle_object_import(heddle_object *o, heddle_object *of, heddle_error *err);
/* The i-th imported module, borrowed; NULL past the end. What a library carries for a device is a module too, of a kind
 * such as "opencl". Its kernels are launched by the library's functions and are not functions of the module. */
HEDDLE_API heddle_object *heddle_object_imported(const heddle_object *o, uint32_t i);

/* ---- loaders of modules that are functions */

/* heddle_module_register_loader for languages whose functions are values. load(kind, bytes) creates a module from its bytes and
 * returns it as a function, which lives as long as the module is open and is called with a word and at most one argument:
 *   "bytes"       how many of the bytes belong to the module, an int (up to v0.21 they are the rest of the blob); none: all
 *   "name", i     the name of its i-th function, for lists; none past the end
 *   "find", name  a function by its name; none: there is no such function
 *   "save"        its bytes as load reads them, for heddle_pack; none: the bytes that it was loaded from
 * "bytes" and "name" are called once, after load; "find" by any thread, several at once. Functions are called as any other.
 * Replaces an earlier loader of the kind; load NULL removes it. load is retained until the process ends. HEDDLE_EINVAL for a
 * kind that Heddle reads itself. Any thread. */
HEDDLE_API heddle_status heddle_function_register_loader(const char *kind, heddle_function *load, heddle_error *err);

#ifdef __cplusplus
}
#endif

#endif
