/* Panels of a product: both operands are copied into tiles as their strides have it, and the tiles multiplied. */
#include "gemm.h"

#include "plugins/common/float16.h"

/* A panel; how much of the depth is taken at once; rows that are not worth copying the right operand for. */
enum { PANEL = 64, DEPTH = 128, FEW = 3, MOST_ROWS = 8, MOST_COLS = 32, LONG = 1024 };

/* Batches of a few results are computed side by side. */
enum { THIN = 4, THIN_DEPTH = 16, THIN_BATCHES = 8 };

typedef union number {
  float f;
  double d;
  uint32_t w;
  uint64_t q;
} number;

/* ---------------------------------------------------------------- dimensions */

void gemm_start(gemm *g, int left, int right, int out) {
  memset(g, 0, sizeof *g);
  g->batch.count = g->rows.count = g->cols.count = g->depth.count = 1;
  g->type[GEMM_LEFT] = left;
  g->type[GEMM_RIGHT] = right;
  g->type[GEMM_OUT] = out;
  g->alpha = 1;
}

void gemm_add(gemm_dims *d, int64_t size, int64_t left, int64_t right, int64_t out) {
  const int64_t step[GEMM_SIDES] = {left, right, out};
  if (size == 1) return;
  const int32_t last = d->n - 1;
  /* Sizes beside one that is 0 may be of any product. */
  d->count = size == 0 || d->count == 0 ? 0 : d->count > INT64_MAX / size ? INT64_MAX : d->count * size;
  bool joins = last >= 0 && d->count < INT64_MAX;
  for (int s = 0; s < GEMM_SIDES && joins; s++)
    joins = (uint64_t)d->step[s][last] == (uint64_t)step[s] * (uint64_t)size;
  const int32_t at = joins ? last : d->n++;
  d->size[at] = joins ? (int64_t)((uint64_t)d->size[at] * (uint64_t)size) : size;
  for (int s = 0; s < GEMM_SIDES; s++) d->step[s][at] = step[s];
}

static int64_t inner_step(const gemm_dims *d, int side) {
  return d->n > 0 ? d->step[side][d->n - 1] : 0;
}

static void exchange_sides(gemm_dims *d) {
  int64_t left[GEMM_DIMS];
  memcpy(left, d->step[GEMM_LEFT], sizeof left);
  memcpy(d->step[GEMM_LEFT], d->step[GEMM_RIGHT], sizeof left);
  memcpy(d->step[GEMM_RIGHT], left, sizeof left);
}

bool gemm_finish(gemm *g) {
  const bool narrow = g->cols.count <= FEW && g->rows.count > g->cols.count;
  const bool turned = inner_step(&g->rows, GEMM_OUT) == 1 && inner_step(&g->cols, GEMM_OUT) != 1;
  if (!narrow && (!turned || g->rows.count <= FEW)) return false;
  const gemm_dims rows = g->rows;
  g->rows = g->cols;
  g->cols = rows;
  gemm_dims *all[] = {&g->batch, &g->rows, &g->cols, &g->depth};
  for (int i = 0; i < 4; i++) exchange_sides(all[i]);
  const int type = g->type[GEMM_LEFT];
  g->type[GEMM_LEFT] = g->type[GEMM_RIGHT];
  g->type[GEMM_RIGHT] = type;
  const int64_t add_row = g->add_row;
  g->add_row = g->add_col;
  g->add_col = add_row;
  return true;
}

/* Where elements first to first + n lie of one side. True: side by side. */
static bool places(const gemm_dims *d, int side, int64_t first, int64_t n, int64_t *at) {
  int64_t place[GEMM_DIMS], offset = 0, rest = first;
  const int32_t inner = d->n - 1;
  if (inner < 0) {
    at[0] = 0;
    return true;
  }
  for (int32_t k = inner; k >= 0; k--) {
    place[k] = rest % d->size[k];
    rest /= d->size[k];
    offset += place[k] * d->step[side][k];
  }
  const int64_t step = d->step[side][inner], from = offset;
  bool dense = true;
  for (int64_t i = 0; i < n; i++) {
    at[i] = offset;
    dense = dense && offset == from + i;
    offset += step;
    if (++place[inner] < d->size[inner]) continue;
    for (int32_t k = inner; k >= 0 && place[k] == d->size[k]; k--) {
      offset -= place[k] * d->step[side][k];
      place[k] = 0;
      if (k == 0) break;
      place[k - 1]++;
      offset += d->step[side][k - 1];
    }
  }
  return dense;
}

