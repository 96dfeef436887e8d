/* The root table of a plugin over this folder, for its plugin.c: a plugin's entry and vendor are its own, all else is one. */
#ifndef HEDDLE_PLUGINS_COMMON_GPU_ENTRY_H
#define HEDDLE_PLUGINS_COMMON_GPU_ENTRY_H

#include "plugins/common/gpu/gpu.h"
#include "plugins/common/pbuild.h"
#include "plugins/common/setting.h"

/* The settings that every plugin over this folder has: the first members of its array of heddle_psetting. */
#define GPU_SETTINGS \
  P_SETTING_PATH("driver", "1", "the driver's library, 1 to look for it, or off"), \
      P_SETTING_TEXT("devices", "", "the driver's numbers of the devices to use, with commas between; none: all"), \
      P_SETTING_NUMBER("max_streams", "0", 0, 65536, "streams of a device; 0: what suits it"), \
      P_SETTING_SWITCH("peer", "1", "copies between devices without the host"), \
      P_SETTING_SWITCH("unified", "1", "uses memory that host and device share"), \
      P_SETTING_SWITCH("capture", "1", "segments are recorded as the driver's graphs"), \
      P_SETTING_SWITCH("pools", "1", "uses the driver's memory pools"), \
      P_SETTING_SWITCH("counters", "1", "streams write numbers that a waiting thread looks at"), \
      P_SETTING_SWITCH("adopt_own", "0", \
                       "for heddle check-plugin: streams of this plugin can be adopted by their address"), \
      P_SETTING_SWITCH("fuse", "1", "elementwise chains become one step"), \
      P_SETTING_PATH("cache_dir", "", "folder of the cache of compiled programs; off: none"), \
      P_SETTING_NUMBER("cache_bytes", "1073741824", 0, UINT64_MAX, "most bytes of that cache; 0: no limit"), \
      P_SETTING_PATH("source_dir", "", "folder to which the sources of kernels are written; off: none"), \
      P_SETTING_WORD("libraries", "auto", "auto,1,0", "whether the vendor's libraries compute what they can")

/* Initialises a static const heddle_plugin. open: its open_instance, which calls gpu_open_instance with the vendor. list:
 * its array of settings. */
#define GPU_PLUGIN(plugin_name, open, list) \
  { \
    .struct_size = sizeof(heddle_plugin), .abi_major = HEDDLE_ABI_MAJOR, .abi_minor = HEDDLE_ABI_MINOR, \
    .features = P_FEATURES, .build = P_BUILD, .name = (plugin_name), .close_instance = gpu_close_instance, \
    .open_instance = (open), .device_count = gpu_device_count, .device_describe = gpu_device_describe, \
    .device = &gpu_device_table, .memory = &gpu_memory_table, .copy = &gpu_copy_table, .stream = &gpu_stream_table, \
    .event = &gpu_event_table, .fence = &gpu_fence_table, .op = &gpu_op_table, .module = &gpu_module_table, \
    .capture = &gpu_capture_table, .timing = &gpu_timing_table, .settings = P_SETTINGS(list), \
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
