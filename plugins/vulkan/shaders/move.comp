// Elements of BYTES bytes moved as they are: COPY of elementwise.cl, which is what data movement walks with, and, with
// N = 3, WHERE, whose first operand is a byte that is true where it is not 0. FOUR, with FOURS, N = 1 and BYTES = 4: an item has
// four elements, which lie together in both.
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
#ifdef FOURS
layout(constant_id = 1) const int FOUR = 0;
OPERAND(1, uvec4, fours_x0);
RESULT(2, uvec4, fours_y);
#endif

void main() {
  int at[N], o;
  if (!k_place(k_item(), at, o)) return;
#ifdef FOURS
  if (FOUR != 0) {
    const int left = WALK != 0 ? 4 : p.elements - 4 * o;
    if (left >= 4) fours_y[o] = fours_x0[at[0]];
    else for (int j = 0; j < left; j++) y[4 * o + j] = x0[4 * at[0] + j];
    return;
  }
#endif
#if N == 1
  y[o] = x0[at[0]];
#else
  if (uint(x0[at[0]]) != 0u) y[o] = x1[at[1]];
  else y[o] = x2[at[2]];
#endif
}
