/* Lines of the operators that work on rows and windows: reductions, softmax, norms, pools, sorting and sums along an axis.
 */
#include "op_case.h"

#define F "fdhb"
#define N "fdhbasilASIL"
#define H "fhb"

/* clang-format off */
#define REDUCE(op, types, range) /* of the axes as an attribute, and as an operand */ \
  {op, types, "T[3,7,5]" range " > T[3,1,5] ; axes:1", 13}, {op, "f", "T[3,7,5]" range " > T[7] ; axes:0,-1 keepdims=0", 13}, \
  {op, "f", "T[3,37]" range " > T[1,1]", 13}, {op, "f", "T[5,1031]" range " > T[5] ; axes:1 keepdims=0", 13}, \
  {op, "f", "T[131,9]" range " > T[9] ; axes:0 keepdims=0", 13}, {op, types, "T[3,7,5]" range " l=2 > T[3,7,1]", 18}, \
  {op, "f", "T[3,5]" range " l= > T[3,5] ; noop_with_empty_axes=1", 18}, {op, "f", "T[3,1,5]" range " l=0 > T[1,5] ; keepdims=0", 18}
#define SUM(op, types, range) \
  {op, types, "T[3,7,5]" range " l=1 > T[3,1,5]", 13}, {op, "f", "T[3,7,5]" range " l=0,-1 > T[7] ; keepdims=0", 13}, \
  {op, "f", "T[3,37]" range " > T[1,1]", 13}, {op, "fhb", "T[5,1031]" range " l=1 > T[5] ; keepdims=0", 13}, \
  {op, "f", "T[3,5]" range " l= > T[3,5] ; noop_with_empty_axes=1", 13}
#define WINDOW(op, types) \
  {op, types, "T[1,3,7,9] > T[1,3,6,8] ; kernel_shape:2,2", 13}, \
  {op, "fh", "T[2,3,9,8] > T[2,3,5,4] ; kernel_shape:3,3 strides:2,2 pads:1,1,1,0", 13}, \
  {op, "f", "T[1,2,19] > T[1,2,9] ; kernel_shape:3 strides:2", 13}, \
  {op, "f", "T[1,2,5,6,7] > T[1,2,4,5,6] ; kernel_shape:2,2,2", 13}, \
  {op, "f", "T[1,2,9,9] > T[1,2,5,5] ; kernel_shape:3,3 strides:2,2 auto_pad'SAME_UPPER", 13}

