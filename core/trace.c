/* core/trace.c: collects spans in chunks under a lock, and writes them as Chrome trace JSON, a row a track.
 * The public functions on a context's trace live here too. */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "core/context.h"
#include "core/error.h"
#include "core/trace.h"
#include "heddle/executor.h"

enum { CHUNK = 1024, MAX_SPANS = 1000000, TRACK_BYTES = 80, NAME_BYTES = 104 };

typedef struct span {
  uint64_t t0, t1;
  uint32_t track;
  char name[NAME_BYTES];
} span;

typedef struct chunk {
  struct chunk *next;
  uint32_t used;
  span spans[CHUNK];
} chunk;

typedef struct track {
  char name[TRACK_BYTES];
} track;

struct heddle__trace {
  atomic_bool on;
  pthread_mutex_t lock; /* guards what follows; a leaf */
  chunk *first, *last;
  track *tracks;
  uint32_t n_tracks, cap_tracks;
  uint64_t count, dropped;
};

heddle_status heddle__trace_create(heddle__trace **out, heddle_error *err) {
  *out = NULL;
  heddle__trace *t = heddle__alloc(1, sizeof *t);
  if (t == NULL || pthread_mutex_init(&t->lock, NULL) != 0) {
    heddle__free(t);
    return heddle__no_memory(err, "a trace");
  }
  *out = t;
  return HEDDLE_OK;
}

static void clear(heddle__trace *t) {
  for (chunk *c = t->first; c != NULL;) {
    chunk *next = c->next;
    heddle__free(c);
    c = next;
  }
  heddle__free(t->tracks);
  t->first = t->last = NULL;
  t->tracks = NULL;
  t->n_tracks = t->cap_tracks = 0;
  t->count = t->dropped = 0;
}

void heddle__trace_release(heddle__trace *t) {
  if (t == NULL) return;
  clear(t);
  pthread_mutex_destroy(&t->lock);
  heddle__free(t);
}

bool heddle__trace_on(heddle__trace *t) {
  return t != NULL && atomic_load_explicit(&t->on, memory_order_relaxed);
}

void heddle__trace_open(heddle__trace *t) {
  pthread_mutex_lock(&t->lock);
  clear(t);
  atomic_store(&t->on, true);
  pthread_mutex_unlock(&t->lock);
}

/* At most size - 1 bytes, cut between two UTF-8 sequences. */
static void copy_cut(char *out, const char *text, size_t size) {
  size_t n = strnlen(text, size);
  if (n == size) {
    n = size - 1;
    while (n > 0 && ((unsigned char)text[n] & 0xC0) == 0x80) n--;
  }
  memcpy(out, text, n);
  out[n] = '\0';
}

/* The number of a track, made on first use; the lock is held. UINT32_MAX when memory is out. */
static uint32_t track_of(heddle__trace *t, const char *name) {
  char cut[TRACK_BYTES];
  copy_cut(cut, name, sizeof cut);
  for (uint32_t i = 0; i < t->n_tracks; i++)
    if (strcmp(t->tracks[i].name, cut) == 0) return i;
  if (t->n_tracks == t->cap_tracks) {
    uint32_t cap = t->cap_tracks == 0 ? 8 : t->cap_tracks * 2;
    track *grown = heddle__grow(t->tracks, t->cap_tracks, cap, sizeof *grown);
    if (grown == NULL) return UINT32_MAX;
    t->tracks = grown;
    t->cap_tracks = cap;
  }
  memcpy(t->tracks[t->n_tracks].name, cut, sizeof cut);
  return t->n_tracks++;
}

static span *next_span(heddle__trace *t) {
  if (t->count >= MAX_SPANS) return NULL;
  if (t->last == NULL || t->last->used == CHUNK) {
    chunk *c = heddle__alloc(1, sizeof *c);
    if (c == NULL) return NULL;
    if (t->last != NULL) t->last->next = c;
    else t->first = c;
    t->last = c;
  }
  return &t->last->spans[t->last->used];
}

void heddle__trace_span(struct heddle__trace *t, const char *track_name, const char *name, uint64_t t0, uint64_t t1) {
  if (!heddle__trace_on(t)) return;
  pthread_mutex_lock(&t->lock);
  if (atomic_load(&t->on)) {
    uint32_t number = track_of(t, track_name != NULL ? track_name : "");
    span *s = number != UINT32_MAX ? next_span(t) : NULL;
    if (s != NULL) {
      *s = (span){.t0 = t0, .t1 = t1 > t0 ? t1 : t0, .track = number};
      copy_cut(s->name, name != NULL ? name : "", sizeof s->name);
      t->last->used++;
      t->count++;
    } else {
      t->dropped++;
    }
  }
  pthread_mutex_unlock(&t->lock);
}

