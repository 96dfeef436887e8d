/* executor/choose.c: takes one offer for each region, part of the pass layout. A Reorder is made once for all who want a
 * value in a layout, so it is paid once, and offers are chosen together: first along the graph (dynamic programming, a
 * value's cost shared by its users), then by moves that lower the sum: of one region, with what follows around it. */
#include "executor/choose.h"

#include "core/alloc.h"
#include "core/error.h"

/* Estimates, in nanoseconds: what a Reorder costs to start, and per byte moved. They only weigh offers. */
#define REORDER_NS 1500.0
#define REORDER_NS_PER_BYTE 0.1

/* What makes a move worth it, so that rounding cannot repeat the same moves forever; and how often all are tried. */
#define GAIN_NS 1.0
enum { SWEEPS = 8, MOST_MOVES = 64, MOST_USERS = 64 };

/* So many users, of the regions that have taken an offer, want a value in a layout on a device. */
typedef struct want {
  struct want *next;
  heddle_layout layout;
  uint32_t device;
  uint32_t users;
} want;

typedef struct value {
  want *wants;
  heddle_layout layout;       /* by the producer's offer */
  uint32_t home;              /* device of the producer, or HEDDLE__NONE */
  uint32_t users, first_user; /* regions that take it as input: in chooser.users */
  double reorder_ns;
} value;

/* A region that took another offer. */
typedef struct moved {
  heddle__region *region;
  uint32_t before, reserved;
} moved;

typedef struct chooser {
  heddle__plan *plan;
  value *values;
  uint32_t *users;
  uint32_t *first_cost; /* per region: its offers' costs in `costs` */
  double *costs;        /* of a region with an offer and all before it, each divided among its users */
  double change;        /* of the sum, by the moves so far */
  uint32_t n_moves;
  moved moves[MOST_MOVES];
} chooser;

/* ---------------------------------------------------------------- regions: a view has one offer, which is plain */

static uint32_t offers_of(const heddle__region *r) {
  return r->n_offers > 0 ? r->n_offers : 1;
}

static double cost_of(const heddle__region *r, uint32_t offer) {
  return r->n_offers > 0 ? r->offers[offer].cost_ns : 0;
}

static heddle_layout output_layout(const heddle__region *r, uint32_t offer, uint32_t k) {
  return r->n_offers > 0 ? r->offers[offer].output_layouts[k] : 0;
}

/* False for an input that needs no bytes at run time. */
static bool input_layout(const heddle__region *r, uint32_t offer, uint32_t k, heddle_layout *out) {
  *out = r->n_offers > 0 ? r->offers[offer].input_layouts[k] : 0;
  return r->n_offers == 0 || (r->offers[offer].input_flags[k] & HEDDLE_INPUT_ABSORBED) == 0;
}

/* ---------------------------------------------------------------- the sum, and moves */

/* All Reorders of a value. From one layout to another they go through plain (layout.c). */
static double reorders_of(const value *v) {
  double count = 0;
  bool plain = false;
  for (const want *w = v->wants; w != NULL; w = w->next) {
    if (w->users == 0 || (w->layout == v->layout && (w->layout == 0 || w->device == v->home))) continue;
    if (w->layout != 0) count++;
    plain = plain || v->layout != 0;
  }
  return (count + (plain ? 1 : 0)) * v->reorder_ns;
}

static heddle_status add_want(chooser *c, uint32_t number, heddle_layout layout, uint32_t device, uint32_t users,
                              heddle_error *err) {
  value *v = &c->values[number];
  want *w = v->wants;
  while (w != NULL && (w->layout != layout || (layout != 0 && w->device != device))) w = w->next;
  if (w == NULL) {
    w = heddle__plan_alloc(c->plan, 1, sizeof *w);
    if (w == NULL) return heddle__no_memory(err, "the choice of layouts");
    *w = (want){v->wants, layout, device, 0};
    v->wants = w;
  }
  w->users += users;
  return HEDDLE_OK;
}

