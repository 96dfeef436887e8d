/* labels: threads
 * Softmax of the reference kernels, through the cpu plugin, against exp in float64. */
#include "op_case.h"

typedef struct softmax {
  op_shape shape;
  int64_t axis;
} softmax;

static const softmax cases[] = {
    {{1, {1}}, 0},        {{2, {1, 16}}, -1},    {{2, {3, 1000}}, 1},    {{2, {37, 5}}, 0},
    {{3, {2, 7, 33}}, 1}, {{3, {2, 7, 33}}, -3}, {{4, {2, 3, 1, 4}}, 2}, {{4, {2, 3, 4, 1}}, 1},
    {{3, {2, 0, 3}}, 1},  {{3, {0, 4, 3}}, -1},  {{2, {5, 257}}, 1},
};

static void check(fake_device *d, const softmax *s, float scale, bool in_place) {
  op_case c;
  size_t n = 1, inner = 1, count = op_count(s->shape);
  int64_t axis = s->axis < 0 ? s->axis + s->shape.ndim : s->axis;
  op_case_init(&c, "Softmax");
  float *x = op_input(&c, F32, s->shape), *y = op_output(&c, F32, s->shape);
  if (s->axis != -1) op_attr_int(&c, "axis", s->axis);
  op_fill(x, count, 1);
  for (size_t i = 0; i < count; i++) x[i] *= scale;
  if (in_place) {
    c.in_place = 0;
    if (count > 0) memcpy(y, x, count * sizeof *x);
  }
  op_case_run(d, &c);
  assert_int_equal(c.n_pairs, 1);
  n = (size_t)s->shape.dims[axis];
  for (int32_t i = (int32_t)axis + 1; i < s->shape.ndim; i++) inner *= (size_t)s->shape.dims[i];
  for (size_t i = 0; i < count; i++) {
    size_t start = i / (n * inner) * n * inner + i % inner;
    double most = -INFINITY, sum = 0;
    for (size_t k = 0; k < n; k++) most = fmax(most, (double)x[start + k * inner]);
    for (size_t k = 0; k < n; k++) sum += exp((double)(float)((double)x[start + k * inner] - most));
    double want = exp((double)(float)((double)x[i] - most)) / sum;
    /* exp, sum and division round; below the normal range a step is 2^-149 whatever the number. */
    op_close(want, y[i], want + ldexp(1, -126), 8, "Softmax", i);
  }
  op_case_free(&c);
}

static void normalises_along_any_axis(void **state) {
  fake_device d;
  (void)state;
  fake_device_open(&d, "cpu");
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    check(&d, &cases[i], 1, false);
    check(&d, &cases[i], 1, true);
    check(&d, &cases[i], 40, false);
    check(&d, &cases[i], 1e30f, false);
  }
  fake_device_close(&d);
}

/* The exponential alone: beside a 0, e^x / (1 + e^x) for x down to where nothing is left. */
static void the_exponential_is_right_to_the_end(void **state) {
  enum { N = 4001 };
  fake_device d;
  op_case c;
  (void)state;
  fake_device_open(&d, "cpu");
  op_case_init(&c, "Softmax");
  float *x = op_input(&c, F32, SHAPE(2, N, 2)), *y = op_output(&c, F32, SHAPE(2, N, 2));
  for (int i = 0; i < N; i++) {
    x[2 * i] = 0;
    x[2 * i + 1] = -(float)i * 0.027f;
  }
  op_case_run(&d, &c);
  for (int i = 0; i < N; i++) {
    double e = exp((double)x[2 * i + 1]);
    double step = fmax(e / (1 + e) * ldexp(1, -23), ldexp(1, -149));
    if (fabs(y[2 * i + 1] - e / (1 + e)) > 2 * step) fail_msg("e^%g: %g", x[2 * i + 1], y[2 * i + 1]);
  }
  op_case_free(&c);
  fake_device_close(&d);
}

static void infinities_and_nan(void **state) {
  fake_device d;
  op_case c;
  (void)state;
  fake_device_open(&d, "cpu");
  op_case_init(&c, "Softmax");
  float *x = op_input(&c, F32, SHAPE(2, 3, 3)), *y = op_output(&c, F32, SHAPE(2, 3, 3));
  const float in[9] = {-INFINITY, 0, 0, NAN, 1, 2, INFINITY, 1, 2};
  memcpy(x, in, sizeof in);
  op_case_run(&d, &c);
  assert_true(y[0] == 0 && y[1] == 0.5f && y[2] == 0.5f);
  assert_true(y[3] != y[3] && y[4] != y[4] && y[5] != y[5]);
  assert_true(y[6] != y[6]); /* as numpy: infinity less infinity */
  op_case_free(&c);
  fake_device_close(&d);
}

static void threads_do_not_change_a_bit(void **state) {
  fake_device d;
  op_case c;
  (void)state;
  fake_device_open(&d, "cpu");
  for (int64_t axis = 0; axis < 2; axis++) {
    op_case_init(&c, "Softmax");
    op_fill(op_input(&c, F32, SHAPE(2, 700, 701)), 700 * 701, 1);
    op_output(&c, F32, SHAPE(2, 700, 701));
    op_attr_int(&c, "axis", axis);
    op_case_run(&d, &c);
    op_same_with_threads(&d, &c);
    op_case_free(&c);
  }
  fake_device_close(&d);
}

static void refuses_in_words(void **state) {
  fake_device d;
  op_case c;
  (void)state;
  fake_device_open(&d, "cpu");
  op_case_init(&c, "Softmax");
  op_input(&c, F32, SHAPE(2, 3, 3));
  op_output(&c, F32, SHAPE(2, 3, 3));
  op_attr_int(&c, "axis", 2);
  op_expect_refused(&d, &c, "axis 2 of 2 dimensions");
  c.ints[0][0] = -3;
  op_expect_refused(&d, &c, "axis -3");
  c.attrs[0].a.kind = HEDDLE_ATTR_FLOAT;
  op_expect_refused(&d, &c, "must be an integer");
  op_case_free(&c);
  fake_device_close(&d);
}

CASES(CASE(normalises_along_any_axis), CASE(the_exponential_is_right_to_the_end), CASE(infinities_and_nan),
      CASE_LABELS(threads_do_not_change_a_bit, "threads"), CASE(refuses_in_words))
