/* executor/fold.c: operators on tensors whose bytes are known, for shape operands. Small results are kept with the plan;
 * large ones only while shapes are inferred, and the node is computed by a device like any other. */
#include "executor/fold.h"

#include <string.h>

#include "core/alloc.h"
#include "core/error.h"
#include "core/failure.h"
#include "core/parts.h"
#include "core/tensor.h"
#include "graph/infer.h"
#include "graph/general.h"

#if HEDDLE_HAS_FOLD
#define MAX_ELEMENTS 4096             /* of a result that is made here element by element before a kernel is asked */
#define MAX_BYTES (UINT64_C(1) << 20) /* of a result that is kept */
#define MAX_ROOM (UINT64_C(1) << 30)  /* of all larger ones */

typedef struct fold {
  const heddle_graph *g;
  const heddle__node *node;
  const heddle__known *const *in;
  const heddle__known *out;
  uint32_t output;
  int64_t place[HEDDLE__MAX_NDIM]; /* of the element that is made */
} fold;

/* This is asked for each element, and few names begin with the same letter. */
static bool is_op(const heddle__node *node, const char *name) {
  return node->op[0] == name[0] && strcmp(node->op, name) == 0;
}

/* ---------------------------------------------------------------- elements */

static bool is_real(heddle_dtype t) {
  return t.code == HEDDLE_DTYPE_FLOAT;
}

static bool is_known_type(heddle_dtype t) {
  if (t.lanes != 1) return false;
  if (t.code == HEDDLE_DTYPE_BOOL) return t.bits == 8;
  return (t.code == HEDDLE_DTYPE_INT || t.code == HEDDLE_DTYPE_FLOAT) && (t.bits == 32 || t.bits == 64);
}

/* Element i; 0 of an input that is absent. */
static heddle__number load(const heddle__known *k, int64_t i) {
  if (k == NULL) return (heddle__number){false, 0, 0};
  const char *at = (const char *)k->data + i * (k->dtype.bits / 8);
  heddle__number n = {is_real(k->dtype), 0, 0};
  int32_t narrow;
  float single;
  if (k->dtype.code == HEDDLE_DTYPE_BOOL) n.whole = *at != 0;
  else if (n.real && k->dtype.bits == 64) memcpy(&n.value, at, 8);
  else if (n.real) memcpy(&single, at, 4), n.value = (double)single;
  else if (k->dtype.bits == 64) memcpy(&n.whole, at, 8);
  else memcpy(&narrow, at, 4), n.whole = narrow;
  if (!n.real) n.value = (double)n.whole;
  return n;
}

/* Into element i of data, which is of the type. */
static void store(heddle_dtype type, char *data, int64_t i, heddle__number n) {
  char *at = data + i * (type.bits / 8);
  float single = (float)n.value;
  if (n.real && !is_real(type)) {
    bool fits = n.value >= -0x1p63 && n.value < 0x1p63;
    n.whole = type.code == HEDDLE_DTYPE_BOOL ? n.value != 0 : fits ? (int64_t)n.value : INT64_MIN;
  }
  int32_t narrow = (int32_t)n.whole;
  if (type.code == HEDDLE_DTYPE_BOOL) *at = n.whole != 0;
  else if (is_real(type) && type.bits == 64) memcpy(at, &n.value, 8);
  else if (is_real(type)) memcpy(at, &single, 4);
  else if (type.bits == 64) memcpy(at, &n.whole, 8);
  else memcpy(at, &narrow, 4);
}

/* Where the element at place lies in k, whose dimensions broadcast to those that place is of. */
static int64_t broadcast_index(const heddle__known *k, const int64_t *place, uint32_t ndim) {
  int64_t at = 0;
  for (uint32_t d = 0; d < k->ndim; d++) at = at * k->shape[d] + (k->shape[d] == 1 ? 0 : place[ndim - k->ndim + d]);
  return at;
}

/* ---------------------------------------------------------------- operators: one element of the result */

