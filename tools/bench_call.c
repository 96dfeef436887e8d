/* tools/bench_call.c: what heddle bench --func times: a function of a compiled library and its arguments. */
#include "bench_call.h"

#include <stdlib.h>
#include <string.h>

#include "library.h"
#include "made_up.h"
#include "text.h"

static int no_memory(void) {
  return fail_text("bench", "out of memory");
}

/* ---- words of --input */

/* "float32" and the like, from text to end. */
static bool dtype_of(const char *text, const char *end, heddle_dtype *out) {
  static const struct {
    const char *name;
    heddle_dtype dtype;
  } all[] = {{"float32", {HEDDLE_DTYPE_FLOAT, 32, 1}}, {"float64", {HEDDLE_DTYPE_FLOAT, 64, 1}},
             {"float16", {HEDDLE_DTYPE_FLOAT, 16, 1}}, {"bfloat16", {HEDDLE_DTYPE_BFLOAT, 16, 1}},
             {"int8", {HEDDLE_DTYPE_INT, 8, 1}},       {"int16", {HEDDLE_DTYPE_INT, 16, 1}},
             {"int32", {HEDDLE_DTYPE_INT, 32, 1}},     {"int64", {HEDDLE_DTYPE_INT, 64, 1}},
             {"uint8", {HEDDLE_DTYPE_UINT, 8, 1}},     {"uint16", {HEDDLE_DTYPE_UINT, 16, 1}},
             {"uint32", {HEDDLE_DTYPE_UINT, 32, 1}},   {"uint64", {HEDDLE_DTYPE_UINT, 64, 1}},
             {"bool", {HEDDLE_DTYPE_BOOL, 8, 1}}};
  for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
    if (strlen(all[i].name) != (size_t)(end - text) || memcmp(all[i].name, text, (size_t)(end - text)) != 0) continue;
    *out = all[i].dtype;
    return true;
  }
  return false;
}

enum { MOST_DIMS = 32 };

/* "16x32", or nothing at all. */
static bool shape_of(const char *text, int64_t *shape, uint32_t *ndim) {
  *ndim = 0;
  if (*text == '\0') return true;
  for (;; text++) {
    char *end;
    if (*text < '0' || *text > '9' || *ndim == MOST_DIMS) return false;
    long long n = strtoll(text, &end, 10);
    if (end - text > 15) return false;
    shape[(*ndim)++] = n;
    text = end;
    if (*text == '\0') return true;
    if (*text != 'x') return false;
  }
}

static bool number_of(const char *text, heddle_value *out) {
  const char *digits = text + (text[0] == '-');
  char *end;
  if (*digits < '0' || *digits > '9' || strspn(digits, "0123456789.eE+-") != strlen(digits)) return false;
  *out = (heddle_value){.kind = HEDDLE_VALUE_INT};
  out->of.i = strtoll(text, &end, 10);
  if (*end == '\0') return end - digits <= 18;
  out->kind = HEDDLE_VALUE_FLOAT;
  out->of.f = strtod(text, &end);
  return *end == '\0';
}

/* ---- arguments */

static int make_up(bench_call *call, const char *word, char *name, heddle_dtype dtype, const int64_t *shape,
                   uint32_t ndim, heddle_tensor **out) {
  heddle_error err = {0};
  call->made_up[call->n_made_up++] = name;
  if (heddle_tensor_create(NULL, dtype, shape, ndim, out, &err) != HEDDLE_OK)
    return fail_text("bench", "--input %s: %s", word, err.text);
  made_up_fill(*out, call->n_args + 1);
  return DONE;
}

/* Brings a tensor to the device of the call. */
static int bring(const bench_call *call, const char *word, heddle_tensor **t) {
  heddle_error err = {0};
  heddle_tensor *there = NULL;
  if (call->device == NULL) return DONE;
  heddle_status s = heddle_tensor_create(call->device, heddle_tensor_dtype(*t), heddle_tensor_shape(*t),
                                         heddle_tensor_ndim(*t), &there, &err);
  if (s == HEDDLE_OK) s = heddle_tensor_copy(there, *t, &err);
  if (s != HEDDLE_OK) {
    heddle_tensor_release(there);
    return fail_text("bench", "--input %s: %s", word, err.text);
  }
  heddle_tensor_release(*t);
  *t = there;
  return DONE;
}

