/* labels: threads
 * MatMul and Gemm of the reference kernels, through the cpu plugin, against plain loops in float64. */
#include "op_case.h"

typedef struct product {
  op_shape a, b, out;
} product;

static const product products[] = {
    {{2, {3, 4}}, {2, {4, 5}}, {2, {3, 5}}},
    {{1, {4}}, {1, {4}}, {0, {0}}},
    {{1, {4}}, {2, {4, 5}}, {1, {5}}},
    {{2, {3, 4}}, {1, {4}}, {1, {3}}},
    {{1, {4}}, {3, {2, 4, 5}}, {2, {2, 5}}},
    {{3, {2, 3, 4}}, {1, {4}}, {2, {2, 3}}},
    {{3, {2, 3, 4}}, {2, {4, 5}}, {3, {2, 3, 5}}},
    {{2, {3, 4}}, {3, {2, 4, 5}}, {3, {2, 3, 5}}},
    {{3, {1, 3, 4}}, {3, {2, 4, 5}}, {3, {2, 3, 5}}},
    {{4, {2, 1, 3, 4}}, {4, {1, 3, 4, 2}}, {4, {2, 3, 3, 2}}},
    {{4, {1, 1, 3, 4}}, {2, {4, 2}}, {4, {1, 1, 3, 2}}},
    {{3, {2, 3, 4}}, {4, {5, 1, 4, 2}}, {4, {5, 2, 3, 2}}},
    {{2, {1, 1}}, {2, {1, 1}}, {2, {1, 1}}},
    {{2, {65, 67}}, {2, {67, 71}}, {2, {65, 71}}},
    {{2, {1, 300}}, {2, {300, 130}}, {2, {1, 130}}},
    {{2, {130, 17}}, {2, {17, 1}}, {2, {130, 1}}},
    {{2, {3, 0}}, {2, {0, 5}}, {2, {3, 5}}},
    {{2, {0, 4}}, {2, {4, 5}}, {2, {0, 5}}},
    {{3, {2, 3, 4}}, {3, {2, 4, 0}}, {3, {2, 3, 0}}},
    {{3, {0, 3, 4}}, {2, {4, 2}}, {3, {0, 3, 2}}},
};

/* An operand as a stack: its batch dimensions and its matrix. */
typedef struct stack {
  int32_t batch;
  int64_t rows, cols;
} stack;

static stack stack_of(op_shape s, bool left) {
  if (s.ndim == 1) return left ? (stack){0, 1, s.dims[0]} : (stack){0, s.dims[0], 1};
  return (stack){s.ndim - 2, s.dims[s.ndim - 2], s.dims[s.ndim - 1]};
}

/* Which matrix of s belongs to batch number i of out's batch dimensions. */
static size_t batch_under(op_shape s, int32_t batch, op_shape out, int32_t out_batch, size_t i) {
  size_t at = 0, stride = 1;
  for (int32_t d = out_batch - 1; d >= 0; d--) {
    int32_t k = d - (out_batch - batch);
    size_t index = i % (size_t)out.dims[d];
    i /= (size_t)out.dims[d];
    if (k < 0) continue;
    if (s.dims[k] != 1) at += index * stride;
    stride *= (size_t)s.dims[k];
  }
  return at;
}

static void check_product(fake_device *d, const product *p) {
  op_case c;
  op_case_init(&c, "MatMul");
  float *a = op_input(&c, F32, p->a), *b = op_input(&c, F32, p->b), *out = op_output(&c, F32, p->out);
  op_fill(a, op_count(p->a), 1);
  op_fill(b, op_count(p->b), 2);
  op_case_run(d, &c);

  stack l = stack_of(p->a, true), r = stack_of(p->b, false);
  int32_t out_batch = p->out.ndim - (p->a.ndim > 1) - (p->b.ndim > 1);
  for (size_t i = 0; i < op_count(p->out); i++) {
    size_t matrix = i / (size_t)(l.rows * r.cols);
    size_t row = i / (size_t)r.cols % (size_t)l.rows, col = i % (size_t)r.cols;
    size_t la = batch_under(p->a, l.batch, p->out, out_batch, matrix) * (size_t)(l.rows * l.cols);
    size_t rb = batch_under(p->b, r.batch, p->out, out_batch, matrix) * (size_t)(r.rows * r.cols);
    double sum = 0, magnitude = 0;
    for (size_t k = 0; k < (size_t)l.cols; k++) {
      double x = (double)a[la + row * (size_t)l.cols + k] * (double)b[rb + k * (size_t)r.cols + col];
      sum += x;
      magnitude += fabs(x);
    }
    op_close(sum, out[i], magnitude, 24, "MatMul", i);
  }
  op_case_free(&c);
}

