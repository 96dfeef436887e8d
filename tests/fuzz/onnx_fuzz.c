/* Any bytes as an ONNX model: no crash, no leak, and a model that is read is a graph that is read, or refused. */
#include <stdint.h>
#include <stdlib.h>

#include "core/alloc.h"
#include "frontends/onnx/reader.h"
#include "graph/reader.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  const heddle_read_limits limits = {
      .struct_size = sizeof limits, .max_bytes = 64 << 20, .max_nodes = 100000, .max_depth = 64};
  size_t live = heddle__alloc_live();
  json_t *document;
  heddle_params *params;
  heddle_graph *g = NULL;
  heddle_error err = {0};
  heddle_status s = heddle__onnx_parse(data, size, "fuzz.onnx", &limits, &document, &params, &err);
  if (s == HEDDLE_OK) s = heddle__graph_from_json(document, "fuzz.onnx", limits.max_nodes, &g, &err);
  if (s != HEDDLE_OK && err.text[0] == '\0') abort();
  heddle_graph_release(g);
  heddle_params_release(params);
  if (heddle__alloc_live() != live) abort();
  return 0;
}
