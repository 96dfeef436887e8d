/* Every elementwise operator: operands are brought to dense blocks of the type that the operator computes in (lanes.c),
 * unless they are such already, and then nothing is copied. Units are elements where all operands are dense, else
 * blocks of them. */
#include "lanes.h"
#include "plugins/common/scalar.h"
#include "types.h"

enum { BLOCK = 512 };

/* What a byte takes here, of what ref_set_work counts for one. */
#define LOOP 0.4

/* The lane for Pow by a float32 that is known before the run; NULL: none. */
static ref_lanes known_power(const ref_node *n) {
  uint64_t count = 0;
  float exponent;
  if (strcmp(n->node->op, "Pow") != 0 || n->in[1] == NULL || n->in[1]->data == NULL ||
      ref_type_of(n->in[0]->dtype) != REF_TYPE_F32 || ref_type_of(n->in[1]->dtype) != REF_TYPE_F32 ||
      !region_value_count(n->in[1], &count) || count != 1 || n->in[1]->data_bytes < sizeof exponent)
    return NULL;
  memcpy(&exponent, n->in[1]->data, sizeof exponent);
  return ref_lanes_power(exponent);
}

/* ---------------------------------------------------------------- running */

/* All operands are dense, or single, and lie as they are computed with. */
static void run_dense(const ref_op *op, void *const *inputs, void *const *outputs, void *workspace, uint64_t first,
                      uint64_t last) {
  const ref_elementwise *e = &op->u.elementwise;
  const ref_operand *operand = ref_tail(op);
  const void *in[3] = {NULL, NULL, NULL};
  (void)workspace;
  for (uint32_t k = 0; k < e->operands; k++) {
    if (operand[k].slot == UINT32_MAX) continue;
    const char *at = inputs[operand[k].slot];
    in[k] = operand[k].single ? at : at + first * ref_type_bytes(operand[k].type);
  }
  e->lanes((char *)outputs[0] + first * e->step, in, (int64_t)(last - first), e->params);
}

/* The commonest of these, as short as can be: two operands of one shape and one type, which are inputs 0 and 1. */
static void run_pair(const ref_op *op, void *const *inputs, void *const *outputs, void *workspace, uint64_t first,
                     uint64_t last) {
  const ref_elementwise *e = &op->u.elementwise;
  const uint64_t skip = first * e->step;
  const void *in[2] = {(const char *)inputs[0] + skip, (const char *)inputs[1] + skip};
  (void)workspace;
  e->lanes((char *)outputs[0] + skip, in, (int64_t)(last - first), e->params);
}

void ref_collect(const ref_elementwise *e, const ref_operand *operand, const char *base, int64_t first, int64_t n,
                 char *out) {
  const uint32_t size = ref_type_bytes(operand->type);
  int64_t at[REF_MAX_DIMS], offset = 0;
  const int32_t last = e->dims - 1;
  if (e->dims == 0) {
    memcpy(out, base, size);
    return;
  }
  for (int32_t d = last; d >= 0; d--) {
    at[d] = first % e->dim[d];
    first /= e->dim[d];
    offset += at[d] * operand->stride[d];
  }
  while (n > 0) {
    const int64_t run = e->dim[last] - at[last] < n ? e->dim[last] - at[last] : n;
    ref_take(base + offset * size, operand->stride[last], size, run, out);
    out += run * size;
    n -= run;
    offset -= at[last] * operand->stride[last];
    at[last] = 0;
    for (int32_t d = last - 1; d >= 0; d--) {
      offset += operand->stride[d];
      if (++at[d] < e->dim[d]) break;
      at[d] = 0;
      offset -= operand->stride[d] * e->dim[d];
    }
  }
}

typedef union block {
  char bytes[BLOCK * 8];
  int64_t aligned;
} block;

/* An operand of a block: where its elements are, or a copy of them. held: the offset of the one element that `to` is
 * full of; -1: there is no such. */
typedef struct fetched {
  block to;
  int64_t held, last;
} fetched;

