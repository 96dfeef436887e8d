/* Asking for extensions and features, and making a VkDevice with them. Features that cost something and are of no use
 * here, such as bounds checks of every access, stay off. */
#include "features.h"

heddle_status vlk_extensions_of(heddle_pinstance *self, VkPhysicalDevice id, vlk_extensions *out, heddle_error *err) {
  const heddle_host *host = self->host;
  uint32_t n = 0;
  memset(out, 0, sizeof *out);
  VkResult code = self->vk.EnumerateDeviceExtensionProperties(id, NULL, &n, NULL);
  if (code != VK_SUCCESS || n == 0) return vlk_check(NULL, code, "list a device's extensions", err);
  VkExtensionProperties *list = host->alloc(host->ctx, n * (uint64_t)sizeof *list, _Alignof(VkExtensionProperties));
  if (list == NULL) return p_fail(err, HEDDLE_ENOMEM, 0, "vulkan: no memory for a device's extensions");
  code = self->vk.EnumerateDeviceExtensionProperties(id, NULL, &n, list);
  for (uint32_t i = 0; i < n && code >= 0; i++) {
#define SEE(member, name) \
  if (strcmp(list[i].extensionName, name) == 0) out->member = true;
    VLK_EXTENSIONS(SEE)
#undef SEE
  }
  host->free(host->ctx, list);
  return vlk_check(NULL, code, "list a device's extensions", err);
}

static void link_struct(vlk_features *f, void *next) {
  VkBaseOutStructure *last = (VkBaseOutStructure *)&f->base;
  while (last->pNext != NULL) last = last->pNext;
  last->pNext = next;
}

/* Keeps of what a device has what is used. */
static void choose(vlk_features *f) {
  const VkPhysicalDeviceFeatures has = f->base.features;
  f->base.features = (VkPhysicalDeviceFeatures){
      .shaderFloat64 = has.shaderFloat64, .shaderInt64 = has.shaderInt64, .shaderInt16 = has.shaderInt16};
  const VkPhysicalDeviceVulkan11Features v11 = f->v11;
  f->v11 = (VkPhysicalDeviceVulkan11Features){
      .sType = v11.sType,
      .pNext = v11.pNext,
      .storageBuffer16BitAccess = v11.storageBuffer16BitAccess,
      .uniformAndStorageBuffer16BitAccess = v11.uniformAndStorageBuffer16BitAccess,
      .storagePushConstant16 = v11.storagePushConstant16,
      .variablePointersStorageBuffer = v11.variablePointersStorageBuffer,
      .variablePointers = v11.variablePointers,
  };
  const VkPhysicalDeviceVulkan12Features v12 = f->v12;
  f->v12 = (VkPhysicalDeviceVulkan12Features){
      .sType = v12.sType,
      .pNext = v12.pNext,
      .storageBuffer8BitAccess = v12.storageBuffer8BitAccess,
      .uniformAndStorageBuffer8BitAccess = v12.uniformAndStorageBuffer8BitAccess,
      .storagePushConstant8 = v12.storagePushConstant8,
      .shaderBufferInt64Atomics = v12.shaderBufferInt64Atomics,
      .shaderSharedInt64Atomics = v12.shaderSharedInt64Atomics,
      .shaderFloat16 = v12.shaderFloat16,
      .shaderInt8 = v12.shaderInt8,
      .scalarBlockLayout = v12.scalarBlockLayout,
      .uniformBufferStandardLayout = v12.uniformBufferStandardLayout,
      .shaderSubgroupExtendedTypes = v12.shaderSubgroupExtendedTypes,
      .hostQueryReset = v12.hostQueryReset,
      .timelineSemaphore = v12.timelineSemaphore,
      .vulkanMemoryModel = v12.vulkanMemoryModel,
      .vulkanMemoryModelDeviceScope = v12.vulkanMemoryModelDeviceScope,
  };
  f->storage16.storageInputOutput16 = VK_FALSE;
}

