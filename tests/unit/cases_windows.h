/* Windows and matrix products on a device against loops in double: AveragePool with every way to pad and to count,
 * convolutions that take each of the kernels, ConvTranspose in one to three dimensions, products of all shapes. The last
 * two in the forms of the kernels for host cores and for GPUs. */
#ifndef HEDDLE_TESTS_UNIT_CASES_WINDOWS_H
#define HEDDLE_TESTS_UNIT_CASES_WINDOWS_H

#include "device_case.h"

enum { SPATIAL = 3 };

/* A rig whose kernels are those for host cores, or those for GPUs. */
static void rig_open_as(rig *r, bool gpu) {
  device_open(&r->t, 1, "gpu_kernels", gpu ? "1" : "0", NULL);
  memset(&r->d, 0, sizeof r->d);
  r->d.plugin = r->t.p;
  r->d.self = r->t.self;
  r->d.dev = r->t.dev[0];
  r->d.stream = sim_stream(&r->t, r->t.dev[0]);
}

/* A window over up to three dimensions, the unused ones first. */
typedef struct window {
  int64_t in[SPATIAL], out[SPATIAL], kernel[SPATIAL], stride[SPATIAL], dilation[SPATIAL], pad[SPATIAL], end[SPATIAL];
  int spatial;
} window;

static window window_of(int spatial, int64_t in, int64_t kernel, int64_t stride, int64_t dilation, int64_t pad,
                        int64_t end) {
  window w = {.spatial = spatial};
  for (int d = 0; d < SPATIAL; d++) {
    const bool used = d >= SPATIAL - spatial;
    w.in[d] = used ? in + d : 1; /* sides that differ */
    w.kernel[d] = used ? kernel : 1;
    w.stride[d] = used ? stride : 1;
    w.dilation[d] = used ? dilation : 1;
    w.pad[d] = used ? pad : 0;
    w.end[d] = used ? end : 0;
    w.out[d] = (w.in[d] + w.pad[d] + w.end[d] - (w.kernel[d] - 1) * w.dilation[d] - 1) / w.stride[d] + 1;
  }
  return w;
}

static op_shape shape_of(const window *w, int64_t n, int64_t channels, const int64_t *sides) {
  op_shape s = {2 + w->spatial, {n, channels}};
  for (int d = 0; d < w->spatial; d++) s.dims[2 + d] = sides[SPATIAL - w->spatial + d];
  return s;
}

static void add_attributes(op_case *c, const window *w, bool kernel, bool pads) {
  const int first = SPATIAL - w->spatial;
  int64_t both[2 * SPATIAL];
  for (int d = 0; d < w->spatial; d++) both[d] = w->pad[first + d], both[w->spatial + d] = w->end[first + d];
  if (kernel) op_attr_ints(c, "kernel_shape", (uint64_t)w->spatial, w->kernel + first);
  op_attr_ints(c, "strides", (uint64_t)w->spatial, w->stride + first);
  if (w->dilation[2] != 1) op_attr_ints(c, "dilations", (uint64_t)w->spatial, w->dilation + first);
  if (pads) op_attr_ints(c, "pads", 2 * (uint64_t)w->spatial, both);
}

/* For each tap of the window at output position at: the input's index in its plane, or -1 in the padding. */
static int64_t tap_at(const window *w, const int64_t *at, int64_t tap, bool *padded) {
  const int64_t k[SPATIAL] = {tap / w->kernel[2] / w->kernel[1], tap / w->kernel[2] % w->kernel[1], tap % w->kernel[2]};
  int64_t index = 0;
  bool inside = true;
  *padded = true;
  for (int d = 0; d < SPATIAL; d++) {
    const int64_t x = at[d] * w->stride[d] + k[d] * w->dilation[d] - w->pad[d];
    inside = inside && x >= 0 && x < w->in[d];
    *padded = *padded && x < w->in[d] + w->end[d];
    index = index * w->in[d] + x;
  }
  return inside ? index : -1;
}

static int64_t volume(const int64_t *sides) {
  return sides[0] * sides[1] * sides[2];
}

