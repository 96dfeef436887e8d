/* The entry, the instance with its settings, and what the device is. */
#include "npu.h"

#include "plugins/common/pbuild.h"
#include "plugins/common/setting.h"

#include <stdlib.h>
#include <time.h>

/* A setting that is a whole number in [low, high]. */
static heddle_status number(const heddle_host *host, const char *key, uint64_t low, uint64_t high, uint64_t *out,
                            heddle_error *err) {
  char text[32], *end;
  const int64_t length = host->config(host->ctx, key, text, sizeof text);
  if (length < 0) return HEDDLE_OK;
  const unsigned long long value = length > 0 && length < (int64_t)sizeof text ? strtoull(text, &end, 10) : high + 1;
  if (value > high || value < low || *end != '\0' || text[0] == '-')
    return p_fail(err, HEDDLE_EINVAL, 0, "npu: the setting %s is a whole number from %llu to %llu", key,
                  (unsigned long long)low, (unsigned long long)high);
  *out = value;
  return HEDDLE_OK;
}

static void close_instance(heddle_pinstance *self) {
  if (self == NULL) return;
  pthread_cond_destroy(&self->done);
  pthread_cond_destroy(&self->work);
  pthread_mutex_destroy(&self->lock);
  self->host->free(self->host->ctx, self);
}

static heddle_status open_instance(const heddle_host *host, heddle_pinstance **out, heddle_error *err) {
  uint64_t mb = 16, fault_at = 0, hang_at = 0, lose_at = UINT64_MAX;
  pthread_condattr_t monotonic;
  heddle_status s = number(host, "dram_mb", 1, 4096, &mb, err);
  if (s == HEDDLE_OK) s = number(host, "fault_at", 0, UINT32_MAX, &fault_at, err);
  if (s == HEDDLE_OK) s = number(host, "hang_at", 0, UINT32_MAX, &hang_at, err);
  if (s == HEDDLE_OK) s = number(host, "lose_on_fill", 0, UINT32_MAX, &lose_at, err);
  if (s != HEDDLE_OK) return s;
  heddle_pinstance *self = npu_new(host, sizeof *self);
  if (self == NULL) return p_fail(err, HEDDLE_ENOMEM, 0, "npu: no memory for an instance");
  self->host = host;
  self->dram_bytes = mb << 20;
  self->fault_at = fault_at;
  self->hang_at = hang_at;
  self->lose_at = lose_at;
  int code = pthread_condattr_init(&monotonic);
  if (code == 0) code = pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
  if (code == 0) code = pthread_mutex_init(&self->lock, NULL);
  if (code == 0) code = pthread_cond_init(&self->work, &monotonic);
  if (code == 0) code = pthread_cond_init(&self->done, &monotonic);
  if (code != 0) {
    host->free(host->ctx, self);
    return p_fail(err, HEDDLE_ENOMEM, code, "npu: no lock for an instance (errno %d)", code);
  }
  pthread_condattr_destroy(&monotonic);
  *out = self;
  return HEDDLE_OK;
}

static heddle_status device_count(heddle_pinstance *self, uint32_t *out, heddle_error *err) {
  (void)self, (void)err;
  *out = 1;
  return HEDDLE_OK;
}

static heddle_status device_describe(heddle_pinstance *self, uint32_t index, heddle_pdevice_desc *desc,
                                     heddle_error *err) {
  if (index != 0) return p_fail(err, HEDDLE_ENODEV, 0, "npu:%u: there is one device, npu:0", index);
  desc->type = HEDDLE_DEVICE_EXT;
  snprintf(desc->name, sizeof desc->name, "int8 accelerator, %d x %d, simulated", NPU_LANES, NPU_LANES);
  snprintf(desc->driver, sizeof desc->driver, "npu 1");
  desc->pci_domain = desc->pci_bus = desc->pci_device = desc->pci_function = UINT32_MAX;
  desc->caps = HEDDLE_CAP_HOST_CORES; /* a real one would leave this out, and be used unasked */
  desc->memory_bytes = desc->max_buffer_bytes = self->dram_bytes;
  desc->alignment = NPU_ALIGNMENT;
  desc->compute_units = 1;
  desc->max_streams = 2;
  return HEDDLE_OK;
}

static const heddle_psetting settings[] = {
    P_SETTING_NUMBER("dram_mb", "16", 1, 4096, "memory of the device, in MiB"),
    P_SETTING_NUMBER("fault_at", "0", 0, UINT32_MAX, "the n-th program of a device ends in a bus error; 0: none"),
    P_SETTING_NUMBER("hang_at", "0", 0, UINT32_MAX, "the n-th program of a device does not end; 0: none"),
    P_SETTING_NUMBER("lose_on_fill", "", 0, UINT32_MAX,
                     "for heddle check-plugin: a fill with this word loses the device"),
};

static const heddle_plugin table = {
    .struct_size = sizeof table,
    .abi_major = HEDDLE_ABI_MAJOR,
    .abi_minor = HEDDLE_ABI_MINOR,
    .features = P_FEATURES,
    .build = P_BUILD,
    .name = "npu",
    .close_instance = close_instance,
    .open_instance = open_instance,
    .device_count = device_count,
    .device_describe = device_describe,
    .device = &npu_device_table,
    .memory = &npu_memory_table,
    .copy = &npu_copy_table,
    .stream = &npu_stream_table,
    .event = &npu_event_table,
    .fence = &npu_fence_table,
    .op = &npu_op_table,
    .timing = &npu_timing_table,
    .settings = P_SETTINGS(settings),
};

HEDDLE_PLUGIN_EXPORT const heddle_plugin *heddle_plugin_entry(const heddle_host *host, heddle_error *err) {
  if (host != NULL && host->abi_major == HEDDLE_ABI_MAJOR) return &table;
  p_fail(err, HEDDLE_EABI, 0, "plugin npu is built for ABI %d, the host has %d", HEDDLE_ABI_MAJOR,
         host != NULL ? (int)host->abi_major : 0);
  return NULL;
}
