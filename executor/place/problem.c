/* executor/place/problem.c: nodes, values and devices of a plan as the numbers that the search wants. */
#include <string.h>

#include "core/error.h"
#include "core/alloc.h"
#include "executor/place/placement.h"

typedef struct builder {
  const heddle__survey *s;
  heddle__problem *p;
  uint32_t *flow_of; /* per entry of the graph: its flow, or that of what it is a view of; NOWHERE: a constant */
  heddle__flow *flows;
  uint32_t *first_in, *in, *first_out, *out;
} builder;

/* ---- costs */

/* A node's part of its group's time, by what the nodes would take apart. The group takes no longer than they: where it
 * was measured to, one of the measurements had bad luck, and no placement is to rest on that. */
static double part_of(const heddle__survey *s, uint32_t node, uint32_t device) {
  const uint32_t group = s->group[(size_t)node * s->n_devices + device];
  double sum = 0;
  for (uint32_t i = 0; i < s->n_nodes; i++) {
    const size_t at = (size_t)i * s->n_devices + device;
    if (s->group[at] == group) sum += s->items[s->item[at]].time.ns;
  }
  const double mine = s->items[s->item[(size_t)node * s->n_devices + device]].time.ns;
  const double whole = s->items[s->group_item[group]].time.ns;
  if (sum <= 0) return 1.0 / s->members[group];
  return mine / (whole > sum ? whole : sum);
}

static heddle_status add_costs(builder *b, heddle_error *err) {
  const heddle__survey *s = b->s;
  const size_t pairs = (size_t)s->n_nodes * s->n_devices;
  heddle__cost *alone = heddle__plan_alloc(s->plan, pairs, sizeof *alone);
  heddle__cost *joint = heddle__plan_alloc(s->plan, pairs, sizeof *joint);
  if (alone == NULL || joint == NULL) return heddle__no_memory(err, "a placement");
  for (uint32_t i = 0; i < s->n_nodes; i++)
    for (uint32_t d = 0; d < s->n_devices; d++) {
      const size_t at = (size_t)i * s->n_devices + d;
      if (!s->can[at]) continue;
      const heddle__item *x = &s->items[s->item[at]];
      alone[at] = (heddle__cost){x->time.ns, x->time.margin, s->item[at]};
      if (s->group[at] == HEDDLE__NOWHERE) continue;
      const heddle__item *whole = &s->items[s->group_item[s->group[at]]];
      const double part = part_of(s, i, d);
      joint[at] = (heddle__cost){whole->time.ns * part, whole->time.margin * part, s->group_item[s->group[at]]};
    }
  b->p->alone = alone;
  b->p->joint = s->n_groups > 0 ? joint : NULL;
  b->p->group = s->group;
  b->p->members = s->members;
  b->p->n_groups = s->n_groups;
  b->p->can = s->can;
  return HEDDLE_OK;
}

/* ---- devices */

/* Devices that compute on the host's cores take them from each other, whichever threads they have. */
static heddle_status add_devices(builder *b, heddle_error *err) {
  const heddle__survey *s = b->s;
  const uint32_t n = s->n_devices, sites = n + 1;
  uint32_t *site = heddle__plan_alloc(s->plan, n, sizeof *site), *lane = heddle__plan_alloc(s->plan, n, sizeof *lane);
  heddle__link *links = heddle__plan_alloc(s->plan, (size_t)sites * sites, sizeof *links);
  if (site == NULL || lane == NULL || links == NULL) return heddle__no_memory(err, "a placement");
  heddle_device *inside = NULL, *at[2]; /* in the host's memory */
  for (uint32_t d = 0; d < n; d++) {
    const heddle__plan_device *x = &s->plan->devices[d];
    const bool on_host = x->is_inline || (!s->room->overlap && (x->dev->desc.caps & HEDDLE_CAP_HOST_CORES) != 0);
    if (x->is_inline && inside == NULL) inside = x->dev;
    site[d] = x->is_inline ? 0 : d + 1;
    lane[d] = on_host ? 0 : d + 1;
  }
  for (uint32_t from = 0; from < sites; from++)
    for (uint32_t to = 0; to < sites; to++) {
      if (from == to || (from > 0 && site[from - 1] == 0) || (to > 0 && site[to - 1] == 0)) continue;
      heddle__hop hop = {0, 0, false};
      at[0] = from > 0 ? s->plan->devices[from - 1].dev : inside;
      at[1] = to > 0 ? s->plan->devices[to - 1].dev : inside;
      heddle_status r = heddle__placer_hop(at[0], at[1], s->room->measuring != HEDDLE__MEASURE_NOTHING, &hop, err);
      if (r != HEDDLE_OK) return r;
      links[from * sites + to] = (heddle__link){hop.latency_ns, hop.ns_per_byte, hop.measured ? 0.1 : 0.5};
    }
  b->p->site = site;
  b->p->lane = lane;
  b->p->links = links;
  b->p->n_sites = b->p->n_lanes = sites;
  return HEDDLE_OK;
}

/* ---- values */

