/* Device code from outside: SPIR-V ("spirv"), whose kernels are its compute entry points. The k-th argument that is a
 * buffer is at binding k of set 0, and scalars are the members, in their order, of its push constants or of its only
 * uniform buffer: as TVM's compiler writes it, whose slots are 4 or 8 bytes wide. Groups are as large as the code says.
 *
 * A launch takes a descriptor set that no work uses any more, so that there are as many as launches under way. */
#include "stream.h"

#include "pipeline.h"
#include "spirv.h"

enum { POOL_SETS = 16, LOOK_AT = 4 };
#define UNLOAD_NS UINT64_C(2000000000)

struct heddle_pmodule {
  heddle_pdevice *dev;
  uint64_t count;       /* of words */
  pthread_mutex_t lock; /* guards kernels, and what is in them; the driver is called with it held */
  heddle_pkernel *kernels;
  uint32_t words[];
};

/* A descriptor set, with the uniform buffer of its scalars where there is one. */
typedef struct operands {
  struct operands *next;
  VkDescriptorSet set;
  heddle_pbuffer *block;
  heddle_pstream *stream; /* whose work used it last */
  uint64_t value;         /* of that; UINT64_MAX: of a capture, for good */
} operands;

typedef struct pool {
  struct pool *next;
  VkDescriptorPool pool;
  uint32_t left, reserved;
} pool;

struct heddle_pkernel {
  heddle_pkernel *next;
  heddle_pmodule *module;
  vlk_interface face;
  VkPipeline pipeline;
  VkPipelineLayout layout;
  VkDescriptorSetLayout set;
  pool *pools;
  operands *oldest, *newest;
  char name[];
};

/* ---------------------------------------------------------------- modules */

static void kernel_free(heddle_pkernel *k) {
  heddle_pdevice *dev = k->module->dev;
  while (k->oldest != NULL) {
    operands *next = k->oldest->next;
    if (k->oldest->block != NULL) vlk_buffer_free(k->oldest->block);
    dev->host->free(dev->host->ctx, k->oldest);
    k->oldest = next;
  }
  while (k->pools != NULL) {
    pool *next = k->pools->next;
    dev->vk.DestroyDescriptorPool(dev->device, k->pools->pool, NULL);
    dev->host->free(dev->host->ctx, k->pools);
    k->pools = next;
  }
  dev->vk.DestroyPipeline(dev->device, k->pipeline, NULL);
  dev->vk.DestroyPipelineLayout(dev->device, k->layout, NULL);
  dev->vk.DestroyDescriptorSetLayout(dev->device, k->set, NULL);
  dev->host->free(dev->host->ctx, k);
}

static void module_unload(heddle_pmodule *module) {
  if (module == NULL) return;
  heddle_pdevice *dev = module->dev;
  vlk_count(&dev->live_objects, -1);
  const heddle_status s = module->kernels != NULL ? vlk_device_table.idle(dev, UNLOAD_NS, NULL) : HEDDLE_OK;
  if (s != HEDDLE_OK && s != HEDDLE_EDEVICE) return; /* its kernels hang, and with them the device */
  while (module->kernels != NULL) {
    heddle_pkernel *next = module->kernels->next;
    kernel_free(module->kernels);
    module->kernels = next;
  }
  pthread_mutex_destroy(&module->lock);
  dev->host->free(dev->host->ctx, module);
}

static const char *module_formats(heddle_pinstance *self, uint32_t index) {
  (void)self, (void)index;
  return "spirv";
}

