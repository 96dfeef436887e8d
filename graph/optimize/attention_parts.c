/* graph/optimize/attention_parts.c: the operator Attention of float32 in its plain cases, as MatMul, Mul, Add, Softmax and MatMul, for
 * which devices have fast kernels: four dimensions, no softcap, no windows, no caches, and only the first result. A query
 * that no key is left for gives zeros, as the operator does: by the greatest number of its row of the mask. A causal mask is a
 * constant where the lengths are known, and then each query has the first key. */
#include <math.h>

#include "graph/optimize/net.h"

enum { RANK = 4, MOST_CAUSAL = 1 << 20 }; /* numbers of a causal mask */

typedef struct parts {
  opt_net *net;
  opt_value *y; /* of the node, before which new ones are inserted */
  bool failed;
} parts;

/* A new node of the operator before Attention; its result. */
static opt_value *make(parts *p, const char *what, const char *op, opt_value *const *in, uint32_t n,
                       const heddle_pattr *attrs, uint32_t n_attrs) {
  for (uint32_t i = 0; i < n; i++) p->failed = p->failed || in[i] == NULL;
  opt_value *made = p->failed ? NULL : opt_insert(p->net, p->y->maker, what);
  p->failed = made == NULL || !opt_become(p->net, made->maker, "", op, in, n, attrs, n_attrs);
  return p->failed ? NULL : made;
}

static opt_value *two(parts *p, const char *what, const char *op, opt_value *a, opt_value *b) {
  return make(p, what, op, (opt_value *const[]){a, b}, 2, NULL, 0);
}

static opt_value *number(parts *p, const char *what, float x) {
  void *bytes;
  opt_value *made = opt_constant(p->net, opt_format(p->net, "%s:%s", p->y->maker->name, what),
                                 (heddle_dtype){HEDDLE_DTYPE_FLOAT, 32, 1}, NULL, 0, &bytes);
  if (made != NULL) memcpy(bytes, &x, sizeof x);
  return made;
}

static opt_value *last_axis(parts *p) {
  void *bytes;
  const int64_t axis = -1, one = 1;
  opt_value *made = opt_constant(p->net, opt_format(p->net, "%s:axis", p->y->maker->name),
                                 (heddle_dtype){HEDDLE_DTYPE_INT, 64, 1}, &one, 1, &bytes);
  if (made != NULL) memcpy(bytes, &axis, sizeof axis);
  return made;
}

/* [S, T]: 0 for a query's own key and those before it, else the least number. */
static opt_value *causal(parts *p, int64_t rows, int64_t columns) {
  void *bytes;
  opt_value *made =
      opt_constant(p->net, opt_format(p->net, "%s:causal", p->y->maker->name),
                   (heddle_dtype){HEDDLE_DTYPE_FLOAT, 32, 1}, (const int64_t[]){rows, columns}, 2, &bytes);
  for (int64_t i = 0; made != NULL && i < rows * columns; i++)
    ((float *)bytes)[i] = i % columns > i / columns ? -INFINITY : 0;
  return made;
}

/* The node becomes the operator that gives the result. */
static void give(parts *p, const char *op, opt_value *const *in, uint32_t n) {
  for (uint32_t i = 0; i < n; i++) p->failed = p->failed || in[i] == NULL;
  if (p->failed) return;
  p->y->maker->n_outputs = 1;
  p->failed = !opt_become(p->net, p->y->maker, "", op, in, n, NULL, 0);
}

/* What is of each query where a key is left for it, by the mask, else 0. */
static void give_or_zero(parts *p, opt_value *mask, opt_value *of) {
  const heddle_pattr keep = opt_attr_int(p->net, "keepdims", 1);
  opt_value *axis = last_axis(p);
  opt_value *most = make(p, "most", "ReduceMax", (opt_value *const[]){mask, axis}, 2, &keep, 1);
  opt_value *none = two(p, "none", "Equal", most, number(p, "least", -INFINITY));
  give(p, "Where", (opt_value *const[]){none, number(p, "zero", 0), of}, 3);
}

static bool is_type(const opt_value *v, uint8_t code, uint8_t bits) {
  heddle_dtype t;
  return opt_dtype(v, &t) && t.code == code && t.bits == bits && t.lanes == 1;
}

