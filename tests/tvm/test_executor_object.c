/* labels: threads
 * timeout: 300
 * The executor as a module, through TVM's C API as a C program calls it: the values of a run, no allocation in one,
 * parameters shared by threads, whatever a method is given, and memory that is out anywhere. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <tvm/runtime/c_runtime_api.h>

#include "cases.h"
#include "core/alloc.h"
#include "heddle/function.h"
#include "heddle/heddle.h"

#define LIBRARY HEDDLE_TEST_BUILD "/tests/tvm_fixture.so"
enum { N = 256, THREADS = 3, ROUNDS = 25 };

/* total sets every element to the sum of its input: b is N * N times the mean of x. w is a parameter that is an output. */
#define NODE(name, input) \
  "{\"op\":\"tvm_op\",\"name\":\"" name "\",\"attrs\":{\"func_name\":\"total\",\"num_inputs\":\"1\"," \
  "\"num_outputs\":\"1\",\"flatten_data\":\"0\"},\"inputs\":[[" input ",0,0]]}"
static const char graph[] =
    "{\"nodes\":[{\"op\":\"null\",\"name\":\"x\",\"inputs\":[]},{\"op\":\"null\",\"name\":\"w\",\"inputs\":[]}," NODE(
        "a", "0") "," NODE("b", "2") "," NODE("c", "1") "],\"arg_nodes\":[0,1],\"heads\":[[3,0,0],[4,0,0]],"
                                                        "\"node_row_ptr\":[0,1,2,3,4,5],\"attrs\":{\"dltype\":[\"list_"
                                                        "str\",[\"float32\",\"float32\",\"float32\",\"float32\","
                                                        "\"float32\"]],\"shape\":[\"list_shape\",[[256],[256],[256],["
                                                        "256],[256]]],\"storage_id\":[\"list_int\",[0,1,2,3,4]]}}";

typedef struct call {
  TVMValue values[8];
  int codes[8], n;
} call;

static void add(call *c, int code, TVMValue value) {
  c->values[c->n] = value;
  c->codes[c->n++] = code;
}

#define INT(v) \
  kTVMArgInt, (TVMValue) { \
    .v_int64 = (v) \
  }
#define TEXT(v) \
  kTVMStr, (TVMValue) { \
    .v_str = (v) \
  }
#define POINTER(code, v) \
  code, (TVMValue) { \
    .v_handle = (v) \
  }

/* Calls a function and gives it back; its own result. */
static int use(TVMFunctionHandle f, call *c, TVMValue *ret, int *code) {
  int rc = TVMFuncCall(f, c->values, c->codes, c->n, ret, code);
  TVMFuncFree(f);
  return rc;
}

/* A method by name. -1 where there is none, too. */
static int method(TVMModuleHandle module, const char *name, call *c, TVMValue *ret, int *code) {
  TVMFunctionHandle f = NULL;
  int rc = TVMModGetFunction(module, name, 0, &f);
  return rc == 0 && f != NULL ? use(f, c, ret, code) : -1;
}

static int run(TVMModuleHandle module) {
  TVMValue ret;
  int code;
  return method(module, "run", &(call){.n = 0}, &ret, &code);
}

static int set(TVMModuleHandle module, const char *name, DLTensor *t) {
  TVMValue ret;
  int code;
  call c = {.n = 0};
  add(&c, TEXT(name));
  add(&c, POINTER(kTVMDLTensorHandle, t));
  return method(module, "set_input", &c, &ret, &code);
}

/* An output's element 3, of a live array; -1 where it failed. */
static float output(TVMModuleHandle module, int i) {
  TVMValue ret;
  int code = kTVMNullptr;
  call c = {.n = 0};
  add(&c, INT(i));
  if (method(module, "get_output", &c, &ret, &code) != 0 || code != kTVMNDArrayHandle) return -1;
  TVMArrayHandle a = ret.v_handle;
  float value = a->ndim == 1 && a->shape[0] == N ? ((float *)a->data)[3] : -1;
  TVMArrayFree(a);
  return value;
}

