/* generate/gguf_build.h: a graph that is being written as JSON, and its parameters. Nodes are numbers; after a failure, which
 * is in status, they are 0. */
#ifndef HEDDLE_GENERATE_GGUF_BUILD_H
#define HEDDLE_GENERATE_GGUF_BUILD_H

#include "core/sheet.h"
#include "generate/gguf.h"
#include "graph/graph.h"

typedef struct heddle__gguf_build {
  heddle__gguf *file;
  heddle_error *err;
  heddle_status status;
  heddle__sheet nodes, types, shapes, args, heads, rows;
  uint32_t n, n_results, n_args, n_heads, room; /* room: of params->items */
  heddle_params *params;                        /* their maps: the file */
} heddle__gguf_build;

/* Opens, maps and parses the file. After HEDDLE_OK finish follows, which gives the graph unless something failed. */
heddle_status heddle__gguf_open(heddle_context *ctx, const char *path, const heddle_model_options *options,
                                heddle__gguf_build *b, heddle_error *err);
heddle_status heddle__gguf_finish(heddle__gguf_build *b, const char *path, heddle_graph **graph,
                                  heddle_params **params);

/* Inputs: of the run; a tensor of the file, [rows, columns] or with columns 0 [rows], as float32; constants. */
uint32_t heddle__gguf_input(heddle__gguf_build *b, const char *name, const char *dtype, const char *shape);
uint32_t heddle__gguf_weight(heddle__gguf_build *b, const char *name, int64_t rows, int64_t columns);
/* A matrix of the file [rows, columns] as it lies there: float32, form NULL, or bytes of blocks of a form. Its product with x,
 * whose rows are columns long, plus what is added to each row (NULL: nothing); and its rows as float32. */
typedef struct heddle__gguf_matrix {
  uint32_t node;
  const char *form;
  int64_t rows, columns;
} heddle__gguf_matrix;
heddle__gguf_matrix heddle__gguf_matrix_of(heddle__gguf_build *b, const char *name, int64_t rows, int64_t columns);
uint32_t heddle__gguf_product(heddle__gguf_build *b, const char *name, uint32_t x, heddle__gguf_matrix w,
                              const uint32_t *bias);
uint32_t heddle__gguf_rows(heddle__gguf_build *b, heddle__gguf_matrix w, uint32_t indices);
uint32_t heddle__gguf_wholes(heddle__gguf_build *b, const int64_t *values,
                             uint32_t n); /* n 0: one, without a dimension */
uint32_t heddle__gguf_real_constant(heddle__gguf_build *b, float value);
uint32_t heddle__gguf_table(heddle__gguf_build *b, const int64_t shape[2], float **out); /* to be filled */

/* A node; name NULL: one of its own. attrs: members of JSON. n inputs follow, uint32_t. */
uint32_t heddle__gguf_node(heddle__gguf_build *b, const char *op, const char *name, const char *attrs, int n, ...);
/* The same of domain "heddle", with so many results; others read the first. Result i of several is called NAME:i. */
uint32_t heddle__gguf_own_node(heddle__gguf_build *b, uint32_t results, const char *op, const char *name,
                               const char *attrs, int n, ...);
void heddle__gguf_output(heddle__gguf_build *b, uint32_t node, uint32_t result);

#endif
