/* What partition proposes for small random graphs: indices that are there, each in one proposal, connected, convex, and
 * taken by query. The graphs are of elementwise operators and a product, since these are what plugins join. */
#include "operators/operators.h"
#include "conformance/op_each.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NODES = 14, VALUES = NODES + 4, GRAPHS = 24 };

typedef struct graph {
  kit *k;
  heddle_pregion region;
  heddle_pnode nodes[NODES];
  heddle_pvalue values[VALUES];
  int32_t in[NODES][2], out[NODES];
  int32_t inputs[VALUES], outputs[VALUES];
  char names[NODES][16];
  bool used[NODES];
  uint32_t proposals;
} graph;

static const int64_t shape[] = {6, 6};

static uint32_t next(uint32_t *state) {
  *state = *state * 1664525U + 1013904223U;
  return *state >> 8;
}

/* Nodes n take values 0 to 3 (operands of the graph) and results 4 + i of nodes before them. */
static void make(graph *g, kit *k, uint32_t seed) {
  static const char *const ops[] = {"Add", "Mul", "Sub", "Max", "MatMul", "Relu", "Tanh", "Sigmoid", "Exp", "Neg"};
  memset(g, 0, sizeof *g);
  g->k = k;
  for (uint32_t v = 0; v < VALUES; v++)
    g->values[v] =
        (heddle_pvalue){.struct_size = sizeof g->values[v], .dtype = op_dtype('f'), .shape = shape, .ndim = 2};
  uint32_t readers[VALUES] = {0};
  for (uint32_t i = 0; i < NODES; i++) {
    const uint32_t op = next(&seed) % 10, arity = op < 5 ? 2 : 1;
    heddle_pnode *n = &g->nodes[i];
    snprintf(g->names[i], sizeof g->names[i], "kit_node%u", i);
    *n = (heddle_pnode){.struct_size = sizeof *n, .opset = 14, .domain = "", .op = ops[op], .name = g->names[i]};
    const heddle__version *version = heddle__version_find(false, ops[op], 14);
    n->since_version = version != NULL ? version->opset_first : 0;
    n->attrs.stride = sizeof(heddle_pattr);
    for (uint32_t j = 0; j < arity; j++) {
      const uint32_t back = next(&seed) % 4;
      const uint32_t v = i == 0      ? next(&seed) % 4
                         : back == 0 ? next(&seed) % (4 + i)
                                     : 3 + i - next(&seed) % (i < 3 ? i : 3);
      g->in[i][j] = (int32_t)v;
      readers[v]++;
    }
    g->out[i] = (int32_t)(4 + i);
    n->inputs = g->in[i];
    n->outputs = &g->out[i];
    n->n_inputs = arity;
    n->n_outputs = 1;
  }
  g->region = (heddle_pregion){.struct_size = sizeof g->region, .inputs = g->inputs, .outputs = g->outputs};
  g->region.nodes = (heddle_parray){g->nodes, NODES, sizeof g->nodes[0]};
  g->region.values = (heddle_parray){g->values, VALUES, sizeof g->values[0]};
  for (uint32_t v = 0; v < 4; v++)
    if (readers[v] > 0) g->inputs[g->region.n_inputs++] = (int32_t)v;
  for (uint32_t v = 4; v < VALUES; v++)
    if (readers[v] == 0 || next(&seed) % 6 == 0) g->outputs[g->region.n_outputs++] = (int32_t)v;
}

static bool reads(const graph *g, uint32_t node, uint32_t of) {
  for (uint32_t j = 0; j < g->nodes[node].n_inputs; j++)
    if (g->in[node][j] == g->out[of]) return true;
  return false;
}

static bool connected(const graph *g, const bool *in, uint32_t count) {
  bool met[NODES] = {false};
  uint32_t n = 0;
  for (uint32_t i = 0; i < NODES && n == 0; i++)
    if (in[i]) met[i] = true, n = 1;
  for (bool grew = true; grew;) {
    grew = false;
    for (uint32_t i = 0; i < NODES; i++)
      for (uint32_t j = 0; j < NODES; j++)
        if (in[i] && in[j] && met[i] && !met[j] && (reads(g, i, j) || reads(g, j, i))) met[j] = grew = true, n++;
  }
  return n == count;
}

