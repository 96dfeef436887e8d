/* frontends/onnx/versions.c: which operators and attributes a model's opset has, by the lines SINCE, GONE and IN_MODELS of
 * operators/. A node is looked at before it is upgraded. tests/python/test_onnx_schemas.py compares all of it with ONNX's
 * own. */
#include <stdio.h>
#include <string.h>

#include "frontends/onnx/reader.h"
#include "graph/opschema.h"

/* Kinds of attributes beside those of the ABI. */
enum { ATTR_SAME, ATTR_TENSOR = 64, ATTR_SPARSE, ATTR_OTHER };
#define ATTR_INT HEDDLE_ATTR_INT
#define ATTR_FLOAT HEDDLE_ATTR_FLOAT
#define ATTR_STRING HEDDLE_ATTR_STRING
#define ATTR_INTS HEDDLE_ATTR_INTS
#define ATTR_FLOATS HEDDLE_ATTR_FLOATS
#define ATTR_STRINGS HEDDLE_ATTR_STRINGS

enum { FIRST = HEDDLE__OPSET_OF_MODELS, LAST = HEDDLE__OPSET_LAST, NEVER = 0 };

static const struct gone_row {
  const char *op;
  uint8_t first, last;
} gone[] = {
#define GONE(op, first, last) {#op, first, last},
#include "operators/all.def"
};

static const struct attr_row {
  const char *op, *attr;
  uint8_t first, last, kind;
} attrs[] = {
#define IN_MODELS(op, attribute, first, last, kind) {#op, #attribute, first, last, ATTR_##kind},
#include "operators/all.def"
};

enum { N_GONE = sizeof gone / sizeof gone[0], N_ATTRS = sizeof attrs / sizeof attrs[0] };

static bool is_in(int64_t opset, uint8_t first, uint8_t last) {
  return opset >= first && opset <= last; /* of NEVER none */
}

static const struct gone_row *gone_of(const char *op) {
  for (int i = 0; i < N_GONE; i++)
    if (strcmp(gone[i].op, op) == 0) return &gone[i];
  return NULL;
}

/* The kind of an attribute in the model's opset; 0: there is none of that name. schema may be NULL. */
static uint32_t kind_in(const heddle__onnx_reader *r, const heddle__schema *schema, const char *op, const char *name) {
  const uint32_t kind = schema != NULL ? heddle__version_attr(schema, name) : 0;
  for (int i = 0; i < N_ATTRS; i++) {
    const struct attr_row *row = &attrs[i];
    if (strcmp(row->op, op) != 0 || strcmp(row->attr, name) != 0) continue;
    if (row->kind == ATTR_SAME) return is_in(r->opset, row->first, row->last) ? kind : 0;
    if (is_in(r->opset, row->first, row->last)) return row->kind;
  }
  return kind;
}

bool heddle__onnx_has_attr(const heddle__onnx_reader *r, const char *op, const char *name) {
  return kind_in(r, heddle__schema_find("", op, heddle__onnx_base(r)), op, name) != 0;
}

uint32_t heddle__onnx_attr_kind(const Onnx__AttributeProto *a) {
  switch (heddle__onnx_kind(a)) {
  case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT: return HEDDLE_ATTR_INT;
  case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT: return HEDDLE_ATTR_FLOAT;
  case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRING: return HEDDLE_ATTR_STRING;
  case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS: return HEDDLE_ATTR_INTS;
  case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOATS: return HEDDLE_ATTR_FLOATS;
  case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRINGS: return HEDDLE_ATTR_STRINGS;
  case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__GRAPH: return HEDDLE__ATTR_GRAPH;
  case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__TENSOR: return ATTR_TENSOR;
  case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__SPARSE_TENSOR: return ATTR_SPARSE;
  default: return ATTR_OTHER;
  }
}

