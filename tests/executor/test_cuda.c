/* timeout: 120
 * Runs on the double of CUDA's driver, which reports what it saw: segments are launched as graphs and brought up to new
 * addresses, nothing is left behind, a device that is lost leaves the others alone, a hang ends by its time. */
#include "executor/rig.h"

#include <dlfcn.h>

enum { NODES = 12, N = 1024, RUNS = 8 };

/* What the double has counted, by a call of fake_gpu.h's. */
static int counted(const char *call, const char *what) {
  int (*ask)(const char *) = NULL;
  void *driver = dlopen(getenv("HEDDLE_CUDA_DRIVER"), RTLD_NOW | RTLD_NOLOAD);
  void *found = driver != NULL ? dlsym(driver, call) : NULL;
  if (found == NULL) fail_msg("the double has no %s", call);
  memcpy(&ask, &found, sizeof ask);
  return ask(what);
}

/* key NULL: the double as it is; else one of its settings, which it reads when it is loaded. */
static void prepare(const char *key, const char *value) {
  accelerator = "cuda";
  if (gpu_is_real()) SKIP("only the double does what this asks for");
  if (key != NULL) setenv(key, value, 1);
  const char *lacks = accelerator_prepare(HEDDLE_TEST_BUILD);
  if (lacks != NULL) SKIP(lacks);
}

/* z = x + NODES * x by Adds on a device. */
static void chain(rig *t, heddle_context *ctx, const char *device) {
  static sketch s;
  memset(&s, 0, sizeof s);
  memset(t, 0, sizeof *t);
  int x = put_input(&s, "x", "[1024]", "\"float32\""), last = x;
  for (int i = 0; i < NODES; i++) {
    char name[16];
    snprintf(name, sizeof name, "n%d", i);
    last = NODE(&s, "Add", name, device, last, x);
  }
  put_head(&s, last);
  t->ctx = ctx;
  t->graph = graph_of(&s);
  heddle_model_options o = {.struct_size = sizeof o, .devices = device};
  OK(heddle_model_create(ctx, t->graph, NULL, &o, &t->model, &err));
  OK(heddle_executor_create(t->model, &t->ex, &err));
}

static void end(rig *t) {
  heddle_executor_release(t->ex);
  heddle_model_release(t->model);
  heddle_graph_release(t->graph);
}

static void set_x(rig *t, float first) {
  static const int64_t shape[] = {N};
  heddle_tensor *x = floats(shape, 1, first, 1);
  OK(heddle_executor_set_input(t->ex, 0, x, &err));
  heddle_tensor_release(x);
}

static void expect(rig *t, float first) {
  heddle_tensor *y = NULL;
  OK(heddle_executor_view_output(t->ex, 0, &y, &err));
  for (int i = 0; i < N; i++) assert_true(data_of(y)[i] == (first + (float)i) * (NODES + 1));
  heddle_tensor_release(y);
}

static void nothing_is_left(void) {
  static const char *const kinds[] = {"allocations", "host", "streams", "events", "modules", "graphs", "execs"};
  for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
    const int live = counted("fake_gpu_live", kinds[i]);
    if (live != 0) fail_msg("%d %s are left", live, kinds[i]);
  }
  assert_int_equal(counted("fake_gpu_misuse", ""), 0);
  assert_int_equal(heddle__alloc_live(), 0);
}

static void segments_are_graphs(void **state) {
  (void)state;
  prepare(NULL, NULL);
  heddle_context *ctx = context("cuda.unified=0");
  rig t;
  chain(&t, ctx, "cuda:0");
  set_x(&t, 1);
  OK(heddle_executor_run(t.ex, HEDDLE_FOREVER, &err));
  const int launches = counted("fake_gpu_calls", "cuLaunchKernel"), graphs = counted("fake_gpu_calls", "cuGraphLaunch");
  for (int i = 0; i < RUNS; i++) {
    set_x(&t, (float)i);
    OK(heddle_executor_run(t.ex, HEDDLE_FOREVER, &err));
    expect(&t, (float)i);
  }
  assert_int_equal(counted("fake_gpu_calls", "cuLaunchKernel"), launches); /* the nodes are recorded, and no more */
  assert_int_equal(counted("fake_gpu_calls", "cuGraphLaunch"), graphs + RUNS);
  end(&t);
  heddle_context_release(ctx);
  nothing_is_left();
}

