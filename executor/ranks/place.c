/* executor/ranks/place.c: which device of which rank each node runs on. Strongest first: rules, annotations, automatic
 * placement where the caller wishes it, the order of preference. A device is asked by its own rank; the answers go to all
 * ranks, so that all place alike. */
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/error.h"
#include "core/failure.h"
#include "core/sheet.h"
#include "executor/ask.h"
#include "executor/ranks/own.h"

#define UNSUPPORTED UINT64_MAX

typedef struct placer {
  heddle_model *m;
  heddle__spread *s;
  const heddle_graph *g;
  heddle__plan *plan; /* as far as it is inferred */
  heddle__order *order;
  uint32_t *free_nodes; /* that no rule and no annotation places, in order */
  uint32_t n_free;
  uint64_t *costs; /* rows of nanoseconds per free node, or UNSUPPORTED: of devices whose ranks say different things */
  const uint64_t **row_of; /* per device */
  uint64_t *
      crossing; /* per free node: nanoseconds of the message with all values that are made before it and read from it on */
} placer;

static bool is_used(const placer *p, uint32_t node) {
  const heddle__node *n = &p->g->nodes[node];
  for (uint32_t k = 0; k < n->n_outputs; k++)
    if (p->plan->values[n->first_entry + k].used) return true;
  return false;
}

/* ---- shapes, and what rules and annotations say */

static heddle_status infer(placer *p, heddle_error *err) {
  const heddle_graph *g = p->g;
  const heddle_tensor **values = heddle__alloc(g->n_args, sizeof *values);
  bool *late = heddle__alloc(g->n_args, sizeof *late);
  heddle_status s = values != NULL && late != NULL ? HEDDLE_OK : heddle__no_memory(err, "shapes");
  if (s == HEDDLE_OK) s = heddle__order_make(p->m, &(heddle__wish){.values = values, .late = late}, &p->order, err);
  if (s == HEDDLE_OK) s = heddle__plan_infer(&p->order->req, &p->plan, err);
  heddle__free(values);
  heddle__free(late);
  if (s == HEDDLE_EINVAL || s == HEDDLE_EUNSUPPORTED)
    return heddle__prefix(err, s, "a model over ranks needs shapes that are known when it is made: ");
  return s;
}

static heddle_status place_fixed(placer *p, uint32_t node, heddle_error *err) {
  heddle__spread *s = p->s;
  const heddle__node *n = &p->g->nodes[node];
  for (uint32_t i = s->n_rules; i-- > 0;)
    if (fnmatch(s->rules[i].pattern, n->name, 0) == 0) {
      s->device_of[node] = s->rules[i].device;
      s->fixed[node] = true;
      return HEDDLE_OK;
    }
  if (n->device == NULL || s->ignore_annotations) return HEDDLE_OK;
  s->device_of[node] = heddle__spread_find(s, n->device);
  s->fixed[node] = true;
  if (s->device_of[node] != HEDDLE__NONE) return HEDDLE_OK;
  return heddle__at_node(
      heddle__fail(err, HEDDLE_ENODEV,
                   "%s: node '%s' is annotated for device '%s', which no rank has among the devices in use: add it to "
                   "the list, place the node with a rule, or ignore the annotations",
                   p->g->source, n->name, n->device),
      err, node, n->name);
}

/* ---- what devices say of the other nodes */

static uint64_t cost_of(const placer *p, uint32_t node, const heddle__answer *a) {
  const heddle__node *n = &p->g->nodes[node];
  double best = 0;
  for (uint32_t i = 0; i < a->n_offers; i++)
    if (a->offers[i].cost_ns > 0 && (best <= 0 || a->offers[i].cost_ns < best)) best = a->offers[i].cost_ns;
  if (best > 0 && best < 1e15) return (uint64_t)best + 1;
  uint64_t bytes = 0; /* as docs/placement.md says of estimates */
  for (uint32_t k = 0; k < n->n_inputs; k++)
    if (n->inputs[k].node != HEDDLE__ABSENT) bytes += p->plan->values[heddle__entry_id(p->g, n->inputs[k])].known.bytes;
  for (uint32_t k = 0; k < n->n_outputs; k++) bytes += p->plan->values[n->first_entry + k].known.bytes;
  return 5000 + bytes / 4;
}

