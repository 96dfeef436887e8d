/* BatchNormalization, InstanceNormalization, LayerNormalization and LRN. The reference kernels' plans check the nodes. */
#include "plan_lines.h"
#include "plan_op.h"

#include "plugins/common/more/more.h"

enum { LONG_ROW = 128, LONG_PLANE = 64 };

/* The kernel for all elements of the first operand, in rows of row elements, with the operands first .. last. */
static heddle_status add_norm(k_node *n, uint8_t kernel, uint64_t groups, uint32_t flags, const k_norm *p,
                              heddle_error *err) {
  k_step *step = NULL;
  heddle_status s = k_kernel_add(n->plan, kernel, groups, k_limit(n), &step, err);
  if (s != HEDDLE_OK) return s;
  step->code.flags = flags;
  step->params.norm = *p;
  step->params_bytes = sizeof *p;
  for (uint32_t k = 0; k < REF_OPERANDS; k++) {
    if (n->ref.in[k] != NULL) step->args[step->n_args++] = k_input(n, k);
  }
  for (uint32_t k = 0; k < n->ref.node->n_outputs && k < REF_RESULTS; k++) {
    if (region_node_output(n->ref.region, n->ref.node, k) != NULL) step->args[step->n_args++] = k_output(n, k);
  }
  n->plan->work += 8.0 * (double)p->rows * (double)p->n;
  return HEDDLE_OK;
}

/* Rows that are the planes of channels. */
static k_norm planes_of(const ref_norm *f, uint64_t count) {
  return (k_norm){.rows = f->inner > 0 ? (int64_t)count / f->inner : 0,
                  .n = f->inner,
                  .channels = f->channels,
                  .size = f->size,
                  .epsilon = f->epsilon,
                  .alpha = f->alpha,
                  .beta = f->beta,
                  .bias = f->bias};
}

static heddle_status plan_batch_norm(k_node *n, heddle_error *err) {
  ref_op op = {0};
  uint64_t count = 0;
  int64_t trains = 0;
  bool converted = false;
  heddle_status s = k_plan_in_one_type(n, K_NO_OPERAND, &converted, err);
  if (s == HEDDLE_OK && !converted) s = k_plan_widened(n, &converted, err);
  if (s != HEDDLE_OK || converted) return s;
  region_attr_int(n->ref.node, "training_mode", 0, &trains, NULL);
  if (trains != 0 || !k_is_float32(n)) return k_plan_batch_any(n, err);
  s = ref_plan_batch_norm(&n->ref, &op, err);
  if (s != HEDDLE_OK) return s;
  region_value_count(n->ref.out, &count);
  if (count == 0) return HEDDLE_OK;
  k_norm p = planes_of(&op.u.norm, count);
  k_allow_in_place(n, 0);
  if (k_prefers(n, KERNEL_batch_item, p.n < LONG_PLANE))
    return add_norm(n, KERNEL_batch_item, k_groups(count), 0, &p, err);
  p.size = (p.n + K_GROUP * K_STRETCH - 1) / (K_GROUP * K_STRETCH);
  return add_norm(n, KERNEL_batch_plane, (uint64_t)(p.rows * p.size), 0, &p, err);
}

static heddle_status add_rows(k_node *n, uint32_t flags, const k_norm *p, heddle_error *err) {
  const uint64_t rows = (uint64_t)p->rows;
  const bool by_group = k_prefers(n, KERNEL_norm_group, p->n >= LONG_ROW);
  k_allow_in_place(n, 0);
  return add_norm(n, by_group ? KERNEL_norm_group : KERNEL_norm_item, by_group ? rows : k_groups(rows), flags, p, err);
}

static heddle_status plan_instance_norm(k_node *n, heddle_error *err) {
  ref_op op = {0};
  uint64_t count = 0;
  heddle_status s = ref_plan_instance_norm(&n->ref, &op, err);
  if (s != HEDDLE_OK) return s;
  region_value_count(n->ref.out, &count);
  if (count == 0) return HEDDLE_OK;
  const k_norm p = planes_of(&op.u.norm, count);
  return add_rows(n, K_HAS_BIAS, &p, err);
}

/* Scale and bias have as many elements as a row: they do not broadcast within it. */
static bool has_full_scale(const k_node *n) {
  int64_t stash = 1, inner, size;
  int32_t axis;
  uint64_t row = 1, count = 0;
  if (region_attr_int(n->ref.node, "stash_type", 1, &stash, NULL) != HEDDLE_OK || stash != 1) return false;
  if (ref_axis(&n->ref, -1, &axis, &size, &inner, NULL) != HEDDLE_OK) return false;
  for (int32_t d = axis; d < n->ref.in[0]->ndim; d++) row *= (uint64_t)n->ref.in[0]->shape[d];
  for (uint32_t k = 1; k < 3; k++) {
    const heddle_pvalue *v = n->ref.in[k];
    if (v != NULL && (!region_value_count(v, &count) || count != row || v->ndim < n->ref.in[0]->ndim - axis))
      return false;
  }
  return true;
}

/* Mean or inverse deviation is kept as float16 or bfloat16, which stash_type names. */
static bool keeps_half(const k_node *n) {
  for (uint32_t k = 1; k < 3; k++) {
    const heddle_pvalue *v = region_node_output(n->ref.region, n->ref.node, k);
    if (v != NULL && more_is_half(v->dtype)) return true;
  }
  return false;
}

static heddle_status plan_layer_norm(k_node *n, heddle_error *err) {
  ref_op op = {0};
  bool widened = false;
  const bool as_it_is = keeps_half(n);
  heddle_status s = as_it_is ? HEDDLE_OK : k_plan_widened(n, &widened, err);
  if (s != HEDDLE_OK || widened) return s;
  if (as_it_is || !k_is_float32(n) || !has_full_scale(n)) return k_plan_layer_norm_any(n, err);
  s = ref_plan_layer_norm(&n->ref, &op, err);
  if (s != HEDDLE_OK) return s;
  const ref_norm *f = &op.u.norm;
  if (f->channels == 0) return HEDDLE_OK;
  const k_norm p = {.rows = f->channels, .n = f->n, .channels = 1, .epsilon = f->epsilon};
  uint32_t flags = K_LAYER;
  if (n->ref.in[2] != NULL) flags |= K_HAS_BIAS;
  if (region_node_output(n->ref.region, n->ref.node, 1) != NULL) flags |= K_HAS_MEAN;
  if (region_node_output(n->ref.region, n->ref.node, 2) != NULL) flags |= K_HAS_LESS;
  return add_rows(n, flags, &p, err);
}

static heddle_status plan_lrn(k_node *n, heddle_error *err) {
  ref_op op = {0};
  uint64_t count = 0;
  heddle_status s = ref_plan_lrn(&n->ref, &op, err);
  if (s != HEDDLE_OK) return s;
  region_value_count(n->ref.out, &count);
  if (count == 0) return HEDDLE_OK;
  const k_norm p = planes_of(&op.u.norm, count);
  s = add_norm(n, KERNEL_lrn, k_groups(count), 0, &p, err);
  n->plan->work += (double)count * (100.0 + (double)p.size);
  return s;
}

const k_entry k_norm_table[] = {
    {"BatchNormalization", 0, plan_batch_norm},
    {"InstanceNormalization", K_WIDENS, plan_instance_norm},
    {"LRN", K_WIDENS, plan_lrn},
    {"LayerNormalization", 0, plan_layer_norm},
    {0},
};