/* ---- writing */

static void put_string(FILE *f, const char *text) {
  putc('"', f);
  for (const unsigned char *p = (const unsigned char *)text; *p != '\0'; p++) {
    if (*p == '"' || *p == '\\') fprintf(f, "\\%c", *p);
    else if (*p < 0x20 || *p == 0x7F) fprintf(f, "\\u%04x", *p);
    else putc(*p, f);
  }
  putc('"', f);
}

/* Microseconds with three digits, without a decimal point of the locale's. */
static void put_us(FILE *f, uint64_t ns) {
  fprintf(f, "%" PRIu64 ".%03u", ns / 1000, (unsigned)(ns % 1000));
}

static void put_all(FILE *f, const heddle__trace *t) {
  uint64_t zero = UINT64_MAX;
  for (const chunk *c = t->first; c != NULL; c = c->next)
    for (uint32_t i = 0; i < c->used; i++)
      if (c->spans[i].t0 < zero) zero = c->spans[i].t0;
  fprintf(f, "{\"displayTimeUnit\":\"ns\",\"otherData\":{\"dropped\":%" PRIu64 "},\"traceEvents\":[", t->dropped);
  const char *comma = "";
  for (uint32_t i = 0; i < t->n_tracks; i++) {
    fprintf(f, "%s\n{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":1,\"tid\":%u,\"args\":{\"name\":", comma, i + 1);
    put_string(f, t->tracks[i].name);
    fputs("}}", f);
    comma = ",";
  }
  for (const chunk *c = t->first; c != NULL; c = c->next)
    for (uint32_t i = 0; i < c->used; i++) {
      const span *s = &c->spans[i];
      fprintf(f, "%s\n{\"ph\":\"X\",\"pid\":1,\"tid\":%u,\"name\":", comma, s->track + 1);
      put_string(f, s->name);
      fputs(",\"ts\":", f);
      put_us(f, s->t0 - zero);
      fputs(",\"dur\":", f);
      put_us(f, s->t1 - s->t0);
      putc('}', f);
      comma = ",";
    }
  fputs("\n]}\n", f);
}

heddle_status heddle__trace_write(heddle__trace *t, const char *path, heddle_error *err) {
  if (!heddle__trace_on(t)) return heddle__fail(err, HEDDLE_EINVAL, "no trace is open; heddle_trace_begin opens one");
  FILE *f = fopen(path, "wb");
  if (f == NULL) return heddle__fail(err, HEDDLE_EIO, "trace '%s' cannot be written: %s", path, strerror(errno));
  pthread_mutex_lock(&t->lock);
  atomic_store(&t->on, false);
  put_all(f, t);
  clear(t);
  pthread_mutex_unlock(&t->lock);
  int failed = ferror(f) != 0 ? EIO : 0;
  if (fclose(f) != 0 && failed == 0) failed = errno;
  if (failed != 0) return heddle__fail(err, HEDDLE_EIO, "trace '%s' was not written: %s", path, strerror(failed));
  return HEDDLE_OK;
}

/* ---- the context's */

static heddle_status trace_of(heddle_context *ctx, heddle__trace **out, heddle_error *err) {
  if (ctx == NULL) return heddle__fail(err, HEDDLE_EINVAL, "a trace needs a context; NULL was given");
  heddle_status s = heddle__check_fork(err);
  if (s != HEDDLE_OK) return s;
  *out = heddle__context_trace(ctx);
  if (*out == NULL) return heddle__fail(err, HEDDLE_EINTERNAL, "the context has no trace");
  return HEDDLE_OK;
}

heddle_status heddle_trace_begin(heddle_context *ctx, heddle_error *err) {
  heddle__trace *t = NULL;
  heddle_status s = trace_of(ctx, &t, err);
  if (s == HEDDLE_OK) heddle__trace_open(t);
  return s;
}

heddle_status heddle_trace_write(heddle_context *ctx, const char *path, heddle_error *err) {
  heddle__trace *t = NULL;
  heddle_status s = trace_of(ctx, &t, err);
  if (s != HEDDLE_OK) return s;
  if (path == NULL) return heddle__fail(err, HEDDLE_EINVAL, "the trace needs the path of a file; NULL was given");
  return heddle__trace_write(t, path, err);
}
