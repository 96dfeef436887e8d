/* RNN, GRU and LSTM: one direction and one image of the batch after another, a step at a time, in double. */
#include "rnn.h"
#include "plugins/common/scalar.h"

#include <math.h>

static const char *const names =
    "Sigmoid Tanh Relu Affine LeakyRelu ThresholdedRelu ScaledTanh HardSigmoid Elu Softsign Softplus";

double rnn_activate(const more_op *m, int64_t which, double x) {
  const double alpha = m->f[RNN_ALPHAS + which], beta = m->f[RNN_BETAS + which], clip = m->f[RNN_CLIP];
  if (clip > 0) x = x < -clip ? -clip : x > clip ? clip : x;
  switch (m->i[RNN_ACTS + which]) {
  case 0: return 1 / (1 + exp(-x));
  case 1: return tanh(x);
  case 2: return x > 0 ? x : 0;
  case 3: return alpha * x + beta;
  case 4: return x < 0 ? alpha * x : x;
  case 5: return x > alpha ? x : 0;
  case 6: return alpha * tanh(beta * x);
  case 7: return fmin(1, fmax(0, alpha * x + beta));
  case 8: return x < 0 ? alpha * expm1(x) : x;
  case 9: return x / (1 + fabs(x));
  default: return x > 0 ? x + log1p(exp(-x)) : log1p(exp(x));
  }
}

/* A step of one image of the batch in one direction: what the kernels share. */
typedef struct step {
  const more_op *m;
  const more_args *a;
  int64_t *work;           /* of more_tick; -1: the run is to end */
  int64_t direction, x_at; /* where its inputs begin */
  const double *h;         /* before the step */
} step;

/* Row j of gate g: inputs and bias, or the state's part and its bias. */
static double from_input(const step *s, int64_t g, int64_t j) {
  const more_op *m = s->m;
  const int64_t row = (s->direction * m->i[RNN_GATES] + g) * m->i[RNN_HIDDEN] + j;
  double sum = 0;
  for (int64_t k = 0; k < m->i[RNN_INPUTS]; k++)
    sum += more_get(&m->in[0], s->a->in[0], s->x_at + k) * more_get(&m->in[1], s->a->in[1], row * m->i[RNN_INPUTS] + k);
  if (s->a->in[3] != NULL)
    sum += more_get(&m->in[3], s->a->in[3], (s->direction * 2 * m->i[RNN_GATES] + g) * m->i[RNN_HIDDEN] + j);
  return sum;
}

static double state_bias(const step *s, int64_t g, int64_t j) {
  const more_op *m = s->m;
  if (s->a->in[3] == NULL) return 0;
  return more_get(&m->in[3], s->a->in[3], ((s->direction * 2 + 1) * m->i[RNN_GATES] + g) * m->i[RNN_HIDDEN] + j);
}

static double from_state(const step *s, const double *h, int64_t g, int64_t j) {
  const more_op *m = s->m;
  const int64_t row = (s->direction * m->i[RNN_GATES] + g) * m->i[RNN_HIDDEN] + j;
  double sum = 0;
  for (int64_t k = 0; k < m->i[RNN_HIDDEN]; k++)
    sum += h[k] * more_get(&m->in[2], s->a->in[2], row * m->i[RNN_HIDDEN] + k);
  return sum;
}

static double peephole(const step *s, int64_t g, int64_t j, double c) {
  const more_op *m = s->m;
  if (m->n_in < 8 || s->a->in[7] == NULL) return 0;
  return c * more_get(&m->in[7], s->a->in[7], (s->direction * 3 + g) * m->i[RNN_HIDDEN] + j);
}

/* next gets the state after the step; c, of an LSTM, is changed in place; gate is scratch for a state. */
typedef void (*cell)(const step *s, double *next, double *c, double *gate);

/* Before gates of one place of the state: whether the run is to end. Then the step is not finished, and is not used. */
static bool ends(const step *s, int64_t gates) {
  if (*s->work < 0 || more_tick(s->m, s->work, 4 * gates * (s->m->i[RNN_INPUTS] + s->m->i[RNN_HIDDEN]))) *s->work = -1;
  return *s->work < 0;
}