/* No node outside that both follows the set and comes before it. */
static bool convex(const graph *g, const bool *in) {
  bool after[NODES] = {false}, before[NODES] = {false};
  for (uint32_t i = 0; i < NODES; i++)
    for (uint32_t j = 0; j < i; j++)
      if (reads(g, i, j) && (in[j] || after[j])) after[i] = true;
  for (uint32_t i = NODES; i-- > 0;)
    for (uint32_t j = i + 1; j < NODES; j++)
      if (reads(g, j, i) && (in[j] || before[j])) before[i] = true;
  for (uint32_t i = 0; i < NODES; i++)
    if (!in[i] && after[i] && before[i]) return false;
  return true;
}

static heddle_status ignore(void *sink, const heddle_poffer *offer, heddle_error *err) {
  (void)offer;
  (void)err;
  ++*(uint32_t *)sink;
  return HEDDLE_OK;
}

/* The proposal as a region of its own. */
static void ask(const graph *g, const bool *in) {
  heddle_pnode nodes[NODES];
  int32_t inputs[VALUES], outputs[VALUES];
  heddle_pregion r = {.struct_size = sizeof r, .values = g->region.values, .inputs = inputs, .outputs = outputs};
  uint32_t n = 0, offers = 0;
  for (uint32_t i = 0; i < NODES; i++)
    if (in[i]) nodes[n++] = g->nodes[i];
  r.nodes = (heddle_parray){nodes, n, sizeof nodes[0]};
  for (uint32_t v = 0; v < VALUES; v++) {
    bool inside = v >= 4 && in[v - 4], read = false, outside = false;
    for (uint32_t i = 0; i < NODES; i++)
      for (uint32_t j = 0; j < g->nodes[i].n_inputs; j++)
        if (g->in[i][j] == (int32_t)v) *(in[i] ? &read : &outside) = true;
    for (uint32_t o = 0; o < g->region.n_outputs; o++) outside = outside || g->outputs[o] == (int32_t)v;
    if (!inside && read) inputs[r.n_inputs++] = (int32_t)v;
    if (inside && outside) outputs[r.n_outputs++] = (int32_t)v;
  }
  heddle_error err = {0};
  const heddle_status s = g->k->t.op.query(g->k->instance, g->k->index, &r, ignore, &offers, &err);
  if (s != HEDDLE_OK || offers == 0)
    kit_fail(g->k, "partition proposed %u nodes together, the last '%s', and query refuses them: %.300s", n,
             nodes[n - 1].name, err.text);
}

static heddle_status take(void *sink, const uint32_t *nodes, uint32_t count, heddle_error *err) {
  graph *g = sink;
  bool in[NODES] = {false};
  (void)err;
  if (count == 0 || nodes == NULL) kit_fail(g->k, "partition proposed no nodes");
  for (uint32_t i = 0; i < count; i++) {
    if (nodes[i] >= NODES) kit_fail(g->k, "partition proposed node %u of %d", nodes[i], NODES);
    if (in[nodes[i]]) kit_fail(g->k, "partition proposed node %u twice in one proposal", nodes[i]);
    if (g->used[nodes[i]]) kit_fail(g->k, "partition proposed node %u in two proposals", nodes[i]);
    in[nodes[i]] = g->used[nodes[i]] = true;
  }
  if (!connected(g, in, count)) kit_fail(g->k, "partition proposed %u nodes that are not connected", count);
  if (!convex(g, in)) kit_fail(g->k, "partition proposed %u nodes that a path leaves and comes back to", count);
  ask(g, in);
  g->proposals++;
  return HEDDLE_OK;
}

void op_partition(kit *k) {
  uint32_t all = 0;
  heddle_pdevice *dev = op_open_if_needed(k);
  if (k->t.op.partition == NULL) kit_skip(k, "the plugin proposes no regions");
  graph *g = malloc(sizeof *g);
  if (g == NULL) kit_fail(k, "the kit has no memory");
  for (uint32_t seed = 1; seed <= GRAPHS; seed++) {
    make(g, k, seed * 7919);
    heddle_error err = {0};
    const heddle_status s = k->t.op.partition(k->instance, k->index, &g->region, take, g, &err);
    k->err = err;
    if (s == HEDDLE_ENEEDSOPEN) kit_skip(k, "partition needs an open device");
    kit_ok(k, s, "op.partition");
    all += g->proposals;
  }
  free(g);
  if (dev != NULL) kit_close(k, dev);
  kit_note(k, "%u proposals for %d graphs", all, GRAPHS);
}
