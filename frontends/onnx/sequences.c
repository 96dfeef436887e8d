/* frontends/onnx/sequences.c: sequences as lists of names of tensors. What SplitToSequence gives is not always a list: of a
 * dimension that is not known, element i is a slice. */
#include "frontends/onnx/sequences.h"

#include <string.h>

#include "core/alloc.h"
#include "frontends/onnx/objects.h"
#include "frontends/onnx/tensor.h"

enum { MOST = 4096 }; /* elements of a list */

/* r->sequences: {name: [tensor, ...]}, or {name: {"of": tensor, "axis": a, "each": n, "keeps": bool}}, or
 * {name: {"box": tensor}}: an optional that has it, or {name: null}: one that is empty, or a number: objects.c. */

static json_t *known(const heddle__onnx_reader *r, const char *name) {
  return name[0] != '\0' ? json_object_get(r->sequences, name) : NULL;
}

const json_t *heddle__onnx_sequence(const heddle__onnx_reader *r, const char *name) {
  const json_t *found = known(r, name);
  return json_is_array(found) ? found : NULL;
}

static void keep(heddle__ml *m, json_t *value) {
  const char *out = heddle__ml_output(m, 0);
  if (!heddle__ml_good(m) || out == NULL) json_decref(value);
  else if (json_object_set_new(m->r->sequences, out, value) != 0) m->s = heddle__onnx_no_memory(m->r);
}

static const char *input(const heddle__ml *m, size_t i) {
  return i < m->node->n_input ? m->node->input[i] : "";
}

/* A whole number that is a constant of the model; *is_known: whether it is. */
static int64_t number_of(heddle__ml *m, const char *name, bool *is_known) {
  heddle__onnx_number number = {0};
  const Onnx__TensorProto *t = name[0] != '\0' ? heddle__onnx_find_tensor(m->r, name) : NULL;
  *is_known = t != NULL && heddle__ml_good(m);
  if (*is_known) m->s = heddle__onnx_scalar(m->r, m->node, t, &number);
  return number.whole;
}

/* Input 0 as a list; refused where it is none. */
static const json_t *list_of(heddle__ml *m) {
  const json_t *list = heddle__onnx_sequence(m->r, input(m, 0));
  if (list == NULL) heddle__ml_refuse(m, "its input is not a sequence whose length is known when the model is read");
  return list;
}

/* Position i of n, which may count from the end; room: one behind the last is a position too. */
static size_t place_of(heddle__ml *m, size_t i, size_t n, bool room) {
  bool is_known;
  if (input(m, i)[0] == '\0') return room ? n : n - 1;
  const int64_t at = number_of(m, input(m, i), &is_known), all = (int64_t)n;
  if (!is_known) heddle__ml_refuse(m, "its position is not a constant");
  else if (at < -all || at >= all + (room ? 1 : 0))
    heddle__ml_refuse(m, "position %lld of a sequence of %zu", (long long)at, n);
  return heddle__ml_good(m) ? (size_t)(at < 0 ? at + all : at) : 0;
}

static void construct(heddle__ml *m) {
  json_t *list = json_array();
  for (size_t i = 0; i < m->node->n_input; i++) {
    if (known(m->r, input(m, i)) != NULL || input(m, i)[0] == '\0') heddle__ml_refuse(m, "input %zu is no tensor", i);
    if (json_array_append_new(list, json_string(input(m, i))) != 0) m->s = heddle__onnx_no_memory(m->r);
  }
  keep(m, list);
}

static void insert(heddle__ml *m) {
  const json_t *list = list_of(m);
  const size_t n = json_array_size(list), at = list != NULL ? place_of(m, 2, n, true) : 0;
  if (n >= MOST) heddle__ml_refuse(m, "a sequence of more than %d tensors", MOST);
  if (known(m->r, input(m, 1)) != NULL || input(m, 1)[0] == '\0') heddle__ml_refuse(m, "input 1 is no tensor");
  json_t *copy = json_copy((json_t *)(uintptr_t)list);
  if (heddle__ml_good(m) && json_array_insert_new(copy, at, json_string(input(m, 1))) != 0)
    m->s = heddle__onnx_no_memory(m->r);
  keep(m, copy);
}

