/* frontends/onnx/versions.c: which operators and attributes an opset has. The table of operators (operators/) has them from
 * opset 13 on; here is what differs in the older ones, and what graphs keep in another form. A
 * node is looked at before it is upgraded. tests/python/test_onnx_schemas.py compares all of it with ONNX's own. */
#include <stdio.h>
#include <string.h>

#include "frontends/onnx/reader.h"
#include "graph/opschema.h"

enum { KIND_TENSOR = 64, KIND_SPARSE, KIND_OTHER };

/* Operators that came after opset 7, or went. last 0: still there. */
static const struct operator_row {
  const char *op;
  uint8_t first, last;
} operators[] = {
    {"Acosh", 9, 0},
    {"Asinh", 9, 0},
    {"Atanh", 9, 0},
    {"BitShift", 11, 0},
    {"Celu", 12, 0},
    {"Compress", 9, 0},
    {"ConstantOfShape", 9, 0},
    {"ConvInteger", 10, 0},
    {"Cosh", 9, 0},
    {"CumSum", 11, 0},
    {"DequantizeLinear", 10, 0},
    {"Det", 11, 0},
    {"DynamicQuantizeLinear", 11, 0},
    {"Einsum", 12, 0},
    {"Erf", 9, 0},
    {"Expand", 8, 0},
    {"EyeLike", 9, 0},
    {"GatherElements", 11, 0},
    {"GatherND", 11, 0},
    {"GreaterOrEqual", 12, 0},
    {"IsInf", 10, 0},
    {"IsNaN", 9, 0},
    {"LessOrEqual", 12, 0},
    {"MatMulInteger", 10, 0},
    {"MaxUnpool", 9, 0},
    {"MeanVarianceNormalization", 9, 0},
    {"Mod", 10, 0},
    {"NegativeLogLikelihoodLoss", 12, 0},
    {"NonMaxSuppression", 10, 0},
    {"NonZero", 9, 0},
    {"OneHot", 9, 0},
    {"QLinearConv", 10, 0},
    {"QLinearMatMul", 10, 0},
    {"QuantizeLinear", 10, 0},
    {"Range", 11, 0},
    {"Resize", 10, 0},
    {"ReverseSequence", 10, 0},
    {"RoiAlign", 10, 0},
    {"Round", 11, 0},
    {"Scan", 8, 0},
    {"Scatter", 9, 10},
    {"ScatterElements", 11, 0},
    {"ScatterND", 11, 0},
    {"Shrink", 9, 0},
    {"Sign", 9, 0},
    {"Sinh", 9, 0},
    {"SoftmaxCrossEntropyLoss", 12, 0},
    {"TfIdfVectorizer", 9, 0},
    {"ThresholdedRelu", 10, 0},
    {"Unique", 11, 0},
    {"Upsample", 7, 9},
    {"Where", 9, 0},
};

/* Attributes that are not those of the graph's table: first 0: none of the graph's in a model (Heddle's own); kind 0: that
 * of the graph's table, from opset first on; else an attribute of that kind in opsets first to last (0: all). */
