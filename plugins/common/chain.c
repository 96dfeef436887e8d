/* Chains: a region read as one expression, with the strides of its inputs. Which nodes make a good chain is in
 * chain_propose.c. */
#include "chain.h"

#include "chain_node.h"
#include "perror.h"
#include "region.h"
#include "scalar.h"

#include <math.h>

static const heddle_pnode *last_node(const heddle_pregion *region) {
  return region->nodes.count > 0 ? region_node(region, region->nodes.count - 1) : NULL;
}

P_PRINTF(3, 4)
static heddle_status refuse(const heddle_pnode *node, heddle_error *err, const char *format, ...) {
  va_list args;
  va_start(args, format);
  p_vfail(err, HEDDLE_EUNSUPPORTED, 0, format, args);
  va_end(args);
  p_prefix(err, "node '%.200s': %.100s: ", node->name != NULL ? node->name : "", node->op != NULL ? node->op : "");
  return HEDDLE_EUNSUPPORTED;
}

/* ---------------------------------------------------------------- one node */

static bool is_float32(const heddle_pvalue *value) {
  return value != NULL && value->layout == 0 && region_dtype_is(value->dtype, HEDDLE_DTYPE_FLOAT, 32);
}

bool chain_node_read(const heddle_pregion *region, const heddle_pnode *node, int32_t *op, float params[2]) {
  scalar_call call;
  const bool own = node->domain != NULL && strcmp(node->domain, "heddle") == 0;
  if (node->op == NULL || (!own && node->domain != NULL && node->domain[0] != '\0')) return false;
  if (heddle__operator_find(own, node->op) == NULL && strcmp(node->op, "Identity") != 0) return false;
  if (scalar_read(node, &call, NULL) != HEDDLE_OK || call.attributes != node->attrs.count) return false;
  *op = expr_find(call.name);
  if (*op < 0) return false;
  const heddle_pvalue *out = region_node_output(region, node, 0);
  const bool clip = expr_ops[*op].most == EXPR_ARGS;
  if (node->n_outputs != 1 || !is_float32(out) || node->n_inputs < expr_ops[*op].least) return false;
  if (expr_ops[*op].most != UINT8_MAX && node->n_inputs > expr_ops[*op].most) return false;
  for (uint32_t k = 0; k < node->n_inputs; k++) {
    const heddle_pvalue *value = region_node_input(region, node, k);
    uint64_t count = 0;
    if (value == NULL && clip && k > 0) continue;
    if (!is_float32(value) || !region_value_count(value, &count) || value->ndim > out->ndim) return false;
    if (clip && k > 0 && count != 1) return false;
  }
  params[0] = (float)call.alpha;
  params[1] = (float)call.beta;
  return true;
}

const float *chain_number(const heddle_pvalue *value) {
  uint64_t count = 0;
  return value->data != NULL && region_value_count(value, &count) && count == 1 ? value->data : NULL;
}

/* ---------------------------------------------------------------- from region to program */

typedef struct maker {
  const heddle_pregion *region;
  heddle_chain *c;
  int32_t made[EXPR_STEPS]; /* values of the nodes so far, and what they are in the program */
  uint8_t made_ref[EXPR_STEPS];
  uint32_t n_made;
  int32_t inputs[EXPR_INPUTS]; /* values */
} maker;

/* What a value is in the program. */
static bool find_ref(maker *r, int32_t value, uint8_t *ref) {
  expr *e = &r->c->program;
  for (uint32_t i = 0; i < r->n_made; i++) {
    if (r->made[i] != value) continue;
    *ref = r->made_ref[i];
    return true;
  }
  const float *number = chain_number(region_value(r->region, value));
  if (number != NULL && expr_number(e, *number, ref)) return true;
  uint32_t k = 0;
  while (k < e->n_inputs && r->inputs[k] != value) k++;
  if (k == EXPR_INPUTS || region_input_slot(r->region, value) < 0) return false;
  if (k == e->n_inputs) {
    r->inputs[e->n_inputs++] = value;
    r->c->slot[k] = (uint32_t)region_input_slot(r->region, value);
  }
  *ref = (uint8_t)k;
  return true;
}

