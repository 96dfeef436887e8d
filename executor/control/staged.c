/* executor/control/staged.c: a run of a model in stages: one stage after another, which may be left and gone on with at any time,
 * as a run of one program may. Where shapes are those of the run before, nothing is allocated. */
#include <stdio.h>
#include <string.h>

#include "graph/declared.h"
#include "executor/control/stages.h"
#include "core/alloc.h"
#include "core/error.h"

/* ---- values */

static bool is_settled(const heddle__staged *st, uint32_t slot) {
  const heddle_executor *ex = st->owner;
  return slot < ex->n_args && ex->args[slot].value == NULL && ex->model->constants[slot] != NULL;
}

heddle_status ctl_lend_all(heddle__staged *st, ctl_unit *u, uint32_t first, const uint32_t *from, uint32_t n,
                           heddle_error *err) {
  heddle_status s = HEDDLE_OK;
  for (uint32_t i = 0; i < n && s == HEDDLE_OK; i++)
    if (!is_settled(st, from[i])) s = ctl_lend(u, first + i, st->values[from[i]], err);
  return s;
}

heddle_status ctl_give(heddle__staged *st, const ctl_stage *stage, uint32_t i, heddle_tensor *t, heddle_error *err) {
  const heddle_graph *g = st->stages->model->graph;
  if (i >= stage->n_outputs || stage->outputs[i] == HEDDLE__NONE) return HEDDLE_OK;
  const heddle__entry e = stage->entries[i];
  heddle_status s = heddle__declared_check(g, &g->nodes[e.node], e.index, t->dtype, t->ndim, t->shape, err);
  if (s == HEDDLE_OK) ctl_put(&st->values[stage->outputs[i]], t);
  return s;
}

/* A constant as a value, for nodes that the host carries out. */
static heddle_status take_constant(heddle__staged *st, uint32_t slot, heddle_error *err) {
  if (slot == HEDDLE__NONE || !is_settled(st, slot) || st->values[slot] != NULL) return HEDDLE_OK;
  const heddle__constant *c = st->owner->model->constants[slot];
  if (!heddle__constant_aligned(c)) {
    heddle_status s = heddle_tensor_create(NULL, c->dtype, c->shape, c->ndim, &st->values[slot], err);
    if (s == HEDDLE_OK && c->bytes > 0) memcpy(st->values[slot]->data, c->data, (size_t)c->bytes);
    return s;
  }
  return heddle_tensor_wrap(c->data, c->dtype, c->shape, c->ndim, NULL, NULL, NULL, &st->values[slot], err);
}

/* An input's dimension d has a name: those of the same name before it are the same number. */
static heddle_status check_symbol(const heddle__staged *st, uint32_t i, uint32_t d, heddle_error *err) {
  const heddle_graph *g = st->stages->model->graph;
  const heddle__type *a = &g->types[g->nodes[g->args[i]].first_entry];
  for (uint32_t j = 0; j <= i; j++) {
    const heddle__type *b = &g->types[g->nodes[g->args[j]].first_entry];
    const heddle_tensor *y = st->values[j];
    for (uint32_t e = 0; y != NULL && b->has_shape && e < b->ndim && e < y->ndim; e++)
      if (b->dims[e].symbol != NULL && strcmp(a->dims[d].symbol, b->dims[e].symbol) == 0 &&
          st->values[i]->shape[d] != y->shape[e])
        return heddle__fail(err, HEDDLE_EINVAL, "%s: dimension '%s' is %lld in input '%s' and %lld in input '%s'",
                            g->source, a->dims[d].symbol, (long long)y->shape[e], g->nodes[g->args[j]].name,
                            (long long)st->values[i]->shape[d], g->nodes[g->args[i]].name);
  }
  return HEDDLE_OK;
}

/* Each stage looks at its own inputs alone. */
static heddle_status check_symbols(const heddle__staged *st, heddle_error *err) {
  const heddle_graph *g = st->stages->model->graph;
  heddle_status s = HEDDLE_OK;
  for (uint32_t i = 0; i < g->n_args && s == HEDDLE_OK; i++) {
    const heddle__type *a = &g->types[g->nodes[g->args[i]].first_entry];
    const heddle_tensor *x = st->values[i];
    for (uint32_t d = 0; x != NULL && a->has_shape && d < a->ndim && d < x->ndim && s == HEDDLE_OK; d++)
      if (a->dims[d].symbol != NULL) s = check_symbol(st, i, d, err);
  }
  return s;
}

