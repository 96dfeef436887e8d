/* graph/validate.h: what a graph must keep once all of its parts have been read. Private to graph/. */
#ifndef HEDDLE_GRAPH_VALIDATE_H
#define HEDDLE_GRAPH_VALIDATE_H

#include "graph/graph.h"

/* An empty graph with one reference, or NULL with HEDDLE_ENOMEM in err. */
heddle_graph *heddle__graph_new(const char *source, heddle_error *err);

/* Sorts the names, which look-ups need; g->names. */
heddle_status heddle__graph_index(heddle_graph *g, heddle_error *err);

/* Inputs against arg_nodes, names, types, operators and their attributes, storage. HEDDLE_EUNSUPPORTED lists all nodes
 * whose operator is not known. */
heddle_status heddle__graph_validate(const heddle_graph *g, heddle_error *err);

/* Infers, as far as the shapes that the file gives allow, and compares with what it gives for operators' outputs. */
heddle_status heddle__graph_check_types(const heddle_graph *g, heddle_error *err);

#endif
