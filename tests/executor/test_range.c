/* tests/executor/test_range.c: programs that cover ranges of shapes: they grow by powers of two, smaller shapes are sizes of
 * them whose proof holds, launches are resized or prepared again, and what fails in between leaves the executor usable.
 * labels: threads
 */
#include "executor/rig.h"

#include <math.h>
#include <pthread.h>

#include "executor/prove.h"
#include "executor/range.h"
#include "executor/state.h"

enum { WIDTH = 16, MOST = 128 };

/* A product, then attention of its rows to each other, and the input added. */
static void sketch_rows(sketch *s) {
  memset(s, 0, sizeof *s);
  int x = put_input(s, "x", "[\"n\",16]", "\"float32\""), w = put_input(s, "w", "[16,16]", "\"float32\"");
  int y = NODE(s, "Relu", "r", NULL, NODE(s, "MatMul", "m", NULL, x, w));
  int t = NODE(s, "Transpose", "t", NULL, y);
  int a = NODE(s, "Softmax", "s", NULL, NODE(s, "MatMul", "q", NULL, y, t));
  int z = NODE(s, "MatMul", "v", NULL, a, y);
  put_head(s, NODE(s, "Add", "a", NULL, z, x));
}

typedef struct subject {
  heddle_context *ctx;
  heddle_graph *graph;
  heddle_params *params;
  heddle_model *model;
  float w[WIDTH * WIDTH];
} subject;

static heddle_status make(subject *t, const char *devices, const char *key, const char *value, uint32_t in_flight,
                          const char *dim) {
  static sketch s;
  const char *layers = strcmp(key, "sim.capture") == 0 ? "off" : "check,fault"; /* a layer allocates */
  const heddle_setting settings[] = {{"threads", "2"}, {"log", "off"}, {"layers", layers}, {key, value}};
  const int64_t square[] = {WIDTH, WIDTH};
  heddle_tensor *w = floats(square, 2, -0.125f, 0.001f);
  const char *name = "w";
  OK(heddle_context_create(settings, 4, NULL, NULL, &t->ctx, &err));
  sketch_rows(&s);
  t->graph = graph_of(&s);
  memcpy(t->w, data_of(w), sizeof t->w);
  OK(heddle_params_create(&name, &w, 1, &t->params, &err));
  heddle_tensor_release(w);
  const heddle_model_options o = {
      .struct_size = sizeof o, .devices = devices, .in_flight = in_flight, .dims = &dim, .n_dims = dim != NULL ? 1 : 0};
  return heddle_model_create(t->ctx, t->graph, t->params, &o, &t->model, &err);
}

static void set_up(subject *t, const char *devices, const char *key, const char *value, uint32_t in_flight) {
  OK(make(t, devices, key, value, in_flight, NULL));
}

static void tear_down(subject *t) {
  heddle_model_release(t->model);
  heddle_params_release(t->params);
  heddle_graph_release(t->graph);
  heddle_context_release(t->ctx);
  assert_int_equal(heddle__alloc_live(), 0);
}

static void expected(const subject *t, int64_t n, const float *x, float *out) {
  static _Thread_local float y[MOST * WIDTH];
  for (int64_t r = 0; r < n; r++)
    for (int c = 0; c < WIDTH; c++) {
      float sum = 0;
      for (int k = 0; k < WIDTH; k++) sum += x[r * WIDTH + k] * t->w[k * WIDTH + c];
      y[r * WIDTH + c] = sum > 0 ? sum : 0;
    }
  for (int64_t r = 0; r < n; r++) {
    double weight[MOST], sum = 0, most = -1e30;
    for (int64_t k = 0; k < n; k++) {
      weight[k] = 0;
      for (int c = 0; c < WIDTH; c++) weight[k] += (double)y[r * WIDTH + c] * (double)y[k * WIDTH + c];
      most = weight[k] > most ? weight[k] : most;
    }
    for (int64_t k = 0; k < n; k++) sum += weight[k] = exp(weight[k] - most);
    for (int c = 0; c < WIDTH; c++) {
      double z = 0;
      for (int64_t k = 0; k < n; k++) z += weight[k] / sum * (double)y[k * WIDTH + c];
      out[r * WIDTH + c] = (float)z + x[r * WIDTH + c];
    }
  }
}

