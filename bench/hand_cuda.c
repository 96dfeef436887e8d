/* bench/hand_cuda.c: what a careful programmer writes on CUDA's driver API: a graph captured once and launched with one
 * call, pinned memory everywhere, and as few waits as the work allows. */
#include "hand_cuda.h"

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hand_cuda_driver.h"

enum { GROUP = 256 };

/* Both languages, so that the tests' double of the driver can run it too. */
static const char *const source =
    "#ifdef __OPENCL_VERSION__\n"
    "#define KERNEL __kernel\n"
    "#define GLOBAL __global\n"
    "#define INDEX (int)get_global_id(0)\n"
    "#else\n"
    "#define KERNEL extern \"C\" __global__\n"
    "#define GLOBAL\n"
    "#define INDEX (int)(blockIdx.x * blockDim.x + threadIdx.x)\n"
    "#endif\n"
    "KERNEL void hand_add(GLOBAL float *out, GLOBAL const float *a, GLOBAL const float *b, int n) {\n"
    "  const int i = INDEX;\n"
    "  if (i < n) out[i] = a[i] + b[i];\n"
    "}\n"
    "KERNEL void hand_busy(GLOBAL float *out, int n, int turns) {\n"
    "  const int i = INDEX;\n"
    "  float y = i < n ? out[i] : 0.0f;\n"
    "  for (int k = 0; k < turns; k++) y = y * 0.999f + 0.001f;\n"
    "  if (i < n) out[i] = y;\n"
    "}\n";

static void *add, *streams[2];

void hand_cuda_open(void) {
  hand_cuda_load();
  add = hand_cu_kernel(source, "hand_add");
  for (int i = 0; i < 2; i++) streams[i] = hand_cu_stream();
}

/* Operations a clock of one multiprocessor, a multiplication and an addition being two. Source: the tables of arithmetic
 * throughput in NVIDIA's CUDA C++ Programming Guide, and the peaks in the papers on each architecture. */
double hand_cuda_peak(int is_tensor) {
  static const struct {
    int arch;
    double plain, tensor;
  } table[] = {{70, 128, 1024}, {75, 128, 1024},  {80, 128, 2048},  {86, 256, 1024},  {89, 256, 1024},
               {90, 256, 4096}, {100, 256, 8192}, {103, 256, 8192}, {120, 256, 1024}, {121, 256, 1024}};
  const int arch = 10 * hand_cu_attribute(HAND_CUDA_MAJOR) + hand_cu_attribute(HAND_CUDA_MINOR);
  for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
    if (table[i].arch == arch)
      return (is_tensor ? table[i].tensor : table[i].plain) * hand_cu_attribute(HAND_CUDA_SM_COUNT) *
             hand_cu_attribute(HAND_CUDA_CLOCK_KHZ) * 1e3;
  return 0;
}

static void launch_add(void *stream, cuda_address out, cuda_address a, cuda_address b, int n) {
  void *args[] = {&out, &a, &b, &n};
  hand_cu(cu.launch(add, ((unsigned)n + GROUP - 1) / GROUP, 1, 1, GROUP, 1, 1, 0, stream, args, NULL),
          "cuLaunchKernel");
}

static float *pinned_floats(int n, float value) {
  float *at = hand_cu_pinned((size_t)n * sizeof *at);
  for (int i = 0; i < n; i++) at[i] = value;
  return at;
}

/* ---- a chain as one graph */

static void *chain;
static float *chain_result;

void hand_cuda_chain_prepare(int nodes, int width, float value) {
  const size_t bytes = (size_t)width * sizeof(float);
  float *x_host = pinned_floats(width, value), *y_host = pinned_floats(width, value);
  cuda_address x = hand_cu_alloc(bytes), y[2] = {hand_cu_alloc(bytes), hand_cu_alloc(bytes)};
  void *graph;
  chain_result = pinned_floats(width, 0);
  hand_cu(cu.capture_begin(streams[0], 1), "cuStreamBeginCapture");
  hand_cu(cu.copy_h2d(x, x_host, bytes, streams[0]), "cuMemcpyHtoDAsync");
  hand_cu(cu.copy_h2d(y[0], y_host, bytes, streams[0]), "cuMemcpyHtoDAsync");
  for (int i = 0; i < nodes; i++) launch_add(streams[0], y[(i + 1) % 2], y[i % 2], x, width);
  hand_cu(cu.copy_d2h(chain_result, y[nodes % 2], bytes, streams[0]), "cuMemcpyDtoHAsync");
  hand_cu(cu.capture_end(streams[0], &graph), "cuStreamEndCapture");
  hand_cu(cu.instantiate(&chain, graph, 0), "cuGraphInstantiateWithFlags");
}

