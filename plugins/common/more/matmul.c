/* Products of matrices of any type, of quantized ones, and Det. */
#include "byte_tiles.h"
#include "gemm.h"

#include <math.h>

/* ---------------------------------------------------------------- MatMul and its kin */

enum { ROWS, COLS, DEPTH, BATCHES };

/* The first two operands (left, right) as matrices, with batches that broadcast. Rows and columns that a vector lacks
 * are left out of the shape. */
static void matrices(more_plan *p, uint32_t left, uint32_t right, int type) {
  more_op *m = p->m;
  const more_value *a = &m->in[left], *b = &m->in[right];
  int64_t shape[MORE_DIMS] = {0};
  int32_t ndim = 0;
  if (a->ndim < 1 || b->ndim < 1) more_refuse(p, "it multiplies no scalars");
  if (!more_ok(p)) return;
  const int32_t a_batch = a->ndim > 2 ? a->ndim - 2 : 0, b_batch = b->ndim > 2 ? b->ndim - 2 : 0;
  ndim = a_batch > b_batch ? a_batch : b_batch;
  for (int32_t d = 0; d < ndim; d++) { /* from the last */
    const int64_t x = d < a_batch ? a->shape[a_batch - 1 - d] : 1, y = d < b_batch ? b->shape[b_batch - 1 - d] : 1;
    if (x != y && x != 1 && y != 1) more_refuse(p, "the batches of its operands do not broadcast");
    shape[ndim - 1 - d] = x == 1 ? y : x;
  }
  m->i[ROWS] = a->ndim > 1 ? a->shape[a->ndim - 2] : 1;
  m->i[DEPTH] = a->shape[a->ndim - 1];
  m->i[COLS] = b->ndim > 1 ? b->shape[b->ndim - 1] : 1;
  m->i[BATCHES] = ndim;
  for (int32_t d = 0; d < ndim; d++) m->i[8 + d] = shape[d];
  if (m->i[DEPTH] != b->shape[b->ndim > 1 ? b->ndim - 2 : 0]) more_refuse(p, "its operands have different depths");
  if (a->ndim > 1 && ndim < MORE_DIMS) shape[ndim++] = m->i[ROWS];
  if (b->ndim > 1 && ndim < MORE_DIMS) shape[ndim++] = m->i[COLS];
  more_result(p, 0, type, ndim, shape);
}

/* Where the matrix of a batch begins. */
static int64_t batch_at(const more_op *m, const more_value *v, int64_t batch) {
  const int64_t n = m->i[BATCHES];
  const int32_t own = v->ndim > 2 ? v->ndim - 2 : 0;
  int64_t at = 0, step = v->ndim > 1 ? v->shape[v->ndim - 1] * v->shape[v->ndim - 2] : v->count;
  for (int64_t d = n; d-- > n - own; batch /= m->i[8 + d]) {
    const int64_t size = v->shape[d - (n - own)];
    if (size != 1) at += batch % m->i[8 + d] * step;
    step *= size;
  }
  return at;
}

/* The product of the first two operands; true: the right one is the first. */
static bool matmul_of(const more_op *m, gemm *g) {
  const int64_t rows = m->i[ROWS], cols = m->i[COLS], depth = m->i[DEPTH], n = m->i[BATCHES];
  const more_value *v[] = {&m->in[0], &m->in[1]};
  int64_t steps[2][MORE_DIMS] = {{0}}, out[MORE_DIMS], size = rows * cols;
  gemm_start(g, v[0]->type, v[1]->type, m->out[0].type);
  for (int s = 0; s < 2; s++) {
    const int32_t own = v[s]->ndim > 2 ? v[s]->ndim - 2 : 0;
    int64_t step = s == 0 ? rows * depth : depth * cols;
    for (int32_t d = own; d-- > 0; step *= v[s]->shape[d])
      if (v[s]->shape[d] != 1) steps[s][n - own + d] = step;
  }
  for (int64_t d = n; d-- > 0; size *= m->i[8 + d]) out[d] = size;
  for (int64_t d = 0; d < n; d++) { /* more rows of one product, where all have the right matrix */
    bool shared = true;
    for (int64_t e = d; e < n; e++) shared = shared && steps[1][e] == 0;
    gemm_add(shared ? &g->rows : &g->batch, m->i[8 + d], steps[0][d], steps[1][d], out[d]);
  }
  gemm_add(&g->rows, rows, depth, 0, cols);
  gemm_add(&g->cols, cols, 0, 1, 1);
  gemm_add(&g->depth, depth, 1, cols, 0);
  return gemm_finish(g);
}

