/* tests/tools/fault_sweep.c: every n-th call of one kind fails while a model is made and run: fault_sweep KIND MODEL
 * DEVICES FLAGS [KEY=VALUE ...]. Each failure has words and leaves nothing behind, and the same work done again at once
 * gives the same bits. Prints how many calls failed, and how often that was an error; exit 1 with words otherwise. */
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/context.h"
#include "core/device.h"
#include "heddle/heddle.h"
#include "sweep_io.h"

enum { MOST_SETTINGS = 16, MOST_DEVICES = 32 };
#define RUN_NS UINT64_C(20000000000)

typedef struct sweep {
  const char *kind, *model, *devices;
  uint32_t flags;
  heddle_setting settings[MOST_SETTINGS + 4];
  size_t n_settings;       /* of the caller's; ours come after */
  unsigned char *expected; /* outputs of a run without failures */
  size_t n_expected;
} sweep;

static void fail(const sweep *w, uint64_t n, const char *what, const char *words) {
  printf("%s:%" PRIu64 ": %s: %s\n", w->kind, n, what, words);
  exit(1);
}

/* ---- the work */

/* To the last device of the model and back. */
static heddle_status carry(heddle_model *m, heddle_error *err) {
  static const int64_t shape[2] = {8, 8};
  heddle_device *dev = heddle_model_device(m, heddle_model_device_count(m) - 1);
  heddle_tensor *here = NULL, *there = NULL, *also = NULL;
  heddle_status s = heddle_tensor_create(NULL, HEDDLE_FLOAT32, shape, 2, &here, err);
  if (s == HEDDLE_OK) s = heddle_tensor_create(dev, HEDDLE_FLOAT32, shape, 2, &there, err);
  if (s == HEDDLE_OK) s = heddle_tensor_create(dev, HEDDLE_FLOAT32, shape, 2, &also, err);
  if (s == HEDDLE_OK) s = heddle_tensor_copy(there, here, err);
  if (s == HEDDLE_OK) s = heddle_tensor_copy(also, there, err);
  if (s == HEDDLE_OK) s = heddle_tensor_copy(here, also, err);
  heddle_tensor_release(here);
  heddle_tensor_release(there);
  heddle_tensor_release(also);
  return s;
}

static heddle_status work(const sweep *w, heddle_context *ctx, unsigned char **out, size_t *n, heddle_error *err) {
  heddle_model *m = NULL;
  heddle_executor *ex = NULL;
  heddle_model_options options = {.struct_size = sizeof options, .devices = w->devices, .flags = w->flags};
  heddle_status s = heddle_model_load(ctx, w->model, NULL, &options, &m, err);
  if (s == HEDDLE_OK) s = heddle_executor_create(m, &ex, err);
  if (s == HEDDLE_OK) s = set_inputs(ex, err);
  for (int i = 0; i < 2 && s == HEDDLE_OK; i++) s = heddle_executor_run(ex, RUN_NS, err);
  const heddle_profile_entry *entries;
  size_t n_entries;
  if (s == HEDDLE_OK) s = heddle_executor_profile(ex, &entries, &n_entries, err);
  if (s == HEDDLE_OK) s = take_outputs(ex, out, n, err);
  if (s == HEDDLE_OK) s = carry(m, err);
  heddle_executor_release(ex);
  heddle_model_release(m);
  return s;
}

static void must_match(const sweep *w, uint64_t n, const unsigned char *out, size_t n_out) {
  if (n_out != w->n_expected || memcmp(out, w->expected, n_out) != 0)
    fail(w, n, "outputs", "they are others than before");
}

/* ---- one failure */

static void hear(void *user, int32_t level, const char *component, const char *text) {
  (void)level;
  if (strcmp(component, "fault") == 0 && strstr(text, "fails") != NULL) atomic_fetch_add((atomic_uint *)user, 1);
}

static heddle_context *context(sweep *w, const char *rule, atomic_uint *hits) {
  heddle_context *ctx = NULL;
  heddle_error err;
  size_t n = w->n_settings;
  w->settings[n++] = (heddle_setting){"log", "info"};
  if (rule != NULL) {
    w->settings[n++] = (heddle_setting){"layers", "check,fault"};
    w->settings[n++] = (heddle_setting){"fault.fail", rule};
  }
  if (heddle_context_create(w->settings, n, hear, hits, &ctx, &err) != HEDDLE_OK) fail(w, 0, "context", err.text);
  return ctx;
}

