/* modules/tvm/native.c: heddle/function.h: functions and modules as values of the public API, on the same ground as TVM's
 * C API. Words that a failure left with the thread become the caller's heddle_error. */
#include "heddle/function.h"

#include <string.h>

#include "core/alloc.h"
#include "core/error.h"
#include "modules/tvm/convert.h"

enum { FEW = 16 };

/* ---- functions of the application */

typedef struct callback {
  heddle_callback call;
  void *self;
  heddle_release_fn release;
} callback;

static int no_memory(const char *what) {
  heddle_error err = {0};
  heddle__no_memory(&err, what);
  heddle__tvm_say_error(NULL, &err);
  return -1;
}

static int call(void *self, const heddle__word *args, const int32_t *codes, int32_t n, heddle__word *ret,
                int32_t *ret_code) {
  const callback *c = self;
  return heddle__callback_call(c->call, c->self, args, codes, n, ret, ret_code);
}

static void finish(void *self) {
  callback *c = self;
  if (c->release != NULL) c->release(c->self);
  heddle__free(c);
}

heddle_status heddle_function_create(heddle_callback call_it, void *self, heddle_release_fn release,
                                     heddle_function **out, heddle_error *err) {
  if (out == NULL || call_it == NULL) return heddle__fail(err, HEDDLE_EINVAL, "a function: the code or out is NULL");
  callback *c = heddle__alloc(1, sizeof *c);
  *out = NULL;
  if (c != NULL) {
    *c = (callback){call_it, self, release};
    *out = heddle__function_new(NULL, call, c, finish);
    if (*out == NULL) heddle__free(c);
  }
  return *out != NULL ? HEDDLE_OK : heddle__no_memory(err, "a function");
}

heddle_function *heddle_function_retain(heddle_function *f) {
  return heddle__function_retain(f);
}

void heddle_function_release(heddle_function *f) {
  heddle__function_release(f);
}

/* ---- calls */

typedef struct argument {
  heddle__array *array;
  heddle__bytes bytes;
} argument;

heddle_status heddle_function_call(heddle_function *f, const heddle_value *args, uint32_t n_args, heddle_value *result,
                                   heddle_error *err) {
  heddle__word few[FEW], *words = few, ret = {0};
  int32_t few_codes[FEW], *codes = few_codes, code = PACKED_NULL;
  argument few_own[FEW], *own = few_own;
  heddle_value nothing;
  uint32_t done = 0;
  int rc = 0;
  if (result != NULL) memset(result, 0, sizeof *result);
  if (f == NULL || (n_args > 0 && args == NULL) || n_args > INT32_MAX)
    return heddle__fail(err, HEDDLE_EINVAL, "a call needs a function and its arguments");
  if (n_args > FEW) {
    words = heddle__alloc(n_args, sizeof *words);
    codes = heddle__alloc(n_args, sizeof *codes);
    own = heddle__alloc(n_args, sizeof *own);
    if (words == NULL || codes == NULL || own == NULL) rc = no_memory("the arguments of a call");
  }
  while (done < n_args && rc == 0) {
    rc = heddle__value_to_word(&args[done], (int32_t)done, &words[done], &codes[done], &own[done].array,
                               &own[done].bytes);
    if (rc == 0) done++;
  }
  bool understood = rc == 0;
  if (rc == 0) rc = heddle__function_call(f, words, codes, (int32_t)n_args, &ret, &code);
  heddle_status s = rc == 0 ? HEDDLE_OK : heddle__tvm_words(understood ? HEDDLE_EFAILED : HEDDLE_EINVAL, err);
  if (rc == 0 && heddle__result_to_value(ret, code, result != NULL ? result : &nothing) != 0)
    s = heddle__fail(err, HEDDLE_EUNSUPPORTED, "the function returned a value of code %d, which is not known",
                     (int)code);
  else if (rc == 0 && result == NULL) heddle__value_drop(&nothing);
  for (uint32_t i = 0; i < done; i++) heddle__array_release(own[i].array);
  if (n_args > FEW) {
    heddle__free(words);
    heddle__free(codes);
    heddle__free(own);
  }
  return s;
}

