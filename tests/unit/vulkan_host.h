/* The host of sim's tests for the vulkan plugin: the devices that the loader finds, with no cache of their own, or a skip
 * with the reason. Nothing may fork once a device is open. */
#ifndef HEDDLE_TESTS_UNIT_VULKAN_HOST_H
#define HEDDLE_TESTS_UNIT_VULKAN_HOST_H

#include "fake_host.h"

#include <unistd.h>

/* sim_host.h enters whatever this gives. */
static heddle_plugin_entry_fn vulkan_entry(const char *sim) {
  (void)sim;
  return fake_entry("vulkan");
}
#define fake_entry vulkan_entry
#include "sim_host.h"
#undef fake_entry

/* Before anything of Vulkan is loaded. */
static inline void vulkan_environment(void) {
  if (access(HEDDLE_TEST_BUILD "/lib/heddle/plugins/libheddle_plugin_vulkan.so", F_OK) != 0)
    SKIP("the plugin vulkan is not built");
}

/* An instance with n devices open, with settings: key, value, ..., NULL. */
#define vulkan_open(t, n, ...) \
  do { \
    vulkan_environment(); \
    sim_enter((t), __VA_ARGS__); \
    vulkan_open_devices((t), (n)); \
  } while (0)

static inline void vulkan_open_devices(sim_test *t, uint32_t n) {
  uint32_t have = 0;
  heddle_status s = t->p->open_instance(&t->fake.table, &t->self, &t->err);
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

#endif
