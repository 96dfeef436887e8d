/* Products of other types than the tiled ones: MatMul and Gemm of float64, halves and integers, MatMulInteger, QLinearMatMul,
 * ConvInteger, QLinearConv, Einsum, Det. The table g has what the setups of plugins/common/more leave. */
#include "portable.cl"

#if defined(K_matmul_any) || defined(K_matmul_bytes) || defined(K_qlinear_matmul)
#define ROWS G(0)
#define COLS G(1)
#define DEPTH G(2)
#define BATCHES g[3]

/* Adds to at where the matrix of a batch begins in operand k. */
#define BATCH_AT(at, k, batch) \
  do { \
    const int own = G_IN(k, -1) > 2 ? CAST(int, G_IN(k, -1)) - 2 : 0; \
    IDX left = batch, size = own > 0 ? G_IN(k, own) * G_IN(k, own + 1) : 0; \
    for (int d = BATCHES - 1; d >= BATCHES - own; d--) { \
      const IDX n = G_IN(k, d - (BATCHES - own)); \
      if (n != 1) at += left % G(8 + d) * size; \
      size *= n; \
      left /= G(8 + d); \
    } \
  } while (false)
#endif

/* A byte, of int8 where is_signed. */
#if defined(K_matmul_bytes) || defined(K_qlinear_matmul) || defined(K_conv_bytes) || defined(K_qlinear_conv)
DEVICE int byte_of(uint v, bool is_signed) {
  return is_signed && v > 127u ? CAST(int, v) - 256 : CAST(int, v);
}
#endif
#define SIGNED(k) ((CAST(int, p.mode) >> (k) & 1) != 0)

/* Number i of a scale or zero point of operand k, which may be one for all. */
#define OF_EACH(k, i) (G_IN(k, -2) == 1 ? 0 : (i) % G_IN(k, -2))

#ifdef T0_REAL
#define TOTAL(sum) K_SUM(T0, sum)
#define TOTAL_ADD(sum, v) K_SUM_ADD(T0, sum, v)
#define TOTAL_OF(sum) (sum - sum##_rest)
#else
#define TOTAL(sum) K_C(T0) sum = NUM(0)
#define TOTAL_ADD(sum, v) sum = sum + (v)
#define TOTAL_OF(sum) (sum)
#endif

//! matmul_any: f64 f16 bf16 u8 u16 u32 u64
#ifdef K_matmul_any
/* An item has an element; integers wrap. */
KERNEL_3_1(matmul_any, k_general, T0, x0, T0, x1, i32, g, T0, y) {
  K_EACH(u, p.count);
  const IDX c = u % COLS, r = u / COLS % ROWS, batch = u / COLS / ROWS;
  IDX a = r * DEPTH, b = c;
  BATCH_AT(a, 0, batch);
  BATCH_AT(b, 1, batch);
  TOTAL(sum);
  for (IDX k = 0; k < DEPTH; k++) TOTAL_ADD(sum, GET(T0, x0[a + k]) * GET(T0, x1[b + k * COLS]));
  y[u] = PUT(T0, TOTAL_OF(sum));
}
#endif

//! gemm_any: f64 f16 bf16 u8 u16 u32 u64
#ifdef K_gemm_any
/* g: rows, columns, depth; 8 and 9: whether operands 0 and 1 are transposed. Integers have no factors. */
KERNEL_4_1(gemm_any, k_general, T0, x0, T0, x1, T0, x2, i32, g, T0, y) {
  K_EACH(u, p.count);
  const IDX rows = G(0), cols = G(1), depth = G(2), r = u / cols, c = u % cols;
  TOTAL(sum);
  for (IDX k = 0; k < depth; k++)
    TOTAL_ADD(sum, GET(T0, x0[g[8] != 0 ? k * rows + r : r * depth + k]) * GET(T0, x1[g[9] != 0 ? c * depth + k : k * cols + c]));
  K_C(T0) all = TOTAL_OF(sum);
#ifdef T0_REAL
  all = all * G_NUMBER(T0, 0);
#endif
  if (HAS(2)) {
    const int dims = CAST(int, G_IN(2, -1));
    const IDX own_cols = dims > 0 ? G_IN(2, dims - 1) : 1, own_rows = dims > 1 ? G_IN(2, dims - 2) : 1;
    const K_C(T0) more = GET(T0, x2[(own_rows == 1 ? 0 : r) * own_cols + (own_cols == 1 ? 0 : c)]);
#ifdef T0_REAL
    all = all + G_NUMBER(T0, 1) * more;
#else
    all = all + more;
#endif
  }
  y[u] = PUT(T0, all);
}
#endif

