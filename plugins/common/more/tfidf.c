/* TfIdfVectorizer of integers: how often each row of numbers from a pool is found, also with gaps, times a weight. */
#include "more.h"

enum { POOL, COUNTS, INDEXES, WEIGHTS };
enum { LEAST, MOST, GAPS, MODE, SIZE, LENGTH };
enum { TF, IDF, TFIDF };

/* The rows of n numbers in the pool: where they begin, how many, and the number of the first among all rows. */
typedef struct grams {
  int64_t *pool, *indexes;
  double *weights; /* NULL: none */
  int64_t n, rows;
} grams;

static int compare(const grams *g, int64_t a, int64_t b) {
  for (int64_t k = 0; k < g->n; k++) {
    const int64_t x = g->pool[a * g->n + k], y = g->pool[b * g->n + k];
    if (x != y) return x < y ? -1 : 1;
  }
  return 0;
}

static void swap(const grams *g, int64_t a, int64_t b) {
  for (int64_t k = 0; k < g->n; k++) {
    const int64_t x = g->pool[a * g->n + k];
    g->pool[a * g->n + k] = g->pool[b * g->n + k];
    g->pool[b * g->n + k] = x;
  }
  const int64_t index = g->indexes[a];
  g->indexes[a] = g->indexes[b];
  g->indexes[b] = index;
  if (g->weights == NULL) return;
  const double weight = g->weights[a];
  g->weights[a] = g->weights[b];
  g->weights[b] = weight;
}

/* Heapsort: what is at i goes down among the first rows. */
static void sink(const grams *g, int64_t i, int64_t rows) {
  for (int64_t child; (child = 2 * i + 1) < rows; i = child) {
    if (child + 1 < rows && compare(g, child, child + 1) < 0) child++;
    if (compare(g, i, child) >= 0) return;
    swap(g, i, child);
  }
}

static void sort(const grams *g) {
  int64_t sorted = 1;
  while (sorted < g->rows && compare(g, sorted - 1, sorted) <= 0) sorted++;
  if (sorted >= g->rows) return;
  for (int64_t i = g->rows / 2; i-- > 0;) sink(g, i, g->rows);
  for (int64_t last = g->rows - 1; last > 0; last--) {
    swap(g, 0, last);
    sink(g, 0, last);
  }
}

/* Rows of one length in order, so that they are found by halves. */
static void settle(more_op *m) {
  const int64_t *counts = more_kept(m, COUNTS), lengths = (int64_t)m->kept_count[COUNTS];
  int64_t *pool = more_kept_to_settle(m, POOL), *indexes = more_kept_to_settle(m, INDEXES);
  double *weights = m->kept_count[WEIGHTS] > 0 ? more_kept_to_settle(m, WEIGHTS) : NULL;
  for (int64_t n = 1; n <= lengths; n++) {
    const int64_t end = n < lengths ? counts[n] : (int64_t)m->kept_count[POOL];
    const grams g = {pool + counts[n - 1], indexes, weights, n, (end - counts[n - 1]) / n};
    sort(&g);
    indexes += g.rows;
    weights = weights != NULL ? weights + g.rows : NULL;
  }
}

/* Adds to the result what is found of all rows of n numbers at one place; first is the number of the first such row. */
static void count_at(const more_op *m, const more_args *a, int64_t line, int64_t at, int64_t step, int64_t n,
                     int64_t first) {
  const int64_t *pool = more_kept(m, POOL), *counts = more_kept(m, COUNTS), *indexes = more_kept(m, INDEXES);
  const int64_t begin = counts[n - 1],
                end = n < (int64_t)m->kept_count[COUNTS] ? counts[n] : (int64_t)m->kept_count[POOL];
  int64_t low = 0, high = (end - begin) / n; /* the row is among [low, high) */
  while (low < high) {
    const int64_t middle = low + (high - low) / 2, *row = pool + begin + middle * n;
    int64_t k = 0, x = 0;
    while (k < n && (x = more_get_int(&m->in[0], a->in[0], line * m->i[LENGTH] + at + k * step)) == row[k]) k++;
    if (k == n) {
      ((float *)a->out[0])[line * m->i[SIZE] + indexes[first + middle]] += 1;
      return; /* each row is in the pool once */
    }
    if (x < row[k]) high = middle;
    else low = middle + 1;
  }
}