/* Opened and held, so that what is left behind can be counted. */
static size_t hold(const sweep *w, heddle_context *ctx, heddle_device **held) {
  size_t n = 0, kept = 0;
  heddle_error err;
  if (heddle_context_select(ctx, w->devices, held, MOST_DEVICES, &n, NULL, &err) != HEDDLE_OK)
    fail(w, 0, "devices", err.text);
  for (size_t i = 0; i < n; i++) /* the one whose opening fails is held at the second try */
    if (heddle__device_open(held[i], &err) == HEDDLE_OK || heddle__device_open(held[i], &err) == HEDDLE_OK)
      held[kept++] = held[i];
  return kept;
}

static void check_device(const sweep *w, uint64_t n, heddle_device *dev) {
  for (uint32_t key = HEDDLE_QUERY_LIVE_BUFFERS; key <= HEDDLE_QUERY_LIVE_OBJECTS; key++) {
    int64_t live = 0;
    heddle_error err;
    if (dev->t->device.query(dev->handle, key, &live, &err) == HEDDLE_OK && live != 0)
      fail(w, n, dev->name, "objects are left");
  }
}

/* False when there is no n-th call. *error: the work failed. */
static bool one(sweep *w, uint64_t n, bool *error) {
  char rule[80];
  atomic_uint hits = 0;
  size_t before = heddle__alloc_live(), n_held, n_out = 0;
  unsigned char *out = NULL;
  heddle_device *held[MOST_DEVICES];
  heddle_error err = {0};
  snprintf(rule, sizeof rule, "%s:%" PRIu64, w->kind, n);
  heddle_context *ctx = context(w, rule, &hits);
  n_held = hold(w, ctx, held);
  heddle_status s = work(w, ctx, &out, &n_out, &err);
  if (s == HEDDLE_OK) must_match(w, n, out, n_out);
  else if (err.text[0] == '\0' || err.status != s) fail(w, n, "a status without words", err.text);
  else if (atomic_load(&hits) == 0) fail(w, n, "an error without a cause", err.text);
  *error = s != HEDDLE_OK;
  unsigned seen = atomic_load(&hits);
  bool reached = seen > 0;
  while (work(w, ctx, &out, &n_out, &err) !=
         HEDDLE_OK) { /* calls are counted per plugin: another's n-th may come now */
    if (atomic_load(&hits) == seen) fail(w, n, "afterwards", err.text);
    seen = atomic_load(&hits);
  }
  must_match(w, n, out, n_out);
  for (size_t i = 0; i < n_held; i++) {
    check_device(w, n, held[i]);
    heddle__device_close(held[i]);
  }
  heddle_context_release(ctx);
  free(out);
  if (heddle__alloc_live() != before) fail(w, n, "memory", "blocks are left over");
  return reached;
}

int main(int argc, char **argv) {
  static sweep w;
  if (argc < 5 || argc > 5 + MOST_SETTINGS) {
    fprintf(stderr, "usage: fault_sweep KIND MODEL DEVICES FLAGS [KEY=VALUE ...]\n");
    return 2;
  }
  w.kind = argv[1];
  w.model = argv[2];
  w.devices = argv[3];
  w.flags = (uint32_t)strtoul(argv[4], NULL, 10);
  for (int i = 5; i < argc; i++) {
    char *equals = strchr(argv[i], '=');
    if (equals == NULL) return 2;
    *equals = '\0';
    w.settings[w.n_settings++] = (heddle_setting){argv[i], equals + 1};
  }
  atomic_uint ignored = 0;
  heddle_error err = {0};
  heddle_context *ctx = context(&w, NULL, &ignored);
  if (work(&w, ctx, &w.expected, &w.n_expected, &err) != HEDDLE_OK) fail(&w, 0, "without a failure", err.text);
  heddle_context_release(ctx);
  uint64_t n = 1, errors = 0;
  for (bool error; one(&w, n, &error); n++) errors += error;
  printf("%" PRIu64 " %" PRIu64 "\n", n - 1, errors);
  free(w.expected);
  return 0;
}