/* n elements of an operand as they lie, or side by side in `to`; along: they are of one row of the result. */
static const char *gather(const ref_elementwise *e, const ref_operand *operand, const char *base, int64_t first,
                          int64_t n, bool along, char *to, bool *same) {
  const uint32_t size = ref_type_bytes(operand->type);
  *same = false;
  if (operand->single) return base;
  if (operand->dense) return base + first * size;
  if (!along) {
    ref_collect(e, operand, base, first, n, to);
    return to;
  }
  int64_t offset = 0;
  for (int32_t d = e->dims - 1; d >= 0; d--) {
    offset += first % e->dim[d] * operand->stride[d];
    first /= e->dim[d];
  }
  *same = operand->stride[e->dims - 1] == 0;
  return base + offset * size;
}

/* n elements of an operand as the operator takes them. */
static const void *fetch(const ref_elementwise *e, const ref_operand *operand, void *const *inputs, int64_t first,
                         int64_t n, bool along, fetched *f) {
  block raw;
  bool same;
  if (operand->slot == UINT32_MAX) return NULL;
  const char *base = inputs[operand->slot], *at;
  if (operand->type == operand->kind) {
    at = gather(e, operand, base, first, n, along, f->to.bytes, &same);
    if (!same) f->held = -1;
    if (!same) return at;
  } else {
    at = gather(e, operand, base, first, n, along, raw.bytes, &same);
    if (!same) f->held = -1;
    if (!same) ref_cast(operand->type, at, operand->kind, f->to.bytes, operand->single ? 1 : n);
  }
  if (!same || (f->held == at - base && f->last >= n)) return f->to.bytes;
  f->held = at - base;
  f->last = n;
  ref_cast(operand->type, at, operand->kind, raw.bytes, 1);
  ref_take(raw.bytes, 0, ref_type_bytes(operand->kind), n, f->to.bytes);
  return f->to.bytes;
}

/* Blocks of a row of the result, where rows are long enough; else of all of it. */
static int64_t row_of(const ref_elementwise *e) {
  const int64_t inner = e->dims > 0 ? e->dim[e->dims - 1] : 1;
  return inner >= BLOCK / 4 ? inner : (int64_t)e->count;
}

static uint64_t blocks_of(const ref_elementwise *e) {
  const int64_t row = row_of(e);
  return row > 0 ? (e->count / (uint64_t)row) * (((uint64_t)row + BLOCK - 1) / BLOCK) : 0;
}

static void run_blocks(const ref_op *op, void *const *inputs, void *const *outputs, void *workspace, uint64_t first,
                       uint64_t last) {
  const ref_elementwise *e = &op->u.elementwise;
  const ref_operand *operand = ref_tail(op);
  const int64_t row = row_of(e), per_row = (row + BLOCK - 1) / BLOCK;
  const bool along = row < (int64_t)e->count || e->dims == 1;
  fetched space[3];
  block mine;
  (void)workspace;
  for (int k = 0; k < 3; k++) space[k].held = -1;
  for (uint64_t unit = first; unit < last; unit++) {
    const int64_t column = (int64_t)unit % per_row * BLOCK, at = (int64_t)unit / per_row * row + column;
    const int64_t n = row - column < BLOCK ? row - column : BLOCK;
    const void *in[3] = {NULL, NULL, NULL};
    char *out = (char *)outputs[0] + at * e->step;
    void *result = e->type == e->kind ? (void *)out : mine.bytes;
    if (e->lanes == NULL) { /* Cast, and Min or Max of one */
      const void *from = fetch(e, &operand[0], inputs, at, n, along, &space[0]);
      memcpy(out, from, (size_t)n * e->step);
      continue;
    }
    for (uint32_t k = 0; k < e->arity && k < e->operands; k++)
      in[k] = fetch(e, &operand[k], inputs, at, n, along, &space[k]);
    e->lanes(result, in, n, e->params);
    for (uint32_t k = e->arity; k < e->operands; k++) {
      in[0] = result;
      space[2].held = -1; /* of another operand */
      in[1] = fetch(e, &operand[k], inputs, at, n, along, &space[2]);
      e->lanes(result, in, n, e->params);
    }
    if (result != out) ref_cast(e->kind, result, e->type, out, n);
  }
}

