// The template of chains (splice.h): what all have in common, with a function chain that is a placeholder. It is compiled
// without optimisation, so that each function stays, by its name; the plugin writes the body of chain from calls of
// input_K and of the operators in ops_float.glsl. The result's binding follows the inputs that a chain has.
#version 450
#extension GL_GOOGLE_include_directive : enable
#include "common.glsl"
#include "params.glsl"
#include "ops_float.glsl"

// How input K is read, two bits each: HEDDLE_CHAIN_*.
layout(constant_id = 0) const uint KINDS = 0u;
layout(constant_id = 1) const int ANY_WALKED = 0;
const uint DENSE = 0u, SINGLE = 1u, WALKED = 2u;

PUSHED { int count; } p;
STORED { int count, dims, dim[K_DIMS], step[K_INPUTS * K_DIMS]; } walked;

layout(set = 0, binding = K_INPUTS + 1, std430) buffer result_block { float y[]; } result;

// Where the walked inputs lie.
#define INPUT(k) \
  OPERAND(k + 1, float, x##k); \
  int place_##k = 0; \
  float input_##k(const int i) { \
    const uint kind = KINDS >> (2 * k) & 3u; \
    return x##k[kind == DENSE ? i : kind == SINGLE ? 0 : place_##k]; \
  }
INPUT(0)
INPUT(1)
INPUT(2)
INPUT(3)
INPUT(4)
INPUT(5)
INPUT(6)
INPUT(7)

// Calls each function once, since a compiler leaves out what nobody calls, and has no variables, which would have names.
#define CALL(word) f_##word(0.0, 0.0, 0.0, 0.0, 0.0)
float chain(const int i) {
  return input_0(i) + input_1(i) + input_2(i) + input_3(i) + input_4(i) + input_5(i) + input_6(i) + input_7(i)
      + CALL(COPY) + CALL(FABS) + CALL(FNEG) + CALL(RELU) + CALL(LEAKY_RELU) + CALL(ELU) + CALL(HARD_SIGMOID)
      + CALL(HARD_SWISH) + CALL(SIGMOID) + CALL(TANH) + CALL(EXP) + CALL(LOG) + CALL(SQRT) + CALL(ERF) + CALL(GELU)
      + CALL(GELU_TANH) + CALL(ADD) + CALL(SUB) + CALL(MUL) + CALL(DIV) + CALL(POW) + CALL(MIN) + CALL(MAX)
      + CALL(PRELU) + CALL(CLIP);
}

#define WALK(k) if ((KINDS >> (2 * k) & 3u) == WALKED) place_##k += digit * walked.step[k * K_DIMS + d];

void walk(const int i) {
  int rest = i;
  for (int d = walked.dims - 1; d >= 0; d--) {
    const int dim = walked.dim[d], left = rest / dim, digit = rest - left * dim;
    rest = left;
    WALK(0)
    WALK(1)
    WALK(2)
    WALK(3)
    WALK(4)
    WALK(5)
    WALK(6)
    WALK(7)
  }
}

void main() {
  const uint i = k_item();
  if (i >= uint(ANY_WALKED != 0 ? walked.count : p.count)) return;
  if (ANY_WALKED != 0) walk(int(i));
  result.y[i] = chain(int(i));
}
