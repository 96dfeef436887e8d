/* What goes along axes on a device, against loops in double: reductions over every set of axes of tensors with few and
 * many elements, of every type; global pools; Softmax and LogSoftmax; sums that a plain loop in float32 gets wrong. */
#ifndef HEDDLE_TESTS_UNIT_CASES_REDUCE_H
#define HEDDLE_TESTS_UNIT_CASES_REDUCE_H

#include "device_case.h"

enum { DIMS = 4, KINDS = 5 };
static const char *const kinds[KINDS] = {"ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd"};

typedef struct sums {
  double value, magnitude;
  int64_t whole, count;
} sums;

static void take(sums *s, int kind, double v, int64_t whole) {
  const bool first = s->count++ == 0;
  switch (kind) {
  case 2:
    s->value = first || v > s->value ? v : s->value, s->whole = first || whole > s->whole ? whole : s->whole;
    break;
  case 3:
    s->value = first || v < s->value ? v : s->value, s->whole = first || whole < s->whole ? whole : s->whole;
    break;
  case 4:
    s->value = first ? v : s->value * v;
    s->whole = first ? whole : (int64_t)((uint64_t)s->whole * (uint64_t)whole);
    break;
  default: s->value += v, s->whole += whole;
  }
  s->magnitude = kind < 2 ? s->magnitude + fabs(v) : fabs(s->value);
}

/* The result's place of element i, with the dimensions of mask gone. */
static size_t place_of(size_t i, const int64_t *dims, unsigned mask) {
  size_t at[DIMS], to = 0;
  for (int d = DIMS - 1; d >= 0; d--) at[d] = i % (size_t)dims[d], i /= (size_t)dims[d];
  for (int d = 0; d < DIMS; d++)
    if ((mask >> d & 1) == 0) to = to * (size_t)dims[d] + at[d];
  return to;
}

static op_shape reduced_shape(const int64_t *dims, unsigned mask, bool keep) {
  op_shape y = {0, {0}};
  for (int d = 0; d < DIMS; d++) {
    if ((mask >> d & 1) == 0) y.dims[y.ndim++] = dims[d];
    else if (keep) y.dims[y.ndim++] = 1;
  }
  return y;
}

/* Axes as an attribute, or as a constant operand, which ReduceSum has them as since opset 13. */
static int64_t *add_axes(op_case *c, bool attribute, unsigned mask) {
  int64_t axes[DIMS];
  uint64_t n = 0;
  for (int d = 0; d < DIMS; d++)
    if ((mask >> d & 1) != 0) axes[n++] = d == 3 ? -1 : d;
  if (attribute && strcmp(c->node.op, "ReduceSum") != 0) {
    op_attr_ints(c, "axes", n, axes);
    return NULL;
  }
  int64_t *given = op_input(c, I64, SHAPE(1, (int64_t)n));
  memcpy(given, axes, n * sizeof *axes);
  op_constant(c, 1);
  return given;
}

static void floats_over(rig *r, const int64_t *dims, unsigned mask, int kind) {
  const op_shape shape = SHAPE(DIMS, dims[0], dims[1], dims[2], dims[3]);
  const size_t n = op_count(shape);
  const bool keep = mask % 2 == 0;
  op_case c;
  op_case_init(&c, kinds[kind]);
  float *x = op_input(&c, F32, shape);
  add_axes(&c, kind != 0, mask);
  op_attr_int(&c, "keepdims", keep);
  const op_shape out = reduced_shape(dims, mask, keep);
  float *y = op_output(&c, F32, out);
  sums *want = calloc(op_count(out), sizeof *want);
  op_fill(x, n, 7 + mask);
  for (size_t i = 0; kind == 4 && i < n; i++) x[i] = 1 + x[i] / 64; /* a product that stays near 1 */
  for (size_t i = 0; i < n; i++) take(&want[place_of(i, dims, mask)], kind, (double)x[i], 0);
  run(r, &c);
  for (size_t i = 0; i < op_count(out); i++) {
    const double by = kind == 1 ? (double)want[i].count : 1;
    /* 16 additions in a block, 6 from item to item, the division; a product rounds at each step. */
    op_close(want[i].value / by, y[i], want[i].magnitude / by,
             kind > 1 && kind < 4 ? 0
             : kind < 2           ? 26
                                  : (double)want[i].count,
             kinds[kind], i);
  }
  free(want);
  op_case_free(&c);
}

static void reductions_over_any_axes(void **state) {
  static const int64_t shapes[][DIMS] = {{3, 4, 5, 6}, {2, 70, 3, 40}, {1, 3, 1, 300}};
  rig r;
  (void)state;
  rig_open(&r);
  for (size_t s = 0; s < 3; s++)
    for (unsigned mask = 1; mask < 16; mask++)
      for (int kind = 0; kind < KINDS; kind++)
        if (s == 0 || (mask + (unsigned)kind) % 3 == 0) floats_over(&r, shapes[s], mask, kind);
  rig_close(&r);
}

