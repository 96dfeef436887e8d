// One result from one to three elements, for every operator that computes in integers, compares, or has bools: same, flat
// and walk of elementwise.cl. A variant defines N and TYPE, of which types.glsl makes S, C, U, R, LOAD and STORE; with
// TRUTH the result is a bool.
#version 450
#extension GL_GOOGLE_include_directive : enable
#include "common.glsl"
#include "params.glsl"
#include "ops.glsl"
#include "types.glsl"
#include "place.glsl"

layout(constant_id = 1) const int OP = 0;

#if N == 1
OPERAND(1, S, x0);
RESULT(2, R, y);
#elif N == 2
OPERAND(1, S, x0);
OPERAND(2, S, x1);
RESULT(3, R, y);
#else
OPERAND(1, S, x0);
OPERAND(2, S, x1);
OPERAND(3, S, x2);
RESULT(4, R, y);
#endif

#define CASE(word, value) \
  case OP_##word: \
    return value;

// Bytes that are not 0 are true.
#ifdef TRUTH

bool answer(const C a, const C b, const C c) {
  switch (OP) {
#if N == 1
    CASE(NOT, a == C(0))
#else
    CASE(EQUAL, a == b)
    CASE(LESS, a < b)
    CASE(LESS_OR_EQUAL, a <= b)
    CASE(GREATER, a > b)
    CASE(GREATER_OR_EQUAL, a >= b)
    CASE(SAME_TRUTH, (a != C(0)) == (b != C(0)))
    CASE(AND, a != C(0) && b != C(0))
    CASE(OR, a != C(0) || b != C(0))
    CASE(XOR, (a != C(0)) != (b != C(0)))
#endif
  }
  return false;
}

#else

// Integers: no trap on division by zero, and the least number by -1 wraps. Types under 32 bits wrap when they are stored.
C answer(const C a, const C b, const C c) {
  const U ua = U(a), ub = U(b);
  switch (OP) {
#if N == 1
    CASE(IABS, a < C(0) ? C(U(0) - ua) : a)
    CASE(NEG, C(U(0) - ua))
    CASE(RELU, a < C(0) ? C(0) : a)
#elif N == 2
    CASE(ADD, C(ua + ub))
    CASE(SUB, C(ua - ub))
    CASE(MUL, C(ua * ub))
    CASE(IDIV, b == C(0) ? C(0) : b == C(-1) ? C(U(0) - ua) : a / b)
    CASE(UDIV, b == C(0) ? C(0) : a / b)
    CASE(MIN, a < b ? a : b)
    CASE(MAX, a > b ? a : b)
    CASE(PRELU, a < C(0) ? C(ub * ua) : a)
    CASE(CLIP_LOW, a < b ? b : a)
    CASE(CLIP_HIGH, a > b ? b : a)
#else
  case OP_CLIP: {
    const C low = a < b ? b : a;
    return low > c ? c : low;
  }
#endif
  }
  return C(0);
}

#endif

void main() {
  int at[N], o;
  if (!k_place(k_item(), at, o)) return;
  const C a = LOAD(x0[at[0]]);
#if N > 1
  const C b = LOAD(x1[at[1]]);
#else
  const C b = C(0);
#endif
#if N > 2
  const C c = LOAD(x2[at[2]]);
#else
  const C c = C(0);
#endif
#ifdef TRUTH
  y[o] = R(answer(a, b, c) ? 1u : 0u);
#else
  y[o] = STORE(answer(a, b, c));
#endif
}
