/* executor/place/survey.c: which device could run which node, alone and in the groups that plugins make. */
#include <string.h>

#include "core/error.h"
#include "executor/place/placement.h"
#include "executor/region_key.h"

static bool is_placed(const heddle__placed *p) {
  return p->device != HEDDLE__NONE && p->ask != NULL; /* views have nothing to ask */
}

/* The item of a region on a device; a new one, or one that is as this. */
static heddle_status add_item(heddle__survey *s, uint32_t device, const heddle__answer *a, bool whole, bool foreign,
                              uint32_t *out, heddle_error *err) {
  if (s->n_items == s->room_items) {
    uint32_t room = s->room_items == 0 ? 64 : 2 * s->room_items;
    heddle__item *more = heddle__plan_alloc(s->plan, room, sizeof *more);
    if (more == NULL) return heddle__no_memory(err, "a placement");
    if (s->n_items > 0) memcpy(more, s->items, s->n_items * sizeof *more);
    s->items = more;
    s->room_items = room;
  }
  heddle__item *i = &s->items[s->n_items];
  *i = (heddle__item){.device = device, .answer = a, .whole = whole, .foreign = foreign};
  i->digest = heddle__region_digest(a->ask, i->label, sizeof i->label);
  i->guess_ns = a->n_offers > 0 ? a->offers[0].cost_ns : 0;
  for (*out = 0; *out < s->n_items; ++*out) {
    heddle__item *old = &s->items[*out];
    if (old->device != device || !heddle__digest_same(&old->digest, &i->digest)) continue;
    old->whole = old->whole || whole;
    return HEDDLE_OK;
  }
  s->n_items++;
  return HEDDLE_OK;
}

static heddle_status start(heddle__survey *s, heddle_error *err) {
  heddle__plan *plan = s->plan;
  for (uint32_t i = 0; i < plan->n_placed; i++) s->n_nodes += is_placed(&plan->placed[i]);
  const size_t pairs = (size_t)s->n_nodes * s->n_devices;
  s->node = heddle__plan_alloc(plan, s->n_nodes, sizeof *s->node);
  s->prefer = heddle__plan_alloc(plan, s->n_nodes, sizeof *s->prefer);
  s->can = heddle__plan_alloc(plan, pairs, sizeof *s->can);
  s->answers = heddle__plan_alloc(plan, pairs, sizeof *s->answers);
  s->item = heddle__plan_alloc(plan, pairs, sizeof *s->item);
  s->group = heddle__plan_alloc(plan, pairs, sizeof *s->group);
  if (!s->node || !s->prefer || !s->can || !s->answers || !s->item || !s->group)
    return heddle__no_memory(err, "a placement");
  for (size_t i = 0; i < pairs; i++) s->group[i] = HEDDLE__NOWHERE;
  uint32_t n = 0;
  for (uint32_t i = 0; i < plan->n_placed; i++) {
    if (!is_placed(&plan->placed[i])) continue;
    s->node[n] = i;
    s->prefer[n++] = plan->placed[i].device;
    s->n_free += plan->placed[i].is_free;
  }
  return HEDDLE_OK;
}

static heddle_status ask_all(heddle__survey *s, heddle_error *err) {
  for (uint32_t i = 0; i < s->n_nodes; i++) {
    heddle__placed *p = &s->plan->placed[s->node[i]];
    for (uint32_t d = 0; d < s->n_devices; d++) {
      const size_t at = (size_t)i * s->n_devices + d;
      if (!p->is_free && d != p->device) continue;
      heddle_error why = {0};
      heddle_status r = heddle__place_ask(s->plan, s->node[i], d, &s->answers[at], &why);
      if (r == HEDDLE_EUNSUPPORTED) continue;
      if (r != HEDDLE_OK) {
        if (err != NULL) *err = why;
        return r;
      }
      s->can[at] = true;
    }
  }
  return HEDDLE_OK;
}

