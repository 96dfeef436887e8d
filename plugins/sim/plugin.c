/* The entry: refuses a host that does not fit, and picks the root table. Where the host gives settings so early, those
 * that take an optional group or function away choose a table in which its pointer is NULL, as in a plugin that never
 * had it; elsewhere the function answers that it is switched off. */
#include "sim.h"

#include "plugins/common/pbuild.h"

/* Bits of a table's number. */
enum { HAS_VIEW = 1, HAS_IMPORT = 2, HAS_PEER = 4, HAS_FENCE_WAIT = 8, HAS_LAYOUT = 16, HAS_CAPTURE = 32 };

#define ROOT(n) \
  { \
    .struct_size = sizeof(heddle_plugin), .abi_major = HEDDLE_ABI_MAJOR, .abi_minor = HEDDLE_ABI_MINOR, \
    .features = P_FEATURES, .build = P_BUILD, .name = "sim", .close_instance = sim_instance_close, \
    .open_instance = sim_instance_open, .device_count = sim_instance_count, .device_describe = sim_instance_describe, \
    .device = &sim_device_table, .memory = &sim_memory_tables[(n)&3], .copy = &sim_copy_tables[((n)&HAS_PEER) != 0], \
    .stream = &sim_stream_table, .event = &sim_event_table, .fence = &sim_fence_tables[((n)&HAS_FENCE_WAIT) != 0], \
    .op = &sim_op_table, .layout = ((n)&HAS_LAYOUT) != 0 ? &sim_layout_table : NULL, .module = &sim_module_table, \
    .capture = ((n)&HAS_CAPTURE) != 0 ? &sim_capture_table : NULL, .timing = &sim_timing_table, \
    .external = &sim_external_table, .settings = { \
      &sim_settings_all[0], \
      SIM_SETTINGS, \
      sizeof(sim_setting) \
    } \
  }
#define ROOT4(n) ROOT(n), ROOT((n) + 1), ROOT((n) + 2), ROOT((n) + 3)
#define ROOT16(n) ROOT4(n), ROOT4((n) + 4), ROOT4((n) + 8), ROOT4((n) + 12)
static const heddle_plugin roots[64] = {ROOT16(0), ROOT16(16), ROOT16(32), ROOT16(48)};

HEDDLE_PLUGIN_EXPORT const heddle_plugin *heddle_plugin_entry(const heddle_host *host, heddle_error *err) {
  char peer[8];
  if (host == NULL || host->abi_major != HEDDLE_ABI_MAJOR || !HEDDLE_HAS(heddle_host, host, parallelism)) {
    p_fail(err, HEDDLE_EABI, 0, "sim is built for plugin ABI %d.%d, the host has %u.%u", HEDDLE_ABI_MAJOR,
           HEDDLE_ABI_MINOR, host == NULL ? 0u : host->abi_major, host == NULL ? 0u : host->abi_minor);
    return NULL;
  }
  unsigned n = 0;
  if (sim_settings_switch(host, "views", true)) n |= HAS_VIEW;
  if (sim_settings_switch(host, "import", true)) n |= HAS_IMPORT;
  if (sim_settings_switch(host, "fence_wait", true)) n |= HAS_FENCE_WAIT;
  if (sim_settings_switch(host, "layouts", true)) n |= HAS_LAYOUT;
  if (sim_settings_switch(host, "capture", true)) n |= HAS_CAPTURE;
  int64_t length = host->config(host->ctx, "peer", peer, sizeof peer);
  bool lie = length == 3 && strcmp(peer, "lie") == 0;
  if (lie || sim_settings_switch(host, "peer", true)) n |= HAS_PEER;
  return &roots[n];
}
