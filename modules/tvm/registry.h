/* modules/tvm/registry.h: named functions that compiled code may ask for. A handle that code was given stays good for
 * the life of the process: code keeps it in its own memory, without telling. */
#ifndef HEDDLE_MODULES_TVM_REGISTRY_H
#define HEDDLE_MODULES_TVM_REGISTRY_H

#include "modules/tvm/thread.h"

/* Arguments as packed functions have them, in either generation. 0: done; else it failed, and said so. */
typedef int (*heddle__tvm_fn)(const heddle__word *args, const int32_t *codes, int32_t n);

typedef struct heddle__tvm_function {
  const char *name;
  heddle__tvm_fn call; /* NULL: it is the head of a kernel (launch.h) */
} heddle__tvm_function;

/* NULL: there is none of that name. Any thread. */
const heddle__tvm_function *heddle__tvm_registered(const char *name);

/* launch.c: __tvm_set_device(type, number) */
int heddle__tvm_set_device(const heddle__word *args, const int32_t *codes, int32_t n);

/* sort.c: tvm.contrib.sort.* */
int heddle__tvm_sort(const heddle__word *args, const int32_t *codes, int32_t n);
int heddle__tvm_argsort(const heddle__word *args, const int32_t *codes, int32_t n);
int heddle__tvm_argsort_nms(const heddle__word *args, const int32_t *codes, int32_t n);
int heddle__tvm_topk(const heddle__word *args, const int32_t *codes, int32_t n);

#endif
