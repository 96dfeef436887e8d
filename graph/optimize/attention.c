/* graph/optimize/attention.c: attention as exporters write it gets one form: one number that scales, in one place, and
 * Reshapes before what cuts and turns the operands, so that a plugin sees Slice, Gather, Transpose, MatMul, Mul, Add,
 * Softmax, MatMul, Transpose with nothing between, and can have them as one region. All of it stays ordinary operators. */
#include <math.h>

#include "graph/optimize/net.h"

enum { MOST_SCALES = 8, MOST_STEPS = 12 };

/* ---- questions */

static bool is_float32(const opt_value *v) {
  heddle_dtype t;
  return opt_dtype(v, &t) && t.code == HEDDLE_DTYPE_FLOAT && t.bits == 32 && t.lanes == 1;
}

/* 0 where it is not known. */
static uint32_t rank_of(const opt_value *v) {
  const uint32_t rank = opt_rank(v);
  return rank == UINT32_MAX ? 0 : rank;
}

/* Mul or Div of float32 by one number that does not widen it; *k is which input is the other. */
static bool is_scale(opt_net *net, const opt_node *n, uint32_t *k, double *by) {
  const bool div = opt_is(n, "Div");
  for (*k = 0; (div || opt_is(n, "Mul")) && *k < (div ? 1u : 2u); ++*k) {
    const opt_value *x = opt_in(n, *k), *c = opt_in(n, 1 - *k);
    if (x == NULL || c == NULL || x->constant != NULL || !is_float32(x) || (c->ndim > 0 && c->ndim > rank_of(x)) ||
        !opt_number(net, c, by))
      continue;
    if (div) *by = 1 / *by;
    return isfinite(*by) && *by != 0;
  }
  return false;
}

static bool only_moves(const opt_node *n) {
  return opt_is(n, "Transpose") || opt_is(n, "Reshape") || opt_is(n, "Squeeze") || opt_is(n, "Unsqueeze") ||
         opt_is(n, "Identity");
}

/* ---- one scale */

typedef struct scales {
  opt_node *nodes[MOST_SCALES], *root;
  opt_value *values[MOST_SCALES]; /* what each scales */
  uint32_t count;
  double product;
} scales;

/* n, if it scales what only the attention uses. */
static bool add_scale(opt_net *net, scales *s, opt_node *n, opt_value **x) {
  uint32_t k;
  double by;
  if (n == NULL || s->count == MOST_SCALES || !opt_same_home(n, s->root) || !is_scale(net, n, &k, &by)) return false;
  *x = opt_in(n, k);
  s->nodes[s->count] = n;
  s->values[s->count++] = *x;
  s->product *= by;
  return true;
}

static void add_operand(opt_net *net, scales *s, opt_value *v) {
  for (int step = 0; step < MOST_STEPS && v != NULL && v->maker != NULL && opt_is_inner(v); step++)
    if (only_moves(v->maker)) v = opt_in(v->maker, 0);
    else if (!add_scale(net, s, v->maker, &v)) return;
}

/* The product of the scores behind a Softmax: through a mask that is added, and scales. */
static opt_node *find_product(opt_net *net, scales *s, opt_value *v) {
  const opt_node *mask = opt_maker(v, "Add");
  for (uint32_t k = 0; mask != NULL && k < 2; k++) {
    scales inner = *s;
    opt_value *x = opt_in(mask, k);
    if (!opt_is_inner(v) || !opt_same_home(mask, s->root) || x == NULL) continue;
    opt_node *product = opt_is(x->maker, "Add") ? NULL : find_product(net, &inner, x);
    if (product == NULL) continue;
    *s = inner;
    return product;
  }
  while (v != NULL && v->maker != NULL && opt_is_inner(v)) {
    if (opt_is(v->maker, "MatMul")) return opt_same_home(v->maker, s->root) ? v->maker : NULL;
    if (!add_scale(net, s, v->maker, &v)) return NULL;
  }
  return NULL;
}

