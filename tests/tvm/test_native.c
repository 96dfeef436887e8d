/* labels: threads
 * heddle/function.h: functions of the application with every kind of value, called directly and through compiled code;
 * their failures' status and words; functions by name; modules; memory that is out. */
#include <pthread.h>
#include <string.h>

#include "cases.h"
#include "core/alloc.h"
#include "heddle/function.h"
#include "heddle/heddle.h"

#define LIBRARY HEDDLE_TEST_BUILD "/tests/tvm_calls.so"
enum { THREADS = 4, ROUNDS = 30 };

static heddle_value number(int64_t i) {
  return (heddle_value){.kind = HEDDLE_VALUE_INT, .of.i = i};
}

static heddle_value text(const char *s) {
  return (heddle_value){.kind = HEDDLE_VALUE_STRING, .of.s = s};
}

/* What the last call was given; tensors by what they hold. */
typedef struct record {
  uint32_t n;
  heddle_value values[20];
  char strings[4][40];
  float first;
  heddle_value result;
  heddle_status fail;
  int released;
} record;

static heddle_status note(void *self, const heddle_value *args, uint32_t n, heddle_value *result, heddle_error *err) {
  record *r = self;
  r->n = n;
  for (uint32_t i = 0, s = 0; i < n && i < 20; i++) {
    r->values[i] = args[i];
    if (args[i].kind == HEDDLE_VALUE_STRING && s < 4) snprintf(r->strings[s++], 40, "%s", args[i].of.s);
    if (args[i].kind == HEDDLE_VALUE_TENSOR) r->first = *(float *)heddle_tensor_data(args[i].of.t);
  }
  *result = r->result;
  if (r->fail == HEDDLE_OK) return HEDDLE_OK;
  if (err != NULL) *err = (heddle_error){.status = r->fail, .api_code = 17, .text = "more than it can bear"};
  return r->fail;
}

static void released(void *self) {
  ((record *)self)->released++;
}

static heddle_function *function(record *r) {
  heddle_function *f = NULL;
  heddle_error err = {0};
  if (heddle_function_create(note, r, released, &f, &err) != HEDDLE_OK) fail_msg("%s", err.text);
  return f;
}

static heddle_tensor *tensor(float first) {
  const int64_t n = 8;
  heddle_tensor *t = NULL;
  assert_int_equal(heddle_tensor_create(NULL, HEDDLE_FLOAT32, &n, 1, &t, NULL), HEDDLE_OK);
  *(float *)heddle_tensor_data(t) = first;
  return t;
}

static heddle_object *library(heddle_context *ctx) {
  heddle_module *m = NULL;
  heddle_object *o = NULL;
  heddle_error err = {0};
  if (heddle_module_load(ctx, LIBRARY, &m, &err) != HEDDLE_OK || heddle_object_of(m, &o, &err) != HEDDLE_OK)
    fail_msg("%s", err.text);
  assert_ptr_equal(heddle_object_library(o), m);
  heddle_module_release(m);
  return o;
}

static heddle_function *of(heddle_object *o, const char *name) {
  heddle_function *f = NULL;
  heddle_error err = {0};
  if (heddle_object_function(o, name, 0, &f, &err) != HEDDLE_OK) fail_msg("%s", err.text);
  return f;
}

static heddle_context *context(void) {
  const heddle_setting settings[] = {{"threads", "2"}, {"config", "off"}};
  heddle_context *ctx = NULL;
  assert_int_equal(heddle_context_create(settings, 2, NULL, NULL, &ctx, NULL), HEDDLE_OK);
  return ctx;
}

