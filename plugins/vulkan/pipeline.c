/* The calls of pipeline.h. */
#include "pipeline.h"

typedef struct kept kept;

/* A pipeline and what it was made of. The words of a shader that was made for a chain stand behind it. */
struct kept {
  kept *next;
  vlk_pipeline made;
  const vlk_code *code;
  uint64_t own_bytes;
  uint32_t n_specs, reserved;
  uint32_t specs[VLK_SPECS];
};

/* By number of operands, from 0. */
typedef struct layouts {
  VkDescriptorSetLayout set;
  VkPipelineLayout layout;
} layouts;

struct vlk_ops {
  VkPipelineCache cache;
  bool grown;
  kept *first;
  heddle_pbuffer *nothing;
  layouts layouts[K_ARGS + 1];
};

enum { NOTHING_BYTES = 256 };

/* ---------------------------------------------------------------- what a device keeps */

/* build_lock is held. */
static heddle_status ops_of(heddle_pdevice *dev, vlk_ops **out, heddle_error *err) {
  void *memory = NULL;
  *out = dev->ops;
  if (dev->ops != NULL) return HEDDLE_OK;
  heddle_status s = vlk_new(dev->host, sizeof(vlk_ops), "a device's operators", &memory, err);
  if (s != HEDDLE_OK) return s;
  *out = dev->ops = memory;
  dev->ops->cache = vlk_cache_open(dev);
  return HEDDLE_OK;
}

void vlk_ops_close(heddle_pdevice *dev) {
  vlk_ops *ops = dev->ops;
  if (ops == NULL) return;
  while (ops->first != NULL) {
    kept *k = ops->first;
    ops->first = k->next;
    dev->vk.DestroyPipeline(dev->device, k->made.pipeline, NULL);
    dev->host->free(dev->host->ctx, k);
  }
  for (uint32_t n = 0; n <= K_ARGS; n++) {
    dev->vk.DestroyPipelineLayout(dev->device, ops->layouts[n].layout, NULL);
    dev->vk.DestroyDescriptorSetLayout(dev->device, ops->layouts[n].set, NULL);
  }
  vlk_cache_close(dev, ops->cache, ops->grown);
  if (ops->nothing != NULL) vlk_buffer_free(ops->nothing);
  dev->host->free(dev->host->ctx, ops);
  dev->ops = NULL;
}

heddle_status vlk_nothing(heddle_pdevice *dev, const heddle_pbuffer **out, heddle_error *err) {
  vlk_ops *ops = NULL;
  pthread_mutex_lock(&dev->build_lock);
  heddle_status s = ops_of(dev, &ops, err);
  if (s == HEDDLE_OK && ops->nothing == NULL)
    s = vlk_buffer_make(dev, HEDDLE_MEMORY_DEVICE, NOTHING_BYTES, &ops->nothing, err);
  if (s == HEDDLE_OK) *out = ops->nothing;
  pthread_mutex_unlock(&dev->build_lock);
  return s;
}

/* ---------------------------------------------------------------- making one */

static heddle_status layouts_of(heddle_pdevice *dev, vlk_ops *ops, uint32_t n, heddle_error *err) {
  layouts *l = &ops->layouts[n];
  VkDescriptorSetLayoutBinding bindings[K_ARGS + 1];
  for (uint32_t i = 0; i <= n; i++) {
    bindings[i] = (VkDescriptorSetLayoutBinding){.binding = i,
                                                 .descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
                                                 .descriptorCount = 1,
                                                 .stageFlags = VK_SHADER_STAGE_COMPUTE_BIT};
  }
  const VkDescriptorSetLayoutCreateInfo set = {
      .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO, .bindingCount = n + 1, .pBindings = bindings};
  const VkPushConstantRange push = {.stageFlags = VK_SHADER_STAGE_COMPUTE_BIT,
                                    .size = VLK_PUSH_WORDS * sizeof(uint32_t)};
  const VkPipelineLayoutCreateInfo layout = {.sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO,
                                             .setLayoutCount = 1,
                                             .pSetLayouts = &l->set,
                                             .pushConstantRangeCount = 1,
                                             .pPushConstantRanges = &push};
  VkResult code = VK_SUCCESS;
  if (l->set == VK_NULL_HANDLE) {
    code = dev->vk.CreateDescriptorSetLayout(dev->device, &set, NULL, &l->set);
    if (code != VK_SUCCESS) l->set = VK_NULL_HANDLE;
  }
  if (code == VK_SUCCESS && l->layout == VK_NULL_HANDLE) {
    code = dev->vk.CreatePipelineLayout(dev->device, &layout, NULL, &l->layout);
    if (code != VK_SUCCESS) l->layout = VK_NULL_HANDLE;
  }
  return vlk_check(dev, code, "make the layout of a shader's operands", err);
}

