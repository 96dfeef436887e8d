/* One graph over ranks, which are threads here: results, runs in flight, errors that reach all ranks, and the proof of
 * messages, which refuses every mutant. labels: threads
 * timeout: 120 */
#include <stdatomic.h>

#include "executor/ranks/own.h"
#include "ranks_rig.h"

/* ---- the proof */

#define NONE UINT32_MAX

/* Four ranks: 0 gives 1 and 2 values, 3 takes theirs, gives rank 0 the result, and rank 1 once more. */
typedef struct plan {
  heddle__script_stage stages[6];
  uint32_t in[6][3], out[6][2], results[2];
  uint64_t bytes[10];
  heddle__script s;
} plan;

static void add_stage(plan *p, uint32_t rank, const uint32_t *in, uint32_t n_in, const uint32_t *out, uint32_t n_out) {
  uint32_t k = p->s.n_stages++;
  memcpy(p->in[k], in, n_in * sizeof *in);
  memcpy(p->out[k], out, n_out * sizeof *out);
  p->stages[k] = (heddle__script_stage){rank, p->in[k], p->out[k], n_in, n_out};
}

#define LIST(...) \
  (const uint32_t[]) { \
    __VA_ARGS__ \
  }

static void make_plan(plan *p) {
  memset(p, 0, sizeof *p);
  add_stage(p, 0, LIST(0), 1, LIST(2, 3), 2);
  add_stage(p, 1, LIST(2, 1), 2, LIST(4), 1);
  add_stage(p, 2, LIST(2, 3), 2, LIST(5), 1);
  add_stage(p, 3, LIST(4, 5, NONE), 3, LIST(6, 7), 2);
  add_stage(p, 1, LIST(6, 4), 2, LIST(8), 1);
  p->results[0] = 7;
  p->results[1] = 8;
  for (uint32_t i = 0; i < 10; i++) p->bytes[i] = 64; /* alike, so that only tags tell messages apart */
  p->s.stages = p->stages;
  p->s.results = p->results;
  p->s.n_ranks = 4;
  p->s.n_values = 9;
  p->s.n_given = 2;
  p->s.n_results = 2;
  OK(heddle__script_make(&p->s, p->bytes, &err));
}

static void the_plan_is_proved(void **state) {
  (void)state;
  plan p;
  make_plan(&p);
  for (uint32_t n = 1; n <= 8; n++) OK(heddle__script_prove(&p.s, n, &err));
  assert_int_equal(p.s.n_tags, 8); /* 2 to 1 and 2, 3 to 2, 4 and 5 to 3, 6 to 1, 7 and 8 to 0 */
  heddle__script_free(&p.s);
}

static void mutants_are_refused(void **state) {
  (void)state;
  plan p;
  int mutants = 0;
  for (uint32_t r = 0; r < 4; r++) {
    make_plan(&p);
    const uint32_t n = p.s.ranks[r].n;
    heddle__script_free(&p.s);
    for (uint32_t i = 0; i < n; i++)
      for (int kind = 0; kind < 6; kind++) {
        make_plan(&p);
        heddle__acts *acts = &p.s.ranks[r];
        heddle__act *a = &acts->list[i];
        const bool stage = a->kind == HEDDLE__ACT_STAGE;
        bool changed = true;
        if (kind == 0) { /* dropped */
          memmove(a, a + 1, (n - i - 1) * sizeof *a);
          acts->n--;
        } else if (kind == 1 && !stage) a->tag = 99;
        else if (kind == 2 && !stage) a->tag = (a->tag + 1) % p.s.n_tags;
        else if (kind == 3 && !stage) a->peer = (a->peer + 1) % 4 == r ? (a->peer + 2) % 4 : (a->peer + 1) % 4;
        else if (kind == 4 && (a->kind == HEDDLE__ACT_SEND || a->kind == HEDDLE__ACT_RECEIVE)) a->bytes--;
        else if (kind == 5 && !stage) a->value = (a->value + 1) % 9;
        else changed = false;
        if (changed) {
          FAILS(heddle__script_prove(&p.s, 1, &err), HEDDLE_EINTERNAL);
          SAYS("the plan of messages is wrong");
          mutants++;
        }
        heddle__script_free(&p.s);
      }
  }
  assert_true(mutants > 100);
}

