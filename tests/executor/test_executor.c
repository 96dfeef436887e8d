/* tests/executor/test_executor.c: every function of executor.h on a small graph over cpu and two sims, in each of sim's
 * modes: what is set, bound in place, read, shared, profiled and explained.
 */
#include "executor/rig.h"

static const char *const modes[] = {"threads=1",
                                    "sim.delay_us=50;sim.seed=3",
                                    "sim.capture=0",
                                    "sim.coherent=0",
                                    "sim.coherent=0;sim.capture=0;sim.delay_us=20",
                                    "sim.views=0",
                                    "sim.views=0;sim.bare=1",
                                    "sim.bare=1",
                                    "sim.unified=1",
                                    "sim.unified=1;sim.coherent=0",
                                    "sim.peer=off",
                                    "sim.import=0",
                                    "sim.import_alignment=4096",
                                    "opencl.unified=0",
                                    "opencl.unified=0;layers=check",
                                    "opencl.unified=0;opencl.peer=0;opencl.max_streams=1",
                                    "vulkan.unified=0;layers=check",
                                    "vulkan.timeline=0;vulkan.max_streams=1",
                                    "cuda.capture=0;layers=check",
                                    "cuda.peer=0;cuda.max_streams=1;cuda.pools=0",
                                    "rocm.peer=0;layers=check"};
enum { N_MODES = sizeof modes / sizeof modes[0], ROWS = 2, COLUMNS = 4, COUNT = 8 };

/* e = relu((x + w) * w) + (x + w) + x over three devices; heads e and c. */
typedef struct bench {
  heddle_context *ctx;
  heddle_graph *graph;
  heddle_params *params;
  heddle_model *model;
  heddle_executor *ex;
  heddle_tensor *x, *w;
} bench;

static const int64_t shape[] = {ROWS, COLUMNS};

static heddle_graph *mixed_graph(const char *x_shape) {
  static sketch s;
  memset(&s, 0, sizeof s);
  int x = put_input(&s, "x", x_shape, "\"float32\"");
  int w = put_input(&s, "w", "[2,4]", "\"float32\"");
  int a = NODE(&s, "Add", "a", "cpu", x, w);
  int b = NODE(&s, "Mul", "b", "sim:0", a, w);
  int c = NODE(&s, "Relu", "c", "sim:0", b);
  int d = NODE(&s, "Add", "d", "sim:1", c, a);
  int e = NODE(&s, "Add", "e", "cpu", d, x);
  put_head(&s, e);
  put_head(&s, c);
  return graph_of(&s);
}

static void set_up(bench *t, const char *settings, const heddle_model_options *options) {
  memset(t, 0, sizeof *t);
  heddle_model_options o = {.struct_size = sizeof o, .devices = on("cpu,sim:0,sim:1")};
  if (options != NULL) o = *options;
  t->ctx = context(settings);
  t->graph = mixed_graph("[2,4]");
  t->x = floats(shape, 2, 1, 1);
  t->w = floats(shape, 2, -3, 1);
  const char *names[] = {"w"};
  OK(heddle_params_create(names, &t->w, 1, &t->params, &err));
  OK(heddle_model_create(t->ctx, t->graph, t->params, &o, &t->model, &err));
  OK(heddle_executor_create(t->model, &t->ex, &err));
}

static void tear_down(bench *t) {
  heddle_executor_release(t->ex);
  heddle_model_release(t->model);
  heddle_params_release(t->params);
  heddle_graph_release(t->graph);
  heddle_tensor_release(t->x);
  heddle_tensor_release(t->w);
  heddle_context_release(t->ctx);
  assert_int_equal(heddle__alloc_live(), 0);
}

static void expect_values(const float *out, const heddle_tensor *x, const heddle_tensor *w, bool head_c) {
  for (int i = 0; i < COUNT; i++) {
    float X = data_of(x)[i], W = data_of(w)[i], A = X + W, B = A * W, C = B > 0 ? B : 0, E = C + A + X;
    float want = head_c ? C : E;
    if (out[i] != want) fail_msg("element %d is %g, expected %g", i, (double)out[i], (double)want);
  }
}

