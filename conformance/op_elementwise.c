/* Lines of the elementwise operators that the registry does not give by itself (op_scalar.c): casts, optional operands, and
 * values of their own. */
#include "op_case.h"

#define F "fdhb"
#define N "fdhbasilASIL"
#define ALL "fdhbasilASILB"

/* clang-format off */
static const op_line lines[] = {
  {"Add", "fd", "T[3,37]? T[37] > T[3,37]", 14},
  {"BitCast", "f", "f[3,5] > i[3,5] ; to=6", 26}, {"BitCast", "f", "l[7] > d[7] ; to=11", 26},
  {"Cast", ALL, "T[3,37] > f[3,37] ; to=1", 13}, {"Cast", "fdhlAB", "T[3,37] > l[3,37] ; to=7", 13},
  {"Cast", "fli", "T[37] > B[37] ; to=9", 13}, {"Cast", "fdbl", "T[37] > h[37] ; to=10", 13},
  {"Cast", "fhLi", "T[37] > d[37] ; to=11", 13}, {"Cast", "fdlsB", "T[37] > i[37] ; to=6", 13},
  {"Cast", "fd", "T[37]{0,100} > A[37] ; to=2", 13}, {"Cast", "fhl", "T[37] > b[37] ; to=16", 13},
  {"Cast", "il", "T[37]{-1000,1000} > A[37] ; to=2", 13}, {"Cast", "il", "T[37]{-1000,1000} > a[37] ; to=3", 13},
  {"Cast", "l", "T[37]{-6000000000,6000000000} > i[37] ; to=6", 13}, {"Cast", "a", "T[37]{-128,127} > A[37] ; to=2", 13},
  {"Cast", "f", "T[37]{-2000000,2000000} > i[37] ; to=6", 13}, {"Cast", "i", "T[37]{-2147483648,2147483647} > f[37] ; to=1", 13},
  {"Cast", "f", "T[] > i[] ; to=6", 13}, {"Cast", "f", "T[0,2] > l[0,2] ; to=7", 19},
  {"Cast", "fd", "T[23]? > h[23] ; to=10", 13}, {"Cast", "f", "T[23]? > d[23] ; to=11", 13}, {"Cast", "h", "T[23]? > f[23] ; to=1", 13},
  {"Clip", "f", "T[23]? T#-1 T#1 > T[23]", 13},
  {"CastLike", "f", "f[3,37] l[2] > l[3,37]", 15}, {"CastLike", "f", "i[37] h[1] > h[37]", 15},
  {"Clip", N, "T[3,37] T#1 T#3 > T[3,37]", 13}, {"Clip", "f", "T[3,37] T#-1 > T[3,37]", 13},
  {"Clip", "f", "T[3,37] - T#0.5 > T[3,37]", 13}, {"Clip", "f", "T[37] > T[37]", 13},
  {"Clip", "f", "T[3,37] T[]{-1,-0.5} T[]{0.5,1} > T[3,37]", 13},
  {"IsInf", "f", "T[23]? > B[23] ; detect_negative=0", 13},
  {"IsInf", "f", "T[23]? > B[23] ; detect_positive=0", 13},
  {"Mean", F, "T[3,37] T[37] T[3,1] > T[3,37]", 13}, {"Mean", "f", "T[37] > T[37]", 13},
  {"Mul", "fd", "T[3,37]? T[37] > T[3,37]", 14},
  {"PRelu", "fh", "T[2,3,5] T[3,1]{0,1} > T[2,3,5]", 16},
  {"Round", F, "T[4]{2.5,2.5} > T[4]", 13},
  {"Where", ALL, "B[3,37] T[3,37] T[3,37] > T[3,37]", 16}, {"Where", "fl", "B[3,1] T[37] T[] > T[3,37]", 16},
  {"Where", "f", "B[] T[5]? T[5] > T[5]", 16}, {"Where", "f", "B[0] T[0] T[0] > T[0]", 16},
  {"FusedElementwise", "f", "T[3,37] T[3,37] > T[3,37] ; expression\"Relu(Add(Mul(x0, x1), 0.5))", 0},
  {"FusedElementwise", "f", "T[4,33] T[33] T[] > T[4,33] ; expression\"Sub(Tanh(Mul(x0, x1)), x2)", 0},
  {"FusedElementwise", "f", "T[5,1031] > T[5,1031] ; expression\"Mul(x0, Sigmoid(x0))", 0},
};
/* clang-format on */

const op_table op_elementwise = {lines, sizeof lines / sizeof lines[0]};