static void erase(heddle__ml *m) {
  const json_t *list = list_of(m);
  const size_t n = json_array_size(list);
  if (list != NULL && n == 0) heddle__ml_refuse(m, "its sequence is empty");
  const size_t at = heddle__ml_good(m) ? place_of(m, 1, n, false) : 0;
  json_t *copy = json_copy((json_t *)(uintptr_t)list);
  if (heddle__ml_good(m)) json_array_remove(copy, at);
  keep(m, copy);
}

static const char *slice(heddle__ml *m, const char *x, const char *from, const char *to, int64_t axis,
                         const char *out) {
  const char *const in[] = {x, from, to, heddle__ml_shape(m, axis)};
  return heddle__ml_make(m, "Slice", out, 4, in);
}

/* Element i of what was split: from i * each on. */
static void at_slice(heddle__ml *m, const json_t *split, const char *out) {
  const char *x = json_string_value(json_object_get(split, "of"));
  const int64_t axis = json_integer_value(json_object_get(split, "axis")),
                each = json_integer_value(json_object_get(split, "each"));
  const bool keeps = json_is_true(json_object_get(split, "keeps"));
  bool is_known;
  const int64_t i = number_of(m, input(m, 1), &is_known);
  if (each == 1 && !keeps) {
    heddle__ml_2(m, "Gather", x, input(m, 1), out);
    heddle__ml_set_int(m, "axis", axis);
  } else if (!is_known || i < 0 || i > INT32_MAX || each > INT32_MAX) {
    heddle__ml_refuse(m, "its position is not a constant from 0 on, and how long the sequence is, is not known");
  } else {
    slice(m, x, heddle__ml_shape(m, i * each), heddle__ml_shape(m, i * each + each), axis, out);
  }
}

static void at(heddle__ml *m) {
  const char *out = heddle__ml_output(m, 0);
  const json_t *split = known(m->r, input(m, 0));
  if (out == NULL) return;
  if (json_is_object(split)) {
    at_slice(m, split, out);
    return;
  }
  const json_t *list = list_of(m);
  if (list != NULL && json_array_size(list) == 0) heddle__ml_refuse(m, "its sequence is empty");
  const size_t i = heddle__ml_good(m) ? place_of(m, 1, json_array_size(list), false) : 0;
  const char *x = json_string_value(json_array_get(list, i));
  if (heddle__ml_good(m)) {
    const heddle__onnx_known kind = heddle__onnx_known_of(m->r, x);
    heddle__ml_1(m, "Identity", x, out);
    if (heddle__ml_good(m)) m->s = heddle__onnx_note(m->r, out, kind.type, kind.rank);
  }
}

/* A number without dimensions, computed by no node: a constant of that name. */
static void constant(heddle__ml *m, int32_t type, int64_t value) {
  const char *out = heddle__ml_output(m, 0);
  const char *whole = heddle__ml_whole(m, value);
  if (out == NULL) return;
  if (type == ONNX_INT64) heddle__ml_1(m, "Identity", whole, out);
  else heddle__ml_cast(m, whole, type, out);
  if (heddle__ml_good(m)) m->s = heddle__onnx_note(m->r, out, type, 0);
}

static void length(heddle__ml *m) {
  const json_t *list = list_of(m);
  if (list != NULL) constant(m, ONNX_INT64, (int64_t)json_array_size(list));
}

/* ---- SplitToSequence, ConcatFromSequence */

/* A dimension that the model declares; -1: it does not. */
static int64_t declared(const heddle__onnx_reader *r, const char *name, int64_t axis) {
  Onnx__ValueInfoProto *const *lists[] = {r->graph->input, r->graph->value_info};
  const size_t counts[] = {r->graph->n_input, r->graph->n_value_info};
  const Onnx__TensorProto *t = heddle__onnx_find_tensor(r, name);
  if (t != NULL && axis < 0) axis += (int64_t)t->n_dims;
  if (t != NULL) return axis >= 0 && axis < (int64_t)t->n_dims ? t->dims[axis] : -1;
  for (size_t k = 0; k < 2; k++) {
    for (size_t i = 0; i < counts[k]; i++) {
      const Onnx__TypeProto *type = lists[k][i]->type;
      if (lists[k][i]->name == NULL || strcmp(lists[k][i]->name, name) != 0 || type == NULL) continue;
      if (type->value_case != ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE || type->tensor_type->shape == NULL) return -1;
      const Onnx__TensorShapeProto *shape = type->tensor_type->shape;
      const int64_t d = axis < 0 ? axis + (int64_t)shape->n_dim : axis;
      if (d < 0 || d >= (int64_t)shape->n_dim) return -1;
      const bool has = shape->dim[d]->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE;
      return has ? shape->dim[d]->dim_value : -1;
    }
  }
  return -1;
}

