/* heddle/strings.h: strings, sequences and optionals of a model. A graph computes with numbers: a tensor of strings is one of int64, each the
 * position of a text in the graph's list. What is given to an input may have texts that are not in the list: any other
 * numbers, the same for the same text; an output then has them again. A map from labels to numbers, as ZipMap of
 * ai.onnx.ml makes one for each row, is a matrix of float32 whose columns have keys. docs/onnx.md has an example.
 *
 * A graph that makes texts, or has sequences or optionals as values (heddle_graph_has_objects), has them with each of its
 * executors: a text that is not in the list has a number behind the list's, and a sequence, or an optional that is not
 * empty, is one number below HEDDLE_NO_OBJECT. What an executor gave numbers to is dropped when its next run begins,
 * unless a tensor that is set as an input has the number. */
#ifndef HEDDLE_STRINGS_H
#define HEDDLE_STRINGS_H

#include "heddle/executor.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What an input or output stands for. */
typedef enum heddle_string_kind {
  HEDDLE_STRING_NONE = 0,          /* numbers */
  HEDDLE_STRING_TENSOR = 1,        /* texts, by their positions */
  HEDDLE_STRING_MAPS = 2,          /* a map for each row, whose keys are integers */
  HEDDLE_STRING_MAPS_OF_TEXTS = 3, /* the same; the keys are positions of texts */
  HEDDLE_STRING_SEQUENCE = 4,      /* a sequence of tensors, by its number: int64 without dimensions */
  HEDDLE_STRING_TEXTS = 5,         /* a sequence of tensors of texts */
  HEDDLE_STRING_OPTIONAL = 8,      /* added to the others: it may be empty; of a tensor it is a sequence of one */
  HEDDLE_STRING_KIND_MAX_ENUM = 0x7fffffff
} heddle_string_kind;

/* The text at a position of the list; NULL past its end. It lives as long as the graph. Any thread. */
HEDDLE_API const char *heddle_graph_string(const heddle_graph *g, uint64_t i);

/* Of the input or output of that name, with HEDDLE_STRING_OPTIONAL added where it may be empty; HEDDLE_STRING_NONE where there is no such. Any thread. */
HEDDLE_API heddle_string_kind heddle_graph_string_kind(const heddle_graph *g, const char *name);

/* The key of column i of an output that stands for maps. HEDDLE_ENOTFOUND past the last, and of other outputs. Any
 * thread. */
HEDDLE_API heddle_status heddle_graph_map_key(const heddle_graph *g, const char *name, uint32_t i, int64_t *key,
                                              heddle_error *err);

/* The number of an optional that is empty. */
#define HEDDLE_NO_OBJECT INT64_C(-1)

/* 1 where the functions below are of use for its executors, else 0. Any thread. */
HEDDLE_API int heddle_graph_has_objects(const heddle_graph *g);

/* The number of a text for an executor's inputs, and the text of a number of its outputs, which ends with a byte 0 that
 * bytes does not count, and is valid until the next run begins. HEDDLE_EINVAL: the number of no text; HEDDLE_EUNSUPPORTED:
 * the graph has no objects, or the model more than one run in flight; HEDDLE_EBUSY. */
HEDDLE_API heddle_status heddle_executor_text_code(heddle_executor *ex, const char *text, size_t bytes, int64_t *code,
                                                   heddle_error *err);
HEDDLE_API heddle_status heddle_executor_text(heddle_executor *ex, int64_t code, const char **text, size_t *bytes,
                                              heddle_error *err);

/* The number of a sequence of copies of n tensors, and the tensors of a sequence that an output is: borrowed, valid until
 * the next run begins. The same errors; HEDDLE_EINVAL of HEDDLE_NO_OBJECT too. */
HEDDLE_API heddle_status heddle_executor_sequence(heddle_executor *ex, heddle_tensor *const *items, size_t n,
                                                  int64_t *code, heddle_error *err);
HEDDLE_API heddle_status heddle_executor_sequence_items(heddle_executor *ex, int64_t code, heddle_tensor *const **items,
                                                        size_t *n, heddle_error *err);

#ifdef __cplusplus
}
#endif

#endif
