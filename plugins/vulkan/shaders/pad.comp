// Pad, of words of BYTES bytes: pad of pick.cl. FILL: the element to fill with is an operand.
#version 450
#extension GL_GOOGLE_include_directive : enable
#include "common.glsl"
#include "params.glsl"
#include "words.glsl"

const int MODE_FILL = 0, MODE_EDGE = 2; // K_PAD_*; 1 reflects

PUSHED { int count, dims, words, mode, size[K_DIMS], dim[K_DIMS], before[K_DIMS]; } p;
OPERAND(1, WORD(BYTES), x);
#ifdef FILL
OPERAND(2, WORD(BYTES), fill);
RESULT(3, WORD(BYTES), y);
#else
RESULT(2, WORD(BYTES), y);
#endif

void main() {
  const uint i = k_item();
  if (i >= uint(p.count)) return;
  int rest = int(i), from = 0, step = 1;
  bool inside = true;
  for (int d = p.dims - 1; d >= 0; d--) {
    const int size = p.size[d], left = rest / p.dim[d];
    int at = rest - left * p.dim[d] - p.before[d];
    rest = left;
    if (at < 0 || at >= size) {
      if (p.mode == MODE_FILL) inside = false;
      else if (p.mode == MODE_EDGE) at = at < 0 ? 0 : size - 1;
      else at = at < 0 ? -at : 2 * (size - 1) - at;
    }
    from += at * step;
    step *= size;
  }
#ifdef FILL
  if (inside) y[i] = x[from];
  else y[i] = fill[int(i) % p.words];
#else
  if (inside) y[i] = x[from];
  else y[i] = WORD(BYTES)(0u);
#endif
}
