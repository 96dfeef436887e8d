/* core/tensor.h: what a tensor is inside the library, for the rooms above core, and the sizes and names of dtypes.
 * Members are set when the tensor is made and never change, but for heddle__tensor_reshape; only the bytes do. */
#ifndef HEDDLE_CORE_TENSOR_H
#define HEDDLE_CORE_TENSOR_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>

#include "heddle/tensor.h"

#define HEDDLE__TENSOR_MAX_NDIM 32

/* Where the memory of a tensor came from, which says how it is given back. */
typedef enum heddle__tensor_kind {
  HEDDLE__TENSOR_OWNED,   /* a block of ours, of heddle__alloc_aligned */
  HEDDLE__TENSOR_WRAPPED, /* host memory of others; release(user) gives it back */
  HEDDLE__TENSOR_DEVICE,  /* buffer, of memory.alloc or adopt on dev, which this tensor opened; then release(user) */
  HEDDLE__TENSOR_SHARED   /* buffer and dev of another tensor; release(user) gives that back */
} heddle__tensor_kind;

struct heddle_tensor {
  atomic_uint references;
  heddle__tensor_kind kind;
  heddle_device *dev;        /* of a device that is not inline; NULL: host memory. The tensor, or what it shares, holds
                             dev->ctx */
  heddle_pbuffer *buffer;    /* with dev: the whole buffer, elements from offset 0; else NULL */
  struct heddle__uses *uses; /* with dev: who used the buffer last (core/trail.h); else, or in a build without, NULL */
  void *data;                /* element [0, ..., 0] in host memory; NULL with dev, and where there are no elements */
  heddle_dtype dtype;
  uint32_t ndim;
  int64_t shape[HEDDLE__TENSOR_MAX_NDIM];
  int64_t strides[HEDDLE__TENSOR_MAX_NDIM]; /* in elements; may be 0 or negative; row-major with dev */
  uint64_t count;                           /* elements */
  uint64_t bytes;                           /* of the elements, without gaps */
  bool contiguous;                          /* row-major without gaps */
  bool read_only;                           /* a copy into it is refused */
  heddle_release_fn release;                /* may be NULL */
  void *user;
};

/* Bytes of one element: bits times lanes, rounded up (a bool or an int4 takes one byte). 0 for a dtype that has no
 * bytes: bits or lanes 0. */
uint32_t heddle__dtype_bytes(heddle_dtype dtype);

static inline bool heddle__dtype_equal(heddle_dtype a, heddle_dtype b) {
  return a.code == b.code && a.bits == b.bits && a.lanes == b.lanes;
}

/* The name of a dtype, for people and for graph JSON: "float32", "bool", "int8x4", "dtype(9,8,1)". */
void heddle__dtype_name(heddle_dtype dtype, char out[32]);

/* "[1, 3, 224, 224]" into out, cut with "..." where it is too long. size at least 16. */
void heddle__shape_name(const int64_t *shape, uint32_t ndim, char *out, size_t size);

/* Elements and bytes of a shape, checked: HEDDLE_EINVAL for a negative dimension, more than 32, a dtype without bytes;
 * HEDDLE_ELIMIT where the bytes do not fit int64_t. A dimension of 0 makes both 0, but the others must still multiply
 * without overflow. count may be NULL. */
heddle_status heddle__shape_bytes(heddle_dtype dtype, uint32_t ndim, const int64_t *shape, uint64_t *count,
                                  uint64_t *bytes, heddle_error *err);

/* Gives a row-major tensor of which nobody else knows, and whose memory has room for it, another shape of the same rank. */
heddle_status heddle__tensor_reshape(heddle_tensor *t, const int64_t *shape, heddle_error *err);

/* heddle_tensor_wrap for memory that must not be written. */
heddle_status heddle__tensor_wrap_const(const void *data, heddle_dtype dtype, const int64_t *shape, uint32_t ndim,
                                        const int64_t *strides, heddle_release_fn release, void *user,
                                        heddle_tensor **out, heddle_error *err);

/* Memory of a device that others made, row-major (strides as of heddle_tensor_wrap), not copied: the buffer of
 * `shared`, a tensor of dev's, where that has the bytes, else `offset` bytes into what the vendor's handle names. release gives
 * the memory back; on failure it is not called. */
typedef struct heddle__adopted {
  heddle_device *dev;
  const heddle_tensor *shared;
  uint64_t handle;
  uint64_t offset;
  bool read_only;
} heddle__adopted;
heddle_status heddle__tensor_adopt(const heddle__adopted *a, heddle_dtype dtype, const int64_t *shape, uint32_t ndim,
                                   const int64_t *strides, heddle_release_fn release, void *user, heddle_tensor **out,
                                   heddle_error *err);

/* Sets the bytes of a tensor on a device (dev not NULL) to 0. Blocks. */
heddle_status heddle__tensor_zero(heddle_tensor *t, heddle_error *err);

/* Copies the elements to row-major host memory of t->bytes bytes, and back. Blocks. */
heddle_status heddle__tensor_read(const heddle_tensor *t, void *dst, heddle_error *err);
heddle_status heddle__tensor_write(heddle_tensor *t, const void *src, heddle_error *err);

/* Copies the first elements along a dimension: dst is shorter than src there, and alike otherwise. Both are row-major,
 * and in memory of one device, or of the host. Blocks. */
heddle_status heddle__tensor_cut(heddle_tensor *dst, const heddle_tensor *src, uint32_t axis, heddle_error *err);

/* Reads one .npy from a stream that can be positioned; name stands for the file in errors. */
heddle_status heddle__npy_read(FILE *file, const char *name, heddle_tensor **out, heddle_error *err);

#endif
