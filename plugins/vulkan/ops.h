/* Operators, between the files that make them: query and prepare in ops.c, launches in launch.c. */
#ifndef HEDDLE_PLUGINS_VULKAN_OPS_H
#define HEDDLE_PLUGINS_VULKAN_OPS_H

#include "half.h"
#include "pipeline.h"

#include "plugins/common/kernels/op.h"

/* A step of a plan as it is launched. pipeline NULL: a copy. code and specs: what the pipeline was made of; is_made: and of
 * code made for the step. */
typedef struct vlk_step {
  const vlk_pipeline *pipeline;
  const vlk_code *code;
  bool is_made;
  uint32_t n_specs, specs[VLK_SPECS];
  uint32_t groups[2];
  uint32_t n_push;    /* words */
  uint64_t params_at; /* in constants; UINT64_MAX: all parameters are pushed */
  uint64_t params_bytes;
  uint32_t push[VLK_PUSH_WORDS];
} vlk_step;

/* Immutable. constants: the plan's table, at 0, the weights that are kept as float16, and the parameters that are too
 * many to push; NULL: none of them. */
struct heddle_pop {
  heddle_pdevice *dev;
  k_op k;
  vlk_half half;
  vlk_step *steps; /* one for each of the plan's */
  heddle_pbuffer *constants;
  bool stores; /* a step has parameters that are not pushed */
  const heddle_pbuffer *nothing;
};

/* The device as plugins/common/kernels/op.h wants it. */
k_site vlk_site(const heddle_pinstance *self, const vlk_info *info);

/* heddle_op_table's. */
heddle_status vlk_partition(heddle_pinstance *self, uint32_t index, const heddle_pregion *region,
                            heddle_propose_fn propose, void *sink, heddle_error *err);
heddle_status vlk_bind(heddle_pop *op, heddle_pstream *stream, const heddle_pbind *slices, heddle_plaunch **out,
                       heddle_error *err);
heddle_status vlk_run(heddle_plaunch *launch, heddle_error *err);
void vlk_launch_free(heddle_plaunch *launch);
heddle_status vlk_op_resize(heddle_plaunch *launch, const heddle_pregion *region, const heddle_pbind *slices,
                            heddle_error *err);

/* Of parameters that are stored, aligned. */
uint64_t vlk_stored_bytes(const heddle_pdevice *dev);

/* What a shader's parameters and groups become in a step. */
heddle_status vlk_step_set(const heddle_pop *op, const vlk_shader *shader, vlk_step *step, heddle_error *err);

#endif
