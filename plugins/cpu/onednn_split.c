/* Split of whole blocks of channels, in the layout of blocks that convolutions leave. oneDNN has none. The plain
 * kernel is for what is row-major; channels last have short pieces, for which a Reorder is as good. */
#include "cpu.h"
#include "onednn_special.h"

#define CALL_NS 300.0
#define NS_PER_BYTE 0.04

enum { MOST = 8 };

/* A row, of the operand and of each result, is an image; at says where the results begin in the operand's. */
typedef struct split_op {
  onednn_special special;
  onednn *self;
  uint32_t slot, n;
  int64_t rows;
  uint64_t row_bytes, bytes[MOST]; /* of each region output */
  uint64_t at[MOST];
  uint32_t parts, reserved;
} split_op;

typedef struct split_launch {
  onednn_special_launch special;
  const split_op *op;
  const char *in;
  char *out[MOST];
} split_launch;

static bool is_rest_equal(const heddle_pvalue *a, const heddle_pvalue *b) {
  if (a->ndim != b->ndim || a->shape[0] != b->shape[0]) return false;
  for (int i = 2; i < a->ndim; i++)
    if (a->shape[i] != b->shape[i]) return false;
  return true;
}

/* layouts: of the operand, then of the region's outputs. */
static bool read(const onednn *self, const heddle_pregion *region, split_op *op, heddle_layout *layouts) {
  const heddle_pnode *node = region_node(region, 0);
  int64_t axis = 0, channels = 0;
  uint64_t bytes = 0;
  if (self->mode != ONEDNN_AUTO || region->nodes.count != 1 || node == NULL || node->op == NULL ||
      strcmp(node->op, "Split") != 0 || (node->domain != NULL && node->domain[0] != '\0') || region->n_inputs > 2 ||
      region->n_outputs != node->n_outputs || node->n_outputs < 2 || node->n_outputs > MOST || node->inputs[0] < 0 ||
      (region->flags & (HEDDLE_REGION_OPEN | HEDDLE_REGION_FAST)) != 0 ||
      region_attr_int(node, "axis", 0, &axis, NULL) != HEDDLE_OK)
    return false;
  const heddle_pvalue *x = region_value(region, node->inputs[0]);
  if (!region_dtype_is(x->dtype, HEDDLE_DTYPE_FLOAT, 32) || x->ndim < 3 || x->ndim > 5 ||
      (axis < 0 ? axis + x->ndim : axis) != 1 || !region_value_bytes(x, &bytes) || bytes == 0 ||
      bytes > (UINT64_C(1) << 30) || onednn_form_token(self, x, ONEDNN_FORM_BLOCKED, &layouts[0]) != dnnl_success ||
      layouts[0] == 0)
    return false;
  for (uint32_t i = 0; i < region->n_inputs; i++)
    if (region->inputs[i] != node->inputs[0] && region_value(region, region->inputs[i])->data == NULL) return false;
  const uint64_t each = bytes / (uint64_t)x->shape[1] / (uint64_t)x->shape[0];
  *op = (split_op){.n = node->n_outputs, .rows = x->shape[0]};
  for (uint32_t k = 0; k < node->n_outputs; k++) {
    const int64_t slot = region_output_slot(region, node->outputs[k]);
    const heddle_pvalue *y = region_value(region, node->outputs[k]);
    if (slot < 0 || slot >= MOST || !is_rest_equal(x, y) || y->shape[1] < 1 || y->shape[1] % self->block != 0 ||
        onednn_form_token(self, y, ONEDNN_FORM_BLOCKED, &layouts[1 + slot]) != dnnl_success || layouts[1 + slot] == 0)
      return false;
    op->at[slot] = (uint64_t)channels * each;
    op->bytes[slot] = (uint64_t)y->shape[1] * each;
    channels += y->shape[1];
  }
  op->row_bytes = (uint64_t)channels * each;
  op->parts = onednn_parts_for(self, NS_PER_BYTE * (double)bytes);
  if ((int64_t)op->parts > op->rows) op->parts = (uint32_t)op->rows;
  return channels == x->shape[1];
}

