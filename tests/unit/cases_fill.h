/* On a device: operators that make a tensor of what is known before the run, casts between all types against C's
 * own conversions, and integers of every size, which wrap. */
#ifndef HEDDLE_TESTS_UNIT_CASES_FILL_H
#define HEDDLE_TESTS_UNIT_CASES_FILL_H

#include "device_case.h"

#define TYPE(code, bits) ((heddle_dtype){HEDDLE_DTYPE_##code, bits, 1})

static void constant_scalar(op_case *c, heddle_dtype type, const void *value) {
  const uint32_t at = c->region.n_inputs;
  void *x = op_input(c, type, NO_DIMS);
  memcpy(x, value, type.bits / 8);
  c->values[c->inputs[at]].v.data = x;
  c->values[c->inputs[at]].v.data_bytes = type.bits / 8;
}

static void shapes_and_constants_are_written(void **state) {
  rig r;
  op_case c;
  (void)state;
  rig_open(&r);
  op_case_init(&c, "Shape");
  c.node.opset = 15;
  op_input(&c, F16, SHAPE(4, 2, 3, 5, 7));
  int64_t *y = op_output(&c, I64, SHAPE(1, 2));
  op_attr_int(&c, "start", 1);
  op_attr_int(&c, "end", -1);
  run(&r, &c);
  assert_true(y[0] == 3 && y[1] == 5);
  op_case_free(&c);

  op_case_init(&c, "Constant");
  const int64_t some[5] = {3, -1, INT64_MAX, 0, 7};
  y = op_output(&c, I64, SHAPE(1, 5));
  op_attr_ints(&c, "value_ints", 5, some);
  run(&r, &c);
  assert_memory_equal(y, some, sizeof some);
  op_case_free(&c);

  op_case_init(&c, "ConstantOfShape");
  *(int64_t *)op_input(&c, I64, SHAPE(1, 1)) = 300;
  op_constant(&c, 0);
  int16_t *halves = op_output(&c, TYPE(INT, 16), SHAPE(1, 300));
  op_attr_int(&c, "value_int", -5);
  op_attr_int(&c, "dtype", 5);
  run(&r, &c);
  for (int i = 0; i < 300; i++) assert_int_equal(halves[i], -5);
  op_case_free(&c);

  op_case_init(&c, "Dropout");
  float *x = op_input(&c, F32, SHAPE(2, 3, 50)), *same = op_output(&c, F32, SHAPE(2, 3, 50));
  uint8_t *mask = op_output(&c, BOOL, SHAPE(2, 3, 50));
  op_fill(x, 150, 3);
  run(&r, &c);
  assert_memory_equal(x, same, 150 * sizeof *x);
  for (int i = 0; i < 150; i++) assert_int_equal(mask[i], 1);
  op_case_free(&c);
  rig_close(&r);
}

static void ranges_are_series(void **state) {
  rig r;
  op_case c;
  (void)state;
  rig_open(&r);
  for (int real = 0; real < 2; real++) {
    const float start = 1.5f, limit = 1000, step = 0.1f;
    const int16_t first = 30000, end = -30000, by = -7;
    op_case_init(&c, "Range");
    constant_scalar(&c, real ? F32 : TYPE(INT, 16), real ? (const void *)&start : &first);
    constant_scalar(&c, real ? F32 : TYPE(INT, 16), real ? (const void *)&limit : &end);
    constant_scalar(&c, real ? F32 : TYPE(INT, 16), real ? (const void *)&step : &by);
    void *y = op_output(&c, real ? F32 : TYPE(INT, 16), SHAPE(1, real ? 9985 : 8572));
    run(&r, &c);
    for (int i = 0; i < 8572; i++) {
      if (!real) assert_int_equal(((int16_t *)y)[i], 30000 - 7 * i);
      else assert_true(fabs((double)((float *)y)[i] - (1.5 + i * (double)step)) < 1e-4);
    }
    op_case_free(&c);
  }
  rig_close(&r);
}