void vlk_features_of(heddle_pinstance *self, VkPhysicalDevice id, uint32_t api_version, const vlk_extensions *has,
                     vlk_features *f) {
  memset(f, 0, sizeof *f);
  f->base.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2;
  f->v11.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES;
  f->v12.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES;
  f->storage16.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_16BIT_STORAGE_FEATURES;
  f->storage8.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_8BIT_STORAGE_FEATURES;
  f->float16_int8.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_FLOAT16_INT8_FEATURES;
  f->timeline.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_TIMELINE_SEMAPHORE_FEATURES;
  f->host_reset.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_HOST_QUERY_RESET_FEATURES;
  f->scalar_layout.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SCALAR_BLOCK_LAYOUT_FEATURES;
  if (api_version >= VK_API_VERSION_1_2) {
    link_struct(f, &f->v11);
    link_struct(f, &f->v12);
  } else {
    link_struct(f, &f->storage16);
    if (has->storage8) link_struct(f, &f->storage8);
    if (has->float16_int8) link_struct(f, &f->float16_int8);
    if (has->timeline) link_struct(f, &f->timeline);
    if (has->host_reset) link_struct(f, &f->host_reset);
    if (has->scalar_layout) link_struct(f, &f->scalar_layout);
  }
  self->vk.GetPhysicalDeviceFeatures2(id, &f->base);
  choose(f);
}

static VkResult find_calls(heddle_pinstance *self, VkDevice device, vlk_device_calls *calls) {
#define FIND(name) \
  calls->name = (PFN_vk##name)self->vk.GetDeviceProcAddr(device, "vk" #name); \
  if (calls->name == NULL) return VK_ERROR_INITIALIZATION_FAILED;
#define FIND_EXTRA(name, second) \
  calls->name = (PFN_vk##name)self->vk.GetDeviceProcAddr(device, "vk" #name); \
  if (calls->name == NULL) calls->name = (PFN_vk##name)self->vk.GetDeviceProcAddr(device, "vk" #second);
  VLK_DEVICE_CALLS(FIND)
  VLK_DEVICE_EXTRAS(FIND_EXTRA)
#undef FIND
#undef FIND_EXTRA
  return VK_SUCCESS;
}

VkResult vlk_make_device(heddle_pinstance *self, const vlk_info *info, VkDevice *out, vlk_device_calls *calls) {
  static const float priorities[VLK_MOST_QUEUES] = {0.5F, 0.5F, 0.5F, 0.5F, 0.5F};
  const char *names[16];
  vlk_extensions has;
  vlk_features features;
  uint32_t n = 0;
  if (vlk_extensions_of(self, info->id, &has, NULL) != HEDDLE_OK) return VK_ERROR_OUT_OF_HOST_MEMORY;
  vlk_features_of(self, info->id, info->api_version, &has, &features);
#define ENABLE(member, name) \
  if (has.member) names[n++] = name;
  VLK_EXTENSIONS(ENABLE)
#undef ENABLE
  const VkDeviceQueueCreateInfo queues[2] = {{.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO,
                                              .queueFamilyIndex = info->family,
                                              .queueCount = info->n_queues,
                                              .pQueuePriorities = priorities},
                                             {.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO,
                                              .queueFamilyIndex = info->copy_family,
                                              .queueCount = 1,
                                              .pQueuePriorities = priorities}};
  const VkDeviceCreateInfo how = {.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO,
                                  .pNext = &features.base,
                                  .queueCreateInfoCount = info->copy_family != UINT32_MAX ? 2 : 1,
                                  .pQueueCreateInfos = queues,
                                  .enabledExtensionCount = n,
                                  .ppEnabledExtensionNames = names};
  VkResult code = self->vk.CreateDevice(info->id, &how, NULL, out);
  if (code != VK_SUCCESS) return code;
  code = find_calls(self, *out, calls);
  if (code != VK_SUCCESS && calls->DestroyDevice != NULL) calls->DestroyDevice(*out, NULL);
  return code;
}
