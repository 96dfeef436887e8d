// The template of chains (splice.h): what all have in common, with a function chain that is a placeholder. It is compiled
// without optimisation, so that each function stays, by its name; the plugin writes the body of chain from calls of the
// operators of operators/: all scalar expressions of reals, and Identity. A chain of fewer inputs has others bound to nothing. With FOUR an item has four elements
// that lie together in the result; a WALKED input whose elements do so too has its bit in WIDE, and its places, and the
// dimensions, are counted in fours.
#version 450
#extension GL_GOOGLE_include_directive : enable
#include "common.glsl"
#include "params.glsl"
#define REAL
#define C float
#include "scalar.glsl"
#define LIST_REAL_1
#define LIST_REAL_2
#define LIST_REAL_3

layout(constant_id = 0) const uint KINDS = 0u; // two bits an input: HEDDLE_CHAIN_*
layout(constant_id = 1) const int INPUTS = 0;
layout(constant_id = 2) const int ANY_WALKED = 0;
layout(constant_id = 3) const int FOUR = 0;
layout(constant_id = 4) const uint WIDE = 0u;
const uint DENSE = 0u, SINGLE = 1u, WALKED = 2u;

#define CHAIN_HEAD int count, elements;
PUSHED { CHAIN_HEAD } p;
STORED { CHAIN_HEAD int dims, dim[K_DIMS], step[K_INPUTS * K_DIMS]; } walked;

#define INPUT(k, n) \
  OPERAND(n, float, x##k); \
  OPERAND(n, vec4, fours_x##k); \
  int place_##k = 0;
INPUT(0, 1)
INPUT(1, 2)
INPUT(2, 3)
INPUT(3, 4)
INPUT(4, 5)
INPUT(5, 6)
INPUT(6, 7)
INPUT(7, 8)
RESULT(9, float, y);
RESULT(9, vec4, fours_y);

#define ONE(number, name, kind) \
  float f_##name(const float a, const float b, const float c, const float alpha, const float beta) { \
    return OP_##name##_##kind; \
  }
#include "scalar_list.glsl"
float f_Identity(const float a, const float b, const float c, const float alpha, const float beta) {
  return a;
}
#undef ONE

// Calls each function once, since a compiler leaves out uncalled ones, and has no variables, which would have names.
#define CALL(name) f_##name(x0, x1, x2, x3, x4)
#define ONE(number, name, kind) CALL(name) +
float chain(const float x0, const float x1, const float x2, const float x3, const float x4, const float x5,
            const float x6, const float x7) {
  return
#include "scalar_list.glsl"
      CALL(Identity) + x5 + x6 + x7;
}
#undef ONE

uint kind(const int k) {
  return KINDS >> (2 * k) & 3u;
}

#define WALK(k) if (kind(k) == WALKED) place_##k += digit * walked.step[k * K_DIMS + d];

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

// Input k of element i, and of the four elements of item i.
#define ELEMENT(k) (k >= INPUTS ? 0.0 : x##k[kind(k) == DENSE ? i : kind(k) == SINGLE ? 0 : place_##k])
#define ALL(k) \
  (k >= INPUTS ? vec4(0.0) \
   : kind(k) == DENSE ? fours_x##k[i] \
   : kind(k) == SINGLE ? vec4(x##k[0]) \
   : (WIDE >> k & 1u) != 0u ? fours_x##k[place_##k] : vec4(x##k[place_##k]))

float one(const int i) {
  return chain(ELEMENT(0), ELEMENT(1), ELEMENT(2), ELEMENT(3), ELEMENT(4), ELEMENT(5), ELEMENT(6), ELEMENT(7));
}

vec4 all_four(const int i) {
  const vec4 x0 = ALL(0), x1 = ALL(1), x2 = ALL(2), x3 = ALL(3), x4 = ALL(4), x5 = ALL(5), x6 = ALL(6), x7 = ALL(7);
  vec4 z;
  for (int j = 0; j < 4; j++) z[j] = chain(x0[j], x1[j], x2[j], x3[j], x4[j], x5[j], x6[j], x7[j]);
  return z;
}

void main() {
  const int i = int(k_item());
  if (uint(i) >= uint(p.count)) return;
  if (ANY_WALKED != 0) walk(i);
  const int left = FOUR == 0 ? 1 : ANY_WALKED != 0 ? 4 : p.elements - 4 * i;
  if (FOUR != 0 && left >= 4) {
    fours_y[i] = all_four(i);
    return;
  }
  for (int j = 0; j < left; j++) {
    const int at = FOUR == 0 ? i : 4 * i + j;
    y[at] = one(at);
  }
}
