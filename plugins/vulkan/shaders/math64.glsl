// The functions of math.glsl in float64, which GLSL lacks: from additions, products and the bits of a number. Within 2 ulp,
// and k_pow within 2 ulp times the result's exponent. NaN comes through.

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

// Of x that are not negative.
double k_pow(const double x, const double y) {
  if (y == 0.0lf || x == 1.0lf) return 1.0lf;
  if (x == 0.0lf) return y > 0.0lf ? 0.0lf : double(K_INFINITY);
  return k_exp(y * k_log(x));
}