static int kind_of(int type) {
  if (type == REF_TYPE_F64) return GEMM_F64;
  if (more_type_is_real(type)) return GEMM_F32;
  return more_type_bytes(type) == 8 ? GEMM_W64 : GEMM_W32;
}

static size_t bytes_of(int kind) {
  return kind == GEMM_F64 || kind == GEMM_W64 ? 8 : 4;
}

static int64_t pieces(int64_t n, int64_t piece) {
  return (n + piece - 1) / piece;
}

static bool is_thin(const gemm *g) {
  const gemm_dims *d = &g->depth;
  return g->batch.count >= THIN_BATCHES && g->rows.count * g->cols.count <= THIN &&
         (d->count < THIN_DEPTH || (d->n > 0 && d->step[GEMM_RIGHT][d->n - 1] != 1));
}

int64_t gemm_units(const gemm *g) {
  if (is_thin(g)) return pieces(g->batch.count, PANEL);
  return g->batch.count * pieces(g->rows.count, PANEL) * pieces(g->cols.count, PANEL);
}

double gemm_steps(const gemm *g) {
  const double results = (double)g->batch.count * (double)g->rows.count * (double)g->cols.count;
  return results * (2 + 1.3 * (double)g->depth.count);
}

/* ---------------------------------------------------------------- copies */

/* to[i * to_outer + j * to_inner] = from[outer[i] + inner[j]], in the kind that is computed in. */
#define COPY(T) \
  for (int64_t i = 0; i < n_outer; i++) { \
    const T *x = (const T *)from + outer[i]; \
    T *y = (T *)to + i * to_outer; \
    for (int64_t j = 0; j < n_inner; j++) y[j * to_inner] = x[inner[j]]; \
  }

static void convert(int type, int kind, const void *from, int64_t at, number *to) {
  if (kind == GEMM_F64) to->d = more_load(type, from, at);
  else if (kind == GEMM_F32) to->f = (float)more_load(type, from, at);
  else if (kind == GEMM_W32) to->w = (uint32_t)more_load_int(type, from, at);
  else to->q = (uint64_t)more_load_int(type, from, at);
}

static void copy(int type, int kind, const void *from, const int64_t *outer, int64_t n_outer, const int64_t *inner,
                 int64_t n_inner, void *to, int64_t to_outer, int64_t to_inner) {
  const size_t bytes = bytes_of(kind);
  if (more_type_bytes(type) == bytes && (uintptr_t)from % bytes == 0) {
    if (bytes == 8) COPY(uint64_t)
    else COPY(uint32_t)
    return;
  }
  for (int64_t i = 0; i < n_outer; i++)
    for (int64_t j = 0; j < n_inner; j++) {
      number x = {.q = 0};
      convert(type, kind, from, outer[i] + inner[j], &x);
      memcpy((char *)to + (size_t)(i * to_outer + j * to_inner) * bytes, &x, bytes);
    }
}

/* ---------------------------------------------------------------- a panel */

typedef struct panel {
  const gemm *g;
  const more_op *m;
  const gemm_tiles *tiles;
  int kind;
  bool cols_dense;          /* of the right operand */
  const char *left, *right; /* of the batch */
  char *out;
  int64_t row, rows, col, cols; /* of the result */
  int64_t row_at[PANEL], col_at[PANEL];
  int64_t work;
} panel;

static const void *added_at(const panel *p, int64_t r, int64_t c, int64_t *at) {
  const gemm *g = p->g;
  *at = (p->row + r) * g->add_row + (p->col + c) * g->add_col;
  return g->add;
}

static void put_whole(const panel *p, int64_t r, int64_t c, uint64_t x, int64_t to) {
  const int type = p->g->type[GEMM_OUT];
  int64_t at;
  const void *add = added_at(p, r, c, &at);
  if (add != NULL) x += (uint64_t)more_load_int(type, add, at);
  more_store_int(type, p->out, to, (int64_t)x);
}

static void put_real(const panel *p, int64_t r, int64_t c, double x, int64_t to) {
  const gemm *g = p->g;
  int64_t at;
  const void *add = added_at(p, r, c, &at);
  x *= g->alpha;
  if (add != NULL) x += g->beta * more_load(g->type[GEMM_OUT], add, at);
  more_store(g->type[GEMM_OUT], p->out, to, x);
}

