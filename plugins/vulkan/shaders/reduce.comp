// Sum, mean, product, greatest or least over any axes, as in reduce.cl: with BY_GROUP a group has a result, else an item.
// A variant's TYPE is that of the elements, the constant WHAT what is made of them. float32 has totals; whole numbers are
// gathered in 64 bits and wrap. NaN wins over numbers and stays.
#version 450
#extension GL_GOOGLE_include_directive : enable
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : enable
#include "common.glsl"
#include "params.glsl"
#include "math.glsl"
#include "total.glsl"
#include "types.glsl"

#define R_SUM 0
#define R_MEAN 1
#define R_MAX 2
#define R_MIN 3
#define R_PROD 4
layout(constant_id = 0) const int WHAT = R_SUM;

STORED {
  int results, count, outer, row, row_step, by_row;
  uint start_low, start_high; // of a whole number: the limit of the type, for the greatest and the least
  int kept_dims, kept_dim[K_DIMS], kept_step[K_DIMS];
  int dims, dim[K_DIMS], step[K_DIMS];
}
p;

OPERAND(1, S, x);
RESULT(2, S, y);

#if TYPE == TYPE_F32
#define A float
#define IS_NAN(v) k_is_nan(v)
#define ADD(a, b) ((a) + (b))
#define MULTIPLY(a, b) ((a) * (b))
A first_value() {
  return WHAT == R_MAX ? -K_INFINITY : WHAT == R_MIN ? K_INFINITY : WHAT == R_PROD ? 1.0 : 0.0;
}
#else
#define A int64_t
#define IS_NAN(v) false
#define ADD(a, b) int64_t(uint64_t(a) + uint64_t(b))
#define MULTIPLY(a, b) int64_t(uint64_t(a) * uint64_t(b))
A first_value() {
  return int64_t(uint64_t(p.start_high) << 32 | uint64_t(p.start_low));
}
#endif

A fold(const A a, const A v) {
  if (WHAT == R_MAX) return v > a || IS_NAN(v) ? v : a;
  if (WHAT == R_MIN) return v < a || IS_NAN(v) ? v : a;
  if (WHAT == R_PROD) return MULTIPLY(a, v);
  return ADD(a, v);
}

// One of each who share a result: every each-th element of the rows, or every each-th row, from element base on.
A share_of(const int base, const int who, const int each) {
  const bool by_row = p.by_row != 0;
  const int x0 = by_row ? who : 0, dx = by_row ? each : 1, j0 = by_row ? 0 : who, dj = by_row ? 1 : each;
  k_total total = k_total(0.0, 0.0);
  A all = first_value();
  for (int j = j0; j < p.outer; j += dj) {
    int at = base, left = j;
    for (int d = p.dims - 1; d >= 0; d--) {
      at += left % p.dim[d] * p.step[d];
      left /= p.dim[d];
    }
    for (int i = x0; i < p.row; i += BLOCK * dx) {
      [[unroll]] for (int b = 0; b < BLOCK; b++) {
        if (i + b * dx < p.row) {
          const A v = A(LOAD(x[at + (i + b * dx) * p.row_step]));
#if TYPE == TYPE_F32
          if (WHAT == R_SUM || WHAT == R_MEAN) {
            k_total_add(total, v);
          } else {
            all = fold(all, v);
          }
#else
          all = fold(all, v);
#endif
        }
      }
    }
  }
#if TYPE == TYPE_F32
  if (WHAT == R_SUM || WHAT == R_MEAN) return k_total_value(total);
#endif
  return all;
}

void finish(const int result, const A all) {
#if TYPE == TYPE_F32
  y[result] = WHAT != R_MEAN ? all : p.count == 0 ? K_NAN : all / float(p.count);
#else
  y[result] = S(WHAT != R_MEAN ? all : p.count == 0 ? 0l : all / int64_t(p.count));
#endif
}

int first_of(const int result) {
  int at = 0, left = result;
  for (int d = p.kept_dims - 1; d >= 0; d--) {
    at += left % p.kept_dim[d] * p.kept_step[d];
    left /= p.kept_dim[d];
  }
  return at;
}

#ifdef BY_GROUP
shared A room[GROUP];
#endif

void main() {
#ifdef BY_GROUP
  const uint result = k_group(), item = gl_LocalInvocationID.x;
  if (result >= uint(p.results)) return;
  room[item] = share_of(first_of(int(result)), int(item), GROUP);
  barrier();
  for (uint span = uint(GROUP) / 2u; span > 0u; span /= 2u) {
    if (item < span) room[item] = fold(room[item], room[item + span]);
    barrier();
  }
  if (item == 0u) finish(int(result), room[0]);
#else
  const uint result = k_item();
  if (result >= uint(p.results)) return;
  finish(int(result), share_of(first_of(int(result)), 0, 1));
#endif
}
