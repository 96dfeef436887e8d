/* Conversions of whole runs: eight elements at a time with AVX2 and F16C, one by one elsewhere. */
#include "halves.h"

#include "float16.h"

static void widen_each(bool brain, const char *in, float *out, uint64_t n) {
  for (uint64_t i = 0; i < n; i++) {
    uint16_t half;
    memcpy(&half, in + 2 * i, sizeof half);
    out[i] = brain ? bfloat16_to_float(half) : float16_to_float(half);
  }
}

static void narrow_each(bool brain, const float *in, char *out, uint64_t n) {
  for (uint64_t i = 0; i < n; i++) {
    const uint16_t half = brain ? bfloat16_from_float(in[i]) : float16_from_float(in[i]);
    memcpy(out + 2 * i, &half, sizeof half);
  }
}

#if defined(__GNUC__) && defined(__x86_64__) && !defined(HEDDLE_NO_LANES)

#include <cpuid.h>
#include <immintrin.h>
#include <stdatomic.h>

#define EIGHT __attribute__((target("avx2,f16c")))

/* cpuid is slow inside a virtual machine, so it is asked once; threads that ask at the same time get the same. */
bool halves_by_eight(void) {
  static atomic_int known; /* 0: not yet; 1: no; 2: yes */
  int is = atomic_load_explicit(&known, memory_order_relaxed);
  if (is == 0) {
    unsigned a = 0, b = 0, c = 0, d = 0;
    const bool f16c = __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_F16C) != 0;
    is = f16c && __builtin_cpu_supports("avx2") ? 2 : 1;
    atomic_store_explicit(&known, is, memory_order_relaxed);
  }
  return is == 2;
}

EIGHT static uint64_t widen_eight(bool brain, const char *in, float *out, uint64_t n) {
  uint64_t i = 0;
  for (; i + 8 <= n; i += 8) {
    const __m128i half = _mm_loadu_si128((const __m128i *)(const void *)(in + 2 * i));
    const __m256 wide =
        brain ? _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(half), 16)) : _mm256_cvtph_ps(half);
    _mm256_storeu_ps(out + i, wide);
  }
  return i;
}

/* The upper halves of eight floats, rounded half to even; a NaN is cut, and gets the quiet bit. */
EIGHT static __m128i brains(__m256 x) {
  const __m256i bits = _mm256_castps_si256(x);
  const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
  const __m256i rounded = _mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff)));
  const __m256i nan = _mm256_castps_si256(_mm256_cmp_ps(x, x, _CMP_UNORD_Q));
  const __m256i quiet = _mm256_or_si256(bits, _mm256_set1_epi32(0x400000));
  const __m256i upper = _mm256_srli_epi32(_mm256_blendv_epi8(rounded, quiet, nan), 16);
  return _mm_packus_epi32(_mm256_castsi256_si128(upper), _mm256_extracti128_si256(upper, 1));
}

EIGHT static uint64_t narrow_eight(bool brain, const float *in, char *out, uint64_t n) {
  uint64_t i = 0;
  for (; i + 8 <= n; i += 8) {
    const __m256 x = _mm256_loadu_ps(in + i);
    const __m128i half = brain ? brains(x) : _mm256_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT);
    _mm_storeu_si128((__m128i *)(void *)(out + 2 * i), half);
  }
  return i;
}

#else

bool halves_by_eight(void) {
  return false;
}

static uint64_t widen_eight(bool brain, const char *in, float *out, uint64_t n) {
  (void)brain, (void)in, (void)out, (void)n;
  return 0;
}

static uint64_t narrow_eight(bool brain, const float *in, char *out, uint64_t n) {
  (void)brain, (void)in, (void)out, (void)n;
  return 0;
}

#endif

void halves_widen(bool brain, const void *in, float *out, uint64_t n) {
  const uint64_t done = halves_by_eight() ? widen_eight(brain, in, out, n) : 0;
  widen_each(brain, (const char *)in + 2 * done, out + done, n - done);
}

void halves_narrow(bool brain, const float *in, void *out, uint64_t n) {
  const uint64_t done = halves_by_eight() ? narrow_eight(brain, in, out, n) : 0;
  narrow_each(brain, in + done, (char *)out + 2 * done, n - done);
}
