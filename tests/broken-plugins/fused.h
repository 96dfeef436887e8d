/* tests/broken-plugins/fused.h: the sound plugin with regions of several nodes: Add, Sub, Relu and Gemm of float32 run
 * one after the other over memory of the launch, which partition proposes as many of as are connected in a row. Included
 * after base.h; FUSED_FIX, where it is defined, is a function that spoils the steps of a region of more than one node. */
#ifndef HEDDLE_TESTS_BROKEN_FUSED_H
#define HEDDLE_TESTS_BROKEN_FUSED_H

#include "base.h"

#include "plugins/common/region.h"

enum { FUSED_ADD, FUSED_SUB, FUSED_RELU, FUSED_GEMM, FUSED_KINDS, FUSED_COPY, FUSED_MOST = 8, FUSED_VALUES = 32 };

typedef struct fused_step {
  int kind;
  int32_t a, b, c, out; /* values of the region; c: Gemm's third operand, -1: none */
  uint64_t m, k, n;     /* elementwise: n elements */
} fused_step;

typedef struct fused_op {
  heddle_pop head;
  uint32_t n_steps, n_values, n_outputs;
  fused_step steps[FUSED_MOST];
  int32_t inputs[FUSED_VALUES], outputs[FUSED_VALUES];
  uint64_t count[FUSED_VALUES];
  bool inside[FUSED_VALUES]; /* neither an operand nor a result */
} fused_op;

typedef struct fused_launch {
  heddle_plaunch head;
  float *at[FUSED_VALUES];
  void *block;
} fused_launch;

#ifdef FUSED_FIX
static void FUSED_FIX(fused_op *op);
#endif

static heddle_status fused_step_of(const heddle_pregion *region, const heddle_pnode *node, fused_step *s,
                                   heddle_error *err) {
  static const char *const names[] = {"Add", "Sub", "Relu", "Gemm"};
  const heddle_pvalue *y = region_node_output(region, node, 0);
  *s = (fused_step){.c = -1, .n = 1};
  while (s->kind < FUSED_KINDS && strcmp(node->op, names[s->kind]) != 0) s->kind++;
  const char *name = node->name != NULL ? node->name : "";
  if (s->kind == FUSED_KINDS || node->domain[0] != '\0' || region_opset(node, 28) < 13 || region_opset(node, 28) > 28)
    return p_fail(err, HEDDLE_EUNSUPPORTED, 0, "node '%s': %s: no such operator here", name, node->op);
  const bool gemm = s->kind == FUSED_GEMM;
  const uint32_t most = gemm ? 3 : s->kind == FUSED_RELU ? 1 : 2;
  bool good = node->n_outputs == 1 && node->n_inputs <= most && node->n_inputs >= (gemm ? 2 : most) &&
              node->attrs.count == 0 && y->ndim <= 8;
  for (uint32_t i = 0; good && i < node->n_inputs; i++) {
    const heddle_pvalue *x = region_node_input(region, node, i);
    good = x != NULL && region_dtype_is(x->dtype, HEDDLE_DTYPE_FLOAT, 32) &&
           (gemm && i < 2 ? x->ndim == 2 : region_shape_equal(x, y));
  }
  good = good && region_dtype_is(y->dtype, HEDDLE_DTYPE_FLOAT, 32) && region_value_count(y, &s->n);
  if (!good) return p_fail(err, HEDDLE_EUNSUPPORTED, 0, "node '%s': %s: of other operands", name, node->op);
  s->a = node->inputs[0];
  s->b = most > 1 ? node->inputs[1] : node->inputs[0];
  s->out = node->outputs[0];
  if (!gemm) return HEDDLE_OK;
  const heddle_pvalue *a = region_node_input(region, node, 0), *b = region_node_input(region, node, 1);
  if (a->shape[1] != b->shape[0] || y->ndim != 2 || y->shape[0] != a->shape[0] || y->shape[1] != b->shape[1])
    return p_fail(err, HEDDLE_EUNSUPPORTED, 0, "node '%s': %s: the shapes do not fit", name, node->op);
  s->c = node->n_inputs > 2 ? node->inputs[2] : -1;
  s->m = (uint64_t)a->shape[0], s->k = (uint64_t)a->shape[1], s->n = (uint64_t)b->shape[1];
  return HEDDLE_OK;
}

