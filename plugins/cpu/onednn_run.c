/* Prepared primitives and their launches. A launch has for each part an own oneDNN stream and memory objects on the
 * addresses that bind was given, so that running it is one call a part; oneDNN itself allocates a little in that call.
 * Parts run on the core's pool, each on one thread. */
#include "cpu.h"
#include "onednn_lowest.h"
#include "onednn_sgemm.h"
#include "onednn_special.h"
#include "onednn_steps.h"

/* n_kinds is 1 at least; a region that is not cut has one part. */
struct onednn_op {
  onednn *self;
  onednn_special *special;  /* where there is one, the rest is not used */
  dnnl_primitive_desc_t pd; /* the whole's: what operands need */
  dnnl_primitive_desc_t kinds[ONEDNN_KINDS];
  dnnl_primitive_t primitives[ONEDNN_KINDS]; /* NULL: products has it */
  onednn_sgemm products[ONEDNN_KINDS];
  onednn_lowest lowest[ONEDNN_KINDS];
  uint64_t workspace, workspace_each;
  uint32_t n_args, n_kinds, n_parts, reserved;
  onednn_arg args[ONEDNN_ARGS];
  onednn_steps *steps; /* where launches can be resized */
  onednn_part parts[];
};

typedef struct launch_part {
  const onednn_lowest *lowest; /* NULL: nothing to mend */
  const void *src;
  void *dst;
  const onednn_sgemm *product;
  dnnl_primitive_t primitive;
  dnnl_stream_t stream;
  int n_args;
  dnnl_status_t status; /* of the last run */
  bool skipped;         /* in it, since it was to end */
  dnnl_exec_arg_t args[ONEDNN_ARGS + 1];
} launch_part;

struct onednn_launch {
  const onednn_op *op;
  onednn_special_launch *special; /* likewise */
  onednn_steps_launch *steps;     /* NULL: it cannot be resized */
  bool is_resized;                /* then steps is what runs */
  launch_part parts[];
};

static uint64_t arg_bytes(const_dnnl_primitive_desc_t pd, int arg) {
  const_dnnl_memory_desc_t md = dnnl_primitive_desc_query_md(pd, dnnl_query_exec_arg_md, arg);
  return md != NULL ? dnnl_memory_desc_get_size(md) : 0;
}

static dnnl_status_t make_primitives(onednn_op *op, const onednn_plan *plan) {
  const uint32_t kinds = plan->n_kinds > 0 ? plan->n_kinds : 1;
  const int before = onednn_threads_enter(op->self);
  dnnl_status_t s = dnnl_primitive_desc_clone(&op->pd, plan->pd);
  for (uint32_t i = 0; i < kinds && s == dnnl_success; i++) {
    s = dnnl_primitive_desc_clone(&op->kinds[i], plan->n_kinds > 0 ? plan->kinds[i] : plan->pd);
    if (s == dnnl_success) s = onednn_sgemm_or_primitive(op->self, op->kinds[i], &op->products[i], &op->primitives[i]);
    if (s == dnnl_success) s = onednn_lowest_read(op->kinds[i], &op->lowest[i]);
    op->n_kinds = i + 1;
  }
  onednn_threads_leave(op->self, before);
  return s;
}

heddle_status onednn_op_make(onednn *self, const onednn_plan *plan, cpu_operand *operands, onednn_op **out,
                             heddle_error *err) {
  const heddle_pregion *region = plan->region;
  const uint32_t parts = plan->n_parts > 0 ? plan->n_parts : 1;
  const size_t bytes = sizeof(onednn_op) + parts * sizeof(onednn_part);
  onednn_op *op = self->host->alloc(self->host->ctx, bytes, _Alignof(onednn_op));
  if (op == NULL) return p_fail(err, HEDDLE_ENOMEM, 0, "cpu: no memory for an operator");
  memset(op, 0, bytes);
  op->self = self;
  op->n_args = plan->n_args;
  op->n_parts = parts;
  memcpy(op->args, plan->args, sizeof op->args);
  memcpy(op->parts, plan->parts, plan->n_parts * sizeof *op->parts);
  op->workspace = onednn_plan_workspace(plan, &op->workspace_each);
  heddle_status s = plan->by_winograd ? winograd_hold(self, &plan->winograd, &op->special, err)
                                      : onednn_fail(make_primitives(op, plan), "making a primitive", err);
  if (s == HEDDLE_OK && plan->ladder.n_rungs > 0)
    s = onednn_steps_make(self, plan, op->workspace_each, &op->steps, err);
  if (s != HEDDLE_OK) {
    onednn_op_free(op);
    return s;
  }
  for (uint32_t i = 0; i < region->n_inputs + region->n_outputs; i++) operands[i] = (cpu_operand){0, 1};
  for (uint32_t i = 0; i < op->n_args; i++) {
    const onednn_arg *a = &op->args[i];
    const heddle_layout layout = a->output ? plan->output : plan->inputs[a->slot];
    operands[a->slot + (a->output ? region->n_inputs : 0)] =
        plan->by_winograd ? winograd_operand(&plan->winograd, a->slot, a->output)
                          : (cpu_operand){arg_bytes(op->pd, a->arg), layout != 0 ? CPU_ALIGNMENT : sizeof(float)};
    if (layout == 0) operands[a->slot + (a->output ? region->n_inputs : 0)].align = sizeof(float);
  }
  *out = op;
  return HEDDLE_OK;
}

