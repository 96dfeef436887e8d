/* executor/streams.c: the pass that puts every step on a stream and orders streams by waits, as few as there can be.
 * Steps keep the order of the list within a stream. Each goes where it is expected to start soonest (list scheduling on
 * estimated times); what a chain of steps needs stays on one stream, since a hop between streams costs. */
#include <string.h>

#include "core/error.h"
#include "executor/plan.h"

/* Estimates that only choose streams: a step of unknown cost, a copy's start and bytes, a hop between two streams. */
#define STEP_NS 1000.0
#define COPY_NS 1500.0
#define COPY_NS_PER_BYTE 0.1
#define HOP_NS 5000.0
#define MAX_LANES 2u

typedef struct builder {
  heddle__plan *plan;
  double *free_at;   /* per stream: when its last step is expected to end */
  double *ends;      /* per step */
  uint32_t *first;   /* per device (and one more for the host's own): its first stream */
  uint32_t *n_lanes; /* likewise: compute streams, which come first */
  uint32_t *n_all;
} builder;

static heddle_status add_streams(builder *b, heddle_error *err) {
  heddle__plan *plan = b->plan;
  uint32_t most =
      plan->n_devices * (MAX_LANES > plan->req.max_streams ? MAX_LANES : plan->req.max_streams) + plan->n_devices + 1;
  plan->streams = heddle__plan_alloc(plan, most, sizeof *plan->streams);
  b->free_at = heddle__plan_alloc(plan, most, sizeof *b->free_at);
  b->ends = heddle__plan_alloc(plan, plan->n_steps, sizeof *b->ends);
  b->first = heddle__plan_alloc(plan, (size_t)plan->n_devices + 1, sizeof *b->first);
  b->n_lanes = heddle__plan_alloc(plan, (size_t)plan->n_devices + 1, sizeof *b->n_lanes);
  b->n_all = heddle__plan_alloc(plan, (size_t)plan->n_devices + 1, sizeof *b->n_all);
  if (!plan->streams || !b->free_at || !b->ends || !b->first || !b->n_lanes || !b->n_all) {
    return heddle__no_memory(err, "streams");
  }
  bool *used = heddle__plan_alloc(plan, (size_t)plan->n_devices + 1, sizeof *used);
  if (used == NULL) return heddle__no_memory(err, "streams");
  bool mixed = false;
  for (uint32_t i = 0; i < plan->n_steps; i++) {
    if (plan->steps[i].device == HEDDLE__NONE) continue;
    used[plan->steps[i].device] = true;
    mixed = mixed || !plan->devices[plan->steps[i].device].is_inline;
  }
  bool host = false;
  for (uint32_t d = 0; d < plan->n_devices; d++) {
    if (!used[d]) continue;
    const heddle__plan_device *x = &plan->devices[d];
    uint32_t most_here = x->dev->desc.max_streams, want = plan->req.max_streams;
    uint32_t lanes = want == 0 ? MAX_LANES : want;
    if (lanes > most_here && want == 0) lanes = most_here;
    if (x->is_inline) lanes = mixed && want != 1 ? MAX_LANES : 1; /* so that one may wait while the other goes on */
    bool copies = !x->is_inline && most_here > 1 && want != 1;
    b->first[d] = plan->n_streams;
    b->n_lanes[d] = lanes;
    b->n_all[d] = lanes + (copies ? 1 : 0);
    for (uint32_t k = 0; k < b->n_all[d]; k++) {
      plan->streams[plan->n_streams++] = (heddle__plan_stream){
          .device = d, .kind = k < lanes ? HEDDLE_STREAM_COMPUTE : HEDDLE_STREAM_COPY, .is_host = x->is_inline};
    }
    host = host || x->is_inline;
  }
  if (!host) { /* what the driving thread does itself: host copies, flushes, the finish */
    uint32_t d = plan->n_devices;
    b->first[d] = plan->n_streams;
    b->n_lanes[d] = b->n_all[d] = 1;
    plan->streams[plan->n_streams++] =
        (heddle__plan_stream){.device = HEDDLE__NONE, .kind = HEDDLE_STREAM_COMPUTE, .is_host = true};
  }
  return HEDDLE_OK;
}

static double cost_of(const heddle__plan *plan, const heddle__step *s) {
  if (s->kind == HEDDLE__STEP_OP) {
    const heddle__region *r = &plan->regions[s->region];
    double cost = r->offers[r->offer].cost_ns;
    return cost > 0 ? cost : STEP_NS;
  }
  if (s->dst == HEDDLE__NONE) return 100.0;
  return COPY_NS + COPY_NS_PER_BYTE * (double)plan->instances[s->dst].bytes;
}

/* When the step could start on a stream. */
static double could_start(const builder *b, const heddle__step *s, uint32_t stream) {
  double t = b->free_at[stream];
  for (uint32_t i = 0; i < s->n_deps; i++) {
    uint32_t d = s->deps[i];
    double ready = b->ends[d] + (b->plan->steps[d].stream == stream ? 0 : HOP_NS);
    if (ready > t) t = ready;
  }
  return t;
}

/* Takes the stream where the step starts soonest; of equals one that a dependency is on, then the first. */
static void choose(builder *b, heddle__step *s, uint32_t first, uint32_t count, double *start) {
  uint32_t best = first;
  bool best_near = false;
  for (uint32_t k = first; k < first + count; k++) {
    double t = could_start(b, s, k);
    bool near = false;
    for (uint32_t i = 0; i < s->n_deps; i++) near = near || b->plan->steps[s->deps[i]].stream == k;
    if (k == first || t < *start || (!(t > *start) && near && !best_near)) {
      *start = t;
      best = k;
      best_near = near;
    }
  }
  s->stream = best;
}

