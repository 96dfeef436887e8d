/* graph/result_dtypes.c: dtypes of values by what the file says, by the lines RESULT of operators/, and of the results of
 * If, Loop and Scan by their graphs. */
#include "graph/result_dtypes.h"

#include <string.h>

#include "core/alloc.h"
#include "core/error.h"
#include "core/parts.h"
#include "graph/infer.h"
#include "graph/results.h"

/* Of operand k; bits 0: not known. */
static heddle_dtype of_operand(const heddle_graph *g, const heddle__node *node, uint32_t k,
                               const heddle_dtype *dtypes) {
  if (k >= node->n_inputs || node->inputs[k].node == HEDDLE__ABSENT) return (heddle_dtype){0, 0, 0};
  return dtypes[heddle__entry_id(g, node->inputs[k])];
}

static heddle_dtype of_result(const heddle_graph *g, const heddle__node *node, uint32_t k, const heddle_dtype *dtypes) {
  const heddle__result *row = heddle__result_find(node->op, k, node->domain[0] != '\0');
  heddle_dtype dtype = {0, 0, 0};
  if (row == NULL) return dtype;
  if (strcmp(row->attribute, "none") != 0 && heddle__onnx_dtype(heddle__attr_int(node, row->attribute, 0), &dtype))
    return dtype;
  if (row->type < 0) return of_operand(g, node, (uint32_t)(-1 - row->type), dtypes);
  heddle__onnx_dtype(row->type, &dtype);
  return dtype;
}

/* What a node's graph gives: of an If, its branches agree; a Loop's graph takes a number and a condition before the states,
 * and gives a condition before all else. */
static heddle_status of_graph(const heddle_graph *g, const heddle__node *node, heddle_dtype *dtypes,
                              heddle_error *err) {
  const bool is_if = node->op[0] == 'I', is_loop = node->op[0] == 'L';
  const heddle_graph *inner = heddle__inner(node, is_if ? "then_branch" : "body");
  heddle_dtype *given = NULL, *within = NULL;
  if (inner == NULL) return HEDDLE_OK;
  given = heddle__alloc(inner->n_args, sizeof *given);
  if (given == NULL) return heddle__no_memory(err, "the types of a graph");
  for (uint32_t i = 0; i < inner->n_args; i++) {
    given[i] = of_operand(g, node, is_if ? i + 1 : i, dtypes);
    if (is_loop && i == 0) given[i] = (heddle_dtype){HEDDLE_DTYPE_INT, 64, 1};
    if (is_loop && i == 1) given[i] = (heddle_dtype){HEDDLE_DTYPE_BOOL, 8, 1};
  }
  heddle_status s = heddle__result_dtypes(inner, given, &within, err);
  for (uint32_t k = 0; k < node->n_outputs && s == HEDDLE_OK; k++) {
    const uint32_t head = is_loop ? k + 1 : k;
    if (head < inner->n_heads) dtypes[node->first_entry + k] = within[heddle__entry_id(inner, inner->heads[head])];
  }
  heddle__free(given);
  heddle__free(within);
  return s;
}

heddle_status heddle__result_dtypes(const heddle_graph *g, const heddle_dtype *given, heddle_dtype **out,
                                    heddle_error *err) {
  heddle_status s = HEDDLE_OK;
  heddle_dtype *dtypes = heddle__alloc(g->n_entries, sizeof *dtypes);
  if (dtypes == NULL) return heddle__no_memory(err, "the types of a graph");
  for (uint32_t i = 0; given != NULL && i < g->n_args; i++) dtypes[g->nodes[g->args[i]].first_entry] = given[i];
  for (uint32_t i = 0; i < g->n_nodes && s == HEDDLE_OK; i++) {
    const heddle__node *node = &g->nodes[i];
    if (HEDDLE_HAS_CONTROL && heddle__is_control(node)) s = of_graph(g, node, dtypes, err);
    for (uint32_t k = 0; k < node->n_outputs && s == HEDDLE_OK; k++) {
      const heddle__type *type = &g->types[node->first_entry + k];
      if (type->has_dtype) dtypes[node->first_entry + k] = type->dtype;
      else if (node->kind == HEDDLE__NODE_OP && !heddle__is_control(node))
        dtypes[node->first_entry + k] = of_result(g, node, k, dtypes);
    }
  }
  if (s == HEDDLE_OK) *out = dtypes;
  else heddle__free(dtypes);
  return s;
}
