/* rpc/client/calls.c: what a client asks of a session: functions, calls, files, devices, tensors. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "rpc/client/client.h"

static heddle_status bad(heddle_error *err, const char *what) {
  return rpc_error(err, HEDDLE_EINVAL, "%s", what);
}

static heddle_status odd(heddle_rpc *rpc, heddle_error *err) {
  return rpc_error(err, HEDDLE_EFORMAT, "%s sent a result of a kind that was not expected", rpc->where);
}

/* ---- tensors */

/* The bytes of all elements; false on overflow. */
static bool size_of(const heddle_rpc_tensor *t, uint64_t *out) {
  const uint64_t bits = (uint64_t)t->dtype.bits * t->dtype.lanes;
  uint64_t bytes = (bits + 7) / 8;
  if (t->ndim > HEDDLE_RPC_DIMENSIONS || bits == 0) return false;
  for (uint32_t i = 0; i < t->ndim; i++) {
    if (t->shape[i] < 0) return false;
    if (t->shape[i] == 0) bytes = 0;
  }
  for (uint32_t i = 0; i < t->ndim && bytes > 0; i++)
    if (__builtin_mul_overflow(bytes, (uint64_t)t->shape[i], &bytes)) return false;
  *out = bytes;
  return bytes <= INT64_MAX;
}

static rpc_tensor to_wire(const heddle_rpc_tensor *t) {
  rpc_tensor out = {.data = t->data, .device = {t->device_type, t->device_number}, .dtype = t->dtype, .ndim = t->ndim};
  memcpy(out.shape, t->shape, t->ndim * sizeof *t->shape);
  return out;
}

heddle_status heddle_rpc_tensor_create(heddle_rpc *rpc, int32_t device_type, int32_t device_number, heddle_dtype dtype,
                                       const int64_t *shape, uint32_t ndim, heddle_rpc_tensor *out, heddle_error *err) {
  uint64_t bytes;
  if (rpc == NULL || out == NULL || (ndim > 0 && shape == NULL) || ndim > HEDDLE_RPC_DIMENSIONS)
    return bad(err, "a remote tensor needs a session, a shape of at most 32 dimensions, and a place");
  *out = (heddle_rpc_tensor){.device_type = device_type, .device_number = device_number, .dtype = dtype, .ndim = ndim};
  if (ndim > 0) memcpy(out->shape, shape, ndim * sizeof *shape);
  if (!size_of(out, &bytes)) return bad(err, "a remote tensor of this dtype and shape is not possible");
  const rpc_tensor like = to_wire(out);
  const rpc_value values[2] = {{.kind = RPC_KIND_TENSOR, .of.tensor = &like}, {.kind = RPC_KIND_NULL}};
  rpc_value got;
  heddle_status s = rpc_ask_one(rpc, RPC_ALLOC_SCOPE, values, 2, &got, err);
  if (s != HEDDLE_OK) return s;
  if (got.kind != RPC_KIND_HANDLE) return odd(rpc, err);
  out->data = got.of.handle;
  return HEDDLE_OK;
}

static heddle_status free_object(heddle_rpc *rpc, uint64_t handle, int64_t tag, heddle_error *err) {
  const rpc_value values[2] = {{.kind = RPC_KIND_HANDLE, .of.handle = handle}, {.kind = RPC_KIND_INT, .of.i = tag}};
  return rpc_ask_one(rpc, RPC_FREE_HANDLE, values, rpc->era == RPC_ERA_A ? 2 : 1, NULL, err);
}

heddle_status heddle_rpc_tensor_free(heddle_rpc *rpc, const heddle_rpc_tensor *t, heddle_error *err) {
  enum { ARRAY_TAG = 13 };
  if (rpc == NULL || t == NULL) return bad(err, "a session and a tensor are needed");
  if (t->object != 0) return free_object(rpc, t->object, ARRAY_TAG, err);
  const rpc_value values[2] = {{.kind = RPC_KIND_DEVICE, .of.device = {t->device_type, t->device_number}},
                               {.kind = RPC_KIND_HANDLE, .of.handle = t->data}};
  return rpc_ask_one(rpc, RPC_FREE, values, 2, NULL, err);
}

