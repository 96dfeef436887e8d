// Elements of BYTES bytes moved as they are: COPY of elementwise.cl, which is what data movement walks with, and, with
// N = 3, WHERE, whose first operand is a byte that is true where it is not 0.
#version 450
#extension GL_GOOGLE_include_directive : enable
#include "common.glsl"
#include "params.glsl"
#include "words.glsl"
#include "place.glsl"

#if N == 1
OPERAND(1, WORD(BYTES), x0);
RESULT(2, WORD(BYTES), y);
#else
OPERAND(1, uint8_t, x0);
OPERAND(2, WORD(BYTES), x1);
OPERAND(3, WORD(BYTES), x2);
RESULT(4, WORD(BYTES), y);
#endif

void main() {
  int at[N], o;
  if (!k_place(k_item(), at, o)) return;
#if N == 1
  y[o] = x0[at[0]];
#else
  if (uint(x0[at[0]]) != 0u) y[o] = x1[at[1]];
  else y[o] = x2[at[2]];
#endif
}