/* The next argument, from "NAME=REST". */
static int add_argument(bench_call *call, const char *word) {
  heddle_error err = {0};
  const char *rest;
  char *name = before_equals(word, &rest);
  if (name == NULL) return no_memory();
  heddle_value *value = &call->args[call->n_args];
  heddle_tensor **t = &call->tensors[call->n_args];
  int status = DONE;
  heddle_dtype dtype;
  int64_t shape[MOST_DIMS];
  uint32_t ndim;
  const char *colon = strchr(rest, ':');
  bool is_number = number_of(rest, value);
  bool is_type = !is_number && colon != NULL && dtype_of(rest, colon, &dtype);
  if (is_type && !shape_of(colon + 1, shape, &ndim)) {
    status = fail_text("bench", "--input %s: after the dtype comes a shape, such as 16x32", word);
  } else if (is_type) {
    status = make_up(call, word, name, dtype, shape, ndim, t);
    name = NULL; /* kept */
  } else if (!is_number && heddle_tensor_load_npy(rest, t, &err) != HEDDLE_OK) {
    status = fail_text("bench", "--input %s: %s (an argument is FILE.npy, a number, or DTYPE:SHAPE)", word, err.text);
  }
  free(name);
  if (status == DONE && *t != NULL) status = bring(call, word, t);
  if (status == DONE && *t != NULL) *value = (heddle_value){.kind = HEDDLE_VALUE_TENSOR, .of.t = *t};
  call->n_args++;
  return status;
}

/* The first device of --device; inline ones compute in the host's memory, which is where tensors are without it. */
static int find_device(bench_call *call, const options *o) {
  heddle_error err = {0};
  heddle_device *first = NULL;
  heddle_device_info info = {.struct_size = sizeof info};
  size_t n = 0;
  if (o->devices == NULL) return DONE;
  if (heddle_context_select(call->s->ctx, o->devices, &first, 1, &n, NULL, &err) != HEDDLE_OK)
    return fail("bench", &err);
  if (n == 0 || heddle_device_get_info(first, &info, &err) != HEDDLE_OK)
    return fail_text("bench", "--device %s: there is no such device", o->devices);
  if (info.type != HEDDLE_DEVICE_CPU) call->device = first;
  return DONE;
}

int bench_call_open(bench_call *call, session *s, const options *o) {
  heddle_error err = {0};
  const char *path = o->lib != NULL ? o->lib : o->model;
  *call = (bench_call){.s = s};
  int status = session_context(s, "bench", o);
  if (status != DONE) return status;
  if (o->lib == NULL && !library_is(o->model))
    return fail_text("bench", "%s: --func %s needs a compiled library, which this is not; --lib FILE names one",
                     o->model, o->func);
  if (heddle_module_load(s->ctx, path, &s->library, &err) != HEDDLE_OK) return fail("bench", &err);
  call->args = calloc(o->inputs.count + 1, sizeof *call->args);
  call->tensors = calloc(o->inputs.count + 1, sizeof *call->tensors);
  call->made_up = calloc(o->inputs.count + 1, sizeof *call->made_up);
  if (call->args == NULL || call->tensors == NULL || call->made_up == NULL) return no_memory();
  status = find_device(call, o);
  for (size_t i = 0; status == DONE && i < o->inputs.count; i++) status = add_argument(call, o->inputs.data[i]);
  return status;
}

void bench_call_finish(bench_call *call) {
  for (uint32_t i = 0; i < call->n_args; i++) heddle_tensor_release(call->tensors[i]);
  for (uint32_t i = 0; i < call->n_made_up; i++) free((char *)call->made_up[i]);
  free(call->args);
  free(call->tensors);
  free(call->made_up);
}

heddle_status bench_call_once(bench_call *call, heddle_error *err) {
  return heddle_module_call(call->s->library, call->s->o->func, call->args, call->n_args, NULL, err);
}
