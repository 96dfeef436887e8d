/* modules/tvm/api_function.c: TVM's C API, functions: calls, functions of the application, functions by name. */
#include <string.h>

#include "core/alloc.h"
#include "modules/tvm/api.h"
#include "modules/tvm/convert.h"
#include "modules/tvm/launch.h"

heddle_function *heddle__api_function(const char *caller, void *handle) {
  heddle_function *f = handle;
  if (f != NULL && f->mark == HEDDLE__FUNCTION_MARK) return f;
  heddle__api_refuse("%s: the handle is %s", caller, f == NULL ? "NULL" : "no function");
  return NULL;
}

int TVMFuncFree(TVMFunctionHandle func) {
  heddle_function *f = func != NULL ? heddle__api_function("TVMFuncFree", func) : NULL;
  heddle__function_release(f);
  return func == NULL || f != NULL ? 0 : -1;
}

/* Compiled code of C sources calls this too, for each of its kernels. */
int TVMFuncCall(TVMFunctionHandle func, TVMValue *arg_values, int *type_codes, int num_args, TVMValue *ret_val,
                int *ret_type_code) {
  heddle__word ret = {0};
  int32_t code = PACKED_NULL;
  heddle_function *f = heddle__api_function("TVMFuncCall", func);
  if (f == NULL) return -1;
  if (num_args < 0 || (num_args > 0 && (arg_values == NULL || type_codes == NULL)))
    return heddle__api_refuse("TVMFuncCall: function '%.200s' is called with %d arguments, and they are not there",
                              f->name, num_args);
  int rc = heddle__function_call(f, (heddle__word *)(void *)arg_values, type_codes, num_args, &ret, &code);
  if (rc == 0 && code == PACKED_BOOL) code = PACKED_INT;
  if (rc == 0 && code == PACKED_DTYPE) { /* a dtype comes back as its name */
    heddle_dtype dtype;
    memcpy(&dtype, &ret, sizeof dtype);
    ret.s = heddle__api_dtype_name(dtype);
    code = PACKED_STRING;
    if (ret.s == NULL) rc = -1;
  }
  if (ret_val != NULL && ret_type_code != NULL) {
    if (rc != 0) code = PACKED_NULL;
    memcpy(ret_val, &ret, sizeof ret);
    *ret_type_code = code;
  } else if (rc == 0) {
    heddle__result_drop(ret, code);
  }
  return rc;
}

/* ---- functions of the application */

typedef struct c_function {
  TVMPackedCFunc f;
  void *resource;
  TVMPackedCFuncFinalizer finish;
} c_function;

typedef struct result {
  heddle__word *word;
  int32_t *code;
} result;

/* The function may change its arguments, as TVMCbArgToReturn does. What was launched before is done when it runs. */
static int call(void *self, const heddle__word *args, const int32_t *codes, int32_t n, heddle__word *ret,
                int32_t *ret_code) {
  const c_function *c = self;
  result to = {ret, ret_code};
  heddle__tvm_thread *thread = heddle__tvm_self();
  heddle_error err = {0};
  if (heddle__lane_wait(&err) != HEDDLE_OK) {
    heddle__tvm_say_error("before a function of the application", &err);
    return -1;
  }
  heddle__tvm_forget(thread);
  int rc = c->f((TVMValue *)(uintptr_t)args, (int *)(uintptr_t)codes, n, &to, c->resource);
  if (rc == 0) return 0;
  heddle__result_drop(*ret, *ret_code);
  *ret_code = PACKED_NULL;
  if (thread->error[0] == '\0') heddle__tvm_say(NULL, "a function of the application failed, and left no words");
  return rc;
}

static void finish(void *self) {
  c_function *c = self;
  if (c->finish != NULL) c->finish(c->resource);
  heddle__free(c);
}

int TVMFuncCreateFromCFunc(TVMPackedCFunc func, void *resource_handle, TVMPackedCFuncFinalizer fin,
                           TVMFunctionHandle *out) {
  if (func == NULL || out == NULL) return heddle__api_refuse("TVMFuncCreateFromCFunc: the function or out is NULL");
  c_function *c = heddle__alloc(1, sizeof *c);
  *out = NULL;
  if (c != NULL) {
    *c = (c_function){func, resource_handle, fin};
    *out = heddle__function_new(NULL, call, c, finish);
    if (*out == NULL) heddle__free(c);
  }
  return *out != NULL ? 0 : heddle__api_refuse("out of memory: a function");
}

