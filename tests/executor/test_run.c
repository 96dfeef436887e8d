/* tests/executor/test_run.c: who drives a run and how it ends: waiting, timeouts, cancelling, failures of devices, many
 * threads, release while a run is pending, and memory that is out.
 * labels: threads
 */
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "core/context.h"
#include "executor/rig.h"

enum { LENGTH = 40, COUNT = 64 };

/* A chain of Adds of x that changes between devices; y = (LENGTH + 1) x. */
typedef struct ride {
  heddle_context *ctx;
  heddle_graph *graph;
  heddle_model *model;
  heddle_executor *ex;
  heddle_tensor *x;
} ride;

static const int64_t shape[] = {COUNT};

static heddle_graph *chain(int length, const char *const *devices, int n_devices) {
  static sketch s;
  memset(&s, 0, sizeof s);
  int x = put_input(&s, "x", "[64]", "\"float32\""), y = x;
  for (int i = 0; i < length; i++) {
    char name[16];
    snprintf(name, sizeof name, "a%d", i);
    y = NODE(&s, "Add", name, devices[i % n_devices], y, x);
  }
  put_head(&s, y);
  return graph_of(&s);
}

static const char *const mixed[] = {"cpu", "sim:0", "sim:0", "sim:1", "cpu", "cpu", "sim:1"};
static const char *const only_sim[] = {"sim:0"};
static const char *const only_cpu[] = {"cpu"};

static void set_up(ride *t, const char *settings, const char *const *devices, int n) {
  memset(t, 0, sizeof *t);
  heddle_model_options o = {.struct_size = sizeof o, .devices = on("cpu,sim:0,sim:1")};
  /* A call that fails in a recording fails no run; capture=0 makes sim do so. */
  if (!is_sim() && strstr(settings, "fault.fail=") != NULL) o.flags = HEDDLE_MODEL_NO_CAPTURE;
  t->ctx = context(settings);
  t->graph = chain(LENGTH, devices, n);
  t->x = floats(shape, 1, 1, 1);
  OK(heddle_model_create(t->ctx, t->graph, NULL, &o, &t->model, &err));
  OK(heddle_executor_create(t->model, &t->ex, &err));
  OK(heddle_executor_set_input(t->ex, 0, t->x, &err));
}

static void tear_down(ride *t) {
  heddle_executor_release(t->ex);
  heddle_model_release(t->model);
  heddle_graph_release(t->graph);
  heddle_tensor_release(t->x);
  heddle_context_release(t->ctx);
}

static int is_right(heddle_executor *ex) {
  heddle_tensor *y = NULL;
  heddle_error e;
  if (heddle_executor_view_output(ex, 0, &y, &e) != HEDDLE_OK) return 0;
  int good = 1;
  for (int i = 0; i < COUNT; i++) good = good && data_of(y)[i] == (float)(LENGTH + 1) * (float)(1 + i);
  heddle_tensor_release(y);
  return good;
}

static void nap(long us) {
  nanosleep(&(struct timespec){us / 1000000, us % 1000000 * 1000}, NULL);
}

/* ---- asynchronous runs */

static void starts_and_waits(void **state) {
  (void)state;
  ride t;
  set_up(&t, "sim.delay_us=300", mixed, 7);
  FAILS(heddle_executor_poll(t.ex), HEDDLE_OK);
  OK(heddle_executor_wait(t.ex, 0, &err)); /* nothing is pending */
  for (int i = 0; i < 5; i++) {
    OK(heddle_executor_start(t.ex, &err));
    FAILS(heddle_executor_start(t.ex, &err), HEDDLE_EBUSY);
    FAILS(heddle_executor_run(t.ex, HEDDLE_FOREVER, &err), HEDDLE_EBUSY);
    FAILS(heddle_executor_set_input(t.ex, 0, t.x, &err), HEDDLE_EBUSY);
    FAILS(heddle_executor_wait(t.ex, 0, &err), HEDDLE_ETIMEOUT);
    if (i % 2 == 0) OK(heddle_executor_wait(t.ex, HEDDLE_FOREVER, &err));
    else
      while (heddle_executor_poll(t.ex) == HEDDLE_EBUSY) nap(100); /* the executor's thread drives it */
    assert_true(is_right(t.ex));
  }
  OK(heddle_executor_run(t.ex, HEDDLE_FOREVER, &err));
  assert_true(is_right(t.ex));
  tear_down(&t);
  assert_int_equal(heddle__alloc_live(), 0);
}

