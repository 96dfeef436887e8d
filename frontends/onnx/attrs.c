/* frontends/onnx/attrs.c: the attributes of a node as plain JSON. Numbers that JSON has no words for are strings, as in
 * any graph; tensors and graphs have been dealt with before, or are refused here. */
#include <math.h>
#include <string.h>

#include "frontends/onnx/reader.h"

typedef Onnx__AttributeProto attribute;

#define KIND(name) ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__##name

/* Files of the first formats leave the kind out. */
Onnx__AttributeProto__AttributeType heddle__onnx_kind(const attribute *a) {
  if (a->has_type && a->type != KIND(UNDEFINED)) return a->type;
  if (a->has_f) return KIND(FLOAT);
  if (a->has_i) return KIND(INT);
  if (a->has_s) return KIND(STRING);
  if (a->t != NULL) return KIND(TENSOR);
  if (a->g != NULL) return KIND(GRAPH);
  if (a->n_floats > 0) return KIND(FLOATS);
  if (a->n_strings > 0) return KIND(STRINGS);
  return KIND(INTS);
}

static json_t *number(float f) {
  if (isnan(f)) return json_string("nan");
  if (isinf(f)) return json_string(f > 0 ? "inf" : "-inf");
  return json_real((double)f);
}

static json_t *text(const ProtobufCBinaryData *s) {
  return json_stringn(s->data != NULL ? (const char *)s->data : "", s->len);
}

/* NULL for what is no plain value, no UTF-8, or where memory is out. */
static json_t *value_of(const attribute *a) {
  json_t *list = NULL;
  int failed = 0;
  switch (heddle__onnx_kind(a)) {
  case KIND(INT): return json_integer(a->i);
  case KIND(FLOAT): return number(a->f);
  case KIND(STRING): return text(&a->s);
  case KIND(INTS):
    list = json_array();
    for (size_t i = 0; i < a->n_ints && failed == 0; i++)
      failed = json_array_append_new(list, json_integer(a->ints[i]));
    break;
  case KIND(FLOATS):
    list = json_array();
    for (size_t i = 0; i < a->n_floats && failed == 0; i++) failed = json_array_append_new(list, number(a->floats[i]));
    break;
  case KIND(STRINGS):
    list = json_array();
    for (size_t i = 0; i < a->n_strings && failed == 0; i++) failed = json_array_append_new(list, text(&a->strings[i]));
    break;
  default: return NULL;
  }
  if (failed == 0) return list;
  json_decref(list);
  return NULL;
}

bool heddle__onnx_has_graph(const Onnx__NodeProto *node) {
  for (size_t i = 0; i < node->n_attribute; i++) {
    Onnx__AttributeProto__AttributeType kind = heddle__onnx_kind(node->attribute[i]);
    if (kind == KIND(GRAPH) || kind == KIND(GRAPHS)) return true;
  }
  return false;
}

json_t *heddle__onnx_attrs(heddle__onnx_reader *r, const Onnx__NodeProto *node) {
  char shown[44];
  json_t *all = json_object();
  for (size_t i = 0; all != NULL && i < node->n_attribute; i++) {
    const attribute *a = node->attribute[i];
    heddle__onnx_show(a->name, shown);
    if (a->ref_attr_name != NULL && a->ref_attr_name[0] != '\0') {
      heddle__onnx_problem(r, node, "attribute '%s' refers to an attribute of a function", shown);
      continue;
    }
    json_t *value = value_of(a);
    if (value == NULL) {
      Onnx__AttributeProto__AttributeType kind = heddle__onnx_kind(a);
      if (kind == KIND(GRAPH) || kind == KIND(GRAPHS)) continue; /* noted for the node */
      if (kind == KIND(STRING) || kind == KIND(STRINGS))
        heddle__onnx_problem(r, node, "attribute '%s' is not UTF-8", shown);
      else heddle__onnx_problem(r, node, "attribute '%s' is neither numbers nor text", shown);
      continue;
    }
    if (json_object_set_new(all, a->name, value) == 0) continue;
    json_decref(all);
    return NULL;
  }
  return all;
}
