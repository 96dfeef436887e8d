/* labels: threads
 * Conv of the reference kernels, through the cpu plugin, against plain loops in float64. */
#include "op_case.h"

/* One convolution; spatial lists have as many members as x has spatial dimensions, pads twice as many. */
typedef struct convolution {
  op_shape x, w, y;
  int64_t group;
  bool bias;
  int64_t strides[OP_DIMS], dilations[OP_DIMS], pads[2 * OP_DIMS];
  const char *auto_pad;
} convolution;

#define ONES \
  { 1, 1, 1 }

static const convolution convolutions[] = {
    {{4, {1, 1, 8, 8}}, {4, {1, 1, 3, 3}}, {4, {1, 1, 6, 6}}, 1, false, ONES, ONES, {0}, NULL},
    {{4, {2, 3, 9, 7}}, {4, {5, 3, 3, 3}}, {4, {2, 5, 9, 7}}, 1, true, ONES, ONES, {1, 1, 1, 1}, NULL},
    {{4, {1, 4, 9, 8}}, {4, {6, 2, 3, 2}}, {4, {1, 6, 4, 4}}, 2, true, {2, 2, 1}, ONES, {0, 1, 0, 0}, NULL},
    {{4, {1, 4, 9, 9}}, {4, {4, 1, 3, 3}}, {4, {1, 4, 5, 5}}, 4, true, ONES, {2, 2, 1}, {0}, NULL},
    {{4, {1, 2, 12, 11}}, {4, {3, 2, 1, 1}}, {4, {1, 3, 12, 11}}, 1, false, ONES, ONES, {0}, NULL},
    {{4, {1, 2, 10, 10}}, {4, {3, 2, 3, 5}}, {4, {1, 3, 4, 4}}, 1, true, {3, 2, 1}, ONES, {2, 0, 0, 1}, NULL},
    {{4, {1, 2, 3, 3}}, {4, {2, 2, 3, 3}}, {4, {1, 2, 9, 9}}, 1, false, ONES, ONES, {4, 4, 4, 4}, NULL},
    {{3, {2, 3, 20}}, {3, {4, 3, 5}}, {3, {2, 4, 8}}, 1, true, {2}, {1}, {0, 0}, NULL},
    {{3, {2, 3, 20}}, {3, {4, 3, 4}}, {3, {2, 4, 7}}, 1, true, {3}, {2}, {3, 2}, NULL},
    {{5, {1, 2, 4, 5, 6}},
     {5, {3, 2, 2, 3, 2}},
     {5, {1, 3, 3, 5, 3}},
     1,
     true,
     {1, 1, 2},
     ONES,
     {0, 1, 0, 0, 1, 0},
     NULL},
    {{5, {2, 4, 5, 5, 5}},
     {5, {4, 2, 3, 3, 3}},
     {5, {2, 4, 3, 3, 3}},
     2,
     false,
     {2, 2, 2},
     ONES,
     {1, 1, 1, 1, 1, 1},
     NULL},
    {{4, {1, 1, 7, 7}}, {4, {2, 1, 2, 2}}, {4, {1, 2, 7, 7}}, 1, false, ONES, ONES, {0, 0, 1, 1}, "SAME_UPPER"},
    {{4, {1, 1, 7, 7}}, {4, {2, 1, 2, 2}}, {4, {1, 2, 7, 7}}, 1, false, ONES, ONES, {1, 1, 0, 0}, "SAME_LOWER"},
    {{4, {1, 1, 7, 6}}, {4, {2, 1, 3, 3}}, {4, {1, 2, 4, 3}}, 1, true, {2, 2, 1}, ONES, {1, 0, 1, 1}, "SAME_UPPER"},
    {{4, {1, 1, 7, 6}}, {4, {2, 1, 3, 3}}, {4, {1, 2, 3, 2}}, 1, true, {2, 2, 1}, ONES, {0}, "VALID"},
    {{4, {1, 70, 9, 9}}, {4, {67, 70, 3, 3}}, {4, {1, 67, 9, 9}}, 1, true, ONES, ONES, {1, 1, 1, 1}, NULL},
    {{4, {0, 3, 5, 5}}, {4, {2, 3, 3, 3}}, {4, {0, 2, 3, 3}}, 1, true, ONES, ONES, {0}, NULL},
    {{4, {1, 0, 5, 5}}, {4, {2, 0, 3, 3}}, {4, {1, 2, 3, 3}}, 1, true, ONES, ONES, {0}, NULL},
    {{4, {1, 2, 5, 0}}, {4, {2, 2, 3, 3}}, {4, {1, 2, 3, 2}}, 1, true, ONES, ONES, {0, 2, 0, 2}, NULL},
};