static bool elementwise(const fold *f, heddle__number *out) {
  heddle__number in[3], step[2];
  uint32_t n = f->node->n_inputs;
  if (!heddle__fold_knows(f->node->op)) return false;
  for (uint32_t i = 0; i < n; i++) {
    if (f->in[i] == NULL) return false; /* absent */
    if (i < 3) in[i] = load(f->in[i], broadcast_index(f->in[i], f->place, f->out->ndim));
  }
  if (n == 1 && (is_op(f->node, "Min") || is_op(f->node, "Max"))) {
    *out = in[0];
    return true;
  }
  if (n < 3 || is_op(f->node, "Where")) return heddle__fold_number(f->node->op, in, n, out);
  *out = in[0];
  for (uint32_t i = 1; i < n; i++) { /* Min and Max of many */
    step[0] = *out;
    step[1] = load(f->in[i], broadcast_index(f->in[i], f->place, f->out->ndim));
    if (!heddle__fold_number(f->node->op, step, 2, out)) return false;
  }
  return true;
}

/* Operators that move elements: place becomes that in an input, which is returned; NULL where it is none of these. */
static const heddle__known *moved(const fold *f, int64_t *place) {
  const heddle__known *x = f->in[0];
  int64_t list[2][HEDDLE__MAX_NDIM], from;
  uint32_t axis, count[2];
  if (x == NULL) return NULL;
  memcpy(place, f->place, sizeof f->place);
  if (is_op(f->node, "Expand")) {
    for (uint32_t d = 0; d < x->ndim; d++) place[d] = x->shape[d] == 1 ? 0 : f->place[f->out->ndim - x->ndim + d];
    return x;
  }
  if (is_op(f->node, "Slice")) {
    uint32_t axes;
    int64_t named[HEDDLE__MAX_NDIM];
    if (heddle__operand_ints(f->g, f->node, f->in, 1, list[0], &count[0], NULL, NULL) != HEDDLE_OK ||
        heddle__operand_ints(f->g, f->node, f->in, 3, named, &axes, NULL, NULL) != HEDDLE_OK ||
        heddle__operand_ints(f->g, f->node, f->in, 4, list[1], &count[1], NULL, NULL) != HEDDLE_OK)
      return NULL;
    for (uint32_t i = 0; i < count[0]; i++) {
      int64_t d = axes == UINT32_MAX ? i : named[i] < 0 ? named[i] + x->ndim : named[i];
      int64_t step = count[1] == UINT32_MAX ? 1 : list[1][i], size = x->shape[d], last = size - (step < 0);
      from = list[0][i] < 0 ? (list[0][i] < -size ? 0 : list[0][i] + size) : list[0][i];
      place[d] = (from > last ? last : from) + place[d] * step;
    }
    return x;
  }
  if (is_op(f->node, "Transpose")) {
    uint64_t n;
    const int64_t *perm = heddle__attr_ints(f->node, "perm", &n);
    for (uint32_t d = 0; d < x->ndim; d++) {
      int64_t to = perm == NULL ? (int64_t)(x->ndim - 1 - d) : perm[d] < 0 ? perm[d] + x->ndim : perm[d];
      place[to] = f->place[d];
    }
    return x;
  }
  const bool concat = is_op(f->node, "Concat"), gather = is_op(f->node, "Gather"), split = is_op(f->node, "Split");
  if (!concat && !gather && !split) return NULL;
  if (heddle__attr_axis(f->g, f->node, 0, x->ndim, false, &axis, NULL) != HEDDLE_OK) return NULL;
  if (concat) {
    for (uint32_t i = 0; i < f->node->n_inputs; i++) {
      if (place[axis] < f->in[i]->shape[axis]) return f->in[i];
      place[axis] -= f->in[i]->shape[axis];
    }
    return NULL;
  }
  if (split) { /* all parts before this one: as many as given, or of equal size */
    const heddle__known *sizes = heddle__input(f->node, f->in, 1);
    int64_t n = f->node->n_outputs, part = (x->shape[axis] + n - 1) / n;
    for (uint32_t i = 0; i < f->output; i++) place[axis] += sizes != NULL ? load(sizes, i).whole : part;
    return x;
  }
  const heddle__known *at = f->in[1];
  from = load(at, broadcast_index(at, f->place + axis, at->ndim)).whole;
  if (from < 0) from += x->shape[axis];
  if (from < 0 || from >= x->shape[axis]) return NULL;
  for (uint32_t d = axis + 1; d < x->ndim; d++) place[d] = f->place[at->ndim + d - 1];
  place[axis] = from;
  return x;
}

