/* labels: threads
 * The system library: objects in this program registered themselves before main (system_objects.c). Prefixes, names that
 * come later or twice, variables for the context as several versions used them, and what is refused. */
#include <pthread.h>
#include <string.h>

#include "cases.h"
#include "heddle/heddle.h"

int TVMBackendRegisterSystemLibSymbol(const char *name, void *address);

extern void *system_context_one, *system_context_two;
extern int system_registered;

static char log_text[2000];

static void keep(void *user, int32_t level, const char *component, const char *text) {
  (void)user, (void)component;
  if (level > HEDDLE_LOG_WARN) return;
  strncat(log_text, text, sizeof log_text - strlen(log_text) - 2);
  strcat(log_text, "\n");
}

static heddle_context *context(void) {
  heddle_setting settings[] = {{"config", "off"}, {"threads", "1"}};
  heddle_context *ctx = NULL;
  heddle_error err = {0};
  if (heddle_context_create(settings, 2, keep, NULL, &ctx, &err) != HEDDLE_OK) fail_msg("%s", err.text);
  return ctx;
}

static heddle_module *library(heddle_context *ctx, const char *prefix) {
  heddle_module *m = NULL;
  heddle_error err = {0};
  if (heddle_module_system(ctx, prefix, &m, &err) != HEDDLE_OK) fail_msg("%s", err.text);
  return m;
}

static int64_t number(heddle_module *m, const char *function) {
  heddle_value result = {0};
  heddle_error err = {0};
  if (heddle_module_call(m, function, NULL, 0, &result, &err) != HEDDLE_OK) fail_msg("%s", err.text);
  assert_int_equal(result.kind, HEDDLE_VALUE_INT);
  return result.of.i;
}

static int gives(int64_t n, void *ret, int *code) {
  memcpy(ret, &n, sizeof n);
  *code = 0;
  return 0;
}

static int gives_7(void *args, int *codes, int n, void *ret, int *code) {
  (void)args, (void)codes, (void)n;
  return gives(7, ret, code);
}

static int gives_8(void *args, int *codes, int n, void *ret, int *code) {
  (void)args, (void)codes, (void)n;
  return gives(8, ret, code);
}

static void add(const char *name, int (*f)(void *, int *, int, void *, int *)) {
  void *address;
  memcpy(&address, &f, sizeof address);
  assert_int_equal(TVMBackendRegisterSystemLibSymbol(name, address), 0);
}

static void objects_register_themselves(void **state) {
  (void)state;
  assert_int_equal(system_registered, 6);
  assert_null(system_context_one);
  heddle_context *ctx = context();
  heddle_module *m = library(ctx, NULL), *again = library(ctx, "");
  const char *const names[] = {"b_number", "b_sort", "number", "only_one"};
  for (uint32_t i = 0; i < 4; i++) assert_string_equal(heddle_module_function(m, i), names[i]);
  assert_null(heddle_module_function(m, 4));
  heddle_module_info info = {.struct_size = sizeof info};
  assert_int_equal(heddle_module_get_info(m, &info, NULL), HEDDLE_OK);
  assert_string_equal(info.abi, "packed");
  assert_string_equal(info.path, "system library");
  assert_int_equal(info.n_imports, 0);
  assert_int_equal(number(m, "number"), 1);
  assert_int_equal(number(again, "b_number"), 2);
  assert_non_null(system_context_one);
  heddle_module_release(again);
  heddle_module_release(m);
  void *kept = system_context_one;
  m = library(ctx, NULL); /* the same one, for the life of the process */
  assert_ptr_equal(system_context_one, kept);
  assert_int_equal(number(m, "only_one"), 11);
  heddle_module_release(m);
  heddle_context_release(ctx);
  assert_string_equal(log_text, "");
}

static void a_prefix_comes_first(void **state) {
  (void)state;
  heddle_context *ctx = context();
  heddle_module *b = library(ctx, "b_"), *all = library(ctx, NULL);
  heddle_error err = {0};
  assert_string_equal(heddle_module_function(b, 0), "number");
  assert_string_equal(heddle_module_function(b, 1), "sort");
  assert_null(heddle_module_function(b, 2));
  assert_int_equal(number(b, "number"), 2);
  assert_int_equal(number(b, "b_number"), 2);
  assert_int_equal(number(b, "only_one"), 11); /* without the prefix, as none has it */
  assert_int_equal(number(all, "number"), 1);
  assert_ptr_not_equal(system_context_one, system_context_two);
  assert_int_equal(heddle_module_call(b, "missing", NULL, 0, NULL, &err), HEDDLE_ENOTFOUND);
  assert_non_null(strstr(err.text, "system library 'b_' has no function 'missing'; it has 2: number, sort"));

  const int64_t n = 4;
  heddle_tensor *x = NULL, *y = NULL;
  assert_int_equal(heddle_tensor_create(NULL, HEDDLE_FLOAT32, &n, 1, &x, NULL), HEDDLE_OK);
  assert_int_equal(heddle_tensor_create(NULL, HEDDLE_FLOAT32, &n, 1, &y, NULL), HEDDLE_OK);
  const float values[] = {3, -1, 2, 0}, sorted[] = {-1, 0, 2, 3};
  memcpy(heddle_tensor_data(x), values, sizeof values);
  heddle_value args[2] = {{.kind = HEDDLE_VALUE_TENSOR, .of.t = x}, {.kind = HEDDLE_VALUE_TENSOR, .of.t = y}};
  if (heddle_module_call(b, "sort", args, 2, NULL, &err) != HEDDLE_OK) fail_msg("%s", err.text);
  assert_memory_equal(heddle_tensor_data(y), sorted, sizeof sorted);
  heddle_tensor_release(x);
  heddle_tensor_release(y);
  heddle_module_release(b);
  heddle_module_release(all);
  heddle_context_release(ctx);
}