/* A run with so many rows, of an input that is copied or lent. On failure gives the status. */
static heddle_status run(const subject *t, heddle_executor *ex, int64_t n, bool lend, heddle_error *why) {
  const int64_t shape[] = {n, WIDTH};
  heddle_tensor *x = NULL, *out = NULL;
  static _Thread_local float want[MOST * WIDTH];
  heddle_status s = heddle_tensor_create(NULL, HEDDLE_FLOAT32, shape, 2, &x, why);
  for (int64_t i = 0; s == HEDDLE_OK && i < n * WIDTH; i++)
    ((float *)heddle_tensor_data(x))[i] = 0.02f * (float)((i * 7 + n) % 53) - 0.4f;
  if (s == HEDDLE_OK) s = lend ? heddle_executor_bind_input(ex, 0, x, why) : heddle_executor_set_input(ex, 0, x, why);
  if (s == HEDDLE_OK) s = heddle_executor_run(ex, HEDDLE_FOREVER, why);
  if (s == HEDDLE_OK) s = heddle_executor_view_output(ex, 0, &out, why);
  if (s == HEDDLE_OK) {
    int64_t got[2];
    assert_int_equal(heddle_tensor_ndim(out), 2);
    memcpy(got, heddle_tensor_shape(out), sizeof got);
    assert_int_equal(got[0], n);
    expected(t, n, heddle_tensor_data(x), want);
    for (int64_t i = 0; i < n * WIDTH && s == HEDDLE_OK; i++)
      if (!(fabsf(data_of(out)[i] - want[i]) <= 1e-4f)) {
        snprintf(why->text, sizeof why->text, "%d rows, element %d: %g, not %g", (int)n, (int)i,
                 (double)data_of(out)[i], (double)want[i]);
        s = HEDDLE_EFAILED;
      }
  }
  heddle_tensor_release(out);
  heddle_tensor_release(x);
  return s;
}

static const heddle__program *program_of(const heddle_executor *ex) {
  return ex->bound->program;
}

static const char *const places[] = {"cpu", "sim:0,cpu", "sim:0,sim:1"};
enum { PLACES = sizeof places / sizeof places[0] };

/* The bounds are powers of two, few in number; each smaller shape is a size of the last, whose accesses are proved as they
 * are. */
static void a_program_grows_and_is_resized(void **state) {
  (void)state;
  for (int p = 0; p < PLACES; p++) {
    subject t;
    heddle_executor *ex;
    const heddle__program *roots[16];
    uint32_t n_roots = 0;
    set_up(&t, places[p], "sim.delay_us", "0", 1);
    OK(heddle_executor_create(t.model, &ex, &err));
    for (int64_t n = 16; n <= MOST; n += n % 5 + 1) {
      OK(run(&t, ex, n, false, &err));
      const heddle__program *at = program_of(ex);
      if (at->root == NULL) {
        assert_int_equal(n, 16); /* the first shape is planned for itself */
        continue;
      }
      if (n_roots == 0 || roots[n_roots - 1] != at->root) roots[n_roots++] = at->root;
      const int64_t bound = at->root->order_of->inputs[0].known.shape[0];
      assert_true(bound >= n && bound < 2 * n && (bound & (bound - 1)) == 0);
      OK(heddle__pass_prove(at->plan, &err));
    }
    assert_int_equal(n_roots, 3); /* 32, 64, 128 */
    const uint64_t bytes = ex->bound->own_bytes;
    for (int64_t n = 1; n <= MOST; n += 13) {
      OK(run(&t, ex, n, n % 2 == 0, &err));
      if (n == 1) continue; /* a single row may be computed in another way */
      assert_ptr_equal(program_of(ex)->root, roots[n_roots - 1]);
      OK(heddle__pass_prove(program_of(ex)->plan, &err));
    }
    OK(run(&t, ex, 77, false, &err));
    assert_int_equal(ex->bound->own_bytes, bytes);
    heddle_executor_release(ex);
    tear_down(&t);
  }
}

