/* executor/profile.c: step times of one run, brought to the host's clock.
 * Devices with a clock are marked and read after the run, so that their streams keep overlapping; others are waited for
 * after each step. A trace also gets what the driving thread did, and how far the devices' clocks are to be believed. */
#define _DEFAULT_SOURCE /* syscall */
#include "executor/profile.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/context.h"
#include "core/error.h"
#include "core/failure.h"
#include "core/parts.h"
#include "core/trace.h"
#include "executor/explain.h"

#if HEDDLE_HAS_PROFILE

#define STEP_TIMEOUT_NS UINT64_C(60000000000)
enum { CALIBRATIONS = 5 };

/* When a step was done, on the host's clock, and when a thread put it into its stream. */
typedef struct times {
  uint64_t start, end;  /* start 0: it has not run */
  uint64_t given, sent; /* of a step on a device */
  long thread;          /* who did either */
  bool marked;          /* start and end are still in the device's timer */
} times;

struct heddle__profile {
  heddle__program *program; /* a reference: entries point into its plan */
  uint32_t lane;
  heddle_ptimer **timers; /* per plan device; NULL where it has no clock or does not run here */
  times *times;           /* per step */
  heddle_profile_entry *entries;
  char **ops; /* per step: a joined name, owned, or NULL */
};

static uint32_t device_of(const heddle__program *p, const heddle__line *line) {
  for (uint32_t i = 0; i < p->plan->n_devices; i++)
    if (p->plan->devices[i].dev == line->dev) return i;
  return HEDDLE__NONE;
}

heddle_status heddle__profile_create(heddle__bound *b, uint32_t lane, heddle__profile **out, heddle_error *err) {
  *out = NULL;
  const heddle__plan *plan = b->program->plan;
  heddle__profile *p = heddle__alloc(1, sizeof *p);
  if (p == NULL) return heddle__no_memory(err, "a profile");
  p->program = heddle__program_retain(b->program);
  p->lane = lane;
  p->timers = heddle__alloc(plan->n_devices, sizeof *p->timers);
  p->times = heddle__alloc(plan->n_steps, sizeof *p->times);
  p->entries = heddle__alloc(plan->n_steps, sizeof *p->entries);
  p->ops = heddle__alloc(plan->n_steps, sizeof *p->ops);
  bool all = p->timers != NULL && p->times != NULL && p->entries != NULL && p->ops != NULL;
  heddle_status s = all ? HEDDLE_OK : heddle__no_memory(err, "a profile");
  for (uint32_t i = 0; i < b->n_lines && s == HEDDLE_OK; i++) {
    const heddle__line *l = &b->lines[i];
    uint32_t d = device_of(b->program, l);
    if (l->is_host || d == HEDDLE__NONE || p->timers[d] != NULL || !l->t->has_timing) continue;
    s = l->t->timing.create(l->dev->handle, 2 * plan->n_steps, &p->timers[d], err);
    if (s != HEDDLE_OK) s = heddle__prefix_on(l->dev->name, err, s, "%s: timer: ", l->dev->name);
  }
  if (s != HEDDLE_OK) {
    heddle__profile_release(p);
    return s;
  }
  *out = p;
  return HEDDLE_OK;
}

void heddle__profile_release(heddle__profile *p) {
  if (p == NULL) return;
  const heddle__plan *plan = p->program->plan;
  for (uint32_t i = 0; p->timers != NULL && i < plan->n_devices; i++)
    if (p->timers[i] != NULL) plan->devices[i].dev->t->timing.free(p->timers[i]);
  for (uint32_t i = 0; p->ops != NULL && i < plan->n_steps; i++) heddle__free(p->ops[i]);
  heddle__free(p->ops);
  heddle__free(p->timers);
  heddle__free(p->times);
  heddle__free(p->entries);
  heddle__program_release(p->program);
  heddle__free(p);
}

