/* labels: threads
 * timeout: 300
 * TVM's C API from several threads: functions by name, functions of the application that parallel loops call, arrays, and
 * the words of failures, which are each thread's own; and memory that is out anywhere is an error. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <tvm/runtime/c_backend_api.h>
#include <tvm/runtime/c_runtime_api.h>

#include "cases.h"
#include "core/alloc.h"

#define LIBRARY HEDDLE_TEST_BUILD "/tests/tvm_calls.so"
enum { THREADS = 4, ROUNDS = 40 };

static atomic_int finished, made;
static atomic_llong total;

static void finish(void *resource) {
  (void)resource;
  atomic_fetch_add(&finished, 1);
}

static int give(TVMRetValueHandle ret, int64_t number) {
  TVMValue value = {.v_int64 = number};
  int code = kTVMArgInt;
  return TVMCFuncSetReturn(ret, &value, &code, 1);
}

/* Returns its resource plus its argument. */
static int add(TVMValue *args, int *codes, int n, TVMRetValueHandle ret, void *resource) {
  if (n != 1 || codes[0] != kTVMArgInt) {
    TVMAPISetLastError("add: expected a number");
    return -1;
  }
  return give(ret, args[0].v_int64 + (intptr_t)resource);
}

/* Fails for 13 as the second argument, with the task in its words. */
static int part(TVMValue *args, int *codes, int n, TVMRetValueHandle ret, void *resource) {
  (void)codes, (void)n, (void)ret, (void)resource;
  char words[60];
  atomic_fetch_add(&total, 1);
  if (args[1].v_int64 >= 0) return 0;
  snprintf(words, sizeof words, "thread %d has no luck", (int)args[1].v_int64);
  TVMAPISetLastError(words);
  return -1;
}

static TVMFunctionHandle function(TVMPackedCFunc f, intptr_t resource) {
  TVMFunctionHandle out = NULL;
  if (TVMFuncCreateFromCFunc(f, (void *)resource, finish, &out) != 0) return NULL;
  atomic_fetch_add(&made, 1);
  return out;
}

/* rc; the result in *out where it is a number. */
static int call_number(TVMFunctionHandle f, int64_t x, int64_t *out) {
  TVMValue arg = {.v_int64 = x}, ret;
  int code = kTVMArgInt, ret_code;
  int rc = TVMFuncCall(f, &arg, &code, 1, &ret, &ret_code);
  if (rc == 0 && out != NULL) *out = ret_code == kTVMArgInt ? ret.v_int64 : -1;
  return rc;
}

/* ---- threads */

static void *by_name(void *arg) {
  intptr_t k = (intptr_t)arg;
  const char *wrong = NULL;
  char own[32];
  snprintf(own, sizeof own, "test.own.%d", (int)k);
  for (int i = 0; i < ROUNDS && wrong == NULL; i++) {
    int64_t got = 0;
    int n = 0;
    const char **names;
    TVMFunctionHandle f = function(add, k), g = NULL;
    if (TVMFuncRegisterGlobal(own, f, i % 2) != 0) wrong = "an own name";
    if (TVMFuncRegisterGlobal("test.shared", f, 1) != 0) wrong = "the shared name";
    TVMFuncFree(f);
    if (TVMFuncGetGlobal(own, &g) != 0 || g == NULL || call_number(g, 100, &got) != 0 || got != 100 + k) wrong = "own";
    TVMFuncFree(g);
    if (TVMFuncGetGlobal("test.shared", &g) != 0) wrong = "shared";
    if (g != NULL && (call_number(g, 100, &got) != 0 || got < 101 || got > 100 + THREADS)) wrong = "another's sum";
    TVMFuncFree(g);
    if (TVMFuncListGlobalNames(&n, &names) != 0 || n < 10) wrong = "names";
    for (int j = 1; j < n && wrong == NULL; j++)
      if (strcmp(names[j - 1], names[j]) >= 0) wrong = "the names' order";
    if (TVMFuncRemoveGlobal(own) != 0) wrong = "removal";
    (void)TVMFuncRemoveGlobal("test.shared"); /* another thread may have done it */
  }
  return (void *)(uintptr_t)wrong;
}

