// The functions of angles.glsl in float64, and erf, for math64.glsl, which is included first. Every number has its own angle:
// numbers are reduced by quarter turns exactly, as in angles.glsl. The polynomials are fits made for these ranges; sine and
// cosine are their series.

// Within 4 ulp: x times a polynomial of x^2 up to 1; 1 - e^-q(x) beyond, q being fitted to the logarithm of 1 - erf.
double k_erf(const double x) {
  const double a = abs(x);
  if (k_nan64(x)) return x;
  if (a < 1.0lf) {
    const double z = x * x;
    double p = 5.9571761477489114e-11lf;
    p = p * z - 1.13728488567916737e-9lf;
    p = p * z + 1.46597752740474358e-8lf;
    p = p * z - 1.6350312701054695e-7lf;
    p = p * z + 1.6461000484121368e-6lf;
    p = p * z - 0.0000149255952668311816lf;
    p = p * z + 0.000120553311116427109lf;
    p = p * z - 0.000854832698083378991lf;
    p = p * z + 0.00522397762481801447lf;
    p = p * z - 0.0268661706450767932lf;
    p = p * z + 0.112837916709548787lf;
    p = p * z - 0.376126389031837481lf;
    p = p * z + 1.12837916709551257lf;
    return p * x;
  }
  double q;
  if (a < 2.5lf) {
    const double t = a - 1.75lf;
    q = 2.67368778808751596e-11lf;
    q = q * t - 1.1455076287516451e-10lf;
    q = q * t + 2.79285015183023085e-10lf;
    q = q * t - 2.33726459412925719e-10lf;
    q = q * t - 2.79936922634722166e-9lf;
    q = q * t + 2.30731497826156386e-8lf;
    q = q * t - 1.13138088428254017e-7lf;
    q = q * t + 4.01929890550023283e-7lf;
    q = q * t - 8.90851916268155901e-7lf;
    q = q * t - 8.27519594246735444e-7lf;
    q = q * t + 0.0000237414619183207496lf;
    q = q * t - 0.000174523064524189109lf;
    q = q * t + 0.000964098649090035223lf;
    q = q * t - 0.00462493049887900764lf;
    q = q * t + 0.0205388403816370632lf;
    q = q * t + 0.909940166496736622lf;
    q = q * t + 3.95961090081341542lf;
    q = q * t + 4.31786352543322267lf;
  } else {
    const double t = min(a, 6.0lf) - 4.25lf;
    q = 5.94611203367661754e-14lf;
    q = q * t - 2.86982208413705133e-13lf;
    q = q * t + 2.69912885291278633e-13lf;
    q = q * t + 2.94087261423299904e-12lf;
    q = q * t - 4.43565551093735489e-11lf;
    q = q * t + 4.67430547442825206e-10lf;
    q = q * t - 4.05151601534250695e-9lf;
    q = q * t + 3.15482528233436519e-8lf;
    q = q * t - 2.30196737919487031e-7lf;
    q = q * t + 1.6067286323630877e-6lf;
    q = q * t - 0.0000108792518183043689lf;
    q = q * t + 0.0000723798365797544465lf;
    q = q * t - 0.000480528756429057749lf;
    q = q * t + 0.00326374427895771569lf;
    q = q * t + 0.97608457639688314lf;
    q = q * t + 8.72377571552195314lf;
    q = q * t + 20.1077699014697069lf;
  }
  const double y = 1.0lf - k_exp(-q);
  return x < 0.0lf ? -y : y;
}

// 2/pi after the point, behind 64 zeros.
const uint k_quarters64[42] = uint[42](
    0u, 0u, 0xa2f9836eu, 0x4e441529u, 0xfc2757d1u, 0xf534ddc0u, 0xdb629599u, 0x3c439041u,
    0xfe5163abu, 0xdebbc561u, 0xb7246e3au, 0x424dd2e0u, 0x06492eeau, 0x09d1921cu, 0xfe1deb1cu, 0xb129a73eu,
    0xe88235f5u, 0x2ebb4484u, 0xe99c7026u, 0xb45f7e41u, 0x3991d639u, 0x835339f4u, 0x9c845f8bu, 0xbdf9283bu,
    0x1ff897ffu, 0xde05980fu, 0xef2f118bu, 0x5a0a6d1fu, 0x6d367ecfu, 0x27cb09b7u, 0x4f463f66u, 0x9e5fea2du,
    0x7527bac7u, 0xebe5f17bu, 0x3d0739f7u, 0x8a5292eau, 0x6bfb5fb1u, 0x1f8d5d08u, 0x56033046u, 0xfc7b6babu,
    0xf0cfbc20u, 0x9af4361du);

