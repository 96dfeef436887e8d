/* Operators that only move bytes: Reshape, Squeeze, Flatten, Identity and Dropout are one copy (none, in place), Concat
 * and Split copy row by row. They take any type whose elements fill whole bytes. */
#include "ref_op.h"

static void copy_bytes(const ref_op *op, void *const *inputs, void *const *outputs, void *workspace, uint64_t first,
                       uint64_t last) {
  const char *in = inputs[op->slot[0]];
  char *out = outputs[0];
  (void)workspace;
  if (in != out && first < last) memcpy(out + first, in + first, last - first);
}

static heddle_status plan_copy(const ref_node *n, ref_op *op, heddle_error *err) {
  uint64_t in = 0, out = 0;
  char name[DTYPE_NAME_BYTES];
  if (!region_dtype_equal(n->in[0]->dtype, n->out->dtype)) {
    return ref_refuse(n, err, "the result is %s; it keeps its operand's type", region_dtype_name(n->out->dtype, name));
  }
  region_value_bytes(n->in[0], &in);
  region_value_bytes(n->out, &out);
  if (in != out) return ref_refuse_shape(n, err);
  op->in_place = 1;
  ref_set_work(op, copy_bytes, out, 0, 2.0 * (double)out);
  return HEDDLE_OK;
}

/* The result's shape is known, so the operand that asked for it is not read, constant or not. Squeeze and Unsqueeze
 * too. */
heddle_status ref_plan_reshape(const ref_node *n, ref_op *op, heddle_error *err) {
  int64_t allow_zero = 0;
  heddle_status s = region_attr_int(n->node, "allowzero", 0, &allow_zero, err);
  if (s != HEDDLE_OK) return s;
  if (n->in[1] != NULL && (!region_dtype_is(n->in[1]->dtype, HEDDLE_DTYPE_INT, 64) || n->in[1]->ndim > 1)) {
    return ref_refuse(n, err, "the shape operand must be a list of int64");
  }
  op->absorbed = 2;
  return plan_copy(n, op, err);
}

heddle_status ref_plan_flatten(const ref_node *n, ref_op *op, heddle_error *err) {
  int64_t axis = 1, rows = 1;
  heddle_status s = region_attr_int(n->node, "axis", 1, &axis, err);
  if (s != HEDDLE_OK) return s;
  if (axis < -n->in[0]->ndim || axis > n->in[0]->ndim) {
    return ref_refuse(n, err, "axis %lld of %d dimensions", (long long)axis, n->in[0]->ndim);
  }
  if (axis < 0) axis += n->in[0]->ndim;
  heddle_pvalue before = *n->in[0];
  uint64_t count = 0;
  before.ndim = (int32_t)axis;
  if (region_value_count(&before, &count)) rows = (int64_t)count;
  if (n->out->ndim != 2 || n->out->shape[0] != rows) return ref_refuse_shape(n, err);
  return plan_copy(n, op, err);
}

heddle_status ref_plan_identity(const ref_node *n, ref_op *op, heddle_error *err) {
  if (!region_shape_equal(n->in[0], n->out)) return ref_refuse_shape(n, err);
  return plan_copy(n, op, err);
}

/* One unit: the copy, and a mask of all true. */
static void dropout(const ref_op *op, void *const *inputs, void *const *outputs, void *workspace, uint64_t first,
                    uint64_t last) {
  (void)workspace;
  if (first >= last) return;
  copy_bytes(op, inputs, outputs, workspace, 0, op->u.concat.row);
  memset(outputs[op->result[1]], 1, op->u.concat.count);
}

heddle_status ref_plan_dropout(const ref_node *n, ref_op *op, heddle_error *err) {
  const heddle_pvalue *training = n->in[2], *mask = region_node_output(n->region, n->node, 1);
  if (training != NULL && (!region_dtype_is(training->dtype, HEDDLE_DTYPE_BOOL, 8) || training->data == NULL ||
                           *(const char *)training->data != 0)) {
    return ref_refuse(n, err, "training_mode must be false, and known before the run");
  }
  if (!region_shape_equal(n->in[0], n->out)) return ref_refuse_shape(n, err);
  op->absorbed = 2 | 4;
  heddle_status s = plan_copy(n, op, err);
  if (s != HEDDLE_OK || op->result[1] == UINT32_MAX) return s;
  uint64_t bytes = 0, count = 0;
  if (!region_dtype_is(mask->dtype, HEDDLE_DTYPE_BOOL, 8) || !region_shape_equal(mask, n->out))
    return ref_refuse_shape(n, err);
  region_value_bytes(n->out, &bytes);
  region_value_count(mask, &count);
  op->u.concat = (ref_concat){count, bytes};
  ref_set_work(op, dropout, bytes > 0 ? 1 : 0, 0, 3.0 * (double)bytes);
  return HEDDLE_OK;
}

