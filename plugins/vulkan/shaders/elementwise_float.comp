// One float32 from one to three, for every operator that gives such: same, flat and walk of elementwise.cl. A variant
// defines N. With FOUR an item has four elements that lie together in the result, which is read and written at once, as
// device memory likes it; WIDE has a bit for each operand in which they lie together too.
#version 450
#extension GL_GOOGLE_include_directive : enable
#include "common.glsl"
#include "params.glsl"
#include "ops.glsl"
#include "place.glsl"
#include "ops_float.glsl"

layout(constant_id = 1) const int OP = 0;
layout(constant_id = 2) const int FOUR = 0;
layout(constant_id = 3) const uint WIDE = 0u;

OPERAND(1, float, x0);
OPERAND(1, vec4, fours_x0);
#if N > 1
OPERAND(2, float, x1);
OPERAND(2, vec4, fours_x1);
#endif
#if N > 2
OPERAND(3, float, x2);
OPERAND(3, vec4, fours_x2);
#endif
#if N == 1
RESULT(2, float, y);
RESULT(2, vec4, fours_y);
#elif N == 2
RESULT(3, float, y);
RESULT(3, vec4, fours_y);
#else
RESULT(4, float, y);
RESULT(4, vec4, fours_y);
#endif

#define CASE(word) \
  case OP_##word: \
    return f_##word(a, b, c, p.alpha, p.beta);

float answer(const float a, const float b, const float c) {
  switch (OP) {
#if N == 1
    CASE(FABS)
    CASE(FNEG)
    CASE(RELU)
    CASE(LEAKY_RELU)
    CASE(ELU)
    CASE(HARD_SIGMOID)
    CASE(HARD_SWISH)
    CASE(SIGMOID)
    CASE(TANH)
    CASE(EXP)
    CASE(LOG)
    CASE(SQRT)
    CASE(ERF)
    CASE(GELU)
    CASE(GELU_TANH)
#elif N == 2
    CASE(ADD)
    CASE(SUB)
    CASE(MUL)
    CASE(DIV)
    CASE(POW)
    CASE(MIN)
    CASE(MAX)
    CASE(PRELU)
    CASE(CLIP_LOW)
    CASE(CLIP_HIGH)
#else
    CASE(CLIP)
#endif
  }
  return 0.0;
}

// Element j of an item's operand k.
#define ONE(k, j) x##k[FOUR == 0 ? at[k] : (WIDE >> k & 1u) != 0u ? 4 * at[k] + (j) : at[k]]
#define ALL(k) ((WIDE >> k & 1u) != 0u ? fours_x##k[at[k]] : vec4(x##k[at[k]]))

void main() {
  int at[N], o;
  if (!k_place(k_item(), at, o)) return;
  if (FOUR != 0 && WALK == 0) {
    [[unroll]] for (int k = 0; k < N; k++) at[k] = (WIDE >> k & 1u) != 0u ? o : 0;
  }
  const int left = FOUR == 0 ? 1 : WALK != 0 || FOUR == 2 ? 4 : p.elements - 4 * o;
  if (FOUR != 0 && left >= 4) {
    const vec4 a = ALL(0);
    vec4 b = vec4(0.0), c = vec4(0.0), z;
#if N > 1
    b = ALL(1);
#endif
#if N > 2
    c = ALL(2);
#endif
    for (int j = 0; j < 4; j++) z[j] = answer(a[j], b[j], c[j]);
    fours_y[o] = z;
    return;
  }
  for (int j = 0; j < left; j++) {
    float b = 0.0, c = 0.0;
#if N > 1
    b = ONE(1, j);
#endif
#if N > 2
    c = ONE(2, j);
#endif
    y[FOUR == 0 ? o : 4 * o + j] = answer(ONE(0, j), b, c);
  }
}
