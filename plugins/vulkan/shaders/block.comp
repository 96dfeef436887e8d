// Products for devices that compute on the host's cores, where items lie side by side in a vector of the processor and a
// barrier costs more than what it saves: an item has ROWS x WIDTH results in registers, neighbours of it have those beside
// them. Elements of A are the same for all items of a group. Blocks of 16 products are summed apart, as in contract.cl.
// tiles_m: blocks of ROWS rows; tiles_n: groups along a row.
#version 450
#extension GL_GOOGLE_include_directive : enable
#include "common.glsl"
#include "params.glsl"
#include "contract.glsl"

#define BLOCK 16

// FOURS: B is read in fours, which begin at multiples of four. B_DOWN: neighbours in memory are in a column of B; then
// products go in fours.
layout(constant_id = 0) const int ROWS = 8;
layout(constant_id = 1) const int WIDTH = 8;
layout(constant_id = 2) const int FOURS = 0;
layout(constant_id = 3) const int B_DOWN = 0;

layout(set = 0, binding = 2, std430) readonly buffer operand_fours { vec4 b_four[]; };

float part[ROWS * WIDTH];
int row_at[ROWS]; // where each row of A begins

float a_at(const int i, const int kk) {
#ifdef TRANSPOSED
  return a[row_at[i] + weight_at(0, kk)];
#elif defined(CONV)
  return a[row_at[i] + kk];
#else
  return a[row_at[i] + kk * p.a_col];
#endif
}

void add_row(const int kk, const float other[WIDTH]) {
  [[unroll]] for (int i = 0; i < ROWS; i++) {
    const float x = a_at(i, kk);
    [[unroll]] for (int j = 0; j < WIDTH; j++) part[i * WIDTH + j] = fma(x, other[j], part[i * WIDTH + j]);
  }
}

void main() {
  if (k_group() >= uint(p.total)) return;
  const int tile = int(k_group()), lane = int(gl_LocalInvocationID.x), batch = tile / p.tiles_n / p.tiles_m;
  const int i0 = tile / p.tiles_n % p.tiles_m * ROWS, j0 = (tile % p.tiles_n * GROUP + lane) * WIDTH;
  if (j0 >= p.n) return;
  int a0, b0;
  enter_batch(batch, a0, b0);
  float sum[ROWS * WIDTH], other[WIDTH];
  [[unroll]] for (int i = 0; i < ROWS; i++) {
    const int row = min(i0 + i, p.m - 1);
#ifdef TRANSPOSED
    row_at[i] = a0 + row * p.taps;
#elif defined(CONV)
    row_at[i] = a0 + row * p.k;
#else
    row_at[i] = a0 + row * p.a_row;
#endif
  }
  // With fours, results that the last items have of their own begin where whole ones fit.
  const int first = FOURS != 0 && B_DOWN == 0 ? min(j0, p.n - WIDTH) : j0;
#ifdef CONV
  int position[WIDTH][K_SPATIAL];
  [[unroll]] for (int j = 0; j < WIDTH; j++) position_of(min(j0 + j, p.n - 1), position[j]);
  k_tap t = tap_of(0);
#else
  int column_at[WIDTH];
  [[unroll]] for (int j = 0; j < WIDTH; j++) column_at[j] = b0 + min(first + j, p.n - 1) * p.b_col;
#endif
  [[unroll]] for (int i = 0; i < ROWS * WIDTH; i++) sum[i] = 0.0;
  for (int k0 = 0; k0 < p.k; k0 += BLOCK) {
    const int end = min(p.k, k0 + BLOCK);
    int kk = k0;
    [[unroll]] for (int i = 0; i < ROWS * WIDTH; i++) part[i] = 0.0;
#ifndef CONV
    if (B_DOWN != 0 && FOURS != 0) {
      for (; kk + 4 <= end; kk += 4) {
        vec4 four[WIDTH];
        [[unroll]] for (int j = 0; j < WIDTH; j++) four[j] = b_four[(column_at[j] + kk) / 4];
        [[unroll]] for (int d = 0; d < 4; d++) {
          [[unroll]] for (int j = 0; j < WIDTH; j++) other[j] = four[j][d];
          add_row(kk + d, other);
        }
      }
    }
#endif
    for (; kk < end; kk++) {
#ifdef CONV
      [[unroll]] for (int j = 0; j < WIDTH; j++) other[j] = element(b0, t, position[j]);
      tap_next(t);
#else
      if (FOURS != 0 && B_DOWN == 0) {
        const int at = (b0 + kk * p.b_row + first) / 4;
        [[unroll]] for (int j = 0; j < WIDTH / 4; j++) {
          const vec4 four = b_four[at + j];
          [[unroll]] for (int d = 0; d < 4; d++) other[j * 4 + d] = four[d];
        }
      } else {
        [[unroll]] for (int j = 0; j < WIDTH; j++) other[j] = b[column_at[j] + kk * p.b_row];
      }
#endif
      add_row(kk, other);
    }
    [[unroll]] for (int i = 0; i < ROWS * WIDTH; i++) sum[i] += part[i];
  }
  [[unroll]] for (int i = 0; i < ROWS; i++) {
    const int r = i0 + i;
    [[unroll]] for (int j = 0; j < WIDTH; j++) {
      const int q = first + j;
      if (r < p.m && q >= j0 && q < p.n)
        y[(batch * p.m + r) * p.n + q] = finished(sum[i * WIDTH + j], batch, r, q);
    }
  }
}
