/* core/tensor_copy.c: moves the elements of tensors: host and device, strided and not.
 * On a device each call uses a stream of its own and is done with it on return. */
#include <string.h>

#include "core/alloc.h"
#include "core/context.h"
#include "core/device.h"
#include "core/error.h"
#include "core/failure.h"
#include "core/tensor.h"
#include "core/trail.h"

/* How long a copy may take before the device is taken to hang. */
#define COPY_TIMEOUT_NS UINT64_C(60000000000)

/* ---------------------------------------------------------------- host, with strides */

/* Copies dimension d and those inside it, a block of bytes at a time; steps in bytes. */
static void walk(char *dst, const int64_t *dst_step, const char *src, const int64_t *src_step, const int64_t *shape,
                 uint32_t ndim, uint32_t d, size_t block) {
  if (d == ndim) {
    memcpy(dst, src, block);
    return;
  }
  for (int64_t i = 0; i < shape[d]; i++)
    walk(dst + i * dst_step[d], dst_step, src + i * src_step[d], src_step, shape, ndim, d + 1, block);
}

/* dst and src are host memory of tensors like t; NULL strides: row-major. */
static void copy_strided(const heddle_tensor *t, void *dst, const int64_t *dst_strides, const void *src,
                         const int64_t *src_strides) {
  int64_t plain[HEDDLE__TENSOR_MAX_NDIM], to[HEDDLE__TENSOR_MAX_NDIM], from[HEDDLE__TENSOR_MAX_NDIM];
  int64_t element = heddle__dtype_bytes(t->dtype), step = element;
  for (uint32_t i = t->ndim; i-- > 0;) {
    plain[i] = step;
    if (t->shape[i] > 1) step *= t->shape[i];
  }
  for (uint32_t i = 0; i < t->ndim; i++) { /* a dimension of 1 is not stepped, and its stride may be anything */
    bool stepped = t->shape[i] > 1;
    to[i] = dst_strides == NULL ? plain[i] : stepped ? dst_strides[i] * element : 0;
    from[i] = src_strides == NULL ? plain[i] : stepped ? src_strides[i] * element : 0;
  }
  uint32_t ndim = t->ndim;
  int64_t block = element; /* the inner dimensions that lie without gaps on both sides go as one */
  while (ndim > 0 && (t->shape[ndim - 1] == 1 || (to[ndim - 1] == block && from[ndim - 1] == block)))
    block *= t->shape[--ndim];
  if (t->count > 0) walk(dst, to, src, from, t->shape, ndim, 0, (size_t)block);
}

/* ---------------------------------------------------------------- devices */

/* What a temporary stream is asked to do. */
typedef struct errand {
  heddle_pbuffer *dst; /* with pointer: write; with src: copy; else: zeroes */
  heddle_pbuffer *src; /* without dst: read into target */
  const void *pointer;
  void *target;
  uint64_t bytes;
  uint64_t rows, dst_step, src_step;   /* rows not 0: that many copies of dst, src and bytes, so far apart */
  struct heddle__uses *reads, *writes; /* of the tensors: runs that were submitted come first */
} errand;

static heddle_status enqueue(heddle_device *dev, heddle_pstream *stream, const errand *e, heddle_error *err) {
  const heddle_copy_table *copy = &dev->t->copy;
  if (e->target != NULL) return copy->read(stream, e->target, e->src, 0, e->bytes, err);
  if (e->pointer != NULL) return copy->write(stream, e->dst, 0, e->pointer, e->bytes, err);
  heddle_status s = HEDDLE_OK;
  for (uint64_t i = 0; i < e->rows && s == HEDDLE_OK; i++)
    s = copy->d2d(stream, e->dst, i * e->dst_step, e->src, i * e->src_step, e->bytes, err);
  if (e->rows > 0) return s;
  if (e->src != NULL) return copy->d2d(stream, e->dst, 0, e->src, 0, e->bytes, err);
  return copy->fill(stream, e->dst, 0, heddle__round_up(e->bytes, 4), 0, err);
}

