/* The sound plugin's operators: Add of equal shapes, Relu, and MatMul of two matrices, all of float32, a node a region. */
#include "base.h"

#include "plugins/common/region.h"

typedef struct plan {
  int kind;
  uint64_t m, k, n;
} plan;

static heddle_status cannot(const heddle_pnode *node, const char *why, heddle_error *err) {
  return p_fail(err, HEDDLE_EUNSUPPORTED, 0, "node '%s': %s: %s", node->name != NULL ? node->name : "", node->op, why);
}

static heddle_status plan_matmul(const heddle_pregion *region, const heddle_pnode *node, plan *out, heddle_error *err) {
  const heddle_pvalue *a = region_node_input(region, node, 0), *b = region_node_input(region, node, 1);
  const heddle_pvalue *c = region_node_output(region, node, 0);
  if (a->ndim != 2 || b->ndim != 2 || c->ndim != 2) return cannot(node, "only matrices are multiplied", err);
  if (a->shape[1] != b->shape[0] || c->shape[0] != a->shape[0] || c->shape[1] != b->shape[1])
    return cannot(node, "the shapes do not fit", err);
  *out = (plan){BASE_MATMUL, (uint64_t)a->shape[0], (uint64_t)a->shape[1], (uint64_t)b->shape[1]};
  return HEDDLE_OK;
}

static heddle_status make_plan(const heddle_pregion *region, plan *out, heddle_error *err) {
  static const char *const names[] = {"Add", "Relu", "MatMul"};
  static const uint32_t inputs[] = {2, 1, 2};
  if (region->nodes.count != 1) return p_fail(err, HEDDLE_EUNSUPPORTED, 0, "regions of one node are run, not of more");
  const heddle_pnode *node = region_node(region, 0);
  int kind = 0;
  while (kind < 3 && strcmp(node->op, names[kind]) != 0) kind++;
  if (kind == 3 || node->domain[0] != '\0' || region_opset(node, 28) < 13 || region_opset(node, 28) > 28)
    return cannot(node, "no such operator here", err);
  if (node->n_inputs != inputs[kind] || node->n_outputs != 1 || region->n_inputs > inputs[kind] ||
      region->n_outputs != 1)
    return cannot(node, "another number of operands is needed", err);
  const heddle_pvalue *result = region_node_output(region, node, 0);
  for (uint32_t i = 0; i <= node->n_inputs; i++) {
    const heddle_pvalue *value = i < node->n_inputs ? region_node_input(region, node, i) : result;
    if (value == NULL || !region_dtype_is(value->dtype, HEDDLE_DTYPE_FLOAT, 32))
      return cannot(node, "float32 is needed", err);
    if (kind != BASE_MATMUL && !region_shape_equal(value, result)) return cannot(node, "equal shapes are needed", err);
  }
  if (kind == BASE_MATMUL) return plan_matmul(region, node, out, err);
  *out = (plan){.kind = kind};
  return region_value_count(result, &out->n) ? HEDDLE_OK : cannot(node, "too many elements", err);
}

#ifdef HEDDLE_REGION_OPEN
static bool is_open(const heddle_pregion *region) {
  return (region->flags & HEDDLE_REGION_OPEN) != 0;
}
enum { RESIZES = HEDDLE_OFFER_RESIZES };
#else /* in sound_1_0 */
static bool is_open(const heddle_pregion *region) {
  (void)region;
  return false;
}
enum { RESIZES = 0 };
#endif

heddle_status base_op_query(heddle_pinstance *self, uint32_t index, const heddle_pregion *region, heddle_offer_fn offer,
                            void *sink, heddle_error *err) {
  (void)self;
  plan p;
  heddle_status status = base_index(index, err);
  if (status == HEDDLE_OK) status = make_plan(region, &p, err);
  if (status != HEDDLE_OK) return status;
  heddle_poffer mine = {.struct_size = sizeof mine, .flags = is_open(region) ? RESIZES : 0};
  return offer(sink, &mine, err);
}

heddle_status base_op_list(heddle_pinstance *self, uint32_t index, heddle_list_fn list, void *sink, heddle_error *err) {
  (void)self;
  heddle_status status = base_index(index, err);
  if (status == HEDDLE_OK) status = list(sink, "", "Add", 13, 28, "float32", err);
  if (status == HEDDLE_OK) status = list(sink, "", "Relu", 13, 28, "float32", err);
  return status != HEDDLE_OK ? status : list(sink, "", "MatMul", 13, 28, "float32", err);
}

heddle_status base_op_prepare(heddle_pdevice *dev, const heddle_pregion *region, uint32_t offer, heddle_pop **out,
                              heddle_error *err) {
  plan p;
  heddle_status status = make_plan(region, &p, err);
  if (status == HEDDLE_OK && offer != 0) status = p_fail(err, HEDDLE_EINVAL, 0, "offer %u was not made", offer);
  if (status == HEDDLE_OK) status = base_check(dev, err);
  if (status != HEDDLE_OK) return status;
  heddle_pop *op = base_zeroed(dev->host, sizeof *op);
  if (op == NULL) return p_fail(err, HEDDLE_ENOMEM, 0, "device %u: no memory for an operator", dev->index);
  const heddle_pnode *node = region_node(region, 0);
  op->dev = dev;
  op->kind = p.kind;
  op->m = p.m, op->k = p.k, op->n = p.n;
  op->slot[0] = (uint32_t)region_input_slot(region, node->inputs[0]);
  op->slot[1] = node->n_inputs == 1 ? op->slot[0] : (uint32_t)region_input_slot(region, node->inputs[1]);
  op->n_inputs = region->n_inputs;
  op->open = is_open(region);
  atomic_fetch_add(&dev->live_objects, 1);
  *out = op;
  return HEDDLE_OK;
}