static void run_matmul(const more_op *m, const more_args *a, int64_t first, int64_t last) {
  gemm g;
  const bool turned = matmul_of(m, &g);
  gemm_run(&g, m, a->in[turned], a->in[!turned], a->out[0], first, last);
}

static void matmul_work(more_plan *p, more_kernel run) {
  const more_op *m = p->m;
  if (!more_ok(p)) return;
  more_work(p, run, m->i[COLS] > 0 ? m->out[0].count / m->i[COLS] : 1,
            0.1 * (double)m->out[0].count * (double)m->i[DEPTH]); /* these have loops of vectors */
}

void more_setup_matmul(more_plan *p) {
  more_number(p, 0);
  more_same_type(p, 0, 1);
  matrices(p, 0, 1, p->m->in[0].type);
  if (!more_ok(p)) return;
  gemm g;
  matmul_of(p->m, &g);
  more_loop(p, run_matmul, p->m->out[0].count > 0 ? gemm_units(&g) : 0, gemm_steps(&g));
}

/* A zero point: one number, or one for each of n rows or columns. */
static void zero_point(more_plan *p, uint32_t k, uint32_t of, int64_t n) {
  more_same_type(p, of, k);
  if (more_operand(p, k) && p->m->in[k].count != 1 && p->m->in[k].count != n)
    more_refuse(p, "operand %u must be one number or %lld", k, (long long)n);
}

static double point(const more_op *m, const more_args *a, uint32_t k, int64_t i, double absent) {
  if (a->in[k] == NULL) return absent;
  return more_get(&m->in[k], a->in[k], m->in[k].count == 1 ? 0 : i % m->in[k].count);
}

enum { TILE = BYTE_COLS };

/* Columns [c0, c0 + n) of row u of a product of bytes, of operand 0 with operand b and their zero points. */
static void sums_of_bytes(const more_op *m, const more_args *a, uint32_t b, uint32_t b_zero, int64_t u, int64_t c0,
                          int64_t n, int64_t *out) {
  const int64_t rows = m->i[ROWS], cols = m->i[COLS], depth = m->i[DEPTH];
  const int64_t at = batch_at(m, &m->in[0], u / rows) + u % rows * depth, bt = batch_at(m, &m->in[b], u / rows);
  const int64_t az = (int64_t)point(m, a, 2, u % rows, 0);
  int64_t all = 0;
  int32_t acc[TILE] = {0};
  memset(out, 0, (size_t)n * sizeof *out);
  for (int64_t k = 0; k < depth; k++) {
    const int64_t x = more_get_int(&m->in[0], a->in[0], at + k) - az;
    all += x;
    more_add_row(m->in[b].type, acc, (int32_t)x, (const char *)a->in[b] + bt + k * cols + c0, n);
    if ((k + 1) % MORE_PRODUCTS != 0 && k + 1 < depth) continue;
    for (int64_t i = 0; i < n; i++) out[i] += acc[i];
    memset(acc, 0, sizeof acc);
  }
  for (int64_t i = 0; i < n; i++) out[i] -= all * (int64_t)point(m, a, b_zero, c0 + i, 0);
}

/* Columns [c0, c0 + n) of rows u to u + rows of a batch; out has TILE numbers a row. A few rows are computed one by one. */
static void block_of_bytes(const more_op *m, const more_args *a, uint32_t b, uint32_t b_zero, int64_t u, int64_t rows,
                           int64_t c0, int64_t n, int64_t out[BYTE_ROWS][TILE]) {
  enum { FEW = 3 };
  const int64_t depth = m->i[DEPTH], all_rows = m->i[ROWS];
  int32_t sums[BYTE_ROWS][BYTE_COLS], all[BYTE_ROWS];
  if (rows <= FEW || depth > MORE_PRODUCTS || !byte_tiles_here()) {
    for (int64_t r = 0; r < rows; r++) sums_of_bytes(m, a, b, b_zero, u + r, c0, n, out[r]);
    return;
  }
  byte_block block = {.rows = rows,
                      .cols = n,
                      .depth = depth,
                      .right_row = m->i[COLS],
                      .left_signed = m->in[0].type == REF_TYPE_I8,
                      .right_signed = m->in[b].type == REF_TYPE_I8};
  if (depth > 0) {
    block.left = (const uint8_t *)a->in[0] + batch_at(m, &m->in[0], u / all_rows) + u % all_rows * depth;
    block.right = (const uint8_t *)a->in[b] + batch_at(m, &m->in[b], u / all_rows) + c0;
  }
  for (int64_t r = 0; r < rows; r++) block.zero[r] = (int16_t)point(m, a, 2, (u + r) % all_rows, 0);
  byte_tiles_run(&block, sums, all);
  for (int64_t i = 0; i < n; i++) {
    const int64_t zero = (int64_t)point(m, a, b_zero, c0 + i, 0);
    for (int64_t r = 0; r < rows; r++) out[r][i] = sums[r][i] - zero * all[r];
  }
}

