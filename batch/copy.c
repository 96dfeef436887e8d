/* batch/copy.c: boxes of elements from one array in host memory to another, and numbers as elements. */
#include <math.h>
#include <string.h>

#include "batch/batcher.h"
#include "core/tensor.h"
#include "plugins/common/float16.h"

void heddle__batch_copy(char *dst, const int64_t *dst_strides, const char *src, const int64_t *src_strides,
                        const int64_t *shape, uint32_t ndim, size_t element) {
  size_t block = element; /* bytes that lie together on both sides */
  int64_t at[HEDDLE__BATCH_DIMS] = {0};
  for (uint32_t d = 0; d < ndim; d++)
    if (shape[d] == 0) return;
  while (ndim > 0 && (shape[ndim - 1] == 1 ||
                      (dst_strides[ndim - 1] == (int64_t)block && src_strides[ndim - 1] == (int64_t)block))) {
    ndim--;
    block *= (size_t)shape[ndim];
  }
  for (;;) {
    memcpy(dst, src, block);
    uint32_t d = ndim;
    while (d > 0) {
      d--;
      dst += dst_strides[d], src += src_strides[d];
      if (++at[d] < shape[d]) break;
      dst -= dst_strides[d] * shape[d], src -= src_strides[d] * shape[d];
      at[d] = 0;
      if (d == 0) return;
    }
    if (ndim == 0) return;
  }
}

/* Of a whole number; nothing is undefined where it does not fit. */
static int64_t whole(double x) {
  if (isnan(x)) return 0;
  if (x >= 9223372036854775808.0) return INT64_MAX;
  return x <= -9223372036854775808.0 ? INT64_MIN : (int64_t)x;
}

static bool element_of(heddle_dtype dtype, double value, char out[16]) {
  const int64_t i = whole(value);
  const uint64_t u = value >= 9223372036854775808.0 && value < 18446744073709551616.0 ? (uint64_t)value : (uint64_t)i;
  const float f = (float)value;
  memset(out, 0, 16);
  if (dtype.lanes != 1) return false;
  switch (dtype.code) {
  case HEDDLE_DTYPE_INT:
  case HEDDLE_DTYPE_UINT:
    if (dtype.bits != 8 && dtype.bits != 16 && dtype.bits != 32 && dtype.bits != 64) return false;
    memcpy(out, &u, dtype.bits / 8); /* little-endian, as all systems that Heddle is for */
    return true;
  case HEDDLE_DTYPE_BOOL: out[0] = value != 0; return true;
  case HEDDLE_DTYPE_FLOAT:
    if (dtype.bits == 64) memcpy(out, &value, 8);
    else if (dtype.bits == 32) memcpy(out, &f, 4);
    else if (dtype.bits == 16) memcpy(out, &(uint16_t){float16_from_double(value)}, 2);
    else return false;
    return true;
  case HEDDLE_DTYPE_BFLOAT:
    if (dtype.bits != 16) return false;
    memcpy(out, &(uint16_t){bfloat16_from_float(f)}, 2);
    return true;
  default: return false;
  }
}

bool heddle__batch_fill(void *dst, uint64_t n, heddle_dtype dtype, double value) {
  char one[16];
  char *to = dst;
  if (!element_of(dtype, value, one)) return false;
  const size_t bytes = heddle__dtype_bytes(dtype);
  for (uint64_t i = 0; i < n; i++) memcpy(to + i * bytes, one, bytes);
  return true;
}
