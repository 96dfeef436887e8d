/* Tests of the plugins cuda and rocm are written with CUDA's names of the driver's calls; here are HIP's for them, from
 * the table that the plugins have. With GPU_ON_CUDA the driver below is CUDA's. */
#ifndef HEDDLE_TESTS_UNIT_GPU_NAMES_H
#define HEDDLE_TESTS_UNIT_GPU_NAMES_H

#include "plugins/common/gpu/driver.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Are the calls that the double counts and fails HIP's? */
static inline bool gpu_names_are_hip(void) {
#ifdef GPU_ON_CUDA
  return false;
#else
  return strcmp(GPU_PLUGIN, "rocm") == 0;
#endif
}

/* What stands for cuLaunchHostFunc. */
#ifndef GPU_HIP_HOST_FUNC
#define GPU_HIP_HOST_FUNC "hipLaunchHostFunc"
#endif

/* The name that the double knows for a call of CUDA's, of so many characters, with or without "_v2", into out. */
static inline void gpu_name(const char *cuda, size_t length, char *out, size_t bytes) {
  static const char *const names[][2] = {
#define GPU_NAMES(member, need, cuda, hip, args) {cuda, hip},
      GPU_CALLS(GPU_NAMES)
#undef GPU_NAMES
          {"cuCtxEnablePeerAccess", "hipDeviceEnablePeerAccess"},
      {"cuGraphInstantiateWithFlags", "hipGraphInstantiate"},
      {"cuLaunchHostFunc", GPU_HIP_HOST_FUNC},
  };
  snprintf(out, bytes, "%.*s", (int)length, cuda);
  for (size_t i = 0; gpu_names_are_hip() && i < sizeof names / sizeof names[0]; i++) {
    const size_t known = strlen(names[i][0]), bare = known > 3 && names[i][0][known - 3] == '_' ? known - 3 : known;
    if ((length == known || length == bare) && strncmp(names[i][0], cuda, length) == 0)
      snprintf(out, bytes, "%s", names[i][1]);
  }
}

/* The same for all names of FAKE_GPU_FAIL, "NAME:N:CODE,...". */
static inline void gpu_name_failures(void) {
  const char *at = getenv("FAKE_GPU_FAIL");
  char list[1024] = "";
  if (at == NULL || !gpu_names_are_hip()) return;
  while (*at != '\0') {
    const size_t name = strcspn(at, ":"), rest = strcspn(at + name, ",");
    const size_t used = strlen(list);
    char own[64];
    gpu_name(at, name, own, sizeof own);
    snprintf(list + used, sizeof list - used, "%s%s%.*s", used > 0 ? "," : "", own, (int)rest, at + name);
    at += name + rest;
    at += *at == ',';
  }
  setenv("FAKE_GPU_FAIL", list, 1);
}

/* Where the double is that counts: a path, or NULL. */
static inline const char *gpu_counting_driver(void) {
  return getenv(strcmp(GPU_PLUGIN, "cuda") == 0 || !gpu_names_are_hip() ? "HEDDLE_CUDA_DRIVER" : "HEDDLE_ROCM_DRIVER");
}

#endif