/* Every launch of such a model is resized: none is bound anew, and nothing is prepared for the shape. */
static void launches_stay(void **state) {
  (void)state;
  static const char *const devices[] = {"cpu", "sim:0"};
  for (int p = 0; p < 2; p++) {
    subject t;
    heddle_executor *ex;
    set_up(&t, devices[p], "fault.fail", "op.prepare:1000000", 1);
    OK(heddle_executor_create(t.model, &ex, &err));
    OK(run(&t, ex, 100, false, &err));
    OK(run(&t, ex, 101, false, &err));
    heddle_plaunch *launches[64];
    const heddle__bound *b = ex->bound;
    uint32_t count = 0;
    for (uint32_t x = 0; x < b->program->n_segments; x++)
      for (uint32_t i = 0; i < b->stretches[x].count && count < 64; i++)
        launches[count++] = b->stretches[x].actions[i].launch;
    assert_true(count > 0 && count < 64);
    for (int64_t n = 127; n > 2; n -= 9) {
      OK(run(&t, ex, n, false, &err));
      if (ex->bound != b) fail_msg("%d rows are bound anew", (int)n);
      const heddle__program *at = program_of(ex);
      uint32_t k = 0;
      for (uint32_t x = 0; x < at->n_segments; x++)
        for (uint32_t i = 0; i < b->stretches[x].count; i++, k++)
          if (b->stretches[x].actions[i].launch != launches[k])
            fail_msg("%s, %d rows: node '%s' was bound anew", devices[p], (int)n,
                     at->plan->regions[at->plan->steps[b->stretches[x].actions[i].step].region].label);
      for (uint32_t i = 0; i < at->plan->n_regions; i++) assert_null(at->late[i]);
    }
    heddle_executor_release(ex);
    tear_down(&t);
  }
}

/* What is written in place for a length is what a plan of that length has: values, their bytes, and what plugins are asked. */
static void a_length_is_as_if_planned(void **state) {
  (void)state;
  for (int p = 0; p < PLACES; p++) {
    subject t;
    heddle_executor *ex;
    set_up(&t, places[p], "sim.delay_us", "0", 1);
    OK(heddle_executor_create(t.model, &ex, &err));
    for (int64_t n = 128; n > 2; n -= 25) OK(run(&t, ex, n, false, &err));
    for (int64_t n = 5; n < MOST; n += 17) {
      heddle__wish wish;
      heddle__order *order = NULL;
      heddle__program *fresh = NULL;
      OK(run(&t, ex, n, false, &err));
      const heddle__program *at = program_of(ex);
      assert_non_null(ex->sizes);
      OK(heddle__executor_wish(ex, &wish, &err));
      OK(heddle__order_make(t.model, &wish, &order, &err));
      OK(heddle__program_resize(t.model, at->root, order, NULL, &fresh, &err));
      assert_ptr_not_equal(fresh, at);
      for (uint32_t i = 0; i < at->plan->n_values; i++) {
        const heddle__value *a = &at->plan->values[i], *b = &fresh->plan->values[i];
        assert_int_equal(a->known.bytes, b->known.bytes);
        assert_int_equal(a->known.ndim, b->known.ndim);
        assert_memory_equal(a->known.shape, b->known.shape, a->known.ndim * sizeof *a->known.shape);
      }
      for (uint32_t i = 0; i < at->plan->n_instances; i++)
        assert_int_equal(at->plan->instances[i].bytes, fresh->plan->instances[i].bytes);
      for (uint32_t i = 0; i < at->plan->n_regions; i++) {
        const heddle_pregion *a = at->plan->regions[i].ask, *b = fresh->plan->regions[i].ask;
        const heddle_pvalue *x = a != NULL ? a->values.data : NULL, *y = b != NULL ? b->values.data : NULL;
        for (uint64_t k = 0; x != NULL && k < a->values.count; k++)
          assert_memory_equal(x[k].shape, y[k].shape, (size_t)x[k].ndim * sizeof *x->shape);
      }
      assert_int_equal(at->bytes_copied, fresh->bytes_copied);
      heddle__program_release(fresh);
      heddle__wish_free(&wish);
    }
    heddle_executor_release(ex);
    tear_down(&t);
  }
}

