/* ArgMax, ArgMin, TopK and MaxPool with Indices on a device, against a sort and a search written here: NaN is the
 * greatest, and what ArgMin finds first; of equals the first one counts; columns short and long, few and many. */
#ifndef HEDDLE_TESTS_UNIT_CASES_ALONG_H
#define HEDDLE_TESTS_UNIT_CASES_ALONG_H

#include "device_case.h"

static double key_of(double x) {
  return isnan(x) ? INFINITY : x;
}

/* Is element i of a column before element j? Infinities are not used beside NaN. */
static bool is_before(const double *x, int64_t i, int64_t j, bool largest, bool last) {
  const double a = key_of(x[i]), b = key_of(x[j]);
  if (a == b) return last ? i > j : i < j;
  return largest ? a > b : a < b;
}

/* The rank'th of a column. */
static int64_t ranked(const double *x, int64_t n, int64_t rank, bool largest, bool last) {
  for (int64_t i = 0; i < n; i++) {
    int64_t better = 0;
    for (int64_t j = 0; j < n; j++) better += j != i && is_before(x, j, i, largest, last);
    if (better == rank) return i;
  }
  return -1;
}

/* Few different numbers, so that many are equal, and some NaN. */
static void fill_few(float *x, size_t n, uint32_t seed) {
  for (size_t i = 0; i < n; i++) {
    x[i] = floorf(20 * op_random(&seed));
    if (i % 37 == 5) x[i] = NAN;
  }
}

static void column_of(const float *x, int64_t n, int64_t inner, int64_t column, double *out) {
  const float *at = x + column / inner * n * inner + column % inner;
  for (int64_t i = 0; i < n; i++) out[i] = (double)at[i * inner];
}

static void arg_finds_the_first_and_the_last(void **state) {
  static const int64_t shapes[][3] = {{2, 3, 70}, {3, 128, 2}, {5, 300, 1}, {1, 1, 9}};
  rig r;
  op_case c;
  double column[300];
  (void)state;
  rig_open(&r);
  for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++) {
    for (int how = 0; how < 4; how++) {
      const bool largest = (how & 1) != 0, last = (how & 2) != 0;
      const int64_t outer = shapes[s][0], n = shapes[s][1], inner = shapes[s][2];
      op_case_init(&c, largest ? "ArgMax" : "ArgMin");
      float *x = op_input(&c, F32, SHAPE(3, outer, n, inner));
      int64_t *y = op_output(&c, I64, last ? SHAPE(2, outer, inner) : SHAPE(3, outer, 1, inner));
      op_attr_int(&c, "axis", last ? 1 : -2);
      op_attr_int(&c, "keepdims", !last);
      op_attr_int(&c, "select_last_index", last);
      fill_few(x, (size_t)(outer * n * inner), 3);
      run(&r, &c);
      for (int64_t i = 0; i < outer * inner; i++) {
        column_of(x, n, inner, i, column);
        for (int64_t j = 0; j < n; j++) {
          if (isnan(column[j]) && !largest) column[j] = -INFINITY;
        }
        assert_int_equal(y[i], ranked(column, n, 0, largest, last));
      }
      op_case_free(&c);
    }
  }
  rig_close(&r);
}

/* outer, n, inner, k: few columns are ranked, many go by a heap. */
static void top_k_is_sorted(void **state) {
  static const int64_t shapes[][4] = {{2, 70, 1, 5}, {3, 40, 4, 40}, {300, 11, 1, 4}, {20, 33, 20, 33}, {300, 9, 1, 1}};
  rig r;
  op_case c;
  double column[100];
  (void)state;
  rig_open(&r);
  for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++) {
    for (int largest = 0; largest < 2; largest++) {
      const int64_t outer = shapes[s][0], n = shapes[s][1], inner = shapes[s][2], k = shapes[s][3];
      op_case_init(&c, "TopK");
      float *x = op_input(&c, F32, SHAPE(3, outer, n, inner));
      *(int64_t *)op_input(&c, I64, SHAPE(1, 1)) = k;
      op_constant(&c, 1);
      float *values = op_output(&c, F32, SHAPE(3, outer, k, inner));
      int64_t *indices = op_output(&c, I64, SHAPE(3, outer, k, inner));
      op_attr_int(&c, "axis", 1);
      op_attr_int(&c, "largest", largest);
      fill_few(x, (size_t)(outer * n * inner), 7);
      run(&r, &c);
      for (int64_t i = 0; i < outer * inner; i++) {
        column_of(x, n, inner, i, column);
        for (int64_t j = 0; j < k; j++) {
          const int64_t at = (i / inner * k + j) * inner + i % inner, want = ranked(column, n, j, largest != 0, false);
          assert_int_equal(indices[at], want);
          assert_true(isnan(column[want]) ? isnan(values[at]) : (double)values[at] == column[want]);
        }
      }
      op_case_free(&c);
    }
  }
  rig_close(&r);
}

