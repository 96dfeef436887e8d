/* Included by lines.c once for each kind of vectors: LANES floats in one, EVEN, the numbers of every other one of two vectors,
 * TARGET, and NAME(x). A vector is as wide as a register: gcc takes a wider one apart into single elements. */
typedef float NAME(vector) __attribute__((vector_size(LANES * sizeof(float))));

/* Adds lines of one place or more, `blocks` vectors of them, with some taps: what is read of a line is used for all. */
TARGET INSIDE void NAME(sum_blocks)(const ref_lines *l, const float *in, const float *w, float *acc, const int lines,
                                    const int taps, const int blocks) {
  NAME(vector) sums[MOST_TAPS * 2], more;
  for (int j = 0; j < taps; j++)
    for (int b = 0; b < blocks; b++) memcpy(&sums[j * blocks + b], acc + j * l->acc_apart + b * LANES, sizeof more);
  for (int i = 0; i < lines; i++) {
    for (int b = 0; b < blocks; b++) {
      memcpy(&more, in + i * l->apart + b * LANES, sizeof more);
      for (int j = 0; j < taps; j++) sums[j * blocks + b] += more * w[i * l->w_apart + j];
    }
  }
  for (int j = 0; j < taps; j++)
    for (int b = 0; b < blocks; b++) memcpy(acc + j * l->acc_apart + b * LANES, &sums[j * blocks + b], sizeof more);
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

TARGET INSIDE void NAME(load)(const float *from, int64_t step, NAME(vector) * out) {
  NAME(vector) x, y;
  memcpy(out, from, sizeof *out);
  if (step == 1) return;
  x = *out;
  memcpy(&y, from + LANES, sizeof y);
  *out = __builtin_shufflevector(x, y, EVEN);
}

/* The sums of some blocks of LANES places of some lines, of a step of 1 or 2; n of them are kept. */
TARGET INSIDE void NAME(taps_blocks)(const ref_taps *t, const float *in, float *out, int64_t n, const int blocks,
                                     int64_t step, const int lines) {
  NAME(vector) sums[MOST_TAP_LINES * MOST_BLOCKS];
  float rest[MOST_BLOCKS * LANES];
  const float *w = t->w;
  for (int b = 0; b < lines * blocks; b++) sums[b] = (NAME(vector)){0} + t->bias;
  for (int64_t i = 0; i < t->rows; i++) {
    const float *from = in + i * t->row;
    for (int64_t j = 0; j < t->columns; j++, from += t->tap, w++) {
      const float by = *w;
      for (int b = 0; b < lines * blocks; b++) {
        NAME(vector) x;
        NAME(load)(from + b / blocks * t->in_line + b % blocks * LANES * step, step, &x);
        sums[b] += x * by;
      }
    }
  }
  for (int k = 0; k < lines; k++, out += t->out_line) {
    float *to = n < blocks * LANES ? rest : out;
    for (int b = 0; b < blocks; b++) memcpy(to + b * LANES, &sums[k * blocks + b], sizeof sums[0]);
    if (to == rest) memcpy(out, rest, (size_t)n * sizeof *out);
  }
}

TARGET INSIDE void NAME(taps_line)(const ref_taps *t, const float *in, float *out, int64_t step, const int lines) {
  for (int64_t x = 0, left; (left = t->n - x) > 0;) {
    const int blocks = MOST_BLOCKS == 1 || left <= LANES ? 1 : left > 2 * LANES ? MOST_BLOCKS : 2;
    const int64_t n = left < blocks * LANES ? left : blocks * LANES;
    if (blocks == 4) NAME(taps_blocks)(t, in + x * step, out + x, n, MOST_BLOCKS, step, lines);
    else if (blocks == 2 && MOST_BLOCKS > 1) NAME(taps_blocks)(t, in + x * step, out + x, n, 2, step, lines);
    else NAME(taps_blocks)(t, in + x * step, out + x, n, 1, step, lines);
    x += n;
  }
}

TARGET static void NAME(taps)(const ref_taps *t, const float *in, float *out) {
  int64_t k = 0;
  for (; k + MOST_TAP_LINES <= t->lines && t->step <= 2; k += MOST_TAP_LINES)
    NAME(taps_line)(t, in + k * t->in_line, out + k * t->out_line, t->step, MOST_TAP_LINES);
  for (; k < t->lines; k++) {
    const float *from = in + k * t->in_line;
    float *to = out + k * t->out_line;
    if (t->step <= 2) NAME(taps_line)(t, from, to, t->step, 1);
    for (int64_t x = 0; x < t->n && t->step > 2; x++) {
      float sum = t->bias;
      for (int64_t i = 0; i < t->rows; i++)
        for (int64_t j = 0; j < t->columns; j++)
          sum += from[x * t->step + i * t->row + j * t->tap] * t->w[i * t->columns + j];
      to[x] = sum;
    }
  }
}

TARGET static void NAME(add)(double *acc, const double *line, double by, int64_t n) {
  REF_IVDEP
  for (int64_t x = 0; x < n; x++) acc[x] += line[x] * by;
}

TARGET static void NAME(round)(float *out, const double *acc, int64_t n) {
  REF_IVDEP
  for (int64_t x = 0; x < n; x++) out[x] = (float)acc[x];
}

#undef LANES
#undef EVEN
#undef TARGET
#undef NAME
