/* graph/validate.h: what a graph must keep once all of its parts have been read. Private to graph/. */
#ifndef HEDDLE_GRAPH_VALIDATE_H
#define HEDDLE_GRAPH_VALIDATE_H

#include "graph/graph.h"

/* An empty graph with one reference, or NULL with HEDDLE_ENOMEM in err. */
heddle_graph *heddle__graph_new(const char *source, heddle_error *err);

/* Sorts the names, which look-ups need (g->names), and lays out the shapes of inputs and outputs as callers ask for them. */
heddle_status heddle__graph_index(heddle_graph *g, heddle_error *err);

/* Lays out what was found of shapes after that. */
heddle_status heddle__graph_spread_shapes(heddle_graph *g, heddle_error *err);

/* Inputs against arg_nodes, names, types, operators and their attributes, storage. HEDDLE_EUNSUPPORTED lists all nodes
 * whose operator is not known. */
heddle_status heddle__graph_validate(heddle_graph *g, heddle_error *err);

/* Infers, as far as the shapes that the file gives allow, and compares with what it gives for operators' outputs. Outputs of
 * the graph without a type get what is known of it. */
heddle_status heddle__graph_check_types(heddle_graph *g, heddle_error *err);

#endif
