/* graph/optimize/activation.c: GELU and HardSwish from the parts that exporters write. They are recognised by what they
 * compute: a few elementwise nodes of one value and numbers, whose result is the function's wherever it is tried. So it
 * does not matter in which order the factors stand, or whether a number is divided by or multiplied with. */
#include <math.h>

#include "graph/optimize/net.h"

enum { MOST_NODES = 12, MOST_TRIED = 24 };

typedef struct cone {
  opt_net *net;
  opt_node *nodes[MOST_NODES]; /* the last first */
  uint32_t n_nodes;
  const opt_value *x;
} cone;

/* ---- which nodes are between a value and a result */

static bool is_part(const opt_node *n) {
  static const char *const names[] = {"Add",  "Sub",  "Mul",         "Div",  "Pow", "Erf",
                                      "Tanh", "Clip", "HardSigmoid", "Relu", "Min", "Max"};
  for (size_t i = 0; n != NULL && i < sizeof names / sizeof names[0]; i++)
    if (opt_is(n, names[i])) return n->n_outputs == 1 && n->n_inputs >= 1 && n->n_inputs <= 3;
  return false;
}

/* One number that does not widen what it meets, which has as many dimensions or more. */
static bool is_number(const cone *c, const opt_value *v) {
  return v->constant != NULL && v->known && opt_elements(v) == 1 && (!c->x->known || v->ndim <= c->x->ndim) &&
         (c->x->known || v->ndim == 0);
}

static uint32_t place_of(const cone *c, const opt_node *n) {
  uint32_t i = 0;
  while (i < c->n_nodes && c->nodes[i] != n) i++;
  return i;
}

/* Adds n and what it needs, down to x and numbers. */
static bool grow(cone *c, opt_node *n, const opt_node *root) {
  if (!is_part(n) || c->n_nodes == MOST_NODES || !opt_same_home(n, root)) return false;
  if (place_of(c, n) < c->n_nodes) return true;
  c->nodes[c->n_nodes++] = n;
  for (uint32_t k = 0; k < n->n_inputs; k++) {
    opt_value *v = opt_in(n, k);
    if (v == NULL || v == c->x || is_number(c, v)) continue;
    if (v->maker == NULL || v->pinned || !grow(c, v->maker, root)) return false;
  }
  return true;
}

