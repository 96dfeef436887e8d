/* conformance/op_graph.h: small graphs that the kit makes of what a plugin can run, and what the reference says of any
 * part of them. A graph's nodes are lines as in op_case.h, each with one result, whose operands are wired together. */
#ifndef HEDDLE_CONFORMANCE_OP_GRAPH_H
#define HEDDLE_CONFORMANCE_OP_GRAPH_H

#include "op_case.h"

enum { GRAPH_NODES = 8, GRAPH_VALUES = GRAPH_NODES * (OP_IN + 1) };

/* A node of a graph. op "*" stands for every function of one element, "^" for the activations, "+" for the operators of
 * two elements. from has a letter for each operand: '.' one of its own, 'a' the result of the first node, 'b' of the second,
 * and so on, 'A' the first operand of the first node, and so on. */
typedef struct op_graph_node {
  const char *op;
  uint32_t opset;
  const char *text;
  const char *from;
} op_graph_node;

/* keep: the letters of results that leave the graph though nodes of it read them. */
typedef struct op_graph_line {
  const char *family;
  const char *keep;
  op_graph_node nodes[GRAPH_NODES];
} op_graph_line;
extern const op_graph_line op_graph_lines[];
extern const uint32_t op_graph_line_count;

/* Operators for "*", "^" and "+", by number: NULL behind the last. */
const op_line *op_graph_stand_in(char sign, uint32_t number);
/* The sign that a graph has, 0 where it has none. */
char op_graph_sign(const op_graph_line *line);
/* A graph of elementwise operators and products by chance, with texts that live as long as the process. */
void op_graph_random(uint32_t seed, op_graph_line *out);

typedef struct op_graph {
  kit *k;
  const op_graph_line *line;
  uint32_t n;
  op_line lines[GRAPH_NODES];
  op_case node[GRAPH_NODES];
  int32_t in[GRAPH_NODES][OP_IN]; /* the value of each operand, -1: absent */
  int32_t of_node[GRAPH_VALUES];  /* the node whose result a value is, -1: an operand of the graph */
  uint32_t owner[GRAPH_VALUES];   /* of an operand of the graph: node * OP_IN + operand */
  uint32_t n_values;
  double *x[GRAPH_NODES]; /* results, rounded to their types */
  bool leaves[GRAPH_NODES];
} op_graph;

/* Makes a graph with a stand-in (NULL where it has no sign), T as type, and values in it. known as op_read has it. False
 * where the reference does not take one of its nodes. op_graph_free ends it in either case. */
bool op_graph_make(kit *k, op_graph *g, const op_graph_line *line, const op_line *stand_in, char type, uint32_t known);
void op_graph_free(op_graph *g);

/* Some nodes of a graph as a region: the case has its operands and results, the region what a plugin is asked. */
typedef struct op_part {
  op_case c;
  op_line line;
  op_region r;
  char words[OP_WORDS];
  uint32_t of[OP_OUT]; /* the node that makes each result */
  heddle_pnode nodes[GRAPH_NODES];
  heddle_pvalue values[GRAPH_VALUES];
  heddle_pattr attrs[GRAPH_NODES][OP_ATTRS];
  int32_t node_in[GRAPH_NODES][OP_IN], node_out[GRAPH_NODES];
} op_part;

/* False where it has more operands or results than a case. Borrows from the graph. */
bool op_part_make(const op_graph *g, const bool *in, op_part *out);

/* What the nodes give one after the other, computed in float64 without rounding between them where the reference can, and
 * how far each result may lie off: the bound of its own operator, and the change that its operands' bounds make,
 * measured by moving them. want as in op_reference, one for each result of the part. */
bool op_part_reference(op_graph *g, const bool *in, const op_part *p, op_want *want);

#endif