static heddle_status run_errand(heddle_device *dev, const errand *e, heddle_error *err) {
  if (e->bytes == 0) return HEDDLE_OK;
  heddle_error words = {0}; /* the first fault of a device is kept whether or not the caller asked for words */
  heddle_pstream *stream = NULL;
  heddle_status s = heddle__check_fork(err);
  if (s == HEDDLE_OK) s = heddle__device_check(dev, err);
  if (s != HEDDLE_OK) return s;
  s = dev->t->stream.create(dev->handle, HEDDLE_STREAM_COPY, 0, &stream, &words);
  if (s == HEDDLE_OK) s = heddle__uses_wait(e->reads, NULL, false, dev, stream, &words);
  if (s == HEDDLE_OK) s = heddle__uses_wait(e->writes, NULL, true, dev, stream, &words);
  if (s == HEDDLE_OK) s = enqueue(dev, stream, e, &words);
  bool quiet; /* where not, idle has failed, and the plugin keeps what it needs */
  if (s == HEDDLE_OK) s = heddle__device_settle(dev, stream, COPY_TIMEOUT_NS, &quiet, &words);
  if (stream != NULL) dev->t->stream.close(stream);
  if (s == HEDDLE_OK) heddle__uses_written(e->writes);
  if (s == HEDDLE_OK) return HEDDLE_OK;
  if (s == HEDDLE_EDEVICE) heddle__device_fault(dev, words.api_code, words.text);
  if (err != NULL) *err = words;
  return heddle__prefix_on(dev->name, err, s, "%s: copy of %llu bytes of a tensor: ", dev->name,
                           (unsigned long long)e->bytes);
}

heddle_status heddle__tensor_zero(heddle_tensor *t, heddle_error *err) {
  return run_errand(t->dev, &(errand){.dst = t->buffer, .bytes = t->bytes, .writes = t->uses}, err);
}

heddle_status heddle__tensor_read(const heddle_tensor *t, void *dst, heddle_error *err) {
  if (t->dev != NULL) {
    const errand e = {.src = t->buffer, .target = dst, .bytes = t->bytes, .reads = t->uses};
    return run_errand(t->dev, &e, err);
  }
  if (!t->contiguous) copy_strided(t, dst, NULL, t->data, t->strides);
  else if (t->bytes > 0) memcpy(dst, t->data, (size_t)t->bytes);
  return HEDDLE_OK;
}

/* Whether an element may be written twice: a stride of 0 along more than one element. */
static bool repeats(const heddle_tensor *t) {
  for (uint32_t i = 0; i < t->ndim; i++)
    if (t->shape[i] > 1 && t->strides[i] == 0) return true;
  return false;
}

static heddle_status check_writable(const heddle_tensor *t, heddle_error *err) {
  if (t->read_only) return heddle__fail(err, HEDDLE_EINVAL, "the tensor to copy to is read-only");
  if (t->count > 0 && repeats(t))
    return heddle__fail(err, HEDDLE_EINVAL, "the tensor to copy to has stride 0, so its elements share memory");
  return HEDDLE_OK;
}

heddle_status heddle__tensor_write(heddle_tensor *t, const void *src, heddle_error *err) {
  heddle_status s = check_writable(t, err);
  if (s != HEDDLE_OK) return s;
  if (t->dev != NULL) {
    const errand e = {.dst = t->buffer, .pointer = src, .bytes = t->bytes, .writes = t->uses};
    return run_errand(t->dev, &e, err);
  }
  if (!t->contiguous) copy_strided(t, t->data, t->strides, src, NULL);
  else if (t->bytes > 0) memcpy(t->data, src, (size_t)t->bytes);
  return HEDDLE_OK;
}

/* ---------------------------------------------------------------- any to any */

/* First and one past the last byte of a host tensor's elements. */
static void span(const heddle_tensor *t, uintptr_t *first, uintptr_t *end) {
  *first = (uintptr_t)t->data;
  *end = *first + heddle__dtype_bytes(t->dtype);
  for (uint32_t i = 0; i < t->ndim; i++) {
    int64_t reach = t->shape[i] > 1 ? (t->shape[i] - 1) * t->strides[i] * (int64_t)heddle__dtype_bytes(t->dtype) : 0;
    if (reach < 0) *first -= (uintptr_t)-reach;
    else *end += (uintptr_t)reach;
  }
}

