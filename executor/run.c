/* executor/run.c: the loop of a run: submits what is ready, runs what is the host's, sleeps when there is neither.
 * Who calls it, and what becomes of a run that failed, is drive.c's business. */
#include "executor/run.h"

#include <stdio.h>
#include <string.h>

#include "core/context.h"
#include "core/error.h"
#include "core/failure.h"
#include "executor/chain.h"
#include "executor/profile.h"
#include "executor/watchdog.h"

#define SLICE_NS UINT64_C(100000000)  /* a completion may never come: look at the streams this often */
#define MOMENT_NS UINT64_C(100000000) /* for work that only waited for a device that was reset */
#define SPIN_NS UINT64_C(20000)
#define CHECK_NS UINT64_C(20000) /* how far apart a run with a deadline reads the clock, roughly */
enum { CHECK_MOST = 64, DRY_POLLS = 2 };

#if defined(__GNUC__)
#define LIKELY(x) __builtin_expect(!!(x), 1)
#else
#define LIKELY(x) (x)
#endif

/* ---- single actions */

heddle_status heddle__action_run(const heddle__line *line, const heddle__action *a, heddle_error *err) {
  switch (a->kind) {
  case HEDDLE__STEP_OP: return a->op->run(a->launch, err);
  case HEDDLE__STEP_H2D:
    if (a->bytes == 0) return HEDDLE_OK;
    return line->t->copy.h2d(line->stream, a->dst, a->dst_offset, a->src, a->src_offset, a->bytes, err);
  case HEDDLE__STEP_D2H:
    if (a->bytes == 0) return HEDDLE_OK;
    return line->t->copy.d2h(line->stream, a->dst, a->dst_offset, a->src, a->src_offset, a->bytes, err);
  case HEDDLE__STEP_D2D:
    if (a->bytes == 0) return HEDDLE_OK;
    return line->t->copy.d2d(line->stream, a->dst, a->dst_offset, a->src, a->src_offset, a->bytes, err);
  case HEDDLE__STEP_PEER:
    if (a->bytes == 0) return HEDDLE_OK;
    return line->t->copy.peer(line->stream, a->dst_dev->handle, a->dst, a->dst_offset, a->src_dev->handle, a->src,
                              a->src_offset, a->bytes, err);
  case HEDDLE__STEP_HOST_COPY:
    if (a->bytes > 0) memcpy(a->to, a->from, (size_t)a->bytes);
    return HEDDLE_OK;
  case HEDDLE__STEP_RELEASE:
    if (a->bytes == 0) return HEDDLE_OK;
    return a->dst_dev->t->memory.flush(a->dst_dev->handle, a->dst, a->dst_offset, a->bytes, err);
  case HEDDLE__STEP_ACQUIRE:
    if (a->bytes == 0) return HEDDLE_OK;
    return a->dst_dev->t->memory.invalidate(a->dst_dev->handle, a->dst, a->dst_offset, a->bytes, err);
  default: return HEDDLE_OK;
  }
}

/* The present run, as the functions below share it. */
typedef struct trip {
  heddle__bound *b;
  const heddle__helm *helm;
  heddle_error *err;
  heddle_status status; /* of the failure */
  uint64_t last_ns;     /* when the clock was last read; with a deadline only */
  uint32_t check_in;    /* steps until it is read again */
  uint32_t check_every;
} trip;

/* A call said that a device is lost. Of a copy between two devices that may be either, so each is asked; where none
 * owns up it is the one whose stream it was. */
static void note_lost(const heddle__bound *b, heddle_device *dev, const heddle_error *err) {
  bool known = false;
  for (uint32_t i = 0; i < b->n_lines; i++) {
    heddle_device *own = b->lines[i].dev;
    heddle_error why = {0};
    if (own == NULL || own->t->device.health(own->handle, &why) != HEDDLE_EDEVICE) continue;
    heddle__device_fault(own, why.api_code, why.text);
    known = true;
  }
  if (!known && dev != NULL) heddle__device_fault(dev, err->api_code, err->text);
}

