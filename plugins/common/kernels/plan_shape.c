/* Operators that only move bytes. Reshape and its like are one copy (none, in place), Concat a copy or a walk for each
 * operand, Transpose and Expand a walk. The result's shape is known, so an operand that asks for it is not read. */
#include "plan_elementwise.h"

/* All bytes of operand k, to byte at of the result. */
static heddle_status add_copy(k_node *n, uint32_t k, uint64_t bytes, uint64_t at, heddle_error *err) {
  k_step *step = k_step_add(n->plan, err);
  if (step == NULL) return HEDDLE_ENOMEM;
  step->kind = K_STEP_COPY;
  step->args[step->n_args++] = k_input(n, k);
  step->args[step->n_args++] = k_output(n, 0);
  step->copy_bytes = bytes;
  step->copy_at = at;
  n->plan->work += (double)bytes / 4;
  return HEDDLE_OK;
}

heddle_status k_plan_copy(k_node *n, heddle_error *err) {
  uint64_t in = 0, out = 0;
  char name[DTYPE_NAME_BYTES];
  if (!dtype_equal(n->ref.in[0]->dtype, n->ref.out->dtype)) {
    return ref_refuse(&n->ref, err, "the result is %s; it keeps its operand's type",
                      dtype_name(n->ref.out->dtype, name));
  }
  value_bytes(n->ref.in[0], &in);
  value_bytes(n->ref.out, &out);
  if (in != out) return ref_refuse_shape(&n->ref, err);
  n->plan->pairs[0] = (int32_t)k_input(n, 0);
  n->plan->pairs[1] = 0;
  n->plan->n_pairs = 1;
  if (out == 0) return HEDDLE_OK;
  return add_copy(n, 0, out, 0, err);
}

/* The reference plan checks the attributes and shapes of these. */
static heddle_status plan_reshape(k_node *n, heddle_error *err) {
  ref_op op = {0};
  heddle_status s = ref_plan_reshape(&n->ref, &op, err);
  return s == HEDDLE_OK ? k_plan_copy(n, err) : s;
}

static heddle_status plan_flatten(k_node *n, heddle_error *err) {
  ref_op op = {0};
  heddle_status s = ref_plan_flatten(&n->ref, &op, err);
  return s == HEDDLE_OK ? k_plan_copy(n, err) : s;
}

static heddle_status plan_identity(k_node *n, heddle_error *err) {
  if (!shape_equal(n->ref.in[0], n->ref.out)) return ref_refuse_shape(&n->ref, err);
  return k_plan_copy(n, err);
}

/* Squeeze, Unsqueeze: the same elements, and the dimensions other than 1 in the same order. */
static heddle_status plan_squeeze(k_node *n, heddle_error *err) {
  const heddle_pvalue *x = n->ref.in[0], *y = n->ref.out;
  int32_t i = 0, k = 0;
  for (;; i++, k++) {
    while (i < x->ndim && x->shape[i] == 1) i++;
    while (k < y->ndim && y->shape[k] == 1) k++;
    if (i >= x->ndim || k >= y->ndim) break;
    if (x->shape[i] != y->shape[k]) return ref_refuse_shape(&n->ref, err);
  }
  if (i < x->ndim || k < y->ndim) return ref_refuse_shape(&n->ref, err);
  return k_plan_copy(n, err);
}

/* ---------------------------------------------------------------- Concat */

/* Rows of row bytes of operand k, each to byte at of a row of the result of pitch bytes. The words moved are as large
 * as the type allows. */
static heddle_status add_rows(k_node *n, uint32_t k, uint64_t rows, uint64_t row, uint64_t at, uint64_t pitch,
                              heddle_error *err) {
  static const char *const words[] = {"uchar", "ushort", "uint", "ulong"};
  const uint64_t element = dtype_bytes(n->ref.out->dtype);
  int size = 0;
  while (size < 3 && element % (UINT64_C(2) << size) == 0) size++;
  k_walk_plan w = {.dims = 2, .n_operands = 1, .word = "COPY"};
  w.type[0] = w.type_out = w.type_wrap = words[size];
  w.slot[0] = k_input(n, k);
  w.slot_out = k_output(n, 0);
  w.dim[0] = (int64_t)rows;
  w.dim[1] = (int64_t)(row >> size);
  w.step[0][0] = (int64_t)(row >> size);
  w.step[K_OPERANDS][0] = (int64_t)(pitch >> size);
  w.step[0][1] = w.step[K_OPERANDS][1] = 1;
  w.base[K_OPERANDS] = (int64_t)(at >> size);
  return k_walk_add(n, &w, err);
}

