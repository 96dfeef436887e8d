/* Operators that only move bytes. Reshape and its like are one copy (none, in place), Concat and Split a copy or a walk
 * for each part, Transpose, Expand, Slice and Tile a walk. The result's shape is known, so an operand that asks for it is
 * not read. */
#include "plan_elementwise.h"

heddle_status k_copy_add(k_node *n, uint32_t from, uint64_t from_at, uint32_t to, uint64_t to_at, uint64_t bytes,
                         heddle_error *err) {
  k_step *step = k_step_add(n->plan, err);
  if (step == NULL) return HEDDLE_ENOMEM;
  step->kind = K_STEP_COPY;
  step->args[step->n_args++] = from;
  step->args[step->n_args++] = to;
  step->copy_bytes = bytes;
  step->copy_from = from_at;
  step->copy_at = to_at;
  n->plan->work += (double)bytes / 4;
  return HEDDLE_OK;
}

heddle_status k_plan_copy(k_node *n, heddle_error *err) {
  char name[DTYPE_NAME_BYTES];
  if (!region_dtype_equal(n->ref.in[0]->dtype, n->ref.out->dtype)) {
    return ref_refuse(&n->ref, err, "the result is %s; it keeps its operand's type",
                      region_dtype_name(n->ref.out->dtype, name));
  }
  return k_plan_copy_bits(n, err);
}

