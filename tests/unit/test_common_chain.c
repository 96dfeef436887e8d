/* Chains: which nodes are proposed together, that others are left alone, and what a region is read as. The functions
 * are called as a stranger's plugin would call them. */
#include "op_case.h"

#include "plugins/common/chain.c"
#include "plugins/common/chain_propose.c"
#include "plugins/common/expr.c"
#include "plugins/common/region.c"

enum { MOST_VALUES = 64, MOST_IN = 10 };

/* A region under construction. Values are numbered as they are added. */
typedef struct graph {
  heddle_pregion region;
  heddle_pnode nodes[MOST_VALUES];
  heddle_pvalue values[MOST_VALUES];
  int64_t shapes[MOST_VALUES][4];
  int32_t in[MOST_VALUES][MOST_IN], out[MOST_VALUES], inputs[MOST_VALUES], outputs[MOST_VALUES];
} graph;

static void graph_init(graph *g) {
  memset(g, 0, sizeof *g);
  g->region = (heddle_pregion){.struct_size = sizeof g->region, .inputs = g->inputs, .outputs = g->outputs};
  g->region.nodes = (heddle_parray){g->nodes, 0, sizeof g->nodes[0]};
  g->region.values = (heddle_parray){g->values, 0, sizeof g->values[0]};
}

static int32_t add_value(graph *g, int32_t rows) {
  const int32_t v = (int32_t)g->region.values.count++;
  g->shapes[v][0] = rows;
  g->shapes[v][1] = 5;
  g->values[v] = (heddle_pvalue){.struct_size = sizeof g->values[v], .dtype = F32, .shape = g->shapes[v], .ndim = 2};
  return v;
}

static int32_t add_input(graph *g, int32_t rows) {
  return g->inputs[g->region.n_inputs++] = add_value(g, rows);
}

/* A node of [4, 5] with up to three operands (-1: none). */
static int32_t add_node(graph *g, const char *op, int32_t a, int32_t b, int32_t c) {
  const uint64_t i = g->region.nodes.count++;
  const int32_t list[3] = {a, b, c};
  heddle_pnode *n = &g->nodes[i];
  *n = (heddle_pnode){.struct_size = sizeof *n, .opset = 17, .domain = "", .op = op, .name = "n"};
  n->attrs = (heddle_parray){NULL, 0, sizeof(heddle_pattr)};
  for (int k = 0; k < 3; k++)
    if (list[k] >= 0) g->in[i][n->n_inputs++] = list[k];
  g->out[i] = add_value(g, 4);
  n->inputs = g->in[i];
  n->outputs = &g->out[i];
  n->n_outputs = 1;
  return g->out[i];
}

static void add_output(graph *g, int32_t v) {
  g->outputs[g->region.n_outputs++] = v;
}

typedef struct proposals {
  uint32_t count, nodes[16][MOST_VALUES], lengths[16];
} proposals;

static heddle_status hear(void *sink, const uint32_t *nodes, uint32_t count, heddle_error *err) {
  proposals *p = sink;
  (void)err;
  p->lengths[p->count] = count;
  memcpy(p->nodes[p->count++], nodes, count * sizeof *nodes);
  return HEDDLE_OK;
}

static proposals ask(graph *g, unsigned char *taken) {
  proposals p = {0};
  fake_host host;
  heddle_error err;
  fake_host_init(&host);
  if (heddle_chain_propose(&host.table, &g->region, taken, hear, &p, &err) != HEDDLE_OK) fail_msg("%s", err.text);
  assert_int_equal(atomic_load(&host.live), 0);
  return p;
}

static void expect_chain(const proposals *p, uint32_t i, uint32_t count, const uint32_t *nodes) {
  assert_true(i < p->count);
  assert_int_equal(p->lengths[i], count);
  assert_memory_equal(p->nodes[i], nodes, count * sizeof *nodes);
}

/* x -> Add -> Relu -> Softmax -> Mul -> Tanh, and Tanh's value is used twice: by Neg and by Abs, which are outputs. */
static void chains_end_at_other_operators_and_forks(void **state) {
  graph g;
  unsigned char taken[16] = {0};
  (void)state;
  graph_init(&g);
  const int32_t x = add_input(&g, 4), row = add_input(&g, 1);
  int32_t v = add_node(&g, "Add", x, row, -1);
  v = add_node(&g, "Relu", v, -1, -1);
  v = add_node(&g, "Softmax", v, -1, -1);
  v = add_node(&g, "Mul", v, row, -1);
  v = add_node(&g, "Tanh", v, -1, -1);
  add_output(&g, add_node(&g, "Neg", v, -1, -1));
  add_output(&g, add_node(&g, "Abs", v, -1, -1));
  proposals p = ask(&g, taken);
  assert_int_equal(p.count, 2);
  expect_chain(&p, 0, 2, (uint32_t[]){3, 4});
  expect_chain(&p, 1, 2, (uint32_t[]){0, 1});
  assert_memory_equal(taken, ((unsigned char[16]){1, 1, 0, 1, 1}), 16);
}

