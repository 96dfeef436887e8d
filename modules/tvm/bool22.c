/* modules/tvm/bool22.c: v0.22 and v0.23 have the same symbols, and compare the dtype of a bool with (1, 1) and (6, 8).
 * Which of them a library is of is learnt from the first of its functions that refuses a dtype. */
#include <string.h>

#include "core/alloc.h"
#include "modules/tvm/library.h"

static const heddle__dltensor *bool_of(const heddle__any *arg) {
  const heddle__dltensor *t = arg->type == ANY_TENSOR ? arg->v.p : NULL;
  return t != NULL && t->dtype.code == HEDDLE_DTYPE_BOOL ? t : NULL;
}

int heddle__bool22_again(heddle__tvm_library *l, heddle__ffi_fn f, heddle__any *args, int32_t n, heddle__any *result,
                         int rc) {
  heddle__tvm_thread *self = heddle__tvm_self();
  char words[sizeof self->error];
  int32_t n_bools = 0;
  if (l->era != HEDDLE__ERA_FFI || strstr(self->error, "dtype") == NULL) return rc;
  for (int32_t i = 0; i < n; i++) n_bools += bool_of(&args[i]) != NULL;
  if (n_bools == 0) return rc;
  heddle__any *changed = heddle__alloc((size_t)n, sizeof *changed);
  heddle__dltensor *bools = heddle__alloc((size_t)n_bools, sizeof *bools), *next = bools;
  if (changed != NULL && bools != NULL) {
    memcpy(words, self->error, sizeof words);
    memcpy(changed, args, (size_t)n * sizeof *changed);
    for (int32_t i = 0; i < n; i++) {
      const heddle__dltensor *t = bool_of(&args[i]);
      if (t == NULL) continue;
      *next = *t;
      next->dtype = (heddle_dtype){HEDDLE_DTYPE_UINT, 1, t->dtype.lanes};
      changed[i].v.p = next++;
    }
    *result = (heddle__any){.type = ANY_NONE};
    self->error[0] = '\0';
    int second = f(NULL, changed, n, result);
    if (second == 0) atomic_store_explicit(&l->is_v22, true, memory_order_relaxed);
    else memcpy(self->error, words, sizeof words); /* the first call's tell of what the caller gave */
    rc = second == 0 ? 0 : rc;
  }
  heddle__free(changed);
  heddle__free(bools);
  return rc;
}