typedef struct helper {
  pthread_t thread;
  heddle_executor *ex;
  heddle_model *model;
  uint64_t timeout;
  heddle_status status;
  heddle_error err;
  int rounds, wrong;
} helper;

static void *wait_there(void *arg) {
  helper *h = arg;
  h->status = heddle_executor_wait(h->ex, h->timeout, &h->err);
  return NULL;
}

static void many_wait_for_one_run(void **state) {
  (void)state;
  ride t;
  set_up(&t, "sim.delay_us=500", mixed, 7);
  for (int round = 0; round < 10; round++) {
    helper h[4];
    memset(h, 0, sizeof h);
    OK(heddle_executor_start(t.ex, &err));
    for (int i = 0; i < 4; i++) {
      h[i].ex = t.ex;
      h[i].timeout = i == 3 ? MS : HEDDLE_FOREVER;
      assert_int_equal(pthread_create(&h[i].thread, NULL, wait_there, &h[i]), 0);
    }
    OK(heddle_executor_wait(t.ex, HEDDLE_FOREVER, &err));
    for (int i = 0; i < 4; i++) pthread_join(h[i].thread, NULL);
    for (int i = 0; i < 3; i++) assert_int_equal(h[i].status, HEDDLE_OK);
    assert_true(h[3].status == HEDDLE_OK || h[3].status == HEDDLE_ETIMEOUT);
    assert_true(is_right(t.ex));
  }
  tear_down(&t);
  assert_int_equal(heddle__alloc_live(), 0);
}

static void cancels(void **state) {
  (void)state;
  ride t;
  set_up(&t, "sim.delay_us=2000", mixed, 7);
  OK(heddle_executor_cancel(t.ex, &err)); /* nothing is pending */
  for (int i = 0; i < 6; i++) {
    helper h = {.ex = t.ex, .timeout = HEDDLE_FOREVER};
    OK(heddle_executor_start(t.ex, &err));
    if (i % 3 == 1) assert_int_equal(pthread_create(&h.thread, NULL, wait_there, &h), 0);
    nap(1000);
    OK(heddle_executor_cancel(t.ex, &err));
    FAILS(heddle_executor_wait(t.ex, HEDDLE_FOREVER, &err), HEDDLE_ECANCELED);
    if (i % 3 == 1) {
      pthread_join(h.thread, NULL);
      assert_int_equal(h.status, HEDDLE_ECANCELED);
    }
    FAILS(heddle_executor_poll(t.ex), HEDDLE_OK);
    heddle_tensor *none = NULL;
    FAILS(heddle_executor_view_output(t.ex, 0, &none, &err), HEDDLE_EINVAL);
    if (i % 2 == 0) continue;
    OK(heddle_executor_run(t.ex, HEDDLE_FOREVER, &err));
    assert_true(is_right(t.ex));
  }
  tear_down(&t);
  assert_int_equal(heddle__alloc_live(), 0);
}

