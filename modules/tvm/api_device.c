/* modules/tvm/api_device.c: TVM's C API, streams and memory of devices. Each call waits for what it starts, so a stream
 * has nothing to order or to wait for: its handle is a name that is checked. */
#include <pthread.h>
#include <string.h>

#include "core/alloc.h"
#include "core/device.h"
#include "core/tensor.h"
#include "modules/tvm/api.h"

/* ---- streams */

#define STREAM_MARK UINT64_C(0xf4eddf0000000003)

typedef struct stream {
  uint64_t mark;
  int32_t type, number;
} stream;

/* The device is there, and a stream, where one is given, is its own. */
static int check(const char *caller, int type, int number, const void *handle) {
  const stream *s = handle;
  if (type != HEDDLE_DEVICE_CPU && heddle__api_device(type, number) == NULL) return -1;
  if (s == NULL || (s->mark == STREAM_MARK && s->number == number &&
                    (heddle__is_type(s->type, type) || heddle__is_type(type, s->type))))
    return 0;
  return heddle__api_refuse("%s: the handle is no stream of device (%d, %d)", caller, type, number);
}

int TVMStreamCreate(int device_type, int device_id, TVMStreamHandle *out) {
  if (out == NULL) return heddle__api_refuse("TVMStreamCreate: out is NULL");
  *out = NULL;
  if (check("TVMStreamCreate", device_type, device_id, NULL) != 0) return -1;
  stream *s = heddle__alloc(1, sizeof *s);
  if (s == NULL) return heddle__api_refuse("out of memory: a stream");
  *s = (stream){STREAM_MARK, device_type, device_id};
  *out = s;
  return 0;
}

int TVMStreamFree(int device_type, int device_id, TVMStreamHandle handle) {
  if (check("TVMStreamFree", device_type, device_id, handle) != 0) return -1;
  if (handle != NULL) ((stream *)handle)->mark = 0;
  heddle__free(handle);
  return 0;
}

int TVMSetStream(int device_type, int device_id, TVMStreamHandle handle) {
  return check("TVMSetStream", device_type, device_id, handle);
}

int TVMSynchronize(int device_type, int device_id, TVMStreamHandle handle) {
  heddle_error err = {0};
  if (check("TVMSynchronize", device_type, device_id, handle) != 0) return -1;
  if (device_type == HEDDLE_DEVICE_CPU ||
      heddle_device_health(heddle__api_device(device_type, device_id), &err) == HEDDLE_OK)
    return 0;
  heddle__tvm_say_error("TVMSynchronize", &err);
  return -1;
}

int TVMStreamStreamSynchronize(int device_type, int device_id, TVMStreamHandle src, TVMStreamHandle dst) {
  int rc = check("TVMStreamStreamSynchronize", device_type, device_id, src);
  return rc == 0 ? check("TVMStreamStreamSynchronize", device_type, device_id, dst) : rc;
}

/* ---- memory */

/* Each piece that was handed out, by the pointer or handle that callers know it by. */
typedef struct space {
  struct space *next;
  void *data;
  heddle_tensor *of; /* NULL: host memory of our own */
} space;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards the list; a leaf */
static space *spaces;

static int give(DLDevice dev, size_t nbytes, size_t alignment, void **out) {
  enum { USUAL = 256 };
  const int64_t n = nbytes > 0 ? (int64_t)nbytes : 1;
  const heddle_dtype byte = {HEDDLE_DTYPE_UINT, 8, 1};
  if (out == NULL) return heddle__api_refuse("device memory: out is NULL");
  *out = NULL;
  if (nbytes > INT64_MAX || alignment > 1 << 20 || (alignment & (alignment - 1)) != 0)
    return heddle__api_refuse("device memory: %zu bytes, aligned to %zu, are not possible", nbytes, alignment);
  space *s = heddle__alloc(1, sizeof *s);
  if (s == NULL) return heddle__api_refuse("out of memory: device memory");
  if (dev.device_type == kDLCPU) {
    s->data = heddle__alloc_aligned((size_t)n, alignment > USUAL ? alignment : USUAL);
    if (s->data == NULL) heddle__api_refuse("out of memory: %zu bytes", nbytes);
  } else if (heddle__api_tensor(dev.device_type, dev.device_id, byte, &n, 1, &s->of) == HEDDLE_OK) {
    s->data = s->of->dev != NULL ? (void *)s->of->buffer : s->of->data;
  }
  if (s->data == NULL) {
    heddle__free(s);
    return -1;
  }
  pthread_mutex_lock(&lock);
  s->next = spaces;
  spaces = s;
  pthread_mutex_unlock(&lock);
  *out = s->data;
  return 0;
}

int TVMDeviceAllocDataSpace(DLDevice dev, size_t nbytes, size_t alignment, DLDataType type_hint, void **out_data) {
  (void)type_hint;
  return give(dev, nbytes, alignment, out_data);
}

int TVMDeviceAllocDataSpaceWithScope(DLDevice dev, int ndim, const int64_t *shape, DLDataType dtype,
                                     const char *mem_scope, void **out_data) {
  uint64_t bytes = ((uint64_t)dtype.bits * dtype.lanes + 7) / 8;
  if (mem_scope != NULL && mem_scope[0] != '\0' && strcmp(mem_scope, "global") != 0)
    return heddle__api_refuse("device memory of scope '%.100s' is not here; plain memory has the scope 'global'",
                              mem_scope);
  if (ndim < 0 || (ndim > 0 && shape == NULL))
    return heddle__api_refuse("device memory: the shape is not there, with %d dimensions", ndim);
  for (int i = 0; i < ndim; i++)
    if (shape[i] < 0 || __builtin_mul_overflow(bytes, (uint64_t)shape[i], &bytes))
      return heddle__api_refuse("device memory: dimension %d is %lld, which is not possible", i, (long long)shape[i]);
  return give(dev, (size_t)bytes, 0, out_data);
}

int TVMDeviceFreeDataSpace(DLDevice dev, void *ptr) {
  (void)dev;
  pthread_mutex_lock(&lock);
  space **link = &spaces, *s;
  while (*link != NULL && (*link)->data != ptr) link = &(*link)->next;
  s = *link;
  if (s != NULL) *link = s->next;
  pthread_mutex_unlock(&lock);
  if (s == NULL)
    return ptr == NULL ? 0 : heddle__api_refuse("TVMDeviceFreeDataSpace: this is no memory that was handed out");
  if (s->of != NULL) heddle_tensor_release(s->of);
  else heddle__free(s->data);
  heddle__free(s);
  return 0;
}
