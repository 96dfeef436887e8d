/* bench/bench_opencl.c: a chain of 1,000 Adds on the first OpenCL device, through the public API and by a loop written
 * by hand: set the arguments of a kernel, enqueue it, 1,000 times, and one clFinish.
 * Each line "heddle RUNS" or "hand RUNS" on standard input gives one line: nanoseconds of one run, the mean over RUNS.
 * Both run a plain kernel on 1,024 floats in work-groups of 64. Without OpenCL it ends with status 77. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef HEDDLE_BENCH_OPENCL
#include "bench/bench.h"
#include "bench/cl_check.h"
#include "hand_chain.h"

enum { NODES = 1000, WIDTH = 1024, GROUP = 64 };

/* ---- by hand */

typedef struct hand {
  cl_command_queue queue;
  cl_kernel kernel;
  cl_mem x, y[2];
} hand;

static void hand_init(hand *h) {
  static const char *const text =
      "__kernel void add(__global const float *a, __global const float *b, __global float *c,"
      " int n) { int i = get_global_id(0); if (i < n) c[i] = a[i] + b[i]; }";
  static float values[WIDTH];
  cl_platform_id platform;
  cl_device_id device;
  cl_int code;
  const cl_int n = WIDTH;
  for (int i = 0; i < WIDTH; i++) values[i] = HAND_CHAIN_VALUE;
  cl_check(clGetPlatformIDs(1, &platform, NULL), "clGetPlatformIDs");
  cl_check(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL), "clGetDeviceIDs");
  cl_context ctx = clCreateContext(NULL, 1, &device, NULL, NULL, &code);
  cl_check(code, "clCreateContext");
  h->queue = clCreateCommandQueue(ctx, device, 0, &code);
  cl_check(code, "clCreateCommandQueue");
  cl_program program = clCreateProgramWithSource(ctx, 1, (const char **)(uintptr_t)&text, NULL, &code);
  cl_check(code, "clCreateProgramWithSource");
  cl_check(clBuildProgram(program, 1, &device, "", NULL, NULL), "clBuildProgram");
  h->kernel = clCreateKernel(program, "add", &code);
  cl_check(code, "clCreateKernel");
  cl_mem *all[3] = {&h->x, &h->y[0], &h->y[1]};
  for (int i = 0; i < 3; i++) {
    *all[i] = clCreateBuffer(ctx, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, sizeof values, values, &code);
    cl_check(code, "clCreateBuffer");
  }
  cl_check(clSetKernelArg(h->kernel, 3, sizeof n, &n), "clSetKernelArg");
}

static void hand_run(hand *h) {
  const size_t global = WIDTH, local = GROUP;
  for (int i = 0; i < NODES; i++) {
    cl_int code = clSetKernelArg(h->kernel, 0, sizeof(cl_mem), &h->y[i % 2]);
    if (code == CL_SUCCESS) code = clSetKernelArg(h->kernel, 1, sizeof(cl_mem), &h->x);
    if (code == CL_SUCCESS) code = clSetKernelArg(h->kernel, 2, sizeof(cl_mem), &h->y[1 - i % 2]);
    if (code == CL_SUCCESS) code = clEnqueueNDRangeKernel(h->queue, h->kernel, 1, NULL, &global, &local, 0, NULL, NULL);
    cl_check(code, "enqueue");
  }
  cl_check(clFinish(h->queue), "clFinish");
}

int main(void) {
  heddle_error err;
  heddle_context *ctx;
  hand h;
  char line[128], name[64];
  int runs;
  hand_init(&h);
  heddle_setting settings[] = {{"opencl.fuse", "0"}}; /* a step a node is what is measured */
  check(heddle_context_create(settings, 1, NULL, NULL, &ctx, &err), &err);
  static const char *const devices[2] = {"opencl:0", "opencl:0"};
  heddle_executor *ex = hand_chain(ctx, NODES, WIDTH, devices);
  while (fgets(line, sizeof line, stdin) != NULL && sscanf(line, "%63s %d", name, &runs) == 2 && runs > 0) {
    const double start = now_ns();
    for (int i = 0; i < runs; i++) {
      if (strcmp(name, "hand") == 0) hand_run(&h);
      else check(heddle_executor_run(ex, HEDDLE_FOREVER, &err), &err);
    }
    printf("%.3f\n", (now_ns() - start) / runs);
    fflush(stdout);
  }
  heddle_executor_release(ex);
  heddle_context_release(ctx);
  return 0;
}
#else
int main(void) {
  fprintf(stderr, "built without OpenCL\n");
  return 77;
}
#endif