static void a_timeout_leaves_the_run_pending(void **state) {
  (void)state;
  ride t;
  set_up(&t, "sim.delay_us=3000", mixed, 7);
  uint64_t start = heddle__now_ns();
  FAILS(heddle_executor_run(t.ex, 2 * MS, &err), HEDDLE_ETIMEOUT);
  assert_true(heddle__now_ns() - start < 500 * MS);
  FAILS(heddle_executor_poll(t.ex), HEDDLE_EBUSY);
  OK(heddle_executor_wait(t.ex, HEDDLE_FOREVER, &err));
  assert_true(is_right(t.ex));
  FAILS(heddle_executor_run(t.ex, 0, &err), HEDDLE_ETIMEOUT);
  OK(heddle_executor_cancel(t.ex, &err));
  FAILS(heddle_executor_wait(t.ex, HEDDLE_FOREVER, &err), HEDDLE_ECANCELED);
  OK(heddle_executor_run(t.ex, UINT64_C(60000) * MS, &err));
  assert_true(is_right(t.ex));
  tear_down(&t);
  assert_int_equal(heddle__alloc_live(), 0);
}

static void a_release_ends_a_pending_run(void **state) {
  (void)state;
  for (int i = 0; i < 8; i++) {
    ride t;
    set_up(&t, "sim.delay_us=1000", i % 2 == 0 ? mixed : only_sim, i % 2 == 0 ? 7 : 1);
    OK(heddle_executor_start(t.ex, &err));
    nap(i * 500L);
    tear_down(&t);
    assert_int_equal(heddle__alloc_live(), 0);
  }
}

/* ---- devices that fail */

static void a_completion_that_never_comes(void **state) {
  (void)state;
  ride t;
  set_up(&t, "sim.hang=9", mixed, 7);
  FAILS(heddle_executor_run(t.ex, 50 * MS, &err), HEDDLE_ETIMEOUT);
  SAYS("has not finished");
  SAYS(on("sim:"));
  FAILS(heddle_executor_wait(t.ex, 10 * MS, &err), HEDDLE_ETIMEOUT);
  uint64_t start = heddle__now_ns();
  OK(heddle_executor_cancel(t.ex, &err));
  heddle_status s = heddle_executor_wait(t.ex, HEDDLE_FOREVER, &err);
  assert_int_equal(s, HEDDLE_ECANCELED);
  SAYS(on("sim:"));
  assert_true(heddle__now_ns() - start < 10000 * MS);
  /* It is dead, and reports it; others are not. */
  FAILS(heddle_executor_run(t.ex, HEDDLE_FOREVER, &err), HEDDLE_ETIMEOUT);
  SAYS("cannot be used any more");
  FAILS(heddle_executor_set_input(t.ex, 0, t.x, &err), HEDDLE_ETIMEOUT);
  heddle_executor_stats stats = {.struct_size = sizeof stats};
  OK(heddle_executor_get_stats(t.ex, &stats, &err));
  assert_true(stats.orphan_bytes > 0);
  heddle_model_options o = {.struct_size = sizeof o, .devices = "cpu", .flags = HEDDLE_MODEL_IGNORE_ANNOTATIONS};
  heddle_model *other = NULL;
  heddle_executor *ex = NULL;
  OK(heddle_model_create(t.ctx, t.graph, NULL, &o, &other, &err));
  OK(heddle_executor_create(other, &ex, &err));
  OK(heddle_executor_set_input(ex, 0, t.x, &err));
  OK(heddle_executor_run(ex, HEDDLE_FOREVER, &err));
  assert_true(is_right(ex));
  heddle_executor_release(ex);
  heddle_model_release(other);
  tear_down(&t); /* what the hung stream may touch is kept by the plugin and the context */
}

static void a_release_of_a_hung_run_ends(void **state) {
  (void)state;
  ride t;
  set_up(&t, "sim.hang=5", only_sim, 1);
  OK(heddle_executor_start(t.ex, &err));
  nap(2000);
  uint64_t start = heddle__now_ns();
  heddle_executor_release(t.ex);
  t.ex = NULL;
  assert_true(heddle__now_ns() - start < 4000 * MS);
  tear_down(&t);
}

/* The members of err: a device of the accelerator's, and the node where its text names one. */
static void names_both(void) {
  heddle_failure f = {.struct_size = sizeof f};
  char quoted[140];
  OK(heddle_error_failure(&err, &f));
  if (strncmp(f.device, on("sim:"), strlen(on("sim:"))) != 0) fail_msg("device '%s' of: %s", f.device, err.text);
  snprintf(quoted, sizeof quoted, "node '%s'", f.node_name);
  if (strstr(err.text, "node '") != NULL) SAYS(quoted);
  else assert_string_equal(f.node_name, "");
}