heddle_status onednn_op_hold(onednn *self, onednn_special *special, onednn_op **out, heddle_error *err) {
  onednn_op *op = self->host->alloc(self->host->ctx, sizeof *op, _Alignof(onednn_op));
  if (op == NULL) {
    special->free(special);
    return p_fail(err, HEDDLE_ENOMEM, 0, "cpu: no memory for an operator");
  }
  memset(op, 0, sizeof *op);
  op->self = self;
  op->special = special;
  op->workspace = special->workspace;
  *out = op;
  return HEDDLE_OK;
}

void onednn_op_free(onednn_op *op) {
  if (op == NULL) return;
  if (op->special != NULL) op->special->free(op->special);
  onednn_steps_free(op->steps);
  for (uint32_t i = 0; i < op->n_kinds; i++) {
    if (op->primitives[i] != NULL) dnnl_primitive_destroy(op->primitives[i]);
    if (op->kinds[i] != NULL) dnnl_primitive_desc_destroy(op->kinds[i]);
  }
  if (op->pd != NULL) dnnl_primitive_desc_destroy(op->pd);
  op->self->host->free(op->self->host->ctx, op);
}

uint64_t onednn_workspace(const onednn_op *op) {
  return op->workspace;
}

/* ---------------------------------------------------------------- launches */

static dnnl_status_t add_memory(const onednn_op *op, launch_part *part, uint32_t kind, int arg, void *base,
                                uint64_t offset) {
  const_dnnl_memory_desc_t md = dnnl_primitive_desc_query_md(op->kinds[kind], dnnl_query_exec_arg_md, arg);
  dnnl_exec_arg_t *at = &part->args[part->n_args];
  dnnl_status_t s = dnnl_memory_create(&at->memory, md, op->self->engine, (char *)base + offset);
  if (s != dnnl_success) return s;
  at->arg = arg;
  part->n_args++;
  return dnnl_success;
}

static dnnl_status_t bind_part(const onednn_op *op, uint32_t number, void *const *inputs, void *const *outputs,
                               void *workspace, launch_part *part) {
  const onednn_part *from = &op->parts[number];
  part->primitive = op->primitives[from->kind];
  part->product = &op->products[from->kind];
  if (op->lowest[from->kind].needed) part->lowest = &op->lowest[from->kind];
  dnnl_status_t s = dnnl_stream_create(&part->stream, op->self->engine, dnnl_stream_default_flags);
  for (uint32_t i = 0; i < op->n_args && s == dnnl_success; i++) {
    const onednn_arg *a = &op->args[i];
    char *base = a->output ? outputs[a->slot] : inputs[a->slot];
    s = add_memory(op, part, from->kind, a->arg, base, from->offsets[i]);
    if (a->arg == DNNL_ARG_SRC) part->src = base + from->offsets[i];
    else if (a->arg == DNNL_ARG_DST) part->dst = base + from->offsets[i];
  }
  if (s == dnnl_success && arg_bytes(op->kinds[from->kind], DNNL_ARG_SCRATCHPAD) > 0)
    s = add_memory(op, part, from->kind, DNNL_ARG_SCRATCHPAD, workspace,
                   number % onednn_tasks(op->n_parts) * op->workspace_each);
  return s;
}

heddle_status onednn_bind(onednn_op *op, void *const *inputs, void *const *outputs, void *workspace,
                          onednn_launch **out, heddle_error *err) {
  const heddle_host *host = op->self->host;
  const size_t bytes = sizeof(onednn_launch) + op->n_parts * sizeof(launch_part);
  onednn_launch *launch = host->alloc(host->ctx, bytes, _Alignof(onednn_launch));
  dnnl_status_t s = dnnl_success;
  if (launch == NULL) return p_fail(err, HEDDLE_ENOMEM, 0, "cpu: no memory for a launch");
  memset(launch, 0, bytes);
  launch->op = op;
  if (op->special != NULL) {
    heddle_status bound = op->special->bind(op->special, inputs, outputs, workspace, &launch->special, err);
    if (bound != HEDDLE_OK) onednn_launch_free(launch);
    else *out = launch;
    return bound;
  }
  for (uint32_t i = 0; i < op->n_parts && s == dnnl_success; i++)
    s = bind_part(op, i, inputs, outputs, workspace, &launch->parts[i]);
  heddle_status bound = onednn_fail(s, "binding operands", err);
  if (bound == HEDDLE_OK && op->steps != NULL) bound = onednn_steps_bind(op->steps, workspace, &launch->steps, err);
  if (bound != HEDDLE_OK) onednn_launch_free(launch);
  else *out = launch;
  return bound;
}

