/* modules/tvm/api_array.c: TVM's C API, arrays: memory on the host or on a device, bytes in and out, DLPack. Copies
 * block. */
#include <string.h>

#include "core/device.h"
#include "core/tensor.h"
#include "modules/tvm/api.h"

static int say(const char *caller, const heddle_error *err) {
  heddle__tvm_say_error(caller, err);
  return -1;
}

/* uint1 is TVM's bool of that time, in a byte. */
static heddle_dtype own_dtype(heddle_dtype t) {
  bool is_bool = t.code == HEDDLE_DTYPE_UINT && t.bits == 1;
  return is_bool ? (heddle_dtype){HEDDLE_DTYPE_BOOL, 8, t.lanes} : t;
}

heddle_status heddle__api_tensor(int32_t type, int32_t number, heddle_dtype dtype, const int64_t *shape, uint32_t ndim,
                                 heddle_tensor **out) {
  heddle_error err = {0};
  heddle_device *dev = NULL;
  *out = NULL;
  if (type != HEDDLE_DEVICE_CPU && (dev = heddle__api_device(type, number)) == NULL) return HEDDLE_ENODEV;
  heddle_status s = heddle_tensor_create(dev, own_dtype(dtype), shape, ndim, out, &err);
  if (s != HEDDLE_OK) heddle__tvm_say_error("an array", &err);
  return s;
}

/* Gives the array for a tensor, and takes the tensor over in any case; what it wraps stays the caller's on failure. */
static int give(heddle_tensor *t, heddle_dtype dtype, TVMArrayHandle *out) {
  heddle__array *a = heddle__array_new(t);
  if (a == NULL) {
    t->release = NULL;
    heddle_tensor_release(t);
    return heddle__api_refuse("out of memory: an array");
  }
  a->t.dtype = dtype;
  *out = (DLTensor *)(void *)a;
  return 0;
}

int TVMArrayAlloc(const tvm_index_t *shape, int ndim, int dtype_code, int dtype_bits, int dtype_lanes, int device_type,
                  int device_id, TVMArrayHandle *out) {
  heddle_tensor *t;
  if (out == NULL) return heddle__api_refuse("TVMArrayAlloc: out is NULL");
  *out = NULL;
  if (ndim < 0 || dtype_code < 0 || dtype_code > 255 || dtype_bits < 1 || dtype_bits > 255 || dtype_lanes < 1 ||
      dtype_lanes > 65535)
    return heddle__api_refuse(
        "TVMArrayAlloc: %d dimensions of a dtype of code %d, %d bits and %d lanes are not possible", ndim, dtype_code,
        dtype_bits, dtype_lanes);
  heddle_dtype dtype = {(uint8_t)dtype_code, (uint8_t)dtype_bits, (uint16_t)dtype_lanes};
  if (heddle__api_tensor(device_type, device_id, dtype, shape, (uint32_t)ndim, &t) != HEDDLE_OK) return -1;
  return give(t, dtype, out);
}

int TVMArrayFree(TVMArrayHandle handle) {
  if (handle == NULL) return 0;
  heddle__array *a = heddle__array_find(handle);
  if (a == NULL) return heddle__api_refuse("TVMArrayFree: the handle is no array of TVMArrayAlloc or of a call");
  heddle__array_release(a); /* the search's */
  heddle__array_release(a);
  return 0;
}

/* ---- copies */

/* The tensor behind a handle, which may be any DLTensor; with a reference. NULL with words. */
static heddle_tensor *tensor_of(void *handle) {
  const heddle__word word = {.p = handle};
  const int32_t code = PACKED_TENSOR;
  return heddle__argument_tensor(&word, &code, 0);
}

/* All bytes as one row; only for copies: it holds nothing. */
static void flatten(const heddle_tensor *t, heddle_tensor *out) {
  memset(out, 0, sizeof *out);
  out->kind = t->kind;
  out->dev = t->dev;
  out->buffer = t->buffer;
  out->data = t->data;
  out->dtype = (heddle_dtype){HEDDLE_DTYPE_UINT, 8, 1};
  out->ndim = 1;
  out->shape[0] = (int64_t)t->bytes;
  out->strides[0] = 1;
  out->count = out->bytes = t->bytes;
  out->contiguous = true;
  out->read_only = t->read_only;
}

heddle_status heddle__api_copy(heddle_tensor *dst, const heddle_tensor *src, heddle_error *err) {
  heddle_tensor to, from;
  if (dst->bytes != src->bytes || !dst->contiguous || !src->contiguous) return heddle_tensor_copy(dst, src, err);
  flatten(dst, &to);
  flatten(src, &from);
  return heddle_tensor_copy(&to, &from, err);
}