static void place_of(const int64_t *sides, int64_t i, int64_t *at) {
  at[0] = i / sides[2] / sides[1];
  at[1] = i / sides[2] % sides[1];
  at[2] = i % sides[2];
}

/* ---------------------------------------------------------------- pools */

static void average(rig *r, window w, bool include, const char *mode, bool ceiling) {
  const int64_t planes = 6, plane = volume(w.in), positions = volume(w.out), taps = volume(w.kernel);
  op_case c;
  op_case_init(&c, "AveragePool");
  const op_shape x_shape = shape_of(&w, 2, 3, w.in);
  float *x = op_input(&c, F32, x_shape), *y = op_output(&c, F32, shape_of(&w, 2, 3, w.out));
  add_attributes(&c, &w, true, mode == NULL);
  op_attr_int(&c, "count_include_pad", include);
  if (ceiling) op_attr_int(&c, "ceil_mode", 1);
  if (mode != NULL) op_attr_string(&c, "auto_pad", mode);
  op_fill(x, op_count(x_shape), 21);
  run(r, &c);
  for (int64_t i = 0; i < planes * positions; i++) {
    int64_t at[SPATIAL], count = 0;
    double sum = 0, magnitude = 0;
    bool padded;
    place_of(w.out, i % positions, at);
    for (int64_t t = 0; t < taps; t++) {
      const int64_t from = tap_at(&w, at, t, &padded);
      count += from >= 0 || (include && padded);
      if (from < 0) continue;
      sum += (double)x[i / positions * plane + from];
      magnitude += fabs((double)x[i / positions * plane + from]);
    }
    op_close(sum / (double)count, (double)y[i], magnitude / (double)count, 4, "AveragePool", (size_t)i);
  }
  op_case_free(&c);
}

static void average_pools(void **state) {
  rig r;
  (void)state;
  rig_open(&r);
  for (int spatial = 1; spatial <= 3; spatial++) {
    for (int include = 0; include < 2; include++) {
      average(&r, window_of(spatial, 9, 3, 2, 1, 0, 0), include, NULL, false);
      average(&r, window_of(spatial, 9, 3, 1, 1, 1, 2), include, NULL, false);
      window up = window_of(spatial, 8, 3, 2, 1, 1, 0); /* a last window that reaches over the end */
      for (int d = SPATIAL - spatial; d < SPATIAL; d++)
        up.out[d] = (up.in[d] + up.pad[d] + up.end[d] - up.kernel[d] + 1) / 2 + 1;
      average(&r, up, include, NULL, true);
      for (int lower = 0; lower < 2; lower++) {
        window same = window_of(spatial, 8, 4, 2, 1, 0, 0);
        for (int d = SPATIAL - spatial; d < SPATIAL; d++) {
          same.out[d] = (same.in[d] + 1) / 2;
          const int64_t all = (same.out[d] - 1) * 2 + 4 - same.in[d];
          same.pad[d] = lower ? all - all / 2 : all / 2;
          same.end[d] = all - same.pad[d];
        }
        average(&r, same, include, lower ? "SAME_LOWER" : "SAME_UPPER", false);
      }
    }
  }
  average(&r, window_of(2, 31, 29, 1, 1, 0, 0), false, NULL, false); /* nearly the whole plane */
  rig_close(&r);
}

/* ---------------------------------------------------------------- convolutions */

/* A Conv of w, or the ConvTranspose that it leads back from: then w's input is the result. channels: of Conv's input
 * and result. */
