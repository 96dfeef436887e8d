/* The elementwise operators by name: what computes n elements, and in which types. */
#ifndef HEDDLE_PLUGINS_COMMON_REF_LANES_H
#define HEDDLE_PLUGINS_COMMON_REF_LANES_H

#include "ref_op.h"

typedef struct ref_lane_op {
  uint8_t arity;
  bool compares;   /* bool comes out */
  uint16_t steps;  /* about how long an element takes, in multiplications */
  ref_lanes f32;   /* of float32; NULL: there is none */
  ref_lanes whole; /* of int64_t, in which all integers are computed */
  ref_lanes truth; /* of bool; of one that compares, of int64_t */
} ref_lane_op;

/* All that operators/ has of the name of an operator or a variant; false where there is none. */
bool ref_lane_find(const char *op, ref_lane_op *out);

/* Pow by a float64: an exponent that is an integer, or float64, which float32 may not hold. */
void ref_pow_f32_by_f64(void *out, const void *const *in, int64_t n, const float *p);
void ref_pow_i64_by_f64(void *out, const void *const *in, int64_t n, const float *p);

/* Pow by an exponent that is known, of float32; NULL where it has no lane of its own. The exponent is not read. */
ref_lanes ref_lanes_power(float exponent);

/* Where, for elements of 1, 2, 4 and 8 bytes; NULL for others. */
ref_lanes ref_lanes_where(uint64_t size);

#endif
