/* The table of operators: one line each. The opsets and dtypes here are what list tells people and what refusals
 * name; the plans check the dtypes themselves. */
#include "more.h"

#include "plugins/common/expr.h"

#define WINDOW " auto_pad dilations kernel_shape pads strides "
#define RESIZE \
  " antialias axes coordinate_transformation_mode cubic_coeff_a exclude_outside extrapolation_value " \
  "keep_aspect_ratio_policy mode nearest_mode "
#define NUMBER_TYPES "float32,int8,int16,int32,int64,uint8,uint16,uint32"

enum { FLOAT, NUMBERS, TRUTH, EQUALS, CONSTANTS, RANGES, CASTS, ANY };

static const char *const dtypes[] = {
    [FLOAT] = "float32",
    [NUMBERS] = NUMBER_TYPES,
    [TRUTH] = "bool",
    [EQUALS] = NUMBER_TYPES ",bool",
    [CONSTANTS] = "float32,int64",
    [RANGES] = "float32,float64,int16,int32,int64",
    [CASTS] = "float32,float64,int8,int16,int32,int64,uint8,uint16,uint32,uint64,bool",
    [ANY] = "any of whole bytes",
};

/* Lists of attributes, by the first operator that has them. */
enum {
  NO_ATTRS,
  OF_ARG_MAX,
  OF_AVERAGE_POOL,
  OF_BATCH_NORMALIZATION,
  OF_CAST,
  OF_CONCAT,
  OF_CONSTANT,
  OF_CONSTANT_OF_SHAPE,
  OF_CONV,
  OF_CONV_TRANSPOSE,
  OF_DROPOUT,
  OF_ELU,
  OF_FUSED,
  OF_GELU,
  OF_GEMM,
  OF_HARD_SIGMOID,
  OF_INSTANCE_NORMALIZATION,
  OF_LAYER_NORMALIZATION,
  OF_LRN,
  OF_MAX_POOL,
  OF_PAD,
  OF_REDUCE_MAX,
  OF_RESHAPE,
  OF_RESIZE,
  OF_SHAPE,
  OF_SPLIT,
  OF_TOP_K,
  OF_TRANSPOSE
};

static const char *const attrs[] = {
    [NO_ATTRS] = "",
    [OF_ARG_MAX] = " axis keepdims select_last_index ",
    [OF_AVERAGE_POOL] = WINDOW "ceil_mode count_include_pad ",
    [OF_BATCH_NORMALIZATION] = " epsilon momentum training_mode ",
    [OF_CAST] = " to ",
    [OF_CONCAT] = " axis ",
    [OF_CONSTANT] = " value_float value_floats value_int value_ints ",
    [OF_CONSTANT_OF_SHAPE] = " dtype value_float value_int ",
    [OF_CONV] = WINDOW "group ",
    [OF_CONV_TRANSPOSE] = WINDOW "group output_padding output_shape ",
    [OF_DROPOUT] = " seed ",
    [OF_ELU] = " alpha ",
    [OF_FUSED] = " expression ",
    [OF_GELU] = " approximate ",
    [OF_GEMM] = " alpha beta transA transB ",
    [OF_HARD_SIGMOID] = " alpha beta ",
    [OF_INSTANCE_NORMALIZATION] = " epsilon ",
    [OF_LAYER_NORMALIZATION] = " axis epsilon stash_type ",
    [OF_LRN] = " alpha beta bias size ",
    [OF_MAX_POOL] = WINDOW "ceil_mode storage_order ",
    [OF_PAD] = " mode ",
    [OF_REDUCE_MAX] = " axes keepdims noop_with_empty_axes ",
    [OF_RESHAPE] = " allowzero ",
    [OF_RESIZE] = RESIZE,
    [OF_SHAPE] = " end start ",
    [OF_SPLIT] = " axis num_outputs ",
    [OF_TOP_K] = " axis largest sorted ",
    [OF_TRANSPOSE] = " perm ",
};

