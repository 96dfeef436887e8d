/* tests/executor/test_prove_plan.c: plans as the passes make them, each with one wait taken away: since redundant waits
 * are left out of plans, every one of them must be missed, the finish's too. */
#include "executor/rig.h"
#include "executor/state.h"

enum { LENGTH = 6 };

static void sketch_crossings(sketch *s) {
  static const char *const devices[] = {"cpu", "sim:0", "sim:1"};
  int x = put_input(s, "x", "[64]", "\"float32\""), left = x, right = x;
  char name[16];
  for (int i = 0; i < LENGTH; i++) {
    snprintf(name, sizeof name, "l%d", i);
    left = NODE(s, "Add", name, devices[i % 3], left, x);
    snprintf(name, sizeof name, "r%d", i);
    right = NODE(s, "Mul", name, devices[(i + 1) % 3], right, left);
  }
  put_head(s, NODE(s, "Relu", "left", devices[1], left));
  put_head(s, NODE(s, "Relu", "right", devices[2], right));
}

static void every_wait_is_missed(void **state) {
  (void)state;
  static const char *const modes[] = {"threads=1",
                                      "sim.coherent=0",
                                      "sim.unified=1;sim.coherent=0",
                                      "sim.peer=off",
                                      "sim.event_domains=1;sim.peer=off",
                                      "opencl.unified=0",
                                      "opencl.unified=0;opencl.peer=0",
                                      "vulkan.unified=0",
                                      "cuda.peer=0"};
  const char *const lists[] = {on("cpu,sim:0,sim:1"), on("sim:0,sim:1")};
  int at_finish = 0;
  for (size_t k = 0; k < 2 * sizeof modes / sizeof modes[0]; k++) {
    if (!settings_fit(modes[k / 2])) continue;
    sketch s = {0};
    sketch_crossings(&s);
    heddle_context *ctx = context(modes[k / 2]);
    heddle_graph *g = graph_of(&s);
    heddle_model *m = NULL;
    heddle_executor *ex = NULL;
    heddle_model_options o = {.struct_size = sizeof o, .devices = lists[k % 2]};
    if (k % 2 == 1) o.flags = HEDDLE_MODEL_IGNORE_ANNOTATIONS;
    OK(heddle_model_create(ctx, g, NULL, &o, &m, &err));
    OK(heddle_executor_create(m, &ex, &err));
    heddle__plan *plan = ex->bound->program->plan;
    int dropped = 0;
    for (uint32_t i = 0; i < plan->n_steps; i++) {
      heddle__step *step = &plan->steps[i];
      const heddle__wait *all = step->waits;
      uint32_t n = step->n_waits;
      for (uint32_t w = 0; w < n; w++) {
        heddle__wait rest[8];
        assert_true(n <= 8);
        for (uint32_t to = 0, from = 0; from < n; from++)
          if (from != w) rest[to++] = all[from];
        step->waits = rest;
        step->n_waits = n - 1;
        FAILS(heddle__pass_prove(plan, &err), HEDDLE_EPLAN);
        step->waits = all;
        step->n_waits = n;
        dropped++;
        at_finish += step->kind == HEDDLE__STEP_FINISH;
      }
    }
    OK(heddle__pass_prove(plan, &err));
    assert_true(dropped > 0);
    heddle_executor_release(ex);
    heddle_model_release(m);
    heddle_graph_release(g);
    heddle_context_release(ctx);
    assert_int_equal(heddle__alloc_live(), 0);
  }
  assert_true(at_finish > 0);
}

/* Steps that no output reads still belong to the run: the next one must not start beside them. */
static void the_finish_comes_after_all(void **state) {
  (void)state;
  sketch s = {0};
  sketch_crossings(&s);
  heddle_context *ctx = context("threads=1");
  heddle_graph *g = graph_of(&s);
  heddle_model *m = NULL;
  heddle_executor *ex = NULL;
  heddle_model_options o = {.struct_size = sizeof o, .devices = on("cpu,sim:0,sim:1")};
  OK(heddle_model_create(ctx, g, NULL, &o, &m, &err));
  OK(heddle_executor_create(m, &ex, &err));
  heddle__plan *plan = ex->bound->program->plan;
  heddle__step *finish = &plan->steps[plan->n_steps - 1];
  const heddle__access *accesses = finish->accesses;
  uint32_t n_accesses = finish->n_accesses, n_waits = finish->n_waits;
  finish->n_accesses = finish->n_waits = 0; /* it reads nothing, so that only the end itself can be missed */
  FAILS(heddle__pass_prove(plan, &err), HEDDLE_EPLAN);
  SAYS("end of the run");
  finish->accesses = accesses;
  finish->n_accesses = n_accesses;
  finish->n_waits = n_waits;
  OK(heddle__pass_prove(plan, &err));
  heddle_executor_release(ex);
  heddle_model_release(m);
  heddle_graph_release(g);
  heddle_context_release(ctx);
  assert_int_equal(heddle__alloc_live(), 0);
}

CASES(CASE_TWICE(every_wait_is_missed), CASE_TWICE(the_finish_comes_after_all))
