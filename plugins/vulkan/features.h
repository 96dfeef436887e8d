/* The optional features and extensions of a device: asked for when it is described, and switched on, all that are of use,
 * when it is opened. */
#ifndef HEDDLE_PLUGINS_VULKAN_FEATURES_H
#define HEDDLE_PLUGINS_VULKAN_FEATURES_H

#include "vulkan.h"

/* Extensions that are used where a device has them; X(member, name). */
#define VLK_EXTENSIONS(X) \
  X(memory_host, "VK_EXT_external_memory_host") \
  X(calibrated, "VK_EXT_calibrated_timestamps") \
  X(pci, "VK_EXT_pci_bus_info") \
  X(portability, "VK_KHR_portability_subset") \
  X(driver_properties, "VK_KHR_driver_properties") \
  X(timeline, "VK_KHR_timeline_semaphore") \
  X(host_reset, "VK_EXT_host_query_reset") \
  X(storage8, "VK_KHR_8bit_storage") \
  X(float16_int8, "VK_KHR_shader_float16_int8") \
  X(scalar_layout, "VK_EXT_scalar_block_layout")

#define VLK_EXTENSION_MEMBER(member, name) bool member;
typedef struct vlk_extensions {
  VLK_EXTENSIONS(VLK_EXTENSION_MEMBER)
} vlk_extensions;

/* A chain that begins at base. From Vulkan 1.2 on the structs of its versions are in it, before those of extensions. */
typedef struct vlk_features {
  VkPhysicalDeviceFeatures2 base;
  VkPhysicalDeviceVulkan11Features v11;
  VkPhysicalDeviceVulkan12Features v12;
  VkPhysicalDevice16BitStorageFeatures storage16;
  VkPhysicalDevice8BitStorageFeatures storage8;
  VkPhysicalDeviceShaderFloat16Int8Features float16_int8;
  VkPhysicalDeviceTimelineSemaphoreFeatures timeline;
  VkPhysicalDeviceHostQueryResetFeatures host_reset;
  VkPhysicalDeviceScalarBlockLayoutFeatures scalar_layout;
} vlk_features;

/* Which of the extensions a device has. */
heddle_status vlk_extensions_of(heddle_pinstance *self, VkPhysicalDevice id, vlk_extensions *out, heddle_error *err);

/* What it has of the features that are used; all others are 0, as vkCreateDevice is given it. Not to be moved. */
void vlk_features_of(heddle_pinstance *self, VkPhysicalDevice id, uint32_t api_version, const vlk_extensions *has,
                     vlk_features *out);

#endif
