/* graph/words.h: how the rooms of graph/ word an error, and read a number of a rule: names from a file are shortened and made
 * printable, and a node is named by file, number, name and operator. */
#ifndef HEDDLE_GRAPH_WORDS_H
#define HEDDLE_GRAPH_WORDS_H

#include "graph/graph.h"

/* A name from a file as it may be printed: at most 60 characters, "..." in the middle of a longer one, '?' for what a
 * terminal should not get. Returns out. NULL: "". */
const char *heddle__show(const char *text, char out[64]);

/* Fails with "FILE: node 5 'conv1' (Conv): " before the words. */
heddle_status heddle__node_fail(const heddle_graph *g, const heddle__node *node, heddle_error *err,
                                heddle_status status, const char *format, ...) __attribute__((format(printf, 5, 6)));

/* The number of a rule for a dimension; -1 where the text is no whole number, or one above that limit. */
#define HEDDLE__MOST_DIMENSION INT64_C(4294967295)
static inline int64_t heddle__dimension_number(const char *text) {
  int64_t n = 0;
  if (*text == '\0') return -1;
  for (; *text != '\0'; text++) {
    if (*text < '0' || *text > '9') return -1;
    n = n * 10 + (*text - '0');
    if (n > HEDDLE__MOST_DIMENSION) return -1;
  }
  return n;
}

/* "float32 [1, 3, 8, 8]" into out. */
const char *heddle__type_words(heddle_dtype dtype, uint32_t ndim, const int64_t *shape, char out[128]);

#endif
