/* frontends/onnx/expand_parts.c: constants and rows of nodes that many expansions have. */
#include <string.h>

#include "frontends/onnx/expand.h"

static const char *made(expansion *e, const char *name) {
  if (name != NULL) return name;
  if (e->status == HEDDLE_OK) e->status = heddle__onnx_no_memory(e->r);
  return "";
}

const char *x_whole(expansion *e, const int64_t *values, size_t n) {
  return x_ok(e) ? made(e, heddle__onnx_new_ints(e->r, e->node, "ints", values, n)) : "";
}

const char *x_one(expansion *e, int64_t value) {
  return x_whole(e, &value, 1);
}

const char *x_number(expansion *e, const char *like, float value) {
  x_known(e, like);
  return x_ok(e) ? made(e, heddle__onnx_new_scalar(e->r, e->node, "number", like, value)) : "";
}

const char *x_zero_of(expansion *e, int32_t type) {
  if (!x_ok(e)) return "";
  Onnx__TensorProto *t = heddle__onnx_take(&e->r->arena, sizeof *t);
  int64_t *zero = heddle__onnx_take(&e->r->arena, sizeof *zero);
  const char *name = heddle__onnx_new_value(e->r, e->node, "zero");
  if (t == NULL || zero == NULL || name == NULL) return made(e, NULL);
  onnx__tensor_proto__init(t);
  t->name = (char *)(uintptr_t)name;
  t->has_data_type = 1;
  t->data_type = type;
  t->int64_data = zero;
  t->n_int64_data = type == ONNX_INT64;
  t->int32_data = (int32_t *)zero;
  t->n_int32_data = type != ONNX_INT64;
  e->status = heddle__onnx_add_tensor(e->r, t);
  if (e->status == HEDDLE_OK) e->status = heddle__onnx_note(e->r, name, type, 0);
  return name;
}

const char *x_cast(expansion *e, const char *x, int32_t type) {
  if (x_known(e, x).type == type) return x;
  const char *y = x_1(e, "Cast", x);
  x_int(e, "to", type);
  return y;
}

const char *x_dim(expansion *e, const char *x, int64_t d) {
  const char *y = x_1(e, "Shape", x);
  x_int(e, "start", d);
  if (d != -1) x_int(e, "end", d + 1);
  return y;
}

const char *x_reshape(expansion *e, const char *x, const int64_t *shape, size_t n) {
  return x_2(e, "Reshape", x, x_whole(e, shape, n));
}

const char *x_transpose(expansion *e, const char *x, const int64_t *perm, size_t n) {
  const char *y = x_1(e, "Transpose", x);
  x_ints(e, "perm", perm, n);
  return y;
}

const char *x_unsqueeze(expansion *e, const char *x, int64_t axis) {
  return x_2(e, "Unsqueeze", x, x_one(e, axis));
}

const char *x_slice(expansion *e, const char *x, const char *first, const char *last, int64_t axis) {
  return x_node(e, "Slice", (const char *[]){x, first, last, x_one(e, axis)}, 4);
}

const char *x_concat(expansion *e, int64_t axis, const char *const *list, size_t n) {
  const char *y = x_node(e, "Concat", list, n);
  x_int(e, "axis", axis);
  return y;
}

void x_split(expansion *e, const char *x, int64_t axis, const char **out, size_t n) {
  x_many(e, "Split", &x, 1, out, n);
  x_int(e, "axis", axis);
  if (e->r->target >= 18) x_int(e, "num_outputs", (int64_t)n);
}

void x_split_by(expansion *e, const char *x, int64_t axis, const char *sizes, const char **out, size_t n) {
  x_many(e, "Split", (const char *[]){x, sizes}, 2, out, n);
  x_int(e, "axis", axis);
}

const char *x_sum(expansion *e, const char *a, const char *b) {
  return a[0] == '\0' ? b : b[0] == '\0' ? a : x_2(e, "Add", a, b);
}

/* Of float32 that of domain "heddle", as upgrade_parts.c has it. */
const char *x_gelu(expansion *e, const char *x, bool by_tanh) {
  const bool is_float32 = x_known(e, x).type == ONNX_FLOAT;
  const char *y = x_1(e, "Gelu", x);
  if (by_tanh) x_text(e, "approximate", "tanh");
  if (x_ok(e) && is_float32) e->last->domain = (char *)(uintptr_t) "heddle";
  return y;
}

const char *x_range(expansion *e, const char *n) {
  static const int64_t zero = 0, one = 1;
  const char *scalar = x_2(e, "Squeeze", n, x_one(e, 0));
  const char *first = x_2(e, "Squeeze", x_whole(e, &zero, 1), x_one(e, 0));
  const char *step = x_2(e, "Squeeze", x_whole(e, &one, 1), x_one(e, 0));
  return x_3(e, "Range", first, scalar, step);
}