static void names_that_come_later_or_twice(void **state) {
  (void)state;
  heddle_context *ctx = context();
  heddle_module *m = library(ctx, NULL);
  char name[] = "later";
  add(name, gives_7);
  memcpy(name, "xxxxx", 5); /* it was copied */
  assert_int_equal(number(m, "later"), 7);
  assert_null(heddle_module_function(m, 4)); /* nothing changes under its users */
  heddle_module_release(m);
  m = library(ctx, NULL);
  assert_string_equal(heddle_module_function(m, 2), "later");
  assert_string_equal(log_text, "");
  add("later", gives_7); /* the same again is no news */
  add("later", gives_8);
  assert_int_equal(number(m, "later"), 8);
  heddle_module *b = library(ctx, "b_");
  assert_non_null(strstr(log_text, "registered twice, the last one counts: later\n"));
  heddle_module_release(b);
  heddle_module_release(m);
  heddle_context_release(ctx);
}

/* Up to v0.6 every object's variable gets the library, those that come later too. */
static void contexts_of_several_objects(void **state) {
  (void)state;
  static void *first, *second, *third, *late, *other;
  static void *const fixed = NULL;
  TVMBackendRegisterSystemLibSymbol("p___tvm_module_ctx", &first);
  TVMBackendRegisterSystemLibSymbol("p___tvm_module_ctx", &second);
  TVMBackendRegisterSystemLibSymbol("p___tvm_module_ctx", &first);
  TVMBackendRegisterSystemLibSymbol("p___tvm_module_ctx", &third);
  TVMBackendRegisterSystemLibSymbol("o___tvm_module_ctx", &other);
  heddle_context *ctx = context();
  heddle_module *m = library(ctx, "p_");
  assert_non_null(first);
  assert_ptr_equal(first, second);
  assert_ptr_equal(first, third);
  assert_null(other);
  assert_null(late);
  TVMBackendRegisterSystemLibSymbol("p___tvm_module_ctx", &late);
  assert_ptr_equal(first, late);
  heddle_module_release(m);
  void *address;
  const void *p = &fixed;
  memcpy(&address, &p, sizeof address);
  TVMBackendRegisterSystemLibSymbol("r___tvm_module_ctx", address);
  heddle_error err = {0};
  assert_int_equal(heddle_module_system(ctx, "r_", &m, &err), HEDDLE_EFORMAT);
  assert_non_null(strstr(err.text, "r___tvm_module_ctx is no pointer that can be written"));
  heddle_context_release(ctx);
}

static int32_t ffi_gives(void *self, const void *args, int32_t n, void *result, int64_t value) {
  (void)self, (void)args, (void)n;
  memset(result, 0, 16);
  memcpy(result, &(int32_t){1}, 4);
  memcpy((char *)result + 8, &value, 8);
  return 0;
}

static int32_t ffi_3(void *self, const void *args, int32_t n, void *result) {
  return ffi_gives(self, args, n, result, 3);
}

static int32_t ffi_4(void *self, const void *args, int32_t n, void *result) {
  return ffi_gives(self, args, n, result, 4);
}

static void add_ffi(const char *name, int32_t (*f)(void *, const void *, int32_t, void *)) {
  void *address;
  memcpy(&address, &f, sizeof address);
  assert_int_equal(TVMBackendRegisterSystemLibSymbol(name, address), 0);
}

