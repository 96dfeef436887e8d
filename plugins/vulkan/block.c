/* Where buffers lie. Drivers allow few allocations, 4,096 often, so small buffers are parts of blocks of 16 MiB: one
 * VkDeviceMemory with one VkBuffer over all of it. A block knows its buffers by rising base; room is the first gap that
 * is wide enough. A large buffer has a block of its own, and so has an import. A block goes with its last buffer. */
#include "vulkan.h"

#define BLOCK_BYTES (UINT64_C(16) << 20)
#define LARGE_BYTES (UINT64_C(4) << 20)

struct vlk_block {
  vlk_block *next;
  VkDeviceMemory memory;
  VkBuffer buffer;
  char *host; /* mapped there; NULL: not mapped */
  uint64_t bytes;
  uint32_t type;
  bool shared, mapped; /* shared: buffers may be put into its gaps */
  heddle_pbuffer *first;
};

static const VkBufferUsageFlags usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_UNIFORM_BUFFER_BIT |
                                        VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT;

static uint64_t round_up(uint64_t n, uint64_t to) {
  return (n + to - 1) / to * to;
}

/* Memory that operators compute in is mapped where the device shares the host's. */
static bool is_mapped(const heddle_pdevice *dev, uint32_t kind) {
  return kind != HEDDLE_MEMORY_DEVICE || dev->info->unified;
}

static void block_free(heddle_pdevice *dev, vlk_block *block) {
  if (block->buffer != VK_NULL_HANDLE) dev->vk.DestroyBuffer(dev->device, block->buffer, NULL);
  if (block->memory != VK_NULL_HANDLE) dev->vk.FreeMemory(dev->device, block->memory, NULL); /* unmaps it too */
  dev->host->free(dev->host->ctx, block);
}

static VkResult make_buffer(heddle_pdevice *dev, uint64_t bytes, const void *next, VkBuffer *out) {
  const uint32_t families[2] = {dev->info->family, dev->info->copy_family};
  const bool several = dev->info->copy_family != UINT32_MAX;
  const VkBufferCreateInfo how = {.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
                                  .pNext = next,
                                  .size = bytes,
                                  .usage = usage,
                                  .sharingMode = several ? VK_SHARING_MODE_CONCURRENT : VK_SHARING_MODE_EXCLUSIVE,
                                  .queueFamilyIndexCount = several ? 2 : 0,
                                  .pQueueFamilyIndices = families};
  const VkResult code = dev->vk.CreateBuffer(dev->device, &how, NULL, out);
  if (code != VK_SUCCESS) *out = VK_NULL_HANDLE;
  return code;
}

/* The same for all buffers of one usage, whatever their size. */
VkResult vlk_block_types(heddle_pdevice *dev, uint32_t *out) {
  VkMemoryRequirements needs;
  VkBuffer buffer = VK_NULL_HANDLE;
  const VkResult code = make_buffer(dev, 4096, NULL, &buffer);
  if (code != VK_SUCCESS) return code;
  dev->vk.GetBufferMemoryRequirements(dev->device, buffer, &needs);
  dev->vk.DestroyBuffer(dev->device, buffer, NULL);
  *out = needs.memoryTypeBits;
  return VK_SUCCESS;
}

static VkResult fill_block(heddle_pdevice *dev, vlk_block *block) {
  VkMemoryRequirements needs;
  VkResult code = make_buffer(dev, block->bytes, NULL, &block->buffer);
  if (code != VK_SUCCESS) return code;
  dev->vk.GetBufferMemoryRequirements(dev->device, block->buffer, &needs);
  if ((needs.memoryTypeBits & (UINT32_C(1) << block->type)) == 0) return VK_ERROR_FEATURE_NOT_PRESENT;
  const VkMemoryAllocateInfo how = {.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO,
                                    .allocationSize = round_up(needs.size, dev->info->atom),
                                    .memoryTypeIndex = block->type};
  code = dev->vk.AllocateMemory(dev->device, &how, NULL, &block->memory);
  if (code != VK_SUCCESS) {
    block->memory = VK_NULL_HANDLE;
    return code;
  }
  code = dev->vk.BindBufferMemory(dev->device, block->buffer, block->memory, 0);
  if (code == VK_SUCCESS && block->mapped) {
    void *at = NULL;
    code = dev->vk.MapMemory(dev->device, block->memory, 0, VK_WHOLE_SIZE, 0, &at);
    block->host = at;
  }
  return code;
}

