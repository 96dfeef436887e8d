/* executor/control/stages.h: what the files of this room share. A model in stages: plain ones, which are models of a part of the
 * graph, and control nodes, which run the models of their graphs. Values that go from stage to stage lie in slots, as
 * tensors of the host; the first slots are the model's inputs. Private to executor/control/. */
#ifndef HEDDLE_EXECUTOR_CONTROL_STAGES_H
#define HEDDLE_EXECUTOR_CONTROL_STAGES_H

#include "executor/control.h"
#include "executor/ranks/spread.h"

/* ---- of a model */

typedef enum ctl_kind { CTL_PLAIN, CTL_IF, CTL_LOOP, CTL_SCAN, CTL_HOST } ctl_kind;

typedef struct ctl_stage {
  ctl_kind kind;
  const heddle__node *node;  /* of the graph; NULL: CTL_PLAIN */
  heddle__control shape;     /* with node */
  heddle_model *models[2];   /* CTL_IF: the branch for true, the one for false; CTL_HOST: none; others have one */
  struct ctl_regex *pattern; /* of a CTL_HOST that matches one; else NULL */
  uint32_t *inputs;  /* slots, or HEDDLE__NONE: absent. CTL_PLAIN: of the model's args; else of the node's inputs */
  uint32_t *outputs; /* slots, or HEDDLE__NONE: not wanted. Of the model's outputs, or of the node's */
  heddle__entry *entries; /* of the graph: what each of outputs is there */
  uint32_t n_inputs, n_outputs;
  bool elsewhere; /* another rank runs it: it has no model */
} ctl_stage;

struct heddle__stages {
  const heddle_model *model;
  ctl_stage *list;
  uint32_t *slot_of;  /* per entry of the graph; HEDDLE__NONE: it stays within a stage */
  uint32_t *stage_of; /* per node; HEDDLE__NONE: an input, or not needed */
  uint32_t *results;  /* slots of the graph's outputs, then of the kept values */
  uint32_t n_list, n_slots, n_results;
};

/* part.c: the graph of n_nodes nodes, given by their numbers in graph, upwards. Its args are the entries from, its outputs
 * the entries to. place is scratch of a number per entry and node of graph, of any content. */
typedef struct ctl_part {
  const heddle_graph *graph;
  const uint32_t *nodes;
  const heddle__entry *from, *to;
  uint32_t *place;
  uint32_t n_nodes, n_from, n_to;
} ctl_part;
heddle_status ctl_part_make(const ctl_part *part, heddle_graph **out, heddle_error *err);

/* A model of a graph with the devices and options of m. Its arg i is the value from[i] of m's graph (from NULL: given by
 * n_from of them, after the first args of its own): where that is a constant, it is one here. */
heddle_status ctl_model(const heddle_model *m, const heddle_graph *graph, uint32_t own, const heddle__entry *from,
                        uint32_t n_from, const char *optimize, heddle_model **out, heddle_error *err);

/* ---- of an executor */

/* Tensors that become one: a Loop's or Scan's collected output. */
typedef struct ctl_pile {
  heddle_tensor *memory; /* bytes; grows */
  heddle_tensor *whole;  /* what was given last, in memory */
  heddle_dtype dtype;
  uint32_t ndim; /* of one */
  int64_t shape[HEDDLE__MAX_NDIM];
  uint64_t bytes; /* of one */
  uint64_t count;
} ctl_pile;

/* An executor of a stage, with what is bound to it and what it gave. */
typedef struct ctl_unit {
  heddle_executor *ex; /* NULL: not needed yet */
  heddle_tensor **bound;
  heddle_tensor **views;
  uint32_t n_in, n_out;
} ctl_unit;

typedef struct ctl_run {
  ctl_unit units[2];
  uint32_t branch; /* the unit that runs */
  bool inside;     /* its inputs are set */
  /* CTL_LOOP, CTL_SCAN: */
  int64_t trip, at;
  bool going;
  heddle_tensor *number, *truth; /* what a Loop's body is given */
  heddle_tensor **states;        /* n_states */
  heddle_tensor **slices;        /* n_scanned */
  ctl_pile *piles;               /* n_collected */
} ctl_run;

struct heddle__staged {
  const heddle__stages *stages;
  heddle_executor *owner;
  heddle_tensor **values;    /* per slot, a reference each; NULL: not known yet */
  heddle_tensor **copies;    /* per result: where it is an input's memory, which may change before the next run */
  heddle_tensor **out;       /* per result: borrowed of values or copies; NULL before the first run */
  ctl_run *runs;             /* per stage */
  uint32_t at;               /* the stage in hand */
  bool begun;                /* it was prepared */
  heddle__spread_lane *lane; /* over ranks; then at is of the rank's acts. NULL: all stages run here */
  heddle_executor *pending;  /* an inner run that has not ended */
  /* timed.c: the steps of the last timed run, and the names in them. */
  bool timed;
  heddle_profile_entry *entries;
  char **words;
  size_t n_entries, max_entries, n_words, max_words;
};

/* timed.c: after a timed run of an inner executor. */
heddle_status ctl_note_times(heddle__staged *st, heddle_executor *ex, heddle_error *err);
void ctl_timed_free(heddle__staged *st);

/* staged.c: goes on with one stage. */
heddle__run_end ctl_stage_drive(heddle__staged *st, uint32_t at, const heddle__helm *helm, heddle_status *status,
                                heddle_error *err);