static void graphs_follow_addresses(void **state) {
  static _Alignas(4096) float memory[4][N]; /* pages, which are imported */
  static const int64_t shape[] = {N};
  (void)state;
  prepare(NULL, NULL);
  heddle_context *ctx = context("cuda.unified=0");
  rig t;
  chain(&t, ctx, "cuda:0");
  for (int i = 0; i < RUNS; i++) {
    heddle_tensor *x = NULL;
    for (int k = 0; k < N; k++) memory[i % 4][k] = (float)(i + k);
    OK(heddle_tensor_wrap(memory[i % 4], HEDDLE_FLOAT32, shape, 1, NULL, NULL, NULL, &x, &err));
    OK(heddle_executor_bind_input(t.ex, 0, x, &err));
    OK(heddle_executor_run(t.ex, HEDDLE_FOREVER, &err));
    expect(&t, (float)i);
    heddle_tensor_release(x);
  }
  const int made = counted("fake_gpu_calls", "cuGraphInstantiateWithFlags"),
            updated = counted("fake_gpu_calls", "updates");
  if (updated < RUNS - 3) fail_msg("%d graphs were made anew, and %d updated", made, updated);
  end(&t);
  heddle_context_release(ctx);
  nothing_is_left();
}

static void a_lost_device_leaves_the_others(void **state) {
  (void)state;
  prepare("FAKE_GPU_FAULT", "launch:3");
  heddle_context *ctx = context("cuda.unified=0;log=off");
  rig lost, other, host;
  chain(&lost, ctx, "cuda:0");
  chain(&other, ctx, "cuda:1");
  chain(&host, ctx, "cpu");
  set_x(&lost, 1);
  FAILS(heddle_executor_run(lost.ex, UINT64_C(20000) * MS, &err), HEDDLE_EDEVICE);
  SAYS("cuda:0");
  SAYS("CUDA_ERROR_ILLEGAL_ADDRESS");
  for (int i = 0; i < 2; i++) { /* at once, with the first words */
    FAILS(heddle_executor_run(lost.ex, HEDDLE_FOREVER, &err), HEDDLE_EDEVICE);
    SAYS("CUDA_ERROR_ILLEGAL_ADDRESS");
    set_x(&other, 2);
    OK(heddle_executor_run(other.ex, HEDDLE_FOREVER, &err));
    expect(&other, 2);
    set_x(&host, 3);
    OK(heddle_executor_run(host.ex, HEDDLE_FOREVER, &err));
    expect(&host, 3);
  }
  end(&lost);
  end(&other);
  end(&host);
  heddle_context_release(ctx);
  nothing_is_left();
  ctx = context("cuda.unified=0"); /* a new context is another one of the driver's, too */
  chain(&lost, ctx, "cuda:0");
  set_x(&lost, 4);
  OK(heddle_executor_run(lost.ex, HEDDLE_FOREVER, &err));
  expect(&lost, 4);
  end(&lost);
  heddle_context_release(ctx);
  nothing_is_left();
}

static void a_hang_ends_by_its_time(void **state) {
  (void)state;
  setenv("FAKE_GPU_STRICT", "0", 1); /* what the kernel may still write is kept */
  prepare("FAKE_GPU_HANG", "launch:3");
  heddle_context *ctx = context("cuda.unified=0;log=off");
  rig hung, other;
  chain(&hung, ctx, "cuda:0");
  chain(&other, ctx, "cuda:1");
  set_x(&hung, 1);
  FAILS(heddle_executor_run(hung.ex, 300 * MS, &err), HEDDLE_ETIMEOUT);
  set_x(&other, 2);
  OK(heddle_executor_run(other.ex, HEDDLE_FOREVER, &err));
  expect(&other, 2);
  end(&hung);
  end(&other);
  heddle_context_release(ctx);
}

CASES(CASE_LABELS(segments_are_graphs, "cuda"), CASE_LABELS(graphs_follow_addresses, "cuda"),
      CASE_LABELS(a_lost_device_leaves_the_others, "cuda"), CASE_LABELS(a_hang_ends_by_its_time, "cuda"))