/* The head of a copy: the tensor and the bytes. */
static heddle_status head_of(heddle_rpc *rpc, const heddle_rpc_tensor *t, const void *data, size_t bytes,
                             byte_buffer *b, heddle_error *err) {
  uint64_t all;
  if (rpc == NULL || t == NULL || (data == NULL && bytes > 0))
    return bad(err, "a session, a tensor and data are needed");
  if (!size_of(t, &all) || all != bytes) return bad(err, "the data has not the tensor's size");
  const rpc_tensor wire = to_wire(t);
  byte_put_u64(b, wire.data);
  byte_put_u32(b, (uint32_t)wire.device.type);
  byte_put_u32(b, (uint32_t)wire.device.number);
  byte_put_u32(b, wire.ndim);
  byte_put_u32(b, (uint32_t)wire.dtype.code | (uint32_t)wire.dtype.bits << 8 | (uint32_t)wire.dtype.lanes << 16);
  for (uint32_t i = 0; i < wire.ndim; i++) byte_put_u64(b, (uint64_t)wire.shape[i]);
  byte_put_u64(b, wire.offset);
  byte_put_u64(b, bytes);
  return HEDDLE_OK;
}

heddle_status heddle_rpc_write(heddle_rpc *rpc, const heddle_rpc_tensor *t, const void *data, size_t bytes,
                               heddle_error *err) {
  byte_buffer b = {0};
  heddle_status s = head_of(rpc, t, data, bytes, &b, err);
  if (s == HEDDLE_OK) s = rpc_ask(rpc, RPC_COPY_TO, &b, data, bytes, RPC_RETURN, err);
  byte_finish(&b);
  return s;
}

heddle_status heddle_rpc_read(heddle_rpc *rpc, const heddle_rpc_tensor *t, void *data, size_t bytes,
                              heddle_error *err) {
  byte_buffer b = {0};
  heddle_status s = head_of(rpc, t, data, bytes, &b, err);
  if (s == HEDDLE_OK) s = rpc_ask(rpc, RPC_COPY_FROM, &b, NULL, 0, RPC_COPY_ACK, err);
  byte_finish(&b);
  if (s != HEDDLE_OK) return s;
  if (rpc->body_bytes != bytes) return odd(rpc, err);
  if (bytes > 0) memcpy(data, rpc->body, bytes);
  return HEDDLE_OK;
}

heddle_status heddle_rpc_device_exists(heddle_rpc *rpc, int32_t device_type, int32_t device_number, int *out,
                                       heddle_error *err) {
  rpc_value got;
  if (rpc == NULL || out == NULL) return bad(err, "a session and a place for the answer are needed");
  const rpc_value values[2] = {{.kind = RPC_KIND_DEVICE, .of.device = {device_type, device_number}},
                               {.kind = RPC_KIND_INT}};
  heddle_status s = rpc_ask_one(rpc, RPC_ATTRIBUTE, values, 2, &got, err);
  if (s == HEDDLE_OK) *out = (got.kind == RPC_KIND_INT || got.kind == RPC_KIND_BOOL) && got.of.i != 0;
  return s;
}

/* ---- calls */

static bool take(const heddle_rpc_value *v, rpc_value *out, rpc_tensor *tensor) {
  static const rpc_kind kinds[] = {RPC_KIND_NULL,     RPC_KIND_INT,    RPC_KIND_FLOAT,  RPC_KIND_BOOL,
                                   RPC_KIND_STRING,   RPC_KIND_BYTES,  RPC_KIND_TENSOR, RPC_KIND_MODULE,
                                   RPC_KIND_FUNCTION, RPC_KIND_OBJECT, RPC_KIND_DEVICE, RPC_KIND_DTYPE};
  if (v->kind < 0 || v->kind > HEDDLE_RPC_DTYPE) return false;
  *out = (rpc_value){.kind = kinds[v->kind]};
  switch (v->kind) {
  case HEDDLE_RPC_FLOAT: out->of.f = v->of.f; return true;
  case HEDDLE_RPC_STRING:
    if (v->of.s == NULL) return false;
    out->of.text.data = v->of.s;
    out->of.text.bytes = strlen(v->of.s);
    return true;
  case HEDDLE_RPC_BYTES:
    out->of.text.data = v->of.data;
    out->of.text.bytes = v->bytes;
    return v->of.data != NULL || v->bytes == 0;
  case HEDDLE_RPC_TENSOR:
    if (v->of.tensor == NULL || v->of.tensor->ndim > HEDDLE_RPC_DIMENSIONS) return false;
    *tensor = to_wire(v->of.tensor);
    out->of.tensor = tensor;
    return true;
  case HEDDLE_RPC_DEVICE: out->of.device = (rpc_device){v->of.device.type, v->of.device.number}; return true;
  case HEDDLE_RPC_DTYPE: out->of.dtype = v->of.dtype; return true;
  case HEDDLE_RPC_MODULE:
  case HEDDLE_RPC_FUNCTION:
  case HEDDLE_RPC_OBJECT: out->of.handle = v->of.handle; return true;
  default: out->of.i = v->of.i; return true;
  }
}