/* Nothing else reads what is inside. */
static bool is_closed(const cone *c) {
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

static bool evaluate(cone *c, const opt_node *n, double x, double *out, uint32_t depth);

static bool operand(cone *c, const opt_node *n, uint32_t k, double x, double absent, double *out, uint32_t depth) {
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

static bool evaluate(cone *c, const opt_node *n, double x, double *out, uint32_t depth) {
  double a, b, d;
  if (depth > MOST_NODES || !operand(c, n, 0, x, 0, &a, depth) || !operand(c, n, 1, x, -INFINITY, &b, depth) ||
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
  else if (opt_is(n, "Relu")) *out = a < 0 ? 0 : a;
  else if (opt_is(n, "Min") && two) *out = least_of(a, b);
  else if (opt_is(n, "Max") && two) *out = -least_of(-a, -b);
  else if (opt_is(n, "Clip")) *out = least_of(-least_of(-a, -b), d);
  else if (opt_is(n, "HardSigmoid"))
    *out = least_of(-least_of(-opt_get_float(n, "alpha", 0.2) * a - opt_get_float(n, "beta", 0.5), 0), 1);
  else return false;
  return true;
}

static double gelu(double x) {
  return 0.5 * x * (1 + erf(x * 0.70710678118654752440));
}

static double gelu_tanh(double x) {
  return 0.5 * x * (1 + tanh(0.79788456080286535588 * (x + 0.044715 * x * x * x)));
}

static double hard_swish(double x) {
  return x * fmin(fmax(x / 6 + 0.5, 0), 1);
}

static const struct {
  const char *domain, *op, *approximate, *needs[2]; /* one of these operators is among the parts */
  double (*of)(double x);
} targets[] = {{"heddle", "Gelu", NULL, {"Erf", "Erf"}, gelu},
               {"heddle", "Gelu", "tanh", {"Tanh", "Tanh"}, gelu_tanh},
               {"", "HardSwish", NULL, {"Clip", "HardSigmoid"}, hard_swish}};

/* Numbers of a model are float32, and some exporters round them to seven digits: the two forms of GELU differ by 5e-4. */
static bool computes(cone *c, double (*of)(double x)) {
  for (int i = -64; i <= 64; i++) {
    const double x = i * 0.1275, want = of(x);
    double got;
    if (!evaluate(c, c->nodes[0], x, &got, 0) || !(fabs(got - want) <= 2e-6 * (1 + fabs(x)))) return false;
  }
  return true;
}

static bool has_part(const cone *c, const char *const needs[2]) {
  for (uint32_t i = 0; i < c->n_nodes; i++)
    if (opt_is(c->nodes[i], needs[0]) || opt_is(c->nodes[i], needs[1])) return true;
  return false;
}

/* ---- the pass */

static bool become(cone *c, size_t target) {
  opt_net *net = c->net;
  opt_node *n = c->nodes[0];
  heddle_pattr attr;
  uint32_t n_attrs = 0;
  if (targets[target].domain[0] == '\0' && heddle__schema_find("", targets[target].op, net->opset) == NULL)
    return false;
  if (targets[target].approximate != NULL)
    attr = opt_attr_string(net, "approximate", targets[target].approximate), n_attrs = 1;
  opt_value *x = (opt_value *)(uintptr_t)c->x;
  if (!opt_become(net, n, targets[target].domain, targets[target].op, &x, 1, &attr, n_attrs)) return false;
  for (uint32_t i = 1; i < c->n_nodes; i++) c->nodes[i]->live = false;
  for (uint32_t i = 0, k = c->n_nodes - 1; i < k; i++, k--) { /* in the order in which they ran, more or less */
    opt_node *other = c->nodes[i];
    c->nodes[i] = c->nodes[k];
    c->nodes[k] = other;
  }
  opt_note(net, "activation", (const opt_node *const *)c->nodes, c->n_nodes, "one %s, as '%s'", targets[target].op,
           n->name);
  return true;
}

static bool try_from(opt_net *net, opt_node *n, const opt_value *x) {
  cone c = {.net = net, .x = x};
  if (!grow(&c, n, n) || c.n_nodes < 2 || !is_closed(&c)) return false;
  for (size_t i = 0; i < sizeof targets / sizeof targets[0]; i++)
    if (has_part(&c, targets[i].needs) && computes(&c, targets[i].of) && become(&c, i)) return true;
  return false;
}

/* Whatever lies behind a few operators may be x: the nearest are tried first. */
static bool find_activation(opt_net *net, opt_node *n) {
  opt_value *list[MOST_TRIED];
  uint32_t count = 0;
  for (uint32_t at = 0; at <= count; at++) {
    const opt_node *from = at == 0 ? n : is_part(list[at - 1]->maker) ? list[at - 1]->maker : NULL;
    for (uint32_t k = 0; from != NULL && k < from->n_inputs; k++) {
      opt_value *v = opt_in(from, k);
      bool known = v == NULL || v->constant != NULL;
      for (uint32_t i = 0; i < count; i++) known = known || list[i] == v;
      if (!known && count < MOST_TRIED) list[count++] = v;
    }
  }
  for (uint32_t i = 0; i < count; i++)
    if (try_from(net, n, list[i])) return true;
  return false;
}

bool opt_pass_activation(opt_net *net) {
  bool changed = false;
  for (uint32_t i = net->n_nodes; i-- > 0 && !net->failed;) {
    opt_node *n = &net->nodes[i];
    if (n->live && (opt_is(n, "Mul") || opt_is(n, "Div"))) changed = find_activation(net, n) || changed;
  }
  return changed;
}
