/* executor/place/report.c: why each node is where it is, and what the whole is predicted to take. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/error.h"
#include "core/sheet.h"
#include "executor/place/placement.h"

/* In microseconds, three digits at least, with a point in every locale. */
static void say_time(heddle__sheet *t, double ns) {
  const unsigned long long tenths = (unsigned long long)(ns / 100 + 0.5);
  if (tenths >= 1000) heddle__say(t, "%llu us", (tenths + 5) / 10);
  else heddle__say(t, "%llu.%llu us", tenths / 10, tenths % 10);
}

/* The text in the plan's memory, and the sheet freed; NULL where memory is out. */
static const char *keep(const heddle__survey *s, heddle__sheet *t) {
  const char *kept = t->failed ? NULL : heddle__plan_format(s->plan, "%s", t->text);
  heddle__free(t->text);
  return kept;
}

static const char *name_of(const heddle__survey *s, uint32_t device) {
  return s->plan->devices[device].dev->name;
}

/* What the node takes on a device: its part of the group's time where the placement has the group there. */
static double time_on(const heddle__survey *s, const heddle__problem *p, const heddle__bench *b, const uint32_t *place,
                      uint32_t node, uint32_t device) {
  const size_t at = (size_t)node * s->n_devices + device;
  if (place[node] == device) return heddle__cost_of(p, b, place, node)->ns;
  return p->joint != NULL && p->group[at] != HEDDLE__NOWHERE ? p->joint[at].ns : p->alone[at].ns;
}

static bool is_known(const heddle__survey *s, uint32_t node, uint32_t device) {
  const size_t at = (size_t)node * s->n_devices + device;
  return s->items[s->group[at] != HEDDLE__NOWHERE ? s->group_item[s->group[at]] : s->item[at]].known;
}

static const char *cause(const heddle__survey *s, const heddle__problem *p, const heddle__bench *b,
                         const uint32_t *place, uint32_t node) {
  heddle__sheet t = {0};
  uint32_t others = 0;
  heddle__say(&t, "auto: %s", is_known(s, node, place[node]) ? "" : "about ");
  say_time(&t, time_on(s, p, b, place, node, place[node]));
  heddle__say(&t, " here");
  for (uint32_t d = 0; d < s->n_devices; d++) {
    if (d == place[node] || !s->can[(size_t)node * s->n_devices + d]) continue;
    heddle__say(&t, ", %s", is_known(s, node, d) ? "" : "about ");
    say_time(&t, time_on(s, p, b, place, node, d));
    heddle__say(&t, " on %s", name_of(s, d));
    others++;
  }
  const char *kept = keep(s, &t);
  return others == 0 ? "auto: the only one that supports it" : kept;
}

/* ---- the plan's summary */

static void summary(const heddle__survey *s, const heddle__found *found, heddle__sheet *t) {
  heddle__say(t, "predicted ");
  say_time(t, found->ns);
  heddle__say(t, " a run; on one device: ");
  for (uint32_t d = 0; d < s->n_devices; d++) {
    heddle__say(t, "%s", d > 0 ? ", " : "");
    say_time(t, found->single[d]);
    heddle__say(t, " on %s", name_of(s, d));
  }
  heddle__say(t, "\n");
  if (found->gain > 0 && found->ns >= found->single[found->best]) {
    heddle__say(t, "          not taken: a placement that would save ");
    say_time(t, found->gain);
    heddle__say(t, ", since its times are known to within ");
    say_time(t, found->doubt);
    heddle__say(t, "\n");
  }
  heddle__say(t, "times     %u of operators measured now, %u before, %u estimated\n", (unsigned)s->measured,
              (unsigned)s->kept, (unsigned)s->estimated);
}

static json_t *number_or_null(bool there, double x) {
  return there ? json_real(x) : json_null();
}

