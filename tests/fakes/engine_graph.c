/* Graphs, and what is made of them to be run: an exec does its nodes one after the other, in the order in which they
 * were captured, never twice at a time. An update takes the parameters of a graph of the same shape. */
#include "engine_inside.h"

struct eng_exec {
  eng_object o;
  eng_plan *plan;
  eng_fence *last; /* of its latest launch */
};

/* ---------------------------------------------------------------- graphs */

eng_graph *eng_graph_new(eng_context *ctx) {
  eng_graph *graph = calloc(1, sizeof *graph);
  if (graph == NULL) return NULL;
  graph->o.kind = ENG_GRAPH;
  graph->o.ctx = ctx;
  return graph;
}

eng_node *eng_graph_add(eng_graph *graph, eng_work *work, eng_node *const *deps, size_t n_deps) {
  eng_node *node = calloc(1, sizeof *node);
  eng_node **copy = malloc((n_deps + 1) * sizeof *copy);
  eng_node **nodes = realloc(graph->nodes, (graph->n_nodes + 1) * sizeof *nodes);
  if (nodes != NULL) graph->nodes = nodes;
  if (node == NULL || copy == NULL || nodes == NULL) {
    free(node);
    free(copy);
    eng_work_drop(work);
    return NULL;
  }
  if (n_deps > 0) memcpy(copy, deps, n_deps * sizeof *copy);
  *node = (eng_node){.work = work, .deps = copy, .n_deps = n_deps, .index = graph->n_nodes, .graph = graph};
  graph->nodes[graph->n_nodes++] = node;
  return node;
}

void eng_graph_free(eng_graph *graph) {
  for (size_t i = 0; i < graph->n_nodes; i++) {
    eng_work_drop(graph->nodes[i]->work);
    free(graph->nodes[i]->deps);
    free(graph->nodes[i]);
  }
  free(graph->nodes);
  eng_object_retire(&graph->o);
}

int eng_graph_create(eng_graph **out) {
  eng_context *ctx = eng_current();
  eng_enter();
  *out = eng_graph_new(ctx);
  if (*out != NULL) eng_object_add(&(*out)->o, ENG_GRAPH, ctx);
  return eng_leave_with(*out != NULL ? ENG_OK : ENG_OUT_OF_MEMORY);
}

int eng_graph_destroy(eng_graph *graph) {
  eng_enter();
  const int code = eng_object_check(graph, ENG_GRAPH, "a graph is destroyed");
  if (code == ENG_OK) eng_graph_free(graph);
  return eng_leave_with(code);
}

int eng_graph_nodes(eng_graph *graph, eng_node **nodes, size_t *count) {
  eng_enter();
  const int code = eng_object_check(graph, ENG_GRAPH, "the nodes of a graph");
  if (code != ENG_OK) return eng_leave_with(code);
  for (size_t i = 0; nodes != NULL && i < *count; i++) nodes[i] = i < graph->n_nodes ? graph->nodes[i] : NULL;
  if (nodes == NULL || *count > graph->n_nodes) *count = graph->n_nodes;
  return eng_leave_with(ENG_OK);
}

int eng_graph_edges(eng_graph *graph, size_t *count) {
  eng_enter();
  const int code = eng_object_check(graph, ENG_GRAPH, "the edges of a graph");
  *count = 0;
  for (size_t i = 0; code == ENG_OK && i < graph->n_nodes; i++) *count += graph->nodes[i]->n_deps;
  return eng_leave_with(code);
}

int eng_node_kind_of(eng_node *node, eng_node_kind *out) {
  *out = (eng_node_kind)node->work->kind;
  return ENG_OK;
}

/* ---------------------------------------------------------------- plans */

void eng_plan_drop(eng_plan *plan) {
  if (plan == NULL || atomic_fetch_sub(&plan->refs, 1) != 1) return;
  for (size_t i = 0; i < plan->count; i++) {
    eng_work_drop(plan->works[i]);
    free(plan->deps[i]);
  }
  free(plan->works);
  free(plan->deps);
  free(plan->n_deps);
  free(plan);
}

static eng_plan *plan_of(const eng_graph *graph) {
  const size_t n = graph->n_nodes;
  eng_plan *plan = calloc(1, sizeof *plan);
  if (plan == NULL) return NULL;
  plan->refs = 1;
  plan->works = calloc(n + 1, sizeof *plan->works);
  plan->deps = calloc(n + 1, sizeof *plan->deps);
  plan->n_deps = calloc(n + 1, sizeof *plan->n_deps);
  bool whole = plan->works != NULL && plan->deps != NULL && plan->n_deps != NULL;
  for (size_t i = 0; i < n && whole; i++) {
    const eng_node *node = graph->nodes[i];
    plan->deps[i] = calloc(node->n_deps + 1, sizeof **plan->deps);
    if (plan->deps[i] == NULL) whole = false;
    for (size_t k = 0; k < node->n_deps && whole; k++) plan->deps[i][k] = node->deps[k]->index;
    if (!whole) break;
    plan->n_deps[i] = node->n_deps;
    plan->works[i] = eng_work_hold(node->work);
    plan->count++;
  }
  if (whole) return plan;
  eng_plan_drop(plan);
  return NULL;
}

