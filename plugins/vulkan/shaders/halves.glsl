// float16 and bfloat16 as bits, which are computed with in float32: by hand, since a device need not have the types and may
// round or flush in its own conversions. To a half: to the nearest, ties to the even one; NaN comes through.

float k_of_half(const uint bits) {
  const uint sign = (bits & 0x8000u) << 16, size = bits & 0x7fffu;
  if (size >= 0x7c00u) return uintBitsToFloat(sign | 0x7f800000u | (size & 0x03ffu) << 13);
  const float x = size < 0x0400u ? float(size) * 5.9604644775390625e-8 : uintBitsToFloat((size << 13) + 0x38000000u);
  return uintBitsToFloat(floatBitsToUint(x) | sign);
}

uint k_to_half(const float x) {
  const uint bits = floatBitsToUint(x) & 0x7fffffffu, sign = floatBitsToUint(x) >> 16 & 0x8000u;
  if (bits > 0x7f800000u) return sign | 0x7e00u;
  if (bits >= 0x477ff000u) return sign | 0x7c00u; // 65520, which lies between the largest and infinity
  if (bits >= 0x38800000u) return sign | bits + 0xfffu + (bits >> 13 & 1u) - 0x38000000u >> 13;
  // below the normal range: m 2^(e - 150) in units of 2^-24
  const int down = 126 - int(bits >> 23);
  if (down > 24) return sign;
  const uint m = bits & 0x007fffffu | 0x00800000u, y = m >> down, rest = m << 32 - down;
  return sign | y + (rest > 0x80000000u || rest == 0x80000000u && (y & 1u) != 0u ? 1u : 0u);
}

float k_of_bfloat16(const uint bits) {
  return uintBitsToFloat(bits << 16);
}

uint k_to_bfloat16(const float x) {
  const uint bits = floatBitsToUint(x);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return bits >> 16 | 0x0040u;
  return bits + 0x7fffu + (bits >> 16 & 1u) >> 16;
}
