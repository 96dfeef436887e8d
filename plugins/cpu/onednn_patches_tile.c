/* The vectorised kernels of onednn_patches.h, for AVX-512 and for AVX2, whichever the CPU has. This file is only
 * built with oneDNN, which is for x86-64. */
#include "onednn_patches.h"

#include <math.h>

#define VECTORS_WIDE 1
#include "vectors.h"
#define V_EVEN(x, y) \
  _mm512_permutex2var_ps(x, _mm512_set_epi32(30, 28, 26, 24, 22, 20, 18, 16, 14, 12, 10, 8, 6, 4, 2, 0), y)

#include "onednn_patches_lanes.h"

#undef VECTORS_WIDE
#undef V_EVEN
#define VECTORS_WIDE 0
#include "vectors.h"
#define V_EVEN(x, y) _mm256_castpd_ps(_mm256_permute4x64_pd(_mm256_castps_pd(_mm256_shuffle_ps(x, y, 0x88)), 0xd8))

#include "onednn_patches_lanes.h"

static float by_definition(const onednn_post *post, float x) {
  switch (post->alg) {
  case dnnl_eltwise_elu: return x > 0 ? x : post->alpha * expm1f(x);
  case dnnl_eltwise_tanh: return tanhf(x);
  case dnnl_eltwise_gelu_erf: return 0.5F * x * (1 + erff(x * 0.70710678F));
  default: return 0.5F * x * (1 + tanhf(0.79788456F * (x + 0.044715F * x * x * x)));
  }
}

static bool is_lanes(const onednn_post *post) {
  switch (post->alg) {
  case dnnl_eltwise_relu:
  case dnnl_eltwise_clip:
  case dnnl_eltwise_hardswish:
  case dnnl_binary_add:
  case dnnl_binary_mul:
  case dnnl_binary_sub:
  case dnnl_binary_div: return true;
  default: return false;
  }
}

bool patches_has_post(const onednn_post *post) {
  return is_lanes(post) || post->alg == dnnl_eltwise_elu || post->alg == dnnl_eltwise_tanh ||
         post->alg == dnnl_eltwise_gelu_erf || post->alg == dnnl_eltwise_gelu_tanh;
}

static void any_512(const onednn_post *post, float *x, const float *other, int step, int64_t n) {
  if (is_lanes(post)) post_512(post, x, other, step, n);
  else
    for (int64_t i = 0; i < n; i++) x[i] = by_definition(post, x[i]);
}

static void any_256(const onednn_post *post, float *x, const float *other, int step, int64_t n) {
  if (is_lanes(post)) post_256(post, x, other, step, n);
  else
    for (int64_t i = 0; i < n; i++) x[i] = by_definition(post, x[i]);
}

const patches_kernels *patches_find(void) {
  static const patches_kernels wide = {tile_512, thin_512, plane_512, any_512, even_512, 48, 32},
                               narrow = {tile_256, thin_256, plane_256, any_256, even_256, 24, 16};
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq")) return &wide;
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? &narrow : NULL;
}