int eng_plan_run(const eng_plan *plan, eng_queue *queue) {
  for (size_t i = 0; i < plan->count; i++) {
    const int code = eng_work_run(plan->works[i], queue);
    if (code != ENG_OK) return code;
  }
  return ENG_OK;
}

/* ---------------------------------------------------------------- execs */

int eng_instantiate(eng_exec **out, eng_graph *graph) {
  eng_context *ctx = NULL;
  eng_enter();
  int code = eng_context_need(&ctx);
  if (code == ENG_OK) code = eng_object_check(graph, ENG_GRAPH, "a graph is instantiated");
  if (code != ENG_OK) return eng_leave_with(code);
  eng_exec *exec = calloc(1, sizeof *exec);
  if (exec != NULL) exec->plan = plan_of(graph);
  if (exec == NULL || exec->plan == NULL) {
    free(exec);
    return eng_leave_with(ENG_OUT_OF_MEMORY);
  }
  eng_object_add(&exec->o, ENG_EXEC, graph->o.ctx != NULL ? graph->o.ctx : ctx);
  *out = exec;
  return eng_leave_with(ENG_OK);
}

/* CUgraphExecUpdateResult of the first node that cannot be taken over. */
static int compare(const eng_plan *old, const eng_plan *new, size_t *at) {
  enum { SUCCESS = 0, TOPOLOGY = 2, NODE_TYPE = 3, PARAMETERS = 5 };
  *at = new->count; /* none */
  if (old->count != new->count) return TOPOLOGY;
  for (*at = 0; *at < new->count; ++*at) {
    const size_t i = *at;
    const eng_work *a = old->works[i], *b = new->works[i];
    if (a->kind != b->kind) return NODE_TYPE;
    if (old->n_deps[i] != new->n_deps[i] || memcmp(old->deps[i], new->deps[i], old->n_deps[i] * sizeof(size_t)) != 0)
      return TOPOLOGY;
    if (a->ctx != b->ctx) return PARAMETERS;
    if (a->kind == ENG_WORK_COPY && a->copy.kind != b->copy.kind) return PARAMETERS;
  }
  return SUCCESS;
}

int eng_exec_update(eng_exec *exec, eng_graph *graph, eng_node **error_node, int *result) {
  eng_context *ctx = NULL;
  size_t at = 0;
  *error_node = NULL;
  *result = 1;
  eng_enter();
  int code = eng_context_need(&ctx);
  if (code == ENG_OK) code = eng_object_check(exec, ENG_EXEC, "an exec is updated");
  if (code == ENG_OK) code = eng_object_check(graph, ENG_GRAPH, "an exec is updated");
  eng_plan *plan = code == ENG_OK ? plan_of(graph) : NULL;
  if (code == ENG_OK && plan == NULL) code = ENG_OUT_OF_MEMORY;
  if (code != ENG_OK) return eng_leave_with(code);
  *result = compare(exec->plan, plan, &at);
  if (*result == 0) {
    eng_plan_drop(exec->plan);
    exec->plan = plan;
    eng_count_update();
    return eng_leave_with(ENG_OK);
  }
  *error_node = at < graph->n_nodes ? graph->nodes[at] : NULL;
  eng_plan_drop(plan);
  return eng_leave_with(ENG_GRAPH_UPDATE_FAILURE);
}

static int find(eng_exec *exec, eng_stream_handle handle, eng_stream **stream) {
  int code = eng_stream_find(handle, stream);
  if (code == ENG_OK) code = eng_object_check(exec, ENG_EXEC, "an exec is launched");
  if (code == ENG_OK && (*stream)->capture != NULL) code = eng_capture_break(*stream, "a launch of an exec");
  return code;
}

int eng_exec_upload(eng_exec *exec, eng_stream_handle handle) {
  eng_stream *stream = NULL;
  eng_enter();
  return eng_leave_with(find(exec, handle, &stream));
}

int eng_exec_launch(eng_exec *exec, eng_stream_handle handle) {
  eng_stream *stream = NULL;
  eng_enter();
  const int code = find(exec, handle, &stream);
  if (code != ENG_OK) return eng_leave_with(code);
  eng_work *work = eng_work_new(ENG_WORK_PLAN);
  eng_fence **waits = NULL;
  size_t n_waits = 0;
  work->plan = exec->plan;
  atomic_fetch_add(&work->plan->refs, 1);
  if (exec->last != NULL && !exec->last->done) waits = malloc(sizeof *waits);
  if (waits != NULL) waits[n_waits++] = eng_fence_hold(exec->last);
  eng_fence_drop(exec->last);
  exec->last = NULL;
  return eng_leave_with(eng_stream_put(stream, work, waits, n_waits, &exec->last));
}

void eng_exec_free(eng_exec *exec) {
  eng_plan_drop(exec->plan);
  eng_fence_drop(exec->last);
  eng_object_retire(&exec->o);
}

int eng_exec_destroy(eng_exec *exec) {
  eng_enter();
  const int code = eng_object_check(exec, ENG_EXEC, "an exec is destroyed");
  if (code == ENG_OK) eng_exec_free(exec);
  return eng_leave_with(code);
}
