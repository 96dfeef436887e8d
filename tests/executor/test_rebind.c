/* tests/executor/test_rebind.c: inputs that change between runs: the address under a recorded segment, in every mode of
 * sim, and values that decide shapes, set anew or changed in the memory that was bound.
 */
#include "executor/rig.h"

#include <dlfcn.h>

static void fill(float *at, int n, float first) {
  for (int i = 0; i < n; i++) at[i] = first + (float)(i % 64);
}

/* ---- addresses */

enum { N = 1024, LENGTH = 12, RUNS = 24 };

static void make(rig *t, const char *settings, const sketch *s) {
  rig_make(t, settings, s,
           &(heddle_model_options){
               .struct_size = sizeof(heddle_model_options), .devices = "cpu,sim:0,sim:1", .max_programs = 3});
}

static heddle_tensor *wrap(float *at) {
  const int64_t shape[] = {N};
  heddle_tensor *t = NULL;
  OK(heddle_tensor_wrap(at, HEDDLE_FLOAT32, shape, 1, NULL, NULL, NULL, &t, &err));
  return t;
}

/* Three of four runs have memory that the last one had not; some have the slot instead, or an output of the caller's. */
static void expect_run(rig *t, int run, float (*memory)[N], float *result) {
  float *x = memory[run % 3];
  if (run % 8 != 5 && run % 4 == 3) x = memory[(run + 2) % 3]; /* as in the last run: only its bytes are others */
  fill(x, N, (float)run);
  heddle_tensor *in = wrap(x), *out = NULL, *to = run % 5 == 2 ? wrap(result) : NULL;
  if (run % 8 == 5) {
    OK(heddle_executor_set_input(t->ex, 0, in, &err));
    fill(x, N, -1000); /* nothing reads it any more */
  } else if (run % 4 != 3) {
    OK(heddle_executor_bind_input(t->ex, 0, in, &err));
  }
  OK(heddle_executor_bind_output(t->ex, 0, to, &err));
  OK(heddle_executor_run(t->ex, HEDDLE_FOREVER, &err));
  OK(heddle_executor_view_output(t->ex, 0, &out, &err));
  const float *got = to != NULL ? result : data_of(out);
  for (int i = 0; i < N; i++) {
    float want = (float)(run + i % 64) * (1 + LENGTH / 2) + 0.5f * (LENGTH / 2);
    if (got[i] != want) fail_msg("run %d, element %d: %g, not %g", run, i, (double)got[i], (double)want);
  }
  heddle_tensor_release(out);
  heddle_tensor_release(to);
  heddle_tensor_release(in);
}

static void addresses_change_under_recordings(void **state) {
  (void)state;
  static const char *const modes[] = {"threads=1",
                                      "sim.unified=1",
                                      "sim.unified=1;sim.coherent=0;sim.delay_us=30",
                                      "sim.coherent=0",
                                      "sim.import_alignment=4096;sim.unified=1",
                                      "sim.import=0",
                                      "sim.bare=1;sim.views=0",
                                      "layers=check;sim.unified=1",
                                      "sim.peer=off;sim.event_domains=1;sim.delay_us=30",
                                      "sim.fail=end:2;log=off",
                                      "opencl.unified=0",
                                      "opencl.unified=0;layers=check",
                                      "opencl.unified=0;opencl.peer=0",
                                      "opencl.max_streams=1",
                                      "vulkan.unified=0;layers=check",
                                      "vulkan.timeline=0",
                                      "cuda.capture=0",
                                      "cuda.peer=0;layers=check",
                                      "rocm.peer=0;layers=check"};
  static const char *const devices[][7] = {{"sim:0", "sim:0", "sim:0", "sim:0", "sim:0", "sim:0", "sim:0"},
                                           {"cpu", "sim:0", "sim:0", "sim:1", "cpu", "sim:1", "sim:1"}};
  static _Alignas(4096) float memory[3][N], result[N];
  static sketch s;
  for (size_t i = 0; i < 2 * (sizeof modes / sizeof modes[0]); i++) {
    if (!settings_fit(modes[i / 2])) continue;
    memset(&s, 0, sizeof s);
    int x = put_input(&s, "x", "[1024]", "\"float32\""), z = put_input(&s, "z", "[1024]", "\"float32\""), y = x;
    for (int k = 0; k < LENGTH; k++) {
      char name[16];
      snprintf(name, sizeof name, "a%d", k);
      y = NODE(&s, "Add", name, devices[i % 2][k % 7], y, k % 2 == 0 ? z : x);
    }
    put_head(&s, y);
    rig t;
    make(&t, modes[i / 2], &s);
    const int64_t shape[] = {N};
    heddle_tensor *halves = floats(shape, 1, 0.5f, 0);
    OK(heddle_executor_set_input(t.ex, 1, halves, &err));
    for (int run = 0; run < RUNS; run++) expect_run(&t, run, memory, result);
    heddle_executor_stats stats = {.struct_size = sizeof stats};
    OK(heddle_executor_get_stats(t.ex, &stats, &err));
    if (is_sim()) assert_true(stats.replays >= RUNS - 1); /* others need not record */
    heddle_tensor_release(halves);
    rig_end(&t);
  }
}