static void multiplies_as_numpy_does(void **state) {
  fake_device d;
  (void)state;
  fake_device_open(&d, "cpu");
  for (size_t i = 0; i < sizeof products / sizeof products[0]; i++) check_product(&d, &products[i]);
  fake_device_close(&d);
}

static void threads_do_not_change_a_bit(void **state) {
  fake_device d;
  op_case c;
  op_shape a = {3, {3, 70, 301}}, b = {3, {3, 301, 90}}, out = {3, {3, 70, 90}};
  (void)state;
  fake_device_open(&d, "cpu");
  op_case_init(&c, "MatMul");
  op_fill(op_input(&c, F32, a), op_count(a), 1);
  op_fill(op_input(&c, F32, b), op_count(b), 2);
  op_output(&c, F32, out);
  op_case_run(&d, &c);
  op_same_with_threads(&d, &c);
  op_case_free(&c);

  op_shape weights = {2, {301, 4000}}, x = {2, {1, 301}}, y = {2, {1, 4000}}; /* one row: cut by columns */
  op_case_init(&c, "MatMul");
  op_fill(op_input(&c, F32, x), op_count(x), 1);
  op_fill(op_input(&c, F32, weights), op_count(weights), 2);
  op_output(&c, F32, y);
  op_case_run(&d, &c);
  op_same_with_threads(&d, &c);
  op_case_free(&c);
  fake_device_close(&d);
}

/* The order of a sum depends on k alone: a row of a large product is the product of that row. */
static void a_row_alone_gives_the_same_bits(void **state) {
  fake_device d;
  op_case all, one;
  op_shape a = {2, {37, 150}}, b = {2, {150, 75}}, row = {2, {1, 150}};
  (void)state;
  fake_device_open(&d, "cpu");
  op_case_init(&all, "MatMul");
  float *x = op_input(&all, F32, a), *w = op_input(&all, F32, b), *y = op_output(&all, F32, SHAPE(2, 37, 75));
  op_fill(x, op_count(a), 1);
  op_fill(w, op_count(b), 2);
  op_case_run(&d, &all);
  for (size_t i = 0; i < 37; i++) {
    op_case_init(&one, "MatMul");
    memcpy(op_input(&one, F32, row), x + i * 150, 150 * sizeof *x);
    memcpy(op_input(&one, F32, b), w, op_count(b) * sizeof *w);
    float *z = op_output(&one, F32, SHAPE(2, 1, 75));
    op_case_run(&d, &one);
    assert_memory_equal(z, y + i * 75, 75 * sizeof *z);
    op_case_free(&one);
  }
  op_case_free(&all);
  fake_device_close(&d);
}

/* The error of a long sum against that of a plain float32 loop. */
static void long_sums_stay_accurate(void **state) {
  enum { K = 20000 };
  fake_device d;
  op_case c;
  double worst = 0, plain_worst = 0;
  (void)state;
  fake_device_open(&d, "cpu");
  op_case_init(&c, "MatMul");
  float *a = op_input(&c, F32, SHAPE(2, 4, K)), *b = op_input(&c, F32, SHAPE(2, K, 4));
  float *out = op_output(&c, F32, SHAPE(2, 4, 4));
  op_fill(a, 4 * K, 1);
  op_fill(b, 4 * K, 2);
  for (size_t i = 0; i < 4 * K; i++) a[i] = fabsf(a[i]), b[i] = fabsf(b[i]);
  op_case_run(&d, &c);
  for (size_t i = 0; i < 16; i++) {
    double sum = 0;
    volatile float plain = 0;
    for (size_t k = 0; k < K; k++) {
      sum += (double)a[i / 4 * K + k] * (double)b[k * 4 + i % 4];
      plain = plain + a[i / 4 * K + k] * b[k * 4 + i % 4];
    }
    double error = fabs(out[i] - sum) / sum, plain_error = fabs(plain - sum) / sum;
    if (error > worst) worst = error;
    if (plain_error > plain_worst) plain_worst = plain_error;
  }
  assert_true(worst < plain_worst / 4);
  assert_true(worst < 2e-6);
  op_case_free(&c);
  fake_device_close(&d);
}

/* ---------------------------------------------------------------- Gemm */

