/* GridSample, which reads an image where a grid points to, and AffineGrid, which makes such a grid. */
#include "more.h"

#include <math.h>

/* ---------------------------------------------------------------- GridSample */

enum { LINEAR, NEAREST, CUBIC };
enum { ZEROS, BORDER, REFLECTION };
enum { MODE, PADDING, CORNERS, SPATIAL = 3, PLANE = 4 };

static double reflected(double x, double least, double most) {
  const double range = most - least;
  if (range <= 0) return least;
  double d = fmod(fabs(x - least), 2 * range);
  if (d > range) d = 2 * range - d;
  return least + d;
}

/* The index of a tap; -1: it is 0. */
static int64_t tap(const more_op *m, double x, int64_t n) {
  if (m->i[PADDING] == BORDER) x = x < 0 ? 0 : x > (double)(n - 1) ? (double)(n - 1) : x;
  if (m->i[PADDING] == REFLECTION)
    x = m->i[CORNERS] ? reflected(x, 0, (double)(n - 1)) : reflected(x, -0.5, (double)n - 0.5);
  if (!(x > -1 && x < (double)n)) return -1;
  return (int64_t)x;
}

static int taps(const more_op *m, double x, int64_t n, int64_t at[4], double weight[4]) {
  const double a = -0.75, low = floor(x), t = x - low, u = 1 - t;
  if (m->i[MODE] == NEAREST) {
    at[0] = tap(m, x, n);
    weight[0] = 1;
    return 1;
  }
  if (m->i[MODE] == LINEAR) {
    at[0] = tap(m, low, n);
    at[1] = tap(m, low + 1, n);
    weight[0] = u;
    weight[1] = t;
    return 2;
  }
  for (int k = 0; k < 4; k++) at[k] = tap(m, low + k - 1, n);
  weight[0] = ((a * (t + 1) - 5 * a) * (t + 1) + 8 * a) * (t + 1) - 4 * a;
  weight[1] = ((a + 2) * t - (a + 3)) * t * t + 1;
  weight[2] = ((a + 2) * u - (a + 3)) * u * u + 1;
  weight[3] = ((a * (u + 1) - 5 * a) * (u + 1) + 8 * a) * (u + 1) - 4 * a;
  return 4;
}

/* Where a number of the grid points to along a dimension of that size. With CUBIC and BORDER each tap is moved to the border,
 * not the place: as in PyTorch and ONNX Runtime, and other than in onnx.reference. */
static double place_of(const more_op *m, double g, int64_t size) {
  const double least = m->i[CORNERS] ? 0 : -0.5, most = (double)size - (m->i[CORNERS] ? 1 : 0.5);
  double x = m->i[CORNERS] ? (g + 1) / 2 * (double)(size - 1) : ((g + 1) * (double)size - 1) / 2;
  if (!(fabs(x) < 0x1p40)) /* NaN, and what is far off */
    x = m->i[PADDING] == ZEROS ? -2 : m->i[PADDING] == BORDER && x > 0 ? (double)size : 0;
  if (m->i[MODE] == NEAREST) x = nearbyint(x);
  if ((x < least || x > most) && m->i[PADDING] == BORDER && m->i[MODE] != CUBIC)
    x = x < 0 ? 0 : x > (double)(size - 1) ? (double)(size - 1) : x;
  return (x < least || x > most) && m->i[PADDING] == REFLECTION ? reflected(x, least, most) : x;
}

static void run_grid(const more_op *m, const more_args *a, int64_t first, int64_t last) {
  const int64_t n = m->i[SPATIAL], *shape = m->in[0].shape, places = m->in[1].count / n / shape[0], channels = shape[1];
  for (int64_t u = first; u < last; u++) {
    const int64_t place = u % places, image = u / places / channels, base = u / places * m->i[PLANE];
    int64_t at[3][4] = {{0}};
    double weight[3][4] = {{1}, {1}, {1}}, sum = 0;
    int count[3] = {1, 1, 1};
    for (int64_t d = 0; d < n; d++) {
      const int64_t size = shape[2 + d];
      const double g = more_get(&m->in[1], a->in[1], (image * places + place) * n + (n - 1 - d));
      count[d] = taps(m, place_of(m, g, size), size, at[d], weight[d]);
    }
    for (int i = 0; i < count[0]; i++) {
      for (int j = 0; j < count[1]; j++) {
        for (int k = 0; k < count[2]; k++) {
          const int64_t p[3] = {at[0][i], at[1][j], at[2][k]};
          int64_t where = 0;
          for (int64_t d = 0; d < n; d++) where = where < 0 || p[d] < 0 ? -1 : where * shape[2 + d] + p[d];
          if (where >= 0)
            sum += weight[0][i] * weight[1][j] * weight[2][k] * more_get(&m->in[0], a->in[0], base + where);
        }
      }
    }
    more_put(&m->out[0], a->out[0], u, sum);
  }
}