#ifdef HEDDLE_TEST_CUDA
/* What the double of the driver counted of a call, by its symbol; -1: the driver is no double. */
static int driver_calls(const char *name) {
  const char *driver = getenv("HEDDLE_CUDA_DRIVER");
  void *library = driver != NULL ? dlopen(driver, RTLD_NOW | RTLD_NOLOAD) : NULL;
  void *symbol = library != NULL ? dlsym(library, "fake_gpu_calls") : NULL;
  int (*calls)(const char *name) = NULL;
  if (symbol == NULL) return -1;
  memcpy(&calls, &symbol, sizeof calls);
  dlclose(library);
  return calls(name);
}

/* Where another address is bound in each run, graphs are updated to it: none is instantiated after the first run. */
static void an_address_is_an_update_of_a_graph(void **state) {
  (void)state;
  static _Alignas(4096) float memory[3][N];
  static sketch s;
  int x = put_input(&s, "x", "[1024]", "\"float32\""), y = x, made = 0, updates = 0;
  for (int k = 0; k < LENGTH; k++) {
    char name[16];
    snprintf(name, sizeof name, "a%d", k);
    y = NODE(&s, "Add", name, "sim:0", y, x);
  }
  put_head(&s, y);
  rig t;
  make(&t, "threads=1", &s);
  for (int run = 0; run < RUNS; run++) {
    heddle_tensor *in = wrap(memory[run % 3]), *out = NULL;
    fill(memory[run % 3], N, (float)run);
    OK(heddle_executor_bind_input(t.ex, 0, in, &err));
    OK(heddle_executor_run(t.ex, HEDDLE_FOREVER, &err));
    OK(heddle_executor_view_output(t.ex, 0, &out, &err));
    for (int i = 0; i < N; i++) assert_true(data_of(out)[i] == (float)(run + i % 64) * (LENGTH + 1));
    heddle_tensor_release(out);
    heddle_tensor_release(in);
    if (run == 0) made = driver_calls("cuGraphInstantiateWithFlags"), updates = driver_calls("updates");
  }
  if (made >= 0) {
    assert_true(made > 0);
    assert_int_equal(driver_calls("cuGraphInstantiateWithFlags"), made);
    assert_true(driver_calls("updates") - updates >= RUNS - 1);
  }
  rig_end(&t);
}
#endif

/* ---- shapes by value */

static heddle_tensor *numbers(int64_t *at, int64_t n) {
  heddle_tensor *t = NULL;
  OK(heddle_tensor_wrap(at, (heddle_dtype){HEDDLE_DTYPE_INT, 64, 1}, &n, 1, NULL, NULL, NULL, &t, &err));
  return t;
}

static int put_concat(sketch *s, int a, int b) {
  add_text(s->nodes, sizeof s->nodes,
           ",{\"op\":\"Concat\",\"name\":\"joined\",\"attrs\":{\"axis\":0},\"inputs\":[[%d,0,0],[%d,0,0]]}", a, b);
  return finish_node(s, "null", "null");
}

typedef enum source { SET, JOINED, MULTIPLIED, BOUND, N_SOURCES } source;

/* z = 2 relu(x)^2 in the shape that the inputs say, and that shape as a second output. */
static void sketch_shapes(sketch *s, source from, const char *device) {
  memset(s, 0, sizeof *s);
  int x = put_input(s, "x", "[\"n\",6]", "\"float32\""), to;
  if (from == SET || from == BOUND) {
    to = put_input(s, "to", "[2]", "\"int64\"");
  } else {
    int a = put_input(s, "a", "[1]", "\"int64\""), b = put_input(s, "b", "[1]", "\"int64\"");
    if (from == MULTIPLIED) a = NODE(s, "Mul", "ab", NULL, a, put_input(s, "c", "[1]", "\"int64\""));
    to = put_concat(s, a, b);
  }
  int r = NODE(s, "Reshape", "r", NULL, NODE(s, "Relu", "pre", "cpu", x), to);
  put_head(s, NODE(s, "Mul", "z", "cpu", NODE(s, "Add", "y", device, r, r), r));
  if (from != MULTIPLIED) put_head(s, to); /* no device multiplies whole numbers */
}