/* The tags of two messages between the same ranks are swapped on one side. */
static void swapped_messages_are_refused(void **state) {
  (void)state;
  plan p;
  make_plan(&p);
  heddle__acts *acts = &p.s.ranks[2]; /* receives values 2 and 3 of rank 0 */
  heddle__act *first = &acts->list[0], *second = &acts->list[1];
  assert_true(first->kind == HEDDLE__ACT_RECEIVE && second->kind == HEDDLE__ACT_RECEIVE);
  uint32_t tag = first->tag;
  first->tag = second->tag;
  second->tag = tag;
  FAILS(heddle__script_prove(&p.s, 1, &err), HEDDLE_EINTERNAL);
  SAYS("not what is sent");
  heddle__script_free(&p.s);
}

/* Two ranks that each wait for the end of their own send before they start to receive: fine while a transport buffers. */
static void a_cycle_of_waits_is_refused(void **state) {
  (void)state;
  plan p;
  memset(&p, 0, sizeof p);
  add_stage(&p, 0, LIST(0), 1, LIST(1), 1);
  add_stage(&p, 1, LIST(0), 1, LIST(2), 1);
  add_stage(&p, 0, LIST(1, 2), 2, LIST(3), 1);
  add_stage(&p, 1, LIST(1, 2), 2, LIST(4), 1);
  p.results[0] = 3;
  p.s.stages = p.stages;
  p.s.results = p.results;
  p.s.n_ranks = 2;
  p.s.n_values = 5;
  p.s.n_given = p.s.n_results = 1;
  OK(heddle__script_make(&p.s, p.bytes, &err));
  OK(heddle__script_prove(&p.s, 3, &err));
  for (uint32_t r = 0; r < 2; r++) { /* receive, stage, send, await, stage, sent -> stage, send, sent, receive, ... */
    heddle__act *l = p.s.ranks[r].list, old[6];
    static const int order[] = {1, 2, 5, 0, 3, 4};
    assert_int_equal(p.s.ranks[r].n, 6);
    memcpy(old, l, sizeof old);
    for (int i = 0; i < 6; i++) l[i] = old[order[i]];
  }
  FAILS(heddle__script_prove(&p.s, 1, &err), HEDDLE_EINTERNAL);
  SAYS("ranks wait for each other");
  heddle__script_free(&p.s);
}

/* ---- runs */

typedef struct rank_case rank_case;
struct rank_case {
  const char *devices;
  const char *const *place;
  size_t n_place;
  uint32_t in_flight;
  const char *settings[4][2];
  void (*body)(rank_case *c, uint32_t rank, heddle_context *ctx, heddle_model *m, heddle_error *e);
  heddle_status status[RANKS_MOST];
  heddle_error errors[RANKS_MOST];
  atomic_int good; /* outputs that were right */
  wires w;
};

typedef struct rank_thread {
  rank_case *c;
  uint32_t rank;
  heddle_comm comm;
} rank_thread;

static const heddle_graph *the_graph;

