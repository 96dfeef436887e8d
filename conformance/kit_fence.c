/* conformance/kit_fence.c: the fences of the kit's host. A fence is (slot + 1, generation) packed; what comes for one that
 * is gone is ignored, as heddle/plugin.h says, and counted. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "conformance/kit_side.h"

enum { SLICE_MS = 100 };

struct kit_slot {
  uint32_t generation;
  bool live;
  uint32_t signals;
  heddle_status failed; /* HEDDLE_OK: it has not */
  uint64_t value;
  char words[1016];
};

bool kit_fences_init(kit_timelines *f) {
  pthread_condattr_t clock;
  f->slots = calloc(KIT_FENCES, sizeof *f->slots);
  if (f->slots == NULL || pthread_mutex_init(&f->lock, NULL) != 0 || pthread_condattr_init(&clock) != 0) return false;
  bool ok = pthread_condattr_setclock(&clock, CLOCK_MONOTONIC) == 0 && pthread_cond_init(&f->changed, &clock) == 0;
  pthread_condattr_destroy(&clock);
  return ok;
}

/* The fence's slot, NULL where it is gone. The lock is held. */
static struct kit_slot *find(kit_timelines *f, heddle_pfence fence) {
  uint64_t slot = fence & UINT32_MAX;
  if (slot == 0 || slot > f->used) return NULL;
  struct kit_slot *s = &f->slots[slot - 1];
  return s->live && s->generation == fence >> 32 ? s : NULL;
}

heddle_pfence kit_fence(kit *k) {
  kit_timelines *f = &k->side->fences;
  heddle_pfence fence = 0;
  pthread_mutex_lock(&f->lock);
  uint32_t i = 0;
  while (i < f->used && f->slots[i].live) i++;
  if (i < KIT_FENCES) {
    struct kit_slot *s = &f->slots[i];
    if (i == f->used) f->used++;
    *s = (struct kit_slot){.generation = s->generation + 1, .live = true};
    fence = (uint64_t)s->generation << 32 | (i + 1);
  }
  pthread_mutex_unlock(&f->lock);
  if (fence == 0) kit_skip(k, "the kit has no more fences than %d at a time", KIT_FENCES);
  return fence;
}

void kit_fence_free(kit *k, heddle_pfence fence) {
  kit_timelines *f = &k->side->fences;
  pthread_mutex_lock(&f->lock);
  struct kit_slot *s = find(f, fence);
  if (s != NULL) s->live = false;
  pthread_mutex_unlock(&f->lock);
}

/* ---- from the plugin */

static void raise_to(kit *k, heddle_pfence fence, uint64_t value, bool counts) {
  kit_timelines *f = &k->side->fences;
  pthread_mutex_lock(&f->lock);
  struct kit_slot *s = find(f, fence);
  if (s == NULL) {
    f->strays += counts;
  } else {
    s->signals += counts;
    if (s->failed == HEDDLE_OK && value > s->value) s->value = value;
    pthread_cond_broadcast(&f->changed);
  }
  pthread_mutex_unlock(&f->lock);
}

static void fail_with(kit *k, heddle_pfence fence, heddle_status status, const char *text, bool counts) {
  kit_timelines *f = &k->side->fences;
  pthread_mutex_lock(&f->lock);
  struct kit_slot *s = find(f, fence);
  if (s == NULL) {
    f->strays += counts;
  } else {
    s->signals += counts;
    if (s->failed == HEDDLE_OK) {
      s->failed = status == HEDDLE_OK ? HEDDLE_EFAILED : status;
      size_t n = strlen(text);
      if (n >= sizeof s->words) n = sizeof s->words - 1;
      memcpy(s->words, text, n);
      s->words[n] = '\0';
    }
    pthread_cond_broadcast(&f->changed);
  }
  pthread_mutex_unlock(&f->lock);
}

void kit_fences_signal(kit *k, heddle_pfence fence, uint64_t value) {
  raise_to(k, fence, value, true);
}

void kit_fences_fail(kit *k, heddle_pfence fence, heddle_status status, const char *text) {
  const char *fault = contract_text_fault(text, sizeof(((heddle_error *)NULL)->text));
  const bool no_failure = status <= HEDDLE_OK || status >= HEDDLE_STATUS_COUNT;
  if (no_failure || fault != NULL || text[0] == '\0')
    kit_fault_is(k, KIT_FAULT_HOST, offsetof(heddle_host, fence_fail), no_failure);
  if (no_failure) kit_fail(k, "host.fence_fail was called with status %d, which is no failure", (int)status);
  if (fault != NULL) kit_fail(k, "host.fence_fail was called with a text that %s", fault);
  if (text[0] == '\0') kit_fail(k, "host.fence_fail was called without words");
  fail_with(k, fence, status, text, true);
}

