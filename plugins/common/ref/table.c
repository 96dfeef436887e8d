/* The table of operators: one line each. The opsets and dtypes here are what list tells people and what refusals
 * name; the plans check the dtypes themselves. */
#include "ref_op.h"

#define WINDOW " auto_pad dilations kernel_shape pads strides "

const ref_entry ref_table[] = {
    {"Add", "float32,int32,int64", "", 2, 2, ref_plan_add, NULL},
    {"Concat", "any of whole bytes", " axis ", 1, UINT32_MAX, ref_plan_concat, ref_fill_concat},
    {"Conv", "float32", WINDOW "group ", 2, 3, ref_plan_conv, NULL},
    {"Flatten", "any of whole bytes", " axis ", 1, 1, ref_plan_flatten, NULL},
    {"Gemm", "float32", " alpha beta transA transB ", 2, 3, ref_plan_gemm, NULL},
    {"GlobalAveragePool", "float32", "", 1, 1, ref_plan_global_average_pool, NULL},
    {"Identity", "any of whole bytes", "", 1, 1, ref_plan_identity, NULL},
    {"MatMul", "float32", "", 2, 2, ref_plan_matmul, NULL},
    {"MaxPool", "float32", WINDOW "ceil_mode storage_order ", 1, 1, ref_plan_max_pool, NULL},
    {"Mul", "float32,int32,int64", "", 2, 2, ref_plan_mul, NULL},
    {"Relu", "float32", "", 1, 1, ref_plan_relu, NULL},
    {"Reshape", "any of whole bytes", " allowzero ", 2, 2, ref_plan_reshape, NULL},
    {"Softmax", "float32", " axis ", 1, 1, ref_plan_softmax, NULL},
};

const uint32_t ref_table_count = sizeof ref_table / sizeof ref_table[0];

heddle_status ref_list(heddle_list_fn list, void *sink, heddle_error *err) {
  for (uint32_t i = 0; i < ref_table_count; i++) {
    heddle_status s = list(sink, "", ref_table[i].op, REF_OPSET_FIRST, REF_OPSET_LAST, ref_table[i].dtypes, err);
    if (s != HEDDLE_OK) return s;
  }
  return HEDDLE_OK;
}