/* Operators that make a number of their attributes, or of where it is. */
static bool made(const fold *f, int64_t i, heddle__number *out) {
  const heddle__node *node = f->node;
  const heddle_pattr *attr = node->n_attrs > 0 ? &node->attrs[0] : NULL;
  *out = (heddle__number){is_real(f->out->dtype), 0, 0};
  if (is_op(node, "Shape") && f->in[0] != NULL) {
    int64_t first, last;
    heddle__shape_range(node, f->in[0]->ndim, &first, &last);
    out->whole = f->in[0]->shape[first + i];
  } else if (is_op(node, "Constant") && attr != NULL) {
    if (out->real) out->value = ((const double *)attr->data)[i];
    else out->whole = ((const int64_t *)attr->data)[i];
  } else if (is_op(node, "ConstantOfShape")) {
    attr = heddle__attr(node, "value_float");
    out->real = attr != NULL;
    out->whole = heddle__attr_int(node, "value_int", 0);
    out->value = attr != NULL ? *(const double *)attr->data : (double)out->whole;
    return true;
  } else if (is_op(node, "Range")) {
    heddle__number start = load(f->in[0], 0), step = load(f->in[2], 0);
    out->whole = (int64_t)((uint64_t)start.whole + (uint64_t)i * (uint64_t)step.whole);
    out->value = start.value + (double)i * step.value;
  } else {
    return false;
  }
  if (!out->real) out->value = (double)out->whole;
  return true;
}

/* A reduction of everything to one element. */
static bool reduced(const fold *f, int64_t n, heddle__number *out) {
  static const char *const names[] = {"ReduceSum", "ReduceProd", "ReduceMax", "ReduceMin"};
  static const char *const steps[] = {"Add", "Mul", "Max", "Min"};
  for (int i = 0; i < 4; i++) {
    if (!is_op(f->node, names[i])) continue;
    heddle__number pair[2];
    if (n == 0) return false;
    *out = load(f->in[0], 0);
    for (int64_t k = 1; k < n; k++) {
      pair[0] = *out;
      pair[1] = load(f->in[0], k);
      if (!heddle__fold_number(steps[i], pair, 2, out)) return false;
    }
    return true;
  }
  return false;
}

/* ---------------------------------------------------------------- the whole */

static bool element(fold *f, int64_t i, int64_t n_out, heddle__number *out) {
  int64_t rest = i, place[HEDDLE__MAX_NDIM];
  for (uint32_t d = f->out->ndim; d-- > 0;) {
    f->place[d] = rest % f->out->shape[d];
    rest /= f->out->shape[d];
  }
  if (made(f, i, out)) return true;
  if (f->node->n_inputs == 0 || f->in[0] == NULL) return false;
  const heddle__known *from = moved(f, place);
  if (from != NULL) {
    *out = load(from, broadcast_index(from, place, from->ndim));
    return true;
  }
  if (strncmp(f->node->op, "Reduce", 6) == 0)
    return n_out == 1 && reduced(f, (int64_t)(f->in[0]->bytes / heddle__dtype_bytes(f->in[0]->dtype)), out);
  return elementwise(f, out);
}

/* Memory for the result. */
static heddle_status take(heddle__plan *plan, heddle__fold_room *room, const heddle__node *node, uint64_t bytes,
                          bool keep, char **out, heddle_error *err) {
  if (room->given != NULL) {
    *out = bytes <= room->given_bytes ? room->given : NULL;
    return *out != NULL ? HEDDLE_OK : heddle__fail(err, HEDDLE_ELIMIT, "node '%s': its result has grown", node->name);
  }
  if (bytes > MAX_ROOM - room->bytes) {
    heddle__fail(err, HEDDLE_ELIMIT,
                 "%s: node '%s' (%s): a shape is computed through its result of %llu bytes; planning takes %llu bytes "
                 "in all for such values",
                 plan->req.graph->source, node->name, node->op, (unsigned long long)bytes,
                 (unsigned long long)MAX_ROOM);
    heddle__at_node(HEDDLE_ELIMIT, err, (uint32_t)(node - plan->req.graph->nodes), node->name);
    return HEDDLE_ELIMIT;
  }
  room->bytes += bytes > MAX_BYTES ? bytes : 0;
  if (keep || bytes <= MAX_BYTES) {
    *out = heddle__plan_alloc(plan, 1, bytes);
    if (*out != NULL) return HEDDLE_OK;
    heddle__no_memory(err, "a folded shape");
    return HEDDLE_ENOMEM;
  }
  if (room->n == room->cap) {
    void **more = heddle__grow(room->blocks, room->cap, 2 * room->cap + 8, sizeof *more);
    if (more == NULL) {
      heddle__no_memory(err, "a folded shape");
      return HEDDLE_ENOMEM;
    }
    room->blocks = more;
    room->cap = 2 * room->cap + 8;
  }
  *out = heddle__alloc(1, bytes);
  if (*out == NULL) {
    heddle__no_memory(err, "a folded shape");
    return HEDDLE_ENOMEM;
  }
  room->blocks[room->n++] = *out;
  return HEDDLE_OK;
}

