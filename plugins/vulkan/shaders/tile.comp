// Products for GPUs: a group has a tile of TILE x TILE results, DEPTH products at a time through shared memory; an item
// has EACH x EACH results, EACH 4 or 8, in fours. Products of one step are summed apart, as in contract.cl. tiles_m and
// tiles_n: tiles down and across.
#version 450
#extension GL_GOOGLE_include_directive : enable
#include "common.glsl"
#include "params.glsl"
#include "contract.glsl"

#define DEPTH 16
#define SIDE 8 // items of a group along each side of a tile
#define TILE (SIDE * EACH)
#define PITCH (TILE + 4)
#define LOADS (TILE * DEPTH / GROUP)
#define AT(item, i) ((i) / 4 * (SIDE * 4) + (item) * 4 + (i) % 4)

// Neighbours in memory are in a column of A, or of B.
layout(constant_id = 0) const int A_DOWN = 0;
layout(constant_id = 1) const int B_DOWN = 0;

shared float tile_a[DEPTH * PITCH], tile_b[DEPTH * PITCH];

void load_a(const int item, const int a0, const int first, const int k0) {
  [[unroll]] for (int i = 0; i < LOADS; i++) {
    const bool down = A_DOWN != 0;
    const int d = down ? item / TILE + i * (GROUP / TILE) : item % DEPTH;
    const int l = down ? item % TILE : item / DEPTH + i * (GROUP / DEPTH);
    const int row = first + l, kk = k0 + d;
#ifdef CONV
    tile_a[d * PITCH + l] = row < p.m && kk < p.k ? float(a[a0 + weight_at(row, kk)]) : 0.0;
#else
    tile_a[d * PITCH + l] = row < p.m && kk < p.k ? float(a[a0 + row * p.a_row + kk * p.a_col]) : 0.0;
#endif
  }
}

void load_b(const int item, const int b0, const int first, const int k0) {
#ifdef CONV
  const int l = item % TILE;
  k_tap t = tap_of(k0 + item / TILE);
  int position[K_SPATIAL];
  position_of(first + l, position);
  for (int i = 0; i < LOADS; i++) {
    const int d = item / TILE + i * (GROUP / TILE);
    float value = 0.0;
    if (first + l < p.n && k0 + d < p.k) value = element(b0, t, position);
    tile_b[d * PITCH + l] = value;
    for (int next = 0; next < GROUP / TILE; next++) tap_next(t);
  }
#else
  [[unroll]] for (int i = 0; i < LOADS; i++) {
    const bool down = B_DOWN != 0;
    const int d = down ? item % DEPTH : item / TILE + i * (GROUP / TILE);
    const int l = down ? item / DEPTH + i * (GROUP / DEPTH) : item % TILE;
    const int column = first + l, kk = k0 + d;
    tile_b[d * PITCH + l] = column < p.n && kk < p.k ? float(b[b0 + kk * p.b_row + column * p.b_col]) : 0.0;
  }
#endif
}

void main() {
  if (k_group() >= uint(p.total)) return;
  const int item = int(gl_LocalInvocationID.x), tile = int(k_group()), row = item / SIDE, column = item % SIDE;
  const int j0 = tile % p.tiles_n * TILE, i0 = tile / p.tiles_n % p.tiles_m * TILE;
  const int batch = tile / p.tiles_n / p.tiles_m;
  int a0, b0;
  float sum[EACH * EACH];
  enter_batch(batch, a0, b0);
  [[unroll]] for (int i = 0; i < EACH * EACH; i++) sum[i] = 0.0;
  for (int k0 = 0; k0 < p.k; k0 += DEPTH) {
    float part[EACH * EACH];
    load_a(item, a0, i0, k0);
    load_b(item, b0, j0, k0);
    barrier();
    [[unroll]] for (int i = 0; i < EACH * EACH; i++) part[i] = 0.0;
    for (int d = 0; d < DEPTH; d++) {
      float other[EACH];
      [[unroll]] for (int j = 0; j < EACH; j++) other[j] = tile_b[d * PITCH + AT(column, j)];
      [[unroll]] for (int i = 0; i < EACH; i++) {
        const float x = tile_a[d * PITCH + AT(row, i)];
        [[unroll]] for (int j = 0; j < EACH; j++) part[i * EACH + j] = fma(x, other[j], part[i * EACH + j]);
      }
    }
    [[unroll]] for (int i = 0; i < EACH * EACH; i++) sum[i] += part[i];
    barrier();
  }
  [[unroll]] for (int i = 0; i < EACH; i++) {
    const int r = i0 + AT(row, i);
    [[unroll]] for (int j = 0; j < EACH; j++) {
      const int q = j0 + AT(column, j);
      if (r < p.m && q < p.n) y[(batch * p.m + r) * p.n + q] = finished(sum[i * EACH + j], batch, r, q);
    }
  }
}