static void is_of(const char *device) {
  heddle_failure f = {.struct_size = sizeof f};
  OK(heddle_error_failure(&err, &f));
  assert_string_equal(f.device, device);
}

/* The n-th command of a kind fails on the device, long after the call that put it there. */
static void failures_name_node_and_device(void **state) {
  (void)state;
  static const char *const rules[] = {"run:3:async", "run:3",    "run:17:async",  "d2h:1:async",
                                      "h2d:1",       "replay:2", "signal:2",      "submit:2",
                                      "wait:1",      "record:1", "run:9@1:async", "peer:1:async"};
  int seen = 0;
  for (size_t k = 0; k < sizeof rules / sizeof rules[0]; k++) {
    for (int capture = 0; capture < 2; capture++) {
      char settings[128];
      snprintf(settings, sizeof settings, "sim.capture=%d;sim.delay_us=20;sim.fail=%s", capture, rules[k]);
      ride t = {0};
      heddle_model_options o = {.struct_size = sizeof o, .devices = on("cpu,sim:0,sim:1")};
      t.ctx = context(settings);
      t.graph = chain(LENGTH, mixed, 7);
      t.x = floats(shape, 1, 1, 1);
      OK(heddle_model_create(t.ctx, t.graph, NULL, &o, &t.model, &err));
      heddle_status s = heddle_executor_create(t.model, &t.ex, &err); /* a recording may meet the rule */
      int failed = s != HEDDLE_OK;
      if (failed) OK(heddle_executor_create(t.model, &t.ex, &err));
      OK(heddle_executor_set_input(t.ex, 0, t.x, &err));
      for (int run = 0; run < 4; run++) {
        s = heddle_executor_run(t.ex, UINT64_C(20000) * MS, &err);
        if (s == HEDDLE_OK) {
          assert_true(is_right(t.ex));
          continue;
        }
        failed++;
        assert_int_equal(s, HEDDLE_EFAILED);
        SAYS(on("sim:"));
        names_both();
      }
      /* A command that fails where it was recorded fails at each replay. */
      if (capture == 0 || strstr(rules[k], "async") == NULL) {
        if (failed > 1) fail_msg("%s failed %d times", rules[k], failed);
        OK(heddle_executor_run(t.ex, HEDDLE_FOREVER, &err));
        assert_true(is_right(t.ex));
      }
      seen += failed;
      tear_down(&t);
      assert_int_equal(heddle__alloc_live(), 0);
    }
  }
  assert_true(seen >= 10);
}

/* The n-th call of a kind fails, by the core's fault layer. */
static void failed_calls_name_node_and_device(void **state) {
  (void)state;
  static const char *const rules[] = {"op.run:3@sim:0",   "op.run:17@sim:0", "op.run:9@sim:1",
                                      "copy.h2d:1@sim:0", "copy.d2h:1",      "fence.signal:2@sim:0"};
  static const char *const modes[] = {"sim.capture=0",    "sim.capture=0;sim.peer=off",
                                      "opencl.unified=0", "opencl.unified=0;opencl.peer=0",
                                      "vulkan.unified=0", "vulkan.unified=0;vulkan.timeline=0",
                                      "cuda.capture=0",   "cuda.peer=0",
                                      "rocm.capture=0",   "rocm.peer=0"};
  enum { MODES = sizeof modes / sizeof modes[0] };
  int seen = 0;
  for (size_t k = 0; k < sizeof rules / sizeof rules[0] * MODES; k++) {
    if (!settings_fit(modes[k % MODES])) continue;
    char settings[160];
    snprintf(settings, sizeof settings, "%s;layers=check,fault;fault.fail=%s", modes[k % MODES], on(rules[k / MODES]));
    ride t = {0};
    set_up(&t, settings, mixed, 7);
    int failed = 0;
    for (int run = 0; run < 4; run++) {
      heddle_status s = heddle_executor_run(t.ex, UINT64_C(20000) * MS, &err);
      if (s == HEDDLE_OK) {
        assert_true(is_right(t.ex));
        continue;
      }
      failed++;
      assert_int_equal(s, HEDDLE_EFAILED);
      SAYS(on("sim:"));
      if (strstr(rules[k / MODES], "op.run") != NULL) SAYS("'a"); /* of the node */
      names_both();
    }
    if (failed > 1) fail_msg("%s failed %d times", settings, failed);
    OK(heddle_executor_run(t.ex, HEDDLE_FOREVER, &err));
    assert_true(is_right(t.ex));
    seen += failed;
    tear_down(&t);
    assert_int_equal(heddle__alloc_live(), 0);
  }
  /* vulkan records every row, and one that cannot be recorded is run step by step: then only the fence's failure shows. */
  assert_true(seen >= (strcmp(accelerator, "vulkan") == 0 ? 2 : 8));
}