/* This rank's own devices: a line each, a number or '-' per free node. */
static heddle_status ask_own(placer *p, heddle__sheet *sheet, heddle_error *err) {
  const heddle__spread *s = p->s;
  uint32_t own = 0;
  heddle_status status = HEDDLE_OK;
  for (uint32_t d = 0; d < s->n_devices && status == HEDDLE_OK; d++) {
    if (s->devices[d].rank != s->ranks->comm.rank) continue;
    for (uint32_t i = 0; i < p->n_free && status == HEDDLE_OK; i++) {
      heddle__answer a;
      heddle_error why = {0};
      status = heddle__plan_watch(p->plan, p->g->nodes[p->free_nodes[i]].name, err);
      if (status != HEDDLE_OK) break;
      heddle_status asked = heddle__place_ask(p->plan, p->free_nodes[i], own, &a, &why);
      /* The order of preference needs no times, which differ between machines. */
      if (asked == HEDDLE_OK)
        heddle__say(sheet, "%llu ", s->automatic ? (unsigned long long)cost_of(p, p->free_nodes[i], &a) : 1ULL);
      else if (asked == HEDDLE_EUNSUPPORTED) heddle__say_text(sheet, "- ");
      else {
        status = asked;
        if (err != NULL) *err = why;
      }
    }
    own++;
    heddle__say_text(sheet, "\n");
  }
  if (status == HEDDLE_OK && sheet->failed) status = heddle__no_memory(err, "what devices support");
  return status;
}

static bool read_row(const placer *p, const char **text, uint64_t *row) {
  for (uint32_t i = 0; i < p->n_free; i++) {
    char *end = NULL;
    row[i] = UNSUPPORTED;
    if ((*text)[0] == '-') ++*text;
    else {
      row[i] = strtoull(*text, &end, 10);
      if (end == *text) return false;
      *text = end;
    }
    if (*(*text)++ != ' ') return false;
  }
  return *(*text)++ == '\n';
}

/* Ranks that say the same share their text: its rows are read once. */
static heddle_status read_costs(placer *p, char *const *texts, heddle_error *err) {
  const heddle__spread *s = p->s;
  const uint32_t n = s->ranks->comm.size;
  const char **at = heddle__alloc(n, sizeof *at);
  uint32_t *like = heddle__alloc(n, sizeof *like), *seen = heddle__alloc(s->n_devices, sizeof *seen);
  uint32_t *count = heddle__alloc(n, sizeof *count);
  p->row_of = heddle__alloc(s->n_devices, sizeof *p->row_of);
  heddle_status status = HEDDLE_OK;
  size_t rows = 0;
  if (at == NULL || like == NULL || seen == NULL || count == NULL || p->row_of == NULL)
    status = heddle__no_memory(err, "what devices support");
  for (uint32_t r = 0; r < n && status == HEDDLE_OK; r++) {
    at[r] = texts[r];
    while (texts[like[r]] != texts[r]) like[r]++;
  }
  for (uint32_t d = 0; d < s->n_devices && status == HEDDLE_OK;
       d++) { /* the rows of each text, in the order of devices */
    seen[d] = count[s->devices[d].rank]++;
    rows += like[s->devices[d].rank] == s->devices[d].rank;
  }
  if (status == HEDDLE_OK) p->costs = heddle__alloc(rows * p->n_free, sizeof *p->costs);
  if (status == HEDDLE_OK && p->costs == NULL) status = heddle__no_memory(err, "what devices support");
  rows = 0;
  bool good = true;
  for (uint32_t d = 0; d < s->n_devices && good && status == HEDDLE_OK; d++) {
    const uint32_t r = s->devices[d].rank;
    if (like[r] != r) continue;
    uint64_t *row = p->costs + rows++ * p->n_free;
    good = read_row(p, &at[r], row);
    p->row_of[d] = row;
  }
  for (uint32_t d = 0; d < s->n_devices && good && status == HEDDLE_OK; d++) {
    const uint32_t r = like[s->devices[d].rank];
    if (p->row_of[d] != NULL) continue;
    const uint64_t *row = NULL;
    for (uint32_t o = 0; o < s->n_devices && row == NULL; o++)
      if (s->devices[o].rank == r && seen[o] == seen[d]) row = p->row_of[o];
    p->row_of[d] = row;
    good = row != NULL;
  }
  heddle__free(at);
  heddle__free(like);
  heddle__free(seen);
  heddle__free(count);
  if (status != HEDDLE_OK || good) return status;
  return heddle__fail(err, HEDDLE_EFORMAT, "a rank sent something else than what its devices support");
}

