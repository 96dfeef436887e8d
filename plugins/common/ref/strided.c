/* Operators that read one tensor with strides and write it densely: Transpose, Expand, Tile, Slice. */
#include "ref_op.h"

static void copy_strided(const ref_op *op, void *const *inputs, void *const *outputs, void *workspace, uint64_t first,
                         uint64_t last) {
  (void)workspace;
  ref_strided_run(&op->u.strided, inputs[op->slot[0]], outputs[0], first, last);
}

heddle_status ref_set_strided(const ref_node *n, ref_op *op, int64_t offset, int32_t dims, const int64_t *out_dim,
                              const int64_t *stride, heddle_error *err) {
  uint64_t count = 0, bytes = 0, units = 0;
  char name[DTYPE_NAME_BYTES];
  if (!region_dtype_equal(n->in[0]->dtype, n->out->dtype)) {
    return ref_refuse(n, err, "the result is %s; it keeps its operand's type", region_dtype_name(n->out->dtype, name));
  }
  if (!ref_strided_start(&op->u.strided, (uint32_t)region_dtype_bytes(n->out->dtype), offset, dims, out_dim, stride,
                         &units))
    return ref_refuse(n, err, "more than %d dimensions", REF_MAX_DIMS);
  region_value_count(n->out, &count);
  region_value_bytes(n->out, &bytes);
  ref_set_work(op, copy_strided, count > 0 ? units : 0, (double)count, 2.0 * (double)bytes);
  return HEDDLE_OK;
}

/* Element strides of a dense tensor. */
static heddle_status dense_strides(const ref_node *n, const heddle_pvalue *x, int64_t *strides, heddle_error *err) {
  int64_t stride = 1;
  if (x->ndim > REF_MAX_DIMS || n->out->ndim > REF_MAX_DIMS) {
    return ref_refuse(n, err, "more than %d dimensions", REF_MAX_DIMS);
  }
  for (int32_t d = x->ndim - 1; d >= 0; d--) {
    strides[d] = stride;
    if (x->shape[d] > 0) stride *= x->shape[d];
  }
  return HEDDLE_OK;
}

heddle_status ref_plan_transpose(const ref_node *n, ref_op *op, heddle_error *err) {
  const heddle_pvalue *x = n->in[0], *y = n->out;
  const int64_t *perm;
  int64_t strides[REF_MAX_DIMS], turned[REF_MAX_DIMS], axes[REF_MAX_DIMS];
  uint64_t count;
  heddle_status s = region_attr_ints(n->node, "perm", &perm, &count, err);
  if (s == HEDDLE_OK) s = dense_strides(n, x, strides, err);
  if (s != HEDDLE_OK) return s;
  uint32_t rank = (uint32_t)x->ndim;
  if (y->ndim != x->ndim || (perm != NULL && count != rank)) return ref_refuse_shape(n, err);
  for (uint32_t d = 0; d < rank; d++) axes[d] = perm != NULL ? perm[d] : (int64_t)(rank - 1 - d);
  s = ref_axes(n, axes, &rank, x->ndim, err);
  if (s != HEDDLE_OK) return s;
  for (uint32_t d = 0; d < rank; d++) {
    if (y->shape[d] != x->shape[axes[d]]) return ref_refuse_shape(n, err);
    turned[d] = strides[axes[d]];
  }
  return ref_set_strided(n, op, 0, x->ndim, y->shape, turned, err);
}

heddle_status ref_plan_expand(const ref_node *n, ref_op *op, heddle_error *err) {
  int64_t strides[REF_MAX_DIMS];
  if (n->out->ndim > REF_MAX_DIMS) return ref_refuse(n, err, "more than %d dimensions", REF_MAX_DIMS);
  if (!region_shape_broadcast_strides(n->in[0], n->out, strides)) return ref_refuse_shape(n, err);
  op->absorbed = 2;
  return ref_set_strided(n, op, 0, n->out->ndim, n->out->shape, strides, err);
}

