/* graph/optimize/rotary.c: rotary embeddings from their parts, as one Rotary of domain "heddle".
 *
 * x has two parts, p and q: its halves (by two Slices or a Split), or each second element of its last axis (by Slices of steps of
 * 2, or of a last axis of 2 that a Reshape makes). Two forms are recognised, in any order of operands:
 *   x * cos + join(-q, p) * sin
 *   join(p * cos - q * sin, q * cos + p * sin), with cosines and sines of one part
 * where join puts two parts together as they were cut: by Concat, or by Unsqueeze, Concat and Reshape. */
#include "graph/optimize/net.h"

enum { MOST_PARTS = 20, MOST_UP = 8 };

typedef struct rotary {
  opt_node *nodes[MOST_PARTS];
  uint32_t n_nodes;
  opt_value *x, *cos, *sin;
  int64_t half; /* 0: half of what there is */
  bool pairs;
} rotary;

static void keep(rotary *r, opt_node *n) {
  for (uint32_t i = 0; i < r->n_nodes; i++)
    if (r->nodes[i] == n) return;
  if (r->n_nodes < MOST_PARTS) r->nodes[r->n_nodes++] = n;
}

/* ---- axes */

static bool is_last(int64_t axis, const opt_value *v) {
  const uint32_t rank = opt_rank(v);
  return axis == -1 || (rank != UINT32_MAX && axis == (int64_t)rank - 1);
}

/* ---- parts of x */

/* Is v, as a bound of a Slice, half of the last dimension of x, by Shape, Gather and Div? */
static bool is_half_of(opt_net *net, const opt_value *v, const opt_value *x) {
  double two;
  bool halved = false;
  for (int up = 0; v != NULL && v->maker != NULL && up < MOST_UP; up++) {
    const opt_node *n = v->maker;
    int64_t at;
    uint32_t count;
    if (opt_is(n, "Shape")) return false;
    if (opt_is(n, "Gather")) {
      const opt_node *shape = opt_maker(opt_in(n, 0), "Shape");
      return halved && shape != NULL && opt_in(shape, 0) == x && shape->n_attrs == 0 &&
             opt_ints(net, opt_in(n, 1), &at, &count) && count == 1 && is_last(at, x);
    }
    if (opt_is(n, "Div")) {
      if (halved || !opt_number(net, opt_in(n, 1), &two) || two != 2) return false;
      halved = true;
    } else if (!opt_is(n, "Cast") && !opt_is(n, "Unsqueeze") && !opt_is(n, "Squeeze") && !opt_is(n, "Identity") &&
               !opt_is(n, "Floor") && !(opt_is(n, "Concat") && n->n_inputs == 1) && !opt_is(n, "Reshape")) {
      return false;
    }
    v = opt_in(n, 0);
  }
  return false;
}

typedef struct cut {
  opt_node *node;
  opt_value *x;
  int64_t start, end, step;
  const opt_value *from, *to; /* where they are not constant */
} cut;

static bool one(opt_net *net, const opt_value *v, int64_t *out) {
  uint32_t count;
  return opt_ints(net, v, out, &count) && count == 1;
}

/* A Slice of the last axis. */
static bool read_slice(opt_net *net, opt_value *v, cut *c) {
  int64_t axis;
  opt_node *n = opt_maker(v, "Slice");
  *c = (cut){.node = n, .step = 1};
  if (n == NULL || n->n_inputs < 4 || (c->x = opt_in(n, 0)) == NULL || !one(net, opt_in(n, 3), &axis) ||
      !is_last(axis, c->x) || (opt_in(n, 4) != NULL && !one(net, opt_in(n, 4), &c->step)))
    return false;
  if (!one(net, opt_in(n, 1), &c->start)) c->from = opt_in(n, 1);
  if (!one(net, opt_in(n, 2), &c->end)) c->to = opt_in(n, 2);
  return true;
}

/* Does the slice reach the end? half: of the dimension, 0 where it is not known. */
static bool ends(const cut *c, int64_t half) {
  if (c->to != NULL) return false;
  if (c->x->known) return c->end >= c->x->shape[c->x->ndim - 1];
  return c->end >= INT32_MAX || (half > 0 && c->end == 2 * half);
}

