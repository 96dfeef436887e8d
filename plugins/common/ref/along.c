/* ArgMax, ArgMin and TopK: what is greatest or least along one axis. A unit is a column of that axis. */
#include "folds.h"
#include "rank.h"
#include "ref_op.h"
#include "types.h"

enum { PIECE = 1 << 20 };

static const char *column_of(const ref_op *op, void *const *inputs, uint64_t unit) {
  const ref_along *f = &op->u.along;
  const uint64_t inner = (uint64_t)f->inner, outer = unit / inner;
  return (const char *)inputs[op->slot[0]] +
         (outer * (uint64_t)f->n * inner + unit % inner) * ref_type_bytes((int)f->type);
}

/* In pieces, between which the run may end. */
static void arg(const ref_op *op, void *const *inputs, void *const *outputs, void *workspace, uint64_t first,
                uint64_t last) {
  const ref_along *f = &op->u.along;
  const uint64_t inner = (uint64_t)f->inner, most = PIECE / (uint64_t)f->n + 1;
  int64_t work = 0;
  (void)workspace;
  for (uint64_t unit = first, some; unit < last; unit += some) {
    some = last - unit < most ? last - unit : most;
    if (inner != 1 && some > inner - unit % inner) some = inner - unit % inner;
    ref_ends((int)f->type, f->largest != 0, f->last != 0, column_of(op, inputs, unit), f->n, f->inner, (int64_t)some,
             (int64_t *)outputs[0] + unit);
    if (ref_tick(op, &work, (int64_t)some * f->n)) return;
  }
}

/* ---------------------------------------------------------------- TopK */

typedef struct column {
  const char *x;
  int64_t inner;
} column;

#define KEYS(name, T, KEY) \
  static void name(const void *ctx, int64_t first, int64_t n, uint64_t *out) { \
    const column *c = ctx; \
    const T *x = (const T *)(const void *)c->x + first * c->inner; \
    for (int64_t i = 0; i < n && c->inner == 1; i++) out[i] = KEY(x[i]); \
    for (int64_t i = 0; i < n && c->inner != 1; i++) out[i] = KEY(x[i * c->inner]); \
  }
#define SIGNED32(v) ((uint32_t)(int32_t)(v) ^ UINT32_C(0x80000000))
#define SIGNED64(v) ((uint64_t)(v) ^ UINT64_C(0x8000000000000000))
#define SAME(v) (v)
KEYS(keys_f32, float, ref_rank_float)
KEYS(keys_f64, double, ref_rank_double)
KEYS(keys_i8, int8_t, SIGNED32)
KEYS(keys_i16, int16_t, SIGNED32)
KEYS(keys_i32, int32_t, SIGNED32)
KEYS(keys_i64, int64_t, SIGNED64)
KEYS(keys_u8, uint8_t, SAME)
KEYS(keys_u16, uint16_t, SAME)
KEYS(keys_u32, uint32_t, SAME)
KEYS(keys_u64, uint64_t, SAME)

static ref_rank_keys keys_of(uint32_t type) {
  static const ref_rank_keys list[] = {
      [REF_TYPE_F32] = keys_f32, [REF_TYPE_F64] = keys_f64, [REF_TYPE_I8] = keys_i8, [REF_TYPE_I16] = keys_i16,
      [REF_TYPE_I32] = keys_i32, [REF_TYPE_I64] = keys_i64, [REF_TYPE_U8] = keys_u8, [REF_TYPE_U16] = keys_u16,
      [REF_TYPE_U32] = keys_u32, [REF_TYPE_U64] = keys_u64,
  };
  return list[type];
}

static void top_k(const ref_op *op, void *const *inputs, void *const *outputs, void *workspace, uint64_t first,
                  uint64_t last) {
  const ref_along *f = &op->u.along;
  const uint32_t size = ref_type_bytes((int)f->type);
  const uint64_t inner = (uint64_t)f->inner;
  int64_t work = 0;
  for (uint64_t unit = first; unit < last; unit++) {
    const column c = {column_of(op, inputs, unit), f->inner};
    const ref_rank rank = {
        .n = f->n, .k = f->k, .wide = size == 8, .largest = f->largest != 0, .keys = keys_of(f->type), .ctx = &c};
    const uint64_t at = unit / inner * (uint64_t)f->k * inner + unit % inner;
    int64_t *indices = (int64_t *)outputs[op->result[1]] + at;
    char *values = (char *)outputs[0] + at * size;
    if (!ref_rank_run(&rank, op, &work, workspace)) return;
    for (int64_t i = 0; i < f->k; i++) {
      const int64_t from = ref_rank_index(&rank, workspace, i);
      indices[i * f->inner] = from;
      memcpy(values + (size_t)(i * f->inner) * size, c.x + (size_t)(from * f->inner) * size, size);
    }
  }
}

