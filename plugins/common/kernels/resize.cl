/* Resize: an item has one element of the result, the sum over all taps of all dimensions. cells: for each place of each
 * dimension that is resized the first element, OUTSIDE for none, and the weights. */
#define OUTSIDE (-2147483647 - 1)

KERNEL void resize(k_resize p, GLOBAL const int *cells, GLOBAL const float *in, GLOBAL float *out) {
  const IDX id = K_GLOBAL_ID;
  const int dims = (int)p.dims;
  IDX rest = id, row[K_DIMS];
  float sum = 0.0f;
  if (id >= (IDX)p.count) return;
  for (int d = dims - 1; d >= 0; d--) {
    const IDX dim = (IDX)p.out[d], place = rest % dim;
    rest /= dim;
    row[d] = p.taps[d] == 0 ? place : (IDX)p.at[d] + place * (1 + (IDX)p.taps[d]);
    if (p.taps[d] != 0 && cells[row[d]] == OUTSIDE) {
      out[id] = p.outside;
      return;
    }
  }
  for (IDX t = 0; t < (IDX)p.sums; t++) {
    IDX left = t, from = 0, step = 1;
    float weight = 1.0f;
    for (int d = dims - 1; d >= 0; d--) {
      const IDX taps = (IDX)p.taps[d], size = (IDX)p.in[d];
      IDX at = row[d];
      if (taps != 0) {
        const IDX k = left % taps;
        left /= taps;
        weight *= K_FLOAT(cells[row[d] + 1 + k]);
        at = cells[row[d]] + k;
        at = at < 0 ? 0 : at >= size ? size - 1 : at;
      }
      from += at * step;
      step *= size;
    }
    sum += weight * in[from];
  }
  out[id] = sum;
}
