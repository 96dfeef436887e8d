/* Sum, mean, product, greatest or least over any axes. Options: T0 the elements' type; one of R_SUM, R_MEAN, R_MAX, R_MIN
 * and R_PROD; float32, or whole numbers, which are gathered in 64 bits and wrap. reduce_group: a work-group
 * has a result, for many elements each; reduce_item: an item has one. NaN wins over numbers and stays. */

#ifdef T0_REAL
#define A float
#define MOST K_INFINITY
#define LEAST (-K_INFINITY)
#define ADD(a, b) ((a) + (b))
#define MULTIPLY(a, b) ((a) * (b))
#else
#define A long
#define MOST p->start
#define LEAST p->start
#define ADD(a, b) ((long)((ulong)(a) + (ulong)(b)))
#define MULTIPLY(a, b) ((long)((ulong)(a) * (ulong)(b)))
#endif

#if defined(R_MAX)
#define START LEAST
#define FOLD(a, v) ((v) > (a) || (v) != (v) ? (v) : (a))
#elif defined(R_MIN)
#define START MOST
#define FOLD(a, v) ((v) < (a) || (v) != (v) ? (v) : (a))
#elif defined(R_PROD)
#define START 1
#define FOLD(a, v) MULTIPLY(a, v)
#else
#define START 0
#define FOLD(a, v) ADD(a, v)
#endif
#if defined(T0_REAL) && (defined(R_SUM) || defined(R_MEAN))
#define TOTALS
#endif

/* One of each who share a result: every each-th element of the rows, or every each-th row. */
DEVICE A share_of(const k_reduce *p, GLOBAL const T0 *in, IDX who, IDX each) {
  const IDX row = (IDX)p->row, step = (IDX)p->row_step, outer = (IDX)p->outer;
  const IDX x0 = p->by_row ? who : 0, dx = p->by_row ? each : 1, j0 = p->by_row ? 0 : who, dj = p->by_row ? 1 : each;
#ifdef TOTALS
  k_total total = {0.0f, 0.0f};
#else
  A all = START;
#endif
  for (IDX j = j0; j < outer; j += dj) {
    IDX at = 0, left = j;
    for (int d = (int)p->dims - 1; d >= 0; d--) {
      at += left % (IDX)p->dim[d] * (IDX)p->step[d];
      left /= (IDX)p->dim[d];
    }
#ifdef TOTALS
    for (IDX x = x0; x < row; x += dx) k_total_add(&total, in[at + x * step]);
#else
    for (IDX x = x0; x < row; x += dx) {
      const A v = (A)in[at + x * step];
      all = FOLD(all, v);
    }
#endif
  }
#ifdef TOTALS
  return k_total_value(&total);
#else
  return all;
#endif
}

DEVICE T0 finish(const k_reduce *p, A all) {
#ifndef R_MEAN
  return (T0)all;
#elif defined(T0_REAL)
  return p->count == 0 ? K_NAN : all / (float)p->count;
#else
  return p->count == 0 ? (T0)0 : (T0)(all / (A)p->count);
#endif
}

DEVICE IDX first_of(const k_reduce *p, IDX result) {
  IDX at = 0;
  for (int d = (int)p->kept_dims - 1; d >= 0; d--) {
    at += result % (IDX)p->kept_dim[d] * (IDX)p->kept_step[d];
    result /= (IDX)p->kept_dim[d];
  }
  return at;
}

#ifdef K_reduce_item
KERNEL void reduce_item(k_reduce p, GLOBAL const T0 *in, GLOBAL T0 *out) {
  const IDX result = K_GLOBAL_ID;
  if (result >= (IDX)p.results) return;
  out[result] = finish(&p, share_of(&p, in + first_of(&p, result), 0, 1));
}
#endif

#ifdef K_reduce_group
KERNEL void reduce_group(k_reduce p, GLOBAL const T0 *in, GLOBAL T0 *out) {
  LOCAL_ARRAY(A, room, K_GROUP);
  const IDX result = K_GROUP_ID;
  const int item = K_ITEM;
  room[item] = share_of(&p, in + first_of(&p, result), item, K_GROUP);
  BARRIER;
  for (int span = K_GROUP / 2; span > 0; span /= 2) {
    if (item < span) room[item] = FOLD(room[item], room[item + span]);
    BARRIER;
  }
  if (item == 0) out[result] = finish(&p, room[0]);
}
#endif
