/* The persistent cache of pipelines (plugins/common/filecache.h): one file a device, named after a hash of vendor, device,
 * driver and its version, and the UUID by which a driver tells that its data has changed; in the folder of the setting
 * cache_dir. */
#include "pipeline.h"

static filecache cache_of(const heddle_pdevice *dev) {
  return (filecache){.host = dev->host,
                     .folder = dev->self->cache_dir,
                     .plugin = "vulkan",
                     .suffix = "pipelines",
                     .things = "compiled shaders",
                     .limit = dev->self->cache_bytes};
}

static filecache_key key_of(const vlk_info *info) {
  filecache_key key = filecache_key_start();
  const uint32_t numbers[] = {info->vendor_id, info->device_id, info->driver_version};
  filecache_key_add(&key, numbers, sizeof numbers);
  filecache_key_add(&key, info->cache_uuid, sizeof info->cache_uuid);
  filecache_key_add(&key, info->name, strlen(info->name) + 1);
  filecache_key_add(&key, info->driver, strlen(info->driver) + 1);
  return filecache_key_end(key);
}

/* Is it data for this device? Drivers check it too; some have crashed on what is not theirs. */
static bool is_ours(const vlk_info *info, const void *data, uint64_t bytes) {
  VkPipelineCacheHeaderVersionOne header;
  if (bytes < sizeof header) return false;
  memcpy(&header, data, sizeof header);
  return header.headerSize >= sizeof header && header.headerSize <= bytes &&
         header.headerVersion == VK_PIPELINE_CACHE_HEADER_VERSION_ONE && header.vendorID == info->vendor_id &&
         header.deviceID == info->device_id &&
         memcmp(header.pipelineCacheUUID, info->cache_uuid, sizeof header.pipelineCacheUUID) == 0;
}

VkPipelineCache vlk_cache_open(heddle_pdevice *dev) {
  filecache files = cache_of(dev);
  VkPipelineCacheCreateInfo info = {.sType = VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO};
  VkPipelineCache cache = VK_NULL_HANDLE;
  void *data = NULL;
  uint64_t bytes = 0;
  if (filecache_load(&files, key_of(dev->info), &data, &bytes) && is_ours(dev->info, data, bytes)) {
    info.initialDataSize = (size_t)bytes;
    info.pInitialData = data;
  }
  VkResult code = dev->vk.CreatePipelineCache(dev->device, &info, NULL, &cache);
  if (code != VK_SUCCESS && info.initialDataSize > 0) {
    info.initialDataSize = 0;
    code = dev->vk.CreatePipelineCache(dev->device, &info, NULL, &cache);
  }
  dev->host->free(dev->host->ctx, data);
  return code == VK_SUCCESS ? cache : VK_NULL_HANDLE;
}

void vlk_cache_close(heddle_pdevice *dev, VkPipelineCache cache, bool grown) {
  const heddle_host *host = dev->host;
  filecache files = cache_of(dev);
  size_t bytes = 0;
  if (cache == VK_NULL_HANDLE) return;
  if (grown && files.folder != NULL && dev->vk.GetPipelineCacheData(dev->device, cache, &bytes, NULL) == VK_SUCCESS &&
      bytes > 0) {
    void *data = host->alloc(host->ctx, bytes, 1);
    if (data != NULL && dev->vk.GetPipelineCacheData(dev->device, cache, &bytes, data) == VK_SUCCESS)
      filecache_store(&files, key_of(dev->info), data, bytes);
    host->free(host->ctx, data);
  }
  dev->vk.DestroyPipelineCache(dev->device, cache, NULL);
}
