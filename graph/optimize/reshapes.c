/* graph/optimize/reshapes.c: a row of Reshape, Flatten, Squeeze and Unsqueeze becomes one Reshape, where all shapes are known:
 * for others it is unknown whether each of the row is valid, and the error must not be lost. */
#include "graph/optimize/net.h"

static bool is_view(const opt_node *n) {
  return (opt_is(n, "Reshape") || opt_is(n, "Flatten") || opt_is(n, "Squeeze") || opt_is(n, "Unsqueeze")) &&
         n->n_outputs == 1;
}

static bool joined(opt_net *net, opt_node *n, opt_value *x) {
  const opt_value *y = &n->outputs[0];
  if (!y->known || y->bytes == 0 || !opt_in(n, 0)->known) return false;
  void *bytes;
  opt_value *shape = opt_constant(net, opt_format(net, "%s:shape", n->name), (heddle_dtype){HEDDLE_DTYPE_INT, 64, 1},
                                  (const int64_t[]){y->ndim}, 1, &bytes);
  if (shape == NULL) return false;
  if (y->ndim > 0) memcpy(bytes, y->shape, y->ndim * sizeof *y->shape);
  return opt_become(net, n, "", "Reshape", (opt_value *const[]){x, shape}, 2, NULL, 0);
}

bool opt_pass_reshapes(opt_net *net) {
  bool changed = false;
  for (uint32_t i = 0; i < net->n_nodes && !net->failed; i++) {
    opt_node *n = &net->nodes[i];
    opt_value *v = n->live && is_view(n) ? opt_in(n, 0) : NULL;
    if (v == NULL || v->maker == NULL || !is_view(v->maker) || !opt_same_home(n, v->maker)) continue;
    opt_node *before = v->maker;
    if (opt_in(before, 0) == NULL || !joined(net, n, opt_in(before, 0))) continue;
    opt_note(net, "reshapes", (const opt_node *const[]){before, n}, 2, "one Reshape, as '%s'", n->name);
    changed = true;
  }
  return changed;
}
