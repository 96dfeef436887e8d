/* tests/executor/ranks_rig.h: ranks as threads of one process: a communicator that buffers no message, so that a send ends only
 * when its receive has taken it, and that can lose one. */
#ifndef HEDDLE_TESTS_EXECUTOR_RANKS_RIG_H
#define HEDDLE_TESTS_EXECUTOR_RANKS_RIG_H

#include <pthread.h>

#include "core/context.h"
#include "rig.h"

enum { RANKS_MOST = 8, NOTES_MOST = 256 };

typedef struct message {
  struct message *next;
  bool sends, active, done;
  uint64_t start_ns;
  void *data;
  uint64_t bytes;
  uint32_t from, to, tag;
} message;

typedef struct wires {
  pthread_mutex_t lock;
  message *messages;
  uint32_t size;
  int lose; /* the n-th start of a send with a tag of runs is lost, from 1; 0: none */
  int starts, made, released;
  uint64_t delay_ns; /* of a message, from the start of its send */
  struct {
    unsigned char bytes[HEDDLE_COMM_NOTE_BYTES];
    uint32_t n, from;
  } notes[RANKS_MOST][NOTES_MOST];
  uint32_t first[RANKS_MOST], count[RANKS_MOST];
} wires;

typedef struct wire_end {
  wires *w;
  uint32_t rank;
} wire_end;

static heddle_status wire_make(wire_end *e, bool sends, void *data, uint64_t bytes, uint32_t peer, uint32_t tag,
                               void **out) {
  message *m = calloc(1, sizeof *m);
  *m = (message){.sends = sends,
                 .data = data,
                 .bytes = bytes,
                 .from = sends ? e->rank : peer,
                 .to = sends ? peer : e->rank,
                 .tag = tag};
  pthread_mutex_lock(&e->w->lock);
  m->next = e->w->messages;
  e->w->messages = m;
  pthread_mutex_unlock(&e->w->lock);
  *out = m;
  return HEDDLE_OK;
}

static heddle_status wire_send(void *self, const void *data, uint64_t bytes, uint32_t to, uint32_t tag, void **out,
                               heddle_error *e) {
  (void)e;
  return wire_make(self, true, (void *)(uintptr_t)data, bytes, to, tag, out);
}

static heddle_status wire_recv(void *self, void *data, uint64_t bytes, uint32_t from, uint32_t tag, void **out,
                               heddle_error *e) {
  (void)e;
  return wire_make(self, false, data, bytes, from, tag, out);
}

static heddle_status wire_start(void *self, void *request, heddle_error *e) {
  wires *w = ((wire_end *)self)->w;
  message *m = request;
  (void)e;
  pthread_mutex_lock(&w->lock);
  bool lost = m->sends && m->tag >= 5 && w->lose > 0 && ++w->starts == w->lose;
  m->active = !lost;
  m->start_ns = heddle__now_ns();
  m->done = lost; /* as its sender sees it */
  pthread_mutex_unlock(&w->lock);
  return HEDDLE_OK;
}

static heddle_status wire_test(void *self, void *request, int *done, heddle_error *e) {
  wires *w = ((wire_end *)self)->w;
  message *m = request;
  heddle_status s = HEDDLE_OK;
  pthread_mutex_lock(&w->lock);
  for (message *o = w->messages; o != NULL && m->active; o = o->next) {
    if (!o->active || o->sends == m->sends || o->from != m->from || o->to != m->to || o->tag != m->tag) continue;
    message *from = m->sends ? m : o, *to = m->sends ? o : m;
    if (heddle__now_ns() - from->start_ns < w->delay_ns) continue;
    if (from->bytes != to->bytes) s = HEDDLE_EFAILED;
    else if (from->bytes > 0) memcpy(to->data, from->data, (size_t)from->bytes);
    m->active = o->active = false;
    m->done = o->done = true;
  }
  *done = m->done;
  pthread_mutex_unlock(&w->lock);
  if (s != HEDDLE_OK && e != NULL) snprintf(e->text, sizeof e->text, "a message of another length");
  return s;
}

static void wire_free(void *self, void *request) {
  wires *w = ((wire_end *)self)->w;
  pthread_mutex_lock(&w->lock);
  message **link = &w->messages;
  while (*link != request) link = &(*link)->next;
  *link = ((message *)request)->next;
  pthread_mutex_unlock(&w->lock);
  free(request);
}

static heddle_status wire_note(void *self, const void *note, uint32_t bytes, uint32_t to, heddle_error *e) {
  wire_end *end = self;
  wires *w = end->w;
  (void)e;
  pthread_mutex_lock(&w->lock);
  if (w->count[to] < NOTES_MOST) {
    uint32_t at = (w->first[to] + w->count[to]++) % NOTES_MOST;
    memcpy(w->notes[to][at].bytes, note, bytes);
    w->notes[to][at].n = bytes;
    w->notes[to][at].from = end->rank;
  }
  pthread_mutex_unlock(&w->lock);
  return HEDDLE_OK;
}

static heddle_status wire_take(void *self, void *note, uint32_t *bytes, uint32_t *from, heddle_error *e) {
  wire_end *end = self;
  wires *w = end->w;
  (void)e;
  *bytes = 0;
  pthread_mutex_lock(&w->lock);
  if (w->count[end->rank] > 0) {
    uint32_t at = w->first[end->rank];
    w->first[end->rank] = (at + 1) % NOTES_MOST;
    w->count[end->rank]--;
    memcpy(note, w->notes[end->rank][at].bytes, w->notes[end->rank][at].n);
    *bytes = w->notes[end->rank][at].n;
    *from = w->notes[end->rank][at].from;
  }
  pthread_mutex_unlock(&w->lock);
  return HEDDLE_OK;
}

static void wire_release(void *self, int lost) {
  wires *w = ((wire_end *)self)->w;
  (void)lost;
  pthread_mutex_lock(&w->lock);
  w->released++;
  pthread_mutex_unlock(&w->lock);
  free(self);
}

static inline heddle_comm wire_comm(wires *w, uint32_t rank) {
  wire_end *end = calloc(1, sizeof *end);
  *end = (wire_end){w, rank};
  w->made++;
  return (heddle_comm){sizeof(heddle_comm), end,       rank,      w->size,   100000,    wire_send,   wire_recv,
                       wire_start,          wire_test, wire_free, wire_note, wire_take, wire_release};
}

#endif