static void expect_run(bench *t, const heddle_tensor *x, const heddle_tensor *w) {
  heddle_tensor *out = NULL, *copy = floats(shape, 2, 0, 0);
  OK(heddle_executor_run(t->ex, HEDDLE_FOREVER, &err));
  for (uint32_t i = 0; i < 2; i++) {
    OK(heddle_executor_view_output(t->ex, i, &out, &err));
    expect_values(data_of(out), x, w, i == 1);
    heddle_tensor_release(out);
    OK(heddle_executor_get_output(t->ex, i, copy, &err));
    expect_values(data_of(copy), x, w, i == 1);
  }
  heddle_tensor_release(copy);
}

/* ---- in each mode */

static void runs_in_all_modes(void **state) {
  (void)state;
  for (int k = 0; k < N_MODES; k++) {
    if (!settings_fit(modes[k])) continue;
    for (uint32_t flags = 0; flags < 16; flags = flags == 0 ? 1 : flags * 2) {
      if (flags == HEDDLE_MODEL_IGNORE_ANNOTATIONS) continue;
      bench t;
      heddle_model_options o = {.struct_size = sizeof o, .devices = on("cpu,sim:0,sim:1"), .flags = flags};
      set_up(&t, modes[k], &o);
      for (int i = 0; i < 5; i++) {
        heddle_tensor *x = floats(shape, 2, (float)i, -0.5f);
        OK(heddle_executor_set_input(t.ex, 0, x, &err));
        expect_run(&t, x, t.w);
        expect_run(&t, x, t.w);
        heddle_tensor_release(x);
      }
      tear_down(&t);
    }
  }
}

static heddle_tensor *wrapped(float *data) {
  heddle_tensor *t = NULL;
  OK(heddle_tensor_wrap(data, HEDDLE_FLOAT32, shape, 2, NULL, NULL, NULL, &t, &err));
  return t;
}

/* Inputs and outputs in place, at aligned addresses and at such that have to be copied, changed between runs. */
static void binds_in_all_modes(void **state) {
  (void)state;
  static _Alignas(4096) float room[4][2048];
  for (int k = 0; k < N_MODES; k++) {
    if (!settings_fit(modes[k])) continue;
    bench t;
    set_up(&t, modes[k], NULL);
    for (int round = 0; round < 6; round++) {
      int shift = round % 3 == 2 ? 3 : 0; /* floats off the page */
      float *in = room[round % 2] + shift, *out = room[2 + round % 2] + shift;
      heddle_tensor *x = wrapped(in), *y = wrapped(out);
      for (int i = 0; i < COUNT; i++) in[i] = (float)(round + i);
      OK(heddle_executor_bind_input(t.ex, 0, x, &err));
      OK(heddle_executor_bind_output(t.ex, 0, y, &err));
      for (int run = 0; run < 2; run++) {
        for (int i = 0; i < COUNT; i++) in[i] += (float)run; /* what is bound is read at each run */
        memset(out, 0, sizeof(float) * COUNT);
        OK(heddle_executor_run(t.ex, HEDDLE_FOREVER, &err));
        expect_values(out, x, t.w, false);
        heddle_tensor *view = NULL;
        OK(heddle_executor_view_output(t.ex, 0, &view, &err));
        assert_ptr_equal(heddle_tensor_data(view), out);
        heddle_tensor_release(view);
      }
      heddle_tensor_release(x);
      heddle_tensor_release(y);
    }
    /* Back to memory of the executor's. */
    OK(heddle_executor_bind_output(t.ex, 0, NULL, &err));
    OK(heddle_executor_set_input(t.ex, 0, t.x, &err));
    expect_run(&t, t.x, t.w);
    tear_down(&t);
  }
}