/* Of float32 and two dimensions: a unit is a block of places of an image, whose elements and weights are found once for
 * all channels. Taps that are 0 are left out. */
enum { PLACES = 64, MOST_TAPS = 16 };

typedef struct grid_block {
  int32_t count[PLACES], at[PLACES][MOST_TAPS];
  double weight[PLACES][MOST_TAPS];
} grid_block;

static void find_place(const more_op *m, const float *g, grid_block *b, int64_t i) {
  const int64_t *shape = m->in[0].shape;
  int64_t at[2][4];
  double weight[2][4];
  const int rows = taps(m, place_of(m, (double)g[1], shape[2]), shape[2], at[0], weight[0]);
  const int columns = taps(m, place_of(m, (double)g[0], shape[3]), shape[3], at[1], weight[1]);
  int32_t n = 0;
  for (int y = 0; y < rows; y++) {
    for (int x = 0; x < columns && at[0][y] >= 0; x++) {
      if (at[1][x] < 0) continue;
      b->at[i][n] = (int32_t)(at[0][y] * shape[3] + at[1][x]);
      b->weight[i][n++] = weight[0][y] * weight[1][x];
    }
  }
  b->count[i] = n;
}

static inline double sum_of(const float *in, const int32_t *at, const double *weight, int count) {
  double sum = 0;
  for (int k = 0; k < count; k++) sum += weight[k] * (double)in[at[k]];
  return sum;
}

static void run_grid_planes(const more_op *m, const more_args *a, int64_t first, int64_t last) {
  const int64_t *shape = m->in[0].shape, channels = shape[1], plane = m->i[PLANE];
  const int64_t places = m->in[1].count / 2 / shape[0], blocks = (places + PLACES - 1) / PLACES;
  const float *grid = a->in[1];
  int64_t work = 0;
  grid_block b;
  for (int64_t u = first; u < last; u++) {
    const int64_t image = u / blocks, from = u % blocks * PLACES, n = places - from < PLACES ? places - from : PLACES;
    for (int64_t i = 0; i < n; i++) find_place(m, grid + (image * places + from + i) * 2, &b, i);
    for (int64_t c = 0; c < channels; c++) {
      const float *in = (const float *)a->in[0] + (image * channels + c) * plane;
      float *out = (float *)a->out[0] + (image * channels + c) * places + from;
      for (int64_t i = 0; i < n; i++) {
        switch (b.count[i]) { /* those that are common, unrolled */
        case 4: out[i] = (float)sum_of(in, b.at[i], b.weight[i], 4); break;
        case MOST_TAPS: out[i] = (float)sum_of(in, b.at[i], b.weight[i], MOST_TAPS); break;
        default: out[i] = (float)sum_of(in, b.at[i], b.weight[i], b.count[i]);
        }
      }
      if (more_tick(m, &work, (m->i[MODE] == CUBIC ? 24 : 8) * n)) return;
    }
  }
}

