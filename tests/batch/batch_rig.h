/* tests/batch/batch_rig.h: what the tests of batchers share: a model y = x + x with open dimensions, a batcher, requests of
 * floats, and callbacks that note in which order requests ended. */
#ifndef HEDDLE_TESTS_BATCH_BATCH_RIG_H
#define HEDDLE_TESTS_BATCH_BATCH_RIG_H

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "executor/rig.h"

enum { WIDTH = 4 };

typedef struct batch_rig {
  heddle_context *ctx;
  heddle_graph *graph;
  heddle_model *model;
  heddle_batcher *b;
} batch_rig;

static inline void batch_make(batch_rig *t, const char *settings, const char *device, const sketch *s,
                              const heddle_batcher_options *options) {
  heddle_model_options o = {.struct_size = sizeof o, .devices = device, .flags = HEDDLE_MODEL_NO_CAPTURE};
  memset(t, 0, sizeof *t);
  t->ctx = context(settings);
  t->graph = graph_of(s);
  OK(heddle_model_create(t->ctx, t->graph, NULL, &o, &t->model, &err));
  OK(heddle_batcher_create(t->model, options, &t->b, &err));
}

static inline void batch_end(batch_rig *t) {
  heddle_batcher_release(t->b);
  heddle_model_release(t->model);
  heddle_graph_release(t->graph);
  heddle_context_release(t->ctx);
  assert_int_equal(heddle__alloc_live(), 0);
}

/* y = x + x; x has a shape as JSON. */
static inline void doubling(batch_rig *t, const char *settings, const char *device, const char *shape,
                            const heddle_batcher_options *options) {
  static sketch s;
  memset(&s, 0, sizeof s);
  const int x = put_input(&s, "x", shape, "\"float32\"");
  put_head(&s, NODE(&s, "Add", "y", NULL, x, x));
  batch_make(t, settings, device, &s, options);
}

#define ITEMS "[\"n\",4]"
#define OPTIONS(...) (&(heddle_batcher_options){.struct_size = sizeof(heddle_batcher_options), __VA_ARGS__})

/* Items of WIDTH floats: first, first + 1, ... */
static inline heddle_tensor *items(int64_t n, float first) {
  return floats((int64_t[]){n, WIDTH}, 2, first, 1);
}

static inline heddle_batch_call call_of(heddle_tensor *const *x) {
  return (heddle_batch_call){.struct_size = sizeof(heddle_batch_call), .inputs = x, .n_inputs = 1};
}

/* Submits one tensor, which the request keeps. */
static inline heddle_batch_request *submitted(heddle_batcher *b, heddle_tensor *x, heddle_batch_call c) {
  heddle_batch_request *r = NULL;
  c.struct_size = sizeof c;
  c.inputs = &x;
  c.n_inputs = 1;
  OK(heddle_batcher_submit(b, &c, &r, &err));
  heddle_tensor_release(x);
  return r;
}

static inline void expect_doubled(const heddle_tensor *y, float first) {
  for (uint64_t i = 0; i < heddle_tensor_bytes(y) / 4; i++)
    if (data_of(y)[i] != 2 * (first + (float)i)) fail_msg("element %d is %f", (int)i, (double)data_of(y)[i]);
}

static inline void ends_doubled(heddle_batch_request *r, float first) {
  heddle_tensor *y = NULL;
  OK(heddle_batch_request_wait(r, HEDDLE_FOREVER, &err));
  OK(heddle_batch_request_output(r, 0, &y, &err));
  expect_doubled(y, first);
  heddle_tensor_release(y);
  heddle_batch_request_release(r);
}

static inline heddle_batcher_stats stats_of(heddle_batcher *b) {
  heddle_batcher_stats all = {.struct_size = sizeof all};
  OK(heddle_batcher_get_stats(b, &all, &err));
  return all;
}

static inline void sleep_ms(long ms) {
  nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000}, NULL);
}

static inline uint64_t clock_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Submits a request, and returns when it runs: a worker is busy. */
static inline heddle_batch_request *block(batch_rig *t, float first) {
  heddle_batch_request *r = submitted(t->b, items(1, first), (heddle_batch_call){0});
  while (stats_of(t->b).running == 0) sleep_ms(1);
  return r;
}

/* The order in which requests ended. */
typedef struct diary {
  atomic_int n;
  int order[256];
  heddle_status status[256];
} diary;
typedef struct note {
  diary *d;
  int number;
} note;

static inline void write_note(void *user, heddle_batch_request *r, heddle_status s, const heddle_error *e) {
  note *n = user;
  const int at = atomic_fetch_add(&n->d->n, 1);
  (void)r;
  n->d->order[at] = n->number;
  n->d->status[n->number] = (s == HEDDLE_OK) == (e == NULL) ? s : HEDDLE_EINTERNAL;
}

#endif
