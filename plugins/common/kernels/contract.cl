/* Matrix products in tiles of TILE x TILE results, DEPTH products at a time through local memory; an item has EACH x
 * EACH results, 4 or with EACH_8 8. Options: RUNS where items run one after the other, on host cores: an item loads
 * neighbours, where on a GPU neighbouring items do; HAS_C adds a third operand. A_DOWN: neighbours in memory are in a
 * column of A; B_DOWN: in a column of B. CONV gathers B from the patches of an input instead of reading a matrix;
 * TRANSPOSED with it: those of a ConvTranspose. Products of one step are summed apart, so that rounding errors grow with
 * k / DEPTH and not with k. */
#ifdef EACH_8
#define EACH 8
#else
#define EACH 4
#endif
#define DEPTH 16
#define SIDE 8 /* items of a group along each side of a tile */
#define TILE (SIDE * EACH)
#define PITCH (TILE + 4) /* keeps the columns of a tile in different banks of local memory */
#define LOAD (TILE * DEPTH / K_GROUP) /* elements of a tile that an item loads */
#define SHARES (TILE / LOAD)          /* items that load a row of DEPTH */

/* Where result i of an item lies along a side of the tile, of the items one after the other or in fours. */
#ifdef RUNS
#define AT(item, i) ((item) * EACH + (i))
#else
#define AT(item, i) ((i) / 4 * (SIDE * 4) + (item) * 4 + (i) % 4)
#endif

#ifdef CONV
#define PARAMS k_conv
#else
#define PARAMS k_matmul
#endif

/* to[d][l] of a tile: element (first + l, k0 + d) of a matrix of lines x k, zero outside. Here neighbours in memory are
 * those along k ... */
DEVICE void load_along(LOCAL float *to, GLOBAL const float *from, IDX first, IDX lines, IDX line_step, IDX k0, IDX k) {
#ifdef RUNS
  const int l = K_ITEM % TILE, d0 = K_ITEM / TILE * LOAD;
  GLOBAL const float *x = from + (first + l) * line_step + k0 + d0;
  if (first + l < lines && k0 + d0 + LOAD <= k) {
    UNROLL for (int i = 0; i < LOAD; i++) to[(d0 + i) * PITCH + l] = x[i];
  } else {
    for (int i = 0; i < LOAD; i++) to[(d0 + i) * PITCH + l] = first + l < lines && k0 + d0 + i < k ? x[i] : 0.0f;
  }
#else
  const int d = K_ITEM % DEPTH;
  UNROLL for (int i = 0; i < LOAD; i++) {
    const int l = K_ITEM / DEPTH + i * (K_GROUP / DEPTH);
    to[d * PITCH + l] = first + l < lines && k0 + d < k ? from[(first + l) * line_step + k0 + d] : 0.0f;
  }
#endif
}

/* ... and here those along the lines. */
DEVICE void load_across(LOCAL float *to, GLOBAL const float *from, IDX first, IDX lines, IDX k0, IDX k, IDX k_step) {
#ifdef RUNS
  const int d = K_ITEM / SHARES, l0 = K_ITEM % SHARES * LOAD;
  GLOBAL const float *x = from + (k0 + d) * k_step + first + l0;
  if (k0 + d < k && first + l0 + LOAD <= lines) {
    UNROLL for (int i = 0; i < LOAD; i++) to[d * PITCH + l0 + i] = x[i];
  } else {
    for (int i = 0; i < LOAD; i++) to[d * PITCH + l0 + i] = first + l0 + i < lines && k0 + d < k ? x[i] : 0.0f;
  }
#else
  const int l = K_ITEM % TILE;
  UNROLL for (int i = 0; i < LOAD; i++) {
    const int d = K_ITEM / TILE + i * (K_GROUP / TILE);
    to[d * PITCH + l] = first + l < lines && k0 + d < k ? from[(k0 + d) * k_step + first + l] : 0.0f;
  }
#endif
}

#ifdef CONV
/* Row kk of B: a tap of a channel, as offsets of the input from a position of the output. */
typedef struct k_tap {
  IDX channel, at[K_SPATIAL];
} k_tap;

DEVICE k_tap tap_of(const k_conv *p, IDX kk) {
  k_tap t;
  IDX left = kk;
  UNROLL for (int d = K_SPATIAL - 1; d >= 0; d--) {
    t.at[d] = left % (IDX)p->window[d];
    left /= (IDX)p->window[d];
  }
  t.channel = left;
  return t;
}

