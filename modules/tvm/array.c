/* modules/tvm/array.c: arrays: tensors of libheddle's as counted DLTensors, found again by their address, and the tensors
 * that arguments name. */
#include <pthread.h>
#include <stdio.h>

#include "core/alloc.h"
#include "core/device.h"
#include "core/tensor.h"
#include "modules/tvm/launch.h"
#include "modules/tvm/object.h"

/* Those that live: bindings pass an array's address as that of a plain DLTensor. */
enum { BUCKETS = 256 };
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards the lists; a leaf */
static heddle__array *buckets[BUCKETS];

static heddle__array **bucket(const void *p) {
  return &buckets[((uintptr_t)p >> 4) * UINT64_C(0x9e3779b97f4a7c15) >> 56];
}

heddle__array *heddle__array_new(heddle_tensor *t) {
  heddle__array *a = heddle__alloc(1, sizeof *a);
  if (a == NULL) return NULL;
  heddle_dtype dtype = t->dtype;
  if (dtype.code == HEDDLE_DTYPE_BOOL) dtype = (heddle_dtype){HEDDLE_DTYPE_UINT, 1, dtype.lanes};
  a->t = (heddle__dltensor){.data = t->dev != NULL ? (void *)t->buffer : t->data,
                            .device_type = t->dev != NULL ? t->dev->desc.type : HEDDLE_DEVICE_CPU,
                            .device_id = t->dev != NULL ? (int32_t)t->dev->index : 0,
                            .ndim = (int32_t)t->ndim,
                            .dtype = dtype,
                            .shape = t->shape,
                            .strides = t->contiguous ? NULL : t->strides};
  a->of = t;
  atomic_init(&a->references, 1);
  heddle__array **link = bucket(a);
  pthread_mutex_lock(&lock);
  a->next = *link;
  *link = a;
  pthread_mutex_unlock(&lock);
  return a;
}

heddle__array *heddle__array_retain(heddle__array *a) {
  atomic_fetch_add_explicit(&a->references, 1, memory_order_relaxed);
  return a;
}

void heddle__array_release(heddle__array *a) {
  if (a == NULL || atomic_fetch_sub_explicit(&a->references, 1, memory_order_acq_rel) != 1) return;
  heddle__array **link = bucket(a);
  pthread_mutex_lock(&lock);
  while (*link != a) link = &(*link)->next;
  *link = a->next;
  pthread_mutex_unlock(&lock);
  heddle_tensor_release(a->of);
  heddle__free(a);
}

heddle__array *heddle__array_find(const void *tensor) {
  pthread_mutex_lock(&lock);
  heddle__array *a = *bucket(tensor);
  while (a != NULL && (const void *)a != tensor) a = a->next;
  if (a != NULL) heddle__array_retain(a); /* each reference to it holds it */
  pthread_mutex_unlock(&lock);
  return a;
}

/* ---- arguments */

static heddle_tensor *refuse(int32_t i, const char *why) {
  char words[700];
  snprintf(words, sizeof words, "argument %d: %.600s", (int)i, why);
  heddle__tvm_say(NULL, words);
  return NULL;
}

static bool on_host(int32_t type) {
  enum { CUDA_HOST = 3, ROCM_HOST = 11 };
  return type == HEDDLE_DEVICE_CPU || type == CUDA_HOST || type == ROCM_HOST;
}

/* Handles of buffers are those of the device that the thread runs on, or of the API's own. */
static heddle_device *device_of(const heddle__dltensor *t) {
  const heddle_device *here = heddle__lane_device();
  if (here != NULL && heddle__is_type(here->desc.type, t->device_type) && (int32_t)here->index == t->device_id)
    return (heddle_device *)(uintptr_t)here;
  return heddle__api_device(t->device_type, t->device_id);
}

static heddle_tensor *view(const heddle__dltensor *t, int32_t i) {
  heddle_dtype dtype = t->dtype;
  heddle_error err = {0};
  heddle_tensor *out = NULL;
  heddle_device *dev = NULL;
  if (!on_host(t->device_type) && (dev = device_of(t)) == NULL) return NULL;
  if (t->ndim < 0) return refuse(i, "a tensor with a negative number of dimensions");
  if (dtype.code == HEDDLE_DTYPE_UINT && dtype.bits == 1) dtype = (heddle_dtype){HEDDLE_DTYPE_BOOL, 8, dtype.lanes};
  char *data = t->data != NULL && dev == NULL ? (char *)t->data + t->byte_offset : t->data;
  if (heddle_tensor_wrap(data, dtype, t->shape, (uint32_t)t->ndim, t->strides, NULL, NULL, &out, &err) != HEDDLE_OK)
    return refuse(i, err.text);
  if (dev == NULL) return out;
  if (t->byte_offset != 0 || !out->contiguous) {
    heddle_tensor_release(out);
    return refuse(i, "a tensor on a device must be compact, and begin where its buffer does");
  }
  out->dev = dev;
  out->buffer = (heddle_pbuffer *)(void *)data;
  out->data = NULL;
  return out;
}

heddle_tensor *heddle__argument_tensor(const heddle__word *args, const int32_t *codes, int32_t i) {
  if (codes[i] != PACKED_TENSOR && codes[i] != PACKED_NDARRAY) {
    char words[80];
    snprintf(words, sizeof words, "expected an array, and it is a value of code %d", (int)codes[i]);
    return refuse(i, words);
  }
  if (args[i].p == NULL) return refuse(i, "expected an array, and it is NULL");
  heddle__array *a = heddle__array_find(args[i].p);
  if (a == NULL) return view(args[i].p, i);
  heddle_tensor *t = heddle_tensor_retain(a->of);
  heddle__array_release(a);
  return t;
}
