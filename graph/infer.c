/* graph/infer.c: what the inference of all operator families shares: attributes with defaults, complaints about an
 * input, broadcasting. The families are in infer_*.c. */
#include "graph/infer.h"

#include "core/failure.h"
#include "core/tensor.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const heddle_pattr *heddle__attr(const heddle__node *node, const char *name) {
  for (uint32_t i = 0; i < node->n_attrs; i++)
    if (strcmp(node->attrs[i].name, name) == 0) return &node->attrs[i];
  return NULL;
}

int64_t heddle__attr_int(const heddle__node *node, const char *name, int64_t fallback) {
  const heddle_pattr *attr = heddle__attr(node, name);
  return attr != NULL ? *(const int64_t *)attr->data : fallback;
}

const char *heddle__attr_string(const heddle__node *node, const char *name, const char *fallback) {
  const heddle_pattr *attr = heddle__attr(node, name);
  return attr != NULL ? attr->data : fallback;
}

const int64_t *heddle__attr_ints(const heddle__node *node, const char *name, uint64_t *count) {
  const heddle_pattr *attr = heddle__attr(node, name);
  *count = attr != NULL ? attr->count : 0;
  return attr != NULL ? attr->data : NULL;
}

heddle_status heddle__attr_axis(const heddle_graph *g, const heddle__node *node, int64_t fallback, uint32_t rank,
                                bool last, uint32_t *out, heddle_error *err) {
  int64_t axis = heddle__attr_int(node, "axis", fallback), limit = (int64_t)rank - (last ? 0 : 1);
  if (axis < -(int64_t)rank || axis > limit)
    return heddle__node_fail(g, node, err, HEDDLE_EFORMAT, "axis is %lld, expected %lld to %lld for %u dimensions",
                             (long long)axis, -(long long)rank, (long long)limit, rank);
  *out = (uint32_t)(axis < 0 ? axis + rank : axis);
  return HEDDLE_OK;
}

heddle_status heddle__bad_input(const heddle_graph *g, const heddle__node *node, uint32_t i, const heddle__known *input,
                                heddle_error *err, const char *format, ...) {
  char words[256], type[128];
  va_list args;
  va_start(args, format);
  if (vsnprintf(words, sizeof words, format, args) < 0) words[0] = '\0';
  va_end(args);
  heddle__type_words(input->dtype, input->ndim, input->shape, type);
  return heddle__at_operand(
      heddle__node_fail(g, node, err, HEDDLE_EFORMAT, "input %u (%s): expected %s", i, type, words), err, i);
}

heddle_status heddle__same_dtype(const heddle_graph *g, const heddle__node *node, uint32_t i,
                                 const heddle__known *const *inputs, heddle_error *err) {
  char name[32];
  if (inputs[i] == NULL || memcmp(&inputs[i]->dtype, &inputs[0]->dtype, sizeof inputs[i]->dtype) == 0) return HEDDLE_OK;
  heddle__dtype_name(inputs[0]->dtype, name);
  return heddle__bad_input(g, node, i, inputs[i], err, "%s, the type of input 0", name);
}

heddle_status heddle__float_dtype(const heddle_graph *g, const heddle__node *node, uint32_t i,
                                  const heddle__known *const *inputs, heddle_error *err) {
  heddle_dtype d = inputs[i]->dtype;
  if ((d.code == HEDDLE_DTYPE_FLOAT || d.code == HEDDLE_DTYPE_BFLOAT) && d.lanes == 1) return HEDDLE_OK;
  return heddle__bad_input(g, node, i, inputs[i], err, "a floating-point type");
}

bool heddle__broadcast(const int64_t *a, uint32_t a_ndim, const int64_t *b, uint32_t b_ndim, int64_t *out,
                       uint32_t *out_ndim) {
  uint32_t ndim = a_ndim > b_ndim ? a_ndim : b_ndim;
  int64_t result[HEDDLE__MAX_NDIM];
  for (uint32_t i = 0; i < ndim; i++) { /* counted from the last dimension */
    int64_t x = i < a_ndim ? a[a_ndim - 1 - i] : 1, y = i < b_ndim ? b[b_ndim - 1 - i] : 1;
    if (x != y && x != 1 && y != 1) return false;
    result[ndim - 1 - i] = x == 1 ? y : x;
  }
  if (ndim > 0) memcpy(out, result, ndim * sizeof *out);
  *out_ndim = ndim;
  return true;
}

heddle_status heddle__number_dtype(const heddle_graph *g, const heddle__node *node, uint32_t i,
                                   const heddle__known *const *inputs, heddle_error *err) {
  heddle_dtype d = inputs[i]->dtype;
  if (d.lanes == 1 && (d.code <= HEDDLE_DTYPE_FLOAT || d.code == HEDDLE_DTYPE_BFLOAT)) return HEDDLE_OK;
  return heddle__bad_input(g, node, i, inputs[i], err, "a number type");
}

