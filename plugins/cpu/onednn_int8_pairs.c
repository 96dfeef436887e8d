/* Sums of products of bytes, for processors on which oneDNN's saturate: without VNNI, its kernels add two products up in 16
 * bits. Here bytes are widened to 16 bits and multiplied in pairs of channels, whose sums are int32 (vpmaddwd), so every
 * sum is exact.
 *
 * A block's input is widened once to rows that have the window's padding around them as zeros. A tile is up to six places
 * by 16 channels. Weights are packed by 16 channels, each tap by pairs of input channels: [16 channels][2]. A convolution of
 * one channel a group takes pairs of taps instead, of 16 groups at a time. */
#include "onednn_int8.h"
#include "plugins/common/ref/types.h"

#if defined(__GNUC__) && defined(__x86_64__)

#include <immintrin.h>

#define NARROW __attribute__((target("avx2")))

enum { WIDE = 16 /* channels at a time */, PLACES = 6, PACKED = 2 * WIDE, MOST_TAPS = 64 /* of a channel a group */ };

/* How a block's product is computed: rows and cols of the widened input, elements of a place in it, and of a group. */
typedef struct shape {
  const ref_window *w;
  int64_t rows, cols, place, group;
  int64_t groups, depth, channels; /* channels of a group of the result, in all with one of ones */
  int64_t taps;
  bool each; /* a channel a group */
} shape;

static int64_t up_to(int64_t n, int64_t of) {
  return (n + of - 1) / of * of;
}

/* channels: of all groups, with the one of ones. */
static shape shape_of(const int8_product *p, const int8_kind *kind, int64_t channels) {
  const ref_window *w = &p->window;
  const int64_t reach = (w->out[2] - 1) * w->stride[2] + (w->kernel[2] - 1) * w->dilation[2] + 1;
  shape s = {.w = w,
             .rows = kind->in_rows + kind->before + kind->after,
             .cols = reach > w->in[2] + w->pad[2] ? reach : w->in[2] + w->pad[2],
             .groups = p->groups,
             .depth = p->in_channels / p->groups,
             .channels = channels / p->groups,
             .taps = p->taps};
  s.each = s.groups > 1 && s.depth == 1 && s.channels == 1 && s.taps <= MOST_TAPS;
  s.group = s.each ? 1 : up_to(s.depth, 2);
  s.place = s.each ? up_to(s.groups, WIDE) : s.group * s.groups;
  return s;
}

bool int8_pairs_here(void) {
  return (dnnl_get_effective_cpu_isa() & dnnl_cpu_isa_avx2) == dnnl_cpu_isa_avx2;
}

uint64_t int8_pairs_packed(const int8_product *p, int64_t channels) {
  const int8_kind none = {.rows = 1};
  const shape s = shape_of(p, &none, channels);
  if (s.each) return (uint64_t)(s.place * up_to(s.taps, 2)) * sizeof(int16_t);
  return (uint64_t)(s.groups * up_to(s.channels, WIDE) * s.taps * s.group) * sizeof(int16_t);
}

uint64_t int8_pairs_scratch(const int8_product *p, const int8_kind *kind, int64_t channels) {
  const shape s = shape_of(p, kind, channels);
  return (uint64_t)(s.rows * s.cols * s.place) * sizeof(int16_t);
}

/* ---------------------------------------------------------------- weights */

/* Two registers of int32 hold the even and the odd halves of their 128 bits where taps are interleaved. */
static int64_t lane_of(int64_t c) {
  return c / 8 * 4 + c % 4 + (c % 8 >= 4 ? 8 : 0);
}

void int8_pairs_pack(const int8_product *p, int64_t channels, const int8_t *plain, int16_t *to) {
  const int8_kind none = {.rows = 1};
  const shape s = shape_of(p, &none, channels);
  memset(to, 0, int8_pairs_packed(p, channels));
  for (int64_t c = 0; s.each && c < s.groups; c++)
    for (int64_t t = 0; t < s.taps; t++)
      to[(c / WIDE * up_to(s.taps, 2) + t / 2 * 2) * WIDE + lane_of(c % WIDE) * 2 + t % 2] = plain[c * s.taps + t];
  const int64_t next = p->matmul ? 1 : s.depth * s.taps, deeper = p->matmul ? channels : s.taps;
  for (int64_t g = 0; !s.each && g < s.groups; g++)
    for (int64_t c = 0; c < s.channels; c += WIDE, to += s.taps * s.group * WIDE) {
      const int64_t n = s.channels - c < WIDE ? s.channels - c : WIDE;
      for (int64_t k = 0; k < s.depth; k++)
        for (int64_t t = 0; t < s.taps; t++) {
          const int8_t *from = plain + (g * s.channels + c) * next + k * deeper + t;
          int16_t *at = to + (t * s.group + k / 2 * 2) * WIDE + k % 2;
          for (int64_t i = 0; i < n; i++) at[2 * i] = from[i * next];
        }
    }
}

/* ---------------------------------------------------------------- the input */

