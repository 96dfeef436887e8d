// The functions of angles, in float32, and their inverses, for math.glsl, which is included first. Every number has its own
// angle: numbers are reduced by quarter turns exactly (Payne and Hanek, Radian reduction for trigonometric functions,
// SIGNUM 18, 1983), in integers. The polynomials are fits made for these ranges.

// 2/pi after the point, behind 32 zeros.
const uint k_quarters[8] = uint[8](0u, 0xa2f9836eu, 0x4e441529u, 0xfc2757d1u, 0xf534ddc0u, 0xdb629599u, 0x3c439041u, 0xfe5163abu);

// 32 bits of 2/pi from place at on.
uint k_quarters_at(const int at) {
  const int word = at >> 5, shift = at & 31;
  return shift == 0 ? k_quarters[word] : k_quarters[word] << shift | k_quarters[word + 1] >> (32 - shift);
}

// x = n pi/2 + r with |r| <= pi/4; n counts modulo 4. x is finite.
float k_reduce(const float x, out int n) {
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
  float p = 2.71831163e-6;
  p = p * z - 1.98393347e-4;
  p = p * z + 8.33332911e-3;
  p = p * z - 1.66666672e-1;
  return p * z * r + r;
}

float k_cos_of(const float r) {
  const float z = r * r;
  float p = 2.44384501e-5;
  p = p * z - 1.38873677e-3;
  p = p * z + 4.16666456e-2;
  return p * z * z - 0.5 * z + 1.0;
}

// 2 ulp.
float k_sin(const float x) {
  int n;
  if (k_is_nan(x) || k_is_infinite(x)) return K_NAN;
  const float r = k_reduce(x, n);
  if (abs(r) < 2e-4 && n == 0) return r; // and so zeros keep their sign
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
  if (abs(r) < 2e-4 && n == 0) return r;
  const float s = k_sin_of(r), c = k_cos_of(r);
  return (n & 1) != 0 ? -c / s : s / c;
}

// The arc sine of |x| <= 1/2, z being x^2.
float k_asin_of(const float x, const float z) {
  float p = 3.75651866e-2;
  p = p * z + 1.44026158e-2;
  p = p * z + 3.18176076e-2;
  p = p * z + 4.45157215e-2;
  p = p * z + 7.50051066e-2;
  p = p * z + 1.66666597e-1;
  return p * z * x + x;
}

// 3 ulp. asin x = pi/2 - 2 asin(root((1 - x) / 2)).
float k_asin(const float x) {
  const float a = abs(x);
  if (k_is_nan(x) || a < 2e-4) return x;
  if (a > 1.0) return K_NAN;
  if (a <= 0.5) return k_asin_of(x, x * x);
  const float z = 0.5 - 0.5 * a, y = 1.57079637 - 2.0 * k_asin_of(sqrt(z), z);
  return x < 0.0 ? -y : y;
}

// 3 ulp.
float k_acos(const float x) {
  const float a = abs(x);
  if (k_is_nan(x)) return x;
  if (a > 1.0) return K_NAN;
  if (a <= 0.5) return 1.57079637 - k_asin_of(x, x * x);
  const float z = 0.5 - 0.5 * a, y = 2.0 * k_asin_of(sqrt(z), z);
  return x < 0.0 ? 3.14159274 - y : y;
}

// 2 ulp: with t of 1, -1/x or (x - 1) / (x + 1), |t| below the tangent of pi/8.
float k_atan(const float x) {
  const float a = abs(x);
  if (k_is_nan(x) || a < 2e-4) return x;
  float t = a, from = 0.0;
  if (a > 2.41421354) {
    t = -1.0 / a;
    from = 1.57079637;
  } else if (a > 0.414213562) {
    t = (a - 1.0) / (a + 1.0);
    from = 0.785398163;
  }
  const float z = t * t;
  float p = -6.08344562e-2;
  p = p * z + 1.05959982e-1;
  p = p * z - 1.42438486e-1;
  p = p * z + 1.99984893e-1;
  p = p * z - 3.33333164e-1;
  const float y = from + (p * z * t + t);
  return x < 0.0 ? -y : y;
}