void heddle__profile_begin(heddle__profile *p) {
  memset(p->times, 0, p->program->plan->n_steps * sizeof *p->times);
}

heddle_status heddle__profile_action(heddle__profile *p, heddle__bound *b, const heddle__line *line,
                                     const heddle__action *a, heddle_error *err) {
  uint32_t d = line->is_host ? HEDDLE__NONE : device_of(b->program, line);
  heddle_ptimer *timer = d != HEDDLE__NONE ? p->timers[d] : NULL;
  heddle_status s = HEDDLE_OK;
  times *x = &p->times[a->step];
  *x = (times){.given = heddle__now_ns(), .thread = syscall(SYS_gettid), .marked = timer != NULL};
  if (timer != NULL) s = line->t->timing.mark(line->stream, timer, 2 * a->step, err);
  if (s == HEDDLE_OK) s = heddle__action_run(line, a, err);
  if (s == HEDDLE_OK && timer != NULL) s = line->t->timing.mark(line->stream, timer, 2 * a->step + 1, err);
  x->sent = heddle__now_ns();
  if (s == HEDDLE_OK && timer == NULL && !line->is_host) s = line->t->stream.sync(line->stream, STEP_TIMEOUT_NS, err);
  x->start = x->given; /* of a step with marks: for now */
  x->end = timer != NULL || line->is_host ? x->sent : heddle__now_ns();
  return s;
}

/* ---- after the run */

/* How far the host's clock is ahead of the device's. Both were read while the call went on, so it is wrong by no more
 * than the call took: of a few the shortest counts. */
static heddle_status calibrate(heddle_device *dev, uint64_t *offset, uint64_t *error, heddle_error *err) {
  heddle_status s = HEDDLE_OK;
  *error = UINT64_MAX;
  for (int i = 0; i < CALIBRATIONS && s == HEDDLE_OK; i++) {
    uint64_t device_ns = 0, host_ns = 0, before = heddle__now_ns();
    s = dev->t->timing.calibrate(dev->handle, &device_ns, &host_ns, err);
    uint64_t took = heddle__now_ns() - before;
    if (s != HEDDLE_OK || took >= *error) continue;
    *error = took;
    *offset = host_ns - device_ns; /* wraps as it should where the device's clock is ahead */
  }
  return s;
}

/* Times of the steps of one device, from its clock to the host's. */
static heddle_status read_device(heddle__profile *p, uint32_t d, heddle__trace *trace, heddle_error *err) {
  const heddle__plan *plan = p->program->plan;
  heddle_device *dev = plan->devices[d].dev;
  uint64_t offset = 0, error = 0;
  heddle_status s = calibrate(dev, &offset, &error, err);
  for (uint32_t i = 0; i < plan->n_steps && s == HEDDLE_OK; i++) {
    if (!p->times[i].marked || plan->steps[i].device != d) continue;
    uint64_t marks[2] = {0, 0};
    s = dev->t->timing.read(p->timers[d], 2 * i, 2, marks, err);
    p->times[i].start = marks[0] + offset;
    p->times[i].end = marks[1] + offset;
  }
  if (s == HEDDLE_OK) heddle__trace_clock(trace, dev->name, true, (int64_t)offset, error);
  return s == HEDDLE_OK ? s : heddle__prefix_on(dev->name, err, s, "%s: times of a run: ", dev->name);
}

