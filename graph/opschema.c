/* graph/opschema.c: the table of operators, and the checks that need nothing but the table: how many inputs and outputs,
 * which attributes. The shapes are in infer_*.c, a file a family. */
#include "graph/opschema.h"

#include <stdio.h>
#include <string.h>

#include "graph/infer.h"
#include "graph/words.h"

#define ANY UINT32_MAX
#define WINDOW "auto_pad:string,dilations:ints,kernel_shape:ints,pads:ints,strides:ints"

static const heddle__schema table[] = {
    /* domain, name, opsets, inputs, outputs, attributes, inputs that feed the shape, view, inference */
    {"", "Add", 13, 18, 2, 2, 1, 1, "", 0, false, heddle__infer_arithmetic},
    {"", "Concat", 13, 18, 1, ANY, 1, 1, "axis:int", 0, false, heddle__infer_concat},
    {"", "Conv", 13, 18, 2, 3, 1, 1, WINDOW ",group:int", 0, false, heddle__infer_conv},
    {"", "Flatten", 13, 18, 1, 1, 1, 1, "axis:int", 0, true, heddle__infer_flatten},
    {"", "Gemm", 13, 18, 2, 3, 1, 1, "alpha:float,beta:float,transA:int,transB:int", 0, false, heddle__infer_gemm},
    {"", "GlobalAveragePool", 13, 18, 1, 1, 1, 1, "", 0, false, heddle__infer_global_pool},
    {"", "Identity", 13, 18, 1, 1, 1, 1, "", 0, true, heddle__infer_same},
    {"", "MatMul", 13, 18, 2, 2, 1, 1, "", 0, false, heddle__infer_matmul},
    {"", "MaxPool", 13, 18, 1, 1, 1, 2, WINDOW ",ceil_mode:int,storage_order:int", 0, false, heddle__infer_max_pool},
    {"", "Mul", 13, 18, 2, 2, 1, 1, "", 0, false, heddle__infer_arithmetic},
    {"", "Relu", 13, 18, 1, 1, 1, 1, "", 0, false, heddle__infer_relu},
    {"", "Reshape", 13, 13, 2, 2, 1, 1, "", 2, true, heddle__infer_reshape},
    {"", "Reshape", 14, 18, 2, 2, 1, 1, "allowzero:int", 2, true, heddle__infer_reshape},
    {"", "Softmax", 13, 18, 1, 1, 1, 1, "axis:int", 0, false, heddle__infer_softmax},
    {"heddle", "Reorder", 1, ANY, 1, 1, 1, 1, "", 0, false, heddle__infer_same},
};

#define TABLE_SIZE (sizeof table / sizeof table[0])

const heddle__schema *heddle__schema_find(const char *domain, const char *op, uint32_t opset) {
  for (size_t i = 0; i < TABLE_SIZE; i++) {
    const heddle__schema *s = &table[i];
    if (strcmp(s->op, op) == 0 && strcmp(s->domain, domain) == 0 &&
        (opset == 0 || (opset >= s->opset_first && opset <= s->opset_last)))
      return s;
  }
  return NULL;
}

void heddle__schema_names(uint32_t opset, char *out, size_t size) {
  size_t used = 0;
  out[0] = '\0';
  for (size_t i = 0; i < TABLE_SIZE; i++) {
    const heddle__schema *s = &table[i];
    if (s->domain[0] != '\0' || opset < s->opset_first || opset > s->opset_last) continue;
    int n = snprintf(out + used, size - used, "%s%s", used > 0 ? ", " : "", s->op);
    if (n < 0 || (size_t)n >= size - used) return;
    used += (size_t)n;
  }
}

uint32_t heddle__schema_attr(const heddle__schema *schema, const char *name) {
  static const char *const kinds[] = {"int", "float", "string", "ints", "floats", "strings"};
  size_t length = strcspn(name, ":,");
  if (name[length] != '\0') return 0; /* it would match more than a name */
  for (const char *at = schema->attrs; *at != '\0'; at += strcspn(at, ","), at += *at == ',') {
    if (strncmp(at, name, length) != 0 || at[length] != ':') continue;
    size_t kind_length = strcspn(at + length + 1, ",");
    for (uint32_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++)
      if (strlen(kinds[k]) == kind_length && strncmp(at + length + 1, kinds[k], kind_length) == 0) return k + 1;
  }
  return 0;
}

static heddle_status check_count(const heddle_graph *g, const heddle__node *node, const char *what, uint32_t count,
                                 uint32_t min, uint32_t max, heddle_error *err) {
  if (count >= min && count <= max) return HEDDLE_OK;
  if (max == ANY)
    return heddle__node_fail(g, node, err, HEDDLE_EFORMAT, "it has %u %s, expected at least %u", count, what, min);
  if (min == max) return heddle__node_fail(g, node, err, HEDDLE_EFORMAT, "it has %u %s, expected %u", count, what, min);
  return heddle__node_fail(g, node, err, HEDDLE_EFORMAT, "it has %u %s, expected %u to %u", count, what, min, max);
}

heddle_status heddle__schema_check(const heddle__schema *schema, const heddle_graph *g, const heddle__node *node,
                                   heddle_error *err) {
  char shown[64];
  heddle_status s = check_count(g, node, "inputs", node->n_inputs, schema->min_inputs, schema->max_inputs, err);
  if (s == HEDDLE_OK)
    s = check_count(g, node, "outputs", node->n_outputs, schema->min_outputs, schema->max_outputs, err);
  if (s != HEDDLE_OK) return s;
  for (uint32_t i = 0; i < node->n_inputs; i++)
    if (node->inputs[i].node == HEDDLE__ABSENT && (i < schema->min_inputs || schema->max_inputs == ANY))
      return heddle__node_fail(g, node, err, HEDDLE_EFORMAT, "input %u is absent, and may not be", i);
  for (uint32_t i = 0; i < node->n_attrs; i++) {
    uint32_t kind = heddle__schema_attr(schema, node->attrs[i].name);
    if (kind != node->attrs[i].kind)
      return heddle__node_fail(g, node, err, HEDDLE_EFORMAT, "attribute '%s': %s",
                               heddle__show(node->attrs[i].name, shown),
                               kind == 0 ? "the operator has none of that name" : "it is of another kind");
  }
  return HEDDLE_OK;
}