static heddle_status fused_make(const heddle_pregion *region, fused_op *op, heddle_error *err) {
  heddle_status status = HEDDLE_OK;
  if (region->nodes.count > FUSED_MOST || region->values.count > FUSED_VALUES)
    return p_fail(err, HEDDLE_EUNSUPPORTED, 0, "the region of '%s' is too large", region_node(region, 0)->op);
  for (uint32_t i = 0; i < region->nodes.count && status == HEDDLE_OK; i++)
    status = fused_step_of(region, region_node(region, i), &op->steps[op->n_steps++], err);
  op->n_values = (uint32_t)region->values.count;
  for (uint32_t v = 0; v < op->n_values && status == HEDDLE_OK; v++) {
    op->inside[v] = true;
    if (!region_value_count(region_value(region, (int32_t)v), &op->count[v]))
      status = p_fail(err, HEDDLE_EUNSUPPORTED, 0, "a value of '%s' is too large", region_node(region, 0)->op);
  }
  if (status != HEDDLE_OK) return status;
  for (uint32_t i = 0; i < region->n_inputs; i++) op->inside[op->inputs[i] = region->inputs[i]] = false;
  for (uint32_t i = 0; i < region->n_outputs; i++) op->inside[op->outputs[i] = region->outputs[i]] = false;
  op->head.n_inputs = region->n_inputs;
  op->n_outputs = region->n_outputs;
#ifdef FUSED_FIX
  if (op->n_steps > 1) FUSED_FIX(op);
#endif
  return HEDDLE_OK;
}

static heddle_status fused_query(heddle_pinstance *self, uint32_t index, const heddle_pregion *region,
                                 heddle_offer_fn offer, void *sink, heddle_error *err) {
  (void)self, (void)index;
  fused_op op = {.n_steps = 0};
  heddle_status status = fused_make(region, &op, err);
  if (status != HEDDLE_OK) return status;
  heddle_poffer mine = {.struct_size = sizeof mine};
  return offer(sink, &mine, err);
}

static heddle_status fused_list(heddle_pinstance *self, uint32_t index, heddle_list_fn list, void *sink,
                                heddle_error *err) {
  (void)self, (void)index;
  static const char *const names[] = {"Add", "Sub", "Relu", "Gemm"};
  heddle_status status = HEDDLE_OK;
  for (int i = 0; i < FUSED_KINDS && status == HEDDLE_OK; i++)
    status = list(sink, "", names[i], 13, 28, "float32", err);
  return status;
}

/* Each node with those after it, as long as each reads the one before; of those that query takes. */
static heddle_status fused_partition(heddle_pinstance *self, uint32_t index, const heddle_pregion *region,
                                     heddle_propose_fn propose, void *sink, heddle_error *err) {
  (void)self, (void)index;
  uint32_t row[FUSED_MOST], n = 0;
  heddle_status status = HEDDLE_OK;
  for (uint32_t i = 0; i < region->nodes.count && status == HEDDLE_OK; i++) {
    const heddle_pnode *node = region_node(region, i);
    fused_step step;
    heddle_error ignored;
    const bool taken = fused_step_of(region, node, &step, &ignored) == HEDDLE_OK;
    bool reads = false;
    for (uint32_t j = 0; n > 0 && j < node->n_inputs; j++)
      reads = reads || node->inputs[j] == region_node(region, i - 1)->outputs[0];
    if (!taken || !reads || n == FUSED_MOST) {
      if (n > 1) status = propose(sink, row, n, err);
      n = 0;
    }
    if (taken) row[n++] = i;
  }
  return n > 1 && status == HEDDLE_OK ? propose(sink, row, n, err) : status;
}

static heddle_status fused_prepare(heddle_pdevice *dev, const heddle_pregion *region, uint32_t offer, heddle_pop **out,
                                   heddle_error *err) {
  if (offer != 0) return p_fail(err, HEDDLE_EINVAL, 0, "offer %u was not made", offer);
  fused_op *op = base_zeroed(dev->host, sizeof *op);
  if (op == NULL) return p_fail(err, HEDDLE_ENOMEM, 0, "device %u: no memory for an operator", dev->index);
  heddle_status status = fused_make(region, op, err);
  if (status != HEDDLE_OK) {
    dev->host->free(dev->host->ctx, op);
    return status;
  }
  op->head.dev = dev;
  atomic_fetch_add(&dev->live_objects, 1);
  *out = &op->head;
  return HEDDLE_OK;
}

static heddle_status fused_operand(const fused_op *op, int32_t value, const heddle_pslice *slice, fused_launch *l,
                                   heddle_error *err) {
  if (op->count[value] == 0) return HEDDLE_OK;
  heddle_status status = base_range(slice->buffer, slice->offset, op->count[value] * sizeof(float), err);
  if (status == HEDDLE_OK && slice->offset % BASE_ALIGNMENT != 0)
    status = p_fail(err, HEDDLE_EINVAL, 0, "an operand at %llu; offsets are multiples of %llu",
                    (unsigned long long)slice->offset, (unsigned long long)BASE_ALIGNMENT);
  if (status == HEDDLE_OK) l->at[value] = (float *)(void *)(slice->buffer->bytes + slice->offset);
  return status;
}

