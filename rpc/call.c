/* rpc/call.c: calls of functions: arguments from the wire to what TVM's C API takes, and results back. */
#include "rpc/session.h"

#include <stdlib.h>
#include <string.h>
#include <tvm/runtime/c_runtime_api.h>

/* The arguments of one call. */
typedef struct arguments {
  TVMValue *values;
  int *codes;
  DLTensor *tensors;
  TVMByteArray *bytes;
} arguments;

static bool take_handle(rpc_session *s, uint32_t i, const rpc_value *v, TVMValue *out, int *code) {
  const rpc_held *held = rpc_handles_find(&s->handles, v->of.handle);
  rpc_held_kind kind = held != NULL ? held->kind : RPC_HELD_NOTHING;
  out->v_handle = held != NULL ? held->pointer : NULL;
  if (v->kind != RPC_KIND_FUNCTION && kind == RPC_HELD_MODULE) *code = kTVMModuleHandle;
  else if (v->kind != RPC_KIND_MODULE && kind == RPC_HELD_FUNCTION) *code = kTVMPackedFuncHandle;
  else if (v->kind == RPC_KIND_OBJECT && kind == RPC_HELD_ARRAY) *code = kTVMNDArrayHandle;
  else if (v->kind == RPC_KIND_HANDLE && kind == RPC_HELD_STREAM) *code = kTVMOpaqueHandle;
  else if (v->kind == RPC_KIND_HANDLE && v->of.handle == 0) *code = kTVMOpaqueHandle;
  else {
    rpc_fail(s, "argument %u: the handle is nothing that this session can pass on", i);
    return false;
  }
  return true;
}

static bool take(rpc_session *s, uint32_t i, const rpc_value *v, arguments *a) {
  TVMValue *out = &a->values[i];
  int *code = &a->codes[i];
  *out = (TVMValue){.v_int64 = 0};
  switch (v->kind) {
  case RPC_KIND_NULL: *code = kTVMNullptr; return true;
  case RPC_KIND_INT:
  case RPC_KIND_BOOL:
    *code = kTVMArgInt;
    out->v_int64 = v->of.i;
    return true;
  case RPC_KIND_FLOAT:
    *code = kTVMArgFloat;
    out->v_float64 = v->of.f;
    return true;
  case RPC_KIND_DTYPE:
    *code = kTVMDataType;
    out->v_type = (DLDataType){v->of.dtype.code, v->of.dtype.bits, v->of.dtype.lanes};
    return true;
  case RPC_KIND_DEVICE:
    *code = kDLDevice;
    out->v_device = (DLDevice){(DLDeviceType)v->of.device.type, v->of.device.number};
    return true;
  case RPC_KIND_STRING:
    *code = kTVMStr;
    out->v_str = v->of.text.data;
    return true;
  case RPC_KIND_BYTES:
    *code = kTVMBytes;
    a->bytes[i] = (TVMByteArray){v->of.text.data, (size_t)v->of.text.bytes};
    out->v_handle = &a->bytes[i];
    return true;
  case RPC_KIND_TENSOR:
    *code = kTVMDLTensorHandle;
    out->v_handle = &a->tensors[i];
    return rpc_place_tensor(s, v->of.tensor, &a->tensors[i]);
  default: return take_handle(s, i, v, out, code);
  }
}

/* ---- results */

/* A result: the number of its type, and the value. */
rpc_outcome rpc_give_result(rpc_session *s, rpc_value value) {
  const rpc_value tag = {.kind = RPC_KIND_INT, .of.i = rpc_result_tag(s->era, value.kind)};
  rpc_value both[2] = {tag, value};
  if (value.kind == RPC_KIND_MODULE || value.kind == RPC_KIND_FUNCTION) both[1].kind = RPC_KIND_HANDLE;
  rpc_outcome out = rpc_give(s, value);
  s->reply.used = 12; /* the sequence is written again */
  rpc_put_values(&s->reply, s->era, both, 2);
  return out;
}

static rpc_outcome give_array(rpc_session *s, DLTensor *t) {
  rpc_tensor shown = {.device = {(int32_t)t->device.device_type, t->device.device_id},
                      .dtype = {t->dtype.code, t->dtype.bits, t->dtype.lanes},
                      .ndim = (uint32_t)t->ndim};
  const int32_t ext = kDLExtDev, wire_types = 128;
  if (shown.device.type >= wire_types) shown.device.type = ext; /* a type of Heddle's own */
  rpc_held held = {.kind = RPC_HELD_ARRAY, .pointer = t, .device = shown.device};
  uint64_t count = 1;
  for (uint32_t i = 0; i < shown.ndim; i++) count *= (uint64_t)(shown.shape[i] = t->shape[i]);
  const uint64_t each = ((uint64_t)t->dtype.bits * t->dtype.lanes + 7) / 8;
  held.bytes = count * each;
  int64_t step = 1;
  bool is_compact = true;
  for (uint32_t i = shown.ndim; i-- > 0 && t->strides != NULL; step *= t->shape[i])
    if (t->shape[i] != 1 && t->strides[i] != step) is_compact = false;
  uint64_t number = is_compact && t->byte_offset == 0 ? rpc_handles_add(&s->handles, held) : 0;
  if (number == 0) {
    TVMArrayFree(t);
    return rpc_fail(s, is_compact ? "the result cannot be held" : "the result is a tensor that is not compact");
  }
  shown.data = number;
  const rpc_value three[3] = {
      {.kind = RPC_KIND_INT, .of.i = rpc_result_tag(s->era, RPC_KIND_TENSOR)},
      {.kind = RPC_KIND_TENSOR, .of.tensor = &shown},
      {.kind = RPC_KIND_HANDLE, .of.handle = number}, /* one number for both: some clients free the first */
  };
  rpc_outcome out = rpc_give_nothing(s);
  s->reply.used = 12;
  rpc_put_values(&s->reply, s->era, three, 3);
  return out;
}