/* ---------------------------------------------------------------- planning */

/* Of two types: integers are computed in int64 where the exponent is another integer type, and by a float64 where it is
 * real. */
static bool choose_power(ref_elementwise *e, const ref_lane_op *lane, int type, int by, uint8_t kinds[3]) {
  const bool whole = type > REF_TYPE_F64, by_whole = by > REF_TYPE_F64;
  if (by == type) return true;
  if (by == REF_TYPE_NONE || (whole && (type == REF_TYPE_U64 || by == REF_TYPE_U64))) return false;
  if (whole) kinds[0] = REF_TYPE_I64;
  kinds[1] = whole && by_whole ? REF_TYPE_I64 : REF_TYPE_F64;
  if (whole) e->lanes = by_whole ? lane->of[REF_TYPE_I64] : ref_pow_i64_by_f64;
  else if (type == REF_TYPE_F32) e->lanes = ref_pow_f32_by_f64;
  return true;
}

/* Chooses what computes and in which types; kinds gets that of each of the first operands. */
static heddle_status choose(const ref_node *n, ref_elementwise *e, uint8_t kinds[3], double *steps, heddle_error *err) {
  const char *name = n->node->op;
  char text[DTYPE_NAME_BYTES];
  const int type = ref_type_of(n->in[0]->dtype);
  e->type = e->kind = (uint8_t)ref_type_of(n->out->dtype);
  e->step = (uint8_t)region_dtype_bytes(n->out->dtype);
  e->operands = n->node->n_inputs;
  *steps = 1;
  if (strcmp(name, "Cast") == 0) {
    int64_t to = 0;
    heddle_status s = region_attr_int(n->node, "to", 0, &to, err);
    if (s != HEDDLE_OK) return s;
    if (type == REF_TYPE_NONE || e->type == REF_TYPE_NONE || ref_type_of_onnx(to) != e->type) {
      return ref_refuse(n, err, "it does not cast to %s", region_dtype_name(n->out->dtype, text));
    }
    e->arity = 1;
    kinds[0] = e->type;
    return HEDDLE_OK;
  }
  if (strcmp(name, "Where") == 0) {
    const uint64_t size = region_dtype_bytes(n->out->dtype);
    e->arity = 3;
    e->lanes = ref_lanes_where(size);
    if (type != REF_TYPE_BOOL || e->lanes == NULL || !region_dtype_equal(n->in[1]->dtype, n->out->dtype) ||
        !region_dtype_equal(n->in[2]->dtype, n->out->dtype)) {
      return ref_refuse(n, err, "it takes bool and two operands of the result's type, of 1, 2, 4 or 8 bytes");
    }
    e->type = e->kind = size == 1 ? REF_TYPE_U8 : size == 2 ? REF_TYPE_U16 : size == 4 ? REF_TYPE_U32 : REF_TYPE_U64;
    kinds[0] = REF_TYPE_BOOL;
    kinds[1] = kinds[2] = e->type;
    return HEDDLE_OK;
  }

  scalar_call call;
  ref_lane_op found, *lane = &found;
  heddle_status s = scalar_read(n->node, &call, err);
  if (s != HEDDLE_OK) return s;
  if (!ref_lane_find(call.name, lane)) return ref_refuse(n, err, "there is no such operator here");
  e->lanes = type != REF_TYPE_NONE ? lane->of[type] : NULL;
  if (e->lanes == NULL) return ref_refuse(n, err, "it does not take this type");
  e->arity = lane->arity;
  *steps = lane->steps;
  const bool power = strcmp(name, "Pow") == 0;
  kinds[0] = kinds[1] = kinds[2] = (uint8_t)type;
  for (uint32_t k = 1; k < n->node->n_inputs; k++) {
    const heddle_pvalue *v = region_node_input(n->region, n->node, k);
    if (v == NULL || power || region_dtype_equal(v->dtype, n->in[0]->dtype)) continue;
    return ref_refuse(n, err, "operand %u is %s; operands have one type", k, region_dtype_name(v->dtype, text));
  }
  if (power && !choose_power(e, lane, type, ref_type_of(n->in[1]->dtype), kinds))
    return ref_refuse(n, err, "it does not take this exponent's type");
  const bool fits = lane->compares ? e->type == REF_TYPE_BOOL : region_dtype_equal(n->in[0]->dtype, n->out->dtype);
  if (!fits) return ref_refuse(n, err, "the result is %s", region_dtype_name(n->out->dtype, text));
  e->kind = lane->compares ? REF_TYPE_BOOL : kinds[0];
  e->params[0] = (float)call.alpha;
  e->params[1] = (float)call.beta;
  if (lane->arity > 1 && e->operands == 1 && strcmp(name, "Clip") != 0) e->lanes = NULL, e->arity = 1; /* Min of one */
  if (known_power(n) != NULL) { /* and nobody reads the exponent */
    e->lanes = known_power(n);
    e->operands = 1;
    *steps = 1;
  }
  if (e->lanes == NULL) kinds[0] = e->kind = e->type;
  return HEDDLE_OK;
}

