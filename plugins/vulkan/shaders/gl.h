// The functions of real numbers that operators need, in float32, from additions and products: Vulkan leaves the accuracy
// of its own exp and pow loose, says nothing of negative bases, and has no erf. The polynomials are Chebyshev fits made
// for these ranges; each function says what it is within, in units in the last place (ulp), where a device neither
// flushes nor reorders. NaN comes through.

#define K_INFINITY uintBitsToFloat(0x7f800000u)
#define K_NAN uintBitsToFloat(0x7fc00000u)

// x * 2^n, -280 < n < 260, by two factors, so that results below the normal range come out right.
float k_scale(const float x, const int n) {
  const int half_n = n / 2;
  return x * intBitsToFloat((half_n + 127) << 23) * intBitsToFloat((n - half_n + 127) << 23);
}

// e^x 2^more, for more of -1 or 0: 2 ulp. x = n ln 2 + r with |r| <= ln 2 / 2.
float k_exp_by(const float x, const int more) {
  if (k_is_nan(x)) return x;
  const float y = clamp(x, -104.0f, 90.0f);
  const float n = floor(y * 1.44269504f + 0.5f);
  precise float r = y - n * 0.693359375f;
  r = r - n * -2.12194440e-4f;
  float p = 1.98756915e-4f;
  p = p * r + 1.39819995e-3f;
  p = p * r + 8.33345192e-3f;
  p = p * r + 4.16657962e-2f;
  p = p * r + 1.66666657e-1f;
  p = p * r + 0.5f;
  return k_scale(p * r * r + r + 1.0f, int(n) + more);
}

float k_exp(const float x) {
  return k_exp_by(x, 0);
}

// 3 ulp: without the 1 where that would cancel.
float k_expm1(const float x) {
  if (abs(x) > 0.35f) return k_exp(x) - 1.0f;
  if (abs(x) < 5e-8f) return x;
  float p = 1.99004309e-4f;
  p = p * x + 1.39345345e-3f;
  p = p * x + 8.33329745e-3f;
  p = p * x + 4.16664556e-2f;
  p = p * x + 1.66666672e-1f;
  p = p * x + 0.5f;
  return p * x * x + x;
}

// x = 2^n (1 + f), 1 + f between the roots of 1/2 and 2; x is a positive number.
void k_split(const float x, int &n, float &f) {
  uint bits = floatBitsToUint(x);
  int more = 0;
  if (bits < 0x00800000u) { // below the normal range: 23 places up, by hand, as a device may flush
    const int places = 23 - findMSB(bits);
    bits <<= places;
    more = places;
  }
  const uint up = bits - 0x3f3504f3u; // the bits of the root of 1/2
  n = (int(up) >> 23) - more;
  f = uintBitsToFloat((up & 0x007fffffu) + 0x3f3504f3u) - 1.0f;
}

// ln(2^n (1 + f)), 1 + f between the roots of 1/2 and 2.
float k_log_of(const int n, const float f) {
  float p = -8.10155869e-2f;
  p = p * f + 1.27123073e-1f;
  p = p * f - 1.29722387e-1f;
  p = p * f + 1.42021745e-1f;
  p = p * f - 1.66422471e-1f;
  p = p * f + 2.00014681e-1f;
  p = p * f - 2.50002980e-1f;
  p = p * f + 3.33333284e-1f;
  const float z = f * f;
  precise float low = p * f * z + float(n) * -2.12194440e-4f;
  low = low - 0.5f * z;
  low = low + f;
  return low + float(n) * 0.693359375f;
}

// 1 ulp.
float k_log(const float x) {
  if (k_is_nan(x) || floatBitsToUint(x) == 0x7f800000u) return x;
  if ((floatBitsToUint(x) & 0x7fffffffu) == 0u) return -K_INFINITY;
  if (floatBitsToInt(x) < 0) return K_NAN;
  int n;
  float f;
  k_split(x, n, f);
  return k_log_of(n, f);
}