static void nodes_that_are_taken_are_left_alone(void **state) {
  graph g;
  unsigned char taken[16] = {0, 1};
  (void)state;
  graph_init(&g);
  int32_t v = add_input(&g, 4);
  for (int i = 0; i < 6; i++) v = add_node(&g, "Relu", v, -1, -1);
  add_output(&g, v);
  proposals p = ask(&g, taken);
  assert_int_equal(p.count, 1);
  expect_chain(&p, 0, 4, (uint32_t[]){2, 3, 4, 5});
  assert_memory_equal(taken, ((unsigned char[16]){0, 1, 1, 1, 1, 1}), 16);
  assert_int_equal(ask(&g, taken).count, 0);
}

/* A diamond is one chain; an output on the way, another type or another shape are not taken in. */
static void what_is_needed_outside_stays(void **state) {
  graph g;
  unsigned char taken[16] = {0};
  (void)state;
  graph_init(&g);
  const int32_t x = add_input(&g, 4);
  const int32_t a = add_node(&g, "Neg", x, -1, -1), b = add_node(&g, "Sigmoid", a, -1, -1);
  add_output(&g, add_node(&g, "Mul", a, b, -1));
  proposals p = ask(&g, taken);
  expect_chain(&p, 0, 3, (uint32_t[]){0, 1, 2});
  add_output(&g, b);
  memset(taken, 0, sizeof taken);
  assert_int_equal(ask(&g, taken).count, 0); /* a is used by two then */
  g.region.n_outputs = 1;
  g.shapes[b][0] = 1; /* broadcast by Mul */
  memset(taken, 0, sizeof taken);
  assert_int_equal(ask(&g, taken).count, 0);
  g.shapes[b][0] = 4;
  g.values[a].dtype = g.values[x].dtype = I32;
  assert_int_equal(ask(&g, taken).count, 0);
  g.in[1][0] = 99;
  fake_host host;
  heddle_error err;
  fake_host_init(&host);
  assert_int_equal(heddle_chain_propose(&host.table, &g.region, taken, hear, &p, &err), HEDDLE_EINVAL);
}

/* What is proposed can be read, however many operands there are; x0 .. are in order of use. */
static void proposals_keep_the_limits(void **state) {
  graph g;
  heddle_chain chain;
  heddle_error err;
  unsigned char taken[MOST_VALUES] = {0};
  (void)state;
  graph_init(&g);
  int32_t v = add_input(&g, 4);
  for (int i = 0; i < 20; i++) v = add_node(&g, "Add", v, add_input(&g, i % 2 == 0 ? 4 : 1), -1);
  add_output(&g, v);
  proposals p = ask(&g, taken);
  assert_int_equal(p.count, 3); /* eight inputs: the chain so far and seven more */
  expect_chain(&p, 0, 7, (uint32_t[]){13, 14, 15, 16, 17, 18, 19});
  expect_chain(&p, 1, 7, (uint32_t[]){6, 7, 8, 9, 10, 11, 12});
  expect_chain(&p, 2, 6, (uint32_t[]){0, 1, 2, 3, 4, 5});
  assert_int_equal(heddle_chain_read(&g.region, &chain, &err), HEDDLE_EUNSUPPORTED); /* all twenty */
  assert_non_null(strstr(err.text, "8 inputs"));

  graph_init(&g);
  const int32_t x = add_input(&g, 4), low = add_value(&g, 1), row = add_input(&g, 1);
  const float bound = -0.5f;
  g.inputs[g.region.n_inputs++] = low;
  g.shapes[low][1] = 1;
  g.values[low].data = &bound;
  v = add_node(&g, "Sub", row, x, -1);
  v = add_node(&g, "Clip", v, low, -1);
  add_output(&g, add_node(&g, "Mul", v, x, -1));
  assert_int_equal(heddle_chain_read(&g.region, &chain, &err), HEDDLE_OK);
  uint32_t flags[3];
  heddle_chain_flags(&g.region, &chain, flags);
  assert_memory_equal(flags, ((uint32_t[]){0, 0, HEDDLE_INPUT_ABSORBED}), sizeof flags);
  assert_int_equal(chain.program.n_inputs, 2);
  assert_true(chain.slot[0] == 1 && chain.slot[1] == 0 && chain.program.n_numbers == 2);
  assert_true(chain.program.numbers[0] == bound && isinf(chain.program.numbers[1]) && chain.count == 20);
  assert_true(chain.kind[0] == HEDDLE_CHAIN_WALKED && chain.kind[1] == HEDDLE_CHAIN_DENSE && chain.dims == 2);
  assert_true(chain.stride[0][0] == 0 && chain.stride[0][1] == 1 && chain.stride[1][0] == 5);
  assert_true(heddle_chain_in_place(&g.region, &chain, 1) && !heddle_chain_in_place(&g.region, &chain, 0));
  add_output(&g, v); /* two results */
  assert_int_equal(heddle_chain_read(&g.region, &chain, &err), HEDDLE_EUNSUPPORTED);
}

CASES(CASE(chains_end_at_other_operators_and_forks), CASE(nodes_that_are_taken_are_left_alone),
      CASE(what_is_needed_outside_stays), CASE(proposals_keep_the_limits))
