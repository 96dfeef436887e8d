/* modules/module.h: a compiled library as libheddle holds it, and the two tables that cross between libheddle and
 * libheddle_tvm.so, which holds the loaders and is opened when the first library is. Both are of one build: each table
 * begins with HEDDLE_TVM_LAYOUT, a hash of the headers that say what crosses (cmake/libheddle_tvm.cmake), and a table with
 * another one is refused. */
#ifndef HEDDLE_MODULES_MODULE_H
#define HEDDLE_MODULES_MODULE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "core/context.h"
#include "core/sealed.h"
#include "heddle/module.h"
#include "heddle/pack.h"

/* What libheddle gives: its memory, counted and made to fail in tests, and its threads. */
typedef struct heddle__tvm_host {
  const char *layout; /* HEDDLE_TVM_LAYOUT */
  void *(*alloc)(size_t count, size_t size);
  void *(*grow)(void *old, size_t old_count, size_t new_count, size_t size);
  void *(*alloc_aligned)(size_t bytes, size_t align);
  void (*free)(void *p);
  void (*pool_run)(heddle__pool *pool, uint32_t n, uint32_t flags, heddle_task_fn task, void *arg, uint32_t *granted);
  uint32_t (*pool_threads)(const heddle__pool *pool);
} heddle__tvm_host;

/* For libheddle_tvm.so where a program opened it before libheddle did; not for others. */
HEDDLE_API const heddle__tvm_host *heddle_tvm_host(void);

/* Whether a table is of this build, by its first member: HEDDLE_EABI where it is not. NULL is not. */
heddle_status heddle__tvm_check(const void *table, heddle_error *err);

/* A library that is open in this process; the same file is the same library. */
typedef struct heddle__tvm_library heddle__tvm_library;

/* What heddle__foreign.self points to: who calls a library's functions on a device. Lives as long as the model. */
typedef struct heddle__tvm_caller {
  heddle__tvm_library *library;
  heddle__pool *pool;
  heddle_device *dev; /* inline, with memory.native: addresses; else with modules: handles of buffers */
  void *device;       /* attach: what is loaded on a device that is not inline */
} heddle__tvm_caller;

/* Runs launches [*at, n) one after another until *attention is not 0; *at is then the next one, and of a failure the
 * one that failed. n > *at. */
typedef heddle_status (*heddle__row_fn)(heddle_plaunch *const *launches, uint32_t *at, uint32_t n,
                                        atomic_uint *attention, heddle_error *err);

/* What heddle_pack is asked for, read and checked. */
typedef struct heddle__pack_part {
  const char *name;
  const char *graph; /* JSON */
  size_t graph_bytes;
  void *params; /* as heddle_params_bytes gives them; NULL: none */
  size_t params_bytes;
} heddle__pack_part;

typedef struct heddle__pack_request {
  const char *path;
  const char *const *libraries;
  size_t n_libraries;
  const heddle__pack_part *models;
  size_t n_models;
  const heddle_pack_import *const *imports;
  size_t n_imports;
  bool no_params, no_models;
  const char *compiler; /* may be NULL */
} heddle__pack_request;

