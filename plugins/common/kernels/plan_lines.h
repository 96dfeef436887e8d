/* Plans of lines.cl for types that a family's own kernels do not have. Not for use outside this folder. */
#ifndef HEDDLE_PLUGINS_COMMON_KERNELS_PLAN_LINES_H
#define HEDDLE_PLUGINS_COMMON_KERNELS_PLAN_LINES_H

#include "plan_op.h"

heddle_status k_plan_reduce_any(k_node *n, heddle_error *err);
heddle_status k_plan_layer_norm_any(k_node *n, heddle_error *err);
heddle_status k_plan_softmax_any(k_node *n, heddle_error *err);

#endif
