/* Products by a library of a GPU's vendor on the doubles of both (tests/fakes/libs), against double; what is handed over and
 * what is not, by the plugin's own log. LIBRARY, its setting and its file are named by the program that includes this. */
#ifndef HEDDLE_TESTS_UNIT_CASES_LIBRARIES_H
#define HEDDLE_TESTS_UNIT_CASES_LIBRARIES_H

#include "device_case.h"

#include <time.h>

typedef struct library_rig {
  rig r;
  int taken, refused, halves; /* products that the log says are the library's, that it refused, that are bfloat16 */
  char last[512];
} library_rig;

static library_rig *current; /* of the one case in this process: the log's context is the fake host */

static inline void count_lines(void *ctx, int32_t level, const char *component, const char *text) {
  sim_test_log(ctx, level, component, text);
  if (strstr(text, "refuses") != NULL) current->refused++;
  else if (strstr(text, "does it") != NULL) current->taken++;
  if (strstr(text, "in bfloat16") != NULL) current->halves++;
  snprintf(current->last, sizeof current->last, "%s", text);
}

/* A device with the libraries' doubles; more: a setting and its value, or NULL. */
static inline void library_open(library_rig *b, const char *key, const char *value) {
  cuda_environment();
  if (gpu_is_real()) SKIP("the library's double fits the driver's");
  if (strcmp(GPU_PLUGIN, "cuda") == 0) setenv("FAKE_GPU_ARCH", "sm_80", 0);
  memset(b, 0, sizeof *b);
  current = b;
  sim_enter(&b->r.t, "libraries", "auto", LIBRARY_SETTINGS, key, value, NULL);
  b->r.t.fake.table.log = count_lines;
  cuda_open_devices(&b->r.t, 1);
  b->r.d.plugin = b->r.t.p;
  b->r.d.self = b->r.t.self;
  b->r.d.dev = b->r.t.dev[0];
  b->r.d.stream = sim_stream(&b->r.t, b->r.t.dev[0]);
}

/* float32 rounded to 8 digits, halves to even. */
static inline float bfloat(float x) {
  int exponent;
  const double m = frexp((double)x, &exponent);
  return (float)ldexp(nearbyint(ldexp(m, 8)), exponent - 8);
}

static inline float exact(float x) {
  return x;
}

/* float32 rounded to 11 digits, halves away from zero. */
static inline float tf32(float x) {
  int exponent;
  const double m = frexp((double)x, &exponent);
  return (float)ldexp(round(ldexp(m, 11)), exponent - 11);
}

typedef float (*rounding)(float x);

/* Element i, j of a product of matrices with steps, in double, and the sum of magnitudes. */
static inline double dot(const float *a, const float *b, int64_t k, int64_t a_step, int64_t b_step, rounding as,
                         double *size) {
  double sum = 0;
  *size = 0;
  for (int64_t d = 0; d < k; d++) {
    const double x = (double)as(a[d * a_step]) * (double)as(b[d * b_step]);
    sum += x;
    *size += fabs(x);
  }
  return sum;
}

typedef struct gemm_case {
  int64_t m, n, k;
  int trans, third; /* third: none, whole, a column, a row, one number */
  bool constant;    /* B */
  uint32_t flags;
  rounding as;
} gemm_case;