/* Words for a failure of an action; the cold path. */
static HEDDLE__COLD heddle__run_end failed(trip *t, uint32_t step, heddle_device *dev, heddle_status status) {
  char what[256];
  heddle__program_say(t->b->program, step, what, sizeof what);
  if (status == HEDDLE_EDEVICE) note_lost(t->b, dev, t->err);
  t->b->culprit = dev;
  t->status = heddle__prefix(t->err, status, "%s: ", what);
  if (dev != NULL) heddle__at_device(status, t->err, dev->name);
  heddle__program_blame(t->b->program, step, status, t->err);
  return HEDDLE__RUN_FAILED;
}

/* ---- the host's segments */

/* With a deadline, the clock is read about every CHECK_NS: after one step where steps are long, after 64 where they are
 * short. */
static bool is_late(trip *t) {
  if (t->helm->deadline_ns == HEDDLE_FOREVER || --t->check_in > 0) return false;
  uint64_t now = heddle__now_ns();
  if (now - t->last_ns < CHECK_NS && t->check_every < CHECK_MOST) t->check_every *= 2;
  else if (now - t->last_ns > 4 * CHECK_NS) t->check_every = 1;
  t->last_ns = now;
  t->check_in = t->check_every;
  return now >= t->helm->deadline_ns;
}

static inline bool attention(const heddle__helm *helm) {
  return atomic_load_explicit(helm->attention, memory_order_relaxed) != 0 && helm->heed(helm->user);
}

/* Behind a step that could not be stopped, the run says that it is late because of that. */
static HEDDLE__COLD heddle__run_end late(trip *t, uint32_t step) {
  t->b->waited = heddle__program_calls(t->b->program, step) ? step : HEDDLE__NONE;
  return HEDDLE__RUN_LATE;
}

/* The functions of a compiled library, one after another. */
static heddle__run_end run_row(trip *t, heddle__line *line, const heddle__stretch *x) {
  while (line->at < x->count) {
    heddle_status s = x->row(x->launches, &line->at, x->count, t->helm->attention, t->err);
    if (s != HEDDLE_OK) return failed(t, x->actions[line->at].step, line->dev, s);
    if (attention(t->helm)) return HEDDLE__RUN_STOPPED;
  }
  return HEDDLE__RUN_DONE;
}

/* Runs what is left of a host segment. The first loop is what a run of small operators consists of. */
static heddle__run_end run_host(trip *t, heddle__line *line, uint32_t segment) {
  const heddle__stretch *x = &t->b->stretches[segment];
  const heddle__helm *helm = t->helm;
  uint32_t i = line->at;
  bool timed = helm->deadline_ns != HEDDLE_FOREVER;
  const bool plain = helm->profile == NULL && helm->step == NULL;
  if (x->row != NULL && plain && !timed) {
    heddle__run_end end = run_row(t, line, x);
    if (end != HEDDLE__RUN_DONE) return end;
  } else if (LIKELY(x->launches != NULL && plain)) {
    if (x->count > 0) {
      heddle_status (*const run)(heddle_plaunch *, heddle_error *) = x->actions[0].op->run;
      heddle_plaunch *const *launches = x->launches;
      for (const uint32_t n = x->count; i < n;) {
        heddle_status s = run(launches[i], t->err);
        if (!LIKELY(s == HEDDLE_OK)) {
          line->at = i;
          return failed(t, x->actions[i].step, line->dev, s);
        }
        i++;
        if (!LIKELY(atomic_load_explicit(helm->attention, memory_order_relaxed) == 0) && helm->heed(helm->user)) {
          line->at = i;
          return HEDDLE__RUN_STOPPED;
        }
        if (timed && is_late(t)) {
          line->at = i;
          return late(t, x->actions[i - 1].step);
        }
      }
    }
  } else {
    while (i < x->count) {
      const heddle__action *a = &x->actions[i];
      if (helm->step != NULL) atomic_store_explicit(helm->step, a->step, memory_order_relaxed);
      heddle_status s = helm->profile != NULL ? heddle__profile_action(helm->profile, t->b, line, a, t->err)
                                              : heddle__action_run(line, a, t->err);
      line->at = i;
      if (s != HEDDLE_OK) return failed(t, a->step, a->kind == HEDDLE__STEP_OP ? line->dev : a->dst_dev, s);
      line->at = ++i;
      if (attention(helm)) return HEDDLE__RUN_STOPPED;
      if (timed && is_late(t)) return late(t, a->step);
    }
  }
  line->at = 0;
  line->done += t->b->program->segments[segment].count;
  line->next++;
  return HEDDLE__RUN_DONE;
}

