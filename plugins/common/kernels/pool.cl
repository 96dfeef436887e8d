/* Taps of a window that begins at start which lie before the input. */
DEVICE long k_skipped(long start, long dilation) {
  return start >= 0 ? 0 : (dilation - 1 - start) / dilation;
}

#ifdef K_max_pool
/* Windows over planes: an item has one result. In max_pool NaN wins over numbers and stays. */
KERNEL void max_pool(k_pool p, GLOBAL const float *in, GLOBAL float *out) {
  const IDX at = K_GLOBAL_ID;
  if (at >= (IDX)p.count) return;
  const IDX ox = at % (IDX)p.out[2], oy = at / (IDX)p.out[2] % (IDX)p.out[1];
  const IDX rest = at / (IDX)p.out[2] / (IDX)p.out[1], oz = rest % (IDX)p.out[0], plane = rest / (IDX)p.out[0];
  const long z0 = (long)oz * p.stride[0] - p.pad[0], y0 = (long)oy * p.stride[1] - p.pad[1];
  const long x0 = (long)ox * p.stride[2] - p.pad[2];
  float most = -K_INFINITY;
  in += plane * (IDX)(p.in[0] * p.in[1] * p.in[2]);
  for (long kz = k_skipped(z0, p.dilation[0]); kz < p.window[0]; kz++) {
    const long z = z0 + kz * p.dilation[0];
    if (z >= p.in[0]) break;
    for (long ky = k_skipped(y0, p.dilation[1]); ky < p.window[1]; ky++) {
      const long y = y0 + ky * p.dilation[1];
      if (y >= p.in[1]) break;
      for (long kx = k_skipped(x0, p.dilation[2]); kx < p.window[2]; kx++) {
        const long x = x0 + kx * p.dilation[2];
        if (x >= p.in[2]) break;
        const float v = in[((IDX)z * (IDX)p.in[1] + (IDX)y) * (IDX)p.in[2] + (IDX)x];
        most = v > most || v != v ? v : most;
      }
    }
  }
  out[at] = most;
}
#endif

/* Taps of a window that begins at start which lie before end. */
DEVICE long taps_before(long start, long end, long window, long dilation) {
  const long n = end <= start ? 0 : (end - start + dilation - 1) / dilation;
  return n < window ? n : window;
}

#ifdef K_average_pool
/* The mean of the taps in the input; include_pad counts those in its padding too. */
KERNEL void average_pool(k_pool p, GLOBAL const float *in, GLOBAL float *out) {
  const IDX at = K_GLOBAL_ID;
  if (at >= (IDX)p.count) return;
  long place[K_SPATIAL], start[K_SPATIAL], first[K_SPATIAL], last[K_SPATIAL], count = 1;
  IDX plane = at;
  k_total total = {0.0f, 0.0f};
  for (int d = K_SPATIAL - 1; d >= 0; d--) {
    place[d] = plane % (IDX)p.out[d];
    plane /= (IDX)p.out[d];
    start[d] = place[d] * p.stride[d] - p.pad[d];
    first[d] = taps_before(start[d], 0, p.window[d], p.dilation[d]);
    last[d] = taps_before(start[d], p.in[d], p.window[d], p.dilation[d]);
    count *= p.include_pad ? taps_before(start[d], p.in[d] + p.pad_end[d], p.window[d], p.dilation[d])
                           : last[d] - first[d];
  }
  in += plane * (IDX)(p.in[0] * p.in[1] * p.in[2]);
  for (long kz = first[0]; kz < last[0]; kz++) {
    const long z = start[0] + kz * p.dilation[0];
    for (long ky = first[1]; ky < last[1]; ky++) {
      const long y = start[1] + ky * p.dilation[1];
      const IDX line = ((IDX)z * (IDX)p.in[1] + (IDX)y) * (IDX)p.in[2];
      for (long kx = first[2]; kx < last[2]; kx++) k_total_add(&total, in[line + (IDX)(start[2] + kx * p.dilation[2])]);
    }
  }
  out[at] = count > 0 ? k_total_value(&total) / (float)count : 0.0f;
}
#endif