//! gemm_scaled: i8 i16 i32 i64 u8 u16 u32 u64; f64
#ifdef K_gemm_scaled
/* Integers with factors: in float64, cut towards zero, and wrapped where int64 or uint64 hold it. */
KERNEL_4_1(gemm_scaled, k_general, T0, x0, T0, x1, T0, x2, i32, g, T0, y) {
  K_EACH(u, p.count);
  const IDX rows = G(0), cols = G(1), depth = G(2), r = u / cols, c = u % cols;
  double all = CAST(double, 0);
  for (IDX k = 0; k < depth; k++)
    all += CAST(double, GET(T0, x0[g[8] != 0 ? k * rows + r : r * depth + k])) *
           CAST(double, GET(T0, x1[g[9] != 0 ? c * depth + k : k * cols + c]));
  all = all * G_NUMBER(f64, 0);
  if (HAS(2)) {
    const int dims = CAST(int, G_IN(2, -1));
    const IDX own_cols = dims > 0 ? G_IN(2, dims - 1) : 1, own_rows = dims > 1 ? G_IN(2, dims - 2) : 1;
    all += G_NUMBER(f64, 1) * CAST(double, GET(T0, x2[(own_rows == 1 ? 0 : r) * own_cols + (own_cols == 1 ? 0 : c)]));
  }
  const double most = CAST(double, 9223372036854774784.0f);
  ulong whole = CAST(ulong, 0);
  if (all > most) whole = all < most + most ? CAST(ulong, all) : ~CAST(ulong, 0);
  else if (all == all) whole = CAST(ulong, CAST(long, all < -most ? -most : all));
  y[u] = PUT(T0, CAST(K_C(T0), whole));
}
#endif

//! matmul_bytes: i32
#ifdef K_matmul_bytes
/* mode: bit k, operand k is int8, else uint8. */
KERNEL_5_1(matmul_bytes, k_general, u8, x0, u8, x1, u8, x2, u8, x3, i32, g, i32, y) {
  K_EACH(u, p.count);
  const IDX c = u % COLS, r = u / COLS % ROWS, batch = u / COLS / ROWS;
  IDX a = r * DEPTH, b = c;
  BATCH_AT(a, 0, batch);
  BATCH_AT(b, 1, batch);
  const int az = HAS(2) ? byte_of(CAST(uint, x2[OF_EACH(2, r)]), SIGNED(0)) : 0;
  const int bz = HAS(3) ? byte_of(CAST(uint, x3[OF_EACH(3, c)]), SIGNED(1)) : 0;
  uint sum = 0u;
  for (IDX k = 0; k < DEPTH; k++)
    sum += CAST(uint, (byte_of(CAST(uint, x0[a + k]), SIGNED(0)) - az) * (byte_of(CAST(uint, x1[b + k * COLS]), SIGNED(1)) - bz));
  y[u] = CAST(int, sum);
}
#endif

#if defined(K_qlinear_matmul) || defined(K_qlinear_conv)
/* sum times the scales a * b / c, rounded, and the zero point added, as a byte of the result. */
DEVICE uint requantized(int sum, K_C(T0) a, K_C(T0) b, K_C(T0) c, int zero, bool is_signed) {
  K_PRECISE K_C(T0) scale = a * b;
  scale = scale / c;
  const K_C(T0) v = RINT(NUM(sum) * scale), least = NUM(is_signed ? -128 : 0), most = NUM(is_signed ? 127 : 255);
  const K_C(T0) all = v + NUM(zero);
  const int whole = IS_NAN(T0, all) ? 0 : all < least ? CAST(int, least) : all > most ? CAST(int, most) : CAST(int, all);
  return CAST(uint, whole) & 255u;
}
#endif