static void a_lost_device_stays_lost(void **state) {
  (void)state;
  ride t;
  set_up(&t, "sim.fail=run:9@1:async:fault;sim.capture=0", mixed, 7);
  FAILS(heddle_executor_run(t.ex, HEDDLE_FOREVER, &err), HEDDLE_EDEVICE);
  SAYS(on("sim:1"));
  is_of(on("sim:1"));
  FAILS(heddle_executor_run(t.ex, HEDDLE_FOREVER, &err), HEDDLE_EDEVICE);
  SAYS(on("sim:1"));
  is_of(on("sim:1"));
  heddle_executor *ex = NULL;
  FAILS(heddle_executor_create(t.model, &ex, &err), HEDDLE_EDEVICE);
  /* The other devices go on. */
  heddle_model_options o = {.struct_size = sizeof o, .devices = on("sim:0"), .flags = HEDDLE_MODEL_IGNORE_ANNOTATIONS};
  heddle_model *other = NULL;
  OK(heddle_model_create(t.ctx, t.graph, NULL, &o, &other, &err));
  OK(heddle_executor_create(other, &ex, &err));
  OK(heddle_executor_set_input(ex, 0, t.x, &err));
  OK(heddle_executor_run(ex, HEDDLE_FOREVER, &err));
  assert_true(is_right(ex));
  heddle_executor_release(ex);
  heddle_model_release(other);
  tear_down(&t);
  assert_int_equal(heddle__alloc_live(), 0);
}

/* ---- threads */

static void *run_often(void *arg) {
  helper *h = arg;
  int64_t n = COUNT;
  heddle_executor *ex = NULL;
  heddle_tensor *x = NULL;
  h->status = heddle_executor_create(h->model, &ex, &h->err);
  if (h->status == HEDDLE_OK) h->status = heddle_tensor_create(NULL, HEDDLE_FLOAT32, &n, 1, &x, &h->err);
  for (int i = 0; h->status == HEDDLE_OK && i < COUNT; i++) ((float *)heddle_tensor_data(x))[i] = (float)(1 + i);
  for (int r = 0; h->status == HEDDLE_OK && r < h->rounds; r++) {
    h->status = heddle_executor_set_input(ex, 0, x, &h->err);
    if (h->status != HEDDLE_OK) break;
    if (r % 2 == 0) {
      h->status = heddle_executor_run(ex, HEDDLE_FOREVER, &h->err);
    } else {
      h->status = heddle_executor_start(ex, &h->err);
      if (h->status == HEDDLE_OK) h->status = heddle_executor_wait(ex, HEDDLE_FOREVER, &h->err);
    }
    h->wrong += h->status == HEDDLE_OK && !is_right(ex);
  }
  heddle_tensor_release(x);
  heddle_executor_release(ex);
  return NULL;
}