NARROW static void widen(const uint8_t *x, bool is_signed, int64_t n, int16_t *to) {
  int64_t i = 0;
  for (; i + WIDE <= n; i += WIDE) {
    const __m128i bytes = _mm_loadu_si128((const void *)(x + i));
    _mm256_storeu_si256((void *)(to + i), is_signed ? _mm256_cvtepi8_epi16(bytes) : _mm256_cvtepu8_epi16(bytes));
  }
  for (; i < n; i++) to[i] = is_signed ? (int8_t)x[i] : x[i];
}

static void widen_row(const shape *s, const uint8_t *x, bool is_signed, int16_t *to) {
  const int64_t used = s->depth * s->groups, cols = s->w->in[2], pad = s->w->pad[2];
  memset(to, 0, (size_t)(pad * s->place) * sizeof *to);
  memset(to + (pad + cols) * s->place, 0, (size_t)((s->cols - pad - cols) * s->place) * sizeof *to);
  to += pad * s->place;
  if (used == s->place) {
    widen(x, is_signed, cols * used, to);
    return;
  }
  for (int64_t i = 0; i < cols; i++, x += used, to += s->place) {
    memset(to, 0, (size_t)s->place * sizeof *to);
    if (s->each || s->groups == 1) widen(x, is_signed, used, to);
    else
      for (int64_t g = 0; g < s->groups; g++) widen(x + g * s->depth, is_signed, s->depth, to + g * s->group);
  }
}

static void widen_block(const shape *s, const int8_kind *kind, const uint8_t *x, bool is_signed, int16_t *to) {
  const int64_t row = s->cols * s->place;
  memset(to, 0, (size_t)(kind->before * row) * sizeof *to);
  memset(to + (kind->before + kind->in_rows) * row, 0, (size_t)(kind->after * row) * sizeof *to);
  for (int64_t i = 0; i < kind->in_rows; i++)
    widen_row(s, x + i * s->w->in[2] * s->depth * s->groups, is_signed, to + (kind->before + i) * row);
}

/* ---------------------------------------------------------------- tiles */

/* Elements that lie side by side in the input and in the packed weights: rows of them, step apart. */
typedef struct lines {
  int64_t rows, step, row_step, each, pairs; /* rows of `each` lines, row_step apart; a line has pairs */
} lines;

NARROW static inline __m256i pair_at(const int16_t *x) {
  int32_t pair;
  memcpy(&pair, x, sizeof pair);
  return _mm256_set1_epi32(pair);
}

/* N places from at[] by 16 channels of the weights; to: [N][16]. */
#define TILE(N) \
  NARROW static void tile_##N(const int16_t *const *at, const lines *l, const int16_t *w, int32_t *to) { \
    __m256i sum[N][2]; \
    REF_UNROLLED for (int r = 0; r < N; r++) sum[r][0] = sum[r][1] = _mm256_setzero_si256(); \
    for (int64_t i = 0; i < l->rows * l->each; i++) { \
      const int64_t from = i / l->each * l->row_step + i % l->each * l->step; \
      const int16_t *x[N]; \
      REF_UNROLLED for (int r = 0; r < N; r++) x[r] = at[r] + from; \
      for (int64_t k = 0; k < l->pairs; k++, w += PACKED) { \
        const __m256i low = _mm256_loadu_si256((const void *)w), high = _mm256_loadu_si256((const void *)(w + WIDE)); \
        REF_UNROLLED for (int r = 0; r < N; r++) { \
          const __m256i pair = pair_at(x[r] + 2 * k); \
          sum[r][0] = _mm256_add_epi32(sum[r][0], _mm256_madd_epi16(pair, low)); \
          sum[r][1] = _mm256_add_epi32(sum[r][1], _mm256_madd_epi16(pair, high)); \
        } \
      } \
    } \
    REF_UNROLLED for (int r = 0; r < N; r++) { \
      _mm256_storeu_si256((void *)(to + r * WIDE), sum[r][0]); \
      _mm256_storeu_si256((void *)(to + r * WIDE + WIDE / 2), sum[r][1]); \
    } \
  }
TILE(1)
TILE(2)
TILE(3)
TILE(4)
TILE(5)
TILE(6)

static lines lines_of(const shape *s) {
  const ref_window *w = s->w;
  lines l = {.rows = w->kernel[1],
             .row_step = w->dilation[1] * s->cols * s->place,
             .each = w->kernel[2],
             .step = w->dilation[2] * s->place,
             .pairs = s->group / 2};
  if (s->groups == 1 && w->dilation[2] == 1) { /* taps of a row are neighbours, too */
    l.pairs *= l.each;
    l.each = 1;
  }
  return l;
}

/* Goes through the places of a block, row by row. */
typedef struct walk {
  const int16_t *row, *at;
  int64_t col, cols, row_step, step;
} walk;

static walk walk_of(const shape *s, const int16_t *x) {
  const ref_window *w = s->w;
  return (walk){.row = x,
                .at = x,
                .cols = w->out[2],
                .row_step = w->stride[1] * s->cols * s->place,
                .step = w->stride[2] * s->place};
}

static inline const int16_t *next_place(walk *w) {
  const int16_t *at = w->at;
  w->at += w->step;
  if (++w->col == w->cols) {
    w->at = w->row += w->row_step;
    w->col = 0;
  }
  return at;
}

