/* graph/opschema.c: the table of operators, and the checks that need nothing but the table: how many inputs and outputs,
 * which attributes. The shapes are in infer_*.c, a file a family. */
#include "graph/opschema.h"

#include <stdio.h>
#include <string.h>

#include "graph/infer.h"
#include "graph/ops.h"
#include "graph/words.h"

#define ANY HEDDLE__VARIADIC
#define WINDOW "auto_pad:string,dilations:ints,kernel_shape:ints,pads:ints,strides:ints"
#define RESIZE \
  "coordinate_transformation_mode:string,cubic_coeff_a:float,exclude_outside:flag,extrapolation_value:float," \
  "mode:string,nearest_mode:string"

/* A kind "flag" is an integer that is 0 or 1. tests/python/test_onnx_schemas.py compares the attributes with ONNX's. */
static const heddle__schema table[] = {
    /* of Heddle's own domain, name, opsets, inputs, outputs, inputs that feed the shape, view, attributes, inference */
    {false, "Abs", 13, 28, 1, 1, 1, 1, 0, false, "", heddle__infer_number},
    {false, "Add", 13, 28, 2, 2, 1, 1, 0, false, "", heddle__infer_arithmetic},
    {false, "And", 13, 28, 2, 2, 1, 1, 0, false, "", heddle__infer_logic},
    {false, "ArgMax", 13, 28, 1, 1, 1, 1, 0, false, "axis:int,keepdims:flag,select_last_index:flag", heddle__infer_arg},
    {false, "ArgMin", 13, 28, 1, 1, 1, 1, 0, false, "axis:int,keepdims:flag,select_last_index:flag", heddle__infer_arg},
    {false, "AveragePool", 13, 18, 1, 1, 1, 1, 0, false,
     "auto_pad:string,ceil_mode:flag,count_include_pad:flag,kernel_shape:ints,pads:ints,strides:ints",
     heddle__infer_pool},
    {false, "BatchNormalization", 13, 13, 5, 5, 1, 5, 0, false, "epsilon:float,momentum:float",
     heddle__infer_batch_norm},
    {false, "BatchNormalization", 14, 28, 5, 5, 1, 3, 0, false, "epsilon:float,momentum:float,training_mode:flag",
     heddle__infer_batch_norm},
    {false, "Cast", 13, 18, 1, 1, 1, 1, 0, false, "to:int", heddle__infer_cast},
    {false, "Clip", 13, 28, 1, 3, 1, 1, 0, false, "", heddle__infer_clip},
    {false, "Concat", 13, 28, 1, ANY, 1, 1, 0, false, "axis:int", heddle__infer_concat},
    {false, "Constant", 13, 28, 0, 0, 1, 1, 0, false,
     "value_float:float,value_floats:floats,value_int:int,value_ints:ints", heddle__infer_constant},
    {false, "ConstantOfShape", 13, 28, 1, 1, 1, 1, 1, false, "dtype:int,value_float:float,value_int:int",
     heddle__infer_constant_of_shape},
    {false, "Conv", 13, 28, 2, 3, 1, 1, 0, false, WINDOW ",group:int", heddle__infer_conv},
    {false, "ConvTranspose", 13, 28, 2, 3, 1, 1, 0, false, WINDOW ",group:int,output_padding:ints,output_shape:ints",
     heddle__infer_conv_transpose},
    {false, "Div", 13, 28, 2, 2, 1, 1, 0, false, "", heddle__infer_arithmetic},
    {false, "Dropout", 13, 28, 1, 3, 1, 2, 4, false, "seed:int", heddle__infer_dropout},
    {false, "Elu", 13, 28, 1, 1, 1, 1, 0, false, "alpha:float", heddle__infer_float},
    {false, "Equal", 13, 28, 2, 2, 1, 1, 0, false, "", heddle__infer_compare},
    {false, "Erf", 13, 28, 1, 1, 1, 1, 0, false, "", heddle__infer_float},
    {false, "Exp", 13, 28, 1, 1, 1, 1, 0, false, "", heddle__infer_float},
    {false, "Expand", 13, 28, 2, 2, 1, 1, 2, false, "", heddle__infer_expand},
    {false, "Flatten", 13, 28, 1, 1, 1, 1, 0, true, "axis:int", heddle__infer_flatten},
    {false, "Gather", 13, 28, 2, 2, 1, 1, 0, false, "axis:int", heddle__infer_gather},
    {false, "Gemm", 13, 28, 2, 3, 1, 1, 0, false, "alpha:float,beta:float,transA:flag,transB:flag", heddle__infer_gemm},
    {false, "GlobalAveragePool", 13, 28, 1, 1, 1, 1, 0, false, "", heddle__infer_global_pool},
    {false, "GlobalMaxPool", 13, 28, 1, 1, 1, 1, 0, false, "", heddle__infer_global_pool},
    {false, "Greater", 13, 28, 2, 2, 1, 1, 0, false, "", heddle__infer_compare},
    {false, "GreaterOrEqual", 13, 28, 2, 2, 1, 1, 0, false, "", heddle__infer_compare},
    {false, "HardSigmoid", 13, 28, 1, 1, 1, 1, 0, false, "alpha:float,beta:float", heddle__infer_float},
    {false, "HardSwish", 14, 28, 1, 1, 1, 1, 0, false, "", heddle__infer_float},
    {false, "Identity", 13, 28, 1, 1, 1, 1, 0, true, "", heddle__infer_same},
    {false, "If", 13, 28, 1, ANY, 1, ANY, 0, false, "else_branch:graph,then_branch:graph", heddle__infer_control},
    {false, "InstanceNormalization", 13, 28, 3, 3, 1, 1, 0, false, "epsilon:float", heddle__infer_instance_norm},
    {false, "LayerNormalization", 17, 28, 2, 3, 1, 3, 0, false, "axis:int,epsilon:float,stash_type:int",
     heddle__infer_layer_norm},
    {false, "LeakyRelu", 13, 28, 1, 1, 1, 1, 0, false, "alpha:float", heddle__infer_float},
    {false, "Less", 13, 28, 2, 2, 1, 1, 0, false, "", heddle__infer_compare},
    {false, "LessOrEqual", 13, 28, 2, 2, 1, 1, 0, false, "", heddle__infer_compare},
    {false, "Log", 13, 28, 1, 1, 1, 1, 0, false, "", heddle__infer_float},
    {false, "LogSoftmax", 13, 28, 1, 1, 1, 1, 0, false, "axis:int", heddle__infer_softmax},
    {false, "Loop", 13, 28, 0, ANY, 1, ANY, 0, false, "body:graph,captured:int", heddle__infer_control},
    {false, "LRN", 13, 28, 1, 1, 1, 1, 0, false, "alpha:float,beta:float,bias:float,size:int", heddle__infer_lrn},
    {false, "MatMul", 13, 28, 2, 2, 1, 1, 0, false, "", heddle__infer_matmul},
    {false, "Max", 13, 28, 1, ANY, 1, 1, 0, false, "", heddle__infer_arithmetic},
    {false, "MaxPool", 13, 28, 1, 1, 1, 2, 0, false, WINDOW ",ceil_mode:flag,storage_order:flag", heddle__infer_pool},
    {false, "Min", 13, 28, 1, ANY, 1, 1, 0, false, "", heddle__infer_arithmetic},
    {false, "Mul", 13, 28, 2, 2, 1, 1, 0, false, "", heddle__infer_arithmetic},
    {false, "Neg", 13, 28, 1, 1, 1, 1, 0, false, "", heddle__infer_number},
    {false, "Not", 13, 28, 1, 1, 1, 1, 0, false, "", heddle__infer_logic},
    {false, "Or", 13, 28, 2, 2, 1, 1, 0, false, "", heddle__infer_logic},
    {false, "Pad", 13, 17, 2, 3, 1, 1, 2, false, "mode:string", heddle__infer_pad},
    {false, "Pad", 18, 18, 2, 4, 1, 1, 10, false, "mode:string", heddle__infer_pad},
    {false, "Pow", 13, 28, 2, 2, 1, 1, 0, false, "", heddle__infer_power},
    {false, "PRelu", 13, 28, 2, 2, 1, 1, 0, false, "", heddle__infer_prelu},
    {false, "Range", 13, 26, 3, 3, 1, 1, 7, false, "", heddle__infer_range},
    {false, "ReduceMax", 13, 17, 1, 1, 1, 1, 0, false, "axes:ints,keepdims:flag", heddle__infer_reduce},
    {false, "ReduceMax", 18, 19, 1, 2, 1, 1, 2, false, "keepdims:flag,noop_with_empty_axes:flag", heddle__infer_reduce},
    {false, "ReduceMean", 13, 17, 1, 1, 1, 1, 0, false, "axes:ints,keepdims:flag", heddle__infer_reduce},
    {false, "ReduceMean", 18, 28, 1, 2, 1, 1, 2, false, "keepdims:flag,noop_with_empty_axes:flag",
     heddle__infer_reduce},
    {false, "ReduceMin", 13, 17, 1, 1, 1, 1, 0, false, "axes:ints,keepdims:flag", heddle__infer_reduce},
    {false, "ReduceMin", 18, 19, 1, 2, 1, 1, 2, false, "keepdims:flag,noop_with_empty_axes:flag", heddle__infer_reduce},
    {false, "ReduceProd", 13, 17, 1, 1, 1, 1, 0, false, "axes:ints,keepdims:flag", heddle__infer_reduce},
    {false, "ReduceProd", 18, 28, 1, 2, 1, 1, 2, false, "keepdims:flag,noop_with_empty_axes:flag",
     heddle__infer_reduce},
    {false, "ReduceSum", 13, 28, 1, 2, 1, 1, 2, false, "keepdims:flag,noop_with_empty_axes:flag", heddle__infer_reduce},
    {false, "Relu", 13, 28, 1, 1, 1, 1, 0, false, "", heddle__infer_relu},
    {false, "Reshape", 13, 13, 2, 2, 1, 1, 2, true, "", heddle__infer_reshape},
    {false, "Reshape", 14, 28, 2, 2, 1, 1, 2, true, "allowzero:flag", heddle__infer_reshape},
    {false, "Resize", 13, 17, 1, 4, 1, 1, 14, false, RESIZE, heddle__infer_resize},
    {false, "Resize", 18, 28, 1, 4, 1, 1, 14, false, RESIZE ",antialias:flag,axes:ints,keep_aspect_ratio_policy:string",
     heddle__infer_resize},
    {false, "Scan", 13, 28, 1, ANY, 1, ANY, 0, false,
     "body:graph,captured:int,num_scan_inputs:int,scan_input_axes:ints,scan_input_directions:ints,"
     "scan_output_axes:ints,scan_output_directions:ints",
     heddle__infer_control},
    {false, "Shape", 13, 14, 1, 1, 1, 1, HEDDLE__SHAPES_ONLY, false, "", heddle__infer_shape},
    {false, "Shape", 15, 28, 1, 1, 1, 1, HEDDLE__SHAPES_ONLY, false, "end:int,start:int", heddle__infer_shape},
    {false, "Sigmoid", 13, 28, 1, 1, 1, 1, 0, false, "", heddle__infer_float},
    {false, "Slice", 13, 28, 3, 5, 1, 1, 30, false, "", heddle__infer_slice},
    {false, "Softmax", 13, 28, 1, 1, 1, 1, 0, false, "axis:int", heddle__infer_softmax},
    {false, "Split", 13, 17, 1, 2, 1, ANY, 2, false, "axis:int", heddle__infer_split},
    {false, "Split", 18, 28, 1, 2, 1, ANY, 2, false, "axis:int,num_outputs:int", heddle__infer_split},
    {false, "Sqrt", 13, 28, 1, 1, 1, 1, 0, false, "", heddle__infer_float},
    {false, "Squeeze", 13, 28, 1, 2, 1, 1, 2, true, "", heddle__infer_squeeze},
    {false, "Sub", 13, 28, 2, 2, 1, 1, 0, false, "", heddle__infer_arithmetic},
    {false, "Tanh", 13, 28, 1, 1, 1, 1, 0, false, "", heddle__infer_float},
    {false, "Tile", 13, 28, 2, 2, 1, 1, 2, false, "", heddle__infer_tile},
    {false, "TopK", 13, 28, 2, 2, 1, 2, 2, false, "axis:int,largest:flag,sorted:flag", heddle__infer_top_k},
    {false, "Transpose", 13, 28, 1, 1, 1, 1, 0, false, "perm:ints", heddle__infer_transpose},
    {false, "Unsqueeze", 13, 28, 2, 2, 1, 1, 2, true, "", heddle__infer_unsqueeze},
    {false, "Where", 13, 28, 3, 3, 1, 1, 0, false, "", heddle__infer_where},
    {false, "Xor", 13, 28, 2, 2, 1, 1, 0, false, "", heddle__infer_logic},
    {true, "FusedElementwise", 1, ANY, 1, 8, 1, 1, 0, false, "expression:string", heddle__infer_fused},
    {true, "Gelu", 1, ANY, 1, 1, 1, 1, 0, false, "approximate:string", heddle__infer_float},
    {true, "Reorder", 1, ANY, 1, 1, 1, 1, 0, false, "", heddle__infer_same},
};