/* ---- the devices' segments */

static heddle__run_end submit(trip *t, heddle__line *line, uint32_t segment) {
  heddle__bound *b = t->b;
  const heddle__program *p = b->program;
  const heddle__segment *seg = &p->segments[segment];
  const heddle__stretch *x = &b->stretches[segment];
  const heddle__tables *tables = line->t;
  heddle_error *err = t->err;
  uint32_t step = p->order[seg->first];
  heddle_status s = HEDDLE_OK;
  line->busy = true;
  for (uint32_t i = 0; i < seg->n_gates && s == HEDDLE_OK; i++) {
    const heddle__gate *g = &p->gates[seg->first_gate + i];
    if (g->by == HEDDLE__BY_EVENT) s = tables->event.wait(line->stream, b->events[g->step], err);
  }
  if (s == HEDDLE_OK && x->graph != NULL && t->helm->profile == NULL) {
    s = tables->capture.replay(x->graph, line->stream, err);
  } else {
    for (uint32_t i = 0; i < x->count && s == HEDDLE_OK; i++) {
      step = x->actions[i].step;
      s = t->helm->profile != NULL ? heddle__profile_action(t->helm->profile, b, line, &x->actions[i], err)
                                   : heddle__action_run(line, &x->actions[i], err);
    }
  }
  if (s == HEDDLE_OK && seg->event_step != HEDDLE__NONE)
    s = tables->event.record(b->events[seg->event_step], line->stream, err);
  if (s == HEDDLE_OK)
    s = seg->ordinal != 0 ? tables->fence.signal(line->stream, line->fence_handle, line->base + seg->ordinal, err)
                          : tables->stream.submit(line->stream, err);
  if (s != HEDDLE_OK) return failed(t, step, line->dev, s);
  line->done += seg->count;
  line->next++;
  return HEDDLE__RUN_DONE;
}

/* Whether the head of a line may go; a fence that failed ends the run. */
static bool is_ready(trip *t, const heddle__line *line) {
  const heddle__program *p = t->b->program;
  const heddle__segment *seg = &p->segments[line->next];
  for (uint32_t i = 0; i < seg->n_gates; i++) {
    const heddle__gate *g = &p->gates[seg->first_gate + i];
    heddle__line *from = &t->b->lines[g->stream];
    if (g->by != HEDDLE__BY_FENCE) {
      if (from->done < g->seq) return false;
      continue;
    }
    /* A fence may still hold the value of a step that was not submitted in this run: base grows with each run, so it
     * does not. */
    if (heddle__fence_reached(from->fence, from->base + g->ordinal)) continue;
    heddle_status s = heddle__fence_failed(from->fence);
    if (s == HEDDLE_OK) return false;
    char what[256];
    heddle__program_say(p, g->step, what, sizeof what);
    s = heddle__fence_error(from->fence, t->err);
    if (s == HEDDLE_EDEVICE) heddle__device_fault(from->dev, t->err->api_code, t->err->text);
    t->b->culprit = from->dev;
    t->status = heddle__prefix(t->err, s, "%s, or work before it: ", what);
    heddle__at_device(s, t->err, from->dev->name);
    heddle__program_blame(p, g->step, s, t->err);
    return false;
  }
  return true;
}

/* ---- sleeping */

/* A second look at streams whose completions are overdue. A stream that says twice, a slice apart, that all of its work
 * is done while its fence was not signalled has lost a completion; the fence is raised here. */
