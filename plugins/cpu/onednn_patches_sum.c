/* The sums of onednn_patches.h: patches are gathered row by row, a tap of all its channels at a time. */
#include "onednn_patches.h"

enum {
  CHANNELS = 128, /* whose weights stay near while the tiles of a block are computed */
  MOST_TAPS = 128,
  SLACK = 64, /* floats behind a plane that may be read */
  MOST_FLOATS = 1 << 24
};

/* One plane with its padding: rows, each of as many pieces, `apart` floats from one to the next, as the step along
 * it. */
typedef struct planar {
  int64_t rows, row, apart;
} planar;

static int64_t padded(const ref_window *w, int d) {
  return (w->out[d] - 1) * w->stride[d] + (w->kernel[d] - 1) * w->dilation[d] + 1;
}

static planar planar_of(const ref_window *w) {
  const int64_t apart = (padded(w, 2) + w->stride[2] - 1) / w->stride[2];
  return (planar){.rows = padded(w, 1), .row = apart * w->stride[2], .apart = apart};
}

/* One channel of the image for each of the result; what the plane needs is little. */
bool patches_is_planar(const ref_conv *c) {
  const ref_window *w = &c->window;
  const int64_t sizes[3] = {padded(w, 1), padded(w, 2), w->stride[2]};
  return c->in_channels == 1 && w->in[0] == 1 && w->out[0] == 1 && w->kernel[0] == 1 && w->out[1] > 0 &&
         w->out[2] > 0 && w->kernel[1] * w->kernel[2] <= MOST_TAPS && ref_product(sizes, 3) < MOST_FLOATS;
}
uint64_t patches_scratch(const ref_conv *c) {
  if (!patches_is_planar(c)) return sizeof(float) * PATCHES_BLOCK * PATCHES_DEPTH;
  const planar p = planar_of(&c->window);
  return sizeof(float) * (uint64_t)(p.rows * p.row + SLACK);
}

/* Positions of a block that lie side by side in a row of the result. */
typedef struct stretch {
  int64_t z, y, x, count, at;
} stretch;

static int64_t divide_up(int64_t a, int64_t b) {
  return a <= 0 ? 0 : (a + b - 1) / b;
}

static uint32_t stretches_of(const ref_window *w, int64_t from, int64_t count, stretch *out) {
  uint32_t n = 0;
  for (int64_t at = 0; at < count; n++) {
    const int64_t j = from + at, x = j % w->out[2], row = w->out[2] - x;
    const int64_t some = row < count - at ? row : count - at;
    out[n] = (stretch){j / w->out[2] / w->out[1], j / w->out[2] % w->out[1], x, some, at};
    at += some;
  }
  return n;
}

/* n elements with so many between them. */
static void copy(const patches_kernels *kernels, float *to, const float *from, int64_t stride, int64_t n) {
  enum { WIDE = 8, HALF = 4 };
  int64_t i = 0;
  if (stride == 1) {
    if (n >= WIDE) {
      for (; i + WIDE < n; i += WIDE) memcpy(to + i, from + i, WIDE * sizeof *to);
      memcpy(to + n - WIDE, from + n - WIDE, WIDE * sizeof *to);
    } else if (n >= HALF) {
      memcpy(to, from, HALF * sizeof *to);
      memcpy(to + n - HALF, from + n - HALF, HALF * sizeof *to);
    } else {
      for (; i < n; i++) to[i] = from[i];
    }
    return;
  }
  if (stride == 2) i = kernels->even(to, from, n);
  for (; i < n; i++) to[i] = from[i * stride];
}

static void clear(float *to, int64_t n) {
  for (int64_t i = 0; i < n; i++) to[i] = 0;
}

/* What a tap reads for a stretch: elements [first, last) of it lie in the image, from `offset` of a channel on. */
typedef struct piece {
  int64_t offset, first, last, count, at;
} piece;

static int64_t position(const ref_window *w, int d, int64_t at, int64_t tap) {
  return at * w->stride[d] + tap * w->dilation[d] - w->pad[d];
}

