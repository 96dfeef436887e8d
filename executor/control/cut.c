/* executor/control/cut.c: cuts a graph into stages: a node that runs graphs is a stage of its own, and what can run between two
 * such nodes is one; what waits for a value that decides a shape is in a later one. Stages run in the order of their
 * levels; a node's level is the least that its inputs allow. */
#include <stdlib.h>
#include <string.h>

#include "executor/control/regex.h"
#include "executor/control/stages.h"
#include "core/alloc.h"
#include "core/error.h"

typedef struct cutter {
  heddle_model *m;
  const heddle_graph *g;
  const char *optimize;
  heddle__stages *s;
  uint32_t *level;     /* per node: even for plain ones, odd for control nodes */
  bool *needed;        /* per node */
  unsigned char *cuts; /* per node: HEDDLE__CUT_* */
  heddle__entry *from; /* scratch: entries that a stage takes or gives */
  heddle__entry *to;
  uint32_t *seen;          /* scratch, per entry: the last stage, from 1, that takes it */
  uint32_t *place;         /* scratch of ctl_part_make */
  uint32_t *order;         /* nodes, stage by stage */
  uint32_t *first;         /* per stage: where its nodes begin in order; and their end */
  uint32_t *rank_of;       /* per node, over ranks; NULL */
  uint32_t *rank_of_stage; /* per stage, likewise */
} cutter;

static bool is_control(const cutter *c, uint32_t node) {
  return heddle__runs_apart(&c->g->nodes[node]);
}

static bool is_null(const cutter *c, uint32_t node) {
  return c->g->nodes[node].kind == HEDDLE__NODE_NULL;
}

static void mark_needed(cutter *c) {
  const heddle_graph *g = c->g;
  for (uint32_t i = 0; i < g->n_heads; i++) c->needed[g->heads[i].node] = true;
  for (uint32_t i = 0; i < c->m->n_keep; i++) c->needed[c->m->keep[i].node] = true;
  for (uint32_t i = g->n_nodes; i-- > 0;)
    for (uint32_t k = 0; c->needed[i] && k < g->nodes[i].n_inputs; k++)
      if (g->nodes[i].inputs[k].node != HEDDLE__ABSENT) c->needed[g->nodes[i].inputs[k].node] = true;
}

/* Gives the highest level. */
static uint32_t set_levels(cutter *c) {
  const heddle_graph *g = c->g;
  uint32_t highest = 0;
  for (uint32_t i = 0; i < g->n_nodes; i++) {
    if (!c->needed[i] || is_null(c, i)) continue;
    uint32_t level = is_control(c, i) ? 1 : 0;
    for (uint32_t k = 0; k < g->nodes[i].n_inputs; k++) {
      uint32_t from = g->nodes[i].inputs[k].node;
      if (from == HEDDLE__ABSENT || is_null(c, from)) continue;
      uint32_t least = c->level[from];
      if (is_control(c, i)) least += least % 2 == 0 ? 1 : 2;
      else if (least % 2 == 1) least++;
      else if (c->rank_of != NULL && c->rank_of[from] != c->rank_of[i]) least += 2;
      else if ((c->cuts[from] & HEDDLE__CUT_AFTER) != 0 || (c->cuts[i] & HEDDLE__CUT_BEFORE) != 0) least += 2;
      if (level < least) level = least;
    }
    c->level[i] = level;
    if (level > highest) highest = level;
  }
  return highest;
}

#if HEDDLE_HAS_RANKS

static int by_number(const void *a, const void *b) {
  const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
  return x < y ? -1 : x > y;
}

/* Over ranks: all nodes of a level and a rank are one stage. */
static heddle_status number_ranks(cutter *c, heddle_error *err) {
  const heddle_graph *g = c->g;
  heddle__stages *s = c->s;
  uint64_t *keys = heddle__alloc(g->n_nodes, sizeof *keys);
  uint32_t n = 0, distinct = 0;
  if (keys == NULL) return heddle__no_memory(err, "stages");
  (void)set_levels(c);
  for (uint32_t i = 0; i < g->n_nodes; i++)
    if (c->needed[i] && !is_null(c, i)) keys[n++] = (uint64_t)c->level[i] << 32 | c->rank_of[i];
  if (n > 0) qsort(keys, n, sizeof *keys, by_number);
  for (uint32_t i = 0; i < n; i++)
    if (i == 0 || keys[i] != keys[i - 1]) keys[distinct++] = keys[i];
  s->n_list = distinct;
  s->list = heddle__alloc(distinct, sizeof *s->list);
  c->rank_of_stage = heddle__alloc(distinct, sizeof *c->rank_of_stage);
  const bool done = s->list != NULL && c->rank_of_stage != NULL;
  for (uint32_t i = 0; done && i < distinct; i++) {
    c->rank_of_stage[i] = (uint32_t)keys[i];
    s->list[i].elsewhere = c->rank_of_stage[i] != heddle__spread_rank(c->m->spread);
  }
  for (uint32_t i = 0; done && i < g->n_nodes; i++) {
    s->stage_of[i] = HEDDLE__NONE;
    if (!c->needed[i] || is_null(c, i)) continue;
    const uint64_t key = (uint64_t)c->level[i] << 32 | c->rank_of[i];
    s->stage_of[i] = (uint32_t)((uint64_t *)bsearch(&key, keys, distinct, sizeof key, by_number) - keys);
  }
  heddle__free(keys);
  return done ? HEDDLE_OK : heddle__no_memory(err, "stages");
}
#endif