void more_setup_grid_sample(more_plan *p) {
  more_op *m = p->m;
  const more_value *x = &m->in[0], *grid = &m->in[1];
  int64_t shape[MORE_DIMS];
  const int64_t mode = p->entry->opset_last < HEDDLE__OPSET_LAST /* other names of old */
                           ? more_choice(p, "mode", "bilinear", "bilinear nearest bicubic")
                           : more_choice(p, "mode", "linear", "linear nearest cubic");
  m->i[MODE] = mode;
  m->i[PADDING] = more_choice(p, "padding_mode", "zeros", "zeros border reflection");
  m->i[CORNERS] = more_int(p, "align_corners", 0);
  more_number(p, 0);
  more_real(p, 1);
  more_rank(p, 0, 3, 5);
  if (grid->ndim != x->ndim) more_refuse(p, "its operands must have as many dimensions");
  if (!more_ok(p)) return;
  m->i[SPATIAL] = x->ndim - 2;
  m->i[PLANE] = more_count(x->shape, 2, x->ndim);
  if (grid->shape[0] != x->shape[0] || grid->shape[grid->ndim - 1] != m->i[SPATIAL] || m->i[PLANE] == 0)
    more_refuse(p, "operand 1 must be [N, places..., %lld]", (long long)m->i[SPATIAL]);
  shape[0] = x->shape[0];
  shape[1] = x->shape[1];
  for (int32_t d = 2; d < x->ndim; d++) shape[d] = grid->shape[d - 1];
  more_result(p, 0, x->type, x->ndim, shape);
  const int64_t places = more_count(shape, 2, x->ndim);
  if (x->type == REF_TYPE_F32 && grid->type == REF_TYPE_F32 && m->i[SPATIAL] == 2 && m->i[PLANE] <= INT32_MAX)
    more_loop(p, run_grid_planes, shape[0] * ((places + PLACES - 1) / PLACES),
              (double)shape[0] * (double)places * (m->i[MODE] == CUBIC ? 4 : 1) * (200 + 60 * (double)shape[1]));
  else more_work(p, run_grid, m->out[0].count, 30 * (double)m->out[0].count);
}

/* ---------------------------------------------------------------- AffineGrid */

/* Where place i of a dimension of that size lies, from -1 to 1. */
static double from_middle(const more_op *m, int64_t i, int64_t size) {
  const double at = (double)i, all = (double)size;
  return m->i[CORNERS] ? -1 + 2 * at / (all - 1) : -1 + (2 * at + 1) / all;
}

/* A unit is a row of places along the last dimension of an image. */
static void run_affine(const more_op *m, const more_args *a, int64_t first, int64_t last) {
  enum { SOME = 128 };
  const int64_t n = m->i[SPATIAL], *shape = m->out[0].shape, width = shape[n], rows = more_count(shape, 1, n);
  const bool is_float = m->in[0].type == REF_TYPE_F32;
  double x[SOME];
  int64_t work = 0;
  if (m->out[0].count == 0) return;
  for (int64_t from = 0, some; from < width; from += some) {
    some = width - from < SOME ? width - from : SOME;
    for (int64_t i = 0; i < some; i++) x[i] = from_middle(m, from + i, width);
    for (int64_t u = first; u < last; u++) {
      const int64_t to = (u * width + from) * n;
      double at[2], by[3], plus[3];
      for (int64_t d = n - 1, rest = u % rows; d-- > 0; rest /= shape[1 + d])
        at[n - 2 - d] = from_middle(m, rest % shape[1 + d], shape[1 + d]);
      for (int64_t r = 0; r < n; r++) {
        const int64_t row = (u / rows * n + r) * (n + 1);
        by[r] = more_get(&m->in[0], a->in[0], row);
        plus[r] = more_get(&m->in[0], a->in[0], row + n);
        for (int64_t c = 1; c < n; c++) plus[r] += at[c - 1] * more_get(&m->in[0], a->in[0], row + c);
      }
      float *out = (float *)a->out[0] + to;
      for (int64_t i = 0; i < some && is_float; i++)
        for (int64_t r = 0; r < n; r++) out[i * n + r] = (float)(x[i] * by[r] + plus[r]);
      for (int64_t i = 0; i < some * n && !is_float; i++)
        more_put(&m->out[0], a->out[0], to + i, x[i / n] * by[i % n] + plus[i % n]);
      if (more_tick(m, &work, 2 * some * n)) return;
    }
  }
}

void more_setup_affine_grid(more_plan *p) {
  more_op *m = p->m;
  int64_t size[5], shape[MORE_DIMS];
  const int64_t count = more_operand_ints(p, 1, size, 5), n = m->i[SPATIAL] = count - 2;
  m->i[CORNERS] = more_int(p, "align_corners", 0);
  more_real(p, 0);
  if (n < 2 || n > 3) more_refuse(p, "operand 1 must have 4 or 5 sizes");
  if (!more_ok(p)) return;
  const int64_t theta[] = {size[0], n, n + 1};
  more_shape_is(p, 0, 3, theta);
  shape[0] = size[0];
  for (int64_t d = 0; d < n; d++) shape[1 + d] = size[2 + d];
  shape[n + 1] = n;
  more_result(p, 0, m->in[0].type, (int32_t)n + 2, shape);
  more_work(p, run_affine, m->out[0].count > 0 ? m->out[0].count / n / shape[n] : 0, 2 * (double)m->out[0].count);
}
