/* Reorder of float16 and bfloat16: between row-major halves and float32's layouts. What oneDNN has to reorder is staged as
 * row-major float32 in the workspace. */
#include "cpu.h"
#include "wide.h"

#include "plugins/common/halves.h"

/* Elements of a part at least, and between two looks at whether the run is to end; nanoseconds that one takes. */
#define PART (UINT64_C(1) << 16)
#define NS_EACH 0.15

struct wide_reorder {
  const heddle_host *host;
  onednn_op *inner; /* NULL: there is nothing but the conversion */
  uint64_t count, staged, workspace;
  uint32_t parts;
  bool brain, widens, narrows;
};

struct wide_reorder_launch {
  const wide_reorder *op;
  onednn_launch *inner;
  const void *from; /* of the conversion */
  void *to;
  void *in, *out; /* of the inner one */
};

static bool is_half(heddle_dtype dtype) {
  return region_dtype_is(dtype, HEDDLE_DTYPE_BFLOAT, 16) || region_dtype_is(dtype, HEDDLE_DTYPE_FLOAT, 16);
}

bool wide_reorder_is(const heddle_pregion *region) {
  const heddle_pnode *node = region_node(region, 0);
  if (region->nodes.count != 1 || node == NULL || node->domain == NULL || strcmp(node->domain, "heddle") != 0 ||
      node->op == NULL || strcmp(node->op, "Reorder") != 0 || region->n_inputs != 1 || region->n_outputs != 1)
    return false;
  const heddle_pvalue *from = region_value(region, region->inputs[0]), *to = region_value(region, region->outputs[0]);
  return from != NULL && to != NULL && is_half(from->dtype) && region_dtype_equal(from->dtype, to->dtype) &&
         region_shape_equal(from, to);
}

/* What the region does, without the inner op. False: it has no wide side, or nothing to do. */
static bool read(const heddle_host *host, const heddle_pregion *region, wide_reorder *out) {
  const heddle_pvalue *from = region_value(region, region->inputs[0]), *to = region_value(region, region->outputs[0]);
  *out = (wide_reorder){.host = host,
                        .brain = region_dtype_is(from->dtype, HEDDLE_DTYPE_BFLOAT, 16),
                        .widens = from->layout == 0,
                        .narrows = to->layout == 0};
  if (!region_value_count(from, &out->count) || out->count > INT64_MAX / sizeof(float)) return false;
  const uint32_t threads = host->parallelism(host->ctx);
  const uint64_t parts = out->count / PART;
  out->parts = parts < 2 ? 1 : parts < threads ? (uint32_t)parts : threads;
  return wide_is_laid(region) && !(out->widens && out->narrows);
}

/* Is there anything for oneDNN? */
static bool has_inner(const wide_region *wide) {
  return region_value(&wide->region, wide->region.inputs[0])->layout != 0 ||
         region_value(&wide->region, wide->region.outputs[0])->layout != 0;
}

typedef struct inner_offer {
  double cost_ns;
  uint64_t workspace, kept, launch;
} inner_offer;

static heddle_status take(void *sink, const heddle_poffer *offer, heddle_error *err) {
  inner_offer *to = sink;
  (void)err;
  *to = (inner_offer){offer->cost_ns, offer->workspace_bytes, offer->kept_bytes, offer->launch_bytes};
  return HEDDLE_OK;
}

static uint64_t staged_bytes(const wide_reorder *op) {
  return (op->count * sizeof(float) + CPU_ALIGNMENT - 1) / CPU_ALIGNMENT * CPU_ALIGNMENT;
}

heddle_status wide_reorder_query(const heddle_host *host, const onednn *self, const heddle_pregion *region,
                                 heddle_offer_fn offer, void *sink, heddle_error *err) {
  wide_reorder op;
  wide_region wide;
  inner_offer inner = {0};
  uint32_t made = 0;
  bool only = false;
  if (!read(host, region, &op)) return HEDDLE_EUNSUPPORTED;
  heddle_status s = wide_make(host, region, &wide, err);
  if (s != HEDDLE_OK) return s;
  const bool has = has_inner(&wide), converts = op.widens || op.narrows;
  if (has) s = onednn_query(self, &wide.region, take, &inner, &made, &only, err);
  wide_free(&wide);
  if (s != HEDDLE_OK) return s;
  if (has ? made == 0 : !converts) return HEDDLE_EUNSUPPORTED;
  const heddle_layout layouts[] = {region_value(region, region->inputs[0])->layout,
                                   region_value(region, region->outputs[0])->layout};
  const heddle_poffer answer = {
      .struct_size = sizeof answer,
      .input_layouts = &layouts[0],
      .output_layouts = &layouts[1],
      .workspace_bytes = (has && converts ? staged_bytes(&op) : 0) + inner.workspace,
      .workspace_align = CPU_ALIGNMENT,
      .cost_ns = 100 + inner.cost_ns + NS_EACH * (double)op.count / op.parts,
      .kept_bytes = inner.kept,
      .launch_bytes = inner.launch,
  };
  return offer(sink, &answer, err);
}

void wide_reorder_free(wide_reorder *op) {
  if (op == NULL) return;
  onednn_op_free(op->inner);
  op->host->free(op->host->ctx, op);
}

