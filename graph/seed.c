/* graph/seed.c: seeds for operators of random numbers that have none. The graph is written, attributes are added, and it is read
 * again, as bind.c does with dimensions. */
#include <string.h>

#include "core/alloc.h"
#include "core/error.h"
#include "graph/reader.h"
#include "operators/operators.h"
#include "plugins/common/fnv.h"

static bool any_random(const heddle_graph *g) {
  for (uint32_t i = 0; i < g->n_nodes; i++) {
    if (g->nodes[i].kind == HEDDLE__NODE_OP && heddle__operator_draws(g->nodes[i].domain[0] != '\0', g->nodes[i].op))
      return true;
    for (uint32_t k = 0; k < g->nodes[i].n_inner; k++)
      if (any_random(g->nodes[i].inner[k].graph)) return true;
  }
  return false;
}

/* A node's own seed: nodes of different names have other numbers. */
static uint64_t mix(uint64_t seed, const char *name) {
  uint64_t h = fnv1a(seed * UINT64_C(0x9e3779b97f4a7c15) + FNV1A_START, name, strlen(name));
  h = (h ^ h >> 31) * UINT64_C(0xbf58476d1ce4e5b9);
  return h ^ h >> 29;
}

static int seed_nodes(json_t *document, uint64_t seed) {
  json_t *nodes = json_object_get(document, "nodes"), *node, *value;
  const char *key;
  size_t i;
  int failed = 0;
  json_array_foreach(nodes, i, node) {
    const char *op = json_string_value(json_object_get(node, "op")),
               *name = json_string_value(json_object_get(node, "name"));
    json_t *attrs = json_object_get(node, "attrs");
    json_object_foreach(attrs, key, value) {
      if (json_is_object(value)) failed |= seed_nodes(value, seed);
    }
    if (op == NULL || name == NULL || json_object_get(node, "domain") != NULL || !heddle__operator_draws(false, op))
      continue;
    if (attrs == NULL && json_object_set_new(node, "attrs", json_object()) != 0) return -1;
    attrs = json_object_get(node, "attrs");
    if (json_object_get(attrs, "seed") != NULL) continue;
    const uint64_t own = mix(seed, name);
    const heddle__version *version = heddle__version_find(false, op, 0);
    json_t *made = heddle__version_attr(version, "seed") == HEDDLE_ATTR_INT
                       ? json_integer((json_int_t)(own >> 1))
                       : json_real((double)(own >> 40)); /* which float32 holds */
    failed |= json_object_set_new(attrs, "seed", made);
  }
  return failed;
}

heddle_status heddle__graph_seed(const heddle_graph *g, uint64_t seed, heddle_graph **out, heddle_error *err) {
  char *text = NULL;
  size_t bytes = 0;
  json_t *root = NULL;
  if (seed == 0 || !any_random(g)) {
    *out = heddle_graph_retain((heddle_graph *)(uintptr_t)g);
    return HEDDLE_OK;
  }
  *out = NULL;
  heddle_status s = heddle_graph_text(g, &text, &bytes, err);
  if (s != HEDDLE_OK) return s;
  s = heddle__json_parse(text, bytes, g->source, UINT32_MAX, &root, err);
  heddle__free(text);
  if (s != HEDDLE_OK) return s;
  if (seed_nodes(root, seed) == 0) return heddle__graph_from_json(root, g->source, UINT32_MAX, out, err);
  json_decref(root);
  return heddle__no_memory(err, "the seeds of a graph");
}