static void executors_of_one_model_in_four_threads(void **state) {
  (void)state;
  static const char *const settings[] = {"sim.delay_us=20",  "sim.coherent=0;sim.capture=0",
                                         "sim.unified=1",    "opencl.unified=0",
                                         "vulkan.unified=0", "cuda.pools=0",
                                         "rocm.pools=0"};
  for (size_t k = 0; k < sizeof settings / sizeof settings[0]; k++) {
    if (!settings_fit(settings[k])) continue;
    ride t;
    helper h[4];
    set_up(&t, settings[k], mixed, 7);
    memset(h, 0, sizeof h);
    for (int i = 0; i < 4; i++) {
      h[i].model = t.model;
      h[i].rounds = 12;
      assert_int_equal(pthread_create(&h[i].thread, NULL, run_often, &h[i]), 0);
    }
    for (int i = 0; i < 4; i++) {
      pthread_join(h[i].thread, NULL);
      if (h[i].status != HEDDLE_OK) fail_msg("thread %d: %s", i, h[i].err.text);
      assert_int_equal(h[i].wrong, 0);
    }
    tear_down(&t);
    assert_int_equal(heddle__alloc_live(), 0);
  }
}

/* One thread runs, others wait, poll and cancel as they like. */
static atomic_int stop;

static void *pester(void *arg) {
  helper *h = arg;
  heddle_error ignored;
  for (unsigned i = 0; atomic_load(&stop) == 0; i++) {
    heddle_executor_poll(h->ex);
    heddle_executor_wait(h->ex, i % 3 * 200000, &ignored);
    if (i % 16 == 7) heddle_executor_cancel(h->ex, &ignored);
    nap(100);
  }
  return NULL;
}

static void waits_and_cancels_from_anywhere(void **state) {
  (void)state;
  ride t;
  helper h[2];
  memset(h, 0, sizeof h);
  set_up(&t, "sim.delay_us=10", mixed, 7);
  for (int i = 0; i < 2; i++) {
    h[i].ex = t.ex;
    assert_int_equal(pthread_create(&h[i].thread, NULL, pester, &h[i]), 0);
  }
  for (int i = 0; i < 60; i++) {
    heddle_status s = i % 2 == 0 ? heddle_executor_run(t.ex, HEDDLE_FOREVER, &err) : heddle_executor_start(t.ex, &err);
    if (s == HEDDLE_OK && i % 2 != 0) s = heddle_executor_wait(t.ex, HEDDLE_FOREVER, &err);
    if (s != HEDDLE_OK) assert_int_equal(s, HEDDLE_ECANCELED);
    else assert_true(is_right(t.ex));
  }
  atomic_store(&stop, 1);
  for (int i = 0; i < 2; i++) pthread_join(h[i].thread, NULL);
  OK(heddle_executor_run(t.ex, HEDDLE_FOREVER, &err));
  assert_true(is_right(t.ex));
  tear_down(&t);
  assert_int_equal(heddle__alloc_live(), 0);
}

/* ---- capture, memory */

static void segments_are_replayed(void **state) {
  (void)state;
  for (int capture = 0; capture < 2; capture++) {
    ride t;
    set_up(&t, capture ? "sim.capture=1" : "sim.capture=0", only_sim, 1);
    for (int i = 0; i < 3; i++) OK(heddle_executor_run(t.ex, HEDDLE_FOREVER, &err));
    assert_true(is_right(t.ex));
    heddle_executor_stats stats = {.struct_size = sizeof stats};
    OK(heddle_executor_get_stats(t.ex, &stats, &err));
    if (capture) assert_true(stats.replays >= 3);
    else assert_int_equal(stats.replays, 0);
    tear_down(&t);
    assert_int_equal(heddle__alloc_live(), 0);
  }
}

