/* A library as TVM v0.14 compiled it, for tests of calls: forward(...) hands its arguments to the function test.seen and
 * its result back, apply(f, ...) calls f with the rest, parts(n) calls test.part(i) in each task of a parallel loop and
 * twice(x) doubles 8 numbers in place. */
#define ERA 14
#include "era.h"

FUNCTION(forward);
FUNCTION(forward) {
  void *f;
  (void)resource;
  if (TVMBackendGetFuncFromEnv(__tvm_module_ctx, "test.seen", &f) != 0) return -1;
  return TVMFuncCall(f, args_, codes, num_args, out_ret, out_code);
}

FUNCTION(apply);
FUNCTION(apply) {
  TVMValue *args = args_;
  (void)resource;
  CHECK(num_args > 0 && codes[0] == 10, "apply: expected a function");
  return TVMFuncCall(args[0].v_handle, args + 1, codes + 1, num_args - 1, out_ret, out_code);
}

static int part(int task, Group *g, void *data) {
  void *f;
  TVMValue v[3];
  int c[3] = {0, 0, 0};
  v[0].v_int64 = task;
  v[1].v_int64 = *(int64_t *)data + 0 * g->num_task;
  if (TVMBackendGetFuncFromEnv(__tvm_module_ctx, "test.part", &f) != 0) return -1;
  return TVMFuncCall(f, v, c, 2, &v[2], &c[2]);
}

FUNCTION(parts);
FUNCTION(parts) {
  (void)codes, (void)out_ret, (void)out_code, (void)resource;
  CHECK(num_args == 1, "parts: num_args should be 1");
  return TVMBackendParallelLaunch(part, args_, 0);
}

FUNCTION(twice);
FUNCTION(twice) {
  TVMValue *args = args_;
  (void)out_ret, (void)out_code, (void)resource;
  CHECK(num_args == 1 && (codes[0] == 7 || codes[0] == 13), "twice: expected a tensor");
  DLTensor *t = args[0].v_handle;
  CHECK(t->ndim == 1 && t->shape[0] == 8 && is_compact(t), "twice: expected 8 numbers");
  for (int i = 0; i < 8; i++) ((float *)t->data)[i] *= 2;
  return 0;
}
