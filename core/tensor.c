/* core/tensor.c: tensors: made, wrapped, counted, asked about; and the sizes of dtypes. Names are in names.c.
 * Moving their bytes is in tensor_copy.c. */
#include "core/tensor.h"

#include <string.h>

#include "core/alloc.h"
#include "core/device.h"
#include "core/error.h"
#include "core/failure.h"
#include "core/trail.h"

#define HOST_ALIGN 256

uint32_t heddle__dtype_bytes(heddle_dtype dtype) {
  return ((uint32_t)dtype.bits * dtype.lanes + 7) / 8;
}

heddle_status heddle__shape_bytes(heddle_dtype dtype, uint32_t ndim, const int64_t *shape, uint64_t *count,
                                  uint64_t *bytes, heddle_error *err) {
  uint32_t element = heddle__dtype_bytes(dtype);
  if (element == 0) {
    char name[32];
    heddle__dtype_name(dtype, name);
    return heddle__fail(err, HEDDLE_EINVAL, "%s is a type without bytes; give one such as float32", name);
  }
  if (ndim > HEDDLE__TENSOR_MAX_NDIM)
    return heddle__fail(err, HEDDLE_EINVAL, "%u dimensions, at most %d are possible", ndim, HEDDLE__TENSOR_MAX_NDIM);
  uint64_t total = element;
  bool empty = false, overflow = false;
  for (uint32_t i = 0; i < ndim; i++) {
    if (shape[i] < 0)
      return heddle__fail(err, HEDDLE_EINVAL, "dimension %u is %lld, expected 0 or more", i, (long long)shape[i]);
    if (shape[i] == 0) empty = true;
    else overflow = overflow || !heddle__mul(total, (uint64_t)shape[i], &total) || total > INT64_MAX;
  }
  if (overflow) {
    char text[96];
    heddle__shape_name(shape, ndim, text, sizeof text);
    return heddle__fail(err, HEDDLE_ELIMIT, "shape %s with %u bytes an element is more than 2^63 bytes", text, element);
  }
  if (count != NULL) *count = empty ? 0 : total / element;
  *bytes = empty ? 0 : total;
  return HEDDLE_OK;
}

/* ---------------------------------------------------------------- construction */

static void row_major(const int64_t *shape, uint32_t ndim, int64_t *strides) {
  int64_t step = 1;
  for (uint32_t i = ndim; i-- > 0;) {
    strides[i] = step;
    if (shape[i] > 1) step *= shape[i]; /* cannot overflow: shape_bytes was asked */
  }
}

static bool is_row_major(const heddle_tensor *t, const int64_t *strides) {
  if (t->count == 0) return true;
  int64_t step = 1;
  for (uint32_t i = t->ndim; i-- > 0;) {
    if (t->shape[i] == 1) continue;
    if (strides[i] != step) return false;
    step *= t->shape[i];
  }
  return true;
}

/* A tensor without memory, or NULL with the reason in *s. */
static heddle_tensor *make(heddle_dtype dtype, const int64_t *shape, uint32_t ndim, heddle_status *s,
                           heddle_error *err) {
  uint64_t count = 0, bytes = 0;
  if (ndim > 0 && shape == NULL) {
    *s = heddle__fail(err, HEDDLE_EINVAL, "shape is NULL with %u dimensions", ndim);
    return NULL;
  }
  *s = heddle__shape_bytes(dtype, ndim, shape, &count, &bytes, err);
  if (*s != HEDDLE_OK) return NULL;
  heddle_tensor *t = heddle__alloc(1, sizeof *t);
  if (t == NULL) {
    *s = heddle__no_memory(err, "a tensor");
    return NULL;
  }
  atomic_init(&t->references, 1);
  t->dtype = dtype;
  t->ndim = ndim;
  for (uint32_t i = 0; i < ndim; i++) t->shape[i] = shape[i];
  row_major(t->shape, ndim, t->strides);
  t->count = count;
  t->bytes = bytes;
  t->contiguous = true;
  return t;
}

heddle_status heddle__tensor_reshape(heddle_tensor *t, const int64_t *shape, heddle_error *err) {
  uint64_t count = 0, bytes = 0;
  heddle_status s = heddle__shape_bytes(t->dtype, t->ndim, shape, &count, &bytes, err);
  if (s != HEDDLE_OK) return s;
  memmove(t->shape, shape, t->ndim * sizeof *shape);
  row_major(t->shape, t->ndim, t->strides);
  t->count = count;
  t->bytes = bytes;
  return HEDDLE_OK;
}

