/* Domain "heddle"'s parts of ai.onnx.ml: the kernels of plugins/common/more/trees.c, lookup.c and svm.c, whose names for rules and kinds
 * these are. */
#define K_MATH
#include "portable.cl"

//! tree_scores: f32 f64 f16 bf16
#ifdef K_tree_scores
#define FEATURES AT(p.from[0])
#define TREES AT(p.from[1])
#define NODES AT(p.from[2])
#define LEAVES AT(p.from[3])
#define HOW CAST(int, p.from[4])
#define WIDE AT(p.from[5])
#define MEMBERS AT(p.from[6])
#define NODE(at, k) x2[(at) * 6 + (k)]
/* An element of int32, or of int64 as pairs of words where step is 2; what int32 does not hold is -1. */
#define WHOLE(x, i, step) ((step) == 2 && x[2 * (i) + 1] != x[2 * (i)] >> 31 ? -1 : x[(step) * (i)])

/* An item is a row. z: whether a target has a score. Nothing is trusted: what is out of range ends a walk. */
KERNEL_7_2(tree_scores, k_select, T0, x0, i32, x1, i32, x2, T0, x3, i32, x4, T0, x5, T0, x6, T0, y, u8, z) {
  K_EACH(row, p.count);
  const int roots = CAST(int, p.wide), targets = CAST(int, p.mode);
  for (IDX k = row * WIDE; k < (row + 1) * WIDE; k++) {
    y[k] = PUT(T0, NUM(0));
    z[k] = PUT(u8, 0u);
  }
  for (IDX t = 0; t < TREES; t++) {
    IDX at = WHOLE(x1, t, roots), leaf = -1;
    for (IDX steps = 0; steps <= NODES && leaf < 0; steps++) {
      if (at < 0 || at >= NODES) break;
      const int rule = NODE(at, 1) & 0xff, feature = NODE(at, 0);
      if (rule == 7) leaf = at;
      if (rule == 7 || feature < 0 || feature >= FEATURES) break;
      const K_C(T0) v = GET(T0, x0[row * FEATURES + feature]), split = GET(T0, x3[at]);
      const bool is_nan = IS_NAN(T0, v);
      bool yes = rule == 0   ? v <= split
                 : rule == 1 ? v < split
                 : rule == 2 ? v >= split
                 : rule == 3 ? v > split
                 : rule == 4 ? v == split
                             : rule == 5 && !(v == split);
      if (rule > 5) {
        for (IDX k = NODE(at, 4) > 0 ? NODE(at, 4) : 0; k < NODE(at, 5) && k < MEMBERS; k++) yes = yes || GET(T0, x6[k]) == v;
      }
      if (is_nan) yes = rule == 5 || (NODE(at, 1) & 256) != 0;
      at = yes ? NODE(at, 2) : NODE(at, 3);
    }
    if (leaf < 0) continue;
    for (IDX k = NODE(leaf, 4) > 0 ? NODE(leaf, 4) : 0; k < NODE(leaf, 5) && k < LEAVES; k++) {
      const int target = WHOLE(x4, k, targets);
      if (target < 0 || target >= WIDE) continue;
      const IDX to = row * WIDE + target;
      const K_C(T0) w = GET(T0, x5[k]), old = GET(T0, y[to]);
      const bool has = GET(u8, z[to]) != 0u;
      y[to] = PUT(T0, HOW < 2 ? old + w : HOW == 2 ? (has && old <= w ? old : w) : (has && old >= w ? old : w));
      z[to] = PUT(u8, 1u);
    }
  }
  if (HOW == 0) {
    for (IDX k = row * WIDE; k < (row + 1) * WIDE; k++) y[k] = PUT(T0, GET(T0, y[k]) / NUM(TREES));
  }
}
#endif

//! tree_best: f32 f64 f16 bf16
#ifdef K_tree_best
/* The first of the greatest scores of targets that have one; int64 as pairs of words. */
KERNEL_2_1(tree_best, k_select, T0, x0, u8, x1, i32, y) {
  K_EACH(row, p.count);
  const IDX wide = AT(p.from[5]);
  IDX best = -1;
  for (IDX k = 0; k < wide; k++) {
    if (GET(u8, x1[row * wide + k]) == 0u) continue;
    if (best >= 0 && GET(T0, x0[row * wide + k]) <= GET(T0, x0[row * wide + best])) continue;
    best = k;
  }
  y[2 * row] = CAST(int, best < 0 ? 0 : best);
  y[2 * row + 1] = 0;
}
#endif

