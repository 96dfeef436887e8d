/* labels: threads
 * Loaders of the application from C: called from several threads while a library is opened and closed, a loader that
 * opens the library it is called for, memory that is out anywhere, and what it gets of the library's constants. */
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "cases.h"
#include "core/alloc.h"
#include "heddle/heddle.h"

int TVMBackendRegisterSystemLibSymbol(const char *name, void *address);

#define FILE_PATH HEDDLE_TEST_BUILD "/tests/tvm_fixture.so"

/* ---- a module that adds what it was given as constants to what it is called with */

typedef struct acme {
  double constant;
} acme;

static atomic_int live;
static heddle_context *open_again; /* the loader opens the library "busy_" */
static heddle_status opened;

static heddle_status load(void *self, const char *kind, const void *data, uint64_t bytes, uint64_t *used, void **module,
                          heddle_error *err) {
  (void)self, (void)data, (void)err;
  if (strcmp(kind, "acme") != 0 || bytes < 3) return HEDDLE_EFORMAT;
  *used = 3;
  if (open_again != NULL) {
    heddle_module *m = NULL;
    opened = heddle_module_system(open_again, "busy_", &m, err);
    heddle_module_release(m);
  }
  acme *a = calloc(1, sizeof *a);
  if (a == NULL) return HEDDLE_ENOMEM;
  live++;
  *module = a;
  return HEDDLE_OK;
}

static void release(void *self, void *module) {
  (void)self;
  live--;
  free(module);
}

static void *find(void *self, void *module, const char *name) {
  (void)self, (void)module;
  if (strcmp(name, "plus") == 0) return (void *)1;
  return strcmp(name, "__init_plus") == 0 ? (void *)2 : NULL;
}

static heddle_status call(void *self, void *module, void *function, const heddle_value *args, uint32_t n,
                          heddle_value *result, heddle_error *err) {
  acme *a = module;
  (void)self, (void)err;
  if (function == (void *)2) {
    for (uint32_t i = 0; i < n; i++) a->constant += *(const float *)heddle_tensor_data(args[i].of.t);
    return HEDDLE_OK;
  }
  if (n != 1 || args[0].kind != HEDDLE_VALUE_FLOAT) {
    *err = (heddle_error){HEDDLE_EINVAL, 7, "plus takes a number"};
    return HEDDLE_EINVAL;
  }
  *result = (heddle_value){.kind = HEDDLE_VALUE_FLOAT, .of.f = args[0].of.f + a->constant};
  return HEDDLE_OK;
}

static const heddle_module_loader loader = {
    .struct_size = sizeof loader, .load = load, .release = release, .find = find, .call = call};

/* ---- a blob: constants for "plus", then the module */

static unsigned char blob[600];

static unsigned char *put(unsigned char *at, uint64_t value, int width) {
  for (int i = 0; i < width; i++) *at++ = (unsigned char)(value >> (8 * i));
  return at;
}

static unsigned char *put_text(unsigned char *at, const char *text) {
  at = put(at, strlen(text), 8);
  memcpy(at, text, strlen(text));
  return at + strlen(text);
}

static unsigned char *put_float(unsigned char *at, float value) {
  at = put(put(put(at, UINT64_C(0xDD5E40F096B4A13F), 8), 0, 8), 1, 8); /* on cpu:0 */
  at = put(put(put(put(put(put(at, 1, 4), 2, 1), 32, 1), 1, 2), 1, 8), 4, 8);
  memcpy(at, &value, 4);
  return at + 4;
}

static void make_blob(const char *prefix) {
  char name[80];
  unsigned char *at = put(blob + 8, 2, 8);
  at = put_text(put_text(put(put_text(at, "const_loader"), 2, 8), "c0"), "c1");
  at = put_float(put_float(put(at, 2, 8), 0.5f), 0.25f);
  at = put_text(put_text(put(at, 2, 8), "nobody"), "plus");
  at = put_text(put(put(put(at, 2, 8), 0, 8), 2, 8), "c1");
  at = put_text(at, "c0");
  at = put(put_text(at, "acme"), 0, 3);
  put(blob, (uint64_t)(at - blob - 8), 8);
  snprintf(name, sizeof name, "%s__tvm_dev_mblob", prefix);
  TVMBackendRegisterSystemLibSymbol(name, blob);
}

static heddle_context *context(void) {
  heddle_setting settings[] = {{"config", "off"}, {"threads", "2"}};
  heddle_context *ctx = NULL;
  heddle_error err = {0};
  if (heddle_context_create(settings, 2, NULL, NULL, &ctx, &err) != HEDDLE_OK) fail_msg("%s", err.text);
  if (heddle_module_register_loader("acme", &loader, NULL, &err) != HEDDLE_OK) fail_msg("%s", err.text);
  return ctx;
}

static double plus(heddle_module *m, double value) {
  heddle_value arg = {.kind = HEDDLE_VALUE_FLOAT, .of.f = value}, result = {0};
  return heddle_module_call(m, "plus", &arg, 1, &result, NULL) == HEDDLE_OK ? result.of.f : -1;
}

