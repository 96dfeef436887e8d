// Gather, of words of BYTES bytes: gather of pick.cl. With LONG an index is 64 bits, of which those that 32 do not hold
// lie outside the dimension anyhow. An index outside takes zeros.
#version 450
#extension GL_GOOGLE_include_directive : enable
#include "common.glsl"
#include "params.glsl"
#include "words.glsl"

layout(constant_id = 0) const int LONG = 0;

PUSHED { int count, indices, axis, inner; } p;
OPERAND(1, WORD(BYTES), x);
OPERAND(2, int, index);
RESULT(3, WORD(BYTES), y);

void main() {
  const uint i = k_item();
  if (i >= uint(p.count)) return;
  const int unit = int(i) / p.inner, word = int(i) - unit * p.inner;
  const int outer = unit / p.indices, slot = unit - outer * p.indices;
  int at = LONG != 0 ? index[2 * slot] : index[slot];
  bool inside = LONG == 0 || index[2 * slot + 1] == at >> 31;
  if (at < 0) at += p.axis;
  inside = inside && at >= 0 && at < p.axis;
  if (inside) y[i] = x[(outer * p.axis + at) * p.inner + word];
  else y[i] = WORD(BYTES)(0u);
}
