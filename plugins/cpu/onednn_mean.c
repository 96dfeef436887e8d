/* The mean of each channel's image, which squeeze-and-excitation and classifiers take, from where a convolution left
 * it: in blocks of channels, channels last or row-major. GlobalAveragePool, and ReduceMean over all dimensions of an
 * image. oneDNN's own adds numbers one by one, and has no vectors for most shapes. */
#include "cpu.h"
#include "onednn_special.h"

#define VECTORS_WIDE 1
#include "vectors.h"
#include "onednn_mean_lanes.h"
#undef VECTORS_WIDE
#define VECTORS_WIDE 0
#include "vectors.h"
#include "onednn_mean_lanes.h"

#define CALL_NS 300.0

enum { MOST_LANES = 16, FORMS = 3 };
static const onednn_form forms[FORMS] = {ONEDNN_FORM_BLOCKED, ONEDNN_FORM_CHANNELS_LAST, ONEDNN_FORM_PLAIN};
static const double ns_each[FORMS] = {0.06, 0.07, 0.08}; /* of an element */

/* A unit of work is a block of channels, 4 vectors of them, or a channel. */
typedef struct mean_op {
  onednn_special special;
  onednn *self;
  onednn_form form;
  int32_t lanes;
  int64_t images, channels, pixels;
  int64_t units;        /* of an image */
  uint32_t parts, slot; /* of the region input that is read */
} mean_op;

typedef struct mean_launch {
  onednn_special_launch special;
  const mean_op *op;
  const float *in;
  float *out;
} mean_launch;

/* ---------------------------------------------------------------- reading */

static bool read(const onednn *self, const heddle_pregion *region, mean_op *op) {
  const heddle_pnode *node = region_node(region, 0);
  const ref_entry *entry;
  ref_node n;
  ref_op plain;
  uint64_t count = 0;
  if (self->mode != ONEDNN_AUTO || region->nodes.count != 1 || node == NULL || node->op == NULL ||
      region->n_outputs != 1 || region->n_inputs > 2 || (region->flags & HEDDLE_REGION_OPEN) != 0 ||
      (self->bf16 && (region->flags & HEDDLE_REGION_FAST) != 0))
    return false;
  const bool reduces = strcmp(node->op, "ReduceMean") == 0;
  if ((!reduces && strcmp(node->op, "GlobalAveragePool") != 0) ||
      ref_plan_region(region, &n, &plain, &entry, NULL) != HEDDLE_OK)
    return false;
  const heddle_pvalue *x = n.in[0];
  if (!region_dtype_is(x->dtype, HEDDLE_DTYPE_FLOAT, 32) || x->ndim < 3 || x->ndim > 5 ||
      !region_value_count(x, &count) || count == 0 || count > (UINT64_C(1) << 28))
    return false;
  *op = (mean_op){.lanes = winograd_lanes(self->block), .images = x->shape[0], .channels = x->shape[1]};
  op->pixels = (int64_t)count / (op->images * op->channels);
  if (op->lanes == 0 || op->pixels < 2) return false;
  for (uint32_t i = 0; i < region->n_inputs; i++)
    if (region->inputs[i] != node->inputs[0] && region_value(region, region->inputs[i])->data == NULL) return false;
  const ref_reduce *r = &plain.u.reduce;
  return !reduces || (r->row_kept == 0 && r->reduced == 0 && r->row == op->pixels);
}

static void set_form(const onednn *self, mean_op *op, int form) {
  op->form = forms[form];
  op->units = op->channels;
  if (op->form == ONEDNN_FORM_BLOCKED) op->units = (op->channels + op->lanes - 1) / op->lanes;
  else if (op->form == ONEDNN_FORM_CHANNELS_LAST) op->units = (op->channels + 4 * op->lanes - 1) / (4 * op->lanes);
  const double work = ns_each[form] * (double)(op->images * op->channels * op->pixels);
  op->parts = onednn_parts_for(self, work);
  if (op->parts > op->images * op->units) op->parts = (uint32_t)(op->images * op->units);
}