static void values_that_are_null(void **state) {
  (void)state;
  record r = {.n = 0};
  heddle_error err = {0};
  heddle_value got;
  heddle_context *ctx = context();
  heddle_object *o = library(ctx);
  heddle_function *f = function(&r), *forward = of(o, "forward");
  const heddle_value args[] = {text(NULL), {.kind = HEDDLE_VALUE_MODULE}, {.kind = HEDDLE_VALUE_FUNCTION}};
  assert_int_equal(heddle_function_register("test.seen", f, 0, &err), HEDDLE_OK);
  for (int way = 0; way < 3; way++)
    for (int k = 0; k < 3; k++) { /* what is NULL arrives as none, and is given back as none */
      r.result = args[k];
      heddle_status s = way < 2 ? heddle_function_call(way == 0 ? f : forward, args, 3, &got, &err)
                                : heddle_module_call(heddle_object_library(o), "forward", args, 3, &got, &err);
      if (s != HEDDLE_OK) fail_msg("%d: %s", way, err.text);
      for (uint32_t i = 0; i < 3; i++)
        if (r.values[i].kind != HEDDLE_VALUE_NONE) fail_msg("%d: argument %u is of kind %d", way, i, r.values[i].kind);
      assert_int_equal(got.kind, HEDDLE_VALUE_NONE);
    }
  (void)heddle_function_remove("test.seen", NULL);
  heddle_function_release(forward);
  heddle_function_release(f);
  heddle_object_release(o);
  heddle_context_release(ctx);
}

/* Directly, through compiled code that was given the function's name, and through code that was given the function. */
static void every_kind_of_value(void **state) {
  (void)state;
  record r = {.n = 0};
  heddle_error err = {0};
  heddle_value got;
  heddle_context *ctx = context();
  heddle_object *o = library(ctx);
  heddle_function *f = function(&r), *forward = of(o, "forward"), *apply = of(o, "apply");
  heddle_tensor *t = tensor(2.5f);
  heddle_value args[] = {{.kind = HEDDLE_VALUE_FUNCTION, .of.function = f},
                         number(-7),
                         {.kind = HEDDLE_VALUE_FLOAT, .of.f = 0.25},
                         text("a text"),
                         {.kind = HEDDLE_VALUE_BYTES, .of.data = "b\0c", .bytes = 3},
                         {.kind = HEDDLE_VALUE_TENSOR, .of.t = t},
                         {.kind = HEDDLE_VALUE_POINTER, .of.data = &r},
                         {.kind = HEDDLE_VALUE_MODULE, .of.module = o},
                         {.kind = HEDDLE_VALUE_FUNCTION, .of.function = forward},
                         {.kind = HEDDLE_VALUE_DEVICE, .of.device = {4, 1}},
                         {.kind = HEDDLE_VALUE_DTYPE, .of.dtype = {2, 16, 4}},
                         {.kind = HEDDLE_VALUE_NONE}};
  enum { N = sizeof args / sizeof args[0] };
  assert_int_equal(heddle_function_register("test.seen", f, 0, &err), HEDDLE_OK);
  for (int way = 0; way < 3; way++) {
    heddle_function *through[] = {f, forward, apply};
    memset(&r, 0, sizeof r);
    r.result = text("the result");
    heddle_status s = way < 2 ? heddle_function_call(through[way], args + 1, N - 1, &got, &err)
                              : heddle_function_call(apply, args, N, &got, &err);
    if (s != HEDDLE_OK) fail_msg("%d: %s", way, err.text);
    assert_int_equal(r.n, N - 1);
    for (uint32_t i = 0; i < r.n; i++)
      if (r.values[i].kind != args[i + 1].kind) fail_msg("%d: argument %u is of kind %d", way, i, r.values[i].kind);
    assert_int_equal(r.values[0].of.i, -7);
    assert_true(r.values[1].of.f == 0.25);
    assert_string_equal(r.strings[0], "a text");
    assert_int_equal(r.values[3].bytes, 3);
    assert_true(r.first == 2.5f);
    assert_ptr_equal(r.values[5].of.data, &r);
    assert_ptr_equal(r.values[6].of.module, o);
    assert_ptr_equal(r.values[7].of.function, forward);
    assert_int_equal(r.values[8].of.device.type, 4);
    assert_int_equal(r.values[8].of.device.number, 1);
    assert_int_equal(r.values[9].of.dtype.bits, 16);
    assert_int_equal(r.values[9].of.dtype.lanes, 4);
    assert_int_equal(got.kind, HEDDLE_VALUE_STRING);
    assert_string_equal(got.of.s, "the result");

    heddle_value results[] = {number(5),
                              {.kind = HEDDLE_VALUE_TENSOR, .of.t = t},
                              {.kind = HEDDLE_VALUE_FUNCTION, .of.function = forward},
                              {.kind = HEDDLE_VALUE_MODULE, .of.module = o},
                              {.kind = HEDDLE_VALUE_NONE}};
    for (int k = 0; k < 10; k++) { /* with a place for the result, and without: it is given back */
      r.result = results[k % 5];
      heddle_tensor_retain(k % 5 == 1 ? t : NULL);
      heddle_function_retain(k % 5 == 2 ? forward : NULL);
      heddle_object_retain(k % 5 == 3 ? o : NULL);
      assert_int_equal(heddle_function_call(through[way], args, way < 2 ? 0 : 1, k < 5 ? &got : NULL, &err), HEDDLE_OK);
      if (k >= 5) continue;
      assert_int_equal(got.kind, results[k].kind);
      if (k == 1) assert_true(*(float *)heddle_tensor_data(got.of.t) == 2.5f);
      if (k > 1 && k < 4) assert_ptr_equal(got.of.data, results[k].of.data);
      heddle_tensor_release(k == 1 ? got.of.t : NULL);
      heddle_function_release(k == 2 ? got.of.function : NULL);
      heddle_object_release(k == 3 ? got.of.module : NULL);
    }
  }
  heddle_value more[25]; /* more than are kept on the stack */
  for (int i = 0; i < 25; i++) more[i] = number(i);
  assert_int_equal(heddle_function_call(forward, more, 25, NULL, &err), HEDDLE_OK);
  assert_int_equal(r.n, 25);
  assert_int_equal(r.values[19].of.i, 19);
  assert_int_equal(heddle_function_remove("test.seen", &err), HEDDLE_OK);
  heddle_tensor_release(t);
  heddle_function_release(apply);
  heddle_function_release(forward);
  heddle_function_release(f);
  heddle_object_release(o);
  heddle_context_release(ctx);
}