/* Operand k of the result's shape, with strides for all of its dimensions; joins them is the caller's. */
static bool place(const ref_node *n, uint32_t k, bool clip, ref_operand *o, int64_t *strides) {
  const heddle_pvalue *v = region_node_input(n->region, n->node, k);
  memset(o, 0, sizeof *o);
  o->slot = UINT32_MAX;
  for (int32_t d = 0; d < n->out->ndim; d++) strides[d] = 0;
  if (v == NULL) {
    o->single = 1;
    return true;
  }
  uint64_t count = 0, results = 0;
  region_value_count(v, &count);
  region_value_count(n->out, &results);
  o->slot = (uint32_t)region_input_slot(n->region, n->node->inputs[k]);
  o->type = (uint8_t)ref_type_of(v->dtype);
  if (clip && k > 0) {
    o->single = 1;
    return count == 1;
  }
  o->dense = count == results;
  return region_shape_broadcast_strides(v, n->out, strides);
}

/* Some operand has each dimension of the result, so that it is not larger than they make it. */
static bool result_fits(const ref_node *n) {
  const heddle_pvalue *y = n->out;
  int32_t most = 0;
  for (int32_t d = 0; d < y->ndim; d++) {
    bool found = y->shape[d] == 1;
    for (uint32_t k = 0; k < n->node->n_inputs && !found; k++) {
      const heddle_pvalue *v = region_node_input(n->region, n->node, k);
      const int32_t at = v != NULL ? d - (y->ndim - v->ndim) : -1;
      found = at >= 0 && v->shape[at] == y->shape[d];
    }
    if (!found) return false;
  }
  for (uint32_t k = 0; k < n->node->n_inputs; k++) {
    const heddle_pvalue *v = region_node_input(n->region, n->node, k);
    if (v != NULL && v->ndim > most) most = v->ndim;
  }
  return most == y->ndim;
}

/* Fills dimensions, and operands where there is room for them. Neighbouring dimensions that all operands walk in one
 * stride are joined, and those of length 1 dropped. */
