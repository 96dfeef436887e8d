/* timeout: 120
 * Products by the double of cuBLASLt (cases_libraries.h), convolutions by that of cuDNN, and products in bfloat16 by a kernel
 * of ours where there is no library. */
#define CASE_PLUGIN_CUDA
#define LIBRARY "cuBLASLt"
#define LIBRARY_SETTINGS \
  "cublaslt", HEDDLE_TEST_BUILD "/tests/fakes/cuda/libcublasLt.so.13", "cudnn", \
      HEDDLE_TEST_BUILD "/tests/fakes/cuda/libcudnn.so.9"
#define FAILING_CALL "cublasLtMatmul"
#define CREATING_CALL "cublasLtCreate"
#define FAST_OTHERWISE tf32
#include "cases_libraries.h"
#include "gpu_double.h"

/* ---------------------------------------------------------------- convolutions */

typedef struct conv_case {
  int dims;                        /* spatial */
  int64_t images, groups, in, out; /* channels of all groups */
  int64_t size[3], kernel[3], stride[3], dilation[3], before[3], after[3];
  bool bias, taken;
} conv_case;

static int64_t positions(const conv_case *k, int d) {
  if (d >= k->dims) return 1;
  return (k->size[d] + k->before[d] + k->after[d] - (k->kernel[d] - 1) * k->dilation[d] - 1) / k->stride[d] + 1;
}

static int64_t or_one(const conv_case *k, const int64_t *list, int d) {
  return d < k->dims ? list[d] : 1;
}

/* Result m of image n at a position, in double. */
static double convolved(const conv_case *k, const float *x, const float *w, int64_t n, int64_t m, const int64_t *at,
                        rounding as, double *size) {
  const int64_t per_group = k->in / k->groups, first = m / (k->out / k->groups) * per_group;
  const int64_t s[3] = {k->size[0], or_one(k, k->size, 1), or_one(k, k->size, 2)};
  const int64_t t[3] = {k->kernel[0], or_one(k, k->kernel, 1), or_one(k, k->kernel, 2)};
  double sum = 0;
  *size = 0;
  for (int64_t channel = 0; channel < per_group; channel++) {
    for (int64_t tap = 0; tap < t[0] * t[1] * t[2]; tap++) {
      const int64_t each[3] = {tap / t[2] / t[1], tap / t[2] % t[1], tap % t[2]};
      int64_t place = n * k->in + first + channel;
      bool inside = true;
      for (int d = 0; d < 3; d++) {
        const int64_t from = d < k->dims ? at[d] * k->stride[d] + each[d] * k->dilation[d] - k->before[d] : 0;
        inside = inside && from >= 0 && from < s[d];
        place = place * s[d] + from;
      }
      if (!inside) continue;
      const double term = (double)as(x[place]) * (double)as(w[(m * per_group + channel) * t[0] * t[1] * t[2] + tap]);
      sum += term;
      *size += fabs(term);
    }
  }
  return sum;
}

static op_shape shape_of(const conv_case *k, int64_t first, int64_t second, const int64_t *rest) {
  op_shape s = {2 + k->dims, {first, second}};
  for (int d = 0; d < k->dims; d++) s.dims[2 + d] = rest[d];
  return s;
}

