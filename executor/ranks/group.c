/* executor/ranks/group.c: the ranks of a context: requests and the waits for them, notes of failure and of life. A failure of one
 * rank is sent to all, so that no rank waits for a message that will not come. A rank that sends no sign of life to the
 * rank behind it is lost. */
#define HEDDLE__GROUP_C
#include "executor/ranks/ranks.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "core/alloc.h"
#include "core/error.h"
#include "core/failure.h"
#include "core/thread.h"
#include "executor/ranks/group.h"

enum { NOTE_BEAT = 1, NOTE_FAIL, NOTE_LEFT, NOTE_ASK, NOTE_BLAME, NOTE_HEAD = 8, BEATS_A_SECOND = 4 };

/* A note of failure: kind, and from byte 4 on status, rank, device and text. */
enum { FAIL_RANK = 8, FAIL_DEVICE = 12, FAIL_TEXT = 76 };

#define SLEEP_NS 50000L
/* How long a wait polls, and then polls and yields, before it sleeps between polls; MPI moves bytes only while it is asked, so this
 * is longer for large messages: as they take at 4, and at 1, gigabyte a second. */
#define SPIN_NS(bytes) (UINT64_C(20000) + (bytes) / 4)
#define YIELD_NS(bytes) (UINT64_C(1000000) + (bytes))
#define ASK_NS UINT64_C(100000000)
#define LEFT_NS UINT64_C(1000000000)

/* ---- notes; the lock is held */

static void note_failure(heddle__ranks *r, heddle_status s, const heddle_error *why) {
  if (atomic_load(&r->broken) != HEDDLE_OK) return;
  r->why = *why;
  r->why.status = s;
  atomic_store(&r->broken, s);
}

static void send_failure(heddle__ranks *r, heddle_status s, const heddle_error *why) {
  unsigned char note[HEDDLE_COMM_NOTE_BYTES] = {NOTE_FAIL};
  const int32_t number = s, rank = heddle__failed_rank(why);
  const char *device = heddle__failed_device(why);
  memcpy(note + 4, &number, sizeof number);
  memcpy(note + FAIL_RANK, &rank, sizeof rank);
  snprintf((char *)note + FAIL_DEVICE, FAIL_TEXT - FAIL_DEVICE, "%s", device != NULL ? device : "");
  int n = snprintf((char *)note + FAIL_TEXT, sizeof note - FAIL_TEXT, "%s", why->text);
  uint32_t bytes = n < (int)(sizeof note - FAIL_TEXT) ? FAIL_TEXT + (uint32_t)n + 1 : (uint32_t)sizeof note;
  for (uint32_t i = 0; i < r->comm.size; i++)
    if (i != r->comm.rank && r->left[i] == 0) (void)r->comm.send_note(r->comm.self, note, bytes, i, NULL);
}

static void take_failure(heddle__ranks *r, const unsigned char *note, uint32_t bytes) {
  heddle_error why = {0};
  int32_t number, rank;
  if (bytes <= FAIL_TEXT || note[bytes - 1] != '\0' || note[FAIL_TEXT - 1] != '\0') return;
  memcpy(&number, note + 4, sizeof number);
  memcpy(&rank, note + FAIL_RANK, sizeof rank);
  if (number <= HEDDLE_OK || number >= HEDDLE_STATUS_COUNT) number = HEDDLE_EFAILED;
  (void)heddle__fail(&why, number, "%s", (const char *)note + FAIL_TEXT);
  if (rank >= 0) (void)heddle__at_rank(number, &why, (uint32_t)rank);
  if (note[FAIL_DEVICE] != '\0') (void)heddle__at_device(number, &why, (const char *)note + FAIL_DEVICE);
  note_failure(r, number, &why);
}

static void fail_all(heddle__ranks *r, heddle_status s, const heddle_error *why) {
  if (atomic_load(&r->broken) != HEDDLE_OK) return;
  note_failure(r, s, why);
  send_failure(r, s, why);
}

static void send_number(heddle__ranks *r, unsigned char kind, uint32_t number, uint32_t to) {
  unsigned char note[NOTE_HEAD] = {kind};
  memcpy(note + 4, &number, sizeof number);
  (void)r->comm.send_note(r->comm.self, note, sizeof note, to, NULL);
}

