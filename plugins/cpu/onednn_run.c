/* Prepared primitives and their launches. A launch has its own oneDNN stream and memory objects on the addresses that
 * bind was given, so that running it is one call; oneDNN itself allocates a little in that call. */
#include "cpu.h"
#include "onednn_run.h"

struct onednn_op {
  onednn *self;
  dnnl_primitive_desc_t pd;
  dnnl_primitive_t primitive;
  uint64_t workspace;
  uint32_t threads, n_args;
  onednn_arg args[sizeof((onednn_plan *)0)->args / sizeof(onednn_arg)];
};

struct onednn_launch {
  const onednn_op *op;
  dnnl_stream_t stream;
  int n_args, reserved;
  dnnl_exec_arg_t args[sizeof((onednn_plan *)0)->args / sizeof(onednn_arg) + 1];
};

static uint64_t arg_bytes(const_dnnl_primitive_desc_t pd, int arg) {
  const_dnnl_memory_desc_t md = dnnl_primitive_desc_query_md(pd, dnnl_query_exec_arg_md, arg);
  return md != NULL ? dnnl_memory_desc_get_size(md) : 0;
}

heddle_status onednn_op_make(onednn *self, const onednn_plan *plan, cpu_operand *operands, onednn_op **out,
                             heddle_error *err) {
  const heddle_pregion *region = plan->region;
  onednn_op *op = self->host->alloc(self->host->ctx, sizeof *op, _Alignof(onednn_op));
  if (op == NULL) return p_fail(err, HEDDLE_ENOMEM, 0, "cpu: no memory for an operator");
  memset(op, 0, sizeof *op);
  op->self = self;
  op->threads = plan->threads;
  op->n_args = plan->n_args;
  memcpy(op->args, plan->args, sizeof op->args);
  const int before = onednn_threads_enter(self, plan->threads);
  dnnl_status_t s = dnnl_primitive_desc_clone(&op->pd, plan->pd);
  if (s == dnnl_success) s = dnnl_primitive_create(&op->primitive, op->pd);
  onednn_threads_leave(self, before);
  if (s != dnnl_success) {
    onednn_op_free(op);
    return onednn_fail(s, "making a primitive", err);
  }
  for (uint32_t i = 0; i < region->n_inputs + region->n_outputs; i++) operands[i] = (cpu_operand){0, 1};
  for (uint32_t i = 0; i < op->n_args; i++) {
    const onednn_arg *a = &op->args[i];
    const heddle_layout layout = a->output ? plan->output : plan->inputs[a->slot];
    operands[a->slot + (a->output ? region->n_inputs : 0)] =
        (cpu_operand){arg_bytes(op->pd, a->arg), layout != 0 ? CPU_ALIGNMENT : sizeof(float)};
  }
  op->workspace = arg_bytes(op->pd, DNNL_ARG_SCRATCHPAD);
  *out = op;
  return HEDDLE_OK;
}

void onednn_op_free(onednn_op *op) {
  if (op == NULL) return;
  if (op->primitive != NULL) dnnl_primitive_destroy(op->primitive);
  if (op->pd != NULL) dnnl_primitive_desc_destroy(op->pd);
  op->self->host->free(op->self->host->ctx, op);
}

uint64_t onednn_workspace(const onednn_op *op) {
  return op->workspace;
}

static dnnl_status_t add_memory(onednn_launch *launch, int arg, void *address) {
  const onednn_op *op = launch->op;
  const_dnnl_memory_desc_t md = dnnl_primitive_desc_query_md(op->pd, dnnl_query_exec_arg_md, arg);
  dnnl_exec_arg_t *at = &launch->args[launch->n_args];
  dnnl_status_t s = dnnl_memory_create(&at->memory, md, op->self->engine, address);
  if (s != dnnl_success) return s;
  at->arg = arg;
  launch->n_args++;
  return dnnl_success;
}

heddle_status onednn_bind(onednn_op *op, void *const *inputs, void *const *outputs, void *workspace,
                          onednn_launch **out, heddle_error *err) {
  const heddle_host *host = op->self->host;
  onednn_launch *launch = host->alloc(host->ctx, sizeof *launch, _Alignof(onednn_launch));
  if (launch == NULL) return p_fail(err, HEDDLE_ENOMEM, 0, "cpu: no memory for a launch");
  memset(launch, 0, sizeof *launch);
  launch->op = op;
  dnnl_status_t s = dnnl_stream_create(&launch->stream, op->self->engine, dnnl_stream_default_flags);
  for (uint32_t i = 0; i < op->n_args && s == dnnl_success; i++) {
    const onednn_arg *a = &op->args[i];
    s = add_memory(launch, a->arg, a->output ? outputs[a->slot] : inputs[a->slot]);
  }
  if (s == dnnl_success && op->workspace > 0) s = add_memory(launch, DNNL_ARG_SCRATCHPAD, workspace);
  if (s != dnnl_success) {
    onednn_launch_free(launch);
    return onednn_fail(s, "binding operands", err);
  }
  *out = launch;
  return HEDDLE_OK;
}

void onednn_launch_free(onednn_launch *launch) {
  if (launch == NULL) return;
  const heddle_host *host = launch->op->self->host;
  for (int i = 0; i < launch->n_args; i++) dnnl_memory_destroy(launch->args[i].memory);
  if (launch->stream != NULL) dnnl_stream_destroy(launch->stream);
  host->free(host->ctx, launch);
}

/* A second caller who wants several threads waits for the first: all cores are at work, and OpenMP would start another
 * row of threads for him, whose barriers spin against the first row's. */
heddle_status onednn_run(onednn_launch *launch, heddle_error *err) {
  const onednn_op *op = launch->op;
  onednn *self = op->self;
  if (op->threads > 1) pthread_mutex_lock(self->lane);
  const int before = onednn_threads_enter(self, op->threads);
  dnnl_status_t s = dnnl_primitive_execute(op->primitive, launch->stream, launch->n_args, launch->args);
  if (s == dnnl_success) s = dnnl_stream_wait(launch->stream);
  onednn_threads_leave(self, before);
  if (op->threads > 1) pthread_mutex_unlock(self->lane);
  return s == dnnl_success ? HEDDLE_OK : onednn_fail(s, "running a primitive", err);
}