/* The sizes of the parts; NULL where they are not known. Without `split` each is 1. */
static const int64_t *sizes_of(heddle__ml *m, int64_t dim, int64_t *each, size_t *n) {
  const Onnx__TensorProto *t = input(m, 1)[0] != '\0' ? heddle__onnx_find_tensor(m->r, input(m, 1)) : NULL;
  bool is_known = true;
  *n = 0;
  *each = 1;
  if (t != NULL && t->n_dims == 1) {
    const char *name = input(m, 1);
    struct heddle__param p = {.name = NULL};
    m->s = heddle__onnx_tensor(m->r, t, &p);
    const bool is_wide = p.value.dtype.bits == 64;
    *n = m->s == HEDDLE_OK && p.value.data != NULL ? (size_t)p.value.bytes / (is_wide ? 8 : 4) : 0;
    int64_t *sizes = heddle__ml_take(m, *n, sizeof *sizes);
    for (size_t i = 0; sizes != NULL && i < *n; i++) {
      if (is_wide) memcpy(&sizes[i], (const char *)p.value.data + i * 8, 8);
      else sizes[i] = ((const int32_t *)p.value.data)[i];
    }
    if (!p.is_mapped) heddle__free(p.value.data);
    heddle__free(p.value.shape);
    if (*n == 0 || *n > MOST) heddle__ml_refuse(m, "'%.40s' has %zu sizes of parts", name, *n);
    return sizes;
  }
  if (input(m, 1)[0] != '\0') *each = number_of(m, input(m, 1), &is_known);
  if (!is_known || *each < 1) heddle__ml_refuse(m, "the sizes of its parts are not known, or not above 0");
  if (!heddle__ml_good(m) || dim < 0 || dim / *each >= MOST) return NULL;
  *n = (size_t)((dim + *each - 1) / *each);
  int64_t *sizes = heddle__ml_take(m, *n, sizeof *sizes);
  for (size_t i = 0; sizes != NULL && i < *n; i++) sizes[i] = i + 1 < *n ? *each : dim - (int64_t)i * *each;
  return sizes;
}

static void split(heddle__ml *m) {
  const int64_t axis = heddle__ml_int(m, "axis", 0);
  const bool keeps = input(m, 1)[0] != '\0' || heddle__ml_int(m, "keepdims", 1) != 0;
  const char *x = input(m, 0);
  int64_t each = 1;
  size_t n = 0;
  if (axis < -32 || axis > 32) heddle__ml_refuse(m, "axis is %lld", (long long)axis);
  const heddle__onnx_known kind = heddle__onnx_known_of(m->r, x);
  const int64_t *sizes = sizes_of(m, declared(m->r, x, axis), &each, &n);
  if (!heddle__ml_good(m)) return;
  if (sizes == NULL) {
    json_t *later =
        json_pack("{ss sI sI sb}", "of", x, "axis", (json_int_t)axis, "each", (json_int_t)each, "keeps", (int)keeps);
    if (later == NULL) m->s = heddle__onnx_no_memory(m->r);
    keep(m, later);
    return;
  }
  json_t *list = json_array();
  int64_t from = 0;
  for (size_t i = 0; i < n && heddle__ml_good(m); i++) {
    if (sizes[i] < 0 || sizes[i] > INT64_MAX / 2 - from)
      heddle__ml_refuse(m, "a part of size %lld", (long long)sizes[i]);
    const char *part = slice(m, x, heddle__ml_shape(m, from), heddle__ml_shape(m, from + sizes[i]), axis, NULL);
    if (!keeps) part = heddle__ml_2(m, "Squeeze", part, heddle__ml_shape(m, axis), NULL);
    if (part != NULL) m->s = heddle__onnx_note(m->r, part, kind.type, kind.rank - (keeps || kind.rank < 0 ? 0 : 1));
    if (part != NULL && json_array_append_new(list, json_string(part)) != 0) m->s = heddle__onnx_no_memory(m->r);
    from += sizes[i];
  }
  keep(m, list);
}

