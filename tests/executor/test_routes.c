/* timeout: 120
 * The self-test of routes as an application meets it: a way between two sims that lies is found, warned of, turned off and
 * remembered, and results are right; pages of unified memory that several devices compute in. Expected values are computed
 * by hand. */
#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/device.h"
#include "executor/rig.h"

enum { N = 301 };

/* ---- a context that keeps what it says */

typedef struct said {
  char text[16384];
} said;

static void keep(void *user, int32_t level, const char *component, const char *text) {
  said *s = user;
  size_t used = strlen(s->text);
  if (strcmp(component, "routes") != 0) return;
  snprintf(s->text + used, sizeof s->text - used, "%d %s\n", (int)level, text);
}

static char folder[512];

static void make_folder(void) {
  snprintf(folder, sizeof folder, "%s/tests/routes-XXXXXX", HEDDLE_TEST_BUILD);
  assert_non_null(mkdtemp(folder));
}

/* Calls each, and gives how many files there are. */
static int each_file(void (*call)(const char *path)) {
  char path[1024];
  int n = 0;
  DIR *dir = opendir(folder);
  if (dir == NULL) return 0;
  for (struct dirent *e; (e = readdir(dir)) != NULL;) {
    if (e->d_name[0] == '.') continue;
    snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
    if (call != NULL) call(path);
    n++;
  }
  closedir(dir);
  return n;
}

static void drop(const char *path) {
  assert_int_equal(unlink(path), 0);
}

static void remove_folder(void) {
  each_file(drop);
  assert_int_equal(rmdir(folder), 0);
}

static heddle_context *routes_context(const char *settings, said *s) {
  heddle_setting all[16] = {{"routes.test", "1"}, {"routes.cache_dir", folder}, {"log", "info"}, {"cpu.fuse", "0"}};
  static char text[512];
  size_t n = 4;
  snprintf(text, sizeof text, "%s", settings);
  for (char *p = strtok(text, ";"); p != NULL && n < 16; p = strtok(NULL, ";")) {
    char *equals = strchr(p, '=');
    *equals = '\0';
    all[n++] = (heddle_setting){p, equals + 1};
  }
  heddle_context *ctx = NULL;
  memset(s, 0, sizeof *s);
  OK(heddle_context_create(all, n, keep, s, &ctx, &err));
  return ctx;
}

/* ---- one model: twice the positive part of twice x, on three places */

typedef struct outcome {
  heddle_status status;
  char words[1024];
  char plan[1 << 16];
  uint64_t copied;
} outcome;

static void run_once(heddle_context *ctx, const char *first, const char *second, const char *third, outcome *out) {
  static sketch s;
  static const int64_t shape[] = {N};
  char devices[64];
  memset(&s, 0, sizeof s);
  memset(out, 0, sizeof *out);
  int x = put_input(&s, "x", "[301]", "\"float32\""), one = put_input(&s, "one", "[301]", "\"float32\"");
  int a = NODE(&s, "Add", "a", first, x, x), b = NODE(&s, "Relu", "b", second, a),
      c = NODE(&s, "Add", "c", third, b, one);
  put_head(&s, c);
  heddle_graph *g = graph_of(&s);
  snprintf(devices, sizeof devices, "%s,%s,%s", first, second, third);
  heddle_model_options o = {.struct_size = sizeof o, .devices = devices};
  heddle_model *m = NULL;
  heddle_executor *ex = NULL;
  heddle_executor_stats stats = {.struct_size = sizeof stats};
  heddle_tensor *in = floats(shape, 1, -100, 0.5f), *add = floats(shape, 1, 1, 1), *y = floats(shape, 1, 0, 0);
  char *plan = NULL;
  OK(heddle_model_create(ctx, g, NULL, &o, &m, &err));
  out->status = heddle_executor_create(m, &ex, &err); /* it is bound here, and routes are tested */
  snprintf(out->words, sizeof out->words, "%s", out->status != HEDDLE_OK ? err.text : "");
  if (out->status == HEDDLE_OK) OK(heddle_executor_set_input(ex, 0, in, &err));
  if (out->status == HEDDLE_OK) OK(heddle_executor_set_input(ex, 1, add, &err));
  for (int turn = 0; turn < 3 && out->status == HEDDLE_OK; turn++) {
    out->status = heddle_executor_run(ex, HEDDLE_FOREVER, &err);
    snprintf(out->words, sizeof out->words, "%s", out->status != HEDDLE_OK ? err.text : "");
    if (out->status != HEDDLE_OK) break;
    OK(heddle_executor_get_output(ex, 0, y, &err));
    for (int i = 0; i < N; i++) {
      float twice = 2 * (-100 + 0.5f * (float)i);
      assert_true(data_of(y)[i] == (twice > 0 ? twice : 0) + 1 + (float)i);
    }
  }
  if (ex != NULL) OK(heddle_executor_get_stats(ex, &stats, &err));
  out->copied = stats.bytes_copied;
  OK(heddle_model_explain(m, HEDDLE_EXPLAIN_TEXT, NULL, NULL, 0, &plan, &err));
  snprintf(out->plan, sizeof out->plan, "%s", plan);
  heddle_free(plan);
  heddle_tensor_release(in);
  heddle_tensor_release(add);
  heddle_tensor_release(y);
  heddle_executor_release(ex);
  heddle_model_release(m);
  heddle_graph_release(g);
}

