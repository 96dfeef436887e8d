/* HIP's double: captures and graphs. */
#include "hip.h"

static eng_graph *graph_of(hipGraph_t graph) {
  return (eng_graph *)(void *)graph;
}

static eng_exec *exec_of(hipGraphExec_t exec) {
  return (eng_exec *)(void *)exec;
}

#pragma GCC visibility push(default)

hipError_t hipStreamBeginCapture(hipStream_t stream, hipStreamCaptureMode mode) {
  HIP_CALL("hipStreamBeginCapture");
  return (hipError_t)eng_capture_begin(stream, (int)mode);
}

hipError_t hipThreadExchangeStreamCaptureMode(hipStreamCaptureMode *mode) {
  HIP_CALL_PLAIN("hipThreadExchangeStreamCaptureMode");
  int number = (int)*mode;
  const int code = eng_capture_exchange(&number);
  *mode = (hipStreamCaptureMode)number;
  return (hipError_t)code;
}

hipError_t hipStreamEndCapture(hipStream_t stream, hipGraph_t *out) {
  eng_graph *graph = NULL;
  HIP_CALL("hipStreamEndCapture");
  const int code = eng_capture_end(stream, &graph);
  *out = (hipGraph_t)(void *)graph;
  return (hipError_t)code;
}

hipError_t hipGraphGetNodes(hipGraph_t graph, hipGraphNode_t *nodes, size_t *count) {
  HIP_CALL_PLAIN("hipGraphGetNodes");
  return (hipError_t)eng_graph_nodes(graph_of(graph), (eng_node **)(void *)nodes, count);
}

hipError_t hipGraphDestroy(hipGraph_t graph) {
  HIP_CALL_PLAIN("hipGraphDestroy");
  return (hipError_t)eng_graph_destroy(graph_of(graph));
}

hipError_t hipGraphInstantiate(hipGraphExec_t *out, hipGraph_t graph, hipGraphNode_t *error_node, char *log,
                               size_t bytes) {
  eng_exec *exec = NULL;
  HIP_CALL("hipGraphInstantiate");
  if (error_node != NULL) *error_node = NULL;
  if (log != NULL && bytes > 0) log[0] = '\0';
  const int code = eng_instantiate(&exec, graph_of(graph));
  if (code == ENG_OK) *out = (hipGraphExec_t)(void *)exec;
  return (hipError_t)code;
}

hipError_t hipGraphExecUpdate(hipGraphExec_t exec, hipGraph_t graph, hipGraphNode_t *error_node,
                              hipGraphExecUpdateResult *result) {
  eng_node *node = NULL;
  int number = 0;
  HIP_CALL("hipGraphExecUpdate");
  const int code = eng_exec_update(exec_of(exec), graph_of(graph), &node, &number);
  if (error_node != NULL) *error_node = (hipGraphNode_t)(void *)node;
  if (result != NULL) *result = (hipGraphExecUpdateResult)number;
  return (hipError_t)code;
}

#ifndef FAKE_HIP_5
hipError_t hipGraphUpload(hipGraphExec_t exec, hipStream_t stream);
hipError_t hipGraphUpload(hipGraphExec_t exec, hipStream_t stream) {
  HIP_CALL("hipGraphUpload");
  return (hipError_t)eng_exec_upload(exec_of(exec), stream);
}
#endif

hipError_t hipGraphLaunch(hipGraphExec_t exec, hipStream_t stream) {
  HIP_CALL("hipGraphLaunch");
  return (hipError_t)eng_exec_launch(exec_of(exec), stream);
}

hipError_t hipGraphExecDestroy(hipGraphExec_t exec) {
  HIP_CALL_PLAIN("hipGraphExecDestroy");
  return (hipError_t)eng_exec_destroy(exec_of(exec));
}
