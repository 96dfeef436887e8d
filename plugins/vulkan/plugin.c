/* The vulkan plugin: the devices that the Vulkan loader shows. Here are the entry, the instance with its settings, and the
 * root table; each other table is in the file of its noun.
 *
 * Settings: cache_dir (folder for compiled pipelines; off: they are compiled in each process), timeline (0: as on a device
 * without timeline semaphores), unified (0: no shared memory), fuse (0: every node is a step of its own), max_streams,
 * validate (1: under the validation layer), driver (off: none is started). */
#include "vulkan.h"

#include "plugins/common/filecache.h"
#include "plugins/common/chain.h"
#include "plugins/common/pbuild.h"
#include "plugins/common/setting.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

heddle_status vlk_new(const heddle_host *host, uint64_t bytes, const char *what, void **out, heddle_error *err) {
  void *p = host->alloc(host->ctx, bytes, _Alignof(max_align_t));
  if (p == NULL) {
    return p_fail(err, HEDDLE_ENOMEM, 0, "vulkan: no memory for %s (%llu bytes)", what, (unsigned long long)bytes);
  }
  memset(p, 0, bytes);
  *out = p;
  return HEDDLE_OK;
}

bool vlk_setting(const heddle_host *host, const char *key, char *buf, uint64_t bytes) {
  return host->config(host->ctx, key, buf, bytes) > 0;
}

static heddle_status read_number(const heddle_host *host, const char *key, uint32_t absent, uint32_t *out,
                                 heddle_error *err) {
  char text[32], *end = text;
  *out = absent;
  if (!vlk_setting(host, key, text, sizeof text)) return HEDDLE_OK;
  const unsigned long value = strtoul(text, &end, 10);
  if (text[0] < '0' || text[0] > '9' || *end != '\0' || value > 65536)
    return p_fail(err, HEDDLE_EINVAL, 0, "vulkan: setting %s: '%s' is no number from 0 to 65536", key, text);
  *out = (uint32_t)value;
  return HEDDLE_OK;
}

/* A path; NULL where it is not given or off. */
static heddle_status read_path(const heddle_host *host, const char *key, char **out, heddle_error *err) {
  const int64_t length = host->config(host->ctx, key, NULL, 0);
  void *memory = NULL;
  if (length <= 0) return HEDDLE_OK;
  heddle_status s = vlk_new(host, (uint64_t)length + 1, "a setting", &memory, err);
  if (s != HEDDLE_OK) return s;
  char *text = memory;
  host->config(host->ctx, key, text, (uint64_t)length + 1);
  const bool off = p_is_off(text);
  if (!off && text[0] != '/')
    s = p_fail(err, HEDDLE_EINVAL, 0, "vulkan: setting %s: '%.200s' is no absolute path, and not off", key, text);
  if (!off && s == HEDDLE_OK) *out = text;
  else host->free(host->ctx, text);
  return s;
}

/* A file that is opened to append to; -1 where it is not given or off. */
static heddle_status open_log(const heddle_host *host, const char *key, int *out, heddle_error *err) {
  char *path = NULL;
  heddle_status s = read_path(host, key, &path, err);
  *out = -1;
  if (s != HEDDLE_OK || path == NULL) return s;
  *out = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
  if (*out < 0)
    s = p_fail(err, HEDDLE_EIO, errno, "vulkan: setting %s: '%.200s' cannot be opened: %s", key, path, strerror(errno));
  host->free(host->ctx, path);
  return s;
}

static heddle_status read_switch(const heddle_host *host, const char *key, bool absent, bool *out, heddle_error *err) {
  char text[16];
  *out = absent;
  if (!vlk_setting(host, key, text, sizeof text) || p_switch(text, out)) return HEDDLE_OK;
  return p_fail(err, HEDDLE_EINVAL, 0, "vulkan: setting %s: '%s' is neither 0 nor 1", key, text);
}

static heddle_status read_settings(heddle_pinstance *self, heddle_error *err) {
  const heddle_host *host = self->host;
  char why[96];
  bool driver = true;
  heddle_status s = read_switch(host, "driver", true, &driver, err);
  if (s == HEDDLE_OK && !driver) return p_fail(err, HEDDLE_ENODEV, 0, "no Vulkan device: the setting driver is off");
  if (s == HEDDLE_OK) s = read_number(host, "max_streams", 0, &self->max_streams, err);
  if (s == HEDDLE_OK) s = read_switch(host, "timeline", true, &self->timeline, err);
  if (s == HEDDLE_OK) s = read_switch(host, "unified", true, &self->unified, err);
  if (s == HEDDLE_OK) s = read_switch(host, "validate", false, &self->validate, err);
  if (s == HEDDLE_OK) s = open_log(host, "validate_log", &self->validate_log, err);
  if (s == HEDDLE_OK) s = heddle_chain_wanted(host, &self->fuse, err);
  if (s == HEDDLE_OK) s = read_path(host, "cache_dir", &self->cache_dir, err);
  if (s == HEDDLE_OK && !filecache_limit(host, &self->cache_bytes, why, sizeof why))
    s = p_fail(err, HEDDLE_EINVAL, 0, "vulkan: %s", why);
  return s;
}