/* Groups of more than one node that a device's plugin makes where all that it can run is there. */
static heddle_status group_on(heddle__survey *s, uint32_t device, heddle_error *err) {
  heddle__plan *plan = s->plan;
  for (uint32_t i = 0; i < s->n_nodes; i++) {
    const size_t at = (size_t)i * s->n_devices + device;
    heddle__placed *p = &plan->placed[s->node[i]];
    p->device = s->can[at] ? device : s->prefer[i];
    if (!s->can[at]) continue;
    p->ask = s->answers[at].ask;
    p->offers = s->answers[at].offers;
    p->n_offers = s->answers[at].n_offers;
  }
  for (uint32_t d = 0; d < s->n_devices; d++) plan->devices[d].used = d == device;
  heddle__grouping all;
  heddle_status r = heddle__group_nodes(plan, &all, err);
  if (r != HEDDLE_OK) return r;
  uint32_t *of = heddle__plan_alloc(plan, all.n_groups, sizeof *of), more = 0;
  for (uint32_t i = 0; i < all.n_groups; i++) more += all.groups[i].count > 1 && all.groups[i].device == device;
  heddle__answer *answers = heddle__plan_alloc(plan, s->n_groups + more, sizeof *answers);
  uint32_t *members = heddle__plan_alloc(plan, s->n_groups + more, sizeof *members);
  if (of == NULL || answers == NULL || members == NULL) return heddle__no_memory(err, "a placement");
  if (s->n_groups > 0) memcpy(answers, s->group_answers, s->n_groups * sizeof *answers);
  if (s->n_groups > 0) memcpy(members, s->members, s->n_groups * sizeof *members);
  s->group_answers = answers;
  s->members = members;
  for (uint32_t i = 0; i < all.n_groups; i++) {
    of[i] = HEDDLE__NOWHERE;
    if (all.groups[i].count < 2 || all.groups[i].device != device) continue;
    members[s->n_groups] = all.groups[i].count;
    answers[s->n_groups] = all.groups[i].answer;
    of[i] = s->n_groups++;
  }
  for (uint32_t i = 0; i < s->n_nodes; i++)
    if (s->can[(size_t)i * s->n_devices + device])
      s->group[(size_t)i * s->n_devices + device] = of[all.group_of[s->node[i]]];
  return HEDDLE_OK;
}

static heddle_status group_all(heddle__survey *s, heddle_error *err) {
  heddle__plan *plan = s->plan;
  heddle__placed *before = heddle__plan_alloc(plan, plan->n_placed, sizeof *before);
  heddle__plan_device *devices = heddle__plan_alloc(plan, plan->n_devices, sizeof *devices);
  if (before == NULL || devices == NULL) return heddle__no_memory(err, "a placement");
  memcpy(before, plan->placed, plan->n_placed * sizeof *before);
  memcpy(devices, plan->devices, plan->n_devices * sizeof *devices);
  heddle_status r = HEDDLE_OK;
  for (uint32_t d = 0; d < s->n_devices && r == HEDDLE_OK; d++) {
    r = group_on(s, d, err);
    memcpy(plan->placed, before, plan->n_placed * sizeof *before);
    memcpy(plan->devices, devices, plan->n_devices * sizeof *devices);
  }
  return r;
}

static heddle_status list_items(heddle__survey *s, heddle_error *err) {
  s->group_item = heddle__plan_alloc(s->plan, s->n_groups, sizeof *s->group_item);
  if (s->group_item == NULL) return heddle__no_memory(err, "a placement");
  heddle_status r = HEDDLE_OK;
  for (uint32_t i = 0; i < s->n_nodes; i++) {
    const bool foreign = s->plan->req.graph->nodes[s->node[i]].kind == HEDDLE__NODE_TVM;
    for (uint32_t d = 0; d < s->n_devices && r == HEDDLE_OK; d++) {
      const size_t at = (size_t)i * s->n_devices + d;
      const uint32_t group = s->group[at];
      if (!s->can[at]) continue;
      r = add_item(s, d, &s->answers[at], group == HEDDLE__NOWHERE, foreign, &s->item[at], err);
      if (r == HEDDLE_OK && group != HEDDLE__NOWHERE)
        r = add_item(s, d, &s->group_answers[group], true, false, &s->group_item[group], err);
    }
  }
  return r;
}

heddle_status heddle__survey_make(const heddle__place_room *room, heddle__plan *plan, heddle__survey *out,
                                  heddle_error *err) {
  *out = (heddle__survey){.room = room, .plan = plan, .n_devices = plan->n_devices};
  heddle_status s = start(out, err);
  if (s != HEDDLE_OK || out->n_free == 0) return s;
  s = ask_all(out, err);
  if (s == HEDDLE_OK) s = group_all(out, err);
  return s == HEDDLE_OK ? list_items(out, err) : s;
}