#define TABLE_SIZE (sizeof table / sizeof table[0])

const heddle__schema *heddle__schema_find(const char *domain, const char *op, uint32_t opset) {
  for (size_t i = 0; i < TABLE_SIZE; i++) {
    const heddle__schema *s = &table[i];
    if (strcmp(s->op, op) == 0 && strcmp(s->own ? "heddle" : "", domain) == 0 &&
        (opset == 0 || (opset >= s->opset_first && opset <= s->opset_last)))
      return s;
  }
  return domain[0] == '\0' ? heddle__ops_find(op, opset) : NULL;
}

bool heddle__schema_is_own(const heddle__schema *schema) {
  return schema >= table && schema < table + TABLE_SIZE;
}

bool heddle__node_is_view(const heddle_graph *g, const heddle__node *n) {
  if (n->kind == HEDDLE__NODE_NULL) return false;
  if (n->kind == HEDDLE__NODE_TVM) return strcmp(n->func_name, "__nop") == 0 || strcmp(n->func_name, "__copy") == 0;
  const heddle__schema *schema = heddle__schema_find(n->domain, n->op, n->domain[0] == '\0' ? g->opset : 0);
  return schema != NULL && schema->is_view;
}

void heddle__schema_names(uint32_t opset, char *out, size_t size) {
  size_t used = 0;
  out[0] = '\0';
  for (size_t i = 0; i < TABLE_SIZE; i++) {
    const heddle__schema *s = &table[i];
    if (s->own || opset < s->opset_first || opset > s->opset_last) continue;
    int n = snprintf(out + used, size - used, "%s%s", used > 0 ? ", " : "", s->op);
    if (n < 0 || (size_t)n >= size - used) return;
    used += (size_t)n;
  }
}

