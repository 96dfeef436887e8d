/* The host of sim's tests for the vulkan plugin: two lavapipe devices, or a skip with the reason, and the validation layer
 * with synchronisation validation where it is installed: a message of it fails the test. */
#ifndef HEDDLE_TESTS_UNIT_VULKAN_HOST_H
#define HEDDLE_TESTS_UNIT_VULKAN_HOST_H

#include "fake_host.h"
#include "vulkan_drivers.h"

/* What the driver loses of its own: its compiler (LLVM) keeps what it built shaders with. Stacks stay those of the fast
 * unwinder: the other one takes a lock that libgcc holds while it allocates for frames of code that LLVM has built. */
__attribute__((visibility("default"), used)) const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void) {
  return "leak:libLLVM\nleak:libvulkan_lvp\nleak:libVkLayer_khronos_validation\n";
}

/* sim_host.h enters whatever this gives. */
static heddle_plugin_entry_fn vulkan_entry(const char *sim) {
  (void)sim;
  return fake_entry("vulkan");
}
#define fake_entry vulkan_entry
#include "sim_host.h"
#undef fake_entry

static inline void vulkan_log(void *ctx, int32_t level, const char *component, const char *text) {
  if (level == HEDDLE_LOG_ERROR) fprintf(stderr, "%s: %s\n", component, text);
  sim_test_log(ctx, level, component, text);
}

/* Before anything of Vulkan is loaded. */
static inline void vulkan_environment(void) {
  if (access(HEDDLE_TEST_BUILD "/lib/heddle/plugins/libheddle_plugin_vulkan.so", F_OK) != 0)
    SKIP("the plugin vulkan is not built");
  const char *lacks = vulkan_two_devices(HEDDLE_TEST_BUILD);
  if (lacks != NULL) SKIP(lacks);
}

static inline void vulkan_open_devices(sim_test *t, uint32_t n) {
  uint32_t have = 0;
  t->fake.table.log = vulkan_log;
  t->settings[t->n_settings][0] = "validate";
  t->settings[t->n_settings++][1] = "1";
  heddle_status s = t->p->open_instance(&t->fake.table, &t->self, &t->err);
  if (s == HEDDLE_ENOTFOUND) { /* the layer is not installed */
    t->n_settings--;
    s = t->p->open_instance(&t->fake.table, &t->self, &t->err);
  }
  if (s == HEDDLE_ENODEV) SKIP(t->err.text);
  if (s != HEDDLE_OK) fail_msg("%s", t->err.text);
  OK(t, t->p->device_count(t->self, &have, &t->err));
  if (have < n) {
    t->p->close_instance(t->self);
    SKIP("there are too few Vulkan devices");
  }
  for (uint32_t i = 0; i < n; i++) {
    heddle_pdevice_options options = {.struct_size = sizeof options, .cookie = 100 + i};
    OK(t, t->p->device->open(t->self, i, &options, &t->dev[i], &t->err));
  }
}

/* An instance with n devices open, with settings: key, value, ..., NULL. */
#define vulkan_open(t, n, ...) \
  do { \
    vulkan_environment(); \
    sim_enter((t), __VA_ARGS__); \
    vulkan_open_devices((t), (n)); \
  } while (0)

/* Closes all; nothing is left, and the validation layer had nothing to say. (sim_close)(t) does without the latter. */
static inline void vulkan_close(sim_test *t) {
  sim_close(t);
  assert_int_equal(t->errors_logged, 0);
}
#define sim_close(t) vulkan_close(t)

#endif
