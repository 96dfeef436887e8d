/* frontends/onnx/objects.c: sequences and optionals that only a run has: numbers, which operators of domain heddle take
 * (operators/object.def). sequences.c has those that are known when the model is read, and calls this for others. */
#include <string.h>

#include "frontends/onnx/ml.h"
#include "frontends/onnx/sequences.h"
#include "frontends/onnx/strings.h"
#include "frontends/onnx/tensor.h"
#include "heddle/strings.h"

/* r->sequences: {name: element type + 256 * kind}. */
enum { SEQUENCE = 1, OPTIONAL = 2, OPTIONAL_SEQUENCE = 3 };

typedef struct object {
  int32_t type; /* of the tensors */
  int kind;     /* 0: it is none */
} object;

static object object_of(const heddle__onnx_reader *r, const char *name) {
  const json_t *code = name[0] != '\0' ? json_object_get(r->sequences, name) : NULL;
  const json_int_t number = json_is_integer(code) ? json_integer_value(code) : 0;
  return (object){(int32_t)(number % 256), (int)(number / 256)};
}

static heddle_status set_object(heddle__onnx_reader *r, const char *name, object o) {
  if (name[0] == '\0') return HEDDLE_OK;
  json_t *code = json_integer((json_int_t)o.kind * 256 + o.type);
  return json_object_set_new(r->sequences, name, code) == 0 ? HEDDLE_OK : heddle__onnx_no_memory(r);
}

static object declared_of(const Onnx__TypeProto *type) {
  object o = {0, 0};
  if (type == NULL) return o;
  const bool is_optional = type->value_case == ONNX__TYPE_PROTO__VALUE_OPTIONAL_TYPE;
  if (is_optional) type = type->optional_type->elem_type;
  if (type == NULL) return o;
  const bool is_sequence = type->value_case == ONNX__TYPE_PROTO__VALUE_SEQUENCE_TYPE;
  if (is_sequence) type = type->sequence_type->elem_type;
  if (type == NULL || type->value_case != ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE || !(is_optional || is_sequence))
    return o;
  o.type = type->tensor_type->elem_type > 0 && type->tensor_type->elem_type < 256 ? type->tensor_type->elem_type : 0;
  o.kind = !is_sequence ? OPTIONAL : is_optional ? OPTIONAL_SEQUENCE : SEQUENCE;
  return o;
}

bool heddle__onnx_is_object(const Onnx__TypeProto *type) {
  return declared_of(type).kind != 0;
}

bool heddle__onnx_is_known_object(const heddle__onnx_reader *r, const char *name) {
  return name[0] != '\0' && json_object_get(r->sequences, name) != NULL;
}

heddle_status heddle__onnx_learn_object(heddle__onnx_reader *r, const Onnx__ValueInfoProto *v) {
  const object o = declared_of(v->type);
  return o.kind != 0 && v->name != NULL ? set_object(r, v->name, o) : HEDDLE_OK;
}

heddle_status heddle__onnx_note_port(heddle__onnx_reader *r, const Onnx__ValueInfoProto *v) {
  const object o = declared_of(v->type);
  const bool is_text = o.type == ONNX_STRING;
  int kind = is_text ? HEDDLE_STRING_TENSOR : HEDDLE_STRING_NONE;
  if (o.kind == 0) return HEDDLE_OK;
  if (o.kind != OPTIONAL) kind = is_text ? HEDDLE_STRING_TEXTS : HEDDLE_STRING_SEQUENCE;
  return heddle__onnx_note_kind(r, v->name, kind + (o.kind != SEQUENCE ? HEDDLE_STRING_OPTIONAL : 0));
}

/* ---- from what was known when the model was read to numbers */

static const char *own(heddle__ml *m, const char *op, size_t n, const char *const *in, const char *out) {
  out = heddle__ml_make(m, op, out, n, in);
  (void)heddle__ml_last(m, true);
  return out;
}

static const char *split_later(heddle__ml *m, const json_t *split, const char *out) {
  const int64_t each = json_integer_value(json_object_get(split, "each"));
  const bool keeps = json_is_true(json_object_get(split, "keeps"));
  const char *in[2] = {json_string_value(json_object_get(split, "of")), NULL};
  if (keeps) in[1] = heddle__ml_whole(m, each);
  out = own(m, "SplitToSequence", keeps ? 2 : 1, in, out);
  heddle__ml_set_int(m, "axis", json_integer_value(json_object_get(split, "axis")));
  if (!keeps) heddle__ml_set_int(m, "keepdims", 0);
  return out;
}

