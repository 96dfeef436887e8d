/* From a kernel's launch in a plan (plugins/common/kernels/plan.h) to SPIR-V that does the same: which variant, built
 * with which constants, with which parameters and how many groups. Pure: nothing here knows an open device.
 *
 * How a shader is launched. Descriptor set 0; binding 0 is a readonly storage buffer of the parameters, 32-bit words,
 * where these take more than VLK_PUSH_WORDS words (the first of them are push constants too), else they are push
 * constants from offset 0 on (binding 0 then holds something that no shader reads). Bindings 1, 2, ... are the operands
 * in the order of k_step.args. Groups are counted in x and y: group = gl_WorkGroupID.x + gl_WorkGroupID.y *
 * gl_NumWorkGroups.x, and those past the end do nothing, so the parameters hold the count. Indices are 32 bits: what
 * needs more is refused.
 *
 * A new shader is a file in shaders/, a line for each variant in shaders/variants_NAME.cmake, and a family in shader.c's table. */
#ifndef HEDDLE_PLUGINS_VULKAN_SHADER_H
#define HEDDLE_PLUGINS_VULKAN_SHADER_H

#include "plugins/common/kernels/plan.h"
#include "plugins/common/perror.h"

#include <stdbool.h>

struct vlk_info;

enum { VLK_SPECS = 16, VLK_PARAM_WORDS = 96 };

/* A variant: SPIR-V that the build made of shaders/ (shaders.cmake), by its name there. */
typedef struct vlk_code {
  const char *name;
  const uint32_t *words;
  uint64_t bytes;
} vlk_code;

/* NULL where there is no such variant. */
const vlk_code *vlk_code_find(const char *name);

/* Specialisation constant i is specs[i], 32 bits of whatever type. made: SPIR-V that was made for this step, from
 * host->alloc, of made_bytes; NULL: the words of code. The parameters are pushed where there are VLK_PUSH_WORDS or
 * fewer. n_operands: that the shader has, the step's by default; where it has more, those between the step's inputs and
 * its result hold nothing. halves: bit k is set where argument k of the step is float16 in memory instead of float32;
 * for the family to read. wide: a parameter did not fit. */
typedef struct vlk_shader {
  const vlk_code *code;
  uint32_t *made;
  uint64_t made_bytes;
  uint64_t groups;
  uint32_t n_specs, n_params, n_operands, halves;
  uint32_t specs[VLK_SPECS];
  uint32_t params[VLK_PARAM_WORDS];
  bool wide;
} vlk_shader;

/* The shader of a step of kind K_STEP_KERNEL on a device that is as info says. HEDDLE_EUNSUPPORTED with the reason, a
 * text that goes behind the node's name: an index over 31 bits, a type that the device does not store, a range that is
 * too long. halves: as in vlk_shader, none but arguments that may be so. Does not allocate, but for chains, whose made
 * is freed with vlk_shader_free; out holds nothing after an error. host NULL: chains get no code, only constants and
 * parameters. Any thread. */
heddle_status vlk_shader_of(const heddle_host *host, const struct vlk_info *info, const k_step *step, uint32_t halves,
                            vlk_shader *out, heddle_error *err);
void vlk_shader_free(const heddle_host *host, vlk_shader *shader);

/* Has a step a shader for argument arg as float16? Products have, and convolutions in blocks or tiles for their
 * weights. */
bool vlk_takes_half(const struct vlk_info *info, const k_step *step, uint32_t arg);

/* ---------------------------------------------------------------- for the families */

/* A family fills code, specs and params of a zeroed shader; groups holds the step's. vlk_shader_of has refused steps with
 * long indices before, and refuses parameters that do not fit after. */
typedef heddle_status (*vlk_family)(const heddle_host *host, const struct vlk_info *info, const k_step *step,
                                    vlk_shader *out, heddle_error *err);

heddle_status vlk_elementwise(const heddle_host *host, const struct vlk_info *info, const k_step *step, vlk_shader *out,
                              heddle_error *err);
heddle_status vlk_fused(const heddle_host *host, const struct vlk_info *info, const k_step *step, vlk_shader *out,
                        heddle_error *err);
heddle_status vlk_contract(const heddle_host *host, const struct vlk_info *info, const k_step *step, vlk_shader *out,
                           heddle_error *err);
heddle_status vlk_rows(const heddle_host *host, const struct vlk_info *info, const k_step *step, vlk_shader *out,
                       heddle_error *err);
heddle_status vlk_reduce(const heddle_host *host, const struct vlk_info *info, const k_step *step, vlk_shader *out,
                         heddle_error *err);
heddle_status vlk_norm(const heddle_host *host, const struct vlk_info *info, const k_step *step, vlk_shader *out,
                       heddle_error *err);
heddle_status vlk_along(const heddle_host *host, const struct vlk_info *info, const k_step *step, vlk_shader *out,
                        heddle_error *err);

/* Of every portable text: portable.c. */
heddle_status vlk_portable(const heddle_host *host, const struct vlk_info *info, const k_step *step, vlk_shader *out,
                           heddle_error *err);

/* Picks the variant that format names. HEDDLE_EINTERNAL where there is none. */
P_PRINTF(3, 4)
heddle_status vlk_pick_code(vlk_shader *out, heddle_error *err, const char *format, ...);

/* The next specialisation constant; the next parameter: a number of at most 31 bits with its sign (else wide is set), or
 * a float. */
void vlk_spec(vlk_shader *out, uint32_t value);
void vlk_param(vlk_shader *out, int64_t value);
void vlk_params(vlk_shader *out, const int64_t *values, uint32_t count);
void vlk_param_float(vlk_shader *out, float value);

#endif
