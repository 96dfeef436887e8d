/* A device's operators that move data, against the place in the operand that each element of the result must
 * come from, counted by hand: Slice, Tile, Split, Gather, Pad, and elements wider than a word. */
#ifndef HEDDLE_TESTS_UNIT_CASES_MOVES_H
#define HEDDLE_TESTS_UNIT_CASES_MOVES_H

#include "device_case.h"

#define F128 ((heddle_dtype){HEDDLE_DTYPE_FLOAT, 128, 1})

static void fill_i32(int32_t *x, size_t n) {
  for (size_t i = 0; i < n; i++) x[i] = (int32_t)i + 1;
}

static int64_t *ints(op_case *c, int64_t n, const int64_t *values) {
  const uint32_t at = c->region.n_inputs;
  int64_t *x = op_input(c, I64, SHAPE(1, n));
  memcpy(x, values, (size_t)n * sizeof *x);
  op_constant(c, at);
  return x;
}

/* x is [4, 5, 6]: rows 3, 2, 1 backwards, columns 1 and 3, and the last four of six by an end that is far out. */
static void slices_take_steps_of_either_sign(void **state) {
  const int64_t starts[] = {-1, 1, 2}, ends[] = {0, 4, INT64_MAX}, axes[] = {0, 1, -1}, steps[] = {-1, 2, 1};
  rig r;
  op_case c;
  (void)state;
  rig_open(&r);
  op_case_init(&c, "Slice");
  int32_t *x = op_input(&c, I32, SHAPE(3, 4, 5, 6));
  ints(&c, 3, starts), ints(&c, 3, ends), ints(&c, 3, axes), ints(&c, 3, steps);
  int32_t *y = op_output(&c, I32, SHAPE(3, 3, 2, 4));
  fill_i32(x, 120);
  run(&r, &c);
  for (int i = 0; i < 3; i++)
    for (int j = 0; j < 2; j++)
      for (int k = 0; k < 4; k++) assert_int_equal(y[(i * 2 + j) * 4 + k], x[((3 - i) * 5 + 1 + 2 * j) * 6 + 2 + k]);
  op_case_free(&c);

  op_case_init(&c, "Slice"); /* nothing of it */
  op_input(&c, I32, SHAPE(1, 5));
  ints(&c, 1, (const int64_t[]){7}), ints(&c, 1, (const int64_t[]){9});
  op_output(&c, I32, SHAPE(1, 0));
  run(&r, &c);
  op_case_free(&c);

  op_case_init(&c, "Slice"); /* starts that are not known before the run */
  op_input(&c, I32, SHAPE(1, 5));
  op_input(&c, I64, SHAPE(1, 1));
  ints(&c, 1, (const int64_t[]){9});
  op_output(&c, I32, SHAPE(1, 2));
  op_expect_refused(&r.d, &c, "not known before the run");
  op_case_free(&c);
  rig_close(&r);
}

static void tiles_repeat(void **state) {
  const int64_t repeats[] = {2, 1, 3};
  rig r;
  op_case c;
  (void)state;
  rig_open(&r);
  op_case_init(&c, "Tile");
  uint8_t *x = op_input(&c, U8, SHAPE(3, 2, 3, 5));
  ints(&c, 3, repeats);
  uint8_t *y = op_output(&c, U8, SHAPE(3, 4, 3, 15));
  for (int i = 0; i < 30; i++) x[i] = (uint8_t)(i + 1);
  run(&r, &c);
  for (int i = 0; i < 4; i++)
    for (int j = 0; j < 3; j++)
      for (int k = 0; k < 15; k++) assert_int_equal(y[(i * 3 + j) * 15 + k], x[(i % 2 * 3 + j) * 5 + k % 5]);
  op_case_free(&c);
  rig_close(&r);
}

