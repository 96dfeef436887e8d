/* graph/optimize/layer_norm.c: RMSNormalization from its parts, and LayerNormalization: the mean taken off, divided by the root of the mean square
 * and epsilon, times a scale, plus a bias. The operator is of opset 17: an older graph is raised to that where all of its
 * operators mean the same there. */
#include <math.h>

#include "graph/optimize/net.h"

typedef struct parts {
  opt_node *nodes[10];
  uint32_t n_nodes;
  opt_value *x, *scale, *bias;
  double epsilon;
  uint32_t n_axes;
} parts;

static void keep(parts *p, opt_node *n) {
  p->nodes[p->n_nodes++] = n;
}

/* The last n axes, each once, in any order. With the rank not known, only the last axis alone can be recognised. */
static bool read_axes(opt_net *net, const opt_node *n, const opt_value *x, uint32_t *count) {
  int64_t axes[HEDDLE__MAX_NDIM];
  uint64_t given;
  uint32_t seen = 0;
  const int64_t *list = opt_get_ints(n, "axes", &given);
  if (list != NULL && given <= HEDDLE__MAX_NDIM) {
    memcpy(axes, list, (size_t)given * sizeof *axes);
    *count = (uint32_t)given;
  } else if (!opt_ints(net, opt_in(n, 1), axes, count)) {
    return false;
  }
  if (*count == 1 && axes[0] == -1) return true;
  if (!x->known || *count == 0 || *count > x->ndim) return false;
  for (uint32_t i = 0; i < *count; i++) {
    int64_t axis = axes[i] < 0 ? axes[i] + x->ndim : axes[i];
    if (axis < (int64_t)(x->ndim - *count) || axis >= (int64_t)x->ndim || (seen >> axis & 1) != 0) return false;
    seen |= 1u << axis;
  }
  return true;
}

/* The ReduceMean that makes v, over the last axes. */
static opt_node *mean_of(opt_net *net, const opt_value *v, uint32_t *axes) {
  opt_node *n = opt_maker(v, "ReduceMean");
  if (n == NULL || opt_get_int(n, "keepdims", 1) != 1 || opt_get_int(n, "noop_with_empty_axes", 0) != 0) return NULL;
  const opt_value *x = opt_in(n, 0);
  return x != NULL && read_axes(net, n, x, axes) ? n : NULL;
}

static bool is_square(opt_net *net, opt_node *n, const opt_value *of) {
  double two;
  if (opt_is(n, "Mul")) return opt_in(n, 0) == of && opt_in(n, 1) == of;
  return opt_is(n, "Pow") && opt_in(n, 0) == of && opt_number(net, opt_in(n, 1), &two) && two == 2;
}

/* x - mean(x) */
static bool read_centred(opt_net *net, parts *p, const opt_value *v) {
  opt_node *sub = opt_maker(v, "Sub");
  opt_node *mean = sub != NULL ? mean_of(net, opt_in(sub, 1), &p->n_axes) : NULL;
  if (mean == NULL || opt_in(mean, 0) != opt_in(sub, 0)) return false;
  p->x = opt_in(sub, 0);
  keep(p, mean);
  keep(p, sub);
  return true;
}

/* Sqrt(mean(centred * centred) + epsilon) */
static bool read_deviation(opt_net *net, parts *p, opt_node *root, const opt_value *centred) {
  opt_node *add = opt_maker(opt_in(root, 0), "Add");
  uint32_t axes;
  for (uint32_t k = 0; add != NULL && k < 2; k++) {
    opt_node *mean = mean_of(net, opt_in(add, k), &axes);
    opt_node *square = mean != NULL && opt_in(mean, 0) != NULL ? opt_in(mean, 0)->maker : NULL;
    if (mean != NULL && p->n_axes == 0) p->n_axes = axes; /* nothing was centred */
    if (square == NULL || axes != p->n_axes || !is_square(net, square, centred) ||
        !opt_number(net, opt_in(add, 1 - k), &p->epsilon))
      continue;
    keep(p, square);
    keep(p, mean);
    keep(p, add);
    keep(p, root);
    return true;
  }
  return false;
}