/* A constant that is set late, in all ways, and the parameters of one executor used by another. */
static void late_params_in_all_modes(void **state) {
  (void)state;
  for (int k = 0; k < N_MODES; k++) {
    if (!settings_fit(modes[k])) continue;
    bench t;
    set_up(&t, modes[k], NULL);
    OK(heddle_executor_set_input(t.ex, 0, t.x, &err));
    expect_run(&t, t.x, t.w);
    heddle_tensor *w = floats(shape, 2, 2, 0.25f), *back = NULL;
    OK(heddle_executor_set_input_by_name(t.ex, "w", w, &err));
    expect_run(&t, t.x, w);
    heddle_executor *other = NULL, *mine = t.ex;
    OK(heddle_executor_create(t.model, &other, &err));
    OK(heddle_executor_set_input(other, 0, t.x, &err));
    t.ex = other;
    expect_run(&t, t.x, t.w);
    OK(heddle_executor_share_params(other, mine, t.params, &err));
    expect_run(&t, t.x, w);
    OK(heddle_executor_get_input(other, 1, &back, &err));
    assert_memory_equal(data_of(back), data_of(w), heddle_tensor_bytes(w));
    heddle_tensor_release(back);
    heddle_io_info info = {.struct_size = sizeof info};
    OK(heddle_executor_input_info(other, 1, &info, &err));
    assert_int_equal(info.is_param, 1);
    /* From the model's own constant, and from a blob. */
    OK(heddle_executor_load_params(mine, t.params, &err));
    t.ex = mine;
    expect_run(&t, t.x, t.w);
    heddle_executor *third = NULL;
    OK(heddle_executor_create(t.model, &third, &err));
    OK(heddle_executor_share_params(other, third, t.params, &err));
    /* All or none: the second name has no value there, so the first is not taken either. */
    const char *const both[] = {"w", "x"};
    heddle_params *two = NULL;
    OK(heddle_params_create(both, (heddle_tensor *const[]){w, w}, 2, &two, &err));
    OK(heddle_executor_set_input_by_name(third, "w", w, &err));
    FAILS(heddle_executor_share_params(other, third, two, &err), HEDDLE_EINVAL);
    SAYS("'x'");
    heddle_params_release(two);
    heddle_executor_release(third);
    t.ex = other;
    expect_run(&t, t.x, t.w);
    heddle_executor_release(mine);
    heddle_tensor_release(w);
    tear_down(&t);
  }
}

static void runs_to_every_node(void **state) {
  (void)state;
  for (int k = 0; k < N_MODES; k++) {
    if (!settings_fit(modes[k])) continue;
    bench t;
    set_up(&t, modes[k], NULL);
    heddle_tensor *out = NULL;
    FAILS(heddle_executor_run_to(t.ex, "a", 0, &out, &err), HEDDLE_EINVAL);
    SAYS("input 'x' was never set");
    OK(heddle_executor_set_input(t.ex, 0, t.x, &err));
    expect_run(&t, t.x, t.w);
    const char *names[] = {"x", "w", "a", "b", "c", "d", "e", "#4"};
    for (int n = 0; n < 8; n++) {
      OK(heddle_executor_run_to(t.ex, names[n], 0, &out, &err));
      for (int i = 0; i < COUNT; i++) {
        float X = data_of(t.x)[i], W = data_of(t.w)[i], A = X + W, B = A * W, C = B > 0 ? B : 0;
        const float want[] = {X, W, A, B, C, C + A, C + A + X, C};
        if (data_of(out)[i] != want[n])
          fail_msg("%s[%d] is %g, not %g", names[n], i, (double)data_of(out)[i], (double)want[n]);
      }
      heddle_tensor_release(out);
    }
    /* The outputs of the last run are still there. */
    OK(heddle_executor_view_output(t.ex, 0, &out, &err));
    expect_values(data_of(out), t.x, t.w, false);
    heddle_tensor_release(out);
    FAILS(heddle_executor_run_to(t.ex, "nobody", 0, &out, &err), HEDDLE_ENOTFOUND);
    FAILS(heddle_executor_run_to(t.ex, "a", 3, &out, &err), HEDDLE_ENOTFOUND);
    tear_down(&t);
  }
}

static void profiles_in_all_modes(void **state) {
  (void)state;
  for (int k = 0; k < N_MODES; k++) {
    if (!settings_fit(modes[k])) continue;
    bench t;
    set_up(&t, modes[k], NULL);
    OK(heddle_executor_set_input(t.ex, 0, t.x, &err));
    for (int round = 0; round < 2; round++) {
      const heddle_profile_entry *entries = NULL;
      size_t n = 0, operators = 0;
      OK(heddle_executor_profile(t.ex, &entries, &n, &err));
      for (size_t i = 0; i < n; i++) {
        assert_true(entries[i].end_ns >= entries[i].start_ns);
        if (i > 0) assert_true(entries[i].start_ns >= entries[i - 1].start_ns);
        operators += strcmp(entries[i].op, "Add") == 0 || strcmp(entries[i].op, "Mul") == 0 ||
                     strcmp(entries[i].op, "Relu") == 0;
      }
      assert_int_equal(operators, 5);
      expect_run(&t, t.x, t.w);
    }
    tear_down(&t);
  }
}

