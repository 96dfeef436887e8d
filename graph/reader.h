/* graph/reader.h: what the files of the JSON reader share: the state of one reading, and how a complaint is worded.
 * Private to graph/. */
#ifndef HEDDLE_GRAPH_READER_H
#define HEDDLE_GRAPH_READER_H

#include "graph/graph.h"

typedef struct heddle__reader {
  heddle_graph *g;  /* being filled; released by the caller that began, also when half-built */
  const char *name; /* the file's, for errors */
  uint32_t max_nodes;
  const json_t *root;
  const json_t *row_ptr; /* checked: n_nodes + 1 integers, not decreasing, the first 0 */
  heddle_error *err;
} heddle__reader;

/* The text's value, or the reason: nesting is measured before anything recurses, a key given twice is refused, and
 * what follows the top-level key "metadata" may be anything, since TVM's reader stops there. */
heddle_status heddle__json_parse(const char *text, size_t bytes, const char *name, uint32_t max_depth, json_t **out,
                                 heddle_error *err);

/* A graph of a document, which it takes over in any case; name is the file's. */
heddle_status heddle__graph_from_json(json_t *root, const char *name, uint32_t max_nodes, heddle_graph **out,
                                      heddle_error *err);

/* The same for a graph that is an attribute of a node of outer, whose name and opset it gets. */
heddle_status heddle__graph_from_inner(json_t *root, const heddle_graph *outer, uint32_t max_nodes, heddle_graph **out,
                                       heddle_error *err);

/* Fails with "FILE: " before the words. */
heddle_status heddle__reader_fail(heddle__reader *r, heddle_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* "an array", "the number 1.5", "the string 'abc'" into out, for "found ...". NULL: "nothing". */
const char *heddle__json_words(const json_t *value, char out[64]);

/* An integer in [min, max], or false. */
bool heddle__json_int(const json_t *value, int64_t min, int64_t max, int64_t *out);

/* g->nodes, from "nodes". After node_row_ptr has been checked. */
heddle_status heddle__read_nodes(heddle__reader *r, const json_t *nodes);

/* An entry [node, index] or [node, index, version] of a node before `before`; where names its place, such as
 * "nodes[3].inputs[0]". absent: [-1, 0, 0] is legal. */
heddle_status heddle__read_entry(heddle__reader *r, const json_t *value, uint32_t before, bool absent,
                                 const char *where, heddle__entry *out);

/* node->attrs, from a JSON object and the operator's schema. Unknown operators get none. */
heddle_status heddle__read_attrs(heddle__reader *r, uint32_t id, const json_t *object);

/* g->types, storage_id, device_index and storage_scope, from the top-level "attrs". */
heddle_status heddle__read_types(heddle__reader *r, const json_t *attrs);

#endif