heddle_status onednn_move(onednn_launch *launch, void *const *inputs, void *const *outputs, heddle_error *err) {
  const onednn_op *op = launch->op;
  if (launch->special != NULL) {
    if (launch->special->move == NULL) return p_fail(err, HEDDLE_EUNSUPPORTED, 0, "cpu: this launch cannot be moved");
    launch->special->move(launch->special, inputs, outputs);
    return HEDDLE_OK;
  }
  dnnl_status_t s = dnnl_success;
  for (uint32_t k = 0; k < op->n_parts; k++) {
    launch_part *part = &launch->parts[k];
    for (uint32_t i = 0; i < op->n_args && s == dnnl_success; i++) {
      const onednn_arg *a = &op->args[i];
      char *at = (char *)(a->output ? outputs[a->slot] : inputs[a->slot]) + op->parts[k].offsets[i];
      s = dnnl_memory_set_data_handle(part->args[i].memory, at);
      if (a->arg == DNNL_ARG_SRC) part->src = at;
      else if (a->arg == DNNL_ARG_DST) part->dst = at;
    }
  }
  return onednn_fail(s, "taking an address", err);
}

bool onednn_op_resizes(const onednn_op *op) {
  return op->special != NULL ? op->special->resizes : op->steps != NULL;
}

uint64_t onednn_op_each(const onednn_op *op, uint32_t operand) {
  return op->special != NULL && op->special->each != NULL ? op->special->each(op->special, operand) : 0;
}

heddle_status onednn_resize(onednn_launch *launch, const heddle_pregion *region, void *const *inputs,
                            void *const *outputs, heddle_error *err) {
  if (launch->special != NULL && launch->special->resize != NULL)
    return launch->special->resize(launch->special, region, inputs, outputs, err);
  if (launch->steps == NULL) return p_fail(err, HEDDLE_EUNSUPPORTED, 0, "cpu: this launch cannot be resized");
  const heddle_status s = onednn_steps_resize(launch->steps, region, inputs, outputs, err);
  launch->is_resized = launch->is_resized || s == HEDDLE_OK;
  return s;
}

void onednn_launch_free(onednn_launch *launch) {
  if (launch == NULL) return;
  const heddle_host *host = launch->op->self->host;
  if (launch->special != NULL) launch->special->free(launch->special);
  onednn_steps_launch_free(launch->steps);
  for (uint32_t i = 0; i < launch->op->n_parts; i++) {
    launch_part *part = &launch->parts[i];
    for (int k = 0; k < part->n_args; k++) dnnl_memory_destroy(part->args[k].memory);
    if (part->stream != NULL) dnnl_stream_destroy(part->stream);
  }
  host->free(host->ctx, launch);
}

/* Parts i, i + n, ...: a nested call runs them all. */
static void run_parts(void *arg, uint32_t i, uint32_t n) {
  onednn_launch *launch = arg;
  const onednn *self = launch->op->self;
  const int before = onednn_threads_enter(self);
  for (uint32_t k = i; k < launch->op->n_parts; k += n) {
    launch_part *part = &launch->parts[k];
    part->skipped = k > 0 && onednn_stops(self);
    part->status = dnnl_success;
    if (part->skipped) continue;
    part->status = onednn_sgemm_execute(part->product, part->primitive, part->stream, part->n_args, part->args);
    if (part->status == dnnl_success && part->lowest != NULL)
      part->skipped = !onednn_lowest_mend(self, part->lowest, part->src, part->dst);
  }
  onednn_threads_leave(self, before);
}

heddle_status onednn_run(onednn_launch *launch, heddle_error *err) {
  if (launch->special != NULL) return launch->special->run(launch->special, err);
  if (launch->is_resized) return onednn_steps_run(launch->steps, err);
  const heddle_host *host = launch->op->self->host;
  const uint32_t parts = launch->op->n_parts;
  if (parts > 1) host->run_parallel(host->ctx, onednn_tasks(parts), 0, run_parts, launch, NULL);
  else run_parts(launch, 0, 1);
  for (uint32_t i = 0; i < parts; i++) {
    if (launch->parts[i].status != dnnl_success)
      return onednn_fail(launch->parts[i].status, "running a primitive", err);
    if (launch->parts[i].skipped) return onednn_stopped(launch->op->self, err);
  }
  return HEDDLE_OK;
}