/* Along the first dimension the parts are copies, along another rows; a part may be empty. */
static void splits_give_each_part(void **state) {
  static const int64_t sizes[3] = {3, 0, 4};
  rig r;
  op_case c;
  (void)state;
  rig_open(&r);
  for (int axis = 0; axis < 2; axis++) {
    uint16_t *y[3];
    op_case_init(&c, "Split");
    uint16_t *x = op_input(&c, F16, axis == 0 ? SHAPE(2, 7, 6) : SHAPE(2, 6, 7));
    ints(&c, 3, sizes);
    for (int k = 0; k < 3; k++) y[k] = op_output(&c, F16, axis == 0 ? SHAPE(2, sizes[k], 6) : SHAPE(2, 6, sizes[k]));
    op_attr_int(&c, "axis", axis - (axis == 1 ? 2 : 0)); /* -1 is the last */
    for (int i = 0; i < 42; i++) x[i] = (uint16_t)(i + 1);
    run(&r, &c);
    int64_t at = 0;
    for (int k = 0; k < 3; at += sizes[k++]) {
      for (int64_t i = 0; i < 6 * sizes[k]; i++) {
        const int64_t from = axis == 0 ? at * 6 + i : i / sizes[k] * 7 + at + i % sizes[k];
        assert_int_equal(y[k][i], x[from]);
      }
    }
    op_case_free(&c);
  }
  rig_close(&r);
}

/* Indices from the front, from the back, and outside, which take zeros. */
static void gather_takes_what_indices_point_at(void **state) {
  static const int64_t indices[6] = {0, -1, 3, 4, -5, 2};
  rig r;
  op_case c;
  (void)state;
  rig_open(&r);
  for (int wide = 0; wide < 2; wide++) {
    for (int64_t axis = 0; axis < 3; axis++) {
      int64_t dims[3] = {2, 2, 3};
      dims[axis] = 4;
      const int64_t inner = axis == 0 ? dims[1] * dims[2] : axis == 1 ? dims[2] : 1;
      op_shape out = {4, {0}};
      for (int d = 0, k = 0; d < 3; d++) {
        if (d != axis) out.dims[k++] = dims[d];
        else out.dims[k++] = 2, out.dims[k++] = 3;
      }
      op_case_init(&c, "Gather");
      int32_t *x = op_input(&c, I32, SHAPE(3, dims[0], dims[1], dims[2]));
      void *at = op_input(&c, wide ? I64 : I32, SHAPE(2, 2, 3));
      int32_t *y = op_output(&c, I32, out);
      op_attr_int(&c, "axis", axis - 3 * (axis % 2));
      fill_i32(x, (size_t)(dims[0] * dims[1] * dims[2]));
      for (int i = 0; i < 6; i++) {
        if (wide) ((int64_t *)at)[i] = indices[i];
        else ((int32_t *)at)[i] = (int32_t)indices[i];
      }
      run(&r, &c);
      for (int64_t i = 0; i < (int64_t)op_count(out); i++) {
        const int64_t index = indices[i / inner % 6], row = index < 0 ? index + 4 : index;
        const int64_t from = (i / inner / 6 * 4 + row) * inner + i % inner;
        assert_int_equal(y[i], row < 0 || row >= 4 ? 0 : x[from]);
      }
      op_case_free(&c);
    }
  }
  rig_close(&r);
}

/* Where element i of a padded dimension of n comes from; -1: from nowhere. */
static int64_t padded(int mode, int64_t i, int64_t n) {
  if (i >= 0 && i < n) return i;
  if (mode == 0) return -1;
  if (mode == 2) return i < 0 ? 0 : n - 1;
  return i < 0 ? -i : 2 * n - 2 - i;
}