/* What libheddle_tvm.so gives, by heddle_tvm_entry(host); the first host that enters is kept. */
typedef struct heddle__tvm_table {
  const char *layout;  /* HEDDLE_TVM_LAYOUT; first in all builds */
  const char *version; /* heddle_version() of the library */

  /* The file was looked at by heddle__elf_check; name is what it is called. close takes what open gave. */
  heddle_status (*open)(const char *path, const char *name, heddle__tvm_library **out, heddle_error *err);
  /* What objects of the program have registered under a prefix; notes is what has to be logged, cut to size, or "". */
  heddle_status (*system)(const char *prefix, heddle__tvm_library **out, char *notes, size_t size, heddle_error *err);
  heddle_status (*register_loader)(const char *kind, const heddle_module_loader *loader, void *self, heddle_error *err);
  void (*close)(heddle__tvm_library *library);

  /* As of the public functions. */
  void (*info)(const heddle__tvm_library *library, heddle_module_info *out);
  const char *(*function)(const heddle__tvm_library *library, uint32_t i);
  bool (*import)(const heddle__tvm_library *library, uint32_t i, heddle_import_info *out);
  const char *(*kernel)(const heddle__tvm_library *library, uint32_t import, uint32_t i);
  /* stream NULL: the call is on cpu; else launches go to it, and it is for this call alone. */
  heddle_status (*call)(heddle__tvm_caller *caller, heddle_pstream *stream, const char *function,
                        const heddle_value *args, uint32_t n_args, heddle_value *result, heddle_error *err);

  /* HEDDLE_ENOTFOUND, or the DLPack type of the device whose code the function launches, and the kind of the
   * module inside that has a kernel of its name (1, cpu, and NULL where none has). */
  heddle_status (*find)(const heddle__tvm_library *library, const char *function, int32_t *device_type,
                        const char **kind, heddle_error *err);
  bool (*serves)(const heddle__tvm_library *library, int32_t device_type); /* has kernels for such devices */
  const char *(*plugin)(const char *kind);                                 /* whose devices run modules of a kind */

  /* Once per caller whose device is not inline; detach while it is still open, when no launch is left. */
  heddle_status (*attach)(heddle__tvm_caller *caller, heddle_error *err);
  void (*detach)(heddle__tvm_caller *caller);
  uint64_t (*alignment)(const heddle__tvm_library *library); /* that its code takes for granted of data */

  /* Nodes: prepare takes a heddle__tvm_caller as its device and a region of one node, whose op is the function; its
   * attribute "flatten_data" (an int) gives tensors of one dimension. query is NULL. */
  const heddle_op_table *op;
  heddle__row_fn row;

  /* The graph and the parameters of the model inside of the library, where it has one of that name (NULL: any, the
   * root's first). graph: borrowed, not terminated. params: a blob, freed with heddle__free. */
  heddle_status (*model)(const heddle__tvm_library *library, const char *name, const char **graph, size_t *graph_bytes,
                         void **params, size_t *params_bytes, heddle_error *err);

  /* heddle_pack, heddle_unpack; NULL in a build without them. */
  heddle_status (*pack)(const heddle__pack_request *request, heddle_error *err);
  heddle_status (*unpack)(const char *path, const char *folder, heddle_error *err);
} heddle__tvm_table;

/* libheddle_tvm.so, opened when it is first asked for. HEDDLE_EUNSUPPORTED, HEDDLE_EABI. */
heddle_status heddle__tvm_open(const heddle__tvm_table **out, heddle_error *err);

struct heddle_module {
  atomic_uint references;
  heddle_context *ctx;
  const heddle__tvm_table *t;
  heddle__tvm_library *library;
  pthread_mutex_t lock;                /* guards devices */
  struct heddle__call_device *devices; /* that functions were called on, open until the module ends */
  heddle__sealed file;                 /* what it was loaded from; closed when the library is not mapped any more */
  void *image;                         /* heddle__module_image; NULL: not read */
  size_t image_bytes;
  bool is_system;
};

/* heddle_module_load of a file that is open; it is taken over, and closed where that fails. */
heddle_status heddle__module_load(heddle_context *ctx, heddle__sealed *file, heddle_module **out, heddle_error *err);

/* Reads the bytes of the library's file into m->image, for devices that run its functions elsewhere; they stay until the module
 * ends. HEDDLE_EUNSUPPORTED for the program's own functions, which have no file. One thread at a time. */
heddle_status heddle__module_image(heddle_module *m, heddle_error *err);

/* Whether a trust file, if there is one, accepts a library. HEDDLE_EDENIED. */
heddle_status heddle__module_trusted(const heddle_module *m, const char *trust, heddle_error *err);

#endif
