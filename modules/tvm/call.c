/* modules/tvm/call.c: a call of a library's function by name, with values of the public API: what each kind becomes in
 * either generation, and what comes back. */
#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "core/error.h"
#include "core/failure.h"
#include "core/tensor.h"
#include "modules/tvm/convert.h"
#include "modules/tvm/ffi_object.h"
#include "modules/tvm/launch.h"
#include "modules/tvm/loaders.h"

enum { FEW = 16 };

/* One argument in each generation's form; the tensor and the bytes that it points to. */
typedef struct argument {
  heddle__dltensor tensor;
  heddle__bytes bytes;
} argument;

static heddle_status take_tensor(const heddle__tvm_library *l, const heddle_value *v, uint32_t i, argument *a,
                                 heddle_error *err) {
  const heddle_tensor *t = v->of.t;
  if (t == NULL) return heddle__fail(err, HEDDLE_EINVAL, "argument %u: the tensor is NULL", (unsigned)i);
  if (t->dev != NULL) {
    a->tensor = (heddle__dltensor){.data = t->bytes > 0 ? t->buffer : NULL,
                                   .device_type = t->dev->desc.type,
                                   .device_id = (int32_t)t->dev->index,
                                   .ndim = (int32_t)t->ndim,
                                   .dtype = heddle__library_dtype(l, t->dtype),
                                   .shape = t->shape};
    return HEDDLE_OK;
  }
  /* Code of v0.7 to v0.9 takes 128 for granted, but cannot be distinguished from later code, for which 64 is enough. */
  if (t->bytes > 0 && (uintptr_t)t->data % 64 != 0)
    return heddle__fail(err, HEDDLE_EINVAL,
                        "argument %u: compiled code takes it for granted that data is aligned to 64 bytes, and this "
                        "tensor's is not; heddle_tensor_create aligns",
                        (unsigned)i);
  a->tensor = (heddle__dltensor){.data = t->data,
                                 .device_type = HEDDLE_DEVICE_CPU,
                                 .ndim = (int32_t)t->ndim,
                                 .dtype = heddle__library_dtype(l, t->dtype),
                                 .shape = t->shape,
                                 .strides = t->contiguous ? NULL : t->strides};
  return HEDDLE_OK;
}

static heddle_status take(const heddle__tvm_library *l, const heddle_value *v, uint32_t i, argument *a,
                          heddle__any *any, int32_t *code, heddle_error *err) {
  static const int32_t codes[] = {PACKED_NULL,   PACKED_INT,      PACKED_FLOAT,  PACKED_INT,
                                  PACKED_STRING, PACKED_BYTES,    PACKED_TENSOR, PACKED_HANDLE,
                                  PACKED_MODULE, PACKED_FUNCTION, PACKED_DEVICE, PACKED_DTYPE};
  static const int32_t types[] = {ANY_NONE,   ANY_INT,     ANY_FLOAT, ANY_BOOL, ANY_STRING, ANY_BYTES,
                                  ANY_TENSOR, ANY_POINTER, ANY_NONE,  ANY_NONE, ANY_DEVICE, ANY_DTYPE};
  heddle__word word = {0};
  if (v->kind < 0 || v->kind > HEDDLE_VALUE_DTYPE)
    return heddle__fail(err, HEDDLE_EINVAL, "argument %u: a value of kind %d is not known", (unsigned)i, (int)v->kind);
  *any = (heddle__any){.type = types[v->kind]};
  *code = codes[v->kind];
  switch (v->kind) {
  case HEDDLE_VALUE_INT:
  case HEDDLE_VALUE_BOOL: any->v.i = v->of.i; break;
  case HEDDLE_VALUE_FLOAT: any->v.f = v->of.f; break;
  case HEDDLE_VALUE_STRING:
    any->v.s = v->of.s;
    if (v->of.s == NULL) any->type = ANY_NONE, *code = PACKED_NULL;
    break;
  case HEDDLE_VALUE_POINTER: any->v.p = (void *)(uintptr_t)v->of.data; break;
  case HEDDLE_VALUE_BYTES:
    a->bytes = (heddle__bytes){v->of.data, (size_t)v->bytes};
    any->v.p = &a->bytes;
    break;
  case HEDDLE_VALUE_TENSOR: any->v.p = &a->tensor; return take_tensor(l, v, i, a, err);
  case HEDDLE_VALUE_DEVICE: memcpy(&any->v, &v->of, sizeof any->v); break;
  case HEDDLE_VALUE_DTYPE: memcpy(&any->v, &v->of.dtype, sizeof v->of.dtype); break;
  case HEDDLE_VALUE_MODULE:
  case HEDDLE_VALUE_FUNCTION:
    word.p = any->v.p = (void *)(uintptr_t)v->of.data;
    if (word.p == NULL) *code = PACKED_NULL;
    if (word.p == NULL || l->era == HEDDLE__ERA_PACKED) break;
    heddle__result_retain(word, *code); /* an object, given back after the call */
    return heddle__word_to_any(word, *code, l->era == HEDDLE__ERA_FFI21, any) ? HEDDLE_OK
                                                                              : heddle__no_memory(err, "an argument");
  default: break;
  }
  return HEDDLE_OK;
}