/* How many of the rows from u on one block takes. */
static int64_t rows_at(const more_op *m, int64_t u, int64_t last) {
  const int64_t left = m->i[ROWS] - u % m->i[ROWS], most = last - u < left ? last - u : left;
  return most < BYTE_ROWS ? most : BYTE_ROWS;
}

static void run_matmul_integer(const more_op *m, const more_args *a, int64_t first, int64_t last) {
  const int64_t cols = m->i[COLS];
  int64_t sums[BYTE_ROWS][TILE];
  for (int64_t u = first, rows; u < last; u += rows) {
    rows = rows_at(m, u, last);
    for (int64_t c = 0; c < cols; c += TILE) {
      const int64_t n = cols - c < TILE ? cols - c : TILE;
      block_of_bytes(m, a, 1, 3, u, rows, c, n, sums);
      for (int64_t r = 0; r < rows; r++) {
        int32_t *to = (int32_t *)a->out[0] + (u + r) * cols + c;
        for (int64_t i = 0; i < n; i++) to[i] = (int32_t)(uint32_t)(uint64_t)sums[r][i];
      }
    }
  }
}

static void bytes_only(more_plan *p, uint32_t k) {
  const int type = p->m->in[k].type;
  if (more_operand(p, k) && type != REF_TYPE_I8 && type != REF_TYPE_U8)
    more_refuse(p, "operand %u must be int8 or uint8", k);
}

void more_setup_matmul_integer(more_plan *p) {
  bytes_only(p, 0);
  bytes_only(p, 1);
  matrices(p, 0, 1, REF_TYPE_I32);
  zero_point(p, 2, 0, p->m->i[ROWS]);
  zero_point(p, 3, 1, p->m->i[COLS]);
  matmul_work(p, run_matmul_integer);
}

#if defined(__GNUC__) && defined(__x86_64__) && !defined(HEDDLE_NO_LANES)
#define NARROW __attribute__((target("avx2")))
#else
#define NARROW
#endif

/* Sums, which int32 holds, rounded with the zero point added, as bytes; NaN is 0. */
NARROW static void round_to_bytes(const int64_t *sums, const float *scale, float zero, bool is_signed, int64_t n,
                                  uint8_t *out) {
  const float least = is_signed ? -128.0F : 0.0F, most = is_signed ? 127.0F : 255.0F;
  for (int64_t i = 0; i < n; i++) {
    const float y = rintf((float)(int32_t)sums[i] * scale[i]) + zero;
    const float low = y < least ? least : y, high = low > most ? most : low;
    out[i] = (uint8_t)(int32_t)(y == y ? high : 0.0F);
  }
}

/* Columns [at, at + n) of row u, of scales of float32; by: the scales of those columns. */
static void put_row(const more_op *m, const more_args *a, const int64_t *sums, const float *by, int64_t u, int64_t at,
                    int64_t n) {
  const int64_t row = u % m->i[ROWS];
  const float x = (float)point(m, a, 1, row, 1), y = (float)point(m, a, 6, row, 1);
  float scale[TILE];
  for (int64_t i = 0; i < n; i++) scale[i] = x * by[i] / y; /* as more_rescale has it */
  round_to_bytes(sums, scale, (float)point(m, a, 7, row, 0), m->out[0].type == REF_TYPE_I8, n,
                 (uint8_t *)a->out[0] + u * m->i[COLS] + at);
}

