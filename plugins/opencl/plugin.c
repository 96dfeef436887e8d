/* The opencl plugin: the devices of all OpenCL platforms behind the ICD loader. Here are the entry, the instance with
 * its settings, and the root table; each other table is in the file of its name.
 *
 * Settings: cache_dir (folder for built programs; off: they are built in each process), cache_always (1: programs of
 * PoCL, which has a cache of its own, are stored too), source_dir (folder that their
 * sources are written to; none: they are not), unified (0: no shared memory), peer (0: no copies between devices), fuse
 * (0: every node is a step of its own), max_streams, sub_devices (compute units of each part that devices are split
 * into), capture (0: never; 1: wherever the driver has command buffers; auto: there, but not on host cores), gpu_kernels
 * (1: the forms of kernels that GPUs get, on host cores too), clblast (clblast.c), driver (off: none is started). */
#include "opencl.h"

#include "plugins/common/chain.h"
#include "plugins/common/pbuild.h"
#include "plugins/common/setting.h"

#include <stdlib.h>

heddle_status ocl_new(const heddle_host *host, uint64_t bytes, const char *what, void **out, heddle_error *err) {
  void *p = host->alloc(host->ctx, bytes, _Alignof(max_align_t));
  if (p == NULL) {
    return p_fail(err, HEDDLE_ENOMEM, 0, "opencl: no memory for %s (%llu bytes)", what, (unsigned long long)bytes);
  }
  memset(p, 0, bytes);
  *out = p;
  return HEDDLE_OK;
}

bool ocl_setting(const heddle_host *host, const char *key, char *buf, uint64_t bytes) {
  return host->config(host->ctx, key, buf, bytes) > 0;
}

static heddle_status read_number(const heddle_host *host, const char *key, uint32_t absent, uint32_t *out,
                                 heddle_error *err) {
  char text[32], *end = text;
  *out = absent;
  if (!ocl_setting(host, key, text, sizeof text)) return HEDDLE_OK;
  const unsigned long value = strtoul(text, &end, 10);
  if (text[0] < '0' || text[0] > '9' || *end != '\0' || value > 65536)
    return p_fail(err, HEDDLE_EINVAL, 0, "opencl: setting %s: '%s' is no number from 0 to 65536", key, text);
  *out = (uint32_t)value;
  return HEDDLE_OK;
}

static heddle_status read_capture(heddle_pinstance *self, heddle_error *err) {
  char text[16];
  if (!ocl_setting(self->host, "capture", text, sizeof text) || strcmp(text, "auto") == 0) return HEDDLE_OK;
  bool on = false;
  if (!p_switch(text, &on))
    return p_fail(err, HEDDLE_EINVAL, 0, "opencl: setting capture: '%s' is none of auto, 0, 1", text);
  self->capture = on ? OCL_CAPTURE_ALWAYS : OCL_CAPTURE_NEVER;
  return HEDDLE_OK;
}

/* A folder; NULL where it is not given or off. */
static heddle_status read_folder(const heddle_host *host, const char *key, char **out, heddle_error *err) {
  const int64_t length = host->config(host->ctx, key, NULL, 0);
  void *memory = NULL;
  if (length <= 0) return HEDDLE_OK;
  heddle_status s = ocl_new(host, (uint64_t)length + 1, "a setting", &memory, err);
  if (s != HEDDLE_OK) return s;
  char *text = memory;
  host->config(host->ctx, key, text, (uint64_t)length + 1);
  const bool off = p_is_off(text);
  if (!off && text[0] != '/')
    s = p_fail(err, HEDDLE_EINVAL, 0, "opencl: setting %s: '%.200s' is no absolute path, and not off", key, text);
  if (!off && s == HEDDLE_OK) *out = text;
  else host->free(host->ctx, text);
  return s;
}

static heddle_status read_switch(const heddle_host *host, const char *key, bool absent, bool *out, heddle_error *err) {
  char text[16];
  *out = absent;
  if (!ocl_setting(host, key, text, sizeof text) || p_switch(text, out)) return HEDDLE_OK;
  return p_fail(err, HEDDLE_EINVAL, 0, "opencl: setting %s: '%s' is neither 0 nor 1", key, text);
}