static void pads_have_three_modes(void **state) {
  static const char *const modes[] = {"constant", "reflect", "edge"};
  static const int64_t pads[3][2] = {{1, 0}, {0, 0}, {-1, 3}}, dims[3] = {3, 2, 5}, out[3] = {4, 2, 7};
  rig r;
  op_case c;
  (void)state;
  rig_open(&r);
  for (int k = 0; k < 12; k++) {
    const int mode = k % 3;
    const bool filled = mode == 0 && k >= 3, named = k >= 6;
    op_case_init(&c, "Pad");
    int32_t *x = op_input(&c, I32, SHAPE(3, 3, 2, 5));
    if (named) ints(&c, 4, (const int64_t[]){-1, 1, 3, 0}); /* of axes 2 and 0 */
    else ints(&c, 6, (const int64_t[]){1, 0, -1, 0, 0, 3});
    if (filled) *(int32_t *)op_input(&c, I32, NO_DIMS) = -77;
    else op_input_again(&c, -1);
    if (named) ints(&c, 2, (const int64_t[]){-1, 0});
    c.node.opset = named ? 18 : 13;
    int32_t *y = op_output(&c, I32, SHAPE(3, 4, 2, 7));
    op_attr_string(&c, "mode", modes[mode]);
    fill_i32(x, 30);
    run(&r, &c);
    for (int64_t i = 0; i < 56; i++) {
      const int64_t at[3] = {i / 7 / out[1], i / 7 % out[1], i % 7};
      int64_t from = 0;
      for (int d = 0; d < 3; d++) {
        const int64_t here = padded(mode, at[d] - pads[d][0], dims[d]);
        from = here < 0 || from < 0 ? -1 : from * dims[d] + here;
      }
      assert_int_equal(y[i], from >= 0 ? x[from] : filled ? -77 : 0);
    }
    op_case_free(&c);
  }
  rig_close(&r);
}

/* Elements of 16 bytes go as two words. */
static void wide_elements_are_moved_whole(void **state) {
  typedef struct wide {
    uint64_t a, b;
  } wide;
  rig r;
  op_case c;
  (void)state;
  rig_open(&r);
  op_case_init(&c, "Transpose");
  wide *x = op_input(&c, F128, SHAPE(2, 3, 5)), *y = op_output(&c, F128, SHAPE(2, 5, 3));
  for (uint64_t i = 0; i < 15; i++) x[i] = (wide){i, 100 + i};
  run(&r, &c);
  for (uint64_t i = 0; i < 15; i++) assert_true(y[i].a == i % 3 * 5 + i / 3 && y[i].b == 100 + y[i].a);
  op_case_free(&c);

  op_case_init(&c, "Pad");
  x = op_input(&c, F128, SHAPE(1, 3));
  ints(&c, 2, (const int64_t[]){2, 1});
  *(wide *)op_input(&c, F128, NO_DIMS) = (wide){7, 8};
  y = op_output(&c, F128, SHAPE(1, 6));
  for (uint64_t i = 0; i < 3; i++) x[i] = (wide){i, 100 + i};
  run(&r, &c);
  for (uint64_t i = 0; i < 6; i++) {
    const bool inside = i >= 2 && i < 5;
    assert_true(y[i].a == (inside ? i - 2 : 7) && y[i].b == (inside ? 98 + i : 8));
  }
  op_case_free(&c);

  op_case_init(&c, "Gather");
  x = op_input(&c, F128, SHAPE(2, 3, 2));
  *(int32_t *)op_input(&c, I32, NO_DIMS) = -2;
  y = op_output(&c, F128, SHAPE(1, 2));
  for (uint64_t i = 0; i < 6; i++) x[i] = (wide){i, 100 + i};
  run(&r, &c);
  assert_true(y[0].a == 2 && y[0].b == 102 && y[1].a == 3 && y[1].b == 103);
  op_case_free(&c);
  rig_close(&r);
}

CASES(CASE(slices_take_steps_of_either_sign), CASE(tiles_repeat), CASE(splits_give_each_part),
      CASE(gather_takes_what_indices_point_at), CASE(pads_have_three_modes), CASE(wide_elements_are_moved_whole))

#endif
