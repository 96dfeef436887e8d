/* executor/bind.h: a program bound to memory and streams of one executor: everything that a run touches.
 * Made and changed between runs; run.c walks it. One thread at a time. */
#ifndef HEDDLE_EXECUTOR_BIND_H
#define HEDDLE_EXECUTOR_BIND_H

#include "core/fence.h"
#include "executor/program.h"

/* One step, with all that it needs at hand. */
typedef struct heddle__action {
  uint32_t kind; /* heddle__step_kind */
  uint32_t step;
  heddle_plaunch *launch;     /* OP */
  const heddle_pop *prepared; /* OP: what the launch is of, and what it was last given its shapes by */
  const heddle_pregion *sized;
  const heddle_op_table *op; /* OP: whose launch it is */
  heddle_pbuffer *dst;       /* copies between handles; of RELEASE and ACQUIRE the buffer */
  heddle_pbuffer *src;
  uint64_t dst_offset, src_offset, bytes;
  heddle_device *dst_dev; /* PEER; of RELEASE and ACQUIRE the owner */
  heddle_device *src_dev;
  void *to; /* HOST_COPY */
  const void *from;
} heddle__action;

/* A segment, bound. */
typedef struct heddle__stretch {
  heddle__action *actions;   /* count of them, in bound.actions */
  heddle_plaunch **launches; /* the same, where all are OPs of one table: what the tight loop walks */
  heddle__row_fn row;        /* with launches: who runs them all, or NULL */
  heddle_pgraph *graph;      /* the recording, or NULL */
  uint32_t count;
  bool stale; /* a binding changed: bind again before the next run */
  bool recordable;
} heddle__stretch;

/* A stream of the plan, and how far the present run is in it. */
typedef struct heddle__line {
  const heddle__tables *t; /* NULL on a host stream without work for a plugin */
  heddle_device *dev;
  heddle_pstream *stream;
  heddle__fence *fence; /* NULL on a host stream */
  heddle_pfence fence_handle;
  uint64_t base; /* fence values of earlier runs */
  bool is_host;
  bool busy;           /* something was put into it in this run */
  uint32_t first, end; /* segments */
  uint32_t next;       /* the next segment */
  uint32_t at;         /* host: how many actions of it have run */
  uint32_t done;       /* steps that have run (host) or were submitted */
  uint32_t watched;    /* the oldest segment that has not ended, at watched_ns; HEDDLE__NONE: none */
  uint64_t watched_ns;
} heddle__line;

/* A view of a buffer, for launches that take whole ones. */
typedef struct heddle__part {
  uint32_t alloc, device;
  uint64_t offset, bytes;
  heddle_pbuffer *buffer;
} heddle__part;

/* The slot of an input or an output. lent: memory that could not replace the slot, copied before or after the run. */
typedef struct heddle__port {
  uint32_t io; /* position among args, or outputs */
  uint32_t alloc;
  uint32_t instance;
  heddle_tensor *lent;
} heddle__port;

/* What is there twice where inputs and outputs change places (sides.c): memory, and what was made of it. */
typedef struct heddle__side {
  heddle__memory **memory;  /* per allocation; constants are retained */
  heddle_pbuffer **imports; /* per allocation and device: handles of devices that do not own it */
  heddle__part *parts;
  uint32_t n_parts, cap_parts;
  heddle__action *actions;
  heddle_plaunch **launches;
  heddle__stretch *stretches; /* per segment */
  uint32_t n_recorded;        /* segments that are replayed */
  uint64_t adapted;           /* for which of the bound retargets its launches have their shapes */
  bool stale;                 /* some stretch is */
} heddle__side;

typedef struct heddle__bound {
  heddle__program *program;
  heddle__memory **memory; /* this and what follows are the members of a side: those of the one that runs */
  heddle_pbuffer **imports;
  heddle__part *parts;
  uint32_t n_parts, cap_parts;
  heddle_pevent **events; /* per step */
  heddle__action *actions;
  heddle_plaunch **launches;
  heddle__stretch *stretches; /* per segment */
  heddle__line *lines;        /* per plan stream */
  heddle__port *inputs, *outputs;
  uint32_t n_inputs, n_outputs, n_lines;
  uint32_t n_recorded;
  uint64_t adapted;
  bool stale;
  uint64_t retargets;  /* how often the program was changed (range.h) */
  heddle__side *other; /* the side that does not run; NULL: there is none */
  bool spins;          /* completions are worth a short spin */
  uint64_t polls_ns;   /* for how long one asks devices for them (HEDDLE_CAP_POLLED); 0: none can be asked */
  bool has_watchdog;   /* a device's work may take only so long */
  bool all_inline;
  bool lengthy;          /* some step of the host's takes long, or its time is not known */
  uint32_t waited;       /* a step that a late run had to wait for, since it cannot be stopped; HEDDLE__NONE */
  uint64_t own_bytes;    /* of memory, without constants */
  uint64_t orphan_bytes; /* counted as such on its devices */
  uint64_t granule;
  struct heddle__chain *chain; /* chain.h: of its executor, since its last run; NULL: none */
  heddle_device *culprit;      /* where the last run failed; NULL: it did not, or it is not known */
  struct heddle__bound *next_orphan;
} heddle__bound;

