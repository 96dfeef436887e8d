/* labels: threads
 * Add, Mul and Relu of the reference kernels, through the cpu plugin, against loops over every index. */
#include "op_case.h"

typedef struct pair {
  op_shape a, b, out;
} pair;

static const pair pairs[] = {
    {{0, {0}}, {0, {0}}, {0, {0}}},
    {{1, {1}}, {1, {1}}, {1, {1}}},
    {{1, {7}}, {1, {7}}, {1, {7}}},
    {{1, {1000}}, {1, {1000}}, {1, {1000}}},
    {{2, {3, 5}}, {0, {0}}, {2, {3, 5}}},
    {{0, {0}}, {2, {3, 5}}, {2, {3, 5}}},
    {{2, {3, 5}}, {1, {5}}, {2, {3, 5}}},
    {{2, {3, 1}}, {2, {1, 5}}, {2, {3, 5}}},
    {{4, {2, 3, 4, 5}}, {3, {3, 1, 1}}, {4, {2, 3, 4, 5}}},
    {{4, {2, 1, 4, 1}}, {4, {1, 3, 1, 5}}, {4, {2, 3, 4, 5}}},
    {{3, {4, 1, 6}}, {3, {1, 1, 6}}, {3, {4, 1, 6}}},
    {{1, {6}}, {5, {2, 1, 3, 1, 6}}, {5, {2, 1, 3, 1, 6}}},
    {{2, {0, 5}}, {2, {1, 5}}, {2, {0, 5}}},
    {{2, {0, 5}}, {2, {1, 1}}, {2, {0, 5}}},
    {{2, {1, 0}}, {2, {3, 1}}, {2, {3, 0}}},
};

/* Index into a value of shape s for the flat index i of out. */
static size_t under(op_shape s, op_shape out, size_t i) {
  size_t at = 0, stride = 1;
  for (int32_t d = out.ndim - 1; d >= 0; d--) {
    int32_t k = d - (out.ndim - s.ndim);
    size_t index = i % (size_t)out.dims[d];
    i /= (size_t)out.dims[d];
    if (k < 0) continue;
    if (s.dims[k] != 1) at += index * stride;
    stride *= (size_t)s.dims[k];
  }
  return at;
}

static void check_pair(fake_device *d, const pair *p, bool multiply) {
  op_case c;
  op_case_init(&c, multiply ? "Mul" : "Add");
  float *a = op_input(&c, F32, p->a), *b = op_input(&c, F32, p->b), *out = op_output(&c, F32, p->out);
  op_fill(a, op_count(p->a), 1);
  op_fill(b, op_count(p->b), 2);
  op_case_run(d, &c);
  for (size_t i = 0; i < op_count(p->out); i++) {
    float x = a[under(p->a, p->out, i)], y = b[under(p->b, p->out, i)];
    volatile float want = multiply ? x * y : x + y;
    assert_true(want == out[i]);
  }
  op_case_free(&c);
}

static void broadcasts_every_way(void **state) {
  fake_device d;
  (void)state;
  fake_device_open(&d, "cpu");
  for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
    check_pair(&d, &pairs[i], false);
    check_pair(&d, &pairs[i], true);
    pair swapped = {pairs[i].b, pairs[i].a, pairs[i].out};
    check_pair(&d, &swapped, false);
  }
  fake_device_close(&d);
}

static void integers_wrap(void **state) {
  fake_device d;
  op_case c;
  (void)state;
  fake_device_open(&d, "cpu");
  op_case_init(&c, "Add");
  int32_t *a = op_input(&c, I32, SHAPE(1, 3)), *b = op_input(&c, I32, SHAPE(1, 3)),
          *o = op_output(&c, I32, SHAPE(1, 3));
  a[0] = INT32_MAX, a[1] = -5, a[2] = INT32_MIN;
  b[0] = 1, b[1] = 7, b[2] = -1;
  op_case_run(&d, &c);
  assert_int_equal(o[0], INT32_MIN);
  assert_int_equal(o[1], 2);
  assert_int_equal(o[2], INT32_MAX);
  op_case_free(&c);

  op_case_init(&c, "Mul");
  int64_t *x = op_input(&c, I64, SHAPE(2, 2, 2)), *y = op_input(&c, I64, SHAPE(1, 2));
  int64_t *z = op_output(&c, I64, SHAPE(2, 2, 2));
  x[0] = INT64_MIN, x[1] = 3, x[2] = -4, x[3] = 1;
  y[0] = -1, y[1] = INT64_C(1) << 40;
  op_case_run(&d, &c);
  assert_true(z[0] == INT64_MIN && z[1] == INT64_C(3) << 40 && z[2] == 4 && z[3] == INT64_C(1) << 40);
  op_case_free(&c);
  fake_device_close(&d);
}