static void poll_streams(trip *t, uint32_t *dry) {
  heddle__bound *b = t->b;
  for (uint32_t i = 0; i < b->n_lines && t->status == HEDDLE_OK; i++) {
    heddle__line *l = &b->lines[i];
    if (l->is_host || !l->busy) continue;
    heddle_status s = heddle__device_check(l->dev, t->err);
    if (s == HEDDLE_OK) s = l->t->stream.query(l->stream, t->err);
    if (s == HEDDLE_EBUSY) {
      *dry = 0;
      return;
    }
    if (s == HEDDLE_OK) continue;
    if (s == HEDDLE_EDEVICE) heddle__device_fault(l->dev, t->err->api_code, t->err->text);
    t->b->culprit = l->dev;
    t->status = heddle__prefix_on(l->dev->name, t->err, s, "%s, stream %u: ", l->dev->name, (unsigned)i);
  }
  if (t->status != HEDDLE_OK || ++*dry < DRY_POLLS) return;
  for (uint32_t i = 0; i < b->n_lines; i++) {
    heddle__line *l = &b->lines[i];
    uint32_t reached = 0;
    for (uint32_t k = l->first; k < l->next && !l->is_host; k++)
      if (b->program->segments[k].ordinal > reached) reached = b->program->segments[k].ordinal;
    if (reached == 0 || heddle__fence_reached(l->fence, l->base + reached)) continue;
    heddle__logf(heddle__context_log(l->dev->ctx), HEDDLE_LOG_WARN, "executor",
                 "%s, stream %u: its work is done and a completion was never reported; the run goes on", l->dev->name,
                 (unsigned)i);
    heddle__fence_signal(l->fence_handle, l->base + reached);
  }
  *dry = 0;
}

/* Devices that say so signal in query what their streams have reached. What is wrong there comes by the fences. */
static void ask_for_completions(const trip *t) {
  for (uint32_t i = 0; i < t->b->n_lines; i++) {
    const heddle__line *l = &t->b->lines[i];
    if (!l->is_host && l->busy && (l->dev->desc.caps & HEDDLE_CAP_POLLED) != 0)
      (void)l->t->stream.query(l->stream, NULL);
  }
}

static heddle__run_end sleep_until_woken(trip *t, unsigned seen, uint32_t *dry) {
  uint64_t now = heddle__now_ns(), deadline = t->helm->deadline_ns;
  if (t->b->spins) {
    uint64_t until = now + (t->b->polls_ns > SPIN_NS ? t->b->polls_ns : SPIN_NS);
    while (atomic_load_explicit(&t->helm->waker->epoch, memory_order_acquire) == seen && now < until) {
      if (t->b->polls_ns > 0) ask_for_completions(t);
      now = heddle__now_ns();
    }
    if (atomic_load_explicit(&t->helm->waker->epoch, memory_order_acquire) != seen) return HEDDLE__RUN_DONE;
  }
  uint64_t until = now + SLICE_NS < deadline ? now + SLICE_NS : deadline;
  if (t->b->has_watchdog) {
    t->status = heddle__watchdog_look(t->b, now, &until, t->err);
    if (t->status != HEDDLE_OK) return HEDDLE__RUN_FAILED;
  }
  if (heddle__waker_wait(t->helm->waker, seen, until)) {
    *dry = 0;
    return HEDDLE__RUN_DONE;
  }
  if (until == deadline && heddle__now_ns() >= deadline) return HEDDLE__RUN_LATE;
  poll_streams(t, dry);
  return t->status != HEDDLE_OK ? HEDDLE__RUN_FAILED : HEDDLE__RUN_DONE;
}

/* ---- the loop */

/* Submits all device segments that are ready; devices first, since they work while the host does. */
static heddle__run_end submit_ready(trip *t, bool *moved) {
  heddle__bound *b = t->b;
  for (uint32_t i = 0; i < b->n_lines; i++) {
    heddle__line *l = &b->lines[i];
    while (!l->is_host && l->next < l->end && is_ready(t, l)) {
      heddle__run_end end = submit(t, l, l->next);
      if (end != HEDDLE__RUN_DONE) return end;
      *moved = true;
    }
    if (t->status != HEDDLE_OK) return HEDDLE__RUN_FAILED;
  }
  return HEDDLE__RUN_DONE;
}

