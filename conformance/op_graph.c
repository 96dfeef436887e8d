/* Making the kit's graphs, and parts of them as regions. */
#include "op_graph.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static double *copy_of(kit *k, const double *x, uint64_t n) {
  double *made = malloc((n + 1) * sizeof *made);
  if (made == NULL) kit_fail(k, "the kit has no memory for a graph");
  memcpy(made, x, n * sizeof *made);
  return made;
}

/* The values of node i's operands: of results, of operands of other nodes, and its own. */
static void wire(op_graph *g, uint32_t i) {
  const char *from = g->line->nodes[i].from;
  op_case *c = &g->node[i];
  for (uint32_t j = 0; j < c->n_in; j++) {
    op_operand *o = &c->in[j];
    g->in[i][j] = -1;
    if (!o->here) continue;
    const char f = j < strlen(from) ? from[j] : '.';
    if (f == '.') {
      g->of_node[g->n_values] = -1;
      g->owner[g->n_values] = i * OP_IN + j;
      g->in[i][j] = (int32_t)g->n_values++;
      continue;
    }
    const uint32_t of = (uint32_t)(f >= 'a' ? f - 'a' : f - 'A');
    const op_operand *source = f >= 'a' ? &g->node[of].out[0] : &g->node[of].in[0];
    if (of >= i + (f < 'a') || source->count != o->count || source->type != o->type)
      kit_fail(g->k, "the kit's graph is wrong at operand %u of node %u, a %s", j, i, c->line->op);
    g->in[i][j] = f >= 'a' ? (int32_t)of : g->in[of][0];
    o->known = f < 'a' && source->known;
    op_set_values(o, f >= 'a' ? g->x[of] : source->x);
  }
}

static bool take_result(op_graph *g, uint32_t i) {
  op_want want[OP_OUT];
  op_operand *y = &g->node[i].out[0];
  if (!op_reference(g->k, &g->node[i], want)) {
    op_want_free(want);
    return false;
  }
  g->x[i] = copy_of(g->k, want[0].x, y->count);
  op_want_free(want);
  op_operand rounded = *y; /* a result of the device has its own type */
  rounded.raw = malloc(y->bytes + 1);
  rounded.x = malloc((y->count + 1) * sizeof(double));
  if (rounded.raw == NULL || rounded.x == NULL) kit_fail(g->k, "the kit has no memory for a graph");
  op_round_values(&rounded, g->x[i]);
  free(rounded.raw);
  free(g->x[i]);
  g->x[i] = rounded.x;
  return true;
}

static void find_leaves(op_graph *g) {
  for (uint32_t i = 0; i < g->n; i++) {
    g->leaves[i] = strchr(g->line->keep, (int)('a' + i)) != NULL;
    bool read = false;
    for (uint32_t n = i + 1; n < g->n; n++)
      for (uint32_t j = 0; j < g->node[n].n_in; j++) read = read || g->in[n][j] == (int32_t)i;
    g->leaves[i] = g->leaves[i] || !read;
  }
}

bool op_graph_make(kit *k, op_graph *g, const op_graph_line *line, const op_line *stand_in, char type, uint32_t known) {
  memset(g, 0, sizeof *g);
  g->k = k;
  g->line = line;
  while (g->n < GRAPH_NODES && line->nodes[g->n].op != NULL) g->n++;
  g->n_values = g->n; /* the first are the results */
  for (uint32_t i = 0; i < g->n; i++) {
    const op_graph_node *n = &line->nodes[i];
    const bool stands = strchr("*^+", n->op[0]) != NULL;
    if (stands && stand_in == NULL) return false;
    g->lines[i] = (op_line){stands ? stand_in->op : n->op, "f", n->text, stands ? stand_in->opset : n->opset};
    g->of_node[i] = (int32_t)i;
    op_read(k, &g->node[i], &g->lines[i], type, known, 17 * i + 3);
    if (i == 0) g->node[i].in[0].known = g->node[i].in[0].known && known == OP_RUN;
    wire(g, i);
    if (!take_result(g, i)) return false;
  }
  find_leaves(g);
  return true;
}

void op_graph_free(op_graph *g) {
  for (uint32_t i = 0; i < GRAPH_NODES; i++) {
    if (g->lines[i].op != NULL) op_free(&g->node[i]);
    free(g->x[i]);
    g->x[i] = NULL;
  }
}

/* ---------------------------------------------------------------- parts */

