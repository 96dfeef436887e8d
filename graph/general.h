/* graph/general.h: what operators compute by the general kernels (plugins/common/more), which infer what comes out of them
 * too. A build may leave them out (HEDDLE_RARE_OPERATORS): operators that are inferred so are not found then. */
#ifndef HEDDLE_GRAPH_GENERAL_H
#define HEDDLE_GRAPH_GENERAL_H

#include "core/parts.h"
#include "graph/opschema.h"

/* Behind words about an operator that is not known. */
#if HEDDLE_HAS_RARE_OPERATORS
#define HEDDLE__NO_RARE_OPERATORS ""

/* The bytes of output `which` of a node, the dtypes and shapes of whose outputs are in outs, from inputs that are all
 * known, on the calling thread. data: outs[which].bytes, to be filled; the other outputs are made and dropped.
 * HEDDLE_EUNSUPPORTED where no kernel does it, HEDDLE_ENOMEM; without text. Any thread. */
heddle_status heddle__general_compute(const heddle_graph *g, const heddle__node *node,
                                      const heddle__known *const *inputs, const heddle__known *outs, uint32_t which,
                                      void *data);
#else
#define HEDDLE__NO_RARE_OPERATORS " (this build of Heddle has no rare operators: built with HEDDLE_RARE_OPERATORS=OFF)"

static inline heddle_status heddle__general_compute(const heddle_graph *g, const heddle__node *node,
                                                    const heddle__known *const *inputs, const heddle__known *outs,
                                                    uint32_t which, void *data) {
  (void)g, (void)node, (void)inputs, (void)outs, (void)which, (void)data;
  return HEDDLE_EUNSUPPORTED;
}
#endif

#endif
