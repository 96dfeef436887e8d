/* RNN, GRU and LSTM of float32. Units are directions. The inputs of a block of steps are multiplied at once; then each
 * step multiplies the states of all images of the batch, and does the rest a gate at a time. */
#include "rnn.h"
#include "rows.h"

#include "plugins/common/ref/lanes_fast.h"

/* Floats of a block's products at most, if that leaves a step. */
#define BLOCK_FLOATS (INT64_C(1) << 18)

/* A direction: sizes, and where its weights and scratch memory lie. */
typedef struct direction {
  const more_op *m;
  const more_args *a;
  int64_t d, hidden, inputs, steps, batch, gates, row; /* row: gates * hidden */
  const float *w, *r, *peep;                           /* peep may be NULL */
  float *bias, *state_bias;                            /* of the inputs' product, of the states' */
  float *x, *from_x, *from_h;
  float *h, *next, *c, *gate; /* [batch][hidden] */
  int64_t work;
  bool ends;
} direction;

static int64_t block_of(const more_op *m) {
  const int64_t each = m->i[RNN_BATCH] * (m->i[RNN_GATES] * m->i[RNN_HIDDEN] + m->i[RNN_INPUTS]);
  const int64_t steps = each > 0 ? BLOCK_FLOATS / each : 1;
  return steps < 1 ? 1 : steps < m->i[RNN_STEPS] ? steps : m->i[RNN_STEPS];
}

static void apply(const more_op *m, int64_t which, float *x, int64_t n) {
  const double clip = m->f[RNN_CLIP];
  const float most = (float)clip;
  if (clip > 0)
    for (int64_t i = 0; i < n; i++) x[i] = x[i] < -most ? -most : x[i] > most ? most : x[i];
  switch (m->i[RNN_ACTS + which]) {
  case RNN_SIGMOID: ref_fast_sigmoid(x, x, n); break;
  case RNN_TANH: ref_fast_tanh(x, x, n); break;
  case RNN_RELU:
    for (int64_t i = 0; i < n; i++) x[i] = x[i] > 0 ? x[i] : 0;
    break;
  default:
    for (int64_t i = 0; i < n; i++) x[i] = (float)rnn_activate(m, which, (double)x[i]);
    break;
  }
}

/* How many steps image b has. */
static int64_t length_of(const direction *q, int64_t b) {
  int64_t n = q->a->in[4] != NULL ? more_get_int(&q->m->in[4], q->a->in[4], b) : q->steps;
  return n < 0 ? 0 : n > q->steps ? q->steps : n;
}

/* The place in time of step k of image b. */
static int64_t time_of(const direction *q, int64_t b, int64_t k) {
  const bool back = q->m->i[RNN_BACKWARD] != 0 || q->d == 1;
  const int64_t length = length_of(q, b);
  return k < length && back ? length - 1 - k : k;
}

/* Some rows at a time, so that the run may end between them; then the results are not whole, and are not used. */
static void multiply(direction *q, more_rows p) {
  enum { ROWS = 16 };
  for (int64_t left = p.m; left > 0 && !q->ends; left -= ROWS) {
    p.m = left < ROWS ? left : ROWS;
    q->ends = more_tick(q->m, &q->work, p.m * p.n * p.k / 8 + 1);
    if (!q->ends) more_rows_product(&p);
    p.a += p.m * p.a_step;
    p.out += p.m * p.out_step;
  }
}

/* Steps [first, first + n) of all images: their inputs side by side, and the products. */
static void multiply_inputs(direction *q, int64_t first, int64_t n) {
  const float *x = q->a->in[0];
  const bool by_batch = q->m->i[RNN_LAYOUT] != 0;
  for (int64_t k = 0; k < n; k++) {
    for (int64_t b = 0; b < q->batch; b++) {
      const int64_t t = time_of(q, b, first + k), at = by_batch ? b * q->steps + t : t * q->batch + b;
      if (q->inputs > 0)
        memcpy(q->x + (k * q->batch + b) * q->inputs, x + at * q->inputs, (size_t)q->inputs * sizeof *x);
    }
  }
  multiply(q, (more_rows){.a = q->x,
                          .b = q->w,
                          .bias = q->bias,
                          .out = q->from_x,
                          .m = n * q->batch,
                          .n = q->row,
                          .k = q->inputs,
                          .a_step = q->inputs,
                          .out_step = q->row});
}

/* Gates [first, first + n) from the states in h: into from_h. */
static void multiply_states(direction *q, const float *h, int64_t first, int64_t n) {
  multiply(q, (more_rows){.a = h,
                          .b = q->r + first * q->hidden * q->hidden,
                          .bias = q->state_bias + first * q->hidden,
                          .out = q->from_h + first * q->hidden,
                          .m = q->batch,
                          .n = n * q->hidden,
                          .k = q->hidden,
                          .a_step = q->hidden,
                          .out_step = q->row});
}

