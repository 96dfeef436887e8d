/* What CUDA's attributes say of a device. */
#include "cuda.h"

/* CUdevice_attribute. */
enum {
  MAX_THREADS = 1,
  SHARED_BYTES = 8,
  WARP = 10,
  UNITS = 16,
  INTEGRATED = 18,
  MAPS_HOST = 19,
  COMPUTE_MODE = 20,
  MAJOR = 75,
  MINOR = 76,
  SHARED_BYTES_OPT_IN = 97, /* that a kernel may have which was asked to (cuFuncSetAttribute) */
  REGISTERS_HOST = 99,
  POOLS = 115
};
enum { COMPUTE_PROHIBITED = 2 };

/* absent where the driver does not know the attribute, as an older one may not. */
static uint32_t get(heddle_pinstance *self, const gpu_info *info, int attribute, uint32_t absent) {
  int value = 0;
  if (self->driver.device_attribute(&value, attribute, info->device) != 0 || value < 0) return absent;
  return (uint32_t)value;
}

heddle_status cuda_describe(heddle_pinstance *self, gpu_info *info, heddle_error *err) {
  info->major = get(self, info, MAJOR, 0);
  info->minor = get(self, info, MINOR, 0);
  if (info->major == 0)
    return p_fail(err, HEDDLE_ENODEV, 0, "cuda:%u: the driver does not say which architecture it is", info->index);
  snprintf(info->arch, sizeof info->arch, "sm_%u%u", info->major, info->minor);
  info->warp = get(self, info, WARP, 32);
  info->compute_units = get(self, info, UNITS, 1);
  info->max_group = get(self, info, MAX_THREADS, 1024);
  info->max_shared = get(self, info, SHARED_BYTES_OPT_IN, 0);
  if (info->max_shared == 0) info->max_shared = get(self, info, SHARED_BYTES, 48 << 10);
  info->alignment = 256;
  info->integrated = get(self, info, INTEGRATED, 0) != 0;
  info->maps_host = get(self, info, MAPS_HOST, 0) != 0;
  info->registers_host = get(self, info, REGISTERS_HOST, 0) != 0;
  info->pools = get(self, info, POOLS, 0) != 0;
  if (get(self, info, COMPUTE_MODE, 0) == COMPUTE_PROHIBITED)
    self->host->log(self->host->ctx, HEDDLE_LOG_WARN, "cuda",
                    "a device is set to refuse all work (nvidia-smi --compute-mode)");
  return HEDDLE_OK;
}