heddle_status ctl_check(heddle__staged *st, uint32_t *arg, heddle_error *err) {
  const heddle__stages *all = st->stages;
  const heddle_executor *ex = st->owner;
  heddle_status s = HEDDLE_OK;
  *arg = HEDDLE__NONE;
  for (uint32_t i = 0; i < ex->n_args; i++)
    if (ex->args[i].value != NULL) ctl_put(&st->values[i], ex->args[i].value);
  s = check_symbols(st, err);
  for (uint32_t i = 0; i < all->n_list && s == HEDDLE_OK; i++) {
    const ctl_stage *stage = &all->list[i];
    for (uint32_t k = 0; !stage->elsewhere && k < stage->n_inputs && s == HEDDLE_OK; k++) {
      uint32_t slot = stage->inputs[k];
      if (slot < ex->n_args && st->values[slot] == NULL && !is_settled(st, slot)) *arg = slot;
      if (stage->node != NULL) s = take_constant(st, slot, err);
    }
  }
  const bool gives = st->lane == NULL || heddle__spread_rank(all->model->spread) == 0;
  for (uint32_t i = 0; gives && i < all->n_results && s == HEDDLE_OK; i++) {
    uint32_t slot = all->results[i];
    if (slot < ex->n_args && st->values[slot] == NULL && !is_settled(st, slot)) *arg = slot;
    s = take_constant(st, slot, err);
  }
  return s;
}

/* ---- life */

void ctl_end(heddle__staged *st) {
  if (st == NULL) return;
  const heddle__stages *all = st->stages;
#if HEDDLE_HAS_RANKS
  heddle__spread_end(st->lane); /* before the memory of its messages */
#endif
  for (uint32_t i = 0; st->runs != NULL && i < all->n_list; i++) {
    ctl_run *run = &st->runs[i];
    const heddle__control *c = &all->list[i].shape;
    ctl_unit_free(&run->units[0]);
    ctl_unit_free(&run->units[1]);
    ctl_put(&run->number, NULL);
    ctl_put(&run->truth, NULL);
    for (uint32_t k = 0; run->states != NULL && k < c->n_states; k++) ctl_put(&run->states[k], NULL);
    for (uint32_t k = 0; run->slices != NULL && k < c->n_scanned; k++) ctl_put(&run->slices[k], NULL);
    for (uint32_t k = 0; run->piles != NULL && k < c->n_collected; k++) ctl_pile_free(&run->piles[k]);
    heddle__free(run->states);
    heddle__free(run->slices);
    heddle__free(run->piles);
  }
  for (uint32_t i = 0; st->values != NULL && i < all->n_slots; i++) ctl_put(&st->values[i], NULL);
  for (uint32_t i = 0; st->copies != NULL && i < all->n_results; i++) ctl_put(&st->copies[i], NULL);
  ctl_timed_free(st);
  heddle__free(st->runs);
  heddle__free(st->values);
  heddle__free(st->copies);
  heddle__free(st->out);
  heddle__free(st);
}

static heddle_status make_runs(heddle__staged *st, heddle_error *err) {
  heddle_status s = HEDDLE_OK;
  for (uint32_t i = 0; i < st->stages->n_list && s == HEDDLE_OK; i++) {
    const ctl_stage *stage = &st->stages->list[i];
    ctl_run *run = &st->runs[i];
    if (stage->elsewhere) continue;
    if (stage->kind == CTL_PLAIN) s = ctl_unit_make(st, stage->models[0], &run->units[0], err);
    if (stage->kind == CTL_PLAIN || stage->kind == CTL_IF || stage->kind == CTL_HOST) continue;
    run->states = heddle__alloc(stage->shape.n_states, sizeof *run->states);
    run->slices = heddle__alloc(stage->shape.n_scanned, sizeof *run->slices);
    run->piles = heddle__alloc(stage->shape.n_collected, sizeof *run->piles);
    if (run->states == NULL || run->slices == NULL || run->piles == NULL)
      s = heddle__no_memory(err, "the state of a loop");
  }
  return s;
}