typedef struct sum {
  double value, magnitude;
} sum;

/* The sum behind y[n][m] at a position. */
static sum at_position(const convolution *c, const float *x, const float *w, int64_t n, int64_t m,
                       const int64_t *position) {
  const int spatial = c->x.ndim - 2;
  const int64_t per_group = c->w.dims[0] / c->group, channels = c->w.dims[1];
  int64_t taps = 1;
  sum s = {0, 0};
  for (int d = 0; d < spatial; d++) taps *= c->w.dims[2 + d];
  for (int64_t ch = 0; ch < channels; ch++) {
    for (int64_t tap = 0; tap < taps; tap++) {
      int64_t rest = tap, at = 0, stride = 1;
      bool inside = true;
      for (int d = spatial - 1; d >= 0; d--) {
        int64_t k = rest % c->w.dims[2 + d];
        int64_t i = position[d] * c->strides[d] + k * c->dilations[d] - c->pads[d];
        rest /= c->w.dims[2 + d];
        inside = inside && i >= 0 && i < c->x.dims[2 + d];
        at += i * stride;
        stride *= c->x.dims[2 + d];
      }
      if (!inside) continue;
      int64_t plane = n * c->x.dims[1] + m / per_group * channels + ch;
      double term = (double)x[plane * stride + at] * (double)w[(m * channels + ch) * taps + tap];
      s.value += term;
      s.magnitude += fabs(term);
    }
  }
  return s;
}

static float *build(op_case *o, const convolution *c, float **x, float **w, float **bias) {
  const uint64_t spatial = (uint64_t)c->x.ndim - 2;
  op_case_init(o, "Conv");
  *x = op_input(o, F32, c->x);
  *w = op_input(o, F32, c->w);
  *bias = c->bias ? op_input(o, F32, SHAPE(1, c->w.dims[0])) : NULL;
  op_fill(*x, op_count(c->x), 1);
  op_fill(*w, op_count(c->w), 2);
  if (c->bias) op_fill(*bias, (size_t)c->w.dims[0], 3);
  op_attr_ints(o, "strides", spatial, c->strides);
  op_attr_ints(o, "dilations", spatial, c->dilations);
  if (c->auto_pad != NULL) op_attr_string(o, "auto_pad", c->auto_pad);
  else op_attr_ints(o, "pads", 2 * spatial, c->pads);
  if (c->group != 1) op_attr_int(o, "group", c->group);
  return op_output(o, F32, c->y);
}

static void check_convolution(fake_device *d, const convolution *c) {
  const int spatial = c->x.ndim - 2;
  float *x, *w, *bias;
  op_case o;
  float *y = build(&o, c, &x, &w, &bias);
  op_case_run(d, &o);
  for (size_t i = 0; i < op_count(c->y); i++) {
    int64_t rest = (int64_t)i, position[OP_DIMS] = {0};
    for (int k = spatial - 1; k >= 0; k--) {
      position[k] = rest % c->y.dims[2 + k];
      rest /= c->y.dims[2 + k];
    }
    int64_t m = rest % c->y.dims[1];
    sum s = at_position(c, x, w, rest / c->y.dims[1], m, position);
    if (bias != NULL) {
      s.value += (double)bias[m];
      s.magnitude += fabs((double)bias[m]);
    }
    op_close(s.value, y[i], s.magnitude, 30, "Conv", i);
  }
  op_case_free(&o);
}

static void convolves_in_one_to_three_dimensions(void **state) {
  fake_device d;
  (void)state;
  fake_device_open(&d, "cpu");
  for (size_t i = 0; i < sizeof convolutions / sizeof convolutions[0]; i++) {
    print_message("convolution %zu\n", i);
    check_convolution(&d, &convolutions[i]);
  }
  fake_device_close(&d);
}