static void check_gemm(fake_device *d, int64_t m, int64_t n, int64_t k, int trans, double alpha, double beta,
                       const op_shape *bias) {
  const bool ta = (trans & 1) != 0, tb = (trans & 2) != 0;
  op_case c;
  op_case_init(&c, "Gemm");
  op_shape sa = ta ? SHAPE(2, k, m) : SHAPE(2, m, k), sb = tb ? SHAPE(2, n, k) : SHAPE(2, k, n);
  float *a = op_input(&c, F32, sa), *b = op_input(&c, F32, sb), *add = bias != NULL ? op_input(&c, F32, *bias) : NULL;
  float *out = op_output(&c, F32, SHAPE(2, m, n));
  op_fill(a, op_count(sa), 1);
  op_fill(b, op_count(sb), 2);
  if (bias != NULL) op_fill(add, op_count(*bias), 3);
  if (bias != NULL && beta == 0) add[0] = NAN; /* is not looked at then */
  if (ta) op_attr_int(&c, "transA", 1);
  if (tb) op_attr_int(&c, "transB", 1);
  if (alpha != 1) op_attr_float(&c, "alpha", alpha);
  if (beta != 1) op_attr_float(&c, "beta", beta);
  op_case_run(d, &c);
  for (int64_t i = 0; i < m; i++) {
    for (int64_t j = 0; j < n; j++) {
      double sum = 0, magnitude = 0;
      for (int64_t q = 0; q < k; q++) {
        double x = (double)a[ta ? q * m + i : i * k + q] * (double)b[tb ? j * k + q : q * n + j];
        sum += x;
        magnitude += fabs(x);
      }
      sum *= (double)(float)alpha;
      magnitude *= fabs(alpha);
      if (bias != NULL && beta != 0) {
        int64_t rows = bias->ndim == 2 ? bias->dims[0] : 1, cols = bias->ndim > 0 ? bias->dims[bias->ndim - 1] : 1;
        double x = (double)(float)beta * (double)add[(rows == 1 ? 0 : i) * cols + (cols == 1 ? 0 : j)];
        sum += x;
        magnitude += fabs(x);
      }
      op_close(sum, out[i * n + j], magnitude, 28, "Gemm", (size_t)(i * n + j));
    }
  }
  op_case_free(&c);
}

static void gemm_transposes_scales_and_adds(void **state) {
  static const op_shape biases[] = {{0, {0}}, {1, {1}}, {1, {5}}, {2, {1, 5}}, {2, {3, 1}}, {2, {3, 5}}};
  fake_device d;
  (void)state;
  fake_device_open(&d, "cpu");
  for (int trans = 0; trans < 4; trans++) {
    check_gemm(&d, 3, 5, 4, trans, 1, 1, NULL);
    check_gemm(&d, 70, 66, 130, trans, 0.5, 1, NULL);
    for (size_t i = 0; i < sizeof biases / sizeof biases[0]; i++) {
      check_gemm(&d, 3, 5, 4, trans, 1, 1, &biases[i]);
      check_gemm(&d, 3, 5, 4, trans, 0.25, -2, &biases[i]);
      check_gemm(&d, 3, 5, 0, trans, 0.25, 3, &biases[i]);
    }
  }
  check_gemm(&d, 3, 5, 4, 0, 1, 0, &biases[5]);
  fake_device_close(&d);
}

static void refuses_in_words(void **state) {
  fake_device d;
  op_case c;
  (void)state;
  fake_device_open(&d, "cpu");
  op_case_init(&c, "MatMul");
  op_input(&c, F32, SHAPE(2, 3, 4));
  op_input(&c, F32, SHAPE(2, 5, 6));
  op_output(&c, F32, SHAPE(2, 3, 6));
  op_expect_refused(&d, &c, "[3, 4] [5, 6]");
  c.shapes[1][0] = 4;
  assert_int_equal(op_query(&d, &c), HEDDLE_OK);
  c.shapes[2][1] = 7;
  op_expect_refused(&d, &c, "[3, 7]");
  op_case_free(&c);

  op_case_init(&c, "MatMul");
  op_input(&c, U1, SHAPE(2, 3, 4));
  op_input(&c, U1, SHAPE(2, 4, 6));
  op_output(&c, U1, SHAPE(2, 3, 6));
  op_expect_refused(&d, &c, "takes float32");
  op_case_free(&c);

  op_case_init(&c, "Gemm");
  op_input(&c, F32, SHAPE(2, 3, 4));
  op_input(&c, F32, SHAPE(2, 4, 6));
  op_input(&c, F32, SHAPE(1, 3));
  op_output(&c, F32, SHAPE(2, 3, 6));
  op_expect_refused(&d, &c, "[3]");
  c.node.n_inputs = 2;
  op_attr_string(&c, "alpha", "one");
  op_expect_refused(&d, &c, "must be a number");
  c.node.attrs.count = 0;
  c.node.n_inputs = 1;
  op_expect_refused(&d, &c, "operand 1 is missing");
  op_case_free(&c);
  fake_device_close(&d);
}

CASES(CASE(multiplies_as_numpy_does), CASE_LABELS(threads_do_not_change_a_bit, "threads"),
      CASE(a_row_alone_gives_the_same_bits), CASE(long_sums_stay_accurate), CASE(gemm_transposes_scales_and_adds),
      CASE(refuses_in_words))
