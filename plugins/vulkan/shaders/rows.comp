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
  for (int i = WHO; i < n; i += EACH) {
    const float v = x[start + i * inner];
    most = v > most ? v : most;
  }
  most = ALL_MAX(most);
  k_total total = k_total(0.0, 0.0);
  for (int i = WHO; i < n;) {
    float part = 0.0;
    for (int b = 0; b < BLOCK && i < n; b++, i += EACH) {
      const float e = k_exp(x[start + i * inner] - most);
      if (LOG == 0) y[start + i * inner] = e;
      part += e;
    }
    k_total_add(total, part);
  }
  const float sum = ALL_SUM(k_total_value(total));
  if (LOG != 0) {
    const float less = k_log(sum);
    for (int i = WHO; i < n; i += EACH) y[start + i * inner] = x[start + i * inner] - most - less;
  } else {
    for (int i = WHO; i < n; i += EACH) y[start + i * inner] /= sum;
  }
}
