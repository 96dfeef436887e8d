/* Tests of the double of CUDA's driver: plain programs on the driver API, linked with it. Without NVIDIA's headers
 * there is no double, and each case is skipped. */
#ifndef HEDDLE_TESTS_UNIT_FAKES_CUDA_H
#define HEDDLE_TESTS_UNIT_FAKES_CUDA_H

#include "cases.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <time.h>
#include <unistd.h>

#ifdef HEDDLE_TEST_FAKE_CUDA
#include <cuda.h>

int fake_gpu_live(const char *kind);
int fake_gpu_calls(const char *name);
int fake_gpu_misuse(void);
int fake_gpu_report(const char *path);

#define FAKE_ONLY
#define CU(expression) assert_int_equal((expression), CUDA_SUCCESS)

/* The driver, with a device's primary context current on this thread. */
static inline CUcontext fake_start(CUdevice device) {
  CUcontext ctx;
  CU(cuInit(0));
  CU(cuDevicePrimaryCtxRetain(&ctx, device));
  CU(cuCtxSetCurrent(ctx));
  return ctx;
}

/* Lets go of it; nothing may be left, and nothing may have been misused. */
static inline void fake_end(CUdevice device) {
  CU(cuCtxSetCurrent(NULL));
  CU(cuDevicePrimaryCtxRelease(device));
  assert_int_equal(fake_gpu_misuse(), 0);
}

static inline CUstream fake_stream(void) {
  CUstream stream;
  CU(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  return stream;
}

static inline void fake_nap(long us) {
  nanosleep(&(struct timespec){us / 1000000, us % 1000000 * 1000}, NULL);
}

/* A stream waits in a host function until the gate is open. */
typedef struct fake_gate {
  atomic_bool open;
} fake_gate;

static inline void fake_gate_wait(void *arg) {
  fake_gate *gate = arg;
  while (!atomic_load(&gate->open)) fake_nap(100);
}

static inline void fake_gate_put(fake_gate *gate, CUstream stream) {
  atomic_store(&gate->open, false);
  CU(cuLaunchHostFunc(stream, fake_gate_wait, gate));
}
#else
#define FAKE_ONLY SKIP("the double of CUDA's driver is not built: NVIDIA's headers are missing");
#endif

#endif