static void rnn_cell(const step *s, double *next, double *c, double *gate) {
  (void)c, (void)gate;
  for (int64_t j = 0; j < s->m->i[RNN_HIDDEN] && !ends(s, 1); j++)
    next[j] = rnn_activate(s->m, s->direction, from_input(s, 0, j) + from_state(s, s->h, 0, j) + state_bias(s, 0, j));
}

static void gru_cell(const step *s, double *next, double *c, double *gate) {
  const more_op *m = s->m;
  const int64_t act = 2 * s->direction;
  (void)c;
  for (int64_t j = 0; j < m->i[RNN_HIDDEN] && !ends(s, 2); j++) { /* r, and what of the state goes on */
    const double r = rnn_activate(m, act, from_input(s, 1, j) + from_state(s, s->h, 1, j) + state_bias(s, 1, j));
    gate[j] = m->i[RNN_LINEAR] ? r * (from_state(s, s->h, 2, j) + state_bias(s, 2, j)) : r * s->h[j];
  }
  for (int64_t j = 0; j < m->i[RNN_HIDDEN] && !ends(s, 3); j++) {
    const double z = rnn_activate(m, act, from_input(s, 0, j) + from_state(s, s->h, 0, j) + state_bias(s, 0, j));
    const double part = m->i[RNN_LINEAR] ? gate[j] : from_state(s, gate, 2, j) + state_bias(s, 2, j);
    const double n = rnn_activate(m, act + 1, from_input(s, 2, j) + part);
    next[j] = (1 - z) * n + z * s->h[j];
  }
}

static void lstm_cell(const step *s, double *next, double *c, double *gate) {
  const more_op *m = s->m;
  const int64_t act = 3 * s->direction;
  (void)gate;
  for (int64_t j = 0; j < m->i[RNN_HIDDEN] && !ends(s, 4); j++) {
    double g[4];
    for (int64_t k = 0; k < 4; k++) g[k] = from_input(s, k, j) + from_state(s, s->h, k, j) + state_bias(s, k, j);
    const double i = rnn_activate(m, act, g[0] + peephole(s, 0, j, c[j]));
    const double f = m->i[RNN_COUPLED] ? 1 - i : rnn_activate(m, act, g[2] + peephole(s, 2, j, c[j]));
    c[j] = f * c[j] + i * rnn_activate(m, act + 1, g[3]);
    next[j] = rnn_activate(m, act, g[1] + peephole(s, 1, j, c[j])) * rnn_activate(m, act + 2, c[j]);
  }
}

static void load_state(const more_op *m, const more_args *a, uint32_t k, int64_t d, int64_t b, double *to) {
  const int64_t hidden = m->i[RNN_HIDDEN],
                row = m->i[RNN_LAYOUT] ? b * m->i[RNN_DIRECTIONS] + d : d * m->i[RNN_BATCH] + b;
  for (int64_t j = 0; j < hidden; j++)
    to[j] = k < m->n_in && a->in[k] != NULL ? more_get(&m->in[k], a->in[k], row * hidden + j) : 0;
}

static void store_state(const more_op *m, const more_args *a, uint32_t k, int64_t d, int64_t b, const double *from) {
  const int64_t hidden = m->i[RNN_HIDDEN],
                row = m->i[RNN_LAYOUT] ? b * m->i[RNN_DIRECTIONS] + d : d * m->i[RNN_BATCH] + b;
  if (k >= m->n_out || a->out[k] == NULL) return;
  for (int64_t j = 0; j < hidden; j++) more_put(&m->out[k], a->out[k], row * hidden + j, from[j]);
}

