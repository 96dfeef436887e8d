/* labels: threads
 * MaxPool and GlobalAveragePool of the reference kernels, through the cpu plugin, against loops over every window. */
#include "op_case.h"

typedef struct pool {
  op_shape x, y;
  int64_t kernel[3], strides[3], dilations[3], pads[6];
  int64_t ceiling;
  const char *auto_pad;
} pool;

#define ONES \
  { 1, 1, 1 }

static const pool pools[] = {
    {{4, {2, 3, 8, 8}}, {4, {2, 3, 4, 4}}, {2, 2}, {2, 2}, ONES, {0}, 0, NULL},
    {{4, {1, 2, 9, 7}}, {4, {1, 2, 9, 7}}, {3, 3}, ONES, ONES, {1, 1, 1, 1}, 0, NULL},
    {{4, {1, 2, 7, 7}}, {4, {1, 2, 4, 4}}, {2, 2}, {2, 2}, ONES, {0}, 1, NULL},
    {{4, {1, 2, 7, 7}}, {4, {1, 2, 3, 3}}, {2, 2}, {2, 2}, ONES, {0}, 0, NULL},
    {{4, {1, 2, 9, 10}}, {4, {1, 2, 5, 3}}, {3, 3}, {1, 3}, {2, 2}, {0, 1, 0, 0}, 0, NULL},
    {{3, {2, 2, 11}}, {3, {2, 2, 4}}, {3}, {3}, {1}, {1, 1}, 0, NULL},
    {{5, {1, 2, 4, 5, 6}}, {5, {1, 2, 2, 3, 5}}, {2, 3, 2}, {2, 2, 1}, ONES, {0, 1, 0, 0, 1, 0}, 0, NULL},
    {{4, {1, 1, 5, 5}}, {4, {1, 1, 3, 3}}, {2, 2}, {2, 2}, ONES, {0, 0, 1, 1}, 0, "SAME_UPPER"},
    {{4, {1, 1, 5, 5}}, {4, {1, 1, 3, 3}}, {2, 2}, {2, 2}, ONES, {1, 1, 0, 0}, 0, "SAME_LOWER"},
    {{4, {1, 1, 5, 5}}, {4, {1, 1, 2, 2}}, {2, 2}, {2, 2}, ONES, {0}, 0, "VALID"},
    {{4, {1, 1, 2, 2}}, {4, {1, 1, 5, 5}}, {2, 2}, ONES, ONES, {2, 2, 2, 2}, 0, NULL}, /* windows of padding only */
    {{3, {1, 1, 4}}, {3, {1, 1, 2}}, {1}, {3}, {1}, {0, 1}, 1, NULL},
    {{3, {1, 1, 4}}, {3, {1, 1, 3}}, {1}, {3}, {1}, {0, 3}, 1, NULL}, /* the last window behind the input: kept */
    {{3, {1, 1, 4}}, {3, {1, 1, 2}}, {1}, {3}, {1}, {0, 3}, 1, NULL}, /* or left out */
    {{3, {0, 1, 4}}, {3, {0, 1, 4}}, {1}, {1}, {1}, {0}, 0, NULL},
    {{3, {1, 1, 0}}, {3, {1, 1, 2}}, {1}, {1}, {1}, {1, 1}, 0, NULL},
    {{4, {1, 1, 3, 0}}, {4, {1, 1, 3, 2}}, {1, 1}, ONES, ONES, {0, 1, 0, 1}, 0, NULL},
};

static float greatest(const pool *p, const float *x, size_t plane, const int64_t *position) {
  const int spatial = p->x.ndim - 2;
  int64_t taps = 1;
  float most = -INFINITY;
  for (int d = 0; d < spatial; d++) taps *= p->kernel[d];
  for (int64_t tap = 0; tap < taps; tap++) {
    int64_t rest = tap, at = 0, size = 1;
    bool inside = true;
    for (int d = spatial - 1; d >= 0; d--) {
      int64_t i = position[d] * p->strides[d] + rest % p->kernel[d] * p->dilations[d] - p->pads[d];
      rest /= p->kernel[d];
      inside = inside && i >= 0 && i < p->x.dims[2 + d];
      at += i * size;
      size *= p->x.dims[2 + d];
    }
    if (inside && x[(int64_t)plane * size + at] > most) most = x[(int64_t)plane * size + at];
  }
  return most;
}

