/* Softmax and LogSoftmax of float64: each exponential is computed once. A unit is a row along the axis. */
#include "more.h"

#include <math.h>

void more_run_softmax_f64(const more_op *m, const more_args *a, int64_t first, int64_t last, int64_t n, int64_t inner,
                          bool log_of_it) {
  int64_t work = 0;
  for (int64_t r = first; r < last; r++) {
    const int64_t base = r / inner * inner * n + r % inner;
    const double *x = (const double *)a->in[0] + base;
    double *y = (double *)a->out[0] + base, most = -(double)INFINITY, sum = 0;
    for (int64_t j = 0; j < n; j++)
      most = x[j * inner] > most ? x[j * inner] : most; /* NaN comes out of the difference */
    if (more_tick(m, &work, n)) return;
    for (int64_t j = 0; j < n; j++) {
      const double e = exp(x[j * inner] - most);
      if (!log_of_it) y[j * inner] = e;
      sum += e;
      if (more_tick(m, &work, 8)) return;
    }
    const double less = log_of_it ? log(sum) : 0;
    for (int64_t j = 0; j < n; j++) y[j * inner] = log_of_it ? x[j * inner] - most - less : y[j * inner] / sum;
  }
}
