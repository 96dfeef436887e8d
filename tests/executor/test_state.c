/* tests/executor/test_state.c: state values in C: runs that no thread waits for, forks that run at once, values that grow,
 * and tensors of a device between executors. tests of Python have decoders, files and bad input.
 */
#include "executor/rig.h"

#include <pthread.h>
#include <sched.h>

#include "executor/state.h"
#include "executor/states.h"
#include "heddle/state.h"

enum { N = 256, RUNS = 40 };

/* total = s + x, and s of the next run is total. */
static void sketch_sums(sketch *s, const char *device) {
  *s = (sketch){.n = 0};
  int x = put_input(s, "x", "[256]", "\"float32\""), sum = put_input(s, "s", "[256]", "\"float32\"");
  put_head(s, NODE(s, "Add", "total", device, sum, x));
}

static void make(rig *t, const char *settings, const sketch *s, const char *rules) {
  rig_make(t, settings, s,
           &(heddle_model_options){
               .struct_size = sizeof(heddle_model_options), .devices = "cpu,sim:0,sim:1", .state = rules});
}

static void set(heddle_executor *ex, float x) {
  const int64_t shape[] = {N};
  heddle_tensor *t = floats(shape, 1, x, 0);
  OK(heddle_executor_set_input_by_name(ex, "x", t, &err));
  heddle_tensor_release(t);
}

static float last_of(heddle_executor *ex) {
  heddle_tensor *t = NULL;
  OK(heddle_executor_read_state(ex, 0, &t, &err));
  uint64_t n = heddle_tensor_bytes(t) / 4;
  float last = n > 0 ? data_of(t)[n - 1] : 0;
  heddle_tensor_release(t);
  return last;
}

/* ---- runs that end by themselves */

static void a_run_that_is_not_waited_for(void **state) {
  (void)state;
  static const char *const modes[] = {"sim.delay_us=50", "sim.unified=1;sim.coherent=0;sim.delay_us=50", "threads=1"};
  for (size_t m = 0; m < sizeof modes / sizeof modes[0]; m++) {
    sketch s;
    rig t;
    sketch_sums(&s, m == 2 ? "cpu:0" : "sim:0");
    make(&t, modes[m], &s, "s:total");
    float want = 0;
    for (int run = 1; run <= RUNS; run++) {
      set(t.ex, (float)run);
      OK(heddle_executor_start(t.ex, &err));
      heddle_state_info info = {.struct_size = sizeof info};
      heddle_status while_pending = heddle_executor_state_info(t.ex, 0, &info, &err); /* unless it has ended already */
      if (while_pending != HEDDLE_OK) assert_int_equal(while_pending, HEDDLE_EBUSY);
      heddle_executor_stats stats = {.struct_size = sizeof stats};
      OK(heddle_executor_get_stats(t.ex, &stats, &err));
      while (heddle_executor_poll(t.ex) == HEDDLE_EBUSY) sched_yield();
      want += (float)run;
      float got = last_of(t.ex);
      if (got != want) fail_msg("%s: run %d: %g, not %g", modes[m], run, (double)got, (double)want);
    }
    rig_end(&t);
  }
}

static void a_run_that_is_cancelled(void **state) {
  (void)state;
  sketch s;
  rig t;
  sketch_sums(&s, "sim:0");
  make(&t, "sim.delay_us=2000", &s, "s:total");
  float want = 0;
  for (int run = 1; run <= 8; run++) {
    set(t.ex, 1);
    OK(heddle_executor_start(t.ex, &err));
    if (run % 2 == 0) OK(heddle_executor_cancel(t.ex, &err));
    heddle_status s_ = heddle_executor_wait(t.ex, HEDDLE_FOREVER, &err);
    if (s_ != HEDDLE_OK) assert_int_equal(s_, HEDDLE_ECANCELED);
    want += s_ == HEDDLE_OK ? 1 : 0;
    assert_true(last_of(t.ex) == want);
  }
  rig_end(&t);
}

/* ---- forks */

typedef struct branch {
  heddle_executor *ex;
  float step, got;
  heddle_status status;
} branch;

static void *go_on(void *user) {
  branch *b = user;
  const int64_t shape[] = {N};
  heddle_error mine;
  heddle_tensor *x = NULL, *out = NULL;
  b->status = heddle_tensor_create(NULL, HEDDLE_FLOAT32, shape, 1, &x, &mine);
  for (int i = 0; b->status == HEDDLE_OK && i < N; i++) ((float *)heddle_tensor_data(x))[i] = b->step;
  if (b->status == HEDDLE_OK) b->status = heddle_executor_set_input(b->ex, 0, x, &mine);
  for (int run = 0; b->status == HEDDLE_OK && run < RUNS; run++)
    b->status = heddle_executor_run(b->ex, HEDDLE_FOREVER, &mine);
  if (b->status == HEDDLE_OK) b->status = heddle_executor_read_state(b->ex, 0, &out, &mine);
  if (b->status == HEDDLE_OK) b->got = data_of(out)[N - 1];
  heddle_tensor_release(out);
  heddle_tensor_release(x);
  return NULL;
}