static float *build(op_case *o, const pool *p, float **x) {
  const uint64_t spatial = (uint64_t)p->x.ndim - 2;
  op_case_init(o, "MaxPool");
  *x = op_input(o, F32, p->x);
  op_fill(*x, op_count(p->x), 1);
  op_attr_ints(o, "kernel_shape", spatial, p->kernel);
  op_attr_ints(o, "strides", spatial, p->strides);
  op_attr_ints(o, "dilations", spatial, p->dilations);
  if (p->auto_pad != NULL) op_attr_string(o, "auto_pad", p->auto_pad);
  else op_attr_ints(o, "pads", 2 * spatial, p->pads);
  if (p->ceiling != 0) op_attr_int(o, "ceil_mode", 1);
  return op_output(o, F32, p->y);
}

static void finds_the_greatest(void **state) {
  fake_device d;
  (void)state;
  fake_device_open(&d, "cpu");
  for (size_t n = 0; n < sizeof pools / sizeof pools[0]; n++) {
    const pool *p = &pools[n];
    op_case o;
    float *x, *y = build(&o, p, &x);
    print_message("pool %zu\n", n);
    op_case_run(&d, &o);
    for (size_t i = 0; i < op_count(p->y); i++) {
      int64_t rest = (int64_t)i, position[3] = {0, 0, 0};
      for (int k = p->x.ndim - 3; k >= 0; k--) {
        position[k] = rest % p->y.dims[2 + k];
        rest /= p->y.dims[2 + k];
      }
      assert_true(greatest(p, x, (size_t)rest, position) == y[i]);
    }
    op_case_free(&o);
  }
  fake_device_close(&d);
}

static void nan_wins(void **state) {
  fake_device d;
  op_case o;
  (void)state;
  fake_device_open(&d, "cpu");
  op_case_init(&o, "MaxPool");
  float *x = op_input(&o, F32, SHAPE(3, 1, 1, 4)), *y = op_output(&o, F32, SHAPE(3, 1, 1, 3));
  op_attr_ints(&o, "kernel_shape", 1, (const int64_t[]){2});
  x[0] = 1, x[1] = NAN, x[2] = 3, x[3] = 4;
  op_case_run(&d, &o);
  assert_true(y[0] != y[0] && y[1] != y[1] && y[2] == 4);
  op_case_free(&o);
  fake_device_close(&d);
}

/* A window of 2^31 in each of three directions over one element: only taps inside the input may cost time. */
static void a_vast_window_takes_no_time(void **state) {
  const int64_t most = INT32_MAX;
  fake_device d;
  op_case o;
  (void)state;
  fake_device_open(&d, "cpu");
  op_case_init(&o, "MaxPool");
  float *x = op_input(&o, F32, SHAPE(5, 1, 1, 1, 1, 1)), *y = op_output(&o, F32, SHAPE(5, 1, 1, 1, 1, 1));
  op_attr_ints(&o, "kernel_shape", 3, (const int64_t[]){most, most, most});
  op_attr_ints(&o, "pads", 6, (const int64_t[]){most - 1, 0, most / 2, 0, most - 1, most / 2});
  x[0] = 7;
  op_case_run(&d, &o);
  assert_true(y[0] == 7);
  op_case_free(&o);
  fake_device_close(&d);
}

