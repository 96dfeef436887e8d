/* Widened regions, their offers, and the table of layouts, which has wide ones beside oneDNN's. A token is wide by bit 59,
 * which tokens of float32 never have; the wide token of row-major has nothing else but bit 63. */
#include "wide.h"

#include "cpu.h"

#include "plugins/common/halves.h"

#define WIDE (UINT64_C(1) << 59)
#define PLAIN (UINT64_C(1) << 63)

/* Elements of a constant whose numbers are handed on: bounds, exponents, scales. */
enum { SMALL = 64 };

static bool is_brain(heddle_dtype dtype) {
  return region_dtype_is(dtype, HEDDLE_DTYPE_BFLOAT, 16);
}

static bool is_half(heddle_dtype dtype) {
  return is_brain(dtype) || region_dtype_is(dtype, HEDDLE_DTYPE_FLOAT, 16);
}

static heddle_layout widened(heddle_layout layout) {
  return layout == 0 ? PLAIN | WIDE : layout | WIDE;
}

static heddle_layout narrowed(heddle_layout layout) {
  if ((layout & WIDE) == 0) return layout;
  return layout == (PLAIN | WIDE) ? 0 : layout & ~WIDE;
}

/* ---------------------------------------------------------------- regions */

bool wide_has_halves(const heddle_pregion *region) {
  for (uint64_t i = 0; i < region->values.count; i++) {
    const heddle_pvalue *value = region_value(region, (int64_t)i);
    if (value != NULL && is_half(value->dtype)) return true;
  }
  return false;
}

bool wide_keeps(const heddle_pnode *node) {
  static const char *const names[] = {"Cast",           "CastLike",         "BitCast",
                                      "QuantizeLinear", "DequantizeLinear", "DynamicQuantizeLinear",
                                      "QLinearConv",    "QLinearMatMul"};
  for (size_t i = 0; node->op != NULL && i < sizeof names / sizeof names[0]; i++)
    if (strcmp(node->op, names[i]) == 0) return true;
  return false;
}

bool wide_takes(const heddle_pregion *region) {
  for (uint64_t i = 0; i < region->nodes.count; i++)
    if (wide_keeps(region_node(region, i))) return false;
  return wide_has_halves(region);
}

bool wide_is_laid(const heddle_pregion *region) {
  bool laid = false;
  for (uint32_t i = 0; i < region->n_inputs + region->n_outputs; i++) {
    const heddle_pvalue *value =
        region_value(region, i < region->n_inputs ? region->inputs[i] : region->outputs[i - region->n_inputs]);
    laid = laid || (value != NULL && is_half(value->dtype) && (value->layout & WIDE) != 0);
  }
  return laid;
}

/* Elements of a constant that are to be converted; 0 for others. */
static uint64_t small_count(const heddle_pvalue *value) {
  uint64_t count = 0;
  if (!is_half(value->dtype) || value->data == NULL || !region_value_count(value, &count) || count > SMALL ||
      value->data_bytes < 2 * count)
    return 0;
  return count;
}

/* Operands of products are packed by the host, and asked about as constants: it matters that they are some. */
static void mark_weights(const heddle_pregion *region, const heddle_pregion *original) {
  static const char *const products[] = {"Conv", "ConvTranspose", "MatMul", "Gemm"};
  for (uint64_t i = 0; i < region->nodes.count; i++) {
    const heddle_pnode *node = region_node(region, i);
    for (size_t k = 0; node->op != NULL && k < sizeof products / sizeof products[0]; k++) {
      const heddle_pvalue *from = region_node_input(original, node, 1);
      if (strcmp(node->op, products[k]) != 0 || from == NULL || !is_half(from->dtype) || from->data == NULL) continue;
      heddle_pvalue *to = (heddle_pvalue *)(uintptr_t)region_value(region, node->inputs[1]);
      if (to->data != NULL) continue;
      to->data = from->data;
      to->data_bytes = from->data_bytes;
    }
  }
}

heddle_status wide_make(const heddle_host *host, const heddle_pregion *region, wide_region *out, heddle_error *err) {
  const uint64_t n = region->values.count;
  uint64_t floats = 0;
  for (uint64_t i = 0; i < n; i++) floats += small_count(region_value(region, (int64_t)i));
  *out = (wide_region){.host = host};
  heddle_status s =
      cpu_new(host, n * sizeof(heddle_pvalue) + floats * sizeof(float) + 1, "a region of float16", &out->memory, err);
  if (s != HEDDLE_OK) return s;
  heddle_pvalue *values = out->memory;
  float *at = (float *)(void *)(values + n);
  for (uint64_t i = 0; i < n; i++) {
    const heddle_pvalue *from = region_value(region, (int64_t)i);
    const uint64_t count = small_count(from);
    memcpy(&values[i], from, from->struct_size < sizeof values[i] ? from->struct_size : sizeof values[i]);
    values[i].struct_size = sizeof values[i];
    if (!is_half(from->dtype)) continue;
    values[i].dtype = (heddle_dtype){HEDDLE_DTYPE_FLOAT, 32, 1};
    values[i].layout = narrowed(from->layout);
    values[i].data = NULL;
    values[i].data_bytes = 0;
    if (count == 0) continue;
    halves_widen(is_brain(from->dtype), from->data, at, count);
    values[i].data = at;
    values[i].data_bytes = count * sizeof(float);
    at += count;
  }
  out->region = *region;
  out->region.values = (heddle_parray){values, n, sizeof values[0]};
  mark_weights(&out->region, region);
  return HEDDLE_OK;
}

