/* The products of winograd_product.c for one size of vectors, of which EACH_ROW has the rows that stay in registers, and
 * EACH_COUNT their numbers. No include guard. */
#undef DECLARE
#undef STEP
#undef KEEP
#undef ROWS
#undef ROW

/* rows and two are constants wherever this is called, so that what they leave out is not compiled. */
INLINE void NAME(multiply)(const operands *o, const int rows, const bool two) {
  const float *v = o->v, *w = o->weights;
  float *out = o->out;
#define DECLARE(i) vec a##i = V_SET(0), b##i = V_SET(0);
  EACH_ROW(DECLARE)
  for (int64_t c = 0; c < o->blocks; c++, v += o->step) {
    for (int k = 0; k < LANES; k++) {
      const vec w0 = V_LOAD(w), w1 = two ? V_LOAD(w + LANES) : w0;
#define STEP(i) \
  if (rows > i) { \
    const vec x = V_SET(v[i * LANES + k]); \
    a##i = V_MULADD(x, w0, a##i); \
    if (two) b##i = V_MULADD(x, w1, b##i); \
  }
      EACH_ROW(STEP)
      w += two ? (2 * LANES) : LANES;
    }
  }
#define KEEP(i) \
  if (rows > i) { \
    V_STORE(out, a##i); \
    if (two) V_STORE(out + LANES, b##i); \
    out += two ? (2 * LANES) : LANES; \
  }
  EACH_ROW(KEEP)
}

#define ROWS(n) \
  TARGET static void NAME(multiply_##n)(const operands *o, bool two) { \
    if (two) NAME(multiply)(o, n, true); \
    else NAME(multiply)(o, n, false); \
  }
EACH_COUNT(ROWS)

TARGET static void NAME(winograd_product)(const float *v, int64_t tiles, int64_t blocks, const float *weights,
                                          int64_t lanes, float *out) {
#define ROW(n) NAME(multiply_##n),
  static void (*const by_rows[])(const operands *, bool) = {NULL, EACH_COUNT(ROW)};
  enum { MOST_ROWS = sizeof by_rows / sizeof by_rows[0] - 1 };
  const int64_t passes = (tiles + MOST_ROWS - 1) / MOST_ROWS;
  for (int64_t i = 0; i < passes; i++) {
    const int64_t from = tiles * i / passes, to = tiles * (i + 1) / passes;
    const operands o = {
        .v = v + from * LANES,
        .weights = weights,
        .out = out + from * lanes,
        .step = tiles * LANES,
        .blocks = blocks,
    };
    by_rows[to - from](&o, lanes == (2 * LANES));
  }
}