static void results_may_lie_on_operands(void **state) {
  fake_device d;
  op_case c;
  (void)state;
  fake_device_open(&d, "cpu");
  op_case_init(&c, "Add");
  op_input(&c, F32, SHAPE(1, 100));
  float *b = op_input(&c, F32, SHAPE(1, 100)), *out = op_output(&c, F32, SHAPE(1, 100));
  op_fill(out, 100, 3);
  op_fill(b, 100, 4);
  c.in_place = 0;
  op_case_run(&d, &c);
  assert_int_equal(c.n_pairs, 2);
  float want[100];
  op_fill(want, 100, 3);
  for (int i = 0; i < 100; i++) assert_true(out[i] == want[i] + b[i]);
  op_case_free(&c);

  op_case_init(&c, "Mul"); /* x * x: one region input */
  float *x = op_input(&c, F32, SHAPE(1, 9));
  op_input_again(&c, 0);
  out = op_output(&c, F32, SHAPE(1, 9));
  op_fill(x, 9, 5);
  op_case_run(&d, &c);
  assert_int_equal(c.n_pairs, 1);
  for (int i = 0; i < 9; i++) assert_true(out[i] == x[i] * x[i]);
  op_case_free(&c);

  op_case_init(&c, "Add"); /* a broadcast operand cannot hold the result */
  op_input(&c, F32, SHAPE(1, 9));
  op_input(&c, F32, SHAPE(1, 1));
  op_output(&c, F32, SHAPE(1, 9));
  assert_int_equal(op_query(&d, &c), HEDDLE_OK);
  assert_int_equal(c.n_pairs, 1);
  assert_int_equal(c.pairs[0], 0);
  op_case_free(&c);
  fake_device_close(&d);
}

static void relu_keeps_nan(void **state) {
  fake_device d;
  op_case c;
  (void)state;
  fake_device_open(&d, "cpu");
  op_case_init(&c, "Relu");
  float *x = op_input(&c, F32, SHAPE(1, 6)), *y = op_output(&c, F32, SHAPE(1, 6));
  x[0] = -1, x[1] = 2, x[2] = NAN, x[3] = -INFINITY, x[4] = INFINITY, x[5] = 0;
  op_case_run(&d, &c);
  assert_true(y[0] == 0 && y[1] == 2 && y[2] != y[2] && y[3] == 0 && y[4] == INFINITY && y[5] == 0);
  op_case_free(&c);
  fake_device_close(&d);
}

static void large_ones_are_split(void **state) {
  fake_device d;
  op_case c;
  op_shape big = {2, {1000, 1001}}, row = {1, {1001}};
  (void)state;
  fake_device_open(&d, "cpu");
  op_case_init(&c, "Add");
  op_fill(op_input(&c, F32, big), op_count(big), 1);
  op_fill(op_input(&c, F32, row), op_count(row), 2);
  op_output(&c, F32, big);
  op_case_run(&d, &c);
  op_same_with_threads(&d, &c);
  op_case_free(&c);
  op_case_init(&c, "Mul");
  op_fill(op_input(&c, F32, big), op_count(big), 1);
  op_fill(op_input(&c, F32, big), op_count(big), 2);
  op_output(&c, F32, big);
  op_case_run(&d, &c);
  op_same_with_threads(&d, &c);
  op_case_free(&c);
  fake_device_close(&d);
}