DEVICE void tap_next(const k_conv *p, k_tap *t) {
  if (++t->at[2] < (IDX)p->window[2]) return;
  t->at[2] = 0;
  if (++t->at[1] < (IDX)p->window[1]) return;
  t->at[1] = 0;
  if (++t->at[0] < (IDX)p->window[0]) return;
  t->at[0] = 0;
  t->channel++;
}

/* Where along dimension d of the input a position of the output meets a tap; -1: nowhere. */
DEVICE IDX meets(const k_conv *p, int d, IDX position, IDX tap) {
#ifdef TRANSPOSED
  const IDX x = position + (IDX)p->pad[d] - tap * (IDX)p->dilation[d], stride = (IDX)p->stride[d];
  if (x < 0 || x % stride != 0 || x / stride >= (IDX)p->in[d]) return -1;
  return x / stride;
#else
  const IDX x = position * (IDX)p->stride[d] + tap * (IDX)p->dilation[d] - (IDX)p->pad[d];
  return x < (IDX)p->in[d] ? x : -1; /* below 0 is nowhere too */
#endif
}

/* Element of the input at a line of it and a place in the line; zero outside. */
DEVICE float element(const k_conv *p, GLOBAL const float *in, const k_tap *t, const IDX *position) {
  const IDX z = meets(p, 0, position[0], t->at[0]), y = meets(p, 1, position[1], t->at[1]);
  const IDX x = meets(p, 2, position[2], t->at[2]);
  if (z < 0 || y < 0 || x < 0) return 0.0f;
  return in[((t->channel * (IDX)p->in[0] + z) * (IDX)p->in[1] + y) * (IDX)p->in[2] + x];
}

DEVICE void position_of(const k_conv *p, IDX column, IDX *position) {
  position[2] = column % (IDX)p->out[2];
  column /= (IDX)p->out[2];
  position[1] = column % (IDX)p->out[1];
  position[0] = column / (IDX)p->out[1];
}

DEVICE void load_patches(const k_conv *p, LOCAL float *to, GLOBAL const float *in, IDX first, IDX k0) {
  IDX position[K_SPATIAL];
#ifdef RUNS
  const int d = K_ITEM / SHARES, l0 = K_ITEM % SHARES * LOAD;
  const IDX end = (IDX)p->n - first - l0;
  const int some = k0 + d >= (IDX)p->k || end <= 0 ? 0 : end < LOAD ? (int)end : LOAD;
  to += d * PITCH + l0;
  for (int i = some; i < LOAD; i++) to[i] = 0.0f;
  if (some == 0) return;
  const k_tap t = tap_of(p, k0 + d);
  position_of(p, first + l0, position);
  for (int i = 0; i < some;) { /* by stretches of a line */
    const IDX left = (IDX)p->out[2] - position[2];
    const int run = left < some - i ? (int)left : some - i;
    const IDX z = meets(p, 0, position[0], t.at[0]), y = meets(p, 1, position[1], t.at[1]);
    if (z < 0 || y < 0) {
      for (int j = 0; j < run; j++) to[i + j] = 0.0f;
    } else {
      GLOBAL const float *line = in + ((t.channel * (IDX)p->in[0] + z) * (IDX)p->in[1] + y) * (IDX)p->in[2];
#ifndef TRANSPOSED
      const IDX x0 = position[2] * (IDX)p->stride[2] + t.at[2] * (IDX)p->dilation[2] - (IDX)p->pad[2];
      if (p->stride[2] == 1 && x0 >= 0 && x0 + run <= (IDX)p->in[2]) {
        for (int j = 0; j < run; j++) to[i + j] = line[x0 + j];
      } else
#endif
        for (int j = 0; j < run; j++) {
          const IDX x = meets(p, 2, position[2] + j, t.at[2]);
          to[i + j] = x >= 0 ? line[x] : 0.0f;
        }
    }
    i += run;
    position[2] = 0;
    if (++position[1] == (IDX)p->out[1]) position[1] = 0, position[0]++;
  }
#else
  const IDX l = K_ITEM % TILE;
  k_tap t = tap_of(p, k0 + K_ITEM / TILE);
  position_of(p, first + l, position);
  for (int i = 0; i < LOAD; i++) {
    const int d = K_ITEM / TILE + i * (K_GROUP / TILE);
    to[d * PITCH + l] = first + l < (IDX)p->n && k0 + d < (IDX)p->k ? element(p, in, &t, position) : 0.0f;
    for (int next = 0; next < K_GROUP / TILE; next++) tap_next(p, &t);
  }
#endif
}

