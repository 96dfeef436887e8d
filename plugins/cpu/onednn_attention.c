/* Reading attention: which nodes of a region are the two products, the scale, the mask and the Softmax, and how the
 * operands lie in what comes from outside, through the Transposes, Splits, Slices and Gathers between. */
#include "onednn_attention.h"

enum { VIEW_DIMS = 8, MOST_DIMS = ATTENTION_DIMS + 1 };

/* A part of a region input; scale is of the Muls on the way. */
typedef struct view {
  uint32_t slot;
  int32_t ndim;
  int64_t offset;
  int64_t dims[VIEW_DIMS], strides[VIEW_DIMS];
  double scale;
} view;

typedef struct reader {
  const heddle_pregion *region;
  bool seen[ATTENTION_NODES];
} reader;

static bool is(const heddle_pnode *node, const char *op) {
  return node->op != NULL && (node->domain == NULL || node->domain[0] == '\0') && strcmp(node->op, op) == 0;
}

/* ---------------------------------------------------------------- constants */

static bool number(const heddle_pvalue *value, double *out) {
  uint64_t count = 0;
  float single;
  if (value == NULL || value->data == NULL || !region_value_count(value, &count) || count != 1 ||
      !region_dtype_is(value->dtype, HEDDLE_DTYPE_FLOAT, 32))
    return false;
  memcpy(&single, value->data, sizeof single);
  *out = (double)single;
  return true;
}

/* Element i of a constant of int64 or int32. */
static bool integer(const heddle_pvalue *value, uint64_t i, int64_t *out) {
  int32_t narrow;
  uint64_t count = 0;
  if (value == NULL || value->data == NULL || !region_value_count(value, &count) || i >= count) return false;
  if (region_dtype_is(value->dtype, HEDDLE_DTYPE_INT, 64)) {
    memcpy(out, (const char *)value->data + 8 * i, sizeof *out);
    return true;
  }
  if (!region_dtype_is(value->dtype, HEDDLE_DTYPE_INT, 32)) return false;
  memcpy(&narrow, (const char *)value->data + 4 * i, sizeof narrow);
  *out = narrow;
  return true;
}

/* Mul or Div of operand k by a constant number. */
static bool read_scale(const heddle_pregion *region, const heddle_pnode *node, uint32_t k, double *scale) {
  double by;
  const bool div = is(node, "Div");
  if ((!div && !is(node, "Mul")) || node->n_inputs != 2 || (div && k != 0)) return false;
  if (!number(region_node_input(region, node, 1 - k), &by) || (div && by == 0)) return false;
  *scale = div ? *scale / by : *scale * by;
  return true;
}

/* ---------------------------------------------------------------- operands */

static bool take_transpose(const heddle_pnode *node, view *v) {
  const view from = *v;
  const int64_t *perm;
  uint64_t count = 0;
  if (region_attr_ints(node, "perm", &perm, &count, NULL) != HEDDLE_OK || (perm != NULL && count != (uint64_t)v->ndim))
    return false;
  for (int32_t d = 0; d < v->ndim; d++) {
    const int64_t at = perm != NULL ? perm[d] : v->ndim - 1 - d;
    if (at < 0 || at >= v->ndim) return false;
    v->dims[d] = from.dims[at];
    v->strides[d] = from.strides[at];
  }
  return true;
}

/* The attribute axis, counted from the front. */
static bool axis_of(const heddle_pnode *node, const view *v, int64_t *axis) {
  if (region_attr_int(node, "axis", 0, axis, NULL) != HEDDLE_OK) return false;
  if (*axis < 0) *axis += v->ndim;
  return *axis >= 0 && *axis < v->ndim;
}