heddle_status split_query(const onednn *self, const heddle_pregion *region, heddle_offer_fn offer, void *sink,
                          uint32_t *made, bool *only, heddle_error *err) {
  split_op op;
  heddle_layout layouts[1 + MOST];
  heddle_status s = HEDDLE_OK;
  (void)only;
  if (!read(self, region, &op, layouts)) return HEDDLE_OK;
  heddle_layout inputs[2] = {0, 0};
  uint32_t flags[2] = {0, 0};
  for (uint32_t k = 0; k < region->n_inputs; k++) {
    const bool is_x = region->inputs[k] == region_node(region, 0)->inputs[0];
    inputs[k] = is_x ? layouts[0] : 0;
    flags[k] = is_x ? 0 : HEDDLE_INPUT_ABSORBED;
  }
  const heddle_poffer answer = {.struct_size = sizeof answer,
                                .input_layouts = inputs,
                                .output_layouts = layouts + 1,
                                .input_flags = flags,
                                .cost_ns = CALL_NS + NS_PER_BYTE * (double)op.rows * (double)op.row_bytes};
  s = offer(sink, &answer, err);
  *made = s == HEDDLE_OK;
  return s;
}

static void run_part(void *arg, uint32_t i, uint32_t n) {
  const split_launch *launch = arg;
  const split_op *op = launch->op;
  const int64_t first = op->rows * i / n, end = op->rows * (i + 1) / n;
  for (uint32_t k = 0; k < op->n; k++) {
    const char *from = launch->in + (uint64_t)first * op->row_bytes + op->at[k];
    char *to = launch->out[k] + (uint64_t)first * op->bytes[k];
    for (int64_t row = first; row < end; row++, from += op->row_bytes, to += op->bytes[k])
      memcpy(to, from, op->bytes[k]);
  }
}

static heddle_status run(onednn_special_launch *special, heddle_error *err) {
  split_launch *launch = (split_launch *)special;
  const heddle_host *host = launch->op->self->host;
  (void)err;
  if (launch->op->parts > 1) host->run_parallel(host->ctx, launch->op->parts, 0, run_part, launch, NULL);
  else run_part(launch, 0, 1);
  return HEDDLE_OK;
}

static void free_op(onednn_special *special) {
  split_op *op = (split_op *)special;
  op->self->host->free(op->self->host->ctx, op);
}

static void free_launch(onednn_special_launch *special) {
  split_launch *launch = (split_launch *)special;
  const heddle_host *host = launch->op->self->host;
  host->free(host->ctx, launch);
}

static void move(onednn_special_launch *special, void *const *inputs, void *const *outputs) {
  split_launch *launch = (split_launch *)special;
  launch->in = inputs[launch->op->slot];
  for (uint32_t k = 0; k < launch->op->n; k++) launch->out[k] = outputs[k];
}

static heddle_status bind(onednn_special *special, void *const *inputs, void *const *outputs, void *workspace,
                          onednn_special_launch **out, heddle_error *err) {
  split_op *op = (split_op *)special;
  const heddle_host *host = op->self->host;
  (void)workspace;
  split_launch *launch = host->alloc(host->ctx, sizeof *launch, _Alignof(split_launch));
  if (launch == NULL) return p_fail(err, HEDDLE_ENOMEM, 0, "cpu: no memory for a launch");
  *launch = (split_launch){.special = {.free = free_launch, .run = run, .move = move}, .op = op};
  move(&launch->special, inputs, outputs);
  *out = &launch->special;
  return HEDDLE_OK;
}

heddle_status split_prepare(onednn *self, const heddle_pregion *region, uint32_t offer, cpu_operand *operands,
                            onednn_special **out, uint32_t *made, heddle_error *err) {
  split_op found;
  heddle_layout layouts[1 + MOST];
  if (!read(self, region, &found, layouts)) return HEDDLE_OK;
  *made = 1;
  if (offer > 0) return HEDDLE_OK;
  split_op *op = self->host->alloc(self->host->ctx, sizeof *op, _Alignof(split_op));
  if (op == NULL) return p_fail(err, HEDDLE_ENOMEM, 0, "cpu: no memory for an operator");
  *op = found;
  op->special = (onednn_special){.free = free_op, .bind = bind};
  op->self = self;
  for (uint32_t k = 0; k < region->n_inputs; k++) {
    operands[k] = (cpu_operand){0, 1};
    if (region->inputs[k] != region_node(region, 0)->inputs[0]) continue;
    op->slot = k;
    operands[k] = (cpu_operand){(uint64_t)op->rows * op->row_bytes, CPU_ALIGNMENT};
  }
  for (uint32_t k = 0; k < op->n; k++)
    operands[region->n_inputs + k] = (cpu_operand){(uint64_t)op->rows * op->bytes[k], CPU_ALIGNMENT};
  *out = &op->special;
  return HEDDLE_OK;
}