/* name, dtypes, attributes, first opset, inputs from and to, most outputs, plan, fill */
const ref_entry ref_table[] = {
    {"Abs", NUMBERS, NO_ATTRS, 13, 1, 1, 1, ref_plan_elementwise, ref_fill_elementwise},
    {"Add", NUMBERS, NO_ATTRS, 13, 2, 2, 1, ref_plan_elementwise, ref_fill_elementwise},
    {"And", TRUTH, NO_ATTRS, 13, 2, 2, 1, ref_plan_elementwise, ref_fill_elementwise},
    {"ArgMax", NUMBERS, OF_ARG_MAX, 13, 1, 1, 1, ref_plan_arg, NULL},
    {"ArgMin", NUMBERS, OF_ARG_MAX, 13, 1, 1, 1, ref_plan_arg, NULL},
    {"AveragePool", FLOAT, OF_AVERAGE_POOL, 13, 1, 1, 1, ref_plan_average_pool, NULL},
    {"BatchNormalization", FLOAT, OF_BATCH_NORMALIZATION, 13, 5, 5, 1, ref_plan_batch_norm, NULL},
    {"Cast", CASTS, OF_CAST, 13, 1, 1, 1, ref_plan_elementwise, ref_fill_elementwise},
    {"Clip", NUMBERS, NO_ATTRS, 13, 1, 3, 1, ref_plan_elementwise, ref_fill_elementwise},
    {"Concat", ANY, OF_CONCAT, 13, 1, REF_MANY, 1, ref_plan_concat, ref_fill_concat},
    {"Constant", CONSTANTS, OF_CONSTANT, 13, 0, 0, 1, ref_plan_fill, ref_fill_fill},
    {"ConstantOfShape", CASTS, OF_CONSTANT_OF_SHAPE, 13, 1, 1, 1, ref_plan_fill, ref_fill_fill},
    {"Conv", FLOAT, OF_CONV, 13, 2, 3, 1, ref_plan_conv, NULL},
    {"ConvTranspose", FLOAT, OF_CONV_TRANSPOSE, 13, 2, 3, 1, ref_plan_conv_transpose, NULL},
    {"Div", NUMBERS, NO_ATTRS, 13, 2, 2, 1, ref_plan_elementwise, ref_fill_elementwise},
    {"Dropout", ANY, OF_DROPOUT, 13, 1, 3, 2, ref_plan_dropout, NULL},
    {"Elu", FLOAT, OF_ELU, 13, 1, 1, 1, ref_plan_elementwise, ref_fill_elementwise},
    {"Equal", EQUALS, NO_ATTRS, 13, 2, 2, 1, ref_plan_elementwise, ref_fill_elementwise},
    {"Erf", FLOAT, NO_ATTRS, 13, 1, 1, 1, ref_plan_elementwise, ref_fill_elementwise},
    {"Exp", FLOAT, NO_ATTRS, 13, 1, 1, 1, ref_plan_elementwise, ref_fill_elementwise},
    {"Expand", ANY, NO_ATTRS, 13, 2, 2, 1, ref_plan_expand, NULL},
    {"Flatten", ANY, OF_CONCAT, 13, 1, 1, 1, ref_plan_flatten, NULL},
    {"FusedElementwise", FLOAT, OF_FUSED, REF_OWN, 1, EXPR_INPUTS, 1, ref_plan_fused, ref_fill_fused},
    {"Gather", ANY, OF_CONCAT, 13, 2, 2, 1, ref_plan_gather, NULL},
    {"Gelu", FLOAT, OF_GELU, REF_OWN, 1, 1, 1, ref_plan_elementwise, ref_fill_elementwise},
    {"Gemm", FLOAT, OF_GEMM, 13, 2, 3, 1, ref_plan_gemm, NULL},
    {"GlobalAveragePool", FLOAT, NO_ATTRS, 13, 1, 1, 1, ref_plan_global_pool, NULL},
    {"GlobalMaxPool", FLOAT, NO_ATTRS, 13, 1, 1, 1, ref_plan_global_pool, NULL},
    {"Greater", NUMBERS, NO_ATTRS, 13, 2, 2, 1, ref_plan_elementwise, ref_fill_elementwise},
    {"GreaterOrEqual", NUMBERS, NO_ATTRS, 13, 2, 2, 1, ref_plan_elementwise, ref_fill_elementwise},
    {"HardSigmoid", FLOAT, OF_HARD_SIGMOID, 13, 1, 1, 1, ref_plan_elementwise, ref_fill_elementwise},
    {"HardSwish", FLOAT, NO_ATTRS, 14, 1, 1, 1, ref_plan_elementwise, ref_fill_elementwise},
    {"Identity", ANY, NO_ATTRS, 13, 1, 1, 1, ref_plan_identity, NULL},
    {"InstanceNormalization", FLOAT, OF_INSTANCE_NORMALIZATION, 13, 3, 3, 1, ref_plan_instance_norm, NULL},
    {"LayerNormalization", FLOAT, OF_LAYER_NORMALIZATION, 17, 2, 3, 3, ref_plan_layer_norm, NULL},
    {"LeakyRelu", FLOAT, OF_ELU, 13, 1, 1, 1, ref_plan_elementwise, ref_fill_elementwise},
    {"Less", NUMBERS, NO_ATTRS, 13, 2, 2, 1, ref_plan_elementwise, ref_fill_elementwise},
    {"LessOrEqual", NUMBERS, NO_ATTRS, 13, 2, 2, 1, ref_plan_elementwise, ref_fill_elementwise},
    {"Log", FLOAT, NO_ATTRS, 13, 1, 1, 1, ref_plan_elementwise, ref_fill_elementwise},
    {"LogSoftmax", FLOAT, OF_CONCAT, 13, 1, 1, 1, ref_plan_softmax, NULL},
    {"LRN", FLOAT, OF_LRN, 13, 1, 1, 1, ref_plan_lrn, NULL},
    {"MatMul", FLOAT, NO_ATTRS, 13, 2, 2, 1, ref_plan_matmul, NULL},
    {"Max", NUMBERS, NO_ATTRS, 13, 1, REF_MANY, 1, ref_plan_elementwise, ref_fill_elementwise},
    {"MaxPool", FLOAT, OF_MAX_POOL, 13, 1, 1, 2, ref_plan_max_pool, NULL},
    {"Min", NUMBERS, NO_ATTRS, 13, 1, REF_MANY, 1, ref_plan_elementwise, ref_fill_elementwise},
    {"Mul", NUMBERS, NO_ATTRS, 13, 2, 2, 1, ref_plan_elementwise, ref_fill_elementwise},
    {"Neg", NUMBERS, NO_ATTRS, 13, 1, 1, 1, ref_plan_elementwise, ref_fill_elementwise},
    {"Not", TRUTH, NO_ATTRS, 13, 1, 1, 1, ref_plan_elementwise, ref_fill_elementwise},
    {"Or", TRUTH, NO_ATTRS, 13, 2, 2, 1, ref_plan_elementwise, ref_fill_elementwise},
    {"Pad", ANY, OF_PAD, 13, 2, 4, 1, ref_plan_pad, NULL},
    {"Pow", NUMBERS, NO_ATTRS, 13, 2, 2, 1, ref_plan_elementwise, ref_fill_elementwise},
    {"PRelu", NUMBERS, NO_ATTRS, 13, 2, 2, 1, ref_plan_elementwise, ref_fill_elementwise},
    {"Range", RANGES, NO_ATTRS, 13, 3, 3, 1, ref_plan_fill, ref_fill_fill},
    {"ReduceMax", NUMBERS, OF_REDUCE_MAX, 13, 1, 2, 1, ref_plan_reduce, NULL},
    {"ReduceMean", NUMBERS, OF_REDUCE_MAX, 13, 1, 2, 1, ref_plan_reduce, NULL},
    {"ReduceMin", NUMBERS, OF_REDUCE_MAX, 13, 1, 2, 1, ref_plan_reduce, NULL},
    {"ReduceProd", NUMBERS, OF_REDUCE_MAX, 13, 1, 2, 1, ref_plan_reduce, NULL},
    {"ReduceSum", NUMBERS, OF_REDUCE_MAX, 13, 1, 2, 1, ref_plan_reduce, NULL},
    {"Relu", NUMBERS, NO_ATTRS, 13, 1, 1, 1, ref_plan_elementwise, ref_fill_elementwise},
    {"Reshape", ANY, OF_RESHAPE, 13, 2, 2, 1, ref_plan_reshape, NULL},
    {"Resize", FLOAT, OF_RESIZE, 13, 1, 4, 1, ref_plan_resize, ref_fill_resize},
    {"Shape", ANY, OF_SHAPE, 13, 1, 1, 1, ref_plan_fill, ref_fill_fill},
    {"Sigmoid", FLOAT, NO_ATTRS, 13, 1, 1, 1, ref_plan_elementwise, ref_fill_elementwise},
    {"Slice", ANY, NO_ATTRS, 13, 3, 5, 1, ref_plan_slice, NULL},
    {"Softmax", FLOAT, OF_CONCAT, 13, 1, 1, 1, ref_plan_softmax, NULL},
    {"Split", ANY, OF_SPLIT, 13, 1, 2, REF_MANY, ref_plan_split, ref_fill_split},
    {"Sqrt", FLOAT, NO_ATTRS, 13, 1, 1, 1, ref_plan_elementwise, ref_fill_elementwise},
    {"Squeeze", ANY, NO_ATTRS, 13, 1, 2, 1, ref_plan_reshape, NULL},
    {"Sub", NUMBERS, NO_ATTRS, 13, 2, 2, 1, ref_plan_elementwise, ref_fill_elementwise},
    {"Tanh", FLOAT, NO_ATTRS, 13, 1, 1, 1, ref_plan_elementwise, ref_fill_elementwise},
    {"Tile", ANY, NO_ATTRS, 13, 2, 2, 1, ref_plan_tile, NULL},
    {"TopK", NUMBERS, OF_TOP_K, 13, 2, 2, 2, ref_plan_top_k, NULL},
    {"Transpose", ANY, OF_TRANSPOSE, 13, 1, 1, 1, ref_plan_transpose, NULL},
    {"Unsqueeze", ANY, NO_ATTRS, 13, 2, 2, 1, ref_plan_reshape, NULL},
    {"Where", ANY, NO_ATTRS, 13, 3, 3, 1, ref_plan_elementwise, ref_fill_elementwise},
    {"Xor", TRUTH, NO_ATTRS, 13, 2, 2, 1, ref_plan_elementwise, ref_fill_elementwise},
};

const uint32_t ref_table_count = sizeof ref_table / sizeof ref_table[0];

const char *ref_attrs(const ref_entry *entry) {
  return attrs[entry->attrs];
}

heddle_status ref_list(heddle_list_fn list, void *sink, heddle_error *err) {
  const ref_more *more = ref_more_find();
  for (uint32_t i = 0; i < ref_table_count; i++) {
    const ref_entry *entry = &ref_table[i];
    const bool own = entry->since == REF_OWN;
    const char *types = dtypes[entry->dtypes];
    if (more != NULL && !own) types = more->types(entry->op, types);
    heddle_status s =
        list(sink, own ? "heddle" : "", entry->op, entry->since, own ? REF_OWN : REF_OPSET_LAST, types, err);
    if (s != HEDDLE_OK) return s;
  }
  return more != NULL ? more->list(list, sink, err) : HEDDLE_OK;
}