/* The word for an attribute's kind in the table, with its length; NULL where the operator has no such attribute. */
static const char *kind_word(const heddle__schema *schema, const char *name, size_t *kind_length) {
  size_t length = strcspn(name, ":,");
  if (name[length] != '\0' || length == 0) return NULL; /* it would match more than a name */
  for (const char *at = schema->attrs; *at != '\0'; at += strcspn(at, ","), at += *at == ',') {
    if (strncmp(at, name, length) != 0 || at[length] != ':') continue;
    *kind_length = strcspn(at + length + 1, ",");
    return at + length + 1;
  }
  return NULL;
}

static bool is_word(const char *at, size_t length, const char *word) {
  return strlen(word) == length && strncmp(at, word, length) == 0;
}

uint32_t heddle__schema_attr(const heddle__schema *schema, const char *name) {
  static const char *const kinds[] = {"int", "float", "string", "ints", "floats", "strings", "graph"};
  size_t length = 0;
  const char *word = kind_word(schema, name, &length);
  if (word == NULL) return 0;
  if (is_word(word, length, "flag")) return HEDDLE_ATTR_INT;
  for (uint32_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++)
    if (is_word(word, length, kinds[k])) return k + 1;
  return 0;
}

static bool is_flag(const heddle__schema *schema, const char *name) {
  size_t length = 0;
  const char *word = kind_word(schema, name, &length);
  return word != NULL && is_word(word, length, "flag");
}