/* The first that was found, nearest to the Softmax, becomes the only one. */
static bool join_scales(opt_net *net, scales *s) {
  const float product = (float)s->product;
  void *bytes;
  if (s->count < 2 || !isfinite(product) || product == 0) return false;
  opt_node *n = s->nodes[0];
  opt_value *by = opt_constant(net, opt_format(net, "%s:scale", n->name), (heddle_dtype){HEDDLE_DTYPE_FLOAT, 32, 1},
                               NULL, 0, &bytes);
  if (by == NULL) return false;
  memcpy(bytes, &product, sizeof product);
  for (uint32_t i = 1; i < s->count; i++) {
    opt_replace(&s->nodes[i]->outputs[0], s->values[i]);
    s->nodes[i]->live = false;
  }
  if (!opt_become(net, n, "", "Mul", (opt_value *const[]){s->values[0], by}, 2, NULL, 0)) return false;
  opt_note(net, "attention", (const opt_node *const *)s->nodes, s->count, "scaled once, by '%s'", n->name);
  return true;
}

/* ---- Reshape before what cuts */

static opt_value *integers(opt_net *net, const opt_node *n, const char *what, const int64_t *values, uint32_t count,
                           bool scalar) {
  void *bytes;
  opt_value *made = opt_constant(net, opt_format(net, "%s:%s", n->name, what), (heddle_dtype){HEDDLE_DTYPE_INT, 64, 1},
                                 (const int64_t[]){count}, scalar ? 0 : 1, &bytes);
  if (made != NULL) memcpy(bytes, values, count * sizeof *values);
  return made;
}

/* n becomes a Reshape of x whose last dimension is [heads, size]. */
static bool split_last(opt_net *net, opt_node *n, opt_value *x, int64_t size) {
  int64_t shape[HEDDLE__MAX_NDIM + 1];
  memcpy(shape, x->shape, x->ndim * sizeof *shape);
  shape[x->ndim - 1] /= size;
  shape[x->ndim] = size;
  opt_value *to = integers(net, n, "shape", shape, x->ndim + 1, false);
  if (to == NULL || !opt_become(net, n, "", "Reshape", (opt_value *const[]){x, to}, 2, NULL, 0)) return false;
  n->n_outputs = 1;
  n->outputs[0].known = false; /* until types are asked for again */
  return true;
}

/* n becomes the heads [from, to) of a value of as many dimensions as n's own. */
static bool take_heads(opt_net *net, opt_node *n, opt_value *x, int64_t from, int64_t to) {
  const int64_t axis = (int64_t)n->outputs[0].ndim - 2;
  opt_value *in[4] = {x, integers(net, n, "from", &from, 1, false), integers(net, n, "to", &to, 1, false),
                      integers(net, n, "axis", &axis, 1, false)};
  return in[1] != NULL && in[2] != NULL && in[3] != NULL && opt_become(net, n, "", "Slice", in, 4, NULL, 0);
}

/* Does the Reshape r of part cut its last dimension, [.., heads * size], into heads of one size? */
static bool cuts_heads(const opt_node *r, const opt_value *part, int64_t *size) {
  const opt_value *y = &r->outputs[0];
  if (!opt_is(r, "Reshape") || opt_in(r, 0) != part || !part->known || !y->known || part->ndim < 1 ||
      part->ndim + 1 > HEDDLE__MAX_NDIM || y->ndim != part->ndim + 1 || y->bytes == 0)
    return false;
  for (uint32_t d = 0; d + 1 < part->ndim; d++)
    if (y->shape[d] != part->shape[d]) return false;
  *size = y->shape[y->ndim - 1];
  return true;
}

/* Whether axis is the last one of x; a negative one is counted from the end. */
static bool is_last(int64_t axis, const opt_value *x) {
  return x->known && x->ndim > 0 && (axis == -1 || axis == (int64_t)x->ndim - 1);
}

/* Split of a joint projection, then a Reshape of each part: one Reshape, then a Slice for each. */
static bool turn_split(opt_net *net, opt_node *s) {
  enum { PARTS = 8 };
  opt_value *x = opt_in(s, 0);
  opt_node *users[PARTS];
  int64_t size = 0, each;
  if (x == NULL || s->n_outputs > PARTS || !is_last(opt_get_int(s, "axis", 0), x)) return false;
  for (uint32_t i = 0; i < s->n_outputs; i++) {
    users[i] = opt_only_user(net, &s->outputs[i]);
    if (users[i] == NULL || !cuts_heads(users[i], &s->outputs[i], &each) || (i > 0 && each != size) ||
        !opt_same_home(users[i], s))
      return false;
    size = each;
  }
  const uint32_t parts = s->n_outputs;
  if (size < 1 || !split_last(net, s, x, size)) return false;
  int64_t at = 0;
  for (uint32_t i = 0; i < parts; i++) {
    const opt_value *y = &users[i]->outputs[0];
    const int64_t heads = y->shape[y->ndim - 2];
    if (!take_heads(net, users[i], &s->outputs[0], at, at + heads)) return false;
    at += heads;
  }
  opt_note(net, "attention", (const opt_node *const[]){s, users[0]}, 2, "one Reshape, as '%s', before %u parts",
           s->name, (unsigned)parts);
  return true;
}

