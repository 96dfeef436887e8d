/* rpc/memory.c: a session's requests about devices: attributes, memory, copies, streams. Every tensor that comes from the
 * client lies in memory that the session handed out, or it is refused. */
#include "rpc/session.h"

#include <string.h>
#include <tvm/runtime/c_runtime_api.h>

static DLDevice device_of(rpc_device d) {
  return (DLDevice){(DLDeviceType)d.type, d.number};
}

void rpc_drop(rpc_session *s, rpc_held held) {
  switch (held.kind) {
  case RPC_HELD_FUNCTION: TVMFuncFree(held.pointer); break;
  case RPC_HELD_MODULE: TVMModFree(held.pointer); break;
  case RPC_HELD_ARRAY: TVMArrayFree(held.pointer); break;
  case RPC_HELD_MEMORY:
    TVMDeviceFreeDataSpace(device_of(held.device), held.pointer);
    s->allocated -= held.bytes;
    break;
  case RPC_HELD_STREAM: TVMStreamFree(held.device.type, held.device.number, held.pointer); break;
  case RPC_HELD_OWN:
  case RPC_HELD_NOTHING: break;
  }
}

/* ---- tensors */

/* The memory in which a tensor's bytes lie: checked for kind, device and room. NULL with words. */
static const rpc_held *memory_of(rpc_session *s, const rpc_tensor *t, uint64_t bytes) {
  const rpc_held *held = rpc_handles_find(&s->handles, t->data);
  if (held == NULL || (held->kind != RPC_HELD_MEMORY && held->kind != RPC_HELD_ARRAY)) {
    rpc_fail(s, "the tensor's data is no memory of this session");
    return NULL;
  }
  if (held->device.type != t->device.type || held->device.number != t->device.number) {
    rpc_fail(s, "the tensor's data is memory of device (%d, %d), not (%d, %d)", held->device.type, held->device.number,
             t->device.type, t->device.number);
    return NULL;
  }
  if (t->offset > held->bytes || bytes > held->bytes - t->offset) {
    rpc_fail(s, "the tensor's bytes [%llu, +%llu) are not within its memory of %llu bytes",
             (unsigned long long)t->offset, (unsigned long long)bytes, (unsigned long long)held->bytes);
    return NULL;
  }
  return held;
}

static void *data_of(const rpc_held *held) {
  return held->kind == RPC_HELD_ARRAY ? ((DLTensor *)held->pointer)->data : held->pointer;
}

bool rpc_place_tensor(rpc_session *s, const rpc_tensor *t, DLTensor *out) {
  *out = (DLTensor){.data = NULL};
  const rpc_held *held = memory_of(s, t, t->bytes);
  if (held == NULL) return false;
  out->data = data_of(held);
  out->device = device_of(t->device);
  out->ndim = (int32_t)t->ndim;
  out->dtype = (DLDataType){t->dtype.code, t->dtype.bits, t->dtype.lanes};
  out->shape = (int64_t *)(uintptr_t)t->shape;
  out->byte_offset = t->offset;
  return true;
}

/* Bytes of memory, as a row. */
static DLTensor row_of(void *data, DLDevice device, int64_t *bytes, uint64_t offset) {
  return (DLTensor){
      .data = data, .device = device, .ndim = 1, .dtype = {kDLUInt, 8, 1}, .shape = bytes, .byte_offset = offset};
}

/* ---- copies with the client */

enum { CPU = 1 };

static rpc_outcome copy_from(rpc_session *s, byte_reader *r) {
  rpc_tensor t;
  rpc_read_tensor(r, &t);
  uint64_t n = byte_take_u64(r);
  if (r->bad || r->left > 0) return RPC_MALFORMED;
  const rpc_held *held = memory_of(s, &t, n);
  if (held == NULL) return RPC_FAILED;
  if (n > s->limits.packet) return rpc_fail(s, "a copy of %llu bytes is over the limit", (unsigned long long)n);
  s->reply.used = 0;
  s->tail = NULL;
  s->tail_bytes = 0;
  byte_put_u64(&s->reply, 0);
  byte_put_u32(&s->reply, RPC_COPY_ACK);
  if (t.device.type == CPU) { /* sent from where it lies */
    s->tail = (const uint8_t *)data_of(held) + t.offset;
    s->tail_bytes = (size_t)n;
    return RPC_DONE;
  }
  static const uint8_t zeros[4096];
  for (uint64_t left = n; left > 0 && !s->reply.failed;) {
    size_t part = left < sizeof zeros ? (size_t)left : sizeof zeros;
    byte_put(&s->reply, zeros, part);
    left -= part;
  }
  if (s->reply.failed || n == 0) return RPC_DONE;
  int64_t bytes = (int64_t)n;
  DLTensor from = row_of(data_of(held), device_of(t.device), &bytes, t.offset);
  DLTensor to = row_of(s->reply.data + 12, (DLDevice){kDLCPU, 0}, &bytes, 0);
  return TVMDeviceCopyDataFromTo(&from, &to, NULL) == 0 ? RPC_DONE : rpc_fail_tvm(s);
}