/* After a run at the bound a length that was never seen costs no allocation, neither here nor in the plugin: the next one is
 * made to fail, and is still to come after all runs. */
static void lengths_allocate_nothing(void **state) {
  (void)state;
  static const char *const devices[] = {"cpu", "sim:0"};
  enum { LENGTHS = 12 };
  for (int p = 0; p < 2; p++) {
    subject t;
    heddle_executor *ex;
    heddle_tensor *x[LENGTHS];
    set_up(&t, devices[p], "sim.capture", "0", 1);
    OK(heddle_executor_create(t.model, &ex, &err));
    OK(run(&t, ex, 100, false, &err));
    OK(run(&t, ex, 128, false, &err));
    OK(run(&t, ex, 90, false, &err));
    for (int i = 0; i < LENGTHS; i++) {
      const int64_t shape[] = {128 - i * 9, WIDTH};
      OK(heddle_tensor_create(NULL, HEDDLE_FLOAT32, shape, 2, &x[i], &err));
    }
    heddle__alloc_fail_at(1);
    for (int i = 0; i < LENGTHS; i++) {
      OK(heddle_executor_set_input(ex, 0, x[i], &err));
      OK(heddle_executor_run(ex, HEDDLE_FOREVER, &err));
      if (heddle__bound_output(ex->bound, 0)->shape[0] != 128 - i * 9) fail_msg("run %d has another length", i);
    }
    void *next = heddle__alloc(1, 1);
    heddle__alloc_fail_at(0);
    if (next != NULL) fail_msg("%s: something was allocated", devices[p]);
    for (int i = 0; i < LENGTHS; i++) heddle_tensor_release(x[i]);
    OK(run(&t, ex, 41, false, &err));
    heddle_executor_release(ex);
    tear_down(&t);
  }
}