/* The order of stages: all plain nodes of a level are one, each control node is one. */
static heddle_status number_stages(cutter *c, heddle_error *err) {
  const heddle_graph *g = c->g;
  heddle__stages *s = c->s;
#if HEDDLE_HAS_RANKS
  if (c->rank_of != NULL) return number_ranks(c, err);
#endif
  const uint32_t levels = set_levels(c) + 1;
  uint32_t *count = heddle__alloc((size_t)levels + 1, sizeof *count); /* stages before a level */
  if (count == NULL) return heddle__no_memory(err, "stages");
  for (uint32_t i = 0; i < g->n_nodes; i++) {
    if (!c->needed[i] || is_null(c, i)) continue;
    uint32_t *n = &count[c->level[i] + 1];
    *n = is_control(c, i) ? *n + 1 : 1;
  }
  for (uint32_t l = 0; l < levels; l++) count[l + 1] += count[l];
  s->n_list = count[levels];
  s->list = heddle__alloc(s->n_list, sizeof *s->list);
  for (uint32_t i = 0; s->list != NULL && i < g->n_nodes; i++) {
    s->stage_of[i] = HEDDLE__NONE;
    if (!c->needed[i] || is_null(c, i)) continue;
    s->stage_of[i] = is_control(c, i) ? count[c->level[i]]++ : count[c->level[i]];
    if (!is_control(c, i)) continue;
    ctl_stage *stage = &s->list[s->stage_of[i]];
    stage->node = &g->nodes[i];
    if (heddle__is_host(stage->node)) {
      stage->kind = CTL_HOST;
      continue;
    }
    stage->shape = heddle__control_of(stage->node);
    stage->kind = stage->shape.own == 1 ? CTL_IF : stage->shape.own == 2 ? CTL_LOOP : CTL_SCAN;
  }
  heddle__free(count);
  return s->list != NULL ? HEDDLE_OK : heddle__no_memory(err, "stages");
}

/* ---- slots */

static uint32_t take_slot(cutter *c, heddle__entry e) {
  uint32_t *slot = &c->s->slot_of[heddle__entry_id(c->g, e)];
  if (*slot == HEDDLE__NONE) *slot = c->s->n_slots++;
  return *slot;
}

/* A slot for each value that leaves its stage; those of the graph's inputs are there. */
static heddle_status number_slots(cutter *c, heddle_error *err) {
  const heddle_graph *g = c->g;
  heddle__stages *s = c->s;
  for (uint32_t i = 0; i < g->n_entries; i++) s->slot_of[i] = HEDDLE__NONE;
  for (uint32_t i = 0; i < g->n_args; i++) s->slot_of[g->nodes[g->args[i]].first_entry] = i;
  s->n_slots = g->n_args;
  for (uint32_t i = 0; i < g->n_nodes; i++)
    for (uint32_t k = 0; s->stage_of[i] != HEDDLE__NONE && k < g->nodes[i].n_inputs; k++) {
      heddle__entry e = g->nodes[i].inputs[k];
      if (e.node != HEDDLE__ABSENT && s->stage_of[e.node] != s->stage_of[i]) (void)take_slot(c, e);
    }
  s->n_results = g->n_heads + c->m->n_keep;
  s->results = heddle__alloc(s->n_results, sizeof *s->results);
  if (s->results == NULL) return heddle__no_memory(err, "stages");
  for (uint32_t i = 0; i < s->n_results; i++)
    s->results[i] = take_slot(c, i < g->n_heads ? g->heads[i] : c->m->keep[i - g->n_heads]);
  return HEDDLE_OK;
}

/* ---- stages */

static uint32_t *copy_slots(const cutter *c, const heddle__entry *entries, uint32_t n) {
  uint32_t *slots = heddle__alloc(n, sizeof *slots);
  for (uint32_t i = 0; slots != NULL && i < n; i++)
    slots[i] = entries[i].node != HEDDLE__ABSENT ? c->s->slot_of[heddle__entry_id(c->g, entries[i])] : HEDDLE__NONE;
  return slots;
}