//! lookup_place: f32 f64 f16 bf16 i8 i16 i32 i64 u8 u16 u32 u64 b8
#ifdef K_lookup_place
#ifdef T0_REAL
#define IS_NONE(x) IS_NAN(T0, x)
#else
#define IS_NONE(x) false
#endif
/* The place of an element in the n keys x1, -1: none. */
KERNEL_2_1(lookup_place, k_select, T0, x0, T0, x1, i32, y) {
  K_EACH(i, p.count);
  const K_C(T0) v = GET(T0, x0[i]);
  const bool v_none = IS_NONE(v);
  IDX from = 0, to = AT(p.n), found = -1;
  while (from < to) {
    const IDX at = from + (to - from) / 2;
    const K_C(T0) key = GET(T0, x1[at]);
    const bool none = IS_NONE(key);
    const bool before = none ? !v_none : !v_none && v < key;
    if (none == v_none && (none || v == key)) {
      found = at;
      break;
    }
    if (before) to = at;
    else from = at + 1;
  }
  y[i] = CAST(int, found);
}
#endif

//! lookup_value: w1 w2 w4 w8
#ifdef K_lookup_value
KERNEL_3_1(lookup_value, k_select, i32, x0, T0, x1, T0, x2, T0, y) {
  K_EACH(i, p.count);
  const int at = x0[i];
  if (at < 0) y[i] = x2[0];
  else y[i] = x1[at];
}
#endif

//! kernel_matrix: f32 f64 f16 bf16
#ifdef K_kernel_matrix
/* mode: 0 linear, 1 powers, 2 of distances, 3 tanh. Numbers: gamma, coef0, degree. */
KERNEL_3_1(kernel_matrix, k_general, T0, x0, T0, x1, i32, g, T0, y) {
  K_EACH(i, p.count);
  const IDX n = G(2), supports = G(3), row = i / supports, v = i % supports;
  const K_C(T0) gamma = G_NUMBER(T0, 0), degree = G_NUMBER(T0, 2);
  K_SUM(T0, sum);
  for (IDX k = 0; k < n; k++) {
    const K_C(T0) a = GET(T0, x0[row * n + k]), b = GET(T0, x1[v * n + k]);
    K_SUM_ADD(T0, sum, p.mode == 2 ? (a - b) * (a - b) : a * b);
  }
  const K_C(T0) all = sum - sum_rest, at = gamma * all + G_NUMBER(T0, 1);
  K_C(T0) r = all;
  if (p.mode == 1) {
    const bool whole = floor(degree) == degree, odd = floor(degree * NUM(0.5f)) * NUM(2) != degree;
    r = POWER(ABS(at), degree);
    if (at < NUM(0)) r = !whole ? NUM(K_NAN) : odd ? -r : r;
  }
  if (p.mode == 2) r = EXP(-(gamma * all));
  if (p.mode == 3) r = TANH(at);
  y[i] = PUT(T0, r);
}
#endif

//! post_probit: f32 f64 f16 bf16
#ifdef K_post_probit
/* The closed form that more/lookup.c names, so that nothing cancels. */
KERNEL_1_1(post_probit, k_select, T0, x0, T0, y) {
  K_EACH(i, p.count);
  const K_C(T0) x = GET(T0, x0[i]), a = NUM(147) / NUM(1000), v = NUM(2) * x - NUM(1);
  const K_C(T0) pi = NUM(3.14159274f) + NUM(-8.74227766e-8f);
  const K_C(T0) l = ABS(v) < NUM(0.5f) ? LOG1P(-(v * v)) : LOG(NUM(4) * x * (NUM(1) - x));
  const K_C(T0) middle = NUM(2) / (pi * a) + NUM(0.5f) * l, more = -l / a;
  const K_C(T0) size = NUM(1.41421354f) + NUM(2.42032299e-8f), outer = sqrt(middle * middle + more);
  const K_C(T0) root = sqrt(middle > NUM(0) ? more / (outer + middle) : outer - middle);
  y[i] = PUT(T0, size * (v < NUM(0) ? -root : root));
}
#endif