#ifdef TRANSPOSED
/* The weights have the channels of the result inside those of the input. */
DEVICE IDX weight_at(const k_conv *p, IDX row, IDX kk) {
  return (kk / (IDX)p->taps * (IDX)p->m + row) * (IDX)p->taps + kk % (IDX)p->taps;
}

DEVICE void load_weights(const k_conv *p, LOCAL float *to, GLOBAL const float *from, IDX first, IDX k0) {
  const int l = K_ITEM % TILE;
  for (int i = 0; i < LOAD; i++) {
    const int d = K_ITEM / TILE + i * (K_GROUP / TILE);
    to[d * PITCH + l] =
        first + l < (IDX)p->m && k0 + d < (IDX)p->k ? from[weight_at(p, first + l, k0 + d)] : 0.0f;
  }
}
#endif
#endif

#ifndef CONV
/* Moves A and B to those of a batch. */
DEVICE void enter_batch(const k_matmul *p, IDX batch, GLOBAL const float **a, GLOBAL const float **b) {
  for (int d = (int)p->batch_dims - 1; d >= 0; d--) {
    const IDX at = batch % (IDX)p->batch_dim[d];
    batch /= (IDX)p->batch_dim[d];
    *a += at * (IDX)p->batch_a[d];
    *b += at * (IDX)p->batch_b[d];
  }
}
#endif

#ifdef HAS_C
#define FINISH(v, r, q) (p.alpha * (v) + p.beta * c[(r) * (IDX)p.c_row + (q) * (IDX)p.c_col])
#else
#define FINISH(v, r, q) (p.alpha * (v))
#endif

#ifdef K_contract
KERNEL void contract(PARAMS p, GLOBAL const float *a, GLOBAL const float *b,
#ifdef HAS_C
                     GLOBAL const float *c,
#endif
                     GLOBAL float *out) {
  LOCAL_ARRAY(float, tile_a, DEPTH * PITCH);
  LOCAL_ARRAY(float, tile_b, DEPTH * PITCH);
  const IDX tile = K_GROUP_ID, m = (IDX)p.m, n = (IDX)p.n, k = (IDX)p.k;
  const IDX across = (IDX)p.tiles_n, down = (IDX)p.tiles_m;
  const IDX j0 = tile % across * TILE, i0 = tile / across % down * TILE, batch = tile / across / down;
  const int row = K_ITEM / SIDE, column = K_ITEM % SIDE;
  float sum[EACH][EACH];
#ifdef CONV
  const IDX group = batch % (IDX)p.groups;
  a += group * m * k;
  b += batch * (IDX)(p.in_channels * p.in[0] * p.in[1] * p.in[2]);
#else
  enter_batch(&p, batch, &a, &b);
#endif
  out += batch * m * n;

  UNROLL for (int i = 0; i < EACH; i++) {
    UNROLL for (int j = 0; j < EACH; j++) sum[i][j] = 0.0f;
  }
  for (IDX k0 = 0; k0 < k; k0 += DEPTH) {
    float part[EACH][EACH];
#ifdef TRANSPOSED
    load_weights(&p, tile_a, a, i0, k0);
#elif defined(CONV)
    load_along(tile_a, a, i0, m, k, k0, k);
#elif defined(A_DOWN)
    load_across(tile_a, a, i0, m, k0, k, (IDX)p.a_col);
#else
    load_along(tile_a, a, i0, m, (IDX)p.a_row, k0, k);
#endif
#ifdef CONV
    load_patches(&p, tile_b, b, j0, k0);
#elif defined(B_DOWN)
    load_along(tile_b, b, j0, n, (IDX)p.b_col, k0, k);
#else
    load_across(tile_b, b, j0, n, k0, k, (IDX)p.b_row);
#endif
    BARRIER;
    UNROLL for (int i = 0; i < EACH; i++) {
      UNROLL for (int j = 0; j < EACH; j++) part[i][j] = 0.0f;
    }
    for (int d = 0; d < DEPTH; d++) {
      float y[EACH];
      UNROLL for (int j = 0; j < EACH; j++) y[j] = tile_b[d * PITCH + AT(column, j)];
      UNROLL for (int i = 0; i < EACH; i++) {
        const float x = tile_a[d * PITCH + AT(row, i)];
        UNROLL for (int j = 0; j < EACH; j++) part[i][j] += x * y[j];
      }
    }
    UNROLL for (int i = 0; i < EACH; i++) {
      UNROLL for (int j = 0; j < EACH; j++) sum[i][j] += part[i][j];
    }
    BARRIER;
  }

  UNROLL for (int i = 0; i < EACH; i++) {
    const IDX r = i0 + AT(row, i);
    UNROLL for (int j = 0; j < EACH; j++) {
      const IDX q = j0 + AT(column, j);
      if (r < m && q < n) {
#ifndef CONV
        out[r * n + q] = FINISH(sum[i][j], r, q);
#elif defined(HAS_C)
        out[r * n + q] = sum[i][j] + c[group * m + r];
#else
        out[r * n + q] = sum[i][j];
#endif
      }
    }
  }
}
#endif

