/* graph/ops.h: the operators that libheddle's own table (opschema.c) does not have, which libheddle_ops.so beside libheddle
 * defines; opened when a graph has one, or when a shape is computed by a rarer operator.
 * Both are of one build: the version is compared, and the table has no other protection. */
#ifndef HEDDLE_GRAPH_OPS_H
#define HEDDLE_GRAPH_OPS_H

#include "graph/opschema.h"

typedef struct heddle__ops_table {
  const char *version;

  /* An operator of domain "" in an opset (0: any), living for ever; NULL where there is none. Any thread. */
  const heddle__schema *(*find)(const char *op, uint32_t opset);

  /* The bytes of output `which` of a node, the dtypes and shapes of whose outputs are in outs, from inputs that are all
   * known, on the calling thread. data: outs[which].bytes, to be filled; the other outputs are made and dropped.
   * HEDDLE_EUNSUPPORTED where no kernel does it, HEDDLE_ENOMEM; without words. Any thread. */
  heddle_status (*compute)(const heddle_graph *g, const heddle__node *node, const heddle__known *const *inputs,
                           const heddle__known *outs, uint32_t which, void *data);
} heddle__ops_table;

/* What libheddle_ops.so gives, by heddle_ops_entry(NULL); NULL where the library is not there or of another version. Any
 * thread. */
const heddle__ops_table *heddle__ops(void);

#endif
