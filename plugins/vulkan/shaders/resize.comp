// Resize, as in resize.cl: an item has one element of the result, the sum over all taps of all dimensions. cells: for each
// place of each dimension that is resized the first element, OUTSIDE for none, and the weights.
#version 450
#extension GL_GOOGLE_include_directive : enable
#include "common.glsl"
#include "params.glsl"

const int OUTSIDE = -2147483647 - 1;

layout(constant_id = 0) const int DIMS = 1;

STORED {
  int count, sums, in_[K_DIMS], out_[K_DIMS], taps[K_DIMS], at[K_DIMS];
  float outside;
}
p;

OPERAND(1, int, cells);
OPERAND(2, float, x);
RESULT(3, float, y);

void main() {
  if (k_item() >= uint(p.count)) return;
  const int id = int(k_item());
  int rest = id, row[DIMS];
  bool outside = false;
  [[unroll]] for (int d = DIMS - 1; d >= 0; d--) {
    const int place = rest % p.out_[d];
    rest /= p.out_[d];
    row[d] = p.taps[d] == 0 ? place : p.at[d] + place * (1 + p.taps[d]);
    if (p.taps[d] != 0 && cells[row[d]] == OUTSIDE) outside = true;
  }
  if (outside) {
    y[id] = p.outside;
    return;
  }
  float sum = 0.0;
  for (int t = 0; t < p.sums; t++) {
    int left = t, from = 0, step = 1;
    float weight = 1.0;
    [[unroll]] for (int d = DIMS - 1; d >= 0; d--) {
      const int taps = p.taps[d], size = p.in_[d];
      int at = row[d];
      if (taps != 0) {
        const int k = left % taps;
        left /= taps;
        weight *= intBitsToFloat(cells[row[d] + 1 + k]);
        at = clamp(cells[row[d]] + k, 0, size - 1);
      }
      from += at * step;
      step *= size;
    }
    sum += weight * x[from];
  }
  y[id] = sum;
}
