/* Weights as float16: with precision fast, where a device has 16-bit elements in buffers, a product or a convolution
 * keeps its constant operand so, in a buffer of its own and half the bytes; the host puts nothing of it on the device.
 * Shaders widen what they read, and compute in float32. */
#ifndef HEDDLE_PLUGINS_VULKAN_HALF_H
#define HEDDLE_PLUGINS_VULKAN_HALF_H

#include "vulkan.h"

#include "shader.h"

enum { VLK_NO_INPUT = -1 };

/* at: where in the operator's constants; bytes: whole words. input: of the region, or VLK_NO_INPUT. */
typedef struct vlk_half {
  uint64_t at, bytes;
  int64_t input;
} vlk_half;

/* Which input of a region is kept so; the plan's flags call it absorbed then. Pure: it looks at the weights, since
 * those that float16 does not hold stay as they are. */
vlk_half vlk_half_choose(const vlk_info *info, const heddle_pregion *region, k_plan *plan);

/* Its bytes, rounded to nearest, half to even. */
void vlk_half_write(const vlk_half *half, const heddle_pregion *region, void *to);

/* The arguments of a step that are it, for vlk_shader_of. */
uint32_t vlk_half_args(const vlk_half *half, const k_step *step);

#endif