/* ---- results */

static heddle_status give_text(const char *text, size_t n, heddle_value *out, heddle_error *err) {
  const char *kept = heddle__tvm_keep(text, n);
  if (kept == NULL) return heddle__no_memory(err, "the string that a function returned");
  *out = (heddle_value){.kind = HEDDLE_VALUE_STRING, .of.s = kept};
  return HEDDLE_OK;
}

/* Owns: what the word carries is the result's, but for strings and bytes, which are copied. */
static heddle_status give_word(heddle__word w, int32_t code, heddle_value *out, heddle_error *err) {
  if (heddle__word_is_null(w, code)) code = PACKED_NULL;
  if (code == PACKED_STRING) return give_text(w.s, strlen(w.s), out, err);
  if (code == PACKED_BYTES &&
      (w.p = heddle__tvm_keep_bytes(((heddle__bytes *)w.p)->data, ((heddle__bytes *)w.p)->size)) == NULL)
    return heddle__no_memory(err, "the bytes that a function returned");
  if (heddle__result_to_value(w, code, out) == 0) return HEDDLE_OK;
  return heddle__fail(err, HEDDLE_EUNSUPPORTED, "it returned a value of code %d, which is not known", (int)code);
}

static heddle_status give_any(heddle__any *r, bool era21, heddle_value *out, heddle_error *err) {
  heddle__word w;
  heddle__bytes spare;
  int32_t code;
  heddle_status s = HEDDLE_OK;
  if (r->type == ANY_BOOL) *out = (heddle_value){.kind = HEDDLE_VALUE_BOOL, .of.i = r->v.i};
  else if (!heddle__any_to_word(r, era21, &w, &code, &spare) || code == PACKED_TENSOR)
    s = heddle__fail(err, HEDDLE_EUNSUPPORTED, "it returned a value of type %d, which is not known", r->type);
  else {
    if (r->type >= ANY_OBJECT) heddle__result_retain(w, code);
    s = give_word(w, code, out, err);
  }
  if (r->type >= ANY_OBJECT) heddle__tvm_drop(r->v.p, era21);
  return s;
}

/* ---- the call */

