/* Range: element i is first + i * step, of type T; table holds the two. U: the type in which integers wrap, T itself for
 * floats, where REAL is 1. */
KERNEL void range(k_flat p, GLOBAL const T *table, GLOBAL T *out) {
  const IDX i = K_GLOBAL_ID;
  if (i >= (IDX)p.count) return;
#if REAL
  /* i in two parts, each exact as a float. */
  const IDX low = i & 0xfff;
  out[i] = fma((T)(i - low), table[1], fma((T)low, table[1], table[0]));
#else
  out[i] = (T)((U)table[0] + (U)i * (U)table[1]);
#endif
}