/* Replaces what *place refers to; takes no reference over. */
void ctl_put(heddle_tensor **place, heddle_tensor *t);

/* staged.c: lends the unit its last n inputs, the values from[0..n); constants it has already. */
heddle_status ctl_lend_all(heddle__staged *st, ctl_unit *u, uint32_t first, const uint32_t *from, uint32_t n,
                           heddle_error *err);
static inline heddle_tensor *ctl_value_of(const heddle__staged *st, uint32_t slot) {
  return slot != HEDDLE__NONE ? st->values[slot] : NULL;
}

/* staged.c: a stage's output i, which is what the graph declares of it, or HEDDLE_EFORMAT and no value. */
heddle_status ctl_give(heddle__staged *st, const ctl_stage *stage, uint32_t i, heddle_tensor *t, heddle_error *err);

/* What the graph declares of a stage's output i; NULL: the stage has no such output. */
static inline const heddle__type *ctl_declared(const heddle__staged *st, const ctl_stage *stage, uint32_t i) {
  const heddle_graph *g = st->stages->model->graph;
  if (i >= stage->n_outputs) return NULL;
  return &g->types[g->nodes[stage->entries[i].node].first_entry + stage->entries[i].index];
}

/* unit.c: makes the unit's executor where it has none; its objects are those of st's. */
heddle_status ctl_unit_make(const heddle__staged *st, heddle_model *m, ctl_unit *u, heddle_error *err);
void ctl_unit_free(ctl_unit *u);

/* Hands a tensor to an input: by reference, so that its memory must hold until the run has ended; or as a copy. */
heddle_status ctl_lend(ctl_unit *u, uint32_t i, heddle_tensor *t, heddle_error *err);
heddle_status ctl_copy(ctl_unit *u, uint32_t i, const heddle_tensor *t, heddle_error *err);

/* An output of the unit's last run; borrowed. It is the same tensor as long as memory and shape are. */
heddle_status ctl_view(ctl_unit *u, uint32_t i, heddle_tensor **out, heddle_error *err);

/* Runs the unit once, as a part of a run that helm is of. */
heddle__run_end ctl_unit_run(heddle__staged *st, ctl_unit *u, const heddle__helm *helm, heddle_status *status,
                             heddle_error *err);

/* host.c: what is wrong with an operator that the host carries out, before it runs; and one call of it, at once. */
heddle_status ctl_host_check(const heddle__node *node, struct ctl_regex **pattern, heddle_error *err);
heddle_status ctl_host_run(heddle__staged *st, const ctl_stage *stage, heddle_error *err);

/* What a node that repeats a body does around each run of it, and behind the last. */
typedef struct ctl_body {
  bool (*goes_on)(const ctl_run *run);
  heddle_status (*set_inputs)(heddle__staged *st, const ctl_stage *stage, ctl_run *run, heddle_error *err);
  heddle_status (*take_outputs)(const ctl_stage *stage, ctl_run *run, heddle_error *err);
  heddle_status (*finish)(heddle__staged *st, const ctl_stage *stage, ctl_run *run, heddle_error *err);
} ctl_body;
heddle__run_end ctl_body_drive(heddle__staged *st, const ctl_stage *stage, ctl_run *run, const ctl_body *body,
                               const heddle__helm *helm, heddle_status *status, heddle_error *err);

/* loop.c, scan.c: begin and go on with a control node; done when RUN_DONE comes. */
heddle_status ctl_loop_begin(heddle__staged *st, const ctl_stage *stage, ctl_run *run, heddle_error *err);
heddle__run_end ctl_loop_drive(heddle__staged *st, const ctl_stage *stage, ctl_run *run, const heddle__helm *helm,
                               heddle_status *status, heddle_error *err);
heddle_status ctl_scan_begin(heddle__staged *st, const ctl_stage *stage, ctl_run *run, heddle_error *err);
heddle__run_end ctl_scan_drive(heddle__staged *st, const ctl_stage *stage, ctl_run *run, const heddle__helm *helm,
                               heddle_status *status, heddle_error *err);

/* pile.c: adds a tensor, whose dtype and shape must be those of the first; gives all as one with a new axis, backwards
 * where reverse. As views, the result is the same tensor as long as memory and shape are. */
void ctl_pile_reset(ctl_pile *p);
void ctl_pile_free(ctl_pile *p);
heddle_status ctl_pile_add(ctl_pile *p, const heddle_tensor *t, heddle_error *err);
heddle_status ctl_pile_whole(ctl_pile *p, int64_t axis, bool reverse, heddle_tensor **out, heddle_error *err);

/* The dtype and shape of the unit's output i without a run, for a pile that nothing was added to: what the body does not
 * declare is taken from the declared whole, with the new axis; a dimension known from neither is 0. */
heddle_status ctl_pile_empty(ctl_pile *p, ctl_unit *u, uint32_t i, const heddle__type *whole, int64_t axis,
                             heddle_error *err);

/* One number of an integer tensor, one truth of a bool one; what says of what, in errors. */
heddle_status ctl_number(const heddle_tensor *t, const char *what, int64_t *out, heddle_error *err);
heddle_status ctl_truth(const heddle_tensor *t, const char *what, bool *out, heddle_error *err);

/* Puts "node 'x' (Loop), iteration 3: " before the words of an error, which lose the file's name: it is put before
 * them again further out. Gives s. at -1: no iteration. */
heddle_status ctl_say(const heddle__staged *st, const ctl_stage *stage, int64_t at, heddle_status s, heddle_error *err);

#endif
