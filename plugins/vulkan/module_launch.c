/* Launches of kernels from outside. Each takes a descriptor set that no work uses any more, so that there are as many as
 * launches under way. */
#include "module.h"

enum { POOL_SETS = 16, LOOK_AT = 4 };

/* ---------------------------------------------------------------- operands */

static heddle_status make_pool(heddle_pkernel *k, heddle_error *err) {
  heddle_pdevice *dev = k->module->dev;
  void *memory = NULL;
  const VkDescriptorPoolSize sizes[] = {
      {VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, POOL_SETS * (k->face.n_buffers > 0 ? k->face.n_buffers : 1)},
      {VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER, POOL_SETS}};
  const VkDescriptorPoolCreateInfo info = {.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO,
                                           .maxSets = POOL_SETS,
                                           .poolSizeCount = 2,
                                           .pPoolSizes = sizes};
  heddle_status s = vlk_new(dev->host, sizeof(vlk_module_pool), "a kernel's operands", &memory, err);
  if (s != HEDDLE_OK) return s;
  vlk_module_pool *p = memory;
  s = vlk_check(dev, dev->vk.CreateDescriptorPool(dev->device, &info, NULL, &p->pool),
                "make room for a kernel's operands", err);
  if (s != HEDDLE_OK) {
    dev->host->free(dev->host->ctx, p);
    return s;
  }
  p->left = POOL_SETS;
  p->next = k->pools;
  k->pools = p;
  return HEDDLE_OK;
}

static heddle_status make_operands(heddle_pkernel *k, vlk_operands **out, heddle_error *err) {
  heddle_pdevice *dev = k->module->dev;
  void *memory = NULL;
  heddle_status s = k->pools == NULL || k->pools->left == 0 ? make_pool(k, err) : HEDDLE_OK;
  if (s == HEDDLE_OK) s = vlk_new(dev->host, sizeof(vlk_operands), "a kernel's operands", &memory, err);
  if (s != HEDDLE_OK) return s;
  vlk_operands *o = memory;
  if (k->face.uniform) s = vlk_buffer_make(dev, HEDDLE_MEMORY_PINNED, k->face.block_bytes, &o->block, err);
  const VkDescriptorSetAllocateInfo info = {.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO,
                                            .descriptorPool = k->pools->pool,
                                            .descriptorSetCount = 1,
                                            .pSetLayouts = &k->set};
  if (s == HEDDLE_OK)
    s = vlk_check(dev, dev->vk.AllocateDescriptorSets(dev->device, &info, &o->set), "bind a kernel", err);
  if (s != HEDDLE_OK) {
    if (o->block != NULL) vlk_buffer_free(o->block);
    dev->host->free(dev->host->ctx, o);
    return s;
  }
  k->pools->left--;
  *out = o;
  return HEDDLE_OK;
}

static void give_operands(heddle_pkernel *k, vlk_operands *o) {
  o->next = NULL;
  if (k->newest != NULL) k->newest->next = o;
  else k->oldest = o;
  k->newest = o;
}

/* Takes the oldest out of the row. */
static vlk_operands *take_oldest(heddle_pkernel *k) {
  vlk_operands *o = k->oldest;
  k->oldest = o->next;
  if (k->oldest == NULL) k->newest = NULL;
  return o;
}

static bool in_capture(const heddle_pkernel *k, vlk_operands *o) {
  if (o->end == NULL || !atomic_load(&o->end->came)) return o->end != NULL;
  vlk_capture_end_drop(k->module->dev, o->end);
  o->end = NULL;
  return false;
}

/* Operands that neither work under way nor a capture uses: of the oldest, or new ones. Those that are in use go to the
 * row's other end, so that all of it is looked at in turn. The module's lock is held. */
static heddle_status take_operands(heddle_pkernel *k, vlk_operands **out, heddle_error *err) {
  for (int i = 0; i < LOOK_AT && k->oldest != NULL; i++) {
    vlk_operands *o = take_oldest(k);
    *out = o;
    if (!in_capture(k, o) && vlk_reached(o->stream, o->value, NULL) == HEDDLE_OK) return HEDDLE_OK;
    give_operands(k, o);
  }
  return make_operands(k, out, err);
}

/* ---------------------------------------------------------------- launch */

