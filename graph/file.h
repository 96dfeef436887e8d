/* graph/file.h: whole files in and out, with a limit that is looked at before anything is allocated. Private to graph/.
 */
#ifndef HEDDLE_GRAPH_FILE_H
#define HEDDLE_GRAPH_FILE_H

#include "heddle/graph.h"

/* The caller's limits (NULL, or members 0 or beyond its struct_size: defaults). */
void heddle__read_limits(const heddle_read_limits *given, uint64_t max_bytes, uint32_t max_nodes, uint32_t max_depth,
                         heddle_read_limits *out);

/* The same with the defaults of a graph: 1 GiB, 4,000,000 nodes, 64 levels; and of params: 16 GiB. */
void heddle__graph_limits(const heddle_read_limits *given, heddle_read_limits *out);
void heddle__params_limits(const heddle_read_limits *given, heddle_read_limits *out);

/* HEDDLE_ELIMIT where bytes is over max_bytes. */
heddle_status heddle__check_bytes(const char *name, uint64_t bytes, uint64_t max_bytes, heddle_error *err);

/* The bytes of a file that is a regular one; *out is freed with heddle__free. HEDDLE_EIO, HEDDLE_ELIMIT. */
heddle_status heddle__file_read(const char *path, uint64_t max_bytes, void **out, size_t *bytes, heddle_error *err);

/* Writes a file anew. HEDDLE_EIO. */
heddle_status heddle__file_write(const char *path, const void *data, size_t bytes, heddle_error *err);

#endif
