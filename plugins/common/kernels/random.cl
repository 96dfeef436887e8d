/* Random numbers, Dropout in training: as plugins/common/more/random.c makes them, of Philox4x32-10. Element i has word i % 4 of
 * counter i / 4, and w stands for the number (w + 1/2) / 2^32. Numbers are computed in T1, float64 where the device has it, so
 * that they are those of other devices. */
#define K_MATH
#define K_ANGLES
#include "portable.cl"

DEVICE uint high_of(uint a, uint b) {
  const uint al = a & 0xffffu, ah = a >> 16, bl = b & 0xffffu, bh = b >> 16;
  const uint middle = ah * bl + (al * bl >> 16), other = al * bh + (middle & 0xffffu);
  return ah * bh + (middle >> 16) + (other >> 16);
}

DEVICE uint word_of(IDX i, uint low, uint high) {
  uint x0 = CAST(uint, i / 4), x2 = 0u, x3 = 0u, k0 = low, k1 = high;
#ifdef VULKAN
  uint x1 = 0u;
#else
  uint x1 = CAST(uint, CAST(ulong, i / 4) >> 32);
#endif
  for (int turn = 0; turn < 10; turn++) {
    const uint a = high_of(0xd2511f53u, x0), b = high_of(0xcd9e8d57u, x2);
    const uint y0 = b ^ x1 ^ k0, y2 = a ^ x3 ^ k1;
    x1 = 0xcd9e8d57u * x2;
    x3 = 0xd2511f53u * x0;
    x0 = y0;
    x2 = y2;
    k0 += 0x9e3779b9u;
    k1 += 0xbb67ae85u;
  }
  const int which = CAST(int, i % 4);
  return which == 0 ? x0 : which == 1 ? x1 : which == 2 ? x2 : x3;
}
#define WORD(i) word_of(i, CAST(uint, p.key_low), CAST(uint, p.key_high))
#define NUMBER(t, w) ((CAST(K_C(t), w) + CAST(K_C(t), 0.5f)) * CAST(K_C(t), 2.3283064365386963e-10f))
#define WIDE(x) CAST(K_C(T1), x)
#define MEAN (WIDE(p.mean) + WIDE(p.mean_rest))
#define SCALE (WIDE(p.scale) + WIDE(p.scale_rest))

/* Declares is, whether the number of word w is below v, exactly. */
#define BELOW(t, is, w, v) \
  const K_C(t) is##_limit = (v) * CAST(K_C(t), 4294967296.0f), is##_whole = floor(is##_limit); \
  const uint is##_word = (v) > CAST(K_C(t), 0) && (v) < CAST(K_C(t), 1) ? CAST(uint, is##_whole) : 0u; \
  const bool is = (v) >= CAST(K_C(t), 1) || \
                  ((v) > CAST(K_C(t), 0) && (is##_word > (w) || (is##_word == (w) && is##_limit - is##_whole > CAST(K_C(t), 0.5f))))

/* 2 pi. glslc adds constants of float64 as float32; OpenCL C has literals of float64 only where it has the type. */
#if defined(VULKAN) && defined(HAS_F64)
#define CIRCLE 6.283185307179586lf
#else
#define CIRCLE (WIDE(6.2831855f) + (WIDE(-1.7484555e-07f) + WIDE(-7.1054274e-15f)))
#endif

//! random_normal: f32 f16 bf16; f32 f64
//! random_normal: f64; f64
#ifdef K_random_normal
/* Box and Muller: two of two numbers. No operand is read. */
KERNEL_1_1(random_normal, k_random, i32, g, T0, y) {
  K_EACH(i, p.count);
  const IDX first = i / 2 * 2;
  const K_C(T1) radius = sqrt(WIDE(-2) * LOG(NUMBER(T1, WORD(first))));
  const K_C(T1) angle = CIRCLE * NUMBER(T1, WORD(first + 1));
  y[i] = PUT(T0, CAST(K_C(T0), MEAN + SCALE * (radius * (i % 2 == 0 ? COS(angle) : SIN(angle)))));
}
#endif

//! random_uniform: f32 f16 bf16; f32 f64
//! random_uniform: f64; f64
#ifdef K_random_uniform
/* What is rounded up to the end, which is not in it, is the beginning. */
KERNEL_1_1(random_uniform, k_random, i32, g, T0, y) {
  K_EACH(i, p.count);
  const K_C(T1) least = MEAN, most = MEAN + SCALE;
  const K_C(T0) x = ROUND(T0, CAST(K_C(T0), least + SCALE * NUMBER(T1, WORD(i))));
  y[i] = PUT(T0, WIDE(x) >= most && most > least ? CAST(K_C(T0), least) : x);
}
#endif

//! bernoulli: f32 f64 f16 bf16; w1 w2 w4 w8
#ifdef K_bernoulli
/* x1: what stands for 0 and for 1. */
KERNEL_2_1(bernoulli, k_random, T0, x0, T1, x1, T1, y) {
  K_EACH(i, p.count);
  const K_C(T0) v = GET(T0, x0[i]);
  const uint w = WORD(i);
  BELOW(T0, is, w, v);
  y[i] = x1[is ? 1 : 0];
}
#endif

//! multinomial: f32 f16 bf16; f32 f64
//! multinomial: f64; f64
#ifdef K_multinomial
/* Sample i % samples of row i / samples: the first class whose probability, with those before it, is above a number. */
KERNEL_1_1(multinomial, k_random, T0, x0, i32, y) {
  K_EACH(i, p.count);
  const IDX n = AT(p.n), row = i / AT(p.samples) * n;
  K_C(T1) most = WIDE(-K_INFINITY), sum = WIDE(0), passed = WIDE(0);
  for (IDX c = 0; c < n; c++) {
    const K_C(T1) v = WIDE(GET(T0, x0[row + c]));
    most = v > most ? v : most;
  }
  for (IDX c = 0; c < n; c++) sum += EXP(WIDE(GET(T0, x0[row + c])) - most);
  const K_C(T1) at = NUMBER(T1, WORD(i)) * sum;
  IDX chosen = n - 1;
  for (IDX c = 0; c < n; c++) {
    passed += EXP(WIDE(GET(T0, x0[row + c])) - most);
    if (at < passed) {
      chosen = c;
      break;
    }
  }
  if (p.wide != 0) {
    y[2 * i] = CAST(int, chosen);
    y[2 * i + 1] = 0;
  } else {
    y[i] = CAST(int, chosen);
  }
}
#endif

//! dropout: f32 f16 bf16; f32 f64
//! dropout: f64; f64
#ifdef K_dropout
/* x1: the ratio. What stays is divided by how many do; of a ratio of 1 or more nothing does, of NaN neither. */
KERNEL_2_1(dropout, k_random, T0, x0, T1, x1, T0, y) {
  K_EACH(i, p.count);
  const K_C(T1) ratio = x1[0];
  const uint w = WORD(i);
  BELOW(T1, goes, w, ratio);
  const bool stays = ratio < WIDE(1) && !goes;
  y[i] = PUT(T0, CAST(K_C(T0), stays ? WIDE(GET(T0, x0[i])) / (WIDE(1) - ratio) : WIDE(0)));
}
#endif

//! dropout_mask: f32 f64
#ifdef K_dropout_mask
KERNEL_1_1(dropout_mask, k_random, T0, x0, b8, y) {
  K_EACH(i, p.count);
  const K_C(T0) ratio = x0[0];
  const uint w = WORD(i);
  BELOW(T0, goes, w, ratio);
  y[i] = PUT(b8, CAST(uint, ratio < NUM(1) && !goes ? 1 : 0));
}
#endif