static void *run_rank(void *user) {
  rank_thread *t = user;
  rank_case *c = t->c;
  heddle_error *e = &c->errors[t->rank];
  heddle_context *ctx = NULL;
  heddle_model *m = NULL;
  heddle_setting settings[4];
  size_t n = 0;
  for (; n < 4 && c->settings[n][0] != NULL; n++) settings[n] = (heddle_setting){c->settings[n][0], c->settings[n][1]};
  heddle_status s = heddle_context_create_ranks(&t->comm, settings, n, NULL, NULL, &ctx, e);
  const heddle_model_options o = {.struct_size = sizeof o,
                                  .devices = c->devices,
                                  .place = c->place,
                                  .n_place = c->n_place,
                                  .in_flight = c->in_flight};
  if (s == HEDDLE_OK) s = heddle_model_create(ctx, the_graph, NULL, &o, &m, e);
  c->status[t->rank] = s;
  if (s == HEDDLE_OK && c->body != NULL) c->body(c, t->rank, ctx, m, e);
  heddle_model_release(m);
  heddle_context_release(ctx);
  return NULL;
}

/* y = -(relu(a + b) + a), over three nodes. */
static void run_all(rank_case *c, uint32_t ranks) {
  static sketch s;
  rank_thread threads[RANKS_MOST];
  pthread_t ids[RANKS_MOST];
  memset(&s, 0, sizeof s);
  int a = put_input(&s, "a", "[4]", "\"float32\""), b = put_input(&s, "b", "[4]", "\"float32\"");
  int sum = NODE(&s, "Add", "sum", NULL, a, b), relu = NODE(&s, "Relu", "relu", NULL, sum);
  int more = NODE(&s, "Add", "more", NULL, relu, a);
  put_head(&s, NODE(&s, "Neg", "neg", NULL, more));
  put_head(&s, relu);
  heddle_graph *g = graph_of(&s);
  the_graph = g;
  pthread_mutex_init(&c->w.lock, NULL);
  c->w.size = ranks;
  for (uint32_t i = 0; i < ranks; i++) threads[i] = (rank_thread){c, i, wire_comm(&c->w, i)};
  for (uint32_t i = 0; i < ranks; i++) pthread_create(&ids[i], NULL, run_rank, &threads[i]);
  for (uint32_t i = 0; i < ranks; i++) pthread_join(ids[i], NULL);
  assert_int_equal(c->w.released, (int)ranks);
  assert_null(c->w.messages);
  heddle_graph_release(g);
}

static float value(float a, float b) {
  return a + b > 0 ? a + b : 0;
}

/* Runs as many at a time as the model allows, with values of their own. */
static void run_ten(rank_case *c, uint32_t rank, heddle_context *ctx, heddle_model *m, heddle_error *e) {
  const uint64_t n = c->in_flight > 0 ? c->in_flight : 1;
  heddle_executor *ex = NULL;
  uint32_t number = 9, size = 0;
  heddle_context_rank(ctx, &number, &size);
  heddle_status s = number == rank && size == c->w.size ? heddle_executor_create(m, &ex, e) : HEDDLE_EINTERNAL;
  for (uint64_t k = 0; k < 10 + n && s == HEDDLE_OK; k++) {
    if (k >= n) {
      heddle_tensor *y = NULL, *relu = NULL;
      s = heddle_executor_wait(ex, HEDDLE_FOREVER, e);
      if (s != HEDDLE_OK) break;
      const float a = (float)(k - n), b = -3;
      heddle_status read = heddle_executor_view_output(ex, 0, &y, NULL);
      if (rank == 0 && read == HEDDLE_OK && heddle_executor_view_output(ex, 1, &relu, NULL) == HEDDLE_OK &&
          data_of(y)[3] == -(value(a + 3, b) + a + 3) && data_of(relu)[3] == value(a + 3, b))
        c->good++;
      if (rank != 0 && read == HEDDLE_EINVAL) c->good++; /* outputs are at rank 0 */
      heddle_tensor_release(y);
      heddle_tensor_release(relu);
    }
    if (k >= 10) continue;
    heddle_tensor *a = floats((const int64_t[]){4}, 1, (float)k, 1), *b = floats((const int64_t[]){4}, 1, -3, 0);
    s = heddle_executor_set_input(ex, 0, a, e);
    if (s == HEDDLE_OK) s = heddle_executor_set_input(ex, 1, b, e);
    if (s == HEDDLE_OK) s = heddle_executor_start(ex, e);
    heddle_tensor_release(a);
    heddle_tensor_release(b);
  }
  heddle_executor_release(ex);
  c->status[rank] = s;
}

