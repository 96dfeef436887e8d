/* The first k in order: a heap where they are few; else by digits, which takes time that is proportional to n, and to k,
 * whatever the elements are. */
#include "rank.h"

enum { FEW = 32, CHUNK = 256, LOW = 16 };

/* A heap is faster up to so many of each, and where it is low. */
static bool is_few(int64_t n, int64_t k) {
  return k <= n / 64 || (k <= LOW && k < n);
}

typedef struct progress {
  const ref_op *op;
  int64_t *work;
  bool stopped;
} progress;

static void advance(progress *p, int64_t steps) {
  p->stopped = p->stopped || ref_tick(p->op, p->work, steps);
}

/* Key above, index below: inverted, since of equal keys the lower index comes first. */
#define ITEM uint64_t
#define NAME(x) x##_narrow
#define MAKE(key, index) ((key) << 32 | (UINT32_MAX - (uint64_t)(index)))
#define INVERSE(key) ((key) ^ UINT32_MAX)
#define DIGIT(x, level) ((unsigned)((x) >> (56 - 8 * (level))) & 255u)
#define AFTER(a, b) ((a) < (b))
#define KEY(x) ((x) >> 32)
#include "rank_sort.h"
#undef ITEM
#undef NAME
#undef MAKE
#undef INVERSE
#undef DIGIT
#undef AFTER
#undef KEY

typedef struct wide_item {
  uint64_t key, low;
} wide_item;

#define ITEM wide_item
#define NAME(x) x##_wide
#define MAKE(key, index) ((wide_item){(key), UINT64_MAX - (uint64_t)(index)})
#define INVERSE(key) (~(key))
#define DIGIT(x, level) \
  ((unsigned)((level) < 8 ? (x).key >> (56 - 8 * (level)) : (x).low >> (120 - 8 * (level))) & 255u)
#define AFTER(a, b) ((a).key < (b).key || ((a).key == (b).key && (a).low < (b).low))
#define KEY(x) ((x).key)
#include "rank_sort.h"

static bool is_wide(int64_t n, bool wide) {
  return wide || n > (int64_t)UINT32_MAX;
}

uint64_t ref_rank_bytes(int64_t n, int64_t k, bool wide) {
  const int64_t items = k <= 0 || n <= 0 ? 1 : is_few(n, k) ? k : n;
  return (uint64_t)items * (is_wide(n, wide) ? sizeof(wide_item) : sizeof(uint64_t));
}

bool ref_rank_run(const ref_rank *r, const ref_op *op, int64_t *work, void *scratch) {
  progress p = {op, work, false};
  if (r->k <= 0) return true;
  return is_wide(r->n, r->wide) ? rank_wide(r, scratch, &p) : rank_narrow(r, scratch, &p);
}

int64_t ref_rank_index(const ref_rank *r, const void *scratch, int64_t i) {
  if (is_wide(r->n, r->wide)) return (int64_t)(UINT64_MAX - ((const wide_item *)scratch)[i].low);
  return (int64_t)(UINT32_MAX - (uint32_t)((const uint64_t *)scratch)[i]);
}