static void *from_loops(void *arg) {
  intptr_t k = (intptr_t)arg;
  const char *wrong = NULL;
  char expected[60];
  TVMModuleHandle library = NULL;
  TVMFunctionHandle parts = NULL;
  snprintf(expected, sizeof expected, "thread %d has no luck", -(int)k);
  if (TVMModLoadFromFile(LIBRARY, "", &library) != 0 || TVMModGetFunction(library, "parts", 0, &parts) != 0)
    wrong = "no library";
  for (int i = 0; i < ROUNDS && wrong == NULL; i++) {
    if (call_number(parts, k, NULL) != 0) wrong = "a loop failed";
    if (call_number(parts, -k, NULL) == 0) wrong = "no failure";
    else if (strstr(TVMGetLastError(), expected) == NULL) wrong = "another failure's words";
    else if (strstr(TVMGetLastError(), "of a parallel loop") == NULL) wrong = "not said where";
  }
  TVMFuncFree(parts);
  TVMModFree(library);
  return (void *)(uintptr_t)wrong;
}

static void *with_arrays(void *arg) {
  intptr_t k = (intptr_t)arg;
  const char *wrong = NULL;
  TVMModuleHandle library = NULL;
  TVMFunctionHandle twice = NULL;
  if (TVMModLoadFromFile(LIBRARY, "so", &library) != 0 || TVMModGetFunction(library, "twice", 0, &twice) != 0)
    wrong = "no library";
  for (int i = 0; i < ROUNDS && wrong == NULL; i++) {
    const int64_t n = 8;
    float values[8], back[8];
    TVMArrayHandle a = NULL, b = NULL;
    TVMValue v, ret;
    int code = i % 2 ? kTVMDLTensorHandle : kTVMNDArrayHandle, ret_code;
    for (int j = 0; j < 8; j++) values[j] = (float)(k * j + i);
    if (TVMArrayAlloc(&n, 1, kDLFloat, 32, 1, kDLCPU, 0, &a) != 0 ||
        TVMArrayAlloc(&n, 1, kDLFloat, 32, 1, kDLCPU, 0, &b) != 0)
      wrong = "no array";
    v.v_handle = a;
    if (TVMArrayCopyFromBytes(a, values, sizeof values) != 0 ||
        TVMFuncCall(twice, &v, &code, 1, &ret, &ret_code) != 0 || TVMArrayCopyFromTo(a, b, NULL) != 0 ||
        TVMArrayCopyToBytes(b, back, sizeof back) != 0)
      wrong = "a call failed";
    for (int j = 0; j < 8 && wrong == NULL; j++)
      if (back[j] != 2 * values[j]) wrong = "another's numbers";
    TVMArrayFree(a);
    TVMArrayFree(b);
  }
  TVMFuncFree(twice);
  TVMModFree(library);
  return (void *)(uintptr_t)wrong;
}

static void in_threads(void *(*work)(void *)) {
  pthread_t threads[THREADS];
  void *wrong[THREADS];
  TVMModuleHandle library =
      NULL; /* loaded once before: the loader of the system has locks that ThreadSanitizer cannot see */
  setenv("HEDDLE_THREADS", "3", 1);
  assert_int_equal(TVMModLoadFromFile(LIBRARY, "", &library), 0);
  for (intptr_t k = 0; k < THREADS; k++) pthread_create(&threads[k], NULL, work, (void *)(k + 1));
  for (int k = 0; k < THREADS; k++) pthread_join(threads[k], &wrong[k]);
  for (int k = 0; k < THREADS; k++)
    if (wrong[k] != NULL) fail_msg("thread %d: %s (%s)", k + 1, (char *)wrong[k], TVMGetLastError());
  TVMModFree(library);
}

static void functions_by_name(void **state) {
  (void)state;
  in_threads(by_name);
  (void)TVMFuncRemoveGlobal("test.shared");
  assert_int_equal(atomic_load(&made), THREADS * ROUNDS);
  assert_int_equal(atomic_load(&finished), THREADS * ROUNDS); /* each function was given back, once */
}

static void callbacks_from_parallel_loops(void **state) {
  (void)state;
  TVMFunctionHandle f = function(part, 0);
  assert_int_equal(TVMFuncRegisterGlobal("test.part", f, 0), 0);
  TVMFuncFree(f);
  in_threads(from_loops);
  assert_true(atomic_load(&total) >= 2 * THREADS * ROUNDS);
  assert_int_equal(TVMFuncRemoveGlobal("test.part"), 0);
  assert_int_equal(atomic_load(&finished), 0); /* compiled code may hold it forever */
}

