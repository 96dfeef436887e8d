/* What the planning files share: a node with its values found, and the entries of the table of operators. Not for
 * use outside this folder. To add an operator: its plan in the file of its family, and a line in the table of that
 * family. */
#ifndef HEDDLE_PLUGINS_COMMON_KERNELS_PLAN_OP_H
#define HEDDLE_PLUGINS_COMMON_KERNELS_PLAN_OP_H

#include "plugins/common/kernels/plan.h"
#include "plugins/common/perror.h"
#include "plugins/common/ref/ref_op.h"
#include "plugins/common/region.h"

typedef struct k_entry k_entry;

typedef struct k_node {
  ref_node ref; /* the same for the plans of the reference kernels, which check a node's geometry for both */
  const k_entry *entry;
  k_plan *plan;
  uint32_t types; /* of the operator, as operators/ has them: HEDDLE__TYPE of each */
} k_node;

typedef heddle_status (*k_plan_fn)(k_node *n, heddle_error *err);

enum {
  K_WIDENS = 1, /* the plan does not know float16 and bfloat16, which go through that of float32 in the workspace */
  K_ANY =
      2 /* it takes all that the setup of more/ takes: other types for an operand too, and those of 8 bits and less */
};

struct k_entry {
  const char *op;
  uint32_t flags; /* K_WIDENS, K_ANY */
  k_plan_fn plan;
};

/* The tables of the families, each ended by an entry without op. */
extern const k_entry k_elementwise_table[], k_contract_table[], k_shape_table[];
extern const k_entry k_pick_table[], k_along_table[], k_fill_table[], k_resize_table[];
extern const k_entry k_rows_table[], k_norm_table[], k_pool_table[];
extern const k_entry k_select_table[], k_lines_table[], k_losses_table[], k_general_table[];
extern const k_entry k_quantize_table[], k_random_table[];
extern const k_entry k_attention_table[], k_signal_table[], k_products_table[], k_recurrent_table[], k_tfidf_table[];
extern const k_entry k_own_table[]; /* domain "heddle" */

/* Operators of one general kernel (plan_general.h); here for those whose float32 has kernels of its own. */
heddle_status k_plan_general(k_node *n, heddle_error *err);
static inline bool k_is_float32(const k_node *n) {
  return region_dtype_is(n->ref.in[0]->dtype, HEDDLE_DTYPE_FLOAT, 32);
}

/* The entry of an operator that has a scalar expression (operators/operators.h), NULL for others. */
const k_entry *k_scalar_entry(bool own, const char *op);

/* A node of float16 or bfloat16 by the plan of the same node of float32. widened is set where it has such values. */
heddle_status k_plan_widened(k_node *n, bool *widened, heddle_error *err);

/* A node whose operands and results are of several types of floating-point numbers by the plan of the same node of float64
 * where one of them is that, else of float32. Operand also, where there is one, may be of integers, which are converted too.
 * converted is set where that was so. */
#define K_NO_OPERAND UINT32_MAX
heddle_status k_plan_in_one_type(k_node *n, uint32_t also, bool *converted, heddle_error *err);

/* FusedElementwise, and regions of several nodes. */
heddle_status k_plan_fused(k_node *n, heddle_error *err);

/* Dropout in training; BatchNormalization in training, and of float64. */
heddle_status k_plan_dropout_training(k_node *n, heddle_error *err);
heddle_status k_plan_batch_any(k_node *n, heddle_error *err);

/* Domain "heddle"'s parts of ai.onnx.ml. */
heddle_status k_plan_kernel_matrix(k_node *n, heddle_error *err);
heddle_status k_plan_lookup(k_node *n, heddle_error *err);
heddle_status k_plan_pairs(k_node *n, heddle_error *err);
heddle_status k_plan_post_transform(k_node *n, heddle_error *err);
heddle_status k_plan_trees(k_node *n, heddle_error *err);

/* RMSNormalization, of both domains; Rotary, MatMulNBits, MatMulExperts, MatMulBlocks, FromBlocks and GroupQueryAttention. */
heddle_status k_plan_rotate(k_node *n, heddle_error *err);
heddle_status k_plan_rms_norm(k_node *n, heddle_error *err);
heddle_status k_plan_nbits(k_node *n, heddle_error *err);
heddle_status k_plan_experts(k_node *n, heddle_error *err);
heddle_status k_plan_blocks(k_node *n, heddle_error *err);
heddle_status k_plan_from_blocks(k_node *n, heddle_error *err);
heddle_status k_plan_gqa(k_node *n, heddle_error *err);

/* Element i of the array of the plan's steps, zeroed; NULL (with err filled) when memory is out. */
k_step *k_step_add(k_plan *plan, heddle_error *err);

/* A kernel's launch. index_limit: the largest element index or count that the kernel computes with; decides code.wide. The rest
 * of the code is the caller's to set. */
heddle_status k_kernel_add(k_plan *plan, uint8_t kernel, uint64_t groups, uint64_t index_limit, k_step **out,
                           heddle_error *err);

/* The kernel that the next step is to have where a launch is resized, of which sizes do not decide then; else NULL. And
 * whether the next step is to be of a kernel: by that, else as chosen. */
const k_step *k_like(const k_node *n);
bool k_prefers(const k_node *n, uint8_t kernel, bool chosen);

static inline uint64_t k_groups(uint64_t items) {
  return items / K_GROUP + (items % K_GROUP != 0);
}

/* The region slot of operand k of the node, and of a result. */
uint32_t k_input(const k_node *n, uint32_t k);
uint32_t k_output(const k_node *n, uint32_t k);

/* Zeroes op and sets what the reference kernels' plans ask of it: the slots of the first operands and results. */
void k_ref_op(const k_node *n, ref_op *op);

/* The plan's table, for the caller to fill. */
heddle_status k_table_new(k_node *n, uint64_t bytes, void **out, heddle_error *err);

/* Adds a copy of bytes from one operand to another. */
heddle_status k_copy_add(k_node *n, uint32_t from, uint64_t from_at, uint32_t to, uint64_t to_at, uint64_t bytes,
                         heddle_error *err);

/* The largest number of elements of an operand or the result: no index is beyond it. */
uint64_t k_limit(const k_node *n);

/* Result 0 may lie on operand k. */
void k_allow_in_place(k_node *n, uint32_t k);
/* Result r may be operand k with more elements, in its bytes (heddle_poffer.extends). */
void k_allow_extending(k_node *n, uint32_t k, uint32_t r);

/* A copy of the node's whole operand 0 to its result: nothing where both turn out to be the same bytes. */
heddle_status k_plan_copy(k_node *n, heddle_error *err);
heddle_status k_plan_copy_bits(k_node *n, heddle_error *err); /* to a result of any type of the same size */

#endif