// ln(1 + x), 2 ulp: what rounding took from 1 + x is added to f, which is small where it counts.
float k_log1p(const float x) {
  if (k_is_nan(x) || abs(x) < 5e-8f) return x;
  precise float u = 1.0f + x;
  if (u <= 0.0f || k_is_infinite(u)) return k_log(u);
  precise float lost = abs(x) < 1.0f ? x - (u - 1.0f) : 1.0f - (u - x);
  int n;
  float f;
  k_split(u, n, f);
  return k_log_of(n, f + k_scale(lost, -n));
}

// 2 ulp.
float k_tanh(const float x) {
  const float a = abs(x);
  if (k_is_nan(x) || a < 2e-4f) return x; // and so zeros keep their sign
  if (a < 0.625f) {
    const float z = x * x;
    float p = 2.27270508e-3f;
    p = p * z - 8.32640287e-3f;
    p = p * z + 2.17636339e-2f;
    p = p * z - 5.39586246e-2f;
    p = p * z + 1.33333012e-1f;
    p = p * z - 3.33333343e-1f;
    return p * z * x + x;
  }
  const float y = 1.0f - 2.0f / (k_exp(2.0f * a) + 1.0f);
  return x < 0.0f ? -y : y;
}

// 3 ulp: x times a polynomial of x^2 up to 1; 1 - e^-q(x) beyond, q being fitted to the logarithm of 1 - erf.
float k_erf(const float x) {
  const float a = abs(x);
  if (k_is_nan(x)) return x;
  if (a < 1.0f) {
    const float z = x * x;
    float p = 7.88249745e-5f;
    p = p * z - 8.01885501e-4f;
    p = p * z + 5.18931216e-3f;
    p = p * z - 2.68543288e-2f;
    p = p * z + 1.12835974e-1f;
    p = p * z - 3.76126260e-1f;
    p = p * z + 1.12837911f;
    return p * x;
  }
  const float t = min(a, 4.0f);
  float q = -1.61406160e-6f;
  q = q * t + 4.55906229e-5f;
  q = q * t - 5.92769531e-4f;
  q = q * t + 4.74022236e-3f;
  q = q * t - 2.63647176e-2f;
  q = q * t + 1.09978244e-1f;
  q = q * t + 6.31937087e-1f;
  q = q * t + 1.13016665f;
  q = q * t - 3.03212961e-4f;
  const float y = 1.0f - k_exp(-q);
  return x < 0.0f ? -y : y;
}

// The upper 12 bits of a number's 24, so that products of two such are exact.
float k_upper(const float x) {
  return uintBitsToFloat(floatBitsToUint(x) & 0xfffff000u);
}

// |x|^y for a positive finite x that is not 1 and a finite y: 2 ulp. The logarithm to base 2 is the sum of high and low,
// since an error in it counts y times.
float k_power_of(const float x, const float y) {
  int n;
  float f;
  k_split(x, n, f);
  // s = f / (2 + f), with what rounding took from it; ln(1 + f) = 2 (s + s^3/3 + s^5/5 ...)
  const float d = 2.0f + f;
  precise float d_low = f - (d - 2.0f);
  precise float s = k_upper(f / d);
  precise float d_upper = k_upper(d);
  precise float s_low = ((f - s * d_upper) - s * ((d - d_upper) + d_low)) / d;
  const float full = s + s_low, z = full * full;
  float p = 1.16670951e-1f;
  p = p * z + 1.42753363e-1f;
  p = p * z + 2.00000614e-1f;
  p = p * z + 3.33333343e-1f;
  const float c = 2.884765625f, c_low = 6.24456778e-4f; // 2 / ln 2 in its upper 12 bits and the rest
  precise float high = s * c;
  precise float low = s * c_low + (s_low + p * z * full) * 2.88539008f;
  precise float sum = float(n) + high;
  precise float rest = (float(n) - sum) + high;
  low = low + rest;
  // y times that, and 2 to it
  const float guess = sum * y, top = k_upper(sum), y_top = k_upper(y);
  if (abs(guess) > 160.0f) return guess > 0.0f ? K_INFINITY : 0.0f;
  precise float product = top * y_top;
  precise float more = (sum - top + low) * y + top * (y - y_top);
  const float whole = floor(product + more + 0.5f);
  precise float r = product - whole;
  r = r + more;
  float e = 1.53037017e-5f;
  e = e * r + 1.54614477e-4f;
  e = e * r + 1.33334787e-3f;
  e = e * r + 9.61805694e-3f;
  e = e * r + 5.55041097e-2f;
  e = e * r + 2.40226507e-1f;
  e = e * r + 6.93147182e-1f;
  return k_scale(e * r + 1.0f, int(whole));
}

