/* graph/frontend.h: files of other formats as a graph with its parameters, and the two tables that cross between
 * libheddle and libheddle_onnx.so (frontends/onnx), which is opened when the first .onnx file is loaded.
 * Both are of one build: the version is compared, and the tables have no other protection. */
#ifndef HEDDLE_GRAPH_FRONTEND_H
#define HEDDLE_GRAPH_FRONTEND_H

#include "graph/graph.h"
#include "graph/opschema.h"

/* Whether a path's name ends in ".onnx". */
bool heddle__is_onnx(const char *path);

/* The graph and the parameters of an ONNX model, each with one reference; either place may be NULL. The file, and the
 * weights outside of it, together are held to the limit of params; what is left of it without weights, to the limits of
 * a graph. Limits as the readers of JSON and blobs take them. HEDDLE_EIO, HEDDLE_EFORMAT, HEDDLE_ELIMIT,
 * HEDDLE_EUNSUPPORTED. Any thread; blocks. */
heddle_status heddle__onnx_load(const char *path, const heddle_read_limits *graph_limits,
                                const heddle_read_limits *params_limits, heddle_graph **graph, heddle_params **params,
                                heddle_error *err);

/* What libheddle gives. */
typedef struct heddle__onnx_host {
  void *(*alloc)(size_t count, size_t size);
  void *(*grow)(void *old, size_t old_count, size_t new_count, size_t size);
  void *(*alloc_aligned)(size_t bytes, size_t align);
  void (*free)(void *p);
  heddle_params *(*params_new)(const char *source, heddle_error *err);
  void (*params_release)(heddle_params *p);
  const heddle__schema *(*schema)(const char *domain, const char *op, uint32_t opset);
  uint32_t (*schema_attr)(const heddle__schema *schema, const char *name);
  uint32_t opset_first, opset_last;             /* of domain "" that graphs may have */
  const struct heddle__ops_table *(*ops)(void); /* NULL where libheddle_ops.so is missing */
} heddle__onnx_host;

/* What libheddle_onnx.so gives, by heddle_onnx_entry (core/beside.h), to a heddle__onnx_host; the first that enters is
 * kept. */
typedef struct heddle__onnx_table {
  const char *version;

  /* A model as a document of graph JSON, with one reference, and its parameters; params NULL: they are not wanted. The
   * limits are filled in. */
  heddle_status (*read)(const char *path, const heddle_read_limits *graph_limits, uint64_t max_bytes, json_t **graph,
                        heddle_params **params, heddle_error *err);
} heddle__onnx_table;

#endif
