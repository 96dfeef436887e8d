/* tests/executor/test_hang_opencl.c: devices that hang. A failover takes the time of the watchdog and little more, on sim and on
 * PoCL, where a kernel of the test's own occupies every core until a host flag is set after the failover.
 * labels: serial
 * timeout: 900
 */
#if defined(HEDDLE_TEST_OPENCL)
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <dlfcn.h>
#include <sched.h>
#endif

#include <stdlib.h>

#include "core/alloc.h"
#include "core/context.h"
#include "core/device.h"
#include "core/failure.h"
#include "executor/rig.h"

/* How long it takes is printed; no time decides but a guard that is many times what is promised, half a second behind the
 * watchdog. */
enum { WATCHDOG_MS = 100, GUARD_MS = 10000, ROUNDS = 12, ROUNDS_OPENCL = 4 };

/* HEDDLE_TEST_ROUNDS of the environment, for a soak. */
static int rounds_of(int rounds) {
  const char *asked = getenv("HEDDLE_TEST_ROUNDS");
  return asked != NULL && atoi(asked) > 0 ? atoi(asked) : rounds;
}

/* The times of all rounds, which are only printed. */
typedef struct times {
  double least, most, sum;
  int n;
} times;

static void add_time(times *t, double ms) {
  if (t->n == 0 || ms < t->least) t->least = ms;
  if (ms > t->most) t->most = ms;
  t->sum += ms;
  t->n++;
  assert_true(ms >= WATCHDOG_MS && ms <= WATCHDOG_MS + GUARD_MS);
}

static void print_times(const char *what, const times *t) {
  print_message("%s: %d failovers took %.0f to %.0f ms, %.0f on average, %d of them the watchdog's\n", what, t->n,
                t->least, t->most, t->sum / t->n, WATCHDOG_MS);
}

static const int64_t shape[1] = {64};

/* out = relu(x + x), on the device. */
static heddle_graph *draw(const char *device) {
  sketch s = {0};
  int x = put_input(&s, "x", "[64]", "\"float32\"");
  put_head(&s, NODE(&s, "Relu", "out", device, NODE(&s, "Add", "sum", device, x, x)));
  return graph_of(&s);
}

typedef struct subject {
  heddle_context *ctx;
  heddle_graph *graph;
  heddle_model *model;
  heddle_executor *ex;
} subject;

static heddle_status open_subject(subject *t, const char *settings, const char *device, const char *devices) {
  t->ctx = context(settings);
  t->graph = draw(device);
  heddle_model_options o = {
      .struct_size = sizeof o, .devices = devices, .flags = HEDDLE_MODEL_NO_CAPTURE, .on_failure = "failover"};
  heddle_status s = heddle_model_create(t->ctx, t->graph, NULL, &o, &t->model, &err);
  if (s != HEDDLE_OK) return s;
  OK(heddle_executor_create(t->model, &t->ex, &err));
  heddle_tensor *x = floats(shape, 1, -20, 1);
  OK(heddle_executor_set_input(t->ex, 0, x, &err));
  heddle_tensor_release(x);
  return HEDDLE_OK;
}

/* One run with its result; gives how long it took, in ms. */
static double run_once(subject *t) {
  const uint64_t start = heddle__now_ns();
  OK(heddle_executor_run(t->ex, 20000 * MS, &err));
  const double ms = (double)(heddle__now_ns() - start) / 1e6;
  heddle_tensor *y = floats(shape, 1, 0, 0);
  OK(heddle_executor_get_output(t->ex, 0, y, &err));
  for (int i = 0; i < 64; i++) assert_true(data_of(y)[i] == (i > 20 ? 2 * (float)(i - 20) : 0));
  heddle_tensor_release(y);
  return ms;
}

static heddle_executor_stats stats_of(const subject *t) {
  heddle_executor_stats s = {.struct_size = sizeof s};
  OK(heddle_executor_get_stats(t->ex, &s, &err));
  return s;
}

static void close_subject(subject *t) {
  heddle_executor_release(t->ex);
  heddle_model_release(t->model);
  heddle_graph_release(t->graph);
  heddle_context_release(t->ctx);
}

/* What hung work may still touch is kept only until the device is quiet: nothing is left behind, round by round. */
static void on_sim(void **state) {
  times all = {0};
  int64_t live = 0;
  (void)state;
  for (int round = 0; round < rounds_of(ROUNDS); round++) {
    subject t = {0};
    OK(open_subject(&t, "log=off;sim.hang=3;sim.watchdog_ms=100", "sim:0", "sim:0,cpu"));
    add_time(&all, run_once(&t));
    assert_int_equal(stats_of(&t).failovers, 1);
    assert_int_equal(stats_of(&t).orphan_bytes, 0); /* it was reset */
    close_subject(&t);
    if (round == 1) live = (int64_t)heddle__alloc_live();
  }
  print_times("sim", &all);
  assert_int_equal((int64_t)heddle__alloc_live(), live);
}

#if defined(HEDDLE_TEST_OPENCL)
/* ---- PoCL */

typedef struct spinner {
  int flag[2]; /* the kernel loops until the first is set, and counts in the second where it runs */
  cl_context context;
  cl_command_queue queue;
  cl_program program;
  cl_kernel kernel;
  void *library;
} spinner;

#define FUNCTION(name) \
  __typeof__(&name) call_##name; \
  *(void **)&call_##name = dlsym(library, #name)