static void conv(library_rig *b, const conv_case *k, uint32_t flags, rounding as) {
  op_case c;
  int64_t pads[6], out[3];
  const int taken = b->taken;
  for (int d = 0; d < k->dims; d++) {
    pads[d] = k->before[d];
    pads[k->dims + d] = k->after[d];
  }
  for (int d = 0; d < 3; d++) out[d] = positions(k, d);
  op_case_init(&c, "Conv");
  const op_shape xs = shape_of(k, k->images, k->in, k->size), ws = shape_of(k, k->out, k->in / k->groups, k->kernel);
  float *x = op_input(&c, F32, xs), *w = op_input(&c, F32, ws), *plus = NULL;
  if (k->bias) op_fill(plus = op_input(&c, F32, SHAPE(1, k->out)), (size_t)k->out, 3);
  float *y = op_output(&c, F32, shape_of(k, k->images, k->out, out));
  op_fill(x, op_count(xs), 1);
  op_fill(w, op_count(ws), 2);
  op_attr_ints(&c, "kernel_shape", (uint64_t)k->dims, k->kernel);
  op_attr_ints(&c, "strides", (uint64_t)k->dims, k->stride);
  op_attr_ints(&c, "dilations", (uint64_t)k->dims, k->dilation);
  op_attr_ints(&c, "pads", 2 * (uint64_t)k->dims, pads);
  op_attr_int(&c, "group", k->groups);
  c.region.flags = flags;
  run(&b->r, &c);
  assert_int_equal(b->taken - taken, k->taken);
  if (k->taken) assert_non_null(strstr(b->last, "cuDNN does it"));
  const int64_t n = out[0] * out[1] * out[2];
  for (int64_t i = 0; i < k->images * k->out * n; i++) {
    const int64_t at[3] = {i % n / out[2] / out[1], i % n / out[2] % out[1], i % out[2]}, m = i / n % k->out;
    double size;
    const double sum = convolved(k, x, w, i / n / k->out, m, at, as, &size);
    op_close(sum + (plus != NULL ? (double)plus[m] : 0), (double)y[i], size + 1, 64, "Conv", (size_t)i);
  }
  op_case_free(&c);
}

/* Images, groups, channels; size, window, stride, dilation, pads before and after; bias; is it cuDNN's? */
static const conv_case convs[] = {
    {2, 2, 1, 8, 16, {9, 10}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, true, true},
    {2, 1, 1, 16, 12, {13, 11}, {3, 5}, {2, 1}, {1, 1}, {0, 2}, {0, 2}, false, true},
    {2, 1, 4, 32, 32, {10, 10}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, true, true},
    {2, 1, 64, 64, 64, {9, 9}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, false, true}, /* by depth */
    {2, 1, 1, 8, 12, {14, 14}, {3, 3}, {1, 1}, {2, 3}, {2, 3}, {2, 3}, false, true},
    {1, 2, 1, 16, 24, {50}, {5}, {2}, {1}, {2}, {2}, true, true},
    {3, 1, 1, 6, 8, {5, 6, 7}, {2, 3, 3}, {1, 1, 1}, {1, 1, 1}, {0, 1, 1}, {0, 1, 1}, true, true},
    {2, 1, 1, 32, 12, {12, 12}, {2, 2}, {2, 2}, {1, 1}, {0, 0}, {1, 1}, false, true}, /* pads that reach nothing */
    {2, 1, 1, 16, 12, {12, 12}, {3, 3}, {1, 1}, {1, 1}, {0, 0}, {1, 1}, false, false},
    {2, 1, 1, 16, 12, {12, 12}, {3, 3}, {1, 1}, {1, 1}, {2, 2}, {0, 0}, true, false},
    {2, 1, 1, 2, 3, {6, 6}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, true, false}, /* small */
};

static void convolutions_are_handed_over(void **state) {
  library_rig b;
  (void)state;
  library_open(&b, NULL, NULL);
  for (size_t i = 0; i < sizeof convs / sizeof convs[0]; i++) conv(&b, &convs[i], 0, exact);
  assert_int_equal(b.refused, 0);
  rig_close(&b.r);
}

static void fast_convolutions_are_rounded(void **state) {
  library_rig b;
  (void)state;
  library_open(&b, NULL, NULL);
  for (size_t i = 0; i < 3; i++) conv(&b, &convs[i], HEDDLE_REGION_FAST, tf32);
  rig_close(&b.r);
}

/* An algorithm is good for the math that the heuristics list it with: by tensor cores (TF32) with fast, never by float16, and
 * in strict as before. */
