/* Vulkan's codes: the text and the status of ours for each, and the sticky fault of a device. */
#include "vulkan.h"

#define NAME(code) \
  case code: return #code;

const char *vlk_code_name(VkResult code) {
  switch ((int)code) {
    NAME(VK_SUCCESS)
    NAME(VK_NOT_READY)
    NAME(VK_TIMEOUT)
    NAME(VK_INCOMPLETE)
    NAME(VK_ERROR_OUT_OF_HOST_MEMORY)
    NAME(VK_ERROR_OUT_OF_DEVICE_MEMORY)
    NAME(VK_ERROR_INITIALIZATION_FAILED)
    NAME(VK_ERROR_DEVICE_LOST)
    NAME(VK_ERROR_MEMORY_MAP_FAILED)
    NAME(VK_ERROR_LAYER_NOT_PRESENT)
    NAME(VK_ERROR_EXTENSION_NOT_PRESENT)
    NAME(VK_ERROR_FEATURE_NOT_PRESENT)
    NAME(VK_ERROR_INCOMPATIBLE_DRIVER)
    NAME(VK_ERROR_TOO_MANY_OBJECTS)
    NAME(VK_ERROR_FORMAT_NOT_SUPPORTED)
    NAME(VK_ERROR_FRAGMENTED_POOL)
    NAME(VK_ERROR_UNKNOWN)
    NAME(VK_ERROR_OUT_OF_POOL_MEMORY)
    NAME(VK_ERROR_INVALID_EXTERNAL_HANDLE)
    NAME(VK_ERROR_FRAGMENTATION)
    NAME(VK_ERROR_INVALID_SHADER_NV)
  default: return "an unknown code";
  }
}

static heddle_status status_of(VkResult code) {
  switch ((int)code) {
  case VK_ERROR_OUT_OF_HOST_MEMORY:
  case VK_ERROR_OUT_OF_DEVICE_MEMORY:
  case VK_ERROR_TOO_MANY_OBJECTS:
  case VK_ERROR_OUT_OF_POOL_MEMORY:
  case VK_ERROR_FRAGMENTED_POOL:
  case VK_ERROR_FRAGMENTATION:
  case VK_ERROR_MEMORY_MAP_FAILED: return HEDDLE_ENOMEM;
  case VK_ERROR_DEVICE_LOST: return HEDDLE_EDEVICE;
  case VK_ERROR_INVALID_SHADER_NV: return HEDDLE_ECOMPILE;
  default: return HEDDLE_EFAILED;
  }
}

/* Keeps the first fault. */
static void set_fault(heddle_pdevice *dev, const heddle_error *fault) {
  pthread_mutex_lock(&dev->lock);
  const bool first = !atomic_load(&dev->faulted);
  if (first) {
    dev->fault = *fault;
    atomic_store(&dev->faulted, true);
  }
  pthread_mutex_unlock(&dev->lock);
  if (first) dev->host->device_fault(dev->host->ctx, dev->cookie, fault->api_code, fault->text);
}

heddle_status vlk_check(heddle_pdevice *dev, VkResult code, const char *what, heddle_error *err) {
  heddle_error own;
  if (code >= 0) return HEDDLE_OK; /* the positive ones are answers, which the caller has seen */
  if (err == NULL) err = &own;
  const heddle_status s = status_of(code);
  if (dev == NULL) return p_fail(err, s, code, "vulkan: %s: %s (%d)", what, vlk_code_name(code), (int)code);
  p_fail(err, s, code, "vulkan:%u: %s: %s (%d)", dev->index, what, vlk_code_name(code), (int)code);
  if (s == HEDDLE_EDEVICE) set_fault(dev, err);
  return s;
}

heddle_status vlk_health(heddle_pdevice *dev, heddle_error *err) {
  if (!atomic_load_explicit(&dev->faulted, memory_order_acquire)) return HEDDLE_OK;
  if (err != NULL) *err = dev->fault; /* written before faulted, and never again */
  return HEDDLE_EDEVICE;
}
