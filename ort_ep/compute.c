/* ort_ep/compute.c: runs a part of a graph as one node of ONNX Runtime. Several threads may run a node at the same time:
 * each takes an executor from a list, and makes one where the list is empty. */
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "plugins/common/perror.h"
#include "ort_ep/ep.h"

typedef struct idle {
  struct idle *next;
  heddle_executor *ex;
} idle;

typedef struct compute {
  ort_compute base; /* first: ONNX Runtime knows it by this */
  ep *e;
  heddle_model *model;
  uint32_t n_inputs, n_outputs;
  int32_t *inputs; /* the model's numbers of the node's inputs; -1: it reads no such */
  int32_t *outputs;
  pthread_mutex_t lock; /* of executors */
  idle *executors;      /* that no thread uses */
} compute;

/* ---- a run */

static heddle_status take_executor(compute *c, idle **out, heddle_error *err) {
  pthread_mutex_lock(&c->lock);
  idle *i = c->executors;
  if (i != NULL) c->executors = i->next;
  pthread_mutex_unlock(&c->lock);
  heddle_status s = HEDDLE_OK;
  if (i == NULL) {
    i = calloc(1, sizeof *i);
    s = i != NULL ? heddle_executor_create(c->model, &i->ex, err)
                  : p_fail(err, HEDDLE_ENOMEM, 0, "no memory for a run");
  }
  if (s != HEDDLE_OK) free(i);
  else *out = i;
  return s;
}

static void give_executor(compute *c, idle *i) {
  pthread_mutex_lock(&c->lock);
  i->next = c->executors;
  c->executors = i;
  pthread_mutex_unlock(&c->lock);
}

enum { MOST_DIMS = 32 };

static heddle_status set_input(compute *c, heddle_executor *ex, ort_kernel_context *context, uint32_t i,
                               heddle_error *err) {
  const ort_api *api = c->e->api;
  const ort_value *value = NULL;
  ort_tensor_info *info = NULL;
  const void *data = NULL;
  int64_t dims[MOST_DIMS];
  size_t n = 0;
  heddle_io_info io = {.struct_size = sizeof io};
  heddle_tensor *t = NULL;
  heddle_status s = ep_take(c->e, ORT(api, KernelContext_GetInput)(context, i, &value), err);
  if (s != HEDDLE_OK || value == NULL) return s;
  s = ep_take(c->e, ORT(api, GetTensorTypeAndShape)(value, &info), err);
  if (s != HEDDLE_OK) return s;
  s = ep_take(c->e, ORT(api, GetDimensionsCount)(info, &n), err);
  if (s == HEDDLE_OK && n > MOST_DIMS) s = p_fail(err, HEDDLE_ELIMIT, 0, "input %u has %zu dimensions", (unsigned)i, n);
  if (s == HEDDLE_OK) s = ep_take(c->e, ORT(api, GetDimensions)(info, dims, n), err);
  ORT(api, ReleaseTensorTypeAndShapeInfo)(info);
  if (s == HEDDLE_OK) s = ep_take(c->e, ORT(api, GetTensorData)(value, &data), err);
  if (s == HEDDLE_OK) s = heddle_executor_input_info(ex, (uint32_t)c->inputs[i], &io, err);
  if (s == HEDDLE_OK)
    s = heddle_tensor_wrap((void *)(uintptr_t)data, io.dtype, dims, (uint32_t)n, NULL, NULL, NULL, &t, err);
  if (s == HEDDLE_OK) s = heddle_executor_set_input(ex, (uint32_t)c->inputs[i], t, err);
  heddle_tensor_release(t);
  return s;
}

static heddle_status get_output(compute *c, heddle_executor *ex, ort_kernel_context *context, uint32_t i,
                                heddle_error *err) {
  const ort_api *api = c->e->api;
  heddle_tensor *from = NULL, *to = NULL;
  ort_value *value = NULL;
  void *data = NULL;
  heddle_status s = heddle_executor_view_output(ex, (uint32_t)c->outputs[i], &from, err);
  if (s != HEDDLE_OK) return s;
  const int64_t *shape = heddle_tensor_shape(from);
  const uint32_t ndim = heddle_tensor_ndim(from);
  s = ep_take(c->e, ORT(api, KernelContext_GetOutput)(context, i, shape, ndim, &value), err);
  if (s == HEDDLE_OK) s = ep_take(c->e, ORT(api, GetTensorMutableData)(value, &data), err);
  if (s == HEDDLE_OK) s = heddle_tensor_wrap(data, heddle_tensor_dtype(from), shape, ndim, NULL, NULL, NULL, &to, err);
  if (s == HEDDLE_OK) s = heddle_tensor_copy(to, from, err);
  heddle_tensor_release(to);
  heddle_tensor_release(from);
  return s;
}

static ort_status *run_compute(ort_compute *self, void *state, ort_kernel_context *context) {
  compute *c = (compute *)self;
  heddle_error err = {0};
  idle *i = NULL;
  (void)state;
  heddle_status s = take_executor(c, &i, &err);
  for (uint32_t k = 0; s == HEDDLE_OK && k < c->n_inputs; k++)
    if (c->inputs[k] >= 0) s = set_input(c, i->ex, context, k, &err);
  if (s == HEDDLE_OK) s = heddle_executor_run(i->ex, UINT64_MAX, &err);
  for (uint32_t k = 0; s == HEDDLE_OK && k < c->n_outputs; k++)
    if (c->outputs[k] >= 0) s = get_output(c, i->ex, context, k, &err);
  if (i != NULL) give_executor(c, i);
  return ep_status(c->e->api, s, &err);
}