static int64_t whole_at(const void *data, heddle_dtype d, size_t i) {
  const char *at = (const char *)data + i * (d.bits / 8u);
  int64_t v = 0;
  memcpy(&v, at, d.bits / 8u);
  if (d.code == HEDDLE_DTYPE_INT && d.bits < 64 && (v >> (d.bits - 1) & 1) != 0) v -= INT64_C(1) << d.bits;
  return v;
}

static void whole_numbers_of_all_types_wrap(void **state) {
  static const heddle_dtype types[] = {{HEDDLE_DTYPE_INT, 8, 1},  {HEDDLE_DTYPE_INT, 16, 1}, {HEDDLE_DTYPE_INT, 32, 1},
                                       {HEDDLE_DTYPE_INT, 64, 1}, {HEDDLE_DTYPE_UINT, 8, 1}, {HEDDLE_DTYPE_UINT, 16, 1},
                                       {HEDDLE_DTYPE_UINT, 32, 1}};
  const int64_t dims[DIMS] = {1, 2, 3, 150};
  rig r;
  (void)state;
  rig_open(&r);
  for (size_t t = 0; t < sizeof types / sizeof types[0]; t++) {
    for (int kind = 0; kind < KINDS; kind++) {
      if (kind != 0 && types[t].bits != 8 && types[t].bits != 64) continue; /* each is a program to build */
      for (unsigned mask = 4; mask <= 12; mask += 4) { /* a few elements each, many, and both axes */
        op_case c;
        sums want[900] = {{0}};
        op_case_init(&c, kinds[kind]);
        unsigned char *x = op_input(&c, types[t], SHAPE(DIMS, 1, 2, 3, 150));
        add_axes(&c, true, mask);
        const op_shape out = reduced_shape(dims, mask, true);
        void *y = op_output(&c, types[t], out);
        uint32_t seed = 3 + (uint32_t)t;
        for (size_t i = 0; i < 900u * (types[t].bits / 8u); i++) op_random(&seed), x[i] = (unsigned char)(seed >> 24);
        for (size_t i = 0; i < 900; i++) {
          const int64_t v = whole_at(x, types[t], i);
          take(&want[place_of(i, dims, mask)], kind, 0, types[t].bits == 64 ? v >> 12 : v);
        }
        if (types[t].bits == 64)
          for (size_t i = 0; i < 900; i++) ((int64_t *)(void *)x)[i] >>= 12; /* sums that fit */
        run(&r, &c);
        for (size_t i = 0; i < op_count(out); i++) {
          const int64_t full = kind == 1 ? want[i].whole / want[i].count : want[i].whole;
          int64_t kept = 0;
          memcpy(&kept, &full, types[t].bits / 8u);
          const int64_t expected = whole_at(&kept, types[t], 0), got = whole_at(y, types[t], i);
          if (expected != got)
            fail_msg("%s of %u bits [%zu]: %lld instead of %lld", kinds[kind], types[t].bits, i, (long long)got,
                     (long long)expected);
        }
        op_case_free(&c);
      }
    }
  }
  rig_close(&r);
}

static void nothing_infinities_and_nan(void **state) {
  static const float nothing[4] = {0, NAN, -INFINITY, INFINITY};
  rig r;
  op_case c;
  (void)state;
  rig_open(&r);
  for (int kind = 0; kind < 4; kind++) {
    op_case_init(&c, kinds[kind]);
    op_input(&c, F32, SHAPE(2, 3, 0));
    add_axes(&c, true, 2);
    float *y = op_output(&c, F32, SHAPE(2, 3, 1));
    run(&r, &c);
    for (int i = 0; i < 3; i++) assert_true(kind == 1 ? isnan(y[i]) : y[i] == nothing[kind]);
    op_case_free(&c);

    op_case_init(&c, kinds[kind]); /* rows: an infinity, one of each, a NaN */
    float *x = op_input(&c, F32, SHAPE(2, 3, 200));
    add_axes(&c, true, 2);
    y = op_output(&c, F32, SHAPE(2, 3, 1));
    op_fill(x, 600, 5);
    x[70] = INFINITY;
    x[230] = INFINITY, x[390] = -INFINITY;
    x[555] = NAN;
    run(&r, &c);
    assert_true(kind == 3 ? y[0] >= -2 && y[0] < -1 : y[0] == INFINITY);
    assert_true(kind < 2 ? isnan(y[1]) : y[1] == (kind == 2 ? INFINITY : -INFINITY));
    assert_true(isnan(y[2]));
    op_case_free(&c);
  }
  op_case_init(&c, "ReduceSum"); /* no axes, and none are meant */
  float *x = op_input(&c, F32, SHAPE(2, 3, 5)), *y;
  op_attr_int(&c, "noop_with_empty_axes", 1);
  y = op_output(&c, F32, SHAPE(2, 3, 5));
  op_fill(x, 15, 9);
  run(&r, &c);
  assert_memory_equal(x, y, 15 * sizeof *x);
  op_case_free(&c);
  rig_close(&r);
}