static int create(const char *name, TVMModuleHandle library, TVMModuleHandle *out) {
  TVMFunctionHandle f = NULL;
  TVMValue ret;
  int code = kTVMNullptr;
  call c = {.n = 0};
  add(&c, TEXT(graph));
  add(&c, POINTER(kTVMModuleHandle, library));
  add(&c, INT(1));
  add(&c, INT(0));
  if (TVMFuncGetGlobal(name, &f) != 0 || f == NULL) return -1;
  int rc = use(f, &c, &ret, &code);
  *out = rc == 0 && code == kTVMModuleHandle ? ret.v_handle : NULL;
  return rc;
}

/* A blob with w, each element of which is value. */
static int blob_of(DLTensor *w, char **blob, size_t *n) {
  TVMFunctionHandle f = NULL;
  TVMValue ret;
  int code;
  call c = {.n = 0};
  add(&c, TEXT("w"));
  add(&c, POINTER(kTVMDLTensorHandle, w));
  if (TVMFuncGetGlobal("runtime.SaveParams", &f) != 0 || use(f, &c, &ret, &code) != 0 || code != kTVMBytes) return -1;
  *n = ((TVMByteArray *)ret.v_handle)->size;
  *blob = malloc(*n);
  if (*blob != NULL) memcpy(*blob, ((TVMByteArray *)ret.v_handle)->data, *n);
  return *blob != NULL ? 0 : -1;
}

static int load(TVMModuleHandle module, const char *name, TVMModuleHandle other, char *blob, size_t n) {
  TVMByteArray bytes = {blob, n};
  TVMValue ret;
  int code;
  call c = {.n = 0};
  if (other != NULL) add(&c, POINTER(kTVMModuleHandle, other));
  add(&c, POINTER(kTVMBytes, &bytes));
  return method(module, name, &c, &ret, &code);
}

/* A tensor of the program's own. */
typedef struct own {
  _Alignas(256) float data[N];
  int64_t shape;
  DLTensor t;
} own;

static DLTensor *fill(own *o, float value) {
  for (int i = 0; i < N; i++) o->data[i] = value;
  o->shape = N;
  o->t = (DLTensor){.data = o->data, .device = {kDLCPU, 0}, .ndim = 1, .dtype = {kDLFloat, 32, 1}, .shape = &o->shape};
  return &o->t;
}

typedef struct fixture {
  TVMModuleHandle library, ex;
  char *blob;
  size_t n;
  own x, w;
} fixture;

static void open_it(fixture *f, const char *name) {
  *f = (fixture){.library = NULL};
  if (TVMModLoadFromFile(LIBRARY, "so", &f->library) != 0 || create(name, f->library, &f->ex) != 0 ||
      blob_of(fill(&f->w, 2), &f->blob, &f->n) != 0)
    fail_msg("%s", TVMGetLastError());
}

static void close_it(fixture *f) {
  TVMModFree(f->ex);
  TVMModFree(f->library);
  free(f->blob);
}

static void values_of_a_run(void **state) {
  (void)state;
  fixture f;
  open_it(&f, "tvm.graph_executor.create");
  assert_int_equal(run(f.ex), -1);
  assert_non_null(strstr(TVMGetLastError(), "was never set"));
  assert_int_equal(load(f.ex, "load_params", NULL, f.blob, f.n), 0);
  for (int k = 1; k <= 3; k++) {
    assert_int_equal(set(f.ex, "x", fill(&f.x, (float)k)), 0);
    assert_int_equal(run(f.ex), 0);
    assert_true(output(f.ex, 0) == (float)(k * N * N));
    assert_true(output(f.ex, 1) == 2 * N);
  }
  TVMFunctionHandle method_of_it = NULL;
  TVMValue ret;
  int code;
  assert_int_equal(TVMModGetFunction(f.ex, "run", 0, &method_of_it), 0);
  close_it(&f); /* a method keeps its executor, an executor its library */
  assert_int_equal(use(method_of_it, &(call){.n = 0}, &ret, &code), 0);
}

