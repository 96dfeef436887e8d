/* core/fence.c: the slab of fences, and the wakers that driving threads sleep on.
 * Slots are reused but never unmapped, and a handle carries its slot's generation: a vendor's callback that comes years
 * late finds a slot that is not its own any more, and is ignored. */
#include <time.h>

#include "core/alloc.h"
#include "core/error.h"
#include "core/fence.h"
#include "core/thread.h"

/* ---- wakers */

heddle_status heddle__waker_init(heddle__waker *w, heddle_error *err) {
  atomic_init(&w->epoch, 0);
  atomic_init(&w->sleepers, 0);
  return heddle__cond_init(&w->lock, &w->cond, err);
}

void heddle__waker_finish(heddle__waker *w) {
  pthread_cond_destroy(&w->cond);
  pthread_mutex_destroy(&w->lock);
}

/* No wake-up is lost: a sleeper counts itself before it compares the epoch, and the epoch grows before the count is
 * read, both sequentially consistent. Either the sleeper sees the new epoch, or its count is seen here; then passing
 * through the lock makes sure that it sleeps before the signal is sent. */
void heddle__waker_wake(heddle__waker *w) {
  atomic_fetch_add(&w->epoch, 1);
  unsigned sleepers = atomic_load(&w->sleepers);
  if (sleepers == 0) return;
  pthread_mutex_lock(&w->lock);
  pthread_mutex_unlock(&w->lock);
  if (sleepers == 1) pthread_cond_signal(&w->cond);
  else pthread_cond_broadcast(&w->cond);
}

bool heddle__waker_wait(heddle__waker *w, unsigned seen, uint64_t deadline_ns) {
  if (atomic_load(&w->epoch) != seen) return true;
  struct timespec until = {(time_t)(deadline_ns / 1000000000u), (long)(deadline_ns % 1000000000u)};
  bool timed = deadline_ns <= (uint64_t)INT64_MAX;
  int code = 0;
  atomic_fetch_add(&w->sleepers, 1);
  pthread_mutex_lock(&w->lock);
  while (atomic_load(&w->epoch) == seen && code == 0)
    code = timed ? pthread_cond_timedwait(&w->cond, &w->lock, &until) : pthread_cond_wait(&w->cond, &w->lock);
  bool woken = atomic_load(&w->epoch) != seen;
  pthread_mutex_unlock(&w->lock);
  atomic_fetch_sub(&w->sleepers, 1);
  return woken;
}

/* ---- the slab */

enum { CHUNK = 64, CHUNKS = 4096 };

/* Process-wide, since a handle must not mean two fences of two contexts. Chunks are published once and stay. */
static struct {
  pthread_mutex_t lock; /* guards free_head, used and the adding of chunks; a leaf */
  uint32_t free_head;   /* slot + 1; 0: none, so that all of this starts as zeros and takes no room in the file */
  uint32_t used;        /* slots ever handed out */
  _Atomic(heddle__fence *) chunk[CHUNKS];
} slab = {.lock = PTHREAD_MUTEX_INITIALIZER};

static heddle__fence *at(uint32_t slot) {
  if (slot >= (uint32_t)CHUNK * CHUNKS) return NULL;
  heddle__fence *chunk = atomic_load_explicit(&slab.chunk[slot / CHUNK], memory_order_acquire);
  return chunk != NULL ? &chunk[slot % CHUNK] : NULL;
}

/* The next slot that was never used; slab.lock is held. */
static heddle__fence *fresh(void) {
  uint32_t slot = slab.used;
  if (slot >= (uint32_t)CHUNK * CHUNKS) return NULL;
  if (slot % CHUNK == 0) {
    heddle__fence *chunk = heddle__alloc_forever(CHUNK, sizeof *chunk);
    if (chunk == NULL) return NULL;
    for (uint32_t i = 0; i < CHUNK; i++) {
      if (pthread_mutex_init(&chunk[i].lock, NULL) != 0) return NULL; /* glibc's never fails */
      chunk[i].slot = slot + i;
    }
    atomic_store_explicit(&slab.chunk[slot / CHUNK], chunk, memory_order_release);
  }
  slab.used = slot + 1;
  return at(slot);
}

