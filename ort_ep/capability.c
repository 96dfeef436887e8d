/* ort_ep/capability.c: which nodes of a graph Heddle takes: those that it can load. The whole graph is tried first; where
 * that is refused, each node is tried alone, and the nodes that are taken form parts that no path leaves and enters again. */
#include <stdio.h>
#include <string.h>

#include "core/names.h"
#include "plugins/common/perror.h"
#include "ort_ep/ep.h"

enum { SMALL = 4096 }; /* bytes of a constant that a node may need to know */

typedef struct finding {
  ep *e;
  const ort_graph *graph;
  const ort_node **nodes; /* of which no other provider has taken any */
  bool *is_taken;
  uint32_t *level;
  size_t n;
  heddle__arena arena;
  char why[256]; /* the first refusal */
} finding;

/* Whether Heddle loads a part. */
static heddle_status try_part(finding *f, const ep_part *part, heddle_error *err) {
  heddle__arena arena = {0};
  heddle_model *model = NULL;
  void *data = NULL;
  size_t bytes = 0;
  heddle_status s = ep_model_bytes(f->e, part, &arena, &data, &bytes, err);
  if (s == HEDDLE_OK) s = heddle_model_parse(f->e->ctx, data, bytes, NULL, &f->e->options, &model, err);
  heddle_model_release(model);
  heddle__arena_drop(&arena);
  return s;
}

static bool is_open_to_us(const finding *f, const ort_node *node) {
  const char *provider = NULL;
  size_t graphs = 0;
  if (ep_take(f->e, ORT(f->e->api, Node_GetEpName)(node, &provider), NULL) != HEDDLE_OK) return false;
  if (ep_take(f->e, ORT(f->e->api, Node_GetNumSubgraphs)(node, &graphs), NULL) != HEDDLE_OK) return false;
  return graphs == 0 && (provider == NULL || provider[0] == '\0');
}

static void note_refusal(finding *f, const ort_node *node, const heddle_error *err) {
  const char *op = "", *name = "";
  if (f->why[0] != '\0') return;
  ep_take(f->e, ORT(f->e->api, Node_GetOperatorType)(node, &op), NULL);
  ep_take(f->e, ORT(f->e->api, Node_GetName)(node, &name), NULL);
  snprintf(f->why, sizeof f->why, "%.60s '%.60s': %.120s", op, name, err->text);
}

/* The level of a node counts the changes between nodes that are taken and nodes that are not on the paths to it. Taken nodes
 * of one level have no path between them through a node that is not taken. */
static heddle_status find_levels(finding *f, heddle_error *err) {
  heddle__names makers; /* the node that makes a value */
  size_t most = 0;
  for (size_t i = 0; i < f->n; i++) {
    size_t n = 0;
    ep_take(f->e, ORT(f->e->api, Node_GetNumOutputs)(f->nodes[i], &n), NULL);
    most += n;
  }
  if (!heddle__names_make(&makers, &f->arena, most))
    return p_fail(err, HEDDLE_ENOMEM, 0, "no memory for a graph's parts");
  for (size_t i = 0; i < f->n; i++) {
    const ort_value_info **values = NULL;
    size_t n = 0;
    heddle_status s = ep_node_values(f->e, f->nodes[i], false, &f->arena, &values, &n, err);
    f->level[i] = f->is_taken[i] ? 0 : 1;
    for (size_t k = 0; s == HEDDLE_OK && k < n; k++) {
      const size_t from = heddle__names_find(&makers, ep_value_name(f->e, values[k]), f->n);
      if (values[k] == NULL || from == f->n) continue;
      const uint32_t level = f->level[from] + (f->is_taken[from] != f->is_taken[i]);
      if (level > f->level[i]) f->level[i] = level;
    }
    if (s == HEDDLE_OK) s = ep_node_values(f->e, f->nodes[i], true, &f->arena, &values, &n, err);
    for (size_t k = 0; s == HEDDLE_OK && k < n; k++) heddle__names_put(&makers, ep_value_name(f->e, values[k]), i);
    if (s != HEDDLE_OK) return s;
  }
  return HEDDLE_OK;
}