/* One place of one axis, which goes away, or stays with one place where the index has a dimension. */
static bool take_gather(const heddle_pregion *region, const heddle_pnode *node, view *v) {
  const heddle_pvalue *index = region_node_input(region, node, 1);
  int64_t axis, at;
  uint64_t count = 0;
  if (!axis_of(node, v, &axis) || !integer(index, 0, &at) || !region_value_count(index, &count) || count != 1 ||
      index->ndim > 1)
    return false;
  if (at < 0) at += v->dims[axis];
  if (at < 0 || at >= v->dims[axis]) return false;
  v->offset += at * v->strides[axis];
  v->dims[axis] = 1;
  if (index->ndim == 1) return true;
  v->ndim--;
  for (int64_t d = axis; d < v->ndim; d++) {
    v->dims[d] = v->dims[d + 1];
    v->strides[d] = v->strides[d + 1];
  }
  return true;
}

static bool take_split(const heddle_pregion *region, const heddle_pnode *node, int32_t value, view *v) {
  int64_t axis;
  if (!axis_of(node, v, &axis)) return false;
  for (uint32_t i = 0; i < node->n_outputs; i++) {
    const heddle_pvalue *part = region_node_output(region, node, i);
    if (part == NULL || part->ndim != v->ndim) return false;
    if (node->outputs[i] == value) {
      v->dims[axis] = part->shape[axis];
      return true;
    }
    v->offset += part->shape[axis] * v->strides[axis];
  }
  return false;
}

/* Steps of 1; the sizes are the result's. */
static bool take_slice(const heddle_pregion *region, const heddle_pnode *node, view *v) {
  const heddle_pvalue *starts = region_node_input(region, node, 1), *axes = region_node_input(region, node, 3);
  const heddle_pvalue *steps = region_node_input(region, node, 4), *out = region_node_output(region, node, 0);
  uint64_t count = 0;
  if (starts == NULL || !region_value_count(starts, &count) || out == NULL || out->ndim != v->ndim) return false;
  for (uint64_t i = 0; i < count; i++) {
    int64_t start, step = 1, axis = (int64_t)i;
    if (!integer(starts, i, &start) || (axes != NULL && !integer(axes, i, &axis)) ||
        (steps != NULL && !integer(steps, i, &step)) || step != 1)
      return false;
    if (axis < 0) axis += v->ndim;
    if (axis < 0 || axis >= v->ndim) return false;
    if (start < 0) start += v->dims[axis];
    start = start < 0 ? 0 : start > v->dims[axis] ? v->dims[axis] : start;
    if (out->shape[axis] > v->dims[axis] - start) return false;
    v->offset += start * v->strides[axis];
    v->dims[axis] = out->shape[axis];
  }
  return true;
}

bool attention_is_view(const heddle_pregion *region, const heddle_pnode *node) {
  double scale = 1;
  if (node->n_inputs < 1 || node->n_outputs < 1) return false;
  return is(node, "Transpose") || is(node, "Gather") || is(node, "Split") || is(node, "Slice") ||
         read_scale(region, node, 0, &scale) || read_scale(region, node, 1, &scale);
}

static const heddle_pnode *maker_of(reader *r, int32_t value, uint64_t before, uint64_t *at) {
  for (uint64_t i = 0; i < before; i++) {
    const heddle_pnode *node = region_node(r->region, i);
    for (uint32_t k = 0; k < node->n_outputs; k++)
      if (node->outputs[k] == value) {
        *at = i;
        return node;
      }
  }
  return NULL;
}