/* centred / deviation, or centred * (1 / deviation) */
static bool read_normal(opt_net *net, parts *p, opt_node *n) {
  double one;
  const bool div = opt_is(n, "Div");
  for (uint32_t k = 0; (div || opt_is(n, "Mul")) && k < (div ? 1u : 2u); k++) {
    opt_value *centred = opt_in(n, k), *by = opt_in(n, 1 - k);
    opt_node *inverse = div ? NULL : opt_maker(by, "Div");
    if (inverse != NULL && !(opt_number(net, opt_in(inverse, 0), &one) && one == 1)) continue;
    if (!div && inverse == NULL) continue;
    opt_node *root = opt_maker(inverse != NULL ? opt_in(inverse, 1) : by, "Sqrt");
    p->n_nodes = 0;
    if (root == NULL || !read_centred(net, p, centred) || !read_deviation(net, p, root, centred)) continue;
    if (inverse != NULL) keep(p, inverse);
    keep(p, n);
    return true;
  }
  return false;
}

/* A scale or a bias has the shape of what is normalised; of a value whose shape is not known, one dimension is taken for
 * that of the last axis, which planning checks. */
static bool is_vector(const parts *p, const opt_value *v) {
  if (v == NULL || !v->known || v->ndim != p->n_axes) return false;
  if (!p->x->known) return v->constant != NULL && v->shape[0] > 1;
  for (uint32_t d = 0; d < v->ndim; d++)
    if (v->shape[d] != p->x->shape[p->x->ndim - v->ndim + d]) return false;
  return true;
}

typedef bool (*reader)(opt_net *net, parts *p, opt_node *n);

/* What inner reads, and a vector beside it, by an operator in either order: the vector, or NULL. */
static opt_value *read_with_vector(opt_net *net, parts *p, opt_node *n, const char *op, reader inner) {
  for (uint32_t k = 0; opt_is(n, op) && k < 2; k++) {
    opt_value *v = opt_in(n, k), *vector = opt_in(n, 1 - k);
    if (v == NULL || v->maker == NULL || !inner(net, p, v->maker) || !is_vector(p, vector)) continue;
    keep(p, n);
    return vector;
  }
  return NULL;
}

static bool read_scaled(opt_net *net, parts *p, opt_node *n) {
  opt_value *scale = read_with_vector(net, p, n, "Mul", read_normal);
  if (scale != NULL) p->scale = scale;
  return scale != NULL;
}

static bool read_biased(opt_net *net, parts *p, opt_node *n) {
  opt_value *bias = read_with_vector(net, p, n, "Add", read_scaled);
  if (bias != NULL) p->bias = bias;
  return bias != NULL;
}

/* Nothing inside is read by others, and all of it goes to one place. */
static bool is_closed(const parts *p) {
  for (uint32_t i = 0; i + 1 < p->n_nodes; i++) {
    const opt_value *v = &p->nodes[i]->outputs[0];
    uint32_t inside = 0;
    for (uint32_t k = 0; k < p->n_nodes; k++)
      for (uint32_t j = 0; j < p->nodes[k]->n_inputs; j++) inside += opt_in(p->nodes[k], j) == v;
    if (v->users != inside || v->pinned || !opt_same_home(p->nodes[i], p->nodes[p->n_nodes - 1])) return false;
  }
  return true;
}

static opt_value *ones(opt_net *net, const parts *p, const char *name) {
  void *bytes;
  if (!opt_is_float32(p->x)) return NULL;
  opt_value *made = opt_constant(net, opt_format(net, "%s:scale", name), p->x->dtype,
                                 p->x->shape + p->x->ndim - p->n_axes, p->n_axes, &bytes);
  for (uint64_t i = 0; made != NULL && i < opt_elements(made); i++) ((float *)bytes)[i] = 1;
  return made;
}

