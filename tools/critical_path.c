/* tools/critical_path.c: from the end of a run back to its begin, along what each step waited for last. */
#include "critical_path.h"

#define NOBODY UINT32_MAX

/* What step i comes after and ended last; NOBODY where nothing. */
static uint32_t last_before(const path_step *steps, uint32_t i, path_by *by) {
  uint32_t best = NOBODY;
  *by = PATH_BEGIN;
  for (uint32_t k = i; k-- > 0;) {
    if (steps[k].stream != steps[i].stream || !steps[k].ran) continue;
    best = k;
    *by = PATH_STREAM;
    break;
  }
  for (size_t w = 0; w < steps[i].n_waits; w++) {
    const path_wait *wait = &steps[i].waits[w];
    if (!steps[wait->step].ran || (best != NOBODY && steps[wait->step].end <= steps[best].end)) continue;
    best = wait->step;
    *by = wait->by;
  }
  return best;
}

/* Whether the calling thread has to do something before a step can start: run it, send it first of all, or send it once
 * a wait is over. What comes after steps of its own stream or events alone was sent long before. */
static bool needs_thread(const path_step *step, path_by by) {
  bool needs = step->is_host || by == PATH_BEGIN;
  for (size_t w = 0; w < step->n_waits; w++) needs = needs || step->waits[w].by != PATH_EVENT;
  return needs;
}

/* How much of [from, to) the calling thread spent in steps. *last goes down with from: steps of the host do not overlap,
 * so those before it are over by then. */
static uint64_t thread_time(const path_step *steps, const uint32_t *order, size_t *last, uint64_t from, uint64_t to) {
  uint64_t sum = 0;
  while (*last > 0 && steps[order[*last - 1]].start >= to) --*last;
  for (size_t k = *last; k-- > 0;) {
    const path_step *s = &steps[order[k]];
    if (!s->is_host) continue;
    if (s->end <= from) break;
    sum += (s->end < to ? s->end : to) - (s->start > from ? s->start : from);
  }
  return sum < to - from ? sum : to - from;
}

size_t critical_path(const path_step *steps, const uint32_t *order, size_t n_ran, path_part *out) {
  if (n_ran == 0) return 0;
  size_t n = 0, last = n_ran;
  uint64_t begin = steps[order[0]].start;
  uint32_t at = order[0];
  for (size_t k = 0; k < n_ran; k++)
    if (steps[order[k]].end > steps[at].end) at = order[k];
  uint64_t cursor = steps[at].end; /* nothing of the path is later that has not been counted */
  while (at != NOBODY && n < n_ran) {
    const path_step *s = &steps[at];
    path_part *part = &out[n++];
    *part = (path_part){.step = at, .start = s->start < cursor ? s->start : cursor};
    part->takes = cursor - part->start;
    cursor = part->start;
    at = last_before(steps, at, &part->by);
    uint64_t from = at != NOBODY ? steps[at].end : begin;
    if (from > cursor) from = cursor;
    if (needs_thread(s, part->by)) part->busy = thread_time(steps, order, &last, from, cursor);
    part->gap = cursor - from - part->busy;
    cursor = from;
  }
  for (size_t i = 0; i < n / 2; i++) {
    path_part swap = out[i];
    out[i] = out[n - 1 - i];
    out[n - 1 - i] = swap;
  }
  return n;
}