/* Form number i of those that there are for the operand, which differ in its layout. */
static bool layout_in(const onednn *self, const heddle_pvalue *x, int i, heddle_layout *layout) {
  return forms[i] == ONEDNN_FORM_PLAIN ? (*layout = 0, true)
                                       : onednn_form_token(self, x, forms[i], layout) == dnnl_success && *layout != 0;
}

heddle_status mean_query(const onednn *self, const heddle_pregion *region, heddle_offer_fn offer, void *sink,
                         uint32_t *made, bool *only, heddle_error *err) {
  mean_op op;
  heddle_status s = HEDDLE_OK;
  (void)only;
  if (!read(self, region, &op)) return HEDDLE_OK;
  const heddle_pnode *node = region_node(region, 0);
  const uint32_t threads = self->host->parallelism(self->host->ctx);
  for (int i = 0; i < FORMS && s == HEDDLE_OK; i++) {
    heddle_layout inputs[2] = {0, 0}, layout, output = 0;
    uint32_t flags[2] = {0, 0};
    if (!layout_in(self, region_value(region, node->inputs[0]), i, &layout)) continue;
    set_form(self, &op, i);
    for (uint32_t k = 0; k < region->n_inputs; k++) {
      const bool is_x = region->inputs[k] == node->inputs[0];
      inputs[k] = is_x ? layout : 0;
      flags[k] = is_x ? 0 : HEDDLE_INPUT_ABSORBED;
    }
    const uint32_t at_once = op.parts < threads ? op.parts : threads;
    const double work = ns_each[i] * (double)(op.images * op.channels * op.pixels);
    const heddle_poffer answer = {.struct_size = sizeof answer,
                                  .input_layouts = inputs,
                                  .output_layouts = &output,
                                  .input_flags = flags,
                                  .cost_ns = CALL_NS + (at_once > 1 ? CALL_NS + work / at_once : work)};
    s = offer(sink, &answer, err);
    *made += s == HEDDLE_OK;
  }
  return s;
}

/* ---------------------------------------------------------------- runs */

static void keep(const mean_op *op, const double *sums, int64_t count, float *out) {
  for (int64_t i = 0; i < count; i++) out[i] = (float)(sums[i] / (double)op->pixels);
}

static void one_block(const mean_op *op, const float *x, int64_t step, int64_t channels, float *out) {
  double sums[MOST_LANES];
  if (op->lanes == 16) sum_column_512(x, op->pixels, step, sums);
  else sum_column_256(x, op->pixels, step, sums);
  keep(op, sums, channels < op->lanes ? channels : op->lanes, out);
}

/* Channels [from, from + 4 vectors) of an image that is channels last. */
static void some_columns(const mean_op *op, const float *image, int64_t from, float *out) {
  const int64_t end = from + 4 * op->lanes < op->channels ? from + 4 * op->lanes : op->channels;
  double sums[4 * MOST_LANES];
  int64_t c = from;
  if (end - from == 4 * op->lanes) {
    if (op->lanes == 16) sum_columns_512(image + from, op->pixels, op->channels, sums);
    else sum_columns_256(image + from, op->pixels, op->channels, sums);
    keep(op, sums, 4 * op->lanes, out + from);
    return;
  }
  for (; c + op->lanes <= end; c += op->lanes) one_block(op, image + c, op->channels, op->lanes, out + c);
  for (; c < end; c++) {
    double sum = 0;
    for (int64_t i = 0; i < op->pixels; i++) sum += (double)image[i * op->channels + c];
    keep(op, &sum, 1, out + c);
  }
}

static void run_unit(const mean_launch *launch, int64_t unit) {
  const mean_op *op = launch->op;
  const int64_t n = unit / op->units, k = unit % op->units;
  float *out = launch->out + n * op->channels;
  if (op->form == ONEDNN_FORM_BLOCKED) {
    one_block(op, launch->in + unit * op->pixels * op->lanes, op->lanes, op->channels - k * op->lanes,
              out + k * op->lanes);
  } else if (op->form == ONEDNN_FORM_CHANNELS_LAST) {
    some_columns(op, launch->in + n * op->pixels * op->channels, 4 * op->lanes * k, out);
  } else {
    const float *row = launch->in + unit * op->pixels;
    const double sum = op->lanes == 16 ? sum_row_512(row, op->pixels) : sum_row_256(row, op->pixels);
    keep(op, &sum, 1, out + k);
  }
}