static inline void gemm(rig *r, const gemm_case *g) {
  op_case c;
  op_case_init(&c, "Gemm");
  const int64_t m = g->m, n = g->n, k = g->k;
  const bool ta = (g->trans & 1) != 0, tb = (g->trans & 2) != 0;
  float *a = op_input(&c, F32, ta ? SHAPE(2, k, m) : SHAPE(2, m, k));
  float *b = op_input(&c, F32, tb ? SHAPE(2, n, k) : SHAPE(2, k, n)), *add = NULL;
  const int64_t rows = g->third == 1 || g->third == 2 ? m : 1, columns = g->third == 1 || g->third == 3 ? n : 1;
  if (g->third != 0) op_fill(add = op_input(&c, F32, SHAPE(2, rows, columns)), (size_t)(rows * columns), 3);
  float *y = op_output(&c, F32, SHAPE(2, m, n));
  op_attr_int(&c, "transA", ta);
  op_attr_int(&c, "transB", tb);
  op_attr_float(&c, "alpha", 0.75);
  op_attr_float(&c, "beta", -1.5);
  op_fill(a, (size_t)(m * k), 1);
  op_fill(b, (size_t)(k * n), 2);
  c.region.flags = g->flags;
  if (g->constant) {
    op_constant(&c, 1);
    c.values[1].v.data_bytes = sizeof(float) * (uint64_t)(k * n);
  }
  run(r, &c);
  for (int64_t i = 0; i < m; i++) {
    for (int64_t j = 0; j < n; j++) {
      double size;
      const double sum = dot(a + (ta ? i : i * k), b + (tb ? j * k : j), k, ta ? m : 1, tb ? 1 : n, g->as, &size);
      const double more = add != NULL ? -1.5 * (double)add[(rows > 1 ? i : 0) * columns + (columns > 1 ? j : 0)] : 0;
      op_close(0.75 * sum + more, (double)y[i * n + j], size + fabs(more), 8, "Gemm", (size_t)(i * n + j));
    }
  }
  op_case_free(&c);
}

static void products_are_handed_over(void **state) {
  static const int64_t sizes[][3] = {{33, 45, 70}, {1, 300, 200}, {300, 1, 200}, {128, 129, 1}, {64, 64, 64}};
  library_rig b;
  int cases = 0;
  (void)state;
  library_open(&b, NULL, NULL);
  for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
    for (int trans = 0; trans < 4; trans++) {
      for (int third = 0; third < 5; third++) {
        const gemm_case g = {sizes[i][0], sizes[i][1], sizes[i][2], trans, third, third % 2 == 0, 0, exact};
        if (i != 0 && trans != third % 4) continue;
        gemm(&b.r, &g);
        if (i != 3) cases++; /* those are too small */
        assert_int_equal(b.taken, cases);
      }
    }
  }
  assert_int_equal(b.refused + b.halves, 0);
  rig_close(&b.r);
}

static void batches_are_handed_over_where_they_lie_evenly(void **state) {
  enum { M = 32, N = 36, K = 40 };
  library_rig b;
  op_case c;
  (void)state;
  library_open(&b, NULL, NULL);
  for (int what = 0; what < 4; what++) { /* each with its own, a common left side, a common right one, an uneven grid */
    const int64_t left = what == 0 || what == 2 ? 3 : what == 1 ? 1 : 2, right = what == 2 ? 1 : what == 3 ? 2 : 3;
    op_case_init(&c, "MatMul");
    float *x = op_input(&c, F32, SHAPE(4, left, 1, M, K));
    float *w = op_input(&c, F32, what == 3 ? SHAPE(4, 1, 2, K, N) : SHAPE(4, right, 1, K, N));
    const int64_t batches = what == 3 ? 4 : 3;
    float *y = op_output(&c, F32, what == 3 ? SHAPE(4, 2, 2, M, N) : SHAPE(4, 3, 1, M, N));
    op_fill(x, (size_t)(left * M * K), 1);
    op_fill(w, (size_t)(right * K * N), 2);
    run(&b.r, &c);
    for (int64_t i = 0; i < batches * M * N; i++) {
      const int64_t batch = i / (M * N), own = what == 1 ? 0 : what == 3 ? batch / 2 : batch;
      const int64_t other = what == 2 ? 0 : what == 3 ? batch % 2 : batch;
      double size;
      const double sum = dot(x + (own * M + i / N % M) * K, w + other * K * N + i % N, K, 1, N, exact, &size);
      op_close(sum, (double)y[i], size, 64, "MatMul", (size_t)i);
    }
    op_case_free(&c);
    assert_int_equal(b.taken, what < 3 ? what + 1 : 3);
  }
  op_case_init(&c, "Conv"); /* one of 1 x 1, whose weights are common to all images, with a bias */
  float *x = op_input(&c, F32, SHAPE(4, 2, 24, 8, 8)), *w = op_input(&c, F32, SHAPE(4, 40, 24, 1, 1));
  float *plus = op_input(&c, F32, SHAPE(1, 40)), *y = op_output(&c, F32, SHAPE(4, 2, 40, 8, 8));
  op_fill(x, 2 * 24 * 64, 3);
  op_fill(w, 40 * 24, 4);
  op_fill(plus, 40, 5);
  run(&b.r, &c);
  assert_int_equal(b.taken, 4);
  for (int64_t i = 0; i < 2 * 40 * 64; i++) {
    double size;
    const double sum = dot(w + i / 64 % 40 * 24, x + i / (40 * 64) * (24 * 64) + i % 64, 24, 1, 64, exact, &size);
    op_close(sum + (double)plus[i / 64 % 40], (double)y[i], size + 2, 64, "Conv", (size_t)i);
  }
  op_case_free(&c);
  assert_int_equal(b.refused, 0);
  rig_close(&b.r);
}