static heddle_status refuse(const heddle_pkernel *k, const char *words, heddle_error *err) {
  return p_fail(err, HEDDLE_EINVAL, 0, "vulkan:%u: kernel '%.100s' %s", k->module->dev->index, k->name, words);
}

static heddle_status check_launch(const heddle_pstream *stream, const heddle_pkernel *k, const uint32_t *grid,
                                  const uint32_t *block, uint32_t shared_bytes, heddle_error *err) {
  const uint32_t *local = k->face.local;
  const heddle_pdevice *dev = stream->dev;
  if (k->module->dev != dev)
    return p_fail(err, HEDDLE_EINVAL, 0, "vulkan:%u: the kernel '%.100s' is of vulkan:%u", dev->index, k->name,
                  k->module->dev->index);
  if (!stream->queue->computes) return refuse(k, "is launched on a stream that only copies", err);
  if (shared_bytes > 0) return refuse(k, "is given shared memory, which SPIR-V has in the code itself", err);
  for (int d = 0; d < 3; d++) {
    if (grid[d] == 0 || block[d] == 0) return refuse(k, "has an empty grid or block", err);
    if (grid[d] > dev->info->max_groups[d])
      return p_fail(err, HEDDLE_ELIMIT, 0, "vulkan:%u: kernel '%.100s' wants %u groups, and the device has %u",
                    dev->index, k->name, grid[d], dev->info->max_groups[d]);
    if (local[d] != 0 && block[d] != local[d])
      return p_fail(err, HEDDLE_EINVAL, 0,
                    "vulkan:%u: kernel '%.100s' is launched in blocks of %u x %u x %u, and its code has %u x %u x %u",
                    dev->index, k->name, block[0], block[1], block[2], local[0], local[1], local[2]);
  }
  return HEDDLE_OK;
}

static heddle_status bind_buffer(const heddle_pkernel *k, const heddle_pargument *arg, VkDescriptorBufferInfo *out,
                                 heddle_error *err) {
  heddle_pdevice *dev = k->module->dev;
  const heddle_pbuffer *b = arg->buffer;
  const vlk_info *info = dev->info;
  if (b == NULL || b->bytes == arg->offset) { /* nothing that it may read */
    const heddle_pbuffer *nothing = NULL;
    heddle_status s = vlk_nothing(dev, &nothing, err);
    if (s == HEDDLE_OK) *out = (VkDescriptorBufferInfo){nothing->buffer, nothing->base, nothing->bytes};
    return s;
  }
  heddle_status s = vlk_range(dev, b, arg->offset, 0, "argument of a kernel", err);
  if (s != HEDDLE_OK) return s;
  if (b->dev != dev || b->kind == HEDDLE_MEMORY_PINNED)
    return refuse(k, "has an argument that is not memory of its device of kind device or unified", err);
  if ((b->base + arg->offset) % info->alignment != 0) return refuse(k, "has an argument that is not aligned", err);
  *out = (VkDescriptorBufferInfo){b->buffer, b->base + arg->offset, b->bytes - arg->offset};
  if (out->range > info->max_storage_range)
    return p_fail(err, HEDDLE_ELIMIT, 0,
                  "vulkan:%u: kernel '%.100s' has an argument of %llu bytes, and a kernel of this device reaches %llu",
                  dev->index, k->name, (unsigned long long)out->range, (unsigned long long)info->max_storage_range);
  return HEDDLE_OK;
}

/* Puts the arguments to their places: buffers by binding, scalars into the block. */
static heddle_status sort_arguments(const heddle_pkernel *k, const heddle_pargument *args, uint32_t n_args,
                                    VkDescriptorBufferInfo *buffers, unsigned char *block, heddle_error *err) {
  uint32_t n_buffers = 0, n_scalars = 0, bound = 0;
  for (uint32_t i = 0; i < n_args; i++) {
    const heddle_pargument *arg = &args[i];
    if (arg->size == 0) {
      for (uint32_t b = 0; b < k->face.n_buffers; b++) {
        if (k->face.buffers[b] != n_buffers) continue;
        heddle_status s = bind_buffer(k, arg, &buffers[b], err);
        if (s != HEDDLE_OK) return s;
        bound++;
      }
      n_buffers++;
      continue;
    }
    if (n_scalars == k->face.n_scalars) return refuse(k, "is given more scalars than its code has", err);
    const vlk_scalar *place = &k->face.scalars[n_scalars++];
    if (arg->size != place->bytes) return refuse(k, "is given a scalar of another size than its code has", err);
    memcpy(block + place->offset, &arg->offset, place->bytes);
  }
  if (bound < k->face.n_buffers) return refuse(k, "is given fewer buffers than its code has", err);
  if (n_scalars < k->face.n_scalars) return refuse(k, "is given fewer scalars than its code has", err);
  return HEDDLE_OK;
}

