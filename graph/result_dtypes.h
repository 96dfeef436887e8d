/* graph/result_dtypes.h: the dtypes of all values of a graph, whatever its shapes. */
#ifndef HEDDLE_GRAPH_RESULT_DTYPES_H
#define HEDDLE_GRAPH_RESULT_DTYPES_H

#include "graph/graph.h"

/* *out receives one per entry, bits 0 where it does not follow; to be freed with heddle__free. given: those of the graph's
 * args where they have none of their own, or NULL. HEDDLE_ENOMEM. */
heddle_status heddle__result_dtypes(const heddle_graph *g, const heddle_dtype *given, heddle_dtype **out,
                                    heddle_error *err);

#endif
