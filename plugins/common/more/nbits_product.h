/* Included by nbits_tiles.c and nbits_narrow.c: rows of floats times a tile of weights that are floats, in registers. Before: VEC,
 * LOAD, STORE, ZERO, SET and FMADD of vectors of LANES; MOST_ROWS, EACH_ROW(X) of their numbers 0, 1, ..., and TILE_STEP, the
 * numbers of a row of the tile, of which two vectors are taken; TARGET. */

/* rows of a, a_step apart, times a tile of depth rows; added to out where more is set. */
typedef struct operands {
  const float *a, *tile;
  float *out;
  int64_t a_step, depth;
  bool more;
} operands;

TARGET static inline __attribute__((always_inline)) void multiply(const operands *o, const int rows) {
  const float *a = o->a, *w = o->tile;
  float *out = o->out;
#define DECLARE(i) \
  VEC x##i = rows > i && o->more ? LOAD(out + i * NBITS_TILE) : ZERO(), \
      y##i = rows > i && o->more ? LOAD(out + i * NBITS_TILE + LANES) : ZERO(); \
  const float *a##i = rows > i ? a + i * o->a_step : NULL;
  EACH_ROW(DECLARE)
  for (int64_t k = 0; k < o->depth; k++, w += TILE_STEP) {
    const VEC w0 = LOAD(w), w1 = LOAD(w + LANES);
#define STEP(i) \
  if (rows > i) { \
    const VEC b = SET(a##i[k]); \
    x##i = FMADD(b, w0, x##i); \
    y##i = FMADD(b, w1, y##i); \
  }
    EACH_ROW(STEP)
  }
#define KEEP(i) \
  if (rows > i) { \
    STORE(out + i * NBITS_TILE, x##i); \
    STORE(out + i * NBITS_TILE + LANES, y##i); \
  }
  EACH_ROW(KEEP)
}

/* Of i + 1 rows. */
#define ROWS(i) \
  TARGET static void multiply_##i(const operands *o) { \
    multiply(o, i + 1); \
  }
EACH_ROW(ROWS)

static void multiply_rows(operands o, int64_t rows) {
#define NAMED(i) multiply_##i,
  static void (*const by_rows[MOST_ROWS])(const operands *) = {EACH_ROW(NAMED)};
  const int64_t passes = (rows + MOST_ROWS - 1) / MOST_ROWS;
  const float *a = o.a;
  float *out = o.out;
  for (int64_t i = 0; i < passes; i++) {
    const int64_t from = rows * i / passes, to = rows * (i + 1) / passes;
    o.a = a + from * o.a_step;
    o.out = out + from * NBITS_TILE;
    by_rows[to - from - 1](&o);
  }
}