heddle_status ctl_start(const heddle__stages *all, heddle_executor *ex, heddle__staged **out, heddle_error *err) {
  heddle__staged *st = heddle__alloc(1, sizeof *st);
  *out = NULL;
  if (st == NULL) return heddle__no_memory(err, "an executor in stages");
  st->stages = all;
  st->owner = ex;
  st->runs = heddle__alloc(all->n_list, sizeof *st->runs);
  st->values = heddle__alloc(all->n_slots, sizeof(heddle_tensor *));
  st->copies = heddle__alloc(all->n_results, sizeof(heddle_tensor *));
  st->out = heddle__alloc(all->n_results, sizeof(heddle_tensor *));
  heddle_status s = st->runs != NULL && st->values != NULL && st->copies != NULL && st->out != NULL
                        ? make_runs(st, err)
                        : heddle__no_memory(err, "an executor in stages");
#if HEDDLE_HAS_RANKS
  const heddle__spread *spread = all->model->spread;
  if (s != HEDDLE_OK) (void)heddle__spread_fail(spread, s, err); /* or other ranks would wait */
  else if (heddle__spread_cuts(spread)) s = heddle__spread_start(spread, st, &st->lane, err);
#endif
  if (s == HEDDLE_OK) *out = st;
  else ctl_end(st);
  return s;
}

/* ---- runs */

void ctl_reset(void *self) {
  heddle__staged *st = self;
  st->at = 0;
  st->begun = false;
}

static heddle_status begin_plain(heddle__staged *st, const ctl_stage *stage, ctl_run *run, heddle_error *err) {
  return ctl_lend_all(st, &run->units[0], 0, stage->inputs, stage->n_inputs, err);
}

static heddle_status begin_if(heddle__staged *st, const ctl_stage *stage, ctl_run *run, heddle_error *err) {
  bool truth = false;
  heddle_status s = ctl_truth(st->values[stage->inputs[0]], "its condition", &truth, err);
  run->branch = truth ? 0 : 1;
  ctl_unit *u = &run->units[run->branch];
  if (s == HEDDLE_OK) s = ctl_unit_make(st, stage->models[run->branch], u, err);
  return s == HEDDLE_OK ? ctl_lend_all(st, u, 0, stage->inputs + 1, stage->shape.n_captured, err) : s;
}

static heddle_status begin_stage(heddle__staged *st, const ctl_stage *stage, ctl_run *run, heddle_error *err) {
  run->inside = false;
  run->at = 0;
  switch (stage->kind) {
  case CTL_IF: return begin_if(st, stage, run, err);
  case CTL_LOOP: return ctl_loop_begin(st, stage, run, err);
  case CTL_SCAN: return ctl_scan_begin(st, stage, run, err);
  case CTL_HOST: return HEDDLE_OK;
  default: return begin_plain(st, stage, run, err);
  }
}

/* A plain stage, or the branch of an If. */
static heddle__run_end drive_once(heddle__staged *st, const ctl_stage *stage, ctl_run *run, const heddle__helm *helm,
                                  heddle_status *status, heddle_error *err) {
  ctl_unit *u = &run->units[run->branch];
  heddle__run_end end = ctl_unit_run(st, u, helm, status, err);
  for (uint32_t i = 0; i < stage->n_outputs && end == HEDDLE__RUN_DONE; i++) {
    heddle_tensor *t = NULL;
    if (stage->outputs[i] == HEDDLE__NONE) continue;
    *status = ctl_view(u, i, &t, err);
    if (*status == HEDDLE_OK) *status = ctl_give(st, stage, i, t, err);
    if (*status != HEDDLE_OK) return HEDDLE__RUN_FAILED;
  }
  return end;
}

static heddle__run_end drive_stage(heddle__staged *st, const ctl_stage *stage, ctl_run *run, const heddle__helm *helm,
                                   heddle_status *status, heddle_error *err) {
  if (!st->begun) {
    *status = begin_stage(st, stage, run, err);
    if (*status != HEDDLE_OK) return HEDDLE__RUN_FAILED;
    st->begun = true;
  }
  switch (stage->kind) {
  case CTL_HOST:
    *status = ctl_host_run(st, stage, err);
    return *status == HEDDLE_OK ? HEDDLE__RUN_DONE : HEDDLE__RUN_FAILED;
  case CTL_LOOP: return ctl_loop_drive(st, stage, run, helm, status, err);
  case CTL_SCAN: return ctl_scan_drive(st, stage, run, helm, status, err);
  default: return drive_once(st, stage, run, helm, status, err);
  }
}

