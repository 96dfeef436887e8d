/* tests/executor/test_wakeups.c: drivers that are asked to stop: just before they go to sleep, and amid the host's
 * steps. The loop of a run is driven here by hand, with a helm that raises its flag at the worst moment. */
#include "core/thread.h"
#include "executor/rig.h"
#include "executor/state.h"

typedef struct helmsman {
  heddle__waker *waker;
  int calls;
  uint64_t told_ns;
} helmsman;

/* The first look is before anything was submitted, the second before the sleep: after it, and not seen by it, comes the
 * wish to stop. */
static bool heed(void *user) {
  helmsman *h = user;
  if (++h->calls == 2) {
    h->told_ns = heddle__now_ns();
    heddle__waker_wake(h->waker);
  }
  return h->calls > 2;
}

static void a_wish_before_the_sleep_is_seen(void **state) {
  (void)state;
  sketch s = {0};
  int x = put_input(&s, "x", "[64]", "\"float32\"");
  put_head(&s, NODE(&s, "Relu", "y", "sim:0", x));
  heddle_context *ctx = context("sim.delay_us=1000000;sim.seed=3");
  heddle_graph *g = graph_of(&s);
  heddle_model *m = NULL;
  heddle_executor *ex = NULL;
  heddle_model_options o = {.struct_size = sizeof o, .devices = on("sim:0")};
  OK(heddle_model_create(ctx, g, NULL, &o, &m, &err));
  OK(heddle_executor_create(m, &ex, &err));
  bool at_once = false;
  for (int i = 0; i < 5 && !at_once; i++) { /* a loaded machine may be late once */
    atomic_uint attention = 1;
    helmsman h = {&ex->drive.waker, 0, 0};
    heddle__helm helm = {&ex->drive.waker, &attention, heed, &h, HEDDLE_FOREVER, NULL, NULL, HEDDLE__AIM_END};
    heddle_status status = HEDDLE_OK;
    char what[160];
    heddle__run_reset(ex->bound);
    heddle__run_end end = heddle__run_drive(ex->bound, &helm, &status, &err);
    uint64_t took = heddle__now_ns() - h.told_ns;
    at_once = end == HEDDLE__RUN_STOPPED && h.calls == 3 && took < 60 * MS; /* a look at the streams is 100 ms away */
    assert_true(heddle__run_drain(ex->bound, 20000 * MS, what, sizeof what));
    heddle__bound_renew_fences(ex->bound, &ex->drive.waker);
  }
  assert_true(at_once);
  heddle_executor_release(ex);
  heddle_model_release(m);
  heddle_graph_release(g);
  heddle_context_release(ctx);
  assert_int_equal(heddle__alloc_live(), 0);
}

/* ---- a run that was stopped leaves nothing to the next one */

static bool heed_later(void *user) {
  return ++*(int *)user == 5; /* after four steps */
}

static void a_stopped_run_begins_anew(void **state) {
  (void)state;
  enum { LENGTH = 20 };
  sketch s = {0};
  int x = put_input(&s, "x", "[64]", "\"float32\""), y = x;
  char name[16];
  for (int i = 0; i < LENGTH; i++) {
    snprintf(name, sizeof name, "n%d", i);
    y = NODE(&s, "Add", name, NULL, y, x);
  }
  put_head(&s, y);
  heddle_context *ctx = context("threads=1");
  heddle_graph *g = graph_of(&s);
  heddle_model *m = NULL;
  heddle_executor *ex = NULL;
  heddle_model_options o = {.struct_size = sizeof o, .devices = "cpu"};
  OK(heddle_model_create(ctx, g, NULL, &o, &m, &err));
  OK(heddle_executor_create(m, &ex, &err));
  const int64_t shape[] = {64};
  heddle_tensor *one = floats(shape, 1, 1, 0), *two = floats(shape, 1, 2, 0), *out = NULL;
  OK(heddle_executor_set_input(ex, 0, one, &err));
  OK(heddle_executor_run(ex, HEDDLE_FOREVER, &err));
  for (int timed = 0; timed < 2; timed++) { /* with a profile, steps are run one by one by other code */
    atomic_uint attention = 1;
    int calls = 0;
    heddle__helm helm = {&ex->drive.waker, &attention, heed_later, &calls, HEDDLE_FOREVER, NULL, NULL, HEDDLE__AIM_END};
    if (timed) OK(heddle__profile_create(ex->bound, 0, &helm.profile, &err));
    heddle_status status = HEDDLE_OK;
    heddle__run_reset(ex->bound);
    assert_int_equal(heddle__run_drive(ex->bound, &helm, &status, &err), HEDDLE__RUN_STOPPED);
    heddle__profile_release(helm.profile);
    OK(heddle_executor_set_input(ex, 0, timed ? one : two, &err));
    OK(heddle_executor_run(ex, HEDDLE_FOREVER, &err));
    OK(heddle_executor_view_output(ex, 0, &out, &err));
    assert_true(data_of(out)[0] == (timed ? LENGTH + 1 : 2 * (LENGTH + 1)));
    heddle_tensor_release(out);
  }
  heddle_tensor_release(one);
  heddle_tensor_release(two);
  heddle_executor_release(ex);
  heddle_model_release(m);
  heddle_graph_release(g);
  heddle_context_release(ctx);
  assert_int_equal(heddle__alloc_live(), 0);
}

CASES(CASE_TWICE(a_wish_before_the_sleep_is_seen), CASE(a_stopped_run_begins_anew))