static void the_math_goes_with_the_algorithm(void **state) {
  static const char *const listed[] = {"0", "1", "2", "3"};
  (void)state;
  for (int i = 0; i < 4; i++) {
    library_rig b;
    conv_case k = convs[0];
    setenv("FAKE_LIBRARY_MATH", listed[i], 1);
    library_open(&b, NULL, NULL);
    conv(&b, &k, 0, exact);
    k.taken = i != 2;
    conv(&b, &k, HEDDLE_REGION_FAST, i == 0 || i == 1 ? tf32 : exact);
    rig_close(&b.r);
  }
}

static void shapes_that_a_library_refuses_are_the_kernels(void **state) {
  library_rig b;
  (void)state;
  setenv("FAKE_LIBRARY_REFUSE", "3", 1);
  library_open(&b, NULL, NULL);
  for (int64_t i = 0; i < 6; i++) {
    const gemm_case g = {64, 64, 60 + i, 0, (int)(i % 5), false, 0, exact};
    gemm(&b.r, &g);
  }
  assert_int_equal(b.taken, 4);
  assert_int_equal(b.refused, 2);
  rig_close(&b.r);
}

/* Operators with the same weights, of programs for other numbers of rows, share what was rounded; those of the same shapes need no
 * run to be ready. */
static void weights_are_rounded_once(void **state) {
  static const int64_t rows[] = {64, 96, 64};
  heddle_pop *ops[3];
  op_case c[3];
  library_rig b;
  int calls[4], live[4];
  (void)state;
  library_open(&b, NULL, NULL);
  sim_test *t = &b.r.t;
  int (*count)(const char *) = NULL;
  void *library = dlopen(HEDDLE_TEST_BUILD "/tests/fakes/cuda/libcublasLt.so.13", RTLD_NOW | RTLD_NOLOAD);
  *(void **)&count = library != NULL ? dlsym(library, "fake_library_calls") : NULL;
  if (count == NULL) { /* it is opened with the first product */
    static const gemm_case g = {64, 64, 64, 0, 0, false, 0, exact};
    gemm(&b.r, &g);
    library = dlopen(HEDDLE_TEST_BUILD "/tests/fakes/cuda/libcublasLt.so.13", RTLD_NOW | RTLD_NOLOAD);
    *(void **)&count = dlsym(library, "fake_library_calls");
  }
  calls[0] = count("cublasLtMatmul");
  live[0] = double_live("allocations");
  for (int i = 0; i < 3; i++) {
    op_case_init(&c[i], "MatMul");
    float *x = op_input(&c[i], F32, SHAPE(2, rows[i], 128)), *w = op_input(&c[i], F32, SHAPE(2, 128, 64));
    op_output(&c[i], F32, SHAPE(2, rows[i], 64));
    op_fill(x, (size_t)(rows[i] * 128), 1);
    op_fill(w, 128 * 64, 2);
    op_constant(&c[i], 1);
    c[i].values[1].v.data_bytes = sizeof(float) * 128 * 64;
    c[i].region.flags = HEDDLE_REGION_FAST;
    OK(t, t->p->op->prepare(t->dev[0], &c[i].region, 0, &ops[i], &t->err));
    calls[i + 1] = count("cublasLtMatmul");
    OK(t, t->p->device->idle(t->dev[0], 20 * SECOND, &t->err));
    live[i + 1] = double_live("allocations");
  }
  assert_int_equal(live[1] - live[0], 1); /* the weights */
  assert_int_equal(live[3], live[1]);
  assert_int_equal(calls[1] - calls[0], 1);
  assert_int_equal(calls[2] - calls[1], 1);
  assert_int_equal(calls[3] - calls[2], 0);
  for (int i = 0; i < 3; i++) {
    t->p->op->op_free(ops[i]);
    op_case_free(&c[i]);
    OK(t, t->p->device->idle(t->dev[0], 20 * SECOND, &t->err));
    assert_int_equal(double_live("allocations"), i < 2 ? live[1] : live[0]);
  }
  rig_close(&b.r);
}