rpc_outcome rpc_give_object(rpc_session *s, rpc_held_kind kind, void *pointer) {
  const rpc_held held = {.kind = kind, .pointer = pointer};
  uint64_t number = rpc_handles_add(&s->handles, held);
  if (number == 0) {
    rpc_drop(s, held);
    return rpc_fail(s, "the session holds too many handles");
  }
  return rpc_give_result(
      s, (rpc_value){.kind = kind == RPC_HELD_MODULE ? RPC_KIND_MODULE : RPC_KIND_FUNCTION, .of.handle = number});
}

static rpc_outcome give_result(rpc_session *s, TVMValue v, int code) {
  const TVMByteArray *bytes = v.v_handle;
  if (v.v_handle == NULL && code >= kTVMDLTensorHandle && code <= kTVMNDArrayHandle) code = kTVMNullptr;
  switch (code) {
  case kTVMNullptr: return rpc_give_result(s, (rpc_value){.kind = RPC_KIND_NULL});
  case kTVMArgInt:
  case kDLUInt: return rpc_give_result(s, (rpc_value){.kind = RPC_KIND_INT, .of.i = v.v_int64});
  case kTVMArgFloat: return rpc_give_result(s, (rpc_value){.kind = RPC_KIND_FLOAT, .of.f = v.v_float64});
  case kTVMStr: return rpc_give_result(s, (rpc_value){.kind = RPC_KIND_STRING, .of.text = {v.v_str, strlen(v.v_str)}});
  case kTVMBytes: return rpc_give_result(s, (rpc_value){.kind = RPC_KIND_BYTES, .of.text = {bytes->data, bytes->size}});
  case kDLDevice:
    return rpc_give_result(
        s, (rpc_value){.kind = RPC_KIND_DEVICE, .of.device = {(int32_t)v.v_device.device_type, v.v_device.device_id}});
  case kTVMModuleHandle: return rpc_give_object(s, RPC_HELD_MODULE, v.v_handle);
  case kTVMPackedFuncHandle: return rpc_give_object(s, RPC_HELD_FUNCTION, v.v_handle);
  case kTVMNDArrayHandle: return give_array(s, v.v_handle);
  default: return rpc_fail(s, "the function returned a value of code %d, which cannot be sent", code);
  }
}

/* ---- the call */

static rpc_outcome call(rpc_session *s, void *function, const rpc_values *v) {
  const uint32_t n = v->count;
  arguments a = {malloc((n + 1) * sizeof *a.values), malloc((n + 1) * sizeof *a.codes),
                 malloc((n + 1) * sizeof *a.tensors), malloc((n + 1) * sizeof *a.bytes)};
  bool good = a.values != NULL && a.codes != NULL && a.tensors != NULL && a.bytes != NULL;
  TVMValue result = {.v_int64 = 0};
  int code = kTVMNullptr;
  rpc_outcome out = RPC_FAILED;
  if (!good) rpc_fail(s, "out of memory: the arguments of a call");
  for (uint32_t i = 0; i < n && good; i++) good = take(s, i, &v->data[i], &a);
  if (good) {
    if (TVMFuncCall(function, a.values, a.codes, (int)n, &result, &code) == 0) out = give_result(s, result, code);
    else out = rpc_fail_tvm(s);
  }
  free(a.values);
  free(a.codes);
  free(a.tensors);
  free(a.bytes);
  return out;
}

rpc_outcome rpc_call(rpc_session *s, byte_reader *r) {
  uint64_t number = byte_take_u64(r);
  rpc_values values;
  heddle_status read = rpc_read_values(r, s->era, &values);
  if (read == HEDDLE_ENOMEM) return rpc_fail(s, "out of memory: the arguments of a call");
  rpc_outcome out = RPC_MALFORMED;
  if (read == HEDDLE_OK && r->left == 0) {
    const rpc_held *held = rpc_handles_find(&s->handles, number);
    if (held != NULL && held->kind == RPC_HELD_FUNCTION) out = call(s, held->pointer, &values);
    else if (held != NULL && held->kind == RPC_HELD_OWN) out = rpc_own_call(s, held->index, values.data, values.count);
    else out = rpc_fail(s, "kCallFunc: the handle is no function of this session");
  }
  rpc_values_finish(&values);
  return out;
}
