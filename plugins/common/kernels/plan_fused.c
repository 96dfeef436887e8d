/* FusedElementwise, and chains of several elementwise nodes: one kernel, which a plan has as the expression. Its text is written here
 * for drivers that compile text: it comes behind elementwise.cl and uses the same words for each operator. Shapes are parameters: one
 * text serves all that read their inputs alike. */
#include "plan_op.h"
#include "plugins/common/chain.h"
#include "plugins/common/scalar.h"

enum { TEXT_BYTES = 12288 };

typedef struct text {
  char *at;
  size_t used;
} text;

P_PRINTF(2, 3)
static void say(text *t, const char *format, ...) {
  va_list args;
  va_start(args, format);
  const int n = vsnprintf(t->at + t->used, TEXT_BYTES - t->used, format, args);
  va_end(args);
  t->used += n < 0 ? 0 : (size_t)n;
  if (t->used >= TEXT_BYTES) t->used = TEXT_BYTES - 1;
}

/* As bits: exact, and the same in every locale. */
static uint32_t bits_of(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}

static void say_inputs(text *t, const heddle_chain *c) {
  const uint32_t n = c->program.n_inputs;
  for (uint32_t k = 0; k < n; k++) {
    if (c->kind[k] == HEDDLE_CHAIN_WALKED) say(t, "  IDX w%u = 0;\n", k);
  }
  if (c->walked > 0) {
    say(t, "  IDX rest = i;\n  for (int d = (int)p.dims - 1; d >= 0; d--) {\n"
           "    const IDX at = rest %% (IDX)p.dim[d];\n    rest /= (IDX)p.dim[d];\n");
    for (uint32_t k = 0; k < n; k++) {
      if (c->kind[k] == HEDDLE_CHAIN_WALKED) say(t, "    w%u += at * (IDX)p.step[%u][d];\n", k, k);
    }
    say(t, "  }\n");
  }
  for (uint32_t k = 0; k < n; k++) {
    say(t, "  const float v%u = x%u[", k, k);
    if (c->kind[k] == HEDDLE_CHAIN_WALKED) say(t, "w%u];\n", k);
    else say(t, "%s];\n", c->kind[k] == HEDDLE_CHAIN_DENSE ? "i" : "0");
  }
}

static void say_step(text *t, const expr_step *step, uint32_t ref) {
  const char *name = expr_ops[step->op].name;
  say(t, "  float v%u;\n  {\n    const float alpha = K_FLOAT(0x%08xu), beta = K_FLOAT(0x%08xu)", ref,
      bits_of(step->params[0]), bits_of(step->params[1]));
  for (uint32_t k = 0; k < step->n_args; k++) say(t, ", %c = v%u", 'a' + (int)k, (unsigned)step->args[k]);
  if (step->op == EXPR_Identity) say(t, ";\n    (void)alpha, (void)beta;\n    v%u = a;\n  }\n", ref);
  else say(t, ";\n    (void)alpha, (void)beta;\n    v%u = OP_%s_REAL;\n  }\n", ref, name);
}

/* A variable v each for inputs, numbers and results, numbered as expr.h has them. */
static void say_kernel(text *t, const heddle_chain *c) {
  const expr *e = &c->program;
  say(t, "KERNEL void fused(%s p, ", c->walked > 0 ? "k_fused" : "k_flat");
  for (uint32_t k = 0; k < e->n_inputs; k++) say(t, "GLOBAL const float *x%u, ", k);
  say(t, "GLOBAL float *out) {\n  const IDX i = K_GLOBAL_ID;\n  if (i >= (IDX)p.count) return;\n");
  say_inputs(t, c);
  for (uint32_t i = 0; i < e->n_numbers; i++)
    say(t, "  const float v%u = K_FLOAT(0x%08xu);\n", EXPR_OF_NUMBER + i, bits_of(e->numbers[i]));
  for (uint32_t i = 0; i < e->n_steps; i++) say_step(t, &e->steps[i], EXPR_OF_STEP + i);
  say(t, "  out[i] = v%u;\n}\n", EXPR_OF_STEP + e->n_steps - 1);
}

heddle_status k_chain_text(const heddle_host *host, const heddle_chain *chain, char **out, heddle_error *err) {
  text t = {host->alloc(host->ctx, TEXT_BYTES, 1), 0};
  *out = t.at;
  if (t.at == NULL) return p_fail(err, HEDDLE_ENOMEM, 0, "no memory for the text of a kernel");
  say_kernel(&t, chain);
  if (t.used < TEXT_BYTES - 1) return HEDDLE_OK;
  host->free(host->ctx, t.at);
  *out = NULL;
  return p_fail(err, HEDDLE_EUNSUPPORTED, 0, "the text of a chain's kernel is too long");
}

static void set_params(k_step *step, const heddle_chain *c) {
  if (c->walked == 0) {
    step->params.flat.count = (int64_t)c->count;
    step->params_bytes = sizeof step->params.flat;
    return;
  }
  k_fused *p = &step->params.fused;
  p->count = (int64_t)c->count;
  p->dims = c->dims;
  for (int32_t d = 0; d < c->dims; d++) {
    p->dim[d] = c->dim[d];
    for (uint32_t k = 0; k < c->program.n_inputs; k++) p->step[k][d] = c->stride[k][d];
  }
  step->params_bytes = sizeof *p;
}

heddle_status k_plan_fused(k_node *n, heddle_error *err) {
  heddle_chain c;
  const heddle_pregion *region = n->ref.region;
  k_plan *plan = n->plan;
  k_step *step = NULL;
  heddle_status s = heddle_chain_read(region, &c, err);
  if (s != HEDDLE_OK || c.count == 0) return s;
  if (c.walked > 0 && c.dims > K_DIMS)
    return ref_refuse(&n->ref, err, "it walks %d dimensions that cannot be joined; up to %d are supported", c.dims,
                      K_DIMS);
  s = k_kernel_add(plan, KERNEL_fused, k_groups(c.count), c.count, &step, err);
  if (s != HEDDLE_OK) return s;
  step->code.kind = SCALAR_REAL;
  step->code.n_in = 1;
  step->code.n_types = K_TYPES;
  memset(step->code.types, K_ELEMENT_F32, K_TYPES);
  step->chain = plan->host->alloc(plan->host->ctx, sizeof c, _Alignof(heddle_chain));
  if (step->chain == NULL) return p_fail(err, HEDDLE_ENOMEM, 0, "no memory to plan an operator");
  *step->chain = c;
  step->chain->node = NULL; /* the region's, which may go */
  step->chain->out = NULL;
  set_params(step, &c);
  for (uint32_t k = 0; k < c.program.n_inputs; k++) {
    step->args[step->n_args++] = c.slot[k];
    if (plan->n_pairs == K_PAIRS || !heddle_chain_in_place(region, &c, k)) continue;
    plan->pairs[2 * plan->n_pairs] = (int32_t)c.slot[k];
    plan->pairs[2 * plan->n_pairs++ + 1] = 0;
  }
  step->args[step->n_args++] = K_OUTPUT;
  plan->work += (double)c.count;
  return HEDDLE_OK;
}