void hand_cuda_chain_run(void) {
  hand_cu(cu.graph_launch(chain, streams[0]), "cuGraphLaunch");
  hand_cu(cu.stream_sync(streams[0]), "cuStreamSynchronize");
}

const float *hand_cuda_chain_result(void) {
  return chain_result;
}

/* ---- copies, and kernels beside them */

static cuda_address copy_device, busy_data;
static void *copy_host, *busy;
static size_t copy_bytes;

void hand_cuda_copy_prepare(size_t bytes) {
  copy_bytes = bytes;
  copy_device = hand_cu_alloc(bytes);
  copy_host = hand_cu_pinned(bytes);
  memset(copy_host, 0, bytes);
}

void hand_cuda_copy(int is_to_device, int count) {
  for (int i = 0; i < count; i++)
    hand_cu(is_to_device ? cu.copy_h2d(copy_device, copy_host, copy_bytes, streams[0])
                         : cu.copy_d2h(copy_host, copy_device, copy_bytes, streams[0]),
            "a copy");
  hand_cu(cu.stream_sync(streams[0]), "cuStreamSynchronize");
}

void hand_cuda_overlap(char what, int turns) {
  int n = GROUP * 2 * hand_cu_attribute(HAND_CUDA_SM_COUNT);
  if (busy == NULL) {
    busy = hand_cu_kernel(source, "hand_busy");
    busy_data = hand_cu_alloc((size_t)n * sizeof(float));
    hand_cu(cu.fill(busy_data, 0, (size_t)n, streams[1]), "cuMemsetD32Async");
  }
  void *args[] = {&busy_data, &n, &turns};
  if (what != 'c')
    hand_cu(cu.launch(busy, (unsigned)n / GROUP, 1, 1, GROUP, 1, 1, 0, streams[1], args, NULL), "cuLaunchKernel");
  if (what != 'k') hand_cu(cu.copy_h2d(copy_device, copy_host, copy_bytes, streams[0]), "cuMemcpyHtoDAsync");
  for (int i = 0; i < 2; i++) hand_cu(cu.stream_sync(streams[i]), "cuStreamSynchronize");
}

/* ---- host and device in turns */

static float *mixed_x, *mixed_host;
static cuda_address mixed_device, mixed_device_x;
static void *mixed_events[2];
static int mixed_width;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards is_done */
static pthread_cond_t wake = PTHREAD_COND_INITIALIZER;
static int is_done;

void hand_cuda_mixed_prepare(int width, float value) {
  const size_t bytes = (size_t)width * sizeof(float);
  mixed_width = width;
  mixed_x = pinned_floats(width, value);
  mixed_host = pinned_floats(width, value);
  mixed_device = hand_cu_alloc(bytes);
  mixed_device_x = hand_cu_alloc(bytes);
  hand_cu(cu.copy_h2d(mixed_device_x, mixed_x, bytes, streams[0]), "cuMemcpyHtoDAsync");
  hand_cu(cu.stream_sync(streams[0]), "cuStreamSynchronize");
  for (int i = 0; i < 2; i++) mixed_events[i] = hand_cu_event();
}

static void done(void *arg) {
  (void)arg;
  pthread_mutex_lock(&lock);
  is_done = 1;
  pthread_cond_signal(&wake);
  pthread_mutex_unlock(&lock);
}

static void hand_over(int from, int to, int event) {
  if (from == to) return;
  hand_cu(cu.event_record(mixed_events[event], streams[from]), "cuEventRecord");
  hand_cu(cu.stream_wait(streams[to], mixed_events[event], 0), "cuStreamWaitEvent");
}

void hand_cuda_mixed(hand_cuda_way way) {
  const size_t bytes = (size_t)mixed_width * sizeof(float);
  const int copies = way == HAND_CUDA_TWO_STREAMS ? 1 : 0;
  for (int i = 0; i < mixed_width; i++) mixed_host[i] += mixed_x[i];
  hand_cu(cu.copy_h2d(mixed_device, mixed_host, bytes, streams[copies]), "cuMemcpyHtoDAsync");
  hand_over(copies, 0, 0);
  launch_add(streams[0], mixed_device, mixed_device, mixed_device_x, mixed_width);
  hand_over(0, copies, 1);
  hand_cu(cu.copy_d2h(mixed_host, mixed_device, bytes, streams[copies]), "cuMemcpyDtoHAsync");
  if (way != HAND_CUDA_CALLBACK) {
    hand_cu(cu.stream_sync(streams[copies]), "cuStreamSynchronize");
    return;
  }
  is_done = 0; /* nothing of ours is under way */
  hand_cu(cu.host_func(streams[0], done, NULL), "cuLaunchHostFunc");
  pthread_mutex_lock(&lock);
  while (!is_done) pthread_cond_wait(&wake, &lock);
  pthread_mutex_unlock(&lock);
}