/* Memory of kind DEVICE, zeroed. On failure the device is as it was. */
static heddle_status make_on_device(heddle_tensor *t, heddle_device *dev, heddle_error *err) {
  uint64_t room = heddle__round_up(t->bytes, 4); /* fill counts in words */
  heddle_status s = heddle__device_open(dev, err);
  if (s != HEDDLE_OK) return s;
  heddle_pmemory_desc desc = {
      .struct_size = sizeof desc, .kind = HEDDLE_MEMORY_DEVICE, .bytes = room, .align = dev->desc.alignment};
  heddle_pbuffer *buffer = NULL;
  s = dev->t->memory.alloc(dev->handle, &desc, &buffer, err);
  if (s != HEDDLE_OK) {
    s = heddle__prefix_on(dev->name, err, s, "%s: %llu bytes for a tensor: ", dev->name, (unsigned long long)room);
    heddle__device_close(dev);
    return s;
  }
  t->kind = HEDDLE__TENSOR_DEVICE;
  t->buffer = buffer;
  t->dev = dev;
  heddle_context_retain(dev->ctx);
  s = heddle__uses_make(&t->uses, err);
  return s == HEDDLE_OK ? heddle__tensor_zero(t, err) : s;
}

heddle_status heddle_tensor_create(heddle_device *dev, heddle_dtype dtype, const int64_t *shape, uint32_t ndim,
                                   heddle_tensor **out, heddle_error *err) {
  heddle_status s;
  *out = NULL;
  heddle_tensor *t = make(dtype, shape, ndim, &s, err);
  if (t == NULL) return s;
  t->kind = HEDDLE__TENSOR_OWNED;
  if (dev != NULL && !heddle__device_inline(dev)) {
    s = make_on_device(t, dev, err);
  } else if (t->bytes > 0) {
    t->data = t->bytes <= SIZE_MAX ? heddle__alloc_aligned((size_t)t->bytes, HOST_ALIGN) : NULL;
    if (t->data != NULL) memset(t->data, 0, (size_t)t->bytes);
    else s = heddle__no_memory(err, "the elements of a tensor");
  }
  if (s != HEDDLE_OK) heddle_tensor_release(t);
  else *out = t;
  return s;
}

/* The bytes between the lowest and the highest element must fit the address space: the copies add them up. */
static heddle_status check_reach(const heddle_tensor *t, heddle_error *err) {
  uint64_t reach = heddle__dtype_bytes(t->dtype);
  for (uint32_t i = 0; i < t->ndim && t->count > 0; i++) {
    uint64_t stride = t->strides[i] < 0 ? 0 - (uint64_t)t->strides[i] : (uint64_t)t->strides[i], part;
    if (!heddle__mul(stride, heddle__dtype_bytes(t->dtype), &part) ||
        !heddle__mul(part, (uint64_t)t->shape[i] - 1, &part) || !heddle__add(reach, part, &reach) || reach > INT64_MAX)
      return heddle__fail(err, HEDDLE_ELIMIT, "stride %lld of dimension %u reaches past the address space",
                          (long long)t->strides[i], i);
  }
  return HEDDLE_OK;
}

static heddle_status wrap(void *data, heddle_dtype dtype, const int64_t *shape, uint32_t ndim, const int64_t *strides,
                          bool read_only, heddle_release_fn release, void *user, heddle_tensor **out,
                          heddle_error *err) {
  heddle_status s;
  *out = NULL;
  heddle_tensor *t = make(dtype, shape, ndim, &s, err);
  if (t == NULL) return s;
  if (strides != NULL && ndim > 0) {
    memcpy(t->strides, strides, ndim * sizeof *strides);
    s = check_reach(t, err);
    t->contiguous = is_row_major(t, t->strides);
  }
  if (s == HEDDLE_OK && data == NULL && t->count > 0)
    s = heddle__fail(err, HEDDLE_EINVAL, "data is NULL, with %llu elements", (unsigned long long)t->count);
  if (s != HEDDLE_OK) {
    heddle__free(t);
    return s;
  }
  t->kind = HEDDLE__TENSOR_WRAPPED;
  t->data = data;
  t->read_only = read_only;
  t->release = release;
  t->user = user;
  *out = t;
  return HEDDLE_OK;
}

heddle_status heddle_tensor_wrap(void *data, heddle_dtype dtype, const int64_t *shape, uint32_t ndim,
                                 const int64_t *strides, heddle_release_fn release, void *user, heddle_tensor **out,
                                 heddle_error *err) {
  return wrap(data, dtype, shape, ndim, strides, false, release, user, out, err);
}

