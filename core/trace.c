/* core/trace.c: collects spans in chunks under a lock, and writes them as Chrome trace JSON: a process a group,
 * a thread a row, all on the host's clock, with what is known of each group's own.
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
#include "core/parts.h"
#include "core/sheet.h"
#include "core/trace.h"
#include "heddle/text.h"
#include "heddle/executor.h"

#if HEDDLE_HAS_PROFILE

enum { CHUNK = 1024, MAX_SPANS = 1000000, TRACK_BYTES = 80, NAME_BYTES = 104 };

typedef struct span {
  uint64_t t0, t1, bytes;
  const char *route; /* NULL: no copy */
  uint32_t track;
  char name[NAME_BYTES];
} span;

typedef struct chunk {
  struct chunk *next;
  uint32_t used;
  span spans[CHUNK];
} chunk;

typedef struct track {
  uint32_t group;
  char name[TRACK_BYTES];
} track;

typedef struct group {
  char name[TRACK_BYTES];
  bool stated, own; /* what is known of its clock */
  int64_t offset_ns;
  uint64_t error_ns;
} group;

struct heddle__trace {
  atomic_bool on;
  pthread_mutex_t lock; /* guards what follows; a leaf */
  chunk *first, *last;
  track *tracks;
  group *groups;
  uint32_t n_tracks, cap_tracks, n_groups, cap_groups;
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
  heddle__free(t->groups);
  t->first = t->last = NULL;
  t->tracks = NULL;
  t->groups = NULL;
  t->n_tracks = t->cap_tracks = t->n_groups = t->cap_groups = 0;
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

/* Room for one more of count things; the lock is held. false when memory is out. */
static bool room(void **all, uint32_t count, uint32_t *cap, size_t size) {
  if (count < *cap) return true;
  uint32_t most = *cap == 0 ? 8 : *cap * 2;
  void *grown = heddle__grow(*all, *cap, most, size);
  if (grown == NULL) return false;
  *all = grown;
  *cap = most;
  return true;
}

/* The number of a group, and of a row in it, made on first use; the lock is held. UINT32_MAX when memory is out. */
static uint32_t group_of(heddle__trace *t, const char *name) {
  char cut[TRACK_BYTES];
  copy_cut(cut, name, sizeof cut);
  for (uint32_t i = 0; i < t->n_groups; i++)
    if (strcmp(t->groups[i].name, cut) == 0) return i;
  if (!room((void **)&t->groups, t->n_groups, &t->cap_groups, sizeof *t->groups)) return UINT32_MAX;
  t->groups[t->n_groups] = (group){0};
  memcpy(t->groups[t->n_groups].name, cut, sizeof cut);
  return t->n_groups++;
}

static uint32_t track_of(heddle__trace *t, uint32_t number, const char *name) {
  char cut[TRACK_BYTES];
  copy_cut(cut, name, sizeof cut);
  if (number == UINT32_MAX) return number;
  for (uint32_t i = 0; i < t->n_tracks; i++)
    if (t->tracks[i].group == number && strcmp(t->tracks[i].name, cut) == 0) return i;
  if (!room((void **)&t->tracks, t->n_tracks, &t->cap_tracks, sizeof *t->tracks)) return UINT32_MAX;
  t->tracks[t->n_tracks].group = number;
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

static const char *word(const char *text) {
  return text != NULL ? text : "";
}

void heddle__trace_span(heddle__trace *t, const heddle__span *x) {
  if (!heddle__trace_on(t)) return;
  pthread_mutex_lock(&t->lock);
  if (atomic_load(&t->on)) {
    uint32_t number = track_of(t, group_of(t, word(x->group)), word(x->row));
    span *s = number != UINT32_MAX ? next_span(t) : NULL;
    if (s != NULL) {
      *s = (span){x->t0, x->t1 > x->t0 ? x->t1 : x->t0, x->bytes, x->route, number, ""};
      copy_cut(s->name, word(x->name), sizeof s->name);
      t->last->used++;
      t->count++;
    } else {
      t->dropped++;
    }
  }
  pthread_mutex_unlock(&t->lock);
}

void heddle__trace_clock(heddle__trace *t, const char *name, bool own, int64_t offset_ns, uint64_t error_ns) {
  if (!heddle__trace_on(t)) return;
  pthread_mutex_lock(&t->lock);
  uint32_t number = atomic_load(&t->on) ? group_of(t, word(name)) : UINT32_MAX;
  if (number != UINT32_MAX) {
    group *g = &t->groups[number];
    g->stated = true;
    g->own = own;
    g->offset_ns = offset_ns;
    if (error_ns > g->error_ns) g->error_ns = error_ns;
  }
  pthread_mutex_unlock(&t->lock);
}

/* ---- writing */

static void put_string(heddle__sheet *out, const char *text) {
  char clean[NAME_BYTES];
  (void)heddle_text_clean(text, clean, sizeof clean);
  heddle__say_string(out, clean);
}

/* Processes with their clocks, and threads, in the order in which they appeared. */
static void put_names(heddle__sheet *out, const heddle__trace *t) {
  for (uint32_t i = 0; i < t->n_groups; i++) {
    const group *g = &t->groups[i];
    heddle__say(out, "%s\n{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":%u,\"args\":{\"name\":", i > 0 ? "," : "",
                i + 1);
    put_string(out, g->name);
    heddle__say(out, "}},\n{\"ph\":\"M\",\"name\":\"process_sort_index\",\"pid\":%u,\"args\":{\"sort_index\":%u}}",
                i + 1, i);
    if (!g->stated) continue;
    heddle__say(out, ",\n{\"ph\":\"M\",\"name\":\"process_labels\",\"pid\":%u,\"args\":{\"labels\":\"", i + 1);
    if (g->own)
      heddle__say(out, "own clock, offset %" PRId64 " ns, error %" PRIu64 " ns\"}}", g->offset_ns, g->error_ns);
    else heddle__say_text(out, "the host's clock\"}}");
  }
  for (uint32_t i = 0; i < t->n_tracks; i++) {
    heddle__say(out, ",\n{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":%u,\"tid\":%u,\"args\":{\"name\":",
                t->tracks[i].group + 1, i + 1);
    put_string(out, t->tracks[i].name);
    heddle__say_text(out, "}}");
  }
}

static void put_clocks(heddle__sheet *out, const heddle__trace *t) {
  const char *comma = "";
  for (uint32_t i = 0; i < t->n_groups; i++) {
    const group *g = &t->groups[i];
    if (!g->stated) continue;
    heddle__say(out, "%s\n{\"pid\":%u,\"name\":", comma, i + 1);
    put_string(out, g->name);
    heddle__say(out, ",\"clock\":\"%s\",\"offset_ns\":%" PRId64 ",\"error_ns\":%" PRIu64 "}", g->own ? "own" : "host",
                g->offset_ns, g->error_ns);
    comma = ",";
  }
}

static void put_span(heddle__sheet *out, const heddle__trace *t, const span *s, uint64_t zero) {
  heddle__say(out, ",\n{\"ph\":\"X\",\"pid\":%u,\"tid\":%u,\"name\":", t->tracks[s->track].group + 1, s->track + 1);
  put_string(out, s->name);
  heddle__say_text(out, ",\"ts\":");
  heddle__say_us(out, s->t0 - zero);
  heddle__say_text(out, ",\"dur\":");
  heddle__say_us(out, s->t1 - s->t0);
  if (s->route != NULL) heddle__say(out, ",\"args\":{\"bytes\":%" PRIu64 ",\"route\":\"%s\"}", s->bytes, s->route);
  heddle__say_text(out, "}");
}

/* What was put so far, into the file. */
static void pass_on(heddle__sheet *out, FILE *file) {
  if (out->text == NULL) return;
  fwrite(out->text, 1, out->used, file);
  out->used = 0;
}

/* false where memory is out. */
static bool put_all(FILE *file, const heddle__trace *t) {
  heddle__sheet sheet = {0}, *out = &sheet;
  uint64_t zero = UINT64_MAX;
  for (const chunk *c = t->first; c != NULL; c = c->next)
    for (uint32_t i = 0; i < c->used; i++)
      if (c->spans[i].t0 < zero) zero = c->spans[i].t0;
  heddle__say(out, "{\"displayTimeUnit\":\"ns\",\"otherData\":{\"dropped\":%" PRIu64 ",\"clocks\":[", t->dropped);
  put_clocks(out, t);
  heddle__say_text(out, "]},\"traceEvents\":[");
  put_names(out, t); /* a span has a group, so that there is one before it */
  for (const chunk *c = t->first; c != NULL && !out->failed; c = c->next) {
    for (uint32_t i = 0; i < c->used; i++) put_span(out, t, &c->spans[i], zero);
    pass_on(out, file);
  }
  heddle__say_text(out, "\n]}\n");
  pass_on(out, file);
  heddle__free(out->text);
  return !out->failed;
}

heddle_status heddle__trace_write(heddle__trace *t, const char *path, heddle_error *err) {
  if (!heddle__trace_on(t)) return heddle__fail(err, HEDDLE_EINVAL, "no trace is open; heddle_trace_begin opens one");
  FILE *f = fopen(path, "wb");
  if (f == NULL) return heddle__fail(err, HEDDLE_EIO, "trace '%s' cannot be written: %s", path, strerror(errno));
  pthread_mutex_lock(&t->lock);
  atomic_store(&t->on, false);
  const bool whole = put_all(f, t);
  clear(t);
  pthread_mutex_unlock(&t->lock);
  int failed = ferror(f) != 0 ? EIO : 0;
  if (fclose(f) != 0 && failed == 0) failed = errno;
  if (!whole) return heddle__no_memory(err, "the text of a trace");
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

#else

heddle_status heddle__trace_create(heddle__trace **out, heddle_error *err) {
  (void)err;
  *out = NULL;
  return HEDDLE_OK;
}

void heddle__trace_release(heddle__trace *t) {
  (void)t;
}

bool heddle__trace_on(heddle__trace *t) {
  (void)t;
  return false;
}

void heddle__trace_open(heddle__trace *t) {
  (void)t;
}

void heddle__trace_span(heddle__trace *t, const heddle__span *x) {
  (void)t, (void)x;
}

void heddle__trace_clock(heddle__trace *t, const char *name, bool own, int64_t offset_ns, uint64_t error_ns) {
  (void)t, (void)name, (void)own, (void)offset_ns, (void)error_ns;
}

heddle_status heddle__trace_write(heddle__trace *t, const char *path, heddle_error *err) {
  (void)t, (void)path;
  return heddle__left_out(err, "profiles and traces", "HEDDLE_PROFILE");
}

heddle_status heddle_trace_begin(heddle_context *ctx, heddle_error *err) {
  (void)ctx;
  return heddle__left_out(err, "profiles and traces", "HEDDLE_PROFILE");
}

heddle_status heddle_trace_write(heddle_context *ctx, const char *path, heddle_error *err) {
  (void)ctx, (void)path;
  return heddle__left_out(err, "profiles and traces", "HEDDLE_PROFILE");
}

#endif
