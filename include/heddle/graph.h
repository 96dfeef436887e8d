/* heddle/graph.h: the graph as data (read, inspect, write), and the params blob.
 * Graphs and params are immutable and reference-counted. Any thread may call these functions; only those that read or
 * write files block. */
#ifndef HEDDLE_GRAPH_H
#define HEDDLE_GRAPH_H

#include "heddle/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct heddle_graph heddle_graph;
typedef struct heddle_params heddle_params;

/* Limits of a reader. struct_size is sizeof; 0 in another member means its default. */
typedef struct heddle_read_limits {
  size_t struct_size;
  uint64_t max_bytes; /* of the file; default 1 GiB for a graph, 16 GiB for params */
  uint32_t max_nodes; /* default 4,000,000 */
  uint32_t max_depth; /* of nesting; default 64 */
  const char *trust;  /* a trust file (heddle/sign.h): what is read must be signed; NULL: the variable HEDDLE_TRUST */
  const char *key;    /* an encryption key's file; NULL: as heddle_key_callback describes */
} heddle_read_limits;

/* Reads graph JSON: every generation of TVM and NNVM, and Heddle's own format (docs/graph-json.md). load also reads an
 * ONNX model if the path ends in .onnx (docs/onnx.md), and a packed graph (heddle_pack); heddle_params_load then reads
 * its tensors. limits may be NULL.
 * parse reads text of any length, which need not be terminated; name stands for the file in errors. *out receives one
 * reference. HEDDLE_EIO; HEDDLE_EFORMAT reports the place, what was found and what was expected; HEDDLE_ELIMIT;
 * HEDDLE_EUNSUPPORTED lists all unknown operators with their nodes. Independent of the locale. Any thread. */
HEDDLE_API heddle_status heddle_graph_load(const char *path, const heddle_read_limits *limits, heddle_graph **out,
                                           heddle_error *err);
HEDDLE_API heddle_status heddle_graph_parse(const char *text, size_t bytes, const char *name,
                                            const heddle_read_limits *limits, heddle_graph **out, heddle_error *err);

/* Retain adds a reference and returns g; release drops one. */
HEDDLE_API heddle_graph *heddle_graph_retain(heddle_graph *g);
HEDDLE_API void heddle_graph_release(heddle_graph *g); /* takes NULL */

/* Creates a graph in which numbers replace the names of dimensions. dims has n rules "NAME=NUMBER"; each applies
 * wherever the name occurs. *out receives one reference; g does not change. HEDDLE_ENOTFOUND lists the names in the
 * graph; HEDDLE_EINVAL for a malformed rule; HEDDLE_EFORMAT if the graph contradicts the numbers. Any thread. */
HEDDLE_API heddle_status heddle_graph_bind(const heddle_graph *g, const char *const *dims, size_t n, heddle_graph **out,
                                           heddle_error *err);

/* Writes the graph as JSON that the reader accepts, with the same meaning. text: *out is terminated and freed with
 * heddle_free; *bytes, which may be NULL, is its length without the terminator. save replaces a file at path; after
 * HEDDLE_EIO it may be incomplete. HEDDLE_ENOMEM. */
HEDDLE_API heddle_status heddle_graph_text(const heddle_graph *g, char **out, size_t *bytes, heddle_error *err);
HEDDLE_API heddle_status heddle_graph_save(const heddle_graph *g, const char *path, heddle_error *err);

/* Frees memory that a function of this API returned to the caller to free. */
HEDDLE_API void heddle_free(void *p); /* takes NULL */

/* A node. Strings and arrays are borrowed from the graph. inputs are pairs (node, output); an absent input has node
 * UINT32_MAX. */
typedef struct heddle_node_info {
  size_t struct_size;
  const char *name;
  const char *op;        /* "null", "tvm_op" or an operator's name */
  const char *domain;    /* "": ONNX's own domain */
  const char *func_name; /* of a tvm_op, else "" */
  const char *device;    /* annotation, or "" */
  const uint32_t *inputs;
  uint32_t n_inputs;
  uint32_t n_outputs;
  int32_t device_type; /* DLPack device type of its first output, from device_index; 0: not given */
  uint32_t reserved;
} heddle_node_info;

/* The number of nodes, and the node at a position, in the order of the file. Set out->struct_size. HEDDLE_ENOTFOUND
 * past the end. */