/* The same of one Slice; equal Reshapes become one elsewhere. */
static bool turn_slice(opt_net *net, opt_node *s) {
  opt_value *x = opt_in(s, 0);
  opt_node *r = opt_only_user(net, &s->outputs[0]);
  int64_t size, start, axis = 0, step = 1;
  uint32_t count = 1;
  if (x == NULL || r == NULL || !x->known || !cuts_heads(r, &s->outputs[0], &size) || !opt_same_home(r, s) ||
      !opt_ints(net, opt_in(s, 1), &start, &count) || count != 1)
    return false;
  if (opt_in(s, 3) != NULL && (!opt_ints(net, opt_in(s, 3), &axis, &count) || count != 1)) return false;
  if (opt_in(s, 4) != NULL && (!opt_ints(net, opt_in(s, 4), &step, &count) || count != 1)) return false;
  if (!is_last(axis, x) || step != 1) return false;
  const int64_t all = x->shape[x->ndim - 1], heads = r->outputs[0].shape[r->outputs[0].ndim - 2];
  if (start < 0) start += all;
  if (start < 0 || start > all - heads * size || start % size != 0 || all % size != 0) return false;
  if (!split_last(net, s, x, size) || !take_heads(net, r, &s->outputs[0], start / size, start / size + heads))
    return false;
  opt_note(net, "attention", (const opt_node *const[]){s, r}, 2, "Reshape before Slice, as '%s'", r->name);
  return true;
}

/* Split into ones and a Squeeze: Gather of that place. */
static bool turn_squeeze(opt_net *net, opt_node *n) {
  opt_value *part = opt_in(n, 0);
  opt_node *s = part != NULL && opt_is(part->maker, "Split") ? part->maker : NULL;
  int64_t axes[HEDDLE__MAX_NDIM], at = 0;
  uint32_t count = 0;
  if (s == NULL || !part->known || opt_in(s, 0) == NULL || !opt_same_home(n, s) ||
      !opt_ints(net, opt_in(n, 1), axes, &count) || count != 1)
    return false;
  int64_t axis = opt_get_int(s, "axis", 0);
  if (axis < 0) axis += part->ndim;
  if (axes[0] < 0) axes[0] += part->ndim;
  if (axis < 0 || axis >= (int64_t)part->ndim || axes[0] != axis) return false;
  for (uint32_t i = 0; i <= part->index; i++) {
    const opt_value *v = &s->outputs[i];
    if (!v->known || v->shape[axis] != 1) return false;
    at += i < part->index;
  }
  opt_value *index = integers(net, n, "index", &at, 1, true);
  const heddle_pattr attr = opt_attr_int(net, "axis", axis);
  if (index == NULL || !opt_become(net, n, "", "Gather", (opt_value *const[]){opt_in(s, 0), index}, 2, &attr, 1))
    return false;
  opt_note(net, "attention", (const opt_node *const[]){s, n}, 2, "one Gather, as '%s'", n->name);
  return true;
}

/* ---- Reshape before Transpose */

/* A Transpose and a Reshape that only cuts dimensions change places: what was [S, B * H, D], turned to [B * H, S, D] and
 * cut to [B, H, S, D], is cut to [S, B, H, D] and turned. */