static void run_cell(const more_op *m, const more_args *a, cell one) {
  const int64_t hidden = m->i[RNN_HIDDEN], steps = m->i[RNN_STEPS], batch = m->i[RNN_BATCH],
                directions = m->i[RNN_DIRECTIONS];
  double *h = a->scratch, *next = h + hidden, *c = next + hidden, *gate = c + hidden;
  int64_t work = 0;
  for (int64_t u = 0; u < directions * batch; u++) {
    const int64_t d = u / batch, b = u % batch;
    int64_t length = a->in[4] != NULL ? more_get_int(&m->in[4], a->in[4], b) : steps;
    length = length < 0 ? 0 : length > steps ? steps : length;
    load_state(m, a, 5, d, b, h);
    load_state(m, a, 6, d, b, c);
    for (int64_t k = 0; k < steps; k++) {
      const bool back = m->i[RNN_BACKWARD] != 0 || d == 1;
      const int64_t t = k < length && back ? length - 1 - k : k;
      const int64_t row = m->i[RNN_LAYOUT] ? b * steps + t : t * batch + b;
      const int64_t y =
          (m->i[RNN_LAYOUT] ? (b * steps + t) * directions + d : (t * directions + d) * batch + b) * hidden;
      const step s = {m, a, &work, d, row * m->i[RNN_INPUTS], h};
      if (k < length) {
        one(&s, next, c, gate);
        if (work < 0) return;
        memcpy(h, next, (size_t)hidden * sizeof *h);
      }
      for (int64_t j = 0; j < hidden && a->out[0] != NULL; j++)
        more_put(&m->out[0], a->out[0], y + j, k < length ? h[j] : 0);
    }
    store_state(m, a, 1, d, b, h);
    store_state(m, a, 2, d, b, c);
  }
}

static void run_rnn(const more_op *m, const more_args *a, int64_t first, int64_t last) {
  (void)first, (void)last;
  run_cell(m, a, rnn_cell);
}
static void run_gru(const more_op *m, const more_args *a, int64_t first, int64_t last) {
  (void)first, (void)last;
  run_cell(m, a, gru_cell);
}
static void run_lstm(const more_op *m, const more_args *a, int64_t first, int64_t last) {
  (void)first, (void)last;
  run_cell(m, a, lstm_cell);
}

/* ---------------------------------------------------------------- setup */

static int64_t name_of(const char *text) {
  int64_t i = 0;
  for (const char *at = names; *at != '\0'; i++) {
    const size_t n = strcspn(at, " ");
    if (strlen(text) == n && strncmp(at, text, n) == 0) return i;
    at += n + (at[n] == ' ');
  }
  return -1;
}

/* The numbers that an activation takes, and their defaults: of ONNX's operator of that name, or of RNN's alone. */
static scalar_attributes numbers_of(const char *name) {
  if (strcmp(name, "Affine") == 0) return (scalar_attributes){"", "alpha", "beta", 1, 0};
  if (strcmp(name, "ScaledTanh") == 0) return (scalar_attributes){"", "alpha", "beta", 1, 1};
  return *scalar_attributes_of(name);
}

static double number_of(const char *attribute, double absent, const double *given, int64_t n, int64_t *next) {
  return strcmp(attribute, "none") != 0 && *next < n ? given[(*next)++] : absent;
}

/* per: functions of a direction. Numbers are handed to those that take them, in order. */
static void activations(more_plan *p, int64_t per) {
  more_op *m = p->m;
  const heddle_pattr *attr = region_attr_find(p->n->node, "activations");
  const int64_t n = per * m->i[RNN_DIRECTIONS];
  double alpha[8], beta[8];
  const int64_t n_alpha = more_floats(p, "activation_alpha", alpha, 8),
                n_beta = more_floats(p, "activation_beta", beta, 8);
  int64_t next_alpha = 0, next_beta = 0;
  if (attr != NULL && attr->count > 0 && (attr->kind != HEDDLE_ATTR_STRINGS || attr->count != (uint64_t)n))
    more_refuse(p, "it has not %lld activations", (long long)n);
  for (int64_t i = 0; i < n && more_ok(p); i++) {
    const char *name = i % per == 0 && per > 1 ? "Sigmoid" : "Tanh";
    if (attr != NULL && attr->count > 0) name = ((const char *const *)attr->data)[i];
    const int64_t f = name_of(name);
    if (f < 0) {
      more_refuse(p, "an activation is none of: %s", names);
      return;
    }
    m->i[RNN_ACTS + i] = f;
    const scalar_attributes of = numbers_of(name);
    m->f[RNN_ALPHAS + i] = number_of(of.alpha, of.of_alpha, alpha, n_alpha, &next_alpha);
    m->f[RNN_BETAS + i] = number_of(of.beta, of.of_beta, beta, n_beta, &next_beta);
  }
}

