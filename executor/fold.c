/* executor/fold.c: Concat, Add and Mul of small int64 tensors whose bytes are known, for shape operands.
 * What is larger or of another kind is computed by a device like any other node. */
#include "executor/fold.h"

#include <string.h>

#include "core/error.h"

#define MAX_ELEMENTS 4096

static bool is_int64(heddle_dtype t) {
  return t.code == HEDDLE_DTYPE_INT && t.bits == 64 && t.lanes == 1;
}

/* Element i of a tensor of one element, or of as many as the result has. */
static int64_t at(const heddle__known *k, uint64_t i) {
  const char *data = k->data;
  int64_t x;
  memcpy(&x, data + (k->bytes == sizeof x ? 0 : i * sizeof x), sizeof x);
  return x;
}

heddle_status heddle__fold(heddle__plan *plan, const heddle__node *node, const heddle__known *const *inputs,
                           heddle__known *out, heddle_error *err) {
  bool concat = strcmp(node->op, "Concat") == 0;
  bool add = strcmp(node->op, "Add") == 0, mul = strcmp(node->op, "Mul") == 0;
  if (node->domain[0] != '\0' || !(concat || add || mul) || !is_int64(out->dtype)) return HEDDLE_OK;
  if (out->bytes > MAX_ELEMENTS * sizeof(int64_t) || (concat && out->ndim != 1)) return HEDDLE_OK;
  for (uint32_t i = 0; i < node->n_inputs; i++) {
    if (inputs[i] == NULL || inputs[i]->data == NULL) return HEDDLE_OK;
    bool fits = inputs[i]->bytes == out->bytes || inputs[i]->bytes == sizeof(int64_t);
    if (!concat && !fits) return HEDDLE_OK;
  }
  char *data = heddle__plan_alloc(plan, 1, out->bytes);
  if (data == NULL) return heddle__no_memory(err, "a folded shape");
  uint64_t n = 0;
  for (uint32_t i = 0; concat && i < node->n_inputs; i++) {
    memcpy(data + n, inputs[i]->data, inputs[i]->bytes);
    n += inputs[i]->bytes;
  }
  for (uint64_t i = 0; !concat && i < out->bytes / sizeof(int64_t); i++) {
    uint64_t a = (uint64_t)at(inputs[0], i), b = (uint64_t)at(inputs[1], i); /* wraps, as the operators do */
    int64_t x = (int64_t)(add ? a + b : a * b);
    memcpy(data + i * sizeof x, &x, sizeof x);
  }
  out->data = data;
  return HEDDLE_OK;
}