static float *add_expression(op_case *c, op_shape x0, op_shape x1) {
  op_case_init(c, "FusedElementwise");
  c->node.domain = "heddle";
  c->node.opset = 1;
  op_attr_string(c, "expression", "Max(Neg(x0), Mul(x1, Add(x0, 0.5)), -1)");
  op_fill(op_input(c, F32, x0), op_count(x0), 1);
  op_fill(op_input(c, F32, x1), op_count(x1), 2);
  return op_output(c, F32, x0);
}

static void expressions_are_split_and_done_in_place(void **state) {
  fake_device d;
  op_case c;
  op_shape big = {2, {1000, 1001}}, row = {1, {1001}}, small = {2, {3, 1001}};
  (void)state;
  fake_device_open(&d, "cpu");
  add_expression(&c, big, row);
  op_case_run(&d, &c);
  op_same_with_threads(&d, &c);
  op_case_free(&c);

  float *out = add_expression(&c, small, row);
  const float *x = c.data[0], *y = c.data[1];
  memcpy(out, x, 3003 * sizeof *x);
  c.in_place = 0;
  op_case_run(&d, &c);
  assert_int_equal(c.n_pairs, 1);
  for (size_t i = 0; i < 3003; i++) {
    volatile float sum = x[i] + 0.5f, product = y[i % 1001] * sum;
    float want = -x[i] > product ? -x[i] : product;
    assert_true(out[i] == (want > -1 ? want : -1));
  }
  op_case_free(&c);
  fake_device_close(&d);
}

static void refuses_in_words(void **state) {
  fake_device d;
  op_case c;
  (void)state;
  fake_device_open(&d, "cpu");
  op_case_init(&c, "Add");
  op_input(&c, U1, SHAPE(1, 2));
  op_input(&c, U1, SHAPE(1, 2));
  op_output(&c, U1, SHAPE(1, 2));
  op_expect_refused(&d, &c, "bool");
  op_case_free(&c);

  op_case_init(&c, "Add");
  op_input(&c, F32, SHAPE(1, 2));
  op_input(&c, I32, SHAPE(1, 2));
  op_output(&c, F32, SHAPE(1, 2));
  op_expect_refused(&d, &c, "int32");
  op_case_free(&c);

  op_case_init(&c, "Add");
  op_input(&c, F32, SHAPE(1, 2));
  op_input(&c, F32, SHAPE(1, 3));
  op_output(&c, F32, SHAPE(1, 3));
  op_expect_refused(&d, &c, "[3]");
  c.shapes[0][0] = 3;
  assert_int_equal(op_query(&d, &c), HEDDLE_OK);
  c.node.opset = 12;
  op_expect_refused(&d, &c, "opset 12");
  c.node.opset = 29;
  op_expect_refused(&d, &c, "opset 29");
  c.node.since_version = 29; /* its definition is newer than what is known */
  op_expect_refused(&d, &c, "opset 29");
  c.node.since_version = 14;
  assert_int_equal(op_query(&d, &c), HEDDLE_OK);
  c.node.struct_size = offsetof(heddle_pnode, since_version); /* a host of 1.1 */
  op_expect_refused(&d, &c, "opset 29");
  c.node.struct_size = sizeof c.node;
  c.node.since_version = 0;
  c.node.opset = 18;
  c.node.domain = "vendor";
  op_expect_refused(&d, &c, "domain 'vendor'");
  c.node.domain = "";
  c.node.op = "Modulo";
  op_expect_refused(&d, &c, "Modulo");
  c.node.op = "Add";
  c.node.name = "n1'\nx";
  op_attr_int(&c, "axis", 1);
  assert_int_equal(op_query(&d, &c), HEDDLE_EUNSUPPORTED);
  assert_null(strchr(d.err.text, '\n'));
  assert_non_null(strstr(d.err.text, "attribute 'axis' is not known"));
  op_case_free(&c);
  fake_device_close(&d);
}

CASES(CASE(broadcasts_every_way), CASE(integers_wrap), CASE(results_may_lie_on_operands), CASE(relu_keeps_nan),
      CASE_LABELS(large_ones_are_split, "threads"), CASE_LABELS(expressions_are_split_and_done_in_place, "threads"),
      CASE(refuses_in_words))
