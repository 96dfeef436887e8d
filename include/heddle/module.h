/* heddle/module.h: compiled libraries: their contents, and calls of their functions.
 * Opens a library that TVM compiled (v0.3 to v0.27) from the path that the user gives. Its functions run as nodes of a
 * graph (heddle_model_options.library) or by name with heddle_module_call. docs/tvm.md lists what is supported. */
#ifndef HEDDLE_MODULE_H
#define HEDDLE_MODULE_H

#include "heddle/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct heddle_module heddle_module;

/* Opens a library. A path without '/' is a file in the current directory; no other folder is searched. A file that is
 * already open is shared, with all state that its code keeps. The library is code and runs with the rights of the
 * process. *out receives one reference. Models hold references too; the last release unloads the library. HEDDLE_EIO;
 * HEDDLE_EABI: not a library that this process can load; HEDDLE_EFORMAT: malformed content; HEDDLE_EUNSUPPORTED names a
 * kind of module in it that has no loader here; HEDDLE_EBUSY: a loader of the application opens the library that it is
 * called for. Any thread; blocks. */
HEDDLE_API heddle_status heddle_module_load(heddle_context *ctx, const char *path, heddle_module **out,
                                            heddle_error *err);

/* heddle_module_open's options; struct_size is sizeof. */
typedef struct heddle_module_options {
  size_t struct_size;
  const char *trust; /* a trust file (docs/signing.md), by which the library must be signed; NULL: the setting trust */
  const char *key;   /* the file of the key of an encrypted library; NULL: the setting key_file */
} heddle_module_options;

/* heddle_module_load with options, which may be NULL. HEDDLE_EDENIED: trust refuses the library. A library that was
 * verified or decrypted is opened from a copy of its own in memory, and shared with no other that is open. */
HEDDLE_API heddle_status heddle_module_open(heddle_context *ctx, const char *path, const heddle_module_options *options,
                                            heddle_module **out, heddle_error *err);

/* Opens the system library: the functions of objects that were compiled with --system-lib and linked into this program.
 * The objects register themselves before main, or when a library that contains them is opened
 * (TVMBackendRegisterSystemLibSymbol of libheddle_tvm.so, TVMFFIEnvModRegisterSystemLibSymbol of libheddle_tvm_ffi.so).
 * prefix is the prefix they were compiled with; NULL or "": none. Names are looked up with the prefix, then without it.
 * The functions with the prefix are listed, or all functions if none has it.
 * There is one library per prefix for the life of the process. It contains what was registered when it was first
 * requested. Functions registered later are found by name, but are listed only once nothing uses the library and it is
 * requested again. Names that are registered twice are logged. HEDDLE_EUNSUPPORTED if objects from before v0.22 and
 * later ones have the same prefix; other errors as heddle_module_load. Any thread; blocks. */
HEDDLE_API heddle_status heddle_module_system(heddle_context *ctx, const char *prefix, heddle_module **out,
                                              heddle_error *err);

/* Retain adds a reference and returns m; release drops one. The last release unloads the library, and blocks until that
 * is done. Any thread. */
HEDDLE_API heddle_module *heddle_module_retain(heddle_module *m);
HEDDLE_API void heddle_module_release(heddle_module *m); /* takes NULL */

/* Describes a library. Borrowed from the module. */
typedef struct heddle_module_info {
  size_t struct_size;
  const char *path;
  const char *abi;        /* calling convention: "packed" (v0.3 to v0.20), "tvm-ffi v0.21", "tvm-ffi";
                           * "unknown": as "packed", but nothing in it shows that TVM compiled it */
  uint32_t n_functions;   /* exported functions */
  uint32_t n_imports;     /* modules inside it: device code and the like */
  uint64_t scratch_bytes; /* peak scratch memory of compiled code, of all libraries and threads */
} heddle_module_info;

/* Set out->struct_size. Any thread. */
HEDDLE_API heddle_status heddle_module_get_info(const heddle_module *m, heddle_module_info *out, heddle_error *err);

/* The name of the i-th function, as graphs call it, in alphabetical order; NULL past the end. Borrowed from the module.
 * Any thread. */
HEDDLE_API const char *heddle_module_function(const heddle_module *m, uint32_t i);

/* A module inside the library. Borrowed from the module. */
typedef struct heddle_import_info {
  size_t struct_size;
  const char *kind;   /* "opencl", "cuda", ...; "GraphExecutorFactory" for a model */
  const char *format; /* of its code: "cl", "ptx"; "" if the kind has none */
  uint64_t bytes;     /* of its code */
  uint32_t n_kernels; /* or functions, if a loader of the application made the module */
  uint32_t is_model;  /* 1: a graph with its parameters */
  const char *name;   /* of a model: its name for heddle_model_options.model_name; else "" */
  const void *code;   /* its bytes as stored in the library: text or binary; not terminated */
} heddle_import_info;

