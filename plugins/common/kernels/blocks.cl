/* Weights in blocks of a form (plugins/common/more/block_forms.h): MatMulBlocks and FromBlocks of domain "heddle". The table g has
 * what plugins/common/more/nbits_unit.h names. x1: rows of blocks. */
#include "portable.cl"

#define DEPTH G(1)
#define COLUMNS G(2)
#define ROW_BYTES G(8)
#define FORM CAST(int, g[11])

#define F16 1
#define BF16 2
#define Q4_0 3
#define Q8_0 4
#define Q4_K 5
#define Q6_K 6

#define BYTE(i) CAST(uint, x1[i])
#define WORD(i) (BYTE(i) | BYTE((i) + 1) << 8)
#define HALF(i) k_half_get(WORD(i))
#define SIGNED(i) (CAST(int, BYTE(i) ^ 128u) - 128)

/* Weights that have one scale. */
#define PART(form, depth) (form == Q6_K ? 16 : form <= BF16 ? depth : 32)

/* Of the part from weight k of a row on, which begins at byte row: its block's first byte, its scale, and what is subtracted. */
#define BLOCK_OF(form, row, k, at, scale, least) \
  do { \
    at = row; \
    if (form == Q4_0 || form == Q8_0) { \
      at += k / 32 * (form == Q4_0 ? 18 : 34); \
      scale = HALF(at); \
    } \
    if (form == Q4_K) { \
      const IDX k_j = k / 32 % 8; \
      at += k / 256 * 144; \
      const IDX k_s = at + 4 + k_j; \
      const uint k_scale = k_j < 4 ? BYTE(k_s) & 63u : (BYTE(k_s + 4) & 15u) | BYTE(k_s - 4) >> 6 << 4; \
      const uint k_least = k_j < 4 ? BYTE(k_s + 4) & 63u : BYTE(k_s + 4) >> 4 | BYTE(k_s) >> 6 << 4; \
      scale = HALF(at) * CAST(float, k_scale); \
      least = HALF(at + 2) * CAST(float, k_least); \
    } \
    if (form == Q6_K) { \
      at += k / 256 * 210; \
      scale = HALF(at + 208) * CAST(float, SIGNED(at + 192 + k % 256 / 16)); \
    } \
  } while (false)

/* Weight k of the row, before its scale; at: its block. */
#define NUMBER_OF(form, row, k, at, q) \
  do { \
    if (form == F16) q = HALF(row + 2 * (k)); \
    if (form == BF16) q = K_FLOAT(WORD(row + 2 * (k)) << 16); \
    if (form == Q4_0) q = CAST(float, CAST(int, BYTE(at + 2 + (k) % 16) >> ((k) % 32 / 16 * 4) & 15u) - 8); \
    if (form == Q8_0) q = CAST(float, SIGNED(at + 2 + (k) % 32)); \
    if (form == Q4_K) q = CAST(float, BYTE(at + 16 + (k) % 256 / 64 * 32 + (k) % 32) >> ((k) / 32 % 2 * 4) & 15u); \
    if (form == Q6_K) { \
      const IDX k_half = (k) % 256 / 128, k_j = (k) % 128 / 32, k_i = (k) % 32; \
      const uint k_low = BYTE(at + 64 * k_half + k_j % 2 * 32 + k_i) >> (k_j / 2 * 4) & 15u; \
      const uint k_high = BYTE(at + 128 + 32 * k_half + k_i) >> (2 * k_j) & 3u; \
      q = CAST(float, CAST(int, k_low | k_high << 4) - 32); \
    } \
  } while (false)

//! matmul_blocks: f32 f64 f16 bf16
#ifdef K_matmul_blocks
/* An item has an element. x2: what is added, where operand 2 is there. */
KERNEL_4_1(matmul_blocks, k_general, T0, x0, u8, x1, T0, x2, i32, g, T0, y) {
  K_EACH(u, p.count);
  const IDX r = u / COLUMNS, c = u % COLUMNS, depth = DEPTH, row = c * ROW_BYTES;
  const int form = FORM;
  const IDX part = PART(form, depth);
  K_C(T0) sum = CAST(K_C(T0), 0);
  for (IDX first = 0; first < depth; first += part) {
    float scale = 1.0f, least = 0.0f;
    IDX at = row;
    BLOCK_OF(form, row, first, at, scale, least);
    for (IDX k = first; k < first + part; k++) {
      float q = 0.0f;
      NUMBER_OF(form, row, k, at, q);
      sum += CAST(K_C(T0), GET(T0, x0[r * depth + k])) * CAST(K_C(T0), scale * q - least);
    }
  }
  if (HAS(2)) sum += CAST(K_C(T0), GET(T0, x2[c]));
  y[u] = PUT(T0, sum);
}
#endif

//! from_blocks: u8
#ifdef K_from_blocks
KERNEL_2_1(from_blocks, k_general, T0, x1, i32, g, f32, y) {
  K_EACH(u, p.count);
  const IDX depth = DEPTH, row = u / depth * ROW_BYTES, k = u % depth;
  const int form = FORM;
  float scale = 1.0f, least = 0.0f, q = 0.0f;
  IDX at = row;
  const IDX part = k / 16 * 16;
  BLOCK_OF(form, row, part, at, scale, least);
  NUMBER_OF(form, row, k, at, q);
  y[u] = scale * q - least;
}
#endif