static void arrays_of_their_own(void **state) {
  (void)state;
  in_threads(with_arrays);
}

/* ---- what is not there */

/* Returns its argument as it came, made its own before where its resource asks for it. */
static int same(TVMValue *args, int *codes, int n, TVMRetValueHandle ret, void *resource) {
  if (n != 1 || (resource != NULL && TVMCbArgToReturn(args, codes) != 0)) return -1;
  return TVMCFuncSetReturn(ret, args, codes, 1);
}

static void said(int rc, const char *words) {
  assert_int_equal(rc, -1);
  if (strstr(TVMGetLastError(), words) == NULL) fail_msg("'%s' is not in '%s'", words, TVMGetLastError());
}

static void handles_that_are_none(void **state) {
  (void)state;
  static const int kinds[] = {kTVMModuleHandle, kTVMPackedFuncHandle, kTVMNDArrayHandle};
  static const char *const names[] = {"no module", "no function", "no array"};
  uint64_t other[8] = {0};
  const int64_t n = 8;
  const DLDevice cpu = {kDLCPU, 0};
  const DLDataType byte = {kDLUInt, 8, 1};
  TVMArrayHandle a = NULL;
  void *space = NULL;
  for (int i = 0; i < 6; i++) {
    TVMFunctionHandle f = function(same, i % 2);
    TVMValue value = {.v_handle = NULL}, ret;
    int code = kinds[i / 2], ret_code;
    said(TVMFuncCall(f, &value, &code, 1, &ret, &ret_code), "NULL");
    value.v_handle = other;
    said(TVMFuncCall(f, &value, &code, 1, &ret, &ret_code), names[i / 2]);
    TVMFuncFree(f);
  }
  TVMModuleHandle library = NULL;
  TVMFunctionHandle apply = NULL;
  TVMValue value = {.v_handle = other}, ret;
  int ret_code;
  assert_int_equal(TVMModLoadFromFile(LIBRARY, "", &library), 0);
  assert_int_equal(TVMModGetFunction(library, "apply", 0, &apply), 0);
  for (int i = 0; i < 2; i++) { /* as an argument of compiled code */
    int code = kinds[i];
    said(TVMFuncCall(apply, &value, &code, 1, &ret, &ret_code), names[i]);
  }
  TVMFuncFree(apply);
  TVMModFree(library);
  said(TVMDeviceAllocDataSpaceWithScope(cpu, 1, NULL, byte, NULL, &space), "shape");
  said(TVMDeviceAllocDataSpaceWithScope(cpu, -1, &n, byte, NULL, &space), "shape");
  assert_int_equal(TVMArrayAlloc(&n, 1, kDLFloat, 32, 1, kDLCPU, 0, &a), 0);
  said(TVMArrayCopyFromTo(NULL, a, NULL), "argument 0");
  said(TVMArrayCopyFromTo(a, NULL, NULL), "argument 1");
  TVMArrayFree(a);
  said(TVMBackendRegisterSystemLibSymbol(NULL, &space), "the name or the address is NULL");
}

/* ---- memory */

/* Returns a string of as many letters as its first argument says. */
static int letters(TVMValue *args, int *codes, int n, TVMRetValueHandle ret, void *resource) {
  (void)n, (void)resource;
  size_t length = codes[0] == kTVMArgInt ? (size_t)args[0].v_int64 : 3;
  char *text = malloc(length + 1);
  memset(text, 'x', length);
  text[length] = '\0';
  TVMValue value = {.v_str = text};
  int code = kTVMStr, rc = TVMCFuncSetReturn(ret, &value, &code, 1);
  free(text);
  return rc;
}