static const char *const three[] = {"sum=0/cpu", "relu=1/sim", "more=2/cpu", "neg=1/cpu"};

static void all_succeed(rank_case *c, uint32_t ranks) {
  run_all(c, ranks);
  for (uint32_t i = 0; i < ranks; i++)
    if (c->status[i] != HEDDLE_OK) fail_msg("rank %u: %s", (unsigned)i, c->errors[i].text);
  assert_int_equal(c->good, 10 * (int)ranks);
}

static void all_fail(rank_case *c, uint32_t ranks, heddle_status status, const char *words) {
  run_all(c, ranks);
  for (uint32_t i = 0; i < ranks; i++)
    if (c->status[i] != status || strstr(c->errors[i].text, words) == NULL)
      fail_msg("rank %u: %s: %s", (unsigned)i, heddle_status_name(c->status[i]), c->errors[i].text);
}

/* The member of the error of each rank says whose failure it was. */
static void all_blame(const rank_case *c, uint32_t ranks, int32_t rank, const char *device) {
  for (uint32_t i = 0; i < ranks; i++) {
    heddle_failure f = {.struct_size = sizeof f};
    if (heddle_error_failure(&c->errors[i], &f) != HEDDLE_OK || f.rank != rank || strcmp(f.device, device) != 0)
      fail_msg("rank %u: it blames %d and '%s': %s", (unsigned)i, (int)f.rank, f.device, c->errors[i].text);
  }
}

static void three_ranks_run_one_graph(void **state) {
  (void)state;
  static rank_case c = {.devices = "0/cpu,1/sim:0,*/cpu", .place = three, .n_place = 4, .body = run_ten};
  all_succeed(&c, 3);
}

static void runs_in_flight_over_ranks(void **state) {
  (void)state;
  static rank_case c = {.devices = "0/cpu,1/sim:0,*/cpu",
                        .place = three,
                        .n_place = 4,
                        .in_flight = 4,
                        .settings = {{"sim.delay_us", "300"}},
                        .body = run_ten};
  all_succeed(&c, 3);
}

static void one_rank_is_an_ordinary_context(void **state) {
  (void)state;
  static const char *const rules[] = {"relu=0/sim:0", "*e*g=0/cpu"};
  static rank_case c = {.devices = "*/cpu,0/sim", .place = rules, .n_place = 2, .body = run_ten};
  all_succeed(&c, 1);
}

static void a_rank_without_devices_takes_part(void **state) {
  (void)state;
  static const char *const rules[] = {"sum=3/cpu"};
  static rank_case c = {.devices = "2/cpu,3/cpu", .place = rules, .n_place = 1, .body = run_ten};
  all_succeed(&c, 4);
}

/* Whether rank 1 has nodes. */
static void look_at_rank_1(rank_case *c, uint32_t rank, heddle_context *ctx, heddle_model *m, heddle_error *e) {
  const heddle__spread *s = m->spread;
  (void)ctx, (void)rank, (void)e;
  for (uint32_t i = 0; i < m->graph->n_nodes; i++)
    if (s->device_of[i] != HEDDLE__NONE && s->devices[s->device_of[i]].rank == 1) c->good++;
}

static void auto_makes_a_pipeline(void **state) {
  (void)state;
  static const char *const rules[] = {"auto"};
  static rank_case c = {
      .devices = "*/cpu", .place = rules, .n_place = 1, .settings = {{"routes.test", "0"}}, .body = run_ten};
  all_succeed(&c, 2);
}

