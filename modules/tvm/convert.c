/* modules/tvm/convert.c: values of the public API and words with codes, both ways; and calls of a library's functions
 * with words. */
#include "modules/tvm/convert.h"

#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "core/error.h"
#include "modules/tvm/launch.h"

/* Handles of all kinds begin with their mark. */
static bool has_mark(heddle__word w, uint64_t mark, int32_t i, const char *what) {
  char words[80];
  uint64_t found;
  memcpy(&found, w.p, sizeof found);
  if (found == mark) return true;
  snprintf(words, sizeof words, "argument %d: the handle is no %s", (int)i, what);
  heddle__tvm_say(NULL, words);
  return false;
}

static int refuse(int32_t i, const char *what, int32_t number) {
  char words[160];
  snprintf(words, sizeof words, "argument %d: a value of %s %d is not known", (int)i, what, (int)number);
  heddle__tvm_say(NULL, words);
  return -1;
}

/* ---- arguments */

int heddle__word_to_value(const heddle__word *args, const int32_t *codes, int32_t i, heddle_value *out,
                          heddle_tensor **owned) {
  heddle__word w = args[i];
  *owned = NULL;
  *out = (heddle_value){.kind = HEDDLE_VALUE_NONE};
  if (codes[i] != PACKED_NDARRAY && heddle__word_is_null(w, codes[i])) return 0;
  switch (codes[i]) {
  case PACKED_NULL: break;
  case PACKED_TENSOR:
  case PACKED_NDARRAY:
    if ((*owned = heddle__argument_tensor(args, codes, i)) == NULL) return -1;
    *out = (heddle_value){.kind = HEDDLE_VALUE_TENSOR, .of.t = *owned};
    break;
  case PACKED_BYTES:
    *out = (heddle_value){
        .kind = HEDDLE_VALUE_BYTES, .of.data = ((heddle__bytes *)w.p)->data, .bytes = ((heddle__bytes *)w.p)->size};
    break;
  case PACKED_MODULE:
    if (!has_mark(w, HEDDLE__OBJECT_MARK, i, "module")) return -1;
    *out = (heddle_value){.kind = HEDDLE_VALUE_MODULE, .of.module = w.p};
    break;
  case PACKED_FUNCTION:
    if (!has_mark(w, HEDDLE__FUNCTION_MARK, i, "function")) return -1;
    *out = (heddle_value){.kind = HEDDLE_VALUE_FUNCTION, .of.function = w.p};
    break;
  default: return heddle__result_to_value(w, codes[i], out) == 0 ? 0 : refuse(i, "code", codes[i]);
  }
  return 0;
}

static int no_memory(const char *what) {
  char words[120];
  snprintf(words, sizeof words, "out of memory: %s", what);
  heddle__tvm_say(NULL, words);
  return -1;
}

/* An array that holds one more reference on a tensor. */
static heddle__array *array_of(heddle_tensor *t) {
  heddle__array *a = heddle__array_new(t);
  if (a != NULL) heddle_tensor_retain(t);
  else no_memory("an array");
  return a;
}

int heddle__value_to_word(const heddle_value *v, int32_t i, heddle__word *out, int32_t *code, heddle__array **owned,
                          heddle__bytes *bytes) {
  static const int32_t codes[] = {PACKED_NULL,   PACKED_INT,      PACKED_FLOAT,  PACKED_INT,
                                  PACKED_STRING, PACKED_BYTES,    PACKED_TENSOR, PACKED_HANDLE,
                                  PACKED_MODULE, PACKED_FUNCTION, PACKED_DEVICE, PACKED_DTYPE};
  *owned = NULL;
  *out = (heddle__word){0};
  if (v->kind < 0 || v->kind > HEDDLE_VALUE_DTYPE) return refuse(i, "kind", v->kind);
  *code = codes[v->kind];
  switch (v->kind) {
  case HEDDLE_VALUE_TENSOR:
    if (v->of.t == NULL) break;
    if ((*owned = array_of(v->of.t)) == NULL) return -1;
    *code = PACKED_NDARRAY;
    out->p = *owned;
    return 0;
  case HEDDLE_VALUE_BYTES:
    *bytes = (heddle__bytes){v->of.data, (size_t)v->bytes};
    out->p = bytes;
    return 0;
  case HEDDLE_VALUE_DTYPE: memcpy(out, &v->of.dtype, sizeof v->of.dtype); return 0;
  case HEDDLE_VALUE_STRING:
  case HEDDLE_VALUE_MODULE:
  case HEDDLE_VALUE_FUNCTION: break;
  default: memcpy(out, &v->of, sizeof *out); return 0;
  }
  out->p = (void *)(uintptr_t)v->of.data;
  if (out->p == NULL) *code = PACKED_NULL;
  return 0;
}

/* ---- results */

int heddle__result_to_word(const heddle_value *v, heddle__word *out, int32_t *code) {
  heddle__array *a;
  heddle__bytes none;
  *code = PACKED_NULL;
  *out = (heddle__word){0};
  switch (v->kind) {
  case HEDDLE_VALUE_TENSOR:
    if (v->of.t == NULL) return 0;
    if ((a = heddle__array_new(v->of.t)) == NULL) {
      heddle_tensor_release(v->of.t);
      return no_memory("an array");
    }
    *code = PACKED_NDARRAY;
    out->p = a;
    return 0;
  case HEDDLE_VALUE_STRING:
    if (v->of.s == NULL) return 0;
    *code = PACKED_STRING;
    return (out->s = heddle__tvm_keep(v->of.s, strlen(v->of.s))) != NULL ? 0 : -1;
  case HEDDLE_VALUE_BYTES:
    *code = PACKED_BYTES;
    return (out->p = heddle__tvm_keep_bytes(v->of.data, (size_t)v->bytes)) != NULL ? 0 : -1;
  default: return heddle__value_to_word(v, 0, out, code, &a, &none);
  }
}

