/* graph/optimize/grouped.c: attention whose keys and values are repeated for groups of heads, by Unsqueeze, Expand and Reshape:
 * it is computed in five dimensions, [batch, heads of keys, group, row, column], where a product repeats its operands by itself,
 * so that nothing is copied. All of it stays ordinary operators:
 *
 *   [B, H, S, D] x [B, K, T, D] repeated to [B, H, T, D]  ->  [B, K, H / K, S, D] x [B, K, 1, T, D]
 *
 * The operator Attention takes fewer heads of keys than of queries itself. */
#include "graph/optimize/net.h"

enum { RANK = 4, WIDE = 5, MOST_BETWEEN = 8 };

/* An element of a tensor that is a shape: a number, or what an operator computes of one element. */
typedef struct piece {
  int64_t n; /* where from is NULL */
  const opt_value *from;
} piece;

/* The elements of a list of integers; at most WIDE. */
static bool read_pieces(opt_net *net, const opt_value *v, piece *out, uint32_t *count, int depth) {
  int64_t numbers[HEDDLE__MAX_NDIM];
  uint32_t n;
  if (v == NULL || depth > 3) return false;
  if (opt_ints(net, v, numbers, &n)) {
    for (uint32_t i = 0; i < n; i++) {
      if (*count == WIDE) return false;
      out[(*count)++] = (piece){.n = numbers[i]};
    }
    return true;
  }
  const opt_node *made = v->maker;
  if (opt_is(made, "Where")) /* a shape whose -1 become 1, which leave a dimension as it is */
    return opt_maker(opt_in(made, 0), "Equal") != NULL && read_pieces(net, opt_in(made, 2), out, count, depth + 1);
  if (opt_is(made, "Concat")) {
    for (uint32_t k = 0; k < made->n_inputs; k++)
      if (!read_pieces(net, opt_in(made, k), out, count, depth + 1)) return false;
    return true;
  }
  const opt_value *index = opt_is(made, "Gather") ? opt_in(made, 1) : NULL;
  const int64_t begin = opt_is(made, "Shape") ? opt_get_int(made, "start", 0) : 0;
  const bool is_dim = opt_is(made, "Shape") && begin >= 0 && opt_get_int(made, "end", -1) == begin + 1;
  const bool is_one = is_dim          ? true
                      : index != NULL ? index->known && index->ndim == 1 && opt_elements(index) == 1
                                      : opt_is(made, "Unsqueeze") && opt_rank(opt_in(made, 0)) == 0;
  if (!is_one || *count == WIDE) return false;
  out[(*count)++] = (piece){.from = v};
  return true;
}

static bool same_piece(const piece *a, const piece *b) {
  return a->from == b->from && (a->from != NULL || a->n == b->n);
}

/* What dimension d of v is, by the Reshape that made it. */
static bool dim_of(opt_net *net, const opt_value *v, int64_t d, piece *out) {
  for (int up = 0; v != NULL && v->maker != NULL && up < MOST_BETWEEN; up++) {
    const opt_node *n = v->maker;
    uint64_t given;
    if (opt_is(n, "Reshape")) {
      piece all[WIDE];
      uint32_t count = 0;
      if (!read_pieces(net, opt_in(n, 1), all, &count, 0) || d >= (int64_t)count) return false;
      *out = all[d];
      return true;
    }
    if (opt_is(n, "Transpose")) {
      const int64_t *perm = opt_get_ints(n, "perm", &given);
      if (perm == NULL || d >= (int64_t)given) return false;
      d = perm[d];
    } else if (strcmp(n->domain, "heddle") != 0 && !opt_is(n, "Cast") && !opt_is(n, "Identity")) {
      return false;
    } else if (strcmp(n->domain, "heddle") == 0 && strcmp(n->op, "Rotary") != 0 &&
               strcmp(n->op, "RMSNormalization") != 0) {
      return false;
    }
    v = opt_in(n, 0);
  }
  return false;
}

/* Is the piece dimension d of x, by Shape and Gather? */
static bool is_dim_of(opt_net *net, const piece *p, const opt_value *x, int64_t d) {
  int64_t at;
  uint32_t count;
  const opt_node *n = p->from != NULL ? p->from->maker : NULL;
  if (opt_is(n, "Unsqueeze")) n = opt_in(n, 0)->maker;
  const opt_node *shape = opt_is(n, "Gather") ? opt_maker(opt_in(n, 0), "Shape") : NULL;
  return shape != NULL && shape->n_attrs == 0 && opt_in(shape, 0) == x && opt_ints(net, opt_in(n, 1), &at, &count) &&
         count == 1 && (at == d || at + RANK == d);
}