static void convolve(rig *r, bool transposed, window w, int64_t images, int64_t groups, int64_t in, int64_t out,
                     bool bias) {
  const int64_t taps = volume(w.kernel), plane = volume(w.in), positions = volume(w.out);
  const int64_t per_in = in / groups, per_out = out / groups;
  const op_shape large = shape_of(&w, images, in, w.in), small = shape_of(&w, images, out, w.out);
  const op_shape weights_shape = shape_of(&w, out, per_in, w.kernel);
  op_case c;
  op_case_init(&c, transposed ? "ConvTranspose" : "Conv");
  float *x = op_input(&c, F32, transposed ? small : large), *weights = op_input(&c, F32, weights_shape), *plus = NULL;
  if (bias) op_fill(plus = op_input(&c, F32, SHAPE(1, transposed ? in : out)), (size_t)(transposed ? in : out), 5);
  float *y = op_output(&c, F32, transposed ? large : small);
  add_attributes(&c, &w, false, true);
  if (groups != 1) op_attr_int(&c, "group", groups);
  int64_t more[SPATIAL], any = 0; /* what a stride of Conv's does not reach */
  for (int d = 0; d < SPATIAL; d++)
    any += more[d] =
        w.in[d] + w.pad[d] + w.end[d] - (w.out[d] - 1) * w.stride[d] - (w.kernel[d] - 1) * w.dilation[d] - 1;
  if (transposed && any > 0) op_attr_ints(&c, "output_padding", (uint64_t)w.spatial, more + SPATIAL - w.spatial);
  op_fill(x, op_count(transposed ? small : large), 1);
  op_fill(weights, op_count(weights_shape), 2);
  const size_t results = op_count(transposed ? large : small);
  double *want = calloc(results, sizeof *want), *size = calloc(results, sizeof *size);
  for (int64_t image = 0; image < images; image++) {
    for (int64_t o = 0; o < out; o++) {
      for (int64_t i = o / per_out * per_in; i < (o / per_out + 1) * per_in; i++) {
        const float *kernel = weights + (o * per_in + i % per_in) * taps;
        for (int64_t p = 0; p < positions; p++) {
          int64_t at[SPATIAL];
          bool padded;
          place_of(w.out, p, at);
          for (int64_t t = 0; t < taps; t++) {
            const int64_t from = tap_at(&w, at, t, &padded);
            if (from < 0) continue;
            const int64_t a = (image * in + i) * plane + from, b = (image * out + o) * positions + p;
            const double v = (double)x[transposed ? b : a] * (double)kernel[t];
            want[transposed ? a : b] += v;
            size[transposed ? a : b] += fabs(v);
          }
        }
      }
    }
  }
  run(r, &c);
  const int64_t per_plane = transposed ? plane : positions, planes = transposed ? in : out;
  for (size_t i = 0; i < results; i++) {
    const double b = plus != NULL ? (double)plus[(int64_t)i / per_plane % planes] : 0;
    op_close(want[i] + b, (double)y[i], size[i] + fabs(b), 40, c.node.op, i);
  }
  free(want);
  free(size);
  op_case_free(&c);
}

static void convolutions_by_every_kernel(bool gpu) {
  rig r;
  rig_open_as(&r, gpu);
  for (int spatial = 1; spatial <= 3; spatial++) {
    const int64_t side = spatial == 3 ? 5 : 13;
    convolve(&r, false, window_of(spatial, side, 3, 1, 1, 1, 1), 2, 1, 5, 9, true);   /* small tiles */
    convolve(&r, false, window_of(spatial, side, 3, 2, 2, 2, 1), 2, 2, 6, 20, false); /* of groups */
    convolve(&r, false, window_of(spatial, side, 3, 2, 1, 1, 0), 2, 6, 6, 12, true);  /* by items */
    convolve(&r, false, window_of(spatial, side, 1, 1, 1, 0, 0), 3, 1, 17, 10, true); /* a product */
    convolve(&r, false, window_of(spatial, side, 1, 1, 1, 0, 0), 2, 2, 8, 18, false); /* one of groups */
    convolve(&r, false, window_of(spatial, side, 1, 2, 1, 0, 0), 2, 1, 8, 9, true);
  }
  convolve(&r, false, window_of(2, 40, 3, 1, 1, 1, 1), 1, 1, 7, 70, true); /* large tiles, two of them down */
  convolve(&r, false, window_of(2, 40, 5, 2, 1, 3, 1), 2, 1, 3, 66, false);
  convolve(&r, false, window_of(2, 3, 3, 1, 1, 2, 2), 1, 1, 40, 33, true); /* pads wider than lines are long */
  rig_close(&r);
}

