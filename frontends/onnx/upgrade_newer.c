/* frontends/onnx/upgrade_newer.c: operators of opsets after those that graphs may have. Most later versions only take
 * more types; the table has those that take more attributes or inputs, and what of them means the same as before. */
#include <string.h>

#include "frontends/onnx/upgrade.h"

/* Attributes that came with an opset, and the value that means what it meant before. */
static const struct row {
  const char *op, *attr;
  int64_t since;
  const char *text; /* of strings, else NULL and number counts */
  int64_t number;
} rows[] = {
    {"Cast", "round_mode", 24, "up", 0},
    {"Cast", "saturate", 19, NULL, 1},
    {"CastLike", "round_mode", 24, "up", 0},
    {"CastLike", "saturate", 19, NULL, 1},
    {"Attention", "left_window_size", 25, NULL, -1},
    {"Attention", "right_window_size", 25, NULL, -1},
    {"DequantizeLinear", "block_size", 21, NULL, 0},
    {"DequantizeLinear", "output_dtype", 23, NULL, 0},
    {"QuantizeLinear", "block_size", 21, NULL, 0},
    {"QuantizeLinear", "output_dtype", 21, NULL, 0},
    {"QuantizeLinear", "precision", 23, NULL, 0},
    {"QuantizeLinear", "saturate", 19, NULL, 1},
    {"Range", "stash_type", 27, NULL, 1},
    {"SpaceToDepth", "mode", 28, "DCR", 0},
};

/* Dilations of 1 are none. */
static bool all_ones(const Onnx__AttributeProto *a) {
  for (size_t i = 0; i < a->n_ints; i++)
    if (a->ints[i] != 1) return false;
  return true;
}

static void drop_what_is_new(heddle__onnx_reader *r, Onnx__NodeProto *node) {
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    const struct row *row = &rows[i];
    const Onnx__AttributeProto *a = heddle__onnx_attr(node, row->attr);
    if (a == NULL || strcmp(row->op, node->op_type) != 0 || row->since <= r->target) continue;
    bool same = row->text != NULL ? heddle__onnx_attr_is(node, row->attr, row->text) : a->i == row->number;
    /* saturate and round_mode are about types of 8 bits and less, which are refused where they are met */
    if (same || strcmp(row->attr, "saturate") == 0 || strcmp(row->attr, "round_mode") == 0)
      heddle__onnx_drop_attr(node, row->attr);
    else heddle__onnx_problem(r, node, "attribute '%s' of opset %d has a value of its own", row->attr, (int)row->since);
  }
  const Onnx__AttributeProto *dilations = heddle__onnx_attr(node, "dilations");
  if (dilations != NULL && r->target < 19 && strcmp(node->op_type, "AveragePool") == 0) {
    if (!all_ones(dilations)) heddle__onnx_problem(r, node, "it has dilations");
    heddle__onnx_drop_attr(node, "dilations");
  }
}

/* Whether the graph's opset lacks the operator, and domain "heddle" has it. */
static bool is_own(const heddle__onnx_reader *r, const Onnx__NodeProto *node) {
  return r->host->schema("", node->op_type, r->target) == NULL && r->host->schema("heddle", node->op_type, 0) != NULL;
}

HEDDLE__UPGRADE(heddle__upgrade_newer) {
  (void)is_done;
  drop_what_is_new(r, node);
  if (strcmp(node->op_type, "Gelu") == 0 && is_own(r, node)) node->domain = (char *)(uintptr_t) "heddle";
  if (strcmp(node->op_type, "GridSample") == 0 && r->target < 20) { /* new words for the same */
    if (heddle__onnx_attr_is(node, "mode", "linear")) return heddle__onnx_set_text(r, node, "mode", "bilinear");
    if (heddle__onnx_attr_is(node, "mode", "cubic")) return heddle__onnx_set_text(r, node, "mode", "bicubic");
  }
  if (strcmp(node->op_type, "GroupNormalization") == 0 && r->target < 21)
    heddle__onnx_problem(r, node, "its operands are a channel's since opset 21, a group's before");
  if (strcmp(node->op_type, "DFT") == 0 && r->target < 20 && node->n_input > 2)
    heddle__onnx_problem(r, node, "its axis is an input since opset 20");
  if (strcmp(node->op_type, "Resize") == 0 && r->target < 19 &&
      heddle__onnx_attr_is(node, "coordinate_transformation_mode", "half_pixel_symmetric"))
    heddle__onnx_problem(r, node, "its coordinates 'half_pixel_symmetric' are of opset 19");
  if (strcmp(node->op_type, "Pad") == 0 && r->target < 19 && heddle__onnx_attr_is(node, "mode", "wrap"))
    heddle__onnx_problem(r, node, "its mode 'wrap' is of opset 19");
  return HEDDLE_OK;
}
