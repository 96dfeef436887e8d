// Range: element i is first + i * step, the two of which are the table's: range of fill.cl. A variant defines T, and U in
// which integers wrap, or REAL. HALF: T is of 16 bits.
#version 450
#extension GL_GOOGLE_include_directive : enable
#include "common.glsl"
#include "params.glsl"
#ifdef HALF
#extension GL_EXT_shader_16bit_storage : require
#endif
#ifdef LONG
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require
#endif

PUSHED { int count; } p;
OPERAND(1, T, table);
RESULT(2, T, y);

void main() {
  const uint i = k_item();
  if (i >= uint(p.count)) return;
#ifdef REAL
  // i in two parts, each exact as a float.
  const uint low = i & 0xfffu;
  y[i] = fma(T(i - low), table[1], fma(T(low), table[1], table[0]));
#elif defined(HALF)
  y[i] = T(int(table[0]) + int(i) * int(table[1]));
#else
  y[i] = T(U(table[0]) + U(i) * U(table[1]));
#endif
}
