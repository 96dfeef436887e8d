/* The double of CUDA's driver: captures and graphs. */
#include "cuda_front.h"

CUresult cuStreamBeginCapture_v2(CUstream stream, CUstreamCaptureMode mode) {
  ENG_CALL("cuStreamBeginCapture_v2");
  return eng_capture_begin(stream, (int)mode);
}

CUresult cuStreamEndCapture(CUstream stream, CUgraph *out) {
  ENG_CALL("cuStreamEndCapture");
  eng_graph *graph = NULL;
  const int code = eng_capture_end(stream, &graph);
  *out = (CUgraph)(void *)graph;
  return code;
}

CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode) {
  ENG_CALL("cuThreadExchangeStreamCaptureMode");
  int exchanged = (int)*mode;
  const int code = eng_capture_exchange(&exchanged);
  *mode = (CUstreamCaptureMode)exchanged;
  return code;
}

CUresult cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus *out) {
  ENG_CALL("cuStreamIsCapturing");
  int status = 0;
  const int code = eng_capture_status(stream, &status);
  *out = (CUstreamCaptureStatus)status;
  return code;
}

CUresult cuGraphCreate(CUgraph *out, unsigned flags) {
  ENG_CALL("cuGraphCreate");
  eng_graph *graph = NULL;
  const int code = flags == 0 ? eng_graph_create(&graph) : ENG_INVALID_VALUE;
  *out = (CUgraph)(void *)graph;
  return code;
}

CUresult cuGraphGetNodes(CUgraph graph, CUgraphNode *nodes, size_t *count) {
  ENG_CALL("cuGraphGetNodes");
  return eng_graph_nodes(graph_of(graph), (eng_node **)(void *)nodes, count);
}

CUresult cuGraphNodeGetType(CUgraphNode node, CUgraphNodeType *out) {
  ENG_CALL("cuGraphNodeGetType");
  static const CUgraphNodeType types[] = {
      [ENG_NODE_KERNEL] = CU_GRAPH_NODE_TYPE_KERNEL, [ENG_NODE_COPY] = CU_GRAPH_NODE_TYPE_MEMCPY,
      [ENG_NODE_FILL] = CU_GRAPH_NODE_TYPE_MEMSET,   [ENG_NODE_HOST] = CU_GRAPH_NODE_TYPE_HOST,
      [ENG_NODE_EMPTY] = CU_GRAPH_NODE_TYPE_EMPTY,   [ENG_NODE_RECORD] = CU_GRAPH_NODE_TYPE_EVENT_RECORD};
  eng_node_kind kind = ENG_NODE_EMPTY;
  const int code = eng_node_kind_of((eng_node *)(void *)node, &kind);
  *out = types[kind];
  return code;
}

CUresult cuGraphDestroy(CUgraph graph) {
  ENG_CALL("cuGraphDestroy");
  return eng_graph_destroy(graph_of(graph));
}

static int instantiate(CUgraphExec *out, CUgraph graph) {
  eng_exec *exec = NULL;
  const int code = eng_instantiate(&exec, graph_of(graph));
  *out = (CUgraphExec)(void *)exec;
  return code;
}

CUresult cuGraphInstantiateWithFlags(CUgraphExec *out, CUgraph graph, unsigned long long flags) {
  ENG_CALL("cuGraphInstantiateWithFlags");
  (void)flags;
  return instantiate(out, graph);
}

CUresult cuGraphInstantiate_v2(CUgraphExec *out, CUgraph graph, CUgraphNode *node, char *log, size_t log_bytes) {
  ENG_CALL("cuGraphInstantiate_v2");
  if (node != NULL) *node = NULL;
  if (log != NULL && log_bytes > 0) *log = '\0';
  return instantiate(out, graph);
}

CUresult cuGraphExecUpdate(CUgraphExec exec, CUgraph graph, CUgraphNode *node, CUgraphExecUpdateResult *result) {
  ENG_CALL("cuGraphExecUpdate");
  eng_node *at = NULL;
  int found = 0;
  const int code = eng_exec_update(exec_of(exec), graph_of(graph), &at, &found);
  if (node != NULL) *node = (CUgraphNode)(void *)at;
  if (result != NULL) *result = (CUgraphExecUpdateResult)found;
  return code;
}

CUresult cuGraphExecUpdate_v2(CUgraphExec exec, CUgraph graph, CUgraphExecUpdateResultInfo *result) {
  ENG_CALL("cuGraphExecUpdate_v2");
  eng_node *at = NULL;
  int found = 0;
  const int code = eng_exec_update(exec_of(exec), graph_of(graph), &at, &found);
  *result = (CUgraphExecUpdateResultInfo){(CUgraphExecUpdateResult)found, (CUgraphNode)(void *)at, NULL};
  return code;
}

CUresult cuGraphUpload(CUgraphExec exec, CUstream stream) {
  ENG_CALL("cuGraphUpload");
  return eng_exec_upload(exec_of(exec), stream);
}

CUresult cuGraphLaunch(CUgraphExec exec, CUstream stream) {
  ENG_CALL("cuGraphLaunch");
  return eng_exec_launch(exec_of(exec), stream);
}

CUresult cuGraphExecDestroy(CUgraphExec exec) {
  ENG_CALL("cuGraphExecDestroy");
  return eng_exec_destroy(exec_of(exec));
}
