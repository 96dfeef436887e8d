/* What a device is, from HIP's attributes, whose numbers are the same in HIP 5.2 to 6.3, and its architecture's
 * name, which only the struct of properties has. That struct changed with HIP 6, which gave the call for the new one
 * a name of its own: the plugin takes the name from where either has it, out of more room than both need. */
#include "rocm.h"

/* hipDeviceAttribute_t. */
enum {
  ATTRIBUTE_CAN_MAP_HOST = 3,
  ATTRIBUTE_INTEGRATED = 16,
  ATTRIBUTE_GROUP = 56,
  ATTRIBUTE_UNITS = 63,
  ATTRIBUTE_SHARED = 74,
  ATTRIBUTE_WARP = 87,
  ATTRIBUTE_POOLS = 88
};

/* Of the struct of properties. HIP 6 has 1,472 bytes, HIP 5.2 792. */
enum { PROPERTIES_BYTES = 16384, ARCH_BYTES = 256 };

static int attribute(const heddle_pinstance *self, const gpu_info *info, int what, int absent) {
  int value = 0;
  return self->driver.device_attribute(&value, what, info->device) == ROCM_SUCCESS ? value : absent;
}

static heddle_status find_arch(heddle_pinstance *self, gpu_info *info, heddle_error *err) {
  const rocm_own *own = rocm_of(self);
  void *memory = NULL;
  char words[128];
  heddle_status s = gpu_new(self->host, PROPERTIES_BYTES, "a device's properties", &memory, err);
  if (s != HEDDLE_OK) return s;
  const int code = own->calls.properties(memory, info->device);
  const char *name = (const char *)memory + own->arch_at;
  if (code != ROCM_SUCCESS) {
    rocm_code_words(self, code, words, sizeof words);
    s = p_fail(err, HEDDLE_ENODEV, code, "rocm: device %d has no properties: %s", info->device, words);
  } else if (strncmp(name, "gfx", 3) != 0 || memchr(name, '\0', ARCH_BYTES) == NULL ||
             strlen(name) >= sizeof info->arch) {
    s = p_fail(err, HEDDLE_ENODEV, 0,
               "rocm: device %d names no architecture where HIP %d keeps it: this version of HIP is not known",
               info->device, self->driver_version / 10000000);
  } else {
    snprintf(info->arch, sizeof info->arch, "%s", name);
  }
  self->host->free(self->host->ctx, memory);
  return s;
}

heddle_status rocm_describe(heddle_pinstance *self, gpu_info *info, heddle_error *err) {
  heddle_status s = find_arch(self, info, err);
  if (s != HEDDLE_OK) return s;
  info->warp = (uint32_t)attribute(self, info, ATTRIBUTE_WARP, 64);
  info->compute_units = (uint32_t)attribute(self, info, ATTRIBUTE_UNITS, 1);
  info->max_group = (uint32_t)attribute(self, info, ATTRIBUTE_GROUP, 256);
  info->max_shared = (uint32_t)attribute(self, info, ATTRIBUTE_SHARED, 65536);
  info->alignment = 256;
  snprintf(info->driver, sizeof info->driver, "HIP %d.%d, %s", self->driver_version / 10000000,
           self->driver_version / 100000 % 100, info->arch);
  info->major = 0;
  info->minor = 0;
  info->pools = attribute(self, info, ATTRIBUTE_POOLS, 0) > 0 && self->driver.alloc_from != NULL &&
                self->driver.free_async != NULL;
  info->integrated = attribute(self, info, ATTRIBUTE_INTEGRATED, 0) > 0;
  info->maps_host = attribute(self, info, ATTRIBUTE_CAN_MAP_HOST, 0) > 0 && self->driver.host_address != NULL;
  info->registers_host = self->driver.host_register != NULL && self->driver.host_unregister != NULL;
  return HEDDLE_OK;
}
