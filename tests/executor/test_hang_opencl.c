/* tests/executor/test_hang_opencl.c: devices that hang. A failover takes the time of the watchdog and little more, on sim and on
 * PoCL, where a kernel of the test's own occupies every core until a host flag is set after the failover.
 * labels: serial
 * timeout: 300
 */
#if defined(HEDDLE_TEST_OPENCL)
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <dlfcn.h>
#include <sched.h>
#endif

#include "core/alloc.h"
#include "core/context.h"
#include "core/failure.h"
#include "executor/rig.h"

/* How long it takes is printed; no time decides but a guard that is many times what is promised, half a second behind the
 * watchdog. */
enum { WATCHDOG_MS = 100, GUARD_MS = 10000, ROUNDS = 12 };

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
  double least = 1e9;
  int64_t live = 0;
  (void)state;
  for (int round = 0; round < ROUNDS; round++) {
    subject t = {0};
    OK(open_subject(&t, "log=off;sim.hang=3;sim.watchdog_ms=100", "sim:0", "sim:0,cpu"));
    const double ms = run_once(&t);
    assert_int_equal(stats_of(&t).failovers, 1);
    if (ms < least) least = ms;
    close_subject(&t);
    if (round == 1) live = (int64_t)heddle__alloc_live();
  }
  print_message("a failover took %.0f ms, %d of them the watchdog's\n", least, WATCHDOG_MS);
  assert_true(least >= WATCHDOG_MS && least <= WATCHDOG_MS + GUARD_MS);
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

/* Every core of the device runs a kernel that does not end. False where PoCL's library is not there. */
static bool spin(spinner *s) {
  static const char *source = "kernel void spin(ulong at) { volatile global int *flag = (volatile global int *)at;"
                              " atomic_inc(flag + 1); while (*flag == 0) {} }";
  void *library = dlopen("libOpenCL.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) return false;
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
  return true;
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

static void on_opencl(void **state) {
  subject t = {0};
  spinner s = {0};
  (void)state;
  accelerator = "opencl";
  const char *lacks = accelerator_prepare(HEDDLE_TEST_BUILD);
  if (lacks != NULL) SKIP(lacks);
  const heddle_status opened =
      open_subject(&t, "log=off;opencl.watchdog_ms=100;opencl.cache_dir=off", "opencl:0", "opencl:0,cpu");
  if (opened == HEDDLE_ENODEV || opened == HEDDLE_ENOTFOUND) SKIP(err.text);
  OK(opened);
  run_once(&t);
  if (!spin(&s)) SKIP("there is no libOpenCL.so.1");
  const double ms = run_once(&t);
  let_go(&s);
  assert_int_equal(stats_of(&t).failovers, 1);
  print_message("a failover took %.0f ms, %d of them the watchdog's\n", ms, WATCHDOG_MS);
  assert_true(ms >= WATCHDOG_MS && ms <= WATCHDOG_MS + GUARD_MS);
  run_once(&t);
  close_subject(&t);
}

CASES(CASE(on_sim), CASE(on_opencl))
#else
CASES(CASE(on_sim))
#endif