static heddle_status read_settings(heddle_pinstance *self, heddle_error *err) {
  const heddle_host *host = self->host;
  char why[96];
  bool driver = true;
  heddle_status s = read_switch(host, "driver", true, &driver, err);
  if (s == HEDDLE_OK && !driver) return p_fail(err, HEDDLE_ENODEV, 0, "no OpenCL platform: the setting driver is off");
  if (s == HEDDLE_OK) s = read_number(host, "max_streams", 0, &self->max_streams, err);
  if (s == HEDDLE_OK) s = read_number(host, "sub_devices", 0, &self->sub_units, err);
  if (s == HEDDLE_OK) s = read_switch(host, "peer", true, &self->peer, err);
  if (s == HEDDLE_OK) s = read_switch(host, "unified", true, &self->unified, err);
  if (s == HEDDLE_OK) s = read_switch(host, "images", true, &self->images, err);
  if (s == HEDDLE_OK) s = read_switch(host, "gpu_kernels", false, &self->gpu_kernels, err);
  if (s == HEDDLE_OK) s = read_switch(host, "adopt_own", false, &self->adopt_own, err);
  if (s == HEDDLE_OK) s = heddle_chain_wanted(host, &self->fuse, err);
  if (s == HEDDLE_OK) s = read_capture(self, err);
  if (s == HEDDLE_OK) s = read_folder(host, "cache_dir", &self->cache_dir, err);
  if (s == HEDDLE_OK) s = read_switch(host, "cache_always", false, &self->cache_always, err);
  self->cache = (filecache){
      .host = host, .folder = self->cache_dir, .plugin = "opencl", .suffix = "clbin", .things = "built programs"};
  if (s == HEDDLE_OK && !filecache_limit(host, &self->cache.limit, why, sizeof why))
    s = p_fail(err, HEDDLE_EINVAL, 0, "opencl: %s", why);
  if (s == HEDDLE_OK) s = read_folder(host, "source_dir", &self->source_dir, err);
  return s;
}

static void close_instance(heddle_pinstance *self) {
  if (self == NULL) return;
  const heddle_host *host = self->host;
  ocl_forget_devices(self);
  host->free(host->ctx, self->cache_dir);
  host->free(host->ctx, self->source_dir);
  host->free(host->ctx, self->blas);
  pthread_mutex_destroy(&self->lock);
  host->free(host->ctx, self);
}

static heddle_status open_instance(const heddle_host *host, heddle_pinstance **out, heddle_error *err) {
  void *memory = NULL;
  heddle_status s = ocl_new(host, sizeof **out, "an instance", &memory, err);
  if (s != HEDDLE_OK) return s;
  heddle_pinstance *self = memory;
  self->host = host;
  if (pthread_mutex_init(&self->lock, NULL) != 0) {
    host->free(host->ctx, self);
    return p_fail(err, HEDDLE_ENOMEM, 0, "opencl: no lock for an instance");
  }
  s = read_settings(self, err);
  if (s == HEDDLE_OK) {
    host->log(
        host->ctx, HEDDLE_LOG_INFO, "opencl",
        "starts the OpenCL drivers; if the process ends here, one of them crashes: opencl.driver=off goes without");
    s = ocl_find_devices(self, err);
  }
  if (s == HEDDLE_OK) s = ocl_blas_open(self, err);
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
    return p_fail(err, HEDDLE_ENODEV, 0, "opencl:%u: there are %u devices", index, self->n_devices);
  const ocl_info *info = &self->devices[index];
  const bool host_cores = (info->type & CL_DEVICE_TYPE_CPU) != 0;
  desc->type = HEDDLE_DEVICE_OPENCL;
  memcpy(desc->name, info->name, sizeof desc->name);
  memcpy(desc->driver, info->driver, sizeof desc->driver);
  memcpy(desc->uuid, info->uuid, sizeof desc->uuid);
  desc->pci_domain = info->pci[0];
  desc->pci_bus = info->pci[1];
  desc->pci_device = info->pci[2];
  desc->pci_function = info->pci[3];
  desc->caps = HEDDLE_CAP_VIEWS;
  if (host_cores) desc->caps |= HEDDLE_CAP_HOST_CORES;
  if (info->unified) desc->caps |= HEDDLE_CAP_UNIFIED;
  desc->memory_bytes = info->memory_bytes;
  desc->max_buffer_bytes = info->max_buffer_bytes;
  desc->alignment = info->alignment;
  desc->import_alignment = 1;
  desc->event_domain = (uint64_t)info->platform + 1;
  desc->compute_units = info->compute_units;
  if (HEDDLE_HAS(heddle_pdevice_desc, desc, max_image_height)) {
    desc->max_image_width = (uint32_t)info->image[0];
    desc->max_image_height = (uint32_t)info->image[1];
  }
  desc->max_streams = self->max_streams > 0 ? self->max_streams : host_cores ? 2 : 4;
  return HEDDLE_OK;
}

