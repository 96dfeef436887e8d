/* Lines of operators with operands of five dimensions and more, where kernels that have a fixed number of them end. The
 * elementwise ones are in op_scalar.c. */
#include "op_case.h"

/* clang-format off */
static const op_line lines[] = {
  {"MatMul", "f", "T[2,1,3,5,6] T[1,2,1,6,4] > T[2,2,3,5,4]", 13},
  {"Transpose", "fA", "T[2,3,4,5,6] > T[6,2,4,3,5] ; perm:4,0,2,1,3", 13},
  {"Transpose", "f", "T[2,3,2,3,2,3] > T[3,3,2,3,2,2] ; perm:5,1,0,3,4,2", 13},
  {"Concat", "f", "T[2,1,3,2,5] T[2,1,3,4,5] > T[2,1,3,6,5] ; axis=3", 13},
  {"Slice", "f", "T[3,4,5,6,7] l=1,1,0,2,3 l=3,4,5,6,7 l=0,1,2,3,4 l=1,2,2,1,3 > T[2,2,3,4,2]", 13},
  {"Split", "f", "T[2,3,2,5,4] l=2,3 > T[2,3,2,2,4] T[2,3,2,3,4] ; axis=3", 13},
  {"Expand", "f", "T[2,1,3,1,5,1] l=2,4,3,2,5,3 > T[2,4,3,2,5,3]", 13},
  {"Reshape", "f", "T[2,3,4,5,6] l=4,3,1,2,5,6 > T[4,3,1,2,5,6]", 13},
  {"Flatten", "f", "T[2,3,4,5,6] > T[6,120] ; axis=2", 13},
  {"Gather", "f", "T[2,3,4,5,6] l[3]{0,4} > T[2,3,4,3,6] ; axis=3", 13},
  {"Pad", "f", "T[2,3,2,3,4] l=0,1,0,2,1,1,0,0,0,3 > T[3,4,2,5,8]", 13},
  {"Tile", "f", "T[2,1,3,2,5] l=1,3,1,2,1 > T[2,3,3,4,5]", 13},
  {"Where", "f", "B[2,1,3,1,5] T[4,1,2,1] T[2,4,3,2,5] > T[2,4,3,2,5]", 16},
  {"ReduceSum", "f", "T[2,3,4,5,6] l=1,3 > T[2,1,4,1,6]", 13},
  {"ReduceMax", "f", "T[2,3,4,3,5,2] l=0,2,5 > T[1,3,1,3,5,1]", 18},
  {"ArgMax", "f", "T[2,3,4,5,3] > l[2,3,1,5,3] ; axis=2", 13},
  {"Softmax", "f", "T[2,3,4,5,3] > T[2,3,4,5,3] ; axis=2", 13},
  {"CumSum", "f", "T[2,3,4,5,3] l#2 > T[2,3,4,5,3]", 14},
  {"LayerNormalization", "f", "T[2,3,2,5,7] T[5,7] T[5,7] > T[2,3,2,5,7] ; axis=3", 17},
  {"BatchNormalization", "f", "T[2,3,2,5,3] T[3] T[3] T[3] T[3]{0.5,1} > T[2,3,2,5,3]", 15},
  {"InstanceNormalization", "f", "T[2,3,2,5,3] T[3] T[3] > T[2,3,2,5,3]", 13},
  {"GlobalAveragePool", "f", "T[2,3,2,5,3] > T[2,3,1,1,1]", 13},
};
/* clang-format on */

const op_table op_ranks = {lines, sizeof lines / sizeof lines[0]};