/* Every allocation fails once: a clean error, nothing leaked, and the same work succeeds afterwards. */
static void memory_runs_out_anywhere(void **state) {
  (void)state;
  heddle_graph *g = chain(5, mixed, 7);
  heddle_tensor *x = floats(shape, 1, 1, 1);
  heddle_model_options o = {.struct_size = sizeof o, .devices = on("cpu,sim:0,sim:1")};
  size_t live = heddle__alloc_live();
  int done = 0;
  for (uint64_t n = 1; !done && n < 3000; n++) {
    heddle_context *ctx = context("threads=1");
    heddle_model *m = NULL;
    heddle_executor *ex = NULL;
    heddle_tensor *y = NULL;
    const heddle_profile_entry *entries;
    size_t count;
    heddle__alloc_fail_at(n);
    heddle_status s = heddle_model_create(ctx, g, NULL, &o, &m, &err);
    if (s == HEDDLE_OK) s = heddle_executor_create(m, &ex, &err);
    if (s == HEDDLE_OK) s = heddle_executor_set_input(ex, 0, x, &err);
    if (s == HEDDLE_OK) s = heddle_executor_start(ex, &err);
    if (s == HEDDLE_OK) s = heddle_executor_wait(ex, HEDDLE_FOREVER, &err);
    if (s == HEDDLE_OK) s = heddle_executor_bind_input(ex, 0, x, &err);
    if (s == HEDDLE_OK) s = heddle_executor_run(ex, HEDDLE_FOREVER, &err);
    if (s == HEDDLE_OK) s = heddle_executor_profile(ex, &entries, &count, &err);
    if (s == HEDDLE_OK) s = heddle_executor_run_to(ex, "a2", 0, &y, &err);
    done = s == HEDDLE_OK;
    heddle__alloc_fail_at(0);
    if (!done && s != HEDDLE_ENOMEM) fail_msg("allocation %d: %s: %s", (int)n, heddle_status_name(s), err.text);
    if (ex != NULL) {
      OK(heddle_executor_set_input(ex, 0, x, &err));
      OK(heddle_executor_run(ex, HEDDLE_FOREVER, &err));
    }
    heddle_tensor_release(y);
    heddle_executor_release(ex);
    heddle_model_release(m);
    heddle_context_release(ctx);
    if (heddle__alloc_live() != live)
      fail_msg("allocation %d of a failed job leaks %d blocks", (int)n, (int)(heddle__alloc_live() - live));
  }
  assert_true(done);
  heddle_tensor_release(x);
  heddle_graph_release(g);
}

static void the_host_alone_can_be_stopped(void **state) {
  (void)state;
  ride t;
  set_up(&t, "threads=1", only_cpu, 1);
  for (int i = 0; i < 200; i++) {
    heddle_status s = heddle_executor_run(t.ex, 1, &err); /* a nanosecond */
    if (s == HEDDLE_ETIMEOUT) s = heddle_executor_wait(t.ex, HEDDLE_FOREVER, &err);
    assert_int_equal(s, HEDDLE_OK);
    assert_true(is_right(t.ex));
  }
  for (int i = 0; i < 50; i++) {
    OK(heddle_executor_start(t.ex, &err));
    OK(heddle_executor_cancel(t.ex, &err));
    heddle_status s = heddle_executor_wait(t.ex, HEDDLE_FOREVER, &err);
    assert_true(s == HEDDLE_OK || s == HEDDLE_ECANCELED);
  }
  tear_down(&t);
  assert_int_equal(heddle__alloc_live(), 0);
}

CASES(CASE_ALL(starts_and_waits), CASE_TWICE(many_wait_for_one_run), CASE_TWICE(cancels),
      CASE_TWICE(a_timeout_leaves_the_run_pending), CASE_TWICE(a_release_ends_a_pending_run),
      CASE(a_completion_that_never_comes), CASE(a_release_of_a_hung_run_ends), CASE(failures_name_node_and_device),
      CASE_ALL(failed_calls_name_node_and_device), CASE(a_lost_device_stays_lost),
      CASE_ALL(executors_of_one_model_in_four_threads), CASE_TWICE(waits_and_cancels_from_anywhere),
      CASE(segments_are_replayed), CASE_TWICE(memory_runs_out_anywhere), CASE(the_host_alone_can_be_stopped))
