/* From a plan to a prepared region. */
#ifndef HEDDLE_PLUGINS_CPU_ONEDNN_RUN_H
#define HEDDLE_PLUGINS_CPU_ONEDNN_RUN_H

#include "onednn_internal.h"

/* Bytes of scratch memory for all parts at once; each, where not NULL: for one of them. */
uint64_t onednn_plan_workspace(const onednn_plan *plan, uint64_t *each);

/* Makes the primitives of a plan, which the op does not keep, and says what each operand needs. */
heddle_status onednn_op_make(onednn *self, const onednn_plan *plan, cpu_operand *operands, onednn_op **out,
                             heddle_error *err);

/* The same for a quantised region (onednn_int8.h); *out stays NULL and *made 0 where it is none. */
heddle_status onednn_op_make_int8(onednn *self, const heddle_pregion *region, uint32_t offer, cpu_operand *operands,
                                  onednn_op **out, uint32_t *made, heddle_error *err);

#endif