/* The status too, which compiled code between has no word for. */
static void failures(void **state) {
  (void)state;
  record r = {.fail = HEDDLE_ELIMIT};
  heddle_error err = {0};
  heddle_context *ctx = context();
  heddle_object *o = library(ctx);
  heddle_function *f = function(&r), *apply = of(o, "apply"), *none = NULL;
  heddle_value arg = {.kind = HEDDLE_VALUE_FUNCTION, .of.function = f};
  assert_int_equal(heddle_function_call(f, NULL, 0, NULL, &err), HEDDLE_ELIMIT);
  assert_string_equal(err.text, "more than it can bear");
  assert_int_equal(err.api_code, 17);
  err = (heddle_error){0};
  assert_int_equal(heddle_function_call(apply, &arg, 1, NULL, &err), HEDDLE_ELIMIT);
  assert_non_null(strstr(err.text, "function 'apply' of "));
  assert_non_null(strstr(err.text, "tvm_calls.so: more than it can bear"));
  assert_int_equal(err.api_code, 17);
  assert_int_equal(heddle_module_call(heddle_object_library(o), "apply", &arg, 1, NULL, &err), HEDDLE_ELIMIT);
  arg = number(3);
  assert_int_equal(heddle_function_call(apply, &arg, 1, NULL, &err), HEDDLE_EFAILED);
  assert_non_null(strstr(err.text, "apply: expected a function"));
  arg = (heddle_value){.kind = 99};
  assert_int_equal(heddle_function_call(f, &arg, 1, NULL, &err), HEDDLE_EINVAL);
  assert_non_null(strstr(err.text, "argument 0: a value of kind 99"));
  assert_int_equal(heddle_module_call(heddle_object_library(o), "apply", &arg, 1, NULL, &err), HEDDLE_EINVAL);
  assert_int_equal(heddle_object_function(o, "nothing", 1, &none, &err), HEDDLE_ENOTFOUND);
  assert_non_null(strstr(err.text, "'nothing'"));
  assert_int_equal(heddle_function_call(NULL, NULL, 0, NULL, &err), HEDDLE_EINVAL);
  assert_int_equal(heddle_object_import(o, o, &err), HEDDLE_EINVAL);
  assert_int_equal(r.released, 0);
  heddle_function_release(f);
  assert_int_equal(r.released, 1);
  heddle_function_release(apply);
  heddle_object_release(o);
  heddle_context_release(ctx);
}

