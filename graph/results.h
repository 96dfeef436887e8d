/* graph/results.h: what is known of a node's results before their types and shapes are inferred, by the lines RESULT and
 * SCALAR of operators/: for the ONNX reader, and for patterns that rewrite graphs of open shapes. */
#ifndef HEDDLE_GRAPH_RESULTS_H
#define HEDDLE_GRAPH_RESULTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct heddle__result {
  char op[27];
  uint8_t number;
  char attribute[16]; /* whose value is ONNX's number of the type where a node has it; "none" */
  int8_t type;        /* ONNX's number of a type; 0: not known; -1 - k: that of operand k */
  uint8_t rank;       /* a rule of operators.h */
} heddle__result;

/* The line of a result. Without one result 0 has the type of operand 0 and others have any; NULL where that may not be
 * taken to be so (needs_line). */
const heddle__result *heddle__result_find(const char *op, size_t number, bool needs_line);

/* A node's operands, as their owner knows them; -1: not known. */
typedef struct heddle__operands {
  const void *of;
  size_t count;
  bool keeps_dims;                              /* its attribute keepdims, or that it has none */
  int32_t axes;                                 /* how many its attribute axes names; -1: it has none */
  int32_t (*rank_of)(const void *of, size_t k); /* of operand k, which may be absent */
  int32_t (*length_of)(const void *of);         /* how many numbers operand 1 has */
} heddle__operands;

/* How many dimensions a result has; -1: that is not known. */
int32_t heddle__result_rank(const heddle__result *row, const heddle__operands *operands);

#endif
