/* Kinds of tiles, and kernels transformed for them. The points that polynomials are evaluated at are 0, pairs of one
 * magnitude, and infinity; those here were found by a search among small dyadic fractions for the least error, after
 * Barabasz, Anderson, Soodhalter and Gregg, "Error Analysis and Improving the Accuracy of Winograd Convolution", 2020. */
#include "cpu.h"
#include "winograd.h"

#include "plugins/common/region.h"

#include <immintrin.h>

/* A bit that tokens of oneDNN's formats never have. Other points, or another order, would be another token. */
#define TOKEN (UINT64_C(1) << 60)

static const winograd_kind kinds[WINOGRAD_KINDS] = {{2, 3, 4}, {4, 3, 6}, {2, 5, 6}, {4, 5, 8}};

const winograd_kind *winograd_kind_at(int i) {
  return &kinds[i];
}

heddle_layout winograd_token(const winograd_kind *kind) {
  return TOKEN | (heddle_layout)kind->m << 8 | (heddle_layout)kind->r;
}

bool winograd_is_token(heddle_layout token, const winograd_kind **kind) {
  for (int i = 0; i < WINOGRAD_KINDS; i++) {
    *kind = &kinds[i];
    if (winograd_token(&kinds[i]) == token) return true;
  }
  *kind = NULL;
  return false;
}

static int64_t blocks_of(int64_t channels) {
  return (channels + WINOGRAD_LANES - 1) / WINOGRAD_LANES;
}

bool winograd_weight_bytes(const heddle_pvalue *tensor, heddle_layout token, uint64_t *bytes) {
  const winograd_kind *kind;
  uint64_t plain = 0;
  if (!winograd_is_token(token, &kind) || !region_dtype_is(tensor->dtype, HEDDLE_DTYPE_FLOAT, 32) ||
      tensor->ndim != 4 || tensor->shape[2] != kind->r || tensor->shape[3] != kind->r ||
      !region_value_bytes(tensor, &plain) || plain == 0)
    return false;
  const int64_t most = INT64_MAX / (WINOGRAD_MOST_TILE * WINOGRAD_MOST_TILE * WINOGRAD_LANES * WINOGRAD_LANES * 4);
  const int64_t out = blocks_of(tensor->shape[0]), in = blocks_of(tensor->shape[1]);
  if (out > most / in) return false;
  *bytes = (uint64_t)(out * in * kind->tile * kind->tile) * WINOGRAD_LANES * WINOGRAD_LANES * sizeof(float);
  return true;
}

/* ---------------------------------------------------------------- transforming */

enum { MOST_KERNEL = 5 };

/* Row i: the powers of point i over its distances from the other points. */
static void read_matrix(const winograd_kind *kind, double g[WINOGRAD_MOST_TILE][MOST_KERNEL]) {
  static const double pairs[][3] = {{1}, {0.75, 1.5}, {0.5, 1, 2}}; /* of tiles of 4, 6, 8 */
  double points[WINOGRAD_MOST_TILE] = {0};
  const int n = kind->tile - 1;
  for (int i = 1; i < n; i++) points[i] = pairs[kind->tile / 2 - 2][(i - 1) / 2] * (i % 2 == 1 ? 1 : -1);
  for (int i = 0; i < n; i++) {
    double value = 1;
    for (int k = 0; k < n; k++)
      if (k != i) value /= points[i] - points[k];
    for (int k = 0; k < kind->r; k++, value *= points[i]) g[i][k] = value;
  }
  for (int k = 0; k < kind->r; k++) g[n][k] = k == kind->r - 1;
}

