/* Gather and Pad, which move words; an item has one word of the result. */
#include "portable.cl"

//! gather: w1 w2 w4 w8
#ifdef K_gather
/* An index outside the dimension takes zeros. V0: words of an index; the second of two has nothing but the sign. */
KERNEL_2_1(gather, k_gather, T0, x0, i32, x1, T0, y) {
  K_EACH(i, p.count);
  const IDX unit = i / AT(p.inner), word = i - unit * AT(p.inner);
  const IDX outer = unit / AT(p.indices), slot = unit - outer * AT(p.indices);
  const int at = x1[V0 * slot];
  const bool fits = V0 == 1 || x1[V0 * slot + V0 - 1] == at >> 31;
  IDX row = AT(at);
  if (at < 0) row += AT(p.axis);
  if (fits && row >= 0 && row < AT(p.axis)) y[i] = x0[(outer * AT(p.axis) + row) * AT(p.inner) + word];
  else y[i] = CAST(K_S(T0), 0);
}
#endif

//! pad: w1 w2 w4 w8
#ifdef K_pad
/* V0: 2 where the element to fill with is an operand, else 1. */
KERNEL_2_1(pad, k_pad, T0, x0, T0, x1, T0, y) {
  K_EACH(i, p.count);
  IDX rest = i, from = 0, step = 1;
  bool inside = true;
  for (int d = CAST(int, p.dims) - 1; d >= 0; d--) {
    const IDX size = AT(p.in_[d]), left = rest / AT(p.out_[d]);
    IDX at = rest - left * AT(p.out_[d]) - AT(p.before[d]);
    rest = left;
    if (at < 0 || at >= size) {
      if (p.mode == K_PAD_FILL) inside = false;
      else if (p.mode == K_PAD_EDGE) at = at < 0 ? 0 : size - 1;
      else at = at < 0 ? -at : 2 * (size - 1) - at;
    }
    from += at * step;
    step *= size;
  }
  if (inside) y[i] = x0[from];
  else if (V0 == 2) y[i] = x1[i % AT(p.words)];
  else y[i] = CAST(K_S(T0), 0);
}
#endif
