// Windows over planes, as in pool.cl and pool_where.cl: an item has one result. AVERAGE: the mean of the taps, else the
// greatest, where NaN wins over numbers and stays; WHERE: the place of each maximum too, in 64 bits.
#version 450
#extension GL_GOOGLE_include_directive : enable
#include "common.glsl"
#include "params.glsl"
#include "math.glsl"
#include "total.glsl"

PUSHED {
  int count, include_pad, in_[K_SPATIAL], out_[K_SPATIAL], window[K_SPATIAL], stride[K_SPATIAL], dilation[K_SPATIAL];
  int pad[K_SPATIAL], pad_end[K_SPATIAL];
}
p;
layout(constant_id = 0) const int COLUMN_MAJOR = 0;

OPERAND(1, float, x);
RESULT(2, float, y);
#ifdef WHERE
RESULT(3, uvec2, where);
#endif

// Taps of a window that begins at start which lie before end.
int taps_before(const int start, const int end, const int window, const int dilation) {
  const int n = end <= start ? 0 : (end - start + dilation - 1) / dilation;
  return min(n, window);
}

void main() {
  if (k_item() >= uint(p.count)) return;
  const int at = int(k_item());
  int plane = at, start[K_SPATIAL], first[K_SPATIAL], last[K_SPATIAL], taps = 1;
  [[unroll]] for (int d = K_SPATIAL - 1; d >= 0; d--) {
    start[d] = plane % p.out_[d] * p.stride[d] - p.pad[d];
    plane /= p.out_[d];
    first[d] = taps_before(start[d], 0, p.window[d], p.dilation[d]);
    last[d] = taps_before(start[d], p.in_[d], p.window[d], p.dilation[d]);
    taps *= p.include_pad != 0 ? taps_before(start[d], p.in_[d] + p.pad_end[d], p.window[d], p.dilation[d])
                               : last[d] - first[d];
  }
  const int base = plane * p.in_[0] * p.in_[1] * p.in_[2];
#ifdef AVERAGE
  k_total total = k_total(0.0, 0.0);
#else
  float most = -K_INFINITY;
#endif
#ifdef WHERE
  bool any = false;
  int best = 0;
#endif
  for (int kz = first[0]; kz < last[0]; kz++) {
    const int z = start[0] + kz * p.dilation[0];
    for (int ky = first[1]; ky < last[1]; ky++) {
      const int row = start[1] + ky * p.dilation[1], line = (z * p.in_[1] + row) * p.in_[2];
      for (int kx = first[2]; kx < last[2]; kx++) {
        const int column = start[2] + kx * p.dilation[2];
        const float v = x[base + line + column];
#ifdef AVERAGE
        k_total_add(total, v);
#elif defined(WHERE)
        if (!any || v > most || (k_is_nan(v) && !k_is_nan(most))) {
          any = true;
          most = v;
          best = COLUMN_MAJOR != 0 ? z + p.in_[0] * (row + p.in_[1] * column) : line + column;
        }
#else
        most = v > most || k_is_nan(v) ? v : most;
#endif
      }
    }
  }
#ifdef AVERAGE
  y[at] = taps > 0 ? k_total_value(total) / float(taps) : 0.0;
#else
  y[at] = most;
#endif
#ifdef WHERE
  where[at] = uvec2(uint(base + best), 0u);
#endif
}