static bool by_slices(opt_net *net, rotary *r, opt_value *p, opt_value *q) {
  cut a, b;
  if (!read_slice(net, p, &a) || !read_slice(net, q, &b) || a.x != b.x || a.step != b.step) return false;
  const opt_value *x = a.x;
  const int64_t width = x->known ? x->shape[x->ndim - 1] : 0;
  if (a.step == 2) {
    if (a.from != NULL || b.from != NULL || a.start != 0 || b.start != 1 || !ends(&a, 0) || !ends(&b, 0)) return false;
    r->pairs = true;
    r->half = width / 2;
  } else if (a.step == 1 && a.from == NULL && a.start == 0) {
    if (a.to != NULL) { /* by the shape of x */
      if (b.from == NULL || !is_half_of(net, a.to, x) || !is_half_of(net, b.from, x) || !ends(&b, 0)) return false;
    } else {
      if (b.start < 0 && x->known) b.start += width;
      if (b.from != NULL || a.end <= 0 || b.start != a.end || !ends(&b, a.end)) return false;
      r->half = a.end;
    }
  } else {
    return false;
  }
  if (width > 0 && (width % 2 != 0 || (r->half > 0 && width != 2 * r->half))) return false;
  r->x = a.x;
  keep(r, a.node);
  keep(r, b.node);
  return true;
}

static bool by_split(opt_net *net, rotary *r, opt_value *p, opt_value *q) {
  opt_node *n = p != NULL ? p->maker : NULL;
  int64_t sizes[HEDDLE__MAX_NDIM];
  uint32_t count;
  if (!opt_is(n, "Split") || q == NULL || q->maker != n || n->n_outputs != 2 || p->index != 0 || q->index != 1 ||
      opt_in(n, 0) == NULL || !is_last(opt_get_int(n, "axis", 0), opt_in(n, 0)))
    return false;
  if (opt_in(n, 1) != NULL) {
    if (!opt_ints(net, opt_in(n, 1), sizes, &count) || count != 2 || sizes[0] != sizes[1]) return false;
    r->half = sizes[0];
  }
  r->x = opt_in(n, 0);
  if (r->x->known && r->x->shape[r->x->ndim - 1] % 2 != 0) return false;
  keep(r, n);
  return true;
}

/* Place at of a last axis of 2: by Gather of one place, or by a Slice or Split and a Squeeze of that axis or not. */
static opt_value *read_place(opt_net *net, rotary *r, opt_value *v, int64_t *at, bool *dropped) {
  int64_t axis;
  opt_node *squeeze = opt_maker(v, "Squeeze");
  *dropped = squeeze != NULL;
  if (squeeze != NULL) {
    v = opt_in(squeeze, 0);
    if (!one(net, opt_in(squeeze, 1), &axis) || !is_last(axis, v)) return NULL;
    keep(r, squeeze);
  }
  opt_node *n = v != NULL ? v->maker : NULL;
  if (opt_is(n, "Gather")) {
    const opt_value *index = opt_in(n, 1), *x = opt_in(n, 0);
    if (!one(net, index, at) || x == NULL || !is_last(opt_get_int(n, "axis", 0), x) || *dropped) return NULL;
    *dropped = index->ndim == 0;
    keep(r, n);
    return opt_in(n, 0);
  }
  if (opt_is(n, "Split")) {
    if (n->n_outputs != 2 || opt_in(n, 0) == NULL || !is_last(opt_get_int(n, "axis", 0), opt_in(n, 0))) return NULL;
    *at = v->index;
    keep(r, n);
    return opt_in(n, 0);
  }
  cut c;
  if (!read_slice(net, v, &c) || c.from != NULL || c.to != NULL || c.step != 1 || c.start < 0 || c.start > 1 ||
      (c.end != c.start + 1 && !(c.start == 1 && c.end >= INT32_MAX)))
    return NULL;
  *at = c.start;
  keep(r, c.node);
  return c.x;
}

/* The parts of x as a Reshape cuts it, of [.., n] to [.., n / 2, 2]. dropped: they have lost the last axis. */
static bool by_reshape(opt_net *net, rotary *r, opt_value *p, opt_value *q, bool *dropped) {
  int64_t at[2];
  bool both[2];
  const opt_value *cut = read_place(net, r, p, &at[0], &both[0]);
  if (cut == NULL || read_place(net, r, q, &at[1], &both[1]) != cut || at[0] != 0 || at[1] != 1 || both[0] != both[1])
    return false;
  opt_node *n = opt_maker(cut, "Reshape");
  if (n == NULL || opt_in(n, 0) == NULL) return false;
  const opt_value *x = opt_in(n, 0);
  if (!x->known || !cut->known || x->ndim < 1 || cut->ndim != x->ndim + 1 || cut->shape[x->ndim] != 2 ||
      cut->shape[x->ndim - 1] * 2 != x->shape[x->ndim - 1])
    return false;
  for (uint32_t d = 0; d + 1 < x->ndim; d++)
    if (x->shape[d] != cut->shape[d]) return false;
  *dropped = both[0];
  r->x = opt_in(n, 0);
  r->pairs = true;
  r->half = cut->shape[x->ndim - 1];
  keep(r, n);
  return true;
}