/* a, its scale and zero point, b, its, and those of the result. */
static void run_qlinear(const more_op *m, const more_args *a, int64_t first, int64_t last) {
  const int64_t all_rows = m->i[ROWS], cols = m->i[COLS];
  const double least = more_lowest(m->out[0].type), most = more_highest(m->out[0].type);
  const bool fast = m->in[1].type == REF_TYPE_F32 && m->in[4].type == REF_TYPE_F32 && m->in[6].type == REF_TYPE_F32 &&
                    m->i[DEPTH] <= MORE_PRODUCTS;
  int64_t sums[BYTE_ROWS][TILE];
  float by[TILE];
  for (int64_t u = first, rows; u < last; u += rows) {
    rows = rows_at(m, u, last);
    for (int64_t at = 0; at < cols; at += TILE) {
      const int64_t n = cols - at < TILE ? cols - at : TILE;
      block_of_bytes(m, a, 3, 5, u, rows, at, n, sums);
      for (int64_t i = 0; i < n && fast; i++) by[i] = (float)point(m, a, 4, at + i, 1);
      for (int64_t r = 0; r < rows && fast; r++) put_row(m, a, sums[r], by, u + r, at, n);
      if (fast) continue;
      for (int64_t k = 0; k < rows * n; k++) {
        const int64_t row = (u + k / n) % all_rows, c = at + k % n;
        const double scaled = more_rescale(m, 1, (double)sums[k / n][k % n], point(m, a, 1, row, 1),
                                           point(m, a, 4, c, 1), point(m, a, 6, row, 1));
        const double x = nearbyint(scaled) + point(m, a, 7, row, 0);
        more_put(&m->out[0], a->out[0], (u + k / n) * cols + c, x < least ? least : x > most ? most : x);
      }
    }
  }
}

void more_setup_qlinear_matmul(more_plan *p) {
  bytes_only(p, 0);
  bytes_only(p, 3);
  bytes_only(p, 7);
  for (uint32_t k = 1; k < 7; k += k == 1 ? 3 : 2) more_real(p, k); /* 1, 4, 6 */
  matrices(p, 0, 3, p->m->in[7].type);
  zero_point(p, 2, 0, p->m->i[ROWS]);
  zero_point(p, 5, 3, p->m->i[COLS]);
  zero_point(p, 7, 7, p->m->i[ROWS]);
  for (uint32_t k = 1; k < 7; k += k == 1 ? 3 : 2)
    if (p->m->in[k].count == 0) more_refuse(p, "operand %u is empty", k);
  matmul_work(p, run_qlinear);
}

/* ---------------------------------------------------------------- Gemm */

enum { TRANS_A = 8, TRANS_B };

/* true: the right operand is the first. */
static bool gemm_of(const more_op *m, gemm *g) {
  const int64_t rows = m->i[ROWS], cols = m->i[COLS], depth = m->i[DEPTH];
  const more_value *c = &m->in[2];
  gemm_start(g, m->in[0].type, m->in[1].type, m->out[0].type);
  gemm_add(&g->rows, rows, m->i[TRANS_A] ? 1 : depth, 0, cols);
  gemm_add(&g->cols, cols, 0, m->i[TRANS_B] ? depth : 1, 1);
  gemm_add(&g->depth, depth, m->i[TRANS_A] ? rows : 1, m->i[TRANS_B] ? 1 : cols, 0);
  g->alpha = m->f[0];
  g->beta = m->f[1];
  g->add_col = c->here && c->ndim > 0 && c->shape[c->ndim - 1] != 1;
  g->add_row = c->here && c->ndim > 1 && c->shape[0] != 1 ? c->shape[1] : 0;
  return gemm_finish(g);
}

/* Of reals, and of integers with factors of 1, which wrap. */
static void run_gemm(const more_op *m, const more_args *a, int64_t first, int64_t last) {
  gemm g;
  const bool turned = gemm_of(m, &g);
  g.add = a->in[2];
  gemm_run(&g, m, a->in[turned], a->in[!turned], a->out[0], first, last);
}

static void run_gemm_plain(const more_op *m, const more_args *a, int64_t first, int64_t last) {
  const int64_t rows = m->i[ROWS], cols = m->i[COLS], depth = m->i[DEPTH];
  for (int64_t u = first; u < last; u++) {
    const int64_t r = u / cols, c = u % cols;
    double sum = 0;
    for (int64_t k = 0; k < depth; k++)
      sum += more_get(&m->in[0], a->in[0], m->i[TRANS_A] ? k * rows + r : r * depth + k) *
             more_get(&m->in[1], a->in[1], m->i[TRANS_B] ? c * depth + k : k * cols + c);
    sum *= m->f[0];
    if (a->in[2] != NULL) sum += m->f[1] * more_get(&m->in[2], a->in[2], more_at(&m->in[2], &m->out[0], u));
    more_put(&m->out[0], a->out[0], u, sum);
  }
}

