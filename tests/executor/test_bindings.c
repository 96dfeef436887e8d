/* tests/executor/test_bindings.c: memory of the caller's in place of an executor's: what may be bound, what must not,
 * and that what was unbound is never touched again. */
#include "executor/rig.h"

enum { N = 256 };

static void make(rig *t, const char *settings, const sketch *s) {
  rig_make(t, settings, s,
           &(heddle_model_options){.struct_size = sizeof(heddle_model_options), .devices = "cpu,sim:0"});
}

static const char *const modes[] = {"threads=1",
                                    "sim.unified=1",
                                    "sim.coherent=0",
                                    "sim.import=0",
                                    "opencl.unified=1",
                                    "opencl.unified=0",
                                    "opencl.unified=0;layers=check",
                                    "vulkan.unified=1",
                                    "vulkan.unified=0;layers=check",
                                    "cuda.pools=0;layers=check"};

enum { N_MODES = sizeof modes / sizeof modes[0] };

static void expect_output(rig *t, uint32_t i, float want) {
  heddle_tensor *out = NULL;
  OK(heddle_executor_view_output(t->ex, i, &out, &err));
  if (data_of(out)[0] != want) fail_msg("output %u: %g, not %g", (unsigned)i, (double)data_of(out)[0], (double)want);
  heddle_tensor_release(out);
}

/* A view of an output is memory that runs write: bound to an input it would change under those who read it. */
static void outputs_are_not_bound_twice(void **state) {
  (void)state;
  for (size_t k = 0; k < N_MODES; k++) {
    if (!settings_fit(modes[k])) continue;
    sketch s = {0};
    const char *device = k == 0 ? NULL : "sim:0";
    int x = put_input(&s, "x", "[8]", "\"float32\"");
    int twice = NODE(&s, "Add", "twice", device, x, x);
    int also = NODE(&s, "Add", "also", NULL, x, x);
    int three = NODE(&s, "Add", "three", NULL, also, x);
    put_head(&s, twice);
    put_head(&s, three);
    rig t;
    make(&t, modes[k], &s);
    const int64_t shape[] = {8};
    heddle_tensor *in = floats(shape, 1, 1, 1), *view = NULL;
    OK(heddle_executor_set_input(t.ex, 0, in, &err));
    OK(heddle_executor_run(t.ex, HEDDLE_FOREVER, &err));
    OK(heddle_executor_view_output(t.ex, 0, &view, &err));
    FAILS(heddle_executor_bind_input(t.ex, 0, view, &err), HEDDLE_EINVAL);
    SAYS("twice");
    FAILS(heddle_executor_bind_output(t.ex, 1, view, &err), HEDDLE_EINVAL);
    SAYS("three");
    OK(heddle_executor_bind_output(t.ex, 0, view, &err)); /* its own: as it was */
    FAILS(heddle_executor_bind_input(t.ex, 0, view, &err), HEDDLE_EINVAL);
    OK(heddle_executor_run(t.ex, HEDDLE_FOREVER, &err));
    expect_output(&t, 0, 2);
    OK(heddle_executor_set_input(t.ex, 0, view, &err)); /* a copy: twice and three times of 2 */
    OK(heddle_executor_run(t.ex, HEDDLE_FOREVER, &err));
    expect_output(&t, 0, 4);
    expect_output(&t, 1, 6);
    heddle_tensor_release(view);
    heddle_tensor_release(in);
    rig_end(&t);
  }
}