static heddle_status claim(finding *f, ort_support *out, size_t *n_parts, heddle_error *err) {
  static const ort_fusion fusion = {.version = ORT_API_VERSION, .drop_constants = true};
  const ort_add_nodes add = (ort_add_nodes)ORT(f->e->api, GetEpApi)()->at[ORT_AT_ADD_NODES];
  const ort_node **part = heddle__arena_take(&f->arena, f->n + 1, sizeof *part);
  uint32_t top = 0;
  heddle_status s = part != NULL ? find_levels(f, err) : p_fail(err, HEDDLE_ENOMEM, 0, "no memory for a graph's parts");
  for (size_t i = 0; i < f->n; i++)
    if (f->level[i] > top) top = f->level[i];
  for (uint32_t level = 0; s == HEDDLE_OK && level <= top; level++) {
    size_t n = 0;
    for (size_t i = 0; i < f->n; i++)
      if (f->is_taken[i] && f->level[i] == level) part[n++] = f->nodes[i];
    if (n == 0) continue;
    s = ep_take(f->e, add(out, part, n, &fusion), err);
    *n_parts += 1;
  }
  return s;
}

/* Tries the graph as a whole, then node by node. */
static size_t choose(finding *f) {
  heddle_error err = {0};
  size_t n_open = 0, n_taken = 0;
  for (size_t i = 0; i < f->n; i++) n_open += f->is_taken[i] = is_open_to_us(f, f->nodes[i]);
  ep_part all = {.graph = f->graph, .nodes = f->nodes, .n_nodes = f->n, .most_constant = SMALL};
  if (n_open == f->n && try_part(f, &all, &err) == HEDDLE_OK) return f->n;
  for (size_t i = 0; i < f->n; i++) {
    if (!f->is_taken[i]) continue;
    ep_part one = {.graph = f->graph, .nodes = &f->nodes[i], .n_nodes = 1, .most_constant = SMALL};
    f->is_taken[i] = try_part(f, &one, &err) == HEDDLE_OK;
    if (!f->is_taken[i]) note_refusal(f, f->nodes[i], &err);
    n_taken += f->is_taken[i];
  }
  return n_taken;
}

static heddle_status find_parts(finding *f, ort_support *out, heddle_error *err) {
  const ort_api *api = f->e->api;
  const ort_node *parent = NULL;
  heddle_status s = ep_take(f->e, ORT(api, Graph_GetParentNode)(f->graph, &parent), err);
  if (s == HEDDLE_OK) s = ep_take(f->e, ORT(api, Graph_GetNumNodes)(f->graph, &f->n), err);
  if (s != HEDDLE_OK || f->n == 0 || parent != NULL) return s; /* bodies of If, Loop and Scan stay where those are */
  f->nodes = heddle__arena_take(&f->arena, f->n, sizeof *f->nodes);
  f->is_taken = heddle__arena_take(&f->arena, f->n, sizeof *f->is_taken);
  f->level = heddle__arena_take(&f->arena, f->n, sizeof *f->level);
  if (f->nodes == NULL || f->is_taken == NULL || f->level == NULL)
    return p_fail(err, HEDDLE_ENOMEM, 0, "no memory for a graph's parts");
  s = ep_take(f->e, ORT(api, Graph_GetNodes)(f->graph, f->nodes, f->n), err);
  if (s != HEDDLE_OK) return s;
  char text[512];
  size_t n_parts = 0;
  const size_t n_taken = choose(f);
  if (n_taken > 0) s = claim(f, out, &n_parts, err);
  if (s != HEDDLE_OK) return s;
  if (n_taken == f->n) snprintf(text, sizeof text, "Heddle runs all %zu nodes of a graph", f->n);
  else
    snprintf(text, sizeof text, "Heddle runs %zu of %zu nodes of a graph, in %zu parts; the first that it leaves: %s",
             n_taken, f->n, n_parts, f->why[0] != '\0' ? f->why : "a node with graphs, or of another provider");
  ep_log(f->e, n_taken == f->n ? ORT_LOG_INFO : ORT_LOG_WARNING, text);
  return s;
}

ort_status *ep_get_capability(ort_ep *self, const ort_graph *graph, ort_support *out) {
  finding f = {.e = (ep *)self, .graph = graph};
  heddle_error err = {0};
  const heddle_status s = find_parts(&f, out, &err);
  heddle__arena_drop(&f.arena);
  return ep_status(f.e->api, s, &err);
}