static void forks_run_at_once(void **state) {
  (void)state;
  enum { BRANCHES = 3 };
  for (int on_device = 0; on_device < 2; on_device++) {
    sketch s;
    rig t;
    branch all[BRANCHES];
    pthread_t threads[BRANCHES];
    sketch_sums(&s, on_device ? "sim:0" : "cpu:0");
    make(&t, "sim.delay_us=20", &s, "s:total");
    set(t.ex, 5);
    OK(heddle_executor_run(t.ex, HEDDLE_FOREVER, &err));
    for (int i = 0; i < BRANCHES; i++) {
      all[i] = (branch){.step = (float)(i + 1)};
      OK(heddle_executor_create(t.model, &all[i].ex, &err));
      OK(heddle_executor_fork_state(t.ex, all[i].ex, &err));
    }
    for (int i = 0; i < BRANCHES; i++) assert_int_equal(pthread_create(&threads[i], NULL, go_on, &all[i]), 0);
    for (int i = 0; i < BRANCHES; i++) {
      pthread_join(threads[i], NULL);
      assert_int_equal(all[i].status, HEDDLE_OK);
      assert_true(all[i].got == 5 + RUNS * all[i].step);
      heddle_executor_release(all[i].ex);
    }
    assert_true(last_of(t.ex) == 5);
    rig_end(&t);
  }
}

/* ---- values that grow */

/* A value of N elements more in each run. */
static void sketch_growth(sketch *s, const char *device) {
  int past = put_input(s, "past", "[\"length\"]", "\"float32\""), x = put_input(s, "x", "[256]", "\"float32\"");
  int twice = NODE(s, "Add", "twice", device, x, x);
  int grown = NODE(s, "Concat", "present", device, past, twice);
  *strrchr(s->nodes, '}') = '\0';
  add_text(s->nodes, sizeof s->nodes, ",\"attrs\":{\"axis\":0}}");
  put_head(s, grown);
}

static void a_value_grows_and_is_cut(void **state) {
  (void)state;
  sketch s = {.n = 0};
  rig t;
  sketch_growth(&s, "sim:0");
  make(&t, "sim.delay_us=20", &s, "past:present");
  heddle_state_info info = {.struct_size = sizeof info};
  for (int run = 0; run < 6; run++) {
    set(t.ex, (float)run);
    OK(heddle_executor_run(t.ex, HEDDLE_FOREVER, &err));
    OK(heddle_executor_state_info(t.ex, 0, &info, &err));
    assert_int_equal(info.shape[0], N * (run + 1));
    assert_int_equal(info.axis, 0);
    assert_true(last_of(t.ex) == 2 * (float)run);
  }
  OK(heddle_executor_truncate_state(t.ex, HEDDLE_STATE_ALL, 2 * N, &err));
  assert_true(last_of(t.ex) == 2);
  FAILS(heddle_executor_truncate_state(t.ex, 0, 2 * N + 1, &err), HEDDLE_EINVAL);
  FAILS(heddle_executor_truncate_state(t.ex, 1, 0, &err), HEDDLE_ENOTFOUND);
  FAILS(heddle_executor_reset_state(t.ex, 1, &err), HEDDLE_ENOTFOUND);
  FAILS(heddle_executor_read_state(t.ex, 0, NULL, &err), HEDDLE_EINVAL);
  FAILS(heddle_executor_write_state(t.ex, 0, NULL, &err), HEDDLE_EINVAL);
  FAILS(heddle_executor_save_state(t.ex, NULL, &err), HEDDLE_EINVAL);
  FAILS(heddle_executor_fork_state(t.ex, NULL, &err), HEDDLE_EINVAL);
  OK(heddle_executor_reset_state(t.ex, HEDDLE_STATE_ALL, &err));
  OK(heddle_executor_state_info(t.ex, 0, &info, &err));
  assert_true(info.is_reset == 1 && info.bytes == 0);
  rig_end(&t);
}

/* Below a bound nothing is bound anew: in each run the launches and the memory are those of the run before the last. */
static void a_value_that_grows_stays_bound(void **state) {
  (void)state;
  enum { FIRST = 18, END = 31, MOST = 16 }; /* between bounds of 16 and 32 times N */
  static const char *const devices[] = {"cpu:0", "sim:0"};
  for (int k = 0; k < 2; k++) {
    sketch s = {.n = 0};
    rig t;
    heddle_plaunch *launches[2][MOST] = {{NULL}};
    const heddle__memory *memory[2][MOST] = {{NULL}};
    sketch_growth(&s, devices[k]);
    make(&t, "sim.capture=0", &s, "past:present");
    for (int run = 0; run < END; run++) {
      uint32_t n = 0;
      set(t.ex, (float)run);
      OK(heddle_executor_run(t.ex, HEDDLE_FOREVER, &err));
      const heddle__bound *b = t.ex->bound;
      for (uint32_t i = 0; i < b->program->n_segments; i++)
        for (uint32_t a = 0; a < b->stretches[i].count && n < MOST; a++, n++) {
          heddle_plaunch *launch = b->stretches[i].actions[a].launch;
          if (run >= FIRST + 2 && launch != launches[run % 2][n]) fail_msg("%s, run %d: bound anew", devices[k], run);
          launches[run % 2][n] = launch;
        }
      assert_true(n > 0 && n < MOST);
      for (uint32_t i = 0; i < b->program->plan->n_allocs && i < MOST; i++) {
        if (run >= FIRST + 2 && b->memory[i] != memory[run % 2][i]) fail_msg("%s, run %d: moved", devices[k], run);
        memory[run % 2][i] = b->memory[i];
      }
      assert_true(last_of(t.ex) == 2 * (float)run);
    }
    rig_end(&t);
  }
}