/* The number of a sequence or optional, in a value of the name out; NULL: any name. */
static const char *number_of(heddle__ml *m, const char *name, const char *out, object *o) {
  heddle__onnx_reader *r = m->r;
  json_t *value = name[0] != '\0' ? json_object_get(r->sequences, name) : NULL;
  if (!heddle__ml_good(m)) return NULL;
  *o = object_of(r, name);
  if (o->kind != 0) return out == NULL || strcmp(out, name) == 0 ? name : heddle__ml_1(m, "Identity", name, out);
  if (json_is_array(value)) {
    const size_t n = json_array_size(value);
    const char **items = heddle__ml_take(m, n + 1, sizeof *items);
    for (size_t i = 0; items != NULL && i < n; i++) items[i] = json_string_value(json_array_get(value, i));
    o->kind = SEQUENCE;
    if (items != NULL && n > 0) o->type = heddle__onnx_known_of(r, items[0]).type;
    return items != NULL ? own(m, "SequenceConstruct", n, items, out) : NULL;
  }
  const char *of = json_string_value(json_object_get(value, "of")),
             *box = json_string_value(json_object_get(value, "box"));
  if (of != NULL || box != NULL) {
    o->kind = of != NULL ? SEQUENCE : OPTIONAL;
    o->type = heddle__onnx_known_of(r, of != NULL ? of : box).type;
    return of != NULL ? split_later(m, value, out) : own(m, "SequenceConstruct", 1, &box, out);
  }
  if (value == NULL || !json_is_null(value)) {
    heddle__ml_refuse(m, "its input is no sequence or optional");
    return NULL;
  }
  o->kind = OPTIONAL_SEQUENCE;
  const char *none = heddle__ml_whole(m, HEDDLE_NO_OBJECT);
  return out == NULL ? none : heddle__ml_1(m, "Identity", none, out);
}

heddle_status heddle__onnx_give_object(heddle__onnx_reader *r, Onnx__NodeProto *node, const Onnx__ValueInfoProto *v) {
  object o;
  heddle__ml m = {.r = r, .node = node};
  const json_t *value = json_object_get(r->sequences, v->name);
  if (value == NULL || json_is_integer(value)) return HEDDLE_OK;
  (void)number_of(&m, v->name, v->name, &o);
  return m.s;
}

heddle_status heddle__onnx_take_objects(heddle__onnx_reader *r, Onnx__NodeProto *node) {
  heddle__ml m = {.r = r, .node = node};
  object o;
  char **list = heddle__onnx_take(&r->arena, (node->n_input + 1) * sizeof *list);
  if (list == NULL) return heddle__onnx_no_memory(r);
  for (size_t k = 0; k < node->n_input; k++) {
    const bool takes = node->input[k][0] != '\0' && json_object_get(r->sequences, node->input[k]) != NULL;
    const char *name = takes ? number_of(&m, node->input[k], NULL, &o) : node->input[k];
    list[k] = (char *)(uintptr_t)(name != NULL ? name : node->input[k]);
  }
  node->input = list;
  return m.s;
}

heddle_status heddle__onnx_learn_given(heddle__onnx_reader *r, const char *output, const Onnx__ValueInfoProto *v) {
  object o = declared_of(v->type);
  if (o.kind == 0) o = object_of(r, v->name);
  return o.kind != 0 ? set_object(r, output, o) : HEDDLE_OK;
}

/* ---- operators */

static const char *input(const heddle__ml *m, size_t i) {
  return i < m->node->n_input ? m->node->input[i] : "";
}

static bool is_constant(const heddle__ml *m, size_t i) {
  return input(m, i)[0] == '\0' || heddle__onnx_find_tensor(m->r, input(m, i)) != NULL;
}

static bool is_op(const heddle__ml *m, const char *op) {
  return strcmp(m->node->op_type, op) == 0;
}

