/* Taps of a window that begins at start which lie before the input. */
DEVICE long k_skipped(long start, long dilation) {
  return start >= 0 ? 0 : (dilation - 1 - start) / dilation;
}

/* MaxPool with the place of each maximum in its operand, the first of several: an item has one result. COLUMN_MAJOR: how
 * places in a plane are counted. */
KERNEL void max_pool_where(k_pool p, GLOBAL const float *in, GLOBAL float *out, GLOBAL long *where) {
  const IDX at = K_GLOBAL_ID;
  if (at >= (IDX)p.count) return;
  const IDX ox = at % (IDX)p.out[2], oy = at / (IDX)p.out[2] % (IDX)p.out[1];
  const IDX rest = at / (IDX)p.out[2] / (IDX)p.out[1], oz = rest % (IDX)p.out[0], plane = rest / (IDX)p.out[0];
  const long z0 = (long)oz * p.stride[0] - p.pad[0], y0 = (long)oy * p.stride[1] - p.pad[1];
  const long x0 = (long)ox * p.stride[2] - p.pad[2], size = p.in[0] * p.in[1] * p.in[2];
  float most = -K_INFINITY;
  long best = 0;
  int any = 0;
  in += plane * (IDX)size;
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
        if (any && !(v > most) && (v == v || most != most)) continue;
        any = 1;
        most = v;
#if COLUMN_MAJOR
        best = z + p.in[0] * (y + p.in[1] * x);
#else
        best = (z * p.in[1] + y) * p.in[2] + x;
#endif
      }
    }
  }
  out[at] = most;
  where[at] = (long)plane * size + best;
}
