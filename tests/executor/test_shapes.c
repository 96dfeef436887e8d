/* tests/executor/test_shapes.c: shapes that change from run to run: a plan follows what an earlier one found for shapes
 * of the same class, gives it up where a plugin does not take a region any more, and packs no constant anew; with several
 * threads, and where memory is out.
 * labels: threads
 */
#include "executor/rig.h"

#include <math.h>
#include <pthread.h>

#include "executor/precedent.h"
#include "executor/state.h"

enum { WIDTH = 16, LAYERS = 4, THREADS = 4 };

/* Layers of a Reshape to the shape that is there, MatMul by a constant, Add of one, Relu and Mul by the layer's input,
 * with an open number of rows. */
static void sketch_layers(sketch *s) {
  memset(s, 0, sizeof *s);
  int y = put_input(s, "x", "[\"n\",16]", "\"float32\"");
  for (int i = 0; i < LAYERS; i++) {
    char name[6][16];
    static const char *const ops[] = {"m", "a", "r", "p", "s", "v"};
    for (int k = 0; k < 6; k++) snprintf(name[k], sizeof name[k], "%s%d", ops[k], i);
    char weight[16], bias[16];
    snprintf(weight, sizeof weight, "w%d", i);
    snprintf(bias, sizeof bias, "b%d", i);
    int w = put_input(s, weight, "[16,16]", "\"float32\""), b = put_input(s, bias, "[16]", "\"float32\"");
    y = NODE(s, "Reshape", name[5], NULL, y, NODE(s, "Shape", name[4], NULL, y));
    int a = NODE(s, "Add", name[1], NULL, NODE(s, "MatMul", name[0], NULL, y, w), b);
    y = NODE(s, "Mul", name[3], NULL, NODE(s, "Relu", name[2], NULL, a), y);
  }
  put_head(s, y);
}

typedef struct subject {
  const char *ranges; /* the setting; NULL: on */
  heddle_context *ctx;
  heddle_graph *graph;
  heddle_params *params;
  heddle_model *model;
} subject;

/* most: the setting limit.programs. Gives the status of the model's creation. */
static heddle_status set_up_with(subject *t, const char *devices, uint32_t programs, const char *most) {
  static sketch s;
  const heddle_setting settings[] = {{"cpu.fuse", "1"},        {"sim.fuse", "1"},
                                     {"threads", "1"},         {"log", "off"},
                                     {"limit.programs", most}, {"ranges", t->ranges != NULL ? t->ranges : "on"}};
  heddle_tensor *values[2 * LAYERS];
  char names[2 * LAYERS][16];
  const char *list[2 * LAYERS];
  const int64_t square[] = {WIDTH, WIDTH}, row[] = {WIDTH};
  OK(heddle_context_create(settings, 6, NULL, NULL, &t->ctx, &err));
  sketch_layers(&s);
  t->graph = graph_of(&s);
  for (int i = 0; i < 2 * LAYERS; i++) {
    snprintf(names[i], sizeof names[i], "%c%d", i % 2 == 0 ? 'w' : 'b', i / 2);
    list[i] = names[i];
    values[i] = i % 2 == 0 ? floats(square, 2, -0.125f, 0.001f * (float)(i + 1)) : floats(row, 1, 0.25f, 0.01f);
  }
  OK(heddle_params_create(list, values, 2 * LAYERS, &t->params, &err));
  for (int i = 0; i < 2 * LAYERS; i++) heddle_tensor_release(values[i]);
  const heddle_model_options o = {.struct_size = sizeof o, .devices = devices, .max_programs = programs};
  return heddle_model_create(t->ctx, t->graph, t->params, &o, &t->model, &err);
}

static void set_up(subject *t, const char *devices, uint32_t programs) {
  OK(set_up_with(t, devices, programs, "8"));
}

