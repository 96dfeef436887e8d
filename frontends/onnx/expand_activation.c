/* frontends/onnx/expand_activation.c: activations with a bias. */
#include <string.h>

#include "frontends/onnx/expand.h"

/* Of the sum of both operands; FastGelu is approximated. */
void expand_gelu(expansion *e) {
  const char *x = x_sum(e, x_in(e, 0), x_in(e, 1));
  x_give(e, 0, x_gelu(e, x, strcmp(e->node->op_type, "FastGelu") == 0));
}

void expand_quick_gelu(expansion *e) {
  const char *x = x_in(e, 0), *alpha = x_number(e, x, x_attr_float(e, "alpha", 1.702F));
  x_give(e, 0, x_2(e, "Mul", x, x_1(e, "Sigmoid", x_2(e, "Mul", x, alpha))));
}

/* The left half of x + bias times Gelu of the right one. */
void expand_bias_split_gelu(expansion *e) {
  const char *half[2];
  x_split(e, x_2(e, "Add", x_in(e, 0), x_in(e, 1)), -1, half, 2);
  x_give(e, 0, x_2(e, "Mul", half[0], x_gelu(e, half[1], false)));
}

void expand_bias_add(expansion *e) {
  x_give(e, 0, x_2(e, "Add", x_2(e, "Add", x_in(e, 0), x_in(e, 1)), x_in(e, 2)));
}

/* Softmax of all dimensions from axis on, of x + bias. A bias that is not broadcast within has the dimensions of x from
 * some one on, which is Add's broadcast too; one that is has x's dimensions before it too, with 1 where it is repeated. */
void expand_bias_softmax(expansion *e) {
  const char *x = x_in(e, 0);
  const int64_t axis = x_attr(e, "axis", 1);
  const int32_t rank = x_rank(e, x);
  const char *sum = x_2(e, "Add", x, x_in(e, 1));
  if (axis == -1 || (rank > 0 && axis == rank - 1)) {
    const char *y = x_1(e, "Softmax", sum);
    x_int(e, "axis", -1);
    x_give(e, 0, y);
    return;
  }
  const char *shape = x_1(e, "Shape", sum), *flat = x_1(e, "Flatten", sum);
  x_int(e, "axis", axis);
  const char *rows = x_1(e, "Softmax", flat);
  x_int(e, "axis", -1);
  x_give(e, 0, x_2(e, "Reshape", rows, shape));
}
