/* labels: serial slow
 * timeout: 600
 * Large products by CLBlast on PoCL, against double; what is handed over and what is not, by the plugin's own log. Slow,
 * because CLBlast compiles for some ten seconds the first time. Skipped where it is not installed. */
#define CASE_PLUGIN_OPENCL
#include "device_case.h"

#include <dlfcn.h>

typedef struct blas_rig {
  rig r;
  int taken, refused; /* products that the log says are CLBlast's, and failures of it */
} blas_rig;

static blas_rig *current; /* of the one case in this process: the log's context is the fake host */

static void count_lines(void *ctx, int32_t level, const char *component, const char *text) {
  sim_test_log(ctx, level, component, text);
  if (strstr(text, "are CLBlast's") != NULL) current->taken++;
  if (strstr(text, "CLBlast fails") != NULL) current->refused++;
}

static void open_with(blas_rig *b, const char *setting) {
  opencl_environment();
  if (dlopen("libclblast.so.1", RTLD_NOW | RTLD_LOCAL) == NULL) SKIP("CLBlast is not installed");
  memset(b, 0, sizeof *b);
  current = b;
  sim_enter(&b->r.t, "clblast", setting, NULL);
  b->r.t.fake.table.log = count_lines;
  opencl_open_devices(&b->r.t, 1);
  b->r.d.plugin = b->r.t.p;
  b->r.d.self = b->r.t.self;
  b->r.d.dev = b->r.t.dev[0];
  b->r.d.stream = sim_stream(&b->r.t, b->r.t.dev[0]);
}

/* Element i, j of a product of matrices with steps, in double, and the sum of magnitudes. */
static double dot(const float *a, const float *b, int64_t k, int64_t a_step, int64_t b_step, double *size) {
  double sum = 0;
  *size = 0;
  for (int64_t d = 0; d < k; d++) {
    sum += (double)a[d * a_step] * (double)b[d * b_step];
    *size += fabs((double)a[d * a_step] * (double)b[d * b_step]);
  }
  return sum;
}

static void gemm(rig *r, int64_t m, int64_t n, int64_t k, int trans, int third) {
  op_case c;
  op_case_init(&c, "Gemm");
  float *a = op_input(&c, F32, (trans & 1) != 0 ? SHAPE(2, k, m) : SHAPE(2, m, k));
  float *b = op_input(&c, F32, (trans & 2) != 0 ? SHAPE(2, n, k) : SHAPE(2, k, n)), *add = NULL;
  const int64_t rows = third == 1 || third == 2 ? m : 1, columns = third == 1 || third == 3 ? n : 1;
  if (third != 0) op_fill(add = op_input(&c, F32, SHAPE(2, rows, columns)), (size_t)(rows * columns), 3);
  float *y = op_output(&c, F32, SHAPE(2, m, n));
  op_attr_int(&c, "transA", trans & 1);
  op_attr_int(&c, "transB", trans >> 1);
  op_attr_float(&c, "alpha", 0.75);
  op_attr_float(&c, "beta", -1.5);
  op_fill(a, (size_t)(m * k), 1);
  op_fill(b, (size_t)(k * n), 2);
  run(r, &c);
  for (int64_t i = 0; i < m; i += 3) {
    for (int64_t j = 0; j < n; j++) {
      double size;
      const double sum = dot(a + ((trans & 1) != 0 ? i : i * k), b + ((trans & 2) != 0 ? j * k : j), k,
                             (trans & 1) != 0 ? m : 1, (trans & 2) != 0 ? 1 : n, &size);
      const double more = add != NULL ? -1.5 * (double)add[(rows > 1 ? i : 0) * columns + (columns > 1 ? j : 0)] : 0;
      op_close(0.75 * sum + more, (double)y[i * n + j], size + fabs(more), 64, "Gemm", (size_t)(i * n + j));
    }
  }
  op_case_free(&c);
}