static void tear_down(subject *t) {
  heddle_model_release(t->model);
  heddle_params_release(t->params);
  heddle_graph_release(t->graph);
  heddle_context_release(t->ctx);
  assert_int_equal(heddle__alloc_live(), 0);
}

static void expected(int64_t rows, const float *x, float *y) {
  memcpy(y, x, (size_t)rows * WIDTH * sizeof *y);
  for (int i = 0; i < LAYERS; i++)
    for (int64_t r = 0; r < rows; r++) {
      float in[WIDTH];
      memcpy(in, &y[r * WIDTH], sizeof in);
      for (int c = 0; c < WIDTH; c++) {
        float sum = 0.25f + 0.01f * (float)c;
        for (int k = 0; k < WIDTH; k++) sum += in[k] * (-0.125f + 0.001f * (float)(2 * i + 1) * (float)(k * WIDTH + c));
        y[r * WIDTH + c] = (sum > 0 ? sum : 0) * in[c];
      }
    }
}

/* A run with so many rows, whose numbers are compared. On failure gives the status. */
static heddle_status run(heddle_executor *ex, int64_t rows, heddle_error *why) {
  const int64_t shape[] = {rows, WIDTH};
  heddle_tensor *x = NULL, *out = NULL;
  static _Thread_local float want[64 * WIDTH];
  heddle_status s = heddle_tensor_create(NULL, HEDDLE_FLOAT32, shape, 2, &x, why);
  for (int64_t i = 0; s == HEDDLE_OK && i < rows * WIDTH; i++)
    ((float *)heddle_tensor_data(x))[i] = 0.01f * (float)(i % 37) - 0.1f;
  if (s == HEDDLE_OK) s = heddle_executor_set_input(ex, 0, x, why);
  if (s == HEDDLE_OK) s = heddle_executor_run(ex, HEDDLE_FOREVER, why);
  if (s == HEDDLE_OK) s = heddle_executor_view_output(ex, 0, &out, why);
  if (s == HEDDLE_OK) {
    expected(rows, heddle_tensor_data(x), want);
    for (int64_t i = 0; i < rows * WIDTH && s == HEDDLE_OK; i++)
      if (!(fabsf(data_of(out)[i] - want[i]) <= 1e-4f)) {
        snprintf(why->text, sizeof why->text, "%d rows, element %d: %g, not %g", (int)rows, (int)i,
                 (double)data_of(out)[i], (double)want[i]);
        s = HEDDLE_EFAILED;
      }
  }
  heddle_tensor_release(out);
  heddle_tensor_release(x);
  return s;
}

static const heddle__plan *plan_of(const heddle_executor *ex) {
  return ex->bound->program->plan;
}

/* The same regions on the same devices, in the same order. */
static void expect_alike(const heddle__plan *a, const heddle__plan *b) {
  assert_int_equal(a->n_regions, b->n_regions);
  assert_int_equal(a->n_steps, b->n_steps);
  for (uint32_t i = 0; i < a->n_regions; i++) {
    assert_string_equal(a->regions[i].label, b->regions[i].label);
    assert_int_equal(a->regions[i].device, b->regions[i].device);
  }
}

static const char *const places[] = {"cpu", "sim:0,cpu"};

