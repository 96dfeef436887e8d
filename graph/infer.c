/* graph/infer.c: what the inference of all operator families shares: attributes with defaults, complaints about an
 * input, broadcasting. The families are in infer_*.c. */
#include "graph/infer.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "graph/words.h"

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
  return heddle__node_fail(g, node, err, HEDDLE_EFORMAT, "input %u (%s): expected %s", i, type, words);
}

heddle_status heddle__same_dtype(const heddle_graph *g, const heddle__node *node, uint32_t i,
                                 const heddle__known *const *inputs, heddle_error *err) {
  char name[32];
  if (inputs[i] == NULL || memcmp(&inputs[i]->dtype, &inputs[0]->dtype, sizeof inputs[i]->dtype) == 0) return HEDDLE_OK;
  heddle__dtype_text(inputs[0]->dtype, name);
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
