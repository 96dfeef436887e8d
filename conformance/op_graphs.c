/* The graphs of the kit: forms that plugins fuse, and forms that only look like them. */
#include "op_graph.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define X "T[3,37]"
#define ONE X " > " X
#define TWO X " " X " > " X

/* clang-format off */
const op_graph_line op_graph_lines[] = {
  {"chains", "", {{"Add", 14, X " T[37] > " X, ".."}, {"*", 0, ONE, "a"}, {"Mul", 14, TWO, "b."}}},
  {"chains", "", {{"*", 0, ONE, "."}, {"Add", 14, TWO, "Aa"}}},
  {"chains", "", {{"+", 0, TWO, ".."}, {"Relu", 14, ONE, "a"}}},
  {"chains", "", {{"Tanh", 13, ONE, "."}, {"Sigmoid", 13, ONE, "."}, {"+", 0, TWO, "ba"}}},
  {"chains", "", {{"Add", 14, "T[2,1,5] T[3,1] > T[2,3,5]", ".."}, {"Relu", 14, "T[2,3,5] > T[2,3,5]", "a"},
                  {"Mul", 14, "T[2,3,5] T[] > T[2,3,5]", "b."}, {"Sub", 14, "T[5] T[2,3,5] > T[2,3,5]", ".c"}}},
  {"chains", "", {{"Sub", 14, TWO, ".."}, {"Neg", 13, ONE, "a"}, {"Exp", 13, ONE, "b"}, {"Add", 14, X " T[1] > " X, "c."},
                  {"Reciprocal", 13, ONE, "d"}, {"Mul", 14, TWO, "Ae"}}},
  {"residuals", "", {{"Relu", 14, ONE, "."}, {"Add", 14, TWO, "Aa"}}},
  {"residuals", "", {{"Relu", 14, ONE, "."}, {"Add", 14, TWO, "aa"}}},
  {"residuals", "", {{"Add", 14, TWO, ".."}, {"Relu", 14, ONE, "a"}, {"Add", 14, TWO, "ba"}}},
  {"residuals", "", {{"Sub", 14, TWO, ".."}, {"Sub", 14, TWO, "Aa"}, {"Relu", 14, ONE, "b"}}},
  {"residuals", "", {{"Add", 14, TWO, ".."}, {"LayerNormalization", 17, X " T[37] T[37] > " X, "a.."}, {"Add", 14, TWO, "ba"}}},
  {"residuals", "", {{"Mul", 14, TWO, ".A"}, {"Add", 14, TWO, "aA"}, {"Tanh", 13, ONE, "b"}}},
  {"branches", "a", {{"Add", 14, TWO, ".."}, {"Relu", 14, ONE, "a"}}},
  {"branches", "", {{"Add", 14, TWO, ".."}, {"Relu", 14, ONE, "a"}, {"Tanh", 13, ONE, "a"}, {"Mul", 14, TWO, "bc"}}},
  {"branches", "b", {{"Mul", 14, TWO, ".."}, {"Sigmoid", 13, ONE, "a"}, {"Sub", 14, TWO, "ab"}, {"Relu", 14, ONE, "c"}}},
  {"branches", "a", {{"MatMul", 13, "T[5,7] T[7,3] > T[5,3]", ".."}, {"Relu", 14, "T[5,3] > T[5,3]", "a"}}},
  {"branches", "", {{"MatMul", 13, "T[5,7] T[7,3] > T[5,3]", ".."}, {"Add", 14, "T[5,3] T[5,3] > T[5,3]", "a."},
                    {"Relu", 14, "T[5,3] > T[5,3]", "b"}, {"Sub", 14, "T[5,3] T[5,3] > T[5,3]", "ba"}}},
  {"products", "", {{"MatMul", 13, "T[5,7] T[7,3] > T[5,3]", ".."}, {"^", 0, "T[5,3] > T[5,3]", "a"}}},
  {"products", "", {{"MatMul", 13, "T[5,7] T[7,3] > T[5,3]", ".."}, {"Add", 14, "T[5,3] T[3] > T[5,3]", "a."}, {"^", 0, "T[5,3] > T[5,3]", "b"}}},
  {"products", "", {{"MatMul", 13, "T[5,7] T[7,3] > T[5,3]", ".."}, {"Add", 14, "T[5,3] T[5,3] > T[5,3]", "a."}, {"Relu", 14, "T[5,3] > T[5,3]", "b"}}},
  {"products", "", {{"MatMul", 13, "T[33,65] T[65,31] > T[33,31]", ".."}, {"Add", 14, "T[31] T[33,31] > T[33,31]", ".a"}, {"Relu", 14, "T[33,31] > T[33,31]", "b"}}},
  {"products", "", {{"Gemm", 13, "T[5,7] T[7,3] T[5,3] > T[5,3]", "..."}, {"^", 0, "T[5,3] > T[5,3]", "a"}}},
  {"products", "", {{"Gemm", 13, "T[35,70] T[33,70] T[33] > T[35,33] ; transB=1 alpha~0.5", "..."}, {"^", 0, "T[35,33] > T[35,33]", "a"}}},
  {"products", "", {{"Gemm", 13, "T[5,7] T[7,9] T[9] > T[5,9]", "..."}, {"Relu", 14, "T[5,9] > T[5,9]", "a"},
                    {"Gemm", 13, "T[5,9] T[9,3] T[3] > T[5,3]", "b.."}, {"Relu", 14, "T[5,3] > T[5,3]", "c"}}},
  {"products", "", {{"MatMul", 13, "T[5,5] T[5,5] > T[5,5]", ".."}, {"MatMul", 13, "T[5,5] T[5,5] > T[5,5]", "aA"},
                    {"Sub", 14, "T[5,5] T[5,5] > T[5,5]", "ab"}, {"Relu", 14, "T[5,5] > T[5,5]", "c"}}},
  {"convolutions", "", {{"Conv", 13, "T[1,3,7,9] T[4,3,3,3] T[4] > T[1,4,5,7]", "..."}, {"^", 0, "T[1,4,5,7] > T[1,4,5,7]", "a"}}},
  {"convolutions", "", {{"Conv", 13, "T[1,4,6,6] T[8,4,3,3] > T[1,8,6,6] ; pads:1,1,1,1", ".."},
                        {"BatchNormalization", 15, "T[1,8,6,6] T[8] T[8] T[8]{-0.5,0.5} T[8]{0.3,2} > T[1,8,6,6]", "a...."},
                        {"^", 0, "T[1,8,6,6] > T[1,8,6,6]", "b"}}},
  {"convolutions", "", {{"Conv", 13, "T[2,8,7,7] T[8,8,3,3] T[8] > T[2,8,7,7] ; pads:1,1,1,1", "..."},
                        {"Add", 14, "T[2,8,7,7] T[2,8,7,7] > T[2,8,7,7]", "aA"}, {"Relu", 14, "T[2,8,7,7] > T[2,8,7,7]", "b"}}},
  {"convolutions", "", {{"Conv", 13, "T[1,6,9,9] T[6,1,3,3] T[6] > T[1,6,9,9] ; group=6 pads:1,1,1,1", "..."},
                        {"Clip", 13, "T[1,6,9,9] T#0 T#1 > T[1,6,9,9]", "a.."},
                        {"Conv", 13, "T[1,6,9,9] T[5,6,1,1] T[5] > T[1,5,9,9]", "b.."}}},
  {"convolutions", "", {{"Conv", 13, "T[1,3,7,9] T[4,3,3,3] T[4] > T[1,4,5,7]", "..."}, {"Sigmoid", 13, "T[1,4,5,7] > T[1,4,5,7]", "a"},
                        {"Mul", 14, "T[1,4,5,7] T[1,4,5,7] > T[1,4,5,7]", "ab"}}},
  {"convolutions", "a", {{"Conv", 13, "T[1,3,7,9] T[4,3,3,3] T[4] > T[1,4,5,7]", "..."}, {"Relu", 14, "T[1,4,5,7] > T[1,4,5,7]", "a"},
                         {"MaxPool", 13, "T[1,4,5,7] > T[1,4,4,6] ; kernel_shape:2,2", "b"}}},
  {"attention", "", {{"MatMul", 13, "T[2,5,8] T[2,8,7] > T[2,5,7]", ".."}, {"Mul", 14, "T[2,5,7] T[] > T[2,5,7]", "a."},
                     {"Softmax", 13, "T[2,5,7] > T[2,5,7]", "b"}, {"MatMul", 13, "T[2,5,7] T[2,7,6] > T[2,5,6]", "c."}}},
  {"attention", "", {{"Transpose", 13, "T[1,2,7,8] > T[1,2,8,7] ; perm:0,1,3,2", "."}, {"MatMul", 13, "T[1,2,5,8] T[1,2,8,7] > T[1,2,5,7]", ".a"},
                     {"Div", 14, "T[1,2,5,7] T[]{2,3} > T[1,2,5,7]", "b."}, {"Add", 14, "T[1,2,5,7] T[5,7] > T[1,2,5,7]", "c."},
                     {"Softmax", 13, "T[1,2,5,7] > T[1,2,5,7]", "d"}, {"MatMul", 13, "T[1,2,5,7] T[1,2,7,8] > T[1,2,5,8]", "e."}}},
  {"quantised", "", {{"DequantizeLinear", 13, "A[3,37]{0,255} f#0.02 A#128 > f[3,37]", "..."}, {"Relu", 14, "f[3,37] > f[3,37]", "a"},
                     {"QuantizeLinear", 13, "f[3,37] f#0.015 A#3 > A[3,37]", "b.."}}},
  {"quantised", "", {{"DequantizeLinear", 13, "a[3,37]{-100,100} f#0.02 a#3 > f[3,37]", "..."}, {"DequantizeLinear", 13, "a[3,37]{-100,100} f#0.03 a#-4 > f[3,37]", "..."},
                     {"Add", 14, "f[3,37] f[3,37] > f[3,37]", "ab"}, {"QuantizeLinear", 13, "f[3,37] f#0.05 a#1 > a[3,37]", "c.."}}},
  {"quantised", "", {{"DequantizeLinear", 13, "A[5,37]{0,255} f#0.02 A#100 > f[5,37]", "..."}, {"DequantizeLinear", 13, "a[37,9]{-90,90}! f#0.01 a#0 > f[37,9]", "..."},
                     {"MatMul", 13, "f[5,37] f[37,9] > f[5,9]", "ab"}, {"QuantizeLinear", 13, "f[5,9] f#0.1 A#120 > A[5,9]", "c.."}}},
  {"quantised", "", {{"DequantizeLinear", 13, "A[1,3,7,9]{0,255} f#0.02 A#100 > f[1,3,7,9]", "..."}, {"DequantizeLinear", 13, "a[4,3,3,3]{-90,90}! f#0.01 a#0 > f[4,3,3,3]", "..."},
                     {"Conv", 13, "f[1,3,7,9] f[4,3,3,3] > f[1,4,5,7]", "ab"}, {"Relu", 14, "f[1,4,5,7] > f[1,4,5,7]", "c"},
                     {"QuantizeLinear", 13, "f[1,4,5,7] f#0.1 A#0 > A[1,4,5,7]", "d.."}}},
  {"quantised", "", {{"QLinearMatMul", 13, "a[5,37]{0,100} f#0.02 a#3 a[37,9]{0,100} f#0.03 a#4 f#0.5 a#5 > a[5,9]", "........"},
                     {"DequantizeLinear", 13, "a[5,9] f#0.5 a#5 > f[5,9]", "a.."}, {"Relu", 14, "f[5,9] > f[5,9]", "b"}}},
};
/* clang-format on */
const uint32_t op_graph_line_count = sizeof op_graph_lines / sizeof op_graph_lines[0];

