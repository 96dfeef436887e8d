/* The k first of n elements in order, for TopK of any type: elements become keys that are ordered as unsigned numbers,
 * each with its index behind it, so that no two are equal and of equal elements the one with the lower index is first.
 * NaN is greater than all numbers and equal to itself; -0 is 0. */
#ifndef HEDDLE_PLUGINS_COMMON_REF_RANK_H
#define HEDDLE_PLUGINS_COMMON_REF_RANK_H

#include "plugins/common/ref/ref_op.h"

/* Writes the keys of elements [first, first + n): below 2^32 unless the rank is wide. */
typedef void (*ref_rank_keys)(const void *ctx, int64_t first, int64_t n, uint64_t *out);

typedef struct ref_rank {
  int64_t n, k;
  bool wide;    /* keys have 64 bits */
  bool largest; /* the greatest first, else the least */
  ref_rank_keys keys;
  const void *ctx;
} ref_rank;

static inline uint32_t ref_rank_float(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  const uint32_t key = bits ^ (((uint32_t)0 - (bits >> 31)) | UINT32_C(1) << 31),
                 number = x == 0 ? UINT32_C(1) << 31 : key;
  return x != x ? UINT32_MAX : number;
}

static inline uint64_t ref_rank_double(double x) {
  uint64_t bits;
  memcpy(&bits, &x, sizeof bits);
  const uint64_t key = bits ^ (((uint64_t)0 - (bits >> 63)) | UINT64_C(1) << 63),
                 number = x == 0 ? UINT64_C(1) << 63 : key;
  return x != x ? UINT64_MAX : number;
}

/* Scratch memory of a call. */
uint64_t ref_rank_bytes(int64_t n, int64_t k, bool wide);

/* Leaves the k first in scratch, for ref_rank_index. False where the run of op is to end (ref_tick, with *work). */
bool ref_rank_run(const ref_rank *r, const ref_op *op, int64_t *work, void *scratch);

/* The index of the i-th. */
int64_t ref_rank_index(const ref_rank *r, const void *scratch, int64_t i);

#endif