heddle_status heddle__tensor_wrap_const(const void *data, heddle_dtype dtype, const int64_t *shape, uint32_t ndim,
                                        const int64_t *strides, heddle_release_fn release, void *user,
                                        heddle_tensor **out, heddle_error *err) {
  union {
    const void *given;
    void *kept;
  } bytes = {data}; /* read_only is what keeps the promise */
  return wrap(bytes.kept, dtype, shape, ndim, strides, true, release, user, out, err);
}

/* A buffer over memory of others on dev. On failure the device is as it was. */
static heddle_status adopt(heddle_tensor *t, const heddle__adopted *a, heddle_error *err) {
  heddle_device *dev = a->dev;
  if (dev->t->memory.adopt == NULL || heddle__device_inline(dev))
    return heddle__fail_on(dev->name, err, HEDDLE_EUNSUPPORTED,
                           "memory of others is not taken; copy into a tensor of %s", dev->name);
  if (t->bytes == 0) return make_on_device(t, dev, err);
  heddle_status s = heddle__device_open(dev, err);
  if (s != HEDDLE_OK) return s;
  s = dev->t->memory.adopt(dev->handle, a->handle, a->offset, t->bytes, &t->buffer, err);
  if (s != HEDDLE_OK) {
    heddle__device_close(dev);
    return s;
  }
  s = heddle__uses_make(&t->uses, err);
  if (s != HEDDLE_OK) {
    dev->t->memory.free(dev->handle, t->buffer);
    heddle__device_close(dev);
    return s;
  }
  t->kind = HEDDLE__TENSOR_DEVICE;
  t->dev = dev;
  heddle_context_retain(dev->ctx);
  return HEDDLE_OK;
}

heddle_status heddle__tensor_adopt(const heddle__adopted *a, heddle_dtype dtype, const int64_t *shape, uint32_t ndim,
                                   const int64_t *strides, heddle_release_fn release, void *user, heddle_tensor **out,
                                   heddle_error *err) {
  heddle_status s;
  heddle_tensor *t = make(dtype, shape, ndim, &s, err);
  if (t == NULL) return s;
  if (strides != NULL && !is_row_major(t, strides)) {
    s = heddle__fail_on(a->dev->name, err, HEDDLE_EUNSUPPORTED,
                        "the tensor on %s is not contiguous, which it must be there", a->dev->name);
  } else if (a->shared != NULL && t->bytes <= a->shared->bytes) {
    t->kind = HEDDLE__TENSOR_SHARED;
    t->dev = a->dev;
    t->buffer = a->shared->buffer;
    t->uses = heddle__uses_retain(a->shared->uses);
  } else {
    s = adopt(t, a, err);
  }
  if (s != HEDDLE_OK) {
    heddle__free(t);
    return s;
  }
  t->read_only = a->read_only;
  t->release = release;
  t->user = user;
  *out = t;
  return HEDDLE_OK;
}

heddle_tensor *heddle_tensor_retain(heddle_tensor *t) {
  if (t != NULL) atomic_fetch_add_explicit(&t->references, 1, memory_order_relaxed);
  return t;
}

void heddle_tensor_release(heddle_tensor *t) {
  if (t == NULL || atomic_fetch_sub_explicit(&t->references, 1, memory_order_acq_rel) != 1) return;
  heddle__uses_release(t->uses);
  if (t->kind == HEDDLE__TENSOR_DEVICE) {
    heddle_context *ctx = t->dev->ctx;
    t->dev->t->memory.free(t->dev->handle, t->buffer);
    heddle__device_close(t->dev);
    heddle_context_release(ctx);
  } else if (t->kind == HEDDLE__TENSOR_OWNED) {
    heddle__free(t->data);
  }
  if (t->release != NULL) t->release(t->user);
  heddle__free(t);
}

/* ---------------------------------------------------------------- facts */

void *heddle_tensor_data(const heddle_tensor *t) {
  return t->data;
}

heddle_dtype heddle_tensor_dtype(const heddle_tensor *t) {
  return t->dtype;
}

uint32_t heddle_tensor_ndim(const heddle_tensor *t) {
  return t->ndim;
}

const int64_t *heddle_tensor_shape(const heddle_tensor *t) {
  return t->shape;
}

const int64_t *heddle_tensor_strides(const heddle_tensor *t) {
  return t->strides;
}

uint64_t heddle_tensor_bytes(const heddle_tensor *t) {
  return t->bytes;
}

heddle_device *heddle_tensor_device(const heddle_tensor *t) {
  return t->dev;
}

int heddle_tensor_is_contiguous(const heddle_tensor *t) {
  return t->contiguous;
}
