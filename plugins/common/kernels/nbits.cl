/* Products with weights of 2, 4 or 8 bits in blocks, MatMulNBits of domain "heddle", and with an expert's, MatMulExperts. The
 * table g has what plugins/common/more/nbits_unit.h names. */
#include "portable.cl"

#define DEPTH G(1)
#define COLUMNS G(2)
#define BLOCK G(3)
#define BITS CAST(int, g[4])
#define BLOCKS G(5)
#define ROW_BYTES G(8)
#define EXPERTS G(9)
#define SHARE G(10)

//! matmul_nbits: f32 f64 f16 bf16
#ifdef K_matmul_nbits
/* An item has an element. x1: weights; x2: scales; x3: packed zero points, where mode is 1; x4: as numbers, where it is 2; x5:
 * the block of each weight, where step is 1, or the expert of each row, where it is 2; x6: what is added, where operand 5 is
 * there. */
KERNEL_8_1(matmul_nbits, k_general, T0, x0, u8, x1, T0, x2, u8, x3, T0, x4, i32, x5, T0, x6, i32, g, T0, y) {
  K_EACH(u, p.count);
  const IDX r = u / COLUMNS, blocks = BLOCKS, block = BLOCK, depth = DEPTH;
  const int bits = BITS, each = 8 / bits;
  const uint mask = (1u << bits) - 1u;
  IDX c = u % COLUMNS, a = r * depth;
  if (p.step == 2) {
    const IDX e = AT(x5[r]);
    if (e < 0 || e >= EXPERTS) {
      y[u] = PUT(T0, CAST(K_C(T0), K_NAN));
      return;
    }
    c += e * COLUMNS;
    a = r / SHARE * depth;
  }
  const IDX row = c * ROW_BYTES, zero_row = c * ((blocks + each - 1) / each);
  IDX last = -1;
  K_C(T0) sum = CAST(K_C(T0), 0), scale = sum, zero = CAST(K_C(T0), 1 << (bits - 1));
  for (IDX k = 0; k < depth; k++) {
    IDX b = k / block;
    if (p.step == 1) b = AT(x5[k]);
    if (b < 0 || b >= blocks) b = 0;
    if (b != last) {
      scale = CAST(K_C(T0), GET(T0, x2[c * blocks + b]));
      if (p.mode == 1)
        zero = CAST(K_C(T0), CAST(uint, x3[zero_row + b / each]) >> (bits * CAST(int, b % each)) & mask);
      if (p.mode == 2) zero = CAST(K_C(T0), GET(T0, x4[c * blocks + b]));
      last = b;
    }
    const uint q = CAST(uint, x1[row + k / each]) >> (bits * CAST(int, k % each)) & mask;
    sum += CAST(K_C(T0), GET(T0, x0[a + k])) * ((CAST(K_C(T0), q) - zero) * scale);
  }
  if (HAS(5)) sum += CAST(K_C(T0), GET(T0, x6[c]));
  y[u] = PUT(T0, sum);
}
#endif

//! matmul_experts: f32 f64 f16 bf16
#ifdef K_matmul_experts
/* x1: weights that are numbers; x2: the expert of each row; x3: what is added, where operand 5 is there. */
KERNEL_5_1(matmul_experts, k_general, T0, x0, T0, x1, i32, x2, T0, x3, i32, g, T0, y) {
  K_EACH(u, p.count);
  const IDX r = u / COLUMNS, depth = DEPTH, e = AT(x2[r]);
  if (e < 0 || e >= EXPERTS) {
    y[u] = PUT(T0, CAST(K_C(T0), K_NAN));
    return;
  }
  const IDX c = e * COLUMNS + u % COLUMNS, a = r / SHARE * depth, w = c * depth;
  K_C(T0) sum = CAST(K_C(T0), 0);
  for (IDX k = 0; k < depth; k++) sum += CAST(K_C(T0), GET(T0, x0[a + k])) * CAST(K_C(T0), GET(T0, x1[w + k]));
  if (HAS(5)) sum += CAST(K_C(T0), GET(T0, x3[c]));
  y[u] = PUT(T0, sum);
}
#endif