/* Adds what an offer wants (users 1) or takes it back (users UINT32_MAX). */
static heddle_status apply(chooser *c, const heddle__region *r, uint32_t offer, uint32_t users, heddle_error *err) {
  heddle_status s = HEDDLE_OK;
  heddle_layout layout;
  for (uint32_t k = 0; s == HEDDLE_OK && k < r->n_inputs; k++)
    if (input_layout(r, offer, k, &layout)) s = add_want(c, r->inputs[k], layout, r->device, users, err);
  for (uint32_t k = 0; k < r->n_outputs; k++) c->values[r->outputs[k]].layout = output_layout(r, offer, k);
  return s;
}

static double around(const chooser *c, const heddle__region *r) {
  double sum = cost_of(r, r->offer);
  for (uint32_t k = 0; k < r->n_inputs; k++) sum += reorders_of(&c->values[r->inputs[k]]);
  for (uint32_t k = 0; k < r->n_outputs; k++) sum += reorders_of(&c->values[r->outputs[k]]);
  return sum;
}

static heddle_status move(chooser *c, heddle__region *r, uint32_t offer, heddle_error *err) {
  c->change -= around(c, r);
  heddle_status s = apply(c, r, r->offer, UINT32_MAX, err);
  if (s == HEDDLE_OK) s = apply(c, r, offer, 1, err);
  r->offer = offer;
  c->change += around(c, r);
  return s;
}

/* The best offer of one region where all others stay. */
static heddle_status improve(chooser *c, heddle__region *r, heddle_error *err) {
  const uint32_t old = r->offer;
  uint32_t best = old;
  double least = c->change - GAIN_NS;
  heddle_status s = HEDDLE_OK;
  if (c->n_moves == MOST_MOVES) return s;
  for (uint32_t o = 0; s == HEDDLE_OK && o < offers_of(r); o++) {
    if (o == old) continue;
    s = move(c, r, o, err);
    if (c->change >= least) continue;
    least = c->change;
    best = o;
  }
  if (s == HEDDLE_OK && r->offer != best) s = move(c, r, best, err);
  if (best != old) c->moves[c->n_moves++] = (moved){.region = r, .before = old};
  return s;
}

static heddle_status improve_users(chooser *c, uint32_t number, const heddle__region *but, heddle_error *err) {
  const value *v = &c->values[number];
  heddle_status s = HEDDLE_OK;
  for (uint32_t i = 0; s == HEDDLE_OK && i < v->users && i < MOST_USERS; i++) {
    heddle__region *r = &c->plan->regions[c->users[v->first_user + i]];
    if (r != but) s = improve(c, r, err);
  }
  return s;
}

/* Moves one region and lets those around it follow, those around them, and so on; all goes back where the sum is not
 * lower then. */
static heddle_status try_move(chooser *c, heddle__region *r, uint32_t offer, bool *better, heddle_error *err) {
  c->change = 0;
  c->n_moves = 1;
  c->moves[0] = (moved){.region = r, .before = r->offer};
  heddle_status s = move(c, r, offer, err);
  for (uint32_t i = 0; s == HEDDLE_OK && i < c->n_moves; i++) {
    const heddle__region *at = c->moves[i].region;
    for (uint32_t k = 0; s == HEDDLE_OK && k < at->n_outputs; k++) s = improve_users(c, at->outputs[k], r, err);
    for (uint32_t k = 0; s == HEDDLE_OK && k < at->n_inputs; k++) {
      const heddle__value *v = &c->plan->values[at->inputs[k]];
      if (v->kind == HEDDLE__VALUE_CONSTANT) continue;
      if (v->kind == HEDDLE__VALUE_COMPUTED && &c->plan->regions[v->region] != r)
        s = improve(c, &c->plan->regions[v->region], err);
      if (s == HEDDLE_OK) s = improve_users(c, at->inputs[k], r, err);
    }
  }
  *better = *better || c->change < -GAIN_NS;
  if (c->change < -GAIN_NS) return s;
  while (s == HEDDLE_OK && c->n_moves-- > 0) s = move(c, c->moves[c->n_moves].region, c->moves[c->n_moves].before, err);
  return s;
}