/* " it has axis, keepdims", as far as there is room. */
static void list_attrs(const heddle__onnx_reader *r, const heddle__schema *schema, const char *op, char *out,
                       size_t size) {
  char name[48];
  size_t used = (size_t)snprintf(out, size, "it has");
  unsigned n = 0;
  for (const char *at = schema != NULL ? schema->attrs : ""; *at != '\0'; at += strcspn(at, ","), at += *at == ',') {
    snprintf(name, sizeof name, "%.*s", (int)strcspn(at, ":"), at);
    if (kind_in(r, schema, op, name) == 0) continue;
    const int one = snprintf(out + used, size - used, "%s %s", n++ > 0 ? "," : "", name);
    if ((size_t)one >= size - used) break;
    used += (size_t)one;
  }
  for (int i = 0; i < N_ATTRS; i++) {
    if (strcmp(attrs[i].op, op) != 0 || attrs[i].kind == ATTR_SAME || !is_in(r->opset, attrs[i].first, attrs[i].last))
      continue;
    const int one = snprintf(out + used, size - used, "%s %s", n++ > 0 ? "," : "", attrs[i].attr);
    if ((size_t)one >= size - used) break;
    used += (size_t)one;
  }
  if (n == 0) snprintf(out, size, "it has none");
}

static bool has_operator(heddle__onnx_reader *r, const Onnx__NodeProto *node) {
  const struct gone_row *row = gone_of(node->op_type);
  const heddle__version *oldest = heddle__version_find(false, node->op_type, 0);
  const uint8_t first = row != NULL ? row->first : oldest != NULL ? oldest->since : 0;
  if (row != NULL && r->opset > row->last)
    heddle__onnx_problem(r, node, "the model is of opset %lld, and the operator went after opset %d",
                         (long long)r->opset, row->last);
  else if (r->opset < first && first <= HEDDLE__OPSET_FIRST) /* later ones: when the node is added */
    heddle__onnx_problem(r, node, "the model is of opset %lld, and the operator came with opset %d",
                         (long long)r->opset, first);
  else return true;
  return false;
}

/* Files of the first formats leave the kind out, and then an empty list may be of any. */
static bool may_be(const Onnx__AttributeProto *a, uint32_t kind) {
  const bool is_empty = a->n_ints == 0 && a->n_floats == 0 && a->n_strings == 0;
  return heddle__onnx_attr_kind(a) == kind ||
         ((!a->has_type || a->type == 0) && is_empty && heddle__onnx_attr_kind(a) == HEDDLE_ATTR_INTS &&
          (kind == HEDDLE_ATTR_FLOATS || kind == HEDDLE_ATTR_STRINGS));
}

void heddle__onnx_check_node(heddle__onnx_reader *r, const Onnx__NodeProto *node, bool is_call) {
  char shown[44], list[160];
  const bool is_default = node->domain[0] == '\0' && !is_call;
  const heddle__schema *schema = is_default ? heddle__schema_find("", node->op_type, heddle__onnx_base(r)) : NULL;
  if (is_default && !has_operator(r, node)) return;
  const bool has_some = schema != NULL || (is_default && gone_of(node->op_type) != NULL);
  for (size_t i = 0; i < node->n_attribute; i++) {
    const Onnx__AttributeProto *a = node->attribute[i];
    heddle__onnx_show(a->name, shown);
    for (size_t k = 0; k < i; k++) {
      if (strcmp(node->attribute[k]->name, a->name) != 0) continue;
      heddle__onnx_problem(r, node, "attribute '%s' is given twice", shown);
      break;
    }
    const bool refers = a->ref_attr_name != NULL && a->ref_attr_name[0] != '\0'; /* attrs.c reports it */
    if (!has_some || refers) continue; /* an operator that is not known is reported as such */
    const uint32_t kind = kind_in(r, schema, node->op_type, a->name);
    if (kind != 0 && may_be(a, kind)) continue;
    list_attrs(r, schema, node->op_type, list, sizeof list);
    if (kind == 0)
      heddle__onnx_problem(r, node, "opset %lld has no attribute '%s' for it; %s", (long long)r->opset, shown, list);
    else
      heddle__onnx_problem(r, node, "attribute '%s' is of another kind than in opset %lld", shown, (long long)r->opset);
  }
}
