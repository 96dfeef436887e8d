/* labels: threads
 * Reshape, Flatten, Identity and Concat of the reference kernels, through the cpu plugin. */
#include "op_case.h"

static void reshape_absorbs_a_constant_shape(void **state) {
  fake_device d;
  op_case c;
  (void)state;
  fake_device_open(&d, "cpu");
  for (int constant = 0; constant < 2; constant++) {
    op_case_init(&c, "Reshape");
    uint8_t *x = op_input(&c, U8, SHAPE(2, 4, 3));
    int64_t *shape = op_input(&c, I64, SHAPE(1, 2));
    uint8_t *y = op_output(&c, U8, SHAPE(2, 2, 6));
    shape[0] = 2, shape[1] = -1;
    if (constant != 0) op_constant(&c, 1);
    for (uint8_t i = 0; i < 12; i++) x[i] = i;
    op_case_run(&d, &c);
    assert_memory_equal(x, y, 12);
    assert_int_equal(c.flags[0], 0);
    assert_int_equal(c.flags[1], constant != 0 ? HEDDLE_INPUT_ABSORBED : 0);
    assert_int_equal(c.n_pairs, 1);
    op_case_free(&c);
  }

  op_case_init(&c, "Reshape"); /* its own shape: the value is read, so it is not absorbed */
  int64_t *x = op_input(&c, I64, SHAPE(1, 1));
  op_input_again(&c, 0);
  int64_t *y = op_output(&c, I64, SHAPE(1, 1));
  x[0] = 1;
  op_constant(&c, 0);
  op_case_run(&d, &c);
  assert_int_equal(c.flags[0], 0);
  assert_true(y[0] == 1);
  op_case_free(&c);
  fake_device_close(&d);
}

static void in_place_nothing_moves(void **state) {
  fake_device d;
  op_case c;
  (void)state;
  fake_device_open(&d, "cpu");
  op_case_init(&c, "Identity");
  op_input(&c, F32, SHAPE(1, 8));
  float *y = op_output(&c, F32, SHAPE(1, 8));
  op_fill(y, 8, 9);
  c.in_place = 0;
  op_case_run(&d, &c);
  float want[8];
  op_fill(want, 8, 9);
  assert_memory_equal(y, want, sizeof want);
  op_case_free(&c);
  fake_device_close(&d);
}

static void flatten_takes_its_axis(void **state) {
  static const int64_t axes[] = {0, 1, 2, 3, -1, -3};
  static const int64_t rows[] = {1, 2, 6, 24, 6, 1};
  fake_device d;
  op_case c;
  (void)state;
  fake_device_open(&d, "cpu");
  for (size_t i = 0; i < 6; i++) {
    op_case_init(&c, "Flatten");
    int32_t *x = op_input(&c, I32, SHAPE(3, 2, 3, 4)), *y = op_output(&c, I32, SHAPE(2, rows[i], 24 / rows[i]));
    op_attr_int(&c, "axis", axes[i]);
    for (int32_t k = 0; k < 24; k++) x[k] = k * k;
    op_case_run(&d, &c);
    assert_memory_equal(x, y, 24 * sizeof *x);
    op_case_free(&c);
  }
  op_case_init(&c, "Flatten");
  op_input(&c, I32, SHAPE(3, 2, 3, 4));
  op_output(&c, I32, SHAPE(2, 3, 8));
  op_expect_refused(&d, &c, "[3, 8]");
  op_attr_int(&c, "axis", 4);
  op_expect_refused(&d, &c, "axis 4 of 3 dimensions");
  op_case_free(&c);
  fake_device_close(&d);
}

static void concat_joins_along_any_axis(void **state) {
  static const heddle_dtype types[] = {
      {HEDDLE_DTYPE_UINT, 8, 1}, {HEDDLE_DTYPE_FLOAT, 16, 1}, {HEDDLE_DTYPE_INT, 64, 1}};
  fake_device d;
  (void)state;
  fake_device_open(&d, "cpu");
  for (size_t t = 0; t < 3; t++) {
    for (int32_t axis = 0; axis < 3; axis++) {
      static const int64_t lengths[] = {2, 0, 3, 1};
      const size_t size = types[t].bits / 8;
      unsigned char *in[4], *out;
      op_shape shape = {3, {2, 3, 4}};
      op_case c;
      op_case_init(&c, "Concat");
      op_attr_int(&c, "axis", axis - (t == 1 ? 3 : 0));
      for (size_t k = 0; k < 4; k++) {
        shape.dims[axis] = lengths[k];
        in[k] = op_input(&c, types[t], shape);
        for (size_t i = 0; i < op_count(shape) * size; i++) in[k][i] = (unsigned char)(i * 7 + k * 50);
      }
      op_input_again(&c, 0); /* the first once more */
      shape.dims[axis] = 8;
      out = op_output(&c, types[t], shape);
      op_case_run(&d, &c);
      size_t inner = size, at = 0;
      for (int32_t i = axis + 1; i < 3; i++) inner *= (size_t)shape.dims[i];
      for (size_t outer = 0; outer < op_count(shape) * size / (8 * inner); outer++) {
        for (size_t k = 0; k < 5; k++) {
          size_t row = (size_t)lengths[k % 4] * inner;
          for (size_t i = 0; i < row; i++) assert_int_equal(out[at++], in[k % 4][outer * row + i]);
        }
      }
      assert_int_equal(at, op_count(shape) * size);
      op_case_free(&c);
    }
  }
  fake_device_close(&d);
}

