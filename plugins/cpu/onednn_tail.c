/* GELU with the vectors of AVX-512. gelu(x) = max(x, 0) - |x| Q(|x|), where Q is the upper tail of the normal distribution:
 * a polynomial of degree 6 for each half of a unit up to 8, behind which there is nothing left in float32. A vector holds
 * one coefficient of all 16 polynomials, so that looking one up is a permutation. */
#include "onednn_rows.h"

#include <immintrin.h>
#include <stddef.h>

#define TARGET __attribute__((target("avx512f,fma")))

enum { LANES = 16, DEGREE = 6 };

/* Interpolated at Chebyshev's points, in powers of the distance from the middle of each half, the constants first. */
static const float tail[DEGREE + 1][LANES] = {
    {0.401293665f, 0.22662735f, 0.105649777f, 0.0400591567f, 0.0122244731f, 0.00297976332f, 0.000577025057f,
     8.84172841e-05f, 1.06885254e-05f, 1.01708304e-06f, 7.60495524e-08f, 4.46216486e-09f, 2.05225545e-10f,
     7.39219883e-12f, 2.08382587e-13f, 4.59449686e-15f},
    {-0.386668086f, -0.301137447f, -0.182649106f, -0.086277321f, -0.0317396447f, -0.00909355748f, -0.00202904758f,
     -0.000352596486f, -4.77190915e-05f, -5.02963803e-06f, -4.12871174e-07f, -2.63954938e-08f, -1.31428102e-09f,
     -5.09680145e-11f, -1.53946083e-12f, -3.62171705e-14f},
    {0.0483334996f, 0.11292652f, 0.11415568f, 0.0754926652f, 0.0357071087f, 0.0125036454f, 0.00329720159f,
     0.000661116908f, 0.000101402358f, 1.19451906e-05f, 1.08374957e-06f, 7.58821344e-08f, 4.10666123e-09f,
     1.71984399e-10f, 5.57884945e-12f, 1.40275514e-13f},
    {0.0604137145f, 0.0219590906f, -0.0171205904f, -0.0296571869f, -0.021491278f, -0.00994670019f, -0.00323384604f,
     -0.000767527847f, -0.000135641603f, -1.80580719e-05f, -1.82463532e-06f, -1.40644076e-07f, -8.30013125e-09f,
     -3.76033787e-10f, -1.31045097e-11f, -3.51831736e-13f},
    {-0.0118305013f, -0.0229367819f, -0.0136752119f, 0.000392314716f, 0.00613699993f, 0.00475422898f, 0.00207805308f,
     0.000609467854f, 0.000127260442f, 1.94640779e-05f, 2.21617984e-06f, 1.89780195e-07f, 1.23078374e-08f,
     6.07491446e-10f, 2.2903816e-11f, 6.61431522e-13f},
    {-0.00836893544f, 0.000110004017f, 0.00589863351f, 0.00429059099f, 0.000490385166f, -0.00110306137f,
     -0.000863980153f, -0.00034523863f, -8.96973143e-05f, -1.63217464e-05f, -2.15288014e-06f, -2.09858655e-07f,
     -1.53025912e-08f, -8.41614389e-10f, -3.51181202e-11f, -1.1166685e-12f},
    {0.00190123601f, 0.00300359237f, 0.000584037567f, -0.00128733879f, -0.000987417647f, -0.000125360602f,
     0.000188517544f, 0.000132446556f, 4.57660062e-05f, 1.01298747e-05f, 1.55510611e-06f, 1.71787292e-07f,
     1.39414276e-08f, 8.42187264e-10f, 3.82105701e-11f, 1.3104756e-12f},
};

/* NaN comes through: the least of a number and NaN is the second operand. */
TARGET static inline __m512 gelu(__m512 x, const __m512 *c) {
  const __m512 size = _mm512_min_ps(_mm512_set1_ps(7.99999f), _mm512_abs_ps(x));
  const __m512i half = _mm512_cvttps_epi32(_mm512_add_ps(size, size));
  const __m512 middle = _mm512_fmadd_ps(_mm512_cvtepi32_ps(half), _mm512_set1_ps(0.5f), _mm512_set1_ps(0.25f));
  const __m512 t = _mm512_sub_ps(size, middle);
  __m512 p = _mm512_permutexvar_ps(half, c[DEGREE]);
  for (int i = DEGREE - 1; i >= 0; i--) p = _mm512_fmadd_ps(p, t, _mm512_permutexvar_ps(half, c[i]));
  return _mm512_fnmadd_ps(size, p, _mm512_max_ps(x, _mm512_setzero_ps()));
}

TARGET static void gelu_512(float *out, const float *in, int64_t n) {
  __m512 c[DEGREE + 1];
  int64_t i = 0;
  for (int k = 0; k <= DEGREE; k++) c[k] = _mm512_loadu_ps(tail[k]);
  for (; i + LANES <= n; i += LANES) _mm512_storeu_ps(out + i, gelu(_mm512_loadu_ps(in + i), c));
  const __mmask16 rest = (__mmask16)((1u << (n - i)) - 1);
  _mm512_mask_storeu_ps(out + i, rest, gelu(_mm512_maskz_loadu_ps(rest, in + i), c));
}

onednn_gelu_lanes onednn_find_gelu(void) {
  return __builtin_cpu_supports("avx512f") ? gelu_512 : NULL;
}