static void run_with(const char *settings, const char *a, const char *b, const char *c, said *s, outcome *out) {
  heddle_context *ctx = routes_context(settings, s);
  run_once(ctx, a, b, c, out);
  heddle_context_release(ctx);
  assert_int_equal(heddle__alloc_live(), 0);
}

#define HAS(text, word) \
  do { \
    if (strstr((text), (word)) == NULL) fail_msg("'%s' is not in:\n%s", (word), (text)); \
  } while (0)
#define LACKS(text, word) \
  do { \
    if (strstr((text), (word)) != NULL) fail_msg("'%s' is in:\n%s", (word), (text)); \
  } while (0)

static said log_of;
static outcome got;

/* ---- cases */

static void a_peer_that_lies_is_found(void **state) {
  (void)state;
  make_folder();
  run_with("sim.peer=on", "sim:0", "sim:1", "sim:0", &log_of, &got);
  assert_int_equal(got.status, HEDDLE_OK);
  HAS(log_of.text, "sim:0 to sim:1, peer: ");
  HAS(got.plan, "peer");
  HAS(got.plan, "measured");
  LACKS(log_of.text, "wrong");

  run_with("sim.peer=lie", "sim:0", "sim:1", "sim:0", &log_of, &got);
  assert_int_equal(got.status, HEDDLE_OK);
  HAS(log_of.text, "1 sim:0 to sim:1, peer: the route is wrong and not used: from sim:0 to sim:1 byte 0 of a pattern");
  HAS(log_of.text, "1 sim:1 to sim:0, peer: ");
  LACKS(got.plan, "peer");
  HAS(got.plan, "staged");
  assert_true(each_file(NULL) == 4); /* both ways, of two tempers */

  run_with("sim.peer=lie", "sim:0", "sim:1", "sim:0", &log_of, &got); /* another process would read the same */
  assert_int_equal(got.status, HEDDLE_OK);
  LACKS(log_of.text, "1 sim"); /* no warning: it is known */
  LACKS(log_of.text, "tested in");
  HAS(log_of.text, "known to be wrong");
  LACKS(got.plan, "peer");

  run_with("sim.peer=lie;routes.test=again", "sim:0", "sim:1", "sim:0", &log_of, &got);
  HAS(log_of.text, "1 sim:0 to sim:1, peer: the route is wrong");

  heddle_context *ctx = routes_context("sim.peer=lie;routes.test=0", &log_of);
  heddle_context_release(ctx);
  remove_folder();
}

static void what_is_off_is_off(void **state) {
  (void)state;
  make_folder();
  run_with("routes.test=0", "sim:0", "sim:1", "cpu", &log_of, &got);
  assert_string_equal(log_of.text, "");
  assert_int_equal(each_file(NULL), 0);
  HAS(got.plan, "assumed");
  LACKS(got.plan, "measured");
  run_with("routes.cache_dir=off", "sim:0", "sim:1", "cpu", &log_of, &got);
  HAS(log_of.text, "tested in");
  assert_int_equal(each_file(NULL), 0);
  run_with("routes.cache_dir=here", "sim:0", "sim:1", "cpu", &log_of, &got);
  HAS(log_of.text, "absolute path");
  remove_folder();
}

