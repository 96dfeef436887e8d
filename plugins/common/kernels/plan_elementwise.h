/* A walk over the elements of a result, under construction: what elementwise operators and the movement of data share.
 * Not for use outside this folder. */
#ifndef HEDDLE_PLUGINS_COMMON_KERNELS_PLAN_ELEMENTWISE_H
#define HEDDLE_PLUGINS_COMMON_KERNELS_PLAN_ELEMENTWISE_H

#include "plan_portable.h"

enum { K_WALK_DIMS = 16 }; /* before joining */

/* Row K_OPERANDS of step and base is the result. Steps are in elements. */
typedef struct k_walk_plan {
  int32_t dims;
  uint32_t n_operands;
  int64_t dim[K_WALK_DIMS], step[K_OPERANDS + 1][K_WALK_DIMS], base[K_OPERANDS + 1];
  uint32_t slot[K_OPERANDS], slot_out;
  uint8_t type[K_OPERANDS], type_out; /* K_ELEMENT_* */
  uint8_t kind;
  uint16_t op; /* as in k_code */
  float alpha, beta;
} k_walk_plan;

/* Starts a walk over the whole of a row-major result; operands follow. */
void k_walk_init(k_walk_plan *w, const heddle_pvalue *out);

/* Adds the kernel for a walk whose members are all set; nothing for one without elements. Changes w. */
heddle_status k_walk_add(k_node *n, k_walk_plan *w, heddle_error *err);

/* The type as which a kernel computes with elements, bool being bytes; K_ELEMENT_COUNT where there is none, or the device lacks
 * it, which k_refuse_type says. */
uint8_t k_scalar_element(const k_node *n, heddle_dtype d);
heddle_status k_refuse_type(const k_node *n, heddle_dtype d, heddle_error *err);

/* The cast of x, the node's operand or what it is in a part of the workspace, to the node's result; of no types of 8 bits and less
 * but integers. And Cast and CastLike of those types. */
heddle_status k_cast_to_result(k_node *n, const heddle_pvalue *x, uint32_t arg, heddle_error *err);
heddle_status k_plan_cast_narrow(k_node *n, heddle_error *err);

#endif
