/* executor/watchdog.c: the time of a piece of work is that between two signals of its stream: from when the one before it
 * ended, or its driver first saw it pending, until its own. */
#include "executor/watchdog.h"

#include <stdio.h>

#include "core/error.h"
#include "core/failure.h"

/* The oldest segment that was submitted and is not known to have ended; HEDDLE__NONE: there is none. Not every segment has
 * a signal of its own: without one behind it, the stream is asked. */
static uint32_t oldest(const heddle__bound *b, const heddle__line *l) {
  const heddle__program *p = b->program;
  uint32_t found = l->first;
  bool signals = false;
  if (l->is_host || !l->busy) return HEDDLE__NONE;
  for (uint32_t k = l->first; k < l->next && !signals; k++) {
    const uint32_t ordinal = p->segments[k].ordinal;
    if (ordinal == 0) continue;
    signals = !heddle__fence_reached(l->fence, l->base + ordinal);
    if (!signals) found = k + 1;
  }
  if (found >= l->next) return HEDDLE__NONE;
  return signals || l->t->stream.query(l->stream, NULL) == HEDDLE_EBUSY ? found : HEDDLE__NONE;
}

/* Whether a gate is that of an event which has not come so far. */
static bool is_shut(const heddle__bound *b, const heddle__gate *g) {
  if (g->by != HEDDLE__BY_EVENT) return false;
  const heddle__line *from = &b->lines[g->stream];
  const uint32_t pending = oldest(b, from);
  uint32_t before = 0; /* steps of the stream before what is pending */
  for (uint32_t k = from->first; k < pending && k < from->next; k++) before += b->program->segments[k].count;
  return pending != HEDDLE__NONE && before < g->seq;
}

/* Whether what is pending on a line, up to its next signal, waits for other work. */
static bool is_blocked(const heddle__bound *b, const heddle__line *l, uint32_t pending) {
  const heddle__program *p = b->program;
  for (uint32_t k = pending; k < l->next; k++) {
    const heddle__segment *seg = &p->segments[k];
    for (uint32_t i = 0; i < seg->n_gates; i++)
      if (is_shut(b, &p->gates[seg->first_gate + i])) return true;
    if (seg->ordinal != 0) break;
  }
  return false;
}

uint32_t heddle__watchdog_suspect(const heddle__bound *b, const heddle__line *l) {
  const heddle__program *p = b->program;
  uint32_t found = HEDDLE__NONE;
  for (uint32_t k = l->first; k < l->next; k++) {
    const heddle__segment *seg = &p->segments[k];
    for (uint32_t i = 0; i < seg->count && found == HEDDLE__NONE; i++) {
      uint32_t step = p->order[seg->first + i];
      if (p->plan->steps[step].kind == HEDDLE__STEP_OP) found = step;
    }
    if (seg->ordinal != 0 && heddle__fence_reached(l->fence, l->base + seg->ordinal)) found = HEDDLE__NONE;
  }
  return found;
}

static HEDDLE__COLD heddle_status expired(heddle__bound *b, const heddle__line *l, uint64_t took_ns,
                                          heddle_error *err) {
  const heddle__program *p = b->program;
  const heddle__segment *seg = &p->segments[l->watched];
  uint32_t step = heddle__watchdog_suspect(b, l);
  char what[256];
  const bool alone = seg->count == 1;
  if (step == HEDDLE__NONE) step = p->order[seg->first];
  heddle__program_say(p, step, what, sizeof what);
  heddle__fail(err, HEDDLE_EDEVICE, "%s: %s%s has not ended after %llu ms, over its watchdog_ms of %llu", l->dev->name,
               what, alone ? "" : ", or work near it,", (unsigned long long)(took_ns / 1000000),
               (unsigned long long)(l->dev->watchdog_ns / 1000000));
  atomic_store(&l->dev->hung, true);
  heddle__device_fault(l->dev, 0, err->text);
  b->culprit = l->dev;
  heddle__at_device(HEDDLE_EDEVICE, err, l->dev->name);
  return heddle__program_blame(p, step, HEDDLE_EDEVICE, err);
}

/* Whether all that is pending seems to wait for other work. What an event's stream has passed is known only by its signals,
 * so two streams that wait for each other in turn may both seem to: one of them runs. */
static bool are_all_blocked(const heddle__bound *b) {
  for (uint32_t i = 0; i < b->n_lines; i++) {
    const uint32_t pending = oldest(b, &b->lines[i]);
    if (pending != HEDDLE__NONE && !is_blocked(b, &b->lines[i], pending)) return false;
  }
  return true;
}

heddle_status heddle__watchdog_look(heddle__bound *b, uint64_t now_ns, uint64_t *until_ns, heddle_error *err) {
  const bool all_blocked = are_all_blocked(b);
  for (uint32_t i = 0; i < b->n_lines; i++) {
    heddle__line *l = &b->lines[i];
    if (l->dev == NULL || l->dev->watchdog_ns == 0) continue;
    const uint32_t pending = oldest(b, l);
    const bool counts = pending != HEDDLE__NONE && (all_blocked || !is_blocked(b, l, pending));
    if (pending != l->watched || !counts) {
      l->watched = pending;
      l->watched_ns = now_ns;
    }
    if (!counts) continue;
    const uint64_t end_ns = l->watched_ns + l->dev->watchdog_ns;
    if (now_ns >= end_ns) return expired(b, l, now_ns - l->watched_ns, err);
    if (end_ns < *until_ns) *until_ns = end_ns;
  }
  return HEDDLE_OK;
}
