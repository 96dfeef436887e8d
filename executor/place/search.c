/* executor/place/search.c: the placement that is predicted to take least: improved from several beginnings, and taken
 * only where it beats the best single device by more than the measurements may be wrong. */
#include "executor/place/search.h"

#include <math.h>
#include <string.h>

#define DEFAULT_VISITS (UINT64_C(40) * 1000 * 1000)

typedef struct search {
  const heddle__problem *p;
  heddle__bench bench;
  heddle__found *out;
  uint32_t *trial, *raw, *simplest, *changed;
  const heddle__cost **times; /* per node, scratch */
  double *doubt_of;           /* per source, scratch */
  uint32_t n_sources;
  uint64_t most_visits;
  bool any_gain;
} search;

static void all_on(const heddle__problem *p, const uint32_t *prefer, uint32_t device, uint32_t *place) {
  for (uint32_t i = 0; i < p->n_nodes; i++) place[i] = p->can[(size_t)i * p->n_devices + device] ? device : prefer[i];
}

/* ---- by how much a gain may be wrong */

static double doubt_links(const search *s, const uint32_t *place) {
  const heddle__problem *p = s->p;
  double sum = 0;
  for (uint32_t i = 0; i < p->n_flows; i++) {
    uint32_t producer = p->flows[i].producer, home = producer == HEDDLE__NOWHERE ? 0 : p->site[place[producer]];
    for (uint32_t to = 0; to < p->n_sites; to++) {
      if (to == home || s->bench.arrival[(size_t)i * p->n_sites + to] < 0) continue;
      const heddle__link *link = &p->links[home * p->n_sites + to];
      double wrong = link->margin * (link->latency_ns + p->flows[i].bytes * link->ns_per_byte);
      sum += wrong * wrong;
    }
  }
  return sum;
}

/* Of the difference between two placements: the margins of the nodes whose times differ (by their device, or by what is
 * left of their group), and of the copies that only one of them makes; what has a source of its own is independent, and
 * what has the same one is wrong together. */
static double doubt_between(search *s, const uint32_t *from, const uint32_t *to, bool with_links) {
  const heddle__problem *p = s->p;
  if (s->any_gain) return 0;
  memset(s->doubt_of, 0, s->n_sources * sizeof *s->doubt_of);
  (void)heddle__simulate(p, &s->bench, from, 1e300, NULL);
  for (uint32_t i = 0; i < p->n_nodes; i++) s->times[i] = heddle__cost_of(p, &s->bench, from, i);
  (void)heddle__simulate(p, &s->bench, to, 1e300, NULL);
  double sum = with_links ? doubt_links(s, to) : 0;
  for (uint32_t i = 0; i < p->n_nodes; i++) {
    const heddle__cost *now = heddle__cost_of(p, &s->bench, to, i);
    if (now == s->times[i]) continue;
    s->doubt_of[now->source] += now->margin;
    s->doubt_of[s->times[i]->source] += s->times[i]->margin;
  }
  for (uint32_t i = 0; i < s->n_sources; i++) sum += s->doubt_of[i] * s->doubt_of[i];
  return sqrt(sum);
}

/* Takes back what gains no more than the times that differ by it may be wrong; all together lose no more than one. */
static void simplify(search *s, heddle__trial *t) {
  const heddle__problem *p = s->p;
  heddle__trial_measure(t);
  const double least = t->ns;
  for (uint32_t i = 0; i < p->n_nodes; i++) {
    const uint32_t device = t->place[i];
    if (device == s->simplest[i]) continue;
    memcpy(s->changed, t->place, p->n_nodes * sizeof *s->changed);
    t->place[i] = s->simplest[i];
    double work = 0, ns = heddle__simulate(p, t->bench, t->place, 1e300, &work);
    const double wrong = ns > least ? doubt_between(s, s->changed, t->place, false) : 0;
    if (ns <= (least + wrong) * (1 + 1e-12)) t->ns = ns, t->work = work;
    else t->place[i] = device;
  }
}

/* ---- candidates */

/* Takes a placement where it is the best yet, and sure enough to be better than the simplest; what is not sure is
 * reported as long as nothing was taken. */
static bool weigh(search *s, const uint32_t *place, double ns) {
  heddle__found *out = s->out;
  const double simplest = out->single[out->best];
  if (!heddle__less(ns, simplest)) return false;
  const double gain = simplest - ns, doubt = doubt_between(s, s->simplest, place, true);
  const bool sure = gain > doubt, is_first = !heddle__less(out->ns, simplest);
  if (sure ? heddle__less(ns, out->ns) : is_first && gain > out->gain) {
    out->gain = gain;
    out->doubt = doubt;
  }
  if (sure && heddle__less(ns, out->ns)) {
    memcpy(out->place, place, s->p->n_nodes * sizeof *out->place);
    out->ns = ns;
  }
  return sure;
}