static void traces_a_run(void **state) {
  (void)state;
  bench t;
  set_up(&t, "sim.delay_us=20", NULL);
  char path[] = "/tmp/heddle_trace_XXXXXX", text[1 << 14];
  int fd = mkstemp(path);
  assert_true(fd >= 0);
  FAILS(heddle_trace_write(t.ctx, path, &err), HEDDLE_EINVAL);
  OK(heddle_trace_begin(t.ctx, &err));
  OK(heddle_executor_set_input(t.ex, 0, t.x, &err));
  expect_run(&t, t.x, t.w);
  OK(heddle_trace_write(t.ctx, path, &err));
  FILE *f = fdopen(fd, "r");
  size_t n = fread(text, 1, sizeof text - 1, f);
  text[n] = '\0';
  fclose(f);
  remove(path);
  const char *words[] = {"\"cpu:0\"", on("\"sim:0\""), on("\"sim:1\""), "Relu c", "\"runs\"", "\"ph\":\"X\""};
  for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
    if (strstr(text, words[i]) == NULL) fail_msg("no '%s' in the trace: %s", words[i], text);
  FAILS(heddle_trace_write(t.ctx, path, &err), HEDDLE_EINVAL);
  expect_run(&t, t.x, t.w);
  tear_down(&t);
}

/* ---- shapes */

static void shapes_change(void **state) {
  (void)state;
  heddle_context *ctx = context("sim.delay_us=10");
  static sketch s;
  memset(&s, 0, sizeof s);
  int x = put_input(&s, "x", "[\"n\",3]", "\"float32\"");
  int y = put_input(&s, "y", "[\"n\",3]", "\"float32\"");
  int a = NODE(&s, "Add", "a", "sim:0", x, y);
  int b = NODE(&s, "Mul", "b", "cpu", a, y);
  put_head(&s, b);
  heddle_graph *g = graph_of(&s);
  heddle_model *m = NULL;
  heddle_executor *ex = NULL;
  heddle_model_options o = {.struct_size = sizeof o, .devices = on("cpu,sim:0"), .max_programs = 2};
  OK(heddle_model_create(ctx, g, NULL, &o, &m, &err));
  OK(heddle_executor_create(m, &ex, &err));
  FAILS(heddle_executor_run(ex, HEDDLE_FOREVER, &err), HEDDLE_EINVAL);
  SAYS("'x' was never set");
  heddle_io_info info = {.struct_size = sizeof info};
  OK(heddle_executor_input_info(ex, 0, &info, &err));
  assert_int_equal(info.ndim, 2);
  assert_true(info.shape[0] == -1 && info.shape[1] == 3);
  const int64_t rows[] = {1, 5, 1, 7, 0, 5, 2};
  for (size_t k = 0; k < sizeof rows / sizeof rows[0]; k++) {
    int64_t dims[] = {rows[k], 3};
    heddle_tensor *xt = floats(dims, 2, 1, 1), *yt = floats(dims, 2, 2, 1), *out = NULL;
    OK(heddle_executor_set_input(ex, 0, xt, &err));
    if (k > 0 && rows[k] != rows[k - 1]) {
      FAILS(heddle_executor_run(ex, HEDDLE_FOREVER, &err), HEDDLE_EINVAL);
      SAYS("'n'");
    }
    OK(heddle_executor_set_input(ex, 1, yt, &err));
    OK(heddle_executor_run(ex, HEDDLE_FOREVER, &err));
    OK(heddle_executor_output_info(ex, 0, &info, &err));
    assert_true(info.ndim == 2 && info.shape[0] == rows[k]);
    OK(heddle_executor_view_output(ex, 0, &out, &err));
    for (int64_t i = 0; i < 3 * rows[k]; i++)
      assert_true(data_of(out)[i] == (data_of(xt)[i] + data_of(yt)[i]) * data_of(yt)[i]);
    heddle_tensor_release(out);
    heddle_tensor_release(xt);
    heddle_tensor_release(yt);
  }
  heddle_executor_release(ex);
  heddle_model_release(m);
  heddle_graph_release(g);
  heddle_context_release(ctx);
  assert_int_equal(heddle__alloc_live(), 0);
}

