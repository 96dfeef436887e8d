/* heddle/strings.h: strings of a model. A graph computes with numbers: a tensor of strings is one of int64, each the
 * position of a text in the graph's list. What is given to an input may have texts that are not in the list: any other
 * numbers, the same for the same text; an output then has them again. A map from labels to numbers, as ZipMap of
 * ai.onnx.ml makes one for each row, is a matrix of float32 whose columns have keys. docs/onnx.md has an example. */
#ifndef HEDDLE_STRINGS_H
#define HEDDLE_STRINGS_H

#include "heddle/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What an input or output stands for. */
typedef enum heddle_string_kind {
  HEDDLE_STRING_NONE = 0,          /* numbers */
  HEDDLE_STRING_TENSOR = 1,        /* texts, by their positions */
  HEDDLE_STRING_MAPS = 2,          /* a map for each row, whose keys are integers */
  HEDDLE_STRING_MAPS_OF_TEXTS = 3, /* the same; the keys are positions of texts */
  HEDDLE_STRING_KIND_MAX_ENUM = 0x7fffffff
} heddle_string_kind;

/* The text at a position of the list; NULL past its end. It lives as long as the graph. Any thread. */
HEDDLE_API const char *heddle_graph_string(const heddle_graph *g, uint64_t i);

/* Of the input or output of that name; HEDDLE_STRING_NONE where there is no such. Any thread. */
HEDDLE_API heddle_string_kind heddle_graph_string_kind(const heddle_graph *g, const char *name);

/* The key of column i of an output that stands for maps. HEDDLE_ENOTFOUND past the last, and of other outputs. Any
 * thread. */
HEDDLE_API heddle_status heddle_graph_map_key(const heddle_graph *g, const char *name, uint32_t i, int64_t *key,
                                              heddle_error *err);

#ifdef __cplusplus
}
#endif

#endif