static void names_of_later_versions(void **state) {
  (void)state;
  static void *ctx_variable, *old_variable;
  add_ffi("__tvm_ffi_f_add", ffi_3);
  add_ffi("__tvm_ffi_sub", ffi_4);
  TVMBackendRegisterSystemLibSymbol("f___tvm_ffi__library_ctx", &ctx_variable);
  add_ffi("g_add", ffi_4); /* v0.21 has plain names, and a variable of its own */
  TVMBackendRegisterSystemLibSymbol("g___tvm_ffi_library_ctx", &old_variable);
  heddle_context *ctx = context();
  heddle_module *f = library(ctx, "f_"), *g = library(ctx, "g_"), *none = NULL;
  heddle_module_info info = {.struct_size = sizeof info};
  assert_int_equal(heddle_module_get_info(f, &info, NULL), HEDDLE_OK);
  assert_string_equal(info.abi, "tvm-ffi");
  assert_string_equal(heddle_module_function(f, 0), "add");
  assert_null(heddle_module_function(f, 1));
  assert_int_equal(number(f, "add"), 3);
  assert_int_equal(number(f, "sub"), 4);
  assert_non_null(ctx_variable);
  assert_int_equal(heddle_module_get_info(g, &info, NULL), HEDDLE_OK);
  assert_string_equal(info.abi, "tvm-ffi v0.21");
  assert_int_equal(number(g, "add"), 4);
  assert_non_null(old_variable);
  heddle_error err = {0};
  assert_int_equal(heddle_module_system(ctx, NULL, &none, &err), HEDDLE_EUNSUPPORTED); /* which of the two? */
  assert_non_null(strstr(err.text, "prefixes of their own"));
  heddle_module_release(f);
  heddle_module_release(g);
  heddle_context_release(ctx);
}

static void nothing_has_the_prefix(void **state) {
  (void)state;
  static void *variable;
  heddle_context *ctx = context();
  heddle_module *m = library(ctx, "empty_");
  heddle_error err = {0};
  assert_string_equal(heddle_module_function(m, 0), "b_number"); /* as no name has the prefix, those without count */
  assert_int_equal(number(m, "number"), 1);
  assert_int_equal(heddle_model_unpack(m, NULL, &(heddle_graph *){NULL}, &(heddle_params *){NULL}, &err),
                   HEDDLE_ENOTFOUND);
  assert_non_null(strstr(err.text, "system library 'empty_' holds no model"));
  heddle_module_release(m);
  TVMBackendRegisterSystemLibSymbol("empty___tvm_module_ctx", &variable);
  static const unsigned char damaged[] = {1, 0, 0, 0, 0, 0, 0, 0, 9};
  TVMBackendRegisterSystemLibSymbol("empty___tvm_dev_mblob", (void *)(uintptr_t)damaged);
  for (int i = 0; i < 2; i++) { /* as no module was there, what came later counts */
    assert_int_equal(heddle_module_system(ctx, "empty_", &m, &err), HEDDLE_EFORMAT);
    assert_non_null(strstr(err.text, "its blob"));
  }
  static const unsigned char fine[] = {8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
  TVMBackendRegisterSystemLibSymbol("empty___tvm_dev_mblob", (void *)(uintptr_t)fine);
  m = library(ctx, "empty_");
  assert_non_null(variable);
  heddle_module_release(m);
  heddle_context_release(ctx);
}

/* ---- threads */

enum { THREADS = 4, NAMES = 200 };

static void *register_many(void *arg) {
  char name[40];
  for (int i = 0; i < NAMES; i++) {
    snprintf(name, sizeof name, "t_%d_%d", *(int *)arg, i);
    add(name, i % 2 == 0 ? gives_7 : gives_8);
  }
  return NULL;
}

static void *look_up(void *arg) {
  heddle_context *ctx = arg;
  for (int i = 0; i < 50; i++) {
    heddle_module *m = NULL;
    if (heddle_module_system(ctx, "t_", &m, NULL) != HEDDLE_OK) return "no library";
    for (uint32_t k = 0; heddle_module_function(m, k) != NULL; k += 37) {
      heddle_value v = {0};
      if (heddle_module_call(m, heddle_module_function(m, k), NULL, 0, &v, NULL) != HEDDLE_OK || v.of.i < 7)
        return "no function";
    }
    heddle_module_release(m);
  }
  return NULL;
}

static void registered_from_several_threads(void **state) {
  (void)state;
  heddle_context *ctx = context();
  pthread_t started[THREADS], looking;
  int numbers[THREADS];
  void *wrong = NULL;
  for (int i = 0; i < THREADS; i++) {
    numbers[i] = i;
    assert_int_equal(pthread_create(&started[i], NULL, register_many, &numbers[i]), 0);
  }
  assert_int_equal(pthread_create(&looking, NULL, look_up, ctx), 0);
  for (int i = 0; i < THREADS; i++) pthread_join(started[i], NULL);
  pthread_join(looking, &wrong);
  if (wrong != NULL) fail_msg("%s", (const char *)wrong);
  heddle_module *m = library(ctx, "t_");
  uint32_t n = 0;
  while (heddle_module_function(m, n) != NULL) n++;
  assert_int_equal(n, THREADS * NAMES);
  assert_int_equal(number(m, "3_199"), 8);
  heddle_module_release(m);
  heddle_context_release(ctx);
}

CASES(CASE(objects_register_themselves), CASE(a_prefix_comes_first), CASE(names_that_come_later_or_twice),
      CASE(contexts_of_several_objects), CASE(names_of_later_versions), CASE(nothing_has_the_prefix),
      CASE(registered_from_several_threads))