/* A row of sums that lies side by side in the result, of the type that they are in: with its factor and what is added. */
#define PUT(T) \
  { \
    const T alpha = (T)g->alpha, beta = (T)g->beta, *x = row; \
    T *y = (T *)(void *)p->out + to; \
    if (add == NULL) \
      for (int64_t c = 0; c < p->cols; c++) y[c] = alpha * x[c]; \
    else \
      for (int64_t c = 0; c < p->cols; c++) y[c] = alpha * x[c] + beta * ((const T *)add)[at + c * g->add_col]; \
  }

static void put_row(const panel *p, int64_t r, const void *row, int64_t to) {
  const gemm *g = p->g;
  int64_t at;
  const void *add = added_at(p, r, 0, &at);
  if (p->kind == GEMM_F64) PUT(double)
  else PUT(float)
}

/* The sums of a panel to the result. */
static void put(const panel *p, const void *acc) {
  const gemm *g = p->g;
  const int type = g->type[GEMM_OUT];
  const size_t bytes = bytes_of(p->kind);
  const bool same = more_type_bytes(type) == bytes;
  const bool plain = same && g->alpha == 1 && g->add == NULL;
  int64_t row_to[PANEL], col_to[PANEL];
  places(&g->rows, GEMM_OUT, p->row, p->rows, row_to);
  const bool dense = places(&g->cols, GEMM_OUT, p->col, p->cols, col_to);
  for (int64_t r = 0; r < p->rows; r++) {
    const char *row = (const char *)acc + (size_t)(r * PANEL) * bytes;
    if (plain && dense) {
      memcpy(p->out + (size_t)(row_to[r] + col_to[0]) * bytes, row, (size_t)p->cols * bytes);
      continue;
    }
    if (dense && same && p->kind <= GEMM_F64 && (uintptr_t)g->add % bytes == 0) {
      put_row(p, r, row, row_to[r] + col_to[0]);
      continue;
    }
    for (int64_t c = 0; c < p->cols; c++) {
      const int64_t to = row_to[r] + col_to[c];
      if (plain && bytes == 8) ((uint64_t *)(void *)p->out)[to] = ((const uint64_t *)(const void *)row)[c];
      else if (plain) ((uint32_t *)(void *)p->out)[to] = ((const uint32_t *)(const void *)row)[c];
      else if (p->kind == GEMM_F64) put_real(p, r, c, ((const double *)(const void *)row)[c], to);
      else if (p->kind == GEMM_F32) put_real(p, r, c, (double)((const float *)(const void *)row)[c], to);
      else if (p->kind == GEMM_W64) put_whole(p, r, c, ((const uint64_t *)(const void *)row)[c], to);
      else put_whole(p, r, c, ((const uint32_t *)(const void *)row)[c], to);
    }
  }
}

/* Some of the depth, of a panel of many rows. */
static void add_tiles(panel *p, const int64_t *left_at, const int64_t *right_at, int64_t depth, void *acc) {
  number left[(PANEL + MOST_ROWS) * DEPTH] __attribute__((aligned(64))),
      right[MOST_COLS * DEPTH] __attribute__((aligned(64)));
  const gemm_tiles *t = p->tiles;
  const int *type = p->g->type;
  const size_t bytes = bytes_of(p->kind);
  for (int64_t r = 0; r < p->rows; r += t->rows) {
    const int64_t some = p->rows - r < t->rows ? p->rows - r : t->rows;
    char *to = (char *)left + (size_t)(r * depth) * bytes;
    if (some < t->rows) memset(to, 0, (size_t)(t->rows * depth) * bytes);
    copy(type[GEMM_LEFT], p->kind, p->left, p->row_at + r, some, left_at, depth, to, 1, t->rows);
  }
  for (int64_t c = 0; c < p->cols; c += t->cols) {
    const int64_t some = p->cols - c < t->cols ? p->cols - c : t->cols;
    if (some < t->cols) memset(right, 0, (size_t)(t->cols * depth) * bytes);
    if (p->cols_dense && more_type_bytes(type[GEMM_RIGHT]) == bytes) {
      for (int64_t k = 0; k < depth; k++)
        memcpy((char *)right + (size_t)(k * t->cols) * bytes, p->right + (size_t)(p->col_at[c] + right_at[k]) * bytes,
               (size_t)some * bytes);
    } else {
      copy(type[GEMM_RIGHT], p->kind, p->right, p->col_at + c, some, right_at, depth, right, 1, t->cols);
    }
    for (int64_t r = 0; r < p->rows; r += t->rows)
      t->tile((char *)left + (size_t)(r * depth) * bytes, right, depth, (char *)acc + (size_t)(r * PANEL + c) * bytes,
              PANEL);
  }
}