static heddle__run_end run_one_host(trip *t, bool *moved, bool *left) {
  heddle__bound *b = t->b;
  *left = false;
  for (uint32_t i = 0; i < b->n_lines; i++) {
    heddle__line *l = &b->lines[i];
    if (l->next == l->end) continue;
    *left = true;
    if (!l->is_host || !is_ready(t, l)) continue;
    *moved = true;
    return run_host(t, l, l->next);
  }
  return t->status != HEDDLE_OK ? HEDDLE__RUN_FAILED : HEDDLE__RUN_DONE;
}

/* A failure on one device because another was lost is reported as the loss of that other one. */
static HEDDLE__COLD void find_cause(trip *t) {
  for (uint32_t i = 0; i < t->b->n_lines && t->status != HEDDLE_EDEVICE; i++) {
    const heddle__line *l = &t->b->lines[i];
    heddle_error why;
    if (l->dev == NULL || l->is_host || heddle__device_check(l->dev, &why) == HEDDLE_OK) continue;
    char what[256] = "";
    uint32_t step = heddle__watchdog_suspect(t->b, l);
    if (step == HEDDLE__NONE && i + 1 < t->b->n_lines && t->b->lines[i + 1].dev == l->dev) continue;
    if (step != HEDDLE__NONE) heddle__program_say(t->b->program, step, what, sizeof what);
    if (!heddle__has_words(t->err, why.text)) heddle__prefix(t->err, HEDDLE_EDEVICE, "%s; ", why.text);
    t->status = heddle__prefix(t->err, HEDDLE_EDEVICE, "%s%s", what, what[0] != '\0' ? ", or work near it: " : "");
    t->err->api_code = why.api_code;
    const char *named = heddle__failed_device(t->err);
    if (named != NULL && strcmp(named, l->dev->name) != 0) heddle__clear_members(t->err); /* it only met the loss */
    if (step != HEDDLE__NONE) heddle__program_blame(t->b->program, step, t->status, t->err);
    heddle__at_device(t->status, t->err, l->dev->name);
  }
}

/* Others may follow the run once all of it is submitted. */
static heddle__run_end hand_on(trip *t) {
  heddle_status s = heddle__chain_hand(t->b, t->err);
  if (s == HEDDLE_OK) return HEDDLE__RUN_DONE;
  t->status = heddle__prefix(t->err, s, "a mark behind the run: ");
  return HEDDLE__RUN_FAILED;
}

heddle__run_end heddle__run_drive(heddle__bound *b, const heddle__helm *helm, heddle_status *status,
                                  heddle_error *err) {
  trip t = {.b = b, .helm = helm, .err = err, .check_in = 1, .check_every = 1};
  uint32_t dry = 0;
  heddle__run_end end;
  for (;;) {
    unsigned seen = atomic_load(&helm->waker->epoch); /* before all that a wake-up may be about */
    if (attention(helm)) {
      end = HEDDLE__RUN_STOPPED;
      break;
    }
    bool moved = false, left = true;
    end = b->all_inline ? HEDDLE__RUN_DONE : submit_ready(&t, &moved);
    if (end == HEDDLE__RUN_DONE && b->chain != NULL) end = hand_on(&t);
    if (end == HEDDLE__RUN_DONE && helm->aim != HEDDLE__AIM_END)
      if (helm->aim == HEDDLE__AIM_SUBMIT || heddle__chain_handed(b)) return HEDDLE__RUN_LATE;
    if (end == HEDDLE__RUN_DONE) end = run_one_host(&t, &moved, &left);
    if (end != HEDDLE__RUN_DONE || !left) break;
    if (!moved) end = sleep_until_woken(&t, seen, &dry);
    if (end != HEDDLE__RUN_DONE) break;
  }
  if (end == HEDDLE__RUN_FAILED) {
    find_cause(&t);
    *status = t.status;
  }
  return end;
}

