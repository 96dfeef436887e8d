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
  const float y = clamp(x, -104.0, 90.0);
  const float n = floor(y * 1.44269504 + 0.5);
  precise float r = y - n * 0.693359375;
  r = r - n * -2.12194440e-4;
  float p = 1.98756915e-4;
  p = p * r + 1.39819995e-3;
  p = p * r + 8.33345192e-3;
  p = p * r + 4.16657962e-2;
  p = p * r + 1.66666657e-1;
  p = p * r + 0.5;
  return k_scale(p * r * r + r + 1.0, int(n) + more);
}

float k_exp(const float x) {
  return k_exp_by(x, 0);
}

// 3 ulp: without the 1 where that would cancel.
float k_expm1(const float x) {
  if (abs(x) > 0.35) return k_exp(x) - 1.0;
  if (abs(x) < 5e-8) return x;
  float p = 1.99004309e-4;
  p = p * x + 1.39345345e-3;
  p = p * x + 8.33329745e-3;
  p = p * x + 4.16664556e-2;
  p = p * x + 1.66666672e-1;
  p = p * x + 0.5;
  return p * x * x + x;
}

// x = 2^n (1 + f), 1 + f between the roots of 1/2 and 2; x is a positive number.
void k_split(const float x, out int n, out float f) {
  uint bits = floatBitsToUint(x);
  int more = 0;
  if (bits < 0x00800000u) { // below the normal range: 23 places up, by hand, as a device may flush
    const int places = 23 - findMSB(bits);
    bits <<= places;
    more = places;
  }
  const uint up = bits - 0x3f3504f3u; // the bits of the root of 1/2
  n = (int(up) >> 23) - more;
  f = uintBitsToFloat((up & 0x007fffffu) + 0x3f3504f3u) - 1.0;
}

// ln(2^n (1 + f)), 1 + f between the roots of 1/2 and 2.
float k_log_of(const int n, const float f) {
  float p = -8.10155869e-2;
  p = p * f + 1.27123073e-1;
  p = p * f - 1.29722387e-1;
  p = p * f + 1.42021745e-1;
  p = p * f - 1.66422471e-1;
  p = p * f + 2.00014681e-1;
  p = p * f - 2.50002980e-1;
  p = p * f + 3.33333284e-1;
  const float z = f * f;
  precise float low = p * f * z + float(n) * -2.12194440e-4;
  low = low - 0.5 * z;
  low = low + f;
  return low + float(n) * 0.693359375;
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
  if (k_is_nan(x) || abs(x) < 5e-8) return x;
  precise float u = 1.0 + x;
  if (u <= 0.0 || k_is_infinite(u)) return k_log(u);
  precise float lost = abs(x) < 1.0 ? x - (u - 1.0) : 1.0 - (u - x);
  int n;
  float f;
  k_split(u, n, f);
  return k_log_of(n, f + k_scale(lost, -n));
}

// 2 ulp.
float k_tanh(const float x) {
  const float a = abs(x);
  if (k_is_nan(x) || a < 2e-4) return x; // and so zeros keep their sign
  if (a < 0.625) {
    const float z = x * x;
    float p = 2.27270508e-3;
    p = p * z - 8.32640287e-3;
    p = p * z + 2.17636339e-2;
    p = p * z - 5.39586246e-2;
    p = p * z + 1.33333012e-1;
    p = p * z - 3.33333343e-1;
    return p * z * x + x;
  }
  const float y = 1.0 - 2.0 / (k_exp(2.0 * a) + 1.0);
  return x < 0.0 ? -y : y;
}

// 3 ulp: x times a polynomial of x^2 up to 1; 1 - e^-q(x) beyond, q being fitted to the logarithm of 1 - erf.
float k_erf(const float x) {
  const float a = abs(x);
  if (k_is_nan(x)) return x;
  if (a < 1.0) {
    const float z = x * x;
    float p = 7.88249745e-5;
    p = p * z - 8.01885501e-4;
    p = p * z + 5.18931216e-3;
    p = p * z - 2.68543288e-2;
    p = p * z + 1.12835974e-1;
    p = p * z - 3.76126260e-1;
    p = p * z + 1.12837911;
    return p * x;
  }
  const float t = min(a, 4.0);
  float q = -1.61406160e-6;
  q = q * t + 4.55906229e-5;
  q = q * t - 5.92769531e-4;
  q = q * t + 4.74022236e-3;
  q = q * t - 2.63647176e-2;
  q = q * t + 1.09978244e-1;
  q = q * t + 6.31937087e-1;
  q = q * t + 1.13016665;
  q = q * t - 3.03212961e-4;
  const float y = 1.0 - k_exp(-q);
  return x < 0.0 ? -y : y;
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
  const float d = 2.0 + f;
  precise float d_low = f - (d - 2.0);
  precise float s = k_upper(f / d);
  precise float d_upper = k_upper(d);
  precise float s_low = ((f - s * d_upper) - s * ((d - d_upper) + d_low)) / d;
  const float full = s + s_low, z = full * full;
  float p = 1.16670951e-1;
  p = p * z + 1.42753363e-1;
  p = p * z + 2.00000614e-1;
  p = p * z + 3.33333343e-1;
  const float c = 2.884765625, c_low = 6.24456778e-4; // 2 / ln 2 in its upper 12 bits and the rest
  precise float high = s * c;
  precise float low = s * c_low + (s_low + p * z * full) * 2.88539008;
  precise float sum = float(n) + high;
  precise float rest = (float(n) - sum) + high;
  low = low + rest;
  // y times that, and 2 to it
  const float guess = sum * y, top = k_upper(sum), y_top = k_upper(y);
  if (abs(guess) > 160.0) return guess > 0.0 ? K_INFINITY : 0.0;
  precise float product = top * y_top;
  precise float more = (sum - top + low) * y + top * (y - y_top);
  const float whole = floor(product + more + 0.5);
  precise float r = product - whole;
  r = r + more;
  float e = 1.53037017e-5;
  e = e * r + 1.54614477e-4;
  e = e * r + 1.33334787e-3;
  e = e * r + 9.61805694e-3;
  e = e * r + 5.55041097e-2;
  e = e * r + 2.40226507e-1;
  e = e * r + 6.93147182e-1;
  return k_scale(e * r + 1.0, int(whole));
}