heddle_status heddle__needs_bytes(const heddle_graph *g, const heddle__node *node, const heddle__known *const *inputs,
                                  uint32_t i, int32_t *needs, heddle_error *err) {
  const heddle__known *x = inputs[i];
  for (uint32_t d = 0; d < x->ndim; d++)
    if (x->shape[d] == 0) return HEDDLE_OK;
  if (x->data != NULL) return HEDDLE_OK;
  if (needs != NULL) *needs = (int32_t)i;
  return heddle__node_fail(g, node, err, HEDDLE_EUNSUPPORTED,
                           "its output's shape is the value of input %u, which is not known", i);
}

heddle_status heddle__operand_ints(const heddle_graph *g, const heddle__node *node, const heddle__known *const *inputs,
                                   uint32_t i, int64_t *out, uint32_t *count, int32_t *needs, heddle_error *err) {
  const heddle__known *x = heddle__input(node, inputs, i);
  *count = UINT32_MAX;
  if (x == NULL) return HEDDLE_OK;
  int64_t n = x->ndim == 0 ? 1 : x->shape[0];
  bool wide = x->dtype.bits == 64;
  if (x->dtype.code != HEDDLE_DTYPE_INT || x->dtype.lanes != 1 || (x->dtype.bits != 32 && !wide) || x->ndim > 1 ||
      n > HEDDLE__MAX_NDIM)
    return heddle__bad_input(g, node, i, x, err, "int64 [n] with n at most %d", HEDDLE__MAX_NDIM);
  heddle_status s = heddle__needs_bytes(g, node, inputs, i, needs, err);
  if (s != HEDDLE_OK) return s;
  for (int64_t k = 0; k < n; k++) {
    int32_t narrow;
    if (wide) memcpy(&out[k], (const char *)x->data + k * 8, 8);
    else {
      memcpy(&narrow, (const char *)x->data + k * 4, 4);
      out[k] = narrow;
    }
  }
  *count = (uint32_t)n;
  return HEDDLE_OK;
}

heddle_status heddle__axes(const heddle_graph *g, const heddle__node *node, int64_t *axes, uint32_t count,
                           uint32_t rank, uint32_t *mask, heddle_error *err) {
  uint32_t seen = 0;
  for (uint32_t i = 0; i < count; i++) {
    if (axes[i] < -(int64_t)rank || axes[i] >= (int64_t)rank)
      return HEDDLE__BAD("one of its axes is %lld, and there are %u dimensions", (long long)axes[i], rank);
    if (axes[i] < 0) axes[i] += rank;
    if (seen >> axes[i] & 1) return HEDDLE__BAD("its axes name dimension %lld twice", (long long)axes[i]);
    seen |= UINT32_C(1) << axes[i];
  }
  if (mask != NULL) *mask = seen;
  return HEDDLE_OK;
}

heddle_status heddle__dimension(const heddle_graph *g, const heddle__node *node, int64_t dim, uint32_t i,
                                heddle_error *err) {
  if (dim >= 0 && dim <= INT64_MAX / 4) return HEDDLE_OK;
  return HEDDLE__BAD("dimension %u of its output would be %lld", i, (long long)dim);
}

bool heddle__onnx_dtype(int64_t number, heddle_dtype *out) {
  static const heddle_dtype types[] = {
      [1] = {HEDDLE_DTYPE_FLOAT, 32, 1},   [2] = {HEDDLE_DTYPE_UINT, 8, 1},   [3] = {HEDDLE_DTYPE_INT, 8, 1},
      [4] = {HEDDLE_DTYPE_UINT, 16, 1},    [5] = {HEDDLE_DTYPE_INT, 16, 1},   [6] = {HEDDLE_DTYPE_INT, 32, 1},
      [7] = {HEDDLE_DTYPE_INT, 64, 1},     [9] = {HEDDLE_DTYPE_BOOL, 8, 1},   [10] = {HEDDLE_DTYPE_FLOAT, 16, 1},
      [11] = {HEDDLE_DTYPE_FLOAT, 64, 1},  [12] = {HEDDLE_DTYPE_UINT, 32, 1}, [13] = {HEDDLE_DTYPE_UINT, 64, 1},
      [16] = {HEDDLE_DTYPE_BFLOAT, 16, 1},
  };
  if (number < 1 || (uint64_t)number >= sizeof types / sizeof types[0] || types[number].bits == 0) return false;
  *out = types[number];
  return true;
}
