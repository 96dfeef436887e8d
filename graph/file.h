/* graph/file.h: the limits of the readers of whole files. Private to graph/. */
#ifndef HEDDLE_GRAPH_FILE_H
#define HEDDLE_GRAPH_FILE_H

#include "core/whole_file.h"
#include "heddle/graph.h"

/* The caller's limits (NULL, or members 0 or beyond its struct_size: defaults). */
void heddle__read_limits(const heddle_read_limits *given, uint64_t max_bytes, uint32_t max_nodes, uint32_t max_depth,
                         heddle_read_limits *out);

/* The same with the defaults of a graph: 1 GiB, 4,000,000 nodes, 64 levels; and of params: 16 GiB. */
void heddle__graph_limits(const heddle_read_limits *given, heddle_read_limits *out);
void heddle__params_limits(const heddle_read_limits *given, heddle_read_limits *out);

#endif
