// Convolutions of groups of few channels, where tiles would be empty: an item has SPAN neighbours of a line of the output,
// tiles_n of which make a line; a group works in one plane, which tiles_m groups share. Sums of a channel are added up with
// what rounding took from them. With LINE an item has LINES lines, and reads what they need of the input once: of a window
// of TALL x ACROSS taps next to each other, DOWN and STEP apart from one result to the next.
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
layout(constant_id = 3) const int TALL = 3;
layout(constant_id = 4) const int DOWN = 1;
layout(constant_id = 5) const int LINES = 1;
const int REACH = (SPAN - 1) * STEP + ACROSS, ROWS = (LINES - 1) * DOWN + TALL;
#else
const int LINES = 1;
#endif

float part[LINES * SPAN];

#ifdef LINE
// Adds the taps of a plane of the window, whose weights begin at weights, over a plane of the input that begins at in0.
void add_plane(const int in0, const bool inside, const int weights, const int y0, const int x0) {
  const int top = y0 * DOWN - p.pad[1], start = x0 * STEP - p.pad[2];
  float w[TALL * ACROSS], x[REACH];
  [[unroll]] for (int i = 0; i < TALL * ACROSS; i++) w[i] = a[weights + i];
  [[unroll]] for (int row = 0; row < ROWS; row++) {
    const bool there = inside && top + row >= 0 && top + row < p.in_[1];
    const int line = in0 + (top + row) * p.in_[2] + start;
    [[unroll]] for (int i = 0; i < REACH; i++) {
      const bool within = there && start + i >= 0 && start + i < p.in_[2];
      const float value = b[within ? line + i : 0];
      x[i] = within ? value : 0.0;
    }
    [[unroll]] for (int l = 0; l < LINES; l++) {
      const int tall = row - l * DOWN;
      if (tall >= 0 && tall < TALL) {
        [[unroll]] for (int tap = 0; tap < ACROSS; tap++) {
          [[unroll]] for (int j = 0; j < SPAN; j++)
            part[l * SPAN + j] = fma(w[tall * ACROSS + tap], x[j * STEP + tap], part[l * SPAN + j]);
        }
      }
    }
  }
}
#else
void add_plane(const int in0, const bool inside, const int weights, const int y0, const int x0) {
  for (int ky = 0; ky < p.window[1]; ky++) {
    const int iy = meets(1, y0, ky);
    for (int kx = 0; kx < p.window[2]; kx++) {
      const float w = a[weights + ky * p.window[2] + kx];
      [[unroll]] for (int j = 0; j < SPAN; j++) {
        const int ix = meets(2, x0 + j, kx);
        const bool within = inside && iy >= 0 && ix >= 0;
        const float value = b[within ? in0 + iy * p.in_[2] + ix : 0];
        part[j] = within ? fma(w, value, part[j]) : part[j];
      }
    }
  }
}
#endif

void main() {
  if (k_group() >= uint(p.total)) return;
  const int plane = int(k_group()) / p.tiles_m, blocks = (p.out_[1] + LINES - 1) / LINES;
  const int unit = int(k_group()) % p.tiles_m * GROUP + int(gl_LocalInvocationID.x), line = unit / p.tiles_n;
  const int oz = line / blocks, y0 = (line - oz * blocks) * LINES, x0 = (unit - line * p.tiles_n) * SPAN;
  if (oz >= p.out_[0]) return;
  const int batch = plane / p.m, row = plane % p.m;
  int a0, b0;
  k_total sum[LINES * SPAN];
  enter_batch(batch, a0, b0);
  [[unroll]] for (int j = 0; j < LINES * SPAN; j++) sum[j] = k_total(0.0, 0.0);
  for (int channel = 0; channel < p.in_channels; channel++) {
    const int weights = a0 + weight_at(row, channel * p.taps);
    [[unroll]] for (int j = 0; j < LINES * SPAN; j++) part[j] = 0.0;
    for (int kz = 0; kz < p.window[0]; kz++) {
      const int z = meets(0, oz, kz);
      add_plane(b0 + (channel * p.in_[0] + z) * p.in_[1] * p.in_[2], z >= 0,
                weights + kz * p.window[1] * p.window[2], y0, x0);
    }
    [[unroll]] for (int j = 0; j < LINES * SPAN; j++) k_total_add(sum[j], part[j]);
  }
  [[unroll]] for (int l = 0; l < LINES; l++) {
    [[unroll]] for (int j = 0; j < SPAN; j++) {
      if (y0 + l < p.out_[1] && x0 + j < p.out_[2])
        y[((plane * p.out_[0] + oz) * p.out_[1] + y0 + l) * p.out_[2] + x0 + j] =
            finished(k_total_value(sum[l * SPAN + j]), batch, row, 0);
    }
  }
}