/* The second operand of a Reshape decides the shape: its value is part of the key. */
static void a_value_decides_the_shape(void **state) {
  (void)state;
  heddle_context *ctx = context("threads=1");
  static sketch s;
  memset(&s, 0, sizeof s);
  int x = put_input(&s, "x", "[2,6]", "\"float32\"");
  int to = put_input(&s, "to", "[2]", "\"int64\"");
  int r = NODE(&s, "Reshape", "r", NULL, x, to);
  int y = NODE(&s, "Relu", "y", "sim:0", r);
  put_head(&s, y);
  heddle_graph *g = graph_of(&s);
  heddle_model *m = NULL;
  heddle_executor *ex = NULL;
  heddle_model_options o = {.struct_size = sizeof o, .devices = on("cpu,sim:0")};
  OK(heddle_model_create(ctx, g, NULL, &o, &m, &err));
  OK(heddle_executor_create(m, &ex, &err));
  const int64_t xs[] = {2, 6}, two[] = {2};
  heddle_tensor *xt = floats(xs, 2, 0, 1), *shapes = NULL;
  OK(heddle_executor_set_input(ex, 0, xt, &err));
  FAILS(heddle_executor_run(ex, HEDDLE_FOREVER, &err), HEDDLE_EINVAL);
  SAYS("'to'");
  int64_t values[2] = {3, 4};
  OK(heddle_tensor_wrap(values, (heddle_dtype){HEDDLE_DTYPE_INT, 64, 1}, two, 1, NULL, NULL, NULL, &shapes, &err));
  for (int k = 0; k < 4; k++) {
    values[0] = k == 3 ? 5 : k == 1 ? 4 : 3;
    values[1] = k == 3 ? 5 : 12 / values[0];
    OK(heddle_executor_set_input(ex, 1, shapes, &err));
    if (k == 3) {
      heddle_status st = heddle_executor_run(ex, HEDDLE_FOREVER, &err);
      assert_int_not_equal(st, HEDDLE_OK);
      break;
    }
    OK(heddle_executor_run(ex, HEDDLE_FOREVER, &err));
    heddle_io_info info = {.struct_size = sizeof info};
    OK(heddle_executor_output_info(ex, 0, &info, &err));
    assert_true(info.shape[0] == values[0] && info.shape[1] == values[1]);
  }
  heddle_tensor_release(shapes);
  heddle_tensor_release(xt);
  heddle_executor_release(ex);
  heddle_model_release(m);
  heddle_graph_release(g);
  heddle_context_release(ctx);
  assert_int_equal(heddle__alloc_live(), 0);
}

/* ---- words and checks */

