/* tests/executor/flight_rig.h: what the tests of runs in flight share: a model whose result shows which input it was
 * given, and short words for starting, ending and looking at runs. */
#ifndef HEDDLE_TESTS_EXECUTOR_FLIGHT_RIG_H
#define HEDDLE_TESTS_EXECUTOR_FLIGHT_RIG_H

#include <time.h>

#include "executor/rig.h"

enum { LENGTH = 9, COUNT = 64 };

/* y = LENGTH x + w, Add by Add on changing devices. */
typedef struct ride {
  heddle_context *ctx;
  heddle_graph *graph;
  heddle_model *model;
  heddle_executor *ex;
  heddle_tensor *x[4], *w; /* x[k]: k + 1, k + 2, ... */
} ride;

static const int64_t shape[] = {COUNT};
static const char *const mixed[] = {"cpu", "sim:0", "sim:1"}, *const only_cpu[] = {"cpu"};

static inline void set_up(ride *t, const char *settings, const char *const *devices, int n_devices,
                          uint32_t in_flight) {
  static sketch s;
  memset(&s, 0, sizeof s);
  memset(t, 0, sizeof *t);
  int x = put_input(&s, "x", "[\"n\"]", "\"float32\""), w = put_input(&s, "w", "[\"n\"]", "\"float32\""), y = w;
  for (int i = 0; i < LENGTH; i++) {
    char name[16];
    snprintf(name, sizeof name, "a%d", i);
    y = NODE(&s, "Add", name, devices[i % n_devices], y, x);
  }
  put_head(&s, y);
  heddle_model_options o = {
      .struct_size = sizeof o, .devices = on("cpu,sim:0,sim:1"), .in_flight = in_flight, .optimize = "off"};
  t->ctx = context(settings);
  t->graph = graph_of(&s);
  for (int k = 0; k < 4; k++) t->x[k] = floats(shape, 1, (float)(k + 1), 1);
  t->w = floats(shape, 1, 100, 10);
  OK(heddle_model_create(t->ctx, t->graph, NULL, &o, &t->model, &err));
  OK(heddle_executor_create(t->model, &t->ex, &err));
  OK(heddle_executor_set_input(t->ex, 1, t->w, &err));
}

static inline void let_go(ride *t) {
  heddle_executor_release(t->ex);
  heddle_model_release(t->model);
  heddle_graph_release(t->graph);
  for (int k = 0; k < 4; k++) heddle_tensor_release(t->x[k]);
  heddle_tensor_release(t->w);
  heddle_context_release(t->ctx);
}

static inline void tear_down(ride *t) {
  let_go(t);
  assert_int_equal(heddle__alloc_live(), 0);
}

/* Element i of a run of x[k]. */
static inline float wanted(int k, int i) {
  return (float)LENGTH * (float)(k + 1 + i) + 100 + 10 * (float)i;
}

static inline bool holds(const float *y, int k) {
  for (int i = 0; i < COUNT; i++)
    if (y[i] != wanted(k, i)) return false;
  return true;
}

/* Whether the outputs that are shown are those of a run of x[k]. */
static inline bool shows(heddle_executor *ex, int k) {
  heddle_tensor *y = NULL;
  if (heddle_executor_view_output(ex, 0, &y, NULL) != HEDDLE_OK) return false;
  bool right = holds(data_of(y), k);
  heddle_tensor_release(y);
  return right;
}

static inline void give(ride *t, int k) {
  OK(heddle_executor_set_input(t->ex, 0, t->x[k], &err));
}

static inline void start(ride *t) {
  OK(heddle_executor_start(t->ex, &err));
}

static inline void start_with(ride *t, int k) {
  give(t, k);
  start(t);
}

static inline void end_with(ride *t, int k) {
  OK(heddle_executor_wait(t->ex, HEDDLE_FOREVER, &err));
  assert_true(shows(t->ex, k));
}

static inline uint64_t stat_runs(heddle_executor *ex) {
  heddle_executor_stats stats = {.struct_size = sizeof stats};
  OK(heddle_executor_get_stats(ex, &stats, &err));
  return stats.runs;
}

static inline void nap(long us) {
  nanosleep(&(struct timespec){us / 1000000, us % 1000000 * 1000}, NULL);
}

#endif