/* Whether the number before a result names an object of that kind. */
static int32_t kind_of(rpc_era era, int64_t tag) {
  enum { A_MODULE = 9, A_FUNCTION = 10, B_FUNCTION = 68, B_MODULE = 73 };
  if (era == RPC_ERA_A)
    return tag == A_MODULE ? HEDDLE_RPC_MODULE : tag == A_FUNCTION ? HEDDLE_RPC_FUNCTION : HEDDLE_RPC_OBJECT;
  return tag == B_MODULE ? HEDDLE_RPC_MODULE : tag == B_FUNCTION ? HEDDLE_RPC_FUNCTION : HEDDLE_RPC_OBJECT;
}

static heddle_status give(heddle_rpc *rpc, heddle_rpc_value *out, heddle_error *err) {
  const rpc_value *v = rpc->values.data;
  if (rpc->values.count < 2 || v[0].kind != RPC_KIND_INT) return odd(rpc, err);
  *out = (heddle_rpc_value){.kind = HEDDLE_RPC_NONE};
  switch (v[1].kind) {
  case RPC_KIND_NULL: return HEDDLE_OK;
  case RPC_KIND_INT:
  case RPC_KIND_BOOL:
    out->kind = v[1].kind == RPC_KIND_INT ? HEDDLE_RPC_INT : HEDDLE_RPC_BOOL;
    out->of.i = v[1].of.i;
    return HEDDLE_OK;
  case RPC_KIND_FLOAT:
    out->kind = HEDDLE_RPC_FLOAT;
    out->of.f = v[1].of.f;
    return HEDDLE_OK;
  case RPC_KIND_STRING:
  case RPC_KIND_BYTES:
    out->kind = v[1].kind == RPC_KIND_STRING ? HEDDLE_RPC_STRING : HEDDLE_RPC_BYTES;
    out->of.data = v[1].of.text.data;
    out->bytes = v[1].of.text.bytes;
    return HEDDLE_OK;
  case RPC_KIND_DTYPE:
    out->kind = HEDDLE_RPC_DTYPE;
    out->of.dtype = v[1].of.dtype;
    return HEDDLE_OK;
  case RPC_KIND_DEVICE:
    out->kind = HEDDLE_RPC_DEVICE;
    out->of.device.type = v[1].of.device.type;
    out->of.device.number = v[1].of.device.number;
    return HEDDLE_OK;
  case RPC_KIND_TENSOR: {
    const rpc_tensor *t = v[1].of.tensor;
    if (rpc->values.count != 3 || v[2].kind != RPC_KIND_HANDLE) return odd(rpc, err);
    rpc->tensor = (heddle_rpc_tensor){.data = t->data,
                                      .object = v[2].of.handle,
                                      .device_type = t->device.type,
                                      .device_number = t->device.number,
                                      .dtype = t->dtype,
                                      .ndim = t->ndim};
    memcpy(rpc->tensor.shape, t->shape, t->ndim * sizeof *t->shape);
    out->kind = HEDDLE_RPC_TENSOR;
    out->of.tensor = &rpc->tensor;
    return HEDDLE_OK;
  }
  default:
    if (v[1].of.handle == 0) return HEDDLE_OK;
    out->kind = kind_of(rpc->era, v[0].of.i);
    out->of.handle = v[1].of.handle;
    return HEDDLE_OK;
  }
}

/* Frees a result that the caller does not take. */
static heddle_status drop(heddle_rpc *rpc, const heddle_rpc_value *v, heddle_error *err) {
  if (v->kind == HEDDLE_RPC_TENSOR) {
    const heddle_rpc_tensor t = *v->of.tensor;
    return heddle_rpc_tensor_free(rpc, &t, err);
  }
  if (v->kind >= HEDDLE_RPC_MODULE && v->kind <= HEDDLE_RPC_OBJECT) return heddle_rpc_free(rpc, v->of.handle, err);
  return HEDDLE_OK;
}