static void constants_are_handed_over_once(void **state) {
  (void)state;
  heddle_context *ctx = context();
  heddle_module *m = NULL;
  heddle_error err = {0};
  make_blob("a_");
  for (int i = 0; i < 2; i++) {
    if (heddle_module_system(ctx, "a_", &m, &err) != HEDDLE_OK) fail_msg("%s", err.text);
    assert_true(plus(m, 1) == 1.75);
    assert_int_equal(heddle_module_call(m, "plus", NULL, 0, NULL, &err), HEDDLE_EINVAL);
    assert_non_null(strstr(err.text, "function 'plus' of system library 'a_': plus takes a number"));
    assert_int_equal(err.api_code, 7);
    heddle_module_release(m);
  }
  assert_int_equal(live, 1);
  heddle_context_release(ctx);
}

static void a_loader_that_opens_its_own_library(void **state) {
  (void)state;
  open_again = context();
  heddle_module *m = NULL;
  heddle_error err = {0};
  make_blob("busy_");
  if (heddle_module_system(open_again, "busy_", &m, &err) != HEDDLE_OK) fail_msg("%s", err.text);
  assert_int_equal(opened, HEDDLE_EBUSY);
  assert_true(plus(m, 0) == 0.75);
  heddle_module_release(m);
  heddle_context_release(open_again);
}

/* Every allocation fails once: an error, nothing is left, and the next try may be the one that works. */
static void memory_that_is_out(void **state) {
  (void)state;
  heddle_context *ctx = context();
  heddle_module *m = NULL;
  heddle_error err = {0};
  make_blob("first_");
  assert_int_equal(heddle_module_system(ctx, "first_", &m, &err), HEDDLE_OK);
  heddle_module_release(m); /* what stays for the process is made */
  make_blob("oom_");
  size_t before = heddle__alloc_live();
  uint64_t n = 0;
  heddle_status s = HEDDLE_ENOMEM;
  while (s != HEDDLE_OK) {
    assert_true(++n < 2000);
    heddle__alloc_fail_at(n);
    s = heddle_module_system(ctx, "oom_", &m, &err);
    heddle__alloc_fail_at(0);
    if (s != HEDDLE_OK && (s != HEDDLE_ENOMEM || strstr(err.text, "memory") == NULL))
      fail_msg("allocation %d: status %d: %s", (int)n, (int)s, err.text);
    if (s != HEDDLE_OK && heddle__alloc_live() != before)
      fail_msg("allocation %d: %d blocks are left", (int)n, (int)(heddle__alloc_live() - before));
  }
  assert_true(n > 10);
  assert_true(plus(m, 2) == 2.75);
  assert_int_equal(live, 2);
  heddle_module_release(m);
  heddle_context_release(ctx);
}

enum { THREADS = 4, ROUNDS = 40 };

static void *open_and_close(void *arg) {
  heddle_context *ctx = arg;
  const int64_t n = 256;
  heddle_tensor *x = NULL, *y = NULL;
  const char *wrong = NULL;
  if (heddle_tensor_create(NULL, HEDDLE_FLOAT32, &n, 1, &x, NULL) != HEDDLE_OK ||
      heddle_tensor_create(NULL, HEDDLE_FLOAT32, &n, 1, &y, NULL) != HEDDLE_OK)
    return "no tensors";
  for (int i = 0; i < 256; i++) ((float *)heddle_tensor_data(x))[i] = 1;
  heddle_value args[2] = {{.kind = HEDDLE_VALUE_TENSOR, .of.t = x}, {.kind = HEDDLE_VALUE_TENSOR, .of.t = y}};
  for (int i = 0; i < ROUNDS && wrong == NULL; i++) {
    heddle_module *file = NULL, *system = NULL;
    if (heddle_module_load(ctx, FILE_PATH, &file, NULL) != HEDDLE_OK) wrong = "a file";
    if (heddle_module_system(ctx, "t_", &system, NULL) != HEDDLE_OK) wrong = "the system library";
    if (wrong == NULL && heddle_module_call(file, "total", args, 2, NULL, NULL) != HEDDLE_OK) wrong = "a call";
    if (wrong == NULL && ((float *)heddle_tensor_data(y))[i] != 256) wrong = "a sum";
    if (wrong == NULL && plus(system, i) != i + 0.75) wrong = "a call of a loader's";
    heddle_module_release(file);
    heddle_module_release(system);
  }
  heddle_tensor_release(x);
  heddle_tensor_release(y);
  return (void *)(uintptr_t)wrong;
}

static void opened_and_closed_by_several_threads(void **state) {
  (void)state;
  heddle_context *ctx = context();
  pthread_t started[THREADS];
  void *wrong[THREADS];
  make_blob("t_");
  for (int i = 0; i < THREADS; i++) assert_int_equal(pthread_create(&started[i], NULL, open_and_close, ctx), 0);
  for (int i = 0; i < THREADS; i++) pthread_join(started[i], &wrong[i]);
  for (int i = 0; i < THREADS; i++)
    if (wrong[i] != NULL) fail_msg("thread %d: %s", i, (const char *)wrong[i]);
  assert_int_equal(live, 1);
  heddle_context_release(ctx);
}

CASES(CASE(constants_are_handed_over_once), CASE(a_loader_that_opens_its_own_library), CASE(memory_that_is_out),
      CASE(opened_and_closed_by_several_threads))
