/* float16 and bfloat16 as bits: all 65,536 of each both ways, and the doubles and floats around each tie, against a
 * reference that searches for the nearest. */
#include "cases.h"

#include <math.h>
#include <stdbool.h>

#include "plugins/common/float16.h"
#include "plugins/common/halves.h"

/* The definition of IEEE 754: a finite half, sign left out; 0x7c00 counts as 2^16, the next step. */
static double value_of(uint32_t half) {
  const int exponent = (int)(half >> 10), fraction = (int)(half & 1023);
  return exponent == 0 ? ldexp(fraction, -24) : ldexp(1024 + fraction, exponent - 25);
}

static uint16_t nearest(double x) {
  const double size = fabs(x);
  uint32_t low = 0, high = 0x7c00;
  while (high - low > 1) {
    const uint32_t middle = (low + high) / 2;
    if (value_of(middle) <= size) low = middle;
    else high = middle;
  }
  const double below = size - value_of(low), above = value_of(high) - size;
  const uint32_t half = size >= 65536 || above < below || (above == below && (high & 1) == 0) ? high : low;
  return (uint16_t)((signbit(x) ? 0x8000U : 0) | half);
}

static uint32_t bits_of(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}

static float float_of(uint32_t bits) {
  float x;
  memcpy(&x, &bits, sizeof x);
  return x;
}

static void each_half_is_its_value(void **state) {
  (void)state;
  for (uint32_t h = 0; h <= 0xffff; h++) {
    const float x = float16_to_float((uint16_t)h);
    if ((h & 0x7fff) < 0x7c00) {
      const double expected = value_of(h & 0x7fff);
      assert_true((double)x == (h > 0x7fff ? -expected : expected));
      assert_int_equal(signbit(x) != 0, h > 0x7fff);
    } else { /* infinity, or a NaN with its payload */
      assert_int_equal(bits_of(x), (h & 0x8000) << 16 | 0x7f800000U | (h & 1023) << 13);
    }
    assert_int_equal(float16_from_float(x), (h & 0x7fff) > 0x7c00 ? h | 0x200 : h);
  }
}

static void halves_round_to_nearest_even(void **state) {
  (void)state;
  for (uint32_t h = 0; h < 0x7c00; h++) {
    const double tie = (value_of(h) + value_of(h + 1)) / 2; /* exact, and a float */
    const double all[] = {value_of(h), tie, nextafter(tie, 0), nextafter(tie, 1e6), nextafter(value_of(h), 0)};
    const float few[] = {(float)tie, nextafterf((float)tie, 0), nextafterf((float)tie, 1e6F)};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
      assert_int_equal(float16_from_double(all[i]), nearest(all[i]));
      assert_int_equal(float16_from_double(-all[i]), nearest(-all[i]));
    }
    for (size_t i = 0; i < sizeof few / sizeof few[0]; i++)
      assert_int_equal(float16_from_float(-few[i]), nearest(-(double)few[i]));
  }
}

static void ends_of_halves(void **state) {
  (void)state;
  static const double large[] = {65536, 1e5, 3.4028234663852886e38, 1e39, 1.7976931348623157e308, (double)INFINITY};
  static const double small[] = {0, 4.9406564584124654e-324, 1e-310, 1.401298464324817e-45, 1e-38, 0x1p-26, 0x1p-25};
  for (size_t i = 0; i < sizeof large / sizeof large[0]; i++) assert_int_equal(float16_from_double(-large[i]), 0xfc00);
  for (size_t i = 0; i < sizeof small / sizeof small[0]; i++) assert_int_equal(float16_from_double(-small[i]), 0x8000);
  assert_int_equal(float16_from_double(nextafter(0x1p-25, 1)), 1);
  assert_int_equal(float16_from_float(float_of(0x7f800001)), 0x7e00); /* the payload is below what a half keeps */
  assert_int_equal(float16_from_float(float_of(0xff812000)), 0xfe09);
}

static void bfloats(void **state) {
  (void)state;
  for (uint32_t h = 0; h <= 0xffff; h++) {
    const bool is_nan = (h & 0x7fff) > 0x7f80, is_finite = (h & 0x7fff) < 0x7f80;
    assert_int_equal(bits_of(bfloat16_to_float((uint16_t)h)), h << 16);
    assert_int_equal(bfloat16_from_float(float_of(h << 16)), is_nan ? h | 0x40 : h);
    if (!is_finite) continue;
    assert_int_equal(bfloat16_from_float(float_of(h << 16 | 0x7fff)), h);
    assert_int_equal(bfloat16_from_float(float_of(h << 16 | 0x8000)), h + (h & 1)); /* the tie */
    assert_int_equal(bfloat16_from_float(float_of(h << 16 | 0x8001)), h + 1);       /* infinity behind the largest */
  }
  assert_int_equal(bfloat16_from_float(float_of(0x7f800001)), 0x7fc0);
  assert_int_equal(bfloat16_from_float(float_of(0xffbfffff)), 0xffff);
}

/* Runs of every length below two vectors, at odd addresses, of every half, and of floats around all of them. */
static void runs_are_as_their_elements(void **state) {
  (void)state;
  enum { RUN = 19 };
  for (uint32_t h = 0; h < 0x10000; h++) {
    const uint64_t n = h % RUN + 1;
    unsigned char bytes[2 * RUN + 1];
    float wide[RUN + 1] = {0};
    for (int brain = 0; brain < 2; brain++) {
      for (uint64_t i = 0; i < n; i++) {
        const uint16_t half = (uint16_t)(h + 7 * i);
        memcpy(bytes + 1 + 2 * i, &half, sizeof half);
      }
      wide[n] = 5;
      halves_widen(brain != 0, bytes + 1, wide, n);
      assert_true(wide[n] == 5);
      for (uint64_t i = 0; i < n; i++) {
        const uint16_t half = (uint16_t)(h + 7 * i);
        const float x = brain ? bfloat16_to_float(half) : float16_to_float(half);
        if (isnan(x)) assert_true(isnan(wide[i]) && signbit(wide[i]) == signbit(x));
        else assert_int_equal(bits_of(wide[i]), bits_of(x));
        wide[i] = float_of(bits_of(wide[i]) + (h % 5) * (brain ? 0x4000U : 0x800U) - (h % 3));
      }
      memset(bytes, 0x55, sizeof bytes);
      halves_narrow(brain != 0, wide, bytes + 1, n);
      for (uint64_t i = 0; i < n; i++) {
        uint16_t half;
        memcpy(&half, bytes + 1 + 2 * i, sizeof half);
        assert_int_equal(half, brain ? bfloat16_from_float(wide[i]) : float16_from_float(wide[i]));
      }
      assert_true(n == RUN || bytes[1 + 2 * n] == 0x55);
    }
  }
}

CASES(CASE(each_half_is_its_value), CASE(halves_round_to_nearest_even), CASE(ends_of_halves), CASE(bfloats),
      CASE(runs_are_as_their_elements))