heddle_status heddle_rpc_call(heddle_rpc *rpc, uint64_t function, const heddle_rpc_value *args, uint32_t n_args,
                              heddle_rpc_value *result, heddle_error *err) {
  if (result != NULL) *result = (heddle_rpc_value){.kind = HEDDLE_RPC_NONE};
  if (rpc == NULL || function == 0 || (n_args > 0 && args == NULL) || n_args > RPC_MOST_VALUES)
    return bad(err, "a call needs a session, a function and its arguments");
  rpc_value *values = calloc(n_args + 1, sizeof *values);
  rpc_tensor *tensors = calloc(n_args + 1, sizeof *tensors);
  byte_buffer b = {0};
  heddle_rpc_value got;
  heddle_status s = HEDDLE_OK;
  if (values == NULL || tensors == NULL) {
    free(values);
    free(tensors);
    return rpc_error(err, HEDDLE_ENOMEM, "out of memory: a call");
  }
  for (uint32_t i = 0; i < n_args && s == HEDDLE_OK; i++)
    if (!take(&args[i], &values[i], &tensors[i]))
      s = rpc_error(err, HEDDLE_EINVAL, "argument %u is of an unknown kind, or NULL", (unsigned)i);
  if (s == HEDDLE_OK) {
    byte_put_u64(&b, function);
    rpc_put_values(&b, rpc->era, values, n_args);
    s = rpc_ask(rpc, RPC_CALL, &b, NULL, 0, RPC_RETURN, err);
  }
  byte_finish(&b);
  free(values);
  free(tensors);
  if (s == HEDDLE_OK) s = give(rpc, &got, err);
  if (s != HEDDLE_OK) return s;
  if (result == NULL) return drop(rpc, &got, err);
  *result = got;
  return HEDDLE_OK;
}

heddle_status heddle_rpc_free(heddle_rpc *rpc, uint64_t handle, heddle_error *err) {
  enum { OBJECT_TAG = 8 };
  if (rpc == NULL) return bad(err, "a session is needed");
  return handle != 0 ? free_object(rpc, handle, OBJECT_TAG, err) : HEDDLE_OK;
}

/* ---- functions by name */

static heddle_status find_global(heddle_rpc *rpc, const char *name, uint64_t *out, heddle_error *err) {
  const rpc_value value = {.kind = RPC_KIND_STRING, .of.text = {name, strlen(name)}};
  rpc_value got;
  heddle_status s = rpc_ask_one(rpc, RPC_GLOBAL, &value, 1, &got, err);
  if (s != HEDDLE_OK) return s;
  if (got.kind != RPC_KIND_HANDLE) return odd(rpc, err);
  *out = got.of.handle;
  return got.of.handle != 0 ? HEDDLE_OK
                            : rpc_error(err, HEDDLE_ENOTFOUND, "%s has no function '%.200s'", rpc->where, name);
}

/* Calls one of the server's own functions, which is looked up once. */
static heddle_status call_own(heddle_rpc *rpc, rpc_own own, const heddle_rpc_value *args, uint32_t n,
                              heddle_rpc_value *result, heddle_error *err) {
  static const char *const names[] = {"tvm.rpc.server.upload", "tvm.rpc.server.download", "tvm.rpc.server.load_module",
                                      "tvm.rpc.server.ModuleGetFunction"};
  heddle_status s = rpc->own[own] != 0 ? HEDDLE_OK : find_global(rpc, names[own], &rpc->own[own], err);
  return s == HEDDLE_OK ? heddle_rpc_call(rpc, rpc->own[own], args, n, result, err) : s;
}

static heddle_rpc_value string_of(const char *text) {
  return (heddle_rpc_value){.kind = HEDDLE_RPC_STRING, .of.s = text};
}

static heddle_rpc_value int_of(int64_t n) {
  return (heddle_rpc_value){.kind = HEDDLE_RPC_INT, .of.i = n};
}

heddle_status heddle_rpc_function(heddle_rpc *rpc, uint64_t module, const char *name, uint64_t *function,
                                  heddle_error *err) {
  heddle_rpc_value got;
  if (function != NULL) *function = 0;
  if (rpc == NULL || name == NULL || function == NULL) return bad(err, "a session, a name and a place are needed");
  if (module == 0) return find_global(rpc, name, function, err);
  const heddle_rpc_value args[3] = {
      {.kind = HEDDLE_RPC_MODULE, .of.handle = module}, string_of(name), {.kind = HEDDLE_RPC_BOOL, .of.i = 1}};
  heddle_status s = call_own(rpc, OWN_MODULE_FUNCTION, args, 3, &got, err);
  if (s != HEDDLE_OK) return s;
  if (got.kind == HEDDLE_RPC_NONE) return rpc_error(err, HEDDLE_ENOTFOUND, "the module has no function '%.200s'", name);
  if (got.kind != HEDDLE_RPC_FUNCTION) return odd(rpc, err);
  *function = got.of.handle;
  return HEDDLE_OK;
}