/* What a value of that code names is what it is said to be; else false with words. */
static bool is_own(const char *caller, heddle__word w, int32_t code) {
  if (code == PACKED_MODULE) return heddle__api_module(caller, w.p) != NULL;
  if (code == PACKED_FUNCTION) return heddle__api_function(caller, w.p) != NULL;
  if (code != PACKED_NDARRAY) return true;
  heddle__array *a = w.p != NULL ? heddle__array_find(w.p) : NULL;
  if (a == NULL) heddle__api_refuse("%s: the handle is %s", caller, w.p == NULL ? "NULL" : "no array");
  heddle__array_release(a);
  return a != NULL;
}

/* Strings and bytes are copied; of modules, functions and arrays the result holds a reference of its own. */
int TVMCFuncSetReturn(TVMRetValueHandle ret, TVMValue *value, int *type_code, int num_ret) {
  result *to = ret;
  heddle__word word;
  if (to == NULL || value == NULL || type_code == NULL || num_ret != 1)
    return heddle__api_refuse("TVMCFuncSetReturn: a function returns one value");
  memcpy(&word, value, sizeof word);
  if (*type_code == PACKED_STRING && word.s != NULL) word.s = heddle__tvm_keep(word.s, strlen(word.s));
  else if (*type_code == PACKED_BYTES && word.p != NULL)
    word.p = heddle__tvm_keep_bytes(((heddle__bytes *)word.p)->data, ((heddle__bytes *)word.p)->size);
  bool is_pointer = *type_code == PACKED_STRING || (*type_code >= PACKED_TENSOR && *type_code <= PACKED_NDARRAY);
  if (is_pointer && word.p == NULL) {
    if (value->v_handle != NULL) return -1;
    return heddle__api_refuse("TVMCFuncSetReturn: a value of code %d is NULL", *type_code);
  }
  if (!is_own("TVMCFuncSetReturn", word, *type_code)) return -1;
  heddle__result_retain(word, *type_code);
  heddle__result_drop(*to->word, *to->code);
  *to->word = word;
  *to->code = *type_code;
  return 0;
}

int TVMCbArgToReturn(TVMValue *value, int *code) {
  heddle__word word;
  if (value == NULL || code == NULL) return heddle__api_refuse("TVMCbArgToReturn: there is no value");
  if (*code == PACKED_STRING || *code == PACKED_BYTES)
    return heddle__api_refuse("TVMCbArgToReturn: strings and bytes are not counted; copy them");
  memcpy(&word, value, sizeof word);
  if (!is_own("TVMCbArgToReturn", word, *code)) return -1;
  heddle__result_retain(word, *code);
  return 0;
}

/* ---- by name */

int TVMFuncRegisterGlobal(const char *name, TVMFunctionHandle f, int override) {
  if (name == NULL) return heddle__api_refuse("TVMFuncRegisterGlobal: the name is NULL");
  heddle_function *function = heddle__api_function("TVMFuncRegisterGlobal", f);
  return function != NULL && heddle__registry_set(name, function, override != 0) ? 0 : -1;
}

int TVMFuncGetGlobal(const char *name, TVMFunctionHandle *out) {
  if (name == NULL || out == NULL) return heddle__api_refuse("TVMFuncGetGlobal: the name or out is NULL");
  *out = heddle__registry_find(name);
  return 0;
}

int TVMFuncListGlobalNames(int *out_size, const char ***out_array) {
  int n = 0;
  if (out_size == NULL || out_array == NULL) return heddle__api_refuse("TVMFuncListGlobalNames: there is no place");
  const char **names = heddle__registry_names(&n);
  if (names == NULL) return heddle__api_refuse("out of memory: a list of names");
  heddle__tvm_keep_block(HEDDLE__TEXT_NAMES, (void *)(uintptr_t)names);
  *out_size = n;
  *out_array = names;
  return 0;
}

int TVMFuncRemoveGlobal(const char *name) {
  if (name == NULL) return heddle__api_refuse("TVMFuncRemoveGlobal: the name is NULL");
  if (heddle__registry_remove(name)) return 0;
  return heddle__api_refuse("TVMFuncRemoveGlobal: there is no function '%.200s'", name);
}
