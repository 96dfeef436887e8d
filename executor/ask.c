/* executor/ask.c: regions as the plugins see them. A region holds pointers into graph and plan, which outlive it. */
#include "executor/ask.h"

#include <string.h>

#include "core/alloc.h"
#include "core/error.h"
#include "core/failure.h"
#include "executor/recall.h"
#include "plugins/common/check/offer.h"

uint32_t *heddle__count_users(heddle__plan *plan) {
  const heddle_graph *g = plan->req.graph;
  uint32_t *users = heddle__plan_alloc(plan, g->n_entries, sizeof *users);
  if (users == NULL) return NULL;
  for (uint32_t i = 0; i < g->n_nodes; i++) {
    const heddle__node *n = &g->nodes[i];
    bool used = false;
    for (uint32_t k = 0; k < n->n_outputs; k++) used = used || plan->values[n->first_entry + k].used;
    for (uint32_t k = 0; used && k < n->n_inputs; k++) {
      if (n->inputs[k].node != HEDDLE__ABSENT) users[heddle__entry_id(g, n->inputs[k])]++;
    }
  }
  for (uint32_t i = 0; i < g->n_heads; i++) users[heddle__entry_id(g, g->heads[i])]++;
  for (uint32_t i = 0; i < plan->req.n_keep; i++) {
    heddle__entry e = {plan->req.keep[i].node, plan->req.keep[i].index};
    users[heddle__entry_id(g, e)]++;
  }
  return users;
}

/* Values of a region while it is built. Where the plan's local_of has a number of ours whose id is the one looked for,
 * that is it, whatever earlier regions left there. */
typedef struct builder {
  uint32_t *ids; /* plan values */
  heddle_pvalue *values;
  uint32_t *inside; /* how often nodes of the region use it */
  bool *produced;
  uint32_t count;
} builder;

static uint32_t add_value(builder *b, const heddle__plan *plan, uint32_t id) {
  const heddle__known *known = &plan->values[id].known;
  heddle_pvalue *v = &b->values[b->count];
  v->struct_size = sizeof *v;
  v->dtype = known->dtype;
  v->shape = known->shape;
  v->ndim = (int32_t)known->ndim;
  v->data = known->data;
  v->data_bytes = known->data != NULL ? known->bytes : 0;
  v->open_dims = plan->req.open ? plan->values[id].open_dims : 0;
  b->ids[b->count] = id;
  return b->count++;
}

static int32_t local(builder *b, heddle__plan *plan, uint32_t id) {
  uint32_t i = plan->local_of[id];
  if (i >= b->count || b->ids[i] != id) i = plan->local_of[id] = add_value(b, plan, id);
  return (int32_t)i;
}

static heddle_status add_node(heddle__plan *plan, builder *b, const heddle__node *n, heddle_pnode *out,
                              heddle_error *err) {
  const heddle_graph *g = plan->req.graph;
  int32_t *in = heddle__plan_alloc(plan, n->n_inputs, sizeof *in);
  int32_t *outs = heddle__plan_alloc(plan, n->n_outputs, sizeof *outs);
  if (in == NULL || outs == NULL) return heddle__no_memory(err, "a region");
  for (uint32_t k = 0; k < n->n_inputs; k++) {
    in[k] = -1;
    if (n->inputs[k].node == HEDDLE__ABSENT) continue;
    in[k] = local(b, plan, heddle__entry_id(g, n->inputs[k]));
    b->inside[in[k]]++;
  }
  for (uint32_t k = 0; k < n->n_outputs; k++) {
    outs[k] = local(b, plan, n->first_entry + k);
    b->produced[outs[k]] = true;
    b->values[outs[k]].data = NULL; /* a folded result is still computed */
    b->values[outs[k]].data_bytes = 0;
  }
  out->struct_size = sizeof *out;
  out->opset = n->domain[0] == '\0' ? g->opset : 1;
  const heddle__schema *schema = n->domain[0] == '\0' && plan->schemas != NULL && n->kind == HEDDLE__NODE_OP
                                     ? plan->schemas[n - g->nodes]
                                     : heddle__schema_find(n->domain, n->op, out->opset);
  out->since_version = schema != NULL ? schema->opset_first : 0;
  out->domain = n->domain;
  out->op = n->op;
  out->name = n->name;
  out->attrs = (heddle_parray){n->attrs, n->n_attrs, sizeof *n->attrs};
  out->inputs = in;
  out->outputs = outs;
  out->n_inputs = n->n_inputs;
  out->n_outputs = n->n_outputs;
  return HEDDLE_OK;
}