/* Operands are exactly those of bfloat16, not only near; strict ones are as they were. */
static void fast_products_are_rounded(void **state) {
  static const int64_t sizes[][3] = {{64, 64, 64}, {65, 67, 69}, {70, 101, 131}};
  library_rig b;
  (void)state;
  library_open(&b, NULL, NULL);
  for (int i = 0; i < 3; i++) {
    for (int trans = 0; trans < 4; trans++) {
      gemm_case g = {sizes[i][0], sizes[i][1], sizes[i][2], trans, trans, true, HEDDLE_REGION_FAST, bfloat};
      gemm(&b.r, &g);
      assert_int_equal(b.halves, 4 * i + trans + 1);
    }
  }
  const gemm_case strict = {70, 101, 131, 0, 0, true, 0, exact};
  gemm(&b.r, &strict);
  const gemm_case thin = {8, 101, 131, 0, 0, true, HEDDLE_REGION_FAST, FAST_OTHERWISE};
  gemm(&b.r, &thin);
  const gemm_case unknown = {70, 101, 131, 0, 0, false, HEDDLE_REGION_FAST, FAST_OTHERWISE};
  gemm(&b.r, &unknown);
  assert_int_equal(b.taken, 15);
  assert_int_equal(b.halves, 12);
  rig_close(&b.r);
}

/* The call that a case makes fail is the n-th of that name in the process; prepare makes one, and each run one. */
static void what_fails_in_prepare_is_the_kernels(void **state) {
  static const gemm_case g = {64, 64, 64, 0, 2, false, 0, exact};
  library_rig b;
  (void)state;
  setenv("FAKE_LIBRARY_FAIL", FAILING_CALL ":1", 1);
  library_open(&b, NULL, NULL);
  gemm(&b.r, &g);
  assert_int_equal(b.taken, 0);
  assert_int_equal(b.refused, 1);
  assert_non_null(strstr(b.last, FAILING_CALL));
  gemm(&b.r, &g); /* the next one is the library's again */
  assert_int_equal(b.taken, 1);
  rig_close(&b.r);
}

static void a_library_that_does_not_work_is_left(void **state) {
  static const gemm_case g = {64, 64, 64, 0, 2, false, 0, exact};
  library_rig b;
  (void)state;
  setenv("FAKE_LIBRARY_FAIL", CREATING_CALL ":1", 1);
  library_open(&b, NULL, NULL);
  gemm(&b.r, &g);
  gemm(&b.r, &g);
  assert_int_equal(b.taken + b.refused, 0);
  assert_non_null(strstr(b.last, LIBRARY " does not work here"));
  rig_close(&b.r);
}

