/* modules/tvm/env.c: what compiled code asks of its surroundings: functions by name (its kernels, those of modules of the
 * application's and of modules that were imported, then those of registry.c), and calls of them; a library's own functions
 * it calls directly. */
#include <stdio.h>
#include <string.h>

#include "modules/tvm/convert.h"
#include "modules/tvm/ffi_object.h"
#include "modules/tvm/launch.h"

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
  heddle_function *imported = NULL;
  if (l != NULL && name != NULL && heddle__library_imported(l, name, &imported) != 0) return -1;
  if ((*out = imported) != NULL) return 0;
  if (name != NULL && (*out = heddle__registry_pin(name)) != NULL) return 0;
  snprintf(words, sizeof words,
           "it asks for function '%.200s', which is neither in the modules inside of %.300s nor registered%s",
           name != NULL ? name : "", l != NULL ? l->path : "its library",
           name != NULL && strncmp(name, "device_api.", 11) == 0
               ? " (that is an object of TVM's own C++ library, which is not here)"
               : "");
  heddle__tvm_say(NULL, words);
  return -1;
}

int heddle__tvm_call_packed(void *f, heddle__word *args, int32_t *codes, int32_t n, heddle__word *ret,
                            int32_t *ret_code) {
  if (f != NULL && ((const heddle_function *)f)->mark == HEDDLE__FUNCTION_MARK)
    return heddle__function_call(f, args, codes, n, ret, ret_code);
  heddle__tvm_say(NULL, "it calls what is no function");
  return -1;
}

static int call_ffi(void *handle, const heddle__any *args, int32_t n, heddle__any *result, bool era21) {
  enum { MOST = 128 };
  heddle__word words[MOST], ret = {0};
  heddle__bytes spare[MOST];
  int32_t codes[MOST], ret_code = PACKED_NULL;
  char text[120];
  heddle_function *f = handle != NULL ? heddle__handle_function(handle) : NULL;
  int32_t i = 0;
  int rc = -1;
  if (n >= 0 && n <= MOST)
    while (i < n && heddle__any_to_word(&args[i], era21, &words[i], &codes[i], &spare[i])) i++;
  if (f == NULL) {
    heddle__tvm_say(NULL, "it calls what is no function");
  } else if (n < 0 || n > MOST) {
    snprintf(text, sizeof text, "it calls a function with %d arguments; at most %d are possible", (int)n, (int)MOST);
    heddle__tvm_say(NULL, text);
  } else if (i < n) {
    snprintf(text, sizeof text, "it calls a function, and argument %d is of type %d, which is not known", (int)i,
             (int)args[i].type);
    heddle__tvm_say(NULL, text);
  } else {
    rc = heddle__function_call(f, words, codes, n, &ret, &ret_code);
  }
  *result = (heddle__any){.type = ANY_NONE};
  return rc == 0 && !heddle__word_to_any(ret, ret_code, era21, result) ? -1 : rc;
}

int heddle__tvm_call_ffi(void *f, const heddle__any *args, int32_t n, heddle__any *result) {
  return call_ffi(f, args, n, result, false);
}

int heddle__tvm_call_ffi21(void *f, const heddle__any *args, int32_t n, heddle__any *result) {
  return call_ffi(f, args, n, result, true);
}

int heddle__tvm_init_once(void **handle, int (*init)(void **result)) {
  void *now = __atomic_load_n(handle, __ATOMIC_ACQUIRE), *made = NULL;
  if (now != NULL) return 0;
  int rc = init(&made);
  if (rc == 0) __atomic_store_n(handle, made, __ATOMIC_RELEASE);
  return rc;
}