// As C's pow for each special case, and as near as k_power_of elsewhere.
float k_pow(const float x, const float y) {
  const float a = abs(x), b = abs(y);
  if (y == 0.0f || x == 1.0f) return 1.0f;
  if (k_is_nan(x) || k_is_nan(y)) return K_NAN;
  const bool whole = b >= 8388608.0f || floor(b) == b; // from 2^23 on all are
  const bool odd = b < 16777216.0f && whole && (uint(b) & 1u) != 0u;
  const bool negative = floatBitsToInt(x) < 0;
  float z;
  if (k_is_infinite(y)) return a == 1.0f ? 1.0f : (a > 1.0f) == (y > 0.0f) ? K_INFINITY : 0.0f;
  if (a == 0.0f || k_is_infinite(x)) z = (a == 0.0f) == (y > 0.0f) ? 0.0f : K_INFINITY;
  else if (negative && !whole) return K_NAN;
  else z = a == 1.0f ? 1.0f : k_power_of(a, y);
  return negative && odd ? -z : z;
}

// ---------------------------------------------------------------- whole numbers and remainders

// To the nearest whole number, ties to the even one: beyond 2^23 a sum has no room for a fraction.
float k_rint(const float x) {
  const uint sign = floatBitsToUint(x) & 0x80000000u;
  const float a = abs(x);
  if (!(a < 8388608.0f)) return x;
  precise float y = a + 8388608.0f;
  y = y - 8388608.0f;
  return uintBitsToFloat(floatBitsToUint(y) | sign);
}

// The bits of a positive number as m 2^e: m has 24 bits at most, and fewer below the normal range.
uint k_mantissa(const uint bits, int &e) {
  const uint size = bits >> 23;
  e = size == 0u ? 1 : int(size);
  return size == 0u ? bits : bits & 0x007fffffu | 0x00800000u;
}

// As C's fmod, which is exact: long division of the mantissas, eight bits at a time.
float k_fmod(const float x, const float y) {
  const uint a = floatBitsToUint(x) & 0x7fffffffu, b = floatBitsToUint(y) & 0x7fffffffu;
  if (a >= 0x7f800000u || b > 0x7f800000u || b == 0u) return K_NAN;
  if (a < b) return x;
  int from, to;
  uint m = k_mantissa(a, from);
  const uint by = k_mantissa(b, to);
  m %= by;
  for (int left = from - to; left > 0 && m != 0u; left -= 8) m = (m << min(left, 8)) % by;
  const uint sign = floatBitsToUint(x) & 0x80000000u;
  if (m == 0u) return uintBitsToFloat(sign);
  // m 2^to, m < by: as many places up as there is room for
  const int places = min(23 - findMSB(m), to - 1);
  m <<= places;
  const uint size = (m & 0x00800000u) != 0u ? uint(to - places) : 0u;
  return uintBitsToFloat(sign | size << 23 | m & 0x007fffffu);
}

// ---------------------------------------------------------------- hyperbolic functions

// 3 ulp: as x + x^3 q(x^2) below 1, where the exponentials would cancel.
float k_sinh(const float x) {
  const float a = abs(x);
  if (k_is_nan(x) || a < 2e-4f) return x;
  if (a < 1.0f) {
    const float z = x * x;
    float p = 2.81743974e-6f;
    p = p * z + 1.98360663e-4f;
    p = p * z + 8.33335053e-3f;
    p = p * z + 1.66666672e-1f;
    return p * z * x + x;
  }
  const float h = k_exp_by(a, -1), y = h - 0.25f / h;
  return x < 0.0f ? -y : y;
}

// 3 ulp.
float k_cosh(const float x) {
  const float h = k_exp_by(abs(x), -1);
  return h + 0.25f / h;
}

