/* tests/tools/survive_sweep.c: a device fails at the k-th call, for every k of the making and the runs of a model:
 * survive_sweep MODEL DEVICES POLICY STRIDE FAULT [KEY=VALUE ...]. FAULT is a setting with '#' for k, such as
 * sim.fail=run:#@0:fault or fault.fail=any:#@sim:0. Each k gives the bits of a run without a failure, or an error with
 * words; the executor's next run does too, and so does the same work done again; nothing is left behind. Every STRIDE-th k
 * is taken. Prints how many there were, how many were errors, saved, and not noticed; exit 1 with words otherwise. */
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/device.h"
#include "heddle/heddle.h"
#include "sweep_io.h"

enum { MOST_SETTINGS = 16, UNSEEN = 25 }; /* so many ks in a row that change nothing are the end */
#define RUN_NS UINT64_C(60000000000)

typedef struct bytes {
  unsigned char *data;
  size_t n;
} bytes;

typedef struct sweep {
  const char *model, *devices, *policy, *fault;
  heddle_setting settings[MOST_SETTINGS + 4];
  size_t n_settings; /* of the caller's; ours come after */
  bytes expected;
  uint64_t errors, saved, unseen;
} sweep;

static void fail(const sweep *w, uint64_t k, const char *what, const char *words) {
  printf("%s, %s, k = %" PRIu64 ": %s: %s\n", w->fault, w->policy, k, what, words);
  exit(1);
}

/* ---- the work */

static void must_match(const sweep *w, uint64_t k, const bytes *out) {
  if (out->n != w->expected.n || memcmp(out->data, w->expected.data, out->n) != 0)
    fail(w, k, "outputs", "they are others than without a failure");
}

static void must_be_clean(const sweep *w, uint64_t k, heddle_status s, const heddle_error *err) {
  if (err->text[0] == '\0' || err->status != s) fail(w, k, "a status without words", err->text);
  if (s == HEDDLE_EINVAL || s == HEDDLE_EINTERNAL || s == HEDDLE_EBUSY || s == HEDDLE_ETIMEOUT)
    fail(w, k, "an error that no device makes", err->text);
}

/* Makes and runs; after a run that failed, runs again: which is right, or an error too. */
static heddle_status work(const sweep *w, uint64_t k, heddle_context *ctx, bool *saved, heddle_error *err) {
  heddle_model *m = NULL;
  heddle_executor *ex = NULL;
  bytes out = {0};
  heddle_error again;
  heddle_executor_stats stats = {.struct_size = sizeof stats};
  heddle_model_options options = {.struct_size = sizeof options, .devices = w->devices, .on_failure = w->policy};
  heddle_status s = heddle_model_load(ctx, w->model, NULL, &options, &m, err);
  if (s == HEDDLE_OK) s = heddle_executor_create(m, &ex, err);
  if (s == HEDDLE_OK) s = set_inputs(ex, err);
  for (int i = 0; i < 2 && s == HEDDLE_OK; i++) {
    s = heddle_executor_run(ex, RUN_NS, err);
    if (s == HEDDLE_OK) s = take_outputs(ex, &out.data, &out.n, err);
    if (s == HEDDLE_OK && w->expected.data != NULL) must_match(w, k, &out);
  }
  if (s != HEDDLE_OK && ex != NULL && set_inputs(ex, &again) == HEDDLE_OK) {
    heddle_status next = heddle_executor_run(ex, RUN_NS, &again);
    if (next == HEDDLE_OK) next = take_outputs(ex, &out.data, &out.n, &again);
    if (next == HEDDLE_OK) must_match(w, k, &out);
    else must_be_clean(w, k, next, &again);
  }
  *saved =
      ex != NULL && heddle_executor_get_stats(ex, &stats, NULL) == HEDDLE_OK && stats.retries + stats.failovers > 0;
  heddle_executor_release(ex);
  heddle_model_release(m);
  if (w->expected.data == NULL) ((sweep *)(uintptr_t)w)->expected = out;
  else free(out.data);
  return s;
}

/* ---- one failure */

static void hear(void *user, int32_t level, const char *component, const char *text) {
  (void)level;
  if (strcmp(component, "fault") == 0 && strstr(text, "fails") != NULL) atomic_fetch_add((atomic_uint *)user, 1);
}

