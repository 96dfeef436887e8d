/* graph/frontend.c: opens libheddle_onnx.so for the first .onnx file, and makes a graph of the document that it gives.
 * What such a document may hold is checked by the reader of graph JSON, as for any other file. */
#include "graph/frontend.h"

#include <string.h>

#include "core/alloc.h"
#include "core/beside.h"
#include "core/error.h"
#include "graph/file.h"
#include "graph/ops.h"
#include "graph/reader.h"

static const heddle__onnx_host host = {heddle__alloc,       heddle__grow,        heddle__alloc_aligned,
                                       heddle__free,        heddle__params_new,  heddle_params_release,
                                       heddle__schema_find, heddle__schema_attr, HEDDLE__OPSET_FIRST,
                                       HEDDLE__OPSET_LAST,  heddle__ops};

bool heddle__is_onnx(const char *path) {
  size_t n = strlen(path);
  return n >= 5 && strcmp(path + n - 5, ".onnx") == 0;
}

heddle_status heddle__onnx_load(const char *path, const heddle_read_limits *graph_limits,
                                const heddle_read_limits *params_limits, heddle_graph **graph, heddle_params **params,
                                heddle_error *err) {
  heddle_read_limits of_graph, of_params;
  const void *table = NULL;
  json_t *root = NULL;
  heddle_graph *g = NULL;
  heddle_params *p = NULL;
  heddle__graph_limits(graph_limits, &of_graph);
  heddle__params_limits(params_limits, &of_params);
  heddle_status s =
      heddle__open_beside("libheddle_onnx.so.0", "ONNX models need", "heddle_onnx_entry", 0, &host, &table, err);
  if (s == HEDDLE_OK)
    s = ((const heddle__onnx_table *)table)
            ->read(path, &of_graph, of_params.max_bytes, &root, params != NULL ? &p : NULL, err);
  if (s == HEDDLE_OK) s = heddle__graph_from_json(root, path, of_graph.max_nodes, &g, err);
  if (s == HEDDLE_OK && graph != NULL) *graph = heddle_graph_retain(g);
  heddle_graph_release(g);
  if (s == HEDDLE_OK && params != NULL) *params = p;
  else heddle_params_release(p);
  return s;
}