static heddle_status keep_ends(const cutter *c, ctl_stage *stage, const heddle__entry *from, uint32_t n_from,
                               const heddle__entry *to, uint32_t n_to, heddle_error *err) {
  stage->inputs = copy_slots(c, from, n_from);
  stage->outputs = copy_slots(c, to, n_to);
  stage->entries = heddle__alloc(n_to, sizeof *stage->entries);
  if (stage->entries != NULL && n_to > 0) memcpy(stage->entries, to, n_to * sizeof *to);
  stage->n_inputs = n_from;
  stage->n_outputs = n_to;
  bool done = stage->inputs != NULL && stage->outputs != NULL && stage->entries != NULL;
  return done ? HEDDLE_OK : heddle__no_memory(err, "a stage");
}

/* c->order and c->first: so that each stage looks at its own nodes only. */
static heddle_status sort_nodes(cutter *c, heddle_error *err) {
  const heddle__stages *s = c->s;
  c->order = heddle__alloc(c->g->n_nodes, sizeof *c->order);
  c->first = heddle__alloc((size_t)s->n_list + 2, sizeof *c->first);
  if (c->order == NULL || c->first == NULL) return heddle__no_memory(err, "stages");
  for (uint32_t i = 0; i < c->g->n_nodes; i++)
    if (s->stage_of[i] != HEDDLE__NONE) c->first[s->stage_of[i] + 2]++;
  for (uint32_t i = 0; i < s->n_list; i++) c->first[i + 2] += c->first[i + 1];
  for (uint32_t i = 0; i < c->g->n_nodes; i++) /* first[stage + 1] moves from the stage's begin to its end */
    if (s->stage_of[i] != HEDDLE__NONE) c->order[c->first[s->stage_of[i] + 1]++] = i;
  return HEDDLE_OK;
}

static heddle_status make_plain(cutter *c, uint32_t at, heddle_error *err) {
  const heddle_graph *g = c->g;
  ctl_stage *stage = &c->s->list[at];
  ctl_part part = {.graph = g,
                   .nodes = c->order + c->first[at],
                   .from = c->from,
                   .to = c->to,
                   .place = c->place,
                   .n_nodes = c->first[at + 1] - c->first[at]};
  heddle_graph *made = NULL;
  for (uint32_t i = 0; i < part.n_nodes; i++) {
    const heddle__node *n = &g->nodes[part.nodes[i]];
    for (uint32_t k = 0; k < n->n_inputs; k++) {
      heddle__entry e = n->inputs[k];
      if (e.node == HEDDLE__ABSENT || c->s->stage_of[e.node] == at) continue;
      uint32_t *seen = &c->seen[heddle__entry_id(g, e)];
      if (*seen == at + 1) continue;
      *seen = at + 1;
      c->from[part.n_from++] = e;
    }
    for (uint32_t k = 0; k < n->n_outputs; k++)
      if (c->s->slot_of[n->first_entry + k] != HEDDLE__NONE) c->to[part.n_to++] = (heddle__entry){part.nodes[i], k};
  }
  heddle_status s = keep_ends(c, stage, c->from, part.n_from, c->to, part.n_to, err);
  if (stage->elsewhere) return s;
  if (s == HEDDLE_OK) s = ctl_part_make(&part, &made, err);
#if HEDDLE_HAS_RANKS
  for (uint32_t i = 0; s == HEDDLE_OK && c->rank_of != NULL && i < part.n_nodes; i++) /* as this rank calls devices */
    made->nodes[c->place[g->n_entries + part.nodes[i]]].device =
        (char *)(uintptr_t)heddle__spread_device(c->m->spread, part.nodes[i]);
#endif
  if (s == HEDDLE_OK) s = ctl_model(c->m, made, 0, c->from, part.n_from, c->optimize, &stage->models[0], err);
  heddle_graph_release(made);
  return s;
}