static inline void put(const int32_t *sums, int64_t n, int32_t *out) {
  if (n == WIDE) memcpy(out, sums, WIDE * sizeof *sums);
  else
    for (int64_t i = 0; i < n; i++) out[i] = sums[i];
}

static void multiply(const shape *s, const int16_t *x, int64_t places, const int16_t *w, int32_t *out) {
  static void (*const tiles[PLACES])(const int16_t *const *, const lines *, const int16_t *,
                                     int32_t *) = {tile_1, tile_2, tile_3, tile_4, tile_5, tile_6};
  const lines l = lines_of(s);
  const int64_t all = s->channels * s->groups, block = s->taps * s->group * WIDE;
  for (int64_t g = 0; g < s->groups; g++)
    for (int64_t c = 0; c < s->channels; c += WIDE, w += block) {
      const int64_t n = s->channels - c < WIDE ? s->channels - c : WIDE;
      walk to_go = walk_of(s, x + g * s->group);
      int32_t *to = out + g * s->channels + c;
      for (int64_t i = 0, some; i < places; i += some) {
        const int16_t *at[PLACES];
        int32_t sums[PLACES][WIDE];
        some = places - i < PLACES ? places - i : PLACES;
        for (int64_t r = 0; r < some; r++) at[r] = next_place(&to_go);
        tiles[some - 1](at, &l, w, sums[0]);
        for (int64_t r = 0; r < some; r++, to += all) put(sums[r], n, to);
      }
    }
}

/* ---------------------------------------------------------------- a channel a group */

NARROW static void add_taps(const int16_t *x, const int16_t *y, const int16_t *w, __m256i *even, __m256i *odd) {
  const __m256i a = _mm256_loadu_si256((const void *)x), b = _mm256_loadu_si256((const void *)y);
  const __m256i low = _mm256_loadu_si256((const void *)w), high = _mm256_loadu_si256((const void *)(w + WIDE));
  *even = _mm256_add_epi32(*even, _mm256_madd_epi16(_mm256_unpacklo_epi16(a, b), low));
  *odd = _mm256_add_epi32(*odd, _mm256_madd_epi16(_mm256_unpackhi_epi16(a, b), high));
}

NARROW static void multiply_each(const shape *s, const int16_t *x, int64_t places, const int16_t *packed,
                                 int32_t *out) {
  const ref_window *w = s->w;
  int64_t from[MOST_TAPS + 1]; /* of each tap; behind the last of an odd number its own, which weighs 0 */
  for (int64_t t = 0; t <= s->taps; t++) {
    const int64_t tap = t < s->taps ? t : s->taps - 1;
    from[t] = (tap / w->kernel[2] * w->dilation[1] * s->cols + tap % w->kernel[2] * w->dilation[2]) * s->place;
  }
  walk to_go = walk_of(s, x);
  for (int64_t i = 0; i < places; i++, out += s->groups) {
    const int16_t *at = next_place(&to_go), *weights = packed;
    for (int64_t c = 0; c < s->groups; c += WIDE, at += WIDE) {
      __m256i even = _mm256_setzero_si256(), odd = even;
      for (int64_t t = 0; t < s->taps; t += 2, weights += PACKED)
        add_taps(at + from[t], at + from[t + 1], weights, &even, &odd);
      int32_t sums[WIDE];
      _mm256_storeu_si256((void *)sums, _mm256_permute2x128_si256(even, odd, 0x20));
      _mm256_storeu_si256((void *)(sums + WIDE / 2), _mm256_permute2x128_si256(even, odd, 0x31));
      put(sums, s->groups - c < WIDE ? s->groups - c : WIDE, out + c);
    }
  }
}

void int8_pairs_run(const int8_product *p, const int8_kind *kind, int64_t channels, bool is_signed, const void *x,
                    const int16_t *packed, int16_t *scratch, int32_t *out) {
  const shape s = shape_of(p, kind, channels);
  const int64_t places = kind->rows * p->window.out[2];
  widen_block(&s, kind, x, is_signed, scratch);
  if (s.each) multiply_each(&s, scratch, places, packed, out);
  else multiply(&s, scratch, places, packed, out);
}

#else

bool int8_pairs_here(void) {
  return false;
}

uint64_t int8_pairs_packed(const int8_product *p, int64_t channels) {
  (void)p, (void)channels;
  return 0;
}

uint64_t int8_pairs_scratch(const int8_product *p, const int8_kind *kind, int64_t channels) {
  (void)p, (void)kind, (void)channels;
  return 0;
}

void int8_pairs_pack(const int8_product *p, int64_t channels, const int8_t *plain, int16_t *to) {
  (void)p, (void)channels, (void)plain, (void)to;
}

void int8_pairs_run(const int8_product *p, const int8_kind *kind, int64_t channels, bool is_signed, const void *x,
                    const int16_t *packed, int16_t *scratch, int32_t *out) {
  (void)p, (void)kind, (void)channels, (void)is_signed, (void)x, (void)packed, (void)scratch, (void)out;
}

#endif