/* What heuristics list and then does not run leaves the next that they list. */
static void the_second_algorithm_is_tried(void **state) {
  static const gemm_case g = {64, 64, 64, 0, 1, false, 0, exact};
  library_rig b;
  (void)state;
  setenv("FAKE_LIBRARY_SECOND", "1", 1);
  library_open(&b, NULL, NULL);
  gemm(&b.r, &g);
  conv(&b, &convs[0], 0, exact);
  assert_non_null(strstr(b.last, "algorithm 1"));
  conv(&b, &convs[0], HEDDLE_REGION_FAST, tf32);
  assert_int_equal(b.taken, 3);
  assert_int_equal(b.refused, 0);
  rig_close(&b.r);
}

/* A row that is added as it is goes into the library's call; where the library has no such algorithm, as before. */
static void a_bias_is_the_librarys(void **state) {
  (void)state;
  for (int refused = 0; refused < 2; refused++) {
    for (uint32_t flags = 0; flags < 2; flags++) {
      library_rig b;
      op_case c;
      if (refused) setenv("FAKE_LIBRARY_NO_BIAS", "1", 1);
      library_open(&b, NULL, NULL);
      op_case_init(&c, "Gemm");
      const int64_t m = 65, n = 70, k = 80;
      float *x = op_input(&c, F32, SHAPE(2, m, k)), *w = op_input(&c, F32, SHAPE(2, n, k)),
            *add = op_input(&c, F32, SHAPE(1, n));
      float *y = op_output(&c, F32, SHAPE(2, m, n));
      op_attr_int(&c, "transB", 1);
      op_fill(x, (size_t)(m * k), 1);
      op_fill(w, (size_t)(n * k), 2);
      op_fill(add, (size_t)n, 3);
      op_constant(&c, 1);
      c.values[1].v.data_bytes = sizeof(float) * (uint64_t)(n * k);
      c.region.flags = flags ? HEDDLE_REGION_FAST : 0;
      run(&b.r, &c);
      assert_true((strstr(b.last, "with the bias") != NULL) == !refused);
      for (int64_t i = 0; i < m * n; i++) {
        double size;
        const double sum = dot(x + i / n * k, w + i % n * k, k, 1, 1, flags ? bfloat : exact, &size);
        op_close(sum + (double)add[i % n], (double)y[i], size + 1, 8, "Gemm", (size_t)i);
      }
      op_case_free(&c);
      rig_close(&b.r);
    }
  }
}

/* The runtime inside of cuBLASLt holds the primary context for good. */
static void a_library_that_holds_the_context_is_survived(void **state) {
  static const gemm_case g = {64, 64, 64, 0, 0, false, 0, exact};
  heddle_pdevice_options options = {.struct_size = sizeof options};
  library_rig b;
  (void)state;
  setenv("FAKE_LIBRARY_RETAIN", "1", 1);
  setenv("FAKE_GPU_FAULT", "fill:9:700", 1);
  setenv("FAKE_GPU_STRICT", "0", 1);
  library_open(&b, NULL, NULL);
  sim_test *t = &b.r.t;
  gemm(&b.r, &g);
  assert_int_equal(b.taken, 1);
  heddle_pbuffer *m = sim_buf(t, t->dev[0], HEDDLE_MEMORY_DEVICE, 4096);
  for (int i = 0; i < 9 && t->p->stream->query(b.r.d.stream, NULL) != HEDDLE_EDEVICE; i++)
    (void)t->p->copy->fill(b.r.d.stream, m, 0, 4096, 1, NULL);
  FAILS(t, HEDDLE_EDEVICE, "(700)", t->p->stream->sync(b.r.d.stream, 20 * SECOND, &t->err));
  t->p->memory->free(t->dev[0], m);
  t->p->stream->close(b.r.d.stream);
  t->p->device->close(t->dev[0]);
  OK(t, t->p->device->open(t->self, 0, &options, &t->dev[0], &t->err));
  b.r.d.dev = t->dev[0];
  b.r.d.stream = sim_stream(t, t->dev[0]);
  gemm(&b.r, &g);
  assert_int_equal(b.taken, 2);
  rig_close(&b.r);
}

