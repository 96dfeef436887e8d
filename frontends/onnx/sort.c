/* frontends/onnx/sort.c: nodes of the graphs and functions of a model in an order in which each comes after those whose
 * values it takes. Files need not be so: converters add nodes at the end. Nodes that are in order already stay as they are;
 * of others each node that comes too late moves to just before the first one that needs it, so the rest keeps its order.
 * What a node's graphs take from outside is taken by the node. Time and memory are linear in nodes and values. */
#include <string.h>

#include "core/failure.h"
#include "core/names.h"
#include "frontends/onnx/reader.h"

enum { MOST_SHOWN = 8 };

/* A node takes what another one of the same list makes. */
typedef struct edge {
  size_t maker, user;
  struct edge *next;
} edge;

/* A graph or a function that is being walked; outer: the graph whose node has it. */
typedef struct level {
  struct level *outer;
  const Onnx__GraphProto *graph;       /* NULL: a function */
  const Onnx__FunctionProto *function; /* NULL: a graph */
  Onnx__NodeProto **nodes;
  size_t n;
  heddle__names makers; /* name of a value to the node that makes it; n: none does, it is an input or a tensor */
  size_t at;            /* the node in hand */
  size_t step;          /* 0: its inputs, then its attributes */
  edge **edges;         /* per maker */
  bool is_shuffled;
} level;

typedef struct sorter {
  heddle__onnx_reader *r;
  heddle__arena arena;
  bool is_shuffled; /* one of the levels is */
  bool collects;    /* edges are wanted */
} sorter;

static heddle_status no_memory(sorter *s) {
  s->r->arena.is_over = s->r->arena.is_over || s->arena.is_over;
  return heddle__onnx_no_memory(s->r);
}

/* ---- edges */

/* The first of several values of one name counts: that there are several is an error elsewhere. */
static void define(level *l, const char *name, size_t maker) {
  struct heddle__name_slot *slot = heddle__names_slot(&l->makers, name);
  if (name[0] != '\0' && slot->name == NULL) *slot = (struct heddle__name_slot){name, maker};
}

static heddle_status enter(sorter *s, level **inner, const level *like) {
  level *l = heddle__arena_take(&s->arena, 1, sizeof *l);
  if (l == NULL) return no_memory(s);
  *l = *like;
  l->outer = *inner;
  *inner = l;
  const Onnx__GraphProto *g = l->graph;
  size_t most = g != NULL ? g->n_input + g->n_initializer : l->function->n_input;
  for (size_t i = 0; i < l->n; i++) most += l->nodes[i]->n_output;
  if (!heddle__names_make(&l->makers, &s->arena, most)) return no_memory(s);
  if (s->collects) {
    l->edges = heddle__arena_take(&s->arena, l->n, sizeof(edge *));
    if (l->edges == NULL && l->n > 0) return no_memory(s);
  }
  for (size_t i = 0; g != NULL && i < g->n_input; i++) define(l, g->input[i]->name, l->n);
  for (size_t i = 0; g != NULL && i < g->n_initializer; i++) define(l, g->initializer[i]->name, l->n);
  for (size_t i = 0; g == NULL && i < l->function->n_input; i++) define(l, l->function->input[i], l->n);
  for (size_t i = 0; i < l->n; i++)
    for (size_t k = 0; k < l->nodes[i]->n_output; k++) define(l, l->nodes[i]->output[k], i);
  return HEDDLE_OK;
}

/* A value of the graph that is being walked, or of one further out: there the node in hand takes it. */
static heddle_status use(sorter *s, level *l, const char *name) {
  size_t maker = SIZE_MAX;
  if (name[0] == '\0') return HEDDLE_OK;
  for (; l != NULL && maker == SIZE_MAX; l = maker == SIZE_MAX ? l->outer : l)
    maker = heddle__names_find(&l->makers, name, SIZE_MAX);
  if (maker == SIZE_MAX || maker >= l->n || l->at >= l->n) return HEDDLE_OK;
  if (maker >= l->at) l->is_shuffled = s->is_shuffled = true;
  if (!s->collects) return HEDDLE_OK;
  edge *e = heddle__arena_take(&s->arena, 1, sizeof *e);
  if (e == NULL) return no_memory(s);
  *e = (edge){maker, l->at, l->edges[maker]};
  l->edges[maker] = e;
  return HEDDLE_OK;
}

/* ---- one list of nodes */

/* The nodes of a cycle: each needs what the next one makes, and the last what the first makes. They are shown along the
 * values. */
static heddle_status report_cycle(sorter *s, const level *l, const size_t *nodes, size_t n) {
  char text[MOST_SHOWN * 100] = "", name[44], op[44], where[80] = "";
  size_t used = 0;
  for (size_t i = 0; i < n && i < MOST_SHOWN; i++) {
    const Onnx__NodeProto *node = l->nodes[nodes[(n - i) % n]];
    used +=
        (size_t)snprintf(text + used, sizeof text - used, "%s'%s' (%s)", i > 0 ? ", " : "",
                         heddle__onnx_show(heddle__onnx_node_name(node), name), heddle__onnx_show(node->op_type, op));
  }
  if (l->function != NULL) snprintf(where, sizeof where, "function '%s': ", heddle__onnx_show(l->function->name, name));
  else if (l->outer != NULL)
    snprintf(where, sizeof where,
             "a graph of node '%s': ", heddle__onnx_show(heddle__onnx_node_name(l->outer->nodes[l->outer->at]), name));
  heddle__onnx_fail(
      s->r, HEDDLE_EFORMAT, "%s%s %s%s %s", where, n > 1 ? "nodes" : "node", text, n > MOST_SHOWN ? " and more" : "",
      n > 1 ? "form a cycle: each takes a value of the one before it" : "is a cycle: it takes a value that it makes");
  return heddle__at_node(HEDDLE_EFORMAT, s->r->err, HEDDLE__NO_NODE, heddle__onnx_node_name(l->nodes[nodes[0]]));
}

