/* A Reorder of a kernel to what Winograd reads, in the run: for kernels that are known when a plan is made but are no
 * constants of the model, such as the Identity of one. */
#include "cpu.h"
#include "onednn_special.h"
#include "winograd.h"

typedef struct pack_op {
  onednn_special special;
  const heddle_host *host;
  const winograd_kind *kind;
  int64_t shape[4];
} pack_op;

typedef struct pack_launch {
  onednn_special_launch special;
  const pack_op *op;
  const void *in;
  float *out;
} pack_launch;

/* Whether the region is one; then what both operands take. */
static bool read(const onednn *self, const heddle_pregion *region, uint64_t *plain, uint64_t *packed) {
  const heddle_pnode *node = region_node(region, 0);
  const winograd_kind *kind;
  if (region->nodes.count != 1 || region->n_inputs != 1 || region->n_outputs != 1 || node == NULL || node->op == NULL ||
      strcmp(node->op, "Reorder") != 0 || node->domain == NULL || strcmp(node->domain, "heddle") != 0)
    return false;
  const heddle_pvalue *from = region_value(region, region->inputs[0]), *to = region_value(region, region->outputs[0]);
  return from != NULL && to != NULL && from->layout == 0 && region_shape_equal(from, to) &&
         winograd_is_token(to->layout, &kind) && kind->lanes == winograd_lanes(self->block) &&
         region_value_bytes(from, plain) && winograd_weight_bytes(to, to->layout, packed);
}

heddle_status winograd_pack_query(const onednn *self, const heddle_pregion *region, heddle_offer_fn offer, void *sink,
                                  uint32_t *made, bool *only, heddle_error *err) {
  uint64_t plain, packed;
  if (!read(self, region, &plain, &packed)) return HEDDLE_OK;
  const heddle_poffer answer = {.struct_size = sizeof answer,
                                .output_layouts = &region_value(region, region->outputs[0])->layout,
                                .cost_ns = 600 + (double)packed};
  heddle_status s = offer(sink, &answer, err);
  *made = s == HEDDLE_OK;
  *only = true;
  return s;
}

static heddle_status run(onednn_special_launch *special, heddle_error *err) {
  const pack_launch *launch = (const pack_launch *)special;
  const heddle_pvalue kernel = {.struct_size = sizeof kernel,
                                .dtype = {HEDDLE_DTYPE_FLOAT, 32, 1},
                                .shape = launch->op->shape,
                                .ndim = 4,
                                .data = launch->in};
  (void)err;
  winograd_pack(&kernel, launch->op->kind, launch->out);
  return HEDDLE_OK;
}

static void free_launch(onednn_special_launch *special) {
  const heddle_host *host = ((pack_launch *)special)->op->host;
  host->free(host->ctx, special);
}

static heddle_status bind(onednn_special *special, void *const *inputs, void *const *outputs, void *workspace,
                          onednn_special_launch **out, heddle_error *err) {
  const pack_op *op = (const pack_op *)special;
  const heddle_host *host = op->host;
  (void)workspace;
  pack_launch *launch = host->alloc(host->ctx, sizeof *launch, _Alignof(pack_launch));
  if (launch == NULL) return p_fail(err, HEDDLE_ENOMEM, 0, "cpu: no memory for a launch");
  *launch = (pack_launch){.special = {.free = free_launch, .run = run}, .op = op, .in = inputs[0], .out = outputs[0]};
  *out = &launch->special;
  return HEDDLE_OK;
}

static void free_op(onednn_special *special) {
  const heddle_host *host = ((pack_op *)special)->host;
  host->free(host->ctx, special);
}

heddle_status winograd_pack_prepare(onednn *self, const heddle_pregion *region, uint32_t offer, cpu_operand *operands,
                                    onednn_special **out, uint32_t *made, heddle_error *err) {
  uint64_t plain, packed;
  if (!read(self, region, &plain, &packed)) return HEDDLE_OK;
  *made = 1;
  if (offer > 0) return HEDDLE_OK;
  const heddle_host *host = self->host;
  const heddle_pvalue *to = region_value(region, region->outputs[0]);
  pack_op *op = host->alloc(host->ctx, sizeof *op, _Alignof(pack_op));
  if (op == NULL) return p_fail(err, HEDDLE_ENOMEM, 0, "cpu: no memory for an operator");
  *op = (pack_op){.special = {.free = free_op, .bind = bind}, .host = host};
  winograd_is_token(to->layout, &op->kind);
  memcpy(op->shape, to->shape, sizeof op->shape);
  operands[0] = (cpu_operand){plain, sizeof(float)};
  operands[1] = (cpu_operand){packed, CPU_ALIGNMENT};
  *out = &op->special;
  return HEDDLE_OK;
}