static heddle_status plan_concat(k_node *n, heddle_error *err) {
  ref_op op = {0};
  int64_t axis = 0;
  uint64_t outer = 1, at = 0;
  const heddle_pvalue *out = n->ref.out;
  heddle_status s = ref_plan_concat(&n->ref, &op, err);
  if (s != HEDDLE_OK || op.u.concat.row == 0) return s;
  attr_int(n->ref.node, "axis", 0, &axis, NULL);
  if (axis < 0) axis += out->ndim;
  for (int64_t i = 0; i < axis; i++) outer *= (uint64_t)out->shape[i];
  for (uint32_t k = 0; k < n->ref.node->n_inputs && outer > 0 && s == HEDDLE_OK; k++) {
    const heddle_pvalue *in = node_input(n->ref.region, n->ref.node, k);
    uint64_t row = dtype_bytes(out->dtype);
    for (int32_t i = (int32_t)axis; i < in->ndim; i++) row *= (uint64_t)in->shape[i];
    if (row == 0) continue;
    s = outer == 1 ? add_copy(n, k, row, at, err) : add_rows(n, k, outer, row, at, op.u.concat.row, err);
    at += row;
  }
  return s;
}

/* ---------------------------------------------------------------- walks */

static heddle_status start_walk(k_node *n, k_walk_plan *w, heddle_error *err) {
  const heddle_pvalue *x = n->ref.in[0], *y = n->ref.out;
  const char *word = k_bytes_word(y->dtype);
  if (word == NULL || !dtype_equal(x->dtype, y->dtype))
    return ref_refuse(&n->ref, err, "it takes elements of 1, 2, 4 or 8 bytes, and keeps their type");
  if (x->ndim > K_WALK_DIMS || y->ndim > K_WALK_DIMS)
    return ref_refuse(&n->ref, err, "more than %d dimensions", K_WALK_DIMS);
  k_walk_init(w, y);
  w->word = "COPY";
  w->type[0] = w->type_out = w->type_wrap = word;
  w->n_operands = 1;
  w->slot[0] = k_input(n, 0);
  w->slot_out = k_output(n, 0);
  return HEDDLE_OK;
}

/* Element steps of a row-major value. */
static void steps_of(const heddle_pvalue *x, int64_t steps[K_WALK_DIMS]) {
  int64_t step = 1;
  for (int32_t i = x->ndim - 1; i >= 0; i--) {
    steps[i] = step;
    if (x->shape[i] > 0) step *= x->shape[i];
  }
}

static heddle_status plan_transpose(k_node *n, heddle_error *err) {
  const heddle_pvalue *x = n->ref.in[0], *y = n->ref.out;
  const int64_t *perm = NULL;
  int64_t steps[K_WALK_DIMS];
  uint64_t count = 0;
  uint32_t seen = 0;
  k_walk_plan w;
  heddle_status s = start_walk(n, &w, err);
  if (s == HEDDLE_OK) s = attr_ints(n->ref.node, "perm", &perm, &count, err);
  if (s != HEDDLE_OK) return s;
  if (y->ndim != x->ndim || (perm != NULL && count != (uint64_t)x->ndim)) return ref_refuse_shape(&n->ref, err);
  steps_of(x, steps);
  for (int32_t i = 0; i < y->ndim; i++) {
    const int64_t from = perm != NULL ? perm[i] : y->ndim - 1 - i;
    if (from < 0 || from >= x->ndim || (seen >> from & 1) != 0)
      return ref_refuse(&n->ref, err, "perm is no permutation");
    seen |= UINT32_C(1) << from;
    if (y->shape[i] != x->shape[from]) return ref_refuse_shape(&n->ref, err);
    w.step[0][i] = steps[from];
  }
  return k_walk_add(n, &w, err);
}

static heddle_status plan_expand(k_node *n, heddle_error *err) {
  k_walk_plan w;
  heddle_status s = start_walk(n, &w, err);
  if (s != HEDDLE_OK) return s;
  if (!shape_broadcast_strides(n->ref.in[0], n->ref.out, w.step[0])) return ref_refuse_shape(&n->ref, err);
  return k_walk_add(n, &w, err);
}

#define ANY "any of whole bytes"
#define SIZED "any of 1, 2, 4 or 8 bytes"

const k_entry k_shape_table[] = {
    {"Concat", ANY, " axis ", 1, UINT32_MAX, plan_concat, NULL, NULL, 0, 0},
    {"Dropout", ANY, " seed ", 1, 2, plan_identity, NULL, NULL, 0, 0},
    {"Expand", SIZED, "", 2, 2, plan_expand, NULL, NULL, 0, 0},
    {"Flatten", ANY, " axis ", 1, 1, plan_flatten, NULL, NULL, 0, 0},
    {"Identity", ANY, "", 1, 1, plan_identity, NULL, NULL, 0, 0},
    {"Reshape", ANY, " allowzero ", 2, 2, plan_reshape, NULL, NULL, 0, 0},
    {"Squeeze", ANY, "", 1, 2, plan_squeeze, NULL, NULL, 0, 0},
    {"Transpose", SIZED, " perm ", 1, 1, plan_transpose, NULL, NULL, 0, 0},
    {"Unsqueeze", ANY, "", 2, 2, plan_squeeze, NULL, NULL, 0, 0},
    {0},
};