/* An output that is an input's memory becomes a copy: the next run's input may be written before this output is read. */
static heddle_status settle_results(heddle__staged *st, heddle_error *err) {
  const heddle__stages *all = st->stages;
  for (uint32_t i = 0; i < all->n_results; i++) {
    heddle_tensor *t = st->values[all->results[i]];
    bool is_input = false;
    if (t == NULL || (st->lane != NULL && heddle__spread_rank(all->model->spread) != 0)) continue; /* rank 0 has it */
    for (uint32_t k = 0; k < st->owner->n_args && !is_input; k++) is_input = st->values[k] == t;
    st->out[i] = t;
    if (!is_input) continue;
    heddle_tensor *c = st->copies[i];
    heddle_status s = HEDDLE_OK;
    if (c == NULL || memcmp(&c->dtype, &t->dtype, sizeof c->dtype) != 0 || c->ndim != t->ndim ||
        memcmp(c->shape, t->shape, t->ndim * sizeof *t->shape) != 0) {
      s = heddle_tensor_create(NULL, t->dtype, t->shape, t->ndim, &c, err);
      if (s != HEDDLE_OK) return s;
      ctl_put(&st->copies[i], c);
      heddle_tensor_release(c);
    }
    s = heddle_tensor_copy(st->copies[i], t, err);
    if (s != HEDDLE_OK) return s;
    st->out[i] = st->copies[i];
  }
  return HEDDLE_OK;
}

heddle__run_end ctl_stage_drive(heddle__staged *st, uint32_t at, const heddle__helm *helm, heddle_status *status,
                                heddle_error *err) {
  const ctl_stage *stage = &st->stages->list[at];
  ctl_run *run = &st->runs[at];
  heddle__run_end end = drive_stage(st, stage, run, helm, status, err);
  if (end == HEDDLE__RUN_FAILED) {
    bool loops = stage->kind == CTL_LOOP || stage->kind == CTL_SCAN;
    *status = ctl_say(st, stage, loops && st->begun ? run->at : -1, *status, err);
  }
  if (end == HEDDLE__RUN_DONE) st->begun = false;
  return end;
}

heddle__run_end ctl_drive(void *self, const heddle__helm *helm, heddle_status *status, heddle_error *err) {
  heddle__staged *st = self;
  *status = HEDDLE_OK;
  if (st->lane != NULL) {
#if HEDDLE_HAS_RANKS
    heddle__run_end end = heddle__spread_drive(st, helm, status, err);
    if (end != HEDDLE__RUN_DONE) return end;
#endif
  } else {
    while (st->at < st->stages->n_list) {
      heddle__run_end end = ctl_stage_drive(st, st->at, helm, status, err);
      if (end != HEDDLE__RUN_DONE) return end;
      st->at++;
    }
  }
  *status = settle_results(st, err);
  return *status == HEDDLE_OK ? HEDDLE__RUN_DONE : HEDDLE__RUN_FAILED;
}

void ctl_late(const void *self, char *what, size_t size) {
  const heddle__staged *st = self;
  snprintf(what, size, "it is in stages");
#if HEDDLE_HAS_RANKS
  if (st->lane != NULL) heddle__spread_say(st, what, size);
#else
  (void)st;
#endif
}

bool ctl_drain(void *self, heddle__waker *waker, char *what, size_t size) {
  heddle__staged *st = self;
  (void)what; /* an inner executor whose work hangs reports it itself, when it is used again */
  (void)size, (void)waker;
  if (st->lane != NULL) { /* a run that was cancelled: the other ranks have begun it too */
    char late[320];
    heddle_error why = {0};
    ctl_late(st, late, sizeof late);
    (void)heddle__fail(&why, HEDDLE_ECANCELED, "the run was cancelled (%s)", late);
    (void)heddle__spread_fail(st->stages->model->spread, HEDDLE_ECANCELED, &why);
  }
  if (st->pending == NULL) return true;
  heddle__drive_cancel(&st->pending->drive);
  (void)heddle__drive_wait(&st->pending->drive, HEDDLE_FOREVER, NULL);
  st->pending = NULL;
  return true;
}

heddle_tensor *ctl_result(heddle__staged *st, uint32_t i) {
  return i < st->stages->n_results ? st->out[i] : NULL;
}
