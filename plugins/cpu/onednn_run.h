/* From a plan to a prepared region. */
#ifndef HEDDLE_PLUGINS_CPU_ONEDNN_RUN_H
#define HEDDLE_PLUGINS_CPU_ONEDNN_RUN_H

#include "onednn_internal.h"

/* Bytes of scratch memory for all parts at once; each, where not NULL: for one of them. */
uint64_t onednn_plan_workspace(const onednn_plan *plan, uint64_t *each);

/* Makes the primitives of a plan, which the op does not keep, and says what each operand needs. */
heddle_status onednn_op_make(onednn *self, const onednn_plan *plan, cpu_operand *operands, onednn_op **out,
                             heddle_error *err);

/* Makes an op of a special one (onednn_special.h), which it takes over, also where it fails. */
typedef struct onednn_special onednn_special;
heddle_status onednn_op_hold(onednn *self, onednn_special *special, onednn_op **out, heddle_error *err);

#endif