/* A plain loop in float32 stops at 2^24, and loses what is small beside 1e6. */
static void long_sums_stay_exact(void **state) {
  enum { N = 1 << 22 };
  rig r;
  op_case c;
  (void)state;
  rig_open(&r);
  op_case_init(&c, "ReduceMean");
  float *x = op_input(&c, F32, SHAPE(2, N, 2)), *y;
  add_axes(&c, true, 1);
  y = op_output(&c, F32, SHAPE(2, 1, 2));
  for (int i = 0; i < N; i++) x[2 * i] = 1e6f, x[2 * i + 1] = 0.1f;
  run(&r, &c);
  assert_true(fabs((double)y[0] - 1e6) <= 0.07);
  assert_true(fabs((double)y[1] - 0.1) <= 2e-8);
  op_case_free(&c);
  op_case_init(&c, "ReduceSum");
  x = op_input(&c, F32, SHAPE(1, 1 << 20));
  y = op_output(&c, F32, SHAPE(1, 1));
  for (int i = 0; i < 1 << 20; i++) x[i] = 100.1f;
  run(&r, &c);
  assert_true(fabs((double)y[0] - (double)100.1f * (1 << 20)) <= 50);
  op_case_free(&c);
  rig_close(&r);
}

static void global_pools(void **state) {
  rig r;
  op_case c;
  (void)state;
  rig_open(&r);
  for (int64_t side = 1; side < 40; side += 12) {
    for (int most = 0; most < 2; most++) {
      const size_t n = (size_t)(side * side);
      op_case_init(&c, most ? "GlobalMaxPool" : "GlobalAveragePool");
      float *x = op_input(&c, F32, SHAPE(4, 2, 3, side, side)), *y = op_output(&c, F32, SHAPE(4, 2, 3, 1, 1));
      op_fill(x, 6 * n, 12);
      run(&r, &c);
      for (size_t p = 0; p < 6; p++) {
        sums want = {0};
        for (size_t i = 0; i < n; i++) take(&want, most ? 2 : 1, (double)x[p * n + i], 0);
        op_close(most ? want.value : want.value / (double)n, y[p], want.magnitude / (double)n, most ? 0 : 26, c.node.op,
                 p);
      }
      op_case_free(&c);
    }
  }
  rig_close(&r);
}

static void softmax_and_its_logarithm(void **state) {
  static const int64_t shapes[][3] = {{3, 10, 1},  {2, 1000, 1}, {2, 200, 7}, {4, 5, 6},
                                      {1, 127, 1}, {1, 128, 1},  {2, 1, 3}};
  rig r;
  op_case c;
  (void)state;
  rig_open(&r);
  for (size_t k = 0; k < sizeof shapes / sizeof shapes[0]; k++) {
    for (int log_of = 0; log_of < 2; log_of++) {
      const int64_t n = shapes[k][1], inner = shapes[k][2];
      op_case_init(&c, log_of ? "LogSoftmax" : "Softmax");
      float *x = op_input(&c, F32, SHAPE(3, shapes[k][0], n, inner)),
            *y = op_output(&c, F32, SHAPE(3, shapes[k][0], n, inner));
      op_attr_int(&c, "axis", -2);
      op_fill(x, (size_t)(shapes[k][0] * n * inner), 11);
      for (int64_t i = 0; i < shapes[k][0] * n * inner; i++) x[i] = 20 * x[i] + (k % 2 == 0 ? 1000 : 0);
      float *copy = malloc((size_t)(shapes[k][0] * n * inner) * 4);
      memcpy(copy, x, (size_t)(shapes[k][0] * n * inner) * 4);
      if (k % 2 == 0) c.in_place = 0;
      run(&r, &c);
      for (int64_t row = 0; row < shapes[k][0] * inner; row++) {
        const float *in = copy + row / inner * n * inner + row % inner;
        const float *out = y + row / inner * n * inner + row % inner;
        double most = -INFINITY, sum = 0;
        for (int64_t i = 0; i < n; i++) most = fmax(most, (double)in[i * inner]);
        for (int64_t i = 0; i < n; i++) sum += exp((double)in[i * inner] - most);
        for (int64_t i = 0; i < n; i++) {
          const double d = (double)in[i * inner] - most;
          op_close(log_of ? d - log(sum) : exp(d) / sum, (double)out[i * inner],
                   log_of ? fabs(d) + log(sum) + 1 : exp(d) / sum, log_of ? 8 : 40 + 2 * fabs(d), c.node.op, (size_t)i);
        }
      }
      free(copy);
      op_case_free(&c);
    }
  }
  rig_close(&r);
}

CASES(CASE(reductions_over_any_axes), CASE(whole_numbers_of_all_types_wrap), CASE(nothing_infinities_and_nan),
      CASE(long_sums_stay_exact), CASE(global_pools), CASE(softmax_and_its_logarithm))

#endif