void base_op_free(heddle_pop *op) {
  if (op == NULL) return;
  atomic_fetch_sub(&op->dev->live_objects, 1);
  op->dev->host->free(op->dev->host->ctx, op);
}

static heddle_status operand(const heddle_pslice *slice, uint64_t elements, float **out, heddle_error *err) {
  *out = NULL;
  if (elements == 0) return HEDDLE_OK;
  heddle_status status = base_range(slice->buffer, slice->offset, elements * sizeof(float), err);
  if (status == HEDDLE_OK && slice->offset % BASE_ALIGNMENT != 0)
    status = p_fail(err, HEDDLE_EINVAL, 0, "an operand at %llu; offsets are multiples of %llu",
                    (unsigned long long)slice->offset, (unsigned long long)BASE_ALIGNMENT);
  if (status == HEDDLE_OK) *out = (float *)(void *)(slice->buffer->bytes + slice->offset);
  return status;
}

/* The operands of a launch for its sizes; fewer elements of those that an open op is bound to. */
static heddle_status take_operands(heddle_plaunch *l, const heddle_pbind *operands, bool fewer, heddle_error *err) {
  const heddle_pop *op = l->op;
  const bool product = op->kind == BASE_MATMUL;
  float *a, *b, *result;
  const heddle_pslice *slices[3] = {&operands->inputs[op->slot[0]], &operands->inputs[op->slot[1]],
                                    &operands->outputs[0]};
  uint64_t counts[3] = {product ? l->m * l->k : l->n, product ? l->k * l->n : l->n, product ? l->m * l->n : l->n};
  for (uint32_t i = 0; i < 3 && fewer; i++)
    if (slices[i]->bytes / sizeof(float) < counts[i]) counts[i] = slices[i]->bytes / sizeof(float);
  heddle_status status = operand(slices[0], counts[0], &a, err);
  if (status == HEDDLE_OK) status = operand(slices[1], counts[1], &b, err);
  if (status == HEDDLE_OK) status = operand(slices[2], counts[2], &result, err);
  if (status != HEDDLE_OK) return status;
  l->a = a, l->b = b, l->out = result;
  return HEDDLE_OK;
}

heddle_status base_op_bind(heddle_pop *op, heddle_pstream *stream, const heddle_pbind *operands, heddle_plaunch **out,
                           heddle_error *err) {
  heddle_plaunch made = {.op = op, .stream = stream, .m = op->m, .k = op->k, .n = op->n};
  if (operands->n_inputs != op->n_inputs || operands->n_outputs != 1)
    return p_fail(err, HEDDLE_EINVAL, 0, "%u operands and %u results; %u and 1 are needed", operands->n_inputs,
                  operands->n_outputs, op->n_inputs);
  heddle_status status = take_operands(&made, operands, op->open, err);
  if (status != HEDDLE_OK) return status;
  heddle_plaunch *launch = base_zeroed(op->dev->host, sizeof *launch);
  if (launch == NULL) return p_fail(err, HEDDLE_ENOMEM, 0, "device %u: no memory for a launch", op->dev->index);
  *launch = made;
  atomic_fetch_add(&op->dev->live_objects, 1);
  *out = launch;
  return HEDDLE_OK;
}

heddle_status base_op_resize(heddle_plaunch *launch, const heddle_pregion *region, const heddle_pbind *operands,
                             heddle_error *err) {
  plan p;
  heddle_plaunch made = *launch;
  heddle_status status = make_plan(region, &p, err);
  if (status == HEDDLE_OK && !launch->op->open) status = p_fail(err, HEDDLE_EUNSUPPORTED, 0, "it is not open");
  if (status != HEDDLE_OK) return status;
  made.m = p.m, made.k = p.k, made.n = p.n;
  status = take_operands(&made, operands, false, err);
  if (status == HEDDLE_OK) *launch = made;
  return status;
}

void base_launch_free(heddle_plaunch *launch) {
  if (launch == NULL) return;
  const heddle_host *host = launch->op->dev->host;
  atomic_fetch_sub(&launch->op->dev->live_objects, 1);
  host->free(host->ctx, launch);
}

static void multiply(const heddle_plaunch *l) {
  for (uint64_t i = 0; i < l->m; i++) {
    for (uint64_t j = 0; j < l->n; j++) {
      double sum = 0;
      for (uint64_t k = 0; k < l->k; k++) sum += (double)l->a[i * l->k + k] * (double)l->b[k * l->n + j];
      l->out[i * l->n + j] = (float)sum;
    }
  }
}

heddle_status base_run_launch(heddle_pstream *stream, base_task *task, heddle_error *err) {
  (void)stream, (void)err;
  const heddle_plaunch *l = task->launch;
  const heddle_pop *op = l->op;
  if (op->kind == BASE_MATMUL) {
    multiply(l);
    return HEDDLE_OK;
  }
  /* Relu keeps what is not a number, as the specification's max(0, x) does. */
  for (uint64_t i = 0; i < l->n; i++) l->out[i] = op->kind == BASE_ADD ? l->a[i] + l->b[i] : l->a[i] < 0 ? 0 : l->a[i];
  return HEDDLE_OK;
}

heddle_status base_op_run(heddle_plaunch *launch, heddle_error *err) {
  base_task task = {.run = base_run_launch, .launch = launch};
  return base_push(launch->stream, &task, err);
}