static const heddle_psetting settings[] = {
    P_SETTING_SWITCH("driver", "1", "0 does without OpenCL"),
    P_SETTING_NUMBER("max_streams", "0", 0, 65536, "streams of a device; 0: what suits it"),
    P_SETTING_NUMBER("sub_devices", "0", 0, 65536, "splits each device into parts of that many compute units; 0: no"),
    P_SETTING_SWITCH("peer", "1", "copies between devices of a platform without the host"),
    P_SETTING_SWITCH("unified", "1", "uses memory that host and device share"),
    P_SETTING_SWITCH("images", "1", "gives kernels of modules images (textures) where a device has them"),
    P_SETTING_SWITCH("gpu_kernels", "0", "uses the kernels made for GPUs on the host's cores too"),
    P_SETTING_SWITCH("fuse", "1", "elementwise chains become one step"),
    P_SETTING_WORD("capture", "auto", "auto,1,0", "whether segments are recorded as command buffers"),
    P_SETTING_PATH("cache_dir", "", "folder of the cache of built programs; off: none"),
    P_SETTING_SWITCH("cache_always", "0", "stores programs of drivers that have a cache of their own (PoCL) there too"),
    P_SETTING_NUMBER("cache_bytes", "1073741824", 0, UINT64_MAX, "most bytes of that cache; 0: no limit"),
    P_SETTING_PATH("source_dir", "", "folder to which the sources of kernels are written; off: none"),
    P_SETTING_SWITCH("adopt_own", "0",
                     "for heddle check-plugin: streams of this plugin can be adopted by their address"),
    P_SETTING_WORD("clblast", "auto", "auto,1,0", "whether CLBlast computes matrix products"),
};

static const heddle_plugin table = {
    .struct_size = sizeof table,
    .abi_major = HEDDLE_ABI_MAJOR,
    .abi_minor = HEDDLE_ABI_MINOR,
    .features = P_FEATURES,
    .build = P_BUILD,
    .name = "opencl",
    .close_instance = close_instance,
    .open_instance = open_instance,
    .device_count = device_count,
    .device_describe = device_describe,
    .device = &ocl_device_table,
    .memory = &ocl_memory_table,
    .copy = &ocl_copy_table,
    .stream = &ocl_stream_table,
    .event = &ocl_event_table,
    .fence = &ocl_fence_table,
    .op = &ocl_op_table,
    .module = &ocl_module_table,
    .capture = &ocl_capture_table,
    .timing = &ocl_timing_table,
    .settings = P_SETTINGS(settings),
};

const heddle_plugin *heddle_plugin_entry(const heddle_host *host, heddle_error *err) {
  if (host == NULL || host->abi_major != HEDDLE_ABI_MAJOR) {
    p_fail(err, HEDDLE_EABI, 0, "plugin opencl is built for ABI %d, the host has %d", HEDDLE_ABI_MAJOR,
           host != NULL ? (int)host->abi_major : 0);
    return NULL;
  }
  return &table;
}