static heddle_status sweep(chooser *c, bool *better, heddle_error *err) {
  heddle_status s = HEDDLE_OK;
  for (uint32_t i = 0; s == HEDDLE_OK && i < c->plan->n_regions; i++) {
    heddle__region *r = &c->plan->regions[i];
    for (uint32_t o = 0; s == HEDDLE_OK && o < offers_of(r); o++)
      if (o != r->offer) s = try_move(c, r, o, better, err);
  }
  return s;
}

/* ---------------------------------------------------------------- along the graph */

/* What it costs to have a value in a layout: the best of its producer's offers, and a share of the Reorder. */
static double cost_to_have(const chooser *c, uint32_t number, heddle_layout layout, uint32_t device) {
  const heddle__value *v = &c->plan->values[number];
  const value *mine = &c->values[number];
  const double reorder = mine->reorder_ns / (mine->users > 0 ? mine->users : 1);
  if (v->kind != HEDDLE__VALUE_COMPUTED) return layout == 0 ? 0 : reorder;
  const heddle__region *p = &c->plan->regions[v->region];
  double users = 0, best = 0;
  uint32_t output = 0;
  for (uint32_t k = 0; k < p->n_outputs; k++) {
    users += c->values[p->outputs[k]].users;
    if (p->outputs[k] == number) output = k;
  }
  for (uint32_t o = 0; o < offers_of(p); o++) {
    const heddle_layout has = output_layout(p, o, output);
    double cost = c->costs[c->first_cost[v->region] + o] / (users > 0 ? users : 1);
    if (has != layout || (has != 0 && p->device != device)) cost += has != 0 && layout != 0 ? 2 * reorder : reorder;
    if (o == 0 || cost < best) best = cost;
  }
  return best;
}

static void forward(chooser *c) {
  for (uint32_t i = 0; i < c->plan->n_regions; i++) {
    const heddle__region *r = &c->plan->regions[i];
    for (uint32_t o = 0; o < offers_of(r); o++) {
      double *cost = &c->costs[c->first_cost[i] + o];
      heddle_layout layout;
      *cost = cost_of(r, o);
      for (uint32_t k = 0; k < r->n_inputs; k++)
        if (input_layout(r, o, k, &layout)) *cost += cost_to_have(c, r->inputs[k], layout, r->device);
    }
  }
}

/* From the end, when those behind have chosen. */
static heddle_status backward(chooser *c, heddle_error *err) {
  heddle_status s = HEDDLE_OK;
  for (uint32_t i = c->plan->n_regions; s == HEDDLE_OK && i-- > 0;) {
    heddle__region *r = &c->plan->regions[i];
    double best = 0;
    for (uint32_t o = 0; o < offers_of(r); o++) {
      double cost = c->costs[c->first_cost[i] + o];
      for (uint32_t k = 0; k < r->n_outputs; k++) {
        c->values[r->outputs[k]].layout = output_layout(r, o, k);
        cost += reorders_of(&c->values[r->outputs[k]]);
      }
      if (o > 0 && cost >= best) continue;
      best = cost;
      r->offer = o;
    }
    s = apply(c, r, r->offer, 1, err);
  }
  return s;
}

/* ---------------------------------------------------------------- for memory */

static bool is_plain(const heddle__region *r, uint32_t offer) {
  const heddle__offer *o = &r->offers[offer];
  bool plain = true;
  for (uint32_t k = 0; k < r->n_inputs; k++) plain = plain && o->input_layouts[k] == 0;
  for (uint32_t k = 0; k < r->n_outputs; k++) plain = plain && o->output_layouts[k] == 0;
  return plain;
}

