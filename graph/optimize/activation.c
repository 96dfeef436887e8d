/* graph/optimize/activation.c: GELU, Swish, Mish and HardSwish from the parts that exporters write. They are recognised by what they
 * compute: a few elementwise nodes of one value and numbers, whose result is the function's wherever it is tried. So it
 * does not matter in which order the factors stand, or whether a number is divided by or multiplied with. */
#include <math.h>

#include "graph/optimize/activation.h"

enum { MOST_TRIED = 24 };

static double gelu(double x, double alpha) {
  (void)alpha;
  return 0.5 * x * (1 + erf(x * 0.70710678118654752440));
}

static double gelu_tanh(double x, double alpha) {
  (void)alpha;
  return 0.5 * x * (1 + tanh(0.79788456080286535588 * (x + 0.044715 * x * x * x)));
}

static double swish(double x, double alpha) {
  return x / (1 + exp(-alpha * x));
}

static double mish(double x, double alpha) {
  (void)alpha;
  return x * tanh(log1p(exp(x)));
}

static double hard_swish(double x, double alpha) {
  (void)alpha;
  return x * fmin(fmax(x / 6 + 0.5, 0), 1);
}

static const struct {
  const char *domain, *op, *approximate, *needs[2]; /* one of these operators is among the parts */
  double (*of)(double x, double alpha);
} targets[] = {{"heddle", "Gelu", NULL, {"Erf", "Erf"}, gelu},
               {"heddle", "Gelu", "tanh", {"Tanh", "Sigmoid"}, gelu_tanh},
               {"heddle", "Swish", NULL, {"Sigmoid", "Sigmoid"}, swish},
               {"heddle", "Mish", NULL, {"Softplus", "Softplus"}, mish},
               {"", "HardSwish", NULL, {"Clip", "HardSigmoid"}, hard_swish}};

/* The number by which Swish multiplies what is in its sigmoid, from the result of 1; 1 for what is not Swish. */
static double alpha_of(opt_cone *c) {
  double y = 0.5;
  if (!opt_cone_result(c, 1, &y) || !(y > 0 && y < 1)) return 1;
  const double alpha = (float)log(y / (1 - y));
  return alpha > 0 && alpha < 1e6 ? alpha : 1;
}

/* Numbers of a model are float32, and some exporters round them to seven digits: the two forms of GELU differ by 5e-4. */
static bool computes(opt_cone *c, double (*of)(double x, double alpha)) {
  const double alpha = alpha_of(c);
  for (int i = -64; i <= 64; i++) {
    const double x = i * 0.1275, want = of(x, alpha);
    double got;
    if (!opt_cone_result(c, x, &got) || !(fabs(got - want) <= 2e-6 * (1 + fabs(x)))) return false;
  }
  return true;
}

static bool has_part(const opt_cone *c, const char *const needs[2]) {
  for (uint32_t i = 0; i < c->n_nodes; i++)
    if (opt_is(c->nodes[i], needs[0]) || opt_is(c->nodes[i], needs[1])) return true;
  return false;
}

/* ---- the pass */

static bool become(opt_cone *c, size_t target) {
  opt_net *net = c->net;
  opt_node *n = c->nodes[0];
  heddle_pattr attr;
  uint32_t n_attrs = 0;
  if (targets[target].domain[0] == '\0' && heddle__schema_find("", targets[target].op, net->opset) == NULL)
    return false;
  if (targets[target].approximate != NULL)
    attr = opt_attr_string(net, "approximate", targets[target].approximate), n_attrs = 1;
  else if (targets[target].of == swish) attr = opt_attr_float(net, "alpha", alpha_of(c)), n_attrs = 1;
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
  opt_cone c = {.net = net, .x = x};
  if (!opt_cone_grow(&c, n, n) || c.n_nodes < 2 || !opt_cone_closed(&c)) return false;
  for (size_t i = 0; i < sizeof targets / sizeof targets[0]; i++)
    if (has_part(&c, targets[i].needs) && computes(&c, targets[i].of) && become(&c, i)) return true;
  return false;
}

/* Whatever lies behind a few operators may be x: the nearest are tried first. */
static bool find_activation(opt_net *net, opt_node *n) {
  opt_value *list[MOST_TRIED];
  uint32_t count = 0;
  for (uint32_t at = 0; at <= count; at++) {
    const opt_node *from = at == 0 ? n : opt_is_part(list[at - 1]->maker) ? list[at - 1]->maker : NULL;
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