static bool overlap(const heddle_tensor *a, const heddle_tensor *b) {
  uintptr_t a0, a1, b0, b1;
  span(a, &a0, &a1);
  span(b, &b0, &b1);
  return a0 < b1 && b0 < a1;
}

heddle_status heddle__tensor_cut(heddle_tensor *dst, const heddle_tensor *src, uint32_t axis, heddle_error *err) {
  uint64_t rows = 1, to = heddle__dtype_bytes(src->dtype), from;
  if (dst->bytes == 0) return HEDDLE_OK;
  for (uint32_t d = 0; d < axis; d++) rows *= (uint64_t)src->shape[d];
  for (uint32_t d = axis + 1; d < src->ndim; d++) to *= (uint64_t)src->shape[d];
  from = to * (uint64_t)src->shape[axis];
  to *= (uint64_t)dst->shape[axis];
  if (dst->dev != NULL) {
    const errand e = {.dst = dst->buffer,
                      .src = src->buffer,
                      .bytes = to,
                      .rows = rows,
                      .dst_step = to,
                      .src_step = from,
                      .reads = src->uses,
                      .writes = dst->uses};
    return run_errand(dst->dev, &e, err);
  }
  for (uint64_t i = 0; i < rows; i++)
    memcpy((char *)dst->data + i * to, (const char *)src->data + i * from, (size_t)to);
  return HEDDLE_OK;
}

static heddle_status check_alike(const heddle_tensor *dst, const heddle_tensor *src, heddle_error *err) {
  char a[128], b[128];
  if (!heddle__dtype_equal(dst->dtype, src->dtype)) {
    heddle__dtype_name(dst->dtype, a);
    heddle__dtype_name(src->dtype, b);
    return heddle__fail(err, HEDDLE_EINVAL, "copy of %s into a tensor of %s: the dtypes must be equal", b, a);
  }
  if (dst->ndim != src->ndim || memcmp(dst->shape, src->shape, dst->ndim * sizeof *dst->shape) != 0) {
    heddle__shape_name(dst->shape, dst->ndim, a, sizeof a);
    heddle__shape_name(src->shape, src->ndim, b, sizeof b);
    return heddle__fail(err, HEDDLE_EINVAL, "copy of shape %s into shape %s: they must be equal", b, a);
  }
  return HEDDLE_OK;
}

/* Through row-major host memory. */
static heddle_status copy_through(heddle_tensor *dst, const heddle_tensor *src, heddle_error *err) {
  void *between = src->bytes <= SIZE_MAX ? heddle__alloc_aligned((size_t)src->bytes, 64) : NULL;
  if (between == NULL) return heddle__no_memory(err, "a copy between two tensors");
  heddle_status s = heddle__tensor_read(src, between, err);
  if (s == HEDDLE_OK) s = heddle__tensor_write(dst, between, err);
  heddle__free(between);
  return s;
}

heddle_status heddle_tensor_copy(heddle_tensor *dst, const heddle_tensor *src, heddle_error *err) {
  heddle_status s = check_alike(dst, src, err);
  if (s == HEDDLE_OK) s = check_writable(dst, err);
  if (s != HEDDLE_OK || dst == src || src->count == 0 || (dst->dev != NULL && dst->buffer == src->buffer)) return s;
  if (dst->dev != NULL && dst->dev == src->dev) {
    const errand e = {
        .dst = dst->buffer, .src = src->buffer, .bytes = dst->bytes, .reads = src->uses, .writes = dst->uses};
    return run_errand(dst->dev, &e, err);
  }
  if (src->dev != NULL && dst->dev == NULL && dst->contiguous) return heddle__tensor_read(src, dst->data, err);
  if (src->dev == NULL && dst->dev != NULL && src->contiguous) return heddle__tensor_write(dst, src->data, err);
  if (src->dev != NULL || dst->dev != NULL) return copy_through(dst, src, err);
  if (dst->contiguous && src->contiguous) {
    memmove(dst->data, src->data, (size_t)src->bytes);
    return HEDDLE_OK;
  }
  if (overlap(dst, src)) return copy_through(dst, src, err);
  copy_strided(dst, dst->data, dst->strides, src->data, src->strides);
  return HEDDLE_OK;
}
