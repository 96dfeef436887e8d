// The functions of math.glsl in float64, which GLSL lacks: from additions, products and the bits of a number. Within 2 ulp, and
// k_pow within 8. NaN comes through.

bool k_nan64(const double x) {
  const uvec2 bits = unpackDouble2x32(x);
  return (bits.y & 0x7fffffffu) > 0x7ff00000u || ((bits.y & 0x7fffffffu) == 0x7ff00000u && bits.x != 0u);
}

// 2^n of the normal range.
double k_two(const int n) {
  return packDouble2x32(uvec2(0u, uint(n + 1023) << 20));
}

// x = n ln 2 + r with |r| <= ln 2 / 2; e^r by its series.
double k_exp(const double x) {
  if (k_nan64(x)) return x;
  const double y = clamp(x, -746.0lf, 710.0lf);
  const double whole = floor(y * 1.4426950408889634lf + 0.5lf);
  precise double r = y - whole * 6.93147180369123816490e-01lf;
  r = r - whole * 1.90821492927058770002e-10lf;
  double p = 1.0lf;
  [[unroll]] for (int k = 13; k > 2; k--) p = p * r / double(k) + 1.0lf;
  precise double e = 1.0lf + (r + 0.5lf * r * r * p);
  const int n = int(whole), half_n = n / 2;
  return e * k_two(half_n) * k_two(n - half_n);
}

// x = 2^n (1 + f), 1 + f between the roots of 1/2 and 2; s = f / (2 + f).
double k_log(const double x) {
  if (k_nan64(x)) return x;
  if (x == 0.0lf) return double(-K_INFINITY);
  if (x < 0.0lf) return double(K_NAN);
  const bool small = unpackDouble2x32(x).y < 0x00100000u;
  const uvec2 bits = unpackDouble2x32(small ? x * 18014398509481984.0lf : x);
  if (bits.y >= 0x7ff00000u) return x;
  const uint up = bits.y - 0x3fe6a09eu;
  const double n = double((int(up) >> 20) - (small ? 54 : 0));
  const double f = packDouble2x32(uvec2(bits.x, (up & 0x000fffffu) + 0x3fe6a09eu)) - 1.0lf;
  const double s = f / (2.0lf + f), z = s * s, square = 0.5lf * f * f;
  double p = 1.479819860511658591e-01lf;
  p = p * z + 1.531383769920937332e-01lf;
  p = p * z + 1.818357216161805012e-01lf;
  p = p * z + 2.222219843214978396e-01lf;
  p = p * z + 2.857142874366239149e-01lf;
  p = p * z + 3.999999999940941908e-01lf;
  p = p * z + 6.666666666666735130e-01lf;
  precise double low = s * (square + p * z) + n * 1.90821492927058770002e-10lf;
  low = square - low;
  low = low - f;
  return n * 6.93147180369123816490e-01lf - low;
}

// What rounding does to e^x and to 1 + x cancels in the quotients.
double k_expm1(const double x) {
  if (k_nan64(x) || abs(x) < 1e-17lf) return x;
  precise double u = k_exp(x);
  if (u == 1.0lf) return x;
  precise double less = u - 1.0lf;
  if (less == -1.0lf || u == double(K_INFINITY)) return less;
  return less * (x / k_log(u));
}

double k_log1p(const double x) {
  precise double u = 1.0lf + x;
  if (k_nan64(x) || u == 1.0lf) return x;
  if (u <= 0.0lf || u == double(K_INFINITY)) return k_log(u);
  precise double less = u - 1.0lf;
  return k_log(u) * (x / less);
}

double k_tanh(const double x) {
  const double a = abs(x);
  if (k_nan64(x) || a < 1e-10lf) return x;
  const double e = k_expm1(2.0lf * min(a, 20.0lf)), y = e / (e + 2.0lf);
  return x < 0.0lf ? -y : y;
}