/* x, the products of the inputs of a step, gets those of the states; of gates [first, first + n) of image b. */
static float *sum_gates(const direction *q, float *x, int64_t b, int64_t first, int64_t n) {
  float *to = x + b * q->row + first * q->hidden;
  const float *from = q->from_h + b * q->row + first * q->hidden;
  for (int64_t j = 0; j < n * q->hidden; j++) to[j] += from[j];
  return to;
}

static void rnn_step(direction *q, float *x) {
  multiply_states(q, q->h, 0, 1);
  for (int64_t b = 0; b < q->batch && !q->ends; b++) {
    const float *y = sum_gates(q, x, b, 0, 1);
    apply(q->m, q->d, x + b * q->row, q->hidden);
    memcpy(q->next + b * q->hidden, y, (size_t)q->hidden * sizeof *y);
  }
}

static void gru_step(direction *q, float *x) {
  const int64_t act = 2 * q->d, n = q->hidden;
  const bool linear = q->m->i[RNN_LINEAR] != 0;
  multiply_states(q, q->h, 0, linear ? 3 : 2);
  for (int64_t b = 0; b < q->batch && !q->ends; b++) {
    const float *h = q->h + b * n, *r = x + b * q->row + n;
    float *gate = q->gate + b * n;
    apply(q->m, act, sum_gates(q, x, b, 0, 2), 2 * n);
    if (linear) {
      float *part = q->from_h + b * q->row + 2 * n;
      for (int64_t j = 0; j < n; j++) part[j] *= r[j];
    } else {
      for (int64_t j = 0; j < n; j++) gate[j] = r[j] * h[j];
    }
  }
  if (!linear) multiply_states(q, q->gate, 2, 1);
  for (int64_t b = 0; b < q->batch && !q->ends; b++) {
    const float *h = q->h + b * n, *z = x + b * q->row;
    float *part = sum_gates(q, x, b, 2, 1), *next = q->next + b * n;
    apply(q->m, act + 1, part, n);
    for (int64_t j = 0; j < n; j++) next[j] = (1 - z[j]) * part[j] + z[j] * h[j];
  }
}

static void add_peephole(const direction *q, float *gate, int64_t which, const float *c) {
  const float *p = q->peep + which * q->hidden;
  for (int64_t j = 0; j < q->hidden; j++) gate[j] += c[j] * p[j];
}

static void lstm_step(direction *q, float *x) {
  const int64_t act = 3 * q->d, n = q->hidden;
  const bool coupled = q->m->i[RNN_COUPLED] != 0;
  multiply_states(q, q->h, 0, 4);
  for (int64_t b = 0; b < q->batch && !q->ends; b++) {
    float *i = sum_gates(q, x, b, 0, 4), *o = i + n, *f = i + 2 * n, *g = i + 3 * n;
    float *c = q->c + b * n, *next = q->next + b * n;
    if (q->peep != NULL) {
      add_peephole(q, i, 0, c);
      add_peephole(q, f, 2, c);
    }
    apply(q->m, act, i, n);
    if (!coupled) apply(q->m, act, f, n);
    else
      for (int64_t j = 0; j < n; j++) f[j] = 1 - i[j];
    apply(q->m, act + 1, g, n);
    for (int64_t j = 0; j < n; j++) c[j] = f[j] * c[j] + i[j] * g[j];
    if (q->peep != NULL) add_peephole(q, o, 1, c);
    apply(q->m, act, o, n);
    memcpy(next, c, (size_t)n * sizeof *c);
    apply(q->m, act + 2, next, n);
    for (int64_t j = 0; j < n; j++) next[j] *= o[j];
  }
}

/* ---------------------------------------------------------------- a direction */

static int64_t state_row(const direction *q, int64_t b) {
  return (q->m->i[RNN_LAYOUT] ? b * q->m->i[RNN_DIRECTIONS] + q->d : q->d * q->batch + b) * q->hidden;
}

static void load_states(const direction *q, uint32_t k, float *to) {
  const float *from = k < q->m->n_in ? q->a->in[k] : NULL;
  for (int64_t b = 0; b < q->batch; b++) {
    if (from != NULL) memcpy(to + b * q->hidden, from + state_row(q, b), (size_t)q->hidden * sizeof *to);
    else memset(to + b * q->hidden, 0, (size_t)q->hidden * sizeof *to);
  }
}

static void store_states(const direction *q, uint32_t k, const float *from) {
  float *to = k < q->m->n_out ? q->a->out[k] : NULL;
  for (int64_t b = 0; b < q->batch && to != NULL; b++)
    memcpy(to + state_row(q, b), from + b * q->hidden, (size_t)q->hidden * sizeof *to);
}

/* Step k: images that are over keep their states, and their results are zeros. */
static void store_step(const direction *q, int64_t k, const float *c_before) {
  const int64_t directions = q->m->i[RNN_DIRECTIONS], n = q->hidden;
  const size_t bytes = (size_t)n * sizeof(float);
  float *y = q->a->out[0];
  for (int64_t b = 0; b < q->batch; b++) {
    const int64_t t = time_of(q, b, k);
    const bool over = k >= length_of(q, b);
    if (!over) memcpy(q->h + b * n, q->next + b * n, bytes);
    else if (c_before != q->c) memcpy(q->c + b * n, c_before + b * n, bytes);
    if (y == NULL) continue;
    float *to =
        y + n * (q->m->i[RNN_LAYOUT] ? (b * q->steps + t) * directions + q->d : (t * directions + q->d) * q->batch + b);
    if (over) memset(to, 0, bytes);
    else memcpy(to, q->h + b * n, bytes);
  }
}

