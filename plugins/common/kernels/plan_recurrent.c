/* RNN, GRU, LSTM and LinearAttention: the kernels of recurrent.cl. The names here are those of plugins/common/more/rnn.c and
 * attention.c. */
#include "plan_general.h"

enum { MOST_STEPS = 4096, OPERANDS = 8 };

typedef struct recurrent {
  more_op m;
  k_general p;
  uint8_t type;
  uint64_t number;                       /* bytes of a number of the state */
  uint32_t operand[OPERANDS], result[3]; /* arguments; the table in the place of what is absent */
  uint64_t limit;
} recurrent;

static heddle_status begin(k_node *n, recurrent *r, int64_t steps, int64_t state, heddle_error *err) {
  if (steps > MOST_STEPS) return ref_refuse(&n->ref, err, "it has %lld steps in time", (long long)steps);
  r->number = r->type == K_ELEMENT_F64 ? sizeof(double) : sizeof(float);
  r->p = (k_general){.count = state, .has = k_general_has(n, &r->m)};
  for (uint32_t k = 0; k < OPERANDS; k++) r->operand[k] = k < r->m.n_in && r->m.in[k].here ? k_input(n, k) : K_TABLE;
  for (uint32_t k = 0; k < 3; k++) r->result[k] = k_result(n, &r->m, k);
  /* What a kernel writes nothing to may not be the table, which it also reads. */
  if (r->result[0] == K_TABLE) r->result[0] = K_WORKSPACE;
  return HEDDLE_OK;
}

static heddle_status launch(k_node *n, const recurrent *r, uint8_t kernel, int64_t items, double turns, uint32_t n_args,
                            const uint32_t *args, heddle_error *err) {
  const k_launch how = {
      .kernel = kernel, .n_types = 1, .types = {r->type}, .items = (uint64_t)items, .limit = r->limit, .turns = turns};
  k_general p = r->p;
  p.count = items;
  return k_launch_add(n, &how, &p, sizeof p, n_args, args, err);
}

/* ---------------------------------------------------------------- RNN, GRU, LSTM */

enum { HIDDEN, INPUTS, STEPS, BATCH, DIRECTIONS, GATES = 9 };
enum { RNN, GRU_RESET, GRU, LSTM };
enum { STATE, CELLS = 2, PARTS = 4 }; /* of the workspace */

static heddle_status add_step(k_node *n, recurrent *r, int64_t mode, int64_t step, heddle_error *err) {
  const int64_t *i = r->m.i;
  const double gate = (double)(i[INPUTS] + i[HIDDEN]);
  const uint32_t *o = r->operand;
  r->p.mode = mode;
  r->p.step = step;
  return launch(n, r, KERNEL_rnn_step, i[DIRECTIONS] * i[BATCH] * i[HIDDEN], gate * (double)i[GATES], 9,
                (uint32_t[]){o[0], o[1], o[2], o[3], o[4], o[7], K_TABLE, K_WORKSPACE, r->result[0]}, err);
}

