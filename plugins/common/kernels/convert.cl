/* Elements of one type as elements of another, for plans that compute in a type that not all of a node's values have. What
 * rounds to float16 and bfloat16 is in products.cl. */
#include "portable.cl"

//! convert: i8 i16 i32 i64 u8 u16 u32 u64 b8; f32 f64
//! convert: f32 f16 bf16; f64
//! convert: f64; f32
#ifdef K_convert
KERNEL_1_1(convert, k_general, T0, x0, T1, y) {
  K_EACH(i, p.count);
  y[i] = PUT(T1, CAST(K_C(T1), GET(T0, x0[i])));
}
#endif
