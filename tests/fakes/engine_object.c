/* The registry of all that has a handle: what is alive is in it, so that a handle can be checked before it is looked
 * into. What is retired keeps its memory for a while, so that no new object has the address of an old one. */
#include "engine_inside.h"

#define BUCKETS 4096
#define KEPT 1024

pthread_mutex_t eng_lock = PTHREAD_MUTEX_INITIALIZER;
pthread_cond_t eng_done = PTHREAD_COND_INITIALIZER;

static eng_object *buckets[BUCKETS];
static int live[ENG_KINDS];
static void *kept[KEPT];
static size_t next_kept;

static size_t bucket_of(const void *p) {
  return (size_t)((uintptr_t)p >> 4) * 2654435761u % BUCKETS;
}

const char *eng_kind_words(eng_kind kind) {
  static const char *const words[ENG_KINDS] = {"contexts",  "streams", "events", "modules",
                                               "functions", "graphs",  "execs"};
  return words[kind];
}

void eng_object_add(eng_object *o, eng_kind kind, eng_context *ctx) {
  eng_object **bucket = &buckets[bucket_of(o)];
  o->kind = kind;
  o->ctx = ctx;
  o->next = *bucket;
  *bucket = o;
  live[kind]++;
}

bool eng_object_is(const void *handle, eng_kind kind) {
  for (const eng_object *o = buckets[bucket_of(handle)]; o != NULL; o = o->next) {
    if (o == handle) return o->kind == kind;
  }
  return false;
}

void eng_object_unlink(eng_object *o) {
  for (eng_object **p = &buckets[bucket_of(o)]; *p != NULL; p = &(*p)->next) {
    if (*p != o) continue;
    *p = o->next;
    live[o->kind]--;
    return;
  }
}

void eng_object_keep(void *memory) {
  free(kept[next_kept]);
  kept[next_kept] = memory;
  next_kept = (next_kept + 1) % KEPT;
}

void eng_object_retire(eng_object *o) {
  eng_object_unlink(o);
  eng_object_keep(o);
}

int eng_object_live(eng_kind kind) {
  return live[kind];
}

eng_object *eng_object_of(const eng_context *ctx, eng_kind kind) {
  for (size_t i = 0; i < BUCKETS; i++) {
    for (eng_object *o = buckets[i]; o != NULL; o = o->next) {
      if (o->kind == kind && o->ctx == ctx) return o;
    }
  }
  return NULL;
}

int eng_object_check(const void *handle, eng_kind kind, const char *what) {
  if (handle != NULL && eng_object_is(handle, kind)) return ENG_OK;
  eng_misuse("%s: %p is none of the %s that are alive", what, (const void *)handle, eng_kind_words(kind));
  return ENG_INVALID_HANDLE;
}