/* Some of the depth, of a panel of a few rows: the right operand is read where it lies, if it can be. */
static bool add_rows(panel *p, const int64_t *left_at, const int64_t *right_at, int64_t depth, bool right_dense,
                     void *acc) {
  number left[LONG];
  const int *type = p->g->type;
  const size_t bytes = bytes_of(p->kind);
  const bool by_rows = p->cols_dense && p->cols > 1;
  if (p->rows > FEW || (!by_rows && !right_dense) || more_type_bytes(type[GEMM_RIGHT]) != bytes ||
      (uintptr_t)p->right % bytes != 0)
    return false;
  for (int64_t r = 0; r < p->rows; r++) {
    copy(type[GEMM_LEFT], p->kind, p->left, p->row_at + r, 1, left_at, depth, left, 0, 1);
    char *to = (char *)acc + (size_t)(r * PANEL) * bytes;
    if (by_rows) p->tiles->row(left, p->right + p->col_at[0] * (int64_t)bytes, right_at, depth, to, p->cols);
    for (int64_t c = 0; c < p->cols && !by_rows; c++)
      p->tiles->dot(left, p->right + (p->col_at[c] + right_at[0]) * (int64_t)bytes, depth, to + (size_t)c * bytes);
  }
  return true;
}

static bool run_panel(panel *p) {
  const gemm *g = p->g;
  number acc[(PANEL + MOST_ROWS) * PANEL] __attribute__((aligned(64)));
  int64_t left_at[LONG], right_at[LONG];
  const int64_t most = p->rows <= FEW ? LONG : DEPTH;
  places(&g->rows, GEMM_LEFT, p->row, p->rows, p->row_at);
  p->cols_dense = places(&g->cols, GEMM_RIGHT, p->col, p->cols, p->col_at);
  memset(acc, 0, (size_t)(pieces(p->rows, p->tiles->rows) * p->tiles->rows * PANEL) * bytes_of(p->kind));
  for (int64_t k = 0; k < g->depth.count; k += most) {
    const int64_t depth = g->depth.count - k < most ? g->depth.count - k : most;
    places(&g->depth, GEMM_LEFT, k, depth, left_at);
    const bool dense = places(&g->depth, GEMM_RIGHT, k, depth, right_at);
    const bool done = add_rows(p, left_at, right_at, depth, dense, acc);
    for (int64_t at = 0; at < depth && !done; at += DEPTH)
      add_tiles(p, left_at + at, right_at + at, depth - at < DEPTH ? depth - at : DEPTH, acc);
    if (more_tick(p->m, &p->work, depth * p->rows * p->cols / 4)) return false;
  }
  put(p, acc);
  return true;
}

/* ---------------------------------------------------------------- batches of a few results */

#define ADD(T, member) \
  for (int64_t j = 0; j < n; j++) \
    acc[j].member += ((const T *)left)[left_at[j] + x] * ((const T *)right)[right_at[j] + y];

static void add_thin(const panel *p, const void *left, const void *right, const int64_t *left_at,
                     const int64_t *right_at, int64_t x, int64_t y, int64_t n, number *acc) {
  const int *type = p->g->type;
  const size_t bytes = bytes_of(p->kind);
  const bool plain = more_type_bytes(type[GEMM_LEFT]) == bytes && more_type_bytes(type[GEMM_RIGHT]) == bytes &&
                     (uintptr_t)left % bytes == 0 && (uintptr_t)right % bytes == 0;
  if (plain && p->kind == GEMM_F64) {
    ADD(double, d)
  } else if (plain && p->kind == GEMM_F32) {
    ADD(float, f)
  } else if (plain && p->kind == GEMM_W64) {
    ADD(uint64_t, q)
  } else if (plain) {
    ADD(uint32_t, w)
  }
  for (int64_t j = 0; j < n && !plain; j++) {
    number a = {.q = 0}, b = {.q = 0};
    convert(type[GEMM_LEFT], p->kind, left, left_at[j] + x, &a);
    convert(type[GEMM_RIGHT], p->kind, right, right_at[j] + y, &b);
    if (p->kind == GEMM_F64) acc[j].d += a.d * b.d;
    else if (p->kind == GEMM_F32) acc[j].f += a.f * b.f;
    else if (p->kind == GEMM_W64) acc[j].q += a.q * b.q;
    else acc[j].w += a.w * b.w;
  }
}

