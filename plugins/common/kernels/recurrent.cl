/* RNN, GRU, LSTM and LinearAttention: a launch for each step in time, with the state in the workspace y, in float32, or float64 for it. The table
 * g has what the setups of plugins/common/more/rnn.c and attention.c leave. */
#define K_MATH
#include "portable.cl"

#if defined(K_rnn_init) || defined(K_rnn_step) || defined(K_rnn_state)
#define HIDDEN G(0)
#define INPUTS G(1)
#define STEPS G(2)
#define BATCH G(3)
#define DIRECTIONS G(4)
#define BY_BATCH (g[6] != 0)
#define GATES G(9)

/* The workspace: two states, of which a step reads one and writes the other, the cells, and a gate; each of STATE numbers.
 * Declares of item i its direction, image of the batch and place in the state. */
#define STATE (DIRECTIONS * BATCH * HIDDEN)
#define ITEM(i) const IDX j = i % HIDDEN, line = i / HIDDEN, b = line % BATCH, way = line / BATCH;
#define STATE_AT ((BY_BATCH ? b * DIRECTIONS + way : way * BATCH + b) * HIDDEN + j)
#endif

//! rnn_init: f32 f64 f16 bf16
#ifdef K_rnn_init
KERNEL_3_1(rnn_init, k_general, T0, x0, T0, x1, i32, g, K_W(T0), y) {
  K_EACH(i, p.count);
  ITEM(i)
  y[i] = HAS(5) ? GET(T0, x0[STATE_AT]) : NUM(0);
  y[2 * STATE + i] = HAS(6) ? GET(T0, x1[STATE_AT]) : NUM(0);
}
#endif

//! rnn_step: f32 f64 f16 bf16
#ifdef K_rnn_step
DEVICE K_C(T0) activate(int f, K_C(T0) alpha, K_C(T0) beta, K_C(T0) clip, K_C(T0) x) {
  const K_C(T0) none = NUM(0), one = NUM(1);
  const K_C(T0) v = !(clip > none) ? x : x < -clip ? -clip : x > clip ? clip : x;
  const K_C(T0) line = alpha * v + beta;
  if (f == 0) return one / (one + EXP(-v));
  if (f == 1) return TANH(v);
  if (f == 2) return v > none ? v : none;
  if (f == 3) return line;
  if (f == 4) return v < none ? alpha * v : v;
  if (f == 5) return v > alpha ? v : none;
  if (f == 6) return alpha * TANH(beta * v);
  if (f == 7) return line < none ? none : line > one ? one : line;
  if (f == 8) return v < none ? alpha * EXPM1(v) : v;
  if (f == 9) return v / (one + ABS(v));
  return v > none ? v + LOG1P(EXP(-v)) : LOG1P(EXP(v));
}

#define ACTIVATE(which, x) \
  activate(g[10 + CAST(int, which)], G_NUMBER(T0, 1 + CAST(int, which)), G_NUMBER(T0, 8 + CAST(int, which)), \
           G_NUMBER(T0, 0), x)

/* Declares sum of a gate: inputs and their bias; the state from number from of the workspace on, and its bias. */
#define FROM_INPUT(sum, gate) \
  K_SUM(K_W(T0), sum); \
  for (IDX k = 0; k < INPUTS; k++) \
    K_SUM_ADD(K_W(T0), sum, GET(T0, x0[x_at + k]) * GET(T0, x1[((way * GATES + (gate)) * HIDDEN + j) * INPUTS + k])); \
  if (HAS(3)) K_SUM_ADD(K_W(T0), sum, GET(T0, x3[(way * 2 * GATES + (gate)) * HIDDEN + j]));
#define FROM_STATE(sum, gate, from) \
  K_SUM(K_W(T0), sum); \
  for (IDX k = 0; k < HIDDEN; k++) \
    K_SUM_ADD(K_W(T0), sum, y[(from) + line * HIDDEN + k] * GET(T0, x2[((way * GATES + (gate)) * HIDDEN + j) * HIDDEN + k])); \
  if (HAS(3)) K_SUM_ADD(K_W(T0), sum, GET(T0, x3[((way * 2 + 1) * GATES + (gate)) * HIDDEN + j]));
#define PEEPHOLE(gate, c) (HAS(7) ? (c) * GET(T0, x5[(way * 3 + (gate)) * HIDDEN + j]) : NUM(0))

/* mode: 0 RNN, 1 the reset gate of a GRU, 2 the rest of it, 3 LSTM. step: in time. x5: operand 7. z: the results of all
 * steps, where they are wanted. */
