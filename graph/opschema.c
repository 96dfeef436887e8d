/* graph/opschema.c: the table of operators, and the checks that need nothing but the table: how many inputs and outputs,
 * which attributes. The shapes are in infer_*.c, a file a family. */
#include "graph/opschema.h"

#include <stdio.h>
#include <string.h>

#include "graph/infer.h"
#include "graph/words.h"

#define ANY HEDDLE__VARIADIC
#define WINDOW "auto_pad:string,dilations:ints,kernel_shape:ints,pads:ints,strides:ints"
#define RESIZE \
  "coordinate_transformation_mode:string,cubic_coeff_a:float,exclude_outside:int,extrapolation_value:float," \
  "mode:string,nearest_mode:string"

static const heddle__schema table[] = {
    /* domain, name, opsets, inputs, outputs, attributes, inputs that feed the shape, view, inference */
    {"", "Abs", 13, 18, 1, 1, 1, 1, "", 0, false, heddle__infer_number},
    {"", "Add", 13, 18, 2, 2, 1, 1, "", 0, false, heddle__infer_arithmetic},
    {"", "And", 13, 18, 2, 2, 1, 1, "", 0, false, heddle__infer_logic},
    {"", "ArgMax", 13, 18, 1, 1, 1, 1, "axis:int,keepdims:int,select_last_index:int", 0, false, heddle__infer_arg},
    {"", "ArgMin", 13, 18, 1, 1, 1, 1, "axis:int,keepdims:int,select_last_index:int", 0, false, heddle__infer_arg},
    {"", "AveragePool", 13, 18, 1, 1, 1, 1,
     "auto_pad:string,ceil_mode:int,count_include_pad:int,kernel_shape:ints,pads:ints,strides:ints", 0, false,
     heddle__infer_pool},
    {"", "BatchNormalization", 13, 13, 5, 5, 1, 5, "epsilon:float,momentum:float", 0, false, heddle__infer_batch_norm},
    {"", "BatchNormalization", 14, 18, 5, 5, 1, 3, "epsilon:float,momentum:float,training_mode:int", 0, false,
     heddle__infer_batch_norm},
    {"", "Cast", 13, 18, 1, 1, 1, 1, "to:int", 0, false, heddle__infer_cast},
    {"", "Clip", 13, 18, 1, 3, 1, 1, "", 0, false, heddle__infer_clip},
    {"", "Concat", 13, 18, 1, ANY, 1, 1, "axis:int", 0, false, heddle__infer_concat},
    {"", "Constant", 13, 18, 0, 0, 1, 1, "value_float:float,value_floats:floats,value_int:int,value_ints:ints", 0,
     false, heddle__infer_constant},
    {"", "ConstantOfShape", 13, 18, 1, 1, 1, 1, "dtype:int,value_float:float,value_int:int", 1, false,
     heddle__infer_constant_of_shape},
    {"", "Conv", 13, 18, 2, 3, 1, 1, WINDOW ",group:int", 0, false, heddle__infer_conv},
    {"", "ConvTranspose", 13, 18, 2, 3, 1, 1, WINDOW ",group:int,output_padding:ints,output_shape:ints", 0, false,
     heddle__infer_conv_transpose},
    {"", "Div", 13, 18, 2, 2, 1, 1, "", 0, false, heddle__infer_arithmetic},
    {"", "Dropout", 13, 18, 1, 3, 1, 2, "seed:int", 4, false, heddle__infer_dropout},
    {"", "Elu", 13, 18, 1, 1, 1, 1, "alpha:float", 0, false, heddle__infer_float},
    {"", "Equal", 13, 18, 2, 2, 1, 1, "", 0, false, heddle__infer_compare},
    {"", "Erf", 13, 18, 1, 1, 1, 1, "", 0, false, heddle__infer_float},
    {"", "Exp", 13, 18, 1, 1, 1, 1, "", 0, false, heddle__infer_float},
    {"", "Expand", 13, 18, 2, 2, 1, 1, "", 2, false, heddle__infer_expand},
    {"", "Flatten", 13, 18, 1, 1, 1, 1, "axis:int", 0, true, heddle__infer_flatten},
    {"", "Gather", 13, 18, 2, 2, 1, 1, "axis:int", 0, false, heddle__infer_gather},
    {"", "Gemm", 13, 18, 2, 3, 1, 1, "alpha:float,beta:float,transA:int,transB:int", 0, false, heddle__infer_gemm},
    {"", "GlobalAveragePool", 13, 18, 1, 1, 1, 1, "", 0, false, heddle__infer_global_pool},
    {"", "GlobalMaxPool", 13, 18, 1, 1, 1, 1, "", 0, false, heddle__infer_global_pool},
    {"", "Greater", 13, 18, 2, 2, 1, 1, "", 0, false, heddle__infer_compare},
    {"", "GreaterOrEqual", 13, 18, 2, 2, 1, 1, "", 0, false, heddle__infer_compare},
    {"", "HardSigmoid", 13, 18, 1, 1, 1, 1, "alpha:float,beta:float", 0, false, heddle__infer_float},
    {"", "HardSwish", 14, 18, 1, 1, 1, 1, "", 0, false, heddle__infer_float},
    {"", "Identity", 13, 18, 1, 1, 1, 1, "", 0, true, heddle__infer_same},
    {"", "InstanceNormalization", 13, 18, 3, 3, 1, 1, "epsilon:float", 0, false, heddle__infer_instance_norm},
    {"", "LayerNormalization", 17, 18, 2, 3, 1, 3, "axis:int,epsilon:float,stash_type:int", 0, false,
     heddle__infer_layer_norm},
    {"", "LeakyRelu", 13, 18, 1, 1, 1, 1, "alpha:float", 0, false, heddle__infer_float},
    {"", "Less", 13, 18, 2, 2, 1, 1, "", 0, false, heddle__infer_compare},
    {"", "LessOrEqual", 13, 18, 2, 2, 1, 1, "", 0, false, heddle__infer_compare},
    {"", "Log", 13, 18, 1, 1, 1, 1, "", 0, false, heddle__infer_float},
    {"", "LogSoftmax", 13, 18, 1, 1, 1, 1, "axis:int", 0, false, heddle__infer_softmax},
    {"", "LRN", 13, 18, 1, 1, 1, 1, "alpha:float,beta:float,bias:float,size:int", 0, false, heddle__infer_lrn},
    {"", "MatMul", 13, 18, 2, 2, 1, 1, "", 0, false, heddle__infer_matmul},
    {"", "Max", 13, 18, 1, ANY, 1, 1, "", 0, false, heddle__infer_arithmetic},
    {"", "MaxPool", 13, 18, 1, 1, 1, 2, WINDOW ",ceil_mode:int,storage_order:int", 0, false, heddle__infer_pool},
    {"", "Min", 13, 18, 1, ANY, 1, 1, "", 0, false, heddle__infer_arithmetic},
    {"", "Mul", 13, 18, 2, 2, 1, 1, "", 0, false, heddle__infer_arithmetic},
    {"", "Neg", 13, 18, 1, 1, 1, 1, "", 0, false, heddle__infer_number},
    {"", "Not", 13, 18, 1, 1, 1, 1, "", 0, false, heddle__infer_logic},
    {"", "Or", 13, 18, 2, 2, 1, 1, "", 0, false, heddle__infer_logic},
    {"", "Pad", 13, 17, 2, 3, 1, 1, "mode:string", 2, false, heddle__infer_pad},
    {"", "Pad", 18, 18, 2, 4, 1, 1, "mode:string", 10, false, heddle__infer_pad},
    {"", "Pow", 13, 18, 2, 2, 1, 1, "", 0, false, heddle__infer_power},
    {"", "PRelu", 13, 18, 2, 2, 1, 1, "", 0, false, heddle__infer_prelu},
    {"", "Range", 13, 18, 3, 3, 1, 1, "", 7, false, heddle__infer_range},
    {"", "ReduceMax", 13, 17, 1, 1, 1, 1, "axes:ints,keepdims:int", 0, false, heddle__infer_reduce},
    {"", "ReduceMax", 18, 18, 1, 2, 1, 1, "keepdims:int,noop_with_empty_axes:int", 2, false, heddle__infer_reduce},
    {"", "ReduceMean", 13, 17, 1, 1, 1, 1, "axes:ints,keepdims:int", 0, false, heddle__infer_reduce},
    {"", "ReduceMean", 18, 18, 1, 2, 1, 1, "keepdims:int,noop_with_empty_axes:int", 2, false, heddle__infer_reduce},
    {"", "ReduceMin", 13, 17, 1, 1, 1, 1, "axes:ints,keepdims:int", 0, false, heddle__infer_reduce},
    {"", "ReduceMin", 18, 18, 1, 2, 1, 1, "keepdims:int,noop_with_empty_axes:int", 2, false, heddle__infer_reduce},
    {"", "ReduceProd", 13, 17, 1, 1, 1, 1, "axes:ints,keepdims:int", 0, false, heddle__infer_reduce},
    {"", "ReduceProd", 18, 18, 1, 2, 1, 1, "keepdims:int,noop_with_empty_axes:int", 2, false, heddle__infer_reduce},
    {"", "ReduceSum", 13, 18, 1, 2, 1, 1, "keepdims:int,noop_with_empty_axes:int", 2, false, heddle__infer_reduce},
    {"", "Relu", 13, 18, 1, 1, 1, 1, "", 0, false, heddle__infer_relu},
    {"", "Reshape", 13, 13, 2, 2, 1, 1, "", 2, true, heddle__infer_reshape},
    {"", "Reshape", 14, 18, 2, 2, 1, 1, "allowzero:int", 2, true, heddle__infer_reshape},
    {"", "Resize", 13, 17, 1, 4, 1, 1, RESIZE, 14, false, heddle__infer_resize},
    {"", "Resize", 18, 18, 1, 4, 1, 1, RESIZE ",antialias:int,axes:ints,keep_aspect_ratio_policy:string", 14, false,
     heddle__infer_resize},
    {"", "Shape", 13, 14, 1, 1, 1, 1, "", HEDDLE__SHAPES_ONLY, false, heddle__infer_shape},
    {"", "Shape", 15, 18, 1, 1, 1, 1, "end:int,start:int", HEDDLE__SHAPES_ONLY, false, heddle__infer_shape},
    {"", "Sigmoid", 13, 18, 1, 1, 1, 1, "", 0, false, heddle__infer_float},
    {"", "Slice", 13, 18, 3, 5, 1, 1, "", 30, false, heddle__infer_slice},
    {"", "Softmax", 13, 18, 1, 1, 1, 1, "axis:int", 0, false, heddle__infer_softmax},
    {"", "Split", 13, 17, 1, 2, 1, ANY, "axis:int", 2, false, heddle__infer_split},
    {"", "Split", 18, 18, 1, 2, 1, ANY, "axis:int,num_outputs:int", 2, false, heddle__infer_split},
    {"", "Sqrt", 13, 18, 1, 1, 1, 1, "", 0, false, heddle__infer_float},
    {"", "Squeeze", 13, 18, 1, 2, 1, 1, "", 2, true, heddle__infer_squeeze},
    {"", "Sub", 13, 18, 2, 2, 1, 1, "", 0, false, heddle__infer_arithmetic},
    {"", "Tanh", 13, 18, 1, 1, 1, 1, "", 0, false, heddle__infer_float},
    {"", "Tile", 13, 18, 2, 2, 1, 1, "", 2, false, heddle__infer_tile},
    {"", "TopK", 13, 18, 2, 2, 1, 2, "axis:int,largest:int,sorted:int", 2, false, heddle__infer_top_k},
    {"", "Transpose", 13, 18, 1, 1, 1, 1, "perm:ints", 0, false, heddle__infer_transpose},
    {"", "Unsqueeze", 13, 18, 2, 2, 1, 1, "", 2, true, heddle__infer_unsqueeze},
    {"", "Where", 13, 18, 3, 3, 1, 1, "", 0, false, heddle__infer_where},
    {"", "Xor", 13, 18, 2, 2, 1, 1, "", 0, false, heddle__infer_logic},
    {"heddle", "FusedElementwise", 1, ANY, 1, 8, 1, 1, "expression:string", 0, false, heddle__infer_fused},
    {"heddle", "Gelu", 1, ANY, 1, 1, 1, 1, "approximate:string", 0, false, heddle__infer_float},
    {"heddle", "Reorder", 1, ANY, 1, 1, 1, 1, "", 0, false, heddle__infer_same},
};

