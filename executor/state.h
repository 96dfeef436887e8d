/* executor/state.h: an executor as its files see it: what was set, what is bound, and the drive.
 * One thread at a time, but for the drive and what its callback writes. */
#ifndef HEDDLE_EXECUTOR_STATE_H
#define HEDDLE_EXECUTOR_STATE_H

#include "executor/drive.h"
#include "executor/profile.h"

typedef struct heddle__states heddle__states;
typedef struct heddle__chain heddle__chain;

/* An input as the caller left it. */
typedef struct heddle__arg {
  heddle_tensor *value; /* NULL: never set, or the model's constant. Its memory is a slot's, a copy, or the caller's */
  bool lent;            /* value is the caller's memory, or another executor's: to be used itself */
  bool late;            /* a constant of the model that this executor sets */
  bool is_param;        /* came with load_params or share_params */
  uint32_t state;       /* 1 + its number among the state values; 0: it is none */
  int64_t shape[HEDDLE__MAX_NDIM]; /* what input_info points to */
} heddle__arg;

typedef struct heddle__result {
  char *name;
  heddle_tensor *lent; /* what bind_output gave, or NULL */
  uint32_t state;      /* as of heddle__arg */
  int64_t shape[HEDDLE__MAX_NDIM];
} heddle__result;

struct heddle_executor {
  atomic_uint references;
  heddle_model *model;
  heddle_model *active;                /* whose programs it runs: model, or one of its spares after a device failed */
  const struct heddle__course *course; /* course.h: what its calls do */
  struct heddle__flight *flight;       /* flight.c's: of a shell, of which nothing below is used but the counts */
  struct heddle__flight *lane_of;      /* NULL: this is no lane */
  uint32_t lane;                       /* its number */
  heddle__arg *args;
  heddle__result *results;
  uint32_t n_args, n_results;
  heddle__bound *bound;            /* NULL until planned */
  uint32_t tries;                  /* what was done about failures of the present run; survive.h */
  bool stale;                      /* plan and bind again before the next run */
  bool copies_in;                  /* some input's lent memory is copied before each run */
  bool lent_shapes;                /* some input's lent memory decides shapes: it is read again before each run */
  uint32_t unset;                  /* an input that the program needs and that is not set; HEDDLE__NONE: none */
  heddle__states *states;          /* states.h: outputs that are inputs of the next run; NULL: there is none */
  heddle__chain *chain;            /* chain.h: the order beside others' work on the same devices; NULL: there is none */
  struct heddle__objects *objects; /* texts and sequences of a run, objects.h; NULL: there are none */
  bool lent_objects;               /* they are an outer executor's */
  struct heddle__staged *staged;   /* stages.c's: of a model in stages; then bound stays NULL */
  heddle__drive drive;
  heddle__profile *profile; /* of bound; made when first needed */
  bool tracing;             /* the pending run is timed for the context's trace */
  uint64_t began_ns;        /* with tracing */
  heddle_error dead_words;  /* written before dead */
  atomic_int dead;          /* HEDDLE_OK, or what every call answers */
  atomic_bool has_outputs;
  struct heddle__sizes *sizes; /* sizes.h: of the bound program's root; NULL: there are none */
  const void *unlisted;        /* a root that has none; to compare alone */
  const void *last_root;       /* the program for bounds that the last size was of; to compare alone */
  atomic_ullong runs, copies, bytes_copied, replays, retries, failovers, growths;
};

/* HEDDLE_EINVAL for NULL, HEDDLE_EFORK, what made the executor dead, HEDDLE_EBUSY while a run is pending. */
heddle_status heddle__executor_check(heddle_executor *ex, heddle_error *err);

/* One that is no shell, whatever the model says of runs in flight. */
heddle_status heddle__executor_single(heddle_model *m, heddle_executor **out, heddle_error *err);

/* rebind.c: plans, binds and fills where something changed; then the executor can run, unless an input is unset. */
heddle_status heddle__executor_prepare(heddle_executor *ex, heddle_error *err);

/* The same once, whatever the policy on failures says; with a run pending by its driver alone. */
heddle_status heddle__executor_plan(heddle_executor *ex, heddle_error *err);

/* Brings the value of an input, or of all (HEDDLE__NONE), to its slots; keep: the slot becomes the value. */
heddle_status heddle__executor_fill(heddle_executor *ex, heddle__bound *b, uint32_t arg, bool keep, heddle_error *err);
/* Brings lent memory of an output, or of all, to bear. */
heddle_status heddle__executor_lend(heddle_executor *ex, heddle__bound *b, uint32_t output, heddle_error *err);

/* HEDDLE_EINVAL where the tensor that is bound to an output is of another form than what comes out. */
heddle_status heddle__executor_check_lent(const heddle_executor *ex, uint32_t output, heddle_dtype dtype, uint32_t ndim,
                                          const int64_t *shape, heddle_error *err);
/* Whether the bound program has the output where the tensor (NULL: none) would have it. */
bool heddle__executor_is_home(const heddle_executor *ex, uint32_t output, const heddle_tensor *t);
/* Lent inputs that are not used in place, before a run. */
heddle_status heddle__executor_copy_in(heddle_executor *ex, heddle__bound *b, heddle_error *err);

/* The wish for the present inputs; values and late are arrays that the caller frees with heddle__free. */
heddle_status heddle__executor_wish(heddle_executor *ex, heddle__wish *out, heddle_error *err);
void heddle__wish_free(heddle__wish *wish);

/* Which input of a bound program was never set; HEDDLE__NONE: none. HEDDLE_EINVAL names it. */
uint32_t heddle__executor_unset(const heddle_executor *ex, const heddle__bound *b);
heddle_status heddle__executor_say_unset(const heddle_executor *ex, uint32_t arg, heddle_error *err);

/* ports.c: sets an input; how says what becomes of the tensor. */
typedef enum heddle__how { HEDDLE__COPY, HEDDLE__LEND } heddle__how;
heddle_status heddle__executor_set(heddle_executor *ex, uint32_t arg, heddle_tensor *value, heddle__how how,
                                   heddle_error *err);

/* HEDDLE_EINVAL where runs write to the memory of a tensor that is to be lent to an input. */
heddle_status heddle__executor_check_read(heddle_executor *ex, uint32_t arg, const heddle_tensor *t, heddle_error *err);

/* Whether lent memory that decides shapes holds other values than were planned for: then the executor is stale. */
void heddle__executor_reread(heddle_executor *ex);

/* The dtype and shape of an output in the bound program. */
static inline const heddle__known *heddle__bound_output(const heddle__bound *b, uint32_t output) {
  const heddle__plan *plan = b->program->plan;
  return &plan->values[plan->outputs[output].value].known;
}
heddle__port *heddle__bound_output_port(heddle__bound *b, uint32_t output);

#endif
