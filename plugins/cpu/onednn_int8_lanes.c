/* The loops over elements of quantised regions, compiled twice: for AVX2, and for AVX-512. They are plain C, whose results
 * do not depend on the vectors: every step is rounded as float32, and half goes to even. */
#include "onednn_int8.h"

#if defined(__GNUC__) && defined(__x86_64__)
#define WIDE __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx2")))
#define NARROW __attribute__((target("avx2")))
#else
#define WIDE
#define NARROW
#endif
#define INSIDE static inline __attribute__((always_inline))

/* 1.5 * 2^23: what a float of less than 2^22 is added to keeps no fraction, and its lower bits are the integer. */
#define MAGIC 12582912.0f
#define MAGIC_BITS 0x4B400000

INSIDE int32_t rounded(float x, float least, float most) {
  int32_t bits;
  x = x < least ? least : x;
  x = x > most ? most : x;
  x += MAGIC;
  memcpy(&bits, &x, sizeof bits);
  return bits - MAGIC_BITS;
}

INSIDE int32_t plus(int32_t a, int32_t b) {
  return (int32_t)((uint32_t)a + (uint32_t)b);
}

INSIDE int32_t times(int32_t a, int32_t b) {
  return (int32_t)((uint32_t)a * (uint32_t)b);
}

INSIDE void round_bytes(const int8_round *r, const int32_t *restrict acc, const int32_t *restrict add,
                        uint8_t *restrict out, int64_t places) {
  const float *restrict scale = r->scale;
  const int64_t n = r->channels;
  const float least = r->least, most = r->most;
  const int32_t zero = r->zero;
  for (; places > 0; places--, acc += r->acc_step, out += r->out_step)
    for (int64_t c = 0; c < n; c++)
      out[c] = (uint8_t)(rounded((float)plus(acc[c], add[c]) * scale[c], least, most) + zero);
}

INSIDE void round_bytes_ones(const int8_round *r, const int32_t *restrict acc, const int32_t *restrict add,
                             uint8_t *restrict out, int64_t places) {
  for (; places > 0; places--, acc += r->acc_step, out += r->out_step)
    for (int64_t c = 0; c < r->channels; c++) {
      const int32_t sum = plus(plus(acc[c], add[c]), -times(r->w_zero[c], acc[r->channels]));
      out[c] = (uint8_t)(rounded((float)sum * r->scale[c], r->least, r->most) + r->zero);
    }
}

/* acc and out may be the same. */
INSIDE void keep_sums(const int8_round *r, const int32_t *acc, const int32_t *restrict add, int32_t *out,
                      int64_t places) {
  for (; places > 0; places--, acc += r->acc_step, out += r->out_step)
    for (int64_t c = 0; c < r->channels; c++) out[c] = plus(acc[c], add[c]);
}

INSIDE void keep_sums_ones(const int8_round *r, const int32_t *acc, const int32_t *restrict add, int32_t *out,
                           int64_t places) {
  for (; places > 0; places--, acc += r->acc_step, out += r->out_step)
    for (int64_t c = 0; c < r->channels; c++)
      out[c] = plus(plus(acc[c], add[c]), -times(r->w_zero[c], acc[r->channels]));
}

INSIDE void real_numbers(const int8_round *r, const int32_t *restrict acc, const int32_t *restrict add,
                         float *restrict out, int64_t places) {
  const float *restrict scale = r->scale, *restrict bias = r->bias;
  for (; places > 0; places--, acc += r->acc_step, out += r->out_step) {
    if (r->w_zero != NULL)
      for (int64_t c = 0; c < r->channels; c++)
        out[c] = (float)plus(plus(acc[c], add[c]), -times(r->w_zero[c], acc[r->channels])) * scale[c];
    else
      for (int64_t c = 0; c < r->channels; c++) out[c] = (float)plus(acc[c], add[c]) * scale[c];
    if (bias == NULL) continue;
    for (int64_t c = 0; c < r->channels; c++) out[c] += bias[c];
  }
}

