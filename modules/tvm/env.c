/* modules/tvm/env.c: what compiled code asks of its surroundings: functions by name, and calls of them. It finds those
 * of registry.c; a library's own functions it calls directly. */
#include <stdio.h>
#include <string.h>

#include "modules/tvm/launch.h"
#include "modules/tvm/registry.h"

static const heddle__tvm_function functions[] = {
    {"__tvm_set_device", heddle__tvm_set_device},
    {"tvm.contrib.sort.argsort", heddle__tvm_argsort},
    {"tvm.contrib.sort.argsort_nms", heddle__tvm_argsort_nms},
    {"tvm.contrib.sort.sort", heddle__tvm_sort},
    {"tvm.contrib.sort.topk", heddle__tvm_topk},
};

const heddle__tvm_function *heddle__tvm_registered(const char *name) {
  for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++)
    if (strcmp(functions[i].name, name) == 0) return &functions[i];
  return NULL;
}

int heddle__tvm_lookup(void *library, const char *name, void **out) {
  const heddle__tvm_library *l = library;
  const heddle__tvm_function *f = name != NULL ? heddle__tvm_registered(name) : NULL;
  char words[900];
  *out = (void *)(uintptr_t)f;
  if (f != NULL) return 0;
  if (l != NULL && name != NULL && heddle__tvm_kernel_find(l, name, out)) return *out != NULL ? 0 : -1;
  snprintf(words, sizeof words,
           "it asks for function '%.200s', which is neither in the modules inside of %.300s nor registered",
           name != NULL ? name : "", l != NULL ? l->path : "its library");
  heddle__tvm_say(NULL, words);
  return -1;
}

int heddle__tvm_call_packed(void *f, heddle__word *args, int32_t *codes, int32_t n, heddle__word *ret,
                            int32_t *ret_code) {
  const heddle__tvm_function *function = f;
  int rc = function->call != NULL
               ? function->call(args, codes, n)
               : heddle__tvm_launch(f, args, codes, n); /* ret may lie right behind args: it is written last */
  ret->i = 0;
  *ret_code = PACKED_NULL;
  return rc;
}

/* The arguments of the newer generation in the older one's form: one set of functions serves both. */
static bool convert(const heddle__any *any, heddle__word *word, int32_t *code) {
  enum { TENSOR_OBJECT = 70, TENSOR_OBJECT21 = 72 };
  *word = any->v;
  switch (any->type) {
  case ANY_NONE: *code = PACKED_NULL; break;
  case ANY_INT:
  case ANY_BOOL: *code = PACKED_INT; break;
  case ANY_FLOAT: *code = PACKED_FLOAT; break;
  case ANY_POINTER: *code = PACKED_HANDLE; break;
  case ANY_TENSOR: *code = PACKED_TENSOR; break;
  case ANY_STRING: *code = PACKED_STRING; break;
  case ANY_SMALL_STRING: /* ends in a zero byte, being of at most seven */
    *code = PACKED_STRING;
    word->s = (const char *)&any->v;
    break;
  case ANY_STRING_OBJECT:
    *code = PACKED_STRING;
    word->s = ((const heddle__bytes *)(const void *)((const heddle__object *)any->v.p + 1))->data;
    break;
  case TENSOR_OBJECT:
    *code = PACKED_TENSOR;
    word->p = (heddle__object *)any->v.p + 1;
    break;
  case TENSOR_OBJECT21:
    *code = PACKED_TENSOR;
    word->p = (heddle__object21 *)any->v.p + 1;
    break;
  default: return false;
  }
  return true;
}

int heddle__tvm_call_ffi(void *f, heddle__any *args, int32_t n, heddle__any *result) {
  enum { MOST = 128 };
  const heddle__tvm_function *function = f;
  heddle__word words[MOST];
  int32_t codes[MOST];
  bool good = n >= 0 && n <= MOST;
  for (int32_t i = 0; i < n && good; i++) good = convert(&args[i], &words[i], &codes[i]);
  if (!good) heddle__tvm_say(NULL, "it calls a function with arguments that are not known");
  int rc = -1;
  if (good) rc = function->call != NULL ? function->call(words, codes, n) : heddle__tvm_launch(f, words, codes, n);
  *result = (heddle__any){.type = ANY_NONE};
  return rc;
}

int heddle__tvm_init_once(void **handle, int (*init)(void **result)) {
  void *now = __atomic_load_n(handle, __ATOMIC_ACQUIRE), *made = NULL;
  if (now != NULL) return 0;
  int rc = init(&made);
  if (rc == 0) __atomic_store_n(handle, made, __ATOMIC_RELEASE);
  return rc;
}