// The upper 26 bits of a number's 53, so that products of two such are exact.
double k_upper64(const double x) {
  const uvec2 bits = unpackDouble2x32(x);
  return packDouble2x32(uvec2(bits.x & 0xf8000000u, bits.y));
}

// x^y for a positive finite x that is not 1 and a finite y. The logarithm to base 2 is the sum of high and low, since an error
// in it counts y times.
double k_power_of(const double x, const double y) {
  const bool small = unpackDouble2x32(x).y < 0x00100000u;
  const uvec2 bits = unpackDouble2x32(small ? x * 18014398509481984.0lf : x);
  const uint up = bits.y - 0x3fe6a09eu;
  const double n = double((int(up) >> 20) - (small ? 54 : 0));
  const double f = packDouble2x32(uvec2(bits.x, (up & 0x000fffffu) + 0x3fe6a09eu)) - 1.0lf;
  // s = f / (2 + f), with what rounding took from it; ln(1 + f) = 2 (s + s^3/3 + s^5/5 ...)
  precise double d = 2.0lf + f;
  precise double d_low = f - (d - 2.0lf);
  precise double s = k_upper64(f / d);
  precise double d_upper = k_upper64(d);
  precise double s_low = ((f - s * d_upper) - s * ((d - d_upper) + d_low)) / d;
  const double full = s + s_low, z = full * full;
  double p = 1.0lf / 25.0lf;
  [[unroll]] for (int k = 23; k > 2; k -= 2) p = p * z + 1.0lf / double(k);
  const double c = 2.885390043258667lf, c_low = 3.85192598225323494e-8lf; // 2 / ln 2 in its upper 26 bits and the rest
  precise double high = s * c;
  precise double low = s * c_low + (s_low + p * z * full) * 2.88539008177792681lf;
  precise double sum = n + high;
  precise double rest = (n - sum) + high;
  low = low + rest;
  // y times that, and 2 to it
  const double guess = sum * y, top = k_upper64(sum), y_top = k_upper64(y);
  if (abs(guess) > 1100.0lf) return guess > 0.0lf ? double(K_INFINITY) : 0.0lf;
  precise double product = top * y_top;
  precise double more = (sum - top + low) * y + top * (y - y_top);
  const double whole = floor(product + more + 0.5lf);
  precise double r = product - whole;
  r = (r + more) * 0.693147180559945309lf;
  double e = 1.0lf;
  [[unroll]] for (int k = 13; k > 2; k--) e = e * r / double(k) + 1.0lf;
  precise double power = 1.0lf + (r + 0.5lf * r * r * e);
  const int times = int(whole), half_n = times / 2;
  return power * k_two(half_n) * k_two(times - half_n);
}

// As C's pow for each special case, and as near as k_power_of elsewhere.
double k_pow(const double x, const double y) {
  const double a = abs(x), b = abs(y);
  if (y == 0.0lf || x == 1.0lf) return 1.0lf;
  if (k_nan64(x) || k_nan64(y)) return double(K_NAN);
  const bool whole = b >= 4503599627370496.0lf || floor(b) == b; // from 2^52 on all are
  const bool odd = b < 9007199254740992.0lf && whole && b - 2.0lf * floor(0.5lf * b) != 0.0lf;
  const bool negative = (unpackDouble2x32(x).y & 0x80000000u) != 0u;
  const bool up = (unpackDouble2x32(y).y & 0x80000000u) == 0u; // lavapipe takes y > 0 for true where y was an int
  const double infinity = double(K_INFINITY);
  double z;
  if (b == infinity) return a == 1.0lf ? 1.0lf : (a > 1.0lf) == up ? infinity : 0.0lf;
  if (a == 0.0lf || a == infinity) z = (a == 0.0lf) == up ? 0.0lf : infinity;
  else if (negative && !whole) return double(K_NAN);
  else z = a == 1.0lf ? 1.0lf : k_power_of(a, y);
  return negative && odd ? -z : z;
}