/* Without what is not sure of it, else as it is. */
static void consider(search *s, heddle__trial *t) {
  const double ns = t->ns;
  memcpy(s->raw, t->place, s->p->n_nodes * sizeof *s->raw);
  simplify(s, t);
  if (!weigh(s, t->place, t->ns)) (void)weigh(s, s->raw, ns);
}

/* Tries each placement there is. */
static void try_all(search *s, heddle__trial *t, uint32_t *best) {
  const heddle__problem *p = s->p;
  const uint32_t n = p->n_nodes;
  double ns = 1e300, work = 1e300;
  for (uint32_t i = 0; i < n; i++)
    for (t->place[i] = 0; !p->can[(size_t)i * p->n_devices + t->place[i]];) t->place[i]++;
  for (uint32_t at = 0; at < n;) {
    double w = 0, x = heddle__simulate(p, t->bench, t->place, ns * (1 + 1e-9), &w);
    if (heddle__less(x, ns) || (x <= ns * (1 + 1e-9) && heddle__less(w, work))) {
      memcpy(best, t->place, n * sizeof *best);
      ns = x;
      work = w;
    }
    for (at = 0; at < n; at++) {
      uint32_t *d = &t->place[at];
      do ++*d;
      while (*d < p->n_devices && !p->can[(size_t)at * p->n_devices + *d]);
      if (*d < p->n_devices) break;
      for (*d = 0; !p->can[(size_t)at * p->n_devices + *d];) ++*d;
    }
  }
  memcpy(t->place, best, n * sizeof *best);
  t->ns = ns;
  t->work = work;
}

static bool few_enough(const heddle__problem *p, uint64_t most) {
  uint64_t n = 1;
  for (uint32_t i = 0; i < p->n_nodes && n <= most; i++) {
    uint32_t ways = 0;
    for (uint32_t d = 0; d < p->n_devices; d++) ways += p->can[(size_t)i * p->n_devices + d];
    n *= ways;
  }
  return n <= most;
}

static uint32_t count_sources(const heddle__problem *p) {
  uint32_t most = 0;
  for (size_t i = 0; i < (size_t)p->n_nodes * p->n_devices; i++) {
    if (p->alone[i].source > most) most = p->alone[i].source;
    if (p->joint != NULL && p->joint[i].source > most) most = p->joint[i].source;
  }
  return most + 1;
}

static bool run_search(search *s, const heddle__search_options *o, const uint32_t *prefer) {
  const heddle__problem *p = s->p;
  heddle__found *out = s->out;
  heddle__trial t = {.p = p, .bench = &s->bench, .place = s->trial};
  out->best = 0;
  for (uint32_t d = 0; d < p->n_devices; d++) {
    all_on(p, prefer, d, t.place);
    heddle__trial_measure(&t);
    out->single[d] = t.ns;
    if (heddle__less(t.ns, out->single[out->best])) out->best = d;
  }
  all_on(p, prefer, out->best, s->simplest);
  memcpy(out->place, s->simplest, p->n_nodes * sizeof *out->place);
  out->ns = out->single[out->best];
  out->gain = out->doubt = 0;
  if (few_enough(p, o->most_whole)) {
    try_all(s, &t, s->changed);
    consider(s, &t);
  }
  for (uint32_t start = 0; start < p->n_devices + 2; start++) {
    t.most_visits = s->bench.visits + s->most_visits / (p->n_devices + 2);
    if (start < p->n_devices) all_on(p, prefer, start, t.place);
    if (start == p->n_devices) memcpy(t.place, prefer, p->n_nodes * sizeof *t.place);
    if (start == p->n_devices + 1 && !heddle__heft(p, t.place)) return false;
    if (!heddle__improve(&t)) return false;
    consider(s, &t);
  }
  return true;
}

bool heddle__search(const heddle__problem *p, const heddle__search_options *o, const uint32_t *prefer,
                    heddle__found *out) {
  search s = {.p = p,
              .out = out,
              .any_gain = o->any_gain,
              .most_visits = o->most_visits != 0 ? o->most_visits : DEFAULT_VISITS};
  s.n_sources = count_sources(p);
  s.trial = p->alloc(p->n_nodes, sizeof *s.trial);
  s.raw = p->alloc(p->n_nodes, sizeof *s.raw);
  s.simplest = p->alloc(p->n_nodes, sizeof *s.simplest);
  s.changed = p->alloc(p->n_nodes, sizeof *s.changed);
  s.times = p->alloc(p->n_nodes, sizeof *s.times);
  s.doubt_of = p->alloc(s.n_sources, sizeof *s.doubt_of);
  bool good = heddle__bench_start(&s.bench, p) && s.trial != NULL && s.raw != NULL && s.simplest != NULL &&
              s.changed != NULL && s.times != NULL && s.doubt_of != NULL && run_search(&s, o, prefer);
  heddle__bench_finish(&s.bench, p);
  p->free(s.trial);
  p->free(s.raw);
  p->free(s.simplest);
  p->free(s.changed);
  p->free(s.times);
  p->free(s.doubt_of);
  return good;
}
