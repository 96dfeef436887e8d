/* graph/optimize/transposes.c: two Transposes in a row become one; and a Transpose behind elementwise operators is taken
 * through them, where it meets its inverse, or constants, on every way up, so that none is left. */
#include "graph/optimize/net.h"

enum { MOST_NODES = 32 };

typedef int64_t order[HEDDLE__MAX_NDIM];

/* perm of a Transpose whose rank is known from it or from its input. */
static bool read_perm(const opt_node *n, order out, uint32_t *rank) {
  uint64_t count;
  const int64_t *perm = opt_get_ints(n, "perm", &count);
  const opt_value *x = opt_in(n, 0);
  uint32_t seen = 0;
  if (perm == NULL && !x->known) return false;
  *rank = perm != NULL ? (uint32_t)count : x->ndim;
  if (*rank > HEDDLE__MAX_NDIM || *rank == 0) return false;
  for (uint32_t d = 0; d < *rank; d++) {
    out[d] = perm != NULL ? perm[d] : (int64_t)(*rank - 1 - d);
    if (out[d] < 0 || out[d] >= (int64_t)*rank || (seen >> out[d] & 1) != 0) return false;
    seen |= 1u << out[d];
  }
  return true;
}

/* ---- a row of two */

static bool join(opt_net *net, opt_node *n) {
  opt_node *before = opt_maker(opt_in(n, 0), "Transpose");
  order first, second, both;
  uint32_t rank, same;
  if (before == NULL || !opt_same_home(n, before) || !read_perm(before, first, &rank) || !read_perm(n, second, &same) ||
      rank != same)
    return false;
  for (uint32_t d = 0; d < rank; d++) both[d] = first[second[d]];
  const heddle_pattr perm = opt_attr_ints(net, "perm", both, rank);
  opt_value *x = opt_in(before, 0);
  if (!opt_become(net, n, "", "Transpose", &x, 1, &perm, 1)) return false;
  opt_note(net, "transposes", (const opt_node *const[]){before, n}, 2, "one Transpose, as '%s'", n->name);
  return true;
}

/* ---- through elementwise operators */

typedef struct way {
  opt_net *net;
  const int64_t *perm;
  uint32_t rank;
  const opt_node *root;
  opt_node *nodes[MOST_NODES]; /* those that it goes through, the last first */
  uint32_t n_nodes;
  const opt_node *met; /* one of the Transposes that go away */
} way;

static bool is_inverse(const way *w, const opt_node *n) {
  order perm;
  uint32_t rank;
  if (!read_perm(n, perm, &rank) || rank != w->rank) return false;
  for (uint32_t d = 0; d < rank; d++)
    if (perm[w->perm[d]] != (int64_t)d) return false;
  return true;
}

/* A value that is the same in whatever order: of one element, and of no more dimensions than the others. */
static bool has_no_order(const way *w, const opt_value *v) {
  if (!v->known || v->ndim > w->rank) return false;
  for (uint32_t d = 0; d < v->ndim; d++)
    if (v->shape[d] != 1) return false;
  return true;
}

static bool is_small_constant(const way *w, const opt_value *v) {
  return v->constant != NULL && v->known && v->ndim <= w->rank && v->bytes <= 1 << 20 && v->dtype.bits % 8 == 0 &&
         v->dtype.lanes == 1;
}

/* Whether v in the other order costs nothing. *full: it has all of the dimensions, since a Transpose made it, or an
 * operator of one that has. So shapes need not be known. */
static bool is_free(way *w, opt_value *v, bool *full) {
  if (v == NULL || has_no_order(w, v) || is_small_constant(w, v)) return true;
  opt_node *n = v->maker;
  *full = true;
  if (n == NULL) return false;
  if (opt_is(n, "Transpose") && opt_same_home(n, w->root) && is_inverse(w, n)) {
    w->met = n;
    return true;
  }
  if (!opt_is_elementwise(n) || !opt_is_inner(v) || !opt_same_home(n, w->root) || w->n_nodes == MOST_NODES)
    return false;
  w->nodes[w->n_nodes++] = n;
  bool any = false;
  for (uint32_t k = 0; k < n->n_inputs; k++)
    if (!is_free(w, opt_in(n, k), &any)) return false;
  return any;
}