/* How a value lies in the region input that it comes from; before: nodes from that one on do not make it. */
static bool read_view(reader *r, int32_t value, uint64_t before, view *v) {
  const heddle_pvalue *own = region_value(r->region, value);
  const int64_t slot = region_input_slot(r->region, value);
  uint64_t at = 0;
  if (own == NULL || own->ndim > VIEW_DIMS) return false;
  if (slot >= 0) {
    int64_t stride = 1;
    *v = (view){.slot = (uint32_t)slot, .ndim = own->ndim, .scale = 1};
    if (slot >= ONEDNN_INPUTS) return false;
    for (int32_t d = own->ndim - 1; d >= 0; d--) {
      v->dims[d] = own->shape[d];
      const bool has_room = HEDDLE_HAS(heddle_pvalue, own, room_axis) && own->room > 0 && own->room_axis == d;
      v->strides[d] = stride;
      stride *= has_room ? own->room : own->shape[d];
    }
    return region_dtype_is(own->dtype, HEDDLE_DTYPE_FLOAT, 32);
  }
  const heddle_pnode *node = maker_of(r, value, before, &at);
  if (node == NULL || node->n_inputs < 1) return false;
  double unused = 1;
  const uint32_t k = !read_scale(r->region, node, 0, &unused) && read_scale(r->region, node, 1, &unused) ? 1 : 0;
  if (!read_view(r, node->inputs[k], at, v)) return false;
  r->seen[at] = true;
  const bool is_taken = is(node, "Transpose") ? take_transpose(node, v)
                        : is(node, "Gather")  ? take_gather(r->region, node, v)
                        : is(node, "Split")   ? take_split(r->region, node, value, v)
                        : is(node, "Slice")   ? take_slice(r->region, node, v)
                                              : read_scale(r->region, node, k, &v->scale);
  if (!is_taken || v->ndim != own->ndim) return false;
  for (int32_t d = 0; d < v->ndim; d++)
    if (v->dims[d] != own->shape[d]) return false;
  return true;
}

/* With 1s before its dimensions; dimensions of 1 get strides as if they were full. outer: how many there are before batch. */
static bool as_stack(const view *v, int64_t outer, attention_view *out) {
  int64_t reach = 1;
  if (v->ndim < 2 || v->ndim > MOST_DIMS || (v->ndim == MOST_DIMS && v->dims[0] != 1 && v->dims[0] != outer))
    return false;
  *out = (attention_view){.slot = v->slot, .offset = v->offset};
  if (v->ndim == MOST_DIMS && v->dims[0] != 1) out->outer = v->strides[0];
  for (int d = 0; d < ATTENTION_DIMS; d++) {
    const int at = d - (ATTENTION_DIMS - v->ndim);
    out->dims[d] = at < 0 ? 1 : v->dims[at];
    out->strides[d] = at < 0 || v->dims[at] == 1 ? 0 : v->strides[at];
    if (out->dims[d] * out->strides[d] > reach) reach = out->dims[d] * out->strides[d];
  }
  for (int d = 0; d < ATTENTION_DIMS; d++)
    if (out->dims[d] == 1) out->strides[d] = d == ATTENTION_DIMS - 1 ? 1 : reach;
  return true;
}

/* ---------------------------------------------------------------- the chain between */

/* The one node that uses a value, from a node on; NULL where there are more or none, or others outside do. */
static const heddle_pnode *user_of(reader *r, int32_t value, uint64_t *at) {
  const heddle_pnode *user = NULL;
  if (region_output_slot(r->region, value) >= 0) return NULL;
  for (uint64_t i = *at; i < r->region->nodes.count; i++) {
    const heddle_pnode *node = region_node(r->region, i);
    for (uint32_t k = 0; k < node->n_inputs; k++) {
      if (node->inputs[k] != value) continue;
      if (user != NULL) return NULL;
      user = node;
      *at = i;
    }
  }
  return user;
}

static bool read_mask(const heddle_pregion *region, const heddle_pnode *node, int32_t on, attention *a) {
  const uint32_t mine = node->inputs[0] == on ? 0 : 1;
  const heddle_pvalue *mask = region_node_input(region, node, 1 - mine), *scores = region_node_output(region, node, 0);
  int64_t strides[MOST_DIMS];
  const int64_t slot = region_input_slot(region, node->inputs[1 - mine]);
  if (!is(node, "Add") || node->n_inputs != 2 || a->mask != UINT32_MAX || slot < 0 || slot >= ONEDNN_INPUTS ||
      !region_dtype_is(mask->dtype, HEDDLE_DTYPE_FLOAT, 32) ||
      !region_shape_equal(region_node_input(region, node, mine), scores) ||
      !region_shape_broadcast_strides(mask, scores, strides))
    return false;
  const int before = ATTENTION_DIMS - scores->ndim;
  for (int d = 0; d < ATTENTION_DIMS; d++) a->mask_strides[d] = d < before ? 0 : strides[d - before];
  a->mask_outer = before < 0 ? strides[0] : 0;
  a->mask = (uint32_t)slot;
  return a->mask_strides[ATTENTION_DIMS - 1] == 1 || a->keys == 1;
}

