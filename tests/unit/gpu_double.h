/* What a case asks of the double of a driver that the plugin loaded into its process: live things, calls, misuse. On a
 * real driver such a case is skipped. */
#ifndef HEDDLE_TESTS_UNIT_GPU_DOUBLE_H
#define HEDDLE_TESTS_UNIT_GPU_DOUBLE_H

#include "cuda_host.h"

#include "fakes/fake_gpu.h"

#include <dlfcn.h>

static inline void *double_symbol(const char *name) {
  const char *path = gpu_counting_driver();
  if (gpu_is_real()) SKIP("the driver is no double");
  assert_non_null(path);
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
  if (library == NULL) fail_msg("%s is not loaded", path);
  void *found = dlsym(library, name);
  if (found == NULL) fail_msg("%s has no %s", path, name);
  dlclose(library); /* the plugin holds it */
  return found;
}

static inline int double_live(const char *kind) {
  return ((fake_gpu_live_fn)(uintptr_t)double_symbol("fake_gpu_live"))(kind);
}

static inline int double_calls(const char *call) {
  char own[64];
  gpu_name(call, strlen(call), own, sizeof own);
  return ((fake_gpu_calls_fn)(uintptr_t)double_symbol("fake_gpu_calls"))(own);
}

/* After everything is closed: no misuse, and nothing alive; but HIP has no call that ends a device's context. */
static inline void double_is_clean(void) {
  static const char *const kinds[] = {"allocations", "host",   "pools", "streams", "events",
                                      "modules",     "graphs", "execs", "contexts"};
  if (gpu_is_real()) return;
  assert_int_equal(((fake_gpu_misuse_fn)(uintptr_t)double_symbol("fake_gpu_misuse"))(), 0);
  for (size_t i = 0; i < sizeof kinds / sizeof kinds[0] - (strcmp(GPU_PLUGIN, "rocm") == 0); i++) {
    const int live = double_live(kinds[i]);
    if (live != 0) fail_msg("%d %s are left", live, kinds[i]);
  }
}

#endif