static void pieces_of(const ref_window *w, int64_t t, const stretch *list, uint32_t n, piece *out) {
  const int64_t tap[REF_SPATIAL] = {t / w->kernel[2] / w->kernel[1], t / w->kernel[2] % w->kernel[1], t % w->kernel[2]};
  const int64_t offset = position(w, 2, 0, tap[2]);
  const int64_t low = divide_up(-offset, w->stride[2]), high = divide_up(w->in[2] - offset, w->stride[2]);
  for (uint32_t i = 0; i < n; i++) {
    const stretch *s = &list[i];
    const int64_t z = position(w, 0, s->z, tap[0]), y = position(w, 1, s->y, tap[1]);
    int64_t first = low > s->x ? low - s->x : 0, last = high - s->x < s->count ? high - s->x : s->count;
    if (z < 0 || z >= w->in[0] || y < 0 || y >= w->in[1] || first >= last) first = last = s->count;
    out[i] =
        (piece){(z * w->in[1] + y) * w->in[2] + position(w, 2, s->x + first, tap[2]), first, last, s->count, s->at};
  }
}

/* Rows [from, from + depth) of all taps of all channels: a tap of all its channels at a time. */
static void fill_block(const patches_kernels *kernels, const ref_window *w, const float *in, int64_t from,
                       int64_t depth, const stretch *list, uint32_t n, int64_t count, float *block) {
  const int64_t taps = ref_product(w->kernel, REF_SPATIAL), size = ref_product(w->in, REF_SPATIAL);
  piece pieces[PATCHES_BLOCK];
  for (int64_t t = 0; t < taps; t++) {
    int64_t channel = (from - t + taps - 1) / taps;
    if (channel * taps + t >= from + depth) continue;
    pieces_of(w, t, list, n, pieces);
    for (; channel * taps + t < from + depth; channel++) {
      float *row = block + (channel * taps + t - from) * PATCHES_BLOCK;
      for (const piece *p = pieces; p < pieces + n; p++) {
        if (p->first > 0) clear(row + p->at, p->first);
        copy(kernels, row + p->at + p->first, in + channel * size + p->offset, w->stride[2], p->last - p->first);
        if (p->last < p->count) clear(row + p->at + p->last, p->count - p->last);
      }
      if (count < PATCHES_BLOCK) clear(row + count, PATCHES_BLOCK - count);
    }
  }
}

void patches_multiply(const patches_kernels *kernels, const float *a, int64_t a_row, const float *block, int64_t depth,
                      const float *bias, bool is_first, int64_t row, int64_t end, int64_t count, float *out,
                      int64_t out_row) {
  float edge[PATCHES_ROWS][PATCHES_BLOCK];
  for (int64_t j = 0, columns; j < count; j += columns) {
    const bool is_thin = count - j <= kernels->thin_columns || count - j == INT64_C(2) * kernels->thin_columns;
    const patches_tile tile = is_thin ? kernels->thin : kernels->tile;
    columns = is_thin ? kernels->thin_columns : kernels->columns;
    const int64_t width = count - j < columns ? count - j : columns;
    for (int64_t r = row; r < end; r += PATCHES_ROWS) {
      const int64_t rows = end - r < PATCHES_ROWS ? end - r : PATCHES_ROWS;
      const float *from[PATCHES_ROWS];
      float *to[PATCHES_ROWS], first[PATCHES_ROWS] = {0};
      if (width == columns && rows == PATCHES_ROWS) { /* as nearly all are */
        const float *at = a + r * a_row, *const whole[] = {at, at + a_row, at + 2 * a_row, at + 3 * a_row};
        float *into = out + r * out_row + j, *const all[] = {into, into + out_row, into + 2 * out_row,
                                                             into + 3 * out_row};
        tile(whole, block + j, depth, !is_first ? NULL : bias != NULL ? bias + r : first, all);
        continue;
      }
      for (int64_t k = 0; k < PATCHES_ROWS; k++) {
        const bool is_there = k < rows;
        from[k] = a + (is_there ? r + k : r) * a_row;
        to[k] = is_there && width == columns ? out + (r + k) * out_row + j : edge[k];
        if (is_there && bias != NULL) first[k] = bias[r + k];
        if (to[k] != edge[k] || is_first) continue;
        clear(edge[k], columns);
        if (is_there) copy(kernels, edge[k], out + (r + k) * out_row + j, 1, width);
      }
      tile(from, block + j, depth, is_first ? first : NULL, to);
      for (int64_t k = 0; k < rows && width < columns; k++)
        copy(kernels, out + (r + k) * out_row + j, edge[k], 1, width);
    }
  }
}

