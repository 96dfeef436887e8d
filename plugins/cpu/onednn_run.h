/* From a plan to a prepared region. */
#ifndef HEDDLE_PLUGINS_CPU_ONEDNN_RUN_H
#define HEDDLE_PLUGINS_CPU_ONEDNN_RUN_H

#include "onednn_internal.h"

/* How many tasks run so many parts: each has scratch memory, and part k is of task k % tasks. */
static inline uint32_t onednn_tasks(uint32_t parts) {
  return parts < ONEDNN_TASKS ? parts : ONEDNN_TASKS;
}

/* Bytes of scratch memory for all tasks at once; each, where not NULL: for one of them. */
uint64_t onednn_plan_workspace(const onednn_plan *plan, uint64_t *each);

/* Makes the primitives of a plan, which the op does not keep, and says what each operand needs. */
heddle_status onednn_op_make(onednn *self, const onednn_plan *plan, cpu_operand *operands, onednn_op **out,
                             heddle_error *err);

/* Gives a launch other addresses than it was bound to, but for its workspace. Allocates nothing. HEDDLE_EUNSUPPORTED for special
 * ones without move. */
heddle_status onednn_move(onednn_launch *launch, void *const *inputs, void *const *outputs, heddle_error *err);

/* Makes an op of a special one (onednn_special.h), which it takes over, also where it fails. */
typedef struct onednn_special onednn_special;
heddle_status onednn_op_hold(onednn *self, onednn_special *special, onednn_op **out, heddle_error *err);

#endif