/* One product of 64 x 64 x 64 that is bound to memory. */
typedef struct bound {
  op_case c;
  heddle_pop *op;
  heddle_plaunch *launch;
  heddle_pslice scratch;
  heddle_pbuffer *arena;
  uint64_t total;
} bound;

static inline void bound_open(library_rig *b, bound *o) {
  sim_test *t = &b->r.t;
  op_case *c = &o->c;
  op_case_init(c, "MatMul");
  op_fill(op_input(c, F32, SHAPE(2, 64, 64)), 64 * 64, 1);
  op_fill(op_input(c, F32, SHAPE(2, 64, 64)), 64 * 64, 2);
  op_output(c, F32, SHAPE(2, 64, 64));
  OK(t, t->p->op->query(t->self, 0, &c->region, op_take_offer, c, &t->err));
  o->scratch = scratch_open(&b->r, c, &o->total);
  o->arena = sim_buf(t, t->dev[0], HEDDLE_MEMORY_DEVICE, 3 * 16384);
  const heddle_pslice in[2] = {{o->arena, 0, 16384}, {o->arena, 16384, 16384}}, out[1] = {{o->arena, 32768, 16384}};
  const heddle_pbind bind = {sizeof bind, 0, in, out, 2, 1, o->scratch};
  OK(t, t->p->op->prepare(t->dev[0], &c->region, 0, &o->op, &t->err));
  OK(t, t->p->op->bind(o->op, b->r.d.stream, &bind, &o->launch, &t->err));
}

static inline void bound_close(library_rig *b, bound *o, bool lost) {
  sim_test *t = &b->r.t;
  if (!lost) scratch_close(&b->r, &o->c, &o->scratch, o->total);
  else if (o->scratch.buffer != NULL) t->p->memory->free(t->dev[0], o->scratch.buffer);
  t->p->op->launch_free(o->launch);
  t->p->op->op_free(o->op);
  t->p->memory->free(t->dev[0], o->arena);
  op_case_free(&o->c);
}

/* A failing run says who failed where, and the device stays usable. */
static void what_fails_in_a_run_is_said(void **state) {
  library_rig b;
  bound o;
  (void)state;
  setenv("FAKE_LIBRARY_FAIL", FAILING_CALL ":2", 1);
  library_open(&b, NULL, NULL);
  bound_open(&b, &o);
  sim_test *t = &b.r.t;
  assert_int_equal(t->p->op->run(o.launch, &t->err), HEDDLE_EFAILED);
  assert_non_null(strstr(t->err.text, GPU_PLUGIN ":0: " FAILING_CALL));
  OK(t, t->p->op->run(o.launch, &t->err));
  bound_close(&b, &o, false);
  rig_close(&b.r);
}

/* A fault of the work before is not the library's that meets it. */
static void a_fault_is_the_drivers(void **state) {
  const struct timespec nap = {0, 200000000};
  library_rig b;
  bound o;
  (void)state;
  setenv("FAKE_GPU_FAULT", "host:2", 1);
  library_open(&b, NULL, NULL);
  bound_open(&b, &o); /* runs it once */
  sim_test *t = &b.r.t;
  OK(t, t->p->op->run(o.launch, &t->err));
  nanosleep(&nap, NULL);
  assert_int_equal(t->p->op->run(o.launch, &t->err), HEDDLE_EDEVICE);
  assert_int_equal(t->err.api_code, 700);
  bound_close(&b, &o, true);
  rig_close(&b.r);
}