static void take_note(heddle__ranks *r, const unsigned char *note, uint32_t bytes, uint32_t from) {
  int32_t number;
  if (from >= r->comm.size || bytes == 0) return;
  if (from == (r->comm.rank + r->comm.size - 1) % r->comm.size) r->heard_ns = heddle__now_ns();
  if (note[0] == NOTE_LEFT) r->left[from] = heddle__now_ns();
  if (note[0] == NOTE_ASK)
    send_number(r, NOTE_BLAME, r->waits_on == from || r->waiting == 0 ? r->comm.rank : r->blamed, from);
  if (note[0] == NOTE_BLAME && bytes == NOTE_HEAD && r->waiting > 0 && from == r->waits_on) {
    memcpy(&number, note + 4, sizeof number);
    if (number >= 0 && (uint32_t)number < r->comm.size) r->blamed = (uint32_t)number;
  }
  if (note[0] == NOTE_FAIL) take_failure(r, note, bytes);
}

static void take_notes(heddle__ranks *r) {
  unsigned char note[HEDDLE_COMM_NOTE_BYTES];
  uint32_t bytes = 0, from = 0;
  heddle_error err = {0};
  for (;;) {
    heddle_status s = r->comm.take_note(r->comm.self, note, &bytes, &from, &err);
    if (s != HEDDLE_OK) note_failure(r, s, &err);
    if (s != HEDDLE_OK || bytes == 0) return;
    take_note(r, note, bytes, from);
  }
}

/* The rank before this one: every rank is watched by one other. */
static void look_for_life(heddle__ranks *r, uint64_t now) {
  const uint32_t before = (r->comm.rank + r->comm.size - 1) % r->comm.size;
  heddle_error why = {0};
  if (r->left[before] != 0 || now < r->heard_ns || now - r->heard_ns < r->silence_ns) return;
  r->lost = true;
  (void)heddle__fail(&why, HEDDLE_EDEVICE, "rank %u has given no sign of life for %llu s: it has died, or hangs",
                     (unsigned)before, (unsigned long long)(r->silence_ns / UINT64_C(1000000000)));
  fail_all(r, heddle__at_rank(HEDDLE_EDEVICE, &why, before), &why);
  r->heard_ns = now;
}

static void *beat(void *user) {
  heddle__ranks *r = user;
  const unsigned char note[NOTE_HEAD] = {NOTE_BEAT};
  const uint32_t next = (r->comm.rank + 1) % r->comm.size;
  pthread_mutex_lock(&r->lock);
  while (!r->quit) {
    if (r->left[next] == 0) (void)r->comm.send_note(r->comm.self, note, sizeof note, next, NULL);
    take_notes(r);
    look_for_life(r, heddle__now_ns());
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += 1000000000L / BEATS_A_SECOND;
    if (until.tv_nsec >= 1000000000L) {
      until.tv_nsec -= 1000000000L;
      until.tv_sec++;
    }
    while (!r->quit && pthread_cond_timedwait(&r->wake, &r->lock, &until) != ETIMEDOUT) continue;
  }
  pthread_mutex_unlock(&r->lock);
  return NULL;
}

/* ---- failures */

heddle_status heddle__ranks_check(heddle__ranks *r, heddle_error *err) {
  heddle_status s = atomic_load(&r->broken);
  if (s == HEDDLE_OK) return s;
  pthread_mutex_lock(&r->lock);
  if (err != NULL) *err = r->why;
  pthread_mutex_unlock(&r->lock);
  return s;
}

heddle_status heddle__ranks_fail(heddle__ranks *r, heddle_status s, heddle_error *err) {
  heddle_error own = {0};
  if (err == NULL) (void)heddle__fail(err = &own, s, "%s", heddle_status_text(s));
  if (r->comm.size > 1 && heddle__failed_rank(err) < 0) {
    (void)heddle__prefix(err, s, "rank %u: ", (unsigned)r->comm.rank);
    (void)heddle__at_rank(s, err, r->comm.rank);
  }
  pthread_mutex_lock(&r->lock);
  fail_all(r, s, err);
  pthread_mutex_unlock(&r->lock);
  return s;
}

/* ---- requests */