void patches_sum(const patches_kernels *kernels, const ref_conv *c, const float *in, const float *weights,
                 const float *bias, int64_t at, int64_t count, int64_t begin, int64_t end, float *out, float *block) {
  const ref_window *w = &c->window;
  const int64_t positions = ref_product(w->out, REF_SPATIAL);
  const int64_t depth = c->in_channels * ref_product(w->kernel, REF_SPATIAL);
  stretch list[PATCHES_BLOCK];
  const uint32_t n = stretches_of(w, at, count, list);
  for (int64_t k = 0; k < depth; k += PATCHES_DEPTH) {
    const int64_t some = depth - k < PATCHES_DEPTH ? depth - k : PATCHES_DEPTH;
    fill_block(kernels, w, in, k, some, list, n, count, block);
    for (int64_t row = begin; row < end; row += CHANNELS)
      patches_multiply(kernels, weights + k, depth, block, some, bias, k == 0, row,
                       row + CHANNELS < end ? row + CHANNELS : end, count, out + at, positions);
  }
}

/* The plane's rows, each with its padding and parted by the step along it: what a tap reads of it lies side by side. */
static void fill_plane(const patches_kernels *kernels, const ref_window *w, const planar *p, const float *in,
                       float *to) {
  const int64_t step = w->stride[2];
  clear(to, p->rows * p->row + SLACK);
  for (int64_t y = 0; y < w->in[1] && y + w->pad[1] < p->rows; y++, in += w->in[2]) {
    float *row = to + (y + w->pad[1]) * p->row;
    for (int64_t phase = 0; phase < step; phase++) {
      const int64_t first = divide_up(w->pad[2] - phase, step), x = first * step + phase - w->pad[2];
      const int64_t there = divide_up(w->in[2] - x, step), room = p->apart - first;
      copy(kernels, row + phase * p->apart + first, in + x, step, there < room ? there : room);
    }
  }
}

void patches_one_plane(const patches_kernels *kernels, const ref_conv *c, const float *in, const float *weights,
                       float bias, float *out, float *scratch) {
  const ref_window *w = &c->window;
  const int64_t taps = w->kernel[1] * w->kernel[2];
  const planar p = planar_of(w);
  const int64_t columns = kernels->thin_columns;
  int64_t offset[MOST_TAPS];
  float edge[PATCHES_ROWS][PATCHES_BLOCK];
  for (int64_t t = 0; t < taps; t++) {
    const int64_t x = t % w->kernel[2] * w->dilation[2];
    offset[t] = t / w->kernel[2] * w->dilation[1] * p.row + x % w->stride[2] * p.apart + x / w->stride[2];
  }
  fill_plane(kernels, w, &p, in, scratch);
  for (int64_t y = 0; y < w->out[1]; y += PATCHES_ROWS)
    for (int64_t x = 0; x < w->out[2]; x += columns) {
      const int64_t width = w->out[2] - x < columns ? w->out[2] - x : columns;
      const int64_t lines = w->out[1] - y < PATCHES_ROWS ? w->out[1] - y : PATCHES_ROWS;
      const int64_t apart = lines < PATCHES_ROWS ? 0 : w->stride[1] * p.row;
      for (int64_t first = 0; first < lines; first += apart == 0 ? 1 : PATCHES_ROWS) { /* the last lines one by one */
        float *to[PATCHES_ROWS];
        for (int64_t k = 0; k < PATCHES_ROWS; k++)
          to[k] = width == columns && (apart != 0 || k == 0) ? out + (y + first + k) * w->out[2] + x : edge[k];
        kernels->plane(scratch + (y + first) * w->stride[1] * p.row + x, apart, offset, weights, taps, bias, to);
        for (int64_t k = 0; k < (apart == 0 ? 1 : PATCHES_ROWS) && width < columns; k++)
          copy(kernels, out + (y + first + k) * w->out[2] + x, edge[k], 1, width);
      }
    }
}
