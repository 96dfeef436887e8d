/* labels: threads
 * timeout: 200
 * Limits on memory from inside: memory that is out while a plan is made smaller, two threads that plan within limits at
 * once, and models in stages, whose stages each keep them. */
#include <pthread.h>
#include <string.h>

#include "rig.h"

enum { BRANCHES = 4, WIDE_BYTES = 64 * 64 * 4 };

/* Wide values, all of them first as it is listed, of which the best order needs one at a time. */
static void sketch_fan(sketch *s) {
  int wide[BRANCHES];
  int x = put_input(s, "x", "[64,1]", "\"float32\""), row = put_input(s, "row", "[1,64]", "\"float32\"");
  int column = put_input(s, "column", "[64,1]", "\"float32\"");
  for (int k = 0; k < BRANCHES; k++) {
    char name[32];
    snprintf(name, sizeof name, "wide%d", k);
    wide[k] = NODE(s, "MatMul", name, NULL, x, row);
  }
  int sum = -1;
  for (int k = 0; k < BRANCHES; k++) {
    char name[32];
    snprintf(name, sizeof name, "narrow%d", k);
    int narrow = NODE(s, "MatMul", name, NULL, wide[k], column);
    snprintf(name, sizeof name, "sum%d", k);
    sum = sum < 0 ? narrow : NODE(s, "Add", name, NULL, sum, narrow);
  }
  put_head(s, sum);
}

static heddle_status plan_once(heddle_context *ctx, const heddle_graph *g, const char *memory, char **text,
                               heddle_error *why) {
  const heddle_model_options o = {.struct_size = sizeof o, .devices = "sim:0,cpu", .memory = memory};
  heddle_model *m = NULL;
  heddle_status s = heddle_model_create(ctx, g, NULL, &o, &m, why);
  if (s == HEDDLE_OK) s = heddle_model_explain(m, HEDDLE_EXPLAIN_TEXT, NULL, NULL, 0, text, why);
  heddle_model_release(m);
  return s;
}

/* What fits after the search: every allocation on the way fails once. What does not, and gets rules: some do; where they
 * are of a plan that was only tried, the answer has no rules. */
static void memory_that_is_out(void **state) {
  static const char *const limits[] = {"sim:0=40000", "sim:0=5000"};
  static sketch s;
  (void)state;
  sketch_fan(&s);
  heddle_context *ctx = context("");
  heddle_graph *g = graph_of(&s);
  for (int i = 0; i < 2; i++) {
    char *text = NULL;
    const heddle_status want = i == 0 ? HEDDLE_OK : HEDDLE_ELIMIT;
    FAILS(plan_once(ctx, g, limits[i], &text, &err), want); /* libraries are open now */
    if (i == 0) assert_non_null(strstr(text, "reordered for memory"));
    else SAYS("it fits with --place");
    heddle_free(text);
    const size_t live = heddle__alloc_live();
    heddle_status got = HEDDLE_ENOMEM;
    uint64_t failures = 0;
    for (uint64_t n = 1; i == 0 ? got == HEDDLE_ENOMEM : n < 3000; n += i == 0 ? 1 : 53) {
      text = NULL;
      err.text[0] = '\0';
      heddle__alloc_fail_at(n);
      got = plan_once(ctx, g, limits[i], &text, &err);
      heddle__alloc_fail_at(0);
      failures += got == HEDDLE_ENOMEM;
      heddle_free(text);
      if (got != want && got != HEDDLE_ENOMEM) fail_msg("allocation %d: %s", (int)n, err.text);
      if (got != HEDDLE_OK) assert_true(err.text[0] != '\0');
      assert_int_equal(heddle__alloc_live(), live);
    }
    assert_true(failures > (i == 0 ? 50 : 3));
  }
  heddle_graph_release(g);
  heddle_context_release(ctx);
}

typedef struct work {
  heddle_context *ctx;
  heddle_graph *graph;
  char *text;
} work;