static const char *op_name(heddle__profile *p, uint32_t step) {
  static const char *const copies[] = {[HEDDLE__STEP_H2D] = "h2d",
                                       [HEDDLE__STEP_D2H] = "d2h",
                                       [HEDDLE__STEP_D2D] = "d2d",
                                       [HEDDLE__STEP_PEER] = "peer",
                                       [HEDDLE__STEP_HOST_COPY] = "host_copy",
                                       [HEDDLE__STEP_RELEASE] = "release",
                                       [HEDDLE__STEP_ACQUIRE] = "acquire",
                                       [HEDDLE__STEP_FINISH] = "finish"};
  const heddle__plan *plan = p->program->plan;
  const heddle__step *st = &plan->steps[step];
  if (st->kind != HEDDLE__STEP_OP) return copies[st->kind];
  const heddle__region *r = &plan->regions[st->region];
  if (r->n_nodes == 0) return "Reorder";
  const heddle__node *node = &plan->req.graph->nodes[r->nodes[0]];
  const char *first = node->kind == HEDDLE__NODE_TVM ? node->func_name : node->op;
  if (r->n_nodes == 1) return first;
  if (p->ops[step] != NULL) return p->ops[step];
  for (uint32_t i = 0; i < r->n_nodes; i++) {
    const char *op = plan->req.graph->nodes[r->nodes[i]].op;
    char *joined = i == 0 ? heddle__strdup(op) : heddle__format("%s+%s", p->ops[step], op);
    if (joined == NULL) return p->ops[step] != NULL ? p->ops[step] : first;
    heddle__free(p->ops[step]);
    p->ops[step] = joined;
  }
  return p->ops[step];
}

static const char *step_name(const heddle__plan *plan, const heddle__step *st) {
  if (st->kind == HEDDLE__STEP_OP) return plan->regions[st->region].label;
  if (st->src == HEDDLE__NONE || plan->instances[st->src].value == HEDDLE__NONE) return "";
  return plan->values[plan->instances[st->src].value].name;
}

static int by_start(const void *a, const void *b) {
  const heddle_profile_entry *x = a, *y = b;
  if (x->start_ns != y->start_ns) return x->start_ns < y->start_ns ? -1 : 1;
  return x->step < y->step ? -1 : x->step > y->step;
}

/* Spans of one step: in a row of its stream, and for a device in one of the thread that put it there. */
static void trace_step(heddle__trace *trace, const heddle__profile *p, const heddle_profile_entry *e, const times *x) {
  const heddle__plan *plan = p->program->plan;
  const heddle__step *st = &plan->steps[e->step];
  const heddle__plan_stream *stream = &plan->streams[e->stream];
  bool copy = st->src != HEDDLE__NONE && st->dst != HEDDLE__NONE;
  char row[64], thread[64], name[160], sent[170];
  snprintf(row, sizeof row, "stream %u (%s)", (unsigned)(e->stream + p->lane * plan->n_streams),
           heddle__explain_stream(stream->kind));
  bool is_same = strcmp(e->op, e->name) == 0; /* TVM names nodes after their functions */
  snprintf(name, sizeof name, "%s%s%s", e->op, is_same ? "" : " ", is_same ? "" : e->name);
  heddle__span span = {e->device, row, name, e->start_ns, e->end_ns, NULL, 0};
  if (copy) {
    span.route = "direct"; /* what no crossing is about: an output's way to the host */
    span.bytes = plan->instances[st->src].bytes;
    uint32_t value = plan->values[plan->instances[st->src].value].same_as;
    for (uint32_t i = 0; i < plan->n_crossings; i++) {
      const heddle__crossing *c = &plan->crossings[i];
      if (plan->values[c->value].same_as != value || c->route == HEDDLE__ROUTE_SHARED) continue;
      if (c->to == st->device || c->from == st->device || st->device == HEDDLE__NONE)
        span.route = heddle__explain_route(c->route);
      if (c->to == st->device) break;
    }
  }
  heddle__trace_span(trace, &span);
  if (stream->is_host) return;
  snprintf(thread, sizeof thread, "thread %ld", x->thread);
  snprintf(sent, sizeof sent, "submit %s", name);
  heddle__trace_span(trace, &(heddle__span){"host", thread, sent, x->given, x->sent, NULL, 0});
}

/* A step begins when what it needs is done. Clocks of two devices can contradict that by as much as they are wrong: the
 * earlier step is cut, or the later one begins at its end. */
