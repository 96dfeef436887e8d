/* executor/program.h: a proved plan, ready to be bound: its operators prepared, its constants in place, its steps cut
 * into segments. Immutable once made, shared by executors of any thread; it counts references. */
#ifndef HEDDLE_EXECUTOR_PROGRAM_H
#define HEDDLE_EXECUTOR_PROGRAM_H

#include "executor/model.h"

/* What the head of a segment waits for. */
typedef struct heddle__gate {
  heddle__wait_by by;
  uint32_t stream;  /* of the awaited step */
  uint32_t seq;     /* its number in that stream, from 1 */
  uint32_t ordinal; /* BY_FENCE: which of the stream's fence values of a run, from 1 */
  uint32_t step;
} heddle__gate;

/* A maximal row of steps on one stream that starts with waits and ends with signals, if at all. */
typedef struct heddle__segment {
  uint32_t stream;
  uint32_t first, count;        /* in program.order */
  uint32_t first_gate, n_gates; /* in program.gates */
  uint32_t event_step;          /* the last step, where it signals an event; else HEDDLE__NONE */
  uint32_t ordinal;             /* the fence value of the last step, where it signals one; else 0 */
} heddle__segment;

typedef struct heddle__lane {
  uint32_t first, end; /* in program.segments */
  uint32_t n_signals;  /* fence values of one run */
  bool needs_stream;   /* there is work for the plugin in it */
} heddle__lane;

typedef struct heddle__program {
  atomic_uint references;
  heddle_model *model;          /* borrowed: who holds a program holds the model */
  struct heddle__program *next; /* in the model's cache; its lock guards this */
  struct heddle__program *root; /* range.h: the program for larger shapes of which this is a size; NULL: none */
  atomic_uint refusals;         /* of a root: shapes in a row that could not be a size of it */
  heddle__order *order_of;      /* the request, which the plan points into */
  heddle__plan *plan;
  heddle_pop **ops; /* per region; NULL for what no step runs; those that are the root's are its own */
  _Atomic(heddle_pop *)
      *late;            /* with root, per region: prepared after all, since launches of the root's cannot be resized */
  pthread_mutex_t lock; /* with root: for what is prepared late */
  bool has_lock;
  heddle__packed **packed;   /* per allocation; NULL where it is no constant; this and what follows is the root's */
  uint32_t *order;           /* steps, stream by stream, without FINISH */
  heddle__segment *segments; /* stream by stream */
  heddle__gate *gates;
  heddle__lane *lanes; /* per plan stream */
  uint32_t n_segments;
  uint64_t copies, bytes_copied; /* between devices, of one run */
} heddle__program;

/* Plans, prepares and uploads; takes over order on success. Opens devices. *out has one reference. Any thread. */
heddle_status heddle__program_make(heddle_model *m, heddle__order *order, heddle__program **out, heddle_error *err);

/* Prepares one region, as it is given. */
heddle_status heddle__region_prepare(const heddle__program *p, const heddle__region *r, heddle_pop **out,
                                     heddle_error *err);

/* The operator that a region's launches are of. */
static inline heddle_pop *heddle__program_op(const heddle__program *p, uint32_t region) {
  heddle_pop *late = p->late != NULL ? atomic_load_explicit(&p->late[region], memory_order_acquire) : NULL;
  return late != NULL ? late : p->ops[region];
}

/* Frees what was prepared late; no launch has it. */
void heddle__program_forget_late(heddle__program *p);
/* Counts what one run copies between devices. */
void heddle__program_count_copies(heddle__program *p);

/* Prepares the operators of all steps; of a size of a root those whose regions are not the root's. */
heddle_status heddle__program_prepare(heddle__program *p, heddle_error *err);
heddle__program *heddle__program_retain(heddle__program *p);
void heddle__program_release(heddle__program *p); /* takes NULL; before the model ends */

/* Names the node and the device of a step in an error; gives status. */
heddle_status heddle__program_blame(const heddle__program *p, uint32_t step, heddle_status status, heddle_error *err);

/* "node 'conv1' on sim:0", "copy of 'x' from cpu:0 to sim:0": what a step is, for errors and profiles. */
void heddle__program_say(const heddle__program *p, uint32_t step, char *out, size_t size);
/* The same of a step that a run waits for: "node 'conv1' (function 'conv2d') on cpu:0", so that a compiled function has a name. */
void heddle__program_say_waited(const heddle__program *p, uint32_t step, char *out, size_t size);
/* The step is a call of a compiled function, which cannot be stopped. */
bool heddle__program_calls(const heddle__program *p, uint32_t step);

#endif
