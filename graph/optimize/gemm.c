/* graph/optimize/gemm.c: MatMul of two matrices and the Add of a bias become one Gemm, and a Transpose of a matrix before a
 * Gemm becomes its attribute. */
#include "graph/optimize/net.h"

static bool is_matrix(const opt_value *v) {
  return v != NULL && opt_is_float32(v) && v->ndim == 2;
}

/* One row for all rows: what libraries of kernels take with a product. A residual is the plugins' to join. */
static bool is_bias(const opt_value *v, const opt_value *result) {
  if (v == NULL || !opt_is_float32(v) || v->ndim < 1 || v->ndim > 2 || v->shape[v->ndim - 1] != result->shape[1])
    return false;
  return v->ndim == 1 || v->shape[0] == 1;
}

static bool add_bias(opt_net *net, opt_node *n) {
  if (!opt_is(n, "Add")) return false;
  for (uint32_t k = 0; k < 2; k++) {
    opt_value *product = opt_in(n, k), *bias = opt_in(n, 1 - k);
    opt_node *m = opt_maker(product, "MatMul");
    if (m == NULL || !opt_is_inner(product) || !opt_same_home(n, m) || !is_matrix(opt_in(m, 0)) ||
        !is_matrix(opt_in(m, 1)) || !is_matrix(product) || !is_bias(bias, product))
      continue;
    opt_value *in[3] = {opt_in(m, 0), opt_in(m, 1), bias};
    if (!opt_become(net, n, "", "Gemm", in, 3, NULL, 0)) return false;
    m->live = false;
    opt_note(net, "gemm", (const opt_node *const[]){m, n}, 2, "one Gemm, as '%s'", n->name);
    return true;
  }
  return false;
}

static bool is_swap(const opt_node *n) {
  uint64_t count;
  const int64_t *perm = opt_get_ints(n, "perm", &count);
  return perm == NULL || (count == 2 && perm[0] == 1 && perm[1] == 0);
}

static bool take_transpose(opt_net *net, opt_node *n) {
  int64_t swapped[2] = {opt_get_int(n, "transA", 0) != 0, opt_get_int(n, "transB", 0) != 0};
  opt_value *in[3] = {opt_in(n, 0), opt_in(n, 1), opt_in(n, 2)};
  const opt_node *gone = NULL;
  for (uint32_t k = 0; k < 2; k++) {
    const opt_node *t = opt_maker(in[k], "Transpose");
    if (t == NULL || !opt_is_inner(in[k]) || !opt_same_home(n, t) || !is_matrix(opt_in(t, 0)) || !is_swap(t)) continue;
    in[k] = opt_in(t, 0);
    swapped[k] = !swapped[k];
    gone = t;
  }
  if (gone == NULL) return false;
  const heddle_pattr attrs[4] = {opt_attr_float(net, "alpha", opt_get_float(n, "alpha", 1)),
                                 opt_attr_float(net, "beta", opt_get_float(n, "beta", 1)),
                                 opt_attr_int(net, "transA", swapped[0]), opt_attr_int(net, "transB", swapped[1])};
  if (!opt_become(net, n, "", "Gemm", in, in[2] != NULL ? 3 : 2, attrs, 4)) return false;
  opt_note(net, "gemm", (const opt_node *const[]){gone, n}, 2, "the Transpose is the Gemm's");
  return true;
}

bool opt_pass_gemm(opt_net *net) {
  bool changed = false;
  for (uint32_t i = 0; i < net->n_nodes && !net->failed; i++) {
    opt_node *n = &net->nodes[i];
    if (!n->live || n->n_outputs != 1) continue;
    changed = add_bias(net, n) || changed;
    if (opt_is(n, "Gemm") && n->n_inputs >= 2) changed = take_transpose(net, n) || changed;
  }
  return changed;
}
