/* Finding the devices and what each is: limits, memory, queues, features. Devices of Vulkan 1.0, and those without a
 * queue that computes, are passed over. */
#include "features.h"

enum { MOST_DEVICES = 64, MOST_FAMILIES = 32 };

/* ---------------------------------------------------------------- memory */

/* Of the allowed types (a bit each) the one that has all of need, none of what only special buffers use, and the best score;
 * UINT32_MAX: none. */
static uint32_t pick(const VkPhysicalDeviceMemoryProperties *memory, uint32_t allowed, VkMemoryPropertyFlags need,
                     const VkMemoryPropertyFlags *wanted, const VkMemoryPropertyFlags *unwanted) {
  const VkMemoryPropertyFlags usual = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT | VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT |
                                      VK_MEMORY_PROPERTY_HOST_COHERENT_BIT | VK_MEMORY_PROPERTY_HOST_CACHED_BIT;
  uint32_t best = UINT32_MAX;
  int best_score = -1;
  for (uint32_t i = 0; i < memory->memoryTypeCount; i++) {
    const VkMemoryPropertyFlags flags = memory->memoryTypes[i].propertyFlags;
    if ((allowed >> i & 1) == 0 || (flags & need) != need || (flags & ~usual) != 0) continue;
    int score = 0;
    for (int k = 0; k < 2; k++) { /* the first counts more */
      score = 2 * score + ((flags & wanted[k]) == wanted[k]);
      score = 2 * score + ((flags & unwanted[k]) == 0);
    }
    if (score <= best_score) continue; /* of equal ones the first, which the driver likes better */
    best_score = score;
    best = i;
  }
  return best;
}

/* By HEDDLE_MEMORY_*. coherent_pinned: PINNED memory is promised to be so. */
static void pick_types(const VkPhysicalDeviceMemoryProperties *m, uint32_t allowed, bool shares, bool coherent_pinned,
                       uint32_t *out) {
  const VkMemoryPropertyFlags local = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT;
  const VkMemoryPropertyFlags visible = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT;
  const VkMemoryPropertyFlags coherent = VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
  const VkMemoryPropertyFlags cached = VK_MEMORY_PROPERTY_HOST_CACHED_BIT;
  const VkMemoryPropertyFlags none[2] = {0, 0};
  out[HEDDLE_MEMORY_UNIFIED] =
      shares ? pick(m, allowed, local | visible | coherent, (const VkMemoryPropertyFlags[]){cached, 0}, none)
             : UINT32_MAX;
  out[HEDDLE_MEMORY_PINNED] =
      pick(m, allowed, visible | (coherent_pinned ? coherent : 0), (const VkMemoryPropertyFlags[]){cached, coherent},
           (const VkMemoryPropertyFlags[]){0, local});
  out[HEDDLE_MEMORY_DEVICE] = out[HEDDLE_MEMORY_UNIFIED] != UINT32_MAX
                                  ? out[HEDDLE_MEMORY_UNIFIED]
                                  : pick(m, allowed, local, none, (const VkMemoryPropertyFlags[]){visible, 0});
}

heddle_status vlk_choose_memory(heddle_pdevice *dev, uint32_t allowed, heddle_error *err) {
  const vlk_info *info = dev->info;
  pick_types(&info->memory, allowed, info->unified, !info->noncoherent, dev->memory_types);
  const bool unified = dev->memory_types[HEDDLE_MEMORY_UNIFIED] != UINT32_MAX;
  if (dev->memory_types[HEDDLE_MEMORY_PINNED] != UINT32_MAX && dev->memory_types[HEDDLE_MEMORY_DEVICE] != UINT32_MAX &&
      unified == info->unified)
    return HEDDLE_OK;
  return p_fail(err, HEDDLE_EUNSUPPORTED, 0,
                "vulkan:%u: buffers of the device may lie in no type of memory that suits them (they may in 0x%x)%s",
                dev->index, allowed, info->unified ? "; vulkan.unified=0 does without shared memory" : "");
}

static void choose_memory(vlk_info *out, bool shares) {
  const VkMemoryPropertyFlags coherent = VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
  const VkPhysicalDeviceMemoryProperties *m = &out->memory;
  pick_types(m, UINT32_MAX, shares && out->integrated, false, out->memory_types);
  out->unified = out->memory_types[HEDDLE_MEMORY_UNIFIED] != UINT32_MAX;
  if (out->memory_types[HEDDLE_MEMORY_PINNED] != UINT32_MAX)
    out->noncoherent = (m->memoryTypes[out->memory_types[HEDDLE_MEMORY_PINNED]].propertyFlags & coherent) == 0;
  for (uint32_t i = 0; i < m->memoryHeapCount; i++) {
    const VkMemoryHeap *heap = &m->memoryHeaps[i];
    if ((heap->flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT) != 0 && heap->size > out->memory_bytes)
      out->memory_bytes = heap->size;
  }
}

/* ---------------------------------------------------------------- queues */