static void refuses_what_does_not_fit(void **state) {
  (void)state;
  bench t;
  set_up(&t, "threads=1", NULL);
  const int64_t wrong[] = {4, 2};
  static float plain[2 * COUNT];
  heddle_tensor *w = floats(wrong, 2, 0, 1), *strided = NULL, *ints = NULL, *on_device = NULL, *odd = NULL;
  const int64_t strides[] = {8, 2};
  OK(heddle_tensor_wrap(plain, HEDDLE_FLOAT32, shape, 2, strides, NULL, NULL, &strided, &err));
  OK(heddle_tensor_wrap(plain, (heddle_dtype){HEDDLE_DTYPE_INT, 32, 1}, shape, 2, NULL, NULL, NULL, &ints, &err));
  OK(heddle_tensor_wrap((char *)plain + 2, HEDDLE_FLOAT32, shape, 2, NULL, NULL, NULL, &odd, &err));
  heddle_device *sim = NULL;
  OK(heddle_context_find_device(t.ctx, on("sim:0"), &sim, &err));
  OK(heddle_tensor_create(sim, HEDDLE_FLOAT32, shape, 2, &on_device, &err));
  FAILS(heddle_executor_run(t.ex, HEDDLE_FOREVER, &err), HEDDLE_EINVAL);
  SAYS("input 'x' was never set");
  FAILS(heddle_executor_set_input(t.ex, 7, t.x, &err), HEDDLE_ENOTFOUND);
  FAILS(heddle_executor_set_input_by_name(t.ex, "q", t.x, &err), HEDDLE_ENOTFOUND);
  SAYS("its inputs are 'x'");
  FAILS(heddle_executor_set_input(t.ex, 0, w, &err), HEDDLE_EINVAL);
  SAYS("[2, 4]");
  FAILS(heddle_executor_set_input(t.ex, 0, ints, &err), HEDDLE_EINVAL);
  SAYS("int32");
  FAILS(heddle_executor_bind_input(t.ex, 0, strided, &err), HEDDLE_EINVAL);
  SAYS("strides");
  FAILS(heddle_executor_bind_input(t.ex, 0, odd, &err), HEDDLE_EINVAL);
  SAYS("aligned");
  FAILS(heddle_executor_bind_output(t.ex, 0, w, &err), HEDDLE_EINVAL);
  SAYS("[4, 2]");
  FAILS(heddle_executor_get_output(t.ex, 0, t.x, &err), HEDDLE_EINVAL);
  SAYS("no finished run");
  /* A strided one and one on a device can be set, since setting copies. */
  for (int i = 0; i < 2 * COUNT; i++) plain[i] = (float)i;
  OK(heddle_executor_set_input(t.ex, 0, strided, &err));
  OK(heddle_executor_run(t.ex, HEDDLE_FOREVER, &err));
  heddle_tensor *gathered = NULL;
  OK(heddle_executor_get_input(t.ex, 0, &gathered, &err));
  for (int i = 0; i < COUNT; i++) assert_true(data_of(gathered)[i] == (float)(2 * i));
  expect_run(&t, gathered, t.w);
  heddle_tensor_release(gathered);
  OK(heddle_tensor_copy(on_device, t.x, &err));
  OK(heddle_executor_set_input(t.ex, 0, on_device, &err));
  expect_run(&t, t.x, t.w);
  /* A bound one on a device is read by each run. */
  OK(heddle_executor_bind_input(t.ex, 0, on_device, &err));
  expect_run(&t, t.x, t.w);
  OK(heddle_tensor_copy(on_device, t.w, &err));
  expect_run(&t, t.w, t.w);
  /* Overlap. */
  heddle_tensor *in = wrapped(plain), *out = wrapped(plain + 2);
  OK(heddle_executor_bind_input(t.ex, 0, in, &err));
  FAILS(heddle_executor_bind_output(t.ex, 0, out, &err), HEDDLE_EINVAL);
  SAYS("overlaps");
  expect_run(&t, in, t.w);
  heddle_tensor *all[] = {w, strided, ints, on_device, odd, in, out};
  for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) heddle_tensor_release(all[i]);
  tear_down(&t);
}

static void tells_what_there_is(void **state) {
  (void)state;
  bench t;
  const char *keep[] = {"b", "a:0"};
  heddle_model_options o = {.struct_size = sizeof o, .devices = on("cpu,sim:0,sim:1"), .keep = keep, .n_keep = 2};
  set_up(&t, "threads=1", &o);
  assert_int_equal(heddle_executor_input_count(t.ex), 2);
  assert_int_equal(heddle_executor_output_count(t.ex), 4);
  assert_int_equal(heddle_executor_input_index(t.ex, "w"), 1);
  assert_int_equal(heddle_executor_input_index(t.ex, "a"), -1);
  assert_int_equal(heddle_executor_output_index(t.ex, "b"), 2);
  assert_int_equal(heddle_executor_output_index(t.ex, "z"), -1);
  heddle_io_info info = {.struct_size = sizeof info};
  OK(heddle_executor_input_info(t.ex, 1, &info, &err));
  assert_true(info.is_param == 1 && info.ndim == 2 && info.shape[1] == COLUMNS);
  OK(heddle_executor_output_info(t.ex, 3, &info, &err));
  assert_string_equal(info.name, "a");
  assert_true(info.ndim == 2 && info.shape[0] == ROWS);
  OK(heddle_executor_set_input(t.ex, 0, t.x, &err));
  expect_run(&t, t.x, t.w);
  heddle_tensor *a = NULL;
  OK(heddle_executor_view_output(t.ex, 3, &a, &err));
  for (int i = 0; i < COUNT; i++) assert_true(data_of(a)[i] == data_of(t.x)[i] + data_of(t.w)[i]);
  heddle_executor_stats stats = {.struct_size = sizeof stats};
  OK(heddle_executor_get_stats(t.ex, &stats, &err));
  assert_int_equal(stats.runs, 1);
  assert_true(stats.copies > 0 || !is_sim()); /* others may share pages, and copy nothing */
  assert_true(stats.bytes_copied >= stats.copies * 32 && stats.device_bytes > 0);
  assert_int_equal(stats.orphan_bytes, 0);
  char *text = NULL;
  OK(heddle_executor_explain(t.ex, HEDDLE_EXPLAIN_JSON, &text, &err));
  assert_int_equal(text[0], '{');
  heddle_free(text);
  /* The view outlives the executor, the model and our reference to the context. */
  heddle_executor_release(t.ex);
  t.ex = NULL;
  heddle_model_release(t.model);
  t.model = NULL;
  heddle_context_release(t.ctx);
  t.ctx = NULL;
  for (int i = 0; i < COUNT; i++) assert_true(data_of(a)[i] == data_of(t.x)[i] + data_of(t.w)[i]);
  heddle_tensor_release(a);
  tear_down(&t);
}