/* Cards before Ampere have float16 alone on their tensor cores, whose range is not float32's. */
static void older_cards_round_nothing(void **state) {
  static const gemm_case g = {64, 64, 64, 0, 0, true, HEDDLE_REGION_FAST, exact};
  library_rig b;
  (void)state;
  setenv("FAKE_GPU_ARCH", "sm_75", 1);
  library_open(&b, NULL, NULL);
  conv(&b, &convs[0], HEDDLE_REGION_FAST, exact);
  gemm(&b.r, &g);
  assert_int_equal(b.taken, 2);
  rig_close(&b.r);
}

static void no_algorithm_is_no_error(void **state) {
  static const gemm_case g = {64, 64, 64, 0, 3, false, 0, exact};
  conv_case left = convs[0];
  library_rig b;
  (void)state;
  setenv("FAKE_LIBRARY_REFUSE", "1", 1);
  library_open(&b, NULL, NULL);
  left.taken = false;
  conv(&b, &left, 0, exact);
  gemm(&b.r, &g);
  assert_int_equal(b.taken, 0);
  assert_int_equal(b.refused, 2);
  rig_close(&b.r);
}

/* A device with cuDNN's double alone; more: a setting and its value, or NULL. */
static void open_without_cublaslt(library_rig *b, const char *libraries, const char *key, const char *value) {
  cuda_environment();
  if (gpu_is_real()) SKIP("the library's double fits the driver's");
  setenv("FAKE_GPU_ARCH", "sm_80", 0);
  memset(b, 0, sizeof *b);
  current = b;
  sim_enter(&b->r.t, "libraries", libraries, "cublaslt", "off", "cudnn",
            HEDDLE_TEST_BUILD "/tests/fakes/cuda/libcudnn.so.9", key, value, NULL);
  b->r.t.fake.table.log = count_lines;
  cuda_open_devices(&b->r.t, 1);
  b->r.d.stream = sim_stream(&b->r.t, b->r.t.dev[0]);
}

static void one_library_may_be_off(void **state) {
  static const gemm_case g = {64, 64, 64, 0, 0, false, 0, exact};
  library_rig b;
  (void)state;
  open_without_cublaslt(&b, "auto", NULL, NULL);
  gemm(&b.r, &g);
  assert_int_equal(b.taken, 0);
  conv(&b, &convs[0], 0, exact);
  assert_int_equal(b.taken, 1);
  rig_close(&b.r);
}

static void all_may_be_off(void **state) {
  conv_case kept = convs[0];
  library_rig b;
  (void)state;
  open_without_cublaslt(&b, "0", NULL, NULL);
  kept.taken = false;
  conv(&b, &kept, 0, exact);
  assert_int_equal(b.taken + b.refused, 0);
  rig_close(&b.r);
}

/* ---------------------------------------------------------------- our own kernel on tensor cores */

static void fast_products_have_a_kernel_of_their_own(void **state) {
  static const int64_t sizes[][3] = {{64, 64, 64}, {65, 131, 70}, {129, 66, 97}};
  library_rig b;
  (void)state;
  open_without_cublaslt(&b, "auto", NULL, NULL);
  for (int i = 0; i < 3; i++) {
    for (int trans = 0; trans < 4; trans++) {
      const gemm_case g = {sizes[i][0], sizes[i][1],        sizes[i][2], trans, i + trans - (i + trans) / 5 * 5,
                           true,        HEDDLE_REGION_FAST, bfloat};
      gemm(&b.r, &g);
      assert_non_null(strstr(b.last, "a kernel on tensor cores does it, in bfloat16"));
    }
  }
  const gemm_case thin = {8, 101, 131, 0, 0, true, HEDDLE_REGION_FAST, exact};
  gemm(&b.r, &thin);
  const gemm_case strict = {65, 131, 70, 0, 0, true, 0, exact};
  gemm(&b.r, &strict);
  assert_int_equal(b.taken, 12);
  rig_close(&b.r);
}

