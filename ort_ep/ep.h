/* ort_ep/ep.h: Heddle as an execution provider of ONNX Runtime: what the parts of libheddle_ort_ep share. ONNX Runtime asks
 * which nodes of a graph the provider takes (capability.c), hands over those parts of the graph (graph.c makes an ONNX
 * model of each), and runs them as one node each (compute.c). */
#ifndef HEDDLE_ORT_EP_EP_H
#define HEDDLE_ORT_EP_EP_H

#include "core/arena.h"
#include "heddle/heddle.h"
#include "ort_ep/ort.h"

#define EP_NAME "HeddleExecutionProvider"

enum { EP_MOST_RULES = 64 };

/* A provider of one session. */
typedef struct ep {
  ort_ep base; /* first: ONNX Runtime knows it by this */
  const ort_api *api;
  const ort_logger *logger;
  heddle_context *ctx;
  heddle_model_options options; /* its texts are in texts */
  const char *place[EP_MOST_RULES];
  heddle__arena texts;
} ep;

/* A part of a graph. Names and arrays are ONNX Runtime's, for the time of a call. */
typedef struct ep_part {
  const ort_graph *graph; /* for its opsets */
  const ort_node *const *nodes;
  const ort_value_info *const *inputs, *const *outputs; /* entries may be NULL: absent */
  size_t n_nodes, n_inputs, n_outputs;
  size_t most_constant; /* constants of more bytes become inputs; SIZE_MAX: none does */
} ep_part;

/* The ONNX model of a part, in the arena's memory. inputs may be NULL: then they are what no node of the part makes.
 * outputs may be NULL: then they are all results. HEDDLE_EUNSUPPORTED for attributes that are graphs, and for values that
 * are no tensors. */
heddle_status ep_model_bytes(const ep *e, const ep_part *part, heddle__arena *arena, void **out, size_t *bytes,
                             heddle_error *err);

/* An array of inputs or outputs of a node, in the arena's memory. */
heddle_status ep_node_values(const ep *e, const ort_node *node, bool outputs, heddle__arena *arena,
                             const ort_value_info ***out, size_t *n, heddle_error *err);

/* The name of a value; "" where it is absent. */
const char *ep_value_name(const ep *e, const ort_value_info *v);

/* OrtEp's functions. */
ort_status *ep_get_capability(ort_ep *self, const ort_graph *graph, ort_support *out);
ort_status *ep_compile(ort_ep *self, const ort_graph **graphs, const ort_node **fused, size_t n, ort_compute **out,
                       ort_node **context_nodes);
void ep_release_computes(ort_ep *self, ort_compute **infos, size_t n);

/* A status of ONNX Runtime with the error's text; NULL for HEDDLE_OK. */
ort_status *ep_status(const ort_api *api, heddle_status s, const heddle_error *err);

/* The other way: takes over and releases the status. HEDDLE_OK for NULL. */
heddle_status ep_take(const ep *e, ort_status *status, heddle_error *err);

void ep_log(const ep *e, int level, const char *text);

#endif
