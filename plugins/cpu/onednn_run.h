/* From a plan to a prepared region. */
#ifndef HEDDLE_PLUGINS_CPU_ONEDNN_RUN_H
#define HEDDLE_PLUGINS_CPU_ONEDNN_RUN_H

#include "onednn_internal.h"

/* Makes the primitive of a plan, which the op does not keep, and says what each operand needs. */
heddle_status onednn_op_make(onednn *self, const onednn_plan *plan, cpu_operand *operands, onednn_op **out,
                             heddle_error *err);

#endif
