/* modules/tvm/ffi_names.h: what libheddle_tvm.so gives libheddle_tvm_ffi.so, which exports it under tvm-ffi's names: they
 * are in a library of their own since a tvm_ffi that comes into the process later finds names that are there first. */
#ifndef HEDDLE_MODULES_TVM_FFI_NAMES_H
#define HEDDLE_MODULES_TVM_FFI_NAMES_H

#include "modules/tvm/abi.h"

/* Each function finds from its arguments whether the caller uses ours or a tvm_ffi; calls of the latter are forwarded
 * to it. Signatures and results are tvm-ffi's. */
typedef struct heddle__ffi_names {
  int (*call)(void *function, heddle__any *args, int32_t n, heddle__any *result);
  void (*raise)(const char *kind, const char *words);
  int (*lookup)(void *library, const char *name, void **out);
  int (*init_once)(void **handle, int (*init)(void **result));
  int (*register_symbol)(const char *name, void *address);
} heddle__ffi_names;

__attribute__((visibility("default"))) const heddle__ffi_names *heddle_tvm_ffi_names(void);

#endif
