/* Included by pool_rows.c for each type and kind of vectors: ELEMENT, what sums are made in (RESULT), TARGET, START, WITH(x,
 * y), y with x taken in, and NAME. */
TARGET static void NAME(const ref_window *w, const void *plane, int64_t z, int64_t y, int64_t first, int64_t n,
                        void *to) {
  RESULT line[SPAN], *restrict out = to;
  const int64_t stride = w->stride[2], low = first * stride - w->pad[2];
  const int64_t span = (n - 1) * stride + (w->kernel[2] - 1) * w->dilation[2] + 1;
  const int64_t from = low > 0 ? 0 : -low, end = w->in[2] - low < span ? w->in[2] - low : span;
  int64_t z0, z1, y0, y1;
  for (int64_t i = 0; i < span; i++) line[i] = START;
  ref_window_taps(w, 0, z, z, &z0, &z1);
  ref_window_taps(w, 1, y, y, &y0, &y1);
  for (int64_t kz = z0; kz < z1; kz++) {
    const int64_t iz = z * w->stride[0] + kz * w->dilation[0] - w->pad[0];
    for (int64_t ky = y0; ky < y1; ky++) {
      const int64_t iy = y * w->stride[1] + ky * w->dilation[1] - w->pad[1];
      const ELEMENT *row = (const ELEMENT *)plane + (iz * w->in[1] + iy) * w->in[2];
      for (int64_t i = from; i < end; i++) line[i] = WITH(row[low + i], line[i]);
    }
  }
  for (int64_t i = 0; i < n; i++) out[i] = START;
  for (int64_t k = 0; k < w->kernel[2]; k++) {
    const RESULT *restrict x = line + k * w->dilation[2];
    if (stride == 1)
      for (int64_t i = 0; i < n; i++) out[i] = WITH(x[i], out[i]);
    else if (stride == 2)
      for (int64_t i = 0; i < n; i++) out[i] = WITH(x[2 * i], out[i]);
    else
      for (int64_t i = 0; i < n; i++) out[i] = WITH(x[i * stride], out[i]);
  }
}
#undef NAME