static bool is_plain(const opt_node *n) {
  const opt_value *q = opt_in(n, 0), *k = opt_in(n, 1), *v = opt_in(n, 2), *mask = opt_in(n, 3);
  for (uint32_t o = 1; o < n->n_outputs; o++)
    if (n->outputs[o].users > 0 || n->outputs[o].pinned) return false;
  for (uint32_t i = 4; i < n->n_inputs; i++)
    if (opt_in(n, i) != NULL) return false;
  if (n->n_outputs < 1 || opt_rank(q) != RANK || opt_rank(k) != RANK || opt_rank(v) != RANK) return false;
  if (!is_type(q, HEDDLE_DTYPE_FLOAT, 32) || !is_type(k, HEDDLE_DTYPE_FLOAT, 32) ||
      !is_type(v, HEDDLE_DTYPE_FLOAT, 32) || opt_get_float(n, "softcap", 0) != 0 ||
      opt_get_int(n, "left_window_size", -1) >= 0 || opt_get_int(n, "right_window_size", -1) >= 0 ||
      opt_get_int(n, "softmax_precision", 1) != 1)
    return false;
  if (opt_attr(n, "scale") == NULL && !q->known) return false;
  if (q->known && k->known && (q->shape[1] != k->shape[1] || q->shape[3] < 1)) return false; /* groups of heads */
  if (opt_get_int(n, "is_causal", 0) != 0)
    return mask == NULL && q->known && k->known && q->shape[2] > 0 && k->shape[2] > 0 &&
           q->shape[2] <= MOST_CAUSAL / k->shape[2];
  if (mask == NULL) return true;
  if (!is_type(mask, HEDDLE_DTYPE_FLOAT, 32) && !is_type(mask, HEDDLE_DTYPE_BOOL, 8)) return false;
  if (mask->known && k->known &&
      (mask->ndim < 1 || (mask->shape[mask->ndim - 1] != k->shape[2] && mask->shape[mask->ndim - 1] != 1)))
    return false; /* a shorter one */
  return opt_rank(mask) <= RANK;
}

static bool take_apart(opt_net *net, opt_node *n) {
  static const int64_t turned[] = {0, 1, 3, 2};
  parts p = {.net = net, .y = &n->outputs[0]};
  opt_value *q = opt_in(n, 0), *k = opt_in(n, 1), *v = opt_in(n, 2), *mask = opt_in(n, 3);
  const double scale =
      opt_attr(n, "scale") != NULL ? opt_get_float(n, "scale", 1) : 1 / sqrt((double)q->shape[RANK - 1]);
  const heddle_pattr perm = opt_attr_ints(net, "perm", turned, RANK), last = opt_attr_int(net, "axis", -1);
  const bool is_causal = opt_get_int(n, "is_causal", 0) != 0;
  const int64_t rows = is_causal ? q->shape[2] : 0, columns = is_causal ? k->shape[2] : 0;
  const bool is_bool = mask != NULL && is_type(mask, HEDDLE_DTYPE_BOOL, 8);
  opt_note(net, "attention", (const opt_node *const[]){n}, 1, "Attention in its parts, as '%s'", n->name);
  k = make(&p, "turned", "Transpose", &k, 1, &perm, 1);
  opt_value *x = two(&p, "product", "MatMul", q, k);
  x = two(&p, "scaled", "Mul", x, number(&p, "scale", (float)scale));
  if (is_bool)
    mask = make(&p, "bias", "Where", (opt_value *const[]){mask, number(&p, "all", 0), number(&p, "nothing", -INFINITY)},
                3, NULL, 0);
  if (mask != NULL || is_causal) x = two(&p, "masked", "Add", x, is_causal ? causal(&p, rows, columns) : mask);
  x = make(&p, "weights", "Softmax", &x, 1, &last, 1);
  if (mask == NULL) give(&p, "MatMul", (opt_value *const[]){x, v}, 2);
  else give_or_zero(&p, mask, two(&p, "values", "MatMul", x, v));
  net->failed = net->failed || p.failed;
  return !p.failed;
}

bool opt_take_attention_apart(opt_net *net) {
  bool changed = false;
  for (uint32_t i = 0; i < net->n_nodes && !net->failed; i++) {
    opt_node *n = &net->nodes[i];
    if (!n->live || !opt_is(n, "Attention") || !is_plain(n) || !take_apart(net, n)) continue;
    changed = true;
    opt_count(net);
    opt_types(net);
  }
  return changed;
}