static heddle_status plan_rnn(k_node *n, heddle_error *err) {
  recurrent r;
  memset(&r, 0, sizeof r);
  heddle_status s = k_general_of(n, &r.m, err);
  if (s == HEDDLE_OK) s = k_element_of(n, r.m.in[0].type, &r.type, err);
  const int64_t *i = r.m.i, state = i[DIRECTIONS] * i[BATCH] * i[HIDDEN];
  if (s == HEDDLE_OK) s = begin(n, &r, i[STEPS], state, err);
  if (s != HEDDLE_OK || state == 0) return s;
  const bool gru = strcmp(n->entry->op, "GRU") == 0, lstm = strcmp(n->entry->op, "LSTM") == 0;
  n->plan->part_bytes[0] = PARTS * (uint64_t)state * r.number;
  r.limit = PARTS * (uint64_t)state;
  for (uint32_t k = 0; k < 3; k++) r.limit += (uint64_t)r.m.in[k].count;
  s = launch(n, &r, KERNEL_rnn_init, state, 0, 4, (uint32_t[]){r.operand[5], r.operand[6], K_TABLE, K_WORKSPACE}, err);
  for (int64_t k = 0; k < i[STEPS] && s == HEDDLE_OK; k++) {
    if (gru) s = add_step(n, &r, GRU_RESET, k, err);
    if (s == HEDDLE_OK) s = add_step(n, &r, gru ? GRU : lstm ? LSTM : RNN, k, err);
  }
  for (uint32_t k = 1; k < 3 && s == HEDDLE_OK; k++) {
    if (k >= r.m.n_out || !r.m.out[k].here) continue;
    r.p.mode = k == 1 ? STATE + i[STEPS] % 2 : CELLS;
    s = launch(n, &r, KERNEL_rnn_state, state, 0, 3, (uint32_t[]){K_WORKSPACE, K_TABLE, r.result[k]}, err);
  }
  return s;
}

/* ---------------------------------------------------------------- LinearAttention */

enum { L_BATCH, L_LENGTH, L_Q, L_KV, L_K_SIZE, L_V_SIZE };

static heddle_status plan_linear(k_node *n, heddle_error *err) {
  recurrent r;
  bool widened = false;
  heddle_status s = k_plan_in_one_type(n, K_NO_OPERAND, &widened, err);
  if (s != HEDDLE_OK || widened) return s;
  memset(&r, 0, sizeof r);
  s = k_general_of(n, &r.m, err);
  if (s == HEDDLE_OK) s = k_element_of(n, r.m.in[0].type, &r.type, err);
  for (uint32_t k = 3; k < 6 && s == HEDDLE_OK; k++) {
    if (k < r.m.n_in && r.m.in[k].here && r.m.in[k].type != r.m.in[0].type)
      s = ref_refuse(&n->ref, err, "operand %u is of another type than operand 0", k);
  }
  const int64_t *i = r.m.i, columns = i[L_BATCH] * i[L_KV] * i[L_V_SIZE], state = columns * i[L_K_SIZE];
  if (s == HEDDLE_OK) s = begin(n, &r, i[L_LENGTH], state, err);
  if (s != HEDDLE_OK) return s;
  if (state == 0) return r.m.out[0].count == 0 ? HEDDLE_OK : ref_refuse(&n->ref, err, "its heads are empty");
  const uint32_t *o = r.operand;
  n->plan->part_bytes[0] = (uint64_t)state * r.number;
  r.limit = (uint64_t)state;
  for (uint32_t k = 0; k < 3; k++) r.limit += (uint64_t)r.m.in[k].count;
  s = launch(n, &r, KERNEL_linear_init, state, 0, 2, (uint32_t[]){o[3], K_WORKSPACE}, err);
  for (int64_t k = 0; k < i[L_LENGTH] && s == HEDDLE_OK; k++) {
    r.p.step = k;
    s = launch(n, &r, KERNEL_linear_step, columns, (double)i[L_K_SIZE] * (3 + (double)(i[L_Q] / i[L_KV])), 9,
               (uint32_t[]){o[0], o[1], o[2], o[3], o[4], o[5], K_TABLE, K_WORKSPACE, r.result[0]}, err);
  }
  if (s != HEDDLE_OK || r.m.n_out < 2 || !r.m.out[1].here) return s;
  const k_general p = {.count = state, .step = 1};
  const k_launch how = {.kernel = KERNEL_from_workspace, .n_types = 1, .types = {r.type}, .items = (uint64_t)state};
  return k_launch_add(n, &how, &p, sizeof p, 2, (uint32_t[]){K_WORKSPACE, r.result[1]}, err);
}

const k_entry k_recurrent_table[] = {
    {"GRU", 0, plan_rnn}, {"LSTM", 0, plan_rnn}, {"LinearAttention", 0, plan_linear}, {"RNN", 0, plan_rnn}, {0},
};
