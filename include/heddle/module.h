/* heddle/module.h: compiled libraries: what is in them, and calls of their functions.
 * A library that TVM compiled (v0.3 to v0.27) is opened from the path that the user gives; its functions run as
 * nodes of a graph (heddle_model_options.library) or by name from here. docs/tvm.md says what is supported. */
#ifndef HEDDLE_MODULE_H
#define HEDDLE_MODULE_H

#include "heddle/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct heddle_module heddle_module;

/* Opens a library. A path without '/' is a file of the current directory; nothing is searched for. A file that is open
 * already is shared, with all that its code keeps. The library is code and runs with the rights of the process.
 * *out has one reference, which models hold too; the last release unloads it. HEDDLE_EIO, HEDDLE_EABI (no library that
 * this process can load), HEDDLE_EFORMAT (what it carries is malformed), HEDDLE_EUNSUPPORTED (a kind of module in it
 * that nothing here loads, by name). Any thread; blocks. */
HEDDLE_API heddle_status heddle_module_load(heddle_context *ctx, const char *path, heddle_module **out,
                                            heddle_error *err);
HEDDLE_API heddle_module *heddle_module_retain(heddle_module *m);
HEDDLE_API void heddle_module_release(heddle_module *m); /* takes NULL */

/* What a library is. Borrowed from the module. */
typedef struct heddle_module_info {
  size_t struct_size;
  const char *path;
  const char *abi;        /* how its functions are called: "packed" (v0.3 to v0.20), "tvm-ffi v0.21", "tvm-ffi" */
  uint32_t n_functions;   /* that it exports */
  uint32_t n_imports;     /* modules that it carries: device code and the like */
  uint64_t scratch_bytes; /* scratch memory of compiled code, of all libraries and threads, at most so far */
} heddle_module_info;

HEDDLE_API heddle_status heddle_module_get_info(const heddle_module *m, heddle_module_info *out, heddle_error *err);

/* A function's name, as graphs call it, in alphabetical order; NULL past the end. */
HEDDLE_API const char *heddle_module_function(const heddle_module *m, uint32_t i);

/* A module inside of the library. Borrowed from the module. */
typedef struct heddle_import_info {
  size_t struct_size;
  const char *kind;   /* "opencl", "cuda", ...; "GraphExecutorFactory" for a model */
  const char *format; /* of its code: "cl", "ptx"; "" where the kind has none */
  uint64_t bytes;     /* of its code */
  uint32_t n_kernels;
  uint32_t reserved;
} heddle_import_info;

HEDDLE_API heddle_status heddle_module_import(const heddle_module *m, uint32_t i, heddle_import_info *out,
                                              heddle_error *err);
HEDDLE_API const char *heddle_module_kernel(const heddle_module *m, uint32_t import,
                                            uint32_t i); /* NULL past the end */

/* heddle_value.kind */
enum {
  HEDDLE_VALUE_NONE = 0,
  HEDDLE_VALUE_INT = 1,
  HEDDLE_VALUE_FLOAT = 2,
  HEDDLE_VALUE_BOOL = 3, /* in i: 0 or 1 */
  HEDDLE_VALUE_STRING = 4,
  HEDDLE_VALUE_BYTES = 5,
  HEDDLE_VALUE_TENSOR = 6, /* of host memory, or on a device */
  HEDDLE_VALUE_POINTER = 7,
  HEDDLE_VALUE_MODULE = 8,   /* heddle/function.h */
  HEDDLE_VALUE_FUNCTION = 9, /* heddle/function.h */
  HEDDLE_VALUE_DEVICE = 10,  /* DLPack's type, and a number */
  HEDDLE_VALUE_DTYPE = 11
};

/* Functions, and modules whose functions are found by name, as values: heddle/function.h. */
typedef struct heddle_function heddle_function;
typedef struct heddle_object heddle_object;

/* An argument or a result. Nothing in an argument is owned. Of a result, a tensor, a module and a function carry a
 * reference for the caller; a string and bytes live until this thread's next result of that kind. */
typedef struct heddle_value {
  int32_t kind;
  uint32_t reserved;
  union {
    int64_t i;
    double f;
    const char *s;    /* STRING: terminated */
    const void *data; /* BYTES, POINTER */
    heddle_tensor *t;
    heddle_object *module;
    heddle_function *function;
    struct {
      int32_t type;
      int32_t number;
    } device;
    heddle_dtype dtype;
  } of;
  uint64_t bytes; /* BYTES */
} heddle_value;

/* Calls a function of the library by name; "__tvm_main__" is its entry. A tensor's memory is passed as it is: what the
 * function writes is in it after the call; compiled code wants it aligned as heddle_tensor_create does. Where tensors
 * are on a device, which is then the same for all of them, kernels are launched there on a stream of the module's and
 * waited for; the module keeps the device open. result may be NULL: it is then given back.
 * HEDDLE_ENOTFOUND for a function that the library does not have; HEDDLE_EFAILED, in the function's own words, where it
 * says that it failed, or the status that the device's plugin gave; HEDDLE_EINVAL for an argument that its generation
 * of libraries cannot take; HEDDLE_EUNSUPPORTED for a device that it has no code for. Several threads may call at once,
 * and a function of the application that is called may call others. */
HEDDLE_API heddle_status heddle_module_call(heddle_module *m, const char *function, const heddle_value *args,
                                            uint32_t n_args, heddle_value *result, heddle_error *err);

#ifdef __cplusplus
}
#endif

#endif