/* HEDDLE_EBUSY: not yet. A value that was reached before the failure stays reached. */
static heddle_status state(const struct kit_slot *s, uint64_t value) {
  if (s == NULL) return HEDDLE_ECANCELED;
  if (s->value >= value) return HEDDLE_OK;
  return s->failed != HEDDLE_OK ? s->failed : HEDDLE_EBUSY;
}

heddle_status kit_fences_query(kit *k, heddle_pfence fence, uint64_t value) {
  kit_timelines *f = &k->side->fences;
  pthread_mutex_lock(&f->lock);
  heddle_status s = state(find(f, fence), value);
  pthread_mutex_unlock(&f->lock);
  return s;
}

/* ---- for the cases */

/* What a signal that does not come may be for want of: a stream that waited for a fence may wait still. */
static unsigned promised_by(const kit *k) {
  const unsigned wait = kit_call_number("fence.wait");
  return kit_call_in(k->side->page->called, wait) ? wait : kit_call_number("fence.signal");
}

heddle_status kit_fence_wait(kit *k, heddle_pfence fence, uint64_t value, uint64_t timeout_ms) {
  kit_timelines *f = &k->side->fences;
  const unsigned call = promised_by(k);
  const uint64_t start = kit_now_ms();
  pthread_mutex_lock(&f->lock);
  heddle_status s = state(find(f, fence), value);
  while (s == HEDDLE_EBUSY) {
    const uint64_t limit = kit_overdue_ms(k, call, kit_overdue_ms(k, kit_call_number("fence.signal"), timeout_ms));
    const uint64_t past = kit_now_ms() - start;
    if (past >= limit) break;
    const uint64_t ms = limit - past < SLICE_MS ? limit - past : SLICE_MS; /* the limit may shrink meanwhile */
    struct timespec end;
    clock_gettime(CLOCK_MONOTONIC, &end);
    end.tv_nsec += (long)ms * 1000000;
    if (end.tv_nsec >= 1000000000) end.tv_sec++, end.tv_nsec -= 1000000000;
    pthread_cond_timedwait(&f->changed, &f->lock, &end);
    s = state(find(f, fence), value);
  }
  pthread_mutex_unlock(&f->lock);
  if (s != HEDDLE_EBUSY) return s;
  if (timeout_ms >= kit_patience_ms(k, KIT_PATIENT_MS)) kit_fault_is(k, KIT_FAULT_OVERDUE, call, 0);
  return HEDDLE_ETIMEOUT;
}

uint64_t kit_fence_value(kit *k, heddle_pfence fence) {
  pthread_mutex_lock(&k->side->fences.lock);
  struct kit_slot *s = find(&k->side->fences, fence);
  uint64_t value = s != NULL ? s->value : 0;
  pthread_mutex_unlock(&k->side->fences.lock);
  return value;
}

uint32_t kit_fence_signals(kit *k, heddle_pfence fence) {
  pthread_mutex_lock(&k->side->fences.lock);
  struct kit_slot *s = find(&k->side->fences, fence);
  uint32_t signals = s != NULL ? s->signals : 0;
  pthread_mutex_unlock(&k->side->fences.lock);
  return signals;
}

/* The words stay where they are until the fence is freed and made anew. */
const char *kit_fence_words(kit *k, heddle_pfence fence) {
  pthread_mutex_lock(&k->side->fences.lock);
  struct kit_slot *s = find(&k->side->fences, fence);
  pthread_mutex_unlock(&k->side->fences.lock);
  return s != NULL ? s->words : "";
}

void kit_fence_raise(kit *k, heddle_pfence fence, uint64_t value) {
  raise_to(k, fence, value, false);
}

void kit_fence_break(kit *k, heddle_pfence fence, const char *words) {
  fail_with(k, fence, HEDDLE_EFAILED, words, false);
}

uint32_t kit_strays(kit *k) {
  pthread_mutex_lock(&k->side->fences.lock);
  uint32_t strays = k->side->fences.strays;
  pthread_mutex_unlock(&k->side->fences.lock);
  return strays;
}
