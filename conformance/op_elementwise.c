/* Lines of the operators that work element by element: shapes that broadcast, scalars, nothing at all, tails of every
 * width, and values that are no numbers. */
#include "op_case.h"

#define F "fdhb"
#define N "fdhbasilASIL"
#define W "asilASIL"
#define ALL "fdhbasilASILB"

/* clang-format off */
#define ONE(op, opset, types, range) \
  {op, types, "T[3,37]" range " > T[3,37]", opset}, {op, "f", "T[]" range " > T[]", opset}, \
  {op, "f", "T[2,0] > T[2,0]", opset}, {op, "f", "T[5,1031]" range " > T[5,1031]", opset}
#define ODD(op, opset) {op, "fd", "T[23]? > T[23]", opset}
#define TWO(op, opset, types, a, b, to) \
  {op, types, "T[3,37]" a " T[3,37]" b " > " to "[3,37]", opset}, \
  {op, "fiB", "T[5,33]" a " T[33]" b " > " to "[5,33]", opset}, \
  {op, "f", "T[3,2,7]" a " T[2,1]" b " > " to "[3,2,7]", opset}, \
  {op, "f", "T[2,1,5]" a " T[3,1]" b " > " to "[2,3,5]", opset}, \
  {op, "f", "T[]" a " T[4]" b " > " to "[4]", opset}, \
  {op, "f", "T[1]" a " T[1]" b " > " to "[1]", opset}, \
  {op, "f", "T[0,3] T[3] > " to "[0,3]", opset}, \
  {op, "f", "T[4,3,1,9]" a " T[1,3,5,1]" b " > " to "[4,3,5,9]", opset}, \
  {op, "f", "T[7,1029]" a " T[7,1]" b " > " to "[7,1029]", opset}