static heddle_status check_count(const heddle_graph *g, const heddle__node *node, const char *what, uint32_t count,
                                 uint32_t min, uint32_t max, heddle_error *err) {
  if (count >= min && (count <= max || max == ANY)) return HEDDLE_OK;
  if (max == ANY)
    return heddle__node_fail(g, node, err, HEDDLE_EFORMAT, "it has %u %s, expected at least %u", count, what, min);
  if (min == max) return heddle__node_fail(g, node, err, HEDDLE_EFORMAT, "it has %u %s, expected %u", count, what, min);
  return heddle__node_fail(g, node, err, HEDDLE_EFORMAT, "it has %u %s, expected %u to %u", count, what, min, max);
}

heddle_status heddle__schema_no_attr(const heddle__schema *schema, const heddle_graph *g, const heddle__node *node,
                                     const char *name, heddle_error *err) {
  char shown[64], opset[32] = "";
  if (!schema->own) snprintf(opset, sizeof opset, " in opset %u", g->opset);
  return heddle__node_fail(g, node, err, HEDDLE_EFORMAT, "it has no attribute '%s'%s; expected %s%s",
                           heddle__show(name, shown), opset, schema->attrs[0] != '\0' ? "one of " : "none",
                           schema->attrs);
}

heddle_status heddle__schema_check(const heddle__schema *schema, const heddle_graph *g, const heddle__node *node,
                                   heddle_error *err) {
  char shown[64];
  heddle_status s = check_count(g, node, "inputs", node->n_inputs, schema->min_inputs, schema->max_inputs, err);
  if (s == HEDDLE_OK)
    s = check_count(g, node, "outputs", node->n_outputs, schema->min_outputs, schema->max_outputs, err);
  if (s != HEDDLE_OK) return s;
  for (uint32_t i = 0; i < node->n_inputs; i++)
    if (node->inputs[i].node == HEDDLE__ABSENT && !heddle__is_control(node) &&
        (i < schema->min_inputs || schema->max_inputs == ANY))
      return heddle__node_fail(g, node, err, HEDDLE_EFORMAT, "input %u is absent, and may not be", i);
  for (uint32_t i = 0; i < node->n_attrs; i++) {
    const heddle_pattr *attr = &node->attrs[i];
    uint32_t kind = heddle__schema_attr(schema, attr->name);
    heddle__show(attr->name, shown);
    if (kind == 0) return heddle__schema_no_attr(schema, g, node, attr->name, err);
    if (kind != attr->kind)
      return heddle__node_fail(g, node, err, HEDDLE_EFORMAT, "attribute '%s' is of another kind; expected %s", shown,
                               schema->attrs);
    const int64_t value = kind == HEDDLE_ATTR_INT ? *(const int64_t *)attr->data : 0;
    if (value != 0 && value != 1 && is_flag(schema, attr->name))
      return heddle__node_fail(g, node, err, HEDDLE_EFORMAT, "attribute '%s' is %lld, expected 0 or 1", shown,
                               (long long)value);
    for (uint32_t k = 0; k < i; k++)
      if (strcmp(node->attrs[k].name, attr->name) == 0)
        return heddle__node_fail(g, node, err, HEDDLE_EFORMAT, "attribute '%s' is given twice", shown);
  }
  return HEDDLE_OK;
}
