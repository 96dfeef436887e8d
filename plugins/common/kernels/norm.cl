/* Normalisations. BatchNormalization: batch_plane, where a work-group has a stretch of a plane, for planes that are large
 * enough, and batch_item. InstanceNormalization and LayerNormalization: norm_group, where a work-group has a row, and
 * norm_item for short rows; options: LAYER: scale and bias have a number for each element of a row, not for each
 * channel; HAS_BIAS; HAS_MEAN and HAS_LESS: results for the mean and for 1 over the deviation. LRN: lrn. Results may lie
 * on the first operand, except LRN's. */
#define BLOCK 16

DEVICE float batch(const k_norm *p, float x, IDX c, GLOBAL const float *scale, GLOBAL const float *bias,
                   GLOBAL const float *mean, GLOBAL const float *variance) {
  return (x - mean[c]) * (scale[c] / sqrt(variance[c] + p->epsilon)) + bias[c];
}

#ifdef K_batch_plane
/* size: work-groups for a plane. */
KERNEL void batch_plane(k_norm p, GLOBAL const float *in, GLOBAL const float *scale, GLOBAL const float *bias,
                        GLOBAL const float *mean, GLOBAL const float *variance, GLOBAL float *out) {
  const IDX group = K_GROUP_ID, n = (IDX)p.n, plane = group / (IDX)p.size, c = plane % (IDX)p.channels;
  const IDX first = group % (IDX)p.size * (K_GROUP * K_STRETCH) + K_ITEM;
  const float times = scale[c] / sqrt(variance[c] + p.epsilon), middle = mean[c], plus = bias[c];
  in += plane * n;
  out += plane * n;
  for (int b = 0; b < K_STRETCH; b++) {
    const IDX i = first + b * K_GROUP;
    if (i < n) out[i] = (in[i] - middle) * times + plus;
  }
}
#endif

#ifdef K_batch_item
KERNEL void batch_item(k_norm p, GLOBAL const float *in, GLOBAL const float *scale, GLOBAL const float *bias,
                       GLOBAL const float *mean, GLOBAL const float *variance, GLOBAL float *out) {
  const IDX i = K_GLOBAL_ID;
  if (i < (IDX)p.rows * (IDX)p.n) {
    out[i] = batch(&p, in[i], i / (IDX)p.n % (IDX)p.channels, scale, bias, mean, variance);
  }
}
#endif

/* ---------------------------------------------------------------- rows */

/* Of every each-th element from the one at who: their sum, or that of their squared distances from middle. */
DEVICE float sum_of(GLOBAL const float *in, IDX who, IDX each, IDX n) {
  k_total total = {0.0f, 0.0f};
  for (IDX i = who; i < n; i += each) k_total_add(&total, in[i]);
  return k_total_value(&total);
}

DEVICE float squares_of(GLOBAL const float *in, float middle, IDX who, IDX each, IDX n) {
  k_total total = {0.0f, 0.0f};
  for (IDX i = who; i < n;) {
    float part = 0.0f;
    for (int b = 0; b < BLOCK && i < n; b++, i += each) {
      const float d = in[i] - middle;
      part += d * d;
    }
    k_total_add(&total, part);
  }
  return k_total_value(&total);
}

#ifdef HAS_BIAS
#define BIAS_OPERAND , GLOBAL const float *bias
#define BIAS(i) bias[i]
#else
#define BIAS_OPERAND
#define BIAS(i) 0.0f
#endif
#ifdef HAS_MEAN
#define MEAN_OPERAND , GLOBAL float *out_mean
#else
#define MEAN_OPERAND
#endif
#ifdef HAS_LESS
#define LESS_OPERAND , GLOBAL float *out_less
#else
#define LESS_OPERAND
#endif
#ifdef LAYER
#define VALUE(i) ((in[i] - middle) * less * scale[i] + BIAS(i))
#else
#define VALUE(i) ((in[i] - middle) * times + plus)
#endif
#define OPERANDS \
  GLOBAL const float *in, GLOBAL const float *scale BIAS_OPERAND, GLOBAL float *out MEAN_OPERAND LESS_OPERAND

#ifdef K_norm_group
KERNEL void norm_group(k_norm p, OPERANDS) {
  LOCAL_ARRAY(float, room, K_GROUP);
  const IDX row = K_GROUP_ID, n = (IDX)p.n, who = K_ITEM;
  in += row * n;
  out += row * n;
  const float middle = k_group_sum(room, sum_of(in, who, K_GROUP, n)) / (float)n;
  const float spread = k_group_sum(room, squares_of(in, middle, who, K_GROUP, n)) / (float)n;
  const float less = 1.0f / sqrt(spread + p.epsilon);
#ifndef LAYER
  const float times = less * scale[row % (IDX)p.channels], plus = BIAS(row % (IDX)p.channels);
#endif
  for (IDX i = who; i < n; i += K_GROUP) out[i] = VALUE(i);
#ifdef HAS_MEAN
  if (who == 0) out_mean[row] = middle;
#endif
#ifdef HAS_LESS
  if (who == 0) out_less[row] = less;
#endif
}
#endif

#ifdef K_norm_item
KERNEL void norm_item(k_norm p, OPERANDS) {
  const IDX row = K_GLOBAL_ID, n = (IDX)p.n;
  if (row >= (IDX)p.rows) return;
  in += row * n;
  out += row * n;
  const float middle = sum_of(in, 0, 1, n) / (float)n;
  const float less = 1.0f / sqrt(squares_of(in, middle, 0, 1, n) / (float)n + p.epsilon);
#ifndef LAYER
  const float times = less * scale[row % (IDX)p.channels], plus = BIAS(row % (IDX)p.channels);
#endif
  for (IDX i = 0; i < n; i++) out[i] = VALUE(i);
#ifdef HAS_MEAN
  out_mean[row] = middle;
#endif
#ifdef HAS_LESS
  out_less[row] = less;
#endif
}
#endif

/* ---------------------------------------------------------------- LRN */

#ifdef K_lrn
/* Over size channels, (size - 1) / 2 of them below. n: elements of a plane. */
KERNEL void lrn(k_norm p, GLOBAL const float *in, GLOBAL float *out) {
  const IDX i = K_GLOBAL_ID, n = (IDX)p.n;
  if (i >= (IDX)p.rows * n) return;
  const long c = i / n % (IDX)p.channels, below = (p.size - 1) / 2, above = p.size - 1 - below;
  const long low = c > below ? c - below : 0, high = p.channels - 1 - c > above ? c + above : p.channels - 1;
  const IDX first = i - (IDX)c * n;
  k_total total = {0.0f, 0.0f};
  for (long k = low; k <= high; k++) {
    const float v = in[first + (IDX)k * n];
    k_total_add(&total, v * v);
  }
  out[i] = in[i] / pow(p.bias + p.alpha / (float)p.size * k_total_value(&total), p.beta);
}
#endif