static const op_line lines[] = {
  ONE("Abs", 13, N, ""), ODD("Abs", 13),
  ONE("Acos", 13, F, "{-1,1}"), ONE("Acosh", 13, F, "{1.1,9}"), ONE("Asin", 13, F, "{-1,1}"),
  ONE("Asinh", 13, F, ""), ONE("Atan", 13, F, ""), ONE("Atanh", 13, F, "{-0.9,0.9}"),
  TWO("Add", 13, N, "", "", "T"), {"Add", "fd", "T[3,37]? T[37] > T[3,37]", 14},
  TWO("And", 13, "B", "", "", "B"),
  {"BitCast", "f", "f[3,5] > i[3,5] ; to=6", 26}, {"BitCast", "f", "l[7] > d[7] ; to=11", 26},
  {"BitShift", "ASIL", "T[3,7] T[3,7]{0,5} > T[3,7] ; direction'LEFT", 13},
  {"BitShift", "ASIL", "T[3,7]{0,200} T[7]{0,5} > T[3,7] ; direction'RIGHT", 13},
  TWO("BitwiseAnd", 18, W, "", "", "T"), TWO("BitwiseOr", 18, W, "", "", "T"), TWO("BitwiseXor", 18, W, "", "", "T"),
  ONE("BitwiseNot", 18, W, ""),
  {"Cast", ALL, "T[3,37] > f[3,37] ; to=1", 13}, {"Cast", "fdhlAB", "T[3,37] > l[3,37] ; to=7", 13},
  {"Cast", "fli", "T[37] > B[37] ; to=9", 13}, {"Cast", "fdbl", "T[37] > h[37] ; to=10", 13},
  {"Cast", "fhLi", "T[37] > d[37] ; to=11", 13}, {"Cast", "fdlsB", "T[37] > i[37] ; to=6", 13},
  {"Cast", "fd", "T[37]{0,100} > A[37] ; to=2", 13}, {"Cast", "fhl", "T[37] > b[37] ; to=16", 13},
  {"Cast", "f", "T[] > i[] ; to=6", 13}, {"Cast", "f", "T[0,2] > l[0,2] ; to=7", 19},
  {"CastLike", "f", "f[3,37] l[2] > l[3,37]", 15}, {"CastLike", "f", "i[37] h[1] > h[37]", 15},
  ONE("Ceil", 13, F, ""), ONE("Celu", 13, F, ""), {"Celu", "f", "T[37] > T[37] ; alpha~0.5", 13},
  {"Clip", N, "T[3,37] T#1 T#3 > T[3,37]", 13}, {"Clip", "f", "T[3,37] T#-1 > T[3,37]", 13},
  {"Clip", "f", "T[3,37] - T#0.5 > T[3,37]", 13}, {"Clip", "f", "T[37] > T[37]", 13},
  {"Clip", "f", "T[3,37] T[]{-1,-0.5} T[]{0.5,1} > T[3,37]", 13},
  ONE("Cos", 13, F, ""), ONE("Cosh", 13, F, ""),
  TWO("Div", 13, N, "", "{1,6}", "T"),
  ONE("Elu", 13, F, ""), {"Elu", "fh", "T[37] > T[37] ; alpha~0.3", 13},
  TWO("Equal", 13, ALL, "{0,2}", "{0,2}", "B"),
  ONE("Erf", 13, F, ""), ODD("Erf", 13), ONE("Exp", 13, F, "{-5,5}"), ODD("Exp", 13), ONE("Floor", 13, F, ""),
  ONE("Gelu", 20, F, "{-4,4}"), {"Gelu", "fh", "T[3,37]{-4,4} > T[3,37] ; approximate'tanh", 20},
  ONE("Gelu", 0, "f", "{-4,4}"), {"Gelu", "f", "T[37]{-4,4} > T[37] ; approximate'tanh", 0},
  TWO("Greater", 13, N, "{0,2}", "{0,2}", "B"), TWO("GreaterOrEqual", 16, N, "{0,2}", "{0,2}", "B"),
  ONE("HardSigmoid", 13, F, "{-4,4}"), {"HardSigmoid", "fh", "T[37]{-4,4} > T[37] ; alpha~0.3 beta~0.4", 13},
  ONE("HardSwish", 14, F, "{-4,4}"),
  {"IsInf", F, "T[23]? > B[23]", 13}, {"IsInf", "f", "T[23]? > B[23] ; detect_negative=0", 13},
  {"IsNaN", F, "T[23]? > B[23]", 13}, {"IsNaN", "f", "T[2,0] > B[2,0]", 13},
  ONE("LeakyRelu", 13, F, ""), {"LeakyRelu", "fh", "T[37] > T[37] ; alpha~0.2", 16},
  TWO("Less", 13, N, "{0,2}", "{0,2}", "B"), TWO("LessOrEqual", 16, N, "{0,2}", "{0,2}", "B"),
  ONE("Log", 13, F, "{0.1,9}"),
  TWO("Max", 13, N, "", "", "T"), {"Max", "fl", "T[3,37] T[37] T[3,1] > T[3,37]", 13}, {"Max", "f", "T[37] > T[37]", 13},
  {"Mean", F, "T[3,37] T[37] T[3,1] > T[3,37]", 13}, {"Mean", "f", "T[37] > T[37]", 13},
  TWO("Min", 13, N, "", "", "T"), {"Min", "fl", "T[3,37] T[37] T[3,1] > T[3,37]", 13},
  ONE("Mish", 18, F, ""),
  TWO("Mod", 13, W, "", "{1,4}", "T"), {"Mod", "fd", "T[3,37] T[3,37]{0.5,1} > T[3,37] ; fmod=1", 13},
  TWO("Mul", 13, N, "", "{0,3}", "T"), {"Mul", "fd", "T[3,37]? T[37] > T[3,37]", 14},
  ONE("Neg", 13, "fdhbasil", ""), ODD("Neg", 13), {"Not", "B", "T[3,37] > B[3,37]", 13}, {"Not", "B", "T[] > B[]", 13},
  TWO("Or", 13, "B", "", "", "B"),
  TWO("Pow", 13, N, "{0,3}", "{0,3}", "T"),
  {"PRelu", N, "T[3,37] T[3,37]{0,1} > T[3,37]", 16}, {"PRelu", "fh", "T[2,3,5] T[3,1]{0,1} > T[2,3,5]", 16},
  ONE("Reciprocal", 13, F, "{0.3,3}"), ONE("Relu", 14, "fdhbasil", ""), ONE("Round", 13, F, "{-9,9}"),
  {"Round", F, "T[4]{2.5,2.5} > T[4]", 13},
  ONE("Selu", 13, F, ""), ONE("Shrink", 13, F, ""), {"Shrink", "f", "T[37] > T[37] ; bias~0.1 lambd~0.7", 13},
  ONE("Sigmoid", 13, F, "{-6,6}"), ODD("Sigmoid", 13), ONE("Sign", 13, N, ""), ONE("Sin", 13, F, ""),
  ONE("Sinh", 13, F, ""), ONE("Softplus", 13, F, ""), ONE("Softsign", 13, F, ""), ONE("Sqrt", 13, F, "{0,9}"),
  ODD("Sqrt", 13),
  TWO("Sub", 13, N, "{3,6}", "{0,3}", "T"), {"Sum", "fdhb", "T[3,37] T[37] T[3,1] > T[3,37]", 13},
  {"SwiGLU", F, "T[3,37] T[3,37] > T[3,37]", 28}, ONE("Swish", 24, F, ""), {"Swish", "f", "T[37] > T[37] ; alpha~1.7", 24},
  ONE("Tan", 13, F, "{-1,1}"), ONE("Tanh", 13, F, ""), ODD("Tanh", 13),
  ONE("ThresholdedRelu", 13, F, ""), {"ThresholdedRelu", "f", "T[37] > T[37] ; alpha~0.4", 13},
  {"Where", ALL, "B[3,37] T[3,37] T[3,37] > T[3,37]", 16}, {"Where", "fl", "B[3,1] T[37] T[] > T[3,37]", 16},
  {"Where", "f", "B[] T[5]? T[5] > T[5]", 16}, {"Where", "f", "B[0] T[0] T[0] > T[0]", 16},
  TWO("Xor", 13, "B", "", "", "B"),
  {"FusedElementwise", "f", "T[3,37] T[3,37] > T[3,37] ; expression\"Relu(Add(Mul(x0, x1), 0.5))", 0},
  {"FusedElementwise", "f", "T[4,33] T[33] T[] > T[4,33] ; expression\"Sub(Tanh(Mul(x0, x1)), x2)", 0},
  {"FusedElementwise", "f", "T[5,1031] > T[5,1031] ; expression\"Mul(x0, Sigmoid(x0))", 0},
};
/* clang-format on */

const op_table op_elementwise = {lines, sizeof lines / sizeof lines[0]};
