/* modules/tvm/env.c: what compiled code asks of its surroundings: functions by name, and calls of them. There are none
 * here yet besides a library's own, which it calls directly; so a question gets an answer in words. */
#include <stdio.h>

#include "modules/tvm/library.h"

int heddle__tvm_lookup(void *library, const char *name, void **out) {
  const heddle__tvm_library *l = library;
  char words[900];
  *out = NULL;
  snprintf(words, sizeof words,
           "it asks for function '%.200s', which is neither in the modules inside of %.300s nor registered here; "
           "functions that launch device code do not run in this version",
           name != NULL ? name : "", l != NULL ? l->path : "its library");
  heddle__tvm_say(NULL, words);
  return -1;
}

int heddle__tvm_call_packed(void *f, heddle__word *args, int32_t *codes, int32_t n, heddle__word *ret,
                            int32_t *ret_code) {
  (void)f, (void)args, (void)codes, (void)n;
  ret->i = 0;
  *ret_code = PACKED_NULL;
  heddle__tvm_say(NULL, "it calls a function that was never given to it");
  return -1;
}

int heddle__tvm_call_ffi(void *f, heddle__any *args, int32_t n, heddle__any *result) {
  (void)f, (void)args, (void)n;
  *result = (heddle__any){.type = ANY_NONE};
  heddle__tvm_say(NULL, "it calls a function that was never given to it");
  return -1;
}

int heddle__tvm_init_once(void **handle, int (*init)(void **result)) {
  void *now = __atomic_load_n(handle, __ATOMIC_ACQUIRE), *made = NULL;
  if (now != NULL) return 0;
  int rc = init(&made);
  if (rc == 0) __atomic_store_n(handle, made, __ATOMIC_RELEASE);
  return rc;
}