static void spoil(const char *path) {
  FILE *f = fopen(path, "r+b");
  assert_non_null(f);
  fseek(f, 60, SEEK_SET);
  fputc(0x5a, f);
  fclose(f);
}

static void cut(const char *path) {
  assert_int_equal(truncate(path, 50), 0);
}

static void what_is_damaged_is_tested_again(void **state) {
  (void)state;
  void (*const harms[])(const char *) = {spoil, cut};
  make_folder();
  run_with("sim.peer=on", "sim:0", "sim:1", "cpu", &log_of, &got);
  for (int i = 0; i < 2; i++) {
    run_with("sim.peer=on", "sim:0", "sim:1", "cpu", &log_of, &got);
    assert_string_equal(log_of.text, "");
    each_file(harms[i]);
    run_with("sim.peer=on", "sim:0", "sim:1", "cpu", &log_of, &got);
    HAS(log_of.text, "sim:0 to sim:1, peer: ");
    HAS(log_of.text, "tested in");
  }
  assert_int_equal(chmod(folder, 0777), 0); /* a user who may write here decides what is believed */
  run_with("sim.peer=on", "sim:0", "sim:1", "cpu", &log_of, &got);
  HAS(log_of.text, "tested in");
  HAS(log_of.text, "everybody may write");
  remove_folder();
}

static void another_driver_is_tested_again(void **state) {
  (void)state;
  make_folder();
  run_with("sim.peer=on", "sim:0", "sim:1", "cpu", &log_of, &got);
  heddle_context *ctx = routes_context("sim.peer=on", &log_of);
  for (size_t i = 0; i < heddle_context_device_count(ctx); i++) {
    heddle_device *dev = heddle_context_device(ctx, i);
    if (strcmp(heddle_device_name(dev), "sim:1") == 0) snprintf(dev->desc.driver, sizeof dev->desc.driver, "sim 1.1");
  }
  run_once(ctx, "sim:0", "sim:1", "cpu", &got);
  heddle_context_release(ctx);
  HAS(log_of.text, "sim:0 to sim:1, peer: ");
  HAS(log_of.text, "sim:1 to cpu:0, direct: ");
  remove_folder();
}

/* Copies to and from the host are the last way there is. */
static void wrong_copies_are_an_error_in_words(void **state) {
  (void)state;
  make_folder();
  run_with("sim.copy=lie", "cpu", "sim:1", "cpu", &log_of, &got);
  assert_int_equal(got.status, HEDDLE_EFAILED);
  HAS(got.words, "the route from sim:1 to cpu:0 (direct) is wrong, and there is no other");
  run_with("sim.copy=lie;sim.peer=off", "sim:0", "sim:1", "sim:0", &log_of, &got);
  assert_int_equal(got.status, HEDDLE_EFAILED);
  HAS(got.words, "the route from sim:0 to sim:1 (staged) is wrong");
  remove_folder();
}

static void a_call_that_fails_is_its_words(void **state) {
  (void)state;
  make_folder();
  run_with("sim.fail=d2h:1", "sim:0", "cpu", "sim:0", &log_of, &got);
  assert_int_equal(got.status, HEDDLE_EFAILED);
  HAS(got.words, "the self-test of the route from cpu:0 to sim:0 (direct): sim:0: call 1 of 'd2h' failed");
  run_with("sim.fail=peer:1@1:fault", "sim:0", "sim:1", "sim:0", &log_of, &got);
  assert_int_equal(got.status, HEDDLE_EDEVICE);
  assert_int_equal(each_file(NULL), 0); /* what went wrong once says nothing of the machine */
  remove_folder();
}

static void ways_of_inputs_and_outputs_are_tested(void **state) {
  (void)state;
  make_folder();
  run_with("sim.copy=lie", "cpu", "cpu", "sim:0", &log_of, &got); /* only the result goes back */
  assert_int_equal(got.status, HEDDLE_EFAILED);
  HAS(got.words, "the route from sim:0 to cpu:0 (direct) is wrong, and there is no other");
  for (int again = 0; again < 2; again++) {
    run_with("", "sim:0", "sim:0", "cpu", &log_of, &got);
    assert_int_equal(got.status, HEDDLE_OK);
    if (again == 0) HAS(log_of.text, "cpu:0 to sim:0, direct: ");
    else LACKS(log_of.text, "tested in");
  }
  remove_folder();
}