/* The same of images, Conv and what is computed on its result: their size changes, or their number alone. */
static void images_stay(bool one_size) {
  enum { SIZES = 10, MOST_SIDE = 40 };
  const heddle_setting settings[] = {{"threads", "2"}, {"log", "off"}, {"layers", "off"}};
  const heddle_model_options o = {.struct_size = sizeof o, .devices = "cpu"};
  const int64_t kernel[4] = {8, 3, 3, 3};
  const char *name = "w";
  heddle_tensor *weights = floats(kernel, 4, -0.125f, 0.001f), *x[SIZES];
  heddle_params *params;
  heddle_context *ctx;
  heddle_model *model;
  heddle_executor *ex;
  static sketch s;
  memset(&s, 0, sizeof s);
  int in = put_input(&s, "x", "[\"n\",3,\"h\",\"w\"]", "\"float32\""),
      w = put_input(&s, "w", "[8,3,3,3]", "\"float32\"");
  int y = NODE(&s, "Relu", "r", NULL, NODE(&s, "Conv", "c", NULL, in, w));
  put_head(&s, NODE(&s, "GlobalAveragePool", "g", NULL, NODE(&s, "Add", "a", NULL, y, NODE(&s, "Sin", "s", NULL, y))));
  heddle_graph *graph = graph_of(&s);
  OK(heddle_context_create(settings, 3, NULL, NULL, &ctx, &err));
  OK(heddle_params_create(&name, &weights, 1, &params, &err));
  OK(heddle_model_create(ctx, graph, params, &o, &model, &err));
  OK(heddle_executor_create(model, &ex, &err));
  for (int i = 0; i < SIZES; i++) {
    const int64_t sized[] = {1, 3, i < 3 ? MOST_SIDE - i : MOST_SIDE - 3 * i, MOST_SIDE - 2 * i};
    const int64_t counted[] = {SIZES - i, 3, MOST_SIDE, MOST_SIDE}, *shape = one_size ? counted : sized;
    OK(heddle_tensor_create(NULL, HEDDLE_FLOAT32, shape, 4, &x[i], &err));
    memset(heddle_tensor_data(x[i]), 0, (size_t)heddle_tensor_bytes(x[i]));
  }
  for (int i = 0; i < SIZES; i++) {
    if (i == 3) heddle__alloc_fail_at(1);
    OK(heddle_executor_set_input(ex, 0, x[i], &err));
    OK(heddle_executor_run(ex, HEDDLE_FOREVER, &err));
  }
  void *next = heddle__alloc(1, 1);
  heddle__alloc_fail_at(0);
  if (next != NULL) fail_msg("something was allocated");
  for (int i = 0; i < SIZES; i++) heddle_tensor_release(x[i]);
  heddle_tensor_release(weights);
  heddle_executor_release(ex);
  heddle_model_release(model);
  heddle_params_release(params);
  heddle_graph_release(graph);
  heddle_context_release(ctx);
}

static void images_allocate_nothing(void **state) {
  (void)state;
  images_stay(false);
  images_stay(true);
}

/* The n-th call of a kind fails: an error or none, and the same and other lengths are right afterwards. */
static void calls_fail_in_a_resize(void **state) {
  (void)state;
  static const char *const kinds[] = {"op.resize", "op.bind", "op.prepare", "op.query", "alloc"};
  for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++)
    for (int at = 1; at < 60; at += at < 20 ? 1 : 4)
      for (int p = 0; p < 2; p++) {
        subject t;
        heddle_executor *ex;
        heddle_error why = {0};
        char rule[64];
        snprintf(rule, sizeof rule, "%s:%d", kinds[k], at);
        set_up(&t, places[p], "fault.fail", rule, 1);
        OK(heddle_executor_create(t.model, &ex, &err));
        uint32_t failures = 0;
        static const int64_t lengths[] = {20, 30, 25, 60, 33, 59, 20, 64, 3};
        for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
          const heddle_status s = run(&t, ex, lengths[i], i % 2 == 1, &why);
          failures += s != HEDDLE_OK;
          if (s != HEDDLE_OK) OK(run(&t, ex, lengths[i], i % 2 == 1, &err));
        }
        assert_true(failures <= 1);
        heddle_executor_release(ex);
        tear_down(&t);
      }
}

typedef struct worker {
  const subject *t;
  heddle_error err;
  heddle_status status;
  int seed;
} worker;

static void *work(void *any) {
  worker *w = any;
  heddle_executor *ex = NULL;
  w->status = heddle_executor_create(w->t->model, &ex, &w->err);
  for (int i = 0; i < 40 && w->status == HEDDLE_OK; i++)
    w->status = run(w->t, ex, 1 + (w->seed * 31 + i * (w->seed % 2 == 0 ? 53 : 71)) % MOST, i % 3 == 0, &w->err);
  heddle_executor_release(ex);
  return NULL;
}