// 32 bits of 2/pi from place at on.
uint k_quarters64_at(const int at) {
  const int word = at >> 5, shift = at & 31;
  return shift == 0 ? k_quarters64[word] : k_quarters64[word] << shift | k_quarters64[word + 1] >> (32 - shift);
}

// Adds to word at of a number of six words, the highest first.
void k_add_word(inout uint all[6], const int at, const uint value) {
  uint carry = value;
  for (int k = at; k >= 0 && carry != 0u; k--) all[k] = uaddCarry(all[k], carry, carry);
}

// x = n pi/2 + r with |r| <= pi/4; n counts modulo 4. x is finite.
double k_reduce(const double x, out int n) {
  const uvec2 bits = unpackDouble2x32(abs(x));
  n = 0;
  if (abs(x) <= 0.785398163397448310lf) return x;
  // x is m 2^s; of m 2^s 2/pi the bits of 2 and of less, since those of 4 and of more are whole turns: 192 of them
  const uint m_high = bits.y & 0x000fffffu | 0x00100000u;
  const int at = int(bits.y >> 20) - 1075 + 62;
  uint all[6] = uint[6](0u, 0u, 0u, 0u, 0u, 0u), high, low;
  for (int k = 5; k >= 0; k--) {
    const uint word = k_quarters64_at(at + 32 * k);
    umulExtended(word, bits.x, high, low);
    k_add_word(all, k, low);
    k_add_word(all, k - 1, high);
    umulExtended(word, m_high, high, low);
    k_add_word(all, k - 1, low);
    k_add_word(all, k - 2, high);
  }
  const uint whole = all[0] + 0x20000000u >> 30;
  all[0] -= whole << 30;
  const bool negative = int(all[0]) < 0;
  if (negative) { // minus the 192 bits
    for (int k = 0; k < 6; k++) all[k] = ~all[k];
    k_add_word(all, 5, 1u);
  }
  // the upper 64 bits that count, times pi/2 as two numbers, the first of 21 bits
  int first = 0;
  while (first < 3 && all[first] == 0u) first++;
  const int places = 31 - findMSB(all[first] | 1u);
  uint top = all[first], next = all[first + 1];
  if (places > 0) {
    top = top << places | next >> (32 - places);
    next = next << places | all[first + 2] >> (32 - places);
  }
  const double t = double(top);
  precise double r = t * 3.13916478650481321e-7lf + double(next) * 3.65729519816789906e-10lf;
  r = t * 1.570796012878417970lf + r;
  r = r * k_two(-30 - places - 32 * first);
  const bool below = x < 0.0lf;
  n = int(below ? 4u - whole & 3u : whole & 3u);
  return negative != below ? -r : r;
}

// Of |r| <= pi/4.
double k_sin_of(const double r) {
  const double z = r * r;
  double p = 2.81145725434552076e-15lf;
  p = p * z - 7.64716373181981648e-13lf;
  p = p * z + 1.60590438368216146e-10lf;
  p = p * z - 2.50521083854417188e-8lf;
  p = p * z + 2.75573192239858907e-6lf;
  p = p * z - 1.98412698412698413e-4lf;
  p = p * z + 8.33333333333333333e-3lf;
  p = p * z - 0.166666666666666667lf;
  return p * z * r + r;
}

double k_cos_of(const double r) {
  const double z = r * r;
  double p = 4.77947733238738530e-14lf;
  p = p * z - 1.14707455977297247e-11lf;
  p = p * z + 2.08767569878680990e-9lf;
  p = p * z - 2.75573192239858907e-7lf;
  p = p * z + 2.48015873015873016e-5lf;
  p = p * z - 1.38888888888888889e-3lf;
  p = p * z + 4.16666666666666667e-2lf;
  return p * z * z - 0.5lf * z + 1.0lf;
}

bool k_has_no_angle(const double x) {
  return k_nan64(x) || abs(x) == double(K_INFINITY);
}

