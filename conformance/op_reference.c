/* What a case's results are: plugins/common/ref and more run on its operands, and the bounds around what they give. */
#include "op_case.h"

#include "plugins/common/check/bound.h"
#include "plugins/common/more/number.h"
#include "plugins/common/ref/ref.h"

#include <stdlib.h>
#include <string.h>

/* An op of the reference with memory for its operands, in its own types. */
typedef struct reference {
  const op_case *c;
  op_region r;
  ref_op *op;
  char type; /* what T is in it */
  uint32_t output;
  void *in[OP_IN], *out[OP_OUT], *scratch;
} reference;

static char type_in(const reference *f, const op_operand *o) {
  return o->follows && op_type_is_real(o->type) ? f->type : o->type;
}

static void *memory(uint64_t bytes) {
  return aligned_alloc(64, (size_t)(bytes + 127) / 64 * 64);
}

/* Known operands of the region point at aligned copies of the reference's own. */
static void put(reference *f, uint32_t i, const double *x) {
  const op_operand *o = &f->c->in[f->r.from[i]];
  const char type = type_in(f, o);
  heddle_pvalue *v = &f->r.values[f->r.in[i]];
  if (type == o->type && x == o->x) memcpy(f->in[i], o->raw, o->bytes); /* int64 keeps all of its bits */
  else
    for (uint64_t e = 0; e < o->count; e++) more_store(op_number_type(type), f->in[i], (int64_t)e, x[e]);
  if (!o->known) return;
  v->data = f->in[i];
  v->data_bytes = o->count * op_type_bytes(type);
}

static void reference_free(reference *f) {
  ref_free(f->op);
  for (uint32_t i = 0; i < OP_IN; i++) free(f->in[i]);
  for (uint32_t i = 0; i < OP_OUT; i++) free(f->out[i]);
  free(f->scratch);
  memset(f, 0, sizeof *f);
}

static bool reference_make(kit *k, const op_case *c, char type, reference *f) {
  memset(f, 0, sizeof *f);
  f->c = c;
  f->type = type;
  op_describe(c, type, &f->r);
  bool good = true;
  for (uint32_t i = 0; i < f->r.region.n_inputs; i++) {
    good = (f->in[i] = memory(c->in[f->r.from[i]].count * 8)) != NULL && good;
    if (good) put(f, i, c->in[f->r.from[i]].x);
  }
  for (uint32_t i = 0; i < f->r.region.n_outputs; i++)
    good = (f->out[i] = memory(c->out[f->r.to[i]].count * 8)) != NULL && good;
  good = good && ref_query(&f->r.region, &k->err) == HEDDLE_OK;
  good = good && (f->scratch = memory(ref_workspace(&f->r.region))) != NULL;
  good = good && ref_prepare(&k->host, &f->r.region, &f->op, &k->err) == HEDDLE_OK;
  if (!good) reference_free(f);
  return good;
}

static void reference_run(reference *f) {
  void *in[OP_IN] = {NULL}, *out[OP_OUT] = {NULL};
  for (uint32_t i = 0; i < f->r.region.n_inputs; i++)
    if (f->c->in[f->r.from[i]].count > 0) in[i] = f->in[i];
  for (uint32_t i = 0; i < f->r.region.n_outputs; i++)
    if (f->c->out[f->r.to[i]].count > 0) out[i] = f->out[i];
  ref_run(f->op, in, out, f->scratch);
}

static void take(const reference *f, uint32_t i, double *y) {
  const op_operand *o = &f->c->out[f->r.to[i]];
  for (uint64_t e = 0; e < o->count; e++) y[e] = more_load(op_number_type(type_in(f, o)), f->out[i], (int64_t)e);
}

typedef struct asked {
  kit *k;
  const op_case *c;
  char type;
  uint32_t output;
} asked;

/* For check_bound_of. The op is made again, since it may have read operands that it knows. */
static bool evaluate(void *ctx, const double *const *x, double *y) {
  asked *a = ctx;
  reference f;
  if (!reference_make(a->k, a->c, a->type, &f)) return false;
  for (uint32_t i = 0; i < f.r.region.n_inputs; i++) put(&f, i, x[f.r.from[i]]);
  ref_free(f.op);
  f.op = NULL;
  const bool good = ref_prepare(&a->k->host, &f.r.region, &f.op, NULL) == HEDDLE_OK;
  if (good) {
    reference_run(&f);
    take(&f, a->output, y);
  }
  reference_free(&f);
  return good;
}