/* Once everything is bound, setting an input and running ask for no memory. */
static void a_run_allocates_nothing(void **state) {
  (void)state;
  fixture f;
  TVMFunctionHandle runs = NULL, sets = NULL;
  TVMValue ret;
  int code;
  open_it(&f, "tvm.graph_executor.create");
  assert_int_equal(load(f.ex, "load_params", NULL, f.blob, f.n), 0);
  assert_int_equal(set(f.ex, "x", fill(&f.x, 1)), 0);
  assert_int_equal(run(f.ex), 0);
  assert_int_equal(TVMModGetFunction(f.ex, "run", 0, &runs), 0);
  assert_int_equal(TVMModGetFunction(f.ex, "set_input", 0, &sets), 0);
  heddle__alloc_fail_at(1);
  for (int i = 0; i < 10; i++) assert_int_equal(TVMFuncCall(runs, NULL, NULL, 0, &ret, &code), 0);
  heddle__alloc_fail_at(0);
  assert_true(output(f.ex, 0) == (float)(N * N));
  TVMFuncFree(runs);
  TVMFuncFree(sets);
  close_it(&f);
}

typedef struct job {
  TVMModuleHandle ex;
  int first;
  const char *wrong;
} job;

static void *work(void *arg) {
  job *j = arg;
  own x;
  for (int i = 0; i < ROUNDS && j->wrong == NULL; i++) {
    float value = (float)(j->first + i % 5);
    if (set(j->ex, "x", fill(&x, value)) != 0 || run(j->ex) != 0) j->wrong = "a call failed";
    else if (output(j->ex, 0) != value * N * N) j->wrong = "another thread's sum";
    else if (output(j->ex, 1) != 2 * N) j->wrong = "other parameters";
    else if (set(j->ex, "nope", &x.t) != -1 || strstr(TVMGetLastError(), "nope") == NULL) j->wrong = "no error";
  }
  return NULL;
}

/* One owns the parameter, the others have its memory. */
static void shared_parameters_in_threads(void **state) {
  (void)state;
  fixture f;
  job jobs[THREADS];
  pthread_t threads[THREADS];
  open_it(&f, "tvm.graph_executor.create");
  assert_int_equal(load(f.ex, "load_params", NULL, f.blob, f.n), 0);
  for (int i = 0; i < THREADS; i++) {
    jobs[i] = (job){f.ex, 10 * i, NULL};
    if (i == 0) continue;
    assert_int_equal(create("tvm.graph_executor.create", f.library, &jobs[i].ex), 0);
    assert_int_equal(load(jobs[i].ex, "share_params", f.ex, f.blob, f.n), 0);
  }
  for (int i = 0; i < THREADS; i++) assert_int_equal(pthread_create(&threads[i], NULL, work, &jobs[i]), 0);
  for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
  for (int i = 0; i < THREADS; i++) {
    if (jobs[i].wrong != NULL) fail_msg("thread %d: %s", i, jobs[i].wrong);
    if (i > 0) TVMModFree(jobs[i].ex);
  }
  close_it(&f);
}

static void drop(TVMValue ret, int code) {
  if (code == kTVMNDArrayHandle) TVMArrayFree(ret.v_handle);
  if (code == kTVMModuleHandle) TVMModFree(ret.v_handle);
  if (code == kTVMPackedFuncHandle) TVMFuncFree(ret.v_handle);
}

/* Every method is given every pair of odd arguments: it refuses them with a message, or takes them. */
/* null and sim have devices of one type, and of the same number. */
static void devices_are_those_of_the_list(void **state) {
  (void)state;
  fixture f;
  TVMValue ret, item;
  int code, item_code;
  float values[N] = {0};
  call inputs = {.n = 0}, first = {.n = 0};
  assert_int_equal(setenv("HEDDLE_DEVICES", "cpu,sim:0", 1), 0);
  open_it(&f, "tvm.graph_executor.create");
  if (load(f.ex, "load_params", NULL, f.blob, f.n) != 0) fail_msg("%s", TVMGetLastError());
  add(&inputs, INT(12));
  add(&inputs, INT(0));
  add(&inputs, TEXT("x"));
  add(&inputs, POINTER(kTVMDLTensorHandle, fill(&f.x, 1)));
  if (method(f.ex, "run_from_inputs", &inputs, &ret, &code) != 0) fail_msg("%s", TVMGetLastError());
  add(&first, INT(0));
  assert_int_equal(method(ret.v_handle, "get", &first, &item, &item_code), 0);
  TVMArrayHandle a = item.v_handle;
  assert_int_equal(a->device.device_type, heddle_plugin_device_type("sim"));
  if (TVMArrayCopyToBytes(a, values, sizeof values) != 0) fail_msg("%s", TVMGetLastError());
  assert_true(values[3] == (float)(N * N));
  TVMArrayFree(a);
  drop(ret, code);
  close_it(&f);
}