/* A constant in the other order; where it has fewer dimensions, 1s stand before them. */
static opt_value *reordered(way *w, const opt_value *v) {
  int64_t from_shape[HEDDLE__MAX_NDIM], shape[HEDDLE__MAX_NDIM], step[HEDDLE__MAX_NDIM];
  int64_t place[HEDDLE__MAX_NDIM] = {0}, stride = 1;
  const uint32_t before = w->rank - v->ndim;
  const size_t each = v->dtype.bits / 8;
  void *bytes;
  for (uint32_t d = w->rank; d-- > 0;) {
    from_shape[d] = d < before ? 1 : v->shape[d - before];
    step[d] = stride;
    stride *= from_shape[d];
  }
  for (uint32_t d = 0; d < w->rank; d++) shape[d] = from_shape[w->perm[d]];
  const char *from = opt_bytes(w->net, v);
  opt_value *made =
      opt_constant(w->net, opt_format(w->net, "%s:transposed", v->name), v->dtype, shape, w->rank, &bytes);
  if (made == NULL) return NULL;
  char *to = bytes;
  for (uint64_t i = 0, n = v->bytes / each; i < n; i++, to += each) {
    int64_t at = 0;
    for (uint32_t d = 0; d < w->rank; d++) at += place[d] * step[w->perm[d]];
    memcpy(to, from + (size_t)at * each, each);
    for (uint32_t d = w->rank; d-- > 0 && ++place[d] == shape[d];) place[d] = 0;
  }
  return made;
}

/* The inputs of a node that was gone through. */
static bool turn(way *w, opt_node *n) {
  for (uint32_t k = 0; k < n->n_inputs; k++) {
    opt_value *v = opt_in(n, k), *other = v;
    if (v == NULL || has_no_order(w, v)) continue;
    if (v->maker == NULL) other = reordered(w, v);
    else if (opt_is(v->maker, "Transpose")) other = opt_in(v->maker, 0);
    if (other == NULL) return false;
    opt_set_input(n, k, other);
  }
  return true;
}

/* The last operator moves into the Transpose, whose name and users it takes over; the others stay where they are. */
static bool pull(opt_net *net, opt_node *n) {
  order perm;
  way w = {.net = net, .perm = perm, .root = n};
  opt_value *x = opt_in(n, 0);
  bool full = false;
  if (!opt_is_elementwise(x->maker) || !read_perm(n, perm, &w.rank) || !is_free(&w, x, &full)) return false;
  if (w.n_nodes == 0 || w.met == NULL) return false;
  for (uint32_t i = 0; i < w.n_nodes; i++)
    if (!turn(&w, w.nodes[i])) return false;
  opt_node *last = w.nodes[0];
  opt_value **inputs = opt_alloc(net, last->n_inputs, sizeof(opt_value *));
  for (uint32_t k = 0; inputs != NULL && k < last->n_inputs; k++) inputs[k] = opt_in(last, k);
  if (inputs == NULL || !opt_become(net, n, last->domain, last->op, inputs, last->n_inputs, last->attrs, last->n_attrs))
    return false;
  last->live = false;
  opt_note(net, "transposes", (const opt_node *const[]){w.met, n}, 2, "taken away through %u elementwise nodes",
           (unsigned)w.n_nodes);
  return true;
}

bool opt_pass_transposes(opt_net *net) {
  bool changed = false;
  for (uint32_t i = 0; i < net->n_nodes && !net->failed; i++) {
    opt_node *n = &net->nodes[i];
    if (!n->live || !opt_is(n, "Transpose") || opt_in(n, 0) == NULL) continue;
    changed = join(net, n) || pull(net, n) || changed;
  }
  return changed;
}
