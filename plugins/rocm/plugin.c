/* The rocm plugin: AMD's GPUs through HIP 5.2 to 6.x, which is opened at run time. It is the folder
 * plugins/common/gpu over HIP; here are the entry, the root table, and what HIP has under arguments of its own.
 *
 * Settings: those of plugins/common/gpu/instance.c, and of hiprtc.c. */
#include "rocm.h"

#include "plugins/common/gpu/entry.h"

#include <dlfcn.h>

/* POSIX has dlsym give functions as void *, which ISO C cannot cast. */
static bool find_call(void *library, const char *name, void *member, size_t bytes) {
  void *symbol = dlsym(library, name);
  memcpy(member, &symbol, bytes);
  return symbol != NULL;
}

static heddle_status find_calls(heddle_pinstance *self, rocm_own *own, heddle_error *err) {
  rocm_calls *c = &own->calls;
  const char *missing = NULL;
  const struct {
    const char *name;
    void *member;
  } calls[] = {
      {"hipGetDevice", &c->get_device},
      {"hipSetDevice", &c->set_device},
      {"hipGetErrorName", &c->error_name},
      {"hipGetErrorString", &c->error_string},
      {"hipDeviceEnablePeerAccess", &c->enable_peer},
      {"hipMemcpyPeerAsync", &c->copy_peer},
      {"hipGraphInstantiate", &c->instantiate},
  };
  for (size_t i = 0; i < sizeof calls / sizeof calls[0] && missing == NULL; i++) {
    if (!find_call(self->driver.library, calls[i].name, calls[i].member, sizeof c->get_device)) missing = calls[i].name;
  }
  find_call(self->driver.library, "hipMemPoolSetAccess", &c->pool_access, sizeof c->pool_access);
  own->arch_at = 1160;
  if (!find_call(self->driver.library, "hipGetDevicePropertiesR0600", &c->properties, sizeof c->properties)) {
    own->arch_at = 396;
    if (!find_call(self->driver.library, "hipGetDeviceProperties", &c->properties, sizeof c->properties))
      missing = "hipGetDeviceProperties";
  }
  if (missing == NULL) return HEDDLE_OK;
  return p_fail(err, HEDDLE_ENODEV, 0, "no HIP device: HIP's library has no %s: the driver is older than ROCm 5.2",
                missing);
}

static heddle_status vendor_open(heddle_pinstance *self, heddle_error *err) {
  void *memory = NULL;
  heddle_status s = gpu_new(self->host, sizeof(rocm_own), "HIP's calls", &memory, err);
  if (s != HEDDLE_OK) return s;
  rocm_own *own = memory;
  if (pthread_mutex_init(&own->lock, NULL) != 0) {
    self->host->free(self->host->ctx, own);
    return p_fail(err, HEDDLE_ENOMEM, 0, "rocm: no lock for an instance");
  }
  self->own = own;
  s = find_calls(self, own, err);
  return s == HEDDLE_OK ? rocm_hiprtc_open(self, err) : s;
}

static void vendor_close(heddle_pinstance *self) {
  rocm_own *own = rocm_of(self);
  if (own == NULL) return;
  rocm_hiprtc_close(self);
  pthread_mutex_destroy(&own->lock);
  self->host->free(self->host->ctx, own);
  self->own = NULL;
}

static const char *const libraries[] = {"libamdhip64.so.6", "libamdhip64.so.5", "libamdhip64.so.7", "libamdhip64.so",
                                        NULL};

static const gpu_vendor vendor = {
    .name = "rocm",
    .api = "HIP",
    .device_type = HEDDLE_DEVICE_ROCM,
    .libraries = libraries,
    .symbols = rocm_symbols,
    .formats = "hsaco,hip",
    .launch_limit_x = 0x03ffffff, /* HIP counts items, not groups, in 32 bits; a group of ours has 64 */
    .open = vendor_open,
    .close = vendor_close,
    .code_words = rocm_code_words,
    .fate = rocm_fate,
    .describe = rocm_describe,
    .context_get = rocm_context_get,
    .context_put = rocm_context_put,
    .enter = rocm_enter,
    .leave = rocm_leave,
    .peer_enable = rocm_peer_enable,
    .peer_copy = rocm_peer_copy,
    .instantiate = rocm_instantiate,
    .compile = rocm_compile,
    .compiler_words = rocm_compiler_words,
    .library = &rocm_libraries,
    .can_compile = rocm_can_compile,
    .needs = "ROCm 5.2",
};

static heddle_status open_instance(const heddle_host *host, heddle_pinstance **out, heddle_error *err) {
  return gpu_open_instance(&vendor, host, out, err);
}

static const heddle_psetting settings[] = {
    GPU_SETTINGS,
    P_SETTING_PATH("hiprtc", "", "the library of hiprtc, which compiles the kernels; none: looked for; off: none"),
    P_SETTING_PATH("hiprtc_helper", "", "the program that runs hiprtc; none: the one beside the plugin"),
    P_SETTING_NUMBER("hiprtc_seconds", "120", 1, 86400, "most seconds of one compilation"),
    P_SETTING_PATH("rocblas", "", "the library of rocBLAS; none: looked for; off: not used"),
};

static const heddle_plugin table = GPU_PLUGIN("rocm", open_instance, settings);

const heddle_plugin *heddle_plugin_entry(const heddle_host *host, heddle_error *err) {
  return gpu_plugin_entry(&table, host, err);
}
