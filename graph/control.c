/* graph/control.c: what a graph must keep where a node runs graphs of its own: If, Loop and Scan of ONNX. Their graphs
 * see nothing from outside but what the node hands them: captured values are inputs of the node, after its own. */
#include <string.h>

#include "core/parts.h"
#include "graph/infer.h"

bool heddle__is_control(const heddle__node *node) {
  return node->kind == HEDDLE__NODE_OP && node->domain[0] == '\0' &&
         (strcmp(node->op, "If") == 0 || strcmp(node->op, "Loop") == 0 || strcmp(node->op, "Scan") == 0);
}

bool heddle__is_host(const heddle__node *node) {
  if (node->kind != HEDDLE__NODE_OP || node->domain[0] == '\0') return false;
  const heddle__schema *schema = heddle__schema_find(node->domain, node->op, 0);
  return schema != NULL && heddle__schema_infer(schema) == heddle__infer_control;
}

bool heddle__runs_apart(const heddle__node *node) {
  return node->n_inner > 0 || heddle__is_host(node);
}

const heddle_graph *heddle__inner(const heddle__node *node, const char *name) {
  for (uint32_t i = 0; i < node->n_inner; i++)
    if (strcmp(node->inner[i].name, name) == 0) return node->inner[i].graph;
  return NULL;
}

static uint32_t count_of(const heddle__node *node, const char *name, uint32_t most) {
  int64_t n = heddle__attr_int(node, name, 0);
  return n < 0 ? 0 : n > most ? most : (uint32_t)n;
}

heddle__control heddle__control_of(const heddle__node *node) {
  heddle__control c = {0};
  const heddle_graph *body = heddle__inner(node, "body");
  c.own = node->op[0] == 'I' ? 1 : node->op[0] == 'L' ? 2 : 0;
  uint32_t rest = node->n_inputs > c.own ? node->n_inputs - c.own : 0;
  if (body == NULL) {
    c.n_captured = rest;
    return c;
  }
  c.n_captured = count_of(node, "captured", rest);
  rest -= c.n_captured;
  c.n_scanned = c.own == 0 ? count_of(node, "num_scan_inputs", rest) : 0;
  c.n_states = rest - c.n_scanned;
  uint32_t first = c.n_states + (c.own == 2 ? 1 : 0); /* a Loop's body gives the condition before all else */
  c.n_collected = body->n_heads > first ? body->n_heads - first : 0;
  return c;
}

static heddle_status check_graph(const heddle_graph *g, const heddle__node *node, const char *name, uint32_t args,
                                 uint32_t heads, heddle_error *err) {
  const heddle_graph *inner = heddle__inner(node, name);
  if (inner == NULL)
    return heddle__node_fail(g, node, err, HEDDLE_EFORMAT, "it has no graph '%s', which it is to run", name);
  if (inner->n_args != args)
    return heddle__node_fail(g, node, err, HEDDLE_EFORMAT, "its graph '%s' has %u inputs, and the node gives it %u",
                             name, inner->n_args, args);
  if (inner->n_heads >= heads) return HEDDLE_OK;
  return heddle__node_fail(g, node, err, HEDDLE_EFORMAT, "its graph '%s' has %u outputs, and the node needs %u of it",
                           name, inner->n_heads, heads);
}

heddle_status heddle__control_check(const heddle_graph *g, const heddle__node *node, heddle_error *err) {
  const heddle__control c = heddle__control_of(node);
  const uint32_t for_body = c.n_states + c.n_scanned + c.n_captured;
  heddle_status s = HEDDLE_OK;
  if (!HEDDLE_HAS_CONTROL) return s; /* no model is made of it */
  for (uint32_t i = c.own == 2 ? 2 : 0; i < node->n_inputs; i++)
    if (node->inputs[i].node == HEDDLE__ABSENT)
      return heddle__node_fail(g, node, err, HEDDLE_EFORMAT, "input %u is absent, and may not be", i);
  if (c.own == 1) {
    s = check_graph(g, node, "then_branch", c.n_captured, node->n_outputs, err);
    return s == HEDDLE_OK ? check_graph(g, node, "else_branch", c.n_captured, node->n_outputs, err) : s;
  }
  if (c.own == 2)
    return check_graph(g, node, "body", 2 + for_body, 1 + (node->n_outputs > c.n_states ? node->n_outputs : c.n_states),
                       err);
  if (c.n_scanned == 0 || c.n_scanned != heddle__attr_int(node, "num_scan_inputs", 0))
    return heddle__node_fail(g, node, err, HEDDLE_EFORMAT,
                             "num_scan_inputs is %lld, expected from 1 to the number of its inputs",
                             (long long)heddle__attr_int(node, "num_scan_inputs", 0));
  return check_graph(g, node, "body", for_body, node->n_outputs > c.n_states ? node->n_outputs : c.n_states, err);
}

heddle_status heddle__infer_control(const heddle_graph *g, const heddle__node *node, const heddle__known *const *inputs,
                                    heddle__known *outputs, int32_t *needs, heddle_error *err) {
  (void)inputs;
  (void)outputs;
  if (needs != NULL) *needs = 0; /* before a run, as where it is a value that is missing */
  return heddle__node_fail(g, node, err, HEDDLE_EUNSUPPORTED, "what it gives is known when it has run");
}