static void large_products_are_handed_over(void **state) {
  blas_rig b;
  (void)state;
  open_with(&b, "1");
  for (int trans = 0; trans < 4; trans++) {
    gemm(&b.r, 257, 260, 270, trans, trans);
    assert_int_equal(b.taken, trans + 1);
  }
  gemm(&b.r, 512, 64, 512, 0, 0);
  assert_int_equal(b.taken, 5);
  gemm(&b.r, 1024, 63, 1024, 0, 0); /* thin */
  gemm(&b.r, 128, 128, 128, 0, 0);  /* small */
  assert_int_equal(b.taken, 5);
  assert_int_equal(b.refused, 0);
  rig_close(&b.r);
}

static void batches_are_handed_over_where_they_lie_evenly(void **state) {
  enum { M = 256, N = 260, K = 256 };
  blas_rig b;
  op_case c;
  (void)state;
  open_with(&b, "1");
  for (int what = 0; what < 3; what++) { /* each with its own, a common left side, a grid that is not even */
    const int64_t left = what == 0 ? 3 : what == 1 ? 1 : 2;
    op_case_init(&c, "MatMul");
    float *x = op_input(&c, F32, SHAPE(4, left, 1, M, K));
    float *w = op_input(&c, F32, what == 2 ? SHAPE(4, 1, 2, K, N) : SHAPE(4, 3, 1, K, N));
    const int64_t batches = what == 2 ? 4 : 3;
    float *y = op_output(&c, F32, what == 2 ? SHAPE(4, 2, 2, M, N) : SHAPE(4, 3, 1, M, N));
    op_fill(x, (size_t)(left * M * K), 1);
    op_fill(w, (size_t)((what == 2 ? 2 : 3) * K * N), 2);
    run(&b.r, &c);
    for (int64_t i = 0; i < batches * M * N; i += 7) {
      const int64_t batch = i / (M * N), own = what == 0 ? batch : what == 1 ? 0 : batch / 2;
      double size;
      const double sum =
          dot(x + (own * M + i / N % M) * K, w + (what == 2 ? batch % 2 : batch) * K * N + i % N, K, 1, N, &size);
      op_close(sum, (double)y[i], size, 64, "MatMul", (size_t)i);
    }
    op_case_free(&c);
    assert_int_equal(b.taken, what < 2 ? what + 1 : 2);
  }
  op_case_init(&c, "Conv"); /* one of 1 x 1, whose weights are common to all images, with a bias */
  float *x = op_input(&c, F32, SHAPE(4, 2, 256, 16, 16)), *w = op_input(&c, F32, SHAPE(4, 256, 256, 1, 1));
  float *plus = op_input(&c, F32, SHAPE(1, 256)), *y = op_output(&c, F32, SHAPE(4, 2, 256, 16, 16));
  op_fill(x, 2 * 256 * 256, 3);
  op_fill(w, 256 * 256, 4);
  op_fill(plus, 256, 5);
  run(&b.r, &c);
  assert_int_equal(b.taken, 3);
  for (int64_t i = 0; i < 2 * 256 * 256; i += 5) {
    double size;
    const double sum = dot(w + i / 256 % 256 * 256, x + i / 65536 * 65536 + i % 256, 256, 1, 256, &size);
    op_close(sum + (double)plus[i / 256 % 256], (double)y[i], size + 2, 64, "Conv", (size_t)i);
  }
  op_case_free(&c);
  assert_int_equal(b.refused, 0);
  rig_close(&b.r);
}

static void not_on_host_cores_of_its_own_accord(void **state) {
  blas_rig b;
  (void)state;
  open_with(&b, "auto");
  gemm(&b.r, 256, 256, 256, 0, 0);
  assert_int_equal(b.taken + b.refused, 0);
  rig_close(&b.r);
}

static void other_settings_are_refused(void **state) {
  sim_test t;
  (void)state;
  opencl_environment();
  sim_enter(&t, "clblast", "perhaps", NULL);
  heddle_status s = t.p->open_instance(&t.fake.table, &t.self, &t.err);
  if (s == HEDDLE_ENODEV) SKIP(t.err.text);
  assert_int_equal(s, HEDDLE_EINVAL);
  assert_non_null(strstr(t.err.text, "'perhaps' is none of 0, 1 and auto"));
}

CASES(CASE(large_products_are_handed_over), CASE(batches_are_handed_over_where_they_lie_evenly),
      CASE(not_on_host_cores_of_its_own_accord), CASE(other_settings_are_refused))