/* What an operator only adds to is there once, and stays where it is but for doublings; what one overwrites is there twice. */
static void a_value_has_one_piece_of_memory(void **state) {
  (void)state;
  enum { GROWING = 64, DOUBLINGS = 8 };
  static const char *const devices[] = {"cpu:0", "sim:0"};
  for (int k = 0; k < 4; k++) {
    const bool grows = k < 2;
    sketch s = {.n = 0};
    rig t;
    const heddle__store *before = NULL;
    uint32_t moves = 0;
    if (grows) sketch_growth(&s, devices[k % 2]);
    else sketch_sums(&s, devices[k % 2]);
    make(&t, "", &s, grows ? "past:present" : "s:total");
    for (int run = 0; run < GROWING; run++) {
      set(t.ex, (float)run);
      OK(heddle_executor_run(t.ex, HEDDLE_FOREVER, &err));
      const heddle__state *st = &t.ex->states->at[0];
      const uint64_t one = st->now.store->base->bytes, all = heddle__states_bytes(t.ex);
      if ((st->now.store == st->spare.store) != grows || all != (grows ? one : one + st->spare.store->base->bytes))
        fail_msg("%s, run %d: %llu bytes of %llu", devices[k % 2], run, (unsigned long long)one,
                 (unsigned long long)all);
      if (grows && one > 4096 && one > 2 * st->now.view->bytes) fail_msg("%s, run %d: too much", devices[k % 2], run);
      moves += st->now.store != before;
      before = st->now.store;
    }
    if (grows && moves > DOUBLINGS) fail_msg("%s: moved %u times", devices[k % 2], (unsigned)moves);
    rig_end(&t);
  }
}

/* ---- tensors of a device */

static void executors_share_a_tensor(void **state) {
  (void)state;
  sketch s = {.n = 0};
  rig t;
  const int64_t shape[] = {N};
  int x = put_input(&s, "x", "[256]", "\"float32\"");
  put_head(&s, NODE(&s, "Add", "twice", "sim:0", x, x));
  make(&t, "sim.delay_us=20", &s, NULL);
  heddle_executor *second = NULL;
  heddle_tensor *tensors[3], *in = NULL, *out = NULL;
  OK(heddle_executor_create(t.model, &second, &err));
  for (int i = 0; i < 3; i++)
    OK(heddle_tensor_create(heddle_model_device(t.model, 1), HEDDLE_FLOAT32, shape, 1, &tensors[i], &err));
  OK(heddle_executor_bind_input(t.ex, 0, tensors[0], &err));
  OK(heddle_executor_bind_output(t.ex, 0, tensors[1], &err));
  OK(heddle_executor_bind_input(second, 0, tensors[1], &err));
  OK(heddle_executor_bind_output(second, 0, tensors[2], &err));
  for (int run = 0; run < RUNS; run++) {
    in = floats(shape, 1, (float)run, 1);
    OK(heddle_tensor_create(NULL, HEDDLE_FLOAT32, shape, 1, &out, &err));
    OK(heddle_tensor_copy(tensors[0], in, &err));
    OK(heddle_executor_run(t.ex, HEDDLE_FOREVER, &err));
    OK(heddle_executor_run(second, HEDDLE_FOREVER, &err));
    OK(heddle_executor_get_output(second, 0, out, &err));
    for (int i = 0; i < N; i++) assert_true(data_of(out)[i] == 4 * data_of(in)[i]);
    heddle_tensor_release(in);
    heddle_tensor_release(out);
  }
  heddle_executor_stats stats = {.struct_size = sizeof stats};
  OK(heddle_executor_get_stats(second, &stats, &err));
  assert_true(stats.runs == RUNS && stats.copies == 0 && stats.bytes_copied == 0);
  FAILS(heddle_executor_bind_output(second, 0, tensors[1], &err), HEDDLE_EINVAL);
  for (int i = 0; i < 3; i++) heddle_tensor_release(tensors[i]);
  heddle_executor_release(second);
  rig_end(&t);
}

CASES(CASE(a_run_that_is_not_waited_for), CASE(a_run_that_is_cancelled), CASE(forks_run_at_once),
      CASE(a_value_grows_and_is_cut), CASE(a_value_that_grows_stays_bound), CASE(a_value_has_one_piece_of_memory),
      CASE(executors_share_a_tensor))