static heddle_status write_operands(const heddle_pkernel *k, vlk_operands *o, const VkDescriptorBufferInfo *buffers,
                                    const unsigned char *block, heddle_error *err) {
  heddle_pdevice *dev = k->module->dev;
  VkWriteDescriptorSet writes[VLK_MOST_BINDINGS + 1];
  VkDescriptorBufferInfo uniform;
  uint32_t n = 0;
  for (; n < k->face.n_buffers; n++)
    writes[n] = (VkWriteDescriptorSet){.sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET,
                                       .dstSet = o->set,
                                       .dstBinding = k->face.buffers[n],
                                       .descriptorCount = 1,
                                       .descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
                                       .pBufferInfo = &buffers[n]};
  if (o->block != NULL) {
    memcpy(o->block->host, block, k->face.block_bytes);
    heddle_status s =
        vlk_check(dev, vlk_block_sync(o->block, 0, k->face.block_bytes, true), "write a kernel's scalars", err);
    if (s != HEDDLE_OK) return s;
    uniform = (VkDescriptorBufferInfo){o->block->buffer, o->block->base, k->face.block_bytes};
    writes[n++] = (VkWriteDescriptorSet){.sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET,
                                         .dstSet = o->set,
                                         .dstBinding = k->face.uniform_binding,
                                         .descriptorCount = 1,
                                         .descriptorType = VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER,
                                         .pBufferInfo = &uniform};
  }
  if (n > 0) dev->vk.UpdateDescriptorSets(dev->device, n, writes, 0, NULL);
  return HEDDLE_OK;
}

heddle_status vlk_module_launch(heddle_pstream *stream, heddle_pkernel *k, const uint32_t *grid, const uint32_t *block,
                                uint32_t shared_bytes, const heddle_pargument *args, uint32_t n_args,
                                heddle_error *err) {
  heddle_pdevice *dev = stream->dev;
  VkDescriptorBufferInfo buffers[VLK_MOST_BINDINGS];
  unsigned char scalars[VLK_BLOCK_BYTES] = {0};
  VkCommandBuffer commands = VK_NULL_HANDLE;
  vlk_operands *o = NULL;
  heddle_status s = check_launch(stream, k, grid, block, shared_bytes, err);
  if (s == HEDDLE_OK) s = sort_arguments(k, args, n_args, buffers, scalars, err);
  if (s == HEDDLE_OK) s = vlk_stream_work(stream, &commands, err);
  if (s != HEDDLE_OK) return s;
  pthread_mutex_lock(&k->module->lock);
  s = take_operands(k, &o, err);
  if (s == HEDDLE_OK) {
    s = write_operands(k, o, buffers, scalars, err);
    if (s == HEDDLE_OK && stream->capture != NULL) s = vlk_capture_end_of(stream, &o->end, err);
    o->stream = stream;
    o->value = atomic_load(&stream->submitted) + (stream->capture != NULL ? 0 : 1);
    give_operands(k, o);
  }
  pthread_mutex_unlock(&k->module->lock);
  if (s != HEDDLE_OK) return s;
  dev->vk.CmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE, k->pipeline);
  dev->vk.CmdBindDescriptorSets(commands, VK_PIPELINE_BIND_POINT_COMPUTE, k->layout, 0, 1, &o->set, 0, NULL);
  if (!k->face.uniform && k->face.block_bytes > 0)
    dev->vk.CmdPushConstants(commands, k->layout, VK_SHADER_STAGE_COMPUTE_BIT, 0, k->face.block_bytes, scalars);
  dev->vk.CmdDispatch(commands, grid[0], grid[1], grid[2]);
  vlk_stream_worked(stream);
  return HEDDLE_OK;
}
