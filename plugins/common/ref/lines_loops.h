/* Included by lines.c once for each kind of vectors: LANES floats in one, TARGET, and NAME(x). A vector is as wide as a register: gcc takes a wider one apart into single elements. */
typedef float NAME(vector) __attribute__((vector_size(LANES * sizeof(float))));
typedef float NAME(loose)
    __attribute__((vector_size(LANES * sizeof(float)), aligned(4), may_alias)); /* at any address */

#define AT(p) (*(NAME(loose) *)(void *)(uintptr_t)(p))

/* Adds lines of one place or more, `blocks` vectors of them, with some taps: what is read of a line is used for all. */
TARGET INSIDE void NAME(sum_blocks)(const ref_lines *l, const float *in, const float *w, float *acc, const int lines,
                                    const int taps, const int blocks) {
  NAME(vector) sums[MOST_TAPS * 2];
  REF_UNROLLED for (int j = 0; j < taps * blocks; j++) sums[j] =
      AT(acc + j / blocks * l->acc_apart + j % blocks * LANES);
  for (int i = 0; i < lines; i++, in += l->apart, w += l->w_apart) {
    REF_UNROLLED for (int b = 0; b < blocks; b++) {
      const NAME(vector) more = AT(in + b * LANES);
      REF_UNROLLED for (int j = 0; j < taps; j++) sums[j * blocks + b] += more * w[j];
    }
  }
  REF_UNROLLED for (int j = 0; j < taps * blocks; j++) AT(acc + j / blocks * l->acc_apart + j % blocks * LANES) =
      sums[j];
}

/* Lines k to k + lines of l, one after the other at each place, with taps t to t + taps. */
TARGET INSIDE void NAME(sum_lines)(const ref_lines *l, int64_t k, const int lines, int64_t t, const int taps) {
  const float *in = l->in + k * l->apart, *w = l->w + k * l->w_apart + t;
  float *acc = l->acc + t * l->acc_apart;
  int64_t x = 0;
  for (; x + 2 * LANES <= l->n && MOST_BLOCKS > 1; x += 2 * LANES)
    NAME(sum_blocks)(l, in + x, w, acc + x, lines, taps, 2);
  for (; x + LANES <= l->n; x += LANES) NAME(sum_blocks)(l, in + x, w, acc + x, lines, taps, 1);
  for (; x < l->n; x++)
    for (int j = 0; j < taps; j++)
      for (int i = 0; i < lines; i++) acc[j * l->acc_apart + x] += in[i * l->apart + x] * w[i * l->w_apart + j];
}

TARGET INSIDE void NAME(sum_taps)(const ref_lines *l, int64_t t, const int taps) {
  int64_t k = 0;
  for (; k + MOST_LINES <= l->count; k += MOST_LINES) NAME(sum_lines)(l, k, MOST_LINES, t, taps);
  for (; k < l->count; k++) NAME(sum_lines)(l, k, 1, t, taps);
}

TARGET static void NAME(sum)(const ref_lines *l) {
  int64_t t = 0;
  for (; t + MOST_TAPS <= l->taps; t += MOST_TAPS) NAME(sum_taps)(l, t, MOST_TAPS);
  for (; t + 2 <= l->taps && MOST_TAPS > 1; t += 2) NAME(sum_taps)(l, t, 2);
  for (; t < l->taps; t++) NAME(sum_taps)(l, t, 1);
}

/* The sums of some vectors of places of some lines; n of them are kept. */
TARGET INSIDE void NAME(taps_blocks)(const ref_taps *t, const float *in, float *out, int64_t n, const int blocks,
                                     const int lines) {
  NAME(vector) sums[MOST_TAP_LINES * MOST_BLOCKS];
  float rest[MOST_BLOCKS * LANES];
  const float *w = t->w;
  REF_UNROLLED for (int b = 0; b < lines * blocks; b++) sums[b] = (NAME(vector)){0} + t->bias;
  for (int64_t p = 0; p < t->planes; p++, in += t->plane) {
    for (int64_t i = 0; i < t->rows; i++) {
      const float *from = in + i * t->row;
      int64_t phase = 0;
      for (int64_t j = 0; j < t->columns; j++, w++) {
        const float by = *w;
        REF_UNROLLED for (int b = 0; b < lines * blocks; b++) sums[b] +=
            AT(from + b / blocks * t->in_line + b % blocks * LANES) * by;
        from += t->tap;
        phase += t->turn;
        if (phase >= t->step) {
          phase -= t->step;
          from += t->back;
        }
      }
    }
  }
  for (int k = 0; k < lines; k++, out += t->out_line) {
    float *to = n < blocks * LANES ? rest : out;
    REF_UNROLLED for (int b = 0; b < blocks; b++) AT(to + b * LANES) = sums[k * blocks + b];
    if (to == rest) memcpy(out, rest, (size_t)n * sizeof *out);
  }
}