static void assign(builder *b) {
  heddle__plan *plan = b->plan;
  for (uint32_t i = 0; i < plan->n_steps; i++) {
    heddle__step *s = &plan->steps[i];
    double start = 0;
    if (s->device != HEDDLE__NONE) {
      bool copy = s->kind != HEDDLE__STEP_OP;
      int64_t wish = copy ? -1 : plan->regions[s->region].stream;
      if (wish >= 0) {
        s->stream = b->first[s->device] + (uint32_t)((uint64_t)wish % b->n_lanes[s->device]);
        start = could_start(b, s, s->stream);
      } else {
        choose(b, s, b->first[s->device], copy ? b->n_all[s->device] : b->n_lanes[s->device], &start);
      }
    } else { /* any stream of the host */
      uint32_t first = HEDDLE__NONE, count = 0;
      for (uint32_t k = 0; k < plan->n_streams; k++) {
        if (!plan->streams[k].is_host) continue;
        if (first == HEDDLE__NONE) first = k;
        if (first + count == k) count++;
      }
      choose(b, s, first, count, &start);
    }
    b->ends[i] = b->free_at[s->stream] = start + cost_of(plan, s);
    s->seq = ++plan->streams[s->stream].n_steps;
  }
}

/* Streams that got nothing are left out. */
static heddle_status drop_empty(heddle__plan *plan, heddle_error *err) {
  uint32_t *number = heddle__plan_alloc(plan, plan->n_streams, sizeof *number);
  if (number == NULL) return heddle__no_memory(err, "streams");
  uint32_t kept = 0;
  for (uint32_t i = 0; i < plan->n_streams; i++) {
    number[i] = kept;
    if (plan->streams[i].n_steps != 0) plan->streams[kept++] = plan->streams[i];
  }
  plan->n_streams = kept;
  for (uint32_t i = 0; i < plan->n_steps; i++) plan->steps[i].stream = number[plan->steps[i].stream];
  return HEDDLE_OK;
}

static heddle__wait_by wait_by(const heddle__plan *plan, const heddle__step *s, const heddle__step *on) {
  if (plan->streams[on->stream].is_host) return HEDDLE__BY_HOST;
  if (plan->streams[s->stream].is_host) return HEDDLE__BY_FENCE;
  const heddle_device *a = plan->devices[plan->streams[s->stream].device].dev;
  const heddle_device *b = plan->devices[plan->streams[on->stream].device].dev;
  bool same = a->instance == b->instance && a->desc.event_domain == b->desc.event_domain && a->t->has_event;
  return same ? HEDDLE__BY_EVENT : HEDDLE__BY_FENCE;
}

/* Vector clocks: what has finished before each step starts. A dependency that the clock covers needs no wait. Later
 * steps are looked at first, because they cover more. */
static heddle_status order(builder *b, heddle_error *err) {
  heddle__plan *plan = b->plan;
  uint32_t n = plan->n_streams;
  uint32_t *clock = heddle__plan_alloc(plan, plan->n_steps, (size_t)n * sizeof *clock);
  uint32_t *last = heddle__plan_alloc(plan, n, sizeof *last);
  if (clock == NULL || last == NULL) return heddle__no_memory(err, "the order of streams");
  for (uint32_t t = 0; t < n; t++) last[t] = HEDDLE__NONE;
  for (uint32_t i = 0; i < plan->n_steps; i++) {
    heddle__step *s = &plan->steps[i];
    uint32_t *row = clock + (size_t)i * n;
    if (last[s->stream] != HEDDLE__NONE) {
      memcpy(row, clock + (size_t)last[s->stream] * n, n * sizeof *row);
      row[s->stream] = s->seq - 1;
    }
    bool finish = s->kind == HEDDLE__STEP_FINISH; /* comes after everything */
    uint32_t n_deps = finish ? n : s->n_deps;
    heddle__wait *waits = heddle__plan_alloc(plan, n_deps, sizeof *waits);
    if (waits == NULL) return heddle__no_memory(err, "the order of streams");
    uint32_t bound = plan->n_steps; /* look at dependencies from the last to the first */
    for (;;) {
      uint32_t dep = HEDDLE__NONE;
      for (uint32_t k = 0; k < n_deps; k++) {
        uint32_t d = finish ? last[k] : s->deps[k];
        if (d != HEDDLE__NONE && d < bound && (dep == HEDDLE__NONE || d > dep)) dep = d;
      }
      if (dep == HEDDLE__NONE) break;
      bound = dep;
      heddle__step *on = &plan->steps[dep];
      if (row[on->stream] >= on->seq) continue;
      const uint32_t *theirs = clock + (size_t)dep * n;
      for (uint32_t t = 0; t < n; t++) {
        if (theirs[t] > row[t]) row[t] = theirs[t];
      }
      if (on->seq > row[on->stream]) row[on->stream] = on->seq;
      heddle__wait w = {dep, wait_by(plan, s, on)};
      waits[s->n_waits++] = w;
      if (w.by == HEDDLE__BY_EVENT) on->event_signal = true;
      if (w.by == HEDDLE__BY_FENCE) on->fence_signal = true;
    }
    s->waits = waits;
    last[s->stream] = i;
  }
  plan->clock = clock;
  return HEDDLE_OK;
}

heddle_status heddle__pass_streams(heddle__plan *plan, heddle_error *err) {
  builder b = {.plan = plan};
  heddle_status s = add_streams(&b, err);
  if (s != HEDDLE_OK) return s;
  assign(&b);
  s = drop_empty(plan, err);
  return s == HEDDLE_OK ? order(&b, err) : s;
}