// 3 ulp. Beyond 2^24 the root of x^2 + 1 is |x|.
float k_asinh(const float x) {
  const float a = abs(x);
  if (k_is_nan(x) || a < 2e-4f) return x;
  float y;
  if (a < 0.5f) {
    const float z = x * x;
    float p = 9.17537138e-3f;
    p = p * z - 1.99856218e-2f;
    p = p * z + 3.00144963e-2f;
    p = p * z - 4.46134433e-2f;
    p = p * z + 7.49989003e-2f;
    p = p * z - 1.66666657e-1f;
    return p * z * x + x;
  }
  if (a < 16777216.0f) y = k_log1p(a + a * a / (1.0f + sqrt(a * a + 1.0f)));
  else y = k_log(a) + 0.693147182f;
  return x < 0.0f ? -y : y;
}

// 3 ulp.
float k_acosh(const float x) {
  if (k_is_nan(x)) return x;
  if (x < 1.0f) return K_NAN;
  if (x >= 16777216.0f) return k_log(x) + 0.693147182f;
  const float t = x - 1.0f;
  return k_log1p(t + sqrt(2.0f * t + t * t));
}

// 3 ulp.
float k_atanh(const float x) {
  const float a = abs(x);
  if (k_is_nan(x) || a < 2e-4f) return x;
  if (a > 1.0f) return K_NAN;
  if (a < 0.5f) {
    const float z = x * x;
    float p = 1.76457793e-1f;
    p = p * z + 2.40764488e-2f;
    p = p * z + 1.02977514e-1f;
    p = p * z + 1.09646767e-1f;
    p = p * z + 1.42950639e-1f;
    p = p * z + 1.99997187e-1f;
    p = p * z + 3.33333373e-1f;
    return p * z * x + x;
  }
  const float y = a == 1.0f ? K_INFINITY : 0.5f * k_log1p(2.0f * a / (1.0f - a));
  return x < 0.0f ? -y : y;
}
// The functions of angles, in float32, and their inverses, for math.glsl, which is included first. Every number has its own
// angle: numbers are reduced by quarter turns exactly (Payne and Hanek, Radian reduction for trigonometric functions,
// SIGNUM 18, 1983), in integers. The polynomials are fits made for these ranges.

// 2/pi after the point, behind 32 zeros.
const uint k_quarters[8] = {0u,          0xa2f9836eu, 0x4e441529u, 0xfc2757d1u,
                            0xf534ddc0u, 0xdb629599u, 0x3c439041u, 0xfe5163abu};

// 32 bits of 2/pi from place at on.
uint k_quarters_at(const int at) {
  const int word = at >> 5, shift = at & 31;
  return shift == 0 ? k_quarters[word] : k_quarters[word] << shift | k_quarters[word + 1] >> (32 - shift);
}

// x = n pi/2 + r with |r| <= pi/4; n counts modulo 4. x is finite.
float k_reduce(const float x, int &n) {
  const uint bits = floatBitsToUint(x) & 0x7fffffffu;
  n = 0;
  if (bits <= 0x3f490fdau) return x; // pi/4
  // x is m 2^s; of m 2^s 2/pi the bits of 2 and of less, since those of 4 and of more are whole turns
  const uint m = bits & 0x007fffffu | 0x00800000u;
  const int at = int(bits >> 23) - 150 + 30;
  uint high, low, more, last;
  umulExtended(m, k_quarters_at(at + 32), high, low);
  umulExtended(m, k_quarters_at(at + 64), more, last);
  uint carry;
  low = uaddCarry(low, more, carry);
  high += m * k_quarters_at(at) + carry;
  const uint whole = high + 0x20000000u >> 30;
  high -= whole << 30;
  bool negative = int(high) < 0;
  if (negative) { // minus the 64 bits
    low = ~low + 1u;
    high = ~high + (low == 0u ? 1u : 0u);
  }
  // the upper 32 bits that count, times pi/2, which is 0xc90fdaa2 2^-31
  const int places = high != 0u ? 31 - findMSB(high) : 63 - findMSB(low | 1u);
  const uint top = places == 0 ? high : places < 32 ? high << places | low >> (32 - places) : low << (places - 32);
  umulExtended(top, 0xc90fdaa2u, high, low);
  // top is the fraction times 2^(30 + places)
  const float r = float(high) * intBitsToFloat((127 - 29 - places) << 23);
  const bool below = floatBitsToInt(x) < 0;
  n = int(below ? 4u - whole & 3u : whole & 3u);
  return negative != below ? -r : r;
}

