/* Operators on images and boxes: GridSample, AffineGrid, RoiAlign, NonMaxSuppression. */
#include "more.h"

#include <math.h>
#include <stdlib.h>

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

/* Of float32 and two dimensions, linear or nearest: a unit is a block of places of an image, whose elements and weights
 * are found once for all channels. */
enum { PLACES = 64, CORNERS_OF = 4 };

typedef struct grid_block {
  int64_t at[CORNERS_OF][PLACES]; /* -1: it is 0 */
  double weight[CORNERS_OF][PLACES];
} grid_block;

static void run_grid_planes(const more_op *m, const more_args *a, int64_t first, int64_t last) {
  const int64_t *shape = m->in[0].shape, channels = shape[1], plane = m->i[PLANE];
  const int64_t places = m->in[1].count / 2 / shape[0], blocks = (places + PLACES - 1) / PLACES;
  const float *grid = a->in[1];
  int64_t work = 0;
  grid_block b;
  for (int64_t u = first; u < last; u++) {
    const int64_t image = u / blocks, from = u % blocks * PLACES, n = places - from < PLACES ? places - from : PLACES;
    int corners = 1;
    for (int64_t i = 0; i < n; i++) {
      int64_t at[2][4];
      double weight[2][4];
      const float *g = grid + (image * places + from + i) * 2;
      const int rows = taps(m, place_of(m, (double)g[1], shape[2]), shape[2], at[0], weight[0]);
      const int columns = taps(m, place_of(m, (double)g[0], shape[3]), shape[3], at[1], weight[1]);
      corners = rows * columns;
      for (int k = 0; k < corners; k++) {
        const int64_t y = at[0][k / columns], x = at[1][k % columns];
        b.at[k][i] = y < 0 || x < 0 ? -1 : y * shape[3] + x;
        b.weight[k][i] = weight[0][k / columns] * weight[1][k % columns];
      }
    }
    for (int64_t c = 0; c < channels; c++) {
      const float *in = (const float *)a->in[0] + (image * channels + c) * plane;
      float *out = (float *)a->out[0] + (image * channels + c) * places + from;
      for (int64_t i = 0; i < n; i++) {
        double sum = 0;
        for (int k = 0; k < corners; k++)
          if (b.at[k][i] >= 0) sum += b.weight[k][i] * (double)in[b.at[k][i]];
        out[i] = (float)sum;
      }
      if (more_tick(m, &work, 8 * n)) return;
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
  if (x->type == REF_TYPE_F32 && grid->type == REF_TYPE_F32 && m->i[SPATIAL] == 2 && m->i[MODE] != CUBIC)
    more_loop(p, run_grid_planes, shape[0] * ((places + PLACES - 1) / PLACES),
              (double)shape[0] * (double)places * (200 + 60 * (double)shape[1]));
  else more_work(p, run_grid, m->out[0].count, 30 * (double)m->out[0].count);
}

/* ---------------------------------------------------------------- AffineGrid */

static void run_affine(const more_op *m, const more_args *a, int64_t first, int64_t last) {
  const int64_t n = m->i[SPATIAL], *shape = m->out[0].shape, places = more_count(shape, 1, n + 1);
  for (int64_t u = first; u < last; u++) { /* a place of an image */
    double at[4] = {0};
    int64_t rest = u % places;
    for (int64_t d = n; d-- > 0; rest /= shape[1 + d]) {
      const double i = (double)(rest % shape[1 + d]), size = (double)shape[1 + d];
      at[n - 1 - d] = m->i[CORNERS] ? -1 + 2 * i / (size - 1) : -1 + (2 * i + 1) / size;
    }
    at[n] = 1;
    for (int64_t r = 0; r < n; r++) {
      double sum = 0;
      for (int64_t c = 0; c <= n; c++) sum += at[c] * more_get(&m->in[0], a->in[0], (u / places * n + r) * (n + 1) + c);
      more_put(&m->out[0], a->out[0], u * n + r, sum);
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
  more_work(p, run_affine, m->out[0].count / n, 20 * (double)m->out[0].count);
}

/* ---------------------------------------------------------------- RoiAlign */

enum { HEIGHT, WIDTH, RATIO, MAXIMA, HALF_PIXEL };

/* NaN wins, and stays. */
static double larger(double x, double y) {
  if (y != y) return y;
  return y > x ? y : x;
}

/* Four weighted elements round (y, x); maxima: the greatest of them. */
static double around(const more_op *m, const void *in, int64_t base, double y, double x) {
  const int64_t rows = m->in[0].shape[2], cols = m->in[0].shape[3];
  if (!(y >= -1 && y <= (double)rows && x >= -1 && x <= (double)cols)) return 0;
  y = y < 0 ? 0 : y > (double)(rows - 1) ? (double)(rows - 1) : y;
  x = x < 0 ? 0 : x > (double)(cols - 1) ? (double)(cols - 1) : x;
  const int64_t top = (int64_t)y, left = (int64_t)x;
  const int64_t down = top + 1 < rows ? top + 1 : top, right = left + 1 < cols ? left + 1 : left;
  const double v = y - (double)top, h = x - (double)left;
  const double part[4] = {(1 - v) * (1 - h) * more_get(&m->in[0], in, base + top * cols + left),
                          (1 - v) * h * more_get(&m->in[0], in, base + top * cols + right),
                          v * (1 - h) * more_get(&m->in[0], in, base + down * cols + left),
                          v * h * more_get(&m->in[0], in, base + down * cols + right)};
  if (!m->i[MAXIMA]) return part[0] + part[1] + part[2] + part[3];
  double most = part[0];
  for (int k = 1; k < 4; k++) most = larger(most, part[k]);
  return most;
}

static int64_t samples(const more_op *m, double bin) {
  if (m->i[RATIO] > 0) return m->i[RATIO];
  return bin > 0 ? (bin < 4096 ? (int64_t)ceil(bin) : 4096) : 0;
}

static void run_roi(const more_op *m, const more_args *a, int64_t first, int64_t last) {
  const int64_t channels = m->in[0].shape[1], plane = m->in[0].shape[2] * m->in[0].shape[3],
                bins = m->i[HEIGHT] * m->i[WIDTH];
  int64_t work = 0;
  for (int64_t u = first; u < last; u++) {
    const int64_t roi = u / bins / channels, c = u / bins % channels, ph = u % bins / m->i[WIDTH], pw = u % m->i[WIDTH];
    const int64_t image = more_get_int(&m->in[2], a->in[2], roi);
    double edge[4], sum = 0;
    for (int k = 0; k < 4; k++)
      edge[k] = more_get(&m->in[1], a->in[1], roi * 4 + k) * m->f[0] - (m->i[HALF_PIXEL] ? 0.5 : 0);
    double width = edge[2] - edge[0], height = edge[3] - edge[1];
    if (!m->i[HALF_PIXEL]) width = fmax(width, 1), height = fmax(height, 1);
    height /= (double)m->i[HEIGHT];
    width /= (double)m->i[WIDTH];
    const int64_t ny = samples(m, height), nx = samples(m, width);
    for (int64_t i = 0; i < ny * nx && image >= 0 && image < m->in[0].shape[0]; i++) {
      if (more_tick(m, &work, 32)) return;
      const double y = edge[1] + ((double)ph + ((double)(i / nx) + 0.5) / (double)ny) * height;
      const double x = edge[0] + ((double)pw + ((double)(i % nx) + 0.5) / (double)nx) * width;
      const double v = around(m, a->in[0], (image * channels + c) * plane, y, x);
      sum = !m->i[MAXIMA] ? sum + v : i == 0 ? v : larger(sum, v);
    }
    more_put(&m->out[0], a->out[0], u, m->i[MAXIMA] || ny * nx < 1 ? sum : sum / (double)(ny * nx));
  }
}

/* Of float32, with as many samples a bin as a table takes: where each sample of a row of bins lies, and its weights, are
 * found once for all channels. A unit is such a row of a box. */
enum { ROI_SAMPLES = 256 };

typedef struct roi_sample {
  int32_t at[4];
  float weight[4];
} roi_sample;

/* What `around` is made of. */
static void find_sample(const more_op *m, double y, double x, roi_sample *out) {
  const int64_t rows = m->in[0].shape[2], cols = m->in[0].shape[3];
  *out = (roi_sample){.at = {-1}};
  if (!(y >= -1 && y <= (double)rows && x >= -1 && x <= (double)cols)) return;
  y = y < 0 ? 0 : y > (double)(rows - 1) ? (double)(rows - 1) : y;
  x = x < 0 ? 0 : x > (double)(cols - 1) ? (double)(cols - 1) : x;
  const int64_t top = (int64_t)y, left = (int64_t)x;
  const int64_t down = top + 1 < rows ? top + 1 : top, right = left + 1 < cols ? left + 1 : left;
  const double v = y - (double)top, h = x - (double)left;
  const int64_t at[4] = {top * cols + left, top * cols + right, down * cols + left, down * cols + right};
  const double weight[4] = {(1 - v) * (1 - h), (1 - v) * h, v * (1 - h), v * h};
  for (int k = 0; k < 4; k++) {
    out->at[k] = (int32_t)at[k];
    out->weight[k] = (float)weight[k];
  }
}

static double sampled(const roi_sample *s, const float *plane, bool maxima) {
  double part[4];
  if (s->at[0] < 0) return 0;
  for (int k = 0; k < 4; k++) part[k] = (double)s->weight[k] * (double)plane[s->at[k]];
  if (!maxima) return part[0] + part[1] + part[2] + part[3];
  return larger(larger(larger(part[0], part[1]), part[2]), part[3]);
}

static void run_roi_rows(const more_op *m, const more_args *a, int64_t first, int64_t last) {
  const int64_t channels = m->in[0].shape[1], plane = m->in[0].shape[2] * m->in[0].shape[3];
  const int64_t bins_y = m->i[HEIGHT], bins_x = m->i[WIDTH], n = m->i[RATIO], some = n * n;
  const bool maxima = m->i[MAXIMA] != 0;
  roi_sample samples_of[ROI_SAMPLES];
  int64_t work = 0;
  for (int64_t u = first; u < last; u++) {
    const int64_t roi = u / bins_y, ph = u % bins_y, image = more_get_int(&m->in[2], a->in[2], roi);
    const bool inside = image >= 0 && image < m->in[0].shape[0];
    double edge[4];
    for (int k = 0; k < 4; k++)
      edge[k] = more_get(&m->in[1], a->in[1], roi * 4 + k) * m->f[0] - (m->i[HALF_PIXEL] ? 0.5 : 0);
    double width = edge[2] - edge[0], height = edge[3] - edge[1];
    if (!m->i[HALF_PIXEL]) width = fmax(width, 1), height = fmax(height, 1);
    height /= (double)bins_y;
    width /= (double)bins_x;
    for (int64_t i = 0; i < bins_x * some; i++) {
      const int64_t pw = i / some, iy = i % some / n, ix = i % n;
      find_sample(m, edge[1] + ((double)ph + ((double)iy + 0.5) / (double)n) * height,
                  edge[0] + ((double)pw + ((double)ix + 0.5) / (double)n) * width, &samples_of[i]);
    }
    for (int64_t c = 0; c < channels; c++) {
      const float *in = inside ? (const float *)a->in[0] + (image * channels + c) * plane : NULL;
      float *out = (float *)a->out[0] + ((roi * channels + c) * bins_y + ph) * bins_x;
      for (int64_t pw = 0; pw < bins_x; pw++) {
        double sum = 0;
        for (int64_t i = pw * some; inside && i < (pw + 1) * some; i++) {
          const double v = sampled(&samples_of[i], in, maxima);
          sum = !maxima ? sum + v : i == pw * some ? v : larger(sum, v);
        }
        out[pw] = (float)(maxima ? sum : sum / (double)some);
      }
      if (more_tick(m, &work, 8 * bins_x * some)) return;
    }
  }
}

void more_setup_roi_align(more_plan *p) {
  more_op *m = p->m;
  const more_value *x = &m->in[0], *rois = &m->in[1];
  m->i[HEIGHT] = more_int(p, "output_height", 1);
  m->i[WIDTH] = more_int(p, "output_width", 1);
  m->i[RATIO] = more_int(p, "sampling_ratio", 0);
  m->i[MAXIMA] = more_choice(p, "mode", "avg", "avg max");
  m->i[HALF_PIXEL] = more_choice(p, "coordinate_transformation_mode",
                                 more_defines(p, "coordinate_transformation_mode") ? "half_pixel" : "output_half_pixel",
                                 "output_half_pixel half_pixel");
  m->f[0] = more_float(p, "spatial_scale", 1);
  more_real(p, 0);
  more_same_type(p, 0, 1);
  more_rank(p, 0, 4, 4);
  if (m->in[2].type != REF_TYPE_I64) more_refuse(p, "operand 2 must be int64");
  if (!more_ok(p)) return;
  if (x->shape[2] == 0 || x->shape[3] == 0) more_refuse(p, "its images are empty");
  if (rois->ndim != 2 || rois->shape[1] != 4) more_refuse(p, "operand 1 must be [boxes, 4]");
  more_shape_is(p, 2, 1, rois->shape);
  if (m->i[HEIGHT] < 1 || m->i[WIDTH] < 1 || m->i[RATIO] < 0 || m->i[RATIO] > 4096)
    more_refuse(p, "a size is out of range");
  const int64_t shape[] = {rois->shape[0], x->shape[1], m->i[HEIGHT], m->i[WIDTH]};
  more_result(p, 0, x->type, 4, shape);
  const double taps = m->i[RATIO] > 1 ? (double)m->i[RATIO] * (double)m->i[RATIO] : 1;
  const int64_t plane = more_count(x->shape, 2, 4);
  if (x->type == REF_TYPE_F32 && plane <= INT32_MAX && m->i[RATIO] > 0 && m->i[RATIO] <= 16 &&
      m->i[WIDTH] <= ROI_SAMPLES && m->i[WIDTH] * m->i[RATIO] * m->i[RATIO] <= ROI_SAMPLES)
    more_loop(p, run_roi_rows, m->out[0].count > 0 ? rois->shape[0] * m->i[HEIGHT] : 0,
              (20 + 60 * taps) * (double)m->out[0].count);
  else more_work(p, run_roi, m->out[0].count, (80 + 20 * taps) * (double)m->out[0].count);
}

/* ---------------------------------------------------------------- NonMaxSuppression */

enum { CENTERS = 0, FOUND = 1, ROOM = 4 * sizeof(double) + 2 * sizeof(int32_t) /* bytes of scratch memory a box */ };

static void corners(const more_op *m, const void *boxes, int64_t at, double out[4]) {
  double b[4];
  for (int k = 0; k < 4; k++) b[k] = more_get(&m->in[0], boxes, at * 4 + k);
  for (int k = 0; k < 2; k++) { /* along y, along x */
    out[k] = m->i[CENTERS] ? b[1 - k] - b[3 - k] / 2 : fmin(b[k], b[k + 2]);
    out[k + 2] = m->i[CENTERS] ? b[1 - k] + b[3 - k] / 2 : fmax(b[k], b[k + 2]);
  }
}

/* How much of the union of two boxes they share. */
static double shared(const double a[4], const double b[4]) {
  const double h = fmin(a[2], b[2]) - fmax(a[0], b[0]), w = fmin(a[3], b[3]) - fmax(a[1], b[1]);
  const double one = (a[2] - a[0]) * (a[3] - a[1]), other = (b[2] - b[0]) * (b[3] - b[1]);
  if (!(h > 0 && w > 0 && one > 0 && other > 0)) return 0;
  return h * w / (one + other - h * w);
}

static double setting(const more_op *m, const void *const *in, uint32_t k, double absent) {
  return k < m->n_in && in[k] != NULL ? more_get(&m->in[k], in[k], 0) : absent;
}

/* The n boxes in list by score, of equal ones the first, in one of the two lists; scores are those from `at` on. */
static int32_t *by_score(const more_op *m, const void *scores, int64_t at, int32_t *list, int32_t *other, int64_t n) {
  const more_value *v = &m->in[1];
  for (int64_t width = 1; width < n; width *= 2) {
    for (int64_t from = 0; from < n; from += 2 * width) {
      const int64_t middle = from + width < n ? from + width : n, end = from + 2 * width < n ? from + 2 * width : n;
      int64_t a = from, b = middle;
      for (int64_t k = from; k < end; k++) {
        const bool first =
            b >= end || (a < middle && !(more_get(v, scores, at + list[b]) > more_get(v, scores, at + list[a])));
        other[k] = first ? list[a++] : list[b++];
      }
    }
    int32_t *swap = list;
    list = other;
    other = swap;
  }
  return list;
}

/* Greedily by score, of equal ones the first, NaN never: writes rows to out, which may be NULL, at most cap (0: a plan
 * counts); returns how many. room: ROOM bytes a box. */
static int64_t choose(const more_op *m, const void *const *in, int64_t *out, int64_t cap, void *room) {
  const int64_t boxes = m->in[0].shape[1], classes = m->in[1].shape[1];
  const double most = setting(m, in, 2, 0), overlap = setting(m, in, 3, 0),
               least = setting(m, in, 4, -(double)INFINITY);
  const bool limited = m->n_in > 4 && in[4] != NULL;
  double(*taken)[4] = room;
  int32_t *const list = (int32_t *)(void *)(taken + boxes), *const other = list + boxes;
  int64_t found = 0, work = 0;
  for (int64_t u = 0; u < m->in[0].shape[0] * classes && most > 0; u++) {
    int64_t n = 0, candidates = 0;
    for (int64_t b = 0; b < boxes; b++) {
      const double s = more_get(&m->in[1], in[1], u * boxes + b);
      if (s == s && (!limited || s > least)) list[candidates++] = (int32_t)b;
    }
    const int32_t *order = by_score(m, in[1], u * boxes, list, other, candidates);
    if (cap > 0 && more_tick(m, &work, 32 * (boxes + 1))) return found;
    for (int64_t i = 0; i < candidates && (double)n < most; i++) {
      double box[4];
      bool keep = true;
      corners(m, in[0], u / classes * boxes + order[i], box);
      if (cap > 0 && more_tick(m, &work, 8 * (n + 1))) return found;
      for (int64_t k = 0; k < n && keep; k++) keep = !(shared(box, taken[k]) > overlap);
      if (!keep) continue;
      memcpy(taken[n++], box, sizeof box);
      if (out != NULL && found < cap) {
        out[3 * found] = u / classes;
        out[3 * found + 1] = u % classes;
        out[3 * found + 2] = order[i];
      }
      found++;
    }
  }
  return found;
}

static void run_nms(const more_op *m, const more_args *a, int64_t first, int64_t last) {
  (void)first, (void)last;
  choose(m, a->in, a->out[0], m->i[FOUND], a->scratch);
}

void more_setup_non_max_suppression(more_plan *p) {
  more_op *m = p->m;
  m->i[CENTERS] = more_int(p, "center_point_box", 0);
  more_real(p, 0);
  more_real(p, 1);
  more_rank(p, 0, 3, 3);
  more_rank(p, 1, 3, 3);
  if (!more_ok(p)) return;
  const int64_t *boxes = m->in[0].shape, *scores = m->in[1].shape;
  if (boxes[2] != 4 || scores[0] != boxes[0] || scores[2] != boxes[1])
    more_refuse(p, "its boxes and scores do not fit each other");
  if (boxes[1] > INT32_MAX) more_refuse(p, "it has more boxes than an int32 counts");
  for (uint32_t k = 2; k < m->n_in; k++)
    if (more_operand(p, k) && m->in[k].count != 1) more_refuse(p, "operand %u must be one number", k);
  const void *in[MORE_IN] = {NULL};
  for (uint32_t k = 0; k < m->n_in && more_ok(p); k++)
    if (more_operand(p, k)) in[k] = more_operand_bytes(p, k);
  if (!more_ok(p)) return;
  const double scores_all = (double)m->in[1].count, most = setting(m, in, 2, 0);
  if (scores_all * fmin(most, (double)boxes[1]) > 0x1p34 && most > 0)
    more_refuse(p, "its boxes and classes would take too long to plan");
  if (!more_ok(p)) return;
  int64_t found = 0;
  if (m->in[0].count > 0 && m->in[1].count > 0) {
    void *room = malloc((size_t)boxes[1] * ROOM);
    if (room == NULL) more_refuse(p, "there is no memory to sort %lld boxes", (long long)boxes[1]);
    else found = choose(m, in, NULL, 0, room);
    free(room);
  }
  more_scratch(p, (double)boxes[1] * ROOM);
  m->i[FOUND] = found;
  const int64_t shape[] = {found, 3};
  more_result(p, 0, REF_TYPE_I64, 2, shape);
  more_work(p, run_nms, 1, (double)m->in[1].count * (double)found);
}