HEDDLE_API uint32_t heddle_graph_node_count(const heddle_graph *g);
HEDDLE_API heddle_status heddle_graph_node(const heddle_graph *g, uint32_t node, heddle_node_info *out,
                                           heddle_error *err);

/* The i-th inner graph of a node (If, Loop, Scan); borrowed. *name receives the attribute's name; name may be NULL.
 * NULL if there is no such graph. */
HEDDLE_API const heddle_graph *heddle_graph_inner(const heddle_graph *g, uint32_t node, uint32_t i, const char **name);

/* Finds a node by name; *out is its position. HEDDLE_ENOTFOUND; HEDDLE_EINVAL with the node ids if several nodes share
 * the name. */
HEDDLE_API heddle_status heddle_graph_find_node(const heddle_graph *g, const char *name, uint32_t *out,
                                                heddle_error *err);

/* What the file declares of an input (by position among all null nodes, parameters included) or an output; of an output
 * without a declaration, what follows from its operators. Unknown dimensions are -1 in shape, with a name in symbols or
 * NULL; ndim is UINT32_MAX if no shape is known. Borrowed from the graph. */
typedef struct heddle_value_info {
  size_t struct_size;
  const char *name;
  const int64_t *shape;
  const char *const *symbols;
  uint32_t ndim;
  heddle_dtype dtype; /* bits 0: not known before a run */
} heddle_value_info;

/* The number of inputs and outputs, and the i-th of them. Set out->struct_size. HEDDLE_ENOTFOUND past the end. */
HEDDLE_API uint32_t heddle_graph_input_count(const heddle_graph *g);
HEDDLE_API heddle_status heddle_graph_input(const heddle_graph *g, uint32_t i, heddle_value_info *out,
                                            heddle_error *err);
HEDDLE_API uint32_t heddle_graph_output_count(const heddle_graph *g);
HEDDLE_API heddle_status heddle_graph_output(const heddle_graph *g, uint32_t i, heddle_value_info *out,
                                             heddle_error *err);

/* Reads a params blob in the format of TVM's save_param_dict, byte for byte. parse copies the bytes; name stands for
 * the file in errors. limits may be NULL. *out receives one reference. HEDDLE_EIO; HEDDLE_EFORMAT for a malformed blob;
 * HEDDLE_ELIMIT; HEDDLE_ENOMEM. */
HEDDLE_API heddle_status heddle_params_load(const char *path, const heddle_read_limits *limits, heddle_params **out,
                                            heddle_error *err);
HEDDLE_API heddle_status heddle_params_parse(const void *data, size_t bytes, const char *name,
                                             const heddle_read_limits *limits, heddle_params **out, heddle_error *err);

/* Creates params from named tensors in host memory, in this order; the bytes are copied. *out receives one
 * reference. HEDDLE_ELIMIT for more than 2^31 - 1 tensors, HEDDLE_ENOMEM. */
HEDDLE_API heddle_status heddle_params_create(const char *const *names, heddle_tensor *const *tensors, size_t count,
                                              heddle_params **out, heddle_error *err);

/* Retain adds a reference and returns p; release drops one. */
HEDDLE_API heddle_params *heddle_params_retain(heddle_params *p);
HEDDLE_API void heddle_params_release(heddle_params *p); /* takes NULL */

/* Writes the blob to a file, which is replaced, or to memory: *out is freed with heddle_free and has *bytes bytes.
 * HEDDLE_EIO, HEDDLE_ENOMEM. */
HEDDLE_API heddle_status heddle_params_save(const heddle_params *p, const char *path, heddle_error *err);
HEDDLE_API heddle_status heddle_params_bytes(const heddle_params *p, void **out, size_t *bytes, heddle_error *err);

/* The number of parameters, the name of the i-th (borrowed), and a tensor that shares its bytes and holds a reference
 * to the params; *out receives one reference. Do not write to it. tensor: HEDDLE_ENOTFOUND past the end, HEDDLE_ENOMEM. */
HEDDLE_API uint32_t heddle_params_count(const heddle_params *p);
HEDDLE_API const char *heddle_params_name(const heddle_params *p, uint32_t i); /* NULL past the end */
HEDDLE_API heddle_status heddle_params_tensor(const heddle_params *p, uint32_t i, heddle_tensor **out,
                                              heddle_error *err);

#ifdef __cplusplus
}
#endif

#endif