static heddle_status ask_all(placer *p, heddle_error *err) {
  heddle__sheet sheet = {0};
  char **texts = NULL;
  heddle_status status = ask_own(p, &sheet, err);
  if (status == HEDDLE_OK)
    status =
        heddle__ranks_agree(p->s->ranks, "the placement of a model", sheet.text != NULL ? sheet.text : "", &texts, err);
  if (status == HEDDLE_OK) status = read_costs(p, texts, err);
  heddle__free(texts);
  heddle__free(sheet.text);
  return status;
}

static heddle_status no_device(const placer *p, uint32_t node, heddle_error *err) {
  const heddle__node *n = &p->g->nodes[node];
  return heddle__at_node(heddle__fail(err, HEDDLE_EUNSUPPORTED, "%s: no device of any rank runs node '%s' (%s)",
                                      p->g->source, n->name, n->op),
                         err, node, n->name);
}

/* ---- the order of preference */

static heddle_status prefer(placer *p, heddle_error *err) {
  for (uint32_t i = 0; i < p->n_free; i++) {
    uint32_t d = 0;
    while (d < p->s->n_devices && p->row_of[d][i] == UNSUPPORTED) d++;
    if (d == p->s->n_devices) return no_device(p, p->free_nodes[i], err);
    p->s->device_of[p->free_nodes[i]] = d;
  }
  return HEDDLE_OK;
}

/* ---- automatic placement: a pipeline. Nodes in the graph's order go to devices in the list's, so that the largest sum of
 * times is the least. Where the rank changes, the message with the values that are needed further on counts. */

/* The values that free nodes make: per entry, the node that made its memory, and the last one that reads it. */
static heddle_status cross(placer *p, const heddle__link *link, heddle_error *err) {
  const heddle_graph *g = p->g;
  uint32_t *number = heddle__alloc(g->n_nodes, sizeof *number), *root = heddle__alloc(g->n_entries, sizeof *root);
  uint32_t *maker = heddle__alloc(g->n_entries, sizeof *maker), *last = heddle__alloc(g->n_entries, sizeof *last);
  p->crossing = heddle__alloc((size_t)p->n_free + 1, sizeof *p->crossing);
  const bool room = number != NULL && root != NULL && maker != NULL && last != NULL && p->crossing != NULL;
  for (uint32_t i = 0; room && i < p->n_free; i++) number[p->free_nodes[i]] = i + 1; /* 0: nothing is known of it */
  for (uint32_t i = 0; room && i < g->n_nodes; i++) {
    const heddle__node *n = &g->nodes[i];
    const bool is_view = heddle__node_is_view(g, n) && n->n_inputs > 0 && n->inputs[0].node != HEDDLE__ABSENT;
    for (uint32_t k = 0; k < n->n_outputs; k++) {
      const uint32_t entry = n->first_entry + k;
      root[entry] = is_view ? root[heddle__entry_id(g, n->inputs[0])] : entry;
      maker[entry] = number[i];
    }
    for (uint32_t k = 0; k < n->n_inputs && number[i] != 0; k++)
      if (n->inputs[k].node != HEDDLE__ABSENT) last[root[heddle__entry_id(g, n->inputs[k])]] = number[i];
  }
  for (uint32_t e = 0; room && e < g->n_entries; e++)
    if (maker[e] != 0 && last[e] > maker[e]) { /* numbers are from 1 */
      p->crossing[maker[e]] += p->plan->values[e].known.bytes;
      p->crossing[last[e]] -= p->plan->values[e].known.bytes;
    }
  uint64_t bytes = 0;
  for (uint32_t i = 0; room && i < p->n_free; i++) {
    bytes += p->crossing[i];
    p->crossing[i] = bytes > 0 ? link->ns + bytes / 1000 * link->ps_a_byte : 0;
  }
  heddle__free(number);
  heddle__free(root);
  heddle__free(maker);
  heddle__free(last);
  return room ? HEDDLE_OK : heddle__no_memory(err, "the messages of a placement");
}

