/* heddle/function.h: functions as values, functions by name, and modules whose functions are found by name.
 * A program that calls what is declared here links to libheddle_tvm.so beside libheddle; heddle.h does not include it.
 * Compiled libraries call functions that are registered here by their names, and functions that they are given as
 * arguments; TVM's C API (tvm/runtime/c_runtime_api.h) has the same functions and modules under its own names.
 *
 * Everything is counted: create, find, load and calls give one reference. No lock is held while a function runs; a
 * function may register, find and call others. Any thread. */
#ifndef HEDDLE_FUNCTION_H
#define HEDDLE_FUNCTION_H

#include "heddle/module.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A function of the application. Arguments are borrowed for the call: a tensor may be a view of memory that compiled code
 * owns, so copy what is to stay; modules and functions may be retained. result is zeroed; a tensor, a module or a
 * function that is put there carries a reference over to the caller, strings and bytes are copied on return. A failure's
 * status and text reach the caller, through compiled code too, where a node of a graph is named as well. */
typedef heddle_status (*heddle_callback)(void *self, const heddle_value *args, uint32_t n_args, heddle_value *result,
                                         heddle_error *err);

/* release(self), which may be NULL, is called once with the last reference, from any thread; not on failure. */
HEDDLE_API heddle_status heddle_function_create(heddle_callback call, void *self, heddle_release_fn release,
                                                heddle_function **out, heddle_error *err);
HEDDLE_API heddle_function *heddle_function_retain(heddle_function *f); /* takes NULL */
HEDDLE_API void heddle_function_release(heddle_function *f);            /* takes NULL */

/* Calls a function and waits for what it launches. result may be NULL: it is then given back. HEDDLE_EINVAL for an
 * argument of an unknown kind; else the status and words that the function failed with, HEDDLE_EFAILED where it gave
 * none. A tensor that a function of a compiled library gets has to be aligned as heddle_tensor_create does. */
HEDDLE_API heddle_status heddle_function_call(heddle_function *f, const heddle_value *args, uint32_t n_args,
                                              heddle_value *result, heddle_error *err);

/* ---- by name, for this process */

/* HEDDLE_EINVAL where the name is taken and replace is 0. Code that was given the function before keeps it. */
HEDDLE_API heddle_status heddle_function_register(const char *name, heddle_function *f, int replace, heddle_error *err);
HEDDLE_API heddle_function *heddle_function_find(const char *name); /* with a reference; NULL: there is none */
HEDDLE_API heddle_status heddle_function_remove(const char *name, heddle_error *err); /* HEDDLE_ENOTFOUND */

/* All names in alphabetical order; they live until this thread's next call of this function. */
HEDDLE_API heddle_status heddle_function_names(const char *const **out, size_t *n, heddle_error *err);

/* ---- modules: a library, a model inside of one, an executor, what a loader of the application made */

/* The module of a file: a shared library, or what the function "runtime.module.loadfile_FORMAT" that is registered makes
 * of it. format NULL: the file's suffix. Its devices are those of one context that the process has for this and for
 * TVM's C API, made from environment and configuration file when it is first needed. */
HEDDLE_API heddle_status heddle_object_load(const char *path, const char *format, heddle_object **out,
                                            heddle_error *err);

/* The module of a library that is open: it keeps the library open. And back: borrowed, NULL where it neither is nor imports
 * a library. */
HEDDLE_API heddle_status heddle_object_of(heddle_module *m, heddle_object **out, heddle_error *err);
HEDDLE_API heddle_module *heddle_object_library(heddle_object *o);

HEDDLE_API heddle_object *heddle_object_retain(heddle_object *o);  /* takes NULL */
HEDDLE_API void heddle_object_release(heddle_object *o);           /* takes NULL */
HEDDLE_API const char *heddle_object_kind(const heddle_object *o); /* "library", "GraphExecutor", ... */

/* A function of the module or, with imports not 0, of the first of the modules that it imports which has one.
 * HEDDLE_ENOTFOUND. */
HEDDLE_API heddle_status heddle_object_function(heddle_object *o, const char *name, int imports, heddle_function **out,
                                                heddle_error *err);

/* Adds an import, with a reference of its own; nobody else uses the module meanwhile. HEDDLE_EINVAL for a circle. */
HEDDLE_API heddle_status heddle_object_import(heddle_object *o, heddle_object *of, heddle_error *err);
/* A module that this one imports, by position; borrowed. NULL past the end. */
HEDDLE_API heddle_object *heddle_object_imported(const heddle_object *o, uint32_t i);

#ifdef __cplusplus
}
#endif

#endif