// 2 ulp.
double k_sin(const double x) {
  int n;
  if (k_has_no_angle(x)) return double(K_NAN);
  const double r = k_reduce(x, n);
  if (abs(r) < 1e-8lf && n == 0) return r; // and so zeros keep their sign
  const double y = (n & 1) != 0 ? k_cos_of(r) : k_sin_of(r);
  return (n & 2) != 0 ? -y : y;
}

// 2 ulp.
double k_cos(const double x) {
  int n;
  if (k_has_no_angle(x)) return double(K_NAN);
  const double r = k_reduce(x, n);
  const double y = (n & 1) != 0 ? k_sin_of(r) : k_cos_of(r);
  return (n + 1 & 2) != 0 ? -y : y;
}

// 4 ulp.
double k_tan(const double x) {
  int n;
  if (k_has_no_angle(x)) return double(K_NAN);
  const double r = k_reduce(x, n);
  if (abs(r) < 1e-8lf && n == 0) return r;
  const double s = k_sin_of(r), c = k_cos_of(r);
  return (n & 1) != 0 ? -c / s : s / c;
}

// The arc sine of |x| <= 1/2, z being x^2.
double k_asin_of(const double x, const double z) {
  double p = 0.0296120112649551206lf;
  p = p * z - 0.019241671746743041lf;
  p = p * z + 0.0195545133361233792lf;
  p = p * z + 0.00304487990945567728lf;
  p = p * z + 0.00931956079476744633lf;
  p = p * z + 0.00962184297010028101lf;
  p = p * z + 0.0115664596121216686lf;
  p = p * z + 0.0139637800122035696lf;
  p = p * z + 0.017352816540325495lf;
  p = p * z + 0.0223721574435072224lf;
  p = p * z + 0.03038194447553234lf;
  p = p * z + 0.0446428571425518929lf;
  p = p * z + 0.0750000000000011775lf;
  p = p * z + 0.166666666666666666lf;
  return p * z * x + x;
}

// 3 ulp. asin x = pi/2 - 2 asin(root((1 - x) / 2)).
double k_asin(const double x) {
  const double a = abs(x);
  if (k_nan64(x) || a < 1e-8lf) return x;
  if (a > 1.0lf) return double(K_NAN);
  if (a <= 0.5lf) return k_asin_of(x, x * x);
  const double z = 0.5lf - 0.5lf * a, y = 1.57079632679489662lf - (2.0lf * k_asin_of(sqrt(z), z) - 6.12323399573676589e-17lf);
  return x < 0.0lf ? -y : y;
}

// 3 ulp.
double k_acos(const double x) {
  const double a = abs(x);
  if (k_nan64(x)) return x;
  if (a > 1.0lf) return double(K_NAN);
  if (a <= 0.5lf) return 1.57079632679489662lf - (k_asin_of(x, x * x) - 6.12323399573676589e-17lf);
  const double z = 0.5lf - 0.5lf * a, y = 2.0lf * k_asin_of(sqrt(z), z);
  return x < 0.0lf ? 3.14159265358979324lf - (y - 1.22464679914735318e-16lf) : y;
}

// 2 ulp: with t of 1, -1/x or (x - 1) / (x + 1), |t| below the tangent of pi/8.
double k_atan(const double x) {
  const double a = abs(x);
  if (k_nan64(x) || a < 1e-8lf) return x;
  double t = a, from = 0.0lf, rest = 0.0lf;
  if (a > 2.41421356237309505lf) {
    t = -1.0lf / a;
    from = 1.57079632679489662lf;
    rest = 6.12323399573676589e-17lf;
  } else if (a > 0.414213562373095049lf) {
    t = (a - 1.0lf) / (a + 1.0lf);
    from = 0.785398163397448310lf;
    rest = 3.06161699786838294e-17lf;
  }
  const double z = t * t;
  double p = 0.0162857568552210281lf;
  p = p * z - 0.0345705619814277467lf;
  p = p * z + 0.0455159322062654916lf;
  p = p * z - 0.0523045427065024452lf;
  p = p * z + 0.0587892899783477513lf;
  p = p * z - 0.0666642488573825533lf;
  p = p * z + 0.076922963750321424lf;
  p = p * z - 0.0909090875350087684lf;
  p = p * z + 0.111111111051554466lf;
  p = p * z - 0.142857142856598276lf;
  p = p * z + 0.199999999999998045lf;
  p = p * z - 0.333333333333333332lf;
  const double y = from + (p * z * t + rest + t);
  return x < 0.0lf ? -y : y;
}