static const struct attr_row {
  const char *op, *attr;
  uint8_t first, last, kind;
} attrs[] = {
    {"ArgMax", "select_last_index", 12, 0, 0},
    {"ArgMin", "select_last_index", 12, 0, 0},
    {"AveragePool", "ceil_mode", 10, 0, 0},
    {"BatchNormalization", "spatial", 7, 8, HEDDLE_ATTR_INT},
    {"Clip", "max", 7, 10, HEDDLE_ATTR_FLOAT},
    {"Clip", "min", 7, 10, HEDDLE_ATTR_FLOAT},
    {"Constant", "sparse_value", 11, 0, KIND_SPARSE},
    {"Constant", "value", 7, 0, KIND_TENSOR},
    {"Constant", "value_float", 12, 0, 0},
    {"Constant", "value_floats", 12, 0, 0},
    {"Constant", "value_int", 12, 0, 0},
    {"Constant", "value_ints", 12, 0, 0},
    {"Constant", "value_string", 12, 0, HEDDLE_ATTR_STRING},
    {"Constant", "value_strings", 12, 0, HEDDLE_ATTR_STRINGS},
    {"ConstantOfShape", "dtype", 0, 0, 0},
    {"ConstantOfShape", "value", 9, 0, KIND_TENSOR},
    {"ConstantOfShape", "value_float", 0, 0, 0},
    {"ConstantOfShape", "value_int", 0, 0, 0},
    {"DepthToSpace", "mode", 11, 0, 0},
    {"DequantizeLinear", "axis", 13, 0, 0},
    {"Dropout", "ratio", 7, 11, HEDDLE_ATTR_FLOAT},
    {"Dropout", "seed", 12, 0, 0},
    {"GatherND", "batch_dims", 12, 0, 0},
    {"Loop", "captured", 0, 0, 0},
    {"MaxPool", "ceil_mode", 10, 0, 0},
    {"MaxPool", "dilations", 10, 0, 0},
    {"MaxPool", "storage_order", 8, 0, 0},
    {"Pad", "pads", 7, 10, HEDDLE_ATTR_INTS},
    {"Pad", "value", 7, 10, HEDDLE_ATTR_FLOAT},
    {"QuantizeLinear", "axis", 13, 0, 0},
    {"ReduceSum", "axes", 7, 12, HEDDLE_ATTR_INTS},
    {"ReduceSum", "noop_with_empty_axes", 13, 0, 0},
    {"Resize", "coordinate_transformation_mode", 11, 0, 0},
    {"Resize", "cubic_coeff_a", 11, 0, 0},
    {"Resize", "exclude_outside", 11, 0, 0},
    {"Resize", "extrapolation_value", 11, 0, 0},
    {"Resize", "nearest_mode", 11, 0, 0},
    {"Scan", "captured", 0, 0, 0},
    {"Scan", "directions", 8, 8, HEDDLE_ATTR_INTS},
    {"Scan", "scan_input_axes", 9, 0, 0},
    {"Scan", "scan_input_directions", 9, 0, 0},
    {"Scan", "scan_output_axes", 9, 0, 0},
    {"Scan", "scan_output_directions", 9, 0, 0},
    {"Scatter", "axis", 9, 10, HEDDLE_ATTR_INT},
    {"Slice", "axes", 7, 9, HEDDLE_ATTR_INTS},
    {"Slice", "ends", 7, 9, HEDDLE_ATTR_INTS},
    {"Slice", "starts", 7, 9, HEDDLE_ATTR_INTS},
    {"Split", "split", 7, 12, HEDDLE_ATTR_INTS},
    {"Squeeze", "axes", 7, 12, HEDDLE_ATTR_INTS},
    {"TfIdfVectorizer", "pool_strings", 9, 0, HEDDLE_ATTR_STRINGS},
    {"TopK", "k", 7, 9, HEDDLE_ATTR_INT},
    {"TopK", "largest", 11, 0, 0},
    {"TopK", "sorted", 11, 0, 0},
    {"Unsqueeze", "axes", 7, 12, HEDDLE_ATTR_INTS},
    {"Upsample", "mode", 7, 9, HEDDLE_ATTR_STRING},
    {"Upsample", "scales", 7, 8, HEDDLE_ATTR_FLOATS},
};

enum { N_OPERATORS = sizeof operators / sizeof operators[0], N_ATTRS = sizeof attrs / sizeof attrs[0] };

static bool is_in(int64_t opset, uint8_t first, uint8_t last) {
  return first != 0 && opset >= first && (last == 0 || opset <= last);
}

/* The kind of an attribute in the model's opset; 0: there is none of that name. schema may be NULL. */
static uint32_t kind_in(const heddle__onnx_reader *r, const heddle__schema *schema, const char *op, const char *name) {
  const uint32_t kind = schema != NULL ? heddle__version_attr(schema, name) : 0;
  for (int i = 0; i < N_ATTRS; i++) {
    const struct attr_row *row = &attrs[i];
    if (strcmp(row->op, op) != 0 || strcmp(row->attr, name) != 0) continue;
    if (row->kind == 0) return is_in(r->opset, row->first, row->last) ? kind : 0;
    if (is_in(r->opset, row->first, row->last)) return row->kind;
  }
  return kind;
}

uint32_t heddle__onnx_attr_kind(const Onnx__AttributeProto *a) {
  switch (heddle__onnx_kind(a)) {
  case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT: return HEDDLE_ATTR_INT;
  case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT: return HEDDLE_ATTR_FLOAT;
  case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRING: return HEDDLE_ATTR_STRING;
  case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS: return HEDDLE_ATTR_INTS;
  case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOATS: return HEDDLE_ATTR_FLOATS;
  case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRINGS: return HEDDLE_ATTR_STRINGS;
  case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__GRAPH: return HEDDLE__ATTR_GRAPH;
  case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__TENSOR: return KIND_TENSOR;
  case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__SPARSE_TENSOR: return KIND_SPARSE;
  default: return KIND_OTHER;
  }
}