static ort_status *create_state(ort_compute *self, ort_compute_context *context, void **state) {
  (void)context;
  *state = self;
  return NULL;
}

static void release_state(ort_compute *self, void *state) {
  (void)self;
  (void)state;
}

/* ---- compiling */

static void drop(compute *c) {
  if (c == NULL) return;
  while (c->executors != NULL) {
    idle *next = c->executors->next;
    heddle_executor_release(c->executors->ex);
    free(c->executors);
    c->executors = next;
  }
  heddle_model_release(c->model);
  pthread_mutex_destroy(&c->lock);
  free(c->inputs);
  free(c->outputs);
  free(c);
}

/* The numbers that an executor of the model has for the names of a node's values. */
static heddle_status number_values(compute *c, const ort_value_info **in, const ort_value_info **out,
                                   heddle_error *err) {
  idle *first = NULL;
  c->inputs = calloc(c->n_inputs + 1, sizeof *c->inputs);
  c->outputs = calloc(c->n_outputs + 1, sizeof *c->outputs);
  if (c->inputs == NULL || c->outputs == NULL) return p_fail(err, HEDDLE_ENOMEM, 0, "no memory for a part of a graph");
  const heddle_status s = take_executor(c, &first, err);
  if (s != HEDDLE_OK) return s;
  for (uint32_t i = 0; i < c->n_inputs; i++)
    c->inputs[i] = in[i] != NULL ? heddle_executor_input_index(first->ex, ep_value_name(c->e, in[i])) : -1;
  /* The outputs of a model have the order that it was written with; absent ones were left out. */
  int32_t next = 0;
  for (uint32_t i = 0; i < c->n_outputs; i++) c->outputs[i] = ep_value_name(c->e, out[i])[0] != '\0' ? next++ : -1;
  give_executor(c, first);
  if ((uint32_t)next == heddle_executor_output_count(first->ex)) return HEDDLE_OK;
  return p_fail(err, HEDDLE_EINVAL, 0, "a part of a graph has %u outputs, and its model %u", (unsigned)next,
                (unsigned)heddle_executor_output_count(first->ex));
}

static heddle_status compile_part(ep *e, const ort_graph *graph, const ort_node *fused, heddle__arena *arena,
                                  compute *c, heddle_error *err) {
  const ort_value_info **in = NULL, **out = NULL;
  const ort_node **nodes = NULL;
  size_t n_in = 0, n_out = 0, n = 0, bytes = 0;
  void *data = NULL;
  heddle_status s = ep_take(e, ORT(e->api, Graph_GetNumNodes)(graph, &n), err);
  if (s == HEDDLE_OK) s = ep_node_values(e, fused, false, arena, &in, &n_in, err);
  if (s == HEDDLE_OK) s = ep_node_values(e, fused, true, arena, &out, &n_out, err);
  if (s == HEDDLE_OK && (nodes = heddle__arena_take(arena, n + 1, sizeof *nodes)) == NULL)
    s = p_fail(err, HEDDLE_ENOMEM, 0, "no memory for a part of a graph");
  if (s == HEDDLE_OK) s = ep_take(e, ORT(e->api, Graph_GetNodes)(graph, nodes, n), err);
  const ep_part part = {graph, nodes, in, out, n, n_in, n_out, SIZE_MAX};
  if (s == HEDDLE_OK) s = ep_model_bytes(e, &part, arena, &data, &bytes, err);
  if (s == HEDDLE_OK) s = heddle_model_parse(e->ctx, data, bytes, NULL, &e->options, &c->model, err);
  c->n_inputs = (uint32_t)n_in;
  c->n_outputs = (uint32_t)n_out;
  return s == HEDDLE_OK ? number_values(c, in, out, err) : s;
}

ort_status *ep_compile(ort_ep *self, const ort_graph **graphs, const ort_node **fused, size_t n, ort_compute **out,
                       ort_node **context_nodes) {
  ep *e = (ep *)self;
  heddle_error err = {0};
  heddle_status s = HEDDLE_OK;
  (void)context_nodes; /* compiled models are Heddle's own packages */
  for (size_t i = 0; i < n; i++) out[i] = NULL;
  for (size_t i = 0; s == HEDDLE_OK && i < n; i++) {
    heddle__arena arena = {0};
    compute *c = calloc(1, sizeof *c);
    if (c == NULL) {
      s = p_fail(&err, HEDDLE_ENOMEM, 0, "no memory for a part of a graph");
      break;
    }
    c->base = (ort_compute){ORT_API_VERSION, create_state, run_compute, release_state};
    c->e = e;
    pthread_mutex_init(&c->lock, NULL);
    s = compile_part(e, graphs[i], fused[i], &arena, c, &err);
    heddle__arena_drop(&arena);
    if (s == HEDDLE_OK) out[i] = &c->base;
    else drop(c);
  }
  if (s != HEDDLE_OK) ep_release_computes(self, out, n);
  return ep_status(e->api, s, &err);
}

void ep_release_computes(ort_ep *self, ort_compute **infos, size_t n) {
  (void)self;
  for (size_t i = 0; i < n; i++) {
    drop((compute *)infos[i]);
    infos[i] = NULL;
  }
}
