/* Weights in blocks that have their scales beside them, as GGUF files have them (docs/gguf.md): the forms, as numbers. Each number
 * is rounded once: a scale times a scale, and an integer, are exact before. Header only, so that every room may include it;
 * tests/python/test_blocks.py. */
#ifndef HEDDLE_PLUGINS_COMMON_BLOCKS_H
#define HEDDLE_PLUGINS_COMMON_BLOCKS_H

#include <stddef.h>
#include <stdint.h>

#include "plugins/common/float16.h"

/* Kernels of accelerators know these numbers too (kernels/blocks.cl). */
enum { BLOCK_NONE, BLOCK_F16, BLOCK_BF16, BLOCK_Q4_0, BLOCK_Q8_0, BLOCK_Q4_K, BLOCK_Q6_K, BLOCK_FORMS };

#define BLOCK_FORM_WORDS "none f16 bf16 q4_0 q8_0 q4_k q6_k"

typedef struct block_form {
  const char *name;         /* as the attribute form has it */
  uint8_t gguf;             /* the type's number in files */
  uint16_t elements, bytes; /* of a block */
  void (*read)(const uint8_t *block, float *out);
} block_form;

static inline float block_half_at(const uint8_t *at) {
  return float16_to_float((uint16_t)(at[0] | at[1] << 8));
}

static inline void block_read_f16(const uint8_t *b, float *y) {
  *y = block_half_at(b);
}

static inline void block_read_bf16(const uint8_t *b, float *y) {
  *y = bfloat16_to_float((uint16_t)(b[0] | b[1] << 8));
}

static inline void block_read_q4_0(const uint8_t *b, float *y) {
  const float d = block_half_at(b);
  for (int i = 0; i < 16; i++) {
    y[i] = (float)((b[2 + i] & 15) - 8) * d;
    y[i + 16] = (float)((b[2 + i] >> 4) - 8) * d;
  }
}

static inline void block_read_q8_0(const uint8_t *b, float *y) {
  const float d = block_half_at(b);
  for (int i = 0; i < 32; i++) y[i] = (float)(int8_t)b[2 + i] * d;
}

/* Scale and minimum j of eight, of six bits each. */
static inline void block_scales_at(const uint8_t *q, int j, float *scale, float *least) {
  *scale = (float)(j < 4 ? q[j] & 63 : (q[j + 4] & 15) | (q[j - 4] >> 6) << 4);
  *least = (float)(j < 4 ? q[j + 4] & 63 : q[j + 4] >> 4 | (q[j] >> 6) << 4);
}

static inline void block_read_q4_k(const uint8_t *b, float *y) {
  const float d = block_half_at(b), m = block_half_at(b + 2);
  for (int j = 0; j < 8; j++) {
    const uint8_t *q = b + 16 + 32 * (j / 2);
    float scale, least;
    block_scales_at(b + 4, j, &scale, &least);
    scale *= d;
    least *= m;
    if (j % 2 == 0)
      for (int i = 0; i < 32; i++) y[32 * j + i] = scale * (float)(q[i] & 15) - least;
    else
      for (int i = 0; i < 32; i++) y[32 * j + i] = scale * (float)(q[i] >> 4) - least;
  }
}

static inline void block_read_q6_k(const uint8_t *b, float *y) {
  const float d = block_half_at(b + 208);
  for (int n = 0; n < 2; n++) {
    const uint8_t *low = b + 64 * n, *high = b + 128 + 32 * n;
    const int8_t *scales = (const int8_t *)b + 192 + 8 * n;
    for (int j = 0; j < 4; j++)
      for (int i = 0; i < 32; i++) {
        const int nibble = j < 2 ? low[i + 32 * j] & 15 : low[i + 32 * (j - 2)] >> 4;
        const int q = (nibble | (high[i] >> 2 * j & 3) << 4) - 32;
        y[128 * n + 32 * j + i] = d * (float)scales[2 * j + i / 16] * (float)q;
      }
  }
}

/* By BLOCK_*; NULL: no such form. */
static inline const block_form *block_form_of(int form) {
  static const block_form forms[] = {
      {"f16", 1, 1, 2, block_read_f16},        {"bf16", 30, 1, 2, block_read_bf16},
      {"q4_0", 2, 32, 18, block_read_q4_0},    {"q8_0", 8, 32, 34, block_read_q8_0},
      {"q4_k", 12, 256, 144, block_read_q4_k}, {"q6_k", 14, 256, 210, block_read_q6_k},
  };
  return form > BLOCK_NONE && form < BLOCK_FORMS ? &forms[form - 1] : NULL;
}

#endif
