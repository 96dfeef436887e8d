/* graph/words.h: how the rooms of graph/ word an error: names from a file are shortened and made printable, and a node
 * is named by file, number, name and operator. */
#ifndef HEDDLE_GRAPH_WORDS_H
#define HEDDLE_GRAPH_WORDS_H

#include "graph/graph.h"

/* A name from a file as it may be printed: at most 60 characters, "..." in the middle of a longer one, '?' for what a
 * terminal should not get. Returns out. NULL: "". */
const char *heddle__show(const char *text, char out[64]);

/* Fails with "FILE: node 5 'conv1' (Conv): " before the words. */
heddle_status heddle__node_fail(const heddle_graph *g, const heddle__node *node, heddle_error *err,
                                heddle_status status, const char *format, ...) __attribute__((format(printf, 5, 6)));

/* "float32 [1, 3, 8, 8]" into out. */
const char *heddle__type_words(heddle_dtype dtype, uint32_t ndim, const int64_t *shape, char out[128]);

#endif