/* Four nodes of microseconds are not worth a message of milliseconds. */
static void auto_counts_messages(void **state) {
  (void)state;
  static const char *const rules[] = {"auto"};
  static rank_case slow = {.devices = "*/cpu",
                           .place = rules,
                           .n_place = 1,
                           .settings = {{"routes.test", "1"}},
                           .body = look_at_rank_1,
                           .w = {.delay_ns = 2000000}};
  run_all(&slow, 2);
  for (int i = 0; i < 2; i++)
    if (slow.status[i] != HEDDLE_OK) fail_msg("%s", slow.errors[i].text);
  assert_int_equal(slow.good, 0);
  static rank_case off = {.devices = "*/cpu",
                          .place = rules,
                          .n_place = 1,
                          .settings = {{"routes.test", "0"}},
                          .body = look_at_rank_1,
                          .w = {.delay_ns = 2000000}};
  run_all(&off, 2);
  assert_true(off.good > 0);
}

static void a_lost_message_ends_all_ranks(void **state) {
  (void)state;
  for (int n = 1; n <= 3; n += 2) {
    rank_case *c = calloc(1, sizeof *c);
    *c = (rank_case){
        .devices = "*/cpu,1/sim:0", .place = three, .n_place = 4, .settings = {{"ranks.wait_seconds", "1"}}};
    c->body = run_ten;
    c->w.lose = n;
    all_fail(c, 3, HEDDLE_ETIMEOUT, "has not done its part of '");
    free(c);
  }
}

static void a_failed_device_ends_all_ranks(void **state) {
  (void)state;
  static rank_case c = {.devices = "*/cpu,1/sim:0",
                        .place = three,
                        .n_place = 4,
                        .settings = {{"sim.fail", "run:3"}, {"sim.capture", "0"}},
                        .body = run_ten};
  all_fail(&c, 3, HEDDLE_EFAILED, "node 'relu' on sim:0");
  all_blame(&c, 3, 1, "sim:0");
}

static void a_missing_device_is_named_on_all_ranks(void **state) {
  (void)state;
  static rank_case c = {.devices = "*/cpu,1/sim:99"};
  all_fail(&c, 2, HEDDLE_ENODEV, "rank 1: no device 'sim:99'");
  all_blame(&c, 2, 1, "");
  static rank_case d = {.devices = "*/cpu,5/cpu"};
  all_fail(&d, 2, HEDDLE_ENODEV, "there is no such rank; there are 2");
}

/* Rank 1 makes two executors where rank 0 makes one and runs it. */
static void other_order(rank_case *c, uint32_t rank, heddle_context *ctx, heddle_model *m, heddle_error *e) {
  const heddle_model_options o = {.struct_size = sizeof o, .devices = "*/cpu"};
  heddle_executor *ex = NULL;
  heddle_model *other = NULL;
  heddle_status s =
      rank == 0 ? heddle_executor_create(m, &ex, e) : heddle_model_create(ctx, the_graph, NULL, &o, &other, e);
  heddle_model_release(other);
  heddle_executor_release(ex);
  c->status[rank] = s;
}

static void another_order_of_calls_is_reported(void **state) {
  (void)state;
  static rank_case c = {.devices = "*/cpu", .body = other_order};
  all_fail(&c, 2, HEDDLE_EINVAL, "call in different orders");
}

/* Rank 1 ends early. */
static void leave(rank_case *c, uint32_t rank, heddle_context *ctx, heddle_model *m, heddle_error *e) {
  heddle_executor *ex = NULL;
  (void)ctx;
  c->status[rank] = rank == 0 ? heddle_executor_create(m, &ex, e) : HEDDLE_EFAILED;
  if (rank != 0) snprintf(e->text, sizeof e->text, "has left");
  heddle_executor_release(ex);
}

static void a_rank_that_leaves_is_named(void **state) {
  (void)state;
  static rank_case c = {.devices = "*/cpu", .body = leave};
  all_fail(&c, 2, HEDDLE_EFAILED, "has left");
}