// Of |r| <= pi/4.
float k_sin_of(const float r) {
  const float z = r * r;
  float p = 2.71831163e-6f;
  p = p * z - 1.98393347e-4f;
  p = p * z + 8.33332911e-3f;
  p = p * z - 1.66666672e-1f;
  return p * z * r + r;
}

float k_cos_of(const float r) {
  const float z = r * r;
  float p = 2.44384501e-5f;
  p = p * z - 1.38873677e-3f;
  p = p * z + 4.16666456e-2f;
  return p * z * z - 0.5f * z + 1.0f;
}

// 2 ulp.
float k_sin(const float x) {
  int n;
  if (k_is_nan(x) || k_is_infinite(x)) return K_NAN;
  const float r = k_reduce(x, n);
  if (abs(r) < 2e-4f && n == 0) return r; // and so zeros keep their sign
  const float y = (n & 1) != 0 ? k_cos_of(r) : k_sin_of(r);
  return (n & 2) != 0 ? -y : y;
}

// 2 ulp.
float k_cos(const float x) {
  int n;
  if (k_is_nan(x) || k_is_infinite(x)) return K_NAN;
  const float r = k_reduce(x, n);
  const float y = (n & 1) != 0 ? k_sin_of(r) : k_cos_of(r);
  return (n + 1 & 2) != 0 ? -y : y;
}

// 4 ulp.
float k_tan(const float x) {
  int n;
  if (k_is_nan(x) || k_is_infinite(x)) return K_NAN;
  const float r = k_reduce(x, n);
  if (abs(r) < 2e-4f && n == 0) return r;
  const float s = k_sin_of(r), c = k_cos_of(r);
  return (n & 1) != 0 ? -c / s : s / c;
}

// The arc sine of |x| <= 1/2, z being x^2.
float k_asin_of(const float x, const float z) {
  float p = 3.75651866e-2f;
  p = p * z + 1.44026158e-2f;
  p = p * z + 3.18176076e-2f;
  p = p * z + 4.45157215e-2f;
  p = p * z + 7.50051066e-2f;
  p = p * z + 1.66666597e-1f;
  return p * z * x + x;
}

// 3 ulp. asin x = pi/2 - 2 asin(root((1 - x) / 2)).
float k_asin(const float x) {
  const float a = abs(x);
  if (k_is_nan(x) || a < 2e-4f) return x;
  if (a > 1.0f) return K_NAN;
  if (a <= 0.5f) return k_asin_of(x, x * x);
  const float z = 0.5f - 0.5f * a, y = 1.57079637f - 2.0f * k_asin_of(sqrt(z), z);
  return x < 0.0f ? -y : y;
}

// 3 ulp.
float k_acos(const float x) {
  const float a = abs(x);
  if (k_is_nan(x)) return x;
  if (a > 1.0f) return K_NAN;
  if (a <= 0.5f) return 1.57079637f - k_asin_of(x, x * x);
  const float z = 0.5f - 0.5f * a, y = 2.0f * k_asin_of(sqrt(z), z);
  return x < 0.0f ? 3.14159274f - y : y;
}

// 2 ulp: with t of 1, -1/x or (x - 1) / (x + 1), |t| below the tangent of pi/8.
float k_atan(const float x) {
  const float a = abs(x);
  if (k_is_nan(x) || a < 2e-4f) return x;
  float t = a, from = 0.0f;
  if (a > 2.41421354f) {
    t = -1.0f / a;
    from = 1.57079637f;
  } else if (a > 0.414213562f) {
    t = (a - 1.0f) / (a + 1.0f);
    from = 0.785398163f;
  }
  const float z = t * t;
  float p = -6.08344562e-2f;
  p = p * z + 1.05959982e-1f;
  p = p * z - 1.42438486e-1f;
  p = p * z + 1.99984893e-1f;
  p = p * z - 3.33333164e-1f;
  const float y = from + (p * z * t + t);
  return x < 0.0f ? -y : y;
}