static const op_line lines[] = {
  {"ArgMax", N, "T[3,7,5] > l[3,1,5] ; axis=1", 13}, {"ArgMax", "fl", "T[3,37]{0,3} > l[3] ; axis=-1 keepdims=0", 13},
  {"ArgMax", "f", "T[9,4] > l[1,4] ; select_last_index=1", 13},
  {"ArgMin", N, "T[3,7,5] > l[3,1,5] ; axis=1", 13}, {"ArgMin", "fl", "T[3,37] > l[3] ; axis=-1 keepdims=0", 13},
  WINDOW("AveragePool", F), {"AveragePool", "f", "T[1,2,6,6] > T[1,2,4,4] ; kernel_shape:2,2 strides:2,2 pads:1,1,1,1 "
   "count_include_pad=1", 13}, {"AveragePool", "f", "T[1,2,7,7] > T[1,2,4,4] ; kernel_shape:2,2 strides:2,2 ceil_mode=1", 13},
  {"BatchNormalization", H, "T[2,3,5,4] T[3] T[3] T[3]{-0.5,0.5} T[3]{0.3,2} > T[2,3,5,4]", 13},
  {"BatchNormalization", "f", "T[2,17] T[17] T[17] T[17] T[17]{0.3,2} > T[2,17] ; epsilon~0.01", 14},
  {"BatchNormalization", F, "T[3,4,5] T[4] T[4] T[4]{-0.5,0.5} T[4]{0.3,2} > T[3,4,5] T[4] T[4] ; training_mode=1", 15},
  {"BatchNormalization", "d", "T[3,4,5] T[4] T[4] T[4]{-0.5,0.5} T[4]{0.3,2} > T[3,4,5]", 15},
  {"CumSum", "fdil", "T[3,7] l#1 > T[3,7]", 14}, {"CumSum", "f", "T[3,7] l#0 > T[3,7] ; exclusive=1 reverse=1", 14},
  {"CumProd", "fdl", "T[3,7]{1,2} l#1 > T[3,7]", 26},
  {"GlobalAveragePool", H, "T[2,3,7,9] > T[2,3,1,1]", 13}, {"GlobalAveragePool", "f", "T[1,2,1031] > T[1,2,1]", 13},
  {"GlobalMaxPool", H, "T[2,3,7,9] > T[2,3,1,1]", 13}, {"GlobalLpPool", "fd", "T[2,3,7,9] > T[2,3,1,1]", 13},
  {"GroupNormalization", F, "T[2,6,5,4] T[6] T[6] > T[2,6,5,4] ; num_groups=3", 21},
  {"ArgMax", "f", "T[9,5]{1,1} > l[1,5] ; select_last_index=1", 13}, {"ArgMin", "f", "T[9,5]{1,1} > l[1,5] ; select_last_index=1", 13},
  {"CumProd", "f", "T[3,7]{1,2} l#1 > T[3,7] ; reverse=1", 26}, {"CumProd", "f", "T[3,7]{1,2} l#0 > T[3,7] ; reverse=1 exclusive=1", 26},
  {"GlobalLpPool", "f", "T[2,3,7,9] > T[2,3,1,1] ; p=3", 13}, {"Hardmax", "f", "T[5,5] > T[5,5] ; axis=0", 13},
  {"LpNormalization", "f", "T[5,5] > T[5,5] ; axis=0 p=1", 13},
  {"LpPool", "f", "T[1,3,7,9] > T[1,3,3,4] ; kernel_shape:2,2 strides:2,2 p=3", 13},
  {"MeanVarianceNormalization", "f", "T[2,3,5,4] > T[2,3,5,4] ; axes:1,3", 13},
  {"TopK", "f", "T[9,9] l=9 > T[9,9] l[9,9] ; axis=0", 13},
  {"Softmax", "fd", "T[9,4]? > T[9,4]", 13}, {"LogSoftmax", "f", "T[9,4]? > T[9,4]", 13},
  {"ReduceMax", "fd", "T[9,4]? l=1 > T[9,1]", 18}, {"ReduceMin", "f", "T[9,4]? l=1 > T[9,1]", 18}, {"ReduceSum", "f", "T[9,4]? l=1 > T[9,1]", 13},
  {"CumSum", "f", "T[9,4]? l#1 > T[9,4]", 14},
  {"Hardmax", F, "T[3,37] > T[3,37]", 13},
  {"InstanceNormalization", H, "T[2,3,5,4] T[3] T[3] > T[2,3,5,4]", 13},
  {"InstanceNormalization", "f", "T[1,2,301] T[2] T[2] > T[1,2,301] ; epsilon~0.001", 13},
  {"LayerNormalization", F, "T[3,37] T[37] T[37] > T[3,37]", 17}, {"LayerNormalization", "f", "T[3,5,37] T[37] > T[3,5,37]", 17},
  {"LayerNormalization", "f", "T[2,3,5] T[3,5] T[3,5] > T[2,3,5] ; axis=1 epsilon~0.01", 17},
  {"LayerNormalization", "f", "T[3,1031] T[1031] T[1031] > T[3,1031]", 17},
  {"LogSoftmax", F, "T[3,37] > T[3,37]", 13}, {"LogSoftmax", "f", "T[3,7,5] > T[3,7,5] ; axis=1", 13},
  {"LpNormalization", "fd", "T[3,37] > T[3,37]", 13}, {"LpPool", "fd", "T[1,3,7,9] > T[1,3,6,8] ; kernel_shape:2,2", 13},
  {"LRN", H, "T[2,7,3,4] > T[2,7,3,4] ; size=3", 13}, {"LRN", "f", "T[1,9,5] > T[1,9,5] ; size=5 alpha~0.1 beta~0.5 bias~2", 13},
  WINDOW("MaxPool", "fhb"), {"MaxPool", "fA", "T[1,3,7,9] > T[1,3,6,8] ; kernel_shape:2,2", 13},
  {"MaxPool", "f", "T[1,3,7,9] > T[1,3,6,8] l[1,3,6,8] ; kernel_shape:2,2", 13},
  {"MaxPool", "f", "T[1,2,9,9] > T[1,2,5,5] ; kernel_shape:3,3 dilations:2,2", 13},
  {"MaxUnpool", "f", "T[1,1,1,1] l[1,1,1,1]{0,3} > T[1,1,2,2] ; kernel_shape:2,2 strides:2,2", 13},
  {"MeanVarianceNormalization", "fd", "T[2,3,5,4] > T[2,3,5,4]", 13},
  REDUCE("ReduceL1", "fdl", ""), REDUCE("ReduceL2", "fd", ""), REDUCE("ReduceLogSum", "fd", "{1,3}"),
  REDUCE("ReduceLogSumExp", "fd", ""), REDUCE("ReduceMax", N, ""), REDUCE("ReduceMean", F, ""), REDUCE("ReduceMin", N, ""),
  REDUCE("ReduceProd", "fdl", "{1,1.1}"), SUM("ReduceSum", N, ""), REDUCE("ReduceSumSquare", "fdl", ""),
  {"ReduceMax", "B", "T[3,7] l=1 > T[3,1]", 20},
  {"RMSNormalization", "fdhb", "T[3,5,37] T[37] > T[3,5,37]", 0},
  {"RMSNormalization", F, "T[3,37] T[37] > T[3,37]", 23},
  {"Softmax", F, "T[3,37] > T[3,37]", 13}, {"Softmax", "fh", "T[3,7,5] > T[3,7,5] ; axis=1", 13},
  {"Softmax", "f", "T[3,1031]{-20,20} > T[3,1031]", 13}, {"Softmax", "f", "T[9] > T[9]", 13}, {"Softmax", "f", "T[4,1] > T[4,1]", 13},
  {"Softmax", "f", "T[0,5] > T[0,5]", 13}, {"Softmax", "f", "T[131,3] > T[131,3] ; axis=0", 13},
  {"Softmax", "f", "T[3,7,5] > T[3,7,5] ; axis=-2", 13}, {"LogSoftmax", "f", "T[3,7,5] > T[3,7,5] ; axis=-2", 13},
  {"CumSum", "f", "T[3,7] l#-1 > T[3,7]", 14}, {"ArgMax", "fl", "T[3,37]{1,1} > l[3] ; axis=-1 keepdims=0", 13},
  {"ArgMin", "fl", "T[3,37]{1,1} > l[3,1] ; axis=1", 13}, {"TopK", "f", "T[3,9]{1,1} l=4 > T[3,4] l[3,4] ; axis=-1", 13},
  {"LayerNormalization", "f", "T[2,3,5] T[3,5] T[3,5] > T[2,3,5] ; axis=-2", 17},
  {"Softmax", "f", "T[3,37]{500,600} > T[3,37]", 13}, {"LogSoftmax", "f", "T[3,37]{500,600} > T[3,37]", 13},
  {"ReduceLogSumExp", "f", "T[3,37]{500,600} l=1 > T[3,1]", 18}, {"ReduceMean", "f", "T[3,37]{1000,1001} l=1 > T[3,1]", 18},
  {"LayerNormalization", "f", "T[3,37]{1000,1001} T[37] T[37] > T[3,37]", 17},
  {"InstanceNormalization", "f", "T[2,3,37]{1000,1001} T[3] T[3] > T[2,3,37]", 13},
  {"TopK", "fdil", "T[3,37] l=4 > T[3,4] l[3,4]", 13}, {"TopK", "f", "T[9,3] l=2 > T[2,3] l[2,3] ; axis=0 largest=0", 13},
};
/* clang-format on */

const op_table op_rows = {lines, sizeof lines / sizeof lines[0]};