static void transposed_convolutions(bool gpu) {
  rig r;
  rig_open_as(&r, gpu);
  for (int spatial = 1; spatial <= 3; spatial++) {
    const int64_t side = spatial == 3 ? 5 : 13;
    convolve(&r, true, window_of(spatial, side, 3, 1, 1, 1, 1), 2, 1, 9, 5, true); /* channels of the result first */
    convolve(&r, true, window_of(spatial, side, 3, 1, 2, 1, 0), 2, 2, 18, 4, false);
    convolve(&r, true, window_of(spatial, side, 2, 2, 1, 0, 1), 1, 3, 6, 6, true);
    convolve(&r, true, window_of(spatial, side, 3, 2, 1, 1, 1), 2, 1, 10, 4, true);
  }
  convolve(&r, true, window_of(2, 40, 4, 2, 1, 1, 1), 1, 1, 66, 6, true);
  rig_close(&r);
}

/* auto_pad and output_shape decide the pads: of 2 to take off, one at each end, of 1 at the end or the beginning. */
static void transposed_with_a_chosen_result(void **state) {
  rig r;
  op_case c;
  (void)state;
  rig_open(&r);
  for (int what = 0; what < 3; what++) {
    enum { N = 5, CHANNELS = 9 };
    op_case_init(&c, "ConvTranspose");
    float *x = op_input(&c, F32, SHAPE(3, 1, 1, N)), *weights = op_input(&c, F32, SHAPE(3, 1, CHANNELS, 3));
    float *y = op_output(&c, F32, SHAPE(3, 1, CHANNELS, 2 * N));
    const int64_t stride = 2, shape = 2 * N, pad = what == 0 ? 0 : 1;
    op_attr_ints(&c, "strides", 1, &stride);
    if (what < 2) op_attr_string(&c, "auto_pad", what == 0 ? "SAME_UPPER" : "SAME_LOWER");
    else op_attr_ints(&c, "output_shape", 1, &shape);
    op_fill(x, N, 3);
    op_fill(weights, 3 * CHANNELS, 4);
    run(&r, &c);
    for (int64_t ch = 0; ch < CHANNELS; ch++) {
      double want[2 * N + 3] = {0};
      for (int64_t i = 0; i < N; i++)
        for (int64_t k = 0; k < 3; k++) want[2 * i + k] += (double)x[i] * (double)weights[ch * 3 + k];
      for (int64_t i = 0; i < 2 * N; i++)
        op_close(want[i + pad], (double)y[ch * 2 * N + i], 8, 4, "ConvTranspose", (size_t)i);
    }
    op_case_free(&c);
  }
  rig_close(&r);
}

/* ---------------------------------------------------------------- products */

static void gemm(rig *r, int64_t m, int64_t n, int64_t k, int trans, int third) {
  static const float scale = 0.75f, plus = -1.5f;
  op_case c;
  op_case_init(&c, "Gemm");
  float *a = op_input(&c, F32, (trans & 1) != 0 ? SHAPE(2, k, m) : SHAPE(2, m, k));
  float *b = op_input(&c, F32, (trans & 2) != 0 ? SHAPE(2, n, k) : SHAPE(2, k, n)), *add = NULL;
  const int64_t rows = third == 1 || third == 2 ? m : 1, columns = third == 1 || third == 3 ? n : 1;
  if (third != 0) op_fill(add = op_input(&c, F32, SHAPE(2, rows, columns)), (size_t)(rows * columns), 3);
  float *y = op_output(&c, F32, SHAPE(2, m, n));
  op_attr_int(&c, "transA", trans & 1);
  op_attr_int(&c, "transB", trans >> 1);
  op_attr_float(&c, "alpha", (double)scale);
  op_attr_float(&c, "beta", (double)plus);
  op_fill(a, (size_t)(m * k), 1);
  op_fill(b, (size_t)(k * n), 2);
  run(r, &c);
  for (int64_t i = 0; i < m; i++) {
    for (int64_t j = 0; j < n; j++) {
      double sum = 0, size = 0;
      for (int64_t d = 0; d < k; d++) {
        const double v =
            (double)a[(trans & 1) != 0 ? d * m + i : i * k + d] * (double)b[(trans & 2) != 0 ? j * k + d : d * n + j];
        sum += v;
        size += fabs(v);
      }
      const double more =
          add != NULL ? (double)plus * (double)add[(rows > 1 ? i : 0) * columns + (columns > 1 ? j : 0)] : 0;
      op_close((double)scale * sum + more, (double)y[i * n + j], size + fabs(more), 16 + (double)k / 16, "Gemm",
               (size_t)(i * n + j));
    }
  }
  op_case_free(&c);
}

