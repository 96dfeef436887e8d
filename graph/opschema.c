/* graph/opschema.c: the checks of a node that need nothing but its operator's definition: how many inputs and outputs, which
 * attributes. The shapes are in infer_*.c, a file a family. */
#include "graph/opschema.h"

#include <stdio.h>
#include <string.h>

#include "graph/infer.h"
#include "graph/words.h"

#define ANY HEDDLE__VARIADIC

/* In the order of heddle__versions. */
static const heddle__infer_fn infers[] = {
#define SINCE(domain, op, first, last, least_in, most_in, least_out, most_out, shapes, kind, infer, attrs) \
  heddle__infer_##infer,
#include "operators/all.def"
};

heddle__infer_fn heddle__schema_infer(const heddle__schema *schema) {
  return infers[schema - heddle__versions];
}

const heddle__schema *heddle__schema_find(const char *domain, const char *op, uint32_t opset) {
  const bool own = strcmp(domain, "heddle") == 0;
  const heddle__schema *found = own || domain[0] == '\0' ? heddle__version_find(own, op, opset) : NULL;
  return found != NULL && heddle__schema_infer(found) != NULL ? found : NULL; /* a build may leave some out */
}

bool heddle__schema_is_own(const heddle__schema *schema) {
  return heddle__schema_infer(schema) != heddle__infer_general;
}

bool heddle__node_is_view(const heddle_graph *g, const heddle__node *n) {
  if (n->kind == HEDDLE__NODE_NULL) return false;
  if (n->kind == HEDDLE__NODE_TVM) return strcmp(n->func_name, "__nop") == 0 || strcmp(n->func_name, "__copy") == 0;
  const heddle__schema *schema = heddle__schema_find(n->domain, n->op, n->domain[0] == '\0' ? g->opset : 0);
  return schema != NULL && schema->is_view;
}

/* The next name behind last, in the alphabet's order, of the operators of an opset; NULL: there is none. */
static const char *name_behind(const char *last, uint32_t opset) {
  const char *found = NULL;
  for (uint32_t i = 0; i < heddle__version_count; i++) {
    const heddle__schema *s = &heddle__versions[i];
    if (s->own || opset < s->opset_first || opset > s->opset_last || strcmp(s->name, last) <= 0) continue;
    if (infers[i] == NULL) continue;
    if (found == NULL || strcmp(s->name, found) < 0) found = s->name;
  }
  return found;
}

void heddle__schema_names(uint32_t opset, char *out, size_t size) {
  size_t used = 0;
  out[0] = '\0';
  for (const char *name = name_behind("", opset); name != NULL; name = name_behind(name, opset)) {
    int n = snprintf(out + used, size - used, "%s%s", used > 0 ? ", " : "", name);
    if (n < 0 || (size_t)n >= size - used) return;
    used += (size_t)n;
  }
}

static heddle_status check_count(const heddle_graph *g, const heddle__node *node, const char *what, uint32_t count,
                                 uint32_t min, uint32_t max, heddle_error *err) {
  if (count >= min && (count <= max || max == ANY)) return HEDDLE_OK;
  if (max == ANY)
    return heddle__node_fail(g, node, err, HEDDLE_EFORMAT, "it has %u %s, expected at least %u", count, what, min);
  if (min == max) return heddle__node_fail(g, node, err, HEDDLE_EFORMAT, "it has %u %s, expected %u", count, what, min);
  return heddle__node_fail(g, node, err, HEDDLE_EFORMAT, "it has %u %s, expected %u to %u", count, what, min, max);
}

heddle_status heddle__schema_no_attr(const heddle__schema *schema, const heddle_graph *g, const heddle__node *node,
                                     const char *name, heddle_error *err) {
  char shown[64], opset[32] = "";
  if (!schema->own) snprintf(opset, sizeof opset, " in opset %u", g->opset);
  return heddle__node_fail(g, node, err, HEDDLE_EFORMAT, "it has no attribute '%s'%s; expected %s%s",
                           heddle__show(name, shown), opset, schema->attrs[0] != '\0' ? "one of " : "none",
                           schema->attrs);
}

heddle_status heddle__schema_check(const heddle__schema *schema, const heddle_graph *g, const heddle__node *node,
                                   heddle_error *err) {
  char shown[64];
  heddle_status s = check_count(g, node, "inputs", node->n_inputs, schema->min_inputs, schema->max_inputs, err);
  if (s == HEDDLE_OK)
    s = check_count(g, node, "outputs", node->n_outputs, schema->min_outputs, schema->max_outputs, err);
  if (s != HEDDLE_OK) return s;
  for (uint32_t i = 0; i < node->n_inputs; i++)
    if (node->inputs[i].node == HEDDLE__ABSENT && !heddle__is_control(node) &&
        (i < schema->min_inputs || schema->max_inputs == ANY))
      return heddle__node_fail(g, node, err, HEDDLE_EFORMAT, "input %u is absent, and may not be", i);
  for (uint32_t i = 0; i < node->n_attrs; i++) {
    const heddle_pattr *attr = &node->attrs[i];
    uint32_t kind = heddle__version_attr(schema, attr->name);
    heddle__show(attr->name, shown);
    if (kind == 0) return heddle__schema_no_attr(schema, g, node, attr->name, err);
    if (kind != attr->kind)
      return heddle__node_fail(g, node, err, HEDDLE_EFORMAT, "attribute '%s' is of another kind; expected %s", shown,
                               schema->attrs);
    const int64_t value = kind == HEDDLE_ATTR_INT ? *(const int64_t *)attr->data : 0;
    if (value != 0 && value != 1 && heddle__version_flag(schema, attr->name))
      return heddle__node_fail(g, node, err, HEDDLE_EFORMAT, "attribute '%s' is %lld, expected 0 or 1", shown,
                               (long long)value);
    for (uint32_t k = 0; k < i; k++)
      if (strcmp(node->attrs[k].name, attr->name) == 0)
        return heddle__node_fail(g, node, err, HEDDLE_EFORMAT, "attribute '%s' is given twice", shown);
  }
  return HEDDLE_OK;
}