/* ---- by name */

heddle_status heddle_function_register(const char *name, heddle_function *f, int replace, heddle_error *err) {
  if (name == NULL || f == NULL) return heddle__fail(err, HEDDLE_EINVAL, "the name or the function is NULL");
  return heddle__registry_set(name, f, replace != 0) ? HEDDLE_OK : heddle__tvm_words(HEDDLE_EINVAL, err);
}

heddle_function *heddle_function_find(const char *name) {
  return name != NULL ? heddle__registry_find(name) : NULL;
}

heddle_status heddle_function_remove(const char *name, heddle_error *err) {
  if (name != NULL && heddle__registry_remove(name)) return HEDDLE_OK;
  return heddle__fail(err, HEDDLE_ENOTFOUND, "there is no function '%.200s'", name != NULL ? name : "");
}

heddle_status heddle_function_names(const char *const **out, size_t *n, heddle_error *err) {
  int count = 0;
  if (out == NULL || n == NULL) return heddle__fail(err, HEDDLE_EINVAL, "the list of names: out or n is NULL");
  const char **names = heddle__registry_names(&count);
  if (names == NULL) return heddle__no_memory(err, "the list of names");
  heddle__tvm_keep_block(HEDDLE__TEXT_NAMES, (void *)(uintptr_t)names);
  *out = names;
  *n = (size_t)count;
  return HEDDLE_OK;
}

/* ---- modules */

heddle_status heddle_object_load(const char *path, const char *format, heddle_object **out, heddle_error *err) {
  if (path == NULL || out == NULL) return heddle__fail(err, HEDDLE_EINVAL, "a module: the path or out is NULL");
  *out = heddle__api_load(path, format);
  return *out != NULL ? HEDDLE_OK : heddle__tvm_words(HEDDLE_EFAILED, err);
}

heddle_status heddle_object_of(heddle_module *m, heddle_object **out, heddle_error *err) {
  if (m == NULL || out == NULL) return heddle__fail(err, HEDDLE_EINVAL, "a module: the library or out is NULL");
  *out = heddle__library_object(m);
  return *out != NULL ? HEDDLE_OK : heddle__tvm_words(HEDDLE_ENOMEM, err);
}

heddle_module *heddle_object_library(heddle_object *o) {
  return heddle__object_library(o);
}

heddle_object *heddle_object_retain(heddle_object *o) {
  return o != NULL ? heddle__object_retain(o) : NULL;
}

void heddle_object_release(heddle_object *o) {
  heddle__object_release(o);
}

const char *heddle_object_kind(const heddle_object *o) {
  return o != NULL ? o->type->kind : NULL;
}

heddle_status heddle_object_function(heddle_object *o, const char *name, int imports, heddle_function **out,
                                     heddle_error *err) {
  if (o == NULL || name == NULL || out == NULL)
    return heddle__fail(err, HEDDLE_EINVAL, "a module's function: the module, the name or out is NULL");
  if (heddle__object_find(o, name, imports != 0, out) != 0) return heddle__tvm_words(HEDDLE_EFAILED, err);
  if (*out != NULL) return HEDDLE_OK;
  return heddle__fail(err, HEDDLE_ENOTFOUND, "the module of kind '%s' has no function '%.200s'%s", o->type->kind, name,
                      imports != 0 ? ", nor have those that it imports" : "");
}

heddle_status heddle_object_import(heddle_object *o, heddle_object *of, heddle_error *err) {
  if (o == NULL || of == NULL) return heddle__fail(err, HEDDLE_EINVAL, "an import: a module is NULL");
  return heddle__object_add(o, of) ? HEDDLE_OK : heddle__tvm_words(HEDDLE_EINVAL, err);
}

heddle_object *heddle_object_imported(const heddle_object *o, uint32_t i) {
  return o != NULL && i < o->n_imports ? o->imports[i] : NULL;
}
