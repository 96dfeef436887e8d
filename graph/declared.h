/* graph/declared.h: what a graph declares of a value, against what the value is: the one comparison that reading,
 * planning and runs make, and its words. */
#ifndef HEDDLE_GRAPH_DECLARED_H
#define HEDDLE_GRAPH_DECLARED_H

#include "core/log.h"
#include "graph/graph.h"

/* "[N, 3, 224, ?]" into out; "of any rank" where no shape is declared. */
void heddle__declared_shape(const heddle__type *type, char *out, size_t size);

/* Whether a value contradicts its declaration: another dtype, rank, or dimension that is a number. A dimension that is a
 * symbol, or not given, may be any, and so may a shape that is a hint. Then declared gets "int8 [N]", and is "float64 [1, 3]". */
bool heddle__declared_differs(const heddle__type *type, heddle_dtype dtype, uint32_t ndim, const int64_t *shape,
                              char declared[200], char is[128]);

/* The same of a shape that is a hint. */
bool heddle__declared_misleads(const heddle__type *type, heddle_dtype dtype, uint32_t ndim, const int64_t *shape,
                               char declared[200], char is[128]);

/* Logs a warning where that is so of an output of a node. */
void heddle__declared_tell(const heddle__log *log, const heddle_graph *g, const heddle__node *node, uint32_t index,
                           heddle_dtype dtype, uint32_t ndim, const int64_t *shape);

/* HEDDLE_EFORMAT with a sentence that names output index of the node, where the value contradicts its declaration. */
heddle_status heddle__declared_check(const heddle_graph *g, const heddle__node *node, uint32_t index,
                                     heddle_dtype dtype, uint32_t ndim, const int64_t *shape, heddle_error *err);

#endif