/* What a capture records is done by each replay, with what is in the operands then. */
static void replays_have_the_library_in_them(void **state) {
  library_rig b;
  op_case c;
  (void)state;
  library_open(&b, NULL, NULL);
  op_case_init(&c, "MatMul");
  float *x = op_input(&c, F32, SHAPE(2, 64, 64)), *w = op_input(&c, F32, SHAPE(2, 64, 64)), y[64 * 64];
  op_output(&c, F32, SHAPE(2, 64, 64));
  op_fill(w, 64 * 64, 2);
  sim_test *t = &b.r.t;
  heddle_pop *op = NULL;
  heddle_plaunch *launch = NULL;
  heddle_pgraph *graph = NULL;
  uint64_t total = 0;
  OK(t, t->p->op->query(t->self, 0, &c.region, op_take_offer, &c, &t->err));
  heddle_pslice scratch = scratch_open(&b.r, &c, &total);
  heddle_pbuffer *arena = sim_buf(t, t->dev[0], HEDDLE_MEMORY_DEVICE, 3 * 16384);
  const heddle_pslice in[2] = {{arena, 0, 16384}, {arena, 16384, 16384}}, out[1] = {{arena, 32768, 16384}};
  const heddle_pbind bind = {sizeof bind, 0, in, out, 2, 1, scratch};
  OK(t, t->p->op->prepare(t->dev[0], &c.region, 0, &op, &t->err));
  assert_int_equal(b.taken, 1);
  OK(t, t->p->op->bind(op, b.r.d.stream, &bind, &launch, &t->err));
  OK(t, t->p->copy->write(b.r.d.stream, arena, 16384, w, 16384, &t->err));
  OK(t, t->p->capture->begin(b.r.d.stream, &t->err));
  OK(t, t->p->op->run(launch, &t->err));
  OK(t, t->p->capture->end(b.r.d.stream, &graph, &t->err));
  for (uint32_t round = 1; round <= 2; round++) {
    op_fill(x, 64 * 64, 10 * round);
    OK(t, t->p->copy->write(b.r.d.stream, arena, 0, x, 16384, &t->err));
    OK(t, t->p->capture->replay(graph, b.r.d.stream, &t->err));
    OK(t, t->p->copy->read(b.r.d.stream, y, arena, 32768, 16384, &t->err));
    for (int i = 0; i < 64 * 64; i++) {
      double size;
      const double sum = dot(x + i / 64 * 64, w + i % 64, 64, 1, 64, exact, &size);
      op_close(sum, (double)y[i], size, 64, "a replay", (size_t)i);
    }
  }
  t->p->capture->free(graph);
  scratch_close(&b.r, &c, &scratch, total);
  t->p->op->launch_free(launch);
  t->p->op->op_free(op);
  t->p->memory->free(t->dev[0], arena);
  op_case_free(&c);
  rig_close(&b.r);
}

static inline void refuse_setting(const char *key, const char *value, heddle_status status, const char *words) {
  sim_test t;
  cuda_environment();
  if (gpu_is_real()) SKIP("settings are tested on the double");
  sim_enter(&t, key, value, NULL);
  cuda_settings(&t);
  heddle_status s = t.p->open_instance(&t.fake.table, &t.self, &t.err);
  if (s == HEDDLE_ENODEV && strstr(t.err.text, words) == NULL) fail_msg("%s", t.err.text);
  assert_int_equal(s, status);
  if (strstr(t.err.text, words) == NULL) fail_msg("%s", t.err.text);
}

static void a_wrong_word_is_refused(void **state) {
  (void)state;
  refuse_setting("libraries", "perhaps", HEDDLE_EINVAL, "'perhaps' is none of 0, 1 and auto");
}

#define LIBRARY_CASES \
  CASE(products_are_handed_over), CASE(batches_are_handed_over_where_they_lie_evenly), \
      CASE(fast_products_are_rounded), CASE(what_fails_in_prepare_is_the_kernels), \
      CASE(a_library_that_does_not_work_is_left), CASE(what_fails_in_a_run_is_said), CASE(a_fault_is_the_drivers), \
      CASE(replays_have_the_library_in_them), CASE(a_wrong_word_is_refused)

#endif