void wide_free(wide_region *wide) {
  wide->host->free(wide->host->ctx, wide->memory);
}

/* ---------------------------------------------------------------- offers */

static void lay(const heddle_pregion *region, const int32_t *values, uint32_t count, const heddle_layout *from,
                heddle_layout *to) {
  for (uint32_t i = 0; i < count; i++) {
    const heddle_pvalue *value = region_value(region, values[i]);
    to[i] = from != NULL ? from[i] : 0;
    if (value != NULL && is_half(value->dtype)) to[i] = widened(to[i]);
  }
}

heddle_status wide_pass(void *sink, const heddle_poffer *offer, heddle_error *err) {
  enum { FEW = 24 };
  wide_offer *w = sink;
  heddle_layout few[FEW];
  void *layouts = few;
  const heddle_pregion *region = w->region;
  const uint64_t count = (uint64_t)region->n_inputs + region->n_outputs;
  heddle_status s = HEDDLE_OK;
  if (count > FEW) s = cpu_new(w->host, count * sizeof few[0], "an offer", &layouts, err);
  if (s != HEDDLE_OK) return s;
  heddle_layout *to = layouts;
  heddle_poffer mine = *offer;
  lay(region, region->inputs, region->n_inputs, offer->input_layouts, to);
  lay(region, region->outputs, region->n_outputs, offer->output_layouts, to + region->n_inputs);
  mine.input_layouts = to;
  mine.output_layouts = to + region->n_inputs;
  s = w->offer(w->sink, &mine, err);
  w->made++;
  if (layouts != few) w->host->free(w->host->ctx, layouts);
  return s;
}

/* ---------------------------------------------------------------- the table of layouts */

#ifdef HEDDLE_ONEDNN

/* The tensor as float32's; false where its layout is not wide. */
static bool inner_of(const heddle_pvalue *tensor, heddle_pvalue *out) {
  if ((tensor->layout & WIDE) == 0 || !is_half(tensor->dtype)) return false;
  *out = *tensor;
  out->dtype = (heddle_dtype){HEDDLE_DTYPE_FLOAT, 32, 1};
  out->layout = narrowed(tensor->layout);
  out->data = NULL;
  out->data_bytes = 0;
  return true;
}

static heddle_status layout_bytes(heddle_pinstance *self, uint32_t index, const heddle_pvalue *tensor, uint64_t *bytes,
                                  uint64_t *align, heddle_error *err) {
  heddle_pvalue inner;
  return onednn_layout_table.bytes(self, index, inner_of(tensor, &inner) ? &inner : tensor, bytes, align, err);
}

static heddle_status layout_pack(heddle_pinstance *self, uint32_t index, const heddle_pvalue *tensor, void *dst,
                                 uint64_t dst_bytes, heddle_error *err) {
  heddle_pvalue inner;
  uint64_t count = 0;
  void *floats = NULL;
  if (!inner_of(tensor, &inner)) return onednn_layout_table.pack(self, index, tensor, dst, dst_bytes, err);
  if (!region_value_count(tensor, &count) || count > UINT64_MAX / sizeof(float) || tensor->data_bytes < 2 * count ||
      (tensor->data == NULL && count > 0))
    return p_fail(err, HEDDLE_EINVAL, 0, "cpu:0: pack of %llu bytes of float16 or bfloat16, which are too few",
                  (unsigned long long)tensor->data_bytes);
  if (inner.layout == 0 && dst_bytes == count * sizeof(float) && (uintptr_t)dst % sizeof(float) == 0) {
    halves_widen(is_brain(tensor->dtype), tensor->data, dst, count);
    return HEDDLE_OK;
  }
  const heddle_host *host = self->host;
  heddle_status s = cpu_new(host, count * sizeof(float) + 1, "a constant as float32", &floats, err);
  if (s != HEDDLE_OK) return s;
  halves_widen(is_brain(tensor->dtype), tensor->data, floats, count);
  inner.data = floats;
  inner.data_bytes = count * sizeof(float);
  s = onednn_layout_table.pack(self, index, &inner, dst, dst_bytes, err);
  host->free(host->ctx, floats);
  return s;
}

static heddle_status layout_describe(heddle_pinstance *self, uint32_t index, heddle_layout layout, char *buf,
                                     uint64_t bytes, heddle_error *err) {
  heddle_status s = onednn_layout_table.describe(self, index, narrowed(layout), buf, bytes, err);
  if (s != HEDDLE_OK || (layout & WIDE) == 0 || bytes == 0) return s;
  const size_t used = strlen(buf);
  snprintf(buf + used, bytes - used, ":f32");
  return HEDDLE_OK;
}

const heddle_layout_table wide_layout_table = {
    .struct_size = sizeof wide_layout_table,
    .bytes = layout_bytes,
    .pack = layout_pack,
    .describe = layout_describe,
};

#endif