heddle_status k_plan_copy_bits(k_node *n, heddle_error *err) {
  uint64_t in = 0, out = 0;
  region_value_bytes(n->ref.in[0], &in);
  region_value_bytes(n->ref.out, &out);
  if (in != out) return ref_refuse_shape(&n->ref, err);
  n->plan->pairs[0] = (int32_t)k_input(n, 0);
  n->plan->pairs[1] = (int32_t)(k_output(n, 0) & ~K_OUTPUT);
  n->plan->n_pairs = 1;
  if (out == 0) return HEDDLE_OK;
  return k_copy_add(n, k_input(n, 0), 0, k_output(n, 0), 0, out, err);
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
  if (!region_shape_equal(n->ref.in[0], n->ref.out)) return ref_refuse_shape(&n->ref, err);
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

/* ---------------------------------------------------------------- Concat and Split */

/* Rows of row bytes, from one slot to another: where the first begins in each, and how far apart they lie. */
typedef struct rows_move {
  uint32_t from, to;
  uint64_t rows, row, from_pitch, to_pitch, from_at, to_at;
} rows_move;

/* The words moved are as large as the type allows. One row is a copy. */
static heddle_status move_rows(k_node *n, const rows_move *m, heddle_error *err) {
  int64_t words = 1;
  if (m->rows == 0 || m->row == 0) return HEDDLE_OK;
  if (m->rows == 1) return k_copy_add(n, m->from, m->from_at, m->to, m->to_at, m->row, err);
  const uint8_t word = k_words_of(region_dtype_bytes(n->ref.out->dtype), &words);
  const uint64_t size = region_dtype_bytes(n->ref.out->dtype) / (uint64_t)words;
  k_walk_plan w = {.dims = 2, .n_operands = 1, .op = K_RAW_COPY};
  w.type[0] = w.type_out = word;
  w.slot[0] = m->from;
  w.slot_out = m->to;
  w.dim[0] = (int64_t)m->rows;
  w.dim[1] = (int64_t)(m->row / size);
  w.step[0][0] = (int64_t)(m->from_pitch / size);
  w.step[K_OPERANDS][0] = (int64_t)(m->to_pitch / size);
  w.step[0][1] = w.step[K_OPERANDS][1] = 1;
  w.base[0] = (int64_t)(m->from_at / size);
  w.base[K_OPERANDS] = (int64_t)(m->to_at / size);
  return k_walk_add(n, &w, err);
}

/* Bytes that a value has from dimension axis on. */
static uint64_t row_bytes(const heddle_pvalue *value, int64_t axis) {
  uint64_t row = region_dtype_bytes(value->dtype);
  for (int32_t i = (int32_t)axis; i < value->ndim; i++) row *= (uint64_t)value->shape[i];
  return row;
}

/* Attribute axis, which the reference plan found right, from the front; and the rows before it. */
static int64_t axis_of(const k_node *n, const heddle_pvalue *value, uint64_t *rows) {
  int64_t axis = 0;
  region_attr_int(n->ref.node, "axis", 0, &axis, NULL);
  if (axis < 0) axis += value->ndim;
  *rows = 1;
  for (int64_t i = 0; i < axis; i++) *rows *= (uint64_t)value->shape[i];
  return axis;
}

static heddle_status plan_concat(k_node *n, heddle_error *err) {
  ref_op op;
  rows_move m = {.to = k_output(n, 0)};
  k_ref_op(n, &op);
  heddle_status s = ref_plan_concat(&n->ref, &op, err);
  if (s != HEDDLE_OK) return s;
  const int64_t axis = axis_of(n, n->ref.out, &m.rows);
  m.to_pitch = row_bytes(n->ref.out, axis);
  if (ref_concat_extends(&n->ref) && ref_concat_is_flat(&n->ref, (int32_t)axis)) k_allow_extending(n, 0, 0);
  for (uint32_t k = 0; k < n->ref.node->n_inputs && s == HEDDLE_OK; k++) {
    m.from = k_input(n, k);
    m.from_pitch = m.row = row_bytes(region_node_input(n->ref.region, n->ref.node, k), axis);
    s = move_rows(n, &m, err);
    m.to_at += m.row;
  }
  return s;
}

static heddle_status plan_split(k_node *n, heddle_error *err) {
  ref_op op;
  rows_move m = {.from = k_input(n, 0)};
  k_ref_op(n, &op);
  heddle_status s = ref_plan_split(&n->ref, &op, err);
  if (s != HEDDLE_OK) return s;
  const int64_t axis = axis_of(n, n->ref.in[0], &m.rows);
  m.from_pitch = row_bytes(n->ref.in[0], axis);
  for (uint32_t k = 0; k < n->ref.node->n_outputs && s == HEDDLE_OK; k++) {
    m.to = k_output(n, k);
    m.to_pitch = m.row = row_bytes(region_node_output(n->ref.region, n->ref.node, k), axis);
    s = move_rows(n, &m, err);
    m.from_at += m.row;
  }
  return s;
}

/* ---------------------------------------------------------------- walks */

/* What the reference plan reads with strides, as a walk over the words of its elements. */
static heddle_status plan_strided(k_node *n, ref_plan plan, heddle_error *err) {
  ref_op op;
  const ref_strided *t = &op.u.strided;
  k_walk_plan w = {.n_operands = 1, .op = K_RAW_COPY};
  int64_t words = 1, step = 1;
  k_ref_op(n, &op);
  heddle_status s = plan(&n->ref, &op, err);
  if (s != HEDDLE_OK) return s;
  w.type[0] = w.type_out = k_words_of(t->size, &words);
  if (t->dims + 1 > K_WALK_DIMS) return ref_refuse(&n->ref, err, "more than %d dimensions", K_WALK_DIMS - 1);
  w.slot[0] = k_input(n, 0);
  w.slot_out = k_output(n, 0);
  w.dims = t->dims + 1;
  w.base[0] = t->offset * words;
  w.dim[t->dims] = words;
  w.step[0][t->dims] = w.step[K_OPERANDS][t->dims] = 1;
  for (int32_t i = t->dims - 1; i >= 0; i--) {
    w.dim[i] = t->dim[i];
    w.step[0][i] = t->stride[i] * words;
    w.step[K_OPERANDS][i] = step * words;
    step *= t->dim[i] > 0 ? t->dim[i] : 1;
  }
  return k_walk_add(n, &w, err);
}

static heddle_status plan_transpose(k_node *n, heddle_error *err) {
  return plan_strided(n, ref_plan_transpose, err);
}

static heddle_status plan_expand(k_node *n, heddle_error *err) {
  return plan_strided(n, ref_plan_expand, err);
}

static heddle_status plan_tile(k_node *n, heddle_error *err) {
  return plan_strided(n, ref_plan_tile, err);
}

static heddle_status plan_slice(k_node *n, heddle_error *err) {
  return plan_strided(n, ref_plan_slice, err);
}

const k_entry k_shape_table[] = {
    {"Concat", 0, plan_concat},       {"Expand", 0, plan_expand},     {"Flatten", 0, plan_flatten},
    {"Identity", 0, plan_identity},   {"Reshape", 0, plan_reshape},   {"Slice", 0, plan_slice},
    {"Split", 0, plan_split},         {"Squeeze", 0, plan_squeeze},   {"Tile", 0, plan_tile},
    {"Transpose", 0, plan_transpose}, {"Unsqueeze", 0, plan_squeeze}, {0},
};
