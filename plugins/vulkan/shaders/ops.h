/* The operators of elementwise shaders by number, for C and GLSL alike: X(number, word of elementwise.cl). A new one is a
 * line here and one where its type of operand is: ops_float.glsl, or elementwise.comp. */
#ifndef HEDDLE_PLUGINS_VULKAN_SHADERS_OPS_H
#define HEDDLE_PLUGINS_VULKAN_SHADERS_OPS_H

/* clang-format off */
/* Of one operand. */
#define VLK_OPS_1(X) \
  X(0, COPY) \
  X(1, FABS) \
  X(2, IABS) \
  X(3, FNEG) X(4, NEG) X(5, RELU) X(6, LEAKY_RELU) X(7, ELU) X(8, HARD_SIGMOID) X(9, HARD_SWISH) X(10, SIGMOID) \
      X(11, TANH) X(12, EXP) X(13, LOG) X(14, SQRT) X(15, ERF) X(16, GELU) X(17, GELU_TANH) X(18, NOT)

/* Of two. */
#define VLK_OPS_2(X) \
  X(32, ADD) \
  X(33, SUB) \
  X(34, MUL) \
  X(35, DIV) X(36, IDIV) X(37, UDIV) X(38, POW) X(39, MIN) X(40, MAX) X(41, PRELU) X(42, CLIP_LOW) X(43, CLIP_HIGH) \
      X(44, EQUAL) X(45, LESS) X(46, LESS_OR_EQUAL) X(47, GREATER) X(48, GREATER_OR_EQUAL) X(49, SAME_TRUTH) \
          X(50, AND) X(51, OR) X(52, XOR)

/* Of three. */
#define VLK_OPS_3(X) X(64, CLIP) X(65, WHERE)

/* clang-format on */

#endif
