/* heddle/graph.h: the graph as data: read, inspect, write; and the params blob.
 * Graphs and params are immutable once read and may be shared by threads; they count references. */
#ifndef HEDDLE_GRAPH_H
#define HEDDLE_GRAPH_H

#include "heddle/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct heddle_graph heddle_graph;
typedef struct heddle_params heddle_params;

/* Limits of a reader; struct_size is sizeof; 0 in a member means its default. */
typedef struct heddle_read_limits {
  size_t struct_size;
  uint64_t max_bytes; /* of the file: 1 GiB for a graph, 16 GiB for params */
  uint32_t max_nodes; /* 4,000,000 */
  uint32_t max_depth; /* of nesting: 64 */
} heddle_read_limits;

/* Reads graph JSON: TVM's and NNVM's of every generation, and Heddle's own (docs/graph-json.md); load takes an ONNX model
 * too, by a path that ends in .onnx (docs/onnx.md), and heddle_params_load then gives its tensors. limits may be NULL.
 * parse takes text of any length, not necessarily terminated; name stands for the file in errors. HEDDLE_EIO,
 * HEDDLE_EFORMAT (the place, what was found, what was expected), HEDDLE_ELIMIT, HEDDLE_EUNSUPPORTED (all operators
 * that are not known, with their nodes). Independent of the locale. Any thread. */
HEDDLE_API heddle_status heddle_graph_load(const char *path, const heddle_read_limits *limits, heddle_graph **out,
                                           heddle_error *err);
HEDDLE_API heddle_status heddle_graph_parse(const char *text, size_t bytes, const char *name,
                                            const heddle_read_limits *limits, heddle_graph **out, heddle_error *err);

HEDDLE_API heddle_graph *heddle_graph_retain(heddle_graph *g);
HEDDLE_API void heddle_graph_release(heddle_graph *g); /* takes NULL */

/* A graph with numbers for the names of its dimensions: n rules "NAME=NUMBER", each for all places where the name
 * stands. *out has one reference; g stays as it is. HEDDLE_ENOTFOUND, listing the names that there are; HEDDLE_EINVAL
 * for what is no rule; HEDDLE_EFORMAT where the graph contradicts the numbers. Any thread. */
HEDDLE_API heddle_status heddle_graph_bind(const heddle_graph *g, const char *const *dims, size_t n, heddle_graph **out,
                                           heddle_error *err);

/* Writes the graph as JSON that the reader takes back, unchanged in meaning. text: *out is freed with heddle_free. */
HEDDLE_API heddle_status heddle_graph_text(const heddle_graph *g, char **out, size_t *bytes, heddle_error *err);
HEDDLE_API heddle_status heddle_graph_save(const heddle_graph *g, const char *path, heddle_error *err);
HEDDLE_API void heddle_free(void *p); /* takes NULL */

/* A node; strings and arrays are borrowed from the graph. inputs are pairs (node, output); node UINT32_MAX: absent. */
typedef struct heddle_node_info {
  size_t struct_size;
  const char *name;
  const char *op;        /* "null", "tvm_op" or an operator's name */
  const char *domain;    /* "" is ONNX's own */
  const char *func_name; /* of a tvm_op, else "" */
  const char *device;    /* annotation, or "" */
  const uint32_t *inputs;
  uint32_t n_inputs;
  uint32_t n_outputs;
  int32_t device_type; /* of its first output, as device_index says, a number of DLPack's; 0 where nothing is said */
  uint32_t reserved;
} heddle_node_info;

HEDDLE_API uint32_t heddle_graph_node_count(const heddle_graph *g);
HEDDLE_API heddle_status heddle_graph_node(const heddle_graph *g, uint32_t node, heddle_node_info *out,
                                           heddle_error *err);
/* The i-th graph that a node runs (If, Loop, Scan), and the attribute's name, which may be NULL; borrowed. NULL: there is
 * none. */
HEDDLE_API const heddle_graph *heddle_graph_inner(const heddle_graph *g, uint32_t node, uint32_t i, const char **name);
/* By name: HEDDLE_ENOTFOUND; HEDDLE_EINVAL with the node ids where several nodes share the name. */
HEDDLE_API heddle_status heddle_graph_find_node(const heddle_graph *g, const char *name, uint32_t *out,
                                                heddle_error *err);

/* What the file says of an input (by position among all null nodes, parameters included) or an output. shape members
 * are -1 where a dimension is a symbol or unknown; ndim is UINT32_MAX where no shape is given; symbols may hold NULLs.
 * Borrowed from the graph. */
typedef struct heddle_value_info {
  size_t struct_size;
  const char *name;
  const int64_t *shape;
  const char *const *symbols;
  uint32_t ndim;
  heddle_dtype dtype; /* bits 0 where none is given */
} heddle_value_info;

HEDDLE_API uint32_t heddle_graph_input_count(const heddle_graph *g);
HEDDLE_API heddle_status heddle_graph_input(const heddle_graph *g, uint32_t i, heddle_value_info *out,
                                            heddle_error *err);
HEDDLE_API uint32_t heddle_graph_output_count(const heddle_graph *g);
HEDDLE_API heddle_status heddle_graph_output(const heddle_graph *g, uint32_t i, heddle_value_info *out,
                                             heddle_error *err);

/* Params blobs, as TVM's save_param_dict writes them, byte for byte. The bytes of parse are copied. */
HEDDLE_API heddle_status heddle_params_load(const char *path, const heddle_read_limits *limits, heddle_params **out,
                                            heddle_error *err);
HEDDLE_API heddle_status heddle_params_parse(const void *data, size_t bytes, const char *name,
                                             const heddle_read_limits *limits, heddle_params **out, heddle_error *err);
/* Makes one from named tensors of the host, in this order; the bytes are copied. */
HEDDLE_API heddle_status heddle_params_create(const char *const *names, heddle_tensor *const *tensors, size_t count,
                                              heddle_params **out, heddle_error *err);
HEDDLE_API heddle_params *heddle_params_retain(heddle_params *p);
HEDDLE_API void heddle_params_release(heddle_params *p); /* takes NULL */
HEDDLE_API heddle_status heddle_params_save(const heddle_params *p, const char *path, heddle_error *err);
/* The blob's bytes; *out is freed with heddle_free. */
HEDDLE_API heddle_status heddle_params_bytes(const heddle_params *p, void **out, size_t *bytes, heddle_error *err);
HEDDLE_API uint32_t heddle_params_count(const heddle_params *p);
HEDDLE_API const char *heddle_params_name(const heddle_params *p, uint32_t i); /* NULL past the end */
/* A tensor that shares the params' bytes and holds a reference to them. */
HEDDLE_API heddle_status heddle_params_tensor(const heddle_params *p, uint32_t i, heddle_tensor **out,
                                              heddle_error *err);

#ifdef __cplusplus
}
#endif

#endif