void heddle__run_reset(heddle__bound *b) {
  b->waited = HEDDLE__NONE;
  for (uint32_t i = 0; i < b->n_lines; i++) {
    heddle__line *l = &b->lines[i];
    l->next = l->first;
    l->at = 0;
    l->done = 0;
    l->busy = false;
    l->watched = HEDDLE__NONE;
  }
}

void heddle__run_finish(heddle__bound *b) {
  if (b->all_inline) return;
  for (uint32_t i = 0; i < b->n_lines; i++) {
    b->lines[i].base += b->program->lanes[i].n_signals;
    b->lines[i].busy = false;
  }
}

bool heddle__run_drain(heddle__bound *b, uint64_t timeout_ns, char *what, size_t size) {
  uint64_t start = heddle__now_ns();
  bool drained = true, first_ended = false;
  for (uint32_t i = 0; i < b->n_lines; i++) /* what waits for a device that hangs does not end either */
    if (b->lines[i].dev != NULL && b->lines[i].busy) timeout_ns = heddle__device_patience(b->lines[i].dev, timeout_ns);
  for (uint32_t k = 0; k < 2 * b->n_lines; k++) { /* the lost devices first, which may be reset: others wait for them */
    const uint32_t i = k % b->n_lines;
    heddle__line *l = &b->lines[i];
    if (l->is_host || l->stream == NULL || !l->busy) continue;
    if (k < b->n_lines && heddle__device_check(l->dev, NULL) == HEDDLE_OK) continue;
    uint64_t spent = heddle__now_ns() - start, left = spent < timeout_ns ? timeout_ns - spent : 0;
    bool quiet;
    if (first_ended && left < MOMENT_NS) left = MOMENT_NS; /* what waited for it ends now */
    heddle__device_settle(l->dev, l->stream, left, &quiet, NULL);
    if (quiet) {
      l->busy = false;
      first_ended = first_ended || k < b->n_lines;
      continue;
    }
    if (k < b->n_lines) continue;
    if (drained) snprintf(what, size, "%s, stream %u", l->dev->name, (unsigned)i);
    drained = false;
  }
  return drained;
}

HEDDLE__COLD uint32_t heddle__run_say(const heddle__bound *b, char *out, size_t size) {
  const heddle__program *p = b->program;
  if (b->waited != HEDDLE__NONE) {
    char what[256];
    heddle__program_say_waited(p, b->waited, what, sizeof what);
    snprintf(out, size, "%s was waited for: a compiled function cannot be stopped", what);
    return b->waited;
  }
  for (uint32_t i = 0; i < b->n_lines; i++) {
    const heddle__line *l = &b->lines[i];
    if (l->next == l->end) continue;
    const heddle__segment *seg = &p->segments[l->next];
    char what[256];
    for (uint32_t k = 0; k < seg->n_gates; k++) {
      const heddle__gate *g = &p->gates[seg->first_gate + k];
      heddle__line *from = &b->lines[g->stream];
      if (g->by != HEDDLE__BY_FENCE || from->done < g->seq ||
          heddle__fence_reached(from->fence, from->base + g->ordinal))
        continue;
      const uint32_t op = heddle__watchdog_suspect(b, from);
      const uint32_t step = op != HEDDLE__NONE ? op : g->step;
      heddle__program_say_waited(p, step, what, sizeof what);
      snprintf(out, size, "%s%s has not finished", what, step != g->step ? ", or work near it," : "");
      return step;
    }
  }
  for (uint32_t i = 0; i < b->n_lines; i++) {
    const heddle__line *l = &b->lines[i];
    if (l->next == l->end) continue;
    char what[256];
    uint32_t at = l->at < p->segments[l->next].count ? l->at : 0;
    const uint32_t step = p->order[p->segments[l->next].first + at];
    heddle__program_say_waited(p, step, what, sizeof what);
    snprintf(out, size, "next is %s", what);
    return step;
  }
  snprintf(out, size, "all steps are through");
  return HEDDLE__NONE;
}