static void run_tfidf(const more_op *m, const more_args *a, int64_t first, int64_t last) {
  const int64_t length = m->i[LENGTH], size = m->i[SIZE], *counts = more_kept(m, COUNTS),
                *indexes = more_kept(m, INDEXES);
  const double *weights = more_kept(m, WEIGHTS);
  int64_t work = 0;
  for (int64_t line = first; line < last; line++) {
    float *out = (float *)a->out[0] + line * size;
    for (int64_t j = 0; j < size; j++) out[j] = 0;
    for (int64_t step = 1; step <= m->i[GAPS] + 1; step++) {
      int64_t row = 0;
      for (int64_t n = 1; n <= m->i[MOST]; n++) {
        const int64_t end = n < (int64_t)m->kept_count[COUNTS] ? counts[n] : (int64_t)m->kept_count[POOL];
        const bool counted = n >= m->i[LEAST] && (n > 1 || step == 1) && (n == 1 || step <= length);
        for (int64_t at = 0; counted && at + (n - 1) * step < length; at++) {
          if (more_tick(m, &work, 32 * n)) return;
          count_at(m, a, line, at, step, n, row);
        }
        row += (end - counts[n - 1]) / n;
      }
    }
    if (m->i[MODE] == TF) continue;
    for (uint64_t r = 0; r < m->kept_count[INDEXES]; r++) {
      float *y = &out[indexes[r]];
      const float weight = m->kept_count[WEIGHTS] > 0 ? (float)weights[r] : 1;
      if (*y != 0) *y = m->i[MODE] == IDF ? weight : *y * weight;
    }
  }
}

void more_setup_tfidf(more_plan *p) {
  more_op *m = p->m;
  const more_value *x = &m->in[0];
  more_rank(p, 0, 1, 2);
  more_index_type(p, 0);
  m->i[LEAST] = more_int(p, "min_gram_length", 1);
  m->i[MOST] = more_int(p, "max_gram_length", 1);
  m->i[GAPS] = more_int(p, "max_skip_count", 0);
  m->i[MODE] = more_choice(p, "mode", "TF", "TF IDF TFIDF");
  more_keep(p, POOL, "pool_int64s", HEDDLE_ATTR_INTS);
  const int64_t *counts = more_keep(p, COUNTS, "ngram_counts", HEDDLE_ATTR_INTS);
  const int64_t *indexes = more_keep(p, INDEXES, "ngram_indexes", HEDDLE_ATTR_INTS);
  more_keep(p, WEIGHTS, "weights", HEDDLE_ATTR_FLOATS);
  if (!more_ok(p)) return;
  const int64_t lengths = (int64_t)m->kept_count[COUNTS], pool = (int64_t)m->kept_count[POOL];
  const uint64_t n_indexes = m->kept_count[INDEXES];
  if (m->i[LEAST] < 1 || m->i[MOST] < m->i[LEAST] || m->i[MOST] > lengths || m->i[GAPS] < 0 || m->i[GAPS] > 1 << 20)
    more_refuse(p, "its lengths or its gaps are out of range");
  int64_t rows = 0;
  for (int64_t n = 1; n <= lengths && more_ok(p); n++) {
    const int64_t end = n < lengths ? counts[n] : pool;
    if (counts[n - 1] < 0 || end < counts[n - 1] || end > pool) more_refuse(p, "ngram_counts does not cut its pool");
    else rows += (end - counts[n - 1]) / n;
  }
  if (more_ok(p) && ((uint64_t)rows > n_indexes || (m->kept_count[WEIGHTS] > 0 && m->kept_count[WEIGHTS] != n_indexes)))
    more_refuse(p, "it has %lld rows in its pool and %llu indexes", (long long)rows, (unsigned long long)n_indexes);
  for (uint64_t r = 0; r < n_indexes && more_ok(p); r++) {
    if (indexes[r] < 0 || indexes[r] > INT32_MAX) more_refuse(p, "ngram_indexes has %lld", (long long)indexes[r]);
    else if (indexes[r] >= m->i[SIZE]) m->i[SIZE] = indexes[r] + 1;
  }
  m->i[LENGTH] = x->shape[x->ndim - 1];
  const int64_t lines = x->ndim > 1 ? x->shape[0] : 1, shape[] = {lines, m->i[SIZE]};
  more_result(p, 0, REF_TYPE_F32, x->ndim, x->ndim > 1 ? shape : shape + 1);
  if (!more_ok(p)) return;
  m->settle = settle;
  more_work(p, run_tfidf, lines, 32 * (double)x->count * (double)m->i[MOST] * (double)(m->i[GAPS] + 1));
}