heddle_status heddle_rpc_upload(heddle_rpc *rpc, const char *name, const void *data, size_t bytes, heddle_error *err) {
  if (rpc == NULL || name == NULL || (data == NULL && bytes > 0))
    return bad(err, "a session, a name and data are needed");
  const heddle_rpc_value args[2] = {string_of(name), {.kind = HEDDLE_RPC_BYTES, .of.data = data, .bytes = bytes}};
  return call_own(rpc, OWN_UPLOAD, args, 2, NULL, err);
}

heddle_status heddle_rpc_download(heddle_rpc *rpc, const char *name, const void **data, size_t *bytes,
                                  heddle_error *err) {
  heddle_rpc_value got;
  if (rpc == NULL || name == NULL || data == NULL || bytes == NULL)
    return bad(err, "a session, a name and places for the data are needed");
  const heddle_rpc_value arg = string_of(name);
  heddle_status s = call_own(rpc, OWN_DOWNLOAD, &arg, 1, &got, err);
  if (s != HEDDLE_OK) return s;
  if (got.kind != HEDDLE_RPC_BYTES) return odd(rpc, err);
  *data = got.of.data;
  *bytes = (size_t)got.bytes;
  return HEDDLE_OK;
}

heddle_status heddle_rpc_load(heddle_rpc *rpc, const char *name, uint64_t *module, heddle_error *err) {
  heddle_rpc_value got;
  if (rpc == NULL || name == NULL || module == NULL) return bad(err, "a session, a name and a place are needed");
  *module = 0;
  const heddle_rpc_value arg = string_of(name);
  heddle_status s = call_own(rpc, OWN_LOAD, &arg, 1, &got, err);
  if (s != HEDDLE_OK) return s;
  if (got.kind != HEDDLE_RPC_MODULE) return odd(rpc, err);
  *module = got.of.handle;
  return HEDDLE_OK;
}

heddle_status heddle_rpc_time(heddle_rpc *rpc, uint64_t module, const char *function, int32_t device_type,
                              int32_t device_number, const heddle_rpc_value *args, uint32_t n_args, uint32_t number,
                              uint32_t repeat, uint32_t min_repeat_ms, double *seconds, heddle_error *err) {
  enum { ZEROS = 100 };
  uint64_t make = 0;
  heddle_rpc_value got, module_value = {.kind = module != 0 ? HEDDLE_RPC_MODULE : HEDDLE_RPC_NONE, .of.handle = module};
  if (rpc == NULL || function == NULL || seconds == NULL || number == 0 || repeat == 0)
    return bad(err, "a session, a function, and numbers of calls and of measurements are needed");
  heddle_status s = find_global(rpc, "runtime.RPCTimeEvaluator", &make, err);
  if (s != HEDDLE_OK) return s;
  const heddle_rpc_value how[12] = {module_value,
                                    string_of(function),
                                    int_of(device_type),
                                    int_of(device_number),
                                    int_of(number),
                                    int_of(repeat),
                                    int_of(min_repeat_ms),
                                    int_of(ZEROS),
                                    int_of(0),
                                    int_of(1),
                                    int_of(0),
                                    string_of("")};
  s = heddle_rpc_call(rpc, make, how, 12, &got, err);
  heddle_error ignored;
  (void)heddle_rpc_free(rpc, make, s == HEDDLE_OK ? err : &ignored);
  if (s != HEDDLE_OK) return s;
  if (got.kind != HEDDLE_RPC_FUNCTION) return odd(rpc, err);
  const uint64_t timed = got.of.handle;
  s = heddle_rpc_call(rpc, timed, args, n_args, &got, err);
  if (s == HEDDLE_OK && (got.kind != HEDDLE_RPC_BYTES || got.bytes != (uint64_t)repeat * sizeof *seconds))
    s = odd(rpc, err);
  else if (s == HEDDLE_OK) memcpy(seconds, got.of.data, (size_t)got.bytes);
  (void)heddle_rpc_free(rpc, timed, s == HEDDLE_OK ? err : &ignored);
  return s;
}