static heddle_status module_load(heddle_pdevice *dev, const char *format, const void *data, uint64_t bytes,
                                 heddle_pmodule **out, heddle_error *err) {
  void *memory = NULL;
  heddle_status s = vlk_health(dev, err);
  if (s != HEDDLE_OK) return s;
  if (strcmp(format, "spirv") != 0)
    return p_fail(err, HEDDLE_EUNSUPPORTED, 0, "vulkan:%u: modules of format '%.60s' are not supported; spirv is",
                  dev->index, format);
  if (bytes % sizeof(uint32_t) != 0)
    return p_fail(err, HEDDLE_EFORMAT, 0, "vulkan:%u: a module of %llu bytes, which are no whole words", dev->index,
                  (unsigned long long)bytes);
  s = vlk_new(dev->host, sizeof **out + bytes, "a module", &memory, err);
  if (s != HEDDLE_OK) return s;
  heddle_pmodule *module = memory;
  module->dev = dev;
  module->count = bytes / sizeof(uint32_t);
  if (bytes > 0) memcpy(module->words, data, (size_t)bytes);
  s = vlk_spirv_check(module->words, module->count, err);
  if (s == HEDDLE_OK && pthread_mutex_init(&module->lock, NULL) != 0)
    s = p_fail(err, HEDDLE_ENOMEM, 0, "no lock for a module");
  if (s != HEDDLE_OK) {
    if (err != NULL) p_prefix(err, "vulkan:%u: ", dev->index);
    dev->host->free(dev->host->ctx, module);
    return s;
  }
  vlk_count(&dev->live_objects, 1);
  *out = module;
  return HEDDLE_OK;
}

/* ---------------------------------------------------------------- kernels */

/* Whether the device runs such code. */
static heddle_status check_face(const heddle_pdevice *dev, const vlk_interface *face, heddle_error *err) {
  const vlk_info *info = dev->info;
  const struct {
    uint32_t bit;
    bool has;
    const char *words;
  } needs[] = {{VLK_NEEDS_FLOAT16, info->fp16, "arithmetic in float16"},
               {VLK_NEEDS_FLOAT64, info->float64, "arithmetic in float64"},
               {VLK_NEEDS_INT64, info->int64, "arithmetic in int64"},
               {VLK_NEEDS_INT16, info->int16, "arithmetic in int16"},
               {VLK_NEEDS_INT8, info->int8, "arithmetic in int8"},
               {VLK_NEEDS_STORAGE16, info->storage16, "elements of 16 bits in buffers"},
               {VLK_NEEDS_STORAGE8, info->storage8, "elements of 8 bits in buffers"}};
  uint64_t items = 1;
  if (face->version > info->spirv)
    return p_fail(err, HEDDLE_EUNSUPPORTED, 0, "it is SPIR-V %u.%u, and the device takes %u.%u", face->version >> 16,
                  face->version >> 8 & 0xFF, info->spirv >> 16, info->spirv >> 8 & 0xFF);
  for (size_t i = 0; i < sizeof needs / sizeof needs[0]; i++)
    if ((face->capabilities & needs[i].bit) != 0 && !needs[i].has)
      return p_fail(err, HEDDLE_EUNSUPPORTED, 0, "it needs %s, which the device has not", needs[i].words);
  for (int d = 0; d < 3; d++) {
    items *= face->local[d];
    if (face->local[d] > info->max_group_size[d] || items > info->max_group_items)
      return p_fail(err, HEDDLE_ELIMIT, 0, "its groups are %u x %u x %u, and the device has groups of %u at most",
                    face->local[0], face->local[1], face->local[2], info->max_group_items);
  }
  if (!face->uniform && face->block_bytes > info->max_push_bytes)
    return p_fail(err, HEDDLE_ELIMIT, 0, "its scalars take %u bytes, and the device has %u for push constants",
                  face->block_bytes, info->max_push_bytes);
  return HEDDLE_OK;
}