static void empty_ones_run(void **state) {
  fake_device d;
  op_case c;
  (void)state;
  fake_device_open(&d, "cpu");
  op_case_init(&c, "Concat");
  op_attr_int(&c, "axis", 1);
  op_input(&c, F32, SHAPE(2, 0, 2));
  op_input(&c, F32, SHAPE(2, 0, 3));
  op_output(&c, F32, SHAPE(2, 0, 5));
  op_case_run(&d, &c);
  op_case_free(&c);
  op_case_init(&c, "Identity");
  op_input(&c, F32, SHAPE(2, 0, 2));
  op_output(&c, F32, SHAPE(2, 0, 2));
  op_case_run(&d, &c);
  op_case_free(&c);
  fake_device_close(&d);
}

static void threads_do_not_change_a_bit(void **state) {
  fake_device d;
  op_case c;
  (void)state;
  fake_device_open(&d, "cpu");
  op_case_init(&c, "Concat");
  op_attr_int(&c, "axis", 1);
  op_fill(op_input(&c, F32, SHAPE(2, 900, 301)), 900 * 301, 1);
  op_fill(op_input(&c, F32, SHAPE(2, 900, 200)), 900 * 200, 2);
  op_output(&c, F32, SHAPE(2, 900, 501));
  op_case_run(&d, &c);
  op_same_with_threads(&d, &c);
  op_case_free(&c);
  op_case_init(&c, "Identity");
  op_fill(op_input(&c, F32, SHAPE(1, 500001)), 500001, 1);
  op_output(&c, F32, SHAPE(1, 500001));
  op_case_run(&d, &c);
  op_same_with_threads(&d, &c);
  op_case_free(&c);
  fake_device_close(&d);
}

static void refuses_in_words(void **state) {
  fake_device d;
  op_case c;
  (void)state;
  fake_device_open(&d, "cpu");
  op_case_init(&c, "Reshape");
  op_input(&c, F32, SHAPE(2, 4, 3));
  op_input(&c, I64, SHAPE(1, 2));
  op_output(&c, F32, SHAPE(2, 5, 3));
  op_expect_refused(&d, &c, "[5, 3]");
  c.values[1].v.dtype = I32;
  op_expect_refused(&d, &c, "list of int64");
  op_case_free(&c);

  op_case_init(&c, "Identity");
  op_input(&c, F32, SHAPE(1, 4));
  op_output(&c, I32, SHAPE(1, 4));
  op_expect_refused(&d, &c, "int32");
  c.values[0].v.dtype = c.values[1].v.dtype = (heddle_dtype){HEDDLE_DTYPE_INT, 12, 1};
  op_expect_refused(&d, &c, "no size in bytes");
  op_case_free(&c);

  op_case_init(&c, "Concat");
  op_input(&c, F32, SHAPE(2, 2, 3));
  op_input(&c, F32, SHAPE(2, 2, 4));
  op_output(&c, F32, SHAPE(2, 2, 8));
  op_expect_refused(&d, &c, "'axis' is missing");
  op_attr_int(&c, "axis", 1);
  op_expect_refused(&d, &c, "do not fill");
  c.shapes[2][1] = 5;
  op_expect_refused(&d, &c, "operand 1 is too long");
  c.ints[0][0] = 0;
  op_expect_refused(&d, &c, "operand 0 does not fit");
  c.ints[0][0] = 2;
  op_expect_refused(&d, &c, "axis 2 of 2");
  op_case_free(&c);
  fake_device_close(&d);
}

CASES(CASE(reshape_absorbs_a_constant_shape), CASE(in_place_nothing_moves), CASE(flatten_takes_its_axis),
      CASE(concat_joins_along_any_axis), CASE(empty_ones_run), CASE_LABELS(threads_do_not_change_a_bit, "threads"),
      CASE(refuses_in_words))
