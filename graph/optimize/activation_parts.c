/* graph/optimize/activation_parts.c: the nodes between a value and a result, and their result for a number. */
#include <math.h>

#include "graph/optimize/activation.h"

/* ---- which nodes are between a value and a result */

bool opt_is_part(const opt_node *n) {
  static const char *const names[] = {"Add",  "Sub",         "Mul",  "Div", "Pow", "Erf",     "Tanh",
                                      "Clip", "HardSigmoid", "Relu", "Min", "Max", "Sigmoid", "Softplus"};
  for (size_t i = 0; n != NULL && i < sizeof names / sizeof names[0]; i++)
    if (opt_is(n, names[i])) return n->n_outputs == 1 && n->n_inputs >= 1 && n->n_inputs <= 3;
  return false;
}

/* One number that does not widen what it meets, which has as many dimensions or more. */
static bool is_number(const opt_cone *c, const opt_value *v) {
  return v->constant != NULL && v->known && opt_elements(v) == 1 && (!c->x->known || v->ndim <= c->x->ndim) &&
         (c->x->known || v->ndim == 0);
}

static uint32_t place_of(const opt_cone *c, const opt_node *n) {
  uint32_t i = 0;
  while (i < c->n_nodes && c->nodes[i] != n) i++;
  return i;
}

bool opt_cone_grow(opt_cone *c, opt_node *n, const opt_node *root) {
  if (!opt_is_part(n) || c->n_nodes == OPT_CONE_NODES || !opt_same_home(n, root)) return false;
  if (place_of(c, n) < c->n_nodes) return true;
  c->nodes[c->n_nodes++] = n;
  for (uint32_t k = 0; k < n->n_inputs; k++) {
    opt_value *v = opt_in(n, k);
    if (v == NULL || v == c->x || is_number(c, v)) continue;
    if (v->maker == NULL || v->pinned || !opt_cone_grow(c, v->maker, root)) return false;
  }
  return true;
}

bool opt_cone_closed(const opt_cone *c) {
  for (uint32_t i = 1; i < c->n_nodes; i++) {
    uint32_t inside = 0;
    const opt_value *v = &c->nodes[i]->outputs[0];
    for (uint32_t k = 0; k < c->n_nodes; k++)
      for (uint32_t j = 0; j < c->nodes[k]->n_inputs; j++) inside += opt_in(c->nodes[k], j) == v;
    if (v->users != inside) return false;
  }
  return true;
}

/* ---- what it computes */

static bool evaluate(opt_cone *c, const opt_node *n, double x, double *out, uint32_t depth);

static bool operand(opt_cone *c, const opt_node *n, uint32_t k, double x, double absent, double *out, uint32_t depth) {
  opt_value *v = opt_in(n, k);
  *out = absent;
  if (v == NULL) return true;
  if (v == c->x) {
    *out = x;
    return true;
  }
  return is_number(c, v) ? opt_number(c->net, v, out) : evaluate(c, v->maker, x, out, depth + 1);
}

/* NaN wins. */
static double least_of(double a, double b) {
  return a < b || a != a ? a : b;
}

static bool evaluate(opt_cone *c, const opt_node *n, double x, double *out, uint32_t depth) {
  double a, b, d;
  if (depth > OPT_CONE_NODES || !operand(c, n, 0, x, 0, &a, depth) || !operand(c, n, 1, x, -INFINITY, &b, depth) ||
      !operand(c, n, 2, x, INFINITY, &d, depth))
    return false;
  const bool two = n->n_inputs == 2;
  if (opt_is(n, "Add")) *out = a + b;
  else if (opt_is(n, "Sub")) *out = a - b;
  else if (opt_is(n, "Mul")) *out = a * b;
  else if (opt_is(n, "Div")) *out = a / b;
  else if (opt_is(n, "Pow")) *out = pow(a, b);
  else if (opt_is(n, "Erf")) *out = erf(a);
  else if (opt_is(n, "Tanh")) *out = tanh(a);
  else if (opt_is(n, "Sigmoid")) *out = 1 / (1 + exp(-a));
  else if (opt_is(n, "Softplus")) *out = a > 0 ? a + log1p(exp(-a)) : log1p(exp(a));
  else if (opt_is(n, "Relu")) *out = a < 0 ? 0 : a;
  else if (opt_is(n, "Min") && two) *out = least_of(a, b);
  else if (opt_is(n, "Max") && two) *out = -least_of(-a, -b);
  else if (opt_is(n, "Clip")) *out = least_of(-least_of(-a, -b), d);
  else if (opt_is(n, "HardSigmoid"))
    *out = least_of(-least_of(-opt_get_float(n, "alpha", 0.2) * a - opt_get_float(n, "beta", 0.5), 0), 1);
  else return false;
  return true;
}

bool opt_cone_result(opt_cone *c, double x, double *out) {
  return evaluate(c, c->nodes[0], x, out, 0);
}
