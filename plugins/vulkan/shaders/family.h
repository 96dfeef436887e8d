/* What families of shaders share about types: the words of plans' options, and whether a device has them. */
#ifndef HEDDLE_PLUGINS_VULKAN_SHADERS_FAMILY_H
#define HEDDLE_PLUGINS_VULKAN_SHADERS_FAMILY_H

#include "plugins/vulkan/shader.h"

/* As convert.glsl has them. */
enum { VLK_SIGNED = 0, VLK_UNSIGNED = 1, VLK_REAL = 2, VLK_HALF = 3, VLK_BFLOAT = 4 };

/* word: of the plan; name: of the variants that compute in it, NULL where none does. */
typedef struct vlk_type {
  const char *word, *name;
  uint32_t bytes, kind;
} vlk_type;

/* The type that an option of a step names; NULL where there is none. */
const vlk_type *vlk_type_of(const k_step *step, const char *key);

/* HEDDLE_EUNSUPPORTED with a message where the device does not store words of so many bytes, or does not compute in the
 * type. A type of NULL is HEDDLE_EINTERNAL. */
heddle_status vlk_want_words(const struct vlk_info *info, uint32_t bytes, heddle_error *err);
heddle_status vlk_want_type(const struct vlk_info *info, const vlk_type *type, heddle_error *err);

/* Has the step the option? */
static inline bool vlk_has(const k_step *step, const char *key) {
  char word[VLK_OPTION_BYTES];
  return vlk_option(step, key, word);
}

/* Do subgroups of the device's compute shaders add up by themselves? */
bool vlk_adds_subgroups(const struct vlk_info *info);

/* HEDDLE_EUNSUPPORTED with a message where an item's loops take more turns, in all, than the device lets them: lavapipe
 * ends every loop of an item after 65,535, and results would be wrong. */
heddle_status vlk_want_turns(const struct vlk_info *info, double turns, heddle_error *err);

#endif