static void averages_planes(void **state) {
  static const op_shape shapes[] = {{4, {2, 3, 7, 9}}, {3, {2, 3, 1000}},     {5, {1, 2, 3, 4, 5}},
                                    {2, {2, 3}},       {4, {1, 1, 200, 300}}, {4, {0, 2, 3, 3}}};
  fake_device d;
  (void)state;
  fake_device_open(&d, "cpu");
  for (size_t n = 0; n < sizeof shapes / sizeof shapes[0]; n++) {
    op_shape out = shapes[n];
    op_case o;
    for (int32_t i = 2; i < out.ndim; i++) out.dims[i] = 1;
    op_case_init(&o, "GlobalAveragePool");
    float *x = op_input(&o, F32, shapes[n]), *y = op_output(&o, F32, out);
    size_t planes = op_count(out), size = planes > 0 ? op_count(shapes[n]) / planes : 0;
    op_fill(x, op_count(shapes[n]), 1);
    op_case_run(&d, &o);
    for (size_t p = 0; p < planes; p++) {
      double sum = 0, magnitude = 0;
      for (size_t i = 0; i < size; i++) {
        sum += (double)x[p * size + i];
        magnitude += fabs((double)x[p * size + i]);
      }
      op_close(sum / (double)size, y[p], magnitude / (double)size, 22, "GlobalAveragePool", p);
    }
    op_case_free(&o);
  }
  op_case o;
  op_case_init(&o, "GlobalAveragePool"); /* the mean of nothing */
  op_input(&o, F32, SHAPE(3, 1, 1, 0));
  float *y = op_output(&o, F32, SHAPE(3, 1, 1, 1));
  op_case_run(&d, &o);
  assert_true(y[0] != y[0]);
  op_case_free(&o);
  fake_device_close(&d);
}

static void threads_do_not_change_a_bit(void **state) {
  static const pool big = {{4, {2, 20, 100, 100}}, {4, {2, 20, 100, 100}}, {3, 3}, ONES, ONES, {1, 1, 1, 1}, 0, NULL};
  fake_device d;
  op_case o;
  float *x;
  (void)state;
  fake_device_open(&d, "cpu");
  build(&o, &big, &x);
  op_case_run(&d, &o);
  op_same_with_threads(&d, &o);
  op_case_free(&o);
  op_case_init(&o, "GlobalAveragePool");
  op_fill(op_input(&o, F32, SHAPE(3, 4, 30, 3000)), 360000, 1);
  op_output(&o, F32, SHAPE(3, 4, 30, 1));
  op_case_run(&d, &o);
  op_same_with_threads(&d, &o);
  op_case_free(&o);
  fake_device_close(&d);
}

static void refuses_in_words(void **state) {
  fake_device d;
  op_case o;
  (void)state;
  fake_device_open(&d, "cpu");
  op_case_init(&o, "MaxPool");
  op_input(&o, F32, SHAPE(3, 1, 1, 4));
  op_output(&o, F32, SHAPE(3, 1, 1, 3));
  op_expect_refused(&d, &o, "'kernel_shape' is missing");
  op_attr_ints(&o, "kernel_shape", 1, (const int64_t[]){2});
  assert_int_equal(op_query(&d, &o), HEDDLE_OK);
  op_output(&o, F32, SHAPE(3, 1, 1, 3));
  op_expect_refused(&d, &o, "do not give"); /* Indices are int64 */
  o.region.n_outputs = 1;
  o.node_outputs[1] = -1;
  assert_int_equal(op_query(&d, &o), HEDDLE_OK);
  op_case_free(&o);

  op_case_init(&o, "GlobalAveragePool");
  op_input(&o, F32, SHAPE(3, 1, 2, 4));
  op_output(&o, F32, SHAPE(3, 1, 2, 4));
  op_expect_refused(&d, &o, "do not give");
  op_case_free(&o);
  fake_device_close(&d);
}

CASES(CASE(finds_the_greatest), CASE(nan_wins), CASE(a_vast_window_takes_no_time), CASE(averages_planes),
      CASE_LABELS(threads_do_not_change_a_bit, "threads"), CASE(refuses_in_words))