/* ---------------------------------------------------------------- types */

/* name, type, and its number in ONNX */
#define TYPES(X) \
  X(float, TYPE(FLOAT, 32), 1) \
  X(uint8_t, TYPE(UINT, 8), 2) \
  X(int8_t, TYPE(INT, 8), 3) \
  X(uint16_t, TYPE(UINT, 16), 4) \
  X(int16_t, TYPE(INT, 16), 5) \
  X(int32_t, TYPE(INT, 32), 6) \
  X(int64_t, TYPE(INT, 64), 7) \
  X(bool, BOOL, 9) \
  X(double, TYPE(FLOAT, 64), 11) \
  X(uint32_t, TYPE(UINT, 32), 12) \
  X(uint64_t, TYPE(UINT, 64), 13)

enum { SOME = 5 };
static const double numbers[SOME] = {0, 1, 100, 37.75, 7};

/* Converts numbers to a type, and one of that type to a double. */
#define PUT(T, type, number) \
  if (which == (number)) ((T *)to)[i] = (T)x;
#define GET(T, type, number) \
  if (which == (number)) return (double)((const T *)from)[i];
static void put(int which, void *to, int i, double x) {
  TYPES(PUT)
}
static double get(int which, const void *from, int i) {
  TYPES(GET)
  return NAN;
}

#define NUMBER(T, type, number) number,
static const int type_numbers[] = {TYPES(NUMBER)};
static heddle_dtype type_of(int number) {
#define CHOOSE(T, type, n) \
  if (number == (n)) return type;
  TYPES(CHOOSE)
  return F32;
}

/* Every pair, of values that all types but bool hold after their fraction is dropped. */
static void casts_go_between_all_types(void **state) {
  rig r;
  op_case c;
  (void)state;
  rig_open(&r);
  for (size_t i = 0; i < sizeof type_numbers / sizeof type_numbers[0]; i++) {
    for (size_t k = 0; k < sizeof type_numbers / sizeof type_numbers[0]; k++) {
      const int from = type_numbers[i], to = type_numbers[k];
      op_case_init(&c, "Cast");
      void *x = op_input(&c, type_of(from), SHAPE(1, SOME)), *y = op_output(&c, type_of(to), SHAPE(1, SOME));
      char want[SOME * 8];
      op_attr_int(&c, "to", to);
      for (int j = 0; j < SOME; j++) {
        put(from, x, j, numbers[j]);
        put(to, want, j, get(from, x, j));
      }
      if ((from == 11 || to == 11) && op_query(&r.d, &c) != HEDDLE_OK) {
        assert_non_null(strstr(r.d.err.text, "does not compute in float64"));
      } else {
        run(&r, &c);
        for (int j = 0; j < SOME; j++) {
          if (get(to, y, j) != get(to, want, j))
            fail_msg("%d to %d: %g gives %g", from, to, get(from, x, j), get(to, y, j));
        }
      }
      op_case_free(&c);
    }
  }
  rig_close(&r);
}