/* The first base from at on that is aligned: on the host where the block is mapped (mappings begin at multiples of 64),
 * which keeps the device's alignment too, as that of mappings and of buffers are powers of two. */
static uint64_t aligned(const vlk_block *block, uint64_t at, uint64_t align) {
  const uint64_t host = (uintptr_t)block->host;
  return round_up(host + at, align) - host;
}

/* The base of the first gap for bytes, and what comes before it; UINT64_MAX: none. */
static uint64_t find_gap(const vlk_block *block, uint64_t bytes, uint64_t align, heddle_pbuffer **before) {
  uint64_t at = aligned(block, 0, align);
  *before = NULL;
  for (heddle_pbuffer *b = block->first;; b = b->next) {
    const uint64_t end = b != NULL ? b->base : block->bytes;
    if (at <= end && end - at >= bytes) return at;
    if (b == NULL) return UINT64_MAX;
    at = aligned(block, b->base + b->room, align);
    *before = b;
  }
}

static void put(vlk_block *block, heddle_pbuffer *before, uint64_t base, uint64_t room, heddle_pbuffer *b) {
  heddle_pbuffer **link = before != NULL ? &before->next : &block->first;
  b->next = *link;
  *link = b;
  b->base = base;
  b->room = room;
  b->block = block;
  b->buffer = block->buffer;
  b->host = block->host != NULL ? block->host + base : NULL;
}

static vlk_block *new_block(heddle_pdevice *dev, uint64_t bytes, uint32_t type, bool shared, bool mapped) {
  vlk_block *block = dev->host->alloc(dev->host->ctx, sizeof *block, _Alignof(vlk_block));
  if (block != NULL) *block = (vlk_block){.bytes = bytes, .type = type, .shared = shared, .mapped = mapped};
  return block;
}

VkResult vlk_block_take(heddle_pdevice *dev, uint64_t align, heddle_pbuffer *b) {
  const uint64_t room = round_up(b->bytes, dev->info->alignment);
  const uint64_t alone = room + (align > 64 ? align : 0); /* that a block for it alone needs */
  const uint32_t type = dev->memory_types[b->kind];
  const bool mapped = is_mapped(dev, b->kind), large = room >= LARGE_BYTES;
  heddle_pbuffer *before = NULL;
  VkResult code = VK_SUCCESS;
  pthread_mutex_lock(&dev->memory_lock);
  for (vlk_block *x = large ? NULL : dev->blocks; x != NULL; x = x->next) {
    if (!x->shared || x->type != type || x->mapped != mapped) continue;
    const uint64_t base = find_gap(x, room, align, &before);
    if (base == UINT64_MAX) continue;
    put(x, before, base, room, b);
    pthread_mutex_unlock(&dev->memory_lock);
    return VK_SUCCESS;
  }
  vlk_block *block = new_block(dev, large ? alone : BLOCK_BYTES, type, !large, mapped);
  code = block != NULL ? fill_block(dev, block) : VK_ERROR_OUT_OF_HOST_MEMORY;
  if (code == VK_ERROR_OUT_OF_DEVICE_MEMORY && !large) { /* no room for a block any more, but perhaps for the buffer */
    block_free(dev, block);
    block = new_block(dev, alone, type, false, mapped);
    code = block != NULL ? fill_block(dev, block) : VK_ERROR_OUT_OF_HOST_MEMORY;
  }
  if (code == VK_SUCCESS) {
    block->next = dev->blocks;
    dev->blocks = block;
    put(block, NULL, aligned(block, 0, align), room, b);
  } else if (block != NULL) {
    block_free(dev, block);
  }
  pthread_mutex_unlock(&dev->memory_lock);
  return code;
}