/* Edges by their users, each user's by their makers, in the order of the file. */
static void turn(level *l, edge **of_user) {
  for (size_t maker = l->n; maker-- > 0;)
    for (edge *e = l->edges[maker], *next = NULL; e != NULL; e = next) {
      next = e->next;
      e->next = of_user[e->user];
      of_user[e->user] = e;
    }
}

static heddle_status sort(sorter *s, level *l) {
  enum { NEW, OPEN, DONE };
  edge **left = heddle__arena_take(&s->arena, l->n, sizeof(edge *)); /* per node: what was not looked at yet */
  Onnx__NodeProto **order = heddle__arena_take(&s->arena, l->n, sizeof(Onnx__NodeProto *));
  size_t *stack = heddle__arena_take(&s->arena, l->n, sizeof *stack), depth = 0, n = 0;
  unsigned char *state = heddle__arena_take(&s->arena, l->n, 1);
  if (left == NULL || order == NULL || stack == NULL || state == NULL) return no_memory(s);
  turn(l, left);
  for (size_t i = 0; i < l->n; i++) {
    if (state[i] == NEW) stack[depth++] = i;
    state[i] = state[i] == NEW ? OPEN : state[i];
    while (depth > 0) {
      const size_t node = stack[depth - 1];
      edge *e = left[node];
      while (e != NULL && state[e->maker] == DONE) e = e->next;
      left[node] = e;
      if (e == NULL) {
        order[n++] = l->nodes[node];
        state[node] = DONE;
        depth--;
        continue;
      }
      if (state[e->maker] == OPEN) {
        size_t first = depth - 1;
        while (stack[first] != e->maker) first--;
        return report_cycle(s, l, stack + first, depth - first);
      }
      state[e->maker] = OPEN;
      stack[depth++] = e->maker;
    }
  }
  memcpy(l->nodes, order, n * sizeof(Onnx__NodeProto *));
  return HEDDLE_OK;
}

/* ---- all lists */

/* The end of a graph: what it gives may be a value from outside. */
static heddle_status leave(sorter *s, level *l) {
  heddle_status status = HEDDLE_OK;
  for (size_t i = 0; l->graph != NULL && i < l->graph->n_output && status == HEDDLE_OK; i++)
    status = use(s, l, l->graph->output[i]->name);
  return status == HEDDLE_OK && s->collects && l->is_shuffled ? sort(s, l) : status;
}

/* The next graph among a node's attributes, from step on; NULL: there is no other. */
static Onnx__GraphProto *next_graph(level *l, const Onnx__NodeProto *node) {
  Onnx__GraphProto *g = NULL;
  while (g == NULL && l->step <= node->n_attribute) g = node->attribute[l->step++ - 1]->g;
  return g;
}

/* A list of nodes with all that is within. */
static heddle_status walk(sorter *s, const level *outermost) {
  level *l = NULL;
  heddle_status status = enter(s, &l, outermost);
  while (l != NULL && status == HEDDLE_OK) {
    if (l->at == l->n) {
      status = leave(s, l);
      l = l->outer;
      continue;
    }
    const Onnx__NodeProto *node = l->nodes[l->at];
    for (size_t k = 0; l->step == 0 && k < node->n_input && status == HEDDLE_OK; k++)
      status = use(s, l, node->input[k]);
    if (l->step == 0) l->step = 1;
    Onnx__GraphProto *g = status == HEDDLE_OK ? next_graph(l, node) : NULL;
    if (g != NULL) {
      status = enter(s, &l, &(level){.graph = g, .nodes = g->node, .n = g->n_node});
      continue;
    }
    l->at++;
    l->step = 0;
  }
  return status;
}

static heddle_status sort_all(heddle__onnx_reader *r, const level *outermost) {
  heddle_status status = HEDDLE_OK;
  bool is_shuffled = false;
  /* Most files need no more than the look. */
  for (int pass = 0; pass < (is_shuffled ? 2 : 1) && status == HEDDLE_OK; pass++) {
    sorter s = {.r = r, .arena = {.limit = r->arena.limit}, .collects = pass > 0};
    status = walk(&s, outermost);
    is_shuffled = s.is_shuffled;
    heddle__arena_drop(&s.arena);
  }
  return status;
}

heddle_status heddle__onnx_sort_graph(heddle__onnx_reader *r, Onnx__GraphProto *g) {
  return sort_all(r, &(level){.graph = g, .nodes = g->node, .n = g->n_node});
}

heddle_status heddle__onnx_sort_function(heddle__onnx_reader *r, const Onnx__FunctionProto *f) {
  return sort_all(r, &(level){.function = f, .nodes = f->node, .n = f->n_node});
}
