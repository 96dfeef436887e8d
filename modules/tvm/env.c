/* modules/tvm/env.c: what compiled code asks of its surroundings: functions by name (its kernels, those of modules of
 * the application's, then those of registry.c), and calls of them; a library's own functions it calls directly. */
#include <stdio.h>
#include <string.h>

#include "modules/tvm/launch.h"
#include "modules/tvm/registry.h"

int heddle__tvm_lookup(void *library, const char *name, void **out) {
  const heddle__tvm_library *l = library;
  char words[900];
  *out = NULL;
  if (l != NULL && name != NULL && heddle__tvm_kernel_find(l, name, out)) return *out != NULL ? 0 : -1;
  heddle_error why = {0};
  heddle_function *loaded = NULL;
  if (l != NULL && name != NULL && heddle__library_loaded(l, name, &loaded, &why) != HEDDLE_OK) {
    heddle__tvm_say_error(name, &why);
    return -1;
  }
  if ((*out = loaded) != NULL) return 0;
  if (name != NULL && (*out = heddle__registry_pin(name)) != NULL) return 0;
  snprintf(words, sizeof words,
           "it asks for function '%.200s', which is neither in the modules inside of %.300s nor registered",
           name != NULL ? name : "", l != NULL ? l->path : "its library");
  heddle__tvm_say(NULL, words);
  return -1;
}

int heddle__tvm_call_packed(void *f, heddle__word *args, int32_t *codes, int32_t n, heddle__word *ret,
                            int32_t *ret_code) {
  return heddle__function_call(f, args, codes, n, ret, ret_code);
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

static bool convert_result(const heddle__word *word, int32_t code, heddle__any *any) {
  *any = (heddle__any){.type = ANY_NONE};
  switch (code) {
  case PACKED_NULL: return true;
  case PACKED_INT: any->type = ANY_INT; break;
  case PACKED_BOOL: any->type = ANY_BOOL; break;
  case PACKED_FLOAT: any->type = ANY_FLOAT; break;
  case PACKED_HANDLE: any->type = ANY_POINTER; break;
  default: heddle__tvm_say(NULL, "a function returned what code of this generation cannot take"); return false;
  }
  any->v = *word;
  return true;
}

int heddle__tvm_call_ffi(void *f, heddle__any *args, int32_t n, heddle__any *result) {
  enum { MOST = 128 };
  heddle__word words[MOST], ret;
  int32_t codes[MOST], ret_code;
  bool good = n >= 0 && n <= MOST;
  for (int32_t i = 0; i < n && good; i++) good = convert(&args[i], &words[i], &codes[i]);
  if (!good) heddle__tvm_say(NULL, "it calls a function with arguments that are not known");
  int rc = good ? heddle__function_call(f, words, codes, n, &ret, &ret_code) : -1;
  *result = (heddle__any){.type = ANY_NONE};
  return rc == 0 && !convert_result(&ret, ret_code, result) ? -1 : rc;
}

int heddle__tvm_init_once(void **handle, int (*init)(void **result)) {
  void *now = __atomic_load_n(handle, __ATOMIC_ACQUIRE), *made = NULL;
  if (now != NULL) return 0;
  int rc = init(&made);
  if (rc == 0) __atomic_store_n(handle, made, __ATOMIC_RELEASE);
  return rc;
}