static void concat(heddle__ml *m) {
  const json_t *list = list_of(m);
  const int64_t axis = heddle__ml_int(m, "axis", 0);
  const bool is_new = heddle__ml_int(m, "new_axis", 0) != 0;
  const char *out = heddle__ml_output(m, 0);
  const size_t n = json_array_size(list);
  if (!heddle__ml_has(m, "axis")) heddle__ml_refuse(m, "it has no axis");
  if (list != NULL && n == 0) heddle__ml_refuse(m, "its sequence is empty");
  const char **parts = heddle__ml_take(m, n, sizeof *parts);
  if (!heddle__ml_good(m) || out == NULL) return;
  const heddle__onnx_known kind = heddle__onnx_known_of(m->r, json_string_value(json_array_get(list, 0)));
  for (size_t i = 0; i < n && heddle__ml_good(m); i++) {
    parts[i] = json_string_value(json_array_get(list, i));
    if (is_new) parts[i] = heddle__ml_2(m, "Unsqueeze", parts[i], heddle__ml_shape(m, axis), NULL);
  }
  heddle__ml_make(m, "Concat", out, n, parts);
  heddle__ml_set_int(m, "axis", axis);
  if (heddle__ml_good(m)) m->s = heddle__onnx_note(m->r, out, kind.type, -1);
}

/* ---- optionals, and values that only have another name */

static void same(heddle__ml *m) {
  json_t *value = known(m->r, input(m, 0));
  const char *x = input(m, 0), *out = heddle__ml_output(m, 0);
  const char *box = json_string_value(json_object_get(value, "box"));
  const bool opens = strcmp(m->node->op_type, "OptionalGetElement") == 0;
  if (box != NULL && opens) x = box;
  if (value != NULL && (box == NULL || !opens)) {
    if (json_is_null(value) && strcmp(m->node->op_type, "OptionalGetElement") == 0)
      heddle__ml_refuse(m, "its optional is empty");
    keep(m, json_incref(value));
  } else if (x[0] == '\0') {
    keep(m, json_null());
  } else if (strcmp(m->node->op_type, "Optional") == 0) {
    keep(m, json_pack("{ss}", "box", x));
  } else if (out != NULL) {
    const heddle__onnx_known kind = heddle__onnx_known_of(m->r, x);
    heddle__ml_1(m, "Identity", x, out);
    if (heddle__ml_good(m)) m->s = heddle__onnx_note(m->r, out, kind.type, kind.rank);
  }
}

static void has(heddle__ml *m) {
  const bool is_empty = input(m, 0)[0] == '\0' || json_is_null(known(m->r, input(m, 0)));
  constant(m, ONNX_BOOL, is_empty ? 0 : 1);
}

static const struct row {
  const char *op;
  heddle__ml_fn read;
} rows[] = {
    {"ConcatFromSequence", concat}, {"Optional", same},         {"OptionalGetElement", same},
    {"OptionalHasElement", has},    {"SequenceAt", at},         {"SequenceConstruct", construct},
    {"SequenceEmpty", construct},   {"SequenceErase", erase},   {"SequenceInsert", insert},
    {"SequenceLength", length},     {"SplitToSequence", split},
};

HEDDLE__UPGRADE(heddle__upgrade_sequence) {
  heddle__ml m = {.r = r, .node = node};
  heddle__ml_fn read = NULL;
  bool takes = false;
  for (size_t k = 0; k < node->n_input; k++) takes = takes || known(r, node->input[k]) != NULL;
  if (takes && strcmp(node->op_type, "Identity") == 0) read = same;
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
    if (strcmp(rows[i].op, node->op_type) == 0) read = rows[i].read;
  if (read == NULL && !takes) return HEDDLE_OK;
  if (read == NULL && (heddle__onnx_is_control(node) || strcmp(node->op_type, "SequenceMap") == 0))
    return node->op_type[0] == 'S' && node->op_type[1] == 'e' ? HEDDLE_OK : heddle__onnx_take_objects(r, node);
  if (read != NULL && heddle__onnx_needs_run(&m)) read = heddle__onnx_run_sequence;
  if (read == NULL) heddle__ml_refuse(&m, "it takes a sequence");
  *is_done = true;
  if (heddle__ml_good(&m)) read(&m);
  if (m.s == HEDDLE_OK && m.refused) *is_done = heddle__ml_stand_in(&m);
  return m.s;
}
