/* ArgMax, ArgMin and TopK over columns of elements of type T0. NaN comes first or last, as is asked for; of equals the one
 * with the lower index comes first, or the last one where that is asked for: a strict order, so results do not depend on
 * how the work is split. */
DEVICE int is_nan(T0 x) {
#ifdef T0_REAL
  return x != x;
#else
  (void)x;
  return 0;
#endif
}

/* Does element i of a column come before element j? */
DEVICE int before(const k_along *p, GLOBAL const T0 *x, IDX i, IDX j) {
  const T0 a = x[i * (IDX)p->inner], b = x[j * (IDX)p->inner];
  const int a_nan = is_nan(a), b_nan = is_nan(b);
  if (a == b || (a_nan && b_nan)) return p->last ? i > j : i < j;
  if (a_nan || b_nan) return a_nan == (p->nan_first != 0);
  return (a > b) == (p->largest != 0);
}

/* Where the first element of a column of n lies. */
DEVICE IDX column_start(const k_along *p, IDX column, IDX n) {
  return column / (IDX)p->inner * n * (IDX)p->inner + column % (IDX)p->inner;
}

#ifdef K_arg_item
/* An item has a column. */
KERNEL void arg_item(k_along p, GLOBAL const T0 *in, GLOBAL long *out) {
  const IDX column = K_GLOBAL_ID;
  IDX best = 0;
  if (column >= (IDX)p.columns) return;
  in += column_start(&p, column, (IDX)p.n);
  for (IDX i = 1; i < (IDX)p.n; i++) {
    if (before(&p, in, i, best)) best = i;
  }
  out[column] = best;
}
#endif

#ifdef K_arg_group
/* A group has a column, of at least as many elements as it has items. */
KERNEL void arg_group(k_along p, GLOBAL const T0 *in, GLOBAL long *out) {
  LOCAL_ARRAY(IDX, room, K_GROUP);
  const int item = K_ITEM;
  IDX best = item;
  in += column_start(&p, K_GROUP_ID, (IDX)p.n);
  for (IDX i = item + K_GROUP; i < (IDX)p.n; i += K_GROUP) {
    if (before(&p, in, i, best)) best = i;
  }
  room[item] = best;
  BARRIER;
  for (int span = K_GROUP / 2; span > 0; span /= 2) {
    if (item < span && before(&p, in, room[item + span], room[item])) room[item] = room[item + span];
    BARRIER;
  }
  if (item == 0) out[K_GROUP_ID] = room[0];
}
#endif

#ifdef K_top_rank
/* An item has an element: its place is the number of those before it. For short columns. */
KERNEL void top_rank(k_along p, GLOBAL const T0 *in, GLOBAL T0 *values, GLOBAL long *indices) {
  const IDX id = K_GLOBAL_ID, i = id % (IDX)p.n, column = id / (IDX)p.n;
  IDX rank = 0;
  if (column >= (IDX)p.columns) return;
  in += column_start(&p, column, (IDX)p.n);
  for (IDX j = 0; j < (IDX)p.n; j++) rank += j != i && before(&p, in, j, i);
  if (rank >= (IDX)p.k) return;
  const IDX at = column_start(&p, column, (IDX)p.k) + rank * (IDX)p.inner;
  values[at] = in[i * (IDX)p.inner];
  indices[at] = i;
}
#endif

/* Lets element at of a heap of count go down to its place; the worst is on top. */
DEVICE void sift(const k_along *p, GLOBAL const T0 *x, GLOBAL long *heap, IDX at, IDX count) {
  const IDX inner = (IDX)p->inner;
  for (;;) {
    IDX worst = at;
    for (IDX child = 2 * at + 1; child <= 2 * at + 2 && child < count; child++) {
      if (before(p, x, (IDX)heap[worst * inner], (IDX)heap[child * inner])) worst = child;
    }
    if (worst == at) return;
    const long swap = heap[at * inner];
    heap[at * inner] = heap[worst * inner];
    heap[worst * inner] = swap;
    at = worst;
  }
}

#ifdef K_top_heap
/* An item has a column: a heap of the k best so far, made in the result of indices itself and sorted in the end. */
KERNEL void top_heap(k_along p, GLOBAL const T0 *in, GLOBAL T0 *values, GLOBAL long *indices) {
  const IDX column = K_GLOBAL_ID, k = (IDX)p.k, inner = (IDX)p.inner;
  if (column >= (IDX)p.columns) return;
  in += column_start(&p, column, (IDX)p.n);
  values += column_start(&p, column, k);
  indices += column_start(&p, column, k);
  for (IDX i = 0; i < k; i++) indices[i * inner] = i;
  for (IDX i = k / 2 - 1; i >= 0; i--) sift(&p, in, indices, i, k);
  for (IDX i = k; i < (IDX)p.n; i++) {
    if (!before(&p, in, i, (IDX)indices[0])) continue;
    indices[0] = i;
    sift(&p, in, indices, 0, k);
  }
  for (IDX i = k - 1; i > 0; i--) {
    const long swap = indices[0];
    indices[0] = indices[i * inner];
    indices[i * inner] = swap;
    sift(&p, in, indices, 0, i);
  }
  for (IDX i = 0; i < k; i++) values[i * inner] = in[(IDX)indices[i * inner] * inner];
}
#endif
