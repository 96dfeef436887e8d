/* TfIdfVectorizer: the kernel of tfidf.cl, whose table has the pool's rows in the order of the results that they count for. The
 * names here are those of plugins/common/more/tfidf.c, whose setup checks the node. */
#include "plan_portable.h"

enum { LEAST, MOST, GAPS, MODE, SIZE, LENGTH };
enum { HEAD = 5, ROW = 3 }; /* of the table, as in tfidf.cl */

/* An attribute's integers, and how many. */
typedef struct numbers {
  const int64_t *of;
  int64_t count;
} numbers;

/* The node's attributes: row r of the pool has index indexes.of[r]. */
typedef struct pool {
  numbers pool, counts, indexes;
  const double *weights; /* NULL: each is 1 */
} pool;

static numbers numbers_of(const k_node *n, const char *name) {
  const heddle_pattr *attr = region_attr_find(n->ref.node, name);
  return attr != NULL ? (numbers){attr->data, (int64_t)attr->count} : (numbers){0};
}

static pool pool_of(const k_node *n) {
  const heddle_pattr *weights = region_attr_find(n->ref.node, "weights");
  return (pool){.pool = numbers_of(n, "pool_int64s"),
                .counts = numbers_of(n, "ngram_counts"),
                .indexes = numbers_of(n, "ngram_indexes"),
                .weights = weights != NULL && weights->count > 0 ? weights->data : NULL};
}

static int64_t end_of(const pool *p, int64_t size) {
  return size < p->counts.count ? p->counts.of[size] : p->pool.count;
}

/* Whether the row of size numbers from at on comes earlier too, from begin on: each counts once. */
static bool is_repeated(const pool *p, int64_t begin, int64_t at, int64_t size) {
  for (int64_t other = begin; other < at; other += size) {
    if (memcmp(p->pool.of + other, p->pool.of + at, (size_t)size * sizeof(int64_t)) == 0) return true;
  }
  return false;
}

/* Writes row number r of size numbers at a place of the pool into the next place of its index. */
static void put_row(const pool *p, int64_t r, int64_t size, int64_t at, int32_t *next, int32_t *rows) {
  const float weight = p->weights != NULL ? (float)p->weights[r] : 1;
  int32_t *row = rows + (ptrdiff_t)ROW * next[p->indexes.of[r]]++;
  row[0] = (int32_t)size;
  row[1] = (int32_t)at;
  memcpy(&row[2], &weight, sizeof weight);
}

/* words: zeroed, of the table's size. The starts of the indexes are counted up while rows are put, and set back behind. */
static void fill(const more_op *m, const pool *p, int32_t *words) {
  const int64_t size = m->i[SIZE];
  int32_t *starts = words + HEAD, *rows = starts + size + 1, *values = rows + ROW * p->indexes.count;
  const int32_t head[HEAD] = {(int32_t)m->i[LENGTH], (int32_t)size, (int32_t)m->i[GAPS], (int32_t)(rows - words),
                              (int32_t)(values - words)};
  memcpy(words, head, sizeof head);
  for (int64_t r = 0; r < p->indexes.count; r++) starts[p->indexes.of[r] + 1]++;
  for (int64_t k = 0; k < size; k++) starts[k + 1] += starts[k];
  int64_t r = 0;
  for (int64_t length = 1; length <= p->counts.count; length++) {
    const int64_t begin = p->counts.of[length - 1], end = end_of(p, length);
    const bool counts = length >= m->i[LEAST] && length <= m->i[MOST];
    for (int64_t at = begin; at + length <= end; at += length, r++)
      put_row(p, r, counts && !is_repeated(p, begin, at, length) ? length : 0, at, starts, rows);
  }
  for (; r < p->indexes.count; r++) put_row(p, r, 0, 0, starts, rows);
  memmove(starts + 1, starts, (size_t)size * sizeof *starts);
  starts[0] = 0;
  memcpy(values, p->pool.of, (size_t)p->pool.count * sizeof(int64_t));
}

static heddle_status plan_tfidf(k_node *n, heddle_error *err) {
  enum { MOST_WORDS = 1 << 24, MOST_REPEATS = 1 << 15 };
  more_op m;
  void *table = NULL;
  heddle_status s = k_more_of(n, &m, err);
  if (s != HEDDLE_OK || m.out[0].count == 0) return s;
  const pool p = pool_of(n);
  const int64_t words = HEAD + m.i[SIZE] + 1 + ROW * p.indexes.count + 2 * p.pool.count;
  if (words > MOST_WORDS || p.indexes.count > MOST_REPEATS || m.i[LENGTH] > INT32_MAX)
    return ref_refuse(&n->ref, err, "its pool or its lines are too large");
  s = k_table_new(n, (uint64_t)words * sizeof(int32_t), &table, err);
  if (s != HEDDLE_OK) return s;
  memset(table, 0, (size_t)words * sizeof(int32_t));
  fill(&m, &p, table);
  const k_general params = {.count = m.out[0].count, .mode = m.i[MODE], .step = m.in[0].type == REF_TYPE_I64 ? 2 : 1};
  const double each = (double)p.indexes.count / (double)m.i[SIZE] + 1;
  const k_launch how = {.kernel = KERNEL_tfidf,
                        .n_types = 1,
                        .types = {K_ELEMENT_I32},
                        .items = (uint64_t)m.out[0].count,
                        .limit = 2 * (uint64_t)m.in[0].count,
                        .turns = each * ((double)m.i[LENGTH] * (double)m.i[MOST] * (double)(m.i[GAPS] + 1) + 1)};
  return k_launch_add(n, &how, &params, sizeof params, 3, (uint32_t[]){k_input(n, 0), K_TABLE, k_output(n, 0)}, err);
}

const k_entry k_tfidf_table[] = {
    {"TfIdfVectorizer", 0, plan_tfidf},
    {0},
};