/* Lengths of a class follow its first; where the plan is made anew for another class it is the same plan here. */
static void a_class_of_shapes_is_asked_about_once(void **state) {
  (void)state;
  static const int64_t rows[] = {5, 6, 4, 7, 1, 20, 31, 2, 3, 5, 17};
  static const bool follows[] = {false, true, true, true, false, false, true, false, true, true, true};
  for (size_t p = 0; p < 2; p++) {
    subject t = {.ranges = "off"};
    heddle_executor *ex, *other;
    set_up(&t, places[p], 1); /* so that even lengths that were seen are planned */
    OK(heddle_executor_create(t.model, &ex, &err));
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
      OK(run(ex, rows[i], &err));
      const heddle__plan *plan = plan_of(ex);
      assert_int_equal(plan->followed, follows[i]);
      if (!follows[i]) continue;
      uint32_t unasked = 0;
      for (uint32_t k = 0; k < plan->n_regions; k++) unasked += plan->regions[k].unasked;
      assert_int_equal(unasked, LAYERS); /* of Shape, which no step runs */
      heddle__request fresh = plan->req;
      heddle__plan *anew = NULL;
      fresh.precedent = NULL;
      OK(heddle__plan_make(&fresh, &anew, &err));
      expect_alike(plan, anew);
      heddle__plan_free(anew);
    }
    OK(heddle_executor_create(t.model, &other, &err)); /* what one found is the model's */
    OK(run(other, 12, &err));
    assert_false(plan_of(other)->followed);
    OK(run(ex, 13, &err));
    assert_true(plan_of(ex)->followed);
    heddle_executor_release(other);
    heddle_executor_release(ex);
    tear_down(&t);
  }
}

/* A precedent that does not hold for the shapes: the plan is made as if there were none, and takes its place. */
static void a_refused_region_is_planned_anew(void **state) {
  (void)state;
  subject t = {.ranges = "off"};
  heddle_executor *ex;
  set_up(&t, "cpu", 1);
  OK(heddle_executor_create(t.model, &ex, &err));
  OK(run(ex, 5, &err));
  for (int fault = 0; fault < 3; fault++) {
    heddle__precedent *p = heddle__precedent_find(t.model, ex->bound->program->order_of);
    assert_non_null(p);
    assert_true(p->n_groups > 0);
    if (fault == 0) p->nodes[p->first[1] - 1] = t.graph->n_nodes - 1; /* nodes that nothing joins */
    if (fault == 1) p->device[p->nodes[0]] = HEDDLE__NONE;
    for (uint32_t i = 0; fault == 2 && i < t.graph->n_nodes; i++) { /* what steps run is not asked about */
      p->n_groups = 0;
      p->group_of[i] = HEDDLE__NONE;
      p->idle[i] = true;
    }
    heddle__precedent_release(p);
    OK(run(ex, 6, &err));
    assert_false(plan_of(ex)->followed);
    OK(run(ex, 7, &err));
    assert_true(plan_of(ex)->followed);
  }
  heddle_executor_release(ex);
  tear_down(&t);
}

static uint32_t count_packed(heddle_model *m) {
  uint32_t n = 0;
  pthread_mutex_lock(&m->lock);
  for (const heddle__packed *p = m->packed; p != NULL; p = p->next) n++;
  pthread_mutex_unlock(&m->lock);
  return n;
}

/* Constants that were packed in a layout stay so, though each program pushes the last one out: none is packed again. */
static void constants_are_packed_once(void **state) {
  (void)state;
  for (size_t p = 0; p < 2; p++) {
    subject t = {.ranges = "off"};
    heddle_executor *ex;
    set_up(&t, places[p], 1);
    OK(heddle_executor_create(t.model, &ex, &err));
    for (int64_t rows = 1; rows <= 64; rows *= 2) OK(run(ex, rows, &err)); /* all layouts that there are */
    const uint32_t n = count_packed(t.model);
    const heddle__packed *first = t.model->packed;
    assert_true(n > 0);
    for (int64_t rows = 2; rows < 64; rows += 5) {
      OK(run(ex, rows % 2 == 0 ? rows : 66 - rows, &err));
      assert_int_equal(count_packed(t.model), n);
      assert_ptr_equal(t.model->packed, first);
    }
    heddle_executor_release(ex);
    tear_down(&t);
  }
}

