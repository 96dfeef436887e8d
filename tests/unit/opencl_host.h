/* The host of sim's tests for the opencl plugin: two PoCL devices with a cache of their own, or a skip with the reason.
 * Nothing may fork once a device is open. */
#ifndef HEDDLE_TESTS_UNIT_OPENCL_HOST_H
#define HEDDLE_TESTS_UNIT_OPENCL_HOST_H

#include "fake_host.h"

#include <unistd.h>

/* LeakSanitizer has no part in this: PoCL's compiler keeps what it built programs with, in frames that only a slow
 * unwinder distinguishes from ours, and threads of PoCL's that end while it looks make it die. What the plugin itself
 * loses is seen by the counters of the fake host and of live objects. */
__attribute__((visibility("default"), used)) const char *__asan_default_options(void);
const char *__asan_default_options(void) {
  return "detect_leaks=0";
}

/* sim_host.h enters whatever this gives. */
static heddle_plugin_entry_fn opencl_entry(const char *sim) {
  (void)sim;
  return fake_entry("opencl");
}
#define fake_entry opencl_entry
#include "sim_host.h"
#undef fake_entry

/* Before anything of OpenCL is loaded. */
static inline void opencl_environment(void) {
  if (access(HEDDLE_TEST_BUILD "/lib/heddle/plugins/libheddle_plugin_opencl.so", F_OK) != 0)
    SKIP("the plugin opencl is not built");
  setenv("POCL_DEVICES", "pthread pthread", 1);
  setenv("POCL_CACHE_DIR", HEDDLE_TEST_BUILD "/tests/pocl-cache", 0); /* CTest says another */
}

/* An instance with n devices open, with settings: key, value, ..., NULL. */
#define opencl_open(t, n, ...) \
  do { \
    opencl_environment(); \
    sim_enter((t), __VA_ARGS__); \
    opencl_open_devices((t), (n)); \
  } while (0)

static inline void opencl_open_devices(sim_test *t, uint32_t n) {
  uint32_t have = 0;
  heddle_status s = t->p->open_instance(&t->fake.table, &t->self, &t->err);
  if (s == HEDDLE_ENODEV) SKIP(t->err.text);
  if (s != HEDDLE_OK) fail_msg("%s", t->err.text);
  OK(t, t->p->device_count(t->self, &have, &t->err));
  if (have < n) {
    t->p->close_instance(t->self);
    SKIP("there are too few OpenCL devices");
  }
  for (uint32_t i = 0; i < n; i++) {
    heddle_pdevice_options options = {.struct_size = sizeof options, .cookie = 100 + i};
    OK(t, t->p->device->open(t->self, i, &options, &t->dev[i], &t->err));
  }
}

#endif
