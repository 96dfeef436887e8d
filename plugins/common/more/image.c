/* Operators on images and boxes: RoiAlign, NonMaxSuppression. */
#include "more.h"

#include <math.h>
#include <stdlib.h>

/* ---------------------------------------------------------------- RoiAlign */

enum { HEIGHT, WIDTH, RATIO, MAXIMA, HALF_PIXEL };

/* NaN wins, and stays. The greater one is one instruction: which it is, no CPU foresees. */
static inline double larger(double x, double y) {
  return isunordered(x, y) ? x + y : x > y ? x : y;
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

static inline double sampled(const roi_sample *s, const float *plane, bool maxima) {
  double part[4];
  if (s->at[0] < 0) return 0;
  for (int k = 0; k < 4; k++) part[k] = (double)s->weight[k] * (double)plane[s->at[k]];
  if (!maxima) return part[0] + part[1] + part[2] + part[3];
  return larger(larger(part[0], part[1]), larger(part[2], part[3]));
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