static heddle_status finish(heddle__plan *plan, builder *b, heddle_pnode *nodes, uint32_t n_nodes,
                            const uint32_t *users, heddle__answer *out, heddle_error *err) {
  heddle_pregion *r = heddle__plan_alloc(plan, 1, sizeof *r);
  int32_t *in = heddle__plan_alloc(plan, b->count, sizeof *in);
  int32_t *outs = heddle__plan_alloc(plan, b->count, sizeof *outs);
  out->inputs = heddle__plan_alloc(plan, b->count, sizeof *out->inputs);
  out->outputs = heddle__plan_alloc(plan, b->count, sizeof *out->outputs);
  if (r == NULL || in == NULL || outs == NULL || out->inputs == NULL || out->outputs == NULL) {
    return heddle__no_memory(err, "a region");
  }
  r->struct_size = sizeof *r;
  r->flags = plan->req.fast ? HEDDLE_REGION_FAST : 0;
  r->nodes = (heddle_parray){nodes, n_nodes, sizeof *nodes};
  r->values = (heddle_parray){b->values, b->count, sizeof *b->values};
  for (uint32_t i = 0; i < b->count; i++) {
    if (!b->produced[i]) {
      in[r->n_inputs] = (int32_t)i;
      out->inputs[r->n_inputs++] = b->ids[i];
    } else if (users == NULL || n_nodes == 1 || users[b->ids[i]] > b->inside[i]) {
      outs[r->n_outputs] = (int32_t)i;
      out->outputs[r->n_outputs++] = b->ids[i];
    }
  }
  r->inputs = in;
  r->outputs = outs;
  out->ask = r;
  return HEDDLE_OK;
}

static heddle_status start(heddle__plan *plan, uint32_t most, builder *b, heddle_error *err) {
  b->ids = heddle__plan_alloc(plan, most, sizeof *b->ids);
  b->values = heddle__plan_alloc(plan, most, sizeof *b->values);
  b->inside = heddle__plan_alloc(plan, most, sizeof *b->inside);
  b->produced = heddle__plan_alloc(plan, most, sizeof *b->produced);
  b->count = 0;
  bool ok = b->ids != NULL && b->values != NULL && b->inside != NULL && b->produced != NULL;
  return ok ? HEDDLE_OK : heddle__no_memory(err, "a region");
}

heddle_status heddle__ask_build(heddle__plan *plan, const uint32_t *nodes, uint32_t n_nodes, const uint32_t *users,
                                heddle__answer *out, heddle_error *err) {
  const heddle_graph *g = plan->req.graph;
  memset(out, 0, sizeof *out);
  uint32_t most = 0;
  for (uint32_t i = 0; i < n_nodes; i++) most += g->nodes[nodes[i]].n_inputs + g->nodes[nodes[i]].n_outputs;
  if (most > g->n_entries) most = g->n_entries;
  if (plan->local_of == NULL) plan->local_of = heddle__plan_alloc(plan, g->n_entries, sizeof *plan->local_of);
  if (plan->local_of == NULL) return heddle__no_memory(err, "a region");
  builder b;
  heddle_status s = start(plan, most, &b, err);
  heddle_pnode *list = heddle__plan_alloc(plan, n_nodes, sizeof *list);
  if (s == HEDDLE_OK && list == NULL) s = heddle__no_memory(err, "a region");
  for (uint32_t i = 0; s == HEDDLE_OK && i < n_nodes; i++) s = add_node(plan, &b, &g->nodes[nodes[i]], &list[i], err);
  return s != HEDDLE_OK ? s : finish(plan, &b, list, n_nodes, users, out, err);
}