/* " it has axis, keepdims", as far as there is room. */
static void list_attrs(const heddle__onnx_reader *r, const heddle__schema *schema, const char *op, char *out,
                       size_t size) {
  char name[48];
  size_t used = (size_t)snprintf(out, size, "it has");
  unsigned n = 0;
  for (const char *at = schema != NULL ? schema->attrs : ""; *at != '\0'; at += strcspn(at, ","), at += *at == ',') {
    snprintf(name, sizeof name, "%.*s", (int)strcspn(at, ":"), at);
    if (kind_in(r, schema, op, name) == 0) continue;
    const int one = snprintf(out + used, size - used, "%s %s", n++ > 0 ? "," : "", name);
    if ((size_t)one >= size - used) break;
    used += (size_t)one;
  }
  for (int i = 0; i < N_ATTRS; i++) {
    if (strcmp(attrs[i].op, op) != 0 || attrs[i].kind == 0 || !is_in(r->opset, attrs[i].first, attrs[i].last)) continue;
    const int one = snprintf(out + used, size - used, "%s %s", n++ > 0 ? "," : "", attrs[i].attr);
    if ((size_t)one >= size - used) break;
    used += (size_t)one;
  }
  if (n == 0) snprintf(out, size, "it has none");
}

static bool has_operator(heddle__onnx_reader *r, const Onnx__NodeProto *node) {
  for (int i = 0; i < N_OPERATORS; i++) {
    const struct operator_row *row = &operators[i];
    if (strcmp(row->op, node->op_type) != 0 || is_in(r->opset, row->first, row->last)) continue;
    if (r->opset < row->first)
      heddle__onnx_problem(r, node, "the model is of opset %lld, and the operator came with opset %d",
                           (long long)r->opset, row->first);
    else
      heddle__onnx_problem(r, node, "the model is of opset %lld, and the operator went after opset %d",
                           (long long)r->opset, row->last);
    return false;
  }
  return true;
}

/* Files of the first formats leave the kind out, and then an empty list may be of any. */
static bool may_be(const Onnx__AttributeProto *a, uint32_t kind) {
  const bool is_empty = a->n_ints == 0 && a->n_floats == 0 && a->n_strings == 0;
  return heddle__onnx_attr_kind(a) == kind ||
         ((!a->has_type || a->type == 0) && is_empty && heddle__onnx_attr_kind(a) == HEDDLE_ATTR_INTS &&
          (kind == HEDDLE_ATTR_FLOATS || kind == HEDDLE_ATTR_STRINGS));
}

void heddle__onnx_check_node(heddle__onnx_reader *r, const Onnx__NodeProto *node, bool is_call) {
  char shown[44], list[160];
  const bool is_default = node->domain[0] == '\0' && !is_call;
  const heddle__schema *schema = is_default ? heddle__schema_find("", node->op_type, heddle__onnx_base(r)) : NULL;
  if (is_default && !has_operator(r, node)) return;
  bool has_some = schema != NULL;
  for (int i = 0; is_default && i < N_OPERATORS; i++)
    has_some = has_some || (operators[i].last != 0 && strcmp(operators[i].op, node->op_type) == 0);
  for (size_t i = 0; i < node->n_attribute; i++) {
    const Onnx__AttributeProto *a = node->attribute[i];
    heddle__onnx_show(a->name, shown);
    for (size_t k = 0; k < i; k++) {
      if (strcmp(node->attribute[k]->name, a->name) != 0) continue;
      heddle__onnx_problem(r, node, "attribute '%s' is given twice", shown);
      break;
    }
    const bool refers = a->ref_attr_name != NULL && a->ref_attr_name[0] != '\0'; /* attrs.c reports it */
    if (!has_some || refers) continue; /* an operator that is not known is reported as such */
    const uint32_t kind = kind_in(r, schema, node->op_type, a->name);
    if (kind != 0 && may_be(a, kind)) continue;
    list_attrs(r, schema, node->op_type, list, sizeof list);
    if (kind == 0)
      heddle__onnx_problem(r, node, "opset %lld has no attribute '%s' for it; %s", (long long)r->opset, shown, list);
    else
      heddle__onnx_problem(r, node, "attribute '%s' is of another kind than in opset %lld", shown, (long long)r->opset);
  }
}
