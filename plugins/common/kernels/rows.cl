/* Softmax and means along one axis, by rows as k_rows has them. "..._group": a work-group has a row, for long rows;
 * "..._item": an item has one, for short rows and for many columns. Sums go in blocks of 16, to keep rounding small. */
#define BLOCK 16

/* Sum of what the items of a group hold; every item gets it. A barrier on both sides. */
DEVICE float group_sum(LOCAL float *room, float x) {
  const int item = K_ITEM;
  room[item] = x;
  BARRIER;
  for (int span = K_GROUP / 2; span > 0; span /= 2) {
    if (item < span) room[item] += room[item + span];
    BARRIER;
  }
  x = room[0];
  BARRIER;
  return x;
}

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

KERNEL void softmax_group(k_rows p, GLOBAL const float *in, GLOBAL float *out) {
  LOCAL_ARRAY(float, room, K_GROUP);
  const IDX n = (IDX)p.n, inner = (IDX)p.inner, start = row_start(&p, K_GROUP_ID);
  float most = -K_INFINITY, sum = 0.0f;
  for (IDX i = K_ITEM; i < n; i += K_GROUP) {
    const float v = in[start + i * inner];
    most = v > most ? v : most;
  }
  most = group_max(room, most);
  for (IDX i = K_ITEM; i < n;) {
    float part = 0.0f;
    for (int b = 0; b < BLOCK && i < n; b++, i += K_GROUP) {
      const float e = exp(in[start + i * inner] - most);
      out[start + i * inner] = e;
      part += e;
    }
    sum += part;
  }
  sum = group_sum(room, sum);
  for (IDX i = K_ITEM; i < n; i += K_GROUP) out[start + i * inner] /= sum;
}

KERNEL void softmax_item(k_rows p, GLOBAL const float *in, GLOBAL float *out) {
  const IDX row = K_GLOBAL_ID, n = (IDX)p.n, inner = (IDX)p.inner;
  if (row >= (IDX)p.rows) return;
  const IDX start = row_start(&p, row);
  float most = -K_INFINITY, sum = 0.0f;
  for (IDX i = 0; i < n; i++) {
    const float v = in[start + i * inner];
    most = v > most ? v : most;
  }
  for (IDX i = 0; i < n;) {
    float part = 0.0f;
    for (int b = 0; b < BLOCK && i < n; b++, i++) {
      const float e = exp(in[start + i * inner] - most);
      out[start + i * inner] = e;
      part += e;
    }
    sum += part;
  }
  for (IDX i = 0; i < n; i++) out[start + i * inner] /= sum;
}

/* The mean of each row; NaN of an empty one. */
KERNEL void mean_group(k_rows p, GLOBAL const float *in, GLOBAL float *out) {
  LOCAL_ARRAY(float, room, K_GROUP);
  const IDX n = (IDX)p.n, inner = (IDX)p.inner, start = row_start(&p, K_GROUP_ID);
  float sum = 0.0f;
  for (IDX i = K_ITEM; i < n;) {
    float part = 0.0f;
    for (int b = 0; b < BLOCK && i < n; b++, i += K_GROUP) part += in[start + i * inner];
    sum += part;
  }
  sum = group_sum(room, sum);
  if (K_ITEM == 0) out[K_GROUP_ID] = n == 0 ? K_NAN : sum / (float)n;
}

KERNEL void mean_item(k_rows p, GLOBAL const float *in, GLOBAL float *out) {
  const IDX row = K_GLOBAL_ID, n = (IDX)p.n, inner = (IDX)p.inner;
  if (row >= (IDX)p.rows) return;
  const IDX start = row_start(&p, row);
  float sum = 0.0f;
  for (IDX i = 0; i < n;) {
    float part = 0.0f;
    for (int b = 0; b < BLOCK && i < n; b++, i++) part += in[start + i * inner];
    sum += part;
  }
  out[row] = n == 0 ? K_NAN : sum / (float)n;
}