/* A weight common to all, and a batch of its own for each. */
static void batches_have_it_too(void **state) {
  enum { M = 66, N = 65, K = 70 };
  library_rig b;
  (void)state;
  open_without_cublaslt(&b, "auto", NULL, NULL);
  for (int own = 0; own < 2; own++) {
    op_case c;
    op_case_init(&c, "MatMul");
    float *x = op_input(&c, F32, SHAPE(3, 3, M, K));
    float *w = op_input(&c, F32, own != 0 ? SHAPE(3, 3, K, N) : SHAPE(2, K, N));
    float *y = op_output(&c, F32, SHAPE(3, 3, M, N));
    op_fill(x, 3 * M * K, 1);
    op_fill(w, (size_t)(own != 0 ? 3 : 1) * K * N, 2);
    op_constant(&c, 1);
    c.values[1].v.data_bytes = sizeof(float) * (uint64_t)(own != 0 ? 3 : 1) * K * N;
    c.region.flags = HEDDLE_REGION_FAST;
    run(&b.r, &c);
    for (int64_t i = 0; i < 3 * M * N; i++) {
      double size;
      const double sum = dot(x + i / N * K, w + (own != 0 ? i / (M * N) * K * N : 0) + i % N, K, 1, N, bfloat, &size);
      op_close(sum, (double)y[i], size, 64, "MatMul", (size_t)i);
    }
    op_case_free(&c);
  }
  assert_int_equal(b.halves, 2);
  rig_close(&b.r);
}

static void it_may_be_off(void **state) {
  static const gemm_case g = {64, 64, 64, 0, 0, true, HEDDLE_REGION_FAST, exact};
  library_rig b;
  (void)state;
  open_without_cublaslt(&b, "0", "tensor_cores", "off");
  gemm(&b.r, &g);
  assert_int_equal(b.taken, 0);
  rig_close(&b.r);
}

/* ---------------------------------------------------------------- several threads */

enum { WORKERS = 3, ROUNDS = 10 };

typedef struct worker {
  library_rig *b;
  heddle_pop *op;
  heddle_pstream *stream;
  heddle_pbuffer *arena, *scratch;
  const float *x, *w;
  uint64_t scratch_bytes;
  heddle_error err;
  heddle_status status;
} worker;

/* Convolutions on a stream of the thread's own. */
static void *work(void *arg) {
  worker *k = arg;
  const heddle_plugin *p = k->b->r.t.p;
  const heddle_pslice in[2] = {{k->arena, 0, 16384}, {k->arena, 16384, 36864}}, out[1] = {{k->arena, 53248, 16384}};
  const heddle_pbind bind = {sizeof bind, 0, in, out, 2, 1, {k->scratch, 0, k->scratch_bytes}};
  heddle_plaunch *launch = NULL;
  heddle_status s = p->copy->write(k->stream, k->arena, 0, k->x, 16384, &k->err);
  if (s == HEDDLE_OK) s = p->copy->write(k->stream, k->arena, 16384, k->w, 36864, &k->err);
  if (s == HEDDLE_OK) s = p->op->bind(k->op, k->stream, &bind, &launch, &k->err);
  for (int i = 0; i < ROUNDS && s == HEDDLE_OK; i++) s = p->op->run(launch, &k->err);
  if (s == HEDDLE_OK) s = p->stream->sync(k->stream, UINT64_MAX, &k->err);
  p->op->launch_free(launch);
  k->status = s;
  return NULL;
}