TARGET INSIDE void NAME(taps_line)(const ref_taps *t, const float *in, float *out, const int lines) {
  for (int64_t x = 0, left; (left = t->n - x) > 0;) {
    const int blocks = MOST_BLOCKS == 1 || left <= LANES ? 1 : left > 2 * LANES ? MOST_BLOCKS : 2;
    const int64_t n = left < blocks * LANES ? left : blocks * LANES;
    if (blocks == 4) NAME(taps_blocks)(t, in + x, out + x, n, MOST_BLOCKS, lines);
    else if (blocks == 2 && MOST_BLOCKS > 1) NAME(taps_blocks)(t, in + x, out + x, n, 2, lines);
    else NAME(taps_blocks)(t, in + x, out + x, n, 1, lines);
    x += n;
  }
}

TARGET static void NAME(taps)(const ref_taps *t, const float *in, float *out) {
  int64_t k = 0;
  for (; k + MOST_TAP_LINES <= t->lines; k += MOST_TAP_LINES)
    NAME(taps_line)(t, in + k * t->in_line, out + k * t->out_line, MOST_TAP_LINES);
  for (; k < t->lines; k++) NAME(taps_line)(t, in + k * t->in_line, out + k * t->out_line, 1);
}

TARGET static void NAME(split)(const float *in, int64_t n, float *even, float *odd) {
  REF_IVDEP
  for (int64_t i = 0; i < n / 2; i++) {
    const float a = in[2 * i], b = in[2 * i + 1];
    even[i] = a;
    odd[i] = b;
  }
  if (n % 2 != 0) even[n / 2] = in[n - 1];
}

TARGET static void NAME(join)(const float *even, const float *odd, int64_t n, float *out) {
  REF_IVDEP
  for (int64_t i = 0; i < n / 2; i++) {
    const float a = even[i], b = odd[i];
    out[2 * i] = a;
    out[2 * i + 1] = b;
  }
  if (n % 2 != 0) out[n - 1] = even[n / 2];
}

TARGET static void NAME(plus)(float *acc, const float *line, int64_t n) {
  REF_IVDEP
  for (int64_t x = 0; x < n; x++) acc[x] += line[x];
}

TARGET static void NAME(add)(double *acc, const double *line, double by, int64_t n) {
  REF_IVDEP
  for (int64_t x = 0; x < n; x++) acc[x] += line[x] * by;
}

/* Half as many doubles fill a vector. */
typedef double NAME(doubles) __attribute__((vector_size(LANES * sizeof(float))));
typedef float NAME(few) __attribute__((vector_size(LANES * sizeof(float) / 2), aligned(4), may_alias));

TARGET INSIDE void NAME(mix_blocks)(const float *in, const int64_t *at, const double *by, int64_t count, float *out,
                                    const int blocks) {
  enum { HALF = LANES / 2 };
  NAME(doubles) sums[MOST_BLOCKS];
  REF_UNROLLED for (int b = 0; b < blocks; b++) sums[b] = (NAME(doubles)){0};
  for (int64_t k = 0; k < count; k++) {
    const float *from = in + at[k];
    REF_UNROLLED for (int b = 0; b < blocks; b++) {
      const NAME(few) x = *(const NAME(few) *)(const void *)(from + b * HALF);
      sums[b] += __builtin_convertvector(x, NAME(doubles)) * by[k];
    }
  }
  REF_UNROLLED for (int b = 0; b < blocks; b++) * (NAME(few) *)(void *)(out + b * HALF) =
      __builtin_convertvector(sums[b], NAME(few));
}

TARGET static void NAME(mix)(const float *in, const int64_t *at, const double *by, int64_t count, float *out,
                             int64_t n) {
  enum { HALF = LANES / 2 };
  int64_t x = 0;
  for (; x + MOST_BLOCKS * HALF <= n; x += MOST_BLOCKS * HALF)
    NAME(mix_blocks)(in + x, at, by, count, out + x, MOST_BLOCKS);
  for (; x + HALF <= n; x += HALF) NAME(mix_blocks)(in + x, at, by, count, out + x, 1);
  for (; x < n; x++) {
    double sum = 0;
    for (int64_t k = 0; k < count; k++) sum += (double)in[at[k] + x] * by[k];
    out[x] = (float)sum;
  }
}

TARGET static void NAME(round)(float *out, const double *acc, int64_t n) {
  REF_IVDEP
  for (int64_t x = 0; x < n; x++) out[x] = (float)acc[x];
}

#undef AT
#undef LANES
#undef TARGET
#undef NAME
