/* bench/hand_opencl.c: what a careful programmer writes within the rules of plugin.h: one queue in order, all arguments
 * set once, mapped host memory, one wait a crossing; a callback records and wakes, and does not run the next step. */
#include "hand_opencl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cl_check.h"
#include "hand_host.h"

enum { GROUP = 64 };

static hand_plugin cpu;
static heddle_plaunch *on_cpu;
static cl_command_queue queue;
static cl_kernel kernel;
static cl_mem device[3]; /* operand, the other operand, result */
static float *host[3];
static size_t bytes, global_size;
static heddle_pfence fence;
static uint64_t ticks;

static const char *const text = "__kernel void add(__global const float *a, __global const float *b, __global float *c,"
                                " int n) { int i = get_global_id(0); if (i < n) c[i] = a[i] + b[i]; }";

void hand_cl_prepare(const char *plugin_folder, int64_t elements) {
  cl_platform_id platform;
  cl_device_id id;
  cl_int code;
  const cl_int n = (cl_int)elements;
  bytes = (size_t)elements * sizeof(float);
  global_size = ((size_t)elements + GROUP - 1) / GROUP * GROUP;
  cl_check(clGetPlatformIDs(1, &platform, NULL), "clGetPlatformIDs");
  cl_check(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &id, NULL), "clGetDeviceIDs");
  cl_context ctx = clCreateContext(NULL, 1, &id, NULL, NULL, &code);
  cl_check(code, "clCreateContext");
  queue = clCreateCommandQueue(ctx, id, 0, &code);
  cl_check(code, "clCreateCommandQueue");
  cl_program program = clCreateProgramWithSource(ctx, 1, (const char **)(uintptr_t)&text, NULL, &code);
  cl_check(code, "clCreateProgramWithSource");
  cl_check(clBuildProgram(program, 1, &id, "", NULL, NULL), "clBuildProgram");
  kernel = clCreateKernel(program, "add", &code);
  cl_check(code, "clCreateKernel");
  for (cl_uint i = 0; i < 3; i++) {
    device[i] = clCreateBuffer(ctx, CL_MEM_READ_WRITE, bytes, NULL, &code);
    cl_check(code, "clCreateBuffer");
    cl_mem pinned = clCreateBuffer(ctx, CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR, bytes, NULL, &code);
    cl_check(code, "clCreateBuffer");
    host[i] = clEnqueueMapBuffer(queue, pinned, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, 0, bytes, 0, NULL, NULL, &code);
    cl_check(code, "clEnqueueMapBuffer");
    memset(host[i], 0, bytes);
    cl_check(clEnqueueWriteBuffer(queue, device[i], CL_TRUE, 0, bytes, host[i], 0, NULL, NULL), "clEnqueueWriteBuffer");
    cl_check(clSetKernelArg(kernel, i, sizeof(cl_mem), &device[i]), "clSetKernelArg");
  }
  cl_check(clSetKernelArg(kernel, 3, sizeof n, &n), "clSetKernelArg");

  heddle_error err;
  heddle_pstream *stream;
  heddle_pslice slices[3];
  cpu = hand_open(plugin_folder, "cpu");
  check(cpu.p->stream->create(cpu.dev, HEDDLE_STREAM_COMPUTE, 0, &stream, &err), &err);
  for (int i = 0; i < 3; i++) {
    slices[i] = (heddle_pslice){NULL, 0, bytes};
    check(cpu.p->memory->import_host(cpu.dev, host[i], bytes, &slices[i].buffer, &err), &err);
  }
  on_cpu = hand_add(&cpu, stream, elements, slices[0], slices[1], slices[2]);
  fence = hand_fence();
}

static void CL_CALLBACK reached(cl_event event, cl_int state, void *user) {
  (void)event;
  cl_check(state < 0 ? state : CL_SUCCESS, "read");
  hand_signal(fence, (uint64_t)(uintptr_t)user);
}

void hand_cl_pair(int blocking) {
  const size_t local = GROUP;
  heddle_error err;
  cl_event event = NULL;
  check(cpu.p->op->run(on_cpu, &err), &err);
  cl_check(clEnqueueWriteBuffer(queue, device[0], CL_FALSE, 0, bytes, host[2], 0, NULL, NULL), "clEnqueueWriteBuffer");
  cl_check(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &global_size, &local, 0, NULL, NULL),
           "clEnqueueNDRangeKernel");
  cl_check(clEnqueueReadBuffer(queue, device[2], blocking ? CL_TRUE : CL_FALSE, 0, bytes, host[0], 0, NULL,
                               blocking ? NULL : &event),
           "clEnqueueReadBuffer");
  if (blocking) return;
  cl_check(clSetEventCallback(event, CL_COMPLETE, reached, (void *)(uintptr_t)++ticks), "clSetEventCallback");
  cl_check(clFlush(queue), "clFlush");
  hand_wait(fence, ticks);
  clReleaseEvent(event);
}
