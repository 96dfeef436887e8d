// Softmax along one axis, as in rows.cl: with BY_GROUP a group has a row, else an item. The constant LOG gives the
// logarithm. A result may lie on its operand: an item writes only where it alone reads.
#version 450
#extension GL_GOOGLE_include_directive : enable
#include "common.glsl"
#include "params.glsl"
#include "math.glsl"
#include "total.glsl"

PUSHED {
  int rows, n, inner;
}
p;
layout(constant_id = 0) const int LOG = 0;

OPERAND(1, float, x);
RESULT(2, float, y);

#ifdef BY_GROUP
#include "group.glsl"
#define EACH GROUP
#define WHO int(gl_LocalInvocationID.x)
#define ALL_SUM(v) k_group_sum(v)
#define ALL_MAX(v) k_group_max(v)
#else
#define EACH 1
#define WHO 0
#define ALL_SUM(v) v
#define ALL_MAX(v) v
#endif

void main() {
#ifdef BY_GROUP
  const uint row = k_group();
#else
  const uint row = k_item();
#endif
  if (row >= uint(p.rows)) return;
  const int n = p.n, inner = p.inner, start = int(row) / inner * n * inner + int(row) % inner;
  float most = -K_INFINITY; // NaN is passed over: it comes out of the differences
  for (int i = WHO; i < n; i += BLOCK * EACH) {
    [[unroll]] for (int b = 0; b < BLOCK; b++) {
      const float v = x[start + min(i + b * EACH, n - 1) * inner];
      most = v > most ? v : most;
    }
  }
  most = ALL_MAX(most);
  k_total total = k_total(0.0, 0.0);
  for (int i = WHO; i < n; i += BLOCK * EACH) {
    float part = 0.0;
    [[unroll]] for (int b = 0; b < BLOCK; b++) {
      const int at = i + b * EACH;
      if (at < n) {
        const float e = k_exp(x[start + at * inner] - most);
        if (LOG == 0) y[start + at * inner] = e;
        part += e;
      }
    }
    k_total_add(total, part);
  }
  const float sum = ALL_SUM(k_total_value(total)), less = LOG != 0 ? k_log(sum) : 0.0;
  for (int i = WHO; i < n; i += BLOCK * EACH) {
    [[unroll]] for (int b = 0; b < BLOCK; b++) {
      const int at = start + (i + b * EACH) * inner;
      if (i + b * EACH < n) y[at] = LOG != 0 ? x[at] - most - less : y[at] / sum;
    }
  }
}
