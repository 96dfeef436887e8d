/* Nodes of float16 and bfloat16 that ref/ takes in float32: operands are widened into scratch memory, the kernel of
 * ref/ runs there, and results are rounded once. */
#include "more.h"

#include "plugins/common/halves.h"

enum { ALIGN = 64, CHUNK = 1 << 16 };

typedef struct half_value {
  uint64_t count, offset; /* elements; where its float32 lie in the scratch memory */
  uint32_t slot;
  uint8_t type; /* REF_TYPE_NONE: not a half */
  uint8_t reserved[3];
} half_value;

typedef struct half_op {
  uint32_t n_in, n_out;
  half_value in[MORE_IN], out[MORE_OUT];
  uint64_t bytes; /* of the scratch memory before the kernel's own */
  ref_op inner;   /* and then its tail */
} half_op;

bool more_is_half(heddle_dtype d) {
  return more_type_of(d) == MORE_TYPE_F16 || more_type_of(d) == MORE_TYPE_BF16;
}

/* Whether the value is an operand of the region's node, other than the first, whose bytes decide a shape: it is read before the
 * run, as it is. */
static bool decides_shape(const heddle_pregion *region, uint64_t index) {
  const heddle_pnode *node = region_node(region, 0);
  const heddle__version *version = NULL;
  if (node != NULL && node->op != NULL)
    version = heddle__version_find(node->domain != NULL && node->domain[0] != '\0', node->op, node->opset);
  if (version == NULL || version->shape_inputs == HEDDLE__SHAPES_ONLY) return false;
  for (uint32_t k = 1; k < node->n_inputs && k < 7; k++)
    if ((version->shape_inputs >> k & 1) != 0 && (uint64_t)node->inputs[k] == index) return true;
  return false;
}

bool more_widen(const heddle_pregion *region, more_widened *w) {
  bool any = false;
  if (region->values.count > MORE_WIDENED || region->n_inputs > MORE_IN || region->n_outputs > MORE_OUT) return false;
  for (uint64_t i = 0; i < region->values.count; i++) {
    w->values[i] = *region_value(region, (int64_t)i);
    if (!more_is_half(w->values[i].dtype) || decides_shape(region, i)) continue;
    any = true;
    w->values[i].dtype = more_dtype(REF_TYPE_F32);
    w->values[i].data = NULL;
    w->values[i].data_bytes = 0;
  }
  w->region = *region;
  w->region.values = (heddle_parray){w->values, region->values.count, sizeof w->values[0]};
  return any;
}

static void note(const heddle_pvalue *v, uint32_t slot, half_value *to, uint64_t *bytes) {
  *to = (half_value){.slot = slot, .type = REF_TYPE_NONE};
  if (v == NULL || !more_is_half(v->dtype) || !region_value_count(v, &to->count)) return;
  to->type = (uint8_t)more_type_of(v->dtype);
  to->offset = *bytes;
  *bytes += (to->count * sizeof(float) + ALIGN - 1) / ALIGN * ALIGN;
}

static uint64_t describe(const heddle_pregion *region, half_op *h) {
  uint64_t bytes = 0;
  h->n_in = region->n_inputs;
  h->n_out = region->n_outputs;
  for (uint32_t k = 0; k < h->n_in; k++) note(region_value(region, region->inputs[k]), k, &h->in[k], &bytes);
  for (uint32_t k = 0; k < h->n_out; k++) note(region_value(region, region->outputs[k]), k, &h->out[k], &bytes);
  h->bytes = bytes;
  return bytes;
}

static void run_widened(const ref_op *op, void *const *inputs, void *const *outputs, void *workspace, uint64_t first,
                        uint64_t last) {
  const half_op *h = ref_tail(op);
  void *in[MORE_IN] = {NULL}, *out[MORE_OUT] = {NULL};
  int64_t work = 0;
  (void)first, (void)last;
  for (uint32_t k = 0; k < h->n_in; k++) {
    const half_value *v = &h->in[k];
    in[k] = inputs[k];
    if (v->type == REF_TYPE_NONE || inputs[k] == NULL) continue;
    float *to = (float *)(void *)((char *)workspace + v->offset);
    in[k] = to;
    for (uint64_t i = 0; i < v->count; i += CHUNK) {
      const uint64_t n = v->count - i < CHUNK ? v->count - i : CHUNK;
      halves_widen(v->type == MORE_TYPE_BF16, (const char *)inputs[k] + 2 * i, to + i, n);
      if (ref_tick(op, &work, (int64_t)n)) return;
    }
  }
  for (uint32_t k = 0; k < h->n_out; k++) {
    const bool half = h->out[k].type != REF_TYPE_NONE && outputs[k] != NULL;
    out[k] = half ? (char *)workspace + h->out[k].offset : outputs[k];
  }
  ref_run(&h->inner, in, out, (char *)workspace + h->bytes);
  for (uint32_t k = 0; k < h->n_out; k++) {
    const half_value *v = &h->out[k];
    if (v->type == REF_TYPE_NONE || outputs[k] == NULL) continue;
    for (uint64_t i = 0; i < v->count; i += CHUNK) {
      const uint64_t n = v->count - i < CHUNK ? v->count - i : CHUNK;
      halves_narrow(v->type == MORE_TYPE_BF16, (const float *)out[k] + i, (char *)outputs[k] + 2 * i, n);
      if (ref_tick(op, &work, (int64_t)n)) return;
    }
  }
}

static void fill(const ref_node *n, ref_op *op) {
  half_op *h = ref_tail(op);
  more_widened w;
  ref_node inner;
  const ref_entry *entry;
  more_widen(n->region, &w);
  describe(n->region, h);
  if (ref_plan_region(&w.region, &inner, &h->inner, &entry, NULL) != HEDDLE_OK) return;
  h->inner.host = op->host;
  if (entry->fill != NULL) entry->fill(&inner, &h->inner);
}

heddle_status more_plan_half(const heddle_pregion *region, ref_node *n, ref_op *op, const ref_entry **out_entry,
                             heddle_error *err) {
  static const ref_entry entry = {.fill = fill};
  more_widened w;
  ref_node inner;
  ref_op planned;
  half_op h;
  const ref_entry *of_inner = NULL;
  if (!more_widen(region, &w)) return HEDDLE_EUNSUPPORTED;
  heddle_status s = ref_plan_region(&w.region, &inner, &planned, &of_inner, err);
  if (s != HEDDLE_OK) return s;
  const uint64_t bytes = describe(region, &h);
  (void)n;
  memset(op, 0, sizeof *op);
  memcpy(op->slot, planned.slot, sizeof op->slot);
  op->present = planned.present;
  op->absorbed = planned.absorbed; /* of integers and bool only: the bytes of halves are not handed on */
  ref_set_work(op, run_widened, 1, 0, 3 * (double)bytes);
  op->cost_ns += planned.cost_ns;
  op->watched |= planned.watched;
  op->tail_bytes = sizeof h + planned.tail_bytes;
  op->workspace_bytes = bytes + planned.workspace_bytes;
  *out_entry = &entry;
  return HEDDLE_OK;
}
