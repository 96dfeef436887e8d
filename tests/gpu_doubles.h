/* tests/gpu_doubles.h: which driver the plugins cuda and rocm meet in a test: the doubles of the build tree
 * (tests/fakes/README.md), or with HEDDLE_TEST_GPU=real what is installed, which is what scripts/gpu-test does. */
#ifndef HEDDLE_TESTS_GPU_DOUBLES_H
#define HEDDLE_TESTS_GPU_DOUBLES_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static inline int gpu_is_real(void) {
  const char *which = getenv("HEDDLE_TEST_GPU");
  return which != NULL && strcmp(which, "real") == 0;
}

/* Sets the environment for a plugin of a GPU, "cuda" or "rocm", before its driver is loaded; what was set already stays.
 * NULL, or why that cannot be. build: the build tree. */
static inline const char *gpu_prepare(const char *build, const char *plugin) {
  const int is_cuda = strcmp(plugin, "cuda") == 0;
  char driver[1024], compiler[1024];
  if (gpu_is_real()) return NULL;
  snprintf(driver, sizeof driver, "%s/tests/fakes/%s/%s", build, plugin, is_cuda ? "libcuda.so.1" : "libamdhip64.so");
  snprintf(compiler, sizeof compiler, "%s/tests/fakes/%s/%s", build, plugin,
           is_cuda ? "libnvrtc.so.13" : "libamdhip64.so");
  if (access(driver, F_OK) != 0 || access(compiler, F_OK) != 0)
    return "the double of the driver is not built: the vendor's headers are missing";
  setenv(is_cuda ? "HEDDLE_CUDA_DRIVER" : "HEDDLE_ROCM_DRIVER", driver, 0);
  setenv(is_cuda ? "HEDDLE_CUDA_NVRTC" : "HEDDLE_ROCM_HIPRTC", compiler, 0);
  setenv(is_cuda ? "HEDDLE_CUDA_LIBRARIES" : "HEDDLE_ROCM_LIBRARIES", "0", 0);
  setenv("FAKE_GPU_STRICT", "1", 0); /* misuse ends the process with a status of its own */
  return NULL;
}

#endif
