/* Gather and Pad, which move words of type T; an item has one word of the result. Indices are of type TI. FILL: Pad has
 * the element to fill with as an operand. */
#ifdef TI
/* An index outside the dimension takes zeros. */
KERNEL void gather(k_gather p, GLOBAL const T *in, GLOBAL const TI *indices, GLOBAL T *out) {
  const IDX i = K_GLOBAL_ID;
  if (i >= (IDX)p.count) return;
  const IDX word = i % (IDX)p.inner, unit = i / (IDX)p.inner, outer = unit / (IDX)p.indices;
  long at = indices[unit % (IDX)p.indices];
  if (at < 0) at += p.axis;
  out[i] = at < 0 || at >= p.axis ? (T)0 : in[(outer * (IDX)p.axis + (IDX)at) * (IDX)p.inner + word];
}
#else
#if FILL
KERNEL void pad(k_pad p, GLOBAL const T *in, GLOBAL const T *fill, GLOBAL T *out) {
#else
KERNEL void pad(k_pad p, GLOBAL const T *in, GLOBAL T *out) {
#endif
  const IDX i = K_GLOBAL_ID;
  IDX rest = i, from = 0, step = 1;
  int inside = 1;
  if (i >= (IDX)p.count) return;
  for (int d = (int)p.dims - 1; d >= 0; d--) {
    const IDX size = (IDX)p.in[d], dim = (IDX)p.out[d];
    IDX at = rest % dim - (IDX)p.before[d];
    rest /= dim;
    if (at < 0 || at >= size) {
      if (p.mode == K_PAD_FILL) inside = 0;
      else if (p.mode == K_PAD_EDGE) at = at < 0 ? 0 : size - 1;
      else at = at < 0 ? -at : 2 * (size - 1) - at;
    }
    from += at * step;
    step *= size;
  }
#if FILL
  out[i] = inside ? in[from] : fill[i % (IDX)p.words];
#else
  out[i] = inside ? in[from] : (T)0;
#endif
}
#endif