/* The bias of the inputs takes that of the states in, but where a reset comes between: the last gate of a linear GRU. */
static void read_bias(direction *q) {
  const float *from = q->a->in[3] != NULL ? (const float *)q->a->in[3] + q->d * 2 * q->row : NULL;
  for (int64_t j = 0; j < q->row; j++) {
    const bool apart = q->gates == 3 && q->m->i[RNN_LINEAR] && j >= 2 * q->hidden;
    q->bias[j] = from == NULL ? 0 : from[j] + (apart ? 0 : from[q->row + j]);
    q->state_bias[j] = from != NULL && apart ? from[q->row + j] : 0;
  }
}

/* Scratch memory of a direction, or only its size in floats. */
static int64_t place(direction *q, float *at) {
  const int64_t states = q->batch * q->hidden, block = q->m->i[RNN_BLOCK];
  struct {
    float **to;
    int64_t floats;
  } all[] = {{&q->bias, q->row},
             {&q->state_bias, q->row},
             {&q->x, block * q->batch * q->inputs},
             {&q->from_x, block * q->batch * q->row},
             {&q->from_h, q->batch * q->row},
             {&q->h, states},
             {&q->next, states},
             {&q->c, 2 * states}, /* and as it was before a step */
             {&q->gate, states}};
  int64_t floats = 0;
  for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
    if (at != NULL) *all[i].to = at + floats;
    floats += (all[i].floats + 15) / 16 * 16;
  }
  return floats;
}

static direction direction_of(const more_op *m) {
  const int64_t *i = m->i;
  return (direction){.m = m,
                     .hidden = i[RNN_HIDDEN],
                     .inputs = i[RNN_INPUTS],
                     .steps = i[RNN_STEPS],
                     .batch = i[RNN_BATCH],
                     .gates = i[RNN_GATES],
                     .row = i[RNN_GATES] * i[RNN_HIDDEN]};
}

static void run_direction(direction *q) {
  const int64_t states = q->batch * q->hidden, block = q->m->i[RNN_BLOCK];
  float *before = q->c + states;
  load_states(q, 5, q->h);
  load_states(q, 6, q->c);
  read_bias(q);
  for (int64_t first = 0; first < q->steps && !q->ends; first += block) {
    const int64_t n = q->steps - first < block ? q->steps - first : block;
    multiply_inputs(q, first, n);
    for (int64_t k = 0; k < n && !q->ends; k++) {
      float *x = q->from_x + k * q->batch * q->row;
      if (q->gates == 4) memcpy(before, q->c, (size_t)states * sizeof *before);
      if (q->gates == 1) rnn_step(q, x);
      else if (q->gates == 3) gru_step(q, x);
      else lstm_step(q, x);
      if (!q->ends) store_step(q, first + k, q->gates == 4 ? before : q->c);
    }
  }
  store_states(q, 1, q->h);
  store_states(q, 2, q->c);
}

static void run_directions(const more_op *m, const more_args *a, int64_t first, int64_t last) {
  for (int64_t d = first; d < last; d++) {
    direction q = direction_of(m);
    q.a = a;
    q.d = d;
    q.w = a->in[1] != NULL ? (const float *)a->in[1] + d * q.row * q.inputs : NULL;
    q.r = a->in[2] != NULL ? (const float *)a->in[2] + d * q.row * q.hidden : NULL;
    q.peep = q.gates == 4 && m->n_in > 7 && a->in[7] != NULL ? (const float *)a->in[7] + d * 3 * q.hidden : NULL;
    place(&q, a->scratch);
    run_direction(&q);
    if (q.ends) return;
  }
}

void rnn_plan_fast(more_plan *p) {
  more_op *m = p->m;
  const int64_t *i = m->i;
  const double row = (double)i[RNN_GATES] * (double)i[RNN_HIDDEN], batch = (double)i[RNN_BATCH];
  const double places = (double)i[RNN_DIRECTIONS] * batch * (double)i[RNN_STEPS];
  if (batch * (row + (double)i[RNN_INPUTS] + 8 * (double)i[RNN_HIDDEN]) > 0x1p36)
    more_refuse(p, "it needs too much scratch memory");
  if (!more_ok(p)) return;
  m->i[RNN_BLOCK] = block_of(m);
  direction q = direction_of(m);
  more_loop(p, run_directions, i[RNN_DIRECTIONS], places * row * ((double)(i[RNN_INPUTS] + i[RNN_HIDDEN]) * 0.6 + 30));
  m->unsliced = true;
  m->part_scratch = (uint64_t)place(&q, NULL) * sizeof(float);
}