static heddle_status read_node(maker *r, const heddle_pnode *node, heddle_error *err) {
  expr *e = &r->c->program;
  int32_t op = -1;
  float params[2];
  uint8_t args[EXPR_ARGS] = {0}, ref = 0;
  if (!chain_node_read(r->region, node, &op, params) ||
      !region_shape_equal(region_node_output(r->region, node, 0), r->c->out))
    return refuse(node, err, "it is no part of an elementwise chain of float32");
  const bool many = expr_ops[op].most == UINT8_MAX;
  bool room = r->n_made < EXPR_STEPS;
  for (uint32_t k = 0; k < node->n_inputs && room; k++) {
    uint8_t *arg = &args[many && k > 1 ? 1 : k];
    if (node->inputs[k] >= 0) room = find_ref(r, node->inputs[k], arg);
    else room = expr_number(e, k == 1 ? -INFINITY : INFINITY, arg); /* a bound of Clip */
    if (expr_ops[op].most == EXPR_ARGS && k > 0 && *arg >= EXPR_OF_STEP)
      return refuse(node, err, "a bound that the chain computes is not supported");
    if (room && many && k > 0) room = expr_add(e, op, args, 2, NULL, &args[0]);
  }
  if (room) room = expr_add(e, op, args, many ? 1 : node->n_inputs, params, &ref);
  if (!room)
    return refuse(node, err, "a chain has at most %d inputs, %d numbers and %d steps", EXPR_INPUTS, EXPR_NUMBERS,
                  EXPR_STEPS);
  r->made[r->n_made] = node->outputs[0];
  r->made_ref[r->n_made++] = ref;
  return HEDDLE_OK;
}

static heddle_status read_nodes(const heddle_pregion *region, heddle_chain *out, heddle_error *err) {
  maker r = {.region = region, .c = out};
  heddle_status s = HEDDLE_OK;
  for (uint64_t i = 0; i < region->nodes.count && s == HEDDLE_OK; i++) s = read_node(&r, region_node(region, i), err);
  if (s != HEDDLE_OK) return s;
  expr *e = &out->program;
  if (!expr_finish(e, r.made_ref[r.n_made - 1])) return refuse(out->node, err, "the chain has too many steps");
  uint32_t used = UINT32_C(1) << (e->n_steps - 1);
  for (uint32_t i = 0; i < e->n_steps; i++) {
    for (uint32_t k = 0; k < e->steps[i].n_args; k++) {
      if (e->steps[i].args[k] >= EXPR_OF_STEP) used |= UINT32_C(1) << (e->steps[i].args[k] - EXPR_OF_STEP);
    }
  }
  if (used != (UINT32_C(1) << e->n_steps) - 1)
    return refuse(out->node, err, "the region has a result that nobody uses");
  return HEDDLE_OK;
}

static heddle_status read_fused(const heddle_pregion *region, heddle_chain *out, heddle_error *err) {
  const heddle_pnode *node = out->node;
  const char *text = NULL;
  if (region_attr_string(node, "expression", NULL, &text, NULL) != HEDDLE_OK || text == NULL || node->attrs.count != 1)
    return refuse(node, err, "it has one attribute, the string expression");
  if (expr_parse(text, node->n_inputs, &out->program, err) != HEDDLE_OK) {
    if (err != NULL) err->status = HEDDLE_EUNSUPPORTED;
    p_prefix(err, "node '%.200s': FusedElementwise: expression, ", node->name != NULL ? node->name : "");
    return HEDDLE_EUNSUPPORTED;
  }
  for (uint32_t k = 0; k < node->n_inputs; k++) {
    if (!is_float32(region_node_input(region, node, k))) return refuse(node, err, "operand %u is not float32", k);
    const int64_t slot = region_input_slot(region, node->inputs[k]);
    if (slot < 0) return refuse(node, err, "operand %u is not an input of its region", k);
    out->slot[k] = (uint32_t)slot;
  }
  return HEDDLE_OK;
}

/* ---------------------------------------------------------------- strides */

static const heddle_pvalue *input_of(const heddle_pregion *region, const heddle_chain *c, uint32_t k) {
  return region_value(region, region->inputs[c->slot[k]]);
}

/* Each dimension of the result comes from an input, so that the result is not larger than they make it. Of one node:
 * in a chain of several, numbers may have had dimensions too. */
static bool result_fits(const heddle_pregion *region, const heddle_chain *c) {
  const heddle_pvalue *y = c->out;
  int32_t most = 0;
  for (uint32_t k = 0; k < c->program.n_inputs; k++) {
    const heddle_pvalue *x = input_of(region, c, k);
    if (x->ndim > most) most = x->ndim;
  }
  for (int32_t d = 0; d < y->ndim; d++) {
    bool found = y->shape[d] == 1;
    for (uint32_t k = 0; k < c->program.n_inputs && !found; k++) {
      const heddle_pvalue *x = input_of(region, c, k);
      const int32_t at = d - (y->ndim - x->ndim);
      found = at >= 0 && x->shape[at] == y->shape[d];
    }
    if (!found) return false;
  }
  return most == y->ndim;
}