#define TABLE_SIZE (sizeof table / sizeof table[0])

const heddle__schema *heddle__schema_find(const char *domain, const char *op, uint32_t opset) {
  for (size_t i = 0; i < TABLE_SIZE; i++) {
    const heddle__schema *s = &table[i];
    if (strcmp(s->op, op) == 0 && strcmp(s->domain, domain) == 0 &&
        (opset == 0 || (opset >= s->opset_first && opset <= s->opset_last)))
      return s;
  }
  return NULL;
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
    if (s->domain[0] != '\0' || opset < s->opset_first || opset > s->opset_last) continue;
    int n = snprintf(out + used, size - used, "%s%s", used > 0 ? ", " : "", s->op);
    if (n < 0 || (size_t)n >= size - used) return;
    used += (size_t)n;
  }
}

uint32_t heddle__schema_attr(const heddle__schema *schema, const char *name) {
  static const char *const kinds[] = {"int", "float", "string", "ints", "floats", "strings"};
  size_t length = strcspn(name, ":,");
  if (name[length] != '\0') return 0; /* it would match more than a name */
  for (const char *at = schema->attrs; *at != '\0'; at += strcspn(at, ","), at += *at == ',') {
    if (strncmp(at, name, length) != 0 || at[length] != ':') continue;
    size_t kind_length = strcspn(at + length + 1, ",");
    for (uint32_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++)
      if (strlen(kinds[k]) == kind_length && strncmp(at + length + 1, kinds[k], kind_length) == 0) return k + 1;
  }
  return 0;
}