/* Describes the i-th module inside the library, and names the i-th kernel of one (borrowed from the module). Set
 * out->struct_size. HEDDLE_ENOTFOUND past the end. Any thread. */
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
  HEDDLE_VALUE_TENSOR = 6, /* in host memory or on a device */
  HEDDLE_VALUE_POINTER = 7,
  HEDDLE_VALUE_MODULE = 8,   /* heddle/function.h */
  HEDDLE_VALUE_FUNCTION = 9, /* heddle/function.h */
  HEDDLE_VALUE_DEVICE = 10,  /* DLPack device type and number */
  HEDDLE_VALUE_DTYPE = 11
};

/* Functions, and modules whose functions are found by name, as values; see heddle/function.h. */
typedef struct heddle_function heddle_function;
typedef struct heddle_object heddle_object;

/* An argument or a result. Arguments are borrowed. In a result, a tensor, a module and a function carry a reference for
 * the caller; a string and bytes are valid until this thread's next result of that kind. */
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

/* Calls a function of the library by name; "__tvm_main__" is its entry. Tensors are passed without a copy: after the
 * call they contain what the function wrote. Compiled code requires the alignment of heddle_tensor_create. If tensors
 * are on a device, all of those must be on the same one: kernels are launched there on a stream of the module, and the
 * call waits for them; the module keeps the device open. result may be NULL: the function's result is then released.
 * HEDDLE_ENOTFOUND: the library has no such function. HEDDLE_EFAILED, with the function's own message, if it reports a
 * failure, or the status that the device's plugin reports. HEDDLE_EINVAL: an argument that libraries of this generation
 * cannot take. HEDDLE_EUNSUPPORTED: the library has no code for the device. Several threads may call at once, and a
 * function of the application that is called may call others. Blocks. */
HEDDLE_API heddle_status heddle_module_call(heddle_module *m, const char *function, const heddle_value *args,
                                            uint32_t n_args, heddle_value *result, heddle_error *err);

/* A loader reads and runs modules of a kind that Heddle does not know (the JSON graphs of external code generators, a
 * vendor's format). Its functions must stay valid for the life of the process. Functions of such a module are found by
 * name: by compiled code, as nodes of a graph on cpu, and by heddle_module_call. load and release are called once per
 * module, on the thread that opens the library and on the thread that closes it last. The other functions are called
 * from any thread, several at once, also during a run. Heddle holds no lock during these calls. */
typedef struct heddle_module_loader {
  size_t struct_size;
  /* Creates *module from its bytes. They have no alignment and stay valid as long as the module. Libraries of v0.22 and
   * later store the length of a module. Up to v0.21, bytes is the length of the rest of the blob: set *used, which
   * equals bytes on entry, to the number of bytes that belong to the module. */
  heddle_status (*load)(void *self, const char *kind, const void *data, uint64_t bytes, uint64_t *used, void **module,
                        heddle_error *err);
  void (*release)(void *self, void *module); /* when its library is closed */

  /* Finds a function by name and returns the pointer that call receives, valid as long as the module; NULL if there is
   * none. If the library has constants for a function NAME of the module (TVM's const_loader), the module's function
   * __init_NAME, if there is one, is called once with them, as tensors, before any other call. */
  void *(*find)(void *self, void *module, const char *name);

  /* Calls a function. Tensors, strings and bytes are valid only during the call and must not be retained. The function
   * writes its results to tensors. *result has kind NONE on entry. A string in it belongs to the module and must stay
   * valid until this thread's next call of the module. Bytes and tensors cannot be returned to compiled code. On
   * failure, the message in err is reported with the names of the function and the file before it. */
  heddle_status (*call)(void *self, void *module, void *function, const heddle_value *args, uint32_t n_args,
                        heddle_value *result, heddle_error *err);

  /* The name of the i-th function, for lists (heddle_module_kernel); NULL past the end. May be NULL: none is listed. */
  const char *(*name)(void *self, void *module, uint32_t i);

  /* Writes a module as load reads it, when a library that holds it is packed (heddle_pack): calls write with to and the next
   * bytes, any number of times. May be NULL: the bytes that the module was loaded from are written again. */
  heddle_status (*save)(void *self, void *module, void (*write)(void *to, const void *data, size_t bytes), void *to,
                        heddle_error *err);
} heddle_module_loader;

/* Registers a loader for modules of a kind, for all libraries opened later. *loader is copied and replaces an earlier
 * one; loader NULL removes it. HEDDLE_EINVAL for a kind that Heddle reads itself, or a loader without load, release,
 * find or call. Any thread. */
HEDDLE_API heddle_status heddle_module_register_loader(const char *kind, const heddle_module_loader *loader, void *self,
                                                       heddle_error *err);

#ifdef __cplusplus
}
#endif

#endif
