/* Elements of 8 bits and less, each in a byte of its own, as plugins/common/more/narrow.c has them: float8, float4, powers of two
 * and integers of 4 and 2 bits. p.format has what narrow_format leaves. Floating-point numbers go by their bits, so that
 * denormals stay on devices that make zeros of them. */
#include "portable.cl"

#define BITS CAST(int, p.format[0])
#define MANTISSA CAST(int, p.format[1])
#define BIAS CAST(int, p.format[2])
#define MOST CAST(uint, p.format[3])
#define INFINITE CAST(uint, p.format[4])
#define NOT_A_NUMBER CAST(uint, p.format[5])
#define KIND CAST(int, p.format[6])
/* KIND */
#define UNSIGNED_ZERO 1
#define POWERS 2
#define SIGNED 3

//! narrow_load: f32 i8 u8
#ifdef K_narrow_load
DEVICE float number_of(uint byte, int bits, int mantissa, int bias, uint most, uint infinity, uint nan, int kind) {
  const uint top = 1u << (bits - 1), code = byte & (top - 1u), sign = (byte & top) != 0u ? 0x80000000u : 0u;
  if (kind == POWERS) return K_FLOAT(byte == nan ? 0x7fc00000u : byte == 0u ? 0x00400000u : byte << 23);
  if (nan != 0u && (kind == UNSIGNED_ZERO ? byte == nan : code > (infinity != 0u ? infinity : most))) return K_FLOAT(0x7fc00000u);
  if (infinity != 0u && code == infinity) return K_FLOAT(sign | 0x7f800000u);
  const uint up = code >> mantissa, part = code & ((1u << mantissa) - 1u);
  if (up != 0u) return K_FLOAT(sign | (up + CAST(uint, 127 - bias)) << 23 | part << (23 - mantissa));
  return K_FLOAT(sign | K_BITS(CAST(float, part) * K_FLOAT(CAST(uint, 128 - bias - mantissa) << 23)));
}

/* Numbers are exact in float32, integers in int8 and uint8. */
KERNEL_1_1(narrow_load, k_narrow, u8, x0, T0, y) {
  K_EACH(i, p.count);
  const uint byte = GET(u8, x0[i]);
#ifdef T0_REAL
  y[i] = number_of(byte, BITS, MANTISSA, BIAS, MOST, INFINITE, NOT_A_NUMBER, KIND);
#else
  const int size = 1 << BITS, v = CAST(int, byte) & (size - 1);
  y[i] = PUT(T0, CAST(K_C(T0), KIND == SIGNED && v >= size / 2 ? v - size : v));
#endif
}
#endif

//! narrow_store: f32 f64 f16 bf16 i8 i16 i32 i64 u8 u16 u32 u64 b8
#ifdef K_narrow_store
/* rounds: of powers of two, 0 up, 1 down, 2 to the nearest. */
DEVICE uint power_of(uint x, bool saturate, int rounds) {
  const uint size = x & 0x7fffffffu, up = size >> 23, part = size & 0x7fffffu;
  if (size > 0x7f800000u || (x > 0x80000000u)) return 0xffu;
  if (size == 0x7f800000u) return saturate ? 0xfeu : 0xffu;
  const uint middle = up == 0u ? 0x600000u : 0x400000u, none = up == 0u ? 0x400000u : 0u;
  const uint code = up + ((rounds == 0 && part > none) || (rounds == 2 && part >= middle) ? 1u : 0u);
  return code > 0xfeu ? (saturate ? 0xfeu : 0xffu) : code;
}

DEVICE uint byte_of(uint x, bool saturates, int bits, int mantissa, int bias, uint most, uint infinity, uint nan, int kind) {
  const uint size = x & 0x7fffffffu, top = 1u << (bits - 1), sign = (x & 0x80000000u) != 0u ? top : 0u;
  const uint large = infinity != 0u ? infinity | sign : kind == UNSIGNED_ZERO ? nan : nan | sign;
  const bool saturate = saturates || nan == 0u;
  if (size > 0x7f800000u) return nan == 0u ? top : kind == UNSIGNED_ZERO ? nan : nan | sign;
  if (size == 0x7f800000u) return saturate ? most | sign : large;
  const int own = CAST(int, size >> 23) - 127, least = 1 - bias, exponent = own < least ? least : own;
  const int down = 23 - mantissa + exponent - own;
  uint steps = 0u; /* of the exponent */
  if (down <= 24 && own > -127) {
    const uint digits = (size & 0x7fffffu) | 0x800000u, rest = digits & ((1u << down) - 1u), middle = 1u << (down - 1);
    steps = digits >> down;
    steps += rest > middle || (rest == middle && (steps & 1u) != 0u) ? 1u : 0u;
  }
  const uint code = steps + (CAST(uint, exponent - least) << mantissa);
  if (code > most) return saturate ? most | sign : large;
  return code == 0u && kind == UNSIGNED_ZERO ? 0u : code | sign;
}

KERNEL_1_1(narrow_store, k_narrow, T0, x0, u8, y) {
  K_EACH(i, p.count);
  const bool saturate = p.saturate != 0;
  K_C(T0) v = GET(T0, x0[i]);
  if (KIND >= SIGNED) { /* integers wrap; what is beyond 2^62 is 0 */
    const int size = 1 << BITS;
#ifdef T0_REAL
    const K_C(T0) cut = v < NUM(0) ? -floor(-v) : floor(v);
    const int low = ABS(v) <= NUM(4611686018427387904.0f) ? CAST(int, cut - floor(cut / NUM(16)) * NUM(16)) : 0;
#else
    const int low = CAST(int, v);
#endif
    const int whole = low & (size - 1);
    y[i] = PUT(u8, CAST(uint, KIND == SIGNED && whole >= size / 2 ? whole - size : whole));
    return;
  }
  /* As float32, whose last digit is 1 where anything was cut off, so that it is rounded once. */
#ifdef T0_REAL
  const float near = CAST(float, v);
  uint x = K_BITS(near);
  const K_C(T0) back = ABS(CAST(K_C(T0), near)), whole = ABS(v);
  if (back > whole) x = (x - 1u) | 1u;
  else if (back < whole) x = x | 1u;
#else
  const K_C(T0) two = CAST(K_C(T0), 2);
  uint rest = 0u, up = 127u;
  while (v / CAST(K_C(T0), 16777216) != CAST(K_C(T0), 0)) {
    rest |= v != v / two * two ? 1u : 0u;
    v = v / two;
    up++;
  }
  const uint x = K_BITS(K_FLOAT(K_BITS(CAST(float, v)) | rest) * K_FLOAT(up << 23));
#endif
  y[i] = PUT(u8, KIND == POWERS ? power_of(x, saturate, CAST(int, p.rounds))
                                : byte_of(x, saturate, BITS, MANTISSA, BIAS, MOST, INFINITE, NOT_A_NUMBER, KIND));
}
#endif
