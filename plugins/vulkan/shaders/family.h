/* What families of shaders share about types: those of plans, and whether a device has them. */
#ifndef HEDDLE_PLUGINS_VULKAN_SHADERS_FAMILY_H
#define HEDDLE_PLUGINS_VULKAN_SHADERS_FAMILY_H

#include "plugins/vulkan/shader.h"

/* As convert.glsl has them. */
enum { VLK_SIGNED = 0, VLK_UNSIGNED = 1, VLK_REAL = 2, VLK_HALF = 3, VLK_BFLOAT = 4 };

/* name: of the variants that compute in it. */
typedef struct vlk_type {
  const char *name;
  uint32_t bytes, kind;
} vlk_type;

/* Type t of a step's code. */
const vlk_type *vlk_type_of(const k_step *step, uint32_t t);

/* HEDDLE_EUNSUPPORTED with a message where the device does not store words of so many bytes, or does not compute in the
 * type. */
heddle_status vlk_want_words(const struct vlk_info *info, uint32_t bytes, heddle_error *err);
heddle_status vlk_want_type(const struct vlk_info *info, const vlk_type *type, heddle_error *err);

static inline bool vlk_has(const k_step *step, uint32_t flag) {
  return (step->code.flags & flag) != 0;
}

/* Do subgroups of the device's compute shaders add up by themselves? */
bool vlk_adds_subgroups(const struct vlk_info *info);

/* HEDDLE_EUNSUPPORTED with a message where an item's loops take more turns, in all, than the device lets them: lavapipe
 * ends every loop of an item after 65,535, and results would be wrong. */
heddle_status vlk_want_turns(const struct vlk_info *info, double turns, heddle_error *err);

#endif