/* With the k-th call failing, or none (0). */
static heddle_context *context(sweep *w, uint64_t k, atomic_uint *hits) {
  char rule[400] = "";
  heddle_context *ctx = NULL;
  heddle_error err;
  size_t n = w->n_settings;
  const char *equals = strchr(w->fault, '=');
  char key[64];
  snprintf(key, sizeof key, "%.*s", (int)(equals - w->fault), w->fault);
  for (const char *p = equals + 1; *p != '\0'; p++) {
    size_t at = strlen(rule);
    if (*p == '#') snprintf(rule + at, sizeof rule - at, "%" PRIu64, k);
    else snprintf(rule + at, sizeof rule - at, "%c", *p);
  }
  w->settings[n++] = (heddle_setting){"log", "info"};
  if (k > 0) {
    w->settings[n++] = (heddle_setting){"layers", strncmp(key, "fault.", 6) == 0 ? "check,fault" : "check"};
    w->settings[n++] = (heddle_setting){key, rule};
  }
  if (heddle_context_create(w->settings, n, hear, hits, &ctx, &err) != HEDDLE_OK) fail(w, k, "context", err.text);
  return ctx;
}

/* No device is open, and those that were lost can be opened again. */
static void check_devices(const sweep *w, uint64_t k, heddle_context *ctx) {
  heddle_device *devices[16];
  size_t n = 0;
  heddle_error err;
  if (heddle_context_select(ctx, w->devices, devices, 16, &n, NULL, &err) != HEDDLE_OK) fail(w, k, "devices", err.text);
  for (size_t i = 0; i < n; i++) {
    if (devices[i]->opened != 0) fail(w, k, devices[i]->name, "it is open still");
    heddle_status s = heddle_device_reopen(devices[i], &err); /* twice: opening may be what fails */
    if (s != HEDDLE_OK && heddle_device_reopen(devices[i], &err) != HEDDLE_OK) fail(w, k, devices[i]->name, err.text);
  }
}

/* False where nothing was to be seen of the k-th call. */
static bool one(sweep *w, uint64_t k) {
  atomic_uint hits = 0;
  size_t before = heddle__alloc_live();
  bool saved = false, again = false;
  heddle_error err = {0};
  heddle_context *ctx = context(w, k, &hits);
  heddle_status s = work(w, k, ctx, &saved, &err);
  if (s != HEDDLE_OK) must_be_clean(w, k, s, &err);
  check_devices(w, k, ctx);
  bool seen = s != HEDDLE_OK || saved || atomic_load(&hits) > 0;
  for (int i = 0; work(w, k, ctx, &again, &err) != HEDDLE_OK; i++) { /* a second device's k-th call may come now */
    check_devices(w, k, ctx);
    if (i == 3) fail(w, k, "afterwards", err.text);
  }
  check_devices(w, k, ctx);
  heddle_context_release(ctx);
  if (heddle__alloc_live() != before) fail(w, k, "memory", "blocks are left over");
  w->errors += s != HEDDLE_OK;
  w->saved += s == HEDDLE_OK && saved;
  w->unseen += s == HEDDLE_OK && !saved && seen;
  return seen;
}

int main(int argc, char **argv) {
  static sweep w;
  if (argc < 6 || argc > 6 + MOST_SETTINGS || strchr(argv[5], '=') == NULL || strchr(argv[5], '#') == NULL) {
    fprintf(stderr, "usage: survive_sweep MODEL DEVICES POLICY STRIDE SETTING=RULE [KEY=VALUE ...]\n");
    return 2;
  }
  w.model = argv[1];
  w.devices = argv[2];
  w.policy = argv[3];
  w.fault = argv[5];
  for (int i = 6; i < argc; i++) {
    char *equals = strchr(argv[i], '=');
    if (equals == NULL) return 2;
    *equals = '\0';
    w.settings[w.n_settings++] = (heddle_setting){argv[i], equals + 1};
  }
  uint64_t stride = strtoull(argv[4], NULL, 10), last = 0, tried = 0;
  atomic_uint ignored = 0;
  bool saved;
  heddle_error err = {0};
  heddle_context *ctx = context(&w, 0, &ignored);
  if (stride == 0 || work(&w, 0, ctx, &saved, &err) != HEDDLE_OK) fail(&w, 0, "without a failure", err.text);
  heddle_context_release(ctx);
  for (uint64_t k = 1; k <= last + UNSEEN * (stride > 1 ? 2 : 1); k += stride, tried++)
    if (one(&w, k)) last = k;
  printf("%" PRIu64 " of %" PRIu64 " calls: %" PRIu64 " errors, %" PRIu64 " saved, %" PRIu64 " not noticed\n", tried,
         last, w.errors, w.saved, w.unseen);
  free(w.expected.data);
  return 0;
}