/* A family that computes and does not draw has queues of its own on a GPU, so it comes first. */
static bool choose_queues(heddle_pinstance *self, vlk_info *out) {
  VkQueueFamilyProperties families[MOST_FAMILIES];
  uint32_t n = MOST_FAMILIES;
  int best = -1;
  self->vk.GetPhysicalDeviceQueueFamilyProperties(out->id, &n, families);
  out->copy_family = UINT32_MAX;
  for (uint32_t i = 0; i < n; i++) {
    const VkQueueFlags flags = families[i].queueFlags;
    const int score = (flags & VK_QUEUE_COMPUTE_BIT) == 0 ? -1 : (flags & VK_QUEUE_GRAPHICS_BIT) == 0 ? 1 : 0;
    if (families[i].queueCount == 0 || score <= best) continue;
    best = score;
    out->family = i;
    out->n_queues = families[i].queueCount < VLK_MOST_QUEUES - 1 ? families[i].queueCount : VLK_MOST_QUEUES - 1;
    out->timestamp_bits = families[i].timestampValidBits;
  }
  /* On a queue that only copies, times are reset by the host, and clocks must be as long. */
  for (uint32_t i = 0; i < n && out->timeline && out->host_reset; i++) {
    const VkQueueFlags flags = families[i].queueFlags;
    if ((flags & VK_QUEUE_TRANSFER_BIT) != 0 && (flags & (VK_QUEUE_COMPUTE_BIT | VK_QUEUE_GRAPHICS_BIT)) == 0 &&
        families[i].queueCount > 0 && families[i].timestampValidBits == out->timestamp_bits &&
        out->copy_family == UINT32_MAX)
      out->copy_family = i;
  }
  if (!out->timeline) out->n_queues = 1; /* the order of submission is then what orders streams */
  return best >= 0;
}

/* ---------------------------------------------------------------- the device */

static void see_features(heddle_pinstance *self, const vlk_extensions *has, vlk_info *out) {
  vlk_features f;
  vlk_features_of(self, out->id, out->api_version, has, &f);
  out->float64 = f.base.features.shaderFloat64;
  out->int64 = f.base.features.shaderInt64;
  out->int16 = f.base.features.shaderInt16;
  out->fp16 = f.v12.shaderFloat16 || f.float16_int8.shaderFloat16;
  out->int8 = f.v12.shaderInt8 || f.float16_int8.shaderInt8;
  out->storage16 = f.v11.storageBuffer16BitAccess || f.storage16.storageBuffer16BitAccess;
  out->storage8 = f.v12.storageBuffer8BitAccess || f.storage8.storageBuffer8BitAccess;
  out->scalar_layout = f.v12.scalarBlockLayout || f.scalar_layout.scalarBlockLayout;
  out->timeline = self->timeline && (f.v12.timelineSemaphore || f.timeline.timelineSemaphore);
  out->host_reset = f.v12.hostQueryReset || f.host_reset.hostQueryReset;
  out->imports = has->memory_host;
}

/* Whether the device's clock can be read by a call. */
static bool reads_clock(heddle_pinstance *self, const vlk_extensions *has, VkPhysicalDevice id) {
  VkTimeDomainEXT domains[16];
  uint32_t n = 16;
  bool found = false;
  if (!has->calibrated || self->vk.GetPhysicalDeviceCalibrateableTimeDomainsEXT == NULL ||
      self->vk.GetPhysicalDeviceCalibrateableTimeDomainsEXT(id, &n, domains) < 0)
    return false;
  for (uint32_t i = 0; i < n; i++) found = found || domains[i] == VK_TIME_DOMAIN_DEVICE_EXT;
  return found;
}

static void see_limits(const VkPhysicalDeviceLimits *l, vlk_info *out) {
  out->max_storage_range = l->maxStorageBufferRange;
  out->max_bindings = l->maxPerStageDescriptorStorageBuffers;
  if (out->max_bindings > l->maxDescriptorSetStorageBuffers) out->max_bindings = l->maxDescriptorSetStorageBuffers;
  if (out->max_bindings > l->maxPerStageResources) out->max_bindings = l->maxPerStageResources;
  out->max_push_bytes = l->maxPushConstantsSize;
  out->max_group_items = l->maxComputeWorkGroupInvocations;
  out->max_shared_bytes = l->maxComputeSharedMemorySize;
  memcpy(out->max_groups, l->maxComputeWorkGroupCount, sizeof out->max_groups);
  memcpy(out->max_group_size, l->maxComputeWorkGroupSize, sizeof out->max_group_size);
  out->timestamp_period = l->timestampPeriod;
  out->atom = l->nonCoherentAtomSize > 0 ? l->nonCoherentAtomSize : 1;
  out->alignment = 64;
  while (out->alignment < l->minStorageBufferOffsetAlignment || out->alignment < out->atom) out->alignment *= 2;
}

