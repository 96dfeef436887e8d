/* Softmax along one axis, by rows as k_rows has them. "..._group": a work-group has a row, for long rows; "..._item": an
 * item has one, for short rows and for many columns. Sums go in blocks of 16. Option: LOG gives the logarithm. A result
 * may lie on its operand: an item writes only where it alone reads. */
#define BLOCK 16

DEVICE float group_max(LOCAL float *room, float x) {
  const int item = K_ITEM;
  room[item] = x;
  BARRIER;
  for (int span = K_GROUP / 2; span > 0; span /= 2) {
    if (item < span && room[item + span] > room[item]) room[item] = room[item + span];
    BARRIER;
  }
  x = room[0];
  BARRIER;
  return x;
}

DEVICE IDX row_start(const k_rows *p, IDX row) {
  return row / (IDX)p->inner * (IDX)p->n * (IDX)p->inner + row % (IDX)p->inner;
}

/* Of every each-th element of a row from the one at who. NaN is passed over: it comes out of the differences. */
DEVICE float greatest(GLOBAL const float *in, IDX who, IDX each, IDX n, IDX inner) {
  float most = -K_INFINITY;
  for (IDX i = who; i < n; i += each) {
    const float v = in[i * inner];
    most = v > most ? v : most;
  }
  return most;
}

/* The sum of e^(x - most), which are left in out where that is wanted. */
DEVICE float exponentials(GLOBAL const float *in, GLOBAL float *out, float most, IDX who, IDX each, IDX n, IDX inner) {
  k_total sum = {0.0f, 0.0f};
  for (IDX i = who; i < n;) {
    float part = 0.0f;
    for (int b = 0; b < BLOCK && i < n; b++, i += each) {
      const float e = exp(in[i * inner] - most);
#ifndef LOG
      out[i * inner] = e;
#endif
      part += e;
    }
    k_total_add(&sum, part);
  }
  return k_total_value(&sum);
}

DEVICE void finish(GLOBAL const float *in, GLOBAL float *out, float most, float sum, IDX who, IDX each, IDX n,
                   IDX inner) {
#ifdef LOG
  sum = log(sum);
  for (IDX i = who; i < n; i += each) out[i * inner] = in[i * inner] - most - sum;
#else
  for (IDX i = who; i < n; i += each) out[i * inner] /= sum;
#endif
}

#ifdef K_softmax_group
KERNEL void softmax_group(k_rows p, GLOBAL const float *in, GLOBAL float *out) {
  LOCAL_ARRAY(float, room, K_GROUP);
  const IDX n = (IDX)p.n, inner = (IDX)p.inner, start = row_start(&p, K_GROUP_ID), who = K_ITEM;
  const float most = group_max(room, greatest(in + start, who, K_GROUP, n, inner));
  const float sum = k_group_sum(room, exponentials(in + start, out + start, most, who, K_GROUP, n, inner));
  finish(in + start, out + start, most, sum, who, K_GROUP, n, inner);
}
#endif

#ifdef K_softmax_item
KERNEL void softmax_item(k_rows p, GLOBAL const float *in, GLOBAL float *out) {
  const IDX row = K_GLOBAL_ID, n = (IDX)p.n, inner = (IDX)p.inner;
  if (row >= (IDX)p.rows) return;
  const IDX start = row_start(&p, row);
  const float most = greatest(in + start, 0, 1, n, inner);
  const float sum = exponentials(in + start, out + start, most, 0, 1, n, inner);
  finish(in + start, out + start, most, sum, 0, 1, n, inner);
}
#endif
