// Products of one row, m 1, for GPUs: an item has a result, tiles_n groups a batch; or with DOWN, where neighbours in
// memory are in a column of B, a group has one.
#version 450
#extension GL_GOOGLE_include_directive : enable
#include "common.glsl"
#include "params.glsl"
#include "contract.glsl"
#ifdef DOWN
#include "group.glsl"
#endif

#define BLOCK 16

void main() {
  if (k_group() >= uint(p.total)) return;
  const int group = int(k_group()), item = int(gl_LocalInvocationID.x);
  int a0, b0;
  float sum = 0.0;
#ifdef DOWN
  const int batch = group / p.n, column = group % p.n;
  enter_batch(batch, a0, b0);
  b0 += column * p.b_col;
  for (int kk = item; kk < p.k;) {
    float part = 0.0;
    for (int d = 0; d < BLOCK && kk < p.k; d++, kk += GROUP) part = fma(a[a0 + kk * p.a_col], float(b[b0 + kk]), part);
    sum += part;
  }
  sum = k_group_sum(sum);
  if (item == 0) y[batch * p.n + column] = finished(sum, batch, 0, column);
#else
  const int batch = group / p.tiles_n, column = group % p.tiles_n * GROUP + item;
  if (column >= p.n) return;
  enter_batch(batch, a0, b0);
  b0 += column * p.b_col;
  for (int k0 = 0; k0 < p.k; k0 += BLOCK) {
    const int end = min(p.k, k0 + BLOCK);
    float part = 0.0;
    for (int kk = k0; kk < end; kk++) part = fma(a[a0 + kk * p.a_col], float(b[b0 + kk * p.b_row]), part);
    sum += part;
  }
  y[batch * p.n + column] = finished(sum, batch, 0, column);
#endif
}