heddle_status heddle__ask_reorder(heddle__plan *plan, uint32_t value, heddle_layout a, heddle_layout b,
                                  heddle__answer *out, heddle_error *err) {
  memset(out, 0, sizeof *out);
  builder values;
  heddle_status s = start(plan, 2, &values, err);
  if (s != HEDDLE_OK) return s;
  heddle_pnode *node = heddle__plan_alloc(plan, 1, sizeof *node);
  int32_t *ends = heddle__plan_alloc(plan, 2, sizeof *ends);
  if (node == NULL || ends == NULL) return heddle__no_memory(err, "a Reorder");
  add_value(&values, plan, value);
  values.count = 2;
  values.ids[1] = value; /* layout.c puts the new value here */
  values.values[1] = values.values[0];
  for (int i = 0; i < 2; i++) values.values[i].data = NULL, values.values[i].data_bytes = 0;
  values.values[0].layout = a;
  values.values[1].layout = b;
  values.produced[1] = true;
  ends[0] = 0;
  ends[1] = 1;
  *node = (heddle_pnode){.struct_size = sizeof *node,
                         .opset = 1,
                         .domain = "heddle",
                         .op = "Reorder",
                         .name = plan->values[value].name,
                         .inputs = &ends[0],
                         .outputs = &ends[1],
                         .n_inputs = 1,
                         .n_outputs = 1};
  return finish(plan, &values, node, 1, NULL, out, err);
}

/* ---------------------------------------------------------------- the plugin's answer */

typedef struct sink {
  heddle__plan *plan;
  heddle__answer *answer;
  uint32_t capacity;
} sink;

static const void *copied(heddle__plan *plan, const void *from, size_t count, size_t size) {
  void *to = heddle__plan_alloc(plan, count, size);
  if (to != NULL && from != NULL && count != 0) memcpy(to, from, count * size);
  return to;
}

static heddle_status check_entries(const heddle_pregion *r, const int32_t *entries, uint64_t n, uint32_t width,
                                   heddle_error *err) {
  const uint64_t bad = offer_bad_entry(r, entries, n, width);
  if (entries == NULL || bad == n) return HEDDLE_OK;
  return heddle__fail(err, HEDDLE_EABI, "an offer pairs input %d with output %d of a region with %u and %u",
                      (int)entries[width * bad], (int)entries[width * bad + 1], (unsigned)r->n_inputs,
                      (unsigned)r->n_outputs);
}

static heddle_status take_offer(void *ctx, const heddle_poffer *theirs, heddle_error *err) {
  sink *k = ctx;
  heddle__answer *a = k->answer;
  const heddle_pregion *r = a->ask;
  heddle_poffer o;
  const char *fault = offer_fault(theirs);
  if (fault != NULL) return heddle__fail(err, HEDDLE_EABI, "the plugin broke the contract of op.query: %s", fault);
  memset(&o, 0, sizeof o);
  memcpy(&o, theirs, theirs->struct_size < sizeof o ? theirs->struct_size : sizeof o);
  if (o.in_place == NULL) o.n_in_place = 0;
  if (o.extends == NULL) o.n_extends = 0;
  heddle_status s = check_entries(r, o.in_place, o.n_in_place, OFFER_IN_PLACE, err);
  if (s == HEDDLE_OK) s = check_entries(r, o.extends, o.n_extends, OFFER_EXTENDS, err);
  if (s != HEDDLE_OK) return s;
  if (a->n_offers == k->capacity) {
    uint32_t grown = k->capacity == 0 ? 2 : 2 * k->capacity;
    heddle__offer *more = heddle__plan_alloc(k->plan, grown, sizeof *more);
    if (more == NULL) return heddle__no_memory(err, "an offer");
    if (a->n_offers != 0) memcpy(more, a->offers, a->n_offers * sizeof *more);
    a->offers = more;
    k->capacity = grown;
  }
  heddle__offer *mine = &a->offers[a->n_offers];
  mine->flags = o.flags;
  mine->input_layouts = copied(k->plan, o.input_layouts, r->n_inputs, sizeof *o.input_layouts);
  mine->output_layouts = copied(k->plan, o.output_layouts, r->n_outputs, sizeof *o.output_layouts);
  mine->input_flags = copied(k->plan, o.input_flags, r->n_inputs, sizeof *o.input_flags);
  mine->in_place = copied(k->plan, o.in_place, OFFER_IN_PLACE * o.n_in_place, sizeof *o.in_place);
  mine->n_in_place = o.n_in_place;
  mine->extends = copied(k->plan, o.extends, OFFER_EXTENDS * o.n_extends, sizeof *o.extends);
  mine->n_extends = o.n_extends;
  mine->workspace_bytes = o.workspace_bytes;
  mine->workspace_align = o.workspace_align == 0 ? 1 : o.workspace_align;
  mine->kept_bytes = o.kept_bytes;
  mine->launch_bytes = o.launch_bytes;
  mine->cost_ns = o.cost_ns > 0 && o.cost_ns <= 1e18 ? o.cost_ns : 0; /* what is no time is as if unknown */
  if (mine->input_layouts == NULL || mine->output_layouts == NULL || mine->input_flags == NULL ||
      mine->in_place == NULL || mine->extends == NULL) {
    return heddle__no_memory(err, "an offer");
  }
  for (uint32_t i = 0; i < r->n_inputs; i++) {
    const heddle_pvalue *v = (const heddle_pvalue *)r->values.data + r->inputs[i];
    if ((mine->input_flags[i] & HEDDLE_INPUT_ABSORBED) && v->data == NULL) {
      return heddle__fail(err, HEDDLE_EABI, "an offer absorbs input %u, whose bytes it was not given", (unsigned)i);
    }
  }
  a->n_offers++;
  return HEDDLE_OK;
}

