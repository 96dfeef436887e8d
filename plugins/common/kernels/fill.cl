/* Range. */
#include "portable.cl"

//! range: f32 f64 f16 bf16 u8 u16 u32 u64
#ifdef K_range
/* Element i is first + i * step, the two of which are operand 0. */
KERNEL_1_1(range, k_general, T0, x0, T0, y) {
  K_EACH(i, p.count);
  const K_C(T0) first = GET(T0, x0[0]), step = GET(T0, x0[1]);
#ifdef T0_REAL
  /* i in two parts, each exact as a float. */
  const IDX low = i & 0xfff;
  y[i] = PUT(T0, fma(NUM(i - low), step, fma(NUM(low), step, first)));
#else
  y[i] = PUT(T0, first + NUM(i) * step);
#endif
}
#endif