bool op_evaluate(kit *k, const op_case *c, uint32_t output, const double *const *x, double *y) {
  const char tries[] = {'d', 'f', c->type, '\0'};
  for (const char *t = tries; *t != '\0'; t++) {
    asked a = {k, c, *t, output};
    if (evaluate(&a, x, y)) return true;
  }
  return false;
}

static int32_t rounding_of(char type) {
  const char *at = strchr("fdhb", type);
  return at != NULL ? (int32_t)(at - "fdhb") : BOUND_WHOLE;
}

static bool bounds(kit *k, const op_case *c, char type, uint32_t i, uint32_t result, op_want *w) {
  bound_tensor in[OP_IN];
  bound_attr attrs[OP_ATTRS];
  asked a = {k, c, type, i};
  memset(in, 0, sizeof in);
  for (uint32_t o = 0; o < c->n_in; o++)
    if (c->in[o].here) in[o] = (bound_tensor){c->in[o].x, c->in[o].shape, c->in[o].ndim, rounding_of(c->in[o].type)};
  for (uint32_t o = 0; o < c->n_attrs; o++) {
    const bool floats = c->attrs[o].kind == HEDDLE_ATTR_FLOAT || c->attrs[o].kind == HEDDLE_ATTR_FLOATS;
    attrs[o] =
        (bound_attr){c->attrs[o].name, floats ? NULL : c->attrs[o].ints, c->attrs[o].count, c->attrs[o].floats[0]};
  }
  bound_node n = {
      .op = c->line->op, .attrs = attrs, .in = in, .n_attrs = c->n_attrs, .n_in = c->n_in, .output = result};
  const op_operand *y = &c->out[result];
  n.out = (bound_tensor){w->x, y->shape, y->ndim, rounding_of(y->type)};
  n.fast = (c->flags & HEDDLE_REGION_FAST) != 0;
  n.evaluate = evaluate;
  n.ctx = &a;
  if (!check_bound_of(&n, w->err, &w->rule)) return false;
  const char computed = y->follows && op_type_is_real(y->type) ? type : y->type;
  for (uint64_t e = 0; computed != 'd' && e < y->count; e++) w->err[e] *= 2;
  return true;
}

bool op_reference(kit *k, const op_case *c, op_want *want) {
  const char tries[] = {'d', 'f', c->type, '\0'};
  reference f;
  uint32_t t = 0;
  memset(want, 0, sizeof *want * OP_OUT);
  while (tries[t] != '\0' && !reference_make(k, c, tries[t], &f)) t++;
  if (tries[t] == '\0') return false;
  reference_run(&f);
  bool good = true;
  for (uint32_t i = 0; i < f.r.region.n_outputs && good; i++) {
    const uint32_t result = f.r.to[i];
    op_want *w = &want[result];
    w->here = true;
    w->x = malloc((c->out[result].count + 1) * sizeof *w->x);
    w->err = malloc((c->out[result].count + 1) * sizeof *w->err);
    good = w->x != NULL && w->err != NULL;
    if (!good) break;
    take(&f, i, w->x);
    good = bounds(k, c, tries[t], i, result, w);
    if (!good) kit_fail(k, "the kit has no bound for %s", c->line->op);
  }
  reference_free(&f);
  return good;
}

void op_want_free(op_want *want) {
  for (uint32_t i = 0; i < OP_OUT; i++) {
    free(want[i].x);
    free(want[i].err);
  }
  memset(want, 0, sizeof *want * OP_OUT);
}

uint64_t op_check(const op_case *c, uint32_t r, const op_want *want, const void *got) {
  const op_operand *o = &c->out[r];
  const int32_t rounding = rounding_of(o->type);
  for (uint64_t e = 0; e < o->count; e++) {
    uint64_t place = 0;
    memcpy(&place, (const unsigned char *)got + e * op_type_bytes(o->type), op_type_bytes(o->type));
    if (o->type == 'B' && place > 1) return e;
    if (!check_bound_holds(rounding, want[r].x[e], more_load(op_number_type(o->type), &place, 0), want[r].err[e]))
      return e;
  }
  return o->count;
}
