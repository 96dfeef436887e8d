// Products for devices that compute on the host's cores, where items lie side by side in a vector of the processor and a
// barrier costs more than what it saves: an item has ROWS x WIDTH results in registers, neighbours of it have those beside
// them. Sums are made of fours of products, then of chunks of 256, so that rounding errors do not grow with k. tiles_m:
// blocks of ROWS rows; tiles_n: groups along a row. With SHARED_ROWS, items load elements of A for each other, a row of
// eight each, which needs subgroups of GROUP or more; there ROWS is a multiple of eight.
#version 450
#extension GL_GOOGLE_include_directive : enable
#ifdef SHARED_ROWS
#extension GL_KHR_shader_subgroup_ballot : require
#endif
#include "common.glsl"
#include "params.glsl"
#include "contract.glsl"

#define DEPTH 4   // products that an item's loads are for
#define CHUNK 256 // products whose sums are added up apart

// B_FOURS, A_FOURS: B, or A, is read in fours, which begin at multiples of four. B_DOWN: neighbours in memory are in a
// column of B. TAIL: k is no multiple of DEPTH.
layout(constant_id = 0) const int ROWS = 8;
layout(constant_id = 1) const int WIDTH = 8;
layout(constant_id = 2) const int B_FOURS = 0;
layout(constant_id = 3) const int B_DOWN = 0;
layout(constant_id = 4) const int A_FOURS = 0;
layout(constant_id = 5) const int TAIL = 0;

layout(set = 0, binding = 1, std430) readonly buffer operand_a_fours { A_STORED_FOUR a_four[]; };
layout(set = 0, binding = 2, std430) readonly buffer operand_b_fours { B_STORED_FOUR b_four[]; };

#ifdef SHARED_ROWS
const int OWN_ROWS = ROWS / 8;
#else
const int OWN_ROWS = ROWS;
#endif

float part[ROWS * WIDTH], other[DEPTH * WIDTH], own[OWN_ROWS * DEPTH];

int a_place(const int row, const int kk) {
#ifdef CONV
  return weight_at(row, kk);
#else
  return row * p.a_row + kk * p.a_col;
#endif
}

// DEPTH elements of A from kk on, of the rows that this item loads.
void load_a(const int start[OWN_ROWS], const int kk) {
  [[unroll]] for (int i = 0; i < OWN_ROWS; i++) {
    if (A_FOURS != 0) {
      const vec4 four = A_FOUR((start[i] + kk) / 4);
      [[unroll]] for (int d = 0; d < DEPTH; d++) own[i * DEPTH + d] = four[d];
    } else {
      [[unroll]] for (int d = 0; d < DEPTH; d++) {
        const bool inside = TAIL == 0 || kk + d < p.k;
        const float value = float(a[start[i] + (inside ? a_place(0, kk + d) : 0)]);
        own[i * DEPTH + d] = inside ? value : 0.0;
      }
    }
  }
}

// Adds the products that are loaded to row i of the block: they are summed first, so that an element of part is touched
// once.
void add_row(const int i, const float x[DEPTH]) {
  [[unroll]] for (int j = 0; j < WIDTH; j++) {
    float some = x[0] * other[j];
    [[unroll]] for (int d = 1; d < DEPTH; d++) some = fma(x[d], other[d * WIDTH + j], some);
    part[i * WIDTH + j] += some;
  }
}

void add_products() {
  float x[DEPTH];
  [[unroll]] for (int i = 0; i < OWN_ROWS; i++) {
#ifdef SHARED_ROWS
#define ADD(lane) \
  [[unroll]] for (int d = 0; d < DEPTH; d++) x[d] = subgroupBroadcast(own[i * DEPTH + d], lane); \
  add_row(i * 8 + lane, x)
    ADD(0);
    ADD(1);
    ADD(2);
    ADD(3);
    ADD(4);
    ADD(5);
    ADD(6);
    ADD(7);
#else
    [[unroll]] for (int d = 0; d < DEPTH; d++) x[d] = own[i * DEPTH + d];
    add_row(i, x);
#endif
  }
}

void main() {
  if (k_group() >= uint(p.total)) return;
  const int tile = int(k_group()), lane = int(gl_LocalInvocationID.x), batch = tile / p.tiles_n / p.tiles_m;
  // Neighbouring groups share columns of B, which stay in the cache.
  const int i0 = tile % p.tiles_m * ROWS, j0 = (tile / p.tiles_m % p.tiles_n * GROUP + lane) * WIDTH;
#ifndef SHARED_ROWS
  if (j0 >= p.n) return;
#endif
  int a0, b0, start[OWN_ROWS];
  float sum[ROWS * WIDTH];
  enter_batch(batch, a0, b0);
#ifdef SHARED_ROWS
  [[unroll]] for (int i = 0; i < OWN_ROWS; i++) start[i] = a0 + a_place(min(i0 + i * 8 + lane, p.m - 1), 0);
#else
  [[unroll]] for (int i = 0; i < OWN_ROWS; i++) start[i] = a0 + a_place(min(i0 + i, p.m - 1), 0);
#endif
  // With fours the last results begin where whole fours are left.
  const int first = B_FOURS != 0 && B_DOWN == 0 ? min(j0, p.n - WIDTH) : j0;
#ifdef CONV
  int position[WIDTH][K_SPATIAL];
  [[unroll]] for (int j = 0; j < WIDTH; j++) position_of(min(j0 + j, p.n - 1), position[j]);
  k_tap t = tap_of(0);
#else
  int column_at[WIDTH];
  [[unroll]] for (int j = 0; j < WIDTH; j++) column_at[j] = b0 + min(first + j, p.n - 1) * p.b_col;
#endif
  [[unroll]] for (int i = 0; i < ROWS * WIDTH; i++) sum[i] = 0.0;
  for (int k0 = 0; k0 < p.k; k0 += CHUNK) {
    const int end = min(p.k, k0 + CHUNK);
    [[unroll]] for (int i = 0; i < ROWS * WIDTH; i++) part[i] = 0.0;
    for (int kk = k0; kk < end; kk += DEPTH) {
      load_a(start, kk);
#ifdef CONV
      [[unroll]] for (int d = 0; d < DEPTH; d++) {
        [[unroll]] for (int j = 0; j < WIDTH; j++) {
          const float value = element(b0, t, position[j]);
          other[d * WIDTH + j] = TAIL == 0 || kk + d < p.k ? value : 0.0;
        }
        tap_next(t);
      }
#else
      if (B_FOURS != 0 && B_DOWN != 0) {
        [[unroll]] for (int j = 0; j < WIDTH; j++) {
          const vec4 four = B_FOUR((column_at[j] + kk) / 4);
          [[unroll]] for (int d = 0; d < DEPTH; d++) other[d * WIDTH + j] = four[d];
        }
      } else {
        [[unroll]] for (int d = 0; d < DEPTH; d++) {
          const bool inside = TAIL == 0 || kk + d < p.k;
          const int at = inside ? (kk + d) * p.b_row : 0;
          if (B_FOURS != 0) {
            [[unroll]] for (int j = 0; j < WIDTH / 4; j++) {
              const vec4 four = B_FOUR((b0 + at + first) / 4 + j);
              [[unroll]] for (int e = 0; e < 4; e++) other[d * WIDTH + j * 4 + e] = inside ? four[e] : 0.0;
            }
          } else {
            [[unroll]] for (int j = 0; j < WIDTH; j++) {
              const float value = float(b[column_at[j] + at]);
              other[d * WIDTH + j] = inside ? value : 0.0;
            }
          }
        }
      }
#endif
      add_products();
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
