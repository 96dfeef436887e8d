/* FusedElementwise, and chains of several elementwise nodes: each step of the expression is done by the lanes of its
 * operator on blocks that stay in the first cache, so results are those of the operators alone, to the bit. Units are
 * blocks. The registers lie on the stack, since parts of an op run at the same time. */
#include "lanes.h"
#include "plugins/common/chain.h"

enum {
  SPACE = 8192, /* floats of all registers: what the first cache has room for */
  MOST_BLOCK = 1024,
  /* A result of a step waits for a later one, which takes two: of EXPR_STEPS so many wait at once. */
  TEMPORARIES = (2 * EXPR_STEPS + 2) / 3
};

/* The tail. Registers are numbered: those of inputs that are not read where they lie, of numbers, and of steps, which are
 * used again. op->u.elementwise has the dimensions for broadcast operands. */
typedef struct ref_fused {
  expr program;
  ref_lanes lanes[EXPR_STEPS]; /* NULL: Identity */
  int64_t block;               /* elements of a register */
  uint8_t to[EXPR_STEPS];      /* register of the result; the last step has none */
  uint8_t input[EXPR_INPUTS];
  uint8_t number[EXPR_NUMBERS];
  uint8_t kind[EXPR_INPUTS]; /* HEDDLE_CHAIN_* */
  ref_operand operand[EXPR_INPUTS];
} ref_fused;

static void fill(float *to, float value, int64_t n) {
  for (int64_t i = 0; i < n; i++) to[i] = value;
}

static void run_step(const ref_fused *f, uint32_t i, const void *const *at, void *out, int64_t n) {
  const expr_step *step = &f->program.steps[i];
  const void *in[EXPR_ARGS] = {at[step->args[0]], at[step->args[1]], at[step->args[2]]};
  if (f->lanes[i] != NULL) f->lanes[i](out, in, n, step->params);
  else if (out != in[0]) memcpy(out, in[0], (size_t)n * sizeof(float));
}

static void run_fused(const ref_op *op, void *const *inputs, void *const *outputs, void *workspace, uint64_t first,
                      uint64_t last) {
  const ref_elementwise *e = &op->u.elementwise;
  const ref_fused *f = ref_tail(op);
  const expr *program = &f->program;
  const int64_t end = (int64_t)e->count, block = f->block, rest = end - (int64_t)first * block;
  const int64_t most = rest < block ? rest : block;
  const uint32_t steps = program->n_steps;
  float registers[SPACE];
  const void *at[EXPR_REFS] = {NULL};
  (void)workspace;
  for (uint32_t k = 0; k < program->n_numbers; k++) {
    float *to = registers + f->number[k] * block;
    at[EXPR_OF_NUMBER + k] = to;
    fill(to, program->numbers[k], most);
  }
  for (uint32_t k = 0; k < program->n_inputs; k++) {
    float *to = registers + f->input[k] * block;
    at[k] = to;
    if (f->kind[k] == HEDDLE_CHAIN_SINGLE) fill(to, *(const float *)inputs[f->operand[k].slot], most);
  }
  for (uint32_t i = 0; i + 1 < steps; i++) at[EXPR_OF_STEP + i] = registers + f->to[i] * block;
  for (uint64_t unit = first; unit < last; unit++) {
    const int64_t from = (int64_t)unit * block, n = end - from < block ? end - from : block;
    for (uint32_t k = 0; k < program->n_inputs; k++) {
      const char *base = inputs[f->operand[k].slot];
      if (f->kind[k] == HEDDLE_CHAIN_DENSE) at[k] = base + from * (int64_t)sizeof(float);
      else if (f->kind[k] == HEDDLE_CHAIN_WALKED)
        ref_collect(e, &f->operand[k], base, from, n, (char *)(registers + f->input[k] * block));
    }
    for (uint32_t i = 0; i + 1 < steps; i++) run_step(f, i, at, registers + f->to[i] * block, n);
    run_step(f, steps - 1, at, (float *)outputs[0] + from, n);
  }
}

/* A step that is Pow by a number that has a lane of its own: that; else NULL. */
static ref_lanes power_of(const expr *program, const expr_step *step) {
  if (strcmp(expr_ops[step->op].name, "Pow") != 0 || step->n_args < 2 || step->args[1] < EXPR_OF_NUMBER ||
      step->args[1] >= EXPR_OF_STEP)
    return NULL;
  return ref_lanes_power(program->numbers[step->args[1] - EXPR_OF_NUMBER]);
}

