/* executor/cuts.c: where a graph cannot be planned in one piece: at nodes whose output's shape is a value that only the
 * run gives. What planning can fold (fold.c) is known before; what no value decides is, too. */
#include <string.h>

#include "core/alloc.h"
#include "core/error.h"
#include "executor/fold.h"
#include "executor/stages.h"

/* When the bytes of an entry are known. */
enum { CONSTANT, PLANNED, RUN };

static bool is_folded(const heddle__node *n, const heddle__schema *schema) {
  static const char *const names[] = {"Identity", "Reshape",   "Squeeze",   "Unsqueeze", "Flatten",   "Concat",
                                      "Gather",   "Slice",     "Split",     "Expand",    "Transpose", "Range",
                                      "Constant", "ReduceSum", "ReduceMax", "ReduceMin", "ReduceProd"};
  if (n->domain[0] != '\0') return false;
  if (heddle__fold_knows(n->op) || !heddle__schema_is_own(schema)) return true; /* the others by a kernel */
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
    if (strcmp(n->op, names[i]) == 0) return true;
  return strcmp(n->op, "ConstantOfShape") == 0;
}

/* Operators whose data decides how much comes out: there is too much of it to fold. */
static bool counts_data(const heddle__node *n) {
  return strcmp(n->op, "NonZero") == 0 || strcmp(n->op, "Unique") == 0 || strcmp(n->op, "Compress") == 0 ||
         strcmp(n->op, "NonMaxSuppression") == 0;
}

static unsigned char class_of(const heddle_graph *g, const heddle__node *n, const heddle__schema *schema,
                              const unsigned char *known) {
  unsigned char latest = CONSTANT;
  if (schema == NULL || heddle__runs_apart(n)) return RUN;
  if (schema->shape_inputs == HEDDLE__SHAPES_ONLY) return PLANNED;
  for (uint32_t k = 0; k < n->n_inputs; k++) {
    if (n->inputs[k].node == HEDDLE__ABSENT) continue;
    unsigned char one = known[heddle__entry_id(g, n->inputs[k])];
    if (one > latest) latest = one;
  }
  return latest == PLANNED && !is_folded(n, schema) ? RUN : latest;
}

heddle_status heddle__graph_cuts(const heddle_graph *g, const heddle__constant *const *constants, unsigned char *cuts,
                                 bool *any, heddle_error *err) {
  unsigned char *known = heddle__alloc(g->n_entries, 1);
  *any = false;
  if (known == NULL) return heddle__no_memory(err, "the stages of a graph");
  for (uint32_t i = 0; i < g->n_args; i++)
    known[g->nodes[g->args[i]].first_entry] = constants[i] != NULL ? CONSTANT : PLANNED;
  for (uint32_t i = 0; i < g->n_nodes; i++) {
    const heddle__node *n = &g->nodes[i];
    if (cuts != NULL) cuts[i] = 0;
    if (n->kind == HEDDLE__NODE_NULL) continue;
    const heddle__schema *schema =
        n->kind == HEDDLE__NODE_OP ? heddle__schema_find(n->domain, n->op, n->domain[0] == '\0' ? g->opset : 0) : NULL;
    bool needs = schema != NULL && schema->shape_inputs != HEDDLE__SHAPES_ONLY;
    for (uint32_t k = 0; needs && k < n->n_inputs && k < 8; k++) {
      heddle__entry e = n->inputs[k];
      if ((schema->shape_inputs >> k & 1) == 0 || e.node == HEDDLE__ABSENT) continue;
      unsigned char when = known[heddle__entry_id(g, e)];
      bool made = g->nodes[e.node].kind != HEDDLE__NODE_NULL; /* an input is part of a program's key as it is */
      if (when != RUN && !(when == PLANNED && made && counts_data(n))) continue;
      if (cuts != NULL) cuts[i] |= (unsigned char)(HEDDLE__CUT_BEFORE | (counts_data(n) ? HEDDLE__CUT_AFTER : 0));
      *any = true;
    }
    unsigned char class = class_of(g, n, schema, known);
    for (uint32_t k = 0; k < n->n_outputs; k++) known[n->first_entry + k] = class;
  }
  heddle__free(known);
  return HEDDLE_OK;
}