static heddle_status check_count(const heddle_graph *g, const heddle__node *node, const char *what, uint32_t count,
                                 uint32_t min, uint32_t max, heddle_error *err) {
  if (count >= min && (count <= max || max == ANY)) return HEDDLE_OK;
  if (max == ANY)
    return heddle__node_fail(g, node, err, HEDDLE_EFORMAT, "it has %u %s, expected at least %u", count, what, min);
  if (min == max) return heddle__node_fail(g, node, err, HEDDLE_EFORMAT, "it has %u %s, expected %u", count, what, min);
  return heddle__node_fail(g, node, err, HEDDLE_EFORMAT, "it has %u %s, expected %u to %u", count, what, min, max);
}

heddle_status heddle__schema_check(const heddle__schema *schema, const heddle_graph *g, const heddle__node *node,
                                   heddle_error *err) {
  char shown[64];
  heddle_status s = check_count(g, node, "inputs", node->n_inputs, schema->min_inputs, schema->max_inputs, err);
  if (s == HEDDLE_OK)
    s = check_count(g, node, "outputs", node->n_outputs, schema->min_outputs, schema->max_outputs, err);
  if (s != HEDDLE_OK) return s;
  for (uint32_t i = 0; i < node->n_inputs; i++)
    if (node->inputs[i].node == HEDDLE__ABSENT && (i < schema->min_inputs || schema->max_inputs == ANY))
      return heddle__node_fail(g, node, err, HEDDLE_EFORMAT, "input %u is absent, and may not be", i);
  for (uint32_t i = 0; i < node->n_attrs; i++) {
    uint32_t kind = heddle__schema_attr(schema, node->attrs[i].name);
    if (kind != node->attrs[i].kind)
      return heddle__node_fail(g, node, err, HEDDLE_EFORMAT, "attribute '%s': %s",
                               heddle__show(node->attrs[i].name, shown),
                               kind == 0 ? "the operator has none of that name" : "it is of another kind");
  }
  return HEDDLE_OK;
}