#ifndef CONV
#ifdef RUNS
#define COLUMNS 16
#else
#define COLUMNS 1
#endif

#ifdef HAS_C
#ifdef K_spread
/* C over the whole result, for a library that adds the product to it. */
KERNEL void spread(k_matmul p, GLOBAL const float *c, GLOBAL float *out) {
  const IDX at = K_GLOBAL_ID, n = (IDX)p.n, r = at / n % (IDX)p.m;
  if (at < (IDX)p.count) out[at] = c[r * (IDX)p.c_row + at % n * (IDX)p.c_col];
}
#endif
#endif

#ifdef K_thin
/* One row, m 1: an item has COLUMNS results, tiles_n groups a batch. */
KERNEL void thin(k_matmul p, GLOBAL const float *a, GLOBAL const float *b,
#ifdef HAS_C
                 GLOBAL const float *c,
#endif
                 GLOBAL float *out) {
  const IDX batch = K_GROUP_ID / (IDX)p.tiles_n, n = (IDX)p.n, k = (IDX)p.k;
  const IDX first = K_GROUP_ID % (IDX)p.tiles_n * (K_GROUP * COLUMNS) + K_ITEM * COLUMNS;
  const IDX some = first + COLUMNS <= n ? COLUMNS : n - first, b_row = (IDX)p.b_row;
  float sum[COLUMNS];
  enter_batch(&p, batch, &a, &b);
  for (int j = 0; j < COLUMNS; j++) sum[j] = 0.0f;
  for (IDX k0 = 0; k0 < k && some > 0; k0 += DEPTH) {
    const IDX end = k - k0 < DEPTH ? k : k0 + DEPTH;
    float part[COLUMNS];
    UNROLL for (int j = 0; j < COLUMNS; j++) part[j] = 0.0f;
    for (IDX kk = k0; kk < end; kk++) {
      const float x = a[kk * (IDX)p.a_col];
      GLOBAL const float *line = b + kk * b_row + first;
      if (some == COLUMNS) {
        UNROLL for (int j = 0; j < COLUMNS; j++) part[j] += x * line[j];
      } else {
        for (int j = 0; j < some; j++) part[j] += x * line[j];
      }
    }
    UNROLL for (int j = 0; j < COLUMNS; j++) sum[j] += part[j];
  }
  for (int j = 0; j < some; j++) out[batch * n + first + j] = FINISH(sum[j], 0, first + j);
}
#endif

#ifdef K_thin_down
/* One row and B_DOWN: a group has a result. */
KERNEL void thin_down(k_matmul p, GLOBAL const float *a, GLOBAL const float *b,
#ifdef HAS_C
                      GLOBAL const float *c,
#endif
                      GLOBAL float *out) {
  LOCAL_ARRAY(float, room, K_GROUP);
  const IDX n = (IDX)p.n, k = (IDX)p.k, batch = K_GROUP_ID / n, j = K_GROUP_ID % n;
  float sum = 0.0f;
  enter_batch(&p, batch, &a, &b);
  b += j * (IDX)p.b_col;
  for (IDX kk = K_ITEM; kk < k;) {
    float part = 0.0f;
    for (int d = 0; d < DEPTH && kk < k; d++, kk += K_GROUP) part += a[kk * (IDX)p.a_col] * b[kk];
    sum += part;
  }
  sum = k_group_sum(room, sum);
  if (K_ITEM == 0) out[batch * n + j] = FINISH(sum, 0, j);
}
#endif
#endif

