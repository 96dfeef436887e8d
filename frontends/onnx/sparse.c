/* frontends/onnx/sparse.c: sparse tensors as tensors with all elements, in the memory of the reading. */
#include <string.h>

#include "core/alloc.h"
#include "frontends/onnx/tensor.h"
#include "frontends/onnx/types.h"

typedef struct sparse {
  const Onnx__SparseTensorProto *from;
  const char *name;
  uint64_t elements, count;            /* of all, and of those that are given */
  struct heddle__param values, places; /* their bytes */
} sparse;

static heddle_status bad(heddle__onnx_reader *r, const sparse *x, const char *what) {
  char shown[44];
  return heddle__onnx_fail(r, HEDDLE_EFORMAT, "sparse tensor '%s': %s", heddle__onnx_show(x->name, shown), what);
}

static heddle_status count_elements(heddle__onnx_reader *r, sparse *x) {
  x->elements = 1;
  for (size_t i = 0; i < x->from->n_dims; i++) {
    const int64_t n = x->from->dims[i];
    if (n < 0) return bad(r, x, "a dimension is negative");
    if (n > 0 && x->elements > (uint64_t)(INT64_MAX / 16) / (uint64_t)n)
      return bad(r, x, "its shape has more bytes than any memory");
    x->elements *= (uint64_t)n;
  }
  return HEDDLE_OK;
}

static int64_t index_at(const sparse *x, uint64_t i) { /* they may lie at any address */
  int64_t n;
  memcpy(&n, (const char *)x->places.value.data + i * sizeof n, sizeof n);
  return n;
}

/* Where value i goes; false: outside of the tensor. */
static bool place_of(const sparse *x, uint64_t i, uint64_t *out) {
  const bool is_flat = x->places.value.ndim == 1;
  const size_t rank = x->from->n_dims;
  *out = 0;
  if (is_flat) {
    *out = (uint64_t)index_at(x, i);
    return *out < x->elements;
  }
  for (size_t d = 0; d < rank; d++) {
    const int64_t n = index_at(x, i * rank + d);
    if (n < 0 || n >= x->from->dims[d]) return false;
    *out = *out * (uint64_t)x->from->dims[d] + (uint64_t)n;
  }
  return true;
}

static heddle_status check_parts(heddle__onnx_reader *r, sparse *x) {
  const heddle__constant *v = &x->values.value, *at = &x->places.value;
  if (v->ndim != 1) return bad(r, x, "its values are no list");
  x->count = (uint64_t)v->shape[0];
  const bool fits = (at->ndim == 1 || (at->ndim == 2 && at->shape[1] == (int64_t)x->from->n_dims)) &&
                    at->shape[0] == v->shape[0] && at->dtype.code == HEDDLE_DTYPE_INT && at->dtype.bits == 64;
  return fits ? HEDDLE_OK : bad(r, x, "its indices are no int64 [values] or [values, dimensions]");
}

static heddle_status fill(heddle__onnx_reader *r, const sparse *x, Onnx__TensorProto *out) {
  const size_t width = x->values.value.dtype.bits / 8;
  unsigned char *bytes = heddle__onnx_take(&r->arena, (size_t)x->elements * width + 1);
  if (bytes == NULL) return heddle__onnx_no_memory(r);
  for (uint64_t i = 0; i < x->count; i++) {
    uint64_t place = 0;
    if (!place_of(x, i, &place)) return bad(r, x, "an index is out of range");
    memcpy(bytes + place * width, (const char *)x->values.value.data + i * width, width);
  }
  onnx__tensor_proto__init(out);
  out->name = x->from->values->name;
  out->has_data_type = 1;
  out->data_type = x->from->values->data_type;
  out->dims = x->from->dims;
  out->n_dims = x->from->n_dims;
  out->has_raw_data = 1;
  out->raw_data.data = bytes;
  out->raw_data.len = (size_t)x->elements * width;
  out->has_data_location = 1;
  out->data_location = (Onnx__TensorProto__DataLocation)HEDDLE__ONNX_HELD;
  return HEDDLE_OK;
}

static void drop(struct heddle__param *p) {
  if (!p->is_mapped) heddle__free(p->value.data);
  heddle__free(p->value.shape);
}

heddle_status heddle__onnx_dense(heddle__onnx_reader *r, const Onnx__SparseTensorProto *from, Onnx__TensorProto **out) {
  sparse x = {.from = from, .name = from->values != NULL ? from->values->name : ""};
  Onnx__TensorProto indices;
  *out = NULL;
  if (from->values == NULL || from->indices == NULL) return bad(r, &x, "it has no values or no indices");
  if (from->values->name == NULL) from->values->name = (char *)(uintptr_t) ""; /* it is never written */
  indices = *from->indices;
  if (indices.name == NULL) indices.name = from->values->name;
  const unsigned before = r->problems.n;
  const bool looks = r->only_looks;
  r->only_looks = false;
  heddle_status s = count_elements(r, &x);
  if (s == HEDDLE_OK) s = heddle__onnx_tensor(r, from->values, &x.values);
  if (s == HEDDLE_OK) s = heddle__onnx_tensor(r, &indices, &x.places);
  r->only_looks = looks;
  Onnx__TensorProto *made = s == HEDDLE_OK ? heddle__onnx_take(&r->arena, sizeof *made) : NULL;
  if (s == HEDDLE_OK && made == NULL) s = heddle__onnx_no_memory(r);
  if (made != NULL && s == HEDDLE_OK && r->problems.n == before) {
    s = check_parts(r, &x);
    if (s == HEDDLE_OK) s = fill(r, &x, made);
    if (s == HEDDLE_OK) *out = made;
  }
  drop(&x.values);
  drop(&x.places);
  return s;
}

heddle_status heddle__onnx_dense_all(heddle__onnx_reader *r, Onnx__GraphProto *g) {
  if (g->n_sparse_initializer == 0) return HEDDLE_OK;
  Onnx__TensorProto **all =
      heddle__onnx_take(&r->arena, (g->n_initializer + g->n_sparse_initializer) * sizeof(Onnx__TensorProto *));
  if (all == NULL) return heddle__onnx_no_memory(r);
  if (g->n_initializer > 0) memcpy(all, g->initializer, g->n_initializer * sizeof(Onnx__TensorProto *));
  g->initializer = all;
  heddle_status s = HEDDLE_OK;
  for (size_t i = 0; i < g->n_sparse_initializer && s == HEDDLE_OK; i++) {
    Onnx__TensorProto *made = NULL;
    s = heddle__onnx_dense(r, g->sparse_initializer[i], &made);
    if (made != NULL) all[g->n_initializer++] = made;
  }
  g->n_sparse_initializer = 0;
  return s;
}
