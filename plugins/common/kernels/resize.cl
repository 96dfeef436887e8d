/* Resize: an item has one element of the result, the sum over all taps of all dimensions. cells: for each place of each
 * dimension that is resized the first element, OUTSIDE for none, and the weights. V0: dimensions. */
#define K_STORED
#include "portable.cl"

#define OUTSIDE (-2147483647 - 1)

//! resize: f32
#ifdef K_resize
KERNEL_2_1(resize, k_resize, i32, cells, T0, x, T0, y) {
  K_EACH(id, p.count);
  IDX rest = id, row[V0];
  float sum = 0.0f;
  bool outside = false;
  UNROLL for (int d = V0 - 1; d >= 0; d--) {
    const IDX dim = AT(p.out_[d]), place = rest % dim;
    rest /= dim;
    row[d] = p.taps[d] == 0 ? place : AT(p.at[d]) + place * (1 + AT(p.taps[d]));
    outside = outside || (p.taps[d] != 0 && cells[row[d]] == OUTSIDE);
  }
  if (outside) {
    y[id] = p.outside;
    return;
  }
  for (IDX t = 0; t < AT(p.sums); t++) {
    IDX left = t, from = 0, step = 1;
    float weight = 1.0f;
    UNROLL for (int d = V0 - 1; d >= 0; d--) {
      const IDX taps = AT(p.taps[d]), size = AT(p.in_[d]);
      IDX at = row[d];
      if (taps != 0) {
        const IDX k = left % taps;
        left /= taps;
        weight *= K_FLOAT(CAST(uint, cells[row[d] + 1 + k]));
        at = AT(cells[row[d]]) + k;
        at = at < 0 ? 0 : at >= size ? size - 1 : at;
      }
      from += at * step;
      step *= size;
    }
    sum += weight * x[from];
  }
  y[id] = sum;
}
#endif