static void a_device_that_hangs_is_said(void **state) {
  (void)state;
  make_folder();
  heddle_context *ctx = routes_context("sim.hang=2", &log_of);
  run_once(ctx, "cpu", "sim:1", "cpu", &got);
  heddle_context_release(ctx); /* what the device may still touch stays */
  assert_int_equal(got.status, HEDDLE_ETIMEOUT);
  HAS(got.words, "the self-test of the route from cpu:0 to sim:1");
  assert_int_equal(each_file(NULL), 0);
  remove_folder();
}

#define PAGES "sim.unified=1;sim.import_unified=on"

static void a_page_serves_all_who_can_import_it(void **state) {
  (void)state;
  make_folder();
  run_with(PAGES, "sim:0", "sim:1", "cpu", &log_of, &got);
  assert_int_equal(got.status, HEDDLE_OK);
  HAS(got.plan, "copies    0 a run, 0 bytes");
  HAS(got.plan, "shared");
  HAS(log_of.text, "sim:0 to sim:1, shared: ");
  assert_int_equal(got.copied, 0);
  run_with(PAGES ";sim.import_alignment=4096;sim.seed=3;sim.delay_us=200", "sim:1", "cpu", "sim:2", &log_of, &got);
  assert_int_equal(got.status, HEDDLE_OK);
  assert_int_equal(got.copied, 0);
  /* Without a host device, with slots of whole buffers, without views, on other event domains. */
  run_with(PAGES ";sim.bare=1;sim.views=0;sim.event_domains=1;sim.delay_us=100", "sim:1", "sim:0", "sim:2", &log_of,
           &got);
  assert_int_equal(got.status, HEDDLE_OK);
  assert_int_equal(got.copied, 0);
  HAS(got.plan, "copies    0 a run, 0 bytes");
  /* A shadow would have to be flushed by one device for another. */
  run_with(PAGES ";sim.coherent=0", "sim:0", "sim:1", "sim:0", &log_of, &got);
  assert_int_equal(got.status, HEDDLE_OK);
  HAS(got.plan, "peer");
  LACKS(got.plan, "shared");
  run_with("sim.unified=1", "sim:0", "sim:1", "sim:0", &log_of, &got);
  HAS(got.plan, "peer");
  remove_folder();
}

static void a_page_that_is_none_is_not_used(void **state) {
  (void)state;
  make_folder();
  for (int turn = 0; turn < 2; turn++) {
    run_with("sim.unified=1;sim.import_unified=lie", "sim:0", "sim:1", "sim:2", &log_of, &got);
    assert_int_equal(got.status, HEDDLE_OK);
    LACKS(got.plan, "shared");
    HAS(got.plan, "peer");
    if (turn == 0) HAS(log_of.text, "1 sim:0 to sim:1, shared: the route is wrong and not used: ");
    else HAS(log_of.text, "2 sim:0 to sim:1, shared: known to be wrong");
  }
  remove_folder();
}

/* The importer's largest buffer bounds what is imported. */
static void a_page_is_no_larger_than_who_imports_it_takes(void **state) {
  (void)state;
  make_folder();
  run_with(PAGES ";sim.max_buffer_bytes=8192", "sim:0", "sim:1", "cpu", &log_of, &got);
  assert_int_equal(got.status, HEDDLE_OK);
  assert_int_equal(got.copied, 0);
  HAS(log_of.text, "not tested");
  remove_folder();
}

CASES(CASE(a_peer_that_lies_is_found), CASE(what_is_off_is_off), CASE(what_is_damaged_is_tested_again),
      CASE(another_driver_is_tested_again), CASE(wrong_copies_are_an_error_in_words),
      CASE(a_call_that_fails_is_its_words), CASE(ways_of_inputs_and_outputs_are_tested),
      CASE_LABELS(a_device_that_hangs_is_said, "slow"), CASE(a_page_serves_all_who_can_import_it),
      CASE(a_page_that_is_none_is_not_used), CASE(a_page_is_no_larger_than_who_imports_it_takes))
