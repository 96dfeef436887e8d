/* The elementwise operators by name: what computes n elements, and in which types. */
#ifndef HEDDLE_PLUGINS_COMMON_REF_LANES_H
#define HEDDLE_PLUGINS_COMMON_REF_LANES_H

#include "ref_op.h"
#include "types.h"

typedef struct ref_lane_op {
  uint8_t arity;
  bool compares;               /* bool comes out */
  uint16_t steps;              /* about how long an element takes, in multiplications */
  ref_lanes of[REF_TYPE_NONE]; /* by the type of the operands; NULL: there is none */
} ref_lane_op;

/* Of each SCALAR line, in order: for any CPU, and for AVX2; ref_lanes_fma: of float32, for AVX2 and FMA. ref_lanes_whole: from
 * REF_TYPE_I8 to REF_TYPE_U64. */
extern const ref_lanes ref_lanes_fma[], ref_lanes_f32[][2], ref_lanes_f64[][2], ref_lanes_whole[][8][2];

/* Whether the CPU has AVX2: which of two loops is taken. */
bool ref_lanes_wide(void);

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