heddle_status heddle__ranks_tags(heddle__ranks *r, uint64_t n, uint64_t *first, heddle_error *err) {
  heddle_status s = HEDDLE_OK;
  pthread_mutex_lock(&r->lock);
  *first = r->next_tag;
  if (n > r->comm.max_tag || r->next_tag > r->comm.max_tag - n)
    s = heddle__fail(err, HEDDLE_ELIMIT, "the communicator has %llu tags, and the executors of this context need more",
                     (unsigned long long)r->comm.max_tag + 1);
  else r->next_tag += n;
  pthread_mutex_unlock(&r->lock);
  return s;
}

heddle_status heddle__ranks_send_init(heddle__ranks *r, const void *data, uint64_t bytes, uint32_t to, uint64_t tag,
                                      void **out, heddle_error *err) {
  pthread_mutex_lock(&r->lock);
  heddle_status s = r->comm.send_init(r->comm.self, data, bytes, to, (uint32_t)tag, out, err);
  pthread_mutex_unlock(&r->lock);
  return s;
}

heddle_status heddle__ranks_recv_init(heddle__ranks *r, void *data, uint64_t bytes, uint32_t from, uint64_t tag,
                                      void **out, heddle_error *err) {
  pthread_mutex_lock(&r->lock);
  heddle_status s = r->comm.recv_init(r->comm.self, data, bytes, from, (uint32_t)tag, out, err);
  pthread_mutex_unlock(&r->lock);
  return s;
}

heddle_status heddle__ranks_start(heddle__ranks *r, void *request, heddle_error *err) {
  pthread_mutex_lock(&r->lock);
  heddle_status s = r->comm.start(r->comm.self, request, err);
  pthread_mutex_unlock(&r->lock);
  return s;
}

void heddle__ranks_free(heddle__ranks *r, void *request) {
  if (request == NULL) return;
  pthread_mutex_lock(&r->lock);
  r->comm.free(r->comm.self, request);
  pthread_mutex_unlock(&r->lock);
}

/* One look at a request. */
static heddle_status look(heddle__ranks *r, void *request, uint32_t peer, const char *what, bool notes, int *done,
                          heddle_error *err) {
  *done = 0;
  pthread_mutex_lock(&r->lock);
  if (notes) take_notes(r);
  /* What it sent before may still be under way. */
  const bool left = r->left[peer] != 0 && heddle__now_ns() - r->left[peer] > LEFT_NS;
  heddle_status s = r->comm.test(r->comm.self, request, done, err);
  if (s == HEDDLE_OK && !*done && atomic_load(&r->broken) != HEDDLE_OK) {
    s = atomic_load(&r->broken);
    if (err != NULL) *err = r->why;
  } else if (s == HEDDLE_OK && !*done && left) {
    s = heddle__fail(err, HEDDLE_EFAILED, "rank %u has left (its context was released) before its part of '%.120s'",
                     (unsigned)peer, what);
    (void)heddle__at_rank(s, err, peer);
  } else if (s != HEDDLE_OK) {
    heddle__prefix(err, s, "'%.120s', with rank %u: ", what, (unsigned)peer);
  }
  pthread_mutex_unlock(&r->lock);
  return s;
}

/* A wait of this thread for a rank begins (change 1) or ends (-1). */
static void wait_on(heddle__ranks *r, uint32_t peer, int change) {
  pthread_mutex_lock(&r->lock);
  r->waiting = change > 0 ? r->waiting + 1 : r->waiting - 1;
  if (change > 0 && r->waits_on != peer) r->waits_on = r->blamed = peer;
  pthread_mutex_unlock(&r->lock);
}

/* A long wait: asks the rank whom it waits for itself, so that the error names the last one of the row. */
static void ask(heddle__ranks *r, uint32_t peer) {
  pthread_mutex_lock(&r->lock);
  if (r->waits_on != peer) r->waits_on = r->blamed = peer;
  send_number(r, NOTE_ASK, 0, peer);
  pthread_mutex_unlock(&r->lock);
}

uint32_t heddle__ranks_blame(heddle__ranks *r, uint32_t peer, char *out, size_t size) {
  pthread_mutex_lock(&r->lock);
  const bool other = r->waits_on == peer && r->blamed != peer;
  const uint32_t blamed = other ? r->blamed : peer;
  if (other) snprintf(out, size, " (which waits for rank %u)", (unsigned)blamed);
  else out[0] = '\0';
  pthread_mutex_unlock(&r->lock);
  return blamed;
}

