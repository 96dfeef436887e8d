/* tests/executor/test_place.c: automatic placement through the API: the rule, the flag and the setting are one; annotations
 * that are ignored do not count; memory that is out at any moment, while measuring too; several threads that plan at once. */
#include "executor/rig.h"

#include <dirent.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#define OFF "place.cache_dir=off;threads=1;sim.capture=0"

static sketch fork_of_two(const char *device) {
  sketch s = {.n = 0};
  int x = put_input(&s, "x", "[2,3]", "\"float32\"");
  int a = NODE(&s, "Relu", "a", device, x), b = NODE(&s, "Neg", "b", NULL, x);
  put_head(&s, NODE(&s, "Add", "y", NULL, a, b));
  return s;
}

static char *explain(heddle_model *m, heddle_explain_format format) {
  char *text = NULL;
  OK(heddle_model_explain(m, format, NULL, NULL, 0, &text, &err));
  return text;
}

static void has(heddle_model *m, const char *words, bool wanted) {
  char *text = explain(m, HEDDLE_EXPLAIN_JSON);
  bool found = strstr(text, words) != NULL;
  if (found != wanted) fail_msg("'%s' is %s in %s", words, found ? "" : "not", text);
  heddle_free(text);
}

static void the_rule_the_flag_and_the_setting_are_one(void **state) {
  (void)state;
  const char *rule = "auto";
  const sketch s = fork_of_two(NULL);
  for (int way = 0; way < 4; way++) {
    rig t;
    heddle_model_options o = {.struct_size = sizeof o, .devices = "sim:0,sim:1,cpu"};
    if (way == 0) o.place = &rule, o.n_place = 1;
    if (way == 1) o.flags = HEDDLE_MODEL_PLACE_AUTO;
    rig_make(&t, way == 2 ? "place=auto;" OFF : OFF, &s, &o);
    has(t.model, "\"placement\":{\"predicted_ns\":", way != 3);
    has(t.model, "\"cause\":\"auto: ", way != 3);
    rig_end(&t);
  }
}

static void runs_give_what_they_should(void **state) {
  (void)state;
  const sketch s = fork_of_two(NULL);
  const int64_t shape[] = {2, 3};
  rig t;
  rig_make(&t, "sim.op_us=2000;place.overlap=1;" OFF, &s,
           &(heddle_model_options){.struct_size = sizeof(heddle_model_options),
                                   .devices = "sim:0,sim:1",
                                   .flags = HEDDLE_MODEL_PLACE_AUTO});
  heddle_tensor *x = floats(shape, 2, -2, 1), *y = NULL;
  OK(heddle_executor_set_input_by_name(t.ex, "x", x, &err));
  OK(heddle_executor_run(t.ex, HEDDLE_FOREVER, &err));
  OK(heddle_executor_view_output(t.ex, 0, &y, &err));
  for (int i = 0; i < 6; i++) {
    float v = (float)i - 2;
    assert_true(data_of(y)[i] == (v > 0 ? v : 0) - v);
  }
  heddle_tensor_release(x);
  heddle_tensor_release(y);
  rig_end(&t);
}

static void ignored_annotations_do_not_count(void **state) {
  (void)state;
  const sketch s = fork_of_two("sim:1");
  for (uint32_t ignore = 0; ignore < 2; ignore++) {
    rig t;
    heddle_model_options o = {.struct_size = sizeof o, .devices = "sim:0,sim:1"};
    o.flags = HEDDLE_MODEL_PLACE_AUTO | (ignore ? HEDDLE_MODEL_IGNORE_ANNOTATIONS : 0);
    rig_make(&t, "sim.1.op_us=3000;" OFF, &s, &o);
    has(t.model, "\"cause\":\"annotation\"", !ignore);
    has(t.model, "\"device\":1,", !ignore);
    rig_end(&t);
  }
}

/* Each allocation of planning and measuring in turn: a reported failure, nothing is left, and the next plan works. */
static void every_lack_of_memory_is_said(void **state) {
  (void)state;
  const sketch s = fork_of_two(NULL);
  for (int measure = 0; measure < 2; measure++) {
    uint32_t failed = 0;
    for (uint64_t n = 1; n < 900; n += measure ? 3 : 1) {
      rig t;
      rig_make(&t, measure ? OFF : "place.measure=0;" OFF, &s,
               &(heddle_model_options){.struct_size = sizeof(heddle_model_options),
                                       .devices = "sim:0,cpu",
                                       .flags = HEDDLE_MODEL_PLACE_AUTO});
      char *text = NULL;
      heddle__alloc_fail_at(n);
      heddle_status got = heddle_model_explain(t.model, HEDDLE_EXPLAIN_TEXT, NULL, NULL, 0, &text, &err);
      heddle__alloc_fail_at(0);
      failed += got != HEDDLE_OK;
      if (got != HEDDLE_OK) {
        assert_int_equal(got, HEDDLE_ENOMEM);
        assert_null(text);
      }
      heddle_free(text);
      heddle_free(explain(t.model, HEDDLE_EXPLAIN_TEXT));
      rig_end(&t);
    }
    assert_true(failed > 20);
  }
}

typedef struct planner {
  heddle_model *model;
  char *text;
} planner;

static void *plan(void *arg) {
  planner *p = arg;
  heddle_error why;
  if (heddle_model_explain(p->model, HEDDLE_EXPLAIN_JSON, NULL, NULL, 0, &p->text, &why) != HEDDLE_OK) p->text = NULL;
  return NULL;
}

static void empty(const char *folder) {
  DIR *dir = opendir(folder);
  char path[600];
  for (struct dirent *e; dir != NULL && (e = readdir(dir)) != NULL;) {
    snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
    if (e->d_name[0] != '.') unlink(path);
  }
  if (dir != NULL) closedir(dir);
  assert_int_equal(rmdir(folder), 0);
}

static void threads_plan_at_once(void **state) {
  (void)state;
  char folder[] = "/tmp/heddle-place-XXXXXX", settings[128];
  const sketch s = fork_of_two(NULL);
  assert_non_null(mkdtemp(folder));
  snprintf(settings, sizeof settings, "place.cache_dir=%s;threads=1", folder);
  rig t;
  rig_make(&t, settings, &s,
           &(heddle_model_options){.struct_size = sizeof(heddle_model_options),
                                   .devices = "sim:0,sim:1,cpu",
                                   .flags = HEDDLE_MODEL_PLACE_AUTO});
  planner all[4];
  pthread_t threads[4];
  for (int i = 0; i < 4; i++) {
    all[i] = (planner){t.model, NULL};
    assert_int_equal(pthread_create(&threads[i], NULL, plan, &all[i]), 0);
  }
  for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
  for (int i = 0; i < 4; i++) {
    assert_non_null(all[i].text);
    assert_non_null(strstr(all[i].text, "\"cause\":\"auto: "));
    heddle_free(all[i].text);
  }
  has(t.model, "\"measured\":0,\"kept\":9,\"estimated\":0", true);
  rig_end(&t);
  empty(folder);
}

CASES(CASE(the_rule_the_flag_and_the_setting_are_one), CASE(runs_give_what_they_should),
      CASE(ignored_annotations_do_not_count), CASE(every_lack_of_memory_is_said),
      CASE_LABELS(threads_plan_at_once, "threads"))
