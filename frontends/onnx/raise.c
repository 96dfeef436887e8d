/* frontends/onnx/raise.c: models whose expansions need operators of a later opset, or with functions of one, become graphs
 * of that one: their nodes get the form that has the same meaning there. Of most operators a later opset only has more attributes or types. */
#include <string.h>

#include "frontends/onnx/expand.h"

/* ---- which opset */

static void look_at(heddle__onnx_reader *r, Onnx__NodeProto *const *nodes, size_t n, uint32_t *most) {
  for (size_t i = 0; i < n; i++) {
    const expansion_row *row = heddle__onnx_expansion(nodes[i]);
    if (row != NULL && heddle__onnx_function(r, nodes[i]) == NULL && row->opset > *most) *most = row->opset;
    for (size_t k = 0; k < nodes[i]->n_attribute; k++) {
      const Onnx__GraphProto *g = nodes[i]->attribute[k]->g;
      if (g != NULL) look_at(r, g->node, g->n_node, most);
    }
  }
}

void heddle__onnx_choose_target(heddle__onnx_reader *r) {
  look_at(r, r->graph->node, r->graph->n_node, &r->target);
  for (size_t i = 0; i < r->model->n_functions; i++) {
    const Onnx__FunctionProto *f = r->model->functions[i];
    const int64_t opset = heddle__onnx_function_opset(f, r->opset);
    if (opset <= HEDDLE__OPSET_LAST && heddle__onnx_base_of(opset) > r->target) r->target = heddle__onnx_base_of(opset);
    look_at(r, f->node, f->n_node, &r->target);
  }
}

/* ---- nodes */

/* Whether the operator has an attribute in one opset and not in the other. */
static bool has_only(const char *op, uint32_t one, uint32_t other, const char *attribute) {
  return heddle__opset_has_attr(op, one, attribute) && heddle__schema_find("", op, other) != NULL &&
         !heddle__opset_has_attr(op, other, attribute);
}

/* DFT's axis became an input, and another one the default. */
static heddle_status raise_dft(heddle__onnx_reader *r, Onnx__NodeProto *node) {
  const int64_t axis = heddle__onnx_attr_int(node, "axis", 1);
  Onnx__TensorProto *t = NULL;
  const char *name = heddle__onnx_new_ints(r, node, "axis", &axis, 1);
  heddle__onnx_drop_attr(node, "axis");
  if (name == NULL) return heddle__onnx_no_memory(r);
  t = r->tensors[r->n_tensors - 1];
  t->n_dims = 0;
  return heddle__onnx_set_input(r, node, 2, name);
}

heddle_status heddle__onnx_raise_node(heddle__onnx_reader *r, Onnx__NodeProto *node) {
  const uint32_t from = heddle__onnx_base(r), to = r->target;
  const char *op = node->op_type;
  bool done = false;
  if (from >= to || node->domain[0] != '\0') return HEDDLE_OK;
  if (heddle__schema_find("", op, from) == NULL && heddle__schema_find("", op, to) != NULL &&
      heddle__onnx_expansion(node) == NULL)
    heddle__onnx_problem(r, node, "the operator is not known in opset %u", (unsigned)from);
  if (has_only(op, from, to, "axes")) return heddle__upgrade_axes(r, node, &done);
  if (has_only(op, to, from, "num_outputs") && node->n_input == 1)
    return heddle__onnx_set_int(r, node, "num_outputs", (int64_t)node->n_output);
  if (strcmp(op, "DFT") == 0 && has_only(op, from, to, "axis")) return raise_dft(r, node);
  if (strcmp(op, "RoiAlign") == 0 && has_only(op, to, from, "coordinate_transformation_mode"))
    return heddle__onnx_set_text(r, node, "coordinate_transformation_mode", "output_half_pixel");
  if (strcmp(op, "GroupNormalization") == 0 && has_only(op, to, from, "stash_type"))
    heddle__onnx_problem(r, node, "another node needs operators of opset %u, in which this one means something else",
                         (unsigned)to);
  return HEDDLE_OK;
}