heddle_status heddle__fence_create(heddle__waker *waker, heddle__fence **out, heddle_error *err) {
  pthread_mutex_lock(&slab.lock);
  heddle__fence *f = slab.free_head != 0 ? at(slab.free_head - 1) : NULL;
  if (f != NULL) slab.free_head = f->next_free;
  else f = fresh();
  pthread_mutex_unlock(&slab.lock);
  if (f == NULL) return heddle__no_memory(err, "a fence");
  pthread_mutex_lock(&f->lock);
  atomic_store(&f->value, 0);
  atomic_store(&f->failed, HEDDLE_OK);
  f->waker = waker;
  pthread_mutex_unlock(&f->lock);
  *out = f;
  return HEDDLE_OK;
}

void heddle__fence_free(heddle__fence *f) {
  if (f == NULL) return;
  pthread_mutex_lock(&f->lock);
  atomic_fetch_add(&f->generation, 1);
  f->waker = NULL;
  pthread_mutex_unlock(&f->lock);
  pthread_mutex_lock(&slab.lock);
  f->next_free = slab.free_head;
  slab.free_head = f->slot + 1;
  pthread_mutex_unlock(&slab.lock);
}

heddle_pfence heddle__fence_handle(const heddle__fence *f) {
  return (heddle_pfence)atomic_load(&f->generation) << 32 | (f->slot + 1);
}

/* ---- by handle */

/* The fence with its lock held; NULL where it is none, or gone. The lock keeps it from being freed and used again
 * between the comparison and what the caller does with it. */
static heddle__fence *find_fence(heddle_pfence fence) {
  uint32_t slot = (uint32_t)fence;
  heddle__fence *f = slot != 0 ? at(slot - 1) : NULL;
  if (f == NULL) return NULL;
  pthread_mutex_lock(&f->lock);
  if (atomic_load_explicit(&f->generation, memory_order_relaxed) == (unsigned)(fence >> 32)) return f;
  pthread_mutex_unlock(&f->lock);
  return NULL;
}

void heddle__fence_signal(heddle_pfence fence, uint64_t value) {
  heddle__fence *f = find_fence(fence);
  if (f == NULL) return;
  if (atomic_load_explicit(&f->value, memory_order_relaxed) < value) {
    atomic_store_explicit(&f->value, value, memory_order_release); /* all writers hold the lock */
    if (f->waker != NULL) heddle__waker_wake(f->waker);
  }
  pthread_mutex_unlock(&f->lock);
}

void heddle__fence_fail(heddle_pfence fence, heddle_status status, const char *text) {
  heddle__fence *f = find_fence(fence);
  if (f == NULL) return;
  if (atomic_load(&f->failed) == HEDDLE_OK) {
    if (status == HEDDLE_OK || status == HEDDLE_EBUSY) status = HEDDLE_EFAILED; /* neither can be a failure */
    heddle__fail(&f->error, status, "%s", text != NULL && text[0] != '\0' ? text : heddle_status_text(status));
    atomic_store_explicit(&f->failed, status, memory_order_release);
    if (f->waker != NULL) heddle__waker_wake(f->waker);
  }
  pthread_mutex_unlock(&f->lock);
}

heddle_status heddle__fence_query(heddle_pfence fence, uint64_t value) {
  heddle__fence *f = find_fence(fence);
  if (f == NULL) return HEDDLE_ECANCELED; /* nothing waits for it any more */
  heddle_status status = atomic_load(&f->failed);
  if (atomic_load_explicit(&f->value, memory_order_acquire) >= value) status = HEDDLE_OK;
  else if (status == HEDDLE_OK) status = HEDDLE_EBUSY;
  pthread_mutex_unlock(&f->lock);
  return status;
}

/* ---- by owner */

heddle_status heddle__fence_error(heddle__fence *f, heddle_error *err) {
  pthread_mutex_lock(&f->lock);
  heddle_status status = atomic_load(&f->failed);
  if (status != HEDDLE_OK && err != NULL) *err = f->error;
  pthread_mutex_unlock(&f->lock);
  return status;
}

void heddle__fence_reset(heddle__fence *f) {
  pthread_mutex_lock(&f->lock);
  atomic_store(&f->failed, HEDDLE_OK);
  pthread_mutex_unlock(&f->lock);
}
