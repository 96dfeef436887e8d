// Cast: CAST and its kin of elementwise.cl. A variant defines FROM_BYTES and TO_BYTES.
#version 450
#extension GL_GOOGLE_include_directive : enable
#define N 1
#include "common.glsl"
#include "params.glsl"
#include "words.glsl"
#include "convert.glsl"
#include "place.glsl"

layout(constant_id = 1) const int FROM = 0;
layout(constant_id = 2) const int TO = 0;
layout(constant_id = 3) const int TRUTH = 0; // of the result, or of a bool operand: 0 or 1

OPERAND(1, WORD(FROM_BYTES), x0);
RESULT(2, WORD(TO_BYTES), y);

UINT convert(const UINT bits) {
  UINT whole;
  REAL real;
  if (k_is_real(FROM)) {
    real = k_real(bits, FROM_BYTES, FROM);
    if (k_is_real(TO)) return k_bits_of_real(real, TO_BYTES, TO);
    return TRUTH != 0 ? (real != REAL(0) ? UINT(1) : UINT(0)) : k_whole(real);
  }
  whole = k_integer(bits, FROM_BYTES, FROM);
  if (TRUTH != 0) whole = whole != UINT(0) ? UINT(1) : UINT(0);
  return k_is_real(TO) ? k_bits_of_real(k_real_of_integer(whole, FROM), TO_BYTES, TO) : whole;
}

void main() {
  int at[N], o;
  if (!k_place(k_item(), at, o)) return;
  y[o] = UNBITS(TO_BYTES, convert(BITS(FROM_BYTES, x0[at[0]])));
}