heddle_status heddle__ask_open(heddle_device *dev, heddle_status (*ask)(void *ctx, heddle_error *err), void *ctx,
                               heddle_error *err) {
  heddle_status s = ask(ctx, err);
  if (s != HEDDLE_ENEEDSOPEN) return s;
  s = heddle__device_open(dev, err);
  if (s != HEDDLE_OK) return s;
  s = ask(ctx, err);
  heddle__device_close(dev);
  return s;
}

typedef struct question {
  heddle_device *dev;
  sink answer;
} question;

static heddle_status query(void *ctx, heddle_error *err) {
  question *q = ctx;
  q->answer.answer->n_offers = 0;
  q->answer.capacity = 0;
  return q->dev->t->op.query(q->dev->instance, q->dev->index, q->answer.answer->ask, take_offer, &q->answer, err);
}

heddle_status heddle__ask_device(heddle__plan *plan, heddle_device *dev, heddle__answer *answer, heddle_error *err) {
  const heddle_pnode *first = answer->ask->nodes.data;
  if (!dev->t->has_op) {
    heddle__fail_on(dev->name, err, HEDDLE_EUNSUPPORTED, "node '%s': %s runs no operators", first->name, dev->name);
    return heddle__at_node(HEDDLE_EUNSUPPORTED, err, HEDDLE__NO_NODE, first->name);
  }
  question q = {dev, {plan, answer, 0}};
  if (plan->req.open && dev->t->op.resize != NULL) answer->ask->flags |= HEDDLE_REGION_OPEN;
  else answer->ask->flags &= ~HEDDLE_REGION_OPEN;
  heddle_status s = heddle__plan_watch(plan, first->name, err);
  if (s != HEDDLE_OK) return s;
  if (!heddle__recall_query(plan->req.recall, dev, answer->ask, take_offer, &q.answer, &s, err)) {
    s = heddle__ask_open(dev, query, &q, err);
    heddle__recall_answer(plan->req.recall, dev, answer, s, err);
  }
  if (s == HEDDLE_OK && answer->n_offers == 0) {
    return heddle__at_node(heddle__fail_on(dev->name, err, HEDDLE_EABI,
                                           "node '%s': the plugin of %s accepted it and offered nothing", first->name,
                                           dev->name),
                           err, HEDDLE__NO_NODE, first->name);
  }
  if (s != HEDDLE_OK && s != HEDDLE_EUNSUPPORTED) {
    heddle__prefix_on(dev->name, err, s, "node '%s': asking %s: ", first->name, dev->name);
    return heddle__at_node(s, err, HEDDLE__NO_NODE, first->name);
  }
  return s;
}

heddle_status heddle__ask(heddle__plan *plan, uint32_t device, heddle__answer *answer, heddle_error *err) {
  return heddle__ask_device(plan, plan->devices[device].dev, answer, err);
}