KERNEL_7_2(rnn_step, k_general, T0, x0, T0, x1, T0, x2, T0, x3, i32, x4, T0, x5, i32, g, K_W(T0), y, T0, z) {
  K_EACH(i, p.count);
  ITEM(i)
  const IDX k_step_at = AT(p.step), all = STATE;
  const IDX given = HAS(4) ? AT(x4[b]) : STEPS, length_of = given < 0 ? 0 : given > STEPS ? STEPS : given;
  const IDX old = k_step_at % 2 * all, next = all - old;
  const bool back = g[5] != 0 || way == 1, runs = k_step_at < length_of;
  const IDX t = runs && back ? length_of - 1 - k_step_at : k_step_at;
  const IDX x_at = (BY_BATCH ? b * STEPS + t : t * BATCH + b) * INPUTS;
  const IDX to = (BY_BATCH ? (b * STEPS + t) * DIRECTIONS + way : (t * DIRECTIONS + way) * BATCH + b) * HIDDEN + j;
  K_C(T0) h = y[old + i];
  if (runs && p.mode == 0) {
    FROM_INPUT(a, 0)
    FROM_STATE(s, 0, old)
    h = ACTIVATE(way, (a - a_rest) + (s - s_rest));
  } else if (runs && p.mode == 1) {
    FROM_INPUT(a, 1)
    FROM_STATE(s, 1, old)
    const K_C(T0) r = ACTIVATE(2 * way, (a - a_rest) + (s - s_rest));
    if (g[7] != 0) {
      FROM_STATE(n, 2, old)
      y[3 * all + i] = r * (n - n_rest);
    } else {
      y[3 * all + i] = r * h;
    }
  } else if (runs && p.mode == 2) {
    FROM_INPUT(a, 0)
    FROM_STATE(s, 0, old)
    FROM_INPUT(e, 2)
    const K_C(T0) u = ACTIVATE(2 * way, (a - a_rest) + (s - s_rest));
    K_C(T0) part = y[3 * all + i];
    if (g[7] == 0) {
      FROM_STATE(n, 2, 3 * all)
      part = n - n_rest;
    }
    h = (NUM(1) - u) * ACTIVATE(2 * way + 1, (e - e_rest) + part) + u * h;
  } else if (runs && p.mode == 3) {
    const K_C(T0) c = y[2 * all + i];
    FROM_INPUT(a0, 0)
    FROM_STATE(s0, 0, old)
    FROM_INPUT(a1, 1)
    FROM_STATE(s1, 1, old)
    FROM_INPUT(a2, 2)
    FROM_STATE(s2, 2, old)
    FROM_INPUT(a3, 3)
    FROM_STATE(s3, 3, old)
    const K_C(T0) in_gate = ACTIVATE(3 * way, (a0 - a0_rest) + (s0 - s0_rest) + PEEPHOLE(0, c));
    const K_C(T0) forget = g[8] != 0 ? NUM(1) - in_gate : ACTIVATE(3 * way, (a2 - a2_rest) + (s2 - s2_rest) + PEEPHOLE(2, c));
    const K_C(T0) cell = forget * c + in_gate * ACTIVATE(3 * way + 1, (a3 - a3_rest) + (s3 - s3_rest));
    y[2 * all + i] = cell;
    h = ACTIVATE(3 * way, (a1 - a1_rest) + (s1 - s1_rest) + PEEPHOLE(1, cell)) * ACTIVATE(3 * way + 2, cell);
  }
  if (p.mode != 1) {
    y[next + i] = h;
    if (WANTS(0)) z[to] = PUT(T0, runs ? h : NUM(0));
  }
}
#endif

//! rnn_state: f32 f64 f16 bf16
#ifdef K_rnn_state
/* The state, or the cells, that mode states are before in the workspace x0. */
KERNEL_2_1(rnn_state, k_general, K_W(T0), x0, i32, g, T0, y) {
  K_EACH(i, p.count);
  ITEM(i)
  y[STATE_AT] = PUT(T0, x0[AT(p.mode) * STATE + i]);
}
#endif

#define LENGTH G(1)
#define Q_OF G(2)
#define KV_OF G(3)
#define K_WIDTH G(4)
#define V_WIDTH G(5)

//! linear_init: f32 f64 f16 bf16
#ifdef K_linear_init
/* The state, [batch, heads, K_WIDTH, V_WIDTH]. */
KERNEL_1_1(linear_init, k_general, T0, x0, K_W(T0), y) {
  K_EACH(i, p.count);
  y[i] = HAS(3) ? GET(T0, x0[i]) : NUM(0);
}
#endif

//! linear_step: f32 f64 f16 bf16
#ifdef K_linear_step
/* An item has a column of the state of a head of keys and values, and of the results of the queries that share it. step: in
 * time. */
KERNEL_7_2(linear_step, k_general, T0, x0, T0, x1, T0, x2, T0, x3, T0, x4, T0, x5, i32, g, K_W(T0), y, T0, z) {
  K_EACH(i, p.count);
  const IDX dk = K_WIDTH, dv = V_WIDTH, e = i % dv, u = i / dv, b = u / KV_OF, h = u % KV_OF, share = Q_OF / KV_OF;
  const IDX row = b * LENGTH + AT(p.step), at = u * dk * dv + e, key = (row * KV_OF + h) * dk;
  const K_C(T0) scale = G_NUMBER(T0, 0);
  K_C(T0) value = GET(T0, x2[(row * KV_OF + h) * dv + e]);
  if (g[6] != 0) {
    const IDX width = G(8);
    for (IDX d = 0; d < dk; d++)
      y[at + d * dv] = y[at + d * dv] * EXP(GET(T0, x4[width == KV_OF ? row * KV_OF + h : row * width + h * dk + d]));
  }
  if (g[7] != 0) {
    K_SUM(K_W(T0), sum);
    for (IDX d = 0; d < dk; d++) K_SUM_ADD(K_W(T0), sum, y[at + d * dv] * GET(T0, x1[key + d]));
    value = (value - (sum - sum_rest)) * GET(T0, x5[G(9) == 1 ? row : row * KV_OF + h]);
  }
  for (IDX d = 0; d < dk; d++) y[at + d * dv] = y[at + d * dv] + GET(T0, x1[key + d]) * value;
  for (IDX q = h * share; WANTS(0) && q < (h + 1) * share; q++) {
    K_SUM(K_W(T0), sum);
    for (IDX d = 0; d < dk; d++) K_SUM_ADD(K_W(T0), sum, GET(T0, x0[(row * Q_OF + q) * dk + d]) * y[at + d * dv]);
    z[(row * Q_OF + q) * dv + e] = PUT(T0, scale * (sum - sum_rest));
  }
}
#endif