/* Kernels of 16 result channels for one input channel, tap by tap, to the positions of the tile, step floats apart. */
static __attribute__((target("avx512f"))) void transform(const winograd_kind *kind,
                                                         double g[WINOGRAD_MOST_TILE][MOST_KERNEL],
                                                         float taps[][WINOGRAD_LANES], float *to, int64_t step) {
  __m512d rows[WINOGRAD_MOST_TILE][MOST_KERNEL][2];
  const int r = kind->r, tile = kind->tile;
  for (int i = 0; i < tile; i++)
    for (int x = 0; x < r; x++)
      for (int half = 0; half < 2; half++) {
        __m512d sum = _mm512_setzero_pd();
        for (int y = 0; y < r; y++)
          sum = _mm512_fmadd_pd(_mm512_set1_pd(g[i][y]),
                                _mm512_cvtps_pd(_mm256_loadu_ps(taps[y * r + x] + half * WINOGRAD_LANES / 2)), sum);
        rows[i][x][half] = sum;
      }
  for (int i = 0; i < tile; i++)
    for (int j = 0; j < tile; j++, to += step) {
      __m512d low = _mm512_setzero_pd(), high = _mm512_setzero_pd();
      for (int x = 0; x < r; x++) {
        low = _mm512_fmadd_pd(_mm512_set1_pd(g[j][x]), rows[i][x][0], low);
        high = _mm512_fmadd_pd(_mm512_set1_pd(g[j][x]), rows[i][x][1], high);
      }
      _mm256_storeu_ps(to, _mm512_cvtpd_ps(low));
      _mm256_storeu_ps(to + WINOGRAD_LANES / 2, _mm512_cvtpd_ps(high));
    }
}

/* Tap by tap, those of 16 result channels for one input channel; 0 where there is none of either. */
static void gather(const heddle_pvalue *tensor, int64_t block, int64_t c, float taps[][WINOGRAD_LANES]) {
  const int64_t out = tensor->shape[0], in = tensor->shape[1], each = tensor->shape[2] * tensor->shape[3];
  float w[MOST_KERNEL * MOST_KERNEL];
  for (int64_t i = 0; i < WINOGRAD_LANES; i++) {
    const int64_t o = block * WINOGRAD_LANES + i;
    const size_t at = (size_t)((o * in + c) * each) * sizeof *w;
    if (o < out && c < in) memcpy(w, (const char *)tensor->data + at, (size_t)each * sizeof *w); /* at any address */
    else memset(w, 0, sizeof w);
    for (int64_t k = 0; k < each; k++) taps[k][i] = w[k];
  }
}

/* A few input channels at a time, so that each position's come in a row: they are as far from each other as lines of one
 * cache set. */
void winograd_pack(const heddle_pvalue *tensor, const winograd_kind *kind, float *dst) {
  enum { FEW = 4 };
  double g[WINOGRAD_MOST_TILE][MOST_KERNEL];
  float taps[MOST_KERNEL * MOST_KERNEL][WINOGRAD_LANES];
  _Alignas(64) float few[WINOGRAD_MOST_TILE * WINOGRAD_MOST_TILE * FEW * WINOGRAD_GROUP];
  const int64_t out_blocks = blocks_of(tensor->shape[0]), padded = blocks_of(tensor->shape[1]) * WINOGRAD_LANES;
  const int64_t points = kind->tile * kind->tile;
  read_matrix(kind, g);
  for (int64_t first = 0; first < out_blocks; first += 2) {
    const int64_t blocks = out_blocks - first < 2 ? 1 : 2, lanes = blocks * WINOGRAD_LANES;
    float *to = dst + first * WINOGRAD_LANES * padded * points;
    for (int64_t c = 0; c < padded; c += FEW, to += FEW * lanes) {
      for (int64_t i = 0; i < FEW * blocks; i++) {
        gather(tensor, first + i % blocks, c + i / blocks, taps);
        transform(kind, g, taps, few + i * WINOGRAD_LANES, FEW * lanes);
      }
      for (int64_t p = 0; p < points; p++)
        memcpy(to + p * padded * lanes, few + p * FEW * lanes, (size_t)(FEW * lanes) * sizeof *few);
    }
  }
}
