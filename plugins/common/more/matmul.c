/* Products of matrices of any type, of quantized ones, and what is made of products: Einsum and Det. */
#include "more.h"

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

static void run_matmul(const more_op *m, const more_args *a, int64_t first, int64_t last) {
  const int64_t rows = m->i[ROWS], cols = m->i[COLS], depth = m->i[DEPTH];
  const bool whole = more_type_is_whole(m->in[0].type);
  int64_t work = 0;
  for (int64_t u = first; u < last; u++) {
    const int64_t batch = u / rows, r = u % rows;
    const int64_t at = batch_at(m, &m->in[0], batch) + r * depth, bt = batch_at(m, &m->in[1], batch);
    for (int64_t c = 0; c < cols; c++) {
      if (more_tick(m, &work, 4 * depth)) return;
      double sum = 0;
      uint64_t wsum = 0;
      for (int64_t k = 0; k < depth; k++) {
        if (whole)
          wsum += (uint64_t)more_get_int(&m->in[0], a->in[0], at + k) *
                  (uint64_t)more_get_int(&m->in[1], a->in[1], bt + k * cols + c);
        else sum += more_get(&m->in[0], a->in[0], at + k) * more_get(&m->in[1], a->in[1], bt + k * cols + c);
      }
      if (whole) more_store_int(m->out[0].type, a->out[0], u * cols + c, (int64_t)wsum);
      else more_put(&m->out[0], a->out[0], u * cols + c, sum);
    }
  }
}

static void matmul_work(more_plan *p, more_kernel run) {
  const more_op *m = p->m;
  const bool bytes = m->in[0].size == 1 && run != run_matmul; /* these have loops of vectors */
  if (!more_ok(p)) return;
  more_work(p, run, m->i[COLS] > 0 ? m->out[0].count / m->i[COLS] : 1,
            (double)m->out[0].count * (double)m->i[DEPTH] * (bytes ? 0.1 : 1));
}