static void threads_share_a_root(void **state) {
  (void)state;
  enum { THREADS = 4 };
  for (int p = 0; p < PLACES; p++)
    for (uint32_t in_flight = 1; in_flight < 3; in_flight++) {
      subject t;
      worker workers[THREADS];
      pthread_t threads[THREADS];
      set_up(&t, places[p], "limit.programs", "3", in_flight);
      for (int i = 0; i < THREADS; i++) {
        workers[i] = (worker){.t = &t, .seed = i};
        assert_int_equal(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
      }
      for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
      for (int i = 0; i < THREADS; i++)
        if (workers[i].status != HEDDLE_OK) fail_msg("thread %d: %s", i, workers[i].err.text);
      tear_down(&t);
    }
}

/* The setting ranges turns all of this off, and a shape without elements is planned for itself. */
static void shapes_are_planned_each_for_itself(void **state) {
  (void)state;
  subject t;
  heddle_executor *ex;
  set_up(&t, "cpu", "ranges", "off", 1);
  OK(heddle_executor_create(t.model, &ex, &err));
  for (int64_t n = 30; n < 35; n++) {
    OK(run(&t, ex, n, false, &err));
    assert_null(program_of(ex)->root);
  }
  heddle_executor_release(ex);
  tear_down(&t);
  set_up(&t, "cpu", "ranges", "on", 1);
  OK(heddle_executor_create(t.model, &ex, &err));
  for (int64_t n = 30; n < 35; n++) OK(run(&t, ex, n, false, &err));
  assert_non_null(program_of(ex)->root);
  const int64_t none[] = {0, WIDTH};
  heddle_tensor *empty = NULL;
  OK(heddle_tensor_create(NULL, HEDDLE_FLOAT32, none, 2, &empty, &err));
  OK(heddle_executor_set_input(ex, 0, empty, &err));
  heddle_status s = heddle_executor_run(ex, HEDDLE_FOREVER, &err);
  if (s == HEDDLE_OK) assert_null(program_of(ex)->root);
  heddle_tensor_release(empty);
  OK(run(&t, ex, 31, false, &err));
  heddle_executor_release(ex);
  tear_down(&t);
}

static uint64_t growths(heddle_executor *ex) {
  heddle_executor_stats stats = {.struct_size = sizeof stats};
  OK(heddle_executor_get_stats(ex, &stats, &err));
  return stats.growths;
}

/* A maximum of the options: the first program is laid out for it, nothing grows, and what is beyond it is refused by name. */
static void maxima_of_dimensions(void **state) {
  (void)state;
  for (int p = 0; p < PLACES; p++) {
    subject t;
    heddle_executor *ex;
    char *text = NULL;
    OK(make(&t, places[p], "ranges", "on", 1, "n<=64"));
    OK(heddle_executor_create(t.model, &ex, &err));
    OK(run(&t, ex, 20, false, &err));
    const heddle__program *root = program_of(ex)->root;
    assert_non_null(root);
    assert_int_equal(root->order_of->inputs[0].known.shape[0], 64);
    OK(heddle_executor_explain(ex, HEDDLE_EXPLAIN_TEXT, &text, &err));
    assert_non_null(strstr(text, "shapes up to 'x' [64, 16]"));
    heddle_free(text);
    for (int64_t n = 2; n <= 64; n += 31) OK(run(&t, ex, n, n % 2 == 0, &err));
    heddle_error why = {0};
    assert_int_equal(run(&t, ex, 65, false, &why), HEDDLE_EINVAL);
    assert_non_null(strstr(why.text, "'n', is 65"));
    assert_non_null(strstr(why.text, "allow 64"));
    assert_int_equal(run(&t, ex, 65, true, &why), HEDDLE_EINVAL);
    OK(run(&t, ex, 30, false, &err));
    assert_ptr_equal(program_of(ex)->root, root);
    assert_int_equal(growths(ex), 1);
    heddle_executor_release(ex);
    tear_down(&t);
  }
  static const char *const wrong[] = {"m<=4", "n<=0", "n<=", "<=3", "n<=4x", "n<=99999999999"};
  for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
    subject t;
    assert_int_equal(make(&t, "cpu", "ranges", "on", 1, wrong[i]), i == 0 ? HEDDLE_ENOTFOUND : HEDDLE_EINVAL);
    t.model = NULL;
    tear_down(&t);
  }
}