int heddle__result_to_value(heddle__word w, int32_t code, heddle_value *out) {
  enum { UINT = 1 };
  const heddle__bytes *bytes = w.p;
  heddle__array *a = w.p;
  *out = (heddle_value){.kind = HEDDLE_VALUE_NONE};
  if (heddle__word_is_null(w, code)) code = PACKED_NULL;
  switch (code) {
  case PACKED_NULL: break;
  case PACKED_INT:
  case UINT: *out = (heddle_value){.kind = HEDDLE_VALUE_INT, .of.i = w.i}; break;
  case PACKED_BOOL: *out = (heddle_value){.kind = HEDDLE_VALUE_BOOL, .of.i = w.i}; break;
  case PACKED_FLOAT: *out = (heddle_value){.kind = HEDDLE_VALUE_FLOAT, .of.f = w.f}; break;
  case PACKED_HANDLE: *out = (heddle_value){.kind = HEDDLE_VALUE_POINTER, .of.data = w.p}; break;
  case PACKED_MODULE: *out = (heddle_value){.kind = HEDDLE_VALUE_MODULE, .of.module = w.p}; break;
  case PACKED_FUNCTION: *out = (heddle_value){.kind = HEDDLE_VALUE_FUNCTION, .of.function = w.p}; break;
  case PACKED_STRING: *out = (heddle_value){.kind = HEDDLE_VALUE_STRING, .of.s = w.s}; break;
  case PACKED_BYTES:
    *out = (heddle_value){.kind = HEDDLE_VALUE_BYTES, .of.data = bytes->data, .bytes = bytes->size};
    break;
  case PACKED_DEVICE:
    out->kind = HEDDLE_VALUE_DEVICE;
    memcpy(&out->of, &w, sizeof w);
    break;
  case PACKED_DTYPE:
    out->kind = HEDDLE_VALUE_DTYPE;
    memcpy(&out->of.dtype, &w, sizeof out->of.dtype);
    break;
  case PACKED_NDARRAY:
    *out = (heddle_value){.kind = HEDDLE_VALUE_TENSOR, .of.t = heddle_tensor_retain(a->of)};
    heddle__array_release(a);
    break;
  default: return -1;
  }
  return 0;
}

void heddle__result_retain(heddle__word w, int32_t code) {
  if (code == PACKED_MODULE) heddle__object_retain(w.p);
  else if (code == PACKED_FUNCTION) heddle__function_retain(w.p);
  else if (code == PACKED_NDARRAY) heddle__array_retain(w.p);
}

void heddle__result_drop(heddle__word w, int32_t code) {
  if (code == PACKED_MODULE) heddle__object_release(w.p);
  else if (code == PACKED_FUNCTION) heddle__function_release(w.p);
  else if (code == PACKED_NDARRAY) heddle__array_release(w.p);
}

void heddle__value_drop(const heddle_value *v) {
  if (v->kind == HEDDLE_VALUE_MODULE) heddle__object_release(v->of.module);
  else if (v->kind == HEDDLE_VALUE_FUNCTION) heddle__function_release(v->of.function);
  else if (v->kind == HEDDLE_VALUE_TENSOR) heddle_tensor_release(v->of.t);
}

/* ---- calls with values */

enum { FEW = 16 };

int heddle__callback_call(heddle_callback call, void *self, const heddle__word *args, const int32_t *codes, int32_t n,
                          heddle__word *ret, int32_t *ret_code) {
  heddle_value few[FEW], *values = few, result = {0};
  heddle_tensor *few_tensors[FEW], **tensors = few_tensors;
  heddle_error err = {0};
  int32_t done = 0;
  int rc = 0;
  if (n > FEW) {
    values = heddle__alloc((size_t)n, sizeof *values);
    tensors = heddle__alloc((size_t)n, sizeof(heddle_tensor *));
    if (values == NULL || tensors == NULL) rc = no_memory("the arguments of a call");
  }
  while (done < n && rc == 0) {
    rc = heddle__word_to_value(args, codes, done, &values[done], &tensors[done]);
    if (rc == 0) done++;
  }
  if (rc == 0) {
    heddle_status s = heddle__lane_wait(&err);
    if (s == HEDDLE_OK) s = call(self, values, (uint32_t)done, &result, &err);
    if (s == HEDDLE_OK) rc = heddle__result_to_word(&result, ret, ret_code);
    else {
      err.status = s;
      if (err.text[0] == '\0') heddle__fail(&err, s, "a function of the application failed, and left no words");
      heddle__tvm_say_error(NULL, &err);
      rc = -1;
    }
  }
  for (int32_t i = 0; i < done; i++) heddle_tensor_release(tensors[i]);
  if (n > FEW) {
    heddle__free(values);
    heddle__free((void *)tensors);
  }
  return rc;
}

typedef struct by_name {
  heddle_module *m;
  const char *name;
} by_name;

static heddle_status call_library(void *self, const heddle_value *args, uint32_t n, heddle_value *result,
                                  heddle_error *err) {
  const by_name *f = self;
  return heddle_module_call(f->m, f->name, args, n, result, err);
}

int heddle__values_call(heddle_module *m, const char *name, const heddle__word *args, const int32_t *codes, int32_t n,
                        heddle__word *ret, int32_t *ret_code) {
  by_name f = {m, name}; /* it has a stream of its own */
  return heddle__callback_call(call_library, &f, args, codes, n, ret, ret_code);
}