/* ---------------------------------------------------------------- stand-ins */

static bool is_among(const char *op, const char *const *list) {
  while (*list != NULL && strcmp(*list, op) != 0) list++;
  return *list != NULL;
}

/* The elementwise lines of the tables that have the form of the sign, over [3,37] and of every value. */
static bool stands(const op_line *line, char sign) {
  static const char *const activations[] = {"Relu", "Sigmoid", "Tanh", "LeakyRelu", "HardSwish", "Gelu", "Elu", NULL};
  static const char *const pairs[] = {"Add", "Sub", "Mul", "Div", "Max", "Min", "Pow", "PRelu", NULL};
  if (line->opset == 0 || line->types[0] != 'f' || strchr(line->text, '?') != NULL || strchr(line->text, ';') != NULL)
    return false;
  if (strncmp(line->text, "T[3,37]", 7) != 0) return false;
  const char *to = strstr(line->text, " > T[3,37]"), *space = strchr(line->text, ' ');
  if (to == NULL) return false;
  if (sign == '+') return is_among(line->op, pairs) && space != to && strncmp(space, " T[3,37]", 8) == 0;
  return space == to && (sign == '*' || is_among(line->op, activations));
}

const op_line *op_graph_stand_in(char sign, uint32_t number) {
  const op_table *all = op_scalar();
  for (uint32_t i = 0; i < all->count; i++)
    if (stands(&all->lines[i], sign) && number-- == 0) return &all->lines[i];
  return NULL;
}