static VkResult fill_import(heddle_pdevice *dev, void *pointer, vlk_block *block) {
  const VkExternalMemoryHandleTypeFlagBits handle = VK_EXTERNAL_MEMORY_HANDLE_TYPE_HOST_ALLOCATION_BIT_EXT;
  const VkExternalMemoryBufferCreateInfo external = {.sType = VK_STRUCTURE_TYPE_EXTERNAL_MEMORY_BUFFER_CREATE_INFO,
                                                     .handleTypes = handle};
  const VkImportMemoryHostPointerInfoEXT import = {
      .sType = VK_STRUCTURE_TYPE_IMPORT_MEMORY_HOST_POINTER_INFO_EXT, .handleType = handle, .pHostPointer = pointer};
  VkMemoryHostPointerPropertiesEXT can = {.sType = VK_STRUCTURE_TYPE_MEMORY_HOST_POINTER_PROPERTIES_EXT};
  VkMemoryRequirements needs;
  VkResult code = dev->vk.GetMemoryHostPointerPropertiesEXT(dev->device, handle, pointer, &can);
  if (code == VK_SUCCESS) code = make_buffer(dev, block->bytes, &external, &block->buffer);
  if (code != VK_SUCCESS) return code;
  dev->vk.GetBufferMemoryRequirements(dev->device, block->buffer, &needs);
  uint32_t type = 0;
  for (; type < dev->info->memory.memoryTypeCount; type++) { /* imports are coherent on every device */
    const VkMemoryPropertyFlags flags = dev->info->memory.memoryTypes[type].propertyFlags;
    if ((needs.memoryTypeBits & can.memoryTypeBits & (UINT32_C(1) << type)) != 0 &&
        (flags & VK_MEMORY_PROPERTY_HOST_COHERENT_BIT) != 0)
      break;
  }
  if (type == dev->info->memory.memoryTypeCount) return VK_ERROR_FEATURE_NOT_PRESENT;
  const VkMemoryAllocateInfo how = {.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO,
                                    .pNext = &import,
                                    .allocationSize = block->bytes,
                                    .memoryTypeIndex = type};
  if (needs.size > block->bytes) return VK_ERROR_FEATURE_NOT_PRESENT;
  code = dev->vk.AllocateMemory(dev->device, &how, NULL, &block->memory);
  if (code != VK_SUCCESS) {
    block->memory = VK_NULL_HANDLE;
    return code;
  }
  return dev->vk.BindBufferMemory(dev->device, block->buffer, block->memory, 0);
}

VkResult vlk_block_import(heddle_pdevice *dev, void *pointer, heddle_pbuffer *b) {
  vlk_block *block = new_block(dev, b->bytes, 0, false, true);
  if (block == NULL) return VK_ERROR_OUT_OF_HOST_MEMORY;
  block->host = pointer;
  const VkResult code = fill_import(dev, pointer, block);
  if (code != VK_SUCCESS) {
    block_free(dev, block);
    return code;
  }
  pthread_mutex_lock(&dev->memory_lock);
  block->next = dev->blocks;
  dev->blocks = block;
  put(block, NULL, 0, b->bytes, b);
  pthread_mutex_unlock(&dev->memory_lock);
  return VK_SUCCESS;
}

void vlk_block_give(heddle_pbuffer *b) {
  heddle_pdevice *dev = b->dev;
  vlk_block *block = b->block;
  if (block == NULL) return;
  pthread_mutex_lock(&dev->memory_lock);
  heddle_pbuffer **link = &block->first;
  while (*link != b) link = &(*link)->next;
  *link = b->next;
  if (block->first == NULL) {
    vlk_block **at = &dev->blocks;
    while (*at != block) at = &(*at)->next;
    *at = block->next;
    block_free(dev, block);
  }
  pthread_mutex_unlock(&dev->memory_lock);
}

VkResult vlk_block_sync(const heddle_pbuffer *b, uint64_t offset, uint64_t bytes, bool to_device) {
  heddle_pdevice *dev = b->dev;
  const uint64_t atom = dev->info->atom, first = (b->base + offset) / atom * atom;
  const VkMappedMemoryRange range = {.sType = VK_STRUCTURE_TYPE_MAPPED_MEMORY_RANGE,
                                     .memory = b->block->memory,
                                     .offset = first,
                                     .size = round_up(b->base + offset + bytes, atom) - first};
  return to_device ? dev->vk.FlushMappedMemoryRanges(dev->device, 1, &range)
                   : dev->vk.InvalidateMappedMemoryRanges(dev->device, 1, &range);
}