/* Every element is a new best one, so that code that keeps the best so far works as long as possible. */
static void long_columns_of_rising_numbers(void **state) {
  enum { N = 60000, K = 40 };
  rig r;
  op_case c;
  (void)state;
  rig_open(&r);
  op_case_init(&c, "TopK");
  float *x = op_input(&c, F32, SHAPE(2, 2, N));
  *(int64_t *)op_input(&c, I64, SHAPE(1, 1)) = K;
  op_constant(&c, 1);
  float *values = op_output(&c, F32, SHAPE(2, 2, K));
  int64_t *indices = op_output(&c, I64, SHAPE(2, 2, K));
  for (int i = 0; i < 2 * N; i++) x[i] = (float)(i / 2); /* in pairs of equals, of which the first comes first */
  run(&r, &c);
  for (int i = 0; i < 2 * K; i++) {
    const int rank = i % K, want = N - 2 - rank / 2 * 2 + rank % 2;
    assert_int_equal(indices[i], want);
    assert_true(values[i] == (float)((i / K * N + want) / 2));
  }
  op_case_free(&c);
  op_case_init(&c, "ArgMax");
  x = op_input(&c, F32, SHAPE(1, 1 << 20));
  int64_t *at = op_output(&c, I64, SHAPE(1, 1));
  for (int i = 0; i < 1 << 20; i++) x[i] = (float)i;
  run(&r, &c);
  assert_int_equal(at[0], (1 << 20) - 1);
  op_case_free(&c);
  rig_close(&r);
}

static void integers_are_ordered(void **state) {
  static const int64_t some[6] = {-3, INT64_MAX, 5, INT64_MIN, INT64_MAX - 1, 5}, order[6] = {1, 4, 2, 5, 0, 3};
  rig r;
  op_case c;
  (void)state;
  rig_open(&r);
  op_case_init(&c, "TopK");
  int64_t *x = op_input(&c, I64, SHAPE(1, 6));
  *(int64_t *)op_input(&c, I64, SHAPE(1, 1)) = 6;
  op_constant(&c, 1);
  int64_t *values = op_output(&c, I64, SHAPE(1, 6)), *indices = op_output(&c, I64, SHAPE(1, 6));
  memcpy(x, some, sizeof some);
  run(&r, &c);
  for (int i = 0; i < 6; i++) assert_true(indices[i] == order[i] && values[i] == some[order[i]]);
  op_case_free(&c);

  op_case_init(&c, "ArgMax");
  uint8_t *bytes = op_input(&c, U8, SHAPE(2, 2, 200));
  int64_t *at = op_output(&c, I64, SHAPE(2, 2, 1));
  op_attr_int(&c, "axis", 1);
  for (int i = 0; i < 400; i++) bytes[i] = (uint8_t)i;
  run(&r, &c);
  assert_true(at[0] == 199 && at[1] == 55); /* 255 is element 255 - 200 of the second row */
  op_case_free(&c);

  op_case_init(&c, "ArgMax");
  uint64_t *large = op_input(&c, ((heddle_dtype){HEDDLE_DTYPE_UINT, 64, 1}), SHAPE(1, 4));
  at = op_output(&c, I64, SHAPE(1, 1));
  op_attr_int(&c, "axis", 0);
  large[0] = 1;
  large[1] = UINT64_MAX - 1;
  large[2] = UINT64_MAX; /* which is -1 as int64 */
  large[3] = INT64_MAX;
  run(&r, &c);
  assert_true(at[0] == 2);
  op_case_free(&c);
  rig_close(&r);
}

/* [2, 3, 7, 9], a window of 3 x 2 in steps of 2, padded by 1. */
static void max_pool_says_where(void **state) {
  static const int64_t kernel[2] = {3, 2}, strides[2] = {2, 2}, pads[4] = {1, 1, 1, 1};
  rig r;
  op_case c;
  (void)state;
  rig_open(&r);
  for (int order = 0; order < 2; order++) {
    op_case_init(&c, "MaxPool");
    float *x = op_input(&c, F32, SHAPE(4, 2, 3, 7, 9)), *y = op_output(&c, F32, SHAPE(4, 2, 3, 4, 5));
    int64_t *where = op_output(&c, I64, SHAPE(4, 2, 3, 4, 5));
    op_attr_ints(&c, "kernel_shape", 2, kernel);
    op_attr_ints(&c, "strides", 2, strides);
    op_attr_ints(&c, "pads", 4, pads);
    op_attr_int(&c, "storage_order", order);
    fill_few(x, 378, 11);
    run(&r, &c);
    for (int i = 0; i < 120; i++) {
      const int plane = i / 20, oy = i / 5 % 4, ox = i % 5;
      int best = -1;
      double most = 0;
      for (int ky = 0; ky < 3; ky++) {
        for (int kx = 0; kx < 2; kx++) {
          const int iy = 2 * oy - 1 + ky, ix = 2 * ox - 1 + kx;
          if (iy < 0 || iy >= 7 || ix < 0 || ix >= 9) continue;
          const double v = key_of((double)x[plane * 63 + iy * 9 + ix]);
          if (best >= 0 && v <= most) continue;
          most = v;
          best = order == 0 ? iy * 9 + ix : iy + 7 * ix;
        }
      }
      assert_int_equal(where[i], plane * 63 + best);
      assert_true(isinf(most) ? isnan(y[i]) : (double)y[i] == most);
    }
    op_case_free(&c);
  }
  rig_close(&r);
}

CASES(CASE(arg_finds_the_first_and_the_last), CASE(top_k_is_sorted), CASE(long_columns_of_rising_numbers),
      CASE(integers_are_ordered), CASE(max_pool_says_where))

#endif
