/* Plans whose kernel has the general reference kernel's geometry in a table (k_general of portable_params.h). Not for
 * use outside this folder. */
#ifndef HEDDLE_PLUGINS_COMMON_KERNELS_PLAN_GENERAL_H
#define HEDDLE_PLUGINS_COMMON_KERNELS_PLAN_GENERAL_H

#include "plan_portable.h"

enum { K_MOST_OPERANDS = 10 };

/* The node by its setup, and the plan's table of it. A result of no elements needs no step. */
heddle_status k_general_of(k_node *n, more_op *m, heddle_error *err);

/* A launch on the operands of the node, in their order from 0 to n_operands, the table, and a result of the step. what is
 * absent is the table. */
typedef struct k_general_launch {
  uint8_t kernel, n_types, types[K_TYPES];
  uint32_t n_operands;
  uint32_t out; /* K_OUTPUT or K_WORKSPACE, see k_step */
  int64_t items, mode, step;
  double turns;
  int32_t variant;
} k_general_launch;
heddle_status k_general_add(k_node *n, const more_op *m, const k_general_launch *how, heddle_error *err);

/* What k_general_add puts into the parameters and the arguments; the latter without the result. */
uint32_t k_general_args(const k_node *n, const more_op *m, uint32_t n_operands, uint32_t args[K_ARGS]);
int64_t k_general_has(const k_node *n, const more_op *m);
uint32_t k_result(const k_node *n, const more_op *m, uint32_t k);

/* How a kernel of portable_flash.cl is launched: units heads of keys, each with queries, keys, elements of both, and wide elements of
 * a value. Its code's variant, its items and their turns; is_f64: what it computes in. */
typedef struct k_flash {
  int64_t units, queries, keys, size, wide;
  bool is_f64;
} k_flash;
int32_t k_flash_variant(const k_node *n, const k_flash *f);
int64_t k_flash_items(const k_flash *f, int32_t variant);
double k_flash_turns(const k_flash *f);

#endif
