/* Modules of SPIR-V and their kernels, for the two files that make and launch them. */
#ifndef HEDDLE_PLUGINS_VULKAN_MODULE_H
#define HEDDLE_PLUGINS_VULKAN_MODULE_H

#include "stream.h"

#include "pipeline.h"
#include "spirv.h"

struct heddle_pmodule {
  heddle_pdevice *dev;
  uint64_t count;       /* of words */
  pthread_mutex_t lock; /* guards kernels, and what is in them; the driver is called with it held */
  heddle_pkernel *kernels;
  uint32_t words[];
};

/* A descriptor set, with the uniform buffer of its scalars where there is one. */
typedef struct vlk_operands {
  struct vlk_operands *next;
  VkDescriptorSet set;
  heddle_pbuffer *block;
  heddle_pstream *stream; /* whose work used it last */
  uint64_t value;         /* of that */
  vlk_capture_end *end;   /* of the capture that uses it; NULL: none does */
} vlk_operands;

typedef struct vlk_module_pool {
  struct vlk_module_pool *next;
  VkDescriptorPool pool;
  uint32_t left, reserved;
} vlk_module_pool;

struct heddle_pkernel {
  heddle_pkernel *next;
  heddle_pmodule *module;
  vlk_interface face;
  VkPipeline pipeline;
  VkPipelineLayout layout;
  VkDescriptorSetLayout set;
  vlk_module_pool *pools;
  vlk_operands *oldest, *newest;
  char name[];
};

/* launch: work of the stream (module_launch.c). */
heddle_status vlk_module_launch(heddle_pstream *stream, heddle_pkernel *kernel, const uint32_t *grid,
                                const uint32_t *block, uint32_t shared_bytes, const heddle_pargument *args,
                                uint32_t n_args, heddle_error *err);

#endif