static heddle_status run_function(const heddle__tvm_caller *caller, struct heddle__lane *lane, const char *name,
                                  void *code, heddle__any *args, int32_t *codes, uint32_t n, heddle_value *result,
                                  heddle_error *err) {
  const heddle__tvm_library *l = caller->library;
  heddle__tvm_thread *self = heddle__tvm_self();
  heddle__pool *before = self->pool;
  struct heddle__lane *lane_before = self->lane;
  const void *mark = heddle__tvm_scratch_mark(self);
  heddle_status s;
  int rc;
  self->pool = caller->pool;
  self->lane = lane;
  heddle__tvm_forget(self);
  if (l->era == HEDDLE__ERA_PACKED) {
    heddle__packed_fn f;
    heddle__word *words = heddle__alloc(n, sizeof *words), ret = {0};
    int32_t ret_code = PACKED_NULL;
    memcpy(&f, &code, sizeof f);
    for (uint32_t i = 0; i < n && words != NULL; i++) words[i] = args[i].v;
    rc = words != NULL ? f(words, codes, (int32_t)n, &ret, &ret_code, NULL) : 0;
    heddle__free(words);
    s = words == NULL ? heddle__no_memory(err, "a call") : rc == 0 ? give_word(ret, ret_code, result, err) : 0;
  } else {
    heddle__ffi_fn f;
    heddle__any ret = {.type = ANY_NONE};
    memcpy(&f, &code, sizeof f);
    rc = f(NULL, args, (int32_t)n, &ret);
    if (rc != 0) rc = heddle__bool22_again(caller->library, f, args, (int32_t)n, &ret, rc);
    s = rc == 0 ? give_any(&ret, l->era == HEDDLE__ERA_FFI21, result, err) : HEDDLE_OK;
  }
  if (rc != 0) s = heddle__tvm_failed(name, l->path, err);
  if (rc != 0 && lane != NULL) heddle__lane_reset(lane);
  if (rc != 0) heddle__tvm_scratch_back(self, mark);
  self->pool = before;
  self->lane = lane_before;
  return s;
}

heddle_status heddle__library_call(heddle__tvm_caller *caller, heddle_pstream *stream, const char *function,
                                   const heddle_value *values, uint32_t n, heddle_value *result, heddle_error *err) {
  const heddle__tvm_library *l = caller->library;
  void *code = heddle__library_code(l, function);
  heddle_function *loaded = NULL;
  heddle_status found = code == NULL ? heddle__library_loaded(l, function, &loaded, err) : HEDDLE_OK;
  if (found != HEDDLE_OK) return found;
  if (loaded != NULL) {
    heddle_status s = heddle__loaded_call(loaded, values, n, result, err);
    return s == HEDDLE_OK ? s : heddle__prefix(err, s, "function '%.200s' of %.200s: ", function, l->path);
  }
  if (code == NULL) return heddle__library_lacks(l, function, err);
  argument few[FEW], *own = few;
  heddle__any few_args[FEW], *args = few_args;
  int32_t few_codes[FEW + 1], *codes = few_codes;
  heddle_status s = HEDDLE_OK;
  if (n > FEW) {
    own = heddle__alloc(n, sizeof *own);
    args = heddle__alloc(n, sizeof *args);
    codes = heddle__alloc((size_t)n + 1, sizeof *codes);
    if (own == NULL || args == NULL || codes == NULL) s = heddle__no_memory(err, "the arguments of a call");
  }
  uint32_t taken = 0;
  while (taken < n && s == HEDDLE_OK) {
    s = take(l, &values[taken], taken, &own[taken], &args[taken], &codes[taken], err);
    if (s == HEDDLE_OK) taken++;
  }
  struct heddle__lane *lane = NULL;
  if (s == HEDDLE_OK && stream != NULL && (lane = heddle__lane_take(caller, stream)) == NULL)
    s = heddle__no_memory(err, "a call");
  if (s == HEDDLE_OK) s = run_function(caller, lane, function, code, args, codes, n, result, err);
  if (lane != NULL) {
    heddle_error why = {0}; /* what it launched is waited for, whatever became of the call */
    heddle_status waited = caller->dev->t->stream.sync(stream, UINT64_MAX, &why);
    if (s == HEDDLE_OK && waited != HEDDLE_OK) {
      if (err != NULL) *err = why;
      s = heddle__prefix_on(caller->dev->name, err, waited, "function '%.200s' of %.200s on %s: ", function, l->path,
                            caller->dev->name);
    }
    heddle__lane_give(lane);
  }
  for (uint32_t i = 0; i < taken; i++)
    if (args[i].type >= ANY_OBJECT) heddle__tvm_drop(args[i].v.p, l->era == HEDDLE__ERA_FFI21);
  if (n > FEW) {
    heddle__free(own);
    heddle__free(args);
    heddle__free(codes);
  }
  return s;
}
