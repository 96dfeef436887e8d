/* The cpu plugin: the host's processor as an inline device, on the reference kernels of plugins/common/ref and, where
 * it is built in, oneDNN. Here are the entry, the instance and the root table; each other table is in the file of its
 * name.
 *
 * Settings: fuse (0: every node is a step of its own), onednn (onednn_engine.c), winograd (winograd_plan.c). */
#include "cpu.h"
#include "wide.h"

#include "plugins/common/chain.h"
#include "plugins/common/pbuild.h"
#include "plugins/common/setting.h"

static void close_instance(heddle_pinstance *self) {
  if (self == NULL) return;
  onednn_close(self->onednn);
  self->host->free(self->host->ctx, self);
}

static heddle_status open_instance(const heddle_host *host, heddle_pinstance **out, heddle_error *err) {
  void *self = NULL;
  bool fuse = true;
  heddle_status s = heddle_chain_wanted(host, &fuse, err);
  if (s == HEDDLE_OK) s = cpu_new(host, sizeof **out, "an instance", &self, err);
  if (s != HEDDLE_OK) return s;
  heddle_pinstance *instance = self;
  instance->host = host;
  instance->fuse = fuse;
  atomic_flag_clear(&instance->told);
  s = onednn_open(host, &instance->onednn, err);
  if (s == HEDDLE_OK) *out = instance;
  else close_instance(instance);
  return s;
}

static heddle_status device_count(heddle_pinstance *self, uint32_t *out, heddle_error *err) {
  (void)self, (void)err;
  *out = 1;
  return HEDDLE_OK;
}

static heddle_status device_describe(heddle_pinstance *self, uint32_t index, heddle_pdevice_desc *desc,
                                     heddle_error *err) {
  if (index != 0) return p_fail(err, HEDDLE_ENODEV, 0, "cpu:%u: there is one cpu device, cpu:0", index);
  cpu_describe(self->host, desc);
  onednn_describe(self->onednn, desc->driver, sizeof desc->driver);
  return HEDDLE_OK;
}

static const heddle_psetting settings[] = {
    P_SETTING_SWITCH("fuse", "1", "elementwise chains, and products with what follows them, become one step"),
#ifdef HEDDLE_ONEDNN
    P_SETTING_WORD("onednn", "auto", "auto,always,off", "whether oneDNN computes what it can"),
    P_SETTING_WORD("winograd", "auto", "auto,always,off", "whether convolutions use Winograd's transform"),
#endif
};

static const heddle_plugin table = {
    .struct_size = sizeof table,
    .abi_major = HEDDLE_ABI_MAJOR,
    .abi_minor = HEDDLE_ABI_MINOR,
    .features = P_FEATURES,
    .build = P_BUILD,
    .name = "cpu",
    .close_instance = close_instance,
    .open_instance = open_instance,
    .device_count = device_count,
    .device_describe = device_describe,
    .device = &cpu_device_table,
    .memory = &cpu_memory_table,
    .copy = &cpu_copy_table,
    .stream = &cpu_stream_table,
    .op = &cpu_op_table,
#ifdef HEDDLE_ONEDNN
    .layout = &wide_layout_table,
#endif
    .timing = &cpu_timing_table,
    .settings = P_SETTINGS(settings),
};

const heddle_plugin *heddle_plugin_entry(const heddle_host *host, heddle_error *err) {
  if (host == NULL || host->abi_major != HEDDLE_ABI_MAJOR) {
    p_fail(err, HEDDLE_EABI, 0, "plugin cpu is built for ABI %d, the host has %d", HEDDLE_ABI_MAJOR,
           host != NULL ? (int)host->abi_major : 0);
    return NULL;
  }
  return &table;
}

heddle_status cpu_new(const heddle_host *host, uint64_t bytes, const char *what, void **out, heddle_error *err) {
  void *p = host->alloc(host->ctx, bytes, _Alignof(max_align_t));
  if (p == NULL) {
    p_fail(err, HEDDLE_ENOMEM, 0, "cpu: no memory for %s (%llu bytes)", what, (unsigned long long)bytes);
    return HEDDLE_ENOMEM;
  }
  memset(p, 0, bytes);
  *out = p;
  return HEDDLE_OK;
}