/* Bound, and unbound while another program is wanted; then the first program is wanted again. */
static void unbound_memory_is_left_alone(void **state) {
  (void)state;
  for (size_t k = 0; k < N_MODES; k++) {
    if (!settings_fit(modes[k])) continue;
    sketch s = {0};
    int x = put_input(&s, "x", "[\"n\"]", "\"float32\"");
    put_head(&s, NODE(&s, "Add", "twice", k == 0 ? NULL : "sim:0", x, x));
    rig t;
    make(&t, modes[k], &s);
    static _Alignas(4096) float memory[N];
    const int64_t small[] = {N / 2}, large[] = {N};
    heddle_tensor *a = floats(large, 1, 1, 0), *b = floats(small, 1, 1, 0), *bound = NULL;
    OK(heddle_tensor_wrap(memory, HEDDLE_FLOAT32, large, 1, NULL, NULL, NULL, &bound, &err));
    OK(heddle_executor_set_input(t.ex, 0, a, &err));
    OK(heddle_executor_bind_output(t.ex, 0, bound, &err));
    OK(heddle_executor_run(t.ex, HEDDLE_FOREVER, &err));
    assert_true(memory[0] == 2 && memory[N - 1] == 2);
    OK(heddle_executor_set_input(t.ex, 0, b, &err));
    OK(heddle_executor_bind_output(t.ex, 0, NULL, &err));
    OK(heddle_executor_set_input(t.ex, 0, a, &err));
    memset(memory, 0, sizeof memory);
    OK(heddle_executor_run(t.ex, HEDDLE_FOREVER, &err));
    expect_output(&t, 0, 2);
    assert_true(memory[0] == 0 && memory[N - 1] == 0);
    heddle_tensor_release(bound);
    heddle_tensor_release(a);
    heddle_tensor_release(b);
    rig_end(&t);
  }
}

/* Binding fails, in one way or another: what was bound before stays bound. */
static void a_refused_binding_changes_nothing(void **state) {
  (void)state;
  for (size_t k = 0; k < N_MODES; k++) {
    if (!settings_fit(modes[k])) continue;
    sketch s = {0};
    int x = put_input(&s, "x", "[256]", "\"float32\"");
    put_head(&s, NODE(&s, "Add", "twice", k == 0 ? NULL : "sim:0", x, x));
    rig t;
    make(&t, modes[k], &s);
    static _Alignas(4096) float memory[2 * N];
    const int64_t shape[] = {N}, other[] = {2 * N};
    heddle_tensor *in = floats(shape, 1, 1, 0), *good = NULL, *bad = NULL;
    OK(heddle_tensor_wrap(memory, HEDDLE_FLOAT32, shape, 1, NULL, NULL, NULL, &good, &err));
    OK(heddle_tensor_wrap(memory, HEDDLE_FLOAT32, other, 1, NULL, NULL, NULL, &bad, &err));
    OK(heddle_executor_set_input(t.ex, 0, in, &err));
    OK(heddle_executor_bind_output(t.ex, 0, good, &err));
    FAILS(heddle_executor_bind_output(t.ex, 0, bad, &err), HEDDLE_EINVAL);
    SAYS("twice");
    memset(memory, 0, sizeof memory);
    OK(heddle_executor_run(t.ex, HEDDLE_FOREVER, &err));
    assert_true(memory[0] == 2 && memory[N - 1] == 2 && memory[N] == 0);
    heddle_tensor_release(good);
    heddle_tensor_release(bad);
    heddle_tensor_release(in);
    rig_end(&t);
  }
}

static void options_have_limits(void **state) {
  (void)state;
  sketch s = {0};
  int x = put_input(&s, "x", "[8]", "\"float32\"");
  put_head(&s, NODE(&s, "Relu", "y", "sim:0", x));
  heddle_context *ctx = context("threads=1");
  heddle_graph *g = graph_of(&s);
  heddle_model *m = NULL;
  heddle_model_options o = {.struct_size = sizeof o, .devices = "cpu,sim:0,sim:1", .max_streams = 0x55555556};
  FAILS(heddle_model_create(ctx, g, NULL, &o, &m, &err), HEDDLE_EINVAL);
  SAYS("64");
  o.max_streams = 64;
  OK(heddle_model_create(ctx, g, NULL, &o, &m, &err));
  heddle_executor *ex = NULL;
  OK(heddle_executor_create(m, &ex, &err));
  heddle_executor_release(ex);
  heddle_model_release(m);
  heddle_graph_release(g);
  heddle_context_release(ctx);
  assert_int_equal(heddle__alloc_live(), 0);
}

CASES(CASE_TWICE(outputs_are_not_bound_twice), CASE_TWICE(unbound_memory_is_left_alone),
      CASE_TWICE(a_refused_binding_changes_nothing), CASE(options_have_limits))
