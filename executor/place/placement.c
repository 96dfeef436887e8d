/* executor/place/placement.c: settings, and the steps from a plan whose nodes have
 * the devices of the order of preference to one whose nodes are where a run is predicted to be shortest. */
#include "executor/place/placement.h"

#include <string.h>

#include "core/alloc.h"
#include "core/error.h"
#include "core/registry.h"

enum { DEFAULT_LIMIT = 64 << 20, DEFAULT_SECONDS = 10, MOST_SECONDS = 3600, MOST_WHOLE = 6561 };

/* ---- settings */

static bool is_off(const char *word) {
  return strcmp(word, "0") == 0 || strcmp(word, "off") == 0 || strcmp(word, "none") == 0 || strcmp(word, "no") == 0 ||
         strcmp(word, "false") == 0;
}

static bool is_on(const char *word) {
  return strcmp(word, "1") == 0 || strcmp(word, "on") == 0 || strcmp(word, "yes") == 0 || strcmp(word, "true") == 0;
}

static heddle_status wrong(const char *key, const char *value, const char *from, const char *what, heddle_error *err) {
  return heddle__fail(err, HEDDLE_EINVAL, "the setting %s is %s, not '%.100s' (from %s)", key, what, value, from);
}

/* Leaves *out as it is where it is not set. */
static heddle_status read_switch(const heddle__place_room *room, const char *key, bool *out, heddle_error *err) {
  const char *value, *from;
  if (!heddle__config_get(room->ctx->config, key, &value, &from)) return HEDDLE_OK;
  *out = is_on(value);
  if (*out || is_off(value)) return HEDDLE_OK;
  return wrong(key, value, from, "1 or 0", err);
}

static heddle_status read_settings(heddle__place_room *room, heddle_error *err) {
  const heddle__config *config = room->ctx->config;
  const char *value, *from;
  int64_t seconds = 0;
  room->measuring = HEDDLE__MEASURE_MISSING;
  if (heddle__config_get(config, "place.measure", &value, &from)) {
    if (is_off(value)) room->measuring = HEDDLE__MEASURE_NOTHING;
    else if (strcmp(value, "again") == 0) room->measuring = HEDDLE__MEASURE_AGAIN;
    else if (!is_on(value)) return wrong("place.measure", value, from, "1, 0 or again", err);
  }
  bool sure = true;
  int64_t limit = 0;
  heddle_status s = read_switch(room, "place.overlap", &room->overlap, err);
  if (s == HEDDLE_OK) s = read_switch(room, "place.sure", &sure, err);
  if (s != HEDDLE_OK) return s;
  room->any_gain = !sure;
  if (heddle__config_get(config, "place.cache_dir", &value, &from) && !is_off(value)) {
    if (value[0] != '/') return wrong("place.cache_dir", value, from, "an absolute path, or off", err);
    room->costs.folder = value;
    room->costs.folder_given = strcmp(from, "default") != 0;
  }
  s = heddle__context_number(room->ctx, "place.cache_bytes", DEFAULT_LIMIT, 0, INT64_MAX, &limit, err);
  if (s != HEDDLE_OK) return s;
  room->costs.limit = (uint64_t)limit;
  if (limit == 0) room->costs.folder = NULL;
  room->costs.ignore_kept = room->measuring == HEDDLE__MEASURE_AGAIN;
  s = heddle__context_number(room->ctx, "place.seconds", DEFAULT_SECONDS, 1, MOST_SECONDS, &seconds, err);
  room->most_ns = (uint64_t)seconds * UINT64_C(1000000000);
  return s;
}

/* ---- placing */

static void take(const heddle__survey *s, const uint32_t *place) {
  heddle__plan *plan = s->plan;
  const heddle_graph *g = plan->req.graph;
  for (uint32_t i = 0; i < s->n_nodes; i++) {
    heddle__placed *p = &plan->placed[s->node[i]];
    const heddle__answer *a = &s->answers[(size_t)i * s->n_devices + place[i]];
    p->device = place[i];
    if (!p->is_free) continue;
    p->ask = a->ask;
    p->offers = a->offers;
    p->n_offers = a->n_offers;
  }
  for (uint32_t i = 0; i < plan->n_placed; i++) { /* views follow what they are views of, in the order of the nodes */
    heddle__placed *p = &plan->placed[i];
    if (p->device == HEDDLE__NONE || p->ask != NULL || !p->is_free) continue;
    const uint32_t source = g->nodes[i].inputs[0].node;
    if (source != HEDDLE__ABSENT && plan->placed[source].device != HEDDLE__NONE)
      p->device = plan->placed[source].device;
  }
  for (uint32_t d = 0; d < plan->n_devices; d++) plan->devices[d].used = false;
  for (uint32_t i = 0; i < plan->n_placed; i++)
    if (plan->placed[i].device != HEDDLE__NONE) plan->devices[plan->placed[i].device].used = true;
}

heddle_status heddle__placer_place(heddle__placer *placer, heddle__plan *plan, heddle_error *err) {
  heddle__place_room *room = placer;
  heddle__survey s;
  heddle__problem problem;
  if (plan->n_devices < 2) return HEDDLE_OK;
  heddle_status r = heddle__survey_make(room, plan, &s, err);
  if (r != HEDDLE_OK || s.n_free == 0) return r;
  r = heddle__survey_times(room, &s, err);
  if (r == HEDDLE_OK) r = heddle__survey_problem(&s, &problem, err);
  if (r != HEDDLE_OK) return heddle__prefix(err, r, "%s: automatic placement: ", plan->req.graph->source);
  heddle__found found = {.place = heddle__plan_alloc(plan, s.n_nodes, sizeof *found.place),
                         .single = heddle__plan_alloc(plan, s.n_devices, sizeof *found.single)};
  const heddle__search_options options = {.most_whole = MOST_WHOLE, .any_gain = room->any_gain};
  if (found.place == NULL || found.single == NULL || !heddle__search(&problem, &options, s.prefer, &found))
    return heddle__no_memory(err, "the search for a placement");
  take(&s, found.place);
  return heddle__survey_report(&s, &problem, &found, err);
}

/* ---- the entry */

void heddle__placer_close(heddle__placer *placer) {
  if (placer == NULL) return;
  heddle__place_room *room = placer;
  heddle__costs_finish(&room->costs);
  heddle__free(room);
}

heddle_status heddle__placer_open(heddle_context *ctx, heddle__placer **out, heddle_error *err) {
  *out = NULL;
  heddle__place_room *room = heddle__alloc(1, sizeof *room);
  if (room == NULL) return heddle__no_memory(err, "automatic placement");
  room->ctx = room->costs.ctx = ctx;
  if (!heddle__costs_start(&room->costs)) {
    heddle__free(room);
    return heddle__no_memory(err, "automatic placement");
  }
  heddle_status s = read_settings(room, err);
  if (s != HEDDLE_OK) {
    heddle__placer_close(room);
    return s;
  }
  *out = room;
  return HEDDLE_OK;
}
