/* Device code from outside: SPIR-V ("spirv"), whose kernels are its compute entry points. The k-th argument that is a
 * buffer is at binding k of set 0, and scalars are the members, in their order, of its push constants or of its only
 * uniform buffer: as TVM's compiler writes it, whose slots are 4 or 8 bytes wide. Groups are as large as the code says. */
#include "module.h"

#define UNLOAD_NS UINT64_C(2000000000)

/* ---------------------------------------------------------------- modules */

static void kernel_free(heddle_pkernel *k) {
  heddle_pdevice *dev = k->module->dev;
  while (k->oldest != NULL) {
    vlk_operands *next = k->oldest->next;
    if (k->oldest->block != NULL) vlk_buffer_free(k->oldest->block);
    vlk_capture_end_drop(dev, k->oldest->end);
    dev->host->free(dev->host->ctx, k->oldest);
    k->oldest = next;
  }
  while (k->pools != NULL) {
    vlk_module_pool *next = k->pools->next;
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
  if (face->n_buffers > info->max_bindings)
    return p_fail(err, HEDDLE_ELIMIT, 0, "it has %u buffers, and a kernel of the device %u at most", face->n_buffers,
                  info->max_bindings);
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

const heddle_module_table vlk_module_table = {
    .struct_size = sizeof vlk_module_table,
    .unload = module_unload,
    .formats = module_formats,
    .load = module_load,
    .kernel_get = kernel_get,
    .launch = vlk_module_launch,
};