//! qlinear_matmul: f32 f64 f16 bf16
#ifdef K_qlinear_matmul
/* mode: bits 0, 1 and 2, operands 0, 3 and the result are int8. */
KERNEL_9_1(qlinear_matmul, k_general, u8, x0, T0, x1, u8, x2, u8, x3, T0, x4, u8, x5, T0, x6, u8, x7, i32, g, u8, y) {
  K_EACH(u, p.count);
  const IDX c = u % COLS, r = u / COLS % ROWS, batch = u / COLS / ROWS;
  IDX a = r * DEPTH, b = c;
  BATCH_AT(a, 0, batch);
  BATCH_AT(b, 3, batch);
  const int az = byte_of(CAST(uint, x2[OF_EACH(2, r)]), SIGNED(0)), bz = byte_of(CAST(uint, x5[OF_EACH(5, c)]), SIGNED(1));
  int sum = 0;
  for (IDX k = 0; k < DEPTH; k++)
    sum += (byte_of(CAST(uint, x0[a + k]), SIGNED(0)) - az) * (byte_of(CAST(uint, x3[b + k * COLS]), SIGNED(1)) - bz);
  y[u] = PUT(u8, requantized(sum, GET(T0, x1[OF_EACH(1, r)]), GET(T0, x4[OF_EACH(4, c)]), GET(T0, x6[OF_EACH(6, r)]),
                             byte_of(CAST(uint, x7[OF_EACH(7, r)]), SIGNED(2)), SIGNED(2)));
}
#endif

#if defined(K_conv_bytes) || defined(K_qlinear_conv)
/* Declares sum, of the products at element u of the result, and c, its channel; see windows.cl for the table. x and w are
 * the image and the weights, xz and wz their zero points. */
#define CONVOLVE(x, w, xz, wz) \
  IDX plane = 1, places = 1, taps = 1; \
  for (int d = 0; d < g[0]; d++) { \
    plane *= G(1 + d); \
    places *= G(4 + d); \
    taps *= G(7 + d); \
  } \
  const IDX channels = G_OUT(0, 1), c = u / places % channels, per = G(23), group = c / G(24); \
  const IDX base = (u / places / channels * G(22) + group) * per * plane; \
  const int x_zero = xz, w_zero = wz; \
  uint sum = 0u; \
  for (IDX t = 0; t < taps; t++) { \
    IDX at = 0, size = 1, place = u % places, tap = t; \
    bool inside = true; \
    for (int d = g[0] - 1; d >= 0; d--) { \
      const IDX v = place % G(4 + d) * G(10 + d) + tap % G(7 + d) * G(13 + d) - G(16 + d); \
      inside = inside && v >= 0 && v < G(1 + d); \
      at += v * size; \
      size *= G(1 + d); \
      place /= G(4 + d); \
      tap /= G(7 + d); \
    } \
    for (IDX k = 0; inside && k < per; k++) \
      sum += CAST(uint, (byte_of(CAST(uint, x[base + k * plane + at]), SIGNED(0)) - x_zero) * \
                            (byte_of(CAST(uint, w[(c * per + k) * taps + t]), SIGNED(1)) - w_zero)); \
  }
#endif

//! conv_bytes: i32
#ifdef K_conv_bytes
KERNEL_5_1(conv_bytes, k_general, u8, x0, u8, x1, u8, x2, u8, x3, i32, g, i32, y) {
  K_EACH(u, p.count);
  CONVOLVE(x0, x1, HAS(2) ? byte_of(CAST(uint, x2[0]), SIGNED(0)) : 0,
           HAS(3) ? byte_of(CAST(uint, x3[OF_EACH(3, c)]), SIGNED(1)) : 0)
  y[u] = CAST(int, sum);
}
#endif

//! qlinear_conv: f32 f64 f16 bf16
#ifdef K_qlinear_conv
KERNEL_10_1(qlinear_conv, k_general, u8, x0, T0, x1, u8, x2, u8, x3, T0, x4, u8, x5, T0, x6, u8, x7, i32, x8, i32, g, u8, y) {
  K_EACH(u, p.count);
  CONVOLVE(x0, x3, byte_of(CAST(uint, x2[0]), SIGNED(0)), byte_of(CAST(uint, x5[OF_EACH(5, c)]), SIGNED(1)))
  if (HAS(8)) sum += CAST(uint, x8[c]);
  y[u] = PUT(u8, requantized(CAST(int, sum), GET(T0, x1[0]), GET(T0, x4[OF_EACH(4, c)]), GET(T0, x6[0]),
                             byte_of(CAST(uint, x7[0]), SIGNED(2)), SIGNED(2)));
}
#endif

//! einsum: f32 f64 f16 bf16 u8 u16 u32 u64
#ifdef K_einsum
/* g: how many letters there are, how many of them are of the result, and their sizes; behind the table, from K_G_WORDS on,
 * the steps of 16 letters for each operand. mode: how many operands there are; step: the letters' places that one is made
 * of. */
