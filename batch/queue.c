/* batch/queue.c: requests that wait, in groups of those that may share a run; which run is next; how requests end.
 * But for heddle__batch_finish all of it is called with the batcher's lock held. */
#include <string.h>

#include "batch/batcher.h"
#include "core/alloc.h"
#include "core/context.h"
#include "core/error.h"

uint64_t heddle__batch_after(uint64_t now_ns, uint64_t ns) {
  return ns < UINT64_MAX - now_ns ? now_ns + ns : UINT64_MAX;
}

/* ---- groups */

static heddle__batch_group *group_for(heddle_batcher *b, const heddle_batch_request *r) {
  heddle__batch_group *g = b->groups;
  while (g != NULL && (g->first->hash != r->hash || !heddle__batch_alike(b, g->first, r))) g = g->next;
  if (g != NULL) return g;
  g = b->free_groups;
  if (g != NULL) b->free_groups = g->next;
  else g = heddle__alloc(1, sizeof *g);
  if (g == NULL) return NULL;
  *g = (heddle__batch_group){.next = b->groups, .due_ns = UINT64_MAX};
  if (b->groups != NULL) b->groups->prev = g;
  b->groups = g;
  return g;
}

static void put_into_group(heddle__batch_group *g, heddle_batch_request *r) {
  heddle_batch_request *after = g->last;
  while (after != NULL && after->priority < r->priority) after = after->prev;
  r->prev = after;
  r->next = after != NULL ? after->next : g->first;
  if (r->prev != NULL) r->prev->next = r;
  else g->first = r;
  if (r->next != NULL) r->next->prev = r;
  else g->last = r;
  r->group = g;
  g->items += r->items;
  if (r->due_ns < g->due_ns) g->due_ns = r->due_ns;
}

/* Takes a request out of its group; a group without requests is gone. The due time of the group is the caller's. */
static void take_from_group(heddle_batcher *b, heddle_batch_request *r) {
  heddle__batch_group *g = r->group;
  if (r->prev != NULL) r->prev->next = r->next;
  else g->first = r->next;
  if (r->next != NULL) r->next->prev = r->prev;
  else g->last = r->prev;
  r->group = NULL;
  r->next = r->prev = NULL;
  g->items -= r->items;
  b->queued -= r->items;
  if (g->first != NULL) return;
  if (g->prev != NULL) g->prev->next = g->next;
  else b->groups = g->next;
  if (g->next != NULL) g->next->prev = g->prev;
  g->next = b->free_groups;
  b->free_groups = g;
}

static void find_due(heddle__batch_group *g) {
  g->due_ns = UINT64_MAX;
  for (const heddle_batch_request *r = g->first; r != NULL; r = r->next)
    if (r->due_ns < g->due_ns) g->due_ns = r->due_ns;
}

/* ---- in */

/* A request with a deadline waits at most half of its time, so that the other half is left for the run. */
static uint64_t due_of(const heddle_batcher *b, const heddle_batch_request *r) {
  uint64_t delay = b->max_delay_ns;
  if (r->deadline_ns != UINT64_MAX) {
    const uint64_t half = (r->deadline_ns > r->accepted_ns ? r->deadline_ns - r->accepted_ns : 0) / 2;
    if (half < delay) delay = half;
  }
  return heddle__batch_after(r->accepted_ns, delay);
}

heddle_status heddle__batch_enqueue(heddle_batcher *b, heddle_batch_request *r, heddle_error *err) {
  heddle__batch_group *g = group_for(b, r);
  if (g == NULL) return heddle__no_memory(err, "a request's group");
  r->accepted_ns = heddle__now_ns();
  r->due_ns = due_of(b, r);
  r->number = ++b->numbers;
  r->state = HEDDLE__BATCH_QUEUED;
  r->stop = HEDDLE_OK;
  r->worker = NULL;
  const bool was_due_later = r->due_ns < g->due_ns;
  const int64_t before = g->items;
  put_into_group(g, r);
  b->queued += r->items;
  r->prev_all = b->last;
  r->next_all = NULL;
  if (b->last != NULL) b->last->next_all = r;
  else b->first = r;
  b->last = r;
  b->stats.requests++;
  if (r->deadline_ns < b->next_deadline_ns) {
    b->next_deadline_ns = r->deadline_ns;
    pthread_cond_signal(&b->time);
  }
  /* A worker that sleeps is woken where it has something new to do or to wait for. */
  const bool is_full = before < (int64_t)b->max_items && g->items >= (int64_t)b->max_items;
  if (b->idle > 0 && (was_due_later || is_full)) pthread_cond_signal(&b->work);
  return HEDDLE_OK;
}

/* ---- the next run */

static bool is_due(const heddle_batcher *b, const heddle__batch_group *g, uint64_t now_ns) {
  return g->due_ns <= now_ns || g->items >= (int64_t)b->max_items || b->closed || b->drains > 0;
}

