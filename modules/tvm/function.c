/* modules/tvm/function.c: functions as counted values, and calls of them. */
#include <string.h>

#include "core/alloc.h"
#include "modules/tvm/launch.h"

heddle_function *heddle__function_new(const char *name, heddle__tvm_fn call, void *self, void (*finish)(void *self)) {
  size_t n = name != NULL ? strlen(name) + 1 : 0;
  heddle_function *f = heddle__alloc(1, sizeof *f + n);
  if (f == NULL) return NULL;
  char *copy = (char *)(f + 1);
  if (n > 0) memcpy(copy, name, n);
  f->mark = HEDDLE__FUNCTION_MARK;
  f->name = n > 0 ? copy : "";
  f->call = call;
  f->self = self;
  f->finish = finish;
  atomic_init(&f->references, 1);
  return f;
}

heddle_function *heddle__function_retain(heddle_function *f) {
  if (f != NULL && atomic_load_explicit(&f->references, memory_order_relaxed) > 0)
    atomic_fetch_add_explicit(&f->references, 1, memory_order_relaxed);
  return f;
}

void heddle__function_release(heddle_function *f) {
  if (f == NULL || atomic_load_explicit(&f->references, memory_order_relaxed) == 0) return;
  if (atomic_fetch_sub_explicit(&f->references, 1, memory_order_acq_rel) != 1) return;
  if (f->finish != NULL) f->finish(f->self);
  heddle__free(f);
}

/* Compiled code may give a place for the result that lies right behind the arguments: it is written last. */
int heddle__function_call(heddle_function *f, const heddle__word *args, const int32_t *codes, int32_t n,
                          heddle__word *ret, int32_t *ret_code) {
  heddle__word result = {0};
  int32_t code = PACKED_NULL;
  int rc = f->call != NULL ? f->call(f->self, args, codes, n, &result, &code)
                           : heddle__tvm_launch((const heddle__kernel_handle *)(const void *)f, args, codes, n);
  *ret = result;
  *ret_code = code;
  return rc;
}