static VkResult make_layouts(heddle_pkernel *k) {
  const heddle_pdevice *dev = k->module->dev;
  VkDescriptorSetLayoutBinding bindings[VLK_MOST_BINDINGS + 1];
  const uint32_t n = k->face.n_buffers + (k->face.uniform ? 1 : 0);
  for (uint32_t i = 0; i < n; i++) {
    const bool buffer = i < k->face.n_buffers;
    bindings[i] = (VkDescriptorSetLayoutBinding){.binding = buffer ? k->face.buffers[i] : k->face.uniform_binding,
                                                 .descriptorType = buffer ? VK_DESCRIPTOR_TYPE_STORAGE_BUFFER
                                                                          : VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER,
                                                 .descriptorCount = 1,
                                                 .stageFlags = VK_SHADER_STAGE_COMPUTE_BIT};
  }
  const bool pushes = !k->face.uniform && k->face.block_bytes > 0;
  const VkDescriptorSetLayoutCreateInfo set = {
      .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO, .bindingCount = n, .pBindings = bindings};
  const VkPushConstantRange push = {.stageFlags = VK_SHADER_STAGE_COMPUTE_BIT, .size = k->face.block_bytes};
  const VkPipelineLayoutCreateInfo layout = {.sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO,
                                             .setLayoutCount = 1,
                                             .pSetLayouts = &k->set,
                                             .pushConstantRangeCount = pushes ? 1 : 0,
                                             .pPushConstantRanges = &push};
  VkResult code = dev->vk.CreateDescriptorSetLayout(dev->device, &set, NULL, &k->set);
  if (code != VK_SUCCESS) k->set = VK_NULL_HANDLE;
  else code = dev->vk.CreatePipelineLayout(dev->device, &layout, NULL, &k->layout);
  if (code != VK_SUCCESS) k->layout = VK_NULL_HANDLE;
  return code;
}

static VkResult compile(heddle_pkernel *k) {
  heddle_pdevice *dev = k->module->dev;
  VkShaderModule shader = VK_NULL_HANDLE;
  const VkShaderModuleCreateInfo info = {.sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO,
                                         .codeSize = (size_t)(k->module->count * sizeof(uint32_t)),
                                         .pCode = k->module->words};
  VkComputePipelineCreateInfo how = {.sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO,
                                     .stage = {.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO,
                                               .stage = VK_SHADER_STAGE_COMPUTE_BIT,
                                               .pName = k->name},
                                     .layout = k->layout};
  VkResult code = dev->vk.CreateShaderModule(dev->device, &info, NULL, &shader);
  if (code != VK_SUCCESS) return code;
  how.stage.module = shader;
  code = vlk_pipeline_make(dev, &how, &k->pipeline);
  dev->vk.DestroyShaderModule(dev->device, shader, NULL);
  return code;
}

static heddle_status make_kernel(heddle_pmodule *module, const char *name, heddle_pkernel **out, heddle_error *err) {
  heddle_pdevice *dev = module->dev;
  const size_t length = strlen(name) + 1;
  char what[128];
  void *memory = NULL;
  heddle_status s = vlk_new(dev->host, sizeof **out + length, "a kernel", &memory, err);
  if (s != HEDDLE_OK) return s;
  heddle_pkernel *k = memory;
  k->module = module;
  memcpy(k->name, name, length);
  s = vlk_spirv_read(dev->host, module->words, module->count, name, &k->face, err);
  if (s == HEDDLE_OK) s = check_face(dev, &k->face, err);
  if (s != HEDDLE_OK && err != NULL) p_prefix(err, "vulkan:%u: kernel '%.100s': ", dev->index, name);
  snprintf(what, sizeof what, "compile kernel '%.80s'", name);
  if (s == HEDDLE_OK) s = vlk_check(dev, make_layouts(k), what, err);
  if (s == HEDDLE_OK) s = vlk_check(dev, compile(k), what, err);
  if (s != HEDDLE_OK) kernel_free(k);
  else *out = k;
  return s;
}