typedef struct repeat {
  opt_node *expand, *reshape;
  opt_value *four; /* [B, K, T, D]; NULL where what is repeated does not come from an Unsqueeze */
  opt_value *five; /* [B, K, 1, T, D] */
  int64_t kv, group, size;
} repeat;

/* Of known shapes. */
static bool is_known_repeat(repeat *r, const opt_value *out) {
  const opt_value *five = r->five, *wide = &r->expand->outputs[0];
  if (!five->known || !wide->known || !out->known) return false;
  if (five->ndim != WIDE || wide->ndim != WIDE || out->ndim != RANK || five->shape[2] != 1) return false;
  for (uint32_t d = 0; d < WIDE; d++)
    if (d != 2 && five->shape[d] != wide->shape[d]) return false;
  r->kv = five->shape[1];
  r->group = wide->shape[2];
  r->size = five->shape[4];
  return out->shape[0] == wide->shape[0] && out->shape[1] == r->kv * r->group && out->shape[2] == wide->shape[3] &&
         out->shape[3] == wide->shape[4];
}

/* By the numbers that the shapes have, where they are not known: the length is that of x. */
static bool is_open_repeat(opt_net *net, repeat *r, const opt_value *x) {
  piece wide[WIDE], out[WIDE];
  uint32_t n_wide = 0, n_out = 0;
  if (!read_pieces(net, opt_in(r->expand, 1), wide, &n_wide, 0) || n_wide != WIDE ||
      !read_pieces(net, opt_in(r->reshape, 1), out, &n_out, 0) || n_out != RANK)
    return false;
  for (uint32_t d = 1; d < WIDE; d++)
    if (d != 3 && (wide[d].from != NULL || wide[d].n < 1)) return false;
  r->kv = wide[1].n;
  r->group = wide[2].n;
  r->size = wide[4].n;
  piece length;
  const bool keeps_length = is_dim_of(net, &wide[3], x, 2) ||
                            (dim_of(net, x, 2, &length) && length.from != NULL && same_piece(&wide[3], &length)) ||
                            (wide[3].from == NULL && (wide[3].n == 1 || wide[3].n == -1));
  return keeps_length && same_piece(&wide[0], &out[0]) && out[1].from == NULL && out[1].n == r->kv * r->group &&
         same_piece(&wide[3], &out[2]) && same_piece(&wide[4], &out[3]);
}

static bool read_repeat(opt_net *net, const opt_value *v, repeat *r) {
  int64_t axis;
  uint32_t count;
  *r = (repeat){.reshape = opt_maker(v, "Reshape")};
  r->expand = r->reshape != NULL ? opt_maker(opt_in(r->reshape, 0), "Expand") : NULL;
  r->five = r->expand != NULL ? opt_in(r->expand, 0) : NULL;
  if (r->five == NULL || !opt_is_inner(v) || !opt_is_inner(&r->expand->outputs[0])) return false;
  const opt_node *lift = opt_maker(r->five, "Unsqueeze");
  const bool lifted = lift != NULL && opt_ints(net, opt_in(lift, 1), &axis, &count) && count == 1 &&
                      (axis == 2 || axis == 2 - WIDE) && opt_rank(opt_in(lift, 0)) == RANK;
  r->four = lifted ? opt_in(lift, 0) : NULL;
  if (!is_known_repeat(r, v) && !(lifted && is_open_repeat(net, r, opt_in(lift, 0)))) return false;
  return r->kv > 0 && r->group > 1 && r->size > 0;
}

/* ---- the attention around */

typedef struct grouped {
  repeat k, v;
  opt_node *turn, *first, *softmax, *second, *last; /* turn: of the keys; last: the Transpose of the result */
  opt_node *mask_add;                               /* NULL: no mask that needs another dimension */
  uint32_t mask_input;
} grouped;

static bool has_perm(const opt_node *n, const int64_t *perm) {
  uint64_t count;
  const int64_t *given = opt_is(n, "Transpose") ? opt_get_ints(n, "perm", &count) : NULL;
  return given != NULL && count == RANK && memcmp(given, perm, RANK * sizeof *perm) == 0;
}

static opt_node *user_of(opt_net *net, const opt_node *n) {
  return opt_only_user(net, &n->outputs[0]);
}