static void expect_shape(rig *t, source from, int64_t rows, const int64_t *want) {
  heddle_tensor *out = NULL, *said = NULL;
  OK(heddle_executor_run(t->ex, HEDDLE_FOREVER, &err));
  OK(heddle_executor_view_output(t->ex, 0, &out, &err));
  assert_int_equal(heddle_tensor_ndim(out), 2);
  const int64_t *shape = heddle_tensor_shape(out);
  if (shape[0] != want[0] || shape[0] * shape[1] != rows * 6)
    fail_msg("source %d: [%d, %d]", (int)from, (int)shape[0], (int)shape[1]);
  for (int64_t i = 0; i < rows * 6; i++) {
    float x = i < 3 ? 0 : (float)(i - 3);
    assert_true(data_of(out)[i] == 2 * x * x);
  }
  heddle_tensor_release(out);
  if (from == MULTIPLIED) return;
  OK(heddle_executor_view_output(t->ex, 1, &said, &err));
  assert_memory_equal(heddle_tensor_data(said), want, 2 * sizeof *want);
  heddle_tensor_release(said);
}

static void values_decide_shapes(void **state) {
  (void)state;
  static const char *const modes[] = {"threads=1",        "sim.unified=1",    "sim.delay_us=30;sim.coherent=0",
                                      "opencl.unified=0", "vulkan.unified=0", "sim.delay_us=30"};
  static const int64_t cases[][3] = {{2, 3, 4}, {2, 4, 3},  {2, 12, 1}, {4, 3, 8},  {4, 4, 6},
                                     {2, 3, 4}, {2, 2, -1}, {4, 2, -1}, {4, 1, 24}, {2, 6, 2}};
  static sketch s;
  for (int i = 0; i < 6 * N_SOURCES; i++) {
    source from = (source)(i % N_SOURCES);
    if (!settings_fit(modes[i / N_SOURCES])) continue;
    sketch_shapes(&s, from, i % 2 == 0 ? "sim:0" : "cpu");
    rig t;
    make(&t, modes[i / N_SOURCES], &s);
    int64_t to[2], one = 1;
    heddle_tensor *both = numbers(to, 2), *first = numbers(to, 1), *second = numbers(to + 1, 1),
                  *ones = numbers(&one, 1);
    for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
      const int64_t shape[] = {cases[k][0], 6};
      heddle_tensor *x = floats(shape, 2, -3, 1);
      memcpy(to, &cases[k][1], sizeof to); /* where it is bound, this is the only difference */
      OK(heddle_executor_set_input(t.ex, 0, x, &err));
      if (from == BOUND && k == 0) OK(heddle_executor_bind_input(t.ex, 1, both, &err));
      if (from == SET) OK(heddle_executor_set_input(t.ex, 1, both, &err));
      if (from == JOINED || from == MULTIPLIED) {
        OK(heddle_executor_set_input(t.ex, 1, first, &err));
        OK(heddle_executor_set_input(t.ex, 2, second, &err));
      }
      if (from == MULTIPLIED) OK(heddle_executor_set_input(t.ex, 3, ones, &err));
      expect_shape(&t, from, cases[k][0], to);
      expect_shape(&t, from, cases[k][0], to);
      heddle_tensor_release(x);
    }
    to[0] = to[1] = 5; /* what does not fit is refused, and does no harm */
    heddle_tensor *in = from == SET || from == BOUND ? both : first;
    if (from != BOUND) OK(heddle_executor_set_input(t.ex, 1, in, &err));
    if (heddle_executor_run(t.ex, HEDDLE_FOREVER, &err) == HEDDLE_OK) fail_msg("12 elements ran as 5 x 5");
    to[0] = 6;
    to[1] = 2;
    if (from != BOUND) OK(heddle_executor_set_input(t.ex, 1, in, &err));
    expect_shape(&t, from, 2, to);
    heddle_tensor_release(both);
    heddle_tensor_release(first);
    heddle_tensor_release(second);
    heddle_tensor_release(ones);
    rig_end(&t);
  }
}

CASES(CASE_ALL(addresses_change_under_recordings),
      CASE_ALL(values_decide_shapes) CASES_CUDA_TOO(an_address_is_an_update_of_a_graph))
