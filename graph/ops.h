/* graph/ops.h: the operators that libheddle's own table (opschema.c) does not have, which operators/ops.c defines from
 * plugins/common/more. A build may leave them out (HEDDLE_RARE_OPERATORS): then none is found. */
#ifndef HEDDLE_GRAPH_OPS_H
#define HEDDLE_GRAPH_OPS_H

#include "core/parts.h"
#include "graph/opschema.h"

/* Behind words about an operator that is not known. */
#if HEDDLE_HAS_RARE_OPERATORS
#define HEDDLE__NO_RARE_OPERATORS ""
#else
#define HEDDLE__NO_RARE_OPERATORS " (this build of Heddle has no rare operators: built with HEDDLE_RARE_OPERATORS=OFF)"
#endif

#if HEDDLE_HAS_RARE_OPERATORS
/* An operator of domain "" in an opset (0: any), living for ever; NULL where there is none. Any thread. */
const heddle__schema *heddle__ops_find(const char *op, uint32_t opset);

/* The bytes of output `which` of a node, the dtypes and shapes of whose outputs are in outs, from inputs that are all
 * known, on the calling thread. data: outs[which].bytes, to be filled; the other outputs are made and dropped.
 * HEDDLE_EUNSUPPORTED where no kernel does it, HEDDLE_ENOMEM; without words. Any
 * thread. */
heddle_status heddle__ops_compute(const heddle_graph *g, const heddle__node *node, const heddle__known *const *inputs,
                                  const heddle__known *outs, uint32_t which, void *data);
#else
static inline const heddle__schema *heddle__ops_find(const char *op, uint32_t opset) {
  (void)op, (void)opset;
  return NULL;
}

static inline heddle_status heddle__ops_compute(const heddle_graph *g, const heddle__node *node,
                                                const heddle__known *const *inputs, const heddle__known *outs,
                                                uint32_t which, void *data) {
  (void)g, (void)node, (void)inputs, (void)outs, (void)which, (void)data;
  return HEDDLE_EUNSUPPORTED;
}
#endif

#endif