static void close_instance(heddle_pinstance *self) {
  if (self == NULL || atomic_load(&self->left_behind)) return;
  const heddle_host *host = self->host;
  vlk_unload(self);
  if (self->validate_log >= 0) close(self->validate_log);
  host->free(host->ctx, self->devices);
  host->free(host->ctx, self->cache_dir);
  host->free(host->ctx, self);
}

static heddle_status open_instance(const heddle_host *host, heddle_pinstance **out, heddle_error *err) {
  void *memory = NULL;
  heddle_status s = vlk_new(host, sizeof **out, "an instance", &memory, err);
  if (s != HEDDLE_OK) return s;
  heddle_pinstance *self = memory;
  self->host = host;
  self->validate_log = -1;
  s = read_settings(self, err);
  if (s == HEDDLE_OK) {
    host->log(
        host->ctx, HEDDLE_LOG_INFO, "vulkan",
        "starts the Vulkan drivers; if the process ends here, one of them crashes: vulkan.driver=off goes without");
    s = vlk_load(self, err);
  }
  if (s == HEDDLE_OK) s = vlk_find_devices(self, err);
  if (s != HEDDLE_OK) close_instance(self);
  else *out = self;
  return s;
}

static heddle_status device_count(heddle_pinstance *self, uint32_t *out, heddle_error *err) {
  (void)err;
  *out = self->n_devices;
  return HEDDLE_OK;
}

static heddle_status device_describe(heddle_pinstance *self, uint32_t index, heddle_pdevice_desc *desc,
                                     heddle_error *err) {
  if (index >= self->n_devices)
    return p_fail(err, HEDDLE_ENODEV, 0, "vulkan:%u: there are %u devices", index, self->n_devices);
  const vlk_info *info = &self->devices[index];
  desc->type = HEDDLE_DEVICE_VULKAN;
  memcpy(desc->name, info->name, sizeof desc->name);
  memcpy(desc->driver, info->driver, sizeof desc->driver);
  memcpy(desc->uuid, info->uuid, sizeof desc->uuid);
  desc->pci_domain = info->pci[0];
  desc->pci_bus = info->pci[1];
  desc->pci_device = info->pci[2];
  desc->pci_function = info->pci[3];
  desc->caps = HEDDLE_CAP_VIEWS;
  if (info->is_cpu) desc->caps |= HEDDLE_CAP_HOST_CORES;
  if (info->unified) desc->caps |= HEDDLE_CAP_UNIFIED;
  if (info->noncoherent) desc->caps |= HEDDLE_CAP_NONCOHERENT;
  if (info->unified && info->imports) desc->caps |= HEDDLE_CAP_IMPORT_UNIFIED;
  if (info->timeline) desc->caps |= HEDDLE_CAP_POLLED;
  desc->memory_bytes = info->memory_bytes;
  desc->max_buffer_bytes = info->max_buffer_bytes;
  desc->alignment = info->alignment;
  desc->import_alignment = info->import_alignment;
  desc->event_domain = (uint64_t)index + 1;
  desc->compute_units = info->compute_units;
  desc->max_streams = self->max_streams > 0 ? self->max_streams : info->is_cpu ? 2 : 4;
  return HEDDLE_OK;
}

static const heddle_psetting settings[] = {
    P_SETTING_SWITCH("driver", "1", "0 does without Vulkan"),
    P_SETTING_NUMBER("max_streams", "0", 0, 65536, "streams of a device; 0: what suits it"),
    P_SETTING_SWITCH("timeline", "1", "uses timeline semaphores where a device has them"),
    P_SETTING_SWITCH("unified", "1", "uses memory that host and device share"),
    P_SETTING_SWITCH("validate", "0", "loads the validation layer"),
    P_SETTING_PATH("validate_log", "", "file to which the messages of the validation layer are appended; off: none"),
    P_SETTING_SWITCH("fuse", "1", "elementwise chains become one step"),
    P_SETTING_PATH("cache_dir", "", "folder of the cache of pipelines; off: none"),
    P_SETTING_NUMBER("cache_bytes", "1073741824", 0, UINT64_MAX, "most bytes of that cache; 0: no limit"),
};

static const heddle_plugin table = {
    .struct_size = sizeof table,
    .abi_major = HEDDLE_ABI_MAJOR,
    .abi_minor = HEDDLE_ABI_MINOR,
    .features = P_FEATURES,
    .build = P_BUILD,
    .name = "vulkan",
    .close_instance = close_instance,
    .open_instance = open_instance,
    .device_count = device_count,
    .device_describe = device_describe,
    .device = &vlk_device_table,
    .memory = &vlk_memory_table,
    .copy = &vlk_copy_table,
    .stream = &vlk_stream_table,
    .event = &vlk_event_table,
    .fence = &vlk_fence_table,
    .op = &vlk_op_table,
    .module = &vlk_module_table,
    .capture = &vlk_capture_table,
    .timing = &vlk_timing_table,
    .settings = P_SETTINGS(settings),
};

const heddle_plugin *heddle_plugin_entry(const heddle_host *host, heddle_error *err) {
  if (host == NULL || host->abi_major != HEDDLE_ABI_MAJOR) {
    p_fail(err, HEDDLE_EABI, 0, "plugin vulkan is built for ABI %d, the host has %d", HEDDLE_ABI_MAJOR,
           host != NULL ? (int)host->abi_major : 0);
    return NULL;
  }
  return &table;
}