static heddle_status compile(heddle_pdevice *dev, vlk_ops *ops, const vlk_shader *shader, vlk_pipeline *out,
                             heddle_error *err) {
  VkSpecializationMapEntry entries[VLK_SPECS];
  char what[128];
  VkShaderModule module = VK_NULL_HANDLE;
  for (uint32_t i = 0; i < shader->n_specs; i++)
    entries[i] = (VkSpecializationMapEntry){i, i * (uint32_t)sizeof(uint32_t), sizeof(uint32_t)};
  const VkSpecializationInfo specs = {shader->n_specs, entries, shader->n_specs * sizeof(uint32_t), shader->specs};
  const VkShaderModuleCreateInfo code_info = {
      .sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO,
      .codeSize = (size_t)(shader->made != NULL ? shader->made_bytes : shader->code->bytes),
      .pCode = shader->made != NULL ? shader->made : shader->code->words};
  VkComputePipelineCreateInfo info = {.sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO,
                                      .stage = {.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO,
                                                .stage = VK_SHADER_STAGE_COMPUTE_BIT,
                                                .pName = "main",
                                                .pSpecializationInfo = &specs},
                                      .layout = out->layout};
  VkResult code = dev->vk.CreateShaderModule(dev->device, &code_info, NULL, &module);
  if (code != VK_SUCCESS) module = VK_NULL_HANDLE;
  info.stage.module = module;
  if (code == VK_SUCCESS)
    code = dev->vk.CreateComputePipelines(dev->device, ops->cache, 1, &info, NULL, &out->pipeline);
  dev->vk.DestroyShaderModule(dev->device, module, NULL);
  snprintf(what, sizeof what, "compile shader '%s'", shader->code->name);
  return vlk_check(dev, code, what, err);
}

static bool is_of(const kept *k, const vlk_shader *shader) {
  return k->code == shader->code && k->made.n_operands == shader->n_operands && k->n_specs == shader->n_specs &&
         k->own_bytes == shader->made_bytes && memcmp(k->specs, shader->specs, sizeof k->specs) == 0 &&
         (shader->made == NULL || memcmp(k + 1, shader->made, (size_t)shader->made_bytes) == 0);
}

/* build_lock is held. */
static const vlk_pipeline *find_pipeline(const vlk_ops *ops, const vlk_shader *shader) {
  for (const kept *k = ops->first; k != NULL; k = k->next)
    if (is_of(k, shader)) return &k->made;
  return NULL;
}

const vlk_pipeline *vlk_pipeline_find(heddle_pdevice *dev, const vlk_shader *shader) {
  if (pthread_mutex_trylock(&dev->build_lock) != 0) return NULL;
  const vlk_pipeline *found = dev->ops != NULL ? find_pipeline(dev->ops, shader) : NULL;
  pthread_mutex_unlock(&dev->build_lock);
  return found;
}

/* build_lock is held. */
static heddle_status find_or_make(heddle_pdevice *dev, const vlk_shader *shader, const vlk_pipeline **out,
                                  heddle_error *err) {
  const uint32_t n = shader->n_operands;
  vlk_ops *ops = NULL;
  void *memory = NULL;
  if (n > K_ARGS) return p_fail(err, HEDDLE_EINTERNAL, 0, "vulkan:%u: a shader of %u operands", dev->index, n);
  heddle_status s = ops_of(dev, &ops, err);
  if (s != HEDDLE_OK) return s;
  *out = find_pipeline(ops, shader);
  if (*out != NULL) return HEDDLE_OK;
  s = layouts_of(dev, ops, n, err);
  if (s == HEDDLE_OK) s = vlk_new(dev->host, sizeof(kept) + shader->made_bytes, "a pipeline", &memory, err);
  if (s != HEDDLE_OK) return s;
  kept *k = memory;
  k->made = (vlk_pipeline){.layout = ops->layouts[n].layout, .set = ops->layouts[n].set, .n_operands = n};
  s = compile(dev, ops, shader, &k->made, err);
  if (s != HEDDLE_OK) {
    dev->host->free(dev->host->ctx, k);
    return s;
  }
  k->code = shader->code;
  k->own_bytes = shader->made_bytes;
  k->n_specs = shader->n_specs;
  memcpy(k->specs, shader->specs, sizeof k->specs);
  if (shader->made != NULL) memcpy(k + 1, shader->made, (size_t)shader->made_bytes);
  k->next = ops->first;
  ops->first = k;
  ops->grown = true;
  *out = &k->made;
  return HEDDLE_OK;
}

heddle_status vlk_pipeline_get(heddle_pdevice *dev, const vlk_shader *shader, const vlk_pipeline **out,
                               heddle_error *err) {
  pthread_mutex_lock(&dev->build_lock);
  heddle_status s = find_or_make(dev, shader, out, err);
  pthread_mutex_unlock(&dev->build_lock);
  return s;
}

VkResult vlk_pipeline_make(heddle_pdevice *dev, const VkComputePipelineCreateInfo *how, VkPipeline *out) {
  vlk_ops *ops = NULL;
  pthread_mutex_lock(&dev->build_lock);
  VkResult code = ops_of(dev, &ops, NULL) == HEDDLE_OK ? VK_SUCCESS : VK_ERROR_OUT_OF_HOST_MEMORY;
  if (code == VK_SUCCESS) code = dev->vk.CreateComputePipelines(dev->device, ops->cache, 1, how, NULL, out);
  if (code == VK_SUCCESS) ops->grown = true;
  else *out = VK_NULL_HANDLE;
  pthread_mutex_unlock(&dev->build_lock);
  return code;
}
