/* modules/tvm/exports.c: what libheddle_tvm.so exports: the entry for libheddle, and the names that compiled libraries
 * import plainly instead of through pointers (C source, external code generators; since v0.24 every library imports
 * TVMFFIErrorSetRaisedFromCStrParts); TVM's C API is in api_*.c. The names and signatures are TVM's. */
#include <string.h>

#if HEDDLE_HAS_PACK
#include "modules/pack/pack.h"
#endif
#include "modules/tvm/launch.h"
#include "modules/tvm/loaders.h"
#include "modules/tvm/syslib.h"
#include "plugins/common/float16.h"

#define EXPORT __attribute__((visibility("default")))

bool heddle__tvm_enter(const void *given);
EXPORT const void *heddle_tvm_entry(const void *given);

/* ---- the table */

static void info(const heddle__tvm_library *l, heddle_module_info *out) {
  static const char *const eras[] = {"packed", "tvm-ffi v0.21", "tvm-ffi"};
  out->path = l->path;
  out->abi = l->is_foreign ? "unknown" : eras[l->era];
  out->n_functions = l->n_functions;
  out->n_imports = l->n_imports;
  out->scratch_bytes = heddle__tvm_scratch_most();
}

static const char *function(const heddle__tvm_library *l, uint32_t i) {
  return i < l->n_functions ? l->functions[i] : NULL;
}

static bool import(const heddle__tvm_library *l, uint32_t i, heddle_import_info *out) {
  if (i >= l->n_imports) return false;
  const heddle__submodule *m = &l->blob.modules[l->imports[i]];
  out->kind = m->kind;
  out->format = m->format != NULL ? m->format : "";
  out->bytes = m->code.bytes;
  out->code = m->code.data;
  out->n_kernels = m->n_kernels;
  out->is_model = m->graph.data != NULL;
  out->name = out->is_model && m->model_name != NULL ? m->model_name : "";
  while (m->loaded != NULL && heddle__loaded_name(m->loaded, out->n_kernels) != NULL) out->n_kernels++;
  return true;
}

static const char *kernel(const heddle__tvm_library *l, uint32_t i, uint32_t k) {
  const heddle__submodule *m = i < l->n_imports ? &l->blob.modules[l->imports[i]] : NULL;
  if (m != NULL && m->loaded != NULL) return heddle__loaded_name(m->loaded, k);
  return m != NULL && k < m->n_kernels ? m->kernels[k].name : NULL;
}

static heddle_status find_export(const heddle__tvm_library *l, const char *name, int32_t *type, const char **kind,
                                 heddle_error *err) {
  *type = HEDDLE_DEVICE_CPU;
  *kind = NULL;
  if (heddle__library_code(l, name) == NULL) {
    heddle_function *loaded = NULL;
    heddle_status s = heddle__library_loaded(l, name, &loaded, err);
    return s != HEDDLE_OK || loaded != NULL ? s : heddle__library_lacks(l, name, err);
  }
  for (uint32_t i = 0; i < l->n_kernels && *kind == NULL; i++) {
    const heddle__kernel_handle *h = &l->kernels[i];
    if (heddle__kernel_is_of(h, name)) *kind = h->module->kind;
  }
  if (*kind != NULL) *type = heddle__kind_type(*kind);
  return HEDDLE_OK;
}

static bool serves(const heddle__tvm_library *l, int32_t type) {
  for (uint32_t i = 0; i < l->n_kernels; i++)
    if (heddle__kind_type(l->kernels[i].module->kind) == type) return true;
  return false;
}

static heddle_status system_library(const char *prefix, heddle__tvm_library **out, char *notes, size_t size,
                                    heddle_error *err) {
  heddle__system_notes(notes, size);
  return heddle__library_system(prefix, out, err);
}

static uint64_t alignment(const heddle__tvm_library *l) {
  return l->era == HEDDLE__ERA_PACKED ? 128 : 64;
}

static const heddle__tvm_table table = {
    .layout = HEDDLE_TVM_LAYOUT,
    .version = HEDDLE_VERSION,
    .open = heddle__library_open,
    .system = system_library,
    .register_loader = heddle__loader_register,
    .close = heddle__library_close,
    .info = info,
    .function = function,
    .import = import,
    .kernel = kernel,
    .call = heddle__library_call,
    .find = find_export,
    .serves = serves,
    .plugin = heddle__kind_plugin,
    .attach = heddle__device_attach,
    .detach = heddle__device_detach,
    .alignment = alignment,
    .op = &heddle__tvm_op,
    .row = heddle__tvm_row,
    .model = heddle__library_model,
#if HEDDLE_HAS_PACK
    .pack = heddle__pack,
    .unpack = heddle__unpack,
#endif
};

const void *heddle_tvm_entry(const void *given) {
  (void)heddle__tvm_enter(given); /* where the layouts differ, libheddle refuses the table by its first member */
  return &table;
}

/* ---- plain names */

EXPORT int TVMBackendGetFuncFromEnv(void *library, const char *name, void **out);
EXPORT void *TVMBackendAllocWorkspace(int type, int id, uint64_t bytes, int code, int bits);
EXPORT int TVMBackendFreeWorkspace(int type, int id, void *p);
EXPORT int TVMBackendParallelLaunch(heddle__lambda lambda, void *data, int num_task);
EXPORT int TVMBackendParallelBarrier(int task, heddle__group *group);
EXPORT int TVMBackendRegisterSystemLibSymbol(const char *name, void *address);
EXPORT int TVMBackendRunOnce(void **handle, int (*f)(void *), void *data, int bytes);
EXPORT void TVMFFIErrorSetRaisedFromCStrParts(const char *kind, const char **parts, int32_t n);
EXPORT float __gnu_h2f_ieee(uint16_t half);
EXPORT uint16_t __gnu_f2h_ieee(float single);

int TVMBackendGetFuncFromEnv(void *library, const char *name, void **out) {
  return heddle__tvm_lookup(library, name, out);
}

void *TVMBackendAllocWorkspace(int type, int id, uint64_t bytes, int code, int bits) {
  return heddle__tvm_alloc_workspace(type, id, bytes, code, bits);
}

int TVMBackendFreeWorkspace(int type, int id, void *p) {
  return heddle__tvm_free_workspace(type, id, p);
}

int TVMBackendParallelLaunch(heddle__lambda lambda, void *data, int num_task) {
  return heddle__tvm_parallel_launch(lambda, data, num_task);
}

int TVMBackendParallelBarrier(int task, heddle__group *group) {
  return heddle__tvm_parallel_barrier(task, group);
}

int TVMBackendRegisterSystemLibSymbol(const char *name, void *address) {
  int rc = heddle__system_register(name, address);
  if (rc != 0)
    heddle__tvm_say(NULL, name == NULL || address == NULL ? "a symbol of the program: the name or the address is NULL"
                                                          : "out of memory: a symbol of the program");
  return rc;
}

/* Several threads may come at once; one of them runs f, and the library's handle says that it did. */
int TVMBackendRunOnce(void **handle, int (*f)(void *), void *data, int bytes) {
  (void)bytes;
  void *none = NULL;
  static char done;
  if (!__atomic_compare_exchange_n(handle, &none, (void *)&done, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) return 0;
  return f(data);
}

void TVMFFIErrorSetRaisedFromCStrParts(const char *kind, const char **parts, int32_t n) {
  heddle__tvm_raise_parts(kind, parts, n);
}

/* Half precision for code whose compiler had no instructions for it. */
float __gnu_h2f_ieee(uint16_t half) {
  return float16_to_float(half);
}

uint16_t __gnu_f2h_ieee(float single) {
  return float16_from_float(single);
}
