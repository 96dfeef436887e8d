/* BatchNormalization in training, where mean and variance are those of the batch, and of float64. A channel has batch planes, of
 * plane elements each; its sums are made in chunks, which the next kernel adds. */
#include "portable.cl"

//! batch_sums: f32 f64
#ifdef K_batch_sums
/* Chunk u % chunks of channel u / chunks: the sum, or where mode is 1 of the squares of what is left of x1, the mean. */
KERNEL_2_1(batch_sums, k_batch, T0, x0, T0, x1, T0, y) {
  K_EACH(u, p.count);
  const IDX chunks = AT(p.chunks), c = u / chunks, plane = AT(p.plane), n = AT(p.batch) * plane;
  const K_C(T0) mean = p.mode != 0 ? x1[c] : NUM(0);
  K_SUM(T0, sum);
  for (IDX j = u % chunks; j < n; j += chunks) {
    const K_C(T0) v = x0[(j / plane * AT(p.channels) + c) * plane + j % plane] - mean;
    K_SUM_ADD(T0, sum, p.mode != 0 ? v * v : v);
  }
  y[u] = sum - sum_rest;
}
#endif

//! batch_mean: f32 f64
#ifdef K_batch_mean
KERNEL_1_1(batch_mean, k_batch, T0, x0, T0, y) {
  K_EACH(c, p.count);
  K_SUM(T0, sum);
  for (IDX k = 0; k < AT(p.chunks); k++) K_SUM_ADD(T0, sum, x0[c * AT(p.chunks) + k]);
  y[c] = (sum - sum_rest) / NUM(AT(p.batch) * AT(p.plane));
}
#endif

//! batch_any: f32 f64
#ifdef K_batch_any
KERNEL_5_1(batch_any, k_batch, T0, x0, T0, x1, T0, x2, T0, x3, T0, x4, T0, y) {
  K_EACH(i, p.count);
  const IDX c = i / AT(p.plane) % AT(p.channels);
  const K_C(T0) factor = x1[c] / sqrt(x4[c] + (NUM(p.epsilon) + NUM(p.epsilon_rest)));
  y[i] = (x0[i] - x3[c]) * factor + x2[c];
}
#endif

//! batch_running: f32 f64
#ifdef K_batch_running
/* What is kept of x0, the mean or variance before, and x1, that of the batch. */
KERNEL_2_1(batch_running, k_batch, T0, x0, T0, x1, T0, y) {
  K_EACH(c, p.count);
  const K_C(T0) kept = NUM(p.momentum) + NUM(p.momentum_rest);
  y[c] = x0[c] * kept + x1[c] * (NUM(1) - kept);
}
#endif