/* ---------------------------------------------------------------- Concat */

static void concat_rows(const ref_op *op, void *const *inputs, void *const *outputs, void *workspace, uint64_t first,
                        uint64_t last) {
  const ref_part *parts = ref_tail(op);
  (void)workspace;
  for (uint64_t row = first; row < last; row++) {
    char *out = (char *)outputs[0] + row * op->u.concat.row;
    for (uint64_t i = 0; i < op->u.concat.count; i++) {
      const ref_part *p = &parts[i];
      if (p->bytes == 0) continue;
      const char *in = (const char *)inputs[p->slot] + row * p->pitch;
      if (in != out) memcpy(out, in, p->bytes); /* else it is there: the result extends the operand */
      out += p->bytes;
    }
  }
}

/* Axis of a Concat counted from the front, as its plan found it right. */
static int32_t concat_axis(const ref_node *n) {
  int64_t axis = 0;
  region_attr_int(n->node, "axis", 0, &axis, NULL);
  return (int32_t)(axis < 0 ? axis + n->out->ndim : axis);
}

/* Bytes that a value has from dimension axis on. */
static uint64_t row_bytes(const heddle_pvalue *value, int32_t axis) {
  heddle_pvalue rest = *value;
  uint64_t bytes = 0;
  rest.shape += axis;
  rest.ndim -= axis;
  region_value_bytes(&rest, &bytes);
  return bytes;
}

static bool concat_fits(const heddle_pvalue *in, const heddle_pvalue *out, int32_t axis) {
  if (in->ndim != out->ndim) return false;
  for (int32_t i = 0; i < out->ndim; i++) {
    if (i != axis && in->shape[i] != out->shape[i]) return false;
  }
  return true;
}

/* Bytes from row to row, where a value may have room along the axis. */
static uint64_t pitch_of(const heddle_pvalue *value, int32_t axis) {
  const bool has_room = HEDDLE_HAS(heddle_pvalue, value, room_axis) && value->room > 0 && value->room_axis == axis;
  return has_room ? (uint64_t)value->room * row_bytes(value, axis + 1) : row_bytes(value, axis);
}

bool ref_concat_extends(const ref_node *n) {
  bool extends = n->node->n_inputs > 0;
  for (uint32_t k = 1; k < n->node->n_inputs; k++) extends = extends && n->node->inputs[k] != n->node->inputs[0];
  return extends;
}

bool ref_concat_is_flat(const ref_node *n, int32_t axis) {
  bool flat = true;
  for (int32_t i = 0; i < axis; i++) flat = flat && n->out->shape[i] <= 1;
  return flat;
}

heddle_status ref_plan_concat(const ref_node *n, ref_op *op, heddle_error *err) {
  int64_t axis = 0, along = 0;
  uint64_t bytes = 0, row = 0;
  if (region_attr_find(n->node, "axis") == NULL) return ref_refuse(n, err, "attribute 'axis' is missing");
  heddle_status s = region_attr_int(n->node, "axis", 0, &axis, err);
  if (s != HEDDLE_OK) return s;
  if (axis < -n->out->ndim || axis >= n->out->ndim) {
    return ref_refuse(n, err, "axis %lld of %d dimensions", (long long)axis, n->out->ndim);
  }
  const int32_t at = concat_axis(n);
  for (uint32_t k = 0; k < n->node->n_inputs; k++) {
    const heddle_pvalue *in = region_node_input(n->region, n->node, k);
    if (!region_dtype_equal(in->dtype, n->out->dtype)) return ref_refuse(n, err, "operand %u is of another type", k);
    if (!concat_fits(in, n->out, at)) return ref_refuse(n, err, "operand %u does not fit the result's shape", k);
    if (in->shape[at] > n->out->shape[at] - along) return ref_refuse(n, err, "operand %u is too long", k);
    along += in->shape[at];
  }
  if (along != n->out->shape[at]) return ref_refuse(n, err, "the operands do not fill the result");
  region_value_bytes(n->out, &bytes);
  row = bytes > 0 ? row_bytes(n->out, at) : 0;
  op->u.concat.count = n->node->n_inputs;
  op->u.concat.row = pitch_of(n->out, at);
  op->tail_bytes = n->node->n_inputs * sizeof(ref_part);
  op->extends = ref_concat_extends(n);
  op->extends_along = ref_concat_is_flat(n, at) ? -1 : at;
  ref_set_work(op, concat_rows, row > 0 ? bytes / row : 0, 0, 2.0 * (double)bytes);
  return HEDDLE_OK;
}