/* The setting, the option before it, and what a plan says of either. */
static void so_many_programs_are_kept(void **state) {
  (void)state;
  static const struct {
    const char *setting, *said;
    uint32_t option, kept;
  } cases[] = {{"1", "at most 1 are kept", 0, 1}, {"3", "at most 3 are kept", 0, 3}, {"1", "at most 2 are kept", 2, 2}};
  subject t = {.ranges = "off"};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    heddle_executor *ex;
    char *text = NULL;
    uint32_t n = 0;
    OK(set_up_with(&t, "cpu", cases[i].option, cases[i].setting));
    OK(heddle_executor_create(t.model, &ex, &err));
    for (int64_t rows = 2; rows < 8; rows++) OK(run(ex, rows, &err));
    for (const heddle__program *p = t.model->programs; p != NULL; p = p->next) n++;
    assert_int_equal(n, cases[i].kept);
    OK(heddle_executor_explain(ex, HEDDLE_EXPLAIN_TEXT, &text, &err));
    if (strstr(text, cases[i].said) == NULL) fail_msg("no '%s' in %.200s", cases[i].said, text);
    heddle_free(text);
    heddle_executor_release(ex);
    tear_down(&t);
  }
  static const char *const wrong[] = {"0", "-1", "few", "1000001"};
  for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
    t.model = NULL;
    FAILS(set_up_with(&t, "cpu", 0, wrong[i]), HEDDLE_EINVAL);
    SAYS("limit.programs");
    tear_down(&t);
  }
}

typedef struct worker {
  heddle_model *model;
  heddle_error err;
  heddle_status status;
  int seed;
} worker;

static void *work(void *any) {
  worker *w = any;
  heddle_executor *ex = NULL;
  w->status = heddle_executor_create(w->model, &ex, &w->err);
  for (int i = 0; i < 30 && w->status == HEDDLE_OK; i++)
    w->status = run(ex, 1 + (w->seed * 7 + i * (w->seed % 2 == 0 ? 5 : 11)) % 60, &w->err);
  heddle_executor_release(ex);
  return NULL;
}

static void threads_bring_new_shapes(void **state) {
  (void)state;
  for (size_t p = 0; p < 2; p++) {
    subject t = {.ranges = NULL};
    worker workers[THREADS];
    pthread_t threads[THREADS];
    set_up(&t, places[p], 2);
    for (int i = 0; i < THREADS; i++) {
      workers[i] = (worker){.model = t.model, .seed = i};
      assert_int_equal(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    for (int i = 0; i < THREADS; i++)
      if (workers[i].status != HEDDLE_OK) fail_msg("thread %d: %s", i, workers[i].err.text);
    tear_down(&t);
  }
}

/* Every n-th allocation of a run with a new length fails: an error, and the executor does the same run at once. */
static void memory_ends_in_a_new_shape(void **state) {
  (void)state;
  subject t = {.ranges = "off"};
  heddle_executor *ex;
  uint64_t failures = 0, last = 0;
  set_up(&t, "cpu", 1);
  OK(heddle_executor_create(t.model, &ex, &err));
  OK(run(ex, 5, &err));
  for (uint64_t n = 1; n < last + 100; n += n < 40 ? 1 : 7) { /* a run has no allocation of a number so far behind */
    const int64_t rows = n % 3 == 0 ? 24 + (int64_t)(n % 8) : 4 + (int64_t)(n % 4);
    heddle_error why = {0};
    OK(run(ex, 40, &err)); /* so that the length is new in any case */
    heddle__alloc_fail_at(n);
    const heddle_status s = run(ex, rows, &why);
    heddle__alloc_fail_at(0);
    if (s != HEDDLE_OK) {
      failures++;
      last = n;
      if (s != HEDDLE_ENOMEM) fail_msg("allocation %d: %s: %s", (int)n, heddle_status_name(s), why.text);
    }
    OK(run(ex, rows, &err));
  }
  assert_true(failures > 20);
  heddle_executor_release(ex);
  tear_down(&t);
}

CASES(CASE(a_class_of_shapes_is_asked_about_once), CASE(a_refused_region_is_planned_anew),
      CASE(constants_are_packed_once), CASE(so_many_programs_are_kept), CASE(threads_bring_new_shapes),
      CASE(memory_ends_in_a_new_shape))
