/* Support vector machines, of domain "heddle": KernelMatrix, what each row of X is to each support vector; and
 * PairProbabilities, the probabilities of classes from the scores of each pair of them (Wu, Lin and Weng, "Probability
 * estimates for multi-class classification by pairwise coupling", 2004, its second method). */
#include "more.h"

#include <math.h>

enum { X, VECTORS };
enum { LINEAR, POLY, RBF, SIGMOID };
enum { KIND, ROWS, FEATURES, SUPPORTS };
enum { GAMMA, COEF0, DEGREE };

static double kernel_of(const more_op *m, const more_args *a, int64_t row, int64_t v) {
  const int64_t n = m->i[FEATURES];
  double sum = 0;
  for (int64_t k = 0; k < n; k++) {
    const double x = more_get(&m->in[X], a->in[X], row * n + k),
                 y = more_get(&m->in[VECTORS], a->in[VECTORS], v * n + k);
    sum += m->i[KIND] == RBF ? (x - y) * (x - y) : x * y;
  }
  switch (m->i[KIND]) {
  case POLY: return pow(m->f[GAMMA] * sum + m->f[COEF0], m->f[DEGREE]);
  case RBF: return exp(-m->f[GAMMA] * sum);
  case SIGMOID: return tanh(m->f[GAMMA] * sum + m->f[COEF0]);
  default: return sum;
  }
}

static void run_kernel_matrix(const more_op *m, const more_args *a, int64_t first, int64_t last) {
  const int64_t n = m->i[SUPPORTS];
  int64_t work = 0;
  for (int64_t row = first; row < last; row++) {
    for (int64_t v = 0; v < n; v++) {
      more_put(&m->out[0], a->out[0], row * n + v, kernel_of(m, a, row, v));
      if (more_tick(m, &work, 8 * m->i[FEATURES] + 32)) return;
    }
  }
}

void more_setup_kernel_matrix(more_plan *p) {
  more_op *m = p->m;
  const more_value *x = &m->in[X], *v = &m->in[VECTORS];
  more_real(p, X);
  more_rank(p, X, 2, 2);
  more_rank(p, VECTORS, 2, 2);
  more_same_type(p, X, VECTORS);
  m->i[KIND] = more_choice(p, "kind", "LINEAR", "LINEAR POLY RBF SIGMOID");
  m->f[GAMMA] = more_float(p, "gamma", 0);
  m->f[COEF0] = more_float(p, "coef0", 0);
  m->f[DEGREE] = more_float(p, "degree", 0);
  if (!more_ok(p)) return;
  m->i[ROWS] = x->shape[0];
  m->i[FEATURES] = x->shape[1];
  m->i[SUPPORTS] = v->shape[0];
  if (v->shape[1] != x->shape[1])
    more_refuse(p, "its vectors have %lld features, and X has %lld", (long long)v->shape[1], (long long)x->shape[1]);
  const int64_t shape[] = {m->i[ROWS], m->i[SUPPORTS]};
  more_result(p, 0, x->type, 2, shape);
  if (more_ok(p))
    more_work(p, run_kernel_matrix, m->i[ROWS],
              (double)m->i[ROWS] * (double)m->i[SUPPORTS] * (double)(m->i[FEATURES] + 8));
}

/* ---------------------------------------------------------------- probabilities */

enum { SCORES, PROB_A, PROB_B };
enum { CLASSES, PAIRS, MOST_CLASSES = 2048, ROUNDS = 100 };

/* r: r[i * n + j] is how likely it is i, of i and j. q, qp: scratch. */
static void couple(const double *r, int64_t n, double *q, double *qp, double *p) {
  const double eps = 0.005 / (double)n;
  for (int64_t i = 0; i < n; i++) {
    p[i] = 1 / (double)n;
    q[i * n + i] = 0;
    for (int64_t j = 0; j < n; j++) {
      if (j == i) continue;
      q[i * n + i] += r[j * n + i] * r[j * n + i];
      q[i * n + j] = -r[j * n + i] * r[i * n + j];
    }
  }
  for (int round = 0; round < ROUNDS; round++) {
    double all = 0, error = 0;
    for (int64_t i = 0; i < n; i++) {
      qp[i] = 0;
      for (int64_t j = 0; j < n; j++) qp[i] += q[i * n + j] * p[j];
      all += p[i] * qp[i];
    }
    for (int64_t i = 0; i < n; i++) error = fmax(error, fabs(qp[i] - all));
    if (error < eps) return;
    for (int64_t i = 0; i < n; i++) {
      const double d = (all - qp[i]) / q[i * n + i], one = 1 + d;
      p[i] += d;
      all = (all + d * (d * q[i * n + i] + 2 * qp[i])) / one / one;
      for (int64_t j = 0; j < n; j++) {
        qp[j] = (qp[j] + d * q[i * n + j]) / one;
        p[j] /= one;
      }
    }
  }
}

static void run_pairs(const more_op *m, const more_args *a, int64_t first, int64_t last) {
  const int64_t n = m->i[CLASSES], pairs = m->i[PAIRS];
  double *r = a->scratch, *q = r + n * n, *qp = q + n * n, *p = qp + n;
  int64_t work = 0;
  for (int64_t row = first; row < last; row++) {
    for (int64_t i = 0, k = 0; i < n; i++) {
      r[i * n + i] = 0;
      for (int64_t j = i + 1; j < n; j++, k++) {
        const double s = more_get(&m->in[SCORES], a->in[SCORES], row * pairs + k),
                     at = s * more_get(&m->in[PROB_A], a->in[PROB_A], k) + more_get(&m->in[PROB_B], a->in[PROB_B], k);
        const double one = 1 / (1 + exp(at)), least = 1e-7;
        r[i * n + j] = one < least ? least : one > 1 - least ? 1 - least : one;
        r[j * n + i] = 1 - r[i * n + j];
      }
    }
    couple(r, n, q, qp, p);
    for (int64_t i = 0; i < n; i++) more_put(&m->out[0], a->out[0], row * n + i, p[i]);
    if (more_tick(m, &work, 100 * n * n)) return;
  }
}

void more_setup_pair_probabilities(more_plan *p) {
  more_op *m = p->m;
  const more_value *x = &m->in[SCORES];
  int64_t n = 2;
  more_real(p, SCORES);
  more_rank(p, SCORES, 2, 2);
  more_same_type(p, SCORES, PROB_A);
  more_same_type(p, SCORES, PROB_B);
  if (!more_ok(p)) return;
  const int64_t pairs = x->shape[1];
  while (n < MOST_CLASSES && n * (n - 1) / 2 < pairs) n++;
  if (n * (n - 1) / 2 != pairs) more_refuse(p, "%lld scores are not those of each pair of classes", (long long)pairs);
  more_shape_is(p, PROB_A, 1, &pairs);
  more_shape_is(p, PROB_B, 1, &pairs);
  m->i[CLASSES] = n;
  m->i[PAIRS] = pairs;
  const int64_t shape[] = {x->shape[0], n};
  more_result(p, 0, x->type, 2, shape);
  m->part_scratch = (uint64_t)((2 * n * n + 2 * n) * (int64_t)sizeof(double));
  if (more_ok(p)) more_work(p, run_pairs, x->shape[0], (double)x->shape[0] * (double)(n * n) * 100);
}