/* Gives entries their flows, nodes in their order, so that a view finds that of what it is a view of. */
static void number_flows(builder *b) {
  const heddle__plan *plan = b->s->plan;
  const heddle_graph *g = plan->req.graph;
  uint32_t n = 0;
  for (uint32_t i = 0; i < g->n_entries; i++) b->flow_of[i] = HEDDLE__NOWHERE;
  for (uint32_t i = 0; i < g->n_nodes; i++) {
    const heddle__node *node = &g->nodes[i];
    const uint32_t first = node->first_entry;
    const heddle__placed *placed = &plan->placed[i];
    const bool is_view = placed->device != HEDDLE__NONE && placed->ask == NULL;
    if (is_view && node->inputs[0].node != HEDDLE__ABSENT) {
      b->flow_of[first] = b->flow_of[heddle__entry_id(g, node->inputs[0])];
      continue;
    }
    for (uint32_t k = 0; k < node->n_outputs; k++) {
      const heddle__value *v = &plan->values[first + k];
      if (!v->used || v->kind == HEDDLE__VALUE_CONSTANT) continue;
      if (v->kind == HEDDLE__VALUE_COMPUTED && placed->device == HEDDLE__NONE) continue;
      b->flows[n] = (heddle__flow){.bytes = (double)v->known.bytes, .producer = HEDDLE__NOWHERE};
      b->flow_of[first + k] = n++;
    }
  }
  b->p->n_flows = n;
}

static void mark_head(builder *b, heddle__entry e) {
  const uint32_t flow = b->flow_of[heddle__entry_id(b->s->plan->req.graph, e)];
  if (flow != HEDDLE__NOWHERE && b->flows[flow].producer != HEDDLE__NOWHERE) b->flows[flow].head = true;
}

static void connect(builder *b) {
  const heddle__survey *s = b->s;
  const heddle_graph *g = s->plan->req.graph;
  uint32_t n_in = 0, n_out = 0;
  for (uint32_t i = 0; i < s->n_nodes; i++) {
    const heddle__node *node = &g->nodes[s->node[i]];
    b->first_in[i] = n_in;
    b->first_out[i] = n_out;
    for (uint32_t k = 0; k < node->n_inputs; k++) {
      if (node->inputs[k].node == HEDDLE__ABSENT) continue;
      const uint32_t flow = b->flow_of[heddle__entry_id(g, node->inputs[k])];
      bool again = flow == HEDDLE__NOWHERE;
      for (uint32_t j = b->first_in[i]; j < n_in; j++) again = again || b->in[j] == flow;
      if (!again) b->in[n_in++] = flow;
    }
    for (uint32_t k = 0; k < node->n_outputs; k++) {
      const uint32_t flow = b->flow_of[node->first_entry + k];
      if (flow == HEDDLE__NOWHERE) continue;
      b->flows[flow].producer = i;
      b->out[n_out++] = flow;
    }
  }
  b->first_in[s->n_nodes] = n_in;
  b->first_out[s->n_nodes] = n_out;
}

static heddle_status add_flows(builder *b, heddle_error *err) {
  const heddle__survey *s = b->s;
  const heddle_graph *g = s->plan->req.graph;
  size_t edges = 0;
  for (uint32_t i = 0; i < s->n_nodes; i++) edges += g->nodes[s->node[i]].n_inputs;
  b->flow_of = heddle__plan_alloc(s->plan, g->n_entries, sizeof *b->flow_of);
  b->flows = heddle__plan_alloc(s->plan, g->n_entries, sizeof *b->flows);
  b->first_in = heddle__plan_alloc(s->plan, (size_t)s->n_nodes + 1, sizeof *b->first_in);
  b->first_out = heddle__plan_alloc(s->plan, (size_t)s->n_nodes + 1, sizeof *b->first_out);
  b->in = heddle__plan_alloc(s->plan, edges, sizeof *b->in);
  b->out = heddle__plan_alloc(s->plan, g->n_entries, sizeof *b->out);
  if (!b->flow_of || !b->flows || !b->first_in || !b->first_out || !b->in || !b->out)
    return heddle__no_memory(err, "a placement");
  number_flows(b);
  connect(b);
  for (uint32_t i = 0; i < g->n_heads; i++) mark_head(b, g->heads[i]);
  for (uint32_t i = 0; i < s->plan->req.n_keep; i++) mark_head(b, s->plan->req.keep[i]);
  b->p->flows = b->flows;
  b->p->first_in = b->first_in;
  b->p->in = b->in;
  b->p->first_out = b->first_out;
  b->p->out = b->out;
  return HEDDLE_OK;
}

heddle_status heddle__survey_problem(const heddle__survey *s, heddle__problem *out, heddle_error *err) {
  *out =
      (heddle__problem){.n_nodes = s->n_nodes, .n_devices = s->n_devices, .alloc = heddle__alloc, .free = heddle__free};
  builder b = {.s = s, .p = out};
  heddle_status r = add_costs(&b, err);
  if (r == HEDDLE_OK) r = add_devices(&b, err);
  return r == HEDDLE_OK ? add_flows(&b, err) : r;
}