static void *plan_many(void *of) {
  work *w = of;
  heddle_error why;
  for (int i = 0; i < 20; i++) {
    char *text = NULL;
    if (plan_once(w->ctx, w->graph, "sim:0=40000", &text, &why) != HEDDLE_OK) return NULL;
    heddle_free(w->text);
    w->text = text;
  }
  return w;
}

/* The same graph and limits give the same plan, from any thread. */
static void threads_plan_at_once(void **state) {
  enum { THREADS = 3 };
  static sketch s;
  (void)state;
  sketch_fan(&s);
  heddle_context *ctx = context("");
  heddle_graph *g = graph_of(&s);
  work all[THREADS];
  pthread_t threads[THREADS];
  for (int i = 0; i < THREADS; i++) {
    all[i] = (work){ctx, g, NULL};
    assert_int_equal(pthread_create(&threads[i], NULL, plan_many, &all[i]), 0);
  }
  for (int i = 0; i < THREADS; i++) {
    void *done = NULL;
    pthread_join(threads[i], &done);
    assert_non_null(done);
  }
  for (int i = 0; i < THREADS; i++) {
    assert_string_equal(all[i].text, all[0].text);
    if (i > 0) heddle_free(all[i].text);
  }
  heddle_free(all[0].text);
  heddle_graph_release(g);
  heddle_context_release(ctx);
  assert_int_equal(heddle__alloc_live(), 0);
}

/* NonZero's shape is known in a run only: what follows is planned by another model, within the same limits. */
static void stages_keep_limits(void **state) {
  (void)state;
  for (int i = 0; i < 2; i++) {
    static sketch s;
    s = (sketch){0};
    int x = put_input(&s, "x", "[64]", "\"float32\"");
    int places = NODE(&s, "NonZero", "places", NULL, x);
    put_head(&s, NODE(&s, "Abs", "after", NULL, places));
    rig t;
    rig_make(&t, "", &s,
             &(heddle_model_options){.struct_size = sizeof(heddle_model_options),
                                     .devices = "cpu",
                                     .memory = i == 0 ? "cpu=1MiB" : "cpu=800"});
    heddle_tensor *value = floats((const int64_t[]){64}, 1, 1, 1);
    heddle_status got = heddle_executor_set_input(t.ex, 0, value, &err);
    if (got == HEDDLE_OK) got = heddle_executor_run(t.ex, HEDDLE_FOREVER, &err);
    if (i == 0 && got != HEDDLE_OK) fail_msg("%s", err.text);
    if (i == 1) {
      assert_int_equal(got, HEDDLE_ELIMIT);
      SAYS("more than its limit of 800 (from call)");
    }
    heddle_tensor_release(value);
    rig_end(&t);
  }
}

/* 2^58 bytes for each of 64 runs in flight are 2^64, which is not 0. */
static void more_than_a_number_holds(void **state) {
  (void)state;
  static sketch s;
  s = (sketch){0};
  put_head(&s, NODE(&s, "Abs", "b", NULL,
                    NODE(&s, "Abs", "a", NULL, put_input(&s, "x", "[268435456,268435456]", "\"float32\""))));
  const heddle_model_options o = {
      .struct_size = sizeof o, .devices = "sim:0", .memory = "sim:0=64MiB", .in_flight = 64, .optimize = "off"};
  heddle_context *ctx = context("");
  heddle_graph *g = graph_of(&s);
  heddle_model *m = NULL;
  char *text = NULL;
  OK(heddle_model_create(ctx, g, NULL, &o, &m, &err));
  FAILS(heddle_model_explain(m, HEDDLE_EXPLAIN_TEXT, NULL, NULL, 0, &text, &err), HEDDLE_ELIMIT);
  SAYS("more than its limit of 67108864");
  heddle_model_release(m);
  heddle_graph_release(g);
  heddle_context_release(ctx);
}

CASES(CASE(memory_that_is_out), CASE(threads_plan_at_once), CASE(stages_keep_limits), CASE(more_than_a_number_holds))
