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
 * that nothing here loads, by name), HEDDLE_EBUSY (a loader of the application's opens the library that it is called
 * for). Any thread; blocks. */
HEDDLE_API heddle_status heddle_module_load(heddle_context *ctx, const char *path, heddle_module **out,
                                            heddle_error *err);

/* The system library: what objects linked into this program, compiled with --system-lib, registered for themselves before
 * main or when a library that holds them was opened (TVMBackendRegisterSystemLibSymbol of libheddle_tvm.so,
 * TVMFFIEnvModRegisterSystemLibSymbol of libheddle_tvm_ffi.so). prefix: the one that they were compiled with; NULL or "":
 * none. A name is looked for with the prefix, then without; listed are functions with the prefix or, where there is none,
 * all. There is one library per prefix for the life of the process: it carries what was registered when it was first
 * asked for; functions that come later are found, and are listed once nobody uses it and it is asked for again. Names
 * that were registered twice are logged. HEDDLE_EUNSUPPORTED where objects from before v0.22 and later ones have the same
 * prefix; else as heddle_module_load. Any thread; blocks. */
HEDDLE_API heddle_status heddle_module_system(heddle_context *ctx, const char *prefix, heddle_module **out,
                                              heddle_error *err);
HEDDLE_API heddle_module *heddle_module_retain(heddle_module *m);
HEDDLE_API void heddle_module_release(heddle_module *m); /* takes NULL */

/* What a library is. Borrowed from the module. */
typedef struct heddle_module_info {
  size_t struct_size;
  const char *path;
  const char *abi;        /* how its functions are called: "packed" (v0.3 to v0.20), "tvm-ffi v0.21", "tvm-ffi";
                           * "unknown": as "packed", but nothing in it says that TVM compiled it */
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
  uint32_t n_kernels; /* or functions, of a module that the application's loader made */
  uint32_t is_model;  /* 1: a graph with its parameters */
  const char *name;   /* of a model: what heddle_model_options.model_name calls it; else "" */
  const void *code;   /* bytes of it, as the library carries them: text or binary; not terminated */
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

/* Reads and runs modules inside of libraries that are of a kind which Heddle does not know (the JSON graphs of external
 * code generators, a vendor's format). Its functions stay for the life of the process. Functions of such a module are
 * found by name: by compiled code, as nodes of a graph on cpu, and by heddle_module_call. load and release come once a
 * module, from the thread that opens and the one that closes the library last; the others from any thread, several at
 * once, in the middle of a run too. No lock of Heddle's is held meanwhile. */
typedef struct heddle_module_loader {
  size_t struct_size;
  /* Makes *module of its bytes, which are aligned to nothing and live as long as it. Libraries of v0.22 and later say how
   * long a module is; up to v0.21 bytes is all that is left of the blob, and *used, which is bytes when this is called,
   * has to say how many of them were the module's. */
  heddle_status (*load)(void *self, const char *kind, const void *data, uint64_t bytes, uint64_t *used, void **module,
                        heddle_error *err);
  void (*release)(void *self, void *module); /* with its library */

  /* A function by name: what call gets; NULL: there is none. It lives as long as the module. Where the library has
   * constants for a function NAME of the module (TVM's const_loader), its function __init_NAME, if there is one, is
   * called once with them, as tensors, before any other call. */
  void *(*find)(void *self, void *module, const char *name);

  /* Tensors, strings and bytes are for the time of the call only, and must not be retained; what is written to a tensor
   * is the function's result. result is of kind NONE when it comes; a string in it is the module's and lives until this
   * thread's next call of it; bytes and tensors cannot be returned to compiled code. Of a failure the words are shown,
   * with the names of function and file before them. */
  heddle_status (*call)(void *self, void *module, void *function, const heddle_value *args, uint32_t n_args,
                        heddle_value *result, heddle_error *err);

  /* The names of its functions, for lists (heddle_module_kernel); NULL past the end. May be NULL: none is listed. */
  const char *(*name)(void *self, void *module, uint32_t i);
} heddle_module_loader;

/* Registers a loader for modules of a kind, for all libraries that are opened later; it is copied, and takes the place of
 * an earlier one. loader NULL: there is none any more. HEDDLE_EINVAL for a kind that Heddle reads itself, or a loader
 * without load, release, find or call. Any thread. */
HEDDLE_API heddle_status heddle_module_register_loader(const char *kind, const heddle_module_loader *loader, void *self,
                                                       heddle_error *err);

#ifdef __cplusplus
}
#endif

#endif
