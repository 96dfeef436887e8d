/* tests/executor/test_flight.c: several runs of one executor in flight: which values each has, whose outputs are shown,
 * that a later run passes an earlier one that hangs, and how runs end that fail, are cancelled or released.
 * labels: threads
 * timeout: 120
 */
#include <pthread.h>
#include <stdatomic.h>
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
static const char *const mixed[] = {"cpu", "sim:0", "sim:1"};
static const char *const only_cpu[] = {"cpu"};
static const char *const only_sim[] = {"sim:0"};

static void set_up(ride *t, const char *settings, const char *const *devices, int n_devices, uint32_t in_flight) {
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

static void let_go(ride *t) {
  heddle_executor_release(t->ex);
  heddle_model_release(t->model);
  heddle_graph_release(t->graph);
  for (int k = 0; k < 4; k++) heddle_tensor_release(t->x[k]);
  heddle_tensor_release(t->w);
  heddle_context_release(t->ctx);
}

static void tear_down(ride *t) {
  let_go(t);
  assert_int_equal(heddle__alloc_live(), 0);
}

/* Element i of a run of x[k]. */
static float wanted(int k, int i) {
  return (float)LENGTH * (float)(k + 1 + i) + 100 + 10 * (float)i;
}

static bool holds(const float *y, int k) {
  for (int i = 0; i < COUNT; i++)
    if (y[i] != wanted(k, i)) return false;
  return true;
}

/* Whether the outputs that are shown are those of a run of x[k]. */
static bool shows(heddle_executor *ex, int k) {
  heddle_tensor *y = NULL;
  if (heddle_executor_view_output(ex, 0, &y, NULL) != HEDDLE_OK) return false;
  bool right = holds(data_of(y), k);
  heddle_tensor_release(y);
  return right;
}

static void give(ride *t, int k) {
  OK(heddle_executor_set_input(t->ex, 0, t->x[k], &err));
}

static void start(ride *t) {
  OK(heddle_executor_start(t->ex, &err));
}

static void start_with(ride *t, int k) {
  give(t, k);
  start(t);
}

static void end_with(ride *t, int k) {
  OK(heddle_executor_wait(t->ex, HEDDLE_FOREVER, &err));
  assert_true(shows(t->ex, k));
}

static uint64_t stat_runs(heddle_executor *ex) {
  heddle_executor_stats stats = {.struct_size = sizeof stats};
  OK(heddle_executor_get_stats(ex, &stats, &err));
  return stats.runs;
}

static void nap(long us) {
  nanosleep(&(struct timespec){us / 1000000, us % 1000000 * 1000}, NULL);
}

/* ---- what a run has and shows */

static void runs_are_told_in_order(void **state) {
  (void)state;
  for (uint32_t n = 1; n <= 4; n++) {
    ride t;
    set_up(&t, "sim.delay_us=100", mixed, 3, n);
    uint32_t started = 0, ended = 0;
    while (ended < 24) {
      while (started < 24 && started - ended < n) start_with(&t, (int)started++ % 4);
      if (started - ended == n) {
        FAILS(heddle_executor_start(t.ex, &err), HEDDLE_EBUSY);
        if (n > 1) SAYS("runs in flight are pending; wait for one");
        FAILS(heddle_executor_set_input(t.ex, 0, t.x[0], &err), HEDDLE_EBUSY);
      }
      FAILS(heddle_executor_run(t.ex, HEDDLE_FOREVER, &err), HEDDLE_EBUSY);
      end_with(&t, (int)ended++ % 4);
    }
    assert_int_equal(heddle_executor_poll(t.ex), HEDDLE_OK);
    OK(heddle_executor_wait(t.ex, 0, &err)); /* nothing is pending: the last result */
    assert_true(shows(t.ex, 23 % 4));
    assert_int_equal(stat_runs(t.ex), 24);
    tear_down(&t);
  }
}

static void values_stay(const char *settings) {
  ride t;
  set_up(&t, settings, mixed, 3, 3);
  give(&t, 2); /* before the first start, and never again */
  for (int i = 0; i < 3; i++) start(&t);
  for (int i = 0; i < 3; i++) end_with(&t, 2);
  for (int i = 0; i < 2; i++) start(&t);
  start_with(&t, 1); /* this run alone, and those after it */
  for (int i = 0; i < 2; i++) end_with(&t, 2);
  start(&t);
  end_with(&t, 1);
  end_with(&t, 1);
  give(&t, 0); /* what is set again before the start counts */
  give(&t, 3);
  for (int i = 0; i < 7; i++) {
    OK(heddle_executor_run(t.ex, HEDDLE_FOREVER, &err));
    assert_true(shows(t.ex, 3));
  }
  heddle_tensor *x = NULL;
  OK(heddle_executor_get_input(t.ex, 0, &x, &err));
  assert_true(data_of(x)[0] == 4);
  heddle_tensor_release(x);
  tear_down(&t);
}

static void values_stay_from_run_to_run(void **state) {
  (void)state;
  values_stay("");
  if (!is_sim()) return;
  values_stay("sim.coherent=0;sim.delay_us=50");
  values_stay("sim.unified=1;sim.coherent=0");
  values_stay("sim.import=0");
}

static void outputs_are_those_waited_for(void **state) {
  (void)state;
  ride t;
  heddle_tensor *y = NULL, *own = floats(shape, 1, 0, 0);
  set_up(&t, "", mixed, 3, 2);
  FAILS(heddle_executor_view_output(t.ex, 0, &y, &err), HEDDLE_EINVAL);
  SAYS("no finished run");
  start_with(&t, 0);
  start_with(&t, 1);
  while (heddle_executor_poll(t.ex) == HEDDLE_EBUSY) nap(100);
  FAILS(heddle_executor_view_output(t.ex, 0, &y, &err), HEDDLE_EBUSY); /* ended, and not waited for */
  OK(heddle_executor_wait(t.ex, HEDDLE_FOREVER, &err));
  OK(heddle_executor_get_output(t.ex, 0, own, &err));
  assert_true(holds(data_of(own), 0));
  OK(heddle_executor_view_output(t.ex, 0, &y, &err));
  assert_true(holds(data_of(y), 0));
  while (stat_runs(t.ex) < 2) nap(100);
  assert_true(holds(data_of(y), 0)); /* the other run wrote elsewhere */
  heddle_tensor_release(y);
  start_with(&t, 2);
  FAILS(heddle_executor_get_output(t.ex, 0, own, &err), HEDDLE_EBUSY);
  SAYS("read those before");
  end_with(&t, 1);
  end_with(&t, 2);
  heddle_tensor_release(own);
  tear_down(&t);
}

static void memory_of_the_caller_takes_turns(void **state) {
  (void)state;
  for (int on_sim = 0; on_sim < 2; on_sim++) {
    ride t;
    heddle_tensor *out[2] = {floats(shape, 1, 0, 0), floats(shape, 1, 0, 0)};
    set_up(&t, "", on_sim ? mixed : only_cpu, on_sim ? 3 : 1, 2);
    OK(heddle_executor_bind_output(t.ex, 0, out[0], &err));
    OK(heddle_executor_bind_input(t.ex, 0, t.x[0], &err));
    start(&t);
    FAILS(heddle_executor_bind_output(t.ex, 0, out[0], &err), HEDDLE_EINVAL); /* both runs would write it */
    SAYS("overlaps the memory of output");
    FAILS(heddle_executor_bind_output(t.ex, 0, t.x[0], &err), HEDDLE_EINVAL); /* the first run reads it */
    SAYS("bound to input 'x'");
    FAILS(heddle_executor_bind_input(t.ex, 0, out[0], &err), HEDDLE_EINVAL);
    SAYS("overlaps the memory of output");
    OK(heddle_executor_bind_output(t.ex, 0, out[1], &err));
    OK(heddle_executor_bind_input(t.ex, 0, t.x[1], &err));
    start(&t);
    end_with(&t, 0);
    assert_true(holds(data_of(out[0]), 0));
    give(&t, 2);
    start(&t); /* into the first again */
    end_with(&t, 1);
    assert_true(holds(data_of(out[1]), 1));
    OK(heddle_executor_bind_output(t.ex, 0, NULL, &err));
    start_with(&t, 3);
    end_with(&t, 2);
    assert_true(holds(data_of(out[0]), 2));
    end_with(&t, 3);
    assert_true(holds(data_of(out[1]), 1)); /* the executor's own memory was used */
    heddle_tensor_release(out[0]);
    heddle_tensor_release(out[1]);
    tear_down(&t);
  }
}

static void shapes_differ_in_flight(void **state) {
  (void)state;
  ride t;
  set_up(&t, "", mixed, 3, 3);
  for (int turn = 0; turn < 6; turn++) {
    for (int64_t n = 1; n <= 3; n++) {
      heddle_tensor *x = floats((int64_t[]){n + turn % 2}, 1, 1, 1), *w = floats((int64_t[]){n + turn % 2}, 1, 7, 0);
      OK(heddle_executor_set_input_by_name(t.ex, "x", x, &err));
      OK(heddle_executor_set_input_by_name(t.ex, "w", w, &err));
      start(&t);
      heddle_tensor_release(x);
      heddle_tensor_release(w);
    }
    for (int64_t n = 1; n <= 3; n++) {
      heddle_tensor *y = NULL;
      OK(heddle_executor_wait(t.ex, HEDDLE_FOREVER, &err));
      OK(heddle_executor_view_output(t.ex, 0, &y, &err));
      assert_int_equal(heddle_tensor_shape(y)[0], n + turn % 2);
      for (int64_t i = 0; i < n; i++) assert_true(data_of(y)[i] == (float)LENGTH * (float)(1 + i) + 7);
      heddle_tensor_release(y);
    }
  }
  tear_down(&t);
}

static void facts_and_other_runs(void **state) {
  (void)state;
  ride t;
  heddle_tensor *value = NULL;
  const heddle_profile_entry *entries = NULL;
  size_t n = 0;
  char *text = NULL;
  heddle_io_info info = {.struct_size = sizeof info};
  set_up(&t, "", mixed, 3, 2);
  assert_int_equal(heddle_executor_input_count(t.ex), 2);
  assert_int_equal(heddle_executor_output_count(t.ex), 1);
  assert_int_equal(heddle_executor_input_index(t.ex, "w"), 1);
  assert_int_equal(heddle_executor_output_index(t.ex, "a8"), 0);
  assert_int_equal(heddle_executor_output_index(t.ex, "none"), -1);
  start_with(&t, 0);
  FAILS(heddle_executor_run_to(t.ex, "a0", 0, &value, &err), HEDDLE_EBUSY);
  FAILS(heddle_executor_profile(t.ex, &entries, &n, &err), HEDDLE_EBUSY);
  SAYS("1 of 2 runs in flight are pending");
  OK(heddle_executor_input_info(t.ex, 0, &info, &err));
  assert_int_equal(info.shape[0], COUNT);
  OK(heddle_executor_explain(t.ex, HEDDLE_EXPLAIN_TEXT, &text, &err)); /* of the run that would be started next */
  assert_non_null(strstr(text, "in flight 2 runs"));
  heddle_free(text);
  start(&t);
  OK(heddle_executor_output_info(t.ex, 0, &info, &err));
  assert_int_equal(info.shape[0], COUNT);
  FAILS(heddle_executor_explain(t.ex, HEDDLE_EXPLAIN_TEXT, &text, &err), HEDDLE_EBUSY);
  end_with(&t, 0);
  end_with(&t, 0);
  OK(heddle_executor_run_to(t.ex, "a0", 0, &value, &err));
  assert_true(data_of(value)[0] == 101);
  heddle_tensor_release(value);
  give(&t, 1);
  OK(heddle_executor_profile(t.ex, &entries, &n, &err));
  assert_true(n >= LENGTH);
  assert_true(shows(t.ex, 1));
  tear_down(&t);
}

static void options_are_checked(void **state) {
  (void)state;
  ride t;
  set_up(&t, "", only_cpu, 1, 0);
  heddle_model *m = NULL;
  heddle_model_options o = {.struct_size = sizeof o, .devices = "cpu", .in_flight = 65};
  FAILS(heddle_model_create(t.ctx, t.graph, NULL, &o, &m, &err), HEDDLE_EINVAL);
  SAYS("65 runs in flight; there can be 64");
  start_with(&t, 1);
  FAILS(heddle_executor_start(t.ex, &err), HEDDLE_EBUSY);
  end_with(&t, 1);
  tear_down(&t);
}

/* N times the memory of one run, but for the constants. */
static void memory_is_counted(void **state) {
  (void)state;
  uint64_t bytes[4] = {0};
  for (uint32_t n = 1; n <= 3; n++) {
    static const char *const names[] = {"w"};
    heddle_executor_stats stats = {.struct_size = sizeof stats};
    heddle_model_options o = {.struct_size = sizeof o, .devices = "sim:0", .in_flight = n};
    heddle_params *params = NULL;
    heddle_model *m = NULL;
    heddle_executor *ex = NULL;
    ride t;
    set_up(&t, "", only_sim, 1, 1);
    OK(heddle_params_create(names, &t.w, 1, &params, &err));
    OK(heddle_model_create(t.ctx, t.graph, params, &o, &m, &err));
    OK(heddle_executor_create(m, &ex, &err));
    OK(heddle_executor_set_input(ex, 0, t.x[2], &err));
    for (uint32_t i = 0; i < n; i++) OK(heddle_executor_start(ex, &err));
    for (uint32_t i = 0; i < n; i++) OK(heddle_executor_wait(ex, HEDDLE_FOREVER, &err));
    assert_true(shows(ex, 2));
    OK(heddle_executor_get_stats(ex, &stats, &err));
    bytes[n] = stats.device_bytes;
    assert_int_equal(bytes[n], n * bytes[1]);
    assert_int_equal(stats.runs, n);
    OK(heddle_executor_load_params(ex, params, &err)); /* w is an input now, of each run */
    for (uint32_t i = 0; i < n; i++) OK(heddle_executor_start(ex, &err));
    for (uint32_t i = 0; i < n; i++) {
      OK(heddle_executor_wait(ex, HEDDLE_FOREVER, &err));
      assert_true(shows(ex, 2));
    }
    heddle_executor_release(ex);
    heddle_model_release(m);
    heddle_params_release(params);
    tear_down(&t);
  }
}

/* ---- at the same time */

/* The first command of the first run never ends; the second run overtakes it. Its result is told after the first's. */
static void a_run_passes_one_that_hangs(void **state) {
  (void)state;
  ride t;
  set_up(&t, "sim.hang=1;log=off", mixed, 3, 2);
  start_with(&t, 0);
  FAILS(heddle_executor_wait(t.ex, 300 * MS, &err), HEDDLE_ETIMEOUT);
  SAYS("still pending");
  start_with(&t, 1);
  while (stat_runs(t.ex) == 0) nap(1000); /* the case's time limit is the end of patience */
  assert_int_equal(heddle_executor_poll(t.ex), HEDDLE_EBUSY);
  FAILS(heddle_executor_wait(t.ex, MS, &err), HEDDLE_ETIMEOUT);
  OK(heddle_executor_cancel(t.ex, &err));
  FAILS(heddle_executor_wait(t.ex, HEDDLE_FOREVER, &err), HEDDLE_ECANCELED);
  SAYS("did not end within 2 s");
  OK(heddle_executor_wait(t.ex, HEDDLE_FOREVER, &err)); /* this one had ended well */
  FAILS(heddle_executor_start(t.ex, &err), HEDDLE_ETIMEOUT);
  SAYS("cannot be used any more");
  FAILS(heddle_executor_poll(t.ex), HEDDLE_ETIMEOUT);
  FAILS(heddle_executor_cancel(t.ex, &err), HEDDLE_ETIMEOUT);
  let_go(&t); /* what the hung stream may touch is kept */
}

static void cancelling_ends_all(void **state) {
  (void)state;
  ride t;
  set_up(&t, "sim.delay_us=2000", mixed, 3, 3);
  for (int round = 0; round < 8; round++) {
    for (int i = 0; i < 3; i++) start_with(&t, i);
    nap(round * 700);
    OK(heddle_executor_cancel(t.ex, &err));
    for (int i = 0; i < 3; i++) {
      heddle_status s = heddle_executor_wait(t.ex, HEDDLE_FOREVER, &err);
      if (s == HEDDLE_OK) assert_true(shows(t.ex, i));
      else assert_int_equal(s, HEDDLE_ECANCELED);
    }
    assert_int_equal(heddle_executor_poll(t.ex), HEDDLE_OK);
  }
  start_with(&t, 2);
  end_with(&t, 2);
  tear_down(&t);
}

static void released_while_runs_are_pending(void **state) {
  (void)state;
  for (int round = 0; round < 6; round++) {
    ride t;
    set_up(&t, "sim.delay_us=1500", mixed, 3, 3);
    for (int i = 0; i <= round % 3; i++) start_with(&t, i);
    nap(round * 400);
    tear_down(&t);
  }
}

/* Who waits is told of the run that failed, and of no other. */
static void failures_reach_their_run(void **state) {
  (void)state;
  static const char *const kinds[] = {"op.run", "copy.h2d", "copy.d2h", "fence.signal"};
  for (int kind = 0; kind < 4; kind++) {
    int failures = 0;
    for (int device = 0; device < 3; device++)
      for (int n = 1; n < 60; n++) {
        char settings[160];
        ride t;
        snprintf(settings, sizeof settings, "layers=check,fault;log=off;sim.capture=0;fault.fail=%s:%d@%s", kinds[kind],
                 n, mixed[device]);
        set_up(&t, settings, mixed, 3, 2);
        int failed = 0, started = 0;
        for (int i = 0; i < 5; i++) {
          while (started < 5 && started - i < 2) {
            give(&t, started % 4);
            heddle_status begun = heddle_executor_start(t.ex, &err); /* nothing of a run fails in its start */
            assert_int_equal(begun, HEDDLE_OK);
            started++;
          }
          heddle_status s = heddle_executor_wait(t.ex, HEDDLE_FOREVER, &err);
          if (s == HEDDLE_OK) {
            assert_true(shows(t.ex, i % 4));
          } else {
            failed++;
            assert_non_null(strstr(err.text, mixed[device]));
            heddle_tensor *y = NULL;
            FAILS(heddle_executor_view_output(t.ex, 0, &y, &err), HEDDLE_EINVAL);
          }
        }
        tear_down(&t);
        if (failed == 0) break; /* there are fewer calls than n */
        assert_int_equal(failed, 1);
        failures++;
      }
    if (failures < 10) fail_msg("%s failed %d times", kinds[kind], failures);
  }
}

static void a_lost_device_fails_all_that_use_it(void **state) {
  (void)state;
  ride t;
  set_up(&t, "log=off;sim.delay_us=500;sim.fail=run:2@1:async:fault", mixed, 3, 3);
  int started = 0, failed = 0;
  for (heddle_status s = HEDDLE_OK; started < 3 && s == HEDDLE_OK; started += s == HEDDLE_OK) {
    give(&t, started);
    s = heddle_executor_start(t.ex, &err);
    if (s != HEDDLE_OK) assert_int_equal(s, HEDDLE_EDEVICE); /* it is lost by now */
  }
  assert_true(started >= 1);
  for (int i = 0; i < started; i++) {
    heddle_status s = heddle_executor_wait(t.ex, HEDDLE_FOREVER, &err);
    if (s == HEDDLE_OK) {
      assert_true(shows(t.ex, i));
      continue;
    }
    assert_int_equal(s, HEDDLE_EDEVICE);
    SAYS("sim:1");
    failed++;
  }
  assert_true(failed >= 1);
  FAILS(heddle_executor_start(t.ex, &err), HEDDLE_EDEVICE);
  tear_down(&t);
}

static void memory_may_be_out(void **state) {
  (void)state;
  size_t before = heddle__alloc_live();
  for (uint64_t n = 1;; n++) {
    ride t;
    set_up(&t, "log=off", mixed, 3, 1);
    heddle_model_options o = {.struct_size = sizeof o, .devices = "cpu,sim:0,sim:1", .in_flight = 2};
    heddle_model *m = NULL;
    heddle_executor *ex = NULL;
    OK(heddle_model_create(t.ctx, t.graph, NULL, &o, &m, &err));
    heddle__alloc_fail_at(n);
    heddle_status s = heddle_executor_create(m, &ex, &err);
    if (s == HEDDLE_OK) s = heddle_executor_set_input(ex, 0, t.x[1], &err);
    if (s == HEDDLE_OK) s = heddle_executor_set_input(ex, 1, t.w, &err);
    for (int i = 0; i < 2 && s == HEDDLE_OK; i++) s = heddle_executor_start(ex, &err);
    for (int i = 0; i < 2 && s == HEDDLE_OK; i++) s = heddle_executor_wait(ex, HEDDLE_FOREVER, &err);
    heddle__alloc_fail_at(0);
    if (s != HEDDLE_OK) assert_int_equal(s, HEDDLE_ENOMEM);
    else assert_true(shows(ex, 1));
    heddle_executor_release(ex);
    heddle_model_release(m);
    tear_down(&t);
    assert_int_equal(heddle__alloc_live(), before);
    if (s == HEDDLE_OK && n > 20) break;
  }
}

/* ---- threads */

/* What a thread that starts and one that waits share: runs may be started while fewer than so many are unread. */
typedef struct belt {
  ride t;
  pthread_mutex_t lock;
  pthread_cond_t moved;
  int started, read, wrong, n;
} belt;

enum { RUNS = 120 };

static void *feed(void *arg) {
  belt *b = arg;
  heddle_error e;
  for (int i = 0; i < RUNS; i++) {
    pthread_mutex_lock(&b->lock);
    while (b->started - b->read >= b->n) pthread_cond_wait(&b->moved, &b->lock);
    heddle_status s = heddle_executor_set_input(b->t.ex, 0, b->t.x[i % 4], &e);
    if (s == HEDDLE_OK) s = heddle_executor_start(b->t.ex, &e);
    b->wrong += s != HEDDLE_OK;
    b->started++;
    pthread_cond_broadcast(&b->moved);
    pthread_mutex_unlock(&b->lock);
  }
  return NULL;
}

static void one_starts_another_waits(void **state) {
  (void)state;
  for (int on_sim = 0; on_sim < 2; on_sim++) {
    belt b = {.n = 3, .lock = PTHREAD_MUTEX_INITIALIZER, .moved = PTHREAD_COND_INITIALIZER};
    set_up(&b.t, "sim.delay_us=20", on_sim ? mixed : only_cpu, on_sim ? 3 : 1, 3);
    pthread_t feeder;
    assert_int_equal(pthread_create(&feeder, NULL, feed, &b), 0);
    for (int i = 0; i < RUNS; i++) {
      heddle_error e;
      pthread_mutex_lock(&b.lock);
      while (b.started == i) pthread_cond_wait(&b.moved, &b.lock);
      pthread_mutex_unlock(&b.lock);
      heddle_status s = heddle_executor_wait(b.t.ex, HEDDLE_FOREVER, &e); /* while the other may start */
      pthread_mutex_lock(&b.lock);
      b.wrong += s != HEDDLE_OK || !shows(b.t.ex, i % 4);
      b.read++;
      pthread_cond_broadcast(&b.moved);
      pthread_mutex_unlock(&b.lock);
    }
    pthread_join(feeder, NULL);
    assert_int_equal(b.wrong, 0);
    assert_int_equal(stat_runs(b.t.ex), RUNS);
    tear_down(&b.t);
  }
}

typedef struct onlooker {
  pthread_t thread;
  heddle_executor *ex;
  int kind; /* 0 waits, 1 polls, 2 cancels now and then */
  atomic_bool *stop;
} onlooker;

static void *look_on(void *arg) {
  onlooker *o = arg;
  heddle_error e;
  for (int i = 0; !atomic_load(o->stop); i++) {
    if (o->kind == 0) heddle_executor_wait(o->ex, i % 3 == 0 ? MS / 10 : HEDDLE_FOREVER, &e);
    if (o->kind == 1) heddle_executor_poll(o->ex);
    if (o->kind == 2 && i % 8 == 0) heddle_executor_cancel(o->ex, &e);
    nap(o->kind == 0 ? 0 : 150);
  }
  return NULL;
}

/* Others may wait, poll and cancel whenever they like; who starts finds each run ended or pending, and at the end the
 * executor as good as new. */
static void others_wait_poll_and_cancel(void **state) {
  (void)state;
  ride t;
  atomic_bool stop = false;
  onlooker others[4];
  set_up(&t, "sim.delay_us=50", mixed, 3, 3);
  give(&t, 1);
  for (int i = 0; i < 4; i++) {
    others[i] = (onlooker){.ex = t.ex, .kind = i < 2 ? 0 : i - 1, .stop = &stop};
    assert_int_equal(pthread_create(&others[i].thread, NULL, look_on, &others[i]), 0);
  }
  int started = 0;
  for (int i = 0; i < 400; i++) {
    heddle_status s = heddle_executor_start(t.ex, &err);
    started += s == HEDDLE_OK;
    if (s == HEDDLE_OK) continue;
    assert_int_equal(s, HEDDLE_EBUSY);
    s = heddle_executor_wait(t.ex, HEDDLE_FOREVER, &err);
    if (s != HEDDLE_OK) assert_int_equal(s, HEDDLE_ECANCELED);
  }
  atomic_store(&stop, true);
  for (int i = 0; i < 4; i++) pthread_join(others[i].thread, NULL);
  assert_true(started >= 200);
  for (int i = 0; i < 3; i++) heddle_executor_wait(t.ex, HEDDLE_FOREVER, &err);
  start_with(&t, 3);
  end_with(&t, 3);
  tear_down(&t);
}

CASES(CASE_TWICE(runs_are_told_in_order), CASE_TWICE(values_stay_from_run_to_run),
      CASE_TWICE(outputs_are_those_waited_for), CASE(memory_of_the_caller_takes_turns),
      CASE_TWICE(shapes_differ_in_flight), CASE(facts_and_other_runs), CASE(options_are_checked),
      CASE(memory_is_counted), CASE(a_run_passes_one_that_hangs), CASE(cancelling_ends_all),
      CASE(released_while_runs_are_pending), CASE(failures_reach_their_run), CASE(a_lost_device_fails_all_that_use_it),
      CASE(memory_may_be_out), CASE(one_starts_another_waits), CASE(others_wait_poll_and_cancel))