#ifdef CONV
/* The kernel direct is for groups of few channels, where tiles would be empty. An item has SPAN neighbours of a line of
 * the output, tiles_n of which make a line; plane by plane, by lines. */
#ifdef RUNS
#define SPAN 16
#else
#define SPAN 1
#endif

/* Adds one row of weights times a line of the input, or of its padding, to some results from position x0 on. */
DEVICE void add_line(const k_conv *p, GLOBAL const float *line, GLOBAL const float *weights, IDX x0, int some,
                     float *part) {
  const IDX w2 = (IDX)p->window[2];
  for (IDX kx = 0; kx < w2; kx++) {
    const float weight = weights[kx];
#if defined(RUNS) && !defined(TRANSPOSED)
    const IDX from = x0 + kx * (IDX)p->dilation[2] - (IDX)p->pad[2];
    if (p->stride[2] == 1) {
      const int first = from < 0 ? (-from < some ? (int)-from : some) : 0;
      const int last = from + some > (IDX)p->in[2] ? (int)((IDX)p->in[2] - from) : some;
      for (int j = first; j < last; j++) part[j] += weight * line[from + j];
      continue;
    }
#endif
    for (int j = 0; j < some; j++) {
      const IDX x = meets(p, 2, x0 + j, kx);
      if (x >= 0) part[j] += weight * line[x];
    }
  }
}

#ifdef K_direct
KERNEL void direct(k_conv p, GLOBAL const float *a, GLOBAL const float *b,
#ifdef HAS_C
                   GLOBAL const float *c,
#endif
                   GLOBAL float *out) {
  const IDX at = K_GLOBAL_ID, spans = (IDX)p.tiles_n, lines = (IDX)(p.out[0] * p.out[1]), width = (IDX)p.out[2];
  if (at >= (IDX)p.count) return;
  const IDX x0 = at % spans * SPAN, line = at / spans % lines, plane = at / spans / lines;
  const IDX batch = plane / (IDX)p.m, row = plane % (IDX)p.m, group = batch % (IDX)p.groups;
  const IDX oz = line / (IDX)p.out[1], oy = line % (IDX)p.out[1], w1 = (IDX)p.window[1], w2 = (IDX)p.window[2];
  const IDX size = (IDX)(p.in[0] * p.in[1] * p.in[2]);
  const int some = width - x0 < SPAN ? (int)(width - x0) : SPAN;
  k_total sum[SPAN];
  for (int j = 0; j < SPAN; j++) sum[j].sum = sum[j].rest = 0.0f;
#ifdef TRANSPOSED
  const IDX next = (IDX)(p.m * p.taps);
  a += group * (IDX)(p.m * p.k) + row * (IDX)p.taps;
#else
  const IDX next = (IDX)p.taps;
  a += (group * (IDX)p.m + row) * (IDX)p.k;
#endif
  b += batch * (IDX)p.in_channels * size;
  for (IDX channel = 0; channel < (IDX)p.in_channels; channel++) {
    float part[SPAN];
    for (int j = 0; j < SPAN; j++) part[j] = 0.0f;
    for (IDX kz = 0; kz < (IDX)p.window[0]; kz++) {
      const IDX z = meets(&p, 0, oz, kz);
      for (IDX ky = 0; ky < w1 && z >= 0; ky++) {
        const IDX y = meets(&p, 1, oy, ky);
        if (y < 0) continue;
        add_line(&p, b + (z * (IDX)p.in[1] + y) * (IDX)p.in[2], a + (kz * w1 + ky) * w2, x0, some, part);
      }
    }
    for (int j = 0; j < some; j++) k_total_add(&sum[j], part[j]);
    a += next;
    b += size;
  }
  out += (plane * lines + line) * width + x0;
  for (int j = 0; j < some; j++) {
#ifdef HAS_C
    out[j] = k_total_value(&sum[j]) + c[group * (IDX)p.m + row];
#else
    out[j] = k_total_value(&sum[j]);
#endif
  }
}
#endif
#endif
