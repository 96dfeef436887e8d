/* NegativeLogLikelihoodLoss and SoftmaxCrossEntropyLoss. Operand 0 has lines of n classes, inner apart; operand 1 a label for each
 * line, of int64 where p.wide; operand 2 a weight for each class. */
#define K_MATH
#include "portable.cl"

#define LINE(r) (r / AT(p.inner) * AT(p.inner) * AT(p.n) + r % AT(p.inner))

/* Declares base, the logarithm of the sum of a line's exponentials, which comes after its greatest, most, is taken off. One
 * loop, since lavapipe counts the turns of all loops of an item: what has been added up is scaled for a new greatest. */
#define LOG_SUM(start, most, base) \
  K_C(T0) most = NUM(-K_INFINITY), base = NUM(0); \
  for (IDX c = 0; c < AT(p.n); c++) { \
    const K_C(T0) v = GET(T0, x0[start + c * AT(p.inner)]); \
    if (v > most) { \
      base = base * EXP(most - v) + EXP(v - v); /* NaN of infinity */ \
      most = v; \
    } else { \
      base += v == most ? NUM(1) : EXP(v - most); \
    } \
  } \
  base = LOG(base);

/* Declares loss and weight of line r: 0 where its label is ignored or no class. */
#define LOSS(r, loss, weight) \
  const IDX start = LINE(r); \
  const int label = x1[p.wide != 0 ? 2 * r : r], high = p.wide != 0 ? x1[2 * r + 1] : label >> 31; \
  const bool is_class = high == 0 && label >= 0 && AT(label) < AT(p.n) && !(p.ignores != 0 && label == CAST(int, p.ignored)); \
  K_C(T0) loss = NUM(0), weight = NUM(0); \
  if (is_class) { \
    const K_C(T0) at = GET(T0, x0[start + AT(label) * AT(p.inner)]); \
    weight = GET(T0, x2[label]); \
    if (p.entropy != 0) { \
      LOG_SUM(start, most, base) \
      loss = weight * (base - (at - most)); \
    } else { \
      loss = weight * -at; \
    } \
  }

//! loss_each: f32 f64 f16 bf16
#ifdef K_loss_each
KERNEL_3_1(loss_each, k_loss, T0, x0, i32, x1, T0, x2, T0, y) {
  K_EACH(r, p.count);
  LOSS(r, loss, weight)
  y[r] = PUT(T0, loss);
}
#endif

//! loss_all: f32 f64 f16 bf16
#ifdef K_loss_all
/* One item, so that the sum is the same each time. mode: the mean, else the sum. */
KERNEL_3_1(loss_all, k_loss, T0, x0, i32, x1, T0, x2, T0, y) {
  K_EACH(i, 1);
  K_SUM(T0, total);
  K_SUM(T0, weights);
  for (IDX r = 0; r < AT(p.count); r++) {
    LOSS(r, loss, weight)
    K_SUM_ADD(T0, total, loss);
    K_SUM_ADD(T0, weights, weight);
  }
  const K_C(T0) all = total - total_rest;
  y[i] = PUT(T0, p.mode != 0 ? all / (weights - weights_rest) : all);
}
#endif

//! log_probability: f32 f64 f16 bf16
#ifdef K_log_probability
KERNEL_1_1(log_probability, k_loss, T0, x0, T0, y) {
  K_EACH(r, p.count);
  const IDX start = LINE(r);
  LOG_SUM(start, most, base)
  for (IDX c = 0; c < AT(p.n); c++)
    y[start + c * AT(p.inner)] = PUT(T0, GET(T0, x0[start + c * AT(p.inner)]) - most - base);
}
#endif