/* Whether no device has more than most; takes: writes the placement. */
static bool fits(placer *p, uint64_t most, bool takes) {
  const heddle__rank_device *devices = p->s->devices;
  uint32_t d = 0, rank = HEDDLE__NONE;
  uint64_t used = 0;
  bool is_first = true; /* of its device */
  for (uint32_t i = 0; i < p->n_free; i++) {
    for (;; d++, is_first = true) {
      if (d == p->s->n_devices) return false;
      const uint64_t cost = p->row_of[d][i];
      if (is_first) used = i > 0 && devices[d].rank != rank ? p->crossing[i] : 0;
      if (cost <= most && used <= most - cost) {
        used += cost;
        break;
      }
      if (cost == UNSUPPORTED && d + 1 == p->s->n_devices) return false;
    }
    is_first = false;
    rank = devices[d].rank;
    if (!takes) continue;
    p->s->device_of[p->free_nodes[i]] = d;
    p->s->fixed[p->free_nodes[i]] = true;
  }
  return true;
}

static heddle_status spread_evenly(placer *p, heddle_error *err) {
  heddle__link link = {0};
  uint64_t low = 0, high = UINT64_C(1) << 50;
  heddle_status s = p->s->measures ? heddle__ranks_link(p->s->ranks, &link, err) : HEDDLE_OK;
  if (s == HEDDLE_OK) s = cross(p, &link, err);
  if (s != HEDDLE_OK) return s;
  if (!fits(p, high, false)) return prefer(p, err); /* no pipeline in this order: a device lacks an operator */
  while (low < high) {
    const uint64_t middle = low + (high - low) / 2;
    if (fits(p, middle, false)) high = middle;
    else low = middle + 1;
  }
  (void)fits(p, high, true);
  return HEDDLE_OK;
}

/* ---- all of it */

static heddle_status place_nodes(placer *p, heddle_error *err) {
  heddle__spread *s = p->s;
  const heddle_graph *g = p->g;
  heddle_status status = HEDDLE_OK;
  for (uint32_t i = 0; i < g->n_nodes && status == HEDDLE_OK; i++) {
    s->device_of[i] = HEDDLE__NONE;
    if (g->nodes[i].kind == HEDDLE__NODE_NULL || !is_used(p, i)) continue;
    status = place_fixed(p, i, err);
    if (status == HEDDLE_OK && !s->fixed[i] && !heddle__node_is_view(g, &g->nodes[i])) p->free_nodes[p->n_free++] = i;
  }
  if (status == HEDDLE_OK && p->n_free > 0) status = ask_all(p, err);
  if (status == HEDDLE_OK && p->n_free > 0) status = s->automatic ? spread_evenly(p, err) : prefer(p, err);
  for (uint32_t i = 0; i < g->n_nodes && status == HEDDLE_OK; i++) { /* views follow what they are views of */
    const heddle__node *n = &g->nodes[i];
    if (n->kind == HEDDLE__NODE_NULL || s->device_of[i] != HEDDLE__NONE || !is_used(p, i)) continue;
    const uint32_t source = n->n_inputs > 0 ? n->inputs[0].node : HEDDLE__ABSENT;
    s->device_of[i] = source != HEDDLE__ABSENT && s->device_of[source] != HEDDLE__NONE ? s->device_of[source] : 0;
  }
  return status;
}

heddle_status heddle__spread_place(heddle_model *m, uint32_t *rank_of, heddle_error *err) {
  heddle__spread *s = m->spread;
  const heddle_graph *g = m->graph;
  placer p = {.m = m, .s = s, .g = g, .free_nodes = heddle__alloc(g->n_nodes, sizeof *p.free_nodes)};
  s->device_of = heddle__alloc(g->n_nodes, sizeof *s->device_of);
  s->fixed = heddle__alloc(g->n_nodes, sizeof *s->fixed);
  s->types = heddle__alloc(g->n_entries, sizeof *s->types);
  s->n_entries = g->n_entries;
  heddle_status status = p.free_nodes != NULL && s->device_of != NULL && s->fixed != NULL && s->types != NULL
                             ? infer(&p, err)
                             : heddle__no_memory(err, "a placement over ranks");
  if (status == HEDDLE_OK) status = place_nodes(&p, err);
  for (uint32_t i = 0; i < g->n_nodes && status == HEDDLE_OK; i++)
    rank_of[i] = s->device_of[i] != HEDDLE__NONE ? s->devices[s->device_of[i]].rank : 0;
  for (uint32_t i = 0; i < g->n_entries && status == HEDDLE_OK; i++) {
    s->types[i] = p.plan->values[i].known;
    s->types[i].data = NULL; /* the plan's */
  }
  heddle__plan_free(p.plan);
  heddle__order_free(p.order);
  heddle__free(p.free_nodes);
  heddle__free(p.costs);
  heddle__free(p.crossing);
  heddle__free((void *)(uintptr_t)p.row_of);
  return status;
}
