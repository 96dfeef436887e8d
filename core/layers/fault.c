/* core/layers/fault.c: makes calls fail, completions vanish and completions come late.
 * Settings: fault.fail = "alloc:3@sim:1,op.run:2+" (the 3rd alloc on sim:1; every run from the 2nd on; "any" is every
 * call that can fail); fault.drop_signal = N (the N-th fence.signal never comes); fault.delay_us (each comes later). */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/error.h"
#include "core/fence.h"
#include "core/layers/call.h"
#include "core/thread.h"

enum { MAX_RULES = 16 };

typedef struct rule {
  char name[48];   /* "memory.alloc", "alloc" or "any" */
  char device[72]; /* "sim:1", or "" */
  uint64_t n;
  bool onward;
  atomic_ullong seen;
} rule;

/* A signal that is on its way: the plugin raises mine, and its value goes on to target when it is due. */
typedef struct relay {
  struct relay *next;
  heddle__fence *mine;
  heddle_pfence target;
  uint64_t value;
  uint64_t due_ns; /* 0 until mine was raised */
} relay;

typedef struct fault {
  const heddle__plugin *plugin;
  rule rules[MAX_RULES];
  unsigned n_rules;
  int64_t drop;
  uint64_t delay_ns;
  atomic_ullong signals;
  heddle__waker waker;  /* of the relay thread */
  pthread_mutex_t lock; /* guards relays; a leaf */
  relay *relays;
  pthread_t thread;
  bool started;
  atomic_bool stop;
} fault;

/* ---- settings */

static bool read_rule(rule *r, const char *p, size_t n) {
  size_t colon = 0, at = 0;
  while (colon < n && p[colon] != ':') colon++;
  if (colon == 0 || colon == n || colon >= sizeof r->name) return false;
  memcpy(r->name, p, colon);
  for (at = colon + 1; at < n && p[at] >= '0' && p[at] <= '9'; at++) {
    if (r->n > UINT32_MAX) return false;
    r->n = r->n * 10 + (uint64_t)(p[at] - '0');
  }
  if (r->n == 0) return false;
  if (at < n && p[at] == '+') {
    r->onward = true;
    at++;
  }
  if (at < n && p[at] == '@' && n - at - 1 < sizeof r->device) {
    memcpy(r->device, p + at + 1, n - at - 1);
    at = n;
  }
  return at == n;
}

static heddle_status read_rules(fault *f, const char *list, const char *origin, heddle_error *err) {
  for (const char *p = list; *p != '\0'; p += *p == ',') {
    size_t n = strcspn(p, ",");
    if (f->n_rules == MAX_RULES || !read_rule(&f->rules[f->n_rules], p, n))
      return heddle__fail(err, HEDDLE_EINVAL,
                          "setting 'fault.fail' is '%.100s' (%s); a rule is like alloc:3, op.run:2+ "
                          "or alloc:1@sim:1, at most %d of them",
                          list, origin, (int)MAX_RULES);
    f->n_rules++;
    p += n;
  }
  return HEDDLE_OK;
}

static void release(void *state);

static heddle_status create(struct heddle__layers *layers, void **state, heddle_error *err) {
  heddle_context *ctx = layers->plugin->ctx;
  fault *f = heddle__alloc(1, sizeof *f);
  if (f == NULL) return heddle__no_memory(err, "the fault layer");
  if (pthread_mutex_init(&f->lock, NULL) != 0 || heddle__waker_init(&f->waker, err) != HEDDLE_OK) {
    heddle__free(f);
    return heddle__no_memory(err, "the fault layer");
  }
  const char *list, *origin;
  int64_t delay_us = 0;
  f->plugin = layers->plugin;
  heddle_status s = HEDDLE_OK;
  if (heddle__config_get(ctx->config, "fault.fail", &list, &origin) && !heddle__config_is_off(list))
    s = read_rules(f, list, origin, err);
  if (s == HEDDLE_OK) s = heddle__context_number(ctx, "fault.drop_signal", 0, 0, INT64_MAX / 100, &f->drop, err);
  if (s == HEDDLE_OK) s = heddle__context_number(ctx, "fault.delay_us", 0, 0, 60000000, &delay_us, err);
  f->delay_ns = (uint64_t)delay_us * 1000;
  if (s != HEDDLE_OK) {
    release(f);
    return s;
  }
  *state = f;
  return HEDDLE_OK;
}

/* ---- late completions: one thread forwards them */