static heddle_status plan_along(const ref_node *n, ref_along *f, int64_t fallback, int32_t *axis, heddle_error *err) {
  f->type = (uint32_t)ref_type_of(n->in[0]->dtype);
  heddle_status s = ref_axis(n, fallback, axis, &f->n, &f->inner, err);
  if (s == HEDDLE_OK && f->type > REF_TYPE_U64) return ref_refuse(n, err, "it does not take this type");
  return s;
}

heddle_status ref_plan_arg(const ref_node *n, ref_op *op, heddle_error *err) {
  ref_along *f = &op->u.along;
  const heddle_pvalue *x = n->in[0];
  int64_t last = 0, keep = 1;
  int32_t axis, k = 0;
  uint64_t count = 0, results = 0;
  heddle_status s = region_attr_int(n->node, "select_last_index", 0, &last, err);
  if (s == HEDDLE_OK) s = region_attr_int(n->node, "keepdims", 1, &keep, err);
  if (s == HEDDLE_OK) s = plan_along(n, f, 0, &axis, err);
  if (s != HEDDLE_OK) return s;
  if (!region_dtype_is(n->out->dtype, HEDDLE_DTYPE_INT, 64)) return ref_refuse(n, err, "the result is int64");
  for (int32_t d = 0; d < x->ndim; d++) {
    if (d == axis && keep == 0) continue;
    if (k >= n->out->ndim || n->out->shape[k++] != (d == axis ? 1 : x->shape[d])) return ref_refuse_shape(n, err);
  }
  if (k != n->out->ndim || f->n == 0 || f->n > INT32_MAX) return ref_refuse_shape(n, err);
  f->largest = strcmp(n->node->op, "ArgMax") == 0;
  f->last = last != 0;
  f->nan_first = 1; /* as numpy's argmax and argmin have it */
  region_value_count(x, &count);
  region_value_count(n->out, &results);
  ref_set_work(op, arg, results, 3.0 * (double)count, (double)count);
  return HEDDLE_OK;
}

heddle_status ref_plan_top_k(const ref_node *n, ref_op *op, heddle_error *err) {
  ref_along *f = &op->u.along;
  const heddle_pvalue *x = n->in[0], *at = region_node_output(n->region, n->node, 1);
  int64_t largest = 1, sorted = 1; /* what is not to be sorted may be */
  int32_t axis;
  uint64_t count = 0;
  heddle_status s = region_attr_int(n->node, "largest", 1, &largest, err);
  if (s == HEDDLE_OK) s = region_attr_int(n->node, "sorted", 1, &sorted, err);
  if (s == HEDDLE_OK) s = plan_along(n, f, -1, &axis, err);
  if (s != HEDDLE_OK) return s;
  if (op->result[1] == UINT32_MAX) return ref_refuse(n, err, "the result Indices is missing");
  if (n->out->ndim != x->ndim || !region_shape_equal(n->out, at) || !region_dtype_equal(n->out->dtype, x->dtype) ||
      !region_dtype_is(at->dtype, HEDDLE_DTYPE_INT, 64)) {
    return ref_refuse_shape(n, err);
  }
  for (int32_t d = 0; d < x->ndim; d++) {
    if (d == axis ? n->out->shape[d] > x->shape[d] : n->out->shape[d] != x->shape[d]) return ref_refuse_shape(n, err);
  }
  f->k = n->out->shape[axis];
  f->largest = f->nan_first = largest != 0; /* NaN is the greatest, as where numpy sorts */
  op->absorbed = 2;
  region_value_count(x, &count);
  ref_set_work(op, top_k, count > 0 && f->k > 0 ? count / (uint64_t)f->n : 0, 40.0 * (double)count, (double)count);
  ref_set_part_scratch(op, ref_rank_bytes(f->n, f->k, ref_type_bytes((int)f->type) == 8));
  return HEDDLE_OK;
}