static void names_and_modules(void **state) {
  (void)state;
  record r = {.result = number(1)}, other = {.result = number(2)};
  heddle_error err = {0};
  heddle_value got;
  const char *const *names;
  size_t n = 0;
  heddle_function *f = function(&r), *g = function(&other), *found;
  assert_null(heddle_function_find("test.name"));
  assert_int_equal(heddle_function_register("test.name", f, 0, &err), HEDDLE_OK);
  assert_int_equal(heddle_function_register("test.name", g, 0, &err), HEDDLE_EINVAL);
  assert_non_null(strstr(err.text, "'test.name' is registered already"));
  assert_int_equal(heddle_function_register("test.name", g, 1, &err), HEDDLE_OK);
  assert_int_equal(r.released, 0);
  heddle_function_release(f);
  assert_int_equal(r.released, 1); /* the registry gave it back when it was replaced */
  heddle_function_release(g);
  assert_int_equal(heddle_function_names(&names, &n, &err), HEDDLE_OK);
  size_t at = 0;
  while (at < n && strcmp(names[at], "test.name") != 0) at++;
  assert_true(at < n);
  found = heddle_function_find("test.name");
  assert_int_equal(heddle_function_call(found, NULL, 0, &got, &err), HEDDLE_OK);
  assert_int_equal(got.of.i, 2);
  heddle_function_release(found);
  assert_int_equal(heddle_function_remove("test.name", &err), HEDDLE_OK);
  assert_int_equal(other.released, 1);
  assert_int_equal(heddle_function_remove("test.name", &err), HEDDLE_ENOTFOUND);

  heddle_object *o = NULL, *imported = NULL;
  if (heddle_object_load(LIBRARY, NULL, &o, &err) != HEDDLE_OK) fail_msg("%s", err.text);
  assert_int_equal(heddle_object_load(LIBRARY, "so", &imported, &err), HEDDLE_OK);
  assert_string_equal(heddle_object_kind(o), "library");
  assert_null(heddle_object_imported(o, 0));
  assert_int_equal(heddle_object_import(o, imported, &err), HEDDLE_OK);
  assert_ptr_equal(heddle_object_imported(o, 0), imported);
  assert_null(heddle_object_imported(o, 1));
  assert_int_equal(heddle_object_import(imported, o, &err), HEDDLE_EINVAL);
  heddle_object_release(imported);
  assert_int_equal(heddle_object_load("no/such.thing", NULL, &o, &err), HEDDLE_EFAILED);
  assert_non_null(strstr(err.text, "no loader for files of format 'thing'"));
  heddle_object_release(heddle_object_retain(NULL));
  assert_null(o);
}

/* ---- threads, memory */

static heddle_status sum(void *self, const heddle_value *args, uint32_t n, heddle_value *result, heddle_error *err) {
  (void)self, (void)err;
  int64_t all = 0;
  for (uint32_t i = 0; i < n; i++) all += args[i].of.i;
  *result = number(all);
  return HEDDLE_OK;
}

typedef struct job {
  heddle_function *apply, *sum;
  int64_t k;
  const char *wrong;
} job;

static void *many_calls(void *arg) {
  job *j = arg;
  for (int64_t i = 0; i < ROUNDS && j->wrong == NULL; i++) {
    heddle_value args[3] = {{.kind = HEDDLE_VALUE_FUNCTION, .of.function = j->sum}, number(i), number(j->k)}, got;
    heddle_error err = {0};
    if (heddle_function_call(j->apply, args, 3, &got, &err) != HEDDLE_OK) j->wrong = "a call failed";
    else if (got.kind != HEDDLE_VALUE_INT || got.of.i != i + j->k) j->wrong = "another's sum";
    if (heddle_function_call(j->apply, args + 1, 1, NULL, &err) != HEDDLE_EFAILED) j->wrong = "no failure";
  }
  return NULL;
}