/* Of the offers in plain layouts the one with the smallest workspace; the first one where none is plain. */
static void take_plain(heddle__region *r) {
  const heddle__offer *best = NULL;
  r->offer = 0;
  for (uint32_t o = 0; o < r->n_offers; o++) {
    if (!is_plain(r, o) || (best != NULL && r->offers[o].workspace_bytes >= best->workspace_bytes)) continue;
    best = &r->offers[o];
    r->offer = o;
  }
}

/* ---------------------------------------------------------------- the whole */

/* Constants are packed before the first run; heads and kept values are wanted plain. */
static heddle_status describe(chooser *c, heddle_error *err) {
  const heddle__plan *plan = c->plan;
  const heddle_graph *g = plan->req.graph;
  heddle_status s = HEDDLE_OK;
  uint32_t offers = 0, users = 0;
  for (uint32_t i = 0; i < plan->n_regions; i++) {
    const heddle__region *r = &plan->regions[i];
    c->first_cost[i] = offers;
    offers += offers_of(r);
    for (uint32_t k = 0; k < r->n_inputs; k++) c->values[r->inputs[k]].users++;
    for (uint32_t k = 0; k < r->n_outputs; k++) c->values[r->outputs[k]].home = r->device;
  }
  for (uint32_t i = 0; i < plan->n_values; i++) {
    value *v = &c->values[i];
    const heddle__value *from = &plan->values[i];
    v->first_user = users;
    users += v->users;
    v->users = 0;
    if (from->kind != HEDDLE__VALUE_COMPUTED) v->home = HEDDLE__NONE;
    if (from->kind != HEDDLE__VALUE_CONSTANT)
      v->reorder_ns = REORDER_NS + REORDER_NS_PER_BYTE * (double)from->known.bytes;
  }
  for (uint32_t i = 0; i < g->n_heads + plan->req.n_keep && s == HEDDLE_OK; i++) {
    const heddle__entry e =
        i < g->n_heads ? g->heads[i]
                       : (heddle__entry){plan->req.keep[i - g->n_heads].node, plan->req.keep[i - g->n_heads].index};
    s = add_want(c, heddle__entry_id(g, e), 0, HEDDLE__NONE, 1, err);
  }
  c->users = heddle__alloc((size_t)users + 1, sizeof *c->users);
  c->costs = heddle__alloc((size_t)offers + 1, sizeof *c->costs);
  if (s != HEDDLE_OK) return s;
  if (c->users == NULL || c->costs == NULL) return heddle__no_memory(err, "the choice of layouts");
  for (uint32_t i = 0; i < plan->n_regions; i++)
    for (uint32_t k = 0; k < plan->regions[i].n_inputs; k++) {
      value *v = &c->values[plan->regions[i].inputs[k]];
      c->users[v->first_user + v->users++] = i;
    }
  return HEDDLE_OK;
}

heddle_status heddle__choose_offers(heddle__plan *plan, heddle_error *err) {
  if (plan->req.plain) {
    for (uint32_t i = 0; i < plan->n_regions; i++) take_plain(&plan->regions[i]);
    return HEDDLE_OK;
  }
  chooser c = {.plan = plan};
  c.values = heddle__alloc((size_t)plan->n_values + 1, sizeof *c.values);
  c.first_cost = heddle__alloc((size_t)plan->n_regions + 1, sizeof *c.first_cost);
  heddle_status s =
      c.values != NULL && c.first_cost != NULL ? describe(&c, err) : heddle__no_memory(err, "the choice of layouts");
  if (s == HEDDLE_OK) {
    forward(&c);
    s = backward(&c, err);
  }
  bool better = true;
  for (int i = 0; s == HEDDLE_OK && better && i < SWEEPS; i++) {
    better = false;
    s = sweep(&c, &better, err);
  }
  heddle__free(c.costs);
  heddle__free(c.users);
  heddle__free(c.first_cost);
  heddle__free(c.values);
  return s;
}