/* Most of the API once; what it made is given back, wherever it failed. 0: all was well. */
static int everything(void) {
  const int64_t n = 8;
  TVMModuleHandle library = NULL, other = NULL;
  TVMFunctionHandle forward = NULL, apply = NULL, f = NULL;
  TVMArrayHandle a = NULL, b = NULL;
  DLManagedTensor *m = NULL;
  TVMStreamHandle stream = NULL;
  TVMValue v[18], ret;
  const char **names;
  const DLDevice cpu = {kDLCPU, 0};
  void *space = NULL;
  bool registered = false;
  int c[18], count, ret_code, rc = TVMModLoadFromFile(LIBRARY, "", &library);
  if (rc == 0) rc = TVMModLoadFromFile(LIBRARY, "so", &other);
  if (rc == 0) rc = TVMModImport(library, other);
  if (rc == 0) rc = TVMModGetFunction(library, "forward", 1, &forward);
  if (rc == 0) rc = TVMModGetFunction(library, "apply", 0, &apply);
  if (rc == 0) rc = TVMFuncCreateFromCFunc(letters, NULL, NULL, &f);
  if (rc == 0) rc = TVMArrayAlloc(&n, 1, kDLFloat, 32, 1, kDLCPU, 0, &a);
  if (rc == 0) rc = TVMArrayToDLPack(a, &m);
  if (rc == 0 && (rc = TVMArrayFromDLPack(m, &b)) == 0) m = NULL;
  if (m != NULL) TVMDLManagedTensorCallDeleter(m);
  for (int i = 0; i < 18; i++) {
    c[i] = i % 2 ? kTVMNDArrayHandle : kTVMArgInt;
    if (i % 2) v[i].v_handle = a;
    else v[i].v_int64 = 5000;
  }
  for (int few = 0; few < 2 && rc == 0; few++) { /* more than are kept on the stack, and less */
    rc = TVMFuncCall(forward, v, c, few ? 4 : 18, &ret, &ret_code);
    if (rc == 0 && (ret_code != kTVMStr || strlen(ret.v_str) != 5000)) rc = 1;
  }
  v[0].v_handle = f;
  c[0] = kTVMPackedFuncHandle;
  if (rc == 0) rc = TVMFuncCall(apply, v, c, 2, &ret, &ret_code);
  if (rc == 0 && (ret_code != kTVMStr || strcmp(ret.v_str, "xxx") != 0)) rc = 1;
  if (rc == 0) registered = (rc = TVMFuncRegisterGlobal("test.again", f, 0)) == 0;
  if (rc == 0) rc = TVMFuncListGlobalNames(&count, &names);
  if (rc == 0) rc = TVMStreamCreate(kDLCPU, 0, &stream);
  if (rc == 0) rc = TVMDeviceAllocDataSpace(cpu, 100, 64, (DLDataType){kDLUInt, 8, 1}, &space);
  if (space != NULL) TVMDeviceFreeDataSpace(cpu, space);
  if (stream != NULL) TVMStreamFree(kDLCPU, 0, stream);
  if (registered) TVMFuncRemoveGlobal("test.again");
  TVMArrayFree(a);
  TVMArrayFree(b);
  TVMFuncFree(f);
  TVMFuncFree(forward);
  TVMFuncFree(apply);
  TVMModFree(other);
  TVMModFree(library);
  return rc;
}

static void memory_that_is_out(void **state) {
  (void)state;
  TVMFunctionHandle f = function(letters, 0);
  assert_int_equal(TVMFuncRegisterGlobal("test.seen", f, 0), 0);
  for (int i = 0; i < 2; i++) { /* what stays for the process and the thread is made here */
    if (everything() != 0) fail_msg("%s", TVMGetLastError());
    TVMAPISetLastError("none");
    (void)TVMGetLastError();
    assert_int_equal(TVMFuncCall(NULL, NULL, NULL, 0, NULL, NULL), -1);
  }
  size_t live = heddle__alloc_live();
  uint64_t n = 1;
  for (int done = 0; !done; n++) {
    assert_true(n < 20000);
    TVMAPISetLastError("");
    heddle__alloc_fail_at(n);
    int rc = everything();
    done = rc == 0;
    heddle__alloc_fail_at(0);
    bool said = strstr(TVMGetLastError(), "memory") != NULL || strstr(TVMGetLastError(), "libheddle_tvm.so.0") != NULL;
    if (rc != 0 && (rc != -1 || !said)) /* without memory for its path, the loader is not found */
      fail_msg("allocation %d: %d: %s", (int)n, rc, TVMGetLastError());
    if (heddle__alloc_live() != live)
      fail_msg("allocation %d: %d blocks are left", (int)n, (int)(heddle__alloc_live() - live));
  }
  assert_true(n > 30);
  TVMFuncFree(f);
}

CASES(CASE(functions_by_name), CASE(callbacks_from_parallel_loops), CASE(arrays_of_their_own),
      CASE(handles_that_are_none), CASE(memory_that_is_out))