static void whatever_a_method_is_given(void **state) {
  (void)state;
  static const char *const names[] = {
      "run",          "set_input",       "set_input_zero_copy", "set_output_zero_copy", "get_input",
      "share_params", "get_input_index", "get_input_info",      "get_output",           "get_output_info",
      "load_params",  "get_num_inputs",  "get_num_outputs",     "run_from_inputs",      "debug_get_output",
      "execute_node", "get_graph_json",  "get_graph_params",    "start_capture",        "get_node_output",
      "profile",      "end_capture",     "run_cuda_graph",      "run_individual",       "run_individual_node"};
  fixture f;
  own odd, small;
  open_it(&f, "tvm.graph_executor_debug.create");
  TVMByteArray empty = {NULL, 0}, garbage = {"garbage", 7}, whole = {f.blob, f.n}, cut = {f.blob, f.n - 1};
  call odds = {.n = 0}, more = {.n = 0};
  fill(&small, 1)->ndim = 0;
  fill(&odd, 1)->dtype.bits = 7;
  add(&odds, INT(-1));
  add(&odds, INT(1));
  add(&odds, INT(INT64_MAX));
  add(&odds, TEXT("x"));
  add(&odds, TEXT(""));
  add(&odds, POINTER(kTVMNullptr, NULL));
  add(&odds, POINTER(kTVMStr, NULL));
  add(&odds, POINTER(kTVMBytes, NULL));
  add(&more, POINTER(kTVMBytes, &empty));
  add(&more, POINTER(kTVMBytes, &garbage));
  add(&more, POINTER(kTVMBytes, &cut));
  add(&more, POINTER(kTVMBytes, &whole));
  add(&more, POINTER(kTVMDLTensorHandle, NULL));
  add(&more, POINTER(kTVMDLTensorHandle, &small.t));
  add(&more, POINTER(kTVMDLTensorHandle, &odd.t));
  add(&more, POINTER(kTVMModuleHandle, f.library));
  TVMFunctionHandle any = NULL; /* a handle of another kind than it is said to be */
  assert_int_equal(TVMFuncGetGlobal("runtime.LoadParams", &any), 0);
  assert_int_equal(load(f.ex, "share_params", any, f.blob, f.n), -1);
  assert_non_null(strstr(TVMGetLastError(), "another kind"));
  TVMFuncFree(any);
  for (size_t m = 0; m < sizeof names / sizeof names[0]; m++)
    for (int i = 0; i < 16; i++)
      for (int k = -1; k < 16; k++) {
        TVMValue ret = {.v_handle = NULL};
        int code = kTVMNullptr;
        call c = {.n = 0};
        add(&c, (i < 8 ? odds : more).codes[i % 8], (i < 8 ? odds : more).values[i % 8]);
        if (k >= 0) add(&c, (k < 8 ? odds : more).codes[k % 8], (k < 8 ? odds : more).values[k % 8]);
        if (c.codes[0] == kTVMArgInt && strncmp(names[m], "run_individual", 14) == 0) continue; /* it may take long */
        TVMAPISetLastError("");
        if (method(f.ex, names[m], &c, &ret, &code) == 0) drop(ret, code);
        else if (strstr(TVMGetLastError(), names[m]) == NULL)
          fail_msg("%s, %d, %d: the words do not name it: %s", names[m], i, k, TVMGetLastError());
      }
  if (load(f.ex, "load_params", NULL, f.blob, f.n) != 0) fail_msg("%s", TVMGetLastError()); /* none did harm */
  if (set(f.ex, "x", fill(&f.x, 1)) != 0 || run(f.ex) != 0) fail_msg("%s", TVMGetLastError());
  assert_true(output(f.ex, 0) == (float)(N * N));
  close_it(&f);
}

