/* graph/frontend.h: files of other formats as a graph with its parameters. */
#ifndef HEDDLE_GRAPH_FRONTEND_H
#define HEDDLE_GRAPH_FRONTEND_H

#include "graph/graph.h"
#include "graph/opschema.h"

/* Whether a path's name ends in ".onnx", and its content is not that of a package, which may have any name. */
bool heddle__is_onnx(const char *path);

/* The graph and the parameters of an ONNX model, each with one reference; either place may be NULL. The file, and the
 * weights outside of it, together are held to the limit of params; what is left of it without weights, to the limits of
 * a graph. Limits as the readers of JSON and blobs take them. HEDDLE_EIO, HEDDLE_EFORMAT, HEDDLE_ELIMIT,
 * HEDDLE_EUNSUPPORTED. Any thread; blocks. */
heddle_status heddle__onnx_load(const char *path, const heddle_read_limits *graph_limits,
                                const heddle_read_limits *params_limits, heddle_graph **graph, heddle_params **params,
                                heddle_error *err);

/* The same for a model in memory, which the params do not need later. place: a path in whose folder weights outside of the
 * bytes lie; NULL: they are refused. */
heddle_status heddle__onnx_load_bytes(const void *data, size_t bytes, const char *name, const char *place,
                                      const heddle_read_limits *graph_limits, const heddle_read_limits *params_limits,
                                      heddle_graph **graph, heddle_params **params, heddle_error *err);

/* frontends/onnx: a model as a document of graph JSON, with one reference, and its parameters; params NULL: they are not
 * wanted. The limits are filled in. */
heddle_status heddle__onnx_read(const char *path, const heddle_read_limits *limits, uint64_t max_bytes, json_t **graph,
                                heddle_params **params, heddle_error *err);
heddle_status heddle__onnx_read_bytes(const void *data, uint64_t bytes, const char *name, const char *place,
                                      const heddle_read_limits *limits, uint64_t max_bytes, json_t **graph,
                                      heddle_params **params, heddle_error *err);

/* frontends/onnx: heddle_quantize, with every option filled in. */
struct heddle_quantize_options;
heddle_status heddle__onnx_quantize(const char *path, const char *output, const struct heddle_quantize_options *options,
                                    heddle_error *err);

#endif