bool heddle__onnx_needs_run(const heddle__ml *m) {
  for (size_t i = 0; i < m->node->n_input; i++)
    if (object_of(m->r, input(m, i)).kind != 0) return true;
  const json_t *value = input(m, 0)[0] != '\0' ? json_object_get(m->r->sequences, input(m, 0)) : NULL;
  const bool is_split = json_is_object(value) && json_object_get(value, "of") != NULL;
  if (is_op(m, "SplitToSequence")) return !is_constant(m, 1);
  if (is_op(m, "SequenceInsert")) return is_split || !is_constant(m, 2);
  if (is_op(m, "SequenceErase")) return is_split || !is_constant(m, 1);
  if (is_op(m, "SequenceLength") || is_op(m, "ConcatFromSequence")) return is_split;
  if (!is_op(m, "SequenceAt")) return false;
  if (!is_split) return !is_constant(m, 1);
  if (json_integer_value(json_object_get(value, "each")) == 1 && !json_is_true(json_object_get(value, "keeps")))
    return false;
  heddle__onnx_number at = {0};
  const Onnx__TensorProto *t = heddle__onnx_find_tensor(m->r, input(m, 1));
  return t == NULL || heddle__onnx_scalar(m->r, m->node, t, &at) != HEDDLE_OK || at.whole < 0;
}

/* The node's outputs are a tensor of a type and rank that is known, or not: 0, -1. */
static void note(heddle__ml *m, const char *out, int32_t type, int32_t rank) {
  if (heddle__ml_good(m)) m->s = heddle__onnx_note(m->r, out, type, rank);
}

static void copy_attr(heddle__ml *m, const char *name) {
  if (heddle__ml_has(m, name)) heddle__ml_set_int(m, name, heddle__ml_int(m, name, 0));
}

static void take_element(heddle__ml *m, const char *sequence, const char *at, object o, const char *out) {
  const char *const in[] = {sequence, at};
  note(m, out, o.type, -1);
  own(m, "SequenceAt", 2, in, out);
}

static void has(heddle__ml *m, const char *x, const char *out) {
  const char *const in[] = {x, heddle__ml_whole(m, HEDDLE_NO_OBJECT)};
  note(m, out, ONNX_BOOL, 0);
  heddle__ml_1(m, "Not", heddle__ml_make(m, "Equal", NULL, 2, in), out);
}

/* A node of the same name in domain heddle; its first n inputs. */
static void same_name(heddle__ml *m, const char *sequence, size_t n, const char *out) {
  const char *in[3] = {sequence, input(m, 1), input(m, 2)};
  while (n > 1 && in[n - 1][0] == '\0') n--;
  own(m, m->node->op_type, n, in, out);
}

void heddle__onnx_run_sequence(heddle__ml *m) {
  const char *out = heddle__ml_output(m, 0);
  object o = {0, 0};
  if (out == NULL) return;
  if (is_op(m, "SplitToSequence")) {
    const char *in[] = {input(m, 0), input(m, 1)};
    o = (object){heddle__onnx_known_of(m->r, in[0]).type, SEQUENCE};
    own(m, "SplitToSequence", 2, in, out);
    copy_attr(m, "axis");
    if (heddle__ml_good(m)) m->s = set_object(m->r, out, o);
    return;
  }
  const char *x = number_of(m, input(m, 0), NULL, &o);
  if (x == NULL) return;
  if (is_op(m, "SequenceAt")) {
    take_element(m, x, input(m, 1), o, out);
  } else if (is_op(m, "OptionalGetElement") && o.kind == OPTIONAL) {
    take_element(m, x, heddle__ml_whole(m, 0), o, out);
  } else if (is_op(m, "SequenceLength")) {
    note(m, out, ONNX_INT64, 0);
    same_name(m, x, 1, out);
  } else if (is_op(m, "ConcatFromSequence")) {
    if (!heddle__ml_has(m, "axis")) heddle__ml_refuse(m, "it has no axis");
    note(m, out, o.type, -1);
    same_name(m, x, 1, out);
    copy_attr(m, "axis");
    copy_attr(m, "new_axis");
  } else if (is_op(m, "OptionalHasElement")) {
    has(m, x, out);
  } else if (is_op(m, "SequenceInsert") || is_op(m, "SequenceErase")) {
    if (o.type == 0 && is_op(m, "SequenceInsert")) o.type = heddle__onnx_known_of(m->r, input(m, 1)).type;
    o.kind = SEQUENCE;
    same_name(m, x, is_op(m, "SequenceInsert") ? 3 : 2, out);
    if (heddle__ml_good(m)) m->s = set_object(m->r, out, o);
  } else { /* Identity, Optional, OptionalGetElement: another name */
    if (is_op(m, "Optional") && o.kind == SEQUENCE) o.kind = OPTIONAL_SEQUENCE;
    if (is_op(m, "OptionalGetElement")) o.kind = SEQUENCE;
    heddle__ml_1(m, "Identity", x, out);
    if (heddle__ml_good(m)) m->s = set_object(m->r, out, o);
  }
}