static void models_check_their_options(void **state) {
  (void)state;
  heddle_context *ctx = context("threads=1");
  heddle_graph *g = mixed_graph("[2,4]");
  heddle_model *m = NULL;
  const char *rules[] = {on("c=sim:1"), "nothing", on("c=sim:7"), "c=moon:0"};
  heddle_model_options o = {.struct_size = sizeof o, .devices = on("cpu,sim:0,sim:1"), .place = rules, .n_place = 1};
  OK(heddle_model_create(ctx, g, NULL, &o, &m, &err));
  assert_int_equal(heddle_model_device_count(m), 3);
  assert_string_equal(heddle_device_name(heddle_model_device(m, 1)), on("sim:0"));
  assert_ptr_equal(heddle_model_graph(m), g);
  char *text = NULL;
  OK(heddle_model_explain(m, HEDDLE_EXPLAIN_TEXT, NULL, NULL, 0, &text, &err));
  assert_non_null(strstr(text, on("rule c=sim:1")));
  heddle_free(text);
  heddle_model_release(m);
  for (int i = 1; i < 4; i++) {
    o.place = &rules[i];
    assert_int_not_equal(heddle_model_create(ctx, g, NULL, &o, &m, &err), HEDDLE_OK);
    assert_null(m);
    SAYS(rules[i]);
  }
  o.n_place = 0;
  const char *keep[] = {"nobody"};
  o.keep = keep;
  o.n_keep = 1;
  FAILS(heddle_model_create(ctx, g, NULL, &o, &m, &err), HEDDLE_ENOTFOUND);
  o.n_keep = 0;
  heddle_tensor *q = floats(shape, 2, 0, 1);
  const char *names[] = {"quark"};
  heddle_params *p = NULL;
  OK(heddle_params_create(names, &q, 1, &p, &err));
  OK(heddle_model_create(ctx, g, p, &o, &m, &err)); /* with a warning: nothing takes quark */
  heddle_model_release(m);
  heddle_params_release(p);
  o.devices = "cpu";
  heddle_executor *ex = NULL;
  OK(heddle_model_create(ctx, g, NULL, &o, &m, &err));
  FAILS(heddle_executor_create(m, &ex, &err), HEDDLE_ENODEV);
  heddle_model_release(m);
  o.flags = HEDDLE_MODEL_IGNORE_ANNOTATIONS;
  OK(heddle_model_create(ctx, g, NULL, &o, &m, &err));
  OK(heddle_executor_create(m, &ex, &err));
  heddle_executor_release(ex);
  heddle_model_release(m);
  heddle_tensor_release(q);
  heddle_graph_release(g);
  heddle_context_release(ctx);
  assert_int_equal(heddle__alloc_live(), 0);
}

CASES(CASE_ALL(runs_in_all_modes), CASE_ALL(binds_in_all_modes), CASE_TWICE(late_params_in_all_modes),
      CASE_TWICE(runs_to_every_node), CASE_ALL(profiles_in_all_modes), CASE_TWICE(traces_a_run),
      CASE_ALL(shapes_change), CASE_TWICE(a_value_decides_the_shape), CASE_TWICE(refuses_what_does_not_fit),
      CASE_TWICE(tells_what_there_is), CASE_TWICE(models_check_their_options))