static rpc_outcome copy_to(rpc_session *s, byte_reader *r) {
  rpc_tensor t;
  rpc_read_tensor(r, &t);
  uint64_t n = byte_take_u64(r);
  const uint8_t *data = byte_take(r, n);
  if (r->bad || r->left > 0) return RPC_MALFORMED;
  const rpc_held *held = memory_of(s, &t, n);
  if (held == NULL) return RPC_FAILED;
  if (n == 0) return rpc_give_nothing(s);
  if (t.device.type == CPU) {
    memcpy((uint8_t *)data_of(held) + t.offset, data, (size_t)n);
    return rpc_give_nothing(s);
  }
  int64_t bytes = (int64_t)n;
  DLTensor from = row_of((void *)(uintptr_t)data, (DLDevice){kDLCPU, 0}, &bytes, 0);
  DLTensor to = row_of(data_of(held), device_of(t.device), &bytes, t.offset);
  return TVMDeviceCopyDataFromTo(&from, &to, NULL) == 0 ? rpc_give_nothing(s) : rpc_fail_tvm(s);
}

/* ---- memory */

static rpc_outcome keep(rpc_session *s, rpc_held held) {
  uint64_t number = rpc_handles_add(&s->handles, held);
  if (number != 0) return rpc_give(s, (rpc_value){.kind = RPC_KIND_HANDLE, .of.handle = number});
  rpc_drop(s, held);
  return rpc_fail(s, "the session holds too many handles");
}

static rpc_outcome allocate(rpc_session *s, rpc_device d, uint64_t bytes, uint64_t alignment, heddle_dtype dtype) {
  rpc_held held = {.kind = RPC_HELD_MEMORY, .device = d, .bytes = bytes};
  if (bytes > s->limits.memory - s->allocated)
    return rpc_fail(s, "out of memory: %llu bytes, where the session has %llu of %llu left", (unsigned long long)bytes,
                    (unsigned long long)(s->limits.memory - s->allocated), (unsigned long long)s->limits.memory);
  if (TVMDeviceAllocDataSpace(device_of(d), (size_t)bytes, (size_t)alignment,
                              (DLDataType){dtype.code, dtype.bits, dtype.lanes}, &held.pointer) != 0)
    return rpc_fail_tvm(s);
  s->allocated += bytes;
  return keep(s, held);
}

static rpc_outcome free_memory(rpc_session *s, uint64_t number) {
  rpc_held *held = rpc_handles_find(&s->handles, number);
  if (held == NULL || held->kind != RPC_HELD_MEMORY)
    return rpc_fail(s, "kDevFreeData: this is no memory of the session");
  rpc_drop(s, rpc_handles_remove(&s->handles, number));
  return rpc_give_nothing(s);
}

/* ---- streams and attributes */

/* The stream of a handle, 0 being the default one; false with words. */
static bool stream_of(rpc_session *s, uint64_t number, void **out) {
  *out = NULL;
  if (number == 0) return true;
  rpc_held *held = rpc_handles_find(&s->handles, number);
  if (held == NULL || held->kind != RPC_HELD_STREAM) {
    rpc_fail(s, "the handle is no stream of this session");
    return false;
  }
  *out = held->pointer;
  return true;
}

static rpc_outcome of_stream(rpc_session *s, uint32_t code, rpc_device d, uint64_t number) {
  void *stream;
  if (!stream_of(s, number, &stream)) return RPC_FAILED;
  int rc = code == RPC_SYNC ? TVMSynchronize(d.type, d.number, stream) : TVMSetStream(d.type, d.number, stream);
  if (rc != 0) return rpc_fail_tvm(s);
  if (code == RPC_FREE_STREAM && number != 0) rpc_drop(s, rpc_handles_remove(&s->handles, number));
  return rpc_give_nothing(s);
}

static rpc_outcome attribute(rpc_session *s, rpc_device d, int64_t kind) {
  TVMValue args[3] = {{.v_int64 = d.type}, {.v_int64 = d.number}, {.v_int64 = kind}}, result = {0};
  int codes[3] = {kTVMArgInt, kTVMArgInt, kTVMArgInt}, code = kTVMNullptr;
  TVMFunctionHandle f = NULL;
  if (TVMFuncGetGlobal("runtime.GetDeviceAttr", &f) != 0 || f == NULL) return rpc_fail_tvm(s);
  int rc = TVMFuncCall(f, args, codes, 3, &result, &code);
  TVMFuncFree(f);
  if (rc != 0) return rpc_fail_tvm(s);
  rpc_value value = {.kind = RPC_KIND_NULL};
  if (code == kTVMArgInt) value = (rpc_value){.kind = RPC_KIND_INT, .of.i = result.v_int64};
  else if (code == kTVMStr)
    value = (rpc_value){.kind = RPC_KIND_STRING, .of.text = {result.v_str, strlen(result.v_str)}};
  return rpc_give(s, value);
}

/* ---- which request */

/* Whether the values are those of a request: letters D device, I int, H handle, T dtype, t tensor, s string or null. A
 * handle may be null. */