/* From the scores to the Softmax: scales, then a mask. */
static bool read_softmax(reader *r, uint64_t *at, int32_t *on, double *scale, attention *a) {
  for (;;) {
    const heddle_pnode *node = user_of(r, *on, at);
    int64_t axis = -1;
    if (node == NULL || node->n_outputs != 1) return false;
    r->seen[*at] = true;
    const heddle_pvalue *out = region_node_output(r->region, node, 0);
    if (is(node, "Softmax")) {
      *on = node->outputs[0];
      return node->opset >= HEDDLE__OPSET_FIRST && region_attr_int(node, "axis", -1, &axis, NULL) == HEDDLE_OK &&
             (axis == -1 || axis == out->ndim - 1);
    }
    const uint32_t k = node->inputs[0] == *on ? 0 : 1;
    const bool scaled = a->mask == UINT32_MAX && read_scale(r->region, node, k, scale);
    if (!scaled && !read_mask(r->region, node, *on, a)) return false;
    *on = node->outputs[0];
  }
}

/* Where(IsNaN(y), 0, y) behind the Softmax, where it is. */
static bool read_guard(reader *r, uint64_t *at, int32_t *on, attention *a) {
  const heddle_pnode *test = NULL;
  double zero;
  a->guarded = false;
  for (uint64_t i = *at + 1; i < r->region->nodes.count; i++) {
    const heddle_pnode *node = region_node(r->region, i);
    if (test == NULL && is(node, "IsNaN") && node->inputs[0] == *on) {
      test = node;
      r->seen[i] = true;
    } else if (test != NULL && is(node, "Where") && node->n_inputs == 3 && node->inputs[0] == test->outputs[0]) {
      if (node->inputs[2] != *on || !number(region_node_input(r->region, node, 1), &zero) || zero != 0) return false;
      r->seen[i] = true;
      a->guarded = true;
      *on = node->outputs[0];
      *at = i;
      return true;
    }
  }
  return test == NULL;
}

/* The result, through a Transpose where there is one. */
static bool read_result(reader *r, uint64_t at, const heddle_pnode *product, attention *a) {
  const heddle_pvalue *dense = region_node_output(r->region, product, 0);
  const heddle_pnode *node = user_of(r, product->outputs[0], &at);
  int64_t slot = region_output_slot(r->region, product->outputs[0]), stride = 1;
  view v = {.ndim = dense->ndim, .scale = 1};
  if (node != NULL) {
    const heddle_pvalue *out = region_node_output(r->region, node, 0);
    const int64_t *perm;
    uint64_t count = 0;
    if (!is(node, "Transpose") || out == NULL || out->ndim != dense->ndim ||
        region_attr_ints(node, "perm", &perm, &count, NULL) != HEDDLE_OK ||
        (perm != NULL && count != (uint64_t)out->ndim))
      return false;
    for (int32_t d = out->ndim - 1; d >= 0; d--) {
      const int64_t from = perm != NULL ? perm[d] : out->ndim - 1 - d;
      if (from < 0 || from >= out->ndim || out->shape[d] != dense->shape[from]) return false;
      v.dims[from] = out->shape[d];
      v.strides[from] = stride;
      stride *= out->shape[d];
    }
    r->seen[at] = true;
    slot = region_output_slot(r->region, node->outputs[0]);
  } else {
    for (int32_t d = dense->ndim - 1; d >= 0; d--) {
      v.dims[d] = dense->shape[d];
      v.strides[d] = stride;
      stride *= dense->shape[d];
    }
  }
  return slot == 0 && as_stack(&v, a->batch / a->inner, &a->out);
}

/* Repeated along batch and heads, or as many as there are. */
static bool fits(const attention *a, const attention_view *v, int64_t rows, int64_t columns) {
  return (v->dims[0] == 1 || v->dims[0] == a->inner) && (v->dims[1] == 1 || v->dims[1] == a->heads) &&
         v->dims[2] == rows && v->dims[3] == columns;
}