void more_setup_gemm(more_plan *p) {
  more_op *m = p->m;
  const more_value *a = &m->in[0], *b = &m->in[1];
  m->i[TRANS_A] = more_int(p, "transA", 0) != 0;
  m->i[TRANS_B] = more_int(p, "transB", 0) != 0;
  m->f[0] = more_float(p, "alpha", 1);
  m->f[1] = more_float(p, "beta", 1);
  more_number(p, 0);
  more_same_type(p, 0, 1);
  more_same_type(p, 0, 2);
  more_rank(p, 0, 2, 2);
  more_rank(p, 1, 2, 2);
  if (!more_ok(p)) return;
  m->i[ROWS] = a->shape[m->i[TRANS_A]];
  m->i[DEPTH] = a->shape[!m->i[TRANS_A]];
  m->i[COLS] = b->shape[!m->i[TRANS_B]];
  if (m->i[DEPTH] != b->shape[m->i[TRANS_B]]) more_refuse(p, "its operands have different depths");
  int64_t shape[MORE_DIMS] = {m->i[ROWS], m->i[COLS]};
  int32_t ndim = 2;
  more_result(p, 0, a->type, 2, shape);
  if (more_operand(p, 2) && more_broadcast(p, shape, &ndim, 2) &&
      (ndim != 2 || shape[0] != m->i[ROWS] || shape[1] != m->i[COLS]))
    more_refuse(p, "operand 2 does not broadcast to the result");
  if (!more_ok(p)) return;
  if (more_type_is_whole(a->type) && (m->f[0] != 1 || m->f[1] != 1)) {
    more_work(p, run_gemm_plain, m->out[0].count, (double)m->out[0].count * (double)m->i[DEPTH]);
    return;
  }
  gemm g;
  gemm_of(m, &g);
  more_loop(p, run_gemm, m->out[0].count > 0 ? gemm_units(&g) : 0, gemm_steps(&g));
}

/* ---------------------------------------------------------------- Det */

/* By elimination with the largest pivot, in a copy. */
static void run_det(const more_op *m, const more_args *a, int64_t first, int64_t last) {
  const int64_t n = m->i[ROWS];
  double *work = a->scratch;
  int64_t steps = 0;
  (void)first, (void)last;
  for (int64_t u = 0; u < m->out[0].count; u++) {
    double det = 1;
    for (int64_t i = 0; i < n * n; i++) work[i] = more_get(&m->in[0], a->in[0], u * n * n + i);
    for (int64_t c = 0; c < n && det != 0; c++) {
      int64_t best = c;
      if (more_tick(m, &steps, n * (n - c))) return;
      for (int64_t r = c + 1; r < n; r++)
        if (fabs(work[r * n + c]) > fabs(work[best * n + c])) best = r;
      if (best != c) det = -det;
      for (int64_t k = 0; best != c && k < n; k++) {
        const double t = work[c * n + k];
        work[c * n + k] = work[best * n + k];
        work[best * n + k] = t;
      }
      det *= work[c * n + c];
      for (int64_t r = c + 1; r < n && det != 0; r++) {
        const double f = work[r * n + c] / work[c * n + c];
        for (int64_t k = c; k < n; k++) work[r * n + k] -= f * work[c * n + k];
      }
    }
    more_put(&m->out[0], a->out[0], u, det);
  }
}

void more_setup_det(more_plan *p) {
  const more_value *x = &p->m->in[0];
  more_real(p, 0);
  more_rank(p, 0, 2, MORE_DIMS);
  if (!more_ok(p)) return;
  const int64_t n = p->m->i[ROWS] = x->shape[x->ndim - 1];
  if (n != x->shape[x->ndim - 2]) more_refuse(p, "its matrices are not square");
  more_result(p, 0, x->type, x->ndim - 2, x->shape);
  more_scratch(p, (double)n * (double)n * sizeof(double));
  more_work(p, run_det, 1, (double)x->count * (double)n);
}