static void calls_from_several_threads(void **state) {
  (void)state;
  heddle_context *ctx = context();
  heddle_object *o = library(ctx);
  heddle_function *apply = of(o, "apply"), *f = NULL;
  pthread_t threads[THREADS];
  job jobs[THREADS];
  assert_int_equal(heddle_function_create(sum, NULL, NULL, &f, NULL), HEDDLE_OK);
  for (int i = 0; i < THREADS; i++) {
    jobs[i] = (job){apply, f, i + 1, NULL};
    pthread_create(&threads[i], NULL, many_calls, &jobs[i]);
  }
  for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
  for (int i = 0; i < THREADS; i++)
    if (jobs[i].wrong != NULL) fail_msg("thread %d: %s", i, jobs[i].wrong);
  heddle_function_release(f);
  heddle_function_release(apply);
  heddle_object_release(o);
  heddle_context_release(ctx);
}

/* A library, an import, a function, and calls with a tensor and a long string, all given back wherever it failed. */
static heddle_status everything(heddle_context *ctx, record *r, heddle_error *err) {
  heddle_module *m = NULL;
  heddle_object *o = NULL, *p = NULL;
  heddle_function *f = NULL, *apply = NULL;
  heddle_tensor *t = NULL;
  const char *const *names;
  const int64_t eight = 8;
  size_t n;
  heddle_value got;
  heddle_status s = heddle_module_load(ctx, LIBRARY, &m, err);
  if (s == HEDDLE_OK) s = heddle_object_of(m, &o, err);
  if (s == HEDDLE_OK) s = heddle_object_of(m, &p, err);
  if (s == HEDDLE_OK) s = heddle_object_import(o, p, err);
  if (s == HEDDLE_OK) s = heddle_object_function(o, "apply", 1, &apply, err);
  if (s == HEDDLE_OK) s = heddle_function_create(note, r, NULL, &f, err);
  if (s == HEDDLE_OK) s = heddle_tensor_create(NULL, HEDDLE_FLOAT32, &eight, 1, &t, err);
  heddle_value args[20] = {{.kind = HEDDLE_VALUE_FUNCTION, .of.function = f}, {.kind = HEDDLE_VALUE_TENSOR, .of.t = t}};
  if (s == HEDDLE_OK) s = heddle_function_call(apply, args, 2, &got, err);
  if (s == HEDDLE_OK) s = heddle_function_call(apply, args, 20, &got, err);
  if (s == HEDDLE_OK) s = heddle_function_names(&names, &n, err);
  heddle_tensor_release(t);
  heddle_function_release(f);
  heddle_function_release(apply);
  heddle_object_release(p);
  heddle_object_release(o);
  heddle_module_release(m);
  return s;
}

static void memory_that_is_out(void **state) {
  (void)state;
  heddle_error err = {0};
  heddle_context *ctx = context();
  record r = {.result = text("a string that stays with the thread")};
  for (int i = 0; i < 2; i++) { /* what stays for the process and the thread is made here */
    if (everything(ctx, &r, &err) != HEDDLE_OK) fail_msg("%s", err.text);
    r.fail = HEDDLE_EIO;
    assert_int_equal(everything(ctx, &r, &err), HEDDLE_EIO);
    r.fail = HEDDLE_OK;
    assert_int_equal(heddle_function_register("__tvm_set_device", heddle_function_find("__tvm_set_device"), 0, &err),
                     HEDDLE_EINVAL);
  }
  size_t live = heddle__alloc_live();
  uint64_t n = 1;
  for (int done = 0; !done; n++) {
    assert_true(n < 20000);
    heddle__alloc_fail_at(n);
    heddle_status s = everything(ctx, &r, &err);
    done = s == HEDDLE_OK;
    heddle__alloc_fail_at(0);
    if (!done && strstr(err.text, "memory") == NULL && strstr(err.text, "libheddle_tvm.so.0") == NULL)
      fail_msg("allocation %d: status %d: %s", (int)n, (int)s, err.text);
    if (heddle__alloc_live() != live)
      fail_msg("allocation %d: %d blocks are left", (int)n, (int)(heddle__alloc_live() - live));
  }
  assert_true(n > 20);
  heddle_context_release(ctx);
}

CASES(CASE(every_kind_of_value), CASE(values_that_are_null), CASE(failures), CASE(names_and_modules),
      CASE(calls_from_several_threads), CASE(memory_that_is_out))