INSIDE void round_any(const int8_round *r, const int32_t *acc, const int32_t *add, void *out, int64_t places) {
  if (r->real) real_numbers(r, acc, add, out, places);
  else if (r->scale != NULL && r->w_zero == NULL) round_bytes(r, acc, add, out, places);
  else if (r->scale != NULL) round_bytes_ones(r, acc, add, out, places);
  else if (r->w_zero == NULL) keep_sums(r, acc, add, out, places);
  else keep_sums_ones(r, acc, add, out, places);
}

INSIDE void mix_any(const int8_mix *m, const uint8_t *restrict a, const uint8_t *restrict b, uint8_t *restrict out,
                    int64_t n) {
  const int8_mix k = *m;
  for (int64_t i = 0; k.times && i < n; i++) {
    const float x = (float)((a[i] ^ k.flip[0]) - k.zero[0]) * k.scale[0];
    const float y = (float)((b[i] ^ k.flip[1]) - k.zero[1]) * k.scale[1];
    const float made = x * y;
    out[i] = (uint8_t)(rounded((made < k.floor ? k.floor : made) / k.scale[2], k.least, k.most) + k.zero[2]);
  }
  if (k.times) return;
  for (int64_t i = 0; i < n; i++) {
    const float x = (float)((a[i] ^ k.flip[0]) - k.zero[0]) * k.scale[0];
    const float y = (float)((b[i] ^ k.flip[1]) - k.zero[1]) * k.scale[1];
    const float sum = x + y;
    out[i] = (uint8_t)(rounded((sum < k.floor ? k.floor : sum) / k.scale[2], k.least, k.most) + k.zero[2]);
  }
}

INSIDE void look_any(const uint8_t *restrict table, const uint8_t *restrict in, uint8_t *restrict out, int64_t n) {
  enum { ROW = 8 };
  int64_t i = 0;
  for (; i + ROW <= n; i += ROW) {
    uint64_t eight, made = 0;
    memcpy(&eight, in + i, ROW);
    for (int k = 0; k < ROW; k++) made |= (uint64_t)table[eight >> (8 * k) & 255] << (8 * k);
    memcpy(out + i, &made, ROW);
  }
  for (; i < n; i++) out[i] = table[in[i]];
}

INSIDE void most_any(uint8_t *restrict out, const uint8_t *restrict in, uint8_t flip, int64_t n) {
  for (int64_t i = 0; i < n; i++) {
    const uint8_t a = out[i] ^ flip, b = in[i] ^ flip;
    out[i] = (a > b ? a : b) ^ flip;
  }
}

#define MAKE(name, target) \
  target static void round_##name(const int8_round *r, const int32_t *acc, const int32_t *add, void *out, \
                                  int64_t places) { \
    round_any(r, acc, add, out, places); \
  } \
  target static void mix_##name(const int8_mix *m, const uint8_t *a, const uint8_t *b, uint8_t *out, int64_t n) { \
    mix_any(m, a, b, out, n); \
  } \
  target static void look_##name(const uint8_t *table, const uint8_t *in, uint8_t *out, int64_t n) { \
    look_any(table, in, out, n); \
  } \
  target static void most_##name(uint8_t *out, const uint8_t *in, uint8_t flip, int64_t n) { \
    most_any(out, in, flip, n); \
  }
MAKE(wide, WIDE)
MAKE(narrow, NARROW)

const int8_lanes *int8_lanes_here(void) {
  static const int8_lanes wide = {round_wide, mix_wide, look_wide, most_wide},
                          narrow = {round_narrow, mix_narrow, look_narrow, most_narrow};
  const dnnl_cpu_isa_t isa = dnnl_get_effective_cpu_isa();
  return (isa & dnnl_cpu_isa_avx512_core) == dnnl_cpu_isa_avx512_core ? &wide : &narrow;
}