static void threads_do_not_change_a_bit(void **state) {
  static const convolution big = {
      {4, {2, 32, 30, 31}}, {4, {70, 32, 3, 3}}, {4, {2, 70, 30, 31}}, 1, true, ONES, ONES, {1, 1, 1, 1}, NULL};
  fake_device d;
  float *x, *w, *bias;
  op_case o;
  (void)state;
  fake_device_open(&d, "cpu");
  build(&o, &big, &x, &w, &bias);
  op_case_run(&d, &o);
  op_same_with_threads(&d, &o);
  op_case_free(&o);
  fake_device_close(&d);
}

static void attributes_have_defaults(void **state) {
  fake_device d;
  op_case o;
  (void)state;
  fake_device_open(&d, "cpu");
  op_case_init(&o, "Conv");
  float *x = op_input(&o, F32, SHAPE(4, 1, 1, 2, 2)), *w = op_input(&o, F32, SHAPE(4, 1, 1, 2, 2));
  op_input_again(&o, -1); /* the bias is there and absent */
  float *y = op_output(&o, F32, SHAPE(4, 1, 1, 1, 1));
  for (int i = 0; i < 4; i++) x[i] = (float)(i + 1), w[i] = (float)(10 * i);
  op_case_run(&d, &o);
  assert_true(y[0] == 0 * 1 + 10 * 2 + 20 * 3 + 30 * 4);
  op_case_free(&o);
  fake_device_close(&d);
}

static void refuses_in_words(void **state) {
  fake_device d;
  op_case o;
  (void)state;
  fake_device_open(&d, "cpu");
  op_case_init(&o, "Conv");
  op_input(&o, F32, SHAPE(4, 1, 4, 8, 8));
  op_input(&o, F32, SHAPE(4, 6, 4, 3, 3));
  op_output(&o, F32, SHAPE(4, 1, 6, 6, 6));
  assert_int_equal(op_query(&d, &o), HEDDLE_OK);
  op_attr_int(&o, "group", 2);
  op_expect_refused(&d, &o, "do not make 2 groups");
  o.ints[0][0] = 0;
  op_expect_refused(&d, &o, "do not make 0 groups");
  o.node.attrs.count = 0;
  op_attr_ints(&o, "strides", 2, (const int64_t[]){1, 0});
  op_expect_refused(&d, &o, "'strides' has the member 0");
  o.attrs[0].a.count = 1;
  op_expect_refused(&d, &o, "'strides' has 1 members instead of 2");
  o.attrs[0].a.name = "pads";
  o.attrs[0].a.count = 4;
  o.ints[0][0] = INT64_MAX;
  op_expect_refused(&d, &o, "'pads' has the member 9223372036854775807");
  o.node.attrs.count = 0;
  op_attr_ints(&o, "kernel_shape", 2, (const int64_t[]){3, 4});
  op_expect_refused(&d, &o, "kernel_shape");
  o.node.attrs.count = 0;
  op_attr_string(&o, "auto_pad", "SOME");
  op_expect_refused(&d, &o, "auto_pad 'SOME'");
  o.node.attrs.count = 0;
  o.shapes[2][3] = 7;
  op_expect_refused(&d, &o, "do not give a result of shape [1, 6, 6, 7]");
  op_case_free(&o);

  op_case_init(&o, "Conv");
  op_input(&o, F32, SHAPE(6, 1, 1, 2, 2, 2, 2));
  op_input(&o, F32, SHAPE(6, 1, 1, 1, 1, 1, 1));
  op_output(&o, F32, SHAPE(6, 1, 1, 2, 2, 2, 2));
  op_expect_refused(&d, &o, "4 spatial dimensions");
  op_case_free(&o);

  op_case_init(&o, "Conv"); /* a kernel larger than its input */
  op_input(&o, F32, SHAPE(3, 1, 1, 2));
  op_input(&o, F32, SHAPE(3, 1, 1, 5));
  op_output(&o, F32, SHAPE(3, 1, 1, 0));
  op_expect_refused(&d, &o, "do not give");
  op_case_free(&o);
  fake_device_close(&d);
}

CASES(CASE(convolves_in_one_to_three_dimensions), CASE_LABELS(threads_do_not_change_a_bit, "threads"),
      CASE(attributes_have_defaults), CASE(refuses_in_words))