static void casts_wrap_and_drop_fractions(void **state) {
  static const float floats[6] = {-2.7f, 300.5f, -1e30f, 1e30f, 65535.0f, -0.4f};
  static const int8_t bytes[6] = {-2, 44, 0, 0, -1, 0};
  rig r;
  op_case c;
  (void)state;
  rig_open(&r);
  op_case_init(&c, "Cast");
  float *x = op_input(&c, F32, SHAPE(1, 6));
  int8_t *y = op_output(&c, TYPE(INT, 8), SHAPE(1, 6));
  op_attr_int(&c, "to", 3);
  memcpy(x, floats, sizeof floats);
  run(&r, &c);
  assert_memory_equal(y, bytes, sizeof bytes);
  op_case_free(&c);

  op_case_init(&c, "Cast");
  int64_t *wide = op_input(&c, I64, SHAPE(1, 3));
  uint16_t *narrow = op_output(&c, TYPE(UINT, 16), SHAPE(1, 3));
  op_attr_int(&c, "to", 4);
  wide[0] = -1, wide[1] = (INT64_C(5) << 40) + 17, wide[2] = 65536;
  run(&r, &c);
  assert_true(narrow[0] == 65535 && narrow[1] == 17 && narrow[2] == 0);
  op_case_free(&c);

  op_case_init(&c, "Cast");
  op_input(&c, F32, SHAPE(1, 3));
  op_output(&c, I64, SHAPE(1, 3));
  op_attr_int(&c, "to", 6);
  op_expect_refused(&r.d, &c, "does not cast to int64");
  op_case_free(&c);
  op_case_init(&c, "Cast");
  uint16_t *half = op_input(&c, F16, SHAPE(1, 3));
  float *single = op_output(&c, F32, SHAPE(1, 3));
  op_attr_int(&c, "to", 1);
  half[0] = 0x3e00, half[1] = 0xc000, half[2] = 0x7c00;
  run(&r, &c);
  assert_true(single[0] == 1.5f && single[1] == -2 && isinf(single[2]) && single[2] > 0);
  op_case_free(&c);
  rig_close(&r);
}

#define WRAPPED(T, type, a, b) \
  do { \
    static const char *const ops[] = {"Add", "Sub", "Mul", "Div", "Max", "Min", "Pow", "PRelu"}; \
    for (size_t k = 0; k < sizeof ops / sizeof ops[0]; k++) { \
      const int64_t p = (int64_t)(a), q = (int64_t)(b); \
      const int64_t want[] = {p + q,         p - q,         p * q,     q == 0 ? 0 : p / q, \
                              p > q ? p : q, p < q ? p : q, p * p * p, p < 0 ? p * q : p}; \
      op_case_init(&c, ops[k]); \
      T *x = op_input(&c, type, SHAPE(1, 1)), *z = op_input(&c, type, SHAPE(1, 1)), \
        *y = op_output(&c, type, SHAPE(1, 1)); \
      *x = (T)p; \
      *z = k == 6 ? (T)3 : (T)q; \
      run(&r, &c); \
      if (*y != (T)(uint64_t)want[k]) fail_msg("%s of " #T ": %lld", ops[k], (long long)*y); \
      op_case_free(&c); \
    } \
  } while (0)

static void integers_of_every_size_wrap(void **state) {
  rig r;
  op_case c;
  (void)state;
  rig_open(&r);
  WRAPPED(int8_t, TYPE(INT, 8), INT8_MIN, -1);
  WRAPPED(int16_t, TYPE(INT, 16), -300, 200);
  WRAPPED(uint8_t, TYPE(UINT, 8), 200, 0);
  WRAPPED(uint16_t, TYPE(UINT, 16), 65535, 65535);
  WRAPPED(uint32_t, TYPE(UINT, 32), 7, UINT32_MAX);
  op_case_init(&c, "Neg");
  int8_t *x = op_input(&c, TYPE(INT, 8), SHAPE(1, 2)), *y = op_output(&c, TYPE(INT, 8), SHAPE(1, 2));
  x[0] = INT8_MIN, x[1] = 5;
  run(&r, &c);
  assert_true(y[0] == INT8_MIN && y[1] == -5);
  op_case_free(&c);
  op_case_init(&c, "Equal");
  uint8_t *a = op_input(&c, BOOL, SHAPE(1, 3)), *b = op_input(&c, BOOL, SHAPE(1, 3)),
          *e = op_output(&c, BOOL, SHAPE(1, 3));
  a[0] = 1, a[1] = 0, a[2] = 1;
  b[0] = 1, b[1] = 1, b[2] = 0;
  run(&r, &c);
  assert_true(e[0] == 1 && e[1] == 0 && e[2] == 0);
  op_case_free(&c);
  rig_close(&r);
}

CASES(CASE(shapes_and_constants_are_written), CASE(ranges_are_series), CASE(casts_go_between_all_types),
      CASE(casts_wrap_and_drop_fractions), CASE(integers_of_every_size_wrap))

#endif
