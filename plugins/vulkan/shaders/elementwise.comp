// One result from one to three elements, for every scalar expression of operators/: same, flat and walk of elementwise.cl. A
// variant defines N and TYPE, of which types.glsl makes S, C, U, R, LOAD and STORE, and LIST_KIND_N_PART, the operators that
// it has (scalars.cmake); with TRUTH the result is a bool, and with LOGIC the operands are bools too, of which bytes that
// are not 0 are true. With FOUR, in float32, an item has four elements that lie together in the result, which is read and
// written at once, as device memory likes it; WIDE has a bit for each operand in which they lie together too.
#version 450
#extension GL_GOOGLE_include_directive : enable
#include "common.glsl"
#include "params.glsl"
#include "types.glsl"
#include "place.glsl"
#include "scalar.glsl"

layout(constant_id = 1) const int OP = 0;
#if TYPE == TYPE_F32 && !defined(TRUTH)
#define FOURS
layout(constant_id = 2) const int FOUR = 0;
layout(constant_id = 3) const uint WIDE = 0u;
#endif

OPERAND(1, S, x0);
#if N > 1
OPERAND(2, S, x1);
#endif
#if N > 2
OPERAND(3, S, x2);
#endif
#if N == 1
RESULT(2, R, y);
#elif N == 2
RESULT(3, R, y);
#else
RESULT(4, R, y);
#endif

#ifdef LOGIC
#define E bool
#define TAKE(x) (uint(x) != 0u)
#else
#define E C
#define TAKE(x) LOAD(x)
#endif
#ifdef TRUTH
#define RESULT_TYPE bool
#define GIVE(x) R((x) ? 1u : 0u)
#else
#define RESULT_TYPE C
#define GIVE(x) STORE(x)
#endif
#ifdef REAL
#define ATTRIBUTE C
#else
#define ATTRIBUTE float
#endif

#define ONE(number, name, kind) \
  case number: \
    return OP_##name##_##kind;

RESULT_TYPE answer(const E a, const E b, const E c) {
  const ATTRIBUTE alpha = ATTRIBUTE(p.alpha), beta = ATTRIBUTE(p.beta);
  switch (OP) {
#include "scalar_list.glsl"
  }
  return RESULT_TYPE(0);
}

#ifdef FOURS

OPERAND(1, vec4, fours_x0);
#if N > 1
OPERAND(2, vec4, fours_x1);
#endif
#if N > 2
OPERAND(3, vec4, fours_x2);
#endif
#if N == 1
RESULT(2, vec4, fours_y);
#elif N == 2
RESULT(3, vec4, fours_y);
#else
RESULT(4, vec4, fours_y);
#endif

// Four elements of an item's operand k, or the left that there are.
#define TAKE_FOUR(k) \
  ((WIDE >> k & 1u) == 0u ? vec4(x##k[at[k]]) \
   : left >= 4 ? fours_x##k[at[k]] \
   : vec4(x##k[4 * at[k]], left > 1 ? x##k[4 * at[k] + 1] : 0.0, left > 2 ? x##k[4 * at[k] + 2] : 0.0, 0.0))
#define TAKE_ALL(k) (FOUR == 0 ? vec4(x##k[at[k]]) : TAKE_FOUR(k))

void main() {
  int at[N], o;
  if (!k_place(k_item(), at, o)) return;
  if (FOUR != 0 && WALK == 0) {
    [[unroll]] for (int k = 0; k < N; k++) at[k] = (WIDE >> k & 1u) != 0u ? o : 0;
  }
  const int left = FOUR == 0 ? 1 : WALK != 0 || FOUR == 2 ? 4 : p.elements - 4 * o;
  const vec4 a = TAKE_ALL(0);
  vec4 b = vec4(0.0), c = vec4(0.0), z = vec4(0.0);
#if N > 1
  b = TAKE_ALL(1);
#endif
#if N > 2
  c = TAKE_ALL(2);
#endif
  for (int j = 0; j < (FOUR == 0 ? 1 : 4); j++) z[j] = answer(a[j], b[j], c[j]);
  if (FOUR == 0) {
    y[o] = z[0];
  } else if (left >= 4) {
    fours_y[o] = z;
  } else {
    for (int j = 0; j < left; j++) y[4 * o + j] = z[j];
  }
}

#else

void main() {
  int at[N], o;
  if (!k_place(k_item(), at, o)) return;
  E b = E(0), c = E(0);
#if N > 1
  b = TAKE(x1[at[1]]);
#endif
#if N > 2
  c = TAKE(x2[at[2]]);
#endif
  y[o] = GIVE(answer(TAKE(x0[at[0]]), b, c));
}

#endif