/* Which parts p and q are. deep: they have a last axis of 1 still. */
static bool read_parts(opt_net *net, rotary *r, opt_value *p, opt_value *q, bool *deep) {
  bool dropped = true;
  const rotary before = *r;
  *deep = false;
  if (by_slices(net, r, p, q)) return true;
  *r = before;
  if (by_split(net, r, p, q)) return true;
  *r = before;
  if (by_reshape(net, r, p, q, &dropped)) {
    *deep = !dropped;
    return true;
  }
  *r = before;
  return false;
}

/* ---- joins */

static opt_value *unsqueezed(opt_net *net, rotary *r, opt_value *v) {
  int64_t axis;
  opt_node *n = opt_maker(v, "Unsqueeze");
  if (n == NULL || !one(net, opt_in(n, 1), &axis)) return NULL;
  if (!is_last(axis, v)) return NULL;
  keep(r, n);
  return opt_in(n, 0);
}

typedef struct join {
  opt_value *p, *q; /* with a last axis of 1 where deep */
  bool pairs, deep;
  const opt_value *out;
} join;

/* A join of two that n ends. */
static bool read_join(opt_net *net, rotary *r, opt_node *n, join *j) {
  opt_node *concat = n;
  *j = (join){.out = n != NULL ? &n->outputs[0] : NULL};
  if (opt_is(n, "Reshape")) {
    concat = opt_maker(opt_in(n, 0), "Concat");
    j->pairs = true;
    keep(r, n);
  }
  if (!opt_is(concat, "Concat") || concat->n_inputs != 2) return false;
  const int64_t axis = opt_get_int(concat, "axis", 0);
  if (!is_last(axis, &concat->outputs[0]) && !is_last(axis, opt_in(concat, 0)) && !is_last(axis, opt_in(concat, 1)))
    return false;
  keep(r, concat);
  j->p = opt_in(concat, 0);
  j->q = opt_in(concat, 1);
  if (!j->pairs) return true;
  const rotary before = *r;
  opt_value *p = unsqueezed(net, r, j->p), *q = unsqueezed(net, r, j->q);
  if (p != NULL && q != NULL) {
    j->p = p;
    j->q = q;
  } else {
    *r = before;
    j->deep = true;
  }
  return true;
}

/* Was x cut into parts as they are joined, and is the result of x's shape? */
static bool is_inverse(const rotary *r, const join *j, bool deep) {
  if (r->pairs != j->pairs || deep != j->deep) return false;
  return !j->pairs || opt_same_shape(r->x, j->out);
}

/* ---- the two forms */

/* What v is the negative of. */
static opt_value *negated(opt_net *net, rotary *r, opt_value *v) {
  double x;
  opt_node *n = v != NULL ? v->maker : NULL;
  if (opt_is(n, "Neg")) {
    keep(r, n);
    return opt_in(n, 0);
  }
  for (uint32_t k = 0; opt_is(n, "Mul") && k < 2; k++)
    if (opt_number(net, opt_in(n, 1 - k), &x) && x == -1 && opt_in(n, 1 - k)->ndim == 0) {
      keep(r, n);
      return opt_in(n, k);
    }
  return NULL;
}

/* join(-q, p) of x */
static bool read_turned(opt_net *net, rotary *r, const opt_value *v) {
  join j;
  bool deep;
  if (v == NULL || v->maker == NULL || !read_join(net, r, v->maker, &j)) return false;
  opt_value *q = negated(net, r, j.p);
  if (q == NULL && j.deep) return false;
  return q != NULL && read_parts(net, r, j.q, q, &deep) && is_inverse(r, &j, deep);
}

/* x * cos + join(-q, p) * sin */
static bool read_sum(opt_net *net, rotary *r, opt_node *n) {
  for (uint32_t k = 0; opt_is(n, "Add") && k < 4; k++) {
    opt_node *turned = opt_maker(opt_in(n, k / 2), "Mul"), *own = opt_maker(opt_in(n, 1 - k / 2), "Mul");
    *r = (rotary){.n_nodes = 0};
    if (turned == NULL || own == NULL || !read_turned(net, r, opt_in(turned, k % 2))) continue;
    r->sin = opt_in(turned, 1 - k % 2);
    r->cos = opt_in(own, 0) == r->x ? opt_in(own, 1) : opt_in(own, 1) == r->x ? opt_in(own, 0) : NULL;
    if (r->cos == NULL || r->sin == NULL) continue;
    keep(r, turned);
    keep(r, own);
    keep(r, n);
    return true;
  }
  return false;
}