/* Every core of the device runs a kernel that does not end. */
static void spin(spinner *s) {
  static const char *source = "kernel void spin(ulong at) { volatile global int *flag = (volatile global int *)at;"
                              " atomic_inc(flag + 1); while (*flag == 0) {} }";
  void *library = dlopen("libOpenCL.so.1", RTLD_NOW | RTLD_LOCAL);
  assert_non_null(library);
  s->library = library;
  FUNCTION(clGetPlatformIDs);
  FUNCTION(clGetDeviceIDs);
  FUNCTION(clGetDeviceInfo);
  FUNCTION(clCreateContext);
  FUNCTION(clCreateCommandQueue);
  FUNCTION(clCreateProgramWithSource);
  FUNCTION(clBuildProgram);
  FUNCTION(clCreateKernel);
  FUNCTION(clSetKernelArg);
  FUNCTION(clEnqueueNDRangeKernel);
  FUNCTION(clFlush);
  cl_platform_id platform;
  cl_device_id device;
  const size_t items = 64, one = 1;
  const cl_ulong at = (cl_ulong)(uintptr_t)s->flag;
  assert_int_equal(call_clGetPlatformIDs(1, &platform, NULL), CL_SUCCESS);
  assert_int_equal(call_clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL), CL_SUCCESS);
  s->context = call_clCreateContext(NULL, 1, &device, NULL, NULL, NULL);
  s->queue = call_clCreateCommandQueue(s->context, device, 0, NULL);
  s->program = call_clCreateProgramWithSource(s->context, 1, &source, NULL, NULL);
  assert_int_equal(call_clBuildProgram(s->program, 1, &device, "", NULL, NULL), CL_SUCCESS);
  s->kernel = call_clCreateKernel(s->program, "spin", NULL);
  assert_int_equal(call_clSetKernelArg(s->kernel, 0, sizeof at, &at), CL_SUCCESS);
  assert_int_equal(call_clEnqueueNDRangeKernel(s->queue, s->kernel, 1, NULL, &items, &one, 0, NULL, NULL), CL_SUCCESS);
  assert_int_equal(call_clFlush(s->queue), CL_SUCCESS);
  cl_uint cores = 0;
  assert_int_equal(call_clGetDeviceInfo(device, CL_DEVICE_MAX_COMPUTE_UNITS, sizeof cores, &cores, NULL), CL_SUCCESS);
  const uint64_t start = heddle__now_ns();
  while (*(volatile int *)&s->flag[1] < (int)cores && heddle__now_ns() - start < 20000 * MS) sched_yield();
}

/* The kernel ends. */
static void let_go(spinner *s) {
  void *library = s->library;
  FUNCTION(clFinish);
  FUNCTION(clReleaseKernel);
  FUNCTION(clReleaseProgram);
  FUNCTION(clReleaseCommandQueue);
  FUNCTION(clReleaseContext);
  *(volatile int *)s->flag = 1;
  assert_int_equal(call_clFinish(s->queue), CL_SUCCESS);
  call_clReleaseKernel(s->kernel);
  call_clReleaseProgram(s->program);
  call_clReleaseCommandQueue(s->queue);
  call_clReleaseContext(s->context);
}
#undef FUNCTION

/* Opened, with a run that kept its watchdog: on a loaded machine the first kernels may take longer. */
static heddle_status open_on_opencl(subject *t) {
  heddle_status s = HEDDLE_EFAILED;
  for (int i = 0; i < 20; i++) {
    s = open_subject(t, "log=off;opencl.watchdog_ms=100;opencl.cache_dir=off", "opencl:0", "opencl:0,cpu");
    if (s == HEDDLE_OK) run_once(t);
    if (s == HEDDLE_OK && stats_of(t).failovers == 0) return HEDDLE_OK;
    const heddle_error why = err;
    close_subject(t);
    *t = (subject){0};
    err = why;
    if (s != HEDDLE_OK) return s;
  }
  fail_msg("work that does not hang takes longer than its watchdog again and again");
  return s;
}

/* OpenCL stops no kernel: what it may still access is counted, and freed once it has ended. */
static heddle_status one_round(times *all) {
  subject t = {0};
  spinner s = {0};
  heddle_device *dev = NULL;
  const heddle_status opened = open_on_opencl(&t);
  if (opened != HEDDLE_OK) return opened;
  OK(heddle_context_find_device(t.ctx, "opencl:0", &dev, &err));
  spin(&s);
  add_time(all, run_once(&t));
  assert_int_equal(stats_of(&t).failovers, 1);
  assert_true(stats_of(&t).orphan_bytes > 0);
  assert_true(atomic_load(&dev->orphan_bytes) > 0);
  let_go(&s);
  run_once(&t);
  heddle_executor_release(t.ex);
  heddle_model_release(t.model);
  assert_int_equal(atomic_load(&dev->orphan_bytes), 0);
  heddle_graph_release(t.graph);
  heddle_context_release(t.ctx);
  return HEDDLE_OK;
}

static void on_opencl(void **state) {
  times all = {0};
  int64_t live = 0;
  (void)state;
  accelerator = "opencl";
  const char *lacks = accelerator_prepare(HEDDLE_TEST_BUILD);
  if (lacks != NULL) SKIP(lacks);
  void *library = dlopen("libOpenCL.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) SKIP("there is no libOpenCL.so.1");
  for (int round = 0; round < rounds_of(ROUNDS_OPENCL); round++) {
    const heddle_status s = one_round(&all);
    if (s == HEDDLE_ENODEV || s == HEDDLE_ENOTFOUND) SKIP(err.text);
    OK(s);
    if (round == 1) live = (int64_t)heddle__alloc_live();
  }
  print_times("opencl", &all);
  assert_int_equal((int64_t)heddle__alloc_live(), live);
}

CASES(CASE(on_sim), CASE(on_opencl))
#else
CASES(CASE(on_sim))
#endif
