/* Matrix products in tiles of TILE x TILE results, DEPTH products at a time through local memory; an item has 4 x 4
 * results. Options: CONV gathers B from the patches of an input instead of reading a matrix; HAS_C adds a third
 * operand. Products of one tile are summed apart, so that rounding errors grow with k / DEPTH and not with k. */
#define TILE 32
#define DEPTH 16
#define SIDE 8 /* items of a group along each side of a tile */
#define EACH 4 /* results of an item along each side */

#ifdef CONV
#define PARAMS k_conv

/* Element (kk, column) of B: tap kk % taps of channel kk / taps of the group, at output position column. */
DEVICE float patch(const k_conv *p, GLOBAL const float *in, IDX kk, IDX column) {
  const IDX channel = kk / (IDX)p->taps, tap = kk % (IDX)p->taps;
  const IDX kx = tap % (IDX)p->window[2], ky = tap / (IDX)p->window[2] % (IDX)p->window[1];
  const IDX kz = tap / (IDX)p->window[2] / (IDX)p->window[1];
  const IDX ox = column % (IDX)p->out[2], oy = column / (IDX)p->out[2] % (IDX)p->out[1];
  const IDX oz = column / (IDX)p->out[2] / (IDX)p->out[1];
  const long x = (long)ox * p->stride[2] + (long)kx * p->dilation[2] - p->pad[2];
  const long y = (long)oy * p->stride[1] + (long)ky * p->dilation[1] - p->pad[1];
  const long z = (long)oz * p->stride[0] + (long)kz * p->dilation[0] - p->pad[0];
  if (x < 0 || x >= p->in[2] || y < 0 || y >= p->in[1] || z < 0 || z >= p->in[0]) return 0.0f;
  return in[((channel * (IDX)p->in[0] + (IDX)z) * (IDX)p->in[1] + (IDX)y) * (IDX)p->in[2] + (IDX)x];
}
#else
#define PARAMS k_matmul
#endif

KERNEL void contract(PARAMS p, GLOBAL const float *a, GLOBAL const float *b,
#ifdef HAS_C
                     GLOBAL const float *c,
#endif
                     GLOBAL float *out) {
  LOCAL_ARRAY(float, tile_a, DEPTH * TILE);
  LOCAL_ARRAY(float, tile_b, DEPTH * TILE);
  const IDX tile = K_GROUP_ID, m = (IDX)p.m, n = (IDX)p.n, k = (IDX)p.k;
  const IDX across = (IDX)p.tiles_n, down = (IDX)p.tiles_m;
  const IDX j0 = tile % across * TILE, i0 = tile / across % down * TILE, batch = tile / across / down;
  const int item = K_ITEM, row = item / SIDE * EACH, column = item % SIDE * EACH;
  float sum[EACH][EACH];
#ifdef CONV
  const IDX group = batch % (IDX)p.groups;
  const IDX a_row = k, a_col = 1;
  a += group * m * k;
  b += batch * (IDX)(p.in_channels * p.in[0] * p.in[1] * p.in[2]);
#else
  const IDX a_row = (IDX)p.a_row, a_col = (IDX)p.a_col;
  IDX left = batch;
  for (int d = (int)p.batch_dims - 1; d >= 0; d--) {
    const IDX at = left % (IDX)p.batch_dim[d];
    left /= (IDX)p.batch_dim[d];
    a += at * (IDX)p.batch_a[d];
    b += at * (IDX)p.batch_b[d];
  }
#endif
  out += batch * m * n;

  for (int i = 0; i < EACH; i++) {
    for (int j = 0; j < EACH; j++) sum[i][j] = 0.0f;
  }
  for (IDX k0 = 0; k0 < k; k0 += DEPTH) {
    float part[EACH][EACH];
    for (int e = item; e < TILE * DEPTH; e += K_GROUP) {
      const IDX ai = i0 + e / DEPTH, ak = k0 + e % DEPTH;
      tile_a[e % DEPTH * TILE + e / DEPTH] = ai < m && ak < k ? a[ai * a_row + ak * a_col] : 0.0f;
      const IDX bk = k0 + e / TILE, bj = j0 + e % TILE;
#ifdef CONV
      tile_b[e] = bj < n && bk < k ? patch(&p, b, bk, bj) : 0.0f;
#else
      tile_b[e] = bj < n && bk < k ? b[bk * (IDX)p.b_row + bj * (IDX)p.b_col] : 0.0f;
#endif
    }
    BARRIER;
    for (int i = 0; i < EACH; i++) {
      for (int j = 0; j < EACH; j++) part[i][j] = 0.0f;
    }
    for (int d = 0; d < DEPTH; d++) {
      for (int i = 0; i < EACH; i++) {
        const float x = tile_a[d * TILE + row + i];
        for (int j = 0; j < EACH; j++) part[i][j] += x * tile_b[d * TILE + column + j];
      }
    }
    for (int i = 0; i < EACH; i++) {
      for (int j = 0; j < EACH; j++) sum[i][j] += part[i][j];
    }
    BARRIER;
  }

  for (int i = 0; i < EACH; i++) {
    const IDX r = i0 + row + i;
    for (int j = 0; j < EACH; j++) {
      const IDX q = j0 + column + j;
      if (r >= m || q >= n) continue;
      float v = sum[i][j];
#ifdef CONV
#ifdef HAS_C
      v += c[group * m + r];
#endif
#else
      v *= p.alpha;
#ifdef HAS_C
      v += p.beta * c[r * (IDX)p.c_row + q * (IDX)p.c_col];
#endif
#endif
      out[r * n + q] = v;
    }
  }
}

#ifdef CONV
/* For groups of few channels, where tiles would be empty: an item has one result. */
KERNEL void direct(k_conv p, GLOBAL const float *a, GLOBAL const float *b,
#ifdef HAS_C
                   GLOBAL const float *c,
#endif
                   GLOBAL float *out) {
  const IDX at = K_GLOBAL_ID;
  if (at >= (IDX)p.count) return;
  const IDX column = at % (IDX)p.n, batch = at / (IDX)p.n / (IDX)p.m;
  const IDX channel = batch % (IDX)p.groups * (IDX)p.m + at / (IDX)p.n % (IDX)p.m;
  const IDX k = (IDX)p.k;
  float sum = 0.0f;
  a += channel * k;
  b += batch * (IDX)(p.in_channels * p.in[0] * p.in[1] * p.in[2]);
  for (IDX k0 = 0; k0 < k; k0 += DEPTH) {
    const IDX end = k - k0 < DEPTH ? k : k0 + DEPTH;
    float part = 0.0f;
    for (IDX kk = k0; kk < end; kk++) part += a[kk] * patch(&p, b, kk, column);
    sum += part;
  }
#ifdef HAS_C
  sum += c[channel];
#endif
  out[at] = sum;
}
#endif