/* A unit is some batches. */
static bool run_thin(panel *p, const void *left, const void *right, void *out, int64_t unit) {
  const gemm *g = p->g;
  const int64_t from = unit * PANEL, n = g->batch.count - from < PANEL ? g->batch.count - from : PANEL;
  int64_t left_at[PANEL], right_at[PANEL], out_at[PANEL];
  places(&g->batch, GEMM_LEFT, from, n, left_at);
  places(&g->batch, GEMM_RIGHT, from, n, right_at);
  places(&g->batch, GEMM_OUT, from, n, out_at);
  p->out = out;
  for (int64_t i = 0; i < g->rows.count * g->cols.count; i++) {
    int64_t a, b, row_to, col_to, k_left[DEPTH], k_right[DEPTH];
    number acc[PANEL] = {{.q = 0}};
    p->row = i / g->cols.count;
    p->col = i % g->cols.count;
    places(&g->rows, GEMM_LEFT, p->row, 1, &a);
    places(&g->cols, GEMM_RIGHT, p->col, 1, &b);
    places(&g->rows, GEMM_OUT, p->row, 1, &row_to);
    places(&g->cols, GEMM_OUT, p->col, 1, &col_to);
    for (int64_t k = 0; k < g->depth.count; k += DEPTH) {
      const int64_t depth = g->depth.count - k < DEPTH ? g->depth.count - k : DEPTH;
      places(&g->depth, GEMM_LEFT, k, depth, k_left);
      places(&g->depth, GEMM_RIGHT, k, depth, k_right);
      for (int64_t t = 0; t < depth; t++)
        add_thin(p, left, right, left_at, right_at, a + k_left[t], b + k_right[t], n, acc);
      if (more_tick(p->m, &p->work, depth * n)) return false;
    }
    for (int64_t j = 0; j < n; j++) {
      const int64_t to = out_at[j] + row_to + col_to;
      if (p->kind == GEMM_F64) put_real(p, 0, 0, acc[j].d, to);
      else if (p->kind == GEMM_F32) put_real(p, 0, 0, (double)acc[j].f, to);
      else put_whole(p, 0, 0, p->kind == GEMM_W64 ? acc[j].q : acc[j].w, to);
    }
  }
  return true;
}

bool gemm_run(const gemm *g, const more_op *m, const void *left, const void *right, void *out, int64_t first,
              int64_t last) {
  const int64_t across = pieces(g->cols.count, PANEL), down = pieces(g->rows.count, PANEL);
  const int kind = kind_of(g->type[GEMM_OUT]);
  panel p = {.g = g, .m = m, .tiles = gemm_tiles_of(kind), .kind = kind};
  const bool thin = is_thin(g);
  for (int64_t u = first; u < last; u++) {
    int64_t at[GEMM_SIDES][1];
    if (thin) {
      if (!run_thin(&p, left, right, out, u)) return false;
      continue;
    }
    for (int s = 0; s < GEMM_SIDES; s++) places(&g->batch, s, u / across / down, 1, at[s]);
    if (g->depth.count > 0) { /* else there may be no bytes */
      p.left = (const char *)left + at[GEMM_LEFT][0] * more_type_bytes(g->type[GEMM_LEFT]);
      p.right = (const char *)right + at[GEMM_RIGHT][0] * more_type_bytes(g->type[GEMM_RIGHT]);
    }
    p.out = (char *)out + at[GEMM_OUT][0] * more_type_bytes(g->type[GEMM_OUT]);
    p.row = u / across % down * PANEL;
    p.col = u % across * PANEL;
    p.rows = g->rows.count - p.row < PANEL ? g->rows.count - p.row : PANEL;
    p.cols = g->cols.count - p.col < PANEL ? g->cols.count - p.col : PANEL;
    if (!run_panel(&p)) return false;
  }
  return true;
}