void ref_fill_concat(const ref_node *n, ref_op *op) {
  ref_part *parts = ref_tail(op);
  const int32_t axis = concat_axis(n);
  for (uint32_t k = 0; k < n->node->n_inputs; k++) {
    parts[k].slot = (uint64_t)region_input_slot(n->region, n->node->inputs[k]);
    parts[k].bytes = row_bytes(region_node_input(n->region, n->node, k), axis);
    parts[k].pitch = pitch_of(region_node_input(n->region, n->node, k), axis);
  }
}

/* ---------------------------------------------------------------- Split */

/* A unit is a row of the operand; each result takes its part of it. */
static void split_rows(const ref_op *op, void *const *inputs, void *const *outputs, void *workspace, uint64_t first,
                       uint64_t last) {
  const ref_part *parts = ref_tail(op);
  const uint64_t row = op->u.concat.row;
  (void)workspace;
  for (uint64_t unit = first; unit < last; unit++) {
    const char *in = (const char *)inputs[op->slot[0]] + unit * row;
    for (uint64_t k = 0; k < op->u.concat.count; k++) {
      const uint64_t bytes = parts[k].bytes;
      if (bytes > 0 && parts[k].slot != UINT64_MAX) {
        memcpy((char *)outputs[parts[k].slot] + unit * bytes, in, bytes);
      }
      in += bytes;
    }
  }
}

heddle_status ref_plan_split(const ref_node *n, ref_op *op, heddle_error *err) {
  const heddle_pvalue *x = n->in[0];
  int32_t axis;
  int64_t size, inner, along = 0;
  uint64_t bytes = 0;
  heddle_status s = ref_axis(n, 0, &axis, &size, &inner, err);
  if (s != HEDDLE_OK) return s;
  for (uint32_t k = 0; k < n->node->n_outputs; k++) {
    const heddle_pvalue *out = region_node_output(n->region, n->node, k);
    if (out == NULL) return ref_refuse(n, err, "result %u is missing", k);
    if (!region_dtype_equal(out->dtype, x->dtype) || !concat_fits(out, x, axis) || out->shape[axis] > size - along) {
      return ref_refuse(n, err, "result %u does not fit the operand", k);
    }
    along += out->shape[axis];
  }
  if (along != size) return ref_refuse(n, err, "the results do not take all of the operand");
  region_value_bytes(x, &bytes);
  op->u.concat.count = n->node->n_outputs;
  op->u.concat.row = bytes > 0 ? row_bytes(x, axis) : 0;
  op->absorbed = 2;
  op->tail_bytes = n->node->n_outputs * sizeof(ref_part);
  ref_set_work(op, split_rows, bytes > 0 ? bytes / op->u.concat.row : 0, 0, 2.0 * (double)bytes);
  return HEDDLE_OK;
}

void ref_fill_split(const ref_node *n, ref_op *op) {
  ref_part *parts = ref_tail(op);
  int32_t axis = 0;
  int64_t size, inner;
  ref_axis(n, 0, &axis, &size, &inner, NULL);
  for (uint32_t k = 0; k < n->node->n_outputs; k++) {
    const int64_t slot = region_output_slot(n->region, n->node->outputs[k]);
    parts[k].slot = slot >= 0 ? (uint64_t)slot : UINT64_MAX;
    parts[k].bytes = row_bytes(region_node_output(n->region, n->node, k), axis);
  }
}