/* What scores meet on their way: a number, or one mask. The mask of known shape is one for all heads. */
static bool read_other(grouped *g, opt_node *n, uint32_t k) {
  const opt_value *v = opt_in(n, k);
  const uint32_t rank = v->known && opt_elements(v) == 1 ? 0 : opt_rank(v);
  if (v->known && opt_elements(v) == 1) return v->ndim <= RANK;
  if (!opt_is(n, "Add") || g->mask_add != NULL || rank == UINT32_MAX || rank > RANK) return false;
  if (rank < RANK) return v->known ? rank < RANK - 1 || v->shape[0] == 1 : rank < RANK - 1;
  if (v->known && v->shape[1] != 1) return false;
  if (v->known && v->shape[0] == 1) return true;
  g->mask_add = n;
  g->mask_input = k;
  return true;
}

/* From the first product to the Softmax: what works on each element. */
static bool read_between(opt_net *net, grouped *g) {
  opt_node *n = g->first;
  for (int step = 0; step < MOST_BETWEEN; step++) {
    const opt_value *on = &n->outputs[0];
    n = user_of(net, n);
    if (n == NULL || n->n_outputs != 1) return false;
    if (opt_is(n, "Softmax")) {
      const int64_t axis = opt_get_int(n, "axis", -1);
      g->softmax = n;
      return axis == -1 || axis == RANK - 1;
    }
    if (!opt_is(n, "Mul") && !opt_is(n, "Div") && !opt_is(n, "Add") && !opt_is(n, "Tanh")) return false;
    for (uint32_t k = 0; k < n->n_inputs; k++)
      if (opt_in(n, k) == NULL || (opt_in(n, k) != on && !read_other(g, n, k))) return false;
  }
  return false;
}

/* Does the Reshape behind the Transpose of the result join its last two dimensions, whatever it does with the others? */
static bool joins_heads(opt_net *net, const opt_node *n, int64_t width) {
  piece to[WIDE];
  uint32_t count = 0;
  if (n == NULL || !opt_is(n, "Reshape")) return false;
  const opt_value *out = &n->outputs[0];
  if (!read_pieces(net, opt_in(n, 1), to, &count, 0))
    return out->known && out->ndim > 0 && out->shape[out->ndim - 1] == width;
  for (uint32_t d = 2; d < count; d++)
    if (to[d].from == NULL && to[d].n == 0) return false; /* of a dimension that is another one now */
  return count >= 1 && count <= 3 && to[count - 1].from == NULL && (to[count - 1].n == -1 || to[count - 1].n == width);
}

static bool read_grouped(opt_net *net, opt_node *first, grouped *g) {
  static const int64_t turned[] = {0, 1, 3, 2}, swapped[] = {0, 2, 1, 3};
  *g = (grouped){.first = first, .turn = opt_maker(opt_in(first, 1), "Transpose")};
  if (g->turn == NULL || !has_perm(g->turn, turned) || !opt_is_inner(&g->turn->outputs[0]) ||
      opt_in(first, 0) == NULL || opt_rank(opt_in(first, 0)) != RANK || !read_repeat(net, opt_in(g->turn, 0), &g->k) ||
      !read_between(net, g))
    return false;
  const opt_value *weights = opt_guarded(net, g->softmax);
  g->second = opt_only_user(net, weights);
  if (!opt_is(g->second, "MatMul") || opt_in(g->second, 0) != weights ||
      !read_repeat(net, opt_in(g->second, 1), &g->v) || g->v.kv != g->k.kv || g->v.group != g->k.group)
    return false;
  g->last = user_of(net, g->second);
  if (g->last == NULL || !has_perm(g->last, swapped) ||
      !joins_heads(net, user_of(net, g->last), g->v.kv * g->v.group * g->v.size))
    return false;
  opt_node *const all[] = {g->k.expand, g->k.reshape, g->v.expand, g->v.reshape,
                           g->turn,     g->softmax,   g->second,   g->last};
  for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
    if (!opt_same_home(all[i], first)) return false;
  return true;
}

/* ---- the change */

static opt_value *integers(opt_net *net, const opt_node *n, const char *what, const int64_t *values, uint32_t count) {
  void *bytes;
  opt_value *made = opt_constant(net, opt_format(net, "%s:%s", n->name, what), (heddle_dtype){HEDDLE_DTYPE_INT, 64, 1},
                                 (const int64_t[]){count}, 1, &bytes);
  if (made != NULL) memcpy(bytes, values, count * sizeof *values);
  return made;
}

static bool turn(opt_net *net, opt_node *n, opt_value *x, const int64_t *perm) {
  const heddle_pattr attr = opt_attr_ints(net, "perm", perm, WIDE);
  n->outputs[0].known = false;
  return opt_become(net, n, "", "Transpose", &x, 1, &attr, 1);
}