static bool turn_reshape(opt_net *net, opt_node *r) {
  opt_value *y = opt_in(r, 0), *x;
  opt_node *t = opt_maker(y, "Transpose");
  const opt_value *z = &r->outputs[0];
  uint64_t given = 0;
  uint32_t first[HEDDLE__MAX_NDIM + 1], at = 0, rank;
  if (t == NULL || !opt_is_inner(y) || !opt_same_home(t, r) || !y->known || !z->known || y->bytes == 0 ||
      z->ndim <= y->ndim || (x = opt_in(t, 0)) == NULL)
    return false;
  const int64_t *perm = opt_get_ints(t, "perm", &given);
  if (perm == NULL || given != y->ndim) return false;
  for (uint32_t d = 0; d < y->ndim; d++) { /* dimension d of y is [first[d], first[d + 1]) of z */
    int64_t product = 1;
    first[d] = at;
    while (at < z->ndim && (product < y->shape[d] || at == first[d])) product *= z->shape[at++];
    if (product != y->shape[d]) return false;
  }
  first[y->ndim] = rank = at;
  if (rank != z->ndim) return false;
  int64_t shape[HEDDLE__MAX_NDIM], turned[HEDDLE__MAX_NDIM];
  for (uint32_t a = 0, k = 0; a < y->ndim; a++) /* the axes of x */
    for (uint32_t d = 0; d < y->ndim; d++)
      for (uint32_t i = first[d]; perm[d] == (int64_t)a && i < first[d + 1]; i++) {
        shape[k] = z->shape[i];
        turned[i] = k++;
      }
  opt_value *to = integers(net, t, "shape", shape, rank, false);
  const heddle_pattr attr = opt_attr_ints(net, "perm", turned, rank);
  y->known = false;
  if (to == NULL || !opt_become(net, t, "", "Reshape", (opt_value *const[]){x, to}, 2, NULL, 0) ||
      !opt_become(net, r, "", "Transpose", &y, 1, &attr, 1))
    return false;
  opt_note(net, "attention", (const opt_node *const[]){t, r}, 2, "Reshape before Transpose, as '%s'", r->name);
  return true;
}

/* ---- Transpose by way of three dimensions */

/* Elements [from, to) of the shape of x. */
static bool is_shape_part(opt_net *net, const opt_value *v, const opt_value *x, int64_t from, int64_t to) {
  int64_t start, end, axis = 0;
  uint32_t count;
  const opt_node *n = opt_maker(v, "Slice"), *shape = n != NULL ? opt_maker(opt_in(n, 0), "Shape") : NULL;
  if (shape == NULL || opt_in(shape, 0) != x || opt_get_int(shape, "start", 0) != 0 || opt_attr(shape, "end") != NULL)
    return false;
  if (!opt_ints(net, opt_in(n, 1), &start, &count) || count != 1 || !opt_ints(net, opt_in(n, 2), &end, &count) ||
      count != 1 ||
      (opt_in(n, 3) != NULL && (!opt_ints(net, opt_in(n, 3), &axis, &count) || count != 1 || axis != 0)) ||
      opt_in(n, 4) != NULL)
    return false;
  return start == from && (to == 0 ? end >= INT32_MAX : end == to);
}

/* Of shapes that are computed from that of x: [-1, rows, columns], then [others, columns, rows]. */
static bool is_open_detour(opt_net *net, const opt_value *x, const opt_value *first, const opt_value *second) {
  const opt_node *in = opt_maker(first, "Concat"), *out = opt_maker(second, "Concat");
  int64_t all;
  uint32_t count;
  return in != NULL && out != NULL && in->n_inputs == 3 && out->n_inputs == 3 &&
         opt_ints(net, opt_in(in, 0), &all, &count) && count == 1 && all == -1 &&
         is_shape_part(net, opt_in(in, 1), x, -2, -1) && is_shape_part(net, opt_in(in, 2), x, -1, 0) &&
         is_shape_part(net, opt_in(out, 0), x, 0, -2) && is_shape_part(net, opt_in(out, 1), x, -1, 0) &&
         is_shape_part(net, opt_in(out, 2), x, -2, -1);
}

/* Reshape to three dimensions, Transpose of the last two, and Reshape back: one Transpose, behind a Reshape where the first one
 * joins what the last one does not cut. */