static void products_of_all_shapes(bool gpu) {
  static const int64_t sizes[][3] = {{1, 100, 70}, {1, 1100, 33}, {1, 17, 3},    {90, 1, 200},   {1, 1, 500},
                                     {5, 40, 17},  {64, 64, 64},  {65, 130, 47}, {200, 300, 20}, {257, 129, 100}};
  rig r;
  rig_open_as(&r, gpu);
  for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++)
    for (int trans = 0; trans < 4; trans++)
      gemm(&r, sizes[s][0], sizes[s][1], sizes[s][2], trans, (trans + (int)s) % 4);
  for (int third = 1; third < 4; third++) gemm(&r, 90, 1, 100, 0, third), gemm(&r, 1, 90, 100, 2, third);
  rig_close(&r);
}

static void batches_of_products(bool gpu) {
  static const int64_t sizes[][3] = {{1, 20, 30}, {40, 1, 90}, {70, 90, 20}};
  rig r;
  op_case c;
  rig_open_as(&r, gpu);
  for (size_t s = 0; s < 3; s++) {
    const int64_t m = sizes[s][0], n = sizes[s][1], k = sizes[s][2];
    op_case_init(&c, "MatMul"); /* batches of [2, 1] and [3] */
    float *a = op_input(&c, F32, SHAPE(4, 2, 1, m, k)), *b = op_input(&c, F32, SHAPE(3, 3, k, n));
    float *y = op_output(&c, F32, SHAPE(4, 2, 3, m, n));
    op_fill(a, (size_t)(2 * m * k), 1);
    op_fill(b, (size_t)(3 * k * n), 2);
    run(&r, &c);
    for (int64_t i = 0; i < 6 * m * n; i++) {
      const float *from = a + (i / (m * n) / 3 * m + i / n % m) * k, *with = b + i / (m * n) % 3 * k * n + i % n;
      double sum = 0, size = 0;
      for (int64_t d = 0; d < k; d++) {
        sum += (double)from[d] * (double)with[d * n];
        size += fabs((double)from[d] * (double)with[d * n]);
      }
      op_close(sum, (double)y[i], size, 16 + (double)k / 16, "MatMul", (size_t)i);
    }
    op_case_free(&c);
  }
  rig_close(&r);
}

#define IN_BOTH_FORMS(name) \
  static void name##_on_cores(void **state) { \
    (void)state; \
    name(false); \
  } \
  static void name##_on_gpus(void **state) { \
    (void)state; \
    name(true); \
  }
IN_BOTH_FORMS(convolutions_by_every_kernel)
IN_BOTH_FORMS(transposed_convolutions)
IN_BOTH_FORMS(products_of_all_shapes)
IN_BOTH_FORMS(batches_of_products)

CASES(CASE(average_pools), CASE(transposed_with_a_chosen_result), CASE(convolutions_by_every_kernel_on_cores),
      CASE(convolutions_by_every_kernel_on_gpus), CASE(transposed_convolutions_on_cores),
      CASE(transposed_convolutions_on_gpus), CASE(products_of_all_shapes_on_cores),
      CASE(products_of_all_shapes_on_gpus), CASE(batches_of_products_on_cores), CASE(batches_of_products_on_gpus))

#endif