KERNEL_5_1(einsum, k_general, T0, x0, T0, x1, T0, x2, T0, x3, i32, g, T0, y) {
  K_EACH(u, p.count);
  const int letters = g[0], kept = g[1], operands = CAST(int, p.mode);
  IDX first[4];
  for (int k = 0; k < 4; k++) first[k] = 0;
  IDX left = u;
  for (int l = kept - 1; l >= 0; l--) {
    const IDX place = left % G(2 + l);
    left /= G(2 + l);
    for (int k = 0; k < operands; k++) first[k] += place * AT(g[K_G_WORDS + 16 * k + l]);
  }
  TOTAL(sum);
  for (IDX j = 0; j < AT(p.step); j++) {
    IDX at0 = first[0], at1 = first[1], at2 = first[2], at3 = first[3];
    left = j;
    for (int l = letters - 1; l >= kept; l--) {
      const IDX place = left % G(2 + l);
      left /= G(2 + l);
      at0 += place * AT(g[K_G_WORDS + l]);
      at1 += place * AT(g[K_G_WORDS + 16 + l]);
      at2 += place * AT(g[K_G_WORDS + 32 + l]);
      at3 += place * AT(g[K_G_WORDS + 48 + l]);
    }
    K_C(T0) v = GET(T0, x0[at0]);
    if (operands > 1) v = v * GET(T0, x1[at1]);
    if (operands > 2) v = v * GET(T0, x2[at2]);
    if (operands > 3) v = v * GET(T0, x3[at3]);
    TOTAL_ADD(sum, v);
  }
  y[u] = PUT(T0, TOTAL_OF(sum));
}
#endif

//! det: f32 f64 f16 bf16
#ifdef K_det
/* By elimination with the largest pivot, in a copy, which a matrix has n * n numbers behind its determinant for. */
KERNEL_2_1(det, k_general, T0, x0, i32, g, K_W(T0), y) {
  K_EACH(u, p.count);
  const IDX n = G(0), all = n * n, a = u * (all + 1) + 1;
  K_C(T0) det = NUM(1);
  for (IDX i = 0; i < all; i++) y[a + i] = GET(T0, x0[u * all + i]);
  for (IDX c = 0; c < n && det != NUM(0); c++) {
    IDX best = c;
    for (IDX r = c + 1; r < n; r++)
      if (ABS(y[a + r * n + c]) > ABS(y[a + best * n + c])) best = r;
    if (best != c) {
      det = -det;
      for (IDX k = 0; k < n; k++) {
        const K_C(T0) t = y[a + c * n + k];
        y[a + c * n + k] = y[a + best * n + k];
        y[a + best * n + k] = t;
      }
    }
    det = det * y[a + c * n + c];
    for (IDX r = c + 1; r < n && det != NUM(0); r++) {
      const K_C(T0) f = y[a + r * n + c] / y[a + c * n + c];
      for (IDX k = c; k < n; k++) y[a + r * n + k] = y[a + r * n + k] - f * y[a + c * n + k];
    }
  }
  y[u * (all + 1)] = det;
}
#endif

//! to_workspace: f16 bf16
#ifdef K_to_workspace
KERNEL_1_1(to_workspace, k_general, T0, x0, f32, y) {
  K_EACH(u, p.count);
  y[u] = GET(T0, x0[u]);
}
#endif

//! narrow: f64; f16 bf16
#ifdef K_narrow
/* Rounded once: first to float32, of which the last digit says whether anything was cut off. */
KERNEL_1_1(narrow, k_general, T0, x0, T1, y) {
  K_EACH(u, p.count);
  const double v = x0[u], size = ABS(v);
  const float near = CAST(float, v);
  const double back = ABS(CAST(double, near));
  uint bits = K_BITS(near);
  if (back > size) bits = (bits - 1u) | 1u;
  else if (back < size) bits = bits | 1u;
  y[u] = PUT(T1, K_FLOAT(bits));
}
#endif

//! from_workspace: f32 f64 f16 bf16
#ifdef K_from_workspace
/* Every step-th number from number mode on. */
KERNEL_1_1(from_workspace, k_general, K_W(T0), x0, T0, y) {
  K_EACH(u, p.count);
  y[u] = PUT(T0, x0[AT(p.mode) + u * AT(p.step)]);
}
#endif
