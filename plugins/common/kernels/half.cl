/* float32 to bfloat16 for products in it: to nearest, halves to even, by integers alone, so that no language's own type is
 * needed. NaN stays one. Elements are written in pairs, the first in the lower half; a last one without a neighbour has 0
 * there. */
DEVICE uint bfloat_of(uint bits) {
  if ((bits & 0x7fffffffu) > 0x7f800000u) return bits >> 16 | 0x40u;
  return (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16;
}

/* An item has a pair. count: of elements. */
KERNEL void round_bfloat(k_flat p, GLOBAL const uint *x, GLOBAL uint *out) {
  const IDX at = 2 * K_GLOBAL_ID;
  if (at >= (IDX)p.count) return;
  const uint low = bfloat_of(x[at]), high = at + 1 < (IDX)p.count ? bfloat_of(x[at + 1]) : 0u;
  out[at / 2] = high << 16 | low;
}
