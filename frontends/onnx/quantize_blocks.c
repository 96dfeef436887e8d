/* frontends/onnx/quantize_blocks.c: numbers of a weight as integers in blocks. Each block has the scale at which its extremes are
 * the ends of the range; the scale is rounded to the weight's type before integers are made with it. */
#include "frontends/onnx/quantize.h"

#include <math.h>
#include <string.h>

#include "core/alloc.h"
#include "plugins/common/float16.h"

enum { TILE = 16 /* rows that are read together, since columns may lie side by side */ };

static float number_at(const quantize_matrix *w, int64_t i) {
  float x;
  uint16_t half;
  if (w->type == ONNX_FLOAT) {
    memcpy(&x, w->data + 4 * i, sizeof x);
    return x;
  }
  memcpy(&half, w->data + 2 * i, sizeof half);
  return w->type == ONNX_FLOAT16 ? float16_to_float(half) : bfloat16_to_float(half);
}

/* As the weight's type has it. */
static float rounded(const quantize_matrix *w, float x, uint16_t *half) {
  if (w->type == ONNX_FLOAT) return x;
  *half = w->type == ONNX_FLOAT16 ? float16_from_float(x) : bfloat16_from_float(x);
  return w->type == ONNX_FLOAT16 ? float16_to_float(*half) : bfloat16_to_float(*half);
}

/* Symmetric: the number of the greatest magnitude becomes the lowest integer, whose sign is the scale's. */
static void block_of(const quantize_matrix *w, const heddle_quantize_options *o, const float *x, int64_t n,
                     quantize_result *out, int64_t block, uint8_t *q) {
  const float most = (float)((1 << o->bits) - 1), half = (float)(1 << (o->bits - 1));
  const bool symmetric = (o->flags & HEDDLE_QUANTIZE_SYMMETRIC) != 0;
  float low = 0, high = 0, scale, zero = half;
  for (int64_t k = 0; k < n; k++) {
    low = x[k] < low ? x[k] : low;
    high = x[k] > high ? x[k] : high;
  }
  if (symmetric) scale = (-low > high ? low : high) / -half;
  else scale = (high - low) / most;
  uint16_t bits = 0;
  scale = rounded(w, scale, &bits);
  if (scale == 0 || !isfinite(scale)) { /* nothing but zeros, or none of the type is near */
    scale = rounded(w, 1, &bits);
  }
  if (!symmetric) zero = rintf(fminf(fmaxf(-low / scale, 0), most));
  for (int64_t k = 0; k < n; k++) q[k] = (uint8_t)rintf(fminf(fmaxf(x[k] / scale + zero, 0), most));
  out->scale[block] = scale;
  out->zero[block] = (uint8_t)zero;
  if (out->half != NULL) out->half[block] = bits;
}

bool heddle__onnx_quantise(const quantize_matrix *w, const heddle_quantize_options *o, quantize_result *out,
                           bool *finite) {
  const int64_t blocks = (w->columns + o->block - 1) / o->block, wide = blocks * o->block;
  double square = 0, of_weight = 0;
  float *tile = heddle__alloc((size_t)w->columns, TILE * sizeof *tile);
  *finite = true;
  *out = (quantize_result){.q = heddle__alloc((size_t)w->rows, (size_t)wide),
                           .scale = heddle__alloc((size_t)w->rows, (size_t)blocks * sizeof(float)),
                           .zero = heddle__alloc((size_t)w->rows, (size_t)blocks),
                           .blocks = blocks};
  if (w->type != ONNX_FLOAT) out->half = heddle__alloc((size_t)w->rows, (size_t)blocks * sizeof(uint16_t));
  bool good = tile != NULL && out->q != NULL && out->scale != NULL && out->zero != NULL &&
              (w->type == ONNX_FLOAT || out->half != NULL);
  for (int64_t first = 0; good && *finite && first < w->rows; first += TILE) {
    const int64_t count = w->rows - first < TILE ? w->rows - first : TILE;
    for (int64_t k = 0; k < w->columns; k++)
      for (int64_t r = 0; r < count; r++)
        tile[r * w->columns + k] = number_at(w, (first + r) * w->row_step + k * w->column_step);
    for (int64_t r = 0; r < count; r++) {
      const float *row = tile + r * w->columns;
      for (int64_t b = 0; b < blocks; b++) {
        const int64_t n = w->columns - b * o->block < o->block ? w->columns - b * o->block : o->block;
        const int64_t at = (first + r) * blocks + b;
        uint8_t *q = out->q + (first + r) * wide + b * o->block;
        block_of(w, o, row + b * o->block, n, out, at, q);
        memset(q + n, out->zero[at], (size_t)(o->block - n));
        for (int64_t k = 0; k < n; k++) {
          const double x = row[b * o->block + k], d = x - ((double)q[k] - out->zero[at]) * out->scale[at];
          square += d * d;
          of_weight += x * x;
          out->worst = fmax(out->worst, fabs(d));
        }
      }
    }
    *finite = isfinite(of_weight);
  }
  heddle__free(tile);
  out->error = of_weight > 0 ? sqrt(square / of_weight) : 0;
  if (!good || !*finite) heddle__onnx_quantise_free(out);
  return good && *finite;
}

void heddle__onnx_quantise_free(quantize_result *x) {
  heddle__free(x->q);
  heddle__free(x->half);
  heddle__free(x->scale);
  heddle__free(x->zero);
  *x = (quantize_result){.q = NULL};
}
