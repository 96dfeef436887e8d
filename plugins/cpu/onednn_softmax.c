/* Softmax along the last axis, and Gelu, as operators of their own, with the vectorised kernels, in parts of rows. */
#include "cpu.h"
#include "onednn_rows.h"
#include "onednn_special.h"

#define CALL_NS 300.0

typedef struct softmax_op {
  onednn_special special;
  onednn *self;
  onednn_softmax_row row; /* NULL: Gelu, whose rows are as long as is convenient */
  onednn_gelu_lanes lanes;
  int64_t n, rows;
  int64_t rest; /* elements behind the rows, of Gelu */
  uint32_t parts, reserved;
} softmax_op;

typedef struct softmax_launch {
  onednn_special_launch special;
  const softmax_op *op;
  const float *in;
  float *out;
} softmax_launch;

static double cost_of(const softmax_op *op) {
  return CALL_NS + (op->row != NULL ? 0.6 : 0.3) * (double)op->n * (double)op->rows;
}

/* What the plain kernels take: Softmax along the last axis, unless rows are too short to be worth a vector, and Gelu with
 * the error function. */
static bool read(const onednn *self, const heddle_pregion *region, softmax_op *op) {
  enum { SHORT = 8, SOME = 1024 };
  const heddle_pnode *node = region_node(region, 0);
  const char *how = "none";
  const ref_entry *entry;
  ref_node n;
  ref_op plain;
  uint64_t count = 0;
  if (region->nodes.count != 1 || node == NULL || node->op == NULL || region->n_outputs != 1) return false;
  const bool softmax = strcmp(node->op, "Softmax") == 0;
  if ((!softmax && strcmp(node->op, "Gelu") != 0) || ref_plan_region(region, &n, &plain, &entry, NULL) != HEDDLE_OK ||
      !region_dtype_is(n.out->dtype, HEDDLE_DTYPE_FLOAT, 32) || !region_value_count(n.out, &count) || count == 0)
    return false;
  *op = (softmax_op){.n = SOME, .rows = (int64_t)count / SOME};
  if (softmax) {
    if (plain.u.softmax.inner != 1 || plain.u.softmax.n < SHORT) return false;
    *op =
        (softmax_op){.row = onednn_find_softmax(), .n = plain.u.softmax.n, .rows = (int64_t)count / plain.u.softmax.n};
  } else {
    if (region_attr_string(node, "approximate", how, &how, NULL) != HEDDLE_OK || strcmp(how, "none") != 0 ||
        count < SOME)
      return false;
    op->lanes = onednn_find_gelu();
    op->rest = (int64_t)count % SOME;
  }
  op->parts = onednn_parts_for(self, cost_of(op));
  if (op->parts > op->rows) op->parts = (uint32_t)op->rows;
  return op->row != NULL || op->lanes != NULL;
}

heddle_status softmax_query(const onednn *self, const heddle_pregion *region, heddle_offer_fn offer, void *sink,
                            uint32_t *made, bool *only, heddle_error *err) {
  softmax_op op;
  static const int32_t pair[] = {0, 0};
  if (!read(self, region, &op)) return HEDDLE_OK;
  const uint32_t threads = self->host->parallelism(self->host->ctx), at_once = op.parts < threads ? op.parts : threads;
  const heddle_poffer answer = {
      .struct_size = sizeof answer,
      .in_place = pair,
      .n_in_place = 1,
      .cost_ns = at_once > 1 ? CALL_NS + (cost_of(&op) - CALL_NS) / at_once : cost_of(&op),
  };
  heddle_status s = offer(sink, &answer, err);
  *made = s == HEDDLE_OK;
  *only = self->mode == ONEDNN_ALWAYS;
  return s;
}

/* ---------------------------------------------------------------- operators */

static void free_op(onednn_special *special) {
  softmax_op *op = (softmax_op *)special;
  op->self->host->free(op->self->host->ctx, op);
}

static void free_launch(onednn_special_launch *special) {
  softmax_launch *launch = (softmax_launch *)special;
  const heddle_host *host = launch->op->self->host;
  host->free(host->ctx, launch);
}

/* Elements between two looks at whether the run is to end. */
#define ELEMENTS (INT64_C(1) << 22)

static void run_part(void *arg, uint32_t i, uint32_t n) {
  const softmax_launch *launch = arg;
  const softmax_op *op = launch->op;
  const int64_t end = op->rows * (i + 1) / n;
  int64_t r = op->rows * i / n, step = ELEMENTS / op->n + 1;
  for (int64_t from = r; r < end; r += step) {
    if (r != from && onednn_stops(op->self)) return;
    if (end - r < step) step = end - r;
    if (op->row != NULL)
      for (int64_t k = r; k < r + step; k++) op->row(launch->out + k * op->n, launch->in + k * op->n, NULL, 1, op->n);
    else op->lanes(launch->out + r * op->n, launch->in + r * op->n, step * op->n);
  }
  if (op->lanes != NULL && i + 1 == n)
    op->lanes(launch->out + op->rows * op->n, launch->in + op->rows * op->n, op->rest);
}

static heddle_status run(onednn_special_launch *special, heddle_error *err) {
  softmax_launch *launch = (softmax_launch *)special;
  const heddle_host *host = launch->op->self->host;
  const softmax_op *op = launch->op;
  if (op->parts > 1) host->run_parallel(host->ctx, op->parts, 0, run_part, launch, NULL);
  else run_part(launch, 0, 1);
  return op->rows * op->n > ELEMENTS && onednn_stops(op->self) ? onednn_stopped(op->self, err) : HEDDLE_OK;
}

static heddle_status bind(onednn_special *special, void *const *inputs, void *const *outputs, void *workspace,
                          onednn_special_launch **out, heddle_error *err) {
  softmax_op *op = (softmax_op *)special;
  const heddle_host *host = op->self->host;
  (void)workspace;
  softmax_launch *launch = host->alloc(host->ctx, sizeof *launch, _Alignof(softmax_launch));
  if (launch == NULL) return p_fail(err, HEDDLE_ENOMEM, 0, "cpu: no memory for a launch");
  *launch =
      (softmax_launch){.special = {.free = free_launch, .run = run}, .op = op, .in = inputs[0], .out = outputs[0]};
  *out = &launch->special;
  return HEDDLE_OK;
}

heddle_status softmax_prepare(onednn *self, const heddle_pregion *region, uint32_t offer, cpu_operand *operands,
                              onednn_special **out, uint32_t *made, heddle_error *err) {
  softmax_op read_op;
  if (!read(self, region, &read_op)) return HEDDLE_OK;
  *made = 1;
  if (offer > 0) return HEDDLE_OK;
  softmax_op *op = self->host->alloc(self->host->ctx, sizeof *op, _Alignof(softmax_op));
  if (op == NULL) return p_fail(err, HEDDLE_ENOMEM, 0, "cpu: no memory for an operator");
  *op = read_op;
  op->special = (onednn_special){.free = free_op, .bind = bind};
  op->self = self;
  const uint64_t bytes = (uint64_t)(op->n * op->rows + op->rest) * sizeof(float);
  operands[0] = operands[1] = (cpu_operand){bytes, sizeof(float)};
  *out = &op->special;
  return HEDDLE_OK;
}