// As C's pow for each special case, and as near as k_power_of elsewhere.
float k_pow(const float x, const float y) {
  const float a = abs(x), b = abs(y);
  if (y == 0.0 || x == 1.0) return 1.0;
  if (k_is_nan(x) || k_is_nan(y)) return K_NAN;
  const bool whole = b >= 8388608.0 || floor(b) == b; // from 2^23 on all are
  const bool odd = b < 16777216.0 && whole && (uint(b) & 1u) != 0u;
  const bool negative = floatBitsToInt(x) < 0;
  float z;
  if (k_is_infinite(y)) return a == 1.0 ? 1.0 : (a > 1.0) == (y > 0.0) ? K_INFINITY : 0.0;
  if (a == 0.0 || k_is_infinite(x)) z = (a == 0.0) == (y > 0.0) ? 0.0 : K_INFINITY;
  else if (negative && !whole) return K_NAN;
  else z = a == 1.0 ? 1.0 : k_power_of(a, y);
  return negative && odd ? -z : z;
}

// ---------------------------------------------------------------- whole numbers and remainders

// To the nearest whole number, ties to the even one: beyond 2^23 a sum has no room for a fraction.
float k_rint(const float x) {
  const uint sign = floatBitsToUint(x) & 0x80000000u;
  const float a = abs(x);
  if (!(a < 8388608.0)) return x;
  precise float y = a + 8388608.0;
  y = y - 8388608.0;
  return uintBitsToFloat(floatBitsToUint(y) | sign);
}

// The bits of a positive number as m 2^e: m has 24 bits at most, and fewer below the normal range.
uint k_mantissa(const uint bits, out int e) {
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
  if (k_is_nan(x) || a < 2e-4) return x;
  if (a < 1.0) {
    const float z = x * x;
    float p = 2.81743974e-6;
    p = p * z + 1.98360663e-4;
    p = p * z + 8.33335053e-3;
    p = p * z + 1.66666672e-1;
    return p * z * x + x;
  }
  const float h = k_exp_by(a, -1), y = h - 0.25 / h;
  return x < 0.0 ? -y : y;
}

// 3 ulp.
float k_cosh(const float x) {
  const float h = k_exp_by(abs(x), -1);
  return h + 0.25 / h;
}

// 3 ulp. Beyond 2^24 the root of x^2 + 1 is |x|.
float k_asinh(const float x) {
  const float a = abs(x);
  if (k_is_nan(x) || a < 2e-4) return x;
  float y;
  if (a < 0.5) {
    const float z = x * x;
    float p = 9.17537138e-3;
    p = p * z - 1.99856218e-2;
    p = p * z + 3.00144963e-2;
    p = p * z - 4.46134433e-2;
    p = p * z + 7.49989003e-2;
    p = p * z - 1.66666657e-1;
    return p * z * x + x;
  }
  if (a < 16777216.0) y = k_log1p(a + a * a / (1.0 + sqrt(a * a + 1.0)));
  else y = k_log(a) + 0.693147182;
  return x < 0.0 ? -y : y;
}

// 3 ulp.
float k_acosh(const float x) {
  if (k_is_nan(x)) return x;
  if (x < 1.0) return K_NAN;
  if (x >= 16777216.0) return k_log(x) + 0.693147182;
  const float t = x - 1.0;
  return k_log1p(t + sqrt(2.0 * t + t * t));
}

// 3 ulp.
float k_atanh(const float x) {
  const float a = abs(x);
  if (k_is_nan(x) || a < 2e-4) return x;
  if (a > 1.0) return K_NAN;
  if (a < 0.5) {
    const float z = x * x;
    float p = 1.76457793e-1;
    p = p * z + 2.40764488e-2;
    p = p * z + 1.02977514e-1;
    p = p * z + 1.09646767e-1;
    p = p * z + 1.42950639e-1;
    p = p * z + 1.99997187e-1;
    p = p * z + 3.33333373e-1;
    return p * z * x + x;
  }
  const float y = a == 1.0 ? K_INFINITY : 0.5 * k_log1p(2.0 * a / (1.0 - a));
  return x < 0.0 ? -y : y;
}