/* Forwards one relay where it is time; gives the next time to look. */
static bool forward(fault *f, relay *r, uint64_t now, uint64_t *next_ns) {
  if (r->due_ns == 0) {
    if (!heddle__fence_reached(r->mine, r->value) && heddle__fence_failed(r->mine) == HEDDLE_OK) return false;
    r->due_ns = now + f->delay_ns;
  }
  if (now < r->due_ns) {
    if (r->due_ns < *next_ns) *next_ns = r->due_ns;
    return false;
  }
  heddle_error why;
  heddle_status s = heddle__fence_error(r->mine, &why);
  if (s != HEDDLE_OK) heddle__fence_fail(r->target, s, why.text);
  else heddle__fence_signal(r->target, r->value);
  return true;
}

static void *relay_thread(void *arg) {
  fault *f = arg;
  for (;;) {
    unsigned seen = atomic_load(&f->waker.epoch); /* before stop: the wake-up of the end is after it */
    if (atomic_load(&f->stop)) break;
    uint64_t now = heddle__now_ns(), next_ns = UINT64_MAX;
    relay *done = NULL;
    pthread_mutex_lock(&f->lock);
    for (relay **at = &f->relays; *at != NULL;) {
      relay *r = *at;
      if (forward(f, r, now, &next_ns)) {
        *at = r->next;
        r->next = done;
        done = r;
      } else at = &r->next;
    }
    pthread_mutex_unlock(&f->lock);
    while (done != NULL) {
      relay *r = done;
      done = r->next;
      heddle__fence_free(r->mine);
      heddle__free(r);
    }
    heddle__waker_wait(&f->waker, seen, next_ns);
  }
  return NULL;
}

static heddle_status put_relay(fault *f, heddle__call *c) {
  relay *r = heddle__alloc(1, sizeof *r);
  if (r == NULL) return heddle__no_memory(c->err, "a late completion");
  heddle_status s = heddle__fence_create(&f->waker, &r->mine, c->err);
  pthread_mutex_lock(&f->lock);
  if (s == HEDDLE_OK && !f->started) {
    s = heddle__thread_start(&f->thread, relay_thread, f, "the fault layer", c->err);
    f->started = s == HEDDLE_OK;
  }
  if (s == HEDDLE_OK) {
    r->target = c->fence;
    r->value = c->value;
    r->next = f->relays;
    f->relays = r;
    c->fence = heddle__fence_handle(r->mine);
  }
  pthread_mutex_unlock(&f->lock);
  if (s != HEDDLE_OK) {
    heddle__fence_free(r->mine);
    heddle__free(r);
  }
  return s;
}

static void release(void *state) {
  fault *f = state;
  atomic_store(&f->stop, true);
  heddle__waker_wake(&f->waker);
  if (f->started) pthread_join(f->thread, NULL);
  while (f->relays != NULL) {
    relay *r = f->relays;
    f->relays = r->next;
    heddle__fence_free(r->mine);
    heddle__free(r);
  }
  heddle__waker_finish(&f->waker);
  pthread_mutex_destroy(&f->lock);
  heddle__free(f);
}

/* ---- calls */

static bool matches(const rule *r, const fault *f, const heddle__call *c) {
  const char *dot = strchr(c->name, '.');
  if (strcmp(r->name, "any") != 0 && strcmp(r->name, c->name) != 0 && (dot == NULL || strcmp(r->name, dot + 1) != 0))
    return false;
  if (r->device[0] == '\0') return true;
  size_t n = strlen(f->plugin->name);
  uint32_t index = c->device != NULL ? c->device->index : c->index;
  return strncmp(r->device, f->plugin->name, n) == 0 && r->device[n] == ':' &&
         strtoul(r->device + n + 1, NULL, 10) == index;
}

static heddle_status before(void *state, heddle__call *c) {
  fault *f = state;
  for (unsigned i = 0; i < f->n_rules; i++) {
    rule *r = &f->rules[i];
    if (!matches(r, f, c)) continue;
    unsigned long long seen = atomic_fetch_add(&r->seen, 1) + 1;
    if (seen != r->n && !(r->onward && seen > r->n)) continue;
    heddle_status s = strcmp(c->name, "memory.alloc") == 0 ? HEDDLE_ENOMEM : HEDDLE_EFAILED;
    heddle__logf(&f->plugin->ctx->log, HEDDLE_LOG_INFO, "fault", "%s: call %llu of %s fails", f->plugin->name, seen,
                 c->name);
    return heddle__fail(c->err, s, "%s on %s failed (call %llu, made to fail by fault.fail)", c->name, f->plugin->name,
                        seen);
  }
  if (c->fence == 0 || strcmp(c->name, "fence.signal") != 0) return HEDDLE_OK;
  if (f->drop > 0 && atomic_fetch_add(&f->signals, 1) + 1 == (unsigned long long)f->drop) {
    c->fence = 0; /* the plugin signals no fence */
    return HEDDLE_OK;
  }
  return f->delay_ns > 0 ? put_relay(f, c) : HEDDLE_OK;
}

const heddle__layer heddle__layer_fault = {"fault", create, release, before, NULL};