static bool match(const rpc_values *v, const char *letters) {
  if (v->count != strlen(letters)) return false;
  for (uint32_t i = 0; i < v->count; i++) {
    rpc_kind k = v->data[i].kind;
    bool good = false;
    switch (letters[i]) {
    case 'D': good = k == RPC_KIND_DEVICE; break;
    case 'I': good = k == RPC_KIND_INT; break;
    case 'H': good = k == RPC_KIND_HANDLE || k == RPC_KIND_NULL; break;
    case 'T': good = k == RPC_KIND_DTYPE || k == RPC_KIND_STRING; break;
    case 't': good = k == RPC_KIND_TENSOR; break;
    case 's': good = k == RPC_KIND_STRING || k == RPC_KIND_NULL; break;
    }
    if (!good) return false;
  }
  return true;
}

static uint64_t handle_of(const rpc_value *v) {
  return v->kind == RPC_KIND_HANDLE ? v->of.handle : 0;
}

static rpc_outcome copy_among(rpc_session *s, const rpc_values *v) {
  const rpc_tensor *from = v->data[0].of.tensor, *to = v->data[1].of.tensor;
  DLTensor a, b;
  void *stream;
  if (!rpc_place_tensor(s, from, &a) || !rpc_place_tensor(s, to, &b)) return RPC_FAILED;
  if (!stream_of(s, handle_of(&v->data[2]), &stream)) return RPC_FAILED;
  if (from->bytes != to->bytes) return rpc_fail(s, "a copy needs tensors of as many bytes");
  if (from->bytes == 0) return rpc_give_nothing(s);
  int64_t bytes = (int64_t)from->bytes; /* as rows: shapes and dtypes may differ */
  a = row_of(a.data, a.device, &bytes, a.byte_offset);
  b = row_of(b.data, b.device, &bytes, b.byte_offset);
  return TVMDeviceCopyDataFromTo(&a, &b, stream) == 0 ? rpc_give_nothing(s) : rpc_fail_tvm(s);
}

static rpc_outcome allocate_scope(rpc_session *s, const rpc_values *v) {
  const rpc_tensor *t = v->data[0].of.tensor;
  const char *scope = v->data[1].kind == RPC_KIND_STRING ? v->data[1].of.text.data : "";
  if (scope[0] != '\0' && strcmp(scope, "global") != 0)
    return rpc_fail(s, "device memory of scope '%.100s' is not supported; plain memory has the scope 'global'", scope);
  return allocate(s, t->device, t->bytes, 0, t->dtype);
}

static rpc_outcome create_stream(rpc_session *s, rpc_device d) {
  rpc_held held = {.kind = RPC_HELD_STREAM, .device = d};
  if (TVMStreamCreate(d.type, d.number, &held.pointer) != 0) return rpc_fail_tvm(s);
  return keep(s, held);
}

static rpc_outcome of_values(rpc_session *s, uint32_t code, const rpc_values *v) {
  static const char *const letters[] = {
      [RPC_SET_DEVICE] = "D",   [RPC_ATTRIBUTE] = "DI",   [RPC_ALLOC] = "DIIT",      [RPC_FREE] = "DH",
      [RPC_SYNC] = "DH",        [RPC_COPY_AMONG] = "ttH", [RPC_ALLOC_SCOPE] = "ts",  [RPC_STREAM] = "D",
      [RPC_FREE_STREAM] = "DH", [RPC_SET_STREAM] = "DH",  [RPC_CURRENT_STREAM] = "D"};
  const rpc_value *a = v->data;
  if (!match(v, letters[code])) return RPC_MALFORMED;
  if (code == RPC_COPY_AMONG) return copy_among(s, v);
  if (code == RPC_ALLOC_SCOPE) return allocate_scope(s, v);
  const rpc_device d = a[0].of.device;
  switch (code) {
  case RPC_ATTRIBUTE: return attribute(s, d, a[1].of.i);
  case RPC_ALLOC:
    if (a[1].of.i < 0 || a[2].of.i < 0) return rpc_fail(s, "kDevAllocData: a size is negative");
    return allocate(s, d, (uint64_t)a[1].of.i, (uint64_t)a[2].of.i, (heddle_dtype){HEDDLE_DTYPE_UINT, 8, 1});
  case RPC_FREE: return free_memory(s, handle_of(&a[1]));
  case RPC_STREAM: return create_stream(s, d);
  case RPC_CURRENT_STREAM: return rpc_give(s, (rpc_value){.kind = RPC_KIND_HANDLE});
  default: return of_stream(s, code, d, code == RPC_SET_DEVICE ? 0 : handle_of(&a[1]));
  }
}

rpc_outcome rpc_memory_request(rpc_session *s, uint32_t code, byte_reader *r) {
  rpc_values values;
  if (code == RPC_COPY_FROM) return copy_from(s, r);
  if (code == RPC_COPY_TO) return copy_to(s, r);
  heddle_status read = rpc_read_values(r, s->era, &values);
  if (read == HEDDLE_ENOMEM) return rpc_fail(s, "out of memory: a request");
  rpc_outcome out = RPC_MALFORMED;
  if (read == HEDDLE_OK && r->left == 0) out = of_values(s, code, &values);
  rpc_values_finish(&values);
  return out;
}