static heddle_status kernel_get(heddle_pmodule *module, const char *name, heddle_pkernel **out,
                                heddle_pkernel_info *info, heddle_error *err) {
  heddle_status s = vlk_health(module->dev, err);
  if (s != HEDDLE_OK) return s;
  pthread_mutex_lock(&module->lock);
  heddle_pkernel *k = module->kernels;
  while (k != NULL && strcmp(k->name, name) != 0) k = k->next;
  if (k == NULL) {
    s = make_kernel(module, name, &k, err);
    if (s == HEDDLE_OK) {
      k->next = module->kernels;
      module->kernels = k;
    }
  }
  pthread_mutex_unlock(&module->lock);
  if (s != HEDDLE_OK) return s;
  if (HEDDLE_HAS(heddle_pkernel_info, info, max_threads)) info->max_threads = module->dev->info->max_group_items;
  *out = k;
  return HEDDLE_OK;
}

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
  heddle_status s = vlk_new(dev->host, sizeof(pool), "a kernel's operands", &memory, err);
  if (s != HEDDLE_OK) return s;
  pool *p = memory;
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

static heddle_status make_operands(heddle_pkernel *k, operands **out, heddle_error *err) {
  heddle_pdevice *dev = k->module->dev;
  void *memory = NULL;
  heddle_status s = k->pools == NULL || k->pools->left == 0 ? make_pool(k, err) : HEDDLE_OK;
  if (s == HEDDLE_OK) s = vlk_new(dev->host, sizeof(operands), "a kernel's operands", &memory, err);
  if (s != HEDDLE_OK) return s;
  operands *o = memory;
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

/* Operands that nothing under way uses, out of the row: one of the oldest, or new ones. The module's lock is held. */
static heddle_status take_operands(heddle_pkernel *k, operands **out, heddle_error *err) {
  operands **link = &k->oldest, *before = NULL;
  for (int i = 0; i < LOOK_AT && *link != NULL; i++, before = *link, link = &(*link)->next) {
    operands *o = *link;
    if (o->value == UINT64_MAX || vlk_reached(o->stream, o->value, NULL) != HEDDLE_OK) continue;
    *link = o->next;
    if (k->newest == o) k->newest = before;
    *out = o;
    return HEDDLE_OK;
  }
  return make_operands(k, out, err);
}

static void give_operands(heddle_pkernel *k, operands *o) {
  o->next = NULL;
  if (k->newest != NULL) k->newest->next = o;
  else k->oldest = o;
  k->newest = o;
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

static heddle_status write_operands(const heddle_pkernel *k, operands *o, const VkDescriptorBufferInfo *buffers,
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

static heddle_status module_launch(heddle_pstream *stream, heddle_pkernel *k, const uint32_t *grid,
                                   const uint32_t *block, uint32_t shared_bytes, const heddle_pargument *args,
                                   uint32_t n_args, heddle_error *err) {
  heddle_pdevice *dev = stream->dev;
  VkDescriptorBufferInfo buffers[VLK_MOST_BINDINGS];
  unsigned char scalars[VLK_BLOCK_BYTES] = {0};
  VkCommandBuffer commands = VK_NULL_HANDLE;
  operands *o = NULL;
  heddle_status s = check_launch(stream, k, grid, block, shared_bytes, err);
  if (s == HEDDLE_OK) s = sort_arguments(k, args, n_args, buffers, scalars, err);
  if (s == HEDDLE_OK) s = vlk_stream_work(stream, &commands, err);
  if (s != HEDDLE_OK) return s;
  pthread_mutex_lock(&k->module->lock);
  s = take_operands(k, &o, err);
  if (s == HEDDLE_OK) {
    s = write_operands(k, o, buffers, scalars, err);
    o->stream = stream;
    o->value = stream->capture != NULL ? UINT64_MAX : atomic_load(&stream->submitted) + 1;
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

const heddle_module_table vlk_module_table = {
    .struct_size = sizeof vlk_module_table,
    .unload = module_unload,
    .formats = module_formats,
    .load = module_load,
    .kernel_get = kernel_get,
    .launch = module_launch,
};
