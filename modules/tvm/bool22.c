/* modules/tvm/bool22.c: v0.22 and v0.23 have the same symbols, and compare the dtype of a bool with (1, 1) and (6, 8).
 * Which of them a library is of is learnt from the first of its functions that refuses a dtype. Compiled code gives no
 * number for that, so its assertion is read; an error of a function that it called is not. */
#include <string.h>

#include "core/alloc.h"
#include "modules/tvm/library.h"

/* An argument of bool, as v0.22 has it. */
typedef struct old_bool {
  heddle__dltensor tensor;
  heddle__any *arg;
  void *was;
} old_bool;

static bool is_bool(const heddle__any *arg) {
  const heddle__dltensor *t = arg->type == ANY_TENSOR ? arg->v.p : NULL;
  return t != NULL && t->dtype.code == HEDDLE_DTYPE_BOOL;
}

int heddle__bool22_again(heddle__tvm_library *l, heddle__ffi_fn f, heddle__any *args, int32_t n, heddle__any *result,
                         int rc) {
  heddle__tvm_thread *self = heddle__tvm_self();
  char words[sizeof self->error];
  size_t n_bools = 0, k = 0;
  if (l->era != HEDDLE__ERA_FFI || !self->raised || strstr(self->error, "dtype") == NULL) return rc;
  for (int32_t i = 0; i < n; i++) n_bools += is_bool(&args[i]);
  old_bool *bools = n_bools > 0 ? heddle__alloc(n_bools, sizeof *bools) : NULL;
  if (bools == NULL) return rc;
  for (int32_t i = 0; i < n; i++) {
    if (!is_bool(&args[i])) continue;
    old_bool *b = &bools[k++];
    *b = (old_bool){.tensor = *(const heddle__dltensor *)args[i].v.p, .arg = &args[i], .was = args[i].v.p};
    b->tensor.dtype = (heddle_dtype){HEDDLE_DTYPE_UINT, 1, b->tensor.dtype.lanes};
    args[i].v.p = &b->tensor;
  }
  memcpy(words, self->error, sizeof words);
  self->error[0] = '\0';
  *result = (heddle__any){.type = ANY_NONE};
  int second = f(NULL, args, n, result);
  if (second == 0) atomic_store_explicit(&l->is_v22, true, memory_order_relaxed);
  else
    memcpy(self->error, words, sizeof words),
        self->status = HEDDLE_OK; /* the first call's tell of what the caller gave */
  for (size_t i = 0; i < n_bools; i++) bools[i].arg->v.p = bools[i].was;
  heddle__free(bools);
  return second == 0 ? 0 : rc;
}