static bool turn_detour(opt_net *net, opt_node *r) {
  static const int64_t swapped[] = {0, 2, 1};
  opt_node *t = opt_maker(opt_in(r, 0), "Transpose"), *first = t != NULL ? opt_maker(opt_in(t, 0), "Reshape") : NULL;
  uint64_t given = 0;
  const int64_t *perm = t != NULL ? opt_get_ints(t, "perm", &given) : NULL;
  if (first == NULL || perm == NULL || given != 3 || memcmp(perm, swapped, sizeof swapped) != 0 ||
      !opt_is_inner(&t->outputs[0]) || !opt_is_inner(&first->outputs[0]) || !opt_same_home(t, r) ||
      !opt_same_home(first, r))
    return false;
  opt_value *x = opt_in(first, 0), *mid = &first->outputs[0], *out = &r->outputs[0];
  const uint32_t rank = opt_rank(x);
  int64_t shape[HEDDLE__MAX_NDIM], turned[HEDDLE__MAX_NDIM];
  if (x == NULL || x->pinned) return false;
  bool same = rank != UINT32_MAX && rank > 2 && rank <= HEDDLE__MAX_NDIM &&
              is_open_detour(net, x, opt_in(first, 1), opt_in(r, 1));
  uint32_t wide = rank;
  if (!same) {
    if (!x->known || !mid->known || !out->known || mid->ndim != 3 || out->ndim < 3 || x->ndim < 3 || out->bytes == 0 ||
        out->shape[out->ndim - 1] != mid->shape[1] || out->shape[out->ndim - 2] != mid->shape[2] ||
        x->shape[x->ndim - 2] != mid->shape[1] || x->shape[x->ndim - 1] != mid->shape[2])
      return false;
    wide = out->ndim;
    same = x->ndim == wide && memcmp(x->shape, out->shape, (wide - 2) * sizeof *shape) == 0;
    memcpy(shape, out->shape, wide * sizeof *shape);
    shape[wide - 2] = mid->shape[1];
    shape[wide - 1] = mid->shape[2];
  }
  for (uint32_t d = 0; d < wide; d++) turned[d] = d;
  turned[wide - 2] = wide - 1;
  turned[wide - 1] = wide - 2;
  if (!same) {
    opt_value *to = integers(net, first, "shape", shape, wide, false);
    mid->known = false;
    if (to == NULL || !opt_become(net, first, "", "Reshape", (opt_value *const[]){x, to}, 2, NULL, 0)) return false;
  }
  const heddle_pattr attr = opt_attr_ints(net, "perm", turned, wide);
  opt_value *from = same ? x : mid;
  if (!opt_become(net, r, "", "Transpose", &from, 1, &attr, 1)) return false;
  t->live = false;
  first->live = !same;
  opt_note(net, "attention", (const opt_node *const[]){first, t, r}, 3, "one Transpose, as '%s'", r->name);
  return true;
}

/* ---- the pass */

/* What is on the way to an operand; true where one thing was changed, and shapes are to be looked at again. */
static bool turn_operand(opt_net *net, opt_value *v) {
  for (int step = 0; step < MOST_STEPS && v != NULL && v->maker != NULL && opt_is_inner(v); step++) {
    opt_node *n = v->maker;
    uint32_t k = 0;
    double by;
    const opt_value *x = opt_in(n, 0);
    if (opt_is(n, "Reshape")) {
      opt_node *before = x != NULL ? x->maker : NULL;
      if (before != NULL && opt_is(before, "Split") && turn_split(net, before)) return true;
      if (before != NULL && opt_is(before, "Slice") && opt_is_inner(x) && turn_slice(net, before)) return true;
      if (turn_detour(net, n) || turn_reshape(net, n)) return true;
    }
    if (opt_is(n, "Squeeze") && turn_squeeze(net, n)) return true;
    if (!only_moves(n) && !is_scale(net, n, &k, &by)) return false;
    v = opt_in(n, k);
  }
  return false;
}

static bool try_softmax(opt_net *net, opt_node *n) {
  const opt_value *y = opt_guarded(net, n);
  const int64_t axis = opt_get_int(n, "axis", -1);
  scales s = {.product = 1, .root = n};
  opt_node *second = opt_only_user(net, y), *first;
  if (second == NULL || !opt_is(second, "MatMul") || opt_in(second, 0) != y || !opt_same_home(second, n) ||
      opt_in(n, 0) == NULL || (axis != -1 && !(y->known && axis == (int64_t)y->ndim - 1)))
    return false;
  first = find_product(net, &s, opt_in(n, 0));
  if (first == NULL) return false;
  opt_value *operands[] = {opt_in(first, 0), opt_in(first, 1), opt_in(second, 1)};
  for (int i = 0; i < 3; i++)
    if (turn_operand(net, operands[i])) return true;
  add_operand(net, &s, operands[0]);
  add_operand(net, &s, operands[1]);
  return join_scales(net, &s);
}

/* Each attention is changed once before types are asked for again, however many there are. */
bool opt_pass_attention(opt_net *net) {
  bool changed = opt_take_attention_apart(net);
  for (bool again = true; again && !net->failed && !net->wrong;) {
    again = false;
    for (uint32_t i = 0; i < net->n_nodes && !net->failed; i++) {
      opt_node *n = &net->nodes[i];
      if (n->live && opt_is(n, "Softmax")) again = try_softmax(net, n) || again;
    }
    if (!again) break;
    changed = true;
    opt_count(net);
    opt_types(net);
  }
  return changed;
}