static int copy_bytes(const char *caller, TVMArrayHandle handle, void *data, size_t nbytes, bool in) {
  heddle_tensor *t = tensor_of(handle), *bytes = NULL;
  heddle_error err = {0};
  int rc = 0;
  if (t == NULL) return -1;
  const int64_t n = (int64_t)t->bytes;
  if (t->bytes != nbytes)
    rc = heddle__api_refuse("%s: the array has %llu bytes, and %zu are given", caller, (unsigned long long)t->bytes,
                            nbytes);
  else if (!t->contiguous) rc = heddle__api_refuse("%s: the array is not compact", caller);
  else if (nbytes > 0 && heddle_tensor_wrap(data, (heddle_dtype){HEDDLE_DTYPE_UINT, 8, 1}, &n, 1, NULL, NULL, NULL,
                                            &bytes, &err) != HEDDLE_OK)
    rc = say(caller, &err);
  else if (nbytes > 0 && heddle__api_copy(in ? t : bytes, in ? bytes : t, &err) != HEDDLE_OK) rc = say(caller, &err);
  heddle_tensor_release(bytes);
  heddle_tensor_release(t);
  return rc;
}

int TVMArrayCopyFromBytes(TVMArrayHandle handle, void *data, size_t nbytes) {
  return copy_bytes("TVMArrayCopyFromBytes", handle, data, nbytes, true);
}

int TVMArrayCopyToBytes(TVMArrayHandle handle, void *data, size_t nbytes) {
  return copy_bytes("TVMArrayCopyToBytes", handle, data, nbytes, false);
}

/* The copy is complete on return, so that it comes in any stream's order. */
static int copy(const char *caller, void *from, void *to) {
  heddle_error err = {0};
  const heddle__word words[2] = {{.p = from}, {.p = to}};
  const int32_t codes[2] = {PACKED_TENSOR, PACKED_TENSOR};
  heddle_tensor *src = heddle__argument_tensor(words, codes, 0);
  heddle_tensor *dst = src != NULL ? heddle__argument_tensor(words, codes, 1) : NULL;
  int rc = dst != NULL ? 0 : -1;
  if (rc == 0 && heddle__api_copy(dst, src, &err) != HEDDLE_OK) rc = say(caller, &err);
  heddle_tensor_release(src);
  heddle_tensor_release(dst);
  return rc;
}

int TVMArrayCopyFromTo(TVMArrayHandle from, TVMArrayHandle to, TVMStreamHandle stream) {
  (void)stream;
  return copy("TVMArrayCopyFromTo", from, to);
}

int TVMDeviceCopyDataFromTo(DLTensor *from, DLTensor *to, TVMStreamHandle stream) {
  (void)stream;
  return copy("TVMDeviceCopyDataFromTo", from, to);
}

/* ---- DLPack */

int TVMArrayFromDLPack(DLManagedTensor *from, TVMArrayHandle *out) {
  heddle_error err = {0};
  heddle_tensor *t;
  heddle_dtype dtype;
  if (from == NULL || out == NULL) return heddle__api_refuse("TVMArrayFromDLPack: the tensor or out is NULL");
  *out = NULL;
  memcpy(&dtype, &from->dl_tensor.dtype, sizeof dtype);
  if (heddle_tensor_from_dlpack(from, &t, &err) != HEDDLE_OK) return say("TVMArrayFromDLPack", &err);
  return give(t, dtype, out);
}

int TVMArrayToDLPack(TVMArrayHandle from, DLManagedTensor **out) {
  heddle_error err = {0};
  if (out == NULL) return heddle__api_refuse("TVMArrayToDLPack: out is NULL");
  *out = NULL;
  heddle__array *a = heddle__array_find(from);
  if (a == NULL) return heddle__api_refuse("TVMArrayToDLPack: the handle is no array of TVMArrayAlloc or of a call");
  heddle_status s = heddle_tensor_to_dlpack(a->of, out, &err);
  if (s == HEDDLE_OK) memcpy(&(*out)->dl_tensor.dtype, &a->t.dtype, sizeof a->t.dtype);
  heddle__array_release(a);
  return s == HEDDLE_OK ? 0 : say("TVMArrayToDLPack", &err);
}

void TVMDLManagedTensorCallDeleter(DLManagedTensor *dltensor) {
  if (dltensor != NULL && dltensor->deleter != NULL) dltensor->deleter(dltensor);
}