/* Of the groups that are due the one whose first request has the highest priority, then the one that is due first. */
static heddle__batch_group *next_group(const heddle_batcher *b, uint64_t now_ns, uint64_t *next_ns) {
  heddle__batch_group *best = NULL;
  *next_ns = UINT64_MAX;
  for (heddle__batch_group *g = b->groups; g != NULL; g = g->next) {
    if (!is_due(b, g, now_ns)) {
      if (g->due_ns < *next_ns) *next_ns = g->due_ns;
      continue;
    }
    if (best == NULL || g->first->priority > best->first->priority ||
        (g->first->priority == best->first->priority && g->due_ns < best->due_ns))
      best = g;
  }
  return best;
}

uint32_t heddle__batch_take(heddle_batcher *b, heddle__batch_worker *w, uint64_t now_ns, uint64_t *next_ns) {
  heddle__batch_group *g = next_group(b, now_ns, next_ns);
  w->n_batch = 0;
  if (g == NULL) return 0;
  int64_t items = 0;
  bool ends = false;
  while (!ends && g->first != NULL && items + g->first->items <= (int64_t)b->max_items) {
    heddle_batch_request *r = g->first;
    ends = r->next == NULL;
    items += r->items;
    take_from_group(b, r);
    r->worker = w;
    r->state = HEDDLE__BATCH_GATHER;
    w->batch[w->n_batch++] = heddle_batch_request_retain(r);
  }
  if (!ends) find_due(g);
  w->n_waited = w->n_batch;
  b->running += items;
  pthread_cond_broadcast(&b->room);
  uint64_t unused;
  if (b->idle > 0 && next_group(b, now_ns, &unused) != NULL) pthread_cond_signal(&b->work);
  return w->n_batch;
}

/* ---- results */

void heddle__batch_end(heddle_batch_request *r, heddle_status status, const heddle_error *words,
                       heddle_batch_request **list) {
  heddle_batcher *b = r->b;
  if (r->state == HEDDLE__BATCH_QUEUED) {
    heddle__batch_group *g = r->group;
    const bool decides = g->due_ns == r->due_ns, stays = g->first != g->last;
    take_from_group(b, r);
    if (stays && decides) find_due(g);
    pthread_cond_broadcast(&b->room);
  } else {
    b->running -= r->items;
    if (r->worker != NULL) r->worker->n_waited--;
  }
  r->state = HEDDLE__BATCH_DONE;
  r->ended_ns = heddle__now_ns();
  r->err.status = status;
  if (status != HEDDLE_OK) {
    if (words != NULL) r->err = *words;
    else if (status == HEDDLE_ETIMEOUT) heddle__fail(&r->err, status, "the deadline of the request passed");
    else heddle__fail(&r->err, status, "the request was cancelled");
    r->err.status = status;
  }
  if (status == HEDDLE_OK) b->stats.succeeded++;
  else if (words != NULL) b->stats.failed++;
  else if (status == HEDDLE_ETIMEOUT) b->stats.expired++;
  else b->stats.cancelled++;
  r->next_done = *list;
  *list = r;
}

bool heddle__batch_stop(heddle_batch_request *r, heddle_status status, heddle_batch_request **list) {
  if (r->state == HEDDLE__BATCH_GATHER && r->stop == HEDDLE_OK) {
    r->stop = status;
    return true;
  }
  if (r->state != HEDDLE__BATCH_QUEUED && r->state != HEDDLE__BATCH_RUNNING) return false;
  heddle__batch_worker *w = r->state == HEDDLE__BATCH_RUNNING ? r->worker : NULL;
  heddle__batch_end(r, status, NULL, list);
  /* Nobody wants the result of this run any more. The next one cannot begin before this lock is free. */
  if (w != NULL && w->n_waited == 0 && w->in_run && w->ex != NULL) heddle_executor_cancel(w->ex, NULL);
  return true;
}

/* The list has the requests that ended first at its end. */
static heddle_batch_request *turned(heddle_batch_request *list) {
  heddle_batch_request *out = NULL;
  while (list != NULL) {
    heddle_batch_request *r = list;
    list = r->next_done;
    r->next_done = out;
    out = r;
  }
  return out;
}

void heddle__batch_finish(heddle_batcher *b, heddle_batch_request *list) {
  if (list == NULL) return;
  list = turned(list);
  for (heddle_batch_request *r = list; r != NULL; r = r->next_done) {
    if (r->done_fn != NULL) r->done_fn(r->user, r, r->err.status, r->err.status == HEDDLE_OK ? NULL : &r->err);
    heddle__batch_request_clear(r);
    pthread_mutex_lock(&r->lock);
    r->has_ended = true;
    pthread_mutex_unlock(&r->lock);
    pthread_cond_broadcast(&r->ended); /* who wakes finds the lock free; the list still has its reference */
  }
  pthread_mutex_lock(&b->lock);
  for (heddle_batch_request *r = list; r != NULL; r = r->next_done) {
    if (r->prev_all != NULL) r->prev_all->next_all = r->next_all;
    else b->first = r->next_all;
    if (r->next_all != NULL) r->next_all->prev_all = r->prev_all;
    else b->last = r->prev_all;
  }
  if (b->drains > 0 || b->closed) pthread_cond_broadcast(&b->fewer);
  if (b->closed && b->first == NULL) pthread_cond_signal(&b->time);
  pthread_mutex_unlock(&b->lock);
  while (list != NULL) {
    heddle_batch_request *r = list;
    list = r->next_done;
    heddle_batch_request_release(r);
  }
}
