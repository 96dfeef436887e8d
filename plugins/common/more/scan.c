/* CumSum and CumProd: columns side by side, row by row. Sums of reals are in float64, those of integers wrap. */
#include "more.h"

enum { N = MORE_SCAN_N, INNER, REVERSE, EXCLUSIVE, PRODUCT, COLUMNS = 512, PIECE = 1 << 16 };

/* Rows of n columns; step is from a row to the next, and may be negative. */
#define SCAN(name, T, A, HOW, KEPT) \
  static void name(const void *from, void *to, void *so_far, int64_t n, int64_t rows, int64_t step) { \
    const T *restrict x = from; \
    T *restrict y = to; \
    A *restrict acc = so_far; \
    A one = acc[0]; \
    for (; n == 1 && rows > 0; rows--, x += step, y += step) { \
      const A before = one; \
      one = (A)(one HOW(A) * x); \
      *y = (T)KEPT(before, one); \
    } \
    acc[0] = one; \
    for (; rows > 0; rows--, x += step, y += step) { \
      for (int64_t j = 0; j < n; j++) { \
        const A before = acc[j], after = (A)(before HOW(A) x[j]); \
        y[j] = (T)KEPT(before, after); \
        acc[j] = after; \
      } \
    } \
  }
#define BEFORE(before, after) (before)
#define AFTER(before, after) ((void)(before), (after))
#define SCANS(name, T, A) \
  SCAN(name##_sum, T, A, +, AFTER) \
  SCAN(name##_sum_before, T, A, +, BEFORE) \
  SCAN(name##_product, T, A, *, AFTER) \
  SCAN(name##_product_before, T, A, *, BEFORE)
SCANS(f32, float, double)
SCANS(f64, double, double)
SCANS(u32, uint32_t, uint32_t)
SCANS(u64, uint64_t, uint64_t)

typedef void (*scan)(const void *from, void *to, void *so_far, int64_t n, int64_t rows, int64_t step);

#define ALL(name) \
  { name##_sum, name##_sum_before, name##_product, name##_product_before }

static scan scan_of(int type, int64_t how) {
  static const scan list[][4] = {ALL(f32), ALL(f64), ALL(u32), ALL(u64)};
  if (type == REF_TYPE_F32 || type == REF_TYPE_F64) return list[type - REF_TYPE_F32][how];
  if (type == REF_TYPE_I32 || type == REF_TYPE_U32) return list[2][how];
  return type == REF_TYPE_I64 || type == REF_TYPE_U64 ? list[3][how] : NULL;
}

/* Of any type, element by element. */
static bool scan_column(const more_op *m, const more_args *a, int64_t base, int64_t *work) {
  const more_value *x = &m->in[0];
  const bool real = more_type_is_real(x->type), product = m->i[PRODUCT] != 0;
  const int64_t n = m->i[N], inner = m->i[INNER];
  double sum = product;
  uint64_t whole = product;
  for (int64_t j = 0; j < n; j++) {
    const int64_t at = base + (m->i[REVERSE] ? n - 1 - j : j) * inner;
    const double y = real ? more_get(x, a->in[0], at) : 0, before = sum;
    const uint64_t w = real ? 0 : (uint64_t)more_get_int(x, a->in[0], at), whole_before = whole;
    if (more_tick(m, work, 4)) return false;
    sum = product ? sum * y : sum + y;
    whole = product ? whole * w : whole + w;
    if (real) more_put(x, a->out[0], at, m->i[EXCLUSIVE] ? before : sum);
    else more_store_int(x->type, a->out[0], at, (int64_t)(m->i[EXCLUSIVE] ? whole_before : whole));
  }
  return true;
}

static int64_t across(const more_op *m) {
  return (m->i[INNER] + COLUMNS - 1) / COLUMNS;
}

int64_t more_scan_units(const more_op *m) {
  const int64_t of_one = m->i[N] * m->i[INNER];
  return of_one > 0 ? m->in[0].count / of_one * across(m) : 0;
}

/* Units [first, last), of rows that are short: some at a time, as columns. */
static void scan_short(const more_op *m, const more_args *a, scan fast, double start, int64_t first, int64_t last) {
  const more_value *x = &m->in[0];
  const int64_t n = m->i[N], step = m->i[REVERSE] ? -1 : 1, row = n * x->size;
  const int64_t most = REF_TURN_BYTES / row < COLUMNS ? REF_TURN_BYTES / row : COLUMNS;
  int64_t one, work = 0;
  ref_cast(REF_TYPE_F64, &start, more_type_is_real(x->type) ? REF_TYPE_F64 : x->type, &one, 1);
  for (int64_t some; first < last; first += some) {
    int64_t in[REF_TURN_BYTES / sizeof(int64_t)], out[REF_TURN_BYTES / sizeof(int64_t)];
    double so_far[COLUMNS];
    some = last - first < most ? last - first : most;
    const int64_t at = (m->i[REVERSE] ? n - 1 : 0) * some * x->size;
    ref_take(&one, 0, more_type_is_real(x->type) ? 8 : x->size, some, so_far);
    ref_turn(x->size, (const char *)a->in[0] + first * row, some, n, in);
    fast((char *)in + at, (char *)out + at, so_far, some, n, step * some);
    ref_turn(x->size, out, n, some, (char *)a->out[0] + first * row);
    if (more_tick(m, &work, 2 * some * n)) return;
  }
}

/* A unit is up to COLUMNS columns. */
void more_run_scan(const more_op *m, const more_args *a, int64_t first, int64_t last) {
  const more_value *x = &m->in[0];
  const int64_t n = m->i[N], inner = m->i[INNER], product = m->i[PRODUCT] != 0;
  const scan fast = scan_of(x->type, 2 * product + (m->i[EXCLUSIVE] != 0));
  int64_t work = 0;
  if (fast != NULL && inner == 1 && n > 1 && n <= REF_TURN_SHORT && last - first > 1) {
    scan_short(m, a, fast, (double)product, first, last);
    return;
  }
  for (int64_t unit = first; unit < last && n > 0 && inner > 0; unit++) {
    const int64_t column = unit % across(m) * COLUMNS, base = unit / across(m) * n * inner + column;
    const int64_t width = inner - column < COLUMNS ? inner - column : COLUMNS;
    for (int64_t j = 0; j < width && fast == NULL; j++)
      if (!scan_column(m, a, base + j, &work)) return;
    if (fast == NULL) continue;
    const double start = (double)product;
    double so_far[COLUMNS];
    int64_t one;
    ref_cast(REF_TYPE_F64, &start, more_type_is_real(x->type) ? REF_TYPE_F64 : x->type, &one, 1);
    ref_take(&one, 0, more_type_is_real(x->type) ? 8 : x->size, width, so_far);
    for (int64_t i = 0, some; i < n; i += some) {
      some = n - i < PIECE / width ? n - i : PIECE / width;
      const int64_t at = base + (m->i[REVERSE] ? n - 1 - i : i) * inner;
      fast((const char *)a->in[0] + at * x->size, (char *)a->out[0] + at * x->size, so_far, width, some,
           m->i[REVERSE] ? -inner : inner);
      if (more_tick(m, &work, 2 * some * width)) return;
    }
  }
}