static bool is_known(const heddle__known *k) {
  return k == NULL || k->data != NULL || k->bytes == 0;
}

/* By a reference kernel. */
static heddle_status by_kernel(const fold *f, const heddle__known *outs, char *data, bool *done, heddle_error *err) {
  const heddle_status s = heddle__general_compute(f->g, f->node, f->in, outs, f->output, data);
  *done = s == HEDDLE_OK;
  return s == HEDDLE_ENOMEM ? heddle__no_memory(err, "a folded shape") : HEDDLE_OK;
}

/* One element after another, where this file knows the operator and the types. */
static bool by_element(fold *f, char *data) {
  const int64_t n = (int64_t)(f->out->bytes / heddle__dtype_bytes(f->out->dtype));
  bool known = f->node->domain[0] == '\0' && is_known_type(f->out->dtype);
  for (uint32_t i = 0; i < f->node->n_inputs && known && !is_op(f->node, "Shape"); i++)
    known = f->in[i] == NULL || is_known_type(f->in[i]->dtype);
  for (int64_t i = 0; i < n && known; i++) {
    heddle__number x;
    known = element(f, i, n, &x);
    if (known) store(f->out->dtype, data, i, x);
  }
  return known;
}

heddle_status heddle__fold(heddle__plan *plan, heddle__fold_room *room, const heddle__node *node,
                           const heddle__known *const *inputs, heddle__known *outs, uint32_t which, bool keep,
                           heddle_error *err) {
  heddle__known *out = &outs[which];
  fold f = {.g = plan->req.graph, .node = node, .in = inputs, .out = out, .output = which};
  char *data = NULL;
  const bool shape = is_op(node, "Shape");
  for (uint32_t i = 0; i < node->n_inputs && !shape; i++)
    if (!is_known(inputs[i])) return HEDDLE_OK;
  if (out->bytes == 0) return HEDDLE_OK;
  heddle_status s = take(plan, room, node, out->bytes, keep, &data, err);
  if (s != HEDDLE_OK) return s;
  const bool small = out->bytes <= (uint64_t)MAX_ELEMENTS * heddle__dtype_bytes(out->dtype);
  bool done = small && by_element(&f, data);
  if (!done && !shape) s = by_kernel(&f, outs, data, &done, err);
  if (!done && !small && s == HEDDLE_OK) done = by_element(&f, data);
  if (done) out->data = data;
  return s;
}

void heddle__fold_forget(heddle__plan *plan, heddle__fold_room *room) {
  for (uint32_t i = 0; room->n > 0 && i < plan->n_values; i++) {
    heddle__known *k = &plan->values[i].known;
    if (k->data == NULL || k->bytes <= MAX_BYTES) continue;
    for (uint32_t b = 0; b < room->n; b++)
      if (k->data == room->blocks[b]) k->data = NULL;
  }
  for (uint32_t b = 0; b < room->n; b++) heddle__free(room->blocks[b]);
  heddle__free(room->blocks);
  *room = (heddle__fold_room){0};
}
#else

heddle_status heddle__fold(heddle__plan *plan, heddle__fold_room *room, const heddle__node *node,
                           const heddle__known *const *inputs, heddle__known *outs, uint32_t which, bool keep,
                           heddle_error *err) {
  (void)room, (void)inputs, (void)outs, (void)which, (void)keep;
  heddle_status s = heddle__left_out(err, "operators on values that decide shapes", "HEDDLE_FOLD");
  s = heddle__prefix(err, s, "%s: node '%s': ", plan->req.graph->source, node->name);
  return heddle__at_node(s, err, (uint32_t)(node - plan->req.graph->nodes), node->name);
}

void heddle__fold_forget(heddle__plan *plan, heddle__fold_room *room) {
  (void)plan, (void)room;
}

bool heddle__fold_knows(const char *op) {
  (void)op;
  return false;
}
#endif