/* Each dimension is two: how often, and what. */
heddle_status ref_plan_tile(const ref_node *n, ref_op *op, heddle_error *err) {
  const heddle_pvalue *x = n->in[0], *y = n->out;
  int64_t strides[REF_MAX_DIMS], dims[2 * REF_MAX_DIMS], both[2 * REF_MAX_DIMS];
  heddle_status s = dense_strides(n, x, strides, err);
  if (s != HEDDLE_OK) return s;
  if (y->ndim != x->ndim) return ref_refuse_shape(n, err);
  for (int32_t d = 0; d < x->ndim; d++) {
    if (x->shape[d] == 0 ? y->shape[d] != 0 : y->shape[d] % x->shape[d] != 0) return ref_refuse_shape(n, err);
    dims[2 * d] = x->shape[d] > 0 ? y->shape[d] / x->shape[d] : 0;
    both[2 * d] = 0;
    dims[2 * d + 1] = x->shape[d];
    both[2 * d + 1] = strides[d];
  }
  op->absorbed = 2;
  return ref_set_strided(n, op, 0, 2 * x->ndim, dims, both, err);
}

heddle_status ref_plan_slice(const ref_node *n, ref_op *op, heddle_error *err) {
  const heddle_pvalue *x = n->in[0], *y = n->out;
  int64_t strides[REF_MAX_DIMS], list[4][REF_MAX_DIMS], offset = 0; /* starts, ends, axes, steps */
  uint32_t count[4];
  heddle_status s = dense_strides(n, x, strides, err);
  for (uint32_t i = 0; i < 4 && s == HEDDLE_OK; i++) {
    s = ref_ints(n, 1 + i, list[i], REF_MAX_DIMS, &count[i], err);
    if (s == HEDDLE_OK && count[i] != count[0] && count[i] != UINT32_MAX) {
      return ref_refuse(n, err, "operands 1 and %u are not of one length", 1 + i);
    }
  }
  if (s != HEDDLE_OK) return s;
  if (count[2] == UINT32_MAX) {
    for (count[2] = 0; count[2] < count[0]; count[2]++) list[2][count[2]] = count[2];
  }
  s = ref_axes(n, list[2], &count[2], x->ndim, err);
  if (s != HEDDLE_OK) return s;
  if (y->ndim != x->ndim) return ref_refuse_shape(n, err);
  for (uint32_t i = 0; i < count[0]; i++) {
    const int64_t axis = list[2][i], size = x->shape[axis], step = count[3] == UINT32_MAX ? 1 : list[3][i];
    int64_t from = list[0][i] < 0 ? (list[0][i] < -size ? 0 : list[0][i] + size) : list[0][i];
    if (from > size - (step < 0)) from = size - (step < 0);
    const int64_t many = y->shape[axis];
    if (many == 0) continue;
    /* the last element taken lies inside, however far ends and steps are out */
    const int64_t room = step > 0 ? size - 1 - from : from;
    const uint64_t pace = step > 0 ? (uint64_t)step : 0 - (uint64_t)step;
    if (room < 0 || (many > 1 && (uint64_t)room / (uint64_t)(many - 1) < pace)) return ref_refuse_shape(n, err);
    offset += from * strides[axis];
    strides[axis] = many > 1 ? strides[axis] * step : 1;
  }
  uint64_t some = 0;
  region_value_count(x, &some);
  for (int32_t d = 0; d < x->ndim; d++) {
    bool named = false;
    for (uint32_t i = 0; i < count[2]; i++) named = named || list[2][i] == d;
    if (!named && y->shape[d] != x->shape[d]) return ref_refuse_shape(n, err);
  }
  op->absorbed = 2 | 4 | 8 | 16;
  return ref_set_strided(n, op, some > 0 ? offset : 0, y->ndim, y->shape, strides, err);
}
