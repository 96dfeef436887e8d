/* modules/tvm/library.h: a compiled library that is open: its generation, its functions, what it carries.
 * One per file in the process, and one system library per prefix; read-only while it is in use, but for its count of
 * users and is_v22. */
#ifndef HEDDLE_MODULES_TVM_LIBRARY_H
#define HEDDLE_MODULES_TVM_LIBRARY_H

#include "modules/tvm/blob.h"
#include "modules/tvm/image.h"
#include "modules/tvm/registry.h"
#include "modules/tvm/tensors.h"
#include "modules/tvm/thread.h"

typedef enum heddle__era {
  HEDDLE__ERA_PACKED, /* v0.3 to v0.20 */
  HEDDLE__ERA_FFI21,  /* v0.21: plain names, objects of 16 bytes */
  HEDDLE__ERA_FFI     /* v0.22 and later: names begin with __tvm_ffi_ */
} heddle__era;

struct heddle__tvm_library {
  struct heddle__tvm_library *next; /* open.c, with the next three: guarded by its lock */
  unsigned users;                   /* 0: of a file that others have open too, and that waits to be opened again */
  bool is_whole;                    /* it was set up without an error */
  bool is_busy;                     /* owner sets it up or ends it */
  bool is_shut;                     /* handle is closed already */
  pthread_t owner;
  void *handle; /* of dlopen; NULL: a system library */
  char *path;   /* as users know it */
  char *use;    /* of a file: as the system's loader does */
  heddle__image image;
  heddle__symbols symbols; /* of the image, or of what was registered */
  uint64_t changes;        /* of a system library: up to when it has seen what was registered */
  heddle__era era;
  bool is_foreign;        /* a file in which nothing is TVM's: kernels of C source, or no such library at all */
  atomic_bool is_v22;     /* of HEDDLE__ERA_FFI: bool is (1, 1); learnt from its functions (bool22.c) */
  const char **functions; /* names as graphs have them, sorted; in the symbols' own strings */
  uint32_t n_functions;
  heddle__blob blob;
  uint32_t *imports; /* modules of the blob that are no host library: what users see as imports */
  uint32_t n_imports;
  uint32_t *order;                       /* the same as functions are looked for in them */
  struct heddle__kernel_handle *kernels; /* of all imports, by number */
  uint32_t n_kernels;
  heddle__tensors tensors; /* of bound nodes */
};

/* A function of the library by name, as code; NULL: there is none. "__tvm_main__" is the entry. */
void *heddle__library_code(const heddle__tvm_library *library, const char *name);

/* A function of a module inside that the application's loader made; *out NULL: there is none of that name. HEDDLE_ENOMEM. */
heddle_status heddle__library_loaded(const heddle__tvm_library *library, const char *name, heddle_function **out,
                                     heddle_error *err);

/* constants.c: hands the constants that the library carries to the modules that want them and to its own code, which
 * may call functions: the library is set up, but for this. */
heddle_status heddle__library_constants(heddle__tvm_library *library, heddle_error *err);

/* cxx.c: calls code of the library's own with one Array of NDArrays of TVM's C++ runtime, of tensors; it returns 0. Each
 * NDArray has a reference on its tensor, for as long as that code keeps it. */
heddle_status heddle__library_give_objects(const heddle__tvm_library *library, const char *name, void *code,
                                           const heddle_value *tensors, uint64_t n, heddle_error *err);

/* HEDDLE_ENOTFOUND with the nearest of what there is. */
heddle_status heddle__library_lacks(const heddle__tvm_library *library, const char *name, heddle_error *err);

/* functions.c: the generation by the names of symbols (era, is_foreign), and the list of functions made anew. */
heddle_status heddle__library_era(heddle__tvm_library *library, heddle_error *err);
heddle_status heddle__library_list(heddle__tvm_library *library, heddle_error *err);

/* library.c: reads what there is of a library whose symbols are known; clear ends that, also of what failed half-way, but
 * for path and handle. They call loaders of the application. */
heddle_status heddle__library_set_up(heddle__tvm_library *library, heddle_error *err);
void heddle__library_clear(heddle__tvm_library *library);

/* path is what the system's loader opens, name what users know it by. */
heddle_status heddle__library_open(const char *path, const char *name, heddle__tvm_library **out, heddle_error *err);

/* The system library of a prefix ("": all that has none). Made when it is first asked for, of what is registered then;
 * functions that are registered later are found too. It never goes away; open and close count as for others. */
heddle_status heddle__library_system(const char *prefix, heddle__tvm_library **out, heddle_error *err);
void heddle__library_close(heddle__tvm_library *library);

/* map.c: what dlopen gives for a path, with the libraries of names beside this one opened where the file needs them. */
heddle_status heddle__library_map(const char *path, void **out, heddle_error *err);

/* How code that was compiled against TVM's C++ headers passes functions on: not at all, as objects, as std::function (v0.8). */
typedef enum heddle__cxx_functions { HEDDLE__CXX_ANY, HEDDLE__CXX_OBJECTS, HEDDLE__CXX_STD } heddle__cxx_functions;

/* The table of libheddle_tvm_cxx or libheddle_tvm_cxx_v08 (modules/tvm_cxx/entry.h), which is opened where the process has neither;
 * NULL with an error: it is not there, of another build, or of another era than these functions. Any thread. */
const struct heddle__tvm_cxx_table *heddle__tvm_cxx(heddle__cxx_functions functions, heddle_error *err);

/* Whether a pointer is that of an open library; it may be anything. Any thread. */
bool heddle__library_is_open(const void *pointer);

/* call.c, op.c, model.c: what the table has. */
heddle_status heddle__library_call(heddle__tvm_caller *caller, heddle_pstream *stream, const char *function,
                                   const heddle_value *args, uint32_t n_args, heddle_value *result, heddle_error *err);
heddle_status heddle__library_model(const heddle__tvm_library *library, const char *name, const char **graph,
                                    size_t *graph_bytes, void **params, size_t *params_bytes, heddle_error *err);
extern const heddle_op_table heddle__tvm_op;
heddle_status heddle__tvm_row(heddle_plaunch *const *launches, uint32_t *at, uint32_t n, atomic_uint *attention,
                              heddle_error *err);

/* The dtype as a library's functions compare it: bool is (1, 1, 1) up to v0.22. */
static inline heddle_dtype heddle__library_dtype(const heddle__tvm_library *l, heddle_dtype t) {
  bool old = t.code == HEDDLE_DTYPE_BOOL &&
             (l->era != HEDDLE__ERA_FFI || atomic_load_explicit(&l->is_v22, memory_order_relaxed));
  return old ? (heddle_dtype){HEDDLE_DTYPE_UINT, 1, t.lanes} : t;
}

/* bool22.c: after a call that failed with rc. Where it refused a dtype and has an argument of bool, it is made once more
 * with v0.22's bool; if that works, the library is of v0.22 from then on (heddle__library_dtype). What counts in the end
 * is returned; args are as they were. Allocates, and is not on the path of calls that work. */
int heddle__bool22_again(heddle__tvm_library *library, heddle__ffi_fn f, heddle__any *args, int32_t n,
                         heddle__any *result, int rc);

#endif
