// Convolutions of groups of few channels, where tiles would be empty: an item has SPAN neighbours of a line of the output,
// tiles_n of which make a line; a group works in one plane, which tiles_m groups share. Sums of a channel are added up with
// what rounding took from them. With LINE an item reads the stretch of a line of the input that its results share once,
// for each row of a window of ACROSS taps, STEP apart from one result to the next, and next to each other.
#version 450
#extension GL_GOOGLE_include_directive : enable
#include "common.glsl"
#include "params.glsl"
#include "contract.glsl"
#include "total.glsl"

layout(constant_id = 0) const int SPAN = 1;
#ifdef LINE
layout(constant_id = 1) const int ACROSS = 3;
layout(constant_id = 2) const int STEP = 1;
const int REACH = (SPAN - 1) * STEP + ACROSS;
#endif

float part[SPAN];

// Adds one row of weights, from weight on, times a line of the input that begins at line; outside: of its padding.
void add_line(const int line, const bool inside, const int weight, const int x0) {
#ifdef LINE
  float x[REACH];
  const int start = x0 * STEP - p.pad[2];
  [[unroll]] for (int i = 0; i < REACH; i++) {
    const bool within = inside && start + i >= 0 && start + i < p.in_[2];
    const float value = b[within ? line + start + i : 0];
    x[i] = within ? value : 0.0;
  }
  [[unroll]] for (int tap = 0; tap < ACROSS; tap++) {
    const float w = a[weight + tap];
    [[unroll]] for (int j = 0; j < SPAN; j++) part[j] = fma(w, x[j * STEP + tap], part[j]);
  }
#else
  for (int tap = 0; tap < p.window[2]; tap++) {
    const float w = a[weight + tap];
    [[unroll]] for (int j = 0; j < SPAN; j++) {
      const int x = meets(2, x0 + j, tap);
      const bool within = inside && x >= 0;
      const float value = b[within ? line + x : 0];
      part[j] = within ? fma(w, value, part[j]) : part[j];
    }
  }
#endif
}

void main() {
  if (k_group() >= uint(p.total)) return;
  const int plane = int(k_group()) / p.tiles_m;
  const int unit = int(k_group()) % p.tiles_m * GROUP + int(gl_LocalInvocationID.x), line = unit / p.tiles_n;
  if (line >= p.out_[0] * p.out_[1]) return;
  const int x0 = (unit - line * p.tiles_n) * SPAN, batch = plane / p.m, row = plane % p.m;
  const int oz = line / p.out_[1], oy = line - oz * p.out_[1];
  int a0, b0;
  k_total sum[SPAN];
  enter_batch(batch, a0, b0);
  [[unroll]] for (int j = 0; j < SPAN; j++) sum[j] = k_total(0.0, 0.0);
  for (int channel = 0; channel < p.in_channels; channel++) {
    const int weights = a0 + weight_at(row, channel * p.taps);
    [[unroll]] for (int j = 0; j < SPAN; j++) part[j] = 0.0;
    for (int kz = 0; kz < p.window[0]; kz++) {
      const int z = meets(0, oz, kz);
      for (int ky = 0; ky < p.window[1]; ky++) {
        const int iy = meets(1, oy, ky);
        add_line(b0 + ((channel * p.in_[0] + z) * p.in_[1] + iy) * p.in_[2], z >= 0 && iy >= 0,
                 weights + (kz * p.window[1] + ky) * p.window[2], x0);
      }
    }
    [[unroll]] for (int j = 0; j < SPAN; j++) k_total_add(sum[j], part[j]);
  }
  [[unroll]] for (int j = 0; j < SPAN; j++) {
    if (x0 + j < p.out_[2])
      y[(plane * p.out_[0] * p.out_[1] + line) * p.out_[2] + x0 + j] = finished(k_total_value(sum[j]), batch, row, 0);
  }
}