/* cuDNN's handle has the stream as its state: no call may go to another thread's. */
static void threads_have_their_own_streams(void **state) {
  static float x[WORKERS][32 * 128], y[32 * 128], w[32 * 32 * 9];
  static const conv_case shape = {2, 1, 1, 32, 32, {8, 16}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, false, true};
  worker workers[WORKERS];
  pthread_t threads[WORKERS];
  library_rig b;
  op_case c;
  (void)state;
  library_open(&b, NULL, NULL);
  sim_test *t = &b.r.t;
  op_case_init(&c, "Conv");
  op_input(&c, F32, SHAPE(4, 1, 32, 8, 16));
  op_input(&c, F32, SHAPE(4, 32, 32, 3, 3));
  op_output(&c, F32, SHAPE(4, 1, 32, 8, 16));
  op_attr_ints(&c, "pads", 4, (const int64_t[]){1, 1, 1, 1});
  op_fill(w, 32 * 32 * 9, 7);
  heddle_pop *op = NULL;
  OK(t, t->p->op->query(t->self, 0, &c.region, op_take_offer, &c, &t->err));
  OK(t, t->p->op->prepare(t->dev[0], &c.region, 0, &op, &t->err));
  assert_int_equal(b.taken, 1);
  for (uint32_t i = 0; i < WORKERS; i++) {
    op_fill(x[i], 32 * 128, 20 + i);
    workers[i] = (worker){.b = &b, .op = op, .stream = sim_stream(t, t->dev[0]), .x = x[i], .w = w};
    workers[i].arena = sim_buf(t, t->dev[0], HEDDLE_MEMORY_DEVICE, 69632);
    workers[i].scratch = sim_buf(t, t->dev[0], HEDDLE_MEMORY_DEVICE, c.workspace_bytes);
    workers[i].scratch_bytes = c.workspace_bytes;
  }
  for (int i = 0; i < WORKERS; i++) assert_int_equal(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
  for (int i = 0; i < WORKERS; i++) assert_int_equal(pthread_join(threads[i], NULL), 0);
  for (int i = 0; i < WORKERS; i++) {
    worker *k = &workers[i];
    if (k->status != HEDDLE_OK) fail_msg("%s", k->err.text);
    OK(t, t->p->copy->read(k->stream, y, k->arena, 53248, sizeof y, &t->err));
    for (int64_t at = 0; at < 32 * 128; at++) {
      double size;
      const double sum =
          convolved(&shape, x[i], w, 0, at / 128, (const int64_t[]){at / 16 % 8, at % 16, 0}, exact, &size);
      op_close(sum, (double)y[at], size, 8, "a thread's Conv", (size_t)at);
    }
    t->p->memory->free(t->dev[0], k->arena);
    t->p->memory->free(t->dev[0], k->scratch);
    t->p->stream->close(k->stream);
  }
  t->p->op->op_free(op);
  op_case_free(&c);
  rig_close(&b.r);
}

/* A launch of the case, with the n-th allocation from here on failing; what was made is given back. */
static heddle_status launched(library_rig *b, op_case *c, long n) {
  sim_test *t = &b->r.t;
  heddle_pop *op = NULL;
  heddle_plaunch *launch = NULL;
  heddle_pslice slices[3];
  t->fake.fail_at = atomic_load(&t->fake.calls) + n;
  heddle_status s = t->p->op->query(t->self, 0, &c->region, op_take_offer, c, &t->err);
  const long asked = t->fake.fail_at;
  if (s == HEDDLE_OK) s = t->p->op->prepare(t->dev[0], &c->region, 0, &op, &t->err);
  t->fake.fail_at = 0; /* the test's own buffers */
  if (s != HEDDLE_OK) return s;
  for (int32_t v = 0; v < 3; v++) {
    const uint64_t bytes = bytes_of(c, v);
    slices[v] = (heddle_pslice){sim_buf(t, t->dev[0], HEDDLE_MEMORY_DEVICE, bytes), 0, bytes};
  }
  const uint64_t most = c->workspace_bytes > 0 ? c->workspace_bytes : 4;
  const heddle_pslice scratch = {sim_buf(t, t->dev[0], HEDDLE_MEMORY_DEVICE, most), 0, c->workspace_bytes};
  const heddle_pbind bind = {sizeof bind, 0, slices, slices + 2, 2, 1, scratch};
  if (asked > atomic_load(&t->fake.calls)) t->fake.fail_at = asked;
  s = t->p->op->bind(op, b->r.d.stream, &bind, &launch, &t->err);
  if (s == HEDDLE_OK) s = t->p->op->run(launch, &t->err);
  t->fake.fail_at = 0;
  if (s == HEDDLE_OK) s = t->p->stream->sync(b->r.d.stream, UINT64_MAX, &t->err);
  t->p->op->launch_free(launch);
  t->p->op->op_free(op);
  for (int v = 0; v < 3; v++) t->p->memory->free(t->dev[0], slices[v].buffer);
  t->p->memory->free(t->dev[0], scratch.buffer);
  return s;
}

static void every_allocation_may_fail(void **state) {
  library_rig b;
  (void)state;
  for (int is_conv = 0; is_conv < 2; is_conv++) {
    int failures = 0;
    bool done = false;
    for (long n = 1; n < 60 && !done; n++) {
      op_case c;
      library_open(&b, NULL, NULL);
      const long before = atomic_load(&b.r.t.fake.calls);
      op_case_init(&c, is_conv ? "Conv" : "MatMul");
      float *x = op_input(&c, F32, is_conv ? SHAPE(4, 1, 32, 8, 8) : SHAPE(2, 64, 64));
      float *w = op_input(&c, F32, is_conv ? SHAPE(4, 32, 32, 3, 3) : SHAPE(2, 64, 64));
      op_output(&c, F32, is_conv ? SHAPE(4, 1, 32, 6, 6) : SHAPE(2, 64, 64));
      op_fill(x, op_count(is_conv ? SHAPE(4, 1, 32, 8, 8) : SHAPE(2, 64, 64)), 1);
      op_fill(w, op_count(is_conv ? SHAPE(4, 32, 32, 3, 3) : SHAPE(2, 64, 64)), 2);
      op_constant(&c, 1);
      c.values[1].v.data_bytes = bytes_of(&c, 1);
      c.region.flags = HEDDLE_REGION_FAST;
      const heddle_status s = launched(&b, &c, n);
      if (s != HEDDLE_OK && s != HEDDLE_ENOMEM) fail_msg("allocation %ld: status %d: %s", n, s, b.r.t.err.text);
      failures += s == HEDDLE_ENOMEM;
      done = atomic_load(&b.r.t.fake.calls) - before < n;
      op_case_free(&c);
      rig_close(&b.r); /* and nothing is left */
    }
    assert_true(done && failures >= 6);
  }
}

static void a_path_that_is_none_is_said(void **state) {
  sim_test t;
  (void)state;
  cuda_environment();
  if (gpu_is_real()) SKIP("settings are tested on the double");
  sim_enter(&t, "libraries", "auto", "cudnn", "/no/such/libcudnn.so", NULL);
  cuda_settings(&t);
  assert_int_equal(t.p->open_instance(&t.fake.table, &t.self, &t.err), HEDDLE_ENODEV);
  assert_non_null(strstr(t.err.text, "cuDNN cannot be loaded, and the setting cudnn wants it"));
  assert_non_null(strstr(t.err.text, "/no/such/libcudnn.so"));
}

CASES(LIBRARY_CASES, CASE(convolutions_are_handed_over), CASE(fast_convolutions_are_rounded),
      CASE(older_cards_round_nothing), CASE(no_algorithm_is_no_error), CASE(threads_have_their_own_streams),
      CASE(every_allocation_may_fail), CASE(one_library_may_be_off), CASE(all_may_be_off),
      CASE(fast_products_have_a_kernel_of_their_own), CASE(batches_have_it_too), CASE(it_may_be_off),
      CASE(a_path_that_is_none_is_said), CASE(the_math_goes_with_the_algorithm),
      CASE(shapes_that_a_library_refuses_are_the_kernels), CASE(weights_are_rounded_once), CASE(a_bias_is_the_librarys),
      CASE(the_second_algorithm_is_tried), CASE(a_library_that_holds_the_context_is_survived))
