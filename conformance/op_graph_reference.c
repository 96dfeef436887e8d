/* What the nodes of a region give one after the other, and how far each of its results may lie off. */
#include "op_graph.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOVES = 6 }; /* all up, all down, and four by chance */

/* Results of the part's nodes so far. */
typedef struct course {
  op_graph *g;
  const bool *in;
  op_want made[GRAPH_NODES][OP_OUT];
} course;

static bool is_inside(const course *s, int32_t value) {
  return value >= 0 && (uint32_t)value < s->g->n && s->in[value];
}

/* The operands of a node, those that come from inside moved by twice their bounds, up or down. */
static bool moved(const course *s, uint32_t node, uint32_t move, const double **x, double **mine) {
  const op_case *c = &s->g->node[node];
  uint32_t state = 31 * move + node;
  for (uint32_t j = 0; j < c->n_in; j++) {
    const int32_t from = s->g->in[node][j];
    x[j] = c->in[j].x;
    if (!c->in[j].here || !is_inside(s, from)) continue;
    if ((mine[j] = malloc((c->in[j].count + 1) * sizeof(double))) == NULL) return false;
    for (uint64_t e = 0; e < c->in[j].count; e++) {
      state = state * 1664525U + 1013904223U;
      const bool up = move < 2 ? move == 0 : (state >> 16 & 1) != 0;
      const double by = 2 * s->made[from][0].err[e];
      mine[j][e] = c->in[j].x[e] + (up ? by : -by);
      if (op_type_is_real(c->in[j].type)) continue;
      mine[j][e] = c->in[j].x[e] + (up ? 1 : -1) * s->made[from][0].err[e]; /* whole numbers */
    }
    x[j] = mine[j];
  }
  return true;
}

/* Adds what the bounds of the node's operands make of its result. */
static bool carry(course *s, uint32_t node) {
  op_graph *g = s->g;
  const op_case *c = &g->node[node];
  op_want *w = &s->made[node][0];
  const uint64_t n = c->out[0].count;
  bool any = false, good = true;
  for (uint32_t j = 0; j < c->n_in; j++) any = any || (c->in[j].here && is_inside(s, g->in[node][j]));
  if (!any) return true;
  double *y = malloc((n + 1) * sizeof *y), *most = calloc(n + 1, sizeof *most);
  good = y != NULL && most != NULL;
  for (uint32_t move = 0; move < MOVES && good; move++) {
    const double *x[OP_IN] = {NULL};
    double *mine[OP_IN] = {NULL};
    good = moved(s, node, move, x, mine) && op_evaluate(g->k, c, 0, x, y);
    for (uint64_t e = 0; e < n && good; e++) {
      double off = fabs(y[e] - w->x[e]);
      if (isnan(off)) off = isnan(y[e]) == isnan(w->x[e]) || y[e] == w->x[e] ? 0 : (double)INFINITY;
      if (off > most[e]) most[e] = off;
    }
    for (uint32_t j = 0; j < OP_IN; j++) free(mine[j]);
  }
  const bool real = op_type_is_real(c->out[0].type);
  for (uint64_t e = 0; e < n && good; e++) w->err[e] += (real ? 2 : 1) * most[e];
  free(y);
  free(most);
  return good;
}

static bool step(course *s, uint32_t node) {
  op_graph *g = s->g;
  op_case *c = &g->node[node];
  for (uint32_t j = 0; j < c->n_in; j++) {
    const int32_t from = g->in[node][j];
    if (!c->in[j].here || from < 0 || (uint32_t)from >= g->n) continue;
    op_set_values(&c->in[j], s->in[from] ? s->made[from][0].x : g->x[from]);
  }
  return op_reference(g->k, c, s->made[node]) && carry(s, node);
}

bool op_part_reference(op_graph *g, const bool *in, const op_part *p, op_want *want) {
  course *s = calloc(1, sizeof *s);
  bool good = s != NULL;
  memset(want, 0, sizeof *want * OP_OUT);
  if (!good) return false;
  s->g = g;
  s->in = in;
  for (uint32_t i = 0; i < g->n && good; i++)
    if (in[i]) good = step(s, i);
  for (uint32_t n = 0; n < p->c.n_out && good; n++) {
    want[n] = s->made[p->of[n]][0];
    memset(&s->made[p->of[n]][0], 0, sizeof s->made[0][0]);
  }
  for (uint32_t i = 0; i < g->n; i++) /* operands are again what the device's are */
    for (uint32_t j = 0; j < g->node[i].n_in; j++)
      if (g->in[i][j] >= 0 && (uint32_t)g->in[i][j] < g->n) op_round_values(&g->node[i].in[j], g->x[g->in[i][j]]);
  for (uint32_t i = 0; i < GRAPH_NODES; i++) op_want_free(s->made[i]);
  free(s);
  return good;
}