/* A row of calls, each of which may fail; 0 where none did. */
static int everything(fixture *f, TVMModuleHandle *ex, TVMModuleHandle *other) {
  static const char *const facts[] = {"get_input_info",   "get_output_info", "get_graph_json",
                                      "get_graph_params", "profile",         "run_individual"};
  TVMValue ret;
  int code = kTVMNullptr;
  call none = {.n = 0}, x = {.n = 0}, one = {.n = 0}, from = {.n = 0};
  add(&x, TEXT("x"));
  add(&one, INT(1));
  add(&from, INT(1));
  add(&from, INT(0));
  add(&from, TEXT("x"));
  add(&from, POINTER(kTVMDLTensorHandle, fill(&f->x, 1)));
  if (create("tvm.graph_executor_debug.create", f->library, ex) != 0) return -1;
  if (set(*ex, "x", &f->x.t) != 0 || load(*ex, "load_params", NULL, f->blob, f->n) != 0) return -1;
  if (run(*ex) != 0 || output(*ex, 0) != N * N) return -1;
  if (method(*ex, "get_input", &x, &ret, &code) != 0) return -1;
  drop(ret, code);
  if (load(*ex, "load_params", NULL, f->blob, f->n) != 0) return -1;
  for (size_t i = 0; i < sizeof facts / sizeof facts[0]; i++)
    if (method(*ex, facts[i], strcmp(facts[i], "run_individual") == 0 ? &one : &none, &ret, &code) != 0) return -1;
  if (method(*ex, "run_from_inputs", &from, &ret, &code) != 0) return -1;
  drop(ret, code);
  if (method(*ex, "debug_get_output", &one, &ret, &code) != 0) return -1;
  drop(ret, code);
  if (method(*ex, "execute_node", &one, &ret, &code) != 0 || method(*ex, "execute_node", &from, &ret, &code) == 0)
    return -1;
  if (method(*ex, "get_node_output", &one, &ret, &code) != 0) return -1;
  drop(ret, code);
  if (create("tvm.graph_executor.create", f->library, other) != 0) return -1;
  if (load(*other, "share_params", *ex, f->blob, f->n) != 0 || output(*other, 0) != 0) return -1;
  return set(*other, "x", &f->x.t) != 0 || run(*other) != 0 ? -1 : 0;
}

static void memory_that_is_out(void **state) {
  (void)state;
  fixture f;
  TVMModuleHandle ex = NULL, other = NULL;
  open_it(&f, "tvm.graph_executor.create");
  if (everything(&f, &ex, &other) != 0) fail_msg("%s", TVMGetLastError()); /* what stays for the process */
  assert_int_equal(set(ex, "nope", &f.x.t), -1); /* the memory of the thread's last words, too */
  assert_non_null(strstr(TVMGetLastError(), "'x'"));
  TVMModFree(ex);
  TVMModFree(other);
  size_t live = heddle__alloc_live();
  for (uint64_t n = 1, done = 0; !done; n++) {
    assert_true(n < 20000);
    ex = other = NULL;
    heddle__alloc_fail_at(n);
    TVMAPISetLastError("");
    done = everything(&f, &ex, &other) == 0;
    heddle__alloc_fail_at(0);
    if (!done && strstr(TVMGetLastError(), "memory") == NULL) fail_msg("allocation %d: %s", (int)n, TVMGetLastError());
    TVMModFree(ex);
    TVMModFree(other);
    if (heddle__alloc_live() != live)
      fail_msg("allocation %d: %d blocks are left", (int)n, (int)(heddle__alloc_live() - live));
  }
  close_it(&f);
}