static void setup(more_plan *p, int64_t gates, int64_t per, more_kernel run_cells) {
  more_op *m = p->m;
  const more_value *x = &m->in[0], *r = &m->in[2];
  const int64_t direction = more_choice(p, "direction", "forward", "forward reverse bidirectional");
  int64_t *i = m->i;
  for (uint32_t k = 1; k < 8; k++)
    if (k != 4) more_same_type(p, 0, k);
  more_real(p, 0);
  more_rank(p, 0, 3, 3);
  more_rank(p, 2, 3, 3);
  i[RNN_LAYOUT] = more_int(p, "layout", 0) != 0;
  i[RNN_LINEAR] = more_int(p, "linear_before_reset", 0) != 0;
  i[RNN_COUPLED] = more_int(p, "input_forget", 0) != 0;
  m->f[RNN_CLIP] = more_float(p, "clip", 0);
  i[RNN_DIRECTIONS] = direction == 2 ? 2 : 1;
  i[RNN_BACKWARD] = direction == 1;
  i[RNN_GATES] = gates;
  if (!more_ok(p)) return;
  const int64_t hidden = i[RNN_HIDDEN] = r->shape[2];
  if (more_int(p, "hidden_size", hidden) != hidden) more_refuse(p, "hidden_size is not that of operand 2");
  i[RNN_INPUTS] = x->shape[2];
  i[RNN_STEPS] = x->shape[i[RNN_LAYOUT]];
  i[RNN_BATCH] = x->shape[!i[RNN_LAYOUT]];
  const int64_t d = i[RNN_DIRECTIONS], b = i[RNN_BATCH];
  const int64_t w[] = {d, gates * hidden, i[RNN_INPUTS]}, rr[] = {d, gates * hidden, hidden};
  const int64_t bias[] = {d, 2 * gates * hidden}, peep[] = {d, 3 * hidden};
  const int64_t state[] = {i[RNN_LAYOUT] ? b : d, i[RNN_LAYOUT] ? d : b, hidden};
  const int64_t y_time[] = {i[RNN_STEPS], d, b, hidden}, y_batch[] = {b, i[RNN_STEPS], d, hidden};
  more_shape_is(p, 1, 3, w);
  more_shape_is(p, 2, 3, rr);
  more_shape_is(p, 3, 2, bias);
  more_shape_is(p, 4, 1, &i[RNN_BATCH]);
  more_shape_is(p, 5, 3, state);
  more_shape_is(p, 6, 3, state);
  more_shape_is(p, 7, 2, peep);
  if (more_operand(p, 4) && m->in[4].type != REF_TYPE_I32) more_refuse(p, "operand 4 must be int32");
  activations(p, per);
  more_result(p, 0, x->type, 4, i[RNN_LAYOUT] ? y_batch : y_time);
  more_result(p, 1, x->type, 3, state);
  more_result(p, 2, x->type, 3, state);
  if (x->type == REF_TYPE_F32) {
    rnn_plan_fast(p);
    return;
  }
  more_scratch(p, 4 * (double)hidden * sizeof(double));
  more_work(p, run_cells, 1,
            (double)(d * b * i[RNN_STEPS]) * (double)(gates * hidden) * (double)(i[RNN_INPUTS] + hidden));
}

void more_setup_rnn(more_plan *p) {
  setup(p, 1, 1, run_rnn);
}
void more_setup_gru(more_plan *p) {
  setup(p, 3, 2, run_gru);
}
void more_setup_lstm(more_plan *p) {
  setup(p, 4, 3, run_lstm);
}
