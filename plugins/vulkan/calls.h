/* The functions of Vulkan that the plugin calls, as lists, and the tables of pointers made of them. libvulkan is opened
 * at run time, so nothing is linked; load.c fills the tables. */
#ifndef HEDDLE_PLUGINS_VULKAN_CALLS_H
#define HEDDLE_PLUGINS_VULKAN_CALLS_H

#define VK_NO_PROTOTYPES
#include <vulkan/vulkan_core.h>

/* X(name): found without an instance. */
#define VLK_LOADER_CALLS(X) \
  X(CreateInstance) \
  X(EnumerateInstanceVersion) X(EnumerateInstanceExtensionProperties) X(EnumerateInstanceLayerProperties)

/* clang-format off */
/* X(name): of an instance of Vulkan 1.1. */
#define VLK_INSTANCE_CALLS(X) \
  X(DestroyInstance) \
  X(EnumeratePhysicalDevices) \
  X(GetPhysicalDeviceProperties2) X(GetPhysicalDeviceFeatures2) X(GetPhysicalDeviceProperties) \
      X(GetPhysicalDeviceMemoryProperties2) X(GetPhysicalDeviceQueueFamilyProperties) \
          X(EnumerateDeviceExtensionProperties) X(CreateDevice) X(GetDeviceProcAddr)

/* X(name): NULL where the instance has no such extension. */
#define VLK_INSTANCE_EXTRAS(X) \
  X(CreateDebugUtilsMessengerEXT) X(DestroyDebugUtilsMessengerEXT) X(GetPhysicalDeviceCalibrateableTimeDomainsEXT)

/* X(name): of a device of Vulkan 1.1. */
#define VLK_DEVICE_CALLS(X) \
  X(DestroyDevice) \
  X(GetDeviceQueue) \
  X(QueueSubmit) X(AllocateMemory) X(FreeMemory) X(MapMemory) X(UnmapMemory) X(FlushMappedMemoryRanges) \
      X(InvalidateMappedMemoryRanges) X(CreateBuffer) X(DestroyBuffer) X(BindBufferMemory) \
          X(GetBufferMemoryRequirements) X(CreateFence) X(DestroyFence) X(ResetFences) X(WaitForFences) \
              X(DeviceWaitIdle) X(CreateSemaphore) X(DestroySemaphore) X(CreateCommandPool) X(DestroyCommandPool) \
                  X(AllocateCommandBuffers) X(FreeCommandBuffers) X(BeginCommandBuffer) X(EndCommandBuffer) \
                      X(CmdBindPipeline) X(CmdBindDescriptorSets) X(CmdPushConstants) X(CmdDispatch) X(CmdCopyBuffer) \
                          X(CmdFillBuffer) X(CmdPipelineBarrier) X(CmdResetQueryPool) X(CmdWriteTimestamp) \
                              X(CreateQueryPool) X(DestroyQueryPool) X(GetQueryPoolResults) X(CreateShaderModule) \
                                  X(DestroyShaderModule) X(CreatePipelineCache) X(DestroyPipelineCache) \
                                      X(GetPipelineCacheData) X(CreateComputePipelines) X(DestroyPipeline) \
                                          X(CreatePipelineLayout) X(DestroyPipelineLayout) \
                                              X(CreateDescriptorSetLayout) X(DestroyDescriptorSetLayout) \
                                                  X(CreateDescriptorPool) X(DestroyDescriptorPool) \
                                                      X(AllocateDescriptorSets) X(FreeDescriptorSets) \
                                                          X(UpdateDescriptorSets)

/* X(name, second): of Vulkan 1.2 or an extension, where the function has the second name; NULL where there is neither. */
#define VLK_DEVICE_EXTRAS(X) \
  X(WaitSemaphores, WaitSemaphoresKHR) \
  X(GetSemaphoreCounterValue, GetSemaphoreCounterValueKHR) \
  X(ResetQueryPool, ResetQueryPoolEXT) X(GetMemoryHostPointerPropertiesEXT, GetMemoryHostPointerPropertiesEXT) \
      X(GetCalibratedTimestampsEXT, GetCalibratedTimestampsEXT)
/* clang-format on */

#define VLK_POINTER(name) PFN_vk##name name;
#define VLK_POINTER_EXTRA(name, second) PFN_vk##name name;

/* Of an instance. */
typedef struct vlk_calls {
  PFN_vkGetInstanceProcAddr GetInstanceProcAddr;
  VLK_LOADER_CALLS(VLK_POINTER)
  VLK_INSTANCE_CALLS(VLK_POINTER)
  VLK_INSTANCE_EXTRAS(VLK_POINTER)
} vlk_calls;

/* Of a device: they go to the driver without the loader between. */
typedef struct vlk_device_calls {
  VLK_DEVICE_CALLS(VLK_POINTER)
  VLK_DEVICE_EXTRAS(VLK_POINTER_EXTRA)
} vlk_device_calls;

#endif
