/* graph/frontend.c: makes a graph of the document that the reader of ONNX models (frontends/onnx) gives. What such a document may hold is checked by the reader of graph JSON, as for any other file. */
#include "graph/frontend.h"

#include <string.h>

#include "core/alloc.h"
#include "core/error.h"
#include "core/parts.h"
#include "core/sealed.h"
#include "graph/file.h"
#include "graph/package.h"
#include "graph/reader.h"

/* Whether a file, not a pipe, is a package, encrypted or not. */
static bool is_packed(const char *path) {
  heddle_signature says = {.struct_size = sizeof says};
  return heddle_signature_read(path, &says, NULL) == HEDDLE_OK &&
         ((says.flags & HEDDLE_SIGNATURE_PACKED) != 0 || heddle__is_package(path));
}

bool heddle__is_onnx(const char *path) {
  size_t n = strlen(path);
  return n >= 5 && strcmp(path + n - 5, ".onnx") == 0 && !is_packed(path);
}

heddle_status heddle__onnx_load(const char *path, const heddle_read_limits *graph_limits,
                                const heddle_read_limits *params_limits, heddle_graph **graph, heddle_params **params,
                                heddle_error *err) {
  heddle_read_limits of_graph, of_params;
  json_t *root = NULL;
  heddle_graph *g = NULL;
  heddle_params *p = NULL;
  heddle__graph_limits(graph_limits, &of_graph);
  heddle__params_limits(params_limits, &of_params);
  if (of_graph.trust == NULL) of_graph.trust = of_params.trust; /* whichever part was asked for */
  if (of_graph.key == NULL) of_graph.key = of_params.key;
#if HEDDLE_HAS_ONNX
  heddle_status s = heddle__trust_given(of_graph.trust, err);
  if (s == HEDDLE_OK)
    s = heddle__onnx_read(path, &of_graph, of_params.max_bytes, &root, params != NULL ? &p : NULL, err);
#else
  heddle_status s = heddle__left_out(err, "reader of ONNX models", "HEDDLE_ONNX");
  if (s != HEDDLE_OK) return heddle__prefix(err, s, "%s: ", path);
#endif
  if (s == HEDDLE_OK) s = heddle__graph_from_json(root, path, of_graph.max_nodes, &g, err);
  if (s == HEDDLE_OK && graph != NULL) *graph = heddle_graph_retain(g);
  heddle_graph_release(g);
  if (s == HEDDLE_OK && params != NULL) *params = p;
  else heddle_params_release(p);
  return s;
}

heddle_status heddle__onnx_load_bytes(const void *data, size_t bytes, const char *name, const char *place,
                                      const heddle_read_limits *graph_limits, const heddle_read_limits *params_limits,
                                      heddle_graph **graph, heddle_params **params, heddle_error *err) {
  heddle_read_limits of_graph, of_params;
  json_t *root = NULL;
  heddle__graph_limits(graph_limits, &of_graph);
  heddle__params_limits(params_limits, &of_params);
  *graph = NULL;
  *params = NULL;
#if HEDDLE_HAS_ONNX
  heddle_status s =
      heddle__onnx_read_bytes(data, bytes, name, place, &of_graph, of_params.max_bytes, &root, params, err);
#else
  (void)data, (void)bytes, (void)place, (void)root;
  heddle_status s = heddle__left_out(err, "reader of ONNX models", "HEDDLE_ONNX");
  if (s != HEDDLE_OK) return heddle__prefix(err, s, "%s: ", name);
#endif
  if (s == HEDDLE_OK) s = heddle__graph_from_json(root, name, of_graph.max_nodes, graph, err);
  if (s != HEDDLE_OK) {
    heddle_params_release(*params);
    *params = NULL;
  }
  return s;
}