static bool is_product(const heddle_pregion *region, const heddle_pnode *node) {
  const heddle_pvalue *out = region_node_output(region, node, 0);
  return is(node, "MatMul") && node->n_inputs == 2 && node->n_outputs == 1 && out != NULL && out->ndim >= 2 &&
         out->ndim <= MOST_DIMS && region_dtype_is(out->dtype, HEDDLE_DTYPE_FLOAT, 32);
}

/* From one product to the other; at is the first's place. */
static bool read_from(reader *r, uint64_t at, attention *a) {
  const heddle_pregion *region = r->region;
  const heddle_pnode *first = region_node(region, at);
  const heddle_pvalue *scores = region_node_output(region, first, 0);
  double scale = 1;
  int32_t on = first->outputs[0];
  view q, k, v;
  if (!read_view(r, first->inputs[0], at, &q) || !read_view(r, first->inputs[1], at, &k)) return false;
  scale = q.scale * k.scale;
  r->seen[at] = true;
  a->mask = UINT32_MAX;
  const int64_t outer = scores->ndim == MOST_DIMS ? scores->shape[0] : 1;
  a->inner = scores->ndim > 3 ? scores->shape[scores->ndim - 4] : 1;
  a->batch = outer * a->inner;
  a->mask_outer = 0;
  a->heads = scores->ndim > 2 ? scores->shape[scores->ndim - 3] : 1;
  a->rows = scores->shape[scores->ndim - 2];
  a->keys = scores->shape[scores->ndim - 1];
  if (a->inner < 1 || !read_softmax(r, &at, &on, &scale, a) || !read_guard(r, &at, &on, a)) return false;
  const heddle_pnode *second = user_of(r, on, &at);
  if (second == NULL || !is_product(region, second) || second->inputs[0] != on ||
      region_node_output(region, second, 0)->ndim != scores->ndim)
    return false;
  r->seen[at] = true;
  if (!read_view(r, second->inputs[1], at, &v) || v.scale != 1 || !read_result(r, at, second, a)) return false;
  a->scale = (float)scale;
  return as_stack(&q, outer, &a->q) && as_stack(&k, outer, &a->k) && as_stack(&v, outer, &a->v) &&
         a->out.dims[0] == a->inner && a->out.dims[1] == a->heads && fits(a, &a->q, a->rows, a->k.dims[2]) &&
         fits(a, &a->k, a->q.dims[3], a->keys) && fits(a, &a->v, a->keys, a->out.dims[3]) && a->out.dims[2] == a->rows;
}

/* Inputs that nothing computes with are constants whose bytes were read. */
static bool read_flags(const heddle_pregion *region, attention *a) {
  for (uint32_t slot = 0; slot < region->n_inputs; slot++) {
    a->flags[slot] = 0;
    if (slot == a->mask) continue;
    if (slot == a->q.slot || slot == a->k.slot || slot == a->v.slot) {
      a->flags[slot] = HEDDLE_INPUT_ROOM;
      continue;
    }
    if (region_value(region, region->inputs[slot])->data == NULL) return false;
    a->flags[slot] = HEDDLE_INPUT_ABSORBED;
  }
  return true;
}

bool attention_read(const heddle_pregion *region, attention *out) {
  const uint64_t count = region->nodes.count;
  if (count < 3 || count > ATTENTION_NODES || region->n_inputs > ONEDNN_INPUTS || region->n_outputs != 1) return false;
  for (uint64_t at = 0; at < count; at++) {
    reader r = {.region = region};
    bool all = is_product(region, region_node(region, at)) && read_from(&r, at, out);
    for (uint64_t i = 0; i < count; i++) all = all && r.seen[i];
    if (all && out->batch * out->heads * out->rows * out->keys > 0 && out->q.dims[3] > 0 && out->v.dims[3] > 0)
      return read_flags(region, out);
  }
  return false;
}