//! post_softmax: f32 f64 f16 bf16
#ifdef K_post_softmax
/* Softmax of a row's scores that are not 0. */
KERNEL_1_1(post_softmax, k_select, T0, x0, T0, y) {
  K_EACH(row, p.count);
  const IDX n = AT(p.n), at = row * n;
  K_C(T0) most = NUM(-K_INFINITY);
  K_SUM(T0, sum);
  for (IDX k = 0; k < n; k++) {
    const K_C(T0) v = GET(T0, x0[at + k]);
    most = v > most ? v : most;
  }
  for (IDX k = 0; k < n; k++) {
    const K_C(T0) v = GET(T0, x0[at + k]);
    if (v > NUM(1e-7f) || v < NUM(-1e-7f)) K_SUM_ADD(T0, sum, EXP(v - most));
  }
  const K_C(T0) all = sum - sum_rest;
  for (IDX k = 0; k < n; k++) {
    const K_C(T0) v = GET(T0, x0[at + k]);
    const K_C(T0) e = v > NUM(1e-7f) || v < NUM(-1e-7f) ? EXP(v - most) : v * EXP(-most);
    y[at + k] = PUT(T0, all > NUM(0) ? e / all : e);
  }
}
#endif

//! pair_coupling: f32 f16 bf16; f32 f64
//! pair_coupling: f64; f64
#ifdef K_pair_coupling
#define T1N(x) CAST(K_C(T1), x)
#define R(i, j) y[r + (i) * n + (j)]
#define Q(i, j) y[q + (i) * n + (j)]
#define QP(i) y[qp + (i)]
#define P(i) y[to + (i)]
/* An item is a row of scores; y: its r, q, qp and the probabilities, of T1. */
KERNEL_3_1(pair_coupling, k_select, T0, x0, T0, x1, T0, x2, T1, y) {
  K_EACH(row, p.count);
  const IDX n = AT(p.n), pairs = AT(p.inner), r = row * (2 * n * n + 2 * n), q = r + n * n, qp = q + n * n, to = qp + n;
  const K_C(T1) least = T1N(1) / T1N(10000000), eps = T1N(5) / T1N(1000) / T1N(n);
  IDX k = row * pairs;
  for (IDX i = 0; i < n; i++) {
    R(i, i) = T1N(0);
    for (IDX j = i + 1; j < n; j++) {
      const IDX pair = k - row * pairs;
      const K_C(T1) at = T1N(GET(T0, x0[k])) * T1N(GET(T0, x1[pair])) + T1N(GET(T0, x2[pair]));
      const K_C(T1) one = T1N(1) / (T1N(1) + EXP(at));
      const K_C(T1) kept = one < least ? least : one > T1N(1) - least ? T1N(1) - least : one;
      R(i, j) = kept;
      R(j, i) = T1N(1) - kept;
      k++;
    }
  }
  for (IDX i = 0; i < n; i++) {
    K_C(T1) own = T1N(0);
    P(i) = T1N(1) / T1N(n);
    for (IDX j = 0; j < n; j++) {
      if (j == i) continue;
      own += R(j, i) * R(j, i);
      Q(i, j) = -(R(j, i) * R(i, j));
    }
    Q(i, i) = own;
  }
  for (int turn = 0; turn < 100; turn++) {
    K_C(T1) all = T1N(0), error = T1N(0);
    for (IDX i = 0; i < n; i++) {
      K_C(T1) sum = T1N(0);
      for (IDX j = 0; j < n; j++) sum += Q(i, j) * P(j);
      QP(i) = sum;
      all += P(i) * sum;
    }
    for (IDX i = 0; i < n; i++) {
      const K_C(T1) off = ABS(QP(i) - all);
      error = off > error ? off : error;
    }
    if (error < eps) break;
    for (IDX i = 0; i < n; i++) {
      const K_C(T1) d = (all - QP(i)) / Q(i, i), one = T1N(1) + d;
      P(i) = P(i) + d;
      all = (all + d * (d * Q(i, i) + T1N(2) * QP(i))) / one / one;
      for (IDX j = 0; j < n; j++) {
        QP(j) = (QP(j) + d * Q(i, j)) / one;
        P(j) = P(j) / one;
      }
    }
  }
}
#endif

//! pair_result: f32 f16 bf16; f32 f64
//! pair_result: f64; f64
#ifdef K_pair_result
KERNEL_1_1(pair_result, k_select, T1, x0, T0, y) {
  K_EACH(i, p.count);
  const IDX n = AT(p.n), row = i / n;
  y[i] = PUT(T0, CAST(K_C(T0), x0[row * (2 * n * n + 2 * n) + 2 * n * n + n + i % n]));
}
#endif