static void fused_launch_free(heddle_plaunch *launch) {
  fused_launch *l = (fused_launch *)(void *)launch;
  if (l == NULL) return;
  const heddle_host *host = l->head.op->dev->host;
  atomic_fetch_sub(&l->head.op->dev->live_objects, 1);
  if (l->block != NULL) host->free(host->ctx, l->block);
  host->free(host->ctx, l);
}

static heddle_status fused_bind(heddle_pop *head, heddle_pstream *stream, const heddle_pbind *operands,
                                heddle_plaunch **out, heddle_error *err) {
  fused_op *op = (fused_op *)(void *)head;
  const heddle_host *host = head->dev->host;
  uint64_t inside = 0;
  if (operands->n_inputs != head->n_inputs || operands->n_outputs != op->n_outputs)
    return p_fail(err, HEDDLE_EINVAL, 0, "%u operands and %u results; %u and %u are needed", operands->n_inputs,
                  operands->n_outputs, head->n_inputs, op->n_outputs);
  fused_launch *l = base_zeroed(host, sizeof *l);
  for (uint32_t v = 0; v < op->n_values; v++) inside += op->inside[v] ? op->count[v] : 0;
  if (l != NULL) l->block = base_zeroed(host, (inside + 1) * sizeof(float));
  if (l == NULL || l->block == NULL) {
    if (l != NULL) host->free(host->ctx, l);
    return p_fail(err, HEDDLE_ENOMEM, 0, "device %u: no memory for a launch", head->dev->index);
  }
  l->head = (heddle_plaunch){.op = head, .stream = stream};
  atomic_fetch_add(&head->dev->live_objects, 1);
  heddle_status status = HEDDLE_OK;
  for (uint32_t i = 0; i < operands->n_inputs && status == HEDDLE_OK; i++)
    status = fused_operand(op, op->inputs[i], &operands->inputs[i], l, err);
  for (uint32_t i = 0; i < operands->n_outputs && status == HEDDLE_OK; i++)
    status = fused_operand(op, op->outputs[i], &operands->outputs[i], l, err);
  float *next = l->block;
  for (uint32_t v = 0; v < op->n_values; v++) {
    if (!op->inside[v]) continue;
    l->at[v] = next;
    next += op->count[v];
  }
  if (status != HEDDLE_OK) fused_launch_free(&l->head);
  else *out = &l->head;
  return status;
}

static void fused_gemm(const fused_step *s, const float *a, const float *b, const float *c, float *y) {
  for (uint64_t i = 0; i < s->m; i++) {
    for (uint64_t j = 0; j < s->n; j++) {
      double sum = c != NULL ? (double)c[i * s->n + j] : 0;
      for (uint64_t k = 0; k < s->k; k++) sum += (double)a[i * s->k + k] * (double)b[k * s->n + j];
      y[i * s->n + j] = (float)sum;
    }
  }
}

static heddle_status fused_work(heddle_pstream *stream, base_task *task, heddle_error *err) {
  (void)stream, (void)err;
  const fused_launch *l = (const fused_launch *)(const void *)task->launch;
  const fused_op *op = (const fused_op *)(const void *)l->head.op;
  for (uint32_t i = 0; i < op->n_steps; i++) {
    const fused_step *s = &op->steps[i];
    const float *a = l->at[s->a], *b = l->at[s->b];
    float *y = l->at[s->out];
    if (s->kind == FUSED_GEMM) fused_gemm(s, a, b, s->c >= 0 ? l->at[s->c] : NULL, y);
    for (uint64_t e = 0; s->kind != FUSED_GEMM && e < s->n; e++)
      y[e] = s->kind == FUSED_ADD                ? a[e] + b[e]
             : s->kind == FUSED_SUB              ? a[e] - b[e]
             : s->kind == FUSED_RELU && a[e] < 0 ? 0
                                                 : a[e];
  }
  return HEDDLE_OK;
}

static heddle_status fused_run(heddle_plaunch *launch, heddle_error *err) {
  base_task task = {.run = fused_work, .launch = launch};
  return base_push(launch->stream, &task, err);
}

#define base_op_query fused_query
#define base_op_list fused_list
#define base_op_prepare fused_prepare
#define base_op_bind fused_bind
#define base_op_run fused_run
#define base_launch_free fused_launch_free
#define BASE_PARTITION fused_partition

#endif