/* Gives each step a register that no result still to be used lies in; it may be one of its operands'. */
static void choose_registers(const heddle_chain *chain, ref_fused *f) {
  const expr *program = &chain->program;
  uint8_t last_use[EXPR_STEPS] = {0}, count = 0, most = 0;
  bool busy[TEMPORARIES] = {false};
  for (uint32_t k = 0; k < program->n_inputs; k++) {
    f->input[k] = count;
    if (chain->kind[k] != HEDDLE_CHAIN_DENSE) count++;
  }
  for (uint32_t k = 0; k < program->n_numbers; k++) f->number[k] = count++;
  for (uint32_t i = 0; i < program->n_steps; i++) {
    for (uint32_t k = 0; k < program->steps[i].n_args; k++) {
      const uint8_t arg = program->steps[i].args[k];
      if (arg >= EXPR_OF_STEP) last_use[arg - EXPR_OF_STEP] = (uint8_t)i;
    }
  }
  for (uint32_t i = 0; i + 1 < program->n_steps; i++) {
    for (uint32_t before = 0; before < i; before++) {
      if (last_use[before] == i) busy[f->to[before] - count] = false;
    }
    uint8_t free = 0;
    while (free < TEMPORARIES - 1 && busy[free]) free++;
    busy[free] = true;
    f->to[i] = (uint8_t)(count + free);
    if (free >= most) most = (uint8_t)(free + 1);
  }
  const int64_t room = SPACE / (count + most > 0 ? count + most : 1);
  f->block = room > MOST_BLOCK ? MOST_BLOCK : room & ~INT64_C(63);
}

heddle_status ref_plan_fused(const ref_node *n, ref_op *op, heddle_error *err) {
  heddle_chain chain;
  ref_fused plan;
  ref_elementwise *e = &op->u.elementwise;
  heddle_status s = heddle_chain_read(n->region, &chain, err);
  if (s != HEDDLE_OK) return s;
  double steps = 0, bytes = (double)chain.count * sizeof(float);
  for (uint32_t i = 0; i < chain.program.n_steps; i++) {
    ref_lane_op lane;
    if (power_of(&chain.program, &chain.program.steps[i]) != NULL) steps++;
    else if (ref_lane_find(expr_ops[chain.program.steps[i].op].name, &lane)) steps += lane.steps;
  }
  for (uint32_t k = 0; k < chain.program.n_inputs; k++) {
    bytes += (double)chain.count * sizeof(float);
    if (k >= REF_OPERANDS) continue;
    op->slot[k] = chain.slot[k];
    if (heddle_chain_in_place(n->region, &chain, k)) op->in_place |= UINT32_C(1) << k;
  }
  e->count = chain.count;
  e->dims = chain.dims;
  memcpy(e->dim, chain.dim, sizeof chain.dim);
  op->tail_bytes = sizeof(ref_fused);
  choose_registers(&chain, &plan);
  const uint64_t block = (uint64_t)plan.block;
  ref_set_work(op, run_fused, chain.count / block + (chain.count % block != 0), steps * (double)chain.count, bytes);
  return HEDDLE_OK;
}

void ref_fill_fused(const ref_node *n, ref_op *op) {
  heddle_chain chain;
  ref_fused *f = ref_tail(op);
  heddle_chain_read(n->region, &chain, NULL);
  memset(f, 0, sizeof *f);
  f->program = chain.program;
  for (uint32_t i = 0; i < chain.program.n_steps; i++) {
    ref_lane_op lane;
    ref_lane_find(expr_ops[chain.program.steps[i].op].name, &lane);
    const ref_lanes power = power_of(&chain.program, &chain.program.steps[i]);
    f->lanes[i] = power != NULL ? power : lane.of[REF_TYPE_F32];
  }
  for (uint32_t k = 0; k < chain.program.n_inputs; k++) {
    ref_operand *o = &f->operand[k];
    o->slot = chain.slot[k];
    f->kind[k] = (uint8_t)chain.kind[k];
    memcpy(o->stride, chain.stride[k], sizeof o->stride);
  }
  choose_registers(&chain, f);
}