void more_setup_matmul(more_plan *p) {
  more_number(p, 0);
  more_same_type(p, 0, 1);
  matrices(p, 0, 1, p->m->in[0].type);
  matmul_work(p, run_matmul);
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

enum { TILE = 256 };

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

static void run_matmul_integer(const more_op *m, const more_args *a, int64_t first, int64_t last) {
  const int64_t cols = m->i[COLS];
  int64_t sums[TILE];
  for (int64_t u = first; u < last; u++)
    for (int64_t c = 0; c < cols; c += TILE) {
      const int64_t n = cols - c < TILE ? cols - c : TILE;
      sums_of_bytes(m, a, 1, 3, u, c, n, sums);
      for (int64_t i = 0; i < n; i++) more_store_int(REF_TYPE_I32, a->out[0], u * cols + c + i, sums[i]);
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

/* a, its scale and zero point, b, its, and those of the result. */
static void run_qlinear(const more_op *m, const more_args *a, int64_t first, int64_t last) {
  const int64_t rows = m->i[ROWS], cols = m->i[COLS];
  const double least = more_lowest(m->out[0].type), most = more_highest(m->out[0].type);
  int64_t sums[TILE];
  for (int64_t u = first; u < last; u++)
    for (int64_t at = 0; at < cols; at += TILE) {
      const int64_t n = cols - at < TILE ? cols - at : TILE;
      sums_of_bytes(m, a, 3, 5, u, at, n, sums);
      for (int64_t i = 0; i < n; i++) {
        const int64_t c = at + i;
        const double scaled = more_rescale(m, 1, (double)sums[i], point(m, a, 1, u % rows, 1), point(m, a, 4, c, 1),
                                           point(m, a, 6, u % rows, 1));
        const double x = nearbyint(scaled) + point(m, a, 7, u % rows, 0);
        more_put(&m->out[0], a->out[0], u * cols + c, x < least ? least : x > most ? most : x);
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

/* Integers with factors of 1 wrap, and are exact. */
static void run_gemm_whole(const more_op *m, const more_args *a, int64_t first, int64_t last) {
  const int64_t rows = m->i[ROWS], cols = m->i[COLS], depth = m->i[DEPTH];
  for (int64_t u = first; u < last; u++) {
    const int64_t r = u / cols, c = u % cols;
    uint64_t sum = 0;
    for (int64_t k = 0; k < depth; k++)
      sum += (uint64_t)more_get_int(&m->in[0], a->in[0], m->i[TRANS_A] ? k * rows + r : r * depth + k) *
             (uint64_t)more_get_int(&m->in[1], a->in[1], m->i[TRANS_B] ? c * depth + k : k * cols + c);
    if (a->in[2] != NULL) sum += (uint64_t)more_get_int(&m->in[2], a->in[2], more_at(&m->in[2], &m->out[0], u));
    more_store_int(m->out[0].type, a->out[0], u, (int64_t)sum);
  }
}

static void run_gemm(const more_op *m, const more_args *a, int64_t first, int64_t last) {
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
  const bool plain = more_type_is_whole(a->type) && m->f[0] == 1 && m->f[1] == 1;
  more_work(p, plain ? run_gemm_whole : run_gemm, m->out[0].count, (double)m->out[0].count * (double)m->i[DEPTH]);
}

/* ---------------------------------------------------------------- Einsum */

/* m->i: how many letters there are, how many of them are of the result, and then the size of each: those of the result
 * first. */
enum { LETTERS = 16, EINSUM_IN = 4, COUNT = 0, OF_RESULT, EINSUM_SIZES = 2 };

/* The strides of operand k along the letters are the shapes of in[8 + 2 * k] and the next, which nothing else uses. */
static const int64_t *einsum_strides(const more_op *m, uint32_t k) {
  return m->in[8 + 2 * k].shape;
}

static void run_einsum(const more_op *m, const more_args *a, int64_t first, int64_t last) {
  const int64_t letters = m->i[COUNT], kept = m->i[OF_RESULT], *sizes = m->i + EINSUM_SIZES;
  const bool whole = more_type_is_whole(m->in[0].type); /* these wrap */
  int64_t inner = 1;
  int64_t work = 0;
  for (int64_t l = kept; l < letters; l++) inner *= sizes[l];
  for (int64_t u = first; u < last; u++) {
    double sum = 0;
    uint64_t whole_sum = 0;
    for (int64_t j = 0; j < inner; j++) {
      int64_t at[EINSUM_IN] = {0}, rest = j;
      if (more_tick(m, &work, 4 * letters)) return;
      double product = 1;
      uint64_t whole_product = 1;
      for (int64_t l = letters; l-- > 0;) {
        if (l == kept - 1) rest = u;
        const int64_t place = rest % sizes[l];
        rest /= sizes[l];
        for (uint32_t k = 0; k < m->n_in; k++)
          at[k] += place * (l < MORE_DIMS ? einsum_strides(m, k)[l] : m->in[9 + 2 * k].shape[l - MORE_DIMS]);
      }
      for (uint32_t k = 0; k < m->n_in && !whole; k++) product *= more_get(&m->in[k], a->in[k], at[k]);
      for (uint32_t k = 0; k < m->n_in && whole; k++)
        whole_product *= (uint64_t)more_get_int(&m->in[k], a->in[k], at[k]);
      sum += product;
      whole_sum += whole_product;
    }
    if (whole) more_store_int(m->out[0].type, a->out[0], u, (int64_t)whole_sum);
    else more_put(&m->out[0], a->out[0], u, sum);
  }
}

typedef struct einsum {
  char letter[LETTERS]; /* of the result first; the dimensions of "..." are digits */
  int64_t size[LETTERS], stride[EINSUM_IN][LETTERS];
  int64_t count;
} einsum;

static int64_t letter_of(more_plan *p, einsum *e, char c) {
  for (int64_t l = 0; l < e->count; l++)
    if (e->letter[l] == c) return l;
  if (e->count == LETTERS) {
    more_refuse(p, "more than %d letters in its equation", LETTERS);
    return 0;
  }
  e->letter[e->count] = c;
  e->size[e->count] = 1;
  return e->count++;
}

/* The term up to end as letters, "..." as digits counted from the right (of dots dimensions). */
static int64_t term(more_plan *p, const char *from, const char *end, int64_t dots, char out[MORE_DIMS]) {
  int64_t n = 0;
  for (const char *c = from; c < end && more_ok(p); c++) {
    const bool dot = *c == '.' && end - c >= 3 && c[1] == '.' && c[2] == '.';
    for (int64_t d = dots; dot && d-- > 0;) {
      if (n < MORE_DIMS) out[n] = (char)('0' + d);
      n++;
    }
    if (dot) c += 2;
    else if ((*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z')) {
      if (n < MORE_DIMS) out[n] = *c;
      n++;
    } else if (*c != ' ') more_refuse(p, "its equation has a '%c'", *c);
  }
  if (n > MORE_DIMS) more_refuse(p, "a term of its equation has more than %d dimensions", MORE_DIMS);
  return n;
}

static bool has_dots(const char *from, const char *end) {
  return memchr(from, '.', (size_t)(end - from)) != NULL;
}

static int64_t own_letters(const char *from, const char *end) {
  int64_t n = 0;
  for (; from < end; from++) n += (*from >= 'a' && *from <= 'z') || (*from >= 'A' && *from <= 'Z');
  return n;
}

void more_setup_einsum(more_plan *p) {
  more_op *m = p->m;
  einsum e = {.count = 0};
  char letters[MORE_DIMS];
  int64_t shape[MORE_DIMS], dots = 0;
  const char *text = more_string(p, "equation", ""), *arrow = strstr(text, "->");
  const char *end = arrow != NULL ? arrow : text + strlen(text);
  if (m->n_in > EINSUM_IN) more_refuse(p, "it takes up to %d operands", EINSUM_IN);
  more_number(p, 0);
  const char *at = text;
  for (uint32_t k = 0; k < m->n_in && more_ok(p); k++) { /* how many dimensions the dots are */
    const char *stop = memchr(at, ',', (size_t)(end - at));
    if ((stop == NULL) != (k + 1 == m->n_in)) more_refuse(p, "its equation has not one term for each operand");
    if (stop == NULL) stop = end;
    more_same_type(p, 0, k);
    if (has_dots(at, stop) && m->in[k].ndim - own_letters(at, stop) > dots)
      dots = m->in[k].ndim - own_letters(at, stop);
    at = stop + (*stop == ',');
  }
  if (dots > 9) more_refuse(p, "more than 9 dimensions in its \"...\"");
  if (!more_ok(p)) return;

  int64_t n_out = 0;
  char out[MORE_DIMS];
  if (arrow != NULL) {
    n_out = term(p, arrow + 2, text + strlen(text), dots, out);
  } else { /* the dots, and what is there once, in the order of the alphabet */
    for (int64_t d = dots; d-- > 0;) out[n_out++] = (char)('0' + d);
    for (int c = 'A'; c <= 'z' && n_out < MORE_DIMS; c++) {
      int64_t times = 0;
      for (const char *t = text; t < end; t++) times += *t == c;
      if (times == 1) out[n_out++] = (char)c;
    }
  }
  for (int64_t d = 0; d < n_out && more_ok(p); d++) {
    if (letter_of(p, &e, out[d]) != d) more_refuse(p, "its equation names a dimension of the result twice");
  }
  at = text;
  for (uint32_t k = 0; k < m->n_in && more_ok(p); k++) {
    const char *stop = memchr(at, ',', (size_t)(end - at));
    if (stop == NULL) stop = end;
    const int64_t own = m->in[k].ndim - own_letters(at, stop);
    const int64_t n = term(p, at, stop, has_dots(at, stop) ? own : 0, letters);
    if (more_ok(p) && n != m->in[k].ndim) more_refuse(p, "its equation gives operand %u another rank than it has", k);
    int64_t stride = 1;
    for (int64_t d = n; d-- > 0 && more_ok(p);) {
      const int64_t l = letter_of(p, &e, letters[d]), size = m->in[k].shape[d];
      if (size != 1 && e.size[l] != 1 && e.size[l] != size)
        more_refuse(p, "'%c' of its equation is %lld and %lld", letters[d], (long long)e.size[l], (long long)size);
      if (size != 1) {
        e.size[l] = size;
        e.stride[k][l] += stride;
      }
      stride *= size;
    }
    at = stop + (*stop == ',');
  }
  if (!more_ok(p)) return;
  double work = 1;
  for (int64_t d = 0; d < n_out; d++) shape[d] = e.size[d];
  m->i[COUNT] = e.count;
  m->i[OF_RESULT] = n_out;
  for (int64_t l = 0; l < e.count; l++) {
    m->i[EINSUM_SIZES + l] = e.size[l];
    work *= (double)e.size[l];
    for (uint32_t k = 0; k < m->n_in; k++) m->in[8 + 2 * k + (l >= MORE_DIMS)].shape[l % MORE_DIMS] = e.stride[k][l];
  }
  more_result(p, 0, m->in[0].type, (int32_t)n_out, shape);
  more_work(p, run_einsum, m->out[0].count, work * m->n_in);
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