static json_t *nodes_of(const heddle__survey *s, const heddle__problem *p) {
  json_t *list = json_array();
  for (uint32_t i = 0; i < s->n_nodes; i++) {
    json_t *ns = json_array(), *joint = json_array(), *group = json_array();
    for (uint32_t d = 0; d < s->n_devices; d++) {
      const size_t at = (size_t)i * s->n_devices + d;
      const bool in_group = s->can[at] && p->joint != NULL && s->group[at] != HEDDLE__NOWHERE;
      json_array_append_new(ns, number_or_null(s->can[at], p->alone[at].ns));
      json_array_append_new(joint, number_or_null(in_group, in_group ? p->joint[at].ns : 0));
      json_array_append_new(group, in_group ? json_integer((json_int_t)s->group[at]) : json_null());
    }
    json_array_append_new(
        list, json_pack("{sI so so so}", "id", (json_int_t)s->node[i], "ns", ns, "group", group, "ns_in_group", joint));
  }
  return list;
}

static json_t *links_of(const heddle__survey *s, const heddle__problem *p) {
  json_t *list = json_array();
  for (uint32_t i = 0; i < p->n_sites * p->n_sites; i++) {
    const uint32_t from = i / p->n_sites, to = i % p->n_sites;
    const heddle__link *x = &p->links[i];
    if (from == to || (from > 0 && p->site[from - 1] == 0) || (to > 0 && p->site[to - 1] == 0)) continue;
    json_array_append_new(list, json_pack("{sI sI sf sf}", "from", (json_int_t)from - 1, "to", (json_int_t)to - 1,
                                          "latency_ns", x->latency_ns, "ns_per_byte", x->ns_per_byte));
  }
  (void)s;
  return list;
}

/* The object in the plan's memory; NULL when memory is out. */
static const char *object(const heddle__survey *s, const heddle__problem *p, const heddle__found *found) {
  json_t *single = json_array(), *lanes = json_array();
  for (uint32_t d = 0; d < s->n_devices; d++) {
    json_array_append_new(single, json_real(found->single[d]));
    json_array_append_new(lanes, json_integer((json_int_t)p->lane[d]));
  }
  json_t *o = json_pack("{sf so so sf sf sI sI sI so so}", "predicted_ns", found->ns, "single_ns", single, "lanes",
                        lanes, "gain_ns", found->gain, "doubt_ns", found->doubt, "measured", (json_int_t)s->measured,
                        "kept", (json_int_t)s->kept, "estimated", (json_int_t)s->estimated, "links", links_of(s, p),
                        "nodes", nodes_of(s, p));
  char *dumped = o != NULL ? json_dumps(o, JSON_COMPACT) : NULL;
  const char *kept = dumped != NULL ? heddle__plan_format(s->plan, "%s", dumped) : NULL;
  free(dumped);
  json_decref(o);
  return kept;
}

heddle_status heddle__survey_report(const heddle__survey *s, const heddle__problem *p, const heddle__found *found,
                                    heddle_error *err) {
  heddle__bench bench = {0};
  bool good = heddle__bench_start(&bench, p);
  if (good) (void)heddle__simulate(p, &bench, found->place, 1e300, NULL);
  for (uint32_t i = 0; i < s->n_nodes && good; i++) {
    heddle__placed *x = &s->plan->placed[s->node[i]];
    if (!x->is_free) continue;
    x->cause = cause(s, p, &bench, found->place, i);
    good = x->cause != NULL;
  }
  heddle__bench_finish(&bench, p);
  heddle__sheet t = {0};
  summary(s, found, &t);
  heddle__placing *placing = heddle__plan_alloc(s->plan, 1, sizeof *placing);
  const char *said = keep(s, &t);
  if (good && placing != NULL) {
    placing->text = said;
    placing->json = object(s, p, found);
    s->plan->placing = placing;
  }
  good = good && placing != NULL && placing->text != NULL && placing->json != NULL;
  return good ? HEDDLE_OK : heddle__no_memory(err, "what a placement is predicted to take");
}