static heddle_status walk(const ref_node *n, ref_elementwise *e, ref_operand *operands, heddle_error *err) {
  const heddle_pvalue *y = n->out;
  const bool clip = strcmp(n->node->op, "Clip") == 0;
  bool joined[REF_MAX_DIMS];
  int64_t strides[REF_MAX_DIMS];
  if (y->ndim > REF_MAX_DIMS) return ref_refuse(n, err, "%d dimensions; up to %d are taken", y->ndim, REF_MAX_DIMS);
  for (int32_t d = 0; d < y->ndim; d++) joined[d] = true;
  for (int pass = 0; pass < 2; pass++) {
    for (uint32_t k = 0; k < e->operands; k++) {
      ref_operand o;
      if (!place(n, k, clip, &o, strides)) return ref_refuse_shape(n, err);
      int32_t count = 0, before = -1;
      for (int32_t d = 0; d < y->ndim; d++) {
        if (y->shape[d] == 1) continue;
        if (pass == 0) {
          if (before < 0 || strides[before] != strides[d] * y->shape[d]) joined[d] = false;
        } else {
          if (!joined[d] || count == 0) count++;
          o.stride[count - 1] = strides[d];
        }
        before = d;
      }
      if (pass == 1 && operands != NULL) operands[k] = o;
    }
  }
  e->dims = 0;
  for (int32_t d = 0; d < y->ndim; d++) {
    if (y->shape[d] == 1) continue;
    if (joined[d] && e->dims > 0) e->dim[e->dims - 1] *= y->shape[d];
    else e->dim[e->dims++] = y->shape[d];
  }
  return HEDDLE_OK;
}

heddle_status ref_plan_elementwise(const ref_node *n, ref_op *op, heddle_error *err) {
  ref_elementwise *e = &op->u.elementwise;
  uint8_t kinds[3] = {0, 0, 0};
  double steps = 1;
  heddle_status s = choose(n, e, kinds, &steps, err);
  if (s != HEDDLE_OK) return s;
  if (!result_fits(n)) return ref_refuse_shape(n, err);
  s = walk(n, e, NULL, err);
  if (s != HEDDLE_OK) return s;
  region_value_count(n->out, &e->count);
  bool dense = e->lanes != NULL && e->operands <= e->arity && e->type == e->kind;
  bool pair = dense && e->operands == 2 && e->arity == 2;
  double bytes = (double)e->count * e->step;
  for (uint32_t k = 0; k < e->operands; k++) {
    ref_operand o;
    int64_t strides[REF_MAX_DIMS];
    const heddle_pvalue *v = region_node_input(n->region, n->node, k);
    place(n, k, strcmp(n->node->op, "Clip") == 0, &o, strides);
    if (v == NULL) continue;
    const uint8_t kind = k < e->arity ? kinds[k] : kinds[1];
    if (ref_lanes_where(e->step) == e->lanes && e->lanes != NULL && k > 0) o.type = kind;
    dense = dense && (o.dense || o.single) && o.type == kind;
    pair = pair && o.slot == k && (o.dense || e->count == 1) && region_dtype_bytes(v->dtype) == e->step;
    bytes += (double)e->count * (double)region_dtype_bytes(v->dtype);
    /* a step reads all of a block before it writes it; operands of later steps must not be the result */
    if (k < e->arity && e->operands <= e->arity && o.dense && region_shape_equal(v, n->out) &&
        region_dtype_bytes(v->dtype) == e->step) {
      op->in_place |= UINT32_C(1) << k;
    }
  }
  op->tail_bytes = e->operands * sizeof(ref_operand);
  steps = steps > 1 ? steps * (double)e->count : 0;
  bytes *= LOOP;
  if (dense && pair) ref_set_work(op, run_pair, e->count, steps, bytes);
  else if (dense) ref_set_work(op, run_dense, e->count, steps, bytes);
  else ref_set_work(op, run_blocks, blocks_of(e), steps, bytes);
  return HEDDLE_OK;
}

void ref_fill_elementwise(const ref_node *n, ref_op *op) {
  ref_elementwise again = {0};
  uint8_t kinds[3] = {0, 0, 0};
  double steps;
  ref_operand *operands = ref_tail(op);
  const ref_elementwise *e = &op->u.elementwise;
  choose(n, &again, kinds, &steps, NULL);
  walk(n, &again, operands, NULL);
  for (uint32_t k = 0; k < e->operands; k++) {
    operands[k].kind = k < e->arity ? kinds[k] : kinds[1];
    if (ref_lanes_where(e->step) == e->lanes && e->lanes != NULL && k > 0) operands[k].type = operands[k].kind;
  }
}