static bool become(opt_net *net, parts *p) {
  opt_node *n = p->nodes[p->n_nodes - 1];
  if (!is_closed(p) || !(p->epsilon > 0) || !opt_raise_for(net, "LayerNormalization")) return false;
  opt_value *in[3] = {p->x, p->scale != NULL ? p->scale : ones(net, p, n->name), p->bias};
  if (in[1] == NULL) return false;
  const heddle_pattr attrs[2] = {opt_attr_int(net, "axis", -(int64_t)p->n_axes),
                                 opt_attr_float(net, "epsilon", p->epsilon)};
  if (!opt_become(net, n, "", "LayerNormalization", in, p->bias != NULL ? 3 : 2, attrs, 2)) return false;
  for (uint32_t i = 0; i + 1 < p->n_nodes; i++) p->nodes[i]->live = false;
  opt_note(net, "layer_norm", (const opt_node *const *)p->nodes, p->n_nodes, "one LayerNormalization, as '%s'",
           n->name);
  return true;
}

bool opt_pass_layer_norm(opt_net *net) {
  bool changed = false;
  for (uint32_t i = net->n_nodes; i-- > 0 && !net->failed;) { /* from the end, so that scale and bias are there */
    opt_node *n = &net->nodes[i];
    if (!n->live) continue;
    for (int form = 0; form < 3 && !net->failed; form++) {
      parts p = {.n_nodes = 0};
      bool is = form == 0 ? read_biased(net, &p, n) : form == 1 ? read_scaled(net, &p, n) : read_normal(net, &p, n);
      if (!is || !become(net, &p)) continue;
      changed = true;
      break;
    }
  }
  return changed;
}

/* ---- RMSNormalization: x / root, or x * (1 / root), of the root of the mean square of x and epsilon, times a scale. It becomes
 * that of domain "heddle", which has no opset. */

/* The node that v is 1 / root of: of Sqrt, or of what is raised to -0.5. */
static opt_node *inverse_root(opt_net *net, parts *p, const opt_value *v) {
  double x;
  opt_node *n = v != NULL ? v->maker : NULL;
  if (opt_is(n, "Pow") && opt_number(net, opt_in(n, 1), &x) && x == -0.5) return n;
  opt_node *root = NULL;
  if (opt_is(n, "Reciprocal")) root = opt_maker(opt_in(n, 0), "Sqrt");
  else if (opt_is(n, "Div") && opt_number(net, opt_in(n, 0), &x) && x == 1) root = opt_maker(opt_in(n, 1), "Sqrt");
  if (root != NULL) keep(p, n);
  return root;
}

static bool read_rms(opt_net *net, parts *p, opt_node *n) {
  const bool div = opt_is(n, "Div");
  for (uint32_t k = 0; (div || opt_is(n, "Mul")) && k < (div ? 1u : 2u); k++) {
    *p = (parts){.x = opt_in(n, k)};
    opt_node *root = div ? opt_maker(opt_in(n, 1), "Sqrt") : inverse_root(net, p, opt_in(n, 1 - k));
    if (root == NULL || p->x == NULL || !read_deviation(net, p, root, p->x)) continue;
    keep(p, n);
    return true;
  }
  return false;
}

bool opt_pass_rms_norm(opt_net *net) {
  bool changed = false;
  for (uint32_t i = net->n_nodes; i-- > 0 && !net->failed;) {
    opt_node *n = &net->nodes[i];
    parts p;
    if (!n->live) continue;
    opt_value *scale = read_with_vector(net, &p, n, "Mul", read_rms);
    if (scale == NULL || !is_closed(&p) || !(p.epsilon > 0)) continue;
    opt_value *in[2] = {p.x, scale};
    const heddle_pattr attrs[2] = {opt_attr_int(net, "axis", -(int64_t)p.n_axes),
                                   opt_attr_float(net, "epsilon", p.epsilon)};
    if (!opt_become(net, n, "heddle", "RMSNormalization", in, 2, attrs, 2)) continue;
    for (uint32_t k = 0; k + 1 < p.n_nodes; k++) p.nodes[k]->live = false;
    opt_note(net, "rms_norm", (const opt_node *const *)p.nodes, p.n_nodes, "one RMSNormalization, as '%s'", n->name);
    changed = true;
  }
  return changed;
}
