/* Included by rank.c for each type of item: ITEM, DIGIT(item, level), AFTER(a, b), KEY(item) and NAME. Items are distinct; the
 * greatest comes first. Digits are bytes, the most significant at level 0. */

static void NAME(swap)(ITEM *a, ITEM *b) {
  const ITEM c = *a;
  *a = *b;
  *b = c;
}

static void NAME(insert)(ITEM *a, int64_t n) {
  for (int64_t i = 1; i < n; i++) {
    const ITEM x = a[i];
    int64_t j = i;
    for (; j > 0 && AFTER(a[j - 1], x); j--) a[j] = a[j - 1];
    a[j] = x;
  }
}

/* Sorts by digits from level on: each item is swapped to the bucket of its digit, then each bucket is sorted. */
static void NAME(sort)(ITEM *a, int64_t n, int level, progress *p) {
  int64_t count[256], next[256], end[256];
  while (n > FEW && !p->stopped) {
    memset(count, 0, sizeof count);
    for (int64_t i = 0; i < n; i++) count[DIGIT(a[i], level)]++;
    advance(p, 4 * n);
    if (count[DIGIT(a[0], level)] == n) { /* all alike here */
      level++;
      continue;
    }
    int64_t at = 0;
    for (int d = 255; d >= 0; d--) {
      next[d] = at;
      end[d] = at += count[d];
    }
    for (int d = 255; d >= 0; d--) {
      while (next[d] < end[d]) {
        const unsigned to = DIGIT(a[next[d]], level);
        if (to == (unsigned)d) next[d]++;
        else NAME(swap)(&a[next[d]], &a[next[to]++]);
      }
    }
    for (int d = 255; d >= 0 && !p->stopped; d--)
      if (count[d] > 1) NAME(sort)(a + end[d] - count[d], count[d], level + 1, p);
    return;
  }
  if (!p->stopped) NAME(insert)(a, n);
}

/* Moves the k greatest of n to the front. Each level keeps what is above the digit of the last of them, and looks on
 * among those of that digit. */
static void NAME(select)(ITEM *a, int64_t n, int64_t k, progress *p) {
  int64_t count[256];
  for (int level = 0; k > 0 && k < n && !p->stopped; level++) {
    memset(count, 0, sizeof count);
    for (int64_t i = 0; i < n; i++) count[DIGIT(a[i], level)]++;
    int64_t above = 0, front = 0, middle = 0, back = n;
    int d = 255;
    while (above + count[d] < k) above += count[d--];
    advance(p, 4 * n);
    if (count[d] == n) continue;
    while (middle < back) {
      const int digit = (int)DIGIT(a[middle], level);
      if (digit > d) NAME(swap)(&a[front++], &a[middle++]);
      else if (digit < d) NAME(swap)(&a[middle], &a[--back]);
      else middle++;
    }
    a += above;
    k -= above;
    n = count[d];
  }
}

/* Of a heap with the last on top: at is sunk to its place. */
static void NAME(sink)(ITEM *heap, int64_t at, int64_t n) {
  for (int64_t child; (child = 2 * at + 1) < n; at = child) {
    if (child + 1 < n && AFTER(heap[child + 1], heap[child])) child++;
    if (!AFTER(heap[child], heap[at])) return;
    NAME(swap)(&heap[at], &heap[child]);
  }
}

/* The first of keys [i, n) above least; of equal keys the earlier index comes first, so that these have no place in a heap
 * whose last has that key. */
static int64_t NAME(above)(const uint64_t *keys, int64_t i, int64_t n, uint64_t least) {
  for (; i + 4 <= n; i += 4)
    if ((keys[i] > least) | (keys[i + 1] > least) | (keys[i + 2] > least) | (keys[i + 3] > least)) break;
  while (i < n && keys[i] <= least) i++;
  return i;
}

static bool NAME(rank)(const ref_rank *r, ITEM *items, progress *p) {
  uint64_t keys[CHUNK];
  const bool by_heap = is_few(r->n, r->k);
  int64_t have = 0;
  for (int64_t at = 0, n; at < r->n && !p->stopped; at += n) {
    n = r->n - at < CHUNK ? r->n - at : CHUNK;
    r->keys(r->ctx, at, n, keys);
    for (int64_t i = 0; i < n && !r->largest; i++) keys[i] = INVERSE(keys[i]);
    for (int64_t i = 0; i < n; i++) {
      const bool full = by_heap && have == r->k;
      if (full && (i = NAME(above)(keys, i, n, KEY(items[0]))) == n) break;
      const ITEM x = MAKE(keys[i], at + i);
      if (!full) {
        items[have++] = x;
        if (by_heap && have == r->k)
          for (int64_t h = r->k / 2; h-- > 0;) NAME(sink)(items, h, r->k);
      } else {
        items[0] = x;
        NAME(sink)(items, 0, r->k);
      }
    }
    advance(p, 4 * n);
  }
  if (!by_heap) NAME(select)(items, r->n, r->k, p);
  NAME(sort)(items, r->k, 0, p);
  return !p->stopped;
}