static void join(heddle_chain *c) {
  int32_t count = 0;
  const uint32_t n = c->program.n_inputs;
  for (int32_t d = 0; d < c->out->ndim; d++) {
    const int64_t size = c->out->shape[d];
    if (size == 1) continue;
    bool joins = count > 0;
    for (uint32_t k = 0; k < n && joins; k++) joins = c->stride[k][count - 1] == c->stride[k][d] * size;
    if (joins) c->dim[count - 1] *= size;
    else c->dim[count++] = size;
    for (uint32_t k = 0; k < n; k++) c->stride[k][count - 1] = c->stride[k][d];
  }
  c->dims = count;
}

static heddle_status set_strides(const heddle_pregion *region, heddle_chain *c, heddle_error *err) {
  char in[SHAPE_NAME_BYTES], out[SHAPE_NAME_BYTES];
  const heddle_pvalue *y = c->out;
  if (y->ndim > HEDDLE_CHAIN_DIMS)
    return refuse(c->node, err, "%d dimensions; up to %d are supported", y->ndim, HEDDLE_CHAIN_DIMS);
  if (!region_value_count(y, &c->count)) return refuse(c->node, err, "the result has no size");
  uint32_t bounds = 0; /* bit k: input k is a bound of Clip */
  for (uint32_t i = 0; i < c->program.n_steps; i++) {
    const expr_step *step = &c->program.steps[i];
    for (uint32_t k = 1; expr_ops[step->op].most == EXPR_ARGS && k < step->n_args; k++) {
      if (step->args[k] < EXPR_INPUTS) bounds |= UINT32_C(1) << step->args[k];
    }
  }
  for (uint32_t k = 0; k < c->program.n_inputs; k++) {
    const heddle_pvalue *x = input_of(region, c, k);
    uint64_t count = 0;
    if (!region_value_count(x, &count) || !region_shape_broadcast_strides(x, y, c->stride[k]))
      return refuse(c->node, err, "an operand of shape %s does not broadcast to the result's %s",
                    region_shape_name(x, in), region_shape_name(y, out));
    if ((bounds >> k & 1) != 0 && count != 1) return refuse(c->node, err, "a bound of Clip has more than one element");
    c->kind[k] = count == c->count ? HEDDLE_CHAIN_DENSE : count == 1 ? HEDDLE_CHAIN_SINGLE : HEDDLE_CHAIN_WALKED;
    c->walked += c->kind[k] == HEDDLE_CHAIN_WALKED;
  }
  if (region->nodes.count == 1 && !result_fits(region, c))
    return refuse(c->node, err, "the operands do not give %s", region_shape_name(y, out));
  join(c);
  return HEDDLE_OK;
}

heddle_status heddle_chain_read(const heddle_pregion *region, heddle_chain *out, heddle_error *err) {
  memset(out, 0, sizeof *out);
  const heddle_pnode *node = out->node = last_node(region);
  if (node == NULL) return p_fail(err, HEDDLE_EUNSUPPORTED, 0, "a region without nodes");
  out->out = region_node_output(region, node, 0);
  if (node->n_outputs != 1 || region->n_outputs != 1 || !is_float32(out->out) || region->outputs[0] != node->outputs[0])
    return refuse(node, err, "its result, of float32, must be the one output of its region");
  heddle_status s = region->nodes.count > 1 ? read_nodes(region, out, err) : read_fused(region, out, err);
  return s == HEDDLE_OK ? set_strides(region, out, err) : s;
}

/* ---------------------------------------------------------------- answers for offers */

void heddle_chain_flags(const heddle_pregion *region, const heddle_chain *chain, uint32_t *flags) {
  for (uint32_t i = 0; i < region->n_inputs; i++) {
    bool kept = false;
    for (uint32_t k = 0; k < chain->program.n_inputs; k++) kept = kept || chain->slot[k] == i;
    flags[i] = kept ? 0 : HEDDLE_INPUT_ABSORBED;
  }
}

bool heddle_chain_in_place(const heddle_pregion *region, const heddle_chain *chain, uint32_t k) {
  return chain->kind[k] == HEDDLE_CHAIN_DENSE && region_shape_equal(input_of(region, chain, k), chain->out);
}