static void run_part(void *arg, uint32_t i, uint32_t n) {
  const mean_launch *launch = arg;
  const int64_t units = launch->op->images * launch->op->units, first = units * i / n, end = units * (i + 1) / n;
  for (int64_t unit = first; unit < end; unit++) {
    if (unit > first && unit % 1024 == 0 && onednn_stops(launch->op->self)) return;
    run_unit(launch, unit);
  }
}

static heddle_status run(onednn_special_launch *special, heddle_error *err) {
  mean_launch *launch = (mean_launch *)special;
  const mean_op *op = launch->op;
  const heddle_host *host = op->self->host;
  if (op->parts > 1) host->run_parallel(host->ctx, op->parts, 0, run_part, launch, NULL);
  else run_part(launch, 0, 1);
  return op->images * op->units > 1024 && onednn_stops(op->self) ? onednn_stopped(op->self, err) : HEDDLE_OK;
}

/* ---------------------------------------------------------------- operators */

static void free_op(onednn_special *special) {
  mean_op *op = (mean_op *)special;
  op->self->host->free(op->self->host->ctx, op);
}

static void free_launch(onednn_special_launch *special) {
  mean_launch *launch = (mean_launch *)special;
  const heddle_host *host = launch->op->self->host;
  host->free(host->ctx, launch);
}

static void move(onednn_special_launch *special, void *const *inputs, void *const *outputs) {
  mean_launch *launch = (mean_launch *)special;
  launch->in = inputs[launch->op->slot];
  launch->out = outputs[0];
}

static heddle_status bind(onednn_special *special, void *const *inputs, void *const *outputs, void *workspace,
                          onednn_special_launch **out, heddle_error *err) {
  mean_op *op = (mean_op *)special;
  const heddle_host *host = op->self->host;
  (void)workspace;
  mean_launch *launch = host->alloc(host->ctx, sizeof *launch, _Alignof(mean_launch));
  if (launch == NULL) return p_fail(err, HEDDLE_ENOMEM, 0, "cpu: no memory for a launch");
  *launch = (mean_launch){.special = {.free = free_launch, .run = run, .move = move}, .op = op};
  move(&launch->special, inputs, outputs);
  *out = &launch->special;
  return HEDDLE_OK;
}

heddle_status mean_prepare(onednn *self, const heddle_pregion *region, uint32_t offer, cpu_operand *operands,
                           onednn_special **out, uint32_t *made, heddle_error *err) {
  mean_op found, read_op;
  heddle_layout layout;
  bool wanted = false;
  if (!read(self, region, &read_op)) return HEDDLE_OK;
  const heddle_pnode *node = region_node(region, 0);
  for (int i = 0; i < FORMS; i++) {
    if (!layout_in(self, region_value(region, node->inputs[0]), i, &layout)) continue;
    if ((*made)++ != offer) continue;
    set_form(self, &read_op, i);
    found = read_op;
    wanted = true;
  }
  if (!wanted) return HEDDLE_OK;
  mean_op *op = self->host->alloc(self->host->ctx, sizeof *op, _Alignof(mean_op));
  if (op == NULL) return p_fail(err, HEDDLE_ENOMEM, 0, "cpu: no memory for an operator");
  *op = found;
  op->special = (onednn_special){.free = free_op, .bind = bind};
  op->self = self;
  const int64_t across = op->form == ONEDNN_FORM_BLOCKED ? op->units * op->lanes : op->channels;
  for (uint32_t k = 0; k < region->n_inputs; k++) {
    operands[k] = (cpu_operand){0, 1};
    if (region->inputs[k] != node->inputs[0]) continue;
    op->slot = k;
    operands[k] = (cpu_operand){(uint64_t)(op->images * across * op->pixels) * sizeof(float),
                                op->form == ONEDNN_FORM_PLAIN ? sizeof(float) : CPU_ALIGNMENT};
  }
  operands[region->n_inputs] = (cpu_operand){(uint64_t)(op->images * op->channels) * sizeof(float), sizeof(float)};
  *out = &op->special;
  return HEDDLE_OK;
}
