/* Kinds of tiles, and kernels transformed for them. The points that polynomials are evaluated at are 0, pairs of one
 * magnitude, and infinity; those here were found by a search among small dyadic fractions for the least error, after
 * Barabasz, Anderson, Soodhalter and Gregg, "Error Analysis and Improving the Accuracy of Winograd Convolution", 2020. */
#include "cpu.h"
#include "winograd.h"

#include "plugins/common/region.h"

/* As layouts of oneDNN's formats have bit 63 alone of the two. */
#define TOKEN (UINT64_C(3) << 60)

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
  if (!winograd_is_token(token, &kind) || !dtype_is(tensor->dtype, HEDDLE_DTYPE_FLOAT, 32) || tensor->ndim != 4 ||
      tensor->shape[2] != kind->r || tensor->shape[3] != kind->r || !value_bytes(tensor, &plain) || plain == 0)
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

/* One result channel's kernel for one input channel: to[position * step]. */
static void transform(const winograd_kind *kind, double g[WINOGRAD_MOST_TILE][MOST_KERNEL], const char *from, float *to,
                      int64_t step) {
  double rows[WINOGRAD_MOST_TILE][MOST_KERNEL];
  float w[MOST_KERNEL * MOST_KERNEL];
  const int r = kind->r, tile = kind->tile;
  memcpy(w, from, (size_t)(r * r) * sizeof *w); /* parameters may lie at any address */
  for (int i = 0; i < tile; i++)
    for (int x = 0; x < r; x++) {
      rows[i][x] = 0;
      for (int y = 0; y < r; y++) rows[i][x] += g[i][y] * (double)w[y * r + x];
    }
  for (int i = 0; i < tile; i++)
    for (int j = 0; j < tile; j++) {
      double sum = 0;
      for (int x = 0; x < r; x++) sum += rows[i][x] * g[j][x];
      to[(i * tile + j) * step] = (float)sum;
    }
}

void winograd_pack(const heddle_pvalue *tensor, const winograd_kind *kind, float *dst) {
  double g[WINOGRAD_MOST_TILE][MOST_KERNEL];
  const int64_t out = tensor->shape[0], in = tensor->shape[1];
  const int64_t out_blocks = blocks_of(out), padded = blocks_of(in) * WINOGRAD_LANES;
  const int64_t points = kind->tile * kind->tile;
  const size_t each = (size_t)(kind->r * kind->r) * sizeof(float);
  read_matrix(kind, g);
  for (int64_t o = 0; o < out_blocks * WINOGRAD_LANES; o++) {
    const int64_t group = o / WINOGRAD_GROUP, first = group * WINOGRAD_GROUP;
    const int64_t left = out_blocks * WINOGRAD_LANES - first, lanes = left < WINOGRAD_GROUP ? left : WINOGRAD_GROUP;
    float *to = dst + first * padded * points + (o - first);
    for (int64_t c = 0; c < padded; c++, to += lanes) {
      if (o < out && c < in)
        transform(kind, g, (const char *)tensor->data + (size_t)(o * in + c) * each, to, padded * lanes);
      else
        for (int64_t p = 0; p < points; p++) to[p * padded * lanes] = 0;
    }
  }
}