heddle_status wide_reorder_prepare(const heddle_host *host, onednn *self, const heddle_pregion *region,
                                   cpu_operand *operands, wide_reorder **out, heddle_error *err) {
  wide_region wide;
  wide_reorder what;
  void *memory = NULL;
  uint32_t made = 0;
  if (!read(host, region, &what)) return p_fail(err, HEDDLE_EUNSUPPORTED, 0, "cpu:0: Reorder: no wide layout");
  heddle_status s = wide_make(host, region, &wide, err);
  if (s != HEDDLE_OK) return s;
  s = cpu_new(host, sizeof what, "a Reorder", &memory, err);
  if (s != HEDDLE_OK) {
    wide_free(&wide);
    return s;
  }
  wide_reorder *op = memory;
  *op = what;
  operands[0] = operands[1] = (cpu_operand){op->count * sizeof(float), sizeof(float)};
  if (has_inner(&wide)) {
    s = onednn_prepare(self, &wide.region, 0, operands, &op->inner, &made, err);
    if (s == HEDDLE_OK && op->inner == NULL)
      s = p_fail(err, HEDDLE_EUNSUPPORTED, 0, "cpu:0: Reorder: there is no way between these layouts");
    if (s == HEDDLE_OK) {
      op->staged = op->widens || op->narrows ? staged_bytes(op) : 0;
      op->workspace = op->staged + onednn_workspace(op->inner);
    }
  }
  if (op->widens) operands[0] = (cpu_operand){2 * op->count, 2};
  if (op->narrows) operands[1] = (cpu_operand){2 * op->count, 2};
  wide_free(&wide);
  if (s == HEDDLE_OK) *out = op;
  else wide_reorder_free(op);
  return s;
}

uint64_t wide_reorder_workspace(const wide_reorder *op) {
  return op->workspace;
}

heddle_status wide_reorder_bind(wide_reorder *op, void *in, void *out, void *workspace, wide_reorder_launch **launch,
                                heddle_error *err) {
  void *memory = NULL;
  heddle_status s = cpu_new(op->host, sizeof **launch, "a launch", &memory, err);
  if (s != HEDDLE_OK) return s;
  wide_reorder_launch *l = memory;
  *l = (wide_reorder_launch){.op = op, .from = in, .to = out, .in = in, .out = out};
  if (op->inner != NULL) {
    if (op->widens) l->to = l->in = workspace;
    if (op->narrows) {
      l->out = workspace;
      l->from = workspace;
    }
    s = onednn_bind(op->inner, &l->in, &l->out, (char *)workspace + op->staged, &l->inner, err);
  }
  if (s == HEDDLE_OK) *launch = l;
  else wide_reorder_launch_free(l);
  return s;
}

void wide_reorder_launch_free(wide_reorder_launch *launch) {
  if (launch == NULL) return;
  const heddle_host *host = launch->op->host;
  onednn_launch_free(launch->inner);
  host->free(host->ctx, launch);
}

static heddle_status stop_status(const heddle_host *host) {
  if (!HEDDLE_HAS(heddle_host, host, stop_requested) || host->stop_requested == NULL) return HEDDLE_OK;
  return host->stop_requested(host->ctx);
}

/* Range i of n. One that is long looks after each PART whether the run is to end; then it is not whole. */
static void convert_part(void *arg, uint32_t i, uint32_t n) {
  const wide_reorder_launch *l = arg;
  const wide_reorder *op = l->op;
  const uint64_t each = (op->count / n + 63) / 64 * 64, first = each * i < op->count ? each * i : op->count;
  const uint64_t last = i + 1 == n || first + each > op->count ? op->count : first + each;
  for (uint64_t at = first; at < last; at += 8 * PART) {
    const uint64_t some = last - at < 8 * PART ? last - at : 8 * PART;
    if (at > first && stop_status(op->host) != HEDDLE_OK) return;
    if (op->widens) halves_widen(op->brain, (const char *)l->from + 2 * at, (float *)l->to + at, some);
    else halves_narrow(op->brain, (const float *)l->from + at, (char *)l->to + 2 * at, some);
  }
}

static heddle_status convert(wide_reorder_launch *l, heddle_error *err) {
  const heddle_host *host = l->op->host;
  if (l->op->parts > 1) host->run_parallel(host->ctx, l->op->parts, 0, convert_part, l, NULL);
  else convert_part(l, 0, 1);
  if (l->op->count <= 8 * PART) return HEDDLE_OK;
  const heddle_status s = stop_status(host);
  if (s == HEDDLE_OK) return s;
  return p_fail(err, s, 0,
                s == HEDDLE_ECANCELED ? "the run was cancelled while it was computed"
                                      : "the time of the run was over while it was computed");
}

heddle_status wide_reorder_run(wide_reorder_launch *l, heddle_error *err) {
  heddle_status s = l->op->widens ? convert(l, err) : HEDDLE_OK;
  if (s == HEDDLE_OK && l->inner != NULL) s = onednn_run(l->inner, err);
  return s == HEDDLE_OK && l->op->narrows ? convert(l, err) : s;
}