/* A Reshape of the query, and an Unsqueeze of the mask where it needs one, before the nodes that read them. */
static bool insert(opt_net *net, grouped *g, opt_value **split, opt_value **lift) {
  opt_value *first = &g->first->outputs[0];
  *split = opt_insert(net, g->first, "groups");
  if (*split == NULL || !read_grouped(net, first->maker, g)) return false;
  *lift = g->mask_add != NULL ? opt_insert(net, g->mask_add, "mask") : NULL;
  return read_grouped(net, first->maker, g) && (*lift != NULL) == (g->mask_add != NULL);
}

static bool change(opt_net *net, grouped *g) {
  static const int64_t keys[] = {0, 1, 2, 4, 3}, result[] = {0, 3, 1, 2, 4}, two = 2;
  const int64_t shape[WIDE] = {0, g->k.kv, g->k.group, -1, g->k.size};
  opt_value *split, *lift;
  if (!insert(net, g, &split, &lift)) return false;
  opt_value *q = opt_in(g->first, 0), *mask = lift != NULL ? opt_in(g->mask_add, g->mask_input) : NULL;
  opt_value *to = integers(net, g->first, "shape", shape, WIDE), *scores = opt_in(g->softmax, 0);
  opt_value *axis = lift != NULL ? integers(net, g->first, "axis", &two, 1) : NULL;
  const heddle_pattr last_axis = opt_attr_int(net, "axis", -1);
  if (to == NULL || (lift != NULL && axis == NULL)) return false;
  bool good = opt_become(net, split->maker, "", "Reshape", (opt_value *const[]){q, to}, 2, NULL, 0) &&
              turn(net, g->turn, g->k.five, keys) &&
              opt_become(net, g->softmax, "", "Softmax", &scores, 1, &last_axis, 1) &&
              turn(net, g->last, opt_in(g->last, 0), result);
  if (good && lift != NULL)
    good = opt_become(net, lift->maker, "", "Unsqueeze", (opt_value *const[]){mask, axis}, 2, NULL, 0);
  if (!good) return false;
  opt_set_input(g->first, 0, split);
  opt_set_input(g->second, 1, g->v.five);
  if (lift != NULL) opt_set_input(g->mask_add, g->mask_input, lift);
  const opt_node *const nodes[] = {g->k.expand, g->k.reshape, g->v.expand, g->v.reshape, g->first, g->second};
  opt_note(net, "grouped", nodes, sizeof nodes / sizeof nodes[0],
           "keys and values of %lld heads are read where they lie, each by %lld heads", (long long)g->k.kv,
           (long long)g->k.group);
  return true;
}

/* The operator Attention of four dimensions, which keeps no keys and values. */
static bool change_operator(opt_net *net, opt_node *n) {
  repeat k, v;
  if (!opt_is(n, "Attention") || opt_in(n, 0) == NULL || opt_rank(opt_in(n, 0)) != RANK) return false;
  for (uint32_t i = 4; i < n->n_inputs; i++)
    if (opt_in(n, i) != NULL) return false;
  for (uint32_t o = 1; o < n->n_outputs; o++)
    if (n->outputs[o].users > 0 || n->outputs[o].pinned) return false;
  if (opt_in(n, 1) == NULL || opt_in(n, 2) == NULL || !read_repeat(net, opt_in(n, 1), &k) ||
      !read_repeat(net, opt_in(n, 2), &v) || k.kv != v.kv || k.group != v.group || k.four == NULL || v.four == NULL)
    return false;
  const opt_node *const nodes[] = {k.expand, k.reshape, v.expand, v.reshape, n};
  for (size_t i = 0; i < 4; i++)
    if (!opt_same_home(nodes[i], n)) return false;
  opt_set_input(n, 1, k.four);
  opt_set_input(n, 2, v.four);
  opt_note(net, "grouped", nodes, sizeof nodes / sizeof nodes[0],
           "keys and values of %lld heads are read where they lie, each by %lld heads", (long long)k.kv,
           (long long)k.group);
  return true;
}

bool opt_pass_grouped(opt_net *net) {
  bool changed = false;
  for (uint32_t i = 0; i < net->n_nodes && !net->failed; i++) {
    opt_node *n = &net->nodes[i];
    grouped g;
    if (n->live && change_operator(net, n)) {
      changed = true;
      opt_count(net);
      continue;
    }
    if (!n->live || !opt_is(n, "MatMul") || !read_grouped(net, n, &g)) continue;
    if (!change(net, &g)) {
      net->failed = true; /* of memory: what it reads was seen to be there */
      break;
    }
    changed = true;
    opt_count(net);
    opt_types(net);
  }
  return changed;
}