static heddle_status make_control(cutter *c, ctl_stage *stage, heddle_error *err) {
  static const char *const names[2][2] = {{"then_branch", "else_branch"}, {"body", NULL}};
  const heddle__node *n = stage->node;
  const uint32_t node = (uint32_t)(n - c->g->nodes);
  const uint32_t captured = n->n_inputs - stage->shape.n_captured; /* where they begin */
  for (uint32_t k = 0; k < n->n_outputs; k++) c->to[k] = (heddle__entry){node, k};
  heddle_status s = keep_ends(c, stage, n->inputs, n->n_inputs, c->to, n->n_outputs, err);
  if (s == HEDDLE_OK && stage->kind == CTL_HOST) {
    s = ctl_host_check(n, &stage->pattern, err);
    heddle__staged none = {.stages = c->s};
    return s == HEDDLE_OK ? s : ctl_say(&none, stage, -1, s, err);
  }
  for (uint32_t i = 0; i < 2 && s == HEDDLE_OK; i++) {
    const char *name = names[stage->kind == CTL_IF ? 0 : 1][i];
    const heddle_graph *inner = name != NULL ? heddle__inner(n, name) : NULL;
    if (inner == NULL) continue;
    s = ctl_model(c->m, inner, inner->n_args - stage->shape.n_captured, n->inputs + captured, stage->shape.n_captured,
                  c->optimize, &stage->models[i], err);
    if (s != HEDDLE_OK) {
      heddle__staged none = {.stages = c->s};
      ctl_say(&none, stage, -1, s, err);
    }
  }
  return s;
}

void ctl_free(heddle__stages *s) {
  if (s == NULL) return;
  for (uint32_t i = 0; s->list != NULL && i < s->n_list; i++) {
    heddle_model_release(s->list[i].models[0]);
    heddle_model_release(s->list[i].models[1]);
    ctl_regex_free(s->list[i].pattern);
    heddle__free(s->list[i].inputs);
    heddle__free(s->list[i].outputs);
    heddle__free(s->list[i].entries);
  }
  heddle__free(s->list);
  heddle__free(s->slot_of);
  heddle__free(s->stage_of);
  heddle__free(s->results);
  heddle__free(s);
}

heddle_status ctl_make(heddle_model *m, const char *optimize, heddle__stages **out, heddle_error *err) {
  const heddle_graph *g = m->graph;
  heddle__stages *s = heddle__alloc(1, sizeof *s);
  *out = NULL;
  if (s == NULL) return heddle__no_memory(err, "stages");
  size_t most = g->n_entries;
  s->model = m;
  s->slot_of = heddle__alloc(g->n_entries, sizeof *s->slot_of);
  s->stage_of = heddle__alloc(g->n_nodes, sizeof *s->stage_of);
  cutter c = {.m = m,
              .g = g,
              .optimize = optimize,
              .s = s,
              .level = heddle__alloc(g->n_nodes, sizeof *c.level),
              .needed = heddle__alloc(g->n_nodes, sizeof *c.needed),
              .cuts = heddle__alloc(g->n_nodes, 1),
              .from = heddle__alloc(most, sizeof *c.from),
              .to = heddle__alloc(most, sizeof *c.to),
              .seen = heddle__alloc(most, sizeof *c.seen),
              .place = heddle__alloc(most + g->n_nodes, sizeof *c.place)};
  heddle_status status = HEDDLE_OK;
  if (s->slot_of == NULL || s->stage_of == NULL || c.level == NULL || c.needed == NULL || c.from == NULL ||
      c.to == NULL || c.cuts == NULL || c.seen == NULL || c.place == NULL)
    status = heddle__no_memory(err, "stages");
  if (status == HEDDLE_OK) {
    bool any = false;
    mark_needed(&c);
    status = heddle__graph_cuts(g, m->constants, c.cuts, &any, err);
  }
#if HEDDLE_HAS_RANKS
  if (status == HEDDLE_OK && heddle__spread_cuts(m->spread)) {
    c.rank_of = heddle__alloc(g->n_nodes, sizeof *c.rank_of);
    status = c.rank_of != NULL ? heddle__spread_place(m, c.rank_of, err) : heddle__no_memory(err, "stages");
  }
#endif
  if (status == HEDDLE_OK) status = number_stages(&c, err);
  if (status == HEDDLE_OK) status = number_slots(&c, err);
  if (status == HEDDLE_OK) status = sort_nodes(&c, err);
  for (uint32_t i = 0; i < s->n_list && status == HEDDLE_OK; i++)
    status = s->list[i].node != NULL ? make_control(&c, &s->list[i], err) : make_plain(&c, i, err);
#if HEDDLE_HAS_RANKS
  if (status == HEDDLE_OK && c.rank_of != NULL) status = heddle__spread_script(m, s, c.rank_of_stage, err);
#endif
  heddle__free(c.rank_of);
  heddle__free(c.rank_of_stage);
  heddle__free(c.level);
  heddle__free(c.needed);
  heddle__free(c.cuts);
  heddle__free(c.from);
  heddle__free(c.to);
  heddle__free(c.seen);
  heddle__free(c.place);
  heddle__free(c.order);
  heddle__free(c.first);
  if (status == HEDDLE_OK) *out = s;
  else ctl_free(s);
  return status;
}
