/* The root table of a plugin over this folder, for its plugin.c: a plugin's entry and vendor are its own, all else is one. */
#ifndef HEDDLE_PLUGINS_COMMON_GPU_ENTRY_H
#define HEDDLE_PLUGINS_COMMON_GPU_ENTRY_H

#include "plugins/common/gpu/gpu.h"
#include "plugins/common/pbuild.h"

/* Initialises a static const heddle_plugin. open: its open_instance, which calls gpu_open_instance with the vendor. */
#define GPU_PLUGIN(plugin_name, open) \
  { \
    .struct_size = sizeof(heddle_plugin), .abi_major = HEDDLE_ABI_MAJOR, .abi_minor = HEDDLE_ABI_MINOR, \
    .features = P_FEATURES, .build = P_BUILD, .name = (plugin_name), .close_instance = gpu_close_instance, \
    .open_instance = (open), .device_count = gpu_device_count, .device_describe = gpu_device_describe, \
    .device = &gpu_device_table, .memory = &gpu_memory_table, .copy = &gpu_copy_table, .stream = &gpu_stream_table, \
    .event = &gpu_event_table, .fence = &gpu_fence_table, .op = &gpu_op_table, .module = &gpu_module_table, \
    .capture = &gpu_capture_table, .timing = &gpu_timing_table, \
  }

/* What heddle_plugin_entry returns: the table, or NULL, with a message, for a host of another major. */
static inline const heddle_plugin *gpu_plugin_entry(const heddle_plugin *table, const heddle_host *host,
                                                    heddle_error *err) {
  if (host != NULL && host->abi_major == HEDDLE_ABI_MAJOR) return table;
  p_fail(err, HEDDLE_EABI, 0, "plugin %s is built for ABI %d, the host has %d", table->name, HEDDLE_ABI_MAJOR,
         host != NULL ? (int)host->abi_major : 0);
  return NULL;
}

#endif