static const op_operand *operand_of(const op_graph *g, uint32_t value) {
  if (g->of_node[value] < 0) return &g->node[g->owner[value] / OP_IN].in[g->owner[value] % OP_IN];
  for (uint32_t n = 0; n < g->n; n++) /* a result that another node reads, with values */
    for (uint32_t j = 0; j < g->node[n].n_in; j++)
      if (g->in[n][j] == (int32_t)value) return &g->node[n].in[j];
  return &g->node[value].out[0];
}

static bool leaves(const op_graph *g, const bool *in, uint32_t node) {
  bool outside = g->leaves[node];
  for (uint32_t n = 0; n < g->n; n++)
    for (uint32_t j = 0; j < g->node[n].n_in; j++) outside = outside || (!in[n] && g->in[n][j] == (int32_t)node);
  return outside;
}

static void add_node(const op_graph *g, uint32_t i, const int32_t *local, op_part *p, uint32_t n) {
  op_region one;
  op_describe(&g->node[i], '\0', &one);
  p->nodes[n] = one.node;
  memcpy(p->attrs[n], one.attrs, sizeof one.attrs);
  p->nodes[n].attrs.data = p->attrs[n];
  p->nodes[n].name = g->lines[i].op;
  for (uint32_t j = 0; j < g->node[i].n_in; j++) p->node_in[n][j] = g->in[i][j] < 0 ? -1 : local[g->in[i][j]];
  p->node_out[n] = local[i];
  p->nodes[n].inputs = p->node_in[n];
  p->nodes[n].outputs = &p->node_out[n];
}

/* Numbers the values that the part's nodes read and make. */
static bool add_values(const op_graph *g, const bool *in, int32_t *local, op_part *p) {
  uint32_t n = 0;
  for (uint32_t v = 0; v < g->n_values; v++) {
    const bool made = v < g->n && in[v];
    bool used = made;
    for (uint32_t i = 0; i < g->n; i++)
      for (uint32_t j = 0; in[i] && j < g->node[i].n_in; j++) used = used || g->in[i][j] == (int32_t)v;
    local[v] = -1;
    if (!used) continue;
    const op_operand *o = operand_of(g, v);
    const bool known = !made && o->known;
    local[v] = (int32_t)n;
    p->values[n] = (heddle_pvalue){
        .struct_size = sizeof p->values[n], .dtype = op_dtype(o->type), .shape = o->shape, .ndim = o->ndim};
    if (known) p->values[n].data = o->raw, p->values[n].data_bytes = o->bytes;
    if (!made && p->c.n_in == OP_IN) return false;
    if (made && leaves(g, in, v) && p->c.n_out == OP_OUT) return false;
    if (!made) {
      p->r.from[p->c.n_in] = p->c.n_in;
      p->r.in[p->c.n_in] = (int32_t)n;
      p->c.in[p->c.n_in++] = *o;
    } else if (leaves(g, in, v)) {
      p->of[p->c.n_out] = v;
      p->r.to[p->c.n_out] = p->c.n_out;
      p->r.out[p->c.n_out] = (int32_t)n;
      p->c.out[p->c.n_out++] = g->node[v].out[0];
    }
    n++;
  }
  p->r.region.values = (heddle_parray){p->values, n, sizeof p->values[0]};
  return true;
}

bool op_part_make(const op_graph *g, const bool *in, op_part *p) {
  int32_t local[GRAPH_VALUES] = {0};
  uint32_t n = 0;
  size_t used = 0;
  memset(p, 0, sizeof *p);
  p->r.region = (heddle_pregion){.struct_size = sizeof p->r.region, .inputs = p->r.in, .outputs = p->r.out};
  p->c.type = g->node[0].type;
  if (!add_values(g, in, local, p)) return false;
  for (uint32_t i = 0; i < g->n; i++) {
    if (!in[i]) continue;
    add_node(g, i, local, p, n++);
    used += (size_t)snprintf(p->words + used, sizeof p->words - used, "%s%s", n > 1 ? "+" : "", g->lines[i].op);
    if (used >= sizeof p->words) return false;
  }
  p->r.region.nodes = (heddle_parray){p->nodes, n, sizeof p->nodes[0]};
  p->r.region.n_inputs = p->c.n_in;
  p->r.region.n_outputs = p->c.n_out;
  p->line = (op_line){p->words, "f", "", g->lines[0].opset != 0 ? g->lines[0].opset : 13};
  p->c.line = &p->line;
  return true;
}
