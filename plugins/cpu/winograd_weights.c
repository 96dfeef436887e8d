/* Kinds of tiles, and kernels transformed for them. The points that polynomials are evaluated at are 0, pairs of one
 * magnitude, and infinity; those here were found by a search among small dyadic fractions for the least error, after
 * Barabasz, Anderson, Soodhalter and Gregg, "Error Analysis and Improving the Accuracy of Winograd Convolution", 2020. */
#include "cpu.h"
#include "winograd.h"

#include "plugins/common/region.h"

/* A bit that tokens of oneDNN's formats never have, and the bit of blocks of 8. Other points, or another order, would be
 * another token. */
#define TOKEN (UINT64_C(1) << 60)
#define BY_8 (UINT64_C(1) << 16)

static const winograd_kind kinds[2 * WINOGRAD_KINDS] = {{2, 3, 4, 16}, {4, 3, 6, 16}, {2, 5, 6, 16}, {4, 5, 8, 16},
                                                        {2, 3, 4, 8},  {4, 3, 6, 8},  {2, 5, 6, 8},  {4, 5, 8, 8}};

const winograd_kind *winograd_kind_at(int i, int32_t lanes) {
  return &kinds[lanes == 8 ? WINOGRAD_KINDS + i : i];
}

int32_t winograd_lanes(uint32_t block) {
  if (block == 16) return 16;
  return block == 8 && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? 8 : 0;
}

heddle_layout winograd_token(const winograd_kind *kind) {
  return TOKEN | (kind->lanes == 8 ? BY_8 : 0) | (heddle_layout)kind->m << 8 | (heddle_layout)kind->r;
}

bool winograd_is_token(heddle_layout token, const winograd_kind **kind) {
  for (int i = 0; i < 2 * WINOGRAD_KINDS; i++) {
    *kind = &kinds[i];
    if (winograd_token(&kinds[i]) == token) return true;
  }
  *kind = NULL;
  return false;
}

static int64_t blocks_of(const winograd_kind *kind, int64_t channels) {
  return (channels + kind->lanes - 1) / kind->lanes;
}

bool winograd_weight_bytes(const heddle_pvalue *tensor, heddle_layout token, uint64_t *bytes) {
  const winograd_kind *kind;
  uint64_t plain = 0;
  if (!winograd_is_token(token, &kind) || !region_dtype_is(tensor->dtype, HEDDLE_DTYPE_FLOAT, 32) ||
      tensor->ndim != 4 || tensor->shape[2] != kind->r || tensor->shape[3] != kind->r ||
      !region_value_bytes(tensor, &plain) || plain == 0)
    return false;
  const int64_t most =
      INT64_MAX / (WINOGRAD_MOST_TILE * WINOGRAD_MOST_TILE * WINOGRAD_MOST_LANES * WINOGRAD_MOST_LANES * 4);
  const int64_t out = blocks_of(kind, tensor->shape[0]), in = blocks_of(kind, tensor->shape[1]);
  if (out > most / in) return false;
  *bytes = (uint64_t)(out * in * kind->tile * kind->tile * kind->lanes * kind->lanes) * sizeof(float);
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

/* Vectors of the compiler's, since it matters less here: of one number for each of 8 result channels. */
typedef double doubles __attribute__((vector_size(64)));
typedef float floats __attribute__((vector_size(32)));

/* Kernels of 8 result channels for one input channel, tap by tap, to the positions of the tile, step floats apart. */
static inline __attribute__((always_inline)) void transform(const winograd_kind *kind,
                                                            double g[WINOGRAD_MOST_TILE][MOST_KERNEL],
                                                            float taps[][WINOGRAD_MOST_LANES], float *to,
                                                            int64_t step) {
  doubles rows[WINOGRAD_MOST_TILE][MOST_KERNEL], columns[MOST_KERNEL];
  floats some;
  const int r = kind->r, tile = kind->tile;
  for (int x = 0; x < r; x++) {
    for (int y = 0; y < r; y++) {
      memcpy(&some, taps[y * r + x], sizeof some);
      columns[y] = __builtin_convertvector(some, doubles);
    }
    for (int i = 0; i < tile; i++) {
      rows[i][x] = columns[0] * g[i][0];
      for (int y = 1; y < r; y++) rows[i][x] += columns[y] * g[i][y];
    }
  }
  for (int i = 0; i < tile; i++)
    for (int j = 0; j < tile; j++, to += step) {
      doubles sum = rows[i][0] * g[j][0];
      for (int x = 1; x < r; x++) sum += rows[i][x] * g[j][x];
      some = __builtin_convertvector(sum, floats);
      memcpy(to, &some, sizeof some);
    }
}

typedef void transform_fn(const winograd_kind *kind, double g[WINOGRAD_MOST_TILE][MOST_KERNEL],
                          float taps[][WINOGRAD_MOST_LANES], float *to, int64_t step);

static __attribute__((target("avx512f"))) void transform_512(const winograd_kind *kind,
                                                             double g[WINOGRAD_MOST_TILE][MOST_KERNEL],
                                                             float taps[][WINOGRAD_MOST_LANES], float *to,
                                                             int64_t step) {
  transform(kind, g, taps, to, step);
  transform(kind, g, (float(*)[WINOGRAD_MOST_LANES])(void *)(&taps[0][8]), to + 8, step);
}

static __attribute__((target("avx2,fma"))) void transform_256(const winograd_kind *kind,
                                                              double g[WINOGRAD_MOST_TILE][MOST_KERNEL],
                                                              float taps[][WINOGRAD_MOST_LANES], float *to,
                                                              int64_t step) {
  transform(kind, g, taps, to, step);
}

/* Tap by tap, those of a block of result channels for one input channel; 0 where there is none of either. */
static void gather(const heddle_pvalue *tensor, int32_t lanes, int64_t block, int64_t c,
                   float taps[][WINOGRAD_MOST_LANES]) {
  const int64_t out = tensor->shape[0], in = tensor->shape[1], each = tensor->shape[2] * tensor->shape[3];
  float w[MOST_KERNEL * MOST_KERNEL];
  for (int64_t i = 0; i < lanes; i++) {
    const int64_t o = block * lanes + i;
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
  float taps[MOST_KERNEL * MOST_KERNEL][WINOGRAD_MOST_LANES];
  _Alignas(64) float few[WINOGRAD_MOST_TILE * WINOGRAD_MOST_TILE * FEW * 2 * WINOGRAD_MOST_LANES];
  const int64_t out_blocks = blocks_of(kind, tensor->shape[0]),
                padded = blocks_of(kind, tensor->shape[1]) * kind->lanes;
  const int64_t points = kind->tile * kind->tile;
  transform_fn *const make = kind->lanes == 16 ? transform_512 : transform_256;
  read_matrix(kind, g);
  for (int64_t first = 0; first < out_blocks; first += 2) {
    const int64_t blocks = out_blocks - first < 2 ? 1 : 2, lanes = blocks * kind->lanes;
    float *to = dst + first * kind->lanes * padded * points;
    for (int64_t c = 0; c < padded; c += FEW, to += FEW * lanes) {
      for (int64_t i = 0; i < FEW * blocks; i++) {
        gather(tensor, kind->lanes, first + i % blocks, c + i / blocks, taps);
        make(kind, g, taps, few + i * kind->lanes, FEW * lanes);
      }
      for (int64_t p = 0; p < points; p++)
        memcpy(to + p * padded * lanes, few + p * FEW * lanes, (size_t)(FEW * lanes) * sizeof *few);
    }
  }
}