/* Through heddle/function.h, with a library and devices of the program's own context. */
static void through_heddles_own_api(void **state) {
  (void)state;
  heddle_setting settings[] = {{"config", "off"}, {"threads", "2"}};
  heddle_context *ctx = NULL;
  heddle_module *library = NULL;
  heddle_object *object = NULL;
  heddle_error err = {0};
  heddle_value ex = {.kind = 0}, out = {.kind = 0};
  heddle_tensor *x = NULL;
  const int64_t n = N;
  if (heddle_context_create(settings, 2, NULL, NULL, &ctx, &err) != HEDDLE_OK ||
      heddle_module_load(ctx, LIBRARY, &library, &err) != HEDDLE_OK ||
      heddle_object_of(library, &object, &err) != HEDDLE_OK ||
      heddle_tensor_create(NULL, HEDDLE_FLOAT32, &n, 1, &x, &err) != HEDDLE_OK)
    fail_msg("%s", err.text);
  for (int i = 0; i < N; i++) ((float *)heddle_tensor_data(x))[i] = 3;
  heddle_value made[] = {{.kind = HEDDLE_VALUE_STRING, .of.s = graph},
                         {.kind = HEDDLE_VALUE_MODULE, .of.module = object},
                         {.kind = HEDDLE_VALUE_INT, .of.i = 1},
                         {.kind = HEDDLE_VALUE_INT, .of.i = 0}};
  heddle_function *create_it = heddle_function_find("tvm.graph_executor.create"), *f = NULL;
  if (heddle_function_call(create_it, made, 4, &ex, &err) != HEDDLE_OK) fail_msg("%s", err.text);
  assert_int_equal(ex.kind, HEDDLE_VALUE_MODULE);
  assert_string_equal(heddle_object_kind(ex.of.module), "GraphExecutor");
  made[3].of.i = 9; /* a device that is not there, and an input that is none: status and words */
  assert_int_not_equal(heddle_function_call(create_it, made, 4, &out, &err), HEDDLE_OK);
  assert_non_null(strstr(err.text, "no device 9"));
  heddle_value input[] = {{.kind = HEDDLE_VALUE_STRING, .of.s = "nope"}, {.kind = HEDDLE_VALUE_TENSOR, .of.t = x}};
  assert_int_equal(heddle_object_function(ex.of.module, "set_input", 0, &f, &err), HEDDLE_OK);
  assert_int_equal(heddle_function_call(f, input, 2, NULL, &err), HEDDLE_ENOTFOUND);
  assert_non_null(strstr(err.text, "'x', 'w'"));
  for (int i = 0; i < 2; i++) {
    input[0].of.s = i == 0 ? "x" : "w";
    if (heddle_function_call(f, input, 2, NULL, &err) != HEDDLE_OK) fail_msg("%s", err.text);
  }
  heddle_function_release(f);
  assert_int_equal(heddle_object_function(ex.of.module, "run", 0, &f, &err), HEDDLE_OK);
  if (heddle_function_call(f, NULL, 0, NULL, &err) != HEDDLE_OK) fail_msg("%s", err.text);
  heddle_function_release(f);
  assert_int_equal(heddle_object_function(ex.of.module, "get_output", 0, &f, &err), HEDDLE_OK);
  heddle_value first = {.kind = HEDDLE_VALUE_INT, .of.i = 0};
  if (heddle_function_call(f, &first, 1, &out, &err) != HEDDLE_OK) fail_msg("%s", err.text);
  assert_int_equal(out.kind, HEDDLE_VALUE_TENSOR);
  assert_true(((float *)heddle_tensor_data(out.of.t))[7] == 3.0f * N * N);
  heddle_tensor_release(out.of.t);
  heddle_function_release(f);
  heddle_function_release(create_it);
  heddle_object_release(ex.of.module);
  heddle_object_release(object);
  heddle_tensor_release(x);
  heddle_module_release(library);
  heddle_context_release(ctx);
}

CASES(CASE(values_of_a_run), CASE(through_heddles_own_api), CASE(a_run_allocates_nothing),
      CASE(shared_parameters_in_threads), CASE(devices_are_those_of_the_list), CASE(whatever_a_method_is_given),
      CASE(memory_that_is_out))