static heddle__run_end wait(heddle__ranks *r, void *request, uint32_t peer, uint64_t bytes, const char *what,
                            const heddle__helm *helm, heddle_status *status, heddle_error *err) {
  const uint64_t start = heddle__now_ns();
  const struct timespec moment = {0, SLEEP_NS};
  uint64_t asked = start;
  for (bool spins = true;;) {
    int done = 0;
    *status = look(r, request, peer, what, !spins, &done, err);
    if (*status == HEDDLE_OK && done) return HEDDLE__RUN_DONE;
    const uint64_t now = heddle__now_ns();
    if (*status == HEDDLE_OK && now - start > r->wait_ns) {
      char blame[64];
      const uint32_t last = heddle__ranks_blame(r, peer, blame, sizeof blame);
      *status = heddle__fail(err, HEDDLE_ETIMEOUT, "rank %u%s has not done its part of '%.120s' within %llu s",
                             (unsigned)peer, blame, what, (unsigned long long)(r->wait_ns / UINT64_C(1000000000)));
      (void)heddle__at_rank(*status, err, last);
    }
    if (*status != HEDDLE_OK) {
      if (atomic_load(&r->broken) == HEDDLE_OK) (void)heddle__ranks_fail(r, *status, err);
      return HEDDLE__RUN_FAILED;
    }
    if (helm != NULL && atomic_load_explicit(helm->attention, memory_order_relaxed) != 0 && helm->heed(helm->user))
      return HEDDLE__RUN_STOPPED;
    if (helm != NULL && now >= helm->deadline_ns) return HEDDLE__RUN_LATE;
    if (now - asked > ASK_NS) {
      ask(r, peer);
      asked = now;
    }
    spins = now - start < YIELD_NS(bytes);
    if (!spins) nanosleep(&moment, NULL);
    else if (now - start > SPIN_NS(bytes)) sched_yield();
  }
}

heddle__run_end heddle__ranks_wait(heddle__ranks *r, void *request, uint32_t peer, uint64_t bytes, const char *what,
                                   const heddle__helm *helm, heddle_status *status, heddle_error *err) {
  int done = 0;
  *status = look(r, request, peer, what, false, &done, err);
  if (*status == HEDDLE_OK && done) return HEDDLE__RUN_DONE;
  wait_on(r, peer, 1);
  const heddle__run_end end = wait(r, request, peer, bytes, what, helm, status, err);
  wait_on(r, peer, -1);
  return end;
}

/* ---- life */

void heddle__ranks_end(heddle__attachment *self) {
  heddle__ranks *r = (heddle__ranks *)self;
  const unsigned char note[NOTE_HEAD] = {NOTE_LEFT};
  if (r->has_thread) {
    pthread_mutex_lock(&r->lock);
    r->quit = true;
    pthread_cond_broadcast(&r->wake);
    pthread_mutex_unlock(&r->lock);
    pthread_join(r->thread, NULL);
  }
  for (uint32_t i = 0; r->left != NULL && i < r->comm.size; i++)
    if (i != r->comm.rank) (void)r->comm.send_note(r->comm.self, note, sizeof note, i, NULL);
  if (r->comm.release != NULL) r->comm.release(r->comm.self, r->lost || atomic_load(&r->broken) == HEDDLE_EDEVICE);
  if (r->has_lock) {
    pthread_mutex_destroy(&r->lock);
    pthread_cond_destroy(&r->wake);
  }
  heddle__free(r->left);
  heddle__free(r);
}

heddle_status heddle__ranks_begin(heddle__ranks *r, heddle_error *err) {
  r->left = heddle__alloc(r->comm.size, sizeof *r->left);
  r->next_tag = HEDDLE__RANK_TAGS;
  if (r->left == NULL) return heddle__no_memory(err, "the ranks of a context");
  heddle_status s = heddle__cond_init(&r->lock, &r->wake, err);
  r->has_lock = s == HEDDLE_OK;
  return s;
}

heddle_status heddle__ranks_watch(heddle__ranks *r, heddle_error *err) {
  r->heard_ns = heddle__now_ns();
  if (r->comm.size == 1) return HEDDLE_OK;
  heddle_status s = heddle__thread_start(&r->thread, beat, r, "the thread of ranks", err);
  r->has_thread = s == HEDDLE_OK;
  return s;
}
