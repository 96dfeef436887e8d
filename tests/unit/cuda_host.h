/* The host of sim's tests for the plugins cuda and rocm: devices of the double of their driver (tests/fakes), or with
 * HEDDLE_TEST_GPU=real those that are there; else a skip with the reason. Kernels run on PoCL, so that nothing may fork
 * once a device is open. Define GPU_PLUGIN as "rocm" before for that plugin, and for it GPU_HIP as the folder of another
 * double than HIP 6 ("rocm5"), or GPU_ON_CUDA for HIP on CUDA on the double of CUDA's driver. */
#ifndef HEDDLE_TESTS_UNIT_CUDA_HOST_H
#define HEDDLE_TESTS_UNIT_CUDA_HOST_H

#include "fake_host.h"
#include "gpu_doubles.h"

#include <unistd.h>

#ifndef GPU_PLUGIN
#define GPU_PLUGIN "cuda"
#endif

#include "gpu_names.h"

/* What PoCL's compiler loses of its own: as in opencl_host.h. */
__attribute__((visibility("default"), used)) const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void) {
  return "leak:libLLVM\nleak:libclang\n";
}
__attribute__((visibility("default"), used)) const char *__asan_default_options(void);
const char *__asan_default_options(void) {
  return "fast_unwind_on_malloc=0:malloc_context_size=8";
}

/* sim_host.h enters whatever this gives. */
static heddle_plugin_entry_fn cuda_entry(const char *sim) {
  (void)sim;
  return fake_entry(GPU_PLUGIN);
}
#define fake_entry cuda_entry
#include "sim_host.h"
#undef fake_entry

/* A setting, unless the test gave it. */
static inline void cuda_default(sim_test *t, const char *key, const char *value) {
  for (uint32_t i = 0; i < t->n_settings; i++)
    if (strcmp(t->settings[i][0], key) == 0) return;
  if (value == NULL || t->n_settings == SIM_TEST_SETTINGS) return;
  t->settings[t->n_settings][0] = key;
  t->settings[t->n_settings++][1] = value;
}

/* What a case orders of a double before it opens a device: no real driver does it. */
static inline bool cuda_orders(void) {
  static const char *const names[] = {"FAIL",     "FAULT",          "HANG", "MEMORY",     "POOLS",
                                      "PEERS",    "INTEGRATED",     "INIT", "ARCH",       "FRAGMENTS",
                                      "REGISTER", "REGISTER_DELAY", "MIG",  "HOST_DELAY", "VERSION"};
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
    char name[32];
    snprintf(name, sizeof name, "FAKE_GPU_%s", names[i]);
    if (getenv(name) != NULL) return true;
  }
  return false;
}

/* Before anything of a driver is loaded. */
static inline void cuda_environment(void) {
  if (access(HEDDLE_TEST_BUILD "/lib/heddle/plugins/libheddle_plugin_" GPU_PLUGIN ".so", F_OK) != 0)
    SKIP("the plugin " GPU_PLUGIN " is not built");
  static const char *const orders[] = {"FAKE_GPU_FAIL", "FAKE_GPU_FAULT", "FAKE_GPU_HANG"};
  const char *lacks = NULL;
  for (size_t i = 0; i < sizeof orders / sizeof orders[0]; i++) /* what the case asks of a double */
    if (gpu_is_real() && getenv(orders[i]) != NULL) SKIP("the driver is no double");
#ifdef GPU_ON_CUDA
#define GPU_HIP "hip_on_cuda"
  lacks = gpu_prepare(HEDDLE_TEST_BUILD, "cuda");
#endif
#ifdef GPU_HIP
  if (access(HEDDLE_TEST_BUILD "/tests/fakes/" GPU_HIP "/libamdhip64.so", F_OK) != 0)
    SKIP("HIP's doubles are not built");
  setenv("HEDDLE_ROCM_DRIVER", HEDDLE_TEST_BUILD "/tests/fakes/" GPU_HIP "/libamdhip64.so", 0);
  setenv("HEDDLE_ROCM_HIPRTC", HEDDLE_TEST_BUILD "/tests/fakes/" GPU_HIP "/libamdhip64.so", 0);
#endif
  if (lacks == NULL) lacks = gpu_prepare(HEDDLE_TEST_BUILD, GPU_PLUGIN);
  if (gpu_is_real() && cuda_orders()) SKIP("the driver is no double, which would do what this case orders");
  gpu_name_failures();
  if (lacks != NULL) SKIP(lacks);
  setenv("FAKE_GPU_LAZY", "1", 0); /* kernels' code is loaded as late as a real driver may */
  setenv("POCL_DEVICES", "pthread", 1);
  setenv("POCL_CACHE_DIR", HEDDLE_TEST_BUILD "/tests/pocl-cache", 0); /* CTest may say another */
}

/* The double and its compiler, and no libraries of the vendor's, unless the test gave them. */
static inline void cuda_settings(sim_test *t) {
  const bool is_cuda = strcmp(GPU_PLUGIN, "cuda") == 0;
  cuda_default(t, "driver", getenv(is_cuda ? "HEDDLE_CUDA_DRIVER" : "HEDDLE_ROCM_DRIVER"));
  cuda_default(t, is_cuda ? "nvrtc" : "hiprtc", getenv(is_cuda ? "HEDDLE_CUDA_NVRTC" : "HEDDLE_ROCM_HIPRTC"));
  cuda_default(t, "devices", getenv(is_cuda ? "HEDDLE_CUDA_DEVICES" : "HEDDLE_ROCM_DEVICES"));
  cuda_default(t, "libraries", "0");
}

static inline void cuda_open_devices(sim_test *t, uint32_t n) {
  uint32_t have = 0;
  cuda_settings(t);
  heddle_status s = t->p->open_instance(&t->fake.table, &t->self, &t->err);
  if (s == HEDDLE_ENODEV && gpu_is_real()) SKIP(t->err.text);
  if (s != HEDDLE_OK) fail_msg("%s", t->err.text);
  OK(t, t->p->device_count(t->self, &have, &t->err));
  if (have < n) {
    t->p->close_instance(t->self);
    SKIP("there are too few devices of " GPU_PLUGIN);
  }
  for (uint32_t i = 0; i < n; i++) {
    heddle_pdevice_options options = {.struct_size = sizeof options, .cookie = 100 + i};
    OK(t, t->p->device->open(t->self, i, &options, &t->dev[i], &t->err));
  }
}

/* An instance with n devices open, with settings: key, value, ..., NULL. */
#define cuda_open(t, n, ...) \
  do { \
    cuda_environment(); \
    sim_enter((t), __VA_ARGS__); \
    cuda_open_devices((t), (n)); \
  } while (0)

#endif