/* Takes memory, streams, events and fences, binds and records. waker is woken by completions and outlives it. given,
 * which may be NULL, has per allocation the memory that is to be used (retained), or NULL. Inputs are not filled. *out is
 * freed with heddle__bound_free. Blocks. */
heddle_status heddle__bound_make(heddle__program *program, heddle__waker *waker, heddle__memory *const *given,
                                 heddle__bound **out, heddle_error *err);

/* quiet: no stream of it runs any more. Otherwise host memory under it is never given back, and plugins keep theirs.
 * Takes NULL. */
void heddle__bound_free(heddle__bound *b, bool quiet);

/* Replaces the memory of an allocation of inputs or outputs; takes over memory. What used it is bound again by
 * heddle__bound_refresh. Between runs. */
void heddle__bound_replace(heddle__bound *b, uint32_t alloc, heddle__memory *take);

/* sides.c: changes to the other side, which begins as this one unbound; and the same as heddle__bound_replace on this
 * side alone. One thread, between runs. */
heddle_status heddle__bound_turn(heddle__bound *b, heddle_error *err);
void heddle__bound_replace_here(heddle__bound *b, uint32_t alloc, heddle__memory *take);
void heddle__bound_drop_other(heddle__bound *b);
/* Of the side that runs: frees what was bound, while its streams are there; then its memory and its arrays. */
void heddle__side_unbind(heddle__bound *b);
void heddle__side_free(heddle__bound *b);
/* Frees the handles that were derived from an allocation's memory. */
void heddle__bound_drop_derived(heddle__bound *b, uint32_t alloc);

/* The input or output lies in memory that the executor or its caller has on the device: there is no slot that the host
 * could fill. */
bool heddle__bound_is_resident(const heddle__bound *b, uint32_t alloc);
heddle_status heddle__bound_refresh(heddle__bound *b, heddle_error *err);

/* Frees the views of buffers; no launch may use one any more. */
void heddle__bound_drop_parts(heddle__bound *b);

/* What address and size of host memory must be multiples of to replace an input or output in place. */
uint64_t heddle__bound_import_align(const heddle__bound *b, uint32_t alloc);

/* New memory for an input or output, as it was at first. */
heddle_status heddle__bound_slot(heddle__bound *b, uint32_t alloc, heddle__memory **out, heddle_error *err);

/* After a failure: fences that no late signal reaches. All streams are drained. */
void heddle__bound_renew_fences(heddle__bound *b, heddle__waker *waker);

/* Whether nothing touches its memory any more; waits for each device at most timeout_ns. */
bool heddle__bound_quiet(heddle__bound *b, uint64_t timeout_ns);

/* The list of what could not be freed yet. push counts its bytes on the devices. */
heddle__bound *heddle__bound_push_orphan(heddle__bound *list, heddle__bound *take);
heddle__bound *heddle__bound_next_orphan(const heddle__bound *b);

/* launch.c: resolves the steps of a segment to actions, and records it where that can be done. */
heddle_status heddle__stretch_bind(heddle__bound *b, uint32_t segment, heddle_error *err);
void heddle__stretch_forget(heddle__bound *b, uint32_t segment); /* frees the recording */
void heddle__stretch_unbind(heddle__bound *b, uint32_t segment); /* frees launches and recording */
bool heddle__stretch_uses(const heddle__bound *b, uint32_t segment, uint32_t alloc);

/* The handle of an allocation for a device, imported on first use; offset and size as a launch that takes only whole
 * buffers wants them, where bare. */
heddle_status heddle__bound_handle(heddle__bound *b, uint32_t alloc, uint32_t device, heddle_pbuffer **out,
                                   heddle_error *err);
heddle_status heddle__bound_slice(heddle__bound *b, uint32_t instance, uint32_t device, bool bare, heddle_pslice *out,
                                  heddle_error *err);

/* launch.c: gives the launch of an action the shapes that its bound program has now. HEDDLE_EUNSUPPORTED, or what the plugin
 * says; then it is as it was. */
heddle_status heddle__action_resize(heddle__bound *b, heddle__action *action, heddle_error *err);

void heddle__action_unbind(heddle__action *action); /* frees its launch, if it has one */

/* run.c: puts one action into its stream, or does it. Used while running and while recording. */
heddle_status heddle__action_run(const heddle__line *line, const heddle__action *action, heddle_error *err);

#endif
