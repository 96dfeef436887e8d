/* graph/optimize/identity.c: operators that give what they got are left out: Identity, Dropout in inference, Cast to the same
 * type, Transpose that moves nothing, views and Expand to the same shape, Concat and the like of one. */
#include "graph/optimize/net.h"

static bool moves_nothing(const opt_node *n) {
  uint64_t count;
  const int64_t *perm = opt_get_ints(n, "perm", &count);
  for (uint64_t i = 0; i < count; i++)
    if (perm[i] != (int64_t)i) return false;
  return perm != NULL && count > 0;
}

/* In inference, with no mask asked for. */
static bool is_plain_dropout(opt_net *net, const opt_node *n) {
  const opt_value *training = opt_in(n, 2);
  for (uint32_t k = 1; k < n->n_outputs; k++)
    if (n->outputs[k].users > 0 || n->outputs[k].pinned) return false;
  if (training == NULL) return true;
  const char *byte = training->known && training->bytes == 1 ? opt_bytes(net, training) : NULL;
  return byte != NULL && *byte == 0;
}

static bool gives_its_input(opt_net *net, const opt_node *n) {
  static const char *const shaped[] = {"Reshape", "Flatten", "Squeeze", "Unsqueeze", "Expand", "Tile"};
  static const char *const joined[] = {"Concat", "Max", "Min", "Sum", "Mean"};
  const opt_value *x = opt_in(n, 0), *y = &n->outputs[0];
  if (opt_is(n, "Identity")) return true;
  if (opt_is(n, "Dropout")) return is_plain_dropout(net, n);
  if (opt_is(n, "Transpose")) return moves_nothing(n);
  heddle_dtype in, out;
  if (opt_is(n, "Cast")) return opt_dtype(x, &in) && opt_dtype(y, &out) && memcmp(&in, &out, sizeof in) == 0;
  for (size_t i = 0; i < sizeof joined / sizeof joined[0]; i++)
    if (opt_is(n, joined[i])) return n->n_inputs == 1;
  for (size_t i = 0; i < sizeof shaped / sizeof shaped[0]; i++)
    if (opt_is(n, shaped[i])) return opt_same_shape(x, y);
  return false;
}

bool opt_pass_identity(opt_net *net) {
  bool changed = false;
  for (uint32_t i = 0; i < net->n_nodes && !net->failed; i++) {
    opt_node *n = &net->nodes[i];
    if (!n->live || n->n_outputs == 0 || n->outputs[0].pinned || opt_in(n, 0) == NULL) continue;
    if (!gives_its_input(net, n)) continue;
    opt_replace(&n->outputs[0], opt_in(n, 0));
    n->live = false;
    opt_note(net, "identity", (const opt_node *const[]){n}, 1, "left out: %s gives what it gets", n->op);
    changed = true;
  }
  return changed;
}
