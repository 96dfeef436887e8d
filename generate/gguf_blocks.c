/* generate/gguf_blocks.c: the types of GGUF's tensors that are read: floats, Q4_0, Q8_0, Q4_K and Q6_K. */
#include <string.h>

#include "core/alloc.h"
#include "generate/gguf.h"
#include "plugins/common/float16.h"

enum { T_F32 = 0, T_F16 = 1, T_Q4_0 = 2, T_Q8_0 = 8, T_Q4_K = 12, T_Q6_K = 14, T_BF16 = 30 };

/* Elements and bytes of a block. */
static bool block_of(uint32_t type, uint32_t *elements, uint32_t *bytes) {
  static const struct {
    uint8_t type;
    uint16_t elements, bytes;
  } known[] = {{T_F32, 1, 4},      {T_F16, 1, 2},      {T_Q4_0, 32, 18}, {T_Q8_0, 32, 34},
               {T_Q4_K, 256, 144}, {T_Q6_K, 256, 210}, {T_BF16, 1, 2}};
  for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
    if (known[i].type != type) continue;
    *elements = known[i].elements;
    *bytes = known[i].bytes;
    return true;
  }
  return false;
}

uint64_t heddle__gguf_bytes(uint32_t type, uint64_t count, uint64_t row) {
  uint32_t elements, bytes;
  uint64_t all;
  if (!block_of(type, &elements, &bytes) || row % elements != 0 || !heddle__mul(count / elements, bytes, &all))
    return 0;
  return all;
}

static float half_at(const uint8_t *at) {
  return float16_to_float((uint16_t)(at[0] | at[1] << 8));
}

static void read_q4_0(const uint8_t *b, float *y) {
  const float d = half_at(b);
  for (int i = 0; i < 16; i++) {
    y[i] = (float)((b[2 + i] & 15) - 8) * d;
    y[i + 16] = (float)((b[2 + i] >> 4) - 8) * d;
  }
}

static void read_q8_0(const uint8_t *b, float *y) {
  const float d = half_at(b);
  for (int i = 0; i < 32; i++) y[i] = (float)(int8_t)b[2 + i] * d;
}

/* Scale and minimum j of eight, of six bits each. */
static void scale_at(const uint8_t *q, int j, float *scale, float *least) {
  *scale = (float)(j < 4 ? q[j] & 63 : (q[j + 4] & 15) | (q[j - 4] >> 6) << 4);
  *least = (float)(j < 4 ? q[j + 4] & 63 : q[j + 4] >> 4 | (q[j] >> 6) << 4);
}

static void read_q4_k(const uint8_t *b, float *y) {
  const float d = half_at(b), m = half_at(b + 2);
  for (int j = 0; j < 8; j++) {
    const uint8_t *q = b + 16 + 32 * (j / 2);
    float scale, least;
    scale_at(b + 4, j, &scale, &least);
    for (int i = 0; i < 32; i++) y[32 * j + i] = d * scale * (float)(j % 2 == 0 ? q[i] & 15 : q[i] >> 4) - m * least;
  }
}

static void read_q6_k(const uint8_t *b, float *y) {
  const float d = half_at(b + 208);
  for (int n = 0; n < 2; n++) {
    const uint8_t *low = b + 64 * n, *high = b + 128 + 32 * n;
    const int8_t *scales = (const int8_t *)b + 192 + 8 * n;
    for (int j = 0; j < 4; j++)
      for (int i = 0; i < 32; i++) {
        const int nibble = j < 2 ? low[i + 32 * j] & 15 : low[i + 32 * (j - 2)] >> 4;
        const int q = (nibble | (high[i] >> 2 * j & 3) << 4) - 32;
        const int8_t scale = scales[2 * j + i / 16];
        y[128 * n + 32 * j + i] = d * (float)scale * (float)q;
      }
  }
}

void heddle__gguf_read(const heddle__gguf_tensor *t, float *out) {
  uint32_t elements = 1, bytes = 4;
  block_of(t->type, &elements, &bytes);
  const uint8_t *b = t->data;
  for (uint64_t i = 0; i < t->count; i += elements, b += bytes) {
    switch (t->type) {
    case T_F16: out[i] = half_at(b); break;
    case T_BF16: out[i] = bfloat16_to_float((uint16_t)(b[0] | b[1] << 8)); break;
    case T_Q4_0: read_q4_0(b, out + i); break;
    case T_Q8_0: read_q8_0(b, out + i); break;
    case T_Q4_K: read_q4_k(b, out + i); break;
    case T_Q6_K: read_q6_k(b, out + i); break;
    default: memcpy(out + i, b, sizeof *out);
    }
  }
}
