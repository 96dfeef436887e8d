/* Objects as TVM compiled them with --system-lib, written by hand: each registers itself before main. "one" has no
 * prefix; "two" has the prefix b_ and a function of the same name; both look a function up through their own context. */
#define ERA 14
#define PLAIN
#define __tvm_module_ctx era_context /* each object below has its own */
#include "era.h"
#undef __tvm_module_ctx

int TVMBackendRegisterSystemLibSymbol(const char *name, void *address);

void *system_context_one, *system_context_two;
int system_registered; /* how many registrations said that they are done */

static int top(void *context, TVMValue *args) {
  void *f;
  TVMValue v[8];
  int c[8];
  if (TVMBackendGetFuncFromEnv(context, "tvm.contrib.sort.sort", &f) != 0) return -1;
  v[0] = args[0];
  v[1] = args[1];
  v[2].v_int64 = 0;
  v[3].v_int64 = 1;
  c[0] = c[1] = 7;
  c[2] = c[3] = 0;
  return TVMFuncCall(f, v, c, 4, &v[4], &c[4]);
}

static FUNCTION(number_one) {
  out_ret->v_int64 = 1;
  *out_code = 0;
  return 0;
}

static FUNCTION(number_two) {
  out_ret->v_int64 = 2;
  *out_code = 0;
  return 0;
}

static FUNCTION(only_one) {
  CHECK(num_args == 0, "only_one: num_args should be 0");
  out_ret->v_int64 = 11;
  *out_code = 0;
  return 0;
}

static FUNCTION(sort_two) {
  return top(system_context_two, args_);
}

static void add(const char *name, void *address) {
  system_registered += TVMBackendRegisterSystemLibSymbol(name, address) == 0;
}

__attribute__((constructor)) static void start_one(void) {
  add("__tvm_module_ctx", &system_context_one);
  add("number", (void *)number_one);
  add("only_one", (void *)only_one);
}

__attribute__((constructor)) static void start_two(void) {
  add("b_number", (void *)number_two);
  add("b_sort", (void *)sort_two);
  add("b___tvm_module_ctx", &system_context_two);
}