static void run_square(heddle_executor *ex, int64_t n, int64_t m) {
  const int64_t shape[] = {n, m};
  heddle_tensor *x = floats(shape, 2, -1, 0.25f), *out = NULL;
  OK(heddle_executor_set_input(ex, 0, x, &err));
  OK(heddle_executor_run(ex, HEDDLE_FOREVER, &err));
  OK(heddle_executor_view_output(ex, 0, &out, &err));
  for (int64_t i = 0; i < n * m; i++) {
    const float from = data_of(x)[i % n * m + i / n], want = from > 0 ? from : 0;
    if (memcmp(&data_of(out)[i], &want, sizeof want) != 0) fail_msg("%d x %d: element %d", (int)n, (int)m, (int)i);
  }
  heddle_tensor_release(out);
  heddle_tensor_release(x);
}

/* The open dimensions of the operand and the result of the last region that the plugin got. */
static void expect_open(heddle_executor *ex, uint32_t operand, uint32_t result, uint64_t grown) {
  const heddle__program *root = program_of(ex)->root;
  assert_non_null(root);
  const heddle__plan *plan = root->plan;
  const heddle_pregion *ask = plan->regions[plan->n_regions - 1].ask;
  const heddle_pvalue *values = ask->values.data;
  assert_int_equal(ask->flags & HEDDLE_REGION_OPEN, HEDDLE_REGION_OPEN);
  assert_int_equal(values[ask->inputs[0]].open_dims, operand);
  assert_int_equal(values[ask->outputs[0]].open_dims, result);
  assert_int_equal(growths(ex), grown);
}

/* Of an input's dimensions those are open that have changed; a first change in another one makes another root, also where
 * it gets smaller. */
static void plugins_know_what_is_open(void **state) {
  (void)state;
  for (int p = 0; p < PLACES - 1; p++) {
    static sketch s;
    memset(&s, 0, sizeof s);
    int x = put_input(&s, "x", "[\"n\",\"m\"]", "\"float32\"");
    put_head(&s, NODE(&s, "Transpose", "t", NULL, NODE(&s, "Relu", "r", NULL, x)));
    const heddle_setting settings[] = {{"threads", "1"}, {"log", "off"}};
    const heddle_model_options o = {.struct_size = sizeof o, .devices = places[p]};
    heddle_context *ctx;
    heddle_model *model;
    heddle_executor *ex;
    heddle_graph *graph = graph_of(&s);
    OK(heddle_context_create(settings, 2, NULL, NULL, &ctx, &err));
    OK(heddle_model_create(ctx, graph, NULL, &o, &model, &err));
    OK(heddle_executor_create(model, &ex, &err));
    run_square(ex, 4, 6);
    run_square(ex, 7, 6);
    expect_open(ex, 1, 2, 1);
    run_square(ex, 1, 6);
    expect_open(ex, 1, 2, 1);
    run_square(ex, 3, 5);
    expect_open(ex, 3, 3, 2);
    run_square(ex, 8, 2);
    expect_open(ex, 3, 3, 2);
    heddle_executor_release(ex);
    heddle_model_release(model);
    heddle_graph_release(graph);
    heddle_context_release(ctx);
  }
}

CASES(CASE(maxima_of_dimensions), CASE(plugins_know_what_is_open), CASE(a_program_grows_and_is_resized),
      CASE(launches_stay), CASE(a_length_is_as_if_planned), CASE(lengths_allocate_nothing),
      CASE(images_allocate_nothing), CASE(calls_fail_in_a_resize), CASE(threads_share_a_root),
      CASE(shapes_are_planned_each_for_itself))