/* Rank 1 has a failure of its own, which no call of the library sees. */
static void fail_alone(rank_case *c, uint32_t rank, heddle_context *ctx, heddle_model *m, heddle_error *e) {
  heddle_executor *ex = NULL;
  heddle_context_fail_ranks(NULL, HEDDLE_EIO, "nothing");
  heddle_context_fail_ranks(ctx, HEDDLE_OK, "nothing");
  if (rank == 1) heddle_context_fail_ranks(ctx, HEDDLE_EIO, "weights.bin is not there");
  if (rank == 1) heddle_context_fail_ranks(ctx, HEDDLE_ENOMEM, "a second one");
  c->status[rank] = heddle_executor_create(m, &ex, e);
  heddle_executor_release(ex);
}

static void a_failure_of_the_caller_goes_to_all(void **state) {
  (void)state;
  static rank_case c = {.devices = "*/cpu", .body = fail_alone};
  all_fail(&c, 3, HEDDLE_EIO, "rank 1: weights.bin is not there");
  all_blame(&c, 3, 1, "");
}

/* Nobody sets an input that a rank needs: all ranks report it, and none waits. */
static void run_unset(rank_case *c, uint32_t rank, heddle_context *ctx, heddle_model *m, heddle_error *e) {
  heddle_executor *ex = NULL;
  (void)ctx;
  heddle_status s = heddle_executor_create(m, &ex, e);
  if (s == HEDDLE_OK) s = heddle_executor_run(ex, HEDDLE_FOREVER, e);
  c->status[rank] = s;
  heddle_executor_release(ex);
}

static void an_unset_input_ends_all_ranks(void **state) {
  (void)state;
  static rank_case c = {.devices = "*/cpu,1/sim:0", .place = three, .n_place = 4, .body = run_unset};
  all_fail(&c, 3, HEDDLE_EINVAL, "input '");
}

static void bad_tables_are_refused(void **state) {
  (void)state;
  heddle_context *ctx = NULL;
  static wires w = {.size = 1};
  pthread_mutex_init(&w.lock, NULL);
  FAILS(heddle_context_create_ranks(NULL, NULL, 0, NULL, NULL, &ctx, &err), HEDDLE_EINVAL);
  heddle_comm c = wire_comm(&w, 0);
  c.rank = 1;
  FAILS(heddle_context_create_ranks(&c, NULL, 0, NULL, NULL, &ctx, &err), HEDDLE_EINVAL);
  c = wire_comm(&w, 0);
  c.test = NULL;
  FAILS(heddle_context_create_ranks(&c, NULL, 0, NULL, NULL, &ctx, &err), HEDDLE_EINVAL);
  c = wire_comm(&w, 0);
  FAILS(heddle_context_create_ranks(&c, NULL, 0, NULL, NULL, NULL, &err), HEDDLE_EINVAL);
  assert_int_equal(w.released, 3);
  uint32_t rank = 7, size = 7;
  heddle_context_rank(NULL, &rank, &size);
  assert_true(rank == 0 && size == 1);
}

CASES(CASE(the_plan_is_proved), CASE(mutants_are_refused), CASE(swapped_messages_are_refused),
      CASE(a_cycle_of_waits_is_refused), CASE(three_ranks_run_one_graph), CASE(runs_in_flight_over_ranks),
      CASE(one_rank_is_an_ordinary_context), CASE(a_rank_without_devices_takes_part), CASE(auto_makes_a_pipeline),
      CASE(auto_counts_messages), CASE(a_lost_message_ends_all_ranks), CASE(a_failed_device_ends_all_ranks),
      CASE(a_missing_device_is_named_on_all_ranks), CASE(another_order_of_calls_is_reported),
      CASE(a_rank_that_leaves_is_named), CASE(a_failure_of_the_caller_goes_to_all), CASE(an_unset_input_ends_all_ranks),
      CASE(bad_tables_are_refused))
