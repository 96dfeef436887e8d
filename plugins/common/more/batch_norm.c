/* BatchNormalization in training, where mean and variance are those of the batch, and of types that ref/ has no kernel for. */
#include "more.h"

#include <math.h>

enum { CHANNELS, BATCH, PLANE, TRAINS };
enum { EPSILON, MOMENTUM };

/* A unit is a channel. */
static void run_channels(const more_op *m, const more_args *a, int64_t first, int64_t last) {
  const more_value *x = &m->in[0];
  const int64_t plane = m->i[PLANE], n = m->i[BATCH] * plane;
  int64_t work = 0;
  for (int64_t c = first; c < last; c++) {
    const double old_mean = more_get(&m->in[3], a->in[3], c), old_variance = more_get(&m->in[4], a->in[4], c);
    double mean = old_mean, variance = old_variance;
    for (int pass = 0; pass < 2 && m->i[TRAINS]; pass++) {
      double sum = 0;
      for (int64_t j = 0; j < n; j++) {
        if (more_tick(m, &work, 2)) return;
        const double v = more_get(x, a->in[0], ((j / plane) * m->i[CHANNELS] + c) * plane + j % plane);
        sum += pass == 0 ? v : (v - mean) * (v - mean);
      }
      if (pass == 0) mean = sum / (double)n;
      else variance = sum / (double)n;
    }
    const double factor = more_get(&m->in[1], a->in[1], c) / sqrt(variance + m->f[EPSILON]);
    const double bias = more_get(&m->in[2], a->in[2], c), kept = m->f[MOMENTUM];
    for (int64_t j = 0; j < n && a->out[0] != NULL; j++) {
      if (more_tick(m, &work, 2)) return;
      const int64_t i = ((j / plane) * m->i[CHANNELS] + c) * plane + j % plane;
      more_put(&m->out[0], a->out[0], i, (more_get(x, a->in[0], i) - mean) * factor + bias);
    }
    if (a->out[1] != NULL) more_put(&m->out[1], a->out[1], c, old_mean * kept + mean * (1 - kept));
    if (a->out[2] != NULL) more_put(&m->out[2], a->out[2], c, old_variance * kept + variance * (1 - kept));
  }
}

void more_setup_batch_norm(more_plan *p) {
  more_op *m = p->m;
  const more_value *x = &m->in[0];
  more_rank(p, 0, 2, MORE_DIMS);
  for (uint32_t k = 0; k < 5; k++) more_real(p, k);
  more_same_type(p, 1, 2);
  more_same_type(p, 3, 4);
  m->f[EPSILON] = more_float(p, "epsilon", 1e-5);
  m->f[MOMENTUM] = more_float(p, "momentum", 0.9);
  m->i[TRAINS] = more_int(p, "training_mode", 0) != 0;
  for (uint32_t k = 1; k < 5 && more_ok(p); k++) more_shape_is(p, k, 1, &x->shape[1]);
  if (!m->i[TRAINS] && p->m->n_out > 1) more_refuse(p, "it has one output, or training_mode 1");
  if (!more_ok(p)) return;
  m->i[BATCH] = x->shape[0];
  m->i[CHANNELS] = x->shape[1];
  m->i[PLANE] = more_count(x->shape, 2, x->ndim);
  more_result_like(p, 0, 0);
  for (uint32_t k = 1; k < 3; k++) more_result(p, k, m->in[3].type, 1, &x->shape[1]);
  more_work(p, run_channels, x->shape[1], 4 * (double)x->count);
}