static void follow(heddle__profile *p, uint32_t earlier, uint32_t step) {
  if (earlier >= step) return;
  times *before = &p->times[earlier], *x = &p->times[step];
  if (before->start == 0 || before->end <= x->start) return;
  if (before->start <= x->start) {
    before->end = x->start;
    return;
  }
  x->start = before->end;
  if (x->end < x->start) x->end = x->start;
}

static heddle_status order_times(heddle__profile *p, heddle_error *err) {
  const heddle__plan *plan = p->program->plan;
  uint32_t *last = heddle__alloc(plan->n_streams, sizeof *last); /* the step before on each stream, from 1 */
  if (last == NULL) return heddle__no_memory(err, "a profile");
  for (uint32_t i = 0; i < plan->n_steps; i++) {
    const heddle__step *st = &plan->steps[i];
    times *x = &p->times[i];
    if (x->start == 0) continue;
    if (x->end < x->start) x->end = x->start;
    if (last[st->stream] != 0) follow(p, last[st->stream] - 1, i);
    for (uint32_t k = 0; k < st->n_deps; k++) follow(p, st->deps[k], i);
    for (uint32_t k = 0; k < st->n_waits; k++) follow(p, st->waits[k].step, i);
    last[st->stream] = i + 1;
  }
  heddle__free(last);
  return HEDDLE_OK;
}

heddle_status heddle__profile_finish(heddle__profile *p, heddle__bound *b, const heddle_profile_entry **out, size_t *n,
                                     heddle_error *err) {
  const heddle__plan *plan = p->program->plan;
  heddle__trace *trace = heddle__context_trace(p->program->model->ctx);
  heddle_status s = HEDDLE_OK;
  heddle__trace_clock(trace, "host", false, 0, 0);
  for (uint32_t d = 0; d < plan->n_devices && s == HEDDLE_OK; d++) {
    if (p->timers[d] != NULL) s = read_device(p, d, trace, err);
    else if (plan->devices[d].used) heddle__trace_clock(trace, plan->devices[d].dev->name, false, 0, 0);
  }
  if (s == HEDDLE_OK) s = order_times(p, err);
  if (s != HEDDLE_OK) return s;

  size_t count = 0;
  for (uint32_t i = 0; i < plan->n_steps; i++) {
    const heddle__step *st = &plan->steps[i];
    if (p->times[i].start == 0 || st->kind == HEDDLE__STEP_FINISH) continue;
    heddle_profile_entry *e = &p->entries[count++];
    const char *device = b->lines[st->stream].dev != NULL ? b->lines[st->stream].dev->name : "host";
    const times *x = &p->times[i];
    *e = (heddle_profile_entry){step_name(plan, st), op_name(p, i), device, st->stream, i, x->start, x->end};
    if (heddle__trace_on(trace)) trace_step(trace, p, e, x);
  }
  qsort(p->entries, count, sizeof *p->entries, by_start);
  *out = p->entries;
  *n = count;
  return HEDDLE_OK;
}

#else

heddle_status heddle__profile_create(heddle__bound *b, uint32_t lane, heddle__profile **out, heddle_error *err) {
  (void)b, (void)lane, (void)out;
  return heddle__left_out(err, "profiles and traces", "HEDDLE_PROFILE");
}

void heddle__profile_release(heddle__profile *p) {
  (void)p; /* there is none, and so in what follows */
}

void heddle__profile_begin(heddle__profile *p) {
  (void)p;
}

heddle_status heddle__profile_action(heddle__profile *p, heddle__bound *b, const heddle__line *line,
                                     const heddle__action *a, heddle_error *err) {
  (void)p, (void)b, (void)line, (void)a, (void)err;
  return HEDDLE_OK;
}

heddle_status heddle__profile_finish(heddle__profile *p, heddle__bound *b, const heddle_profile_entry **out, size_t *n,
                                     heddle_error *err) {
  (void)p, (void)b, (void)out, (void)n, (void)err;
  return HEDDLE_OK;
}

#endif