/* a is p times something: that. */
static opt_value *beside(rotary *r, const opt_value *a, const opt_value *p) {
  opt_node *n = opt_maker(a, "Mul");
  if (n == NULL || (opt_in(n, 0) != p && opt_in(n, 1) != p)) return NULL;
  keep(r, n);
  return opt_in(n, 0) == p ? opt_in(n, 1) : opt_in(n, 0);
}

/* join(p * cos - q * sin, q * cos + p * sin) */
static bool read_joined(opt_net *net, rotary *r, opt_node *n) {
  join j;
  *r = (rotary){.n_nodes = 0};
  if (n == NULL || n->n_outputs != 1 || !read_join(net, r, n, &j)) return false;
  opt_node *sub = opt_maker(j.p, "Sub"), *add = opt_maker(j.q, "Add");
  opt_node *first = sub != NULL ? opt_maker(opt_in(sub, 0), "Mul") : NULL,
           *second = sub != NULL ? opt_maker(opt_in(sub, 1), "Mul") : NULL;
  if (add == NULL || first == NULL || second == NULL) return false;
  const rotary before = *r;
  for (uint32_t k = 0; k < 8; k++) { /* which of each product is the part, and the order of the sum */
    opt_value *p = opt_in(first, k % 2), *q = opt_in(second, k / 2 % 2);
    bool deep;
    *r = before;
    if (!read_parts(net, r, p, q, &deep) || !is_inverse(r, &j, deep)) continue;
    keep(r, first);
    keep(r, second);
    keep(r, sub);
    r->cos = opt_in(first, 1 - k % 2);
    r->sin = opt_in(second, 1 - k / 2 % 2);
    const opt_value *of_q = opt_in(add, k / 4), *of_p = opt_in(add, 1 - k / 4);
    if (r->cos == NULL || r->sin == NULL || beside(r, of_q, q) != r->cos || beside(r, of_p, p) != r->sin) continue;
    if (deep) continue; /* cosines have another axis then */
    keep(r, add);
    if (r->nodes[0] != n) return false;
    return true;
  }
  return false;
}

/* ---- the pass */

/* Nothing inside is read by others. last makes the result. */
static bool is_closed(const rotary *r, const opt_node *last) {
  for (uint32_t i = 0; i < r->n_nodes; i++) {
    if (!opt_same_home(r->nodes[i], last)) return false;
    for (uint32_t o = 0; r->nodes[i] != last && o < r->nodes[i]->n_outputs; o++) {
      const opt_value *v = &r->nodes[i]->outputs[o];
      uint32_t inside = 0;
      for (uint32_t k = 0; k < r->n_nodes; k++)
        for (uint32_t in = 0; in < r->nodes[k]->n_inputs; in++) inside += opt_in(r->nodes[k], in) == v;
      if (v->users != inside || v->pinned) return false;
    }
  }
  return r->n_nodes < MOST_PARTS;
}

/* The operator's angles: of one number, of a part or of all of a row, and no larger than x. */
static bool fits(const rotary *r, const opt_value *v) {
  if (!v->known || !r->x->known) return !v->known || v->ndim > 0;
  if (v->ndim < 1 || v->ndim > r->x->ndim) return false;
  const int64_t width = r->x->shape[r->x->ndim - 1], n = v->shape[v->ndim - 1];
  for (uint32_t d = 0; d + 1 < v->ndim; d++)
    if (v->shape[d] != 1 && v->shape[d] != r->x->shape[r->x->ndim - v->ndim + d]) return false;
  return n == 1 || n == width || 2 * n == width;
}

bool opt_pass_rotary(opt_net *net) {
  bool changed = false;
  for (uint32_t i = net->n_nodes; i-- > 0 && !net->failed;) {
    opt_node *n = &net->nodes[i];
    rotary r;
    if (!n->live || (!read_sum(net, &r, n) && !read_joined(net, &r, n))) continue;
    if (!is_closed(&r, n) || !fits(&r, r.cos) || !fits(&r, r.sin)) continue;
    opt_value *in[3] = {r.x, r.cos, r.sin};
    heddle_pattr attrs[2];
    uint32_t count = 0;
    if (r.half > 0) attrs[count++] = opt_attr_int(net, "half", r.half);
    if (r.pairs) attrs[count++] = opt_attr_int(net, "interleaved", 1);
    if (!opt_become(net, n, "heddle", "Rotary", in, 3, attrs, count)) continue;
    for (uint32_t k = 0; k < r.n_nodes; k++)
      if (r.nodes[k] != n) r.nodes[k]->live = false;
    opt_note(net, "rotary", (const opt_node *const *)r.nodes, r.n_nodes, "one Rotary, as '%s'", n->name);
    changed = true;
  }
  return changed;
}