char op_graph_sign(const op_graph_line *line) {
  for (uint32_t i = 0; i < GRAPH_NODES && line->nodes[i].op != NULL; i++)
    if (strchr("*^+", line->nodes[i].op[0]) != NULL) return line->nodes[i].op[0];
  return '\0';
}

/* ---------------------------------------------------------------- by chance */

static uint32_t next(uint32_t *state) {
  *state = *state * 1664525U + 1013904223U;
  return *state >> 8;
}

void op_graph_random(uint32_t seed, op_graph_line *out) {
  static const struct {
    const char *op;
    uint32_t opset, arity;
  } ops[] = {{"Add", 14, 2},  {"Relu", 14, 1}, {"Sub", 14, 2},    {"Mul", 14, 2},    {"Tanh", 13, 1},
             {"Relu", 14, 1}, {"Max", 13, 2},  {"MatMul", 13, 2}, {"Sigmoid", 13, 1}};
  static char from[64][GRAPH_NODES][3];
  static char keep[64][GRAPH_NODES + 1];
  const uint32_t at = seed % 64;
  uint32_t state = seed * 7919U + 1, n = 5 + next(&state) % 3, kept = 0;
  memset(out, 0, sizeof *out);
  out->family = "random";
  for (uint32_t i = 0; i < n; i++) {
    const uint32_t which = next(&state) % (sizeof ops / sizeof ops[0]);
    for (uint32_t j = 0; j < ops[which].arity; j++) {
      const uint32_t what = next(&state) % 5;
      char *f = &from[at][i][j];
      if (i == 0 || what == 0) *f = '.';
      else if (what == 1) *f = 'A';
      else *f = (char)('a' + i - 1 - (what == 2 && i > 1 ? 1 : 0));
    }
    from[at][i][ops[which].arity] = '\0';
    out->nodes[i] = (op_graph_node){
        ops[which].op, ops[which].opset,
        ops[which].arity == 2 ? "T[6,6]{-1,1} T[6,6]{-1,1} > T[6,6]" : "T[6,6]{-1,1} > T[6,6]", from[at][i]};
    if (next(&state) % 6 == 0) keep[at][kept++] = (char)('a' + i);
  }
  keep[at][kept] = '\0';
  out->keep = keep[at];
}
