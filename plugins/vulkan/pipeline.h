/* Pipelines, which operators of a device share: one for each shader and its constants, made when it is
 * first asked for and kept until the device is closed. */
#ifndef HEDDLE_PLUGINS_VULKAN_PIPELINE_H
#define HEDDLE_PLUGINS_VULKAN_PIPELINE_H

#include "vulkan.h"

#include "shader.h"

#include "plugins/common/filecache.h"

/* Immutable once it is there. The set has a storage buffer at each of bindings 0 to n_operands. */
typedef struct vlk_pipeline {
  VkPipeline pipeline;
  VkPipelineLayout layout; /* with VLK_PUSH_WORDS words to push */
  VkDescriptorSetLayout set;
  uint32_t n_operands;
} vlk_pipeline;

/* The pipeline of a shader; it belongs to the device. Compiles it where it is new, which may take long. A failure names
 * the shader. Any thread. */
heddle_status vlk_pipeline_get(heddle_pdevice *dev, const vlk_shader *shader, const vlk_pipeline **out,
                               heddle_error *err);

/* The same of one that was made before; NULL where there is none, or one is being made. Any thread. */
const vlk_pipeline *vlk_pipeline_find(heddle_pdevice *dev, const vlk_shader *shader);

/* A pipeline of its own for code from outside, through the driver's cache. Any thread. */
VkResult vlk_pipeline_make(heddle_pdevice *dev, const VkComputePipelineCreateInfo *how, VkPipeline *out);

/* A little buffer of the device's, for bindings that nothing reads. Any thread. */
heddle_status vlk_nothing(heddle_pdevice *dev, const heddle_pbuffer **out, heddle_error *err);

/* ---------------------------------------------------------------- cache.c, for pipeline.c */

/* The driver's cache of pipelines: with what was kept of it under the setting cache_dir, for this device and this version
 * of its driver, or empty. VK_NULL_HANDLE where the driver cannot. */
VkPipelineCache vlk_cache_open(heddle_pdevice *dev);

/* Keeps it where pipelines were added (grown), and destroys it. */
void vlk_cache_close(heddle_pdevice *dev, VkPipelineCache cache, bool grown);

#endif
