/* graph/optimize/cse.c: nodes that compute the same of the same inputs become one, and small constants of equal bytes too.
 * Operators that draw random numbers, or run graphs of their own, are left alone. */
#include "graph/optimize/net.h"
#include "plugins/common/fnv.h"

static bool is_pure(const opt_node *n) {
  if (!opt_repeats(n)) return false;
  for (uint32_t i = 0; i < n->n_attrs; i++)
    if (n->attrs[i].kind < HEDDLE_ATTR_INT || n->attrs[i].kind > HEDDLE_ATTR_STRINGS) return false;
  return true;
}

static bool same_attr(const heddle_pattr *a, const heddle_pattr *b) {
  if (a->kind != b->kind || a->count != b->count || strcmp(a->name, b->name) != 0) return false;
  if (a->kind != HEDDLE_ATTR_STRINGS)
    return memcmp(a->data, b->data, (size_t)a->count * (a->kind == HEDDLE_ATTR_STRING ? 1 : 8)) == 0;
  for (uint64_t i = 0; i < a->count; i++)
    if (strcmp(((const char *const *)a->data)[i], ((const char *const *)b->data)[i]) != 0) return false;
  return true;
}

/* Attributes in the same order, which is that of one exporter. */
static bool same_node(const opt_node *a, const opt_node *b) {
  if (a->n_inputs != b->n_inputs || a->n_outputs != b->n_outputs || a->n_attrs != b->n_attrs ||
      strcmp(a->op, b->op) != 0 || strcmp(a->domain, b->domain) != 0 || !opt_same_home(a, b))
    return false;
  for (uint32_t k = 0; k < a->n_inputs; k++)
    if (opt_in(a, k) != opt_in(b, k)) return false;
  for (uint32_t i = 0; i < a->n_attrs; i++)
    if (!same_attr(&a->attrs[i], &b->attrs[i])) return false;
  return true;
}

static uint64_t hash_node(const opt_node *n) {
  uint64_t h = fnv1a(FNV1A_START, n->op, strlen(n->op));
  for (uint32_t k = 0; k < n->n_inputs; k++) {
    const opt_value *v = opt_in(n, k);
    h = fnv1a(h, &v, sizeof v);
  }
  return h ^ h >> 29;
}

/* What was seen, by hash; linear probing in a table at most half full. */
typedef struct table {
  void **slots;
  size_t mask;
} table;

static bool make_table(opt_net *net, size_t count, table *out) {
  size_t size = 16;
  while (size < 2 * count) size *= 2;
  out->slots = opt_alloc(net, size, sizeof *out->slots);
  out->mask = size - 1;
  return out->slots != NULL;
}

/* One of n's outputs is read by the caller, who finds it by this node. */
static bool is_pinned(const opt_node *n) {
  for (uint32_t k = 0; k < n->n_outputs; k++)
    if (n->outputs[k].pinned) return true;
  return false;
}

static bool join_nodes(opt_net *net) {
  table seen;
  bool changed = false;
  if (!make_table(net, net->n_nodes, &seen)) return false;
  for (uint32_t i = 0; i < net->n_nodes && !net->failed; i++) {
    opt_node *n = &net->nodes[i];
    if (!n->live || !is_pure(n)) continue;
    size_t at = (size_t)hash_node(n) & seen.mask;
    opt_node *same = seen.slots[at];
    while (same != NULL && !same_node(same, n)) {
      at = (at + 1) & seen.mask;
      same = seen.slots[at];
    }
    if (same == NULL) seen.slots[at] = n;
    if (same == NULL || is_pinned(n)) continue;
    for (uint32_t k = 0; k < n->n_outputs; k++) opt_replace(&n->outputs[k], &same->outputs[k]);
    n->live = false;
    opt_note(net, "cse", (const opt_node *const[]){same, n}, 2, "computed once, as '%s'", same->name);
    changed = true;
  }
  return changed;
}

/* Of one element, or the integers of a shape: what exporters write again for each use. */
static bool is_small(const opt_value *v) {
  return v->constant != NULL && v->known && !v->pinned && v->instead == NULL && v->bytes > 0 && v->users > 0 &&
         (opt_elements(v) == 1 || (v->dtype.code == HEDDLE_DTYPE_INT && v->bytes <= 64));
}

static void join_constants(opt_net *net) {
  table seen;
  const uint32_t count = net->n_args + net->n_made;
  if (!make_table(net, count, &seen)) return;
  for (uint32_t i = 0; i < count; i++) {
    opt_value *v = i < net->n_args ? &net->args[i] : net->made[i - net->n_args];
    if (!is_small(v)) continue;
    const void *bytes = v->constant->data;
    size_t at = (size_t)fnv1a(v->ndim, bytes, (size_t)v->bytes) & seen.mask;
    for (opt_value *old = seen.slots[at]; old != NULL; at = (at + 1) & seen.mask, old = seen.slots[at]) {
      if (memcmp(&old->dtype, &v->dtype, sizeof v->dtype) != 0 || !opt_same_shape(old, v) ||
          memcmp(old->constant->data, bytes, (size_t)v->bytes) != 0)
        continue;
      opt_bytes(net, old); /* so that neither is set later behind the other's back */
      opt_bytes(net, v);
      opt_replace(v, old);
      break;
    }
    if (seen.slots[at] == NULL) seen.slots[at] = v;
  }
}

bool opt_pass_cse(opt_net *net) {
  join_constants(net);
  return !net->failed && join_nodes(net);
}
