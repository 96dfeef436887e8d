/* modules/tvm/cxx.c: calls of code in a library that takes objects of TVM's C++ runtime, which libheddle_tvm_cxx makes. */
#include <string.h>

#include "core/alloc.h"
#include "core/error.h"
#include "modules/tvm/library.h"
#include "modules/tvm/object.h"
#include "modules/tvm_cxx/entry.h"

/* The handles of n arrays in what is allocated for them; each with a reference. */
static heddle_status take_handles(const heddle_value *tensors, uint64_t n, void **handles, heddle_error *err) {
  for (uint64_t i = 0; i < n; i++) {
    heddle__array *a = heddle__array_new(heddle_tensor_retain(tensors[i].of.t));
    handles[i] = a;
    if (a != NULL) continue;
    heddle_tensor_release(tensors[i].of.t);
    while (i > 0) heddle__array_release(handles[--i]);
    return heddle__no_memory(err, "constants");
  }
  return HEDDLE_OK;
}

heddle_status heddle__library_give_objects(const heddle__tvm_library *l, const char *name, void *code,
                                           const heddle_value *tensors, uint64_t n, heddle_error *err) {
  const heddle__tvm_cxx_table *cxx = heddle__tvm_cxx(HEDDLE__CXX_ANY, err);
  if (cxx == NULL)
    return heddle__prefix(err, HEDDLE_EUNSUPPORTED, "its function %s takes objects of TVM's C++ runtime: ", name);
  void **handles = heddle__alloc((size_t)n, sizeof *handles);
  heddle_status s = handles != NULL ? take_handles(tensors, n, handles, err) : heddle__no_memory(err, "constants");
  heddle__word object = {.p = s == HEDDLE_OK ? cxx->arrays(handles, n) : NULL}, ret = {0};
  heddle__free(handles);
  if (s != HEDDLE_OK) return s;
  if (object.p == NULL) return heddle__no_memory(err, "constants");
  heddle__packed_fn f;
  int32_t given = PACKED_OBJECT, returned = PACKED_NULL;
  memcpy(&f, &code, sizeof f);
  heddle__tvm_forget(heddle__tvm_self());
  int rc = f(&object, &given, 1, &ret, &returned, NULL);
  if (rc != 0) s = heddle__tvm_failed(name, l->path, err);
  else if (returned == PACKED_INT && ret.i != 0)
    s = heddle__fail(err, HEDDLE_EFAILED, "its function %s returned %lld for its constants, and not 0", name,
                     (long long)ret.i);
  cxx->release(object.p);
  return s;
}
