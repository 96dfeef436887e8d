/* graph/opschema.h: what a graph knows of an operator: its definition (operators/operators.h), the checks that need
 * nothing else, and how to infer the outputs. */
#ifndef HEDDLE_GRAPH_OPSCHEMA_H
#define HEDDLE_GRAPH_OPSCHEMA_H

#include "graph/graph.h"
#include "operators/operators.h"

/* A value during inference: dtype and shape with all dimensions known; data where its bytes are known on the host. */
typedef struct heddle__known {
  heddle_dtype dtype;
  uint32_t ndim;
  int64_t shape[HEDDLE__MAX_NDIM];
  const void *data; /* row-major, or NULL */
  uint64_t bytes;   /* dtype and shape together; filled by the caller of infer after it */
} heddle__known;

/* Infers all outputs of a node from its inputs (NULL for an absent one). The error says which node, which input, what
 * was expected. HEDDLE_EUNSUPPORTED when it needs the bytes of an input that has none (data == NULL): needs, which may
 * be NULL, then gets that input's position. */
typedef heddle_status (*heddle__infer_fn)(const heddle_graph *g, const heddle__node *node,
                                          const heddle__known *const *inputs, heddle__known *outputs, int32_t *needs,
                                          heddle_error *err);

/* The definition of an operator in a range of opsets. */
typedef heddle__version heddle__schema;

/* The inference of a definition. */
heddle__infer_fn heddle__schema_infer(const heddle__schema *schema);

/* NULL where there is none. opset 0 matches any. */
const heddle__schema *heddle__schema_find(const char *domain, const char *op, uint32_t opset);

/* Whether a node's output is its first input's bytes: a view by its schema, __nop and __copy. */
bool heddle__node_is_view(const heddle_graph *g, const heddle__node *n);

/* "Add, Concat, ..." of domain "" in an opset, cut where it is too long. */
void heddle__schema_names(uint32_t opset, char *out, size_t size);

/* HEDDLE_EFORMAT: the operator has no attribute of that name in the graph's opset. */
heddle_status heddle__schema_no_attr(const heddle__schema *schema, const heddle_graph *g, const heddle__node *node,
                                     const char *name, heddle_error *err);

/* Checks arity and attribute names and kinds of a node, and that flags are 0 or 1; used by validate. */
heddle_status heddle__schema_check(const heddle__schema *schema, const heddle_graph *g, const heddle__node *node,
                                   heddle_error *err);

/* Bytes of a tensor, checked (sub-byte types rounded up to a byte an element in TVM graphs; int4 is refused by
 * validate). HEDDLE_ELIMIT on overflow. */
heddle_status heddle__tensor_bytes(heddle_dtype dtype, uint32_t ndim, const int64_t *shape, uint64_t *out,
                                   heddle_error *err);

/* The dtype of a name in graph JSON, "float32"; bool is (6, 8, 1). heddle__dtype_name (core/tensor.h) is its inverse. */
heddle_status heddle__dtype_parse(const char *text, heddle_dtype *out, heddle_error *err);

/* Whether values of a graph may have the dtype: HEDDLE_EUNSUPPORTED for handles and the like, and for types of 4 and 2 bits in
 * TVM's graphs. */
heddle_status heddle__dtype_usable(heddle_dtype dtype, bool takes_narrow, heddle_error *err);

/* Whether it is of libheddle's own table, and not of operators/, whose kernels fold. */
bool heddle__schema_is_own(const heddle__schema *schema);

/* seed.c: the graph with an attribute seed for each random operator that has none; the graph itself where there is no such, or
 * seed is 0. */
heddle_status heddle__graph_seed(const heddle_graph *g, uint64_t seed, heddle_graph **out, heddle_error *err);

/* control.c: an operator that runs graphs: If, Loop or Scan. */
bool heddle__is_control(const heddle__node *node);

/* An operator of texts or sequences, which the host carries out between stages (operators/object.def); and one of either
 * kind. */
bool heddle__is_host(const heddle__node *node);
bool heddle__runs_apart(const heddle__node *node);

/* How many inputs a Loop or Scan has for its body beside what it does itself: states (kept from one iteration to the
 * next), for Scan scanned ones, and captured ones, which are the last; and how many of its body's outputs are collected.
 * Of an If all inputs but the first are captured. */
typedef struct heddle__control {
  uint32_t own; /* inputs before the states: If 1, Loop 2, Scan 0 */
  uint32_t n_states, n_scanned, n_captured;
  uint32_t n_collected;
} heddle__control;
heddle__control heddle__control_of(const heddle__node *node);
const heddle_graph *heddle__inner(const heddle__node *node, const char *name); /* NULL: it has none of that name */

/* Whether the node has its graphs, with as many inputs and outputs as it needs them to have. HEDDLE_EFORMAT. */
heddle_status heddle__control_check(const heddle_graph *g, const heddle__node *node, heddle_error *err);

#endif