static heddle_status describe(heddle_pinstance *self, VkPhysicalDevice id, vlk_info *out, bool *usable,
                              heddle_error *err) {
  VkPhysicalDeviceMaintenance3Properties most = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_3_PROPERTIES};
  VkPhysicalDeviceSubgroupProperties subgroup = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_PROPERTIES,
                                                 .pNext = &most};
  VkPhysicalDeviceIDProperties ids = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_ID_PROPERTIES, .pNext = &subgroup};
  VkPhysicalDeviceProperties2 all = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2, .pNext = &ids};
  VkPhysicalDevicePCIBusInfoPropertiesEXT pci = {.sType =
                                                     VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PCI_BUS_INFO_PROPERTIES_EXT};
  VkPhysicalDeviceDriverProperties driver = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_DRIVER_PROPERTIES};
  VkPhysicalDeviceExternalMemoryHostPropertiesEXT import = {
      .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_EXTERNAL_MEMORY_HOST_PROPERTIES_EXT};
  VkPhysicalDeviceMemoryProperties2 memory = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_PROPERTIES_2};
  VkPhysicalDeviceProperties first;
  vlk_extensions has;
  memset(out, 0, sizeof *out);
  *usable = false;
  out->id = id;
  self->vk.GetPhysicalDeviceProperties(id, &first);
  if (first.apiVersion < VK_API_VERSION_1_1) return HEDDLE_OK;
  out->api_version = first.apiVersion < self->api_version ? first.apiVersion : self->api_version;
  heddle_status s = vlk_extensions_of(self, id, &has, err);
  if (s != HEDDLE_OK) return s;
  if (has.pci) pci.pNext = most.pNext, most.pNext = &pci;
  if (has.memory_host) import.pNext = most.pNext, most.pNext = &import;
  if (has.driver_properties || out->api_version >= VK_API_VERSION_1_2) driver.pNext = most.pNext, most.pNext = &driver;
  self->vk.GetPhysicalDeviceProperties2(id, &all);
  self->vk.GetPhysicalDeviceMemoryProperties2(id, &memory);

  const VkPhysicalDeviceProperties *p = &all.properties;
  out->memory = memory.memoryProperties;
  out->spirv = out->api_version >= VK_API_VERSION_1_2 ? 0x10500 : 0x10300;
  out->vendor_id = p->vendorID;
  out->device_id = p->deviceID;
  out->driver_version = p->driverVersion;
  snprintf(out->name, sizeof out->name, "%.127s", p->deviceName[0] != '\0' ? p->deviceName : "a device without a name");
  snprintf(out->driver, sizeof out->driver, "%.48s%s%.40s, Vulkan %u.%u.%u",
           driver.driverName[0] != '\0' ? driver.driverName : "a driver", driver.driverInfo[0] != '\0' ? " " : "",
           driver.driverInfo, VK_API_VERSION_MAJOR(p->apiVersion), VK_API_VERSION_MINOR(p->apiVersion),
           VK_API_VERSION_PATCH(p->apiVersion));
  p_one_line(out->name);
  p_one_line(out->driver);
  memcpy(out->uuid, ids.deviceUUID, sizeof out->uuid);
  memcpy(out->cache_uuid, p->pipelineCacheUUID, sizeof out->cache_uuid);
  memset(out->pci, 0xff, sizeof out->pci);
  if (has.pci)
    memcpy(out->pci, (const uint32_t[4]){pci.pciDomain, pci.pciBus, pci.pciDevice, pci.pciFunction}, sizeof out->pci);
  out->is_cpu = p->deviceType == VK_PHYSICAL_DEVICE_TYPE_CPU;
  out->integrated = out->is_cpu || p->deviceType == VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU;
  out->compute_units = 1;
  out->max_buffer_bytes = most.maxMemoryAllocationSize;
  if ((subgroup.supportedStages & VK_SHADER_STAGE_COMPUTE_BIT) != 0) {
    out->subgroup_size = subgroup.subgroupSize;
    out->subgroup_ops = subgroup.supportedOperations;
  }
  see_limits(&p->limits, out);
  see_features(self, &has, out);
  out->calibrates = reads_clock(self, &has, id);
  out->import_alignment = out->imports ? import.minImportedHostPointerAlignment : 0;
  choose_memory(out, self->unified);
  *usable = choose_queues(self, out) && out->memory_types[HEDDLE_MEMORY_PINNED] != UINT32_MAX &&
            out->memory_types[HEDDLE_MEMORY_DEVICE] != UINT32_MAX;
  return HEDDLE_OK;
}

heddle_status vlk_find_devices(heddle_pinstance *self, heddle_error *err) {
  VkPhysicalDevice ids[MOST_DEVICES];
  uint32_t n = MOST_DEVICES;
  void *memory = NULL;
  const VkResult code = self->vk.EnumeratePhysicalDevices(self->instance, &n, ids);
  heddle_status s = vlk_check(NULL, code, "list the devices", err);
  if (s == HEDDLE_OK) s = vlk_new(self->host, (n + 1) * sizeof(vlk_info), "devices", &memory, err);
  self->devices = memory;
  for (uint32_t i = 0; i < n && s == HEDDLE_OK; i++) {
    bool usable = false;
    s = describe(self, ids[i], &self->devices[self->n_devices], &usable, err);
    if (usable) self->n_devices++;
  }
  if (s == HEDDLE_OK && self->n_devices == 0)
    s = p_fail(err, HEDDLE_ENODEV, 0,
               "no Vulkan device: of %u that the drivers show none has Vulkan 1.1 and a queue that computes", n);
  return s;
}
