/* executor/model.h: the model as the executor's files see it, and how a program's request is made of it.
 * Immutable after creation but for what its lock guards. */
#ifndef HEDDLE_EXECUTOR_MODEL_H
#define HEDDLE_EXECUTOR_MODEL_H

#include <pthread.h>

#include "executor/constants.h"
#include "executor/plan.h"
#include "heddle/executor.h"

struct heddle__program;
struct heddle__bound;

/* A maximum of the options, of one dimension of an input: most.h. */
typedef struct heddle__most {
  uint32_t arg, dim;
  int64_t most;
} heddle__most;

struct heddle_model {
  atomic_uint references;
  heddle_context *ctx;
  heddle_graph *graph;
  heddle_params *params;     /* may be NULL */
  heddle_module *library;    /* may be NULL */
  heddle__foreign *foreigns; /* with library: one per device */
  heddle__tvm_caller *callers;
  heddle_device **devices; /* in order of preference */
  heddle__rule *rules;     /* pattern and text are owned */
  heddle__keep *keep;
  const heddle__constant **constants; /* per graph->args: the bytes given at creation, or NULL */
  bool *feeds;                        /* per graph->args: its value decides shapes */
  const char *devices_from;           /* borrowed from the context */
  char *left_out;                     /* what the list of devices lacks (heddle_context_left_out) */
  uint32_t n_devices, n_rules, n_keep;
  uint32_t flags;
  uint32_t max_streams;
  uint32_t max_programs;
  uint32_t in_flight; /* at least 1 */
  bool ranges;        /* programs may cover ranges of shapes: range.h */
  uint64_t upload_timeout_ns;
  uint64_t plan_timeout_ns;      /* HEDDLE_FOREVER: none */
  uint64_t *limits;              /* NULL, or one per device; budget.h */
  char *limits_text;             /* as the call gave them; NULL: it gave none */
  const char *limits_from;       /* borrowed from the context */
  struct heddle__placer *placer; /* NULL: by rules, annotations and preference alone */
  struct heddle__stages *stages; /* NULL: one program runs all of it. stages.h */
  struct heddle__spread *spread; /* of a context of several ranks (executor/ranks/spread.h); NULL */
  heddle__optimized *optimized;  /* NULL: and so it is where nothing was to be done */
  char *on_failure;              /* the policy on failed runs (survive.h); NULL: they are errors */
  char *state;                   /* what the call said of state values, or NULL */
  heddle__tie *ties;             /* which they are: ties.h */
  uint32_t n_ties;
  heddle__most *most; /* maxima of dimensions */
  uint32_t n_most;
  char *wish;                      /* with a policy: what the call said of optimisations, or NULL */
  uint32_t retries;                /* 0: the policy is failover */
  bool is_part;                    /* of a stage; rules of settings are those of the whole */
  bool is_spare, is_small;         /* made to run without lost devices; to take less memory */
  struct heddle_model *next_spare; /* in the list of the model that it takes the place of */
  atomic_uint growths;             /* programs for bounds that were planned */
  atomic_uint range_failures;      /* bounds in a row that could not be planned for */
  atomic_uint users;               /* executors that run it, and plans in the making */
  bool has_lock;
  pthread_mutex_t lock;                 /* guards what follows; a leaf: no plugin is called with it held */
  struct heddle__program *programs;     /* last used first */
  struct heddle__precedent *precedents; /* what plans found, by classes of shapes; last made first */
  struct heddle__bound *orphans;        /* what hung streams may still touch */
  heddle__packed *packed;
  heddle_device **opened; /* each once, until the model ends */
  uint32_t n_opened;
  struct heddle__carriage *carriage; /* prepared.h; or NULL */
  struct heddle_model *spares;       /* models that take the place of this one, for executors whose devices failed */
};

/* heddle_model_create; is_part: of a stage of another model, for this process alone. */
heddle_status heddle__model_make(heddle_context *ctx, const heddle_graph *graph, const heddle_params *params,
                                 const heddle_model_options *options, bool is_part, heddle_model **out,
                                 heddle_error *err);

/* When a plan that begins now is to have ended; HEDDLE_FOREVER: no limit. */
uint64_t heddle__model_plan_deadline(const heddle_model *m);

/* What a program is to be made for: by position in graph->args. */
typedef struct heddle__wish {
  const heddle_tensor *const *values; /* what was set; NULL where nothing was */
  const bool *late;                   /* a constant that this executor sets itself */
  const heddle__keep *target;         /* plan only what this value needs, and give it; NULL: the graph's outputs */
  bool to_most;                     /* dimensions with a maximum have that, as the first program for a range has them */
  bool exact;                       /* a program for these shapes alone: range.h */
  const heddle_tensor *const *lent; /* per output: what is bound to it, or NULL; NULL: to none */
} heddle__wish;

/* A request with all that it points to, and the bytes that tell it from others. */
typedef struct heddle__order {
  heddle__request req;
  heddle_graph view; /* the graph with other heads, where the wish has a target */
  heddle__entry head;
  heddle__plan_input *inputs;
  uint32_t *homes; /* of outputs */
  uint32_t n_homes;
  void **copies; /* per arg: the bytes of an input that feeds shapes, or NULL */
  unsigned char *key;
  size_t key_bytes;
  unsigned char *class_key; /* of the class of shapes: precedent.h */
  size_t class_bytes;
  uint32_t n_args;
} heddle__order;

/* HEDDLE_EINVAL, naming the input, for a shape that does not fit what the graph says, and for a symbol with two values.
 * *out is freed with heddle__order_free. Any thread. */
heddle_status heddle__order_make(heddle_model *m, const heddle__wish *wish, heddle__order **out, heddle_error *err);
void heddle__order_free(heddle__order *order); /* takes NULL */
/* After a change of its inputs' shapes: their sizes, and the keys, anew. */
heddle_status heddle__order_renew(heddle__order *order, const heddle__wish *wish, heddle_error *err);

/* An input of a plan that is a constant. */
void heddle__plan_constant(heddle__plan_input *in, const heddle__constant *c);

/* 1 + the position among the model's devices of that in whose memory a tensor lies, where a plan can use it there; 0: on
 * the host, or elsewhere. */
uint32_t heddle__model_home(const heddle_model *m, const heddle_tensor *t);

/* The state value whose input it is; NULL: it is none. */
static inline const heddle__tie *heddle__model_tie(const heddle_model *m, uint32_t arg) {
  for (uint32_t i = 0; i < m->n_ties; i++)
    if (m->ties[i].arg == arg) return &m->ties[i];
  return NULL;
}
static inline const heddle__tie *heddle__model_tied_output(const heddle_model *m, uint32_t output) {
  for (uint32_t i = 0; i < m->n_ties; i++)
    if (m->ties[i].output == output) return &m->ties[i];
  return NULL;
}

/* Which input stands in the way of planning now: HEDDLE__NONE, or a needed one that has no shape or no value yet. */
heddle_status heddle__order_lacks(const heddle_model *m, const heddle__wish *wish, uint32_t *arg, heddle_error *err);

/* Whether dtype and shape of a tensor fit what the graph says of an input; HEDDLE_EINVAL with both in the text. */
heddle_status heddle__model_fits(const heddle_model *m, uint32_t arg, heddle_dtype dtype, uint32_t ndim,
                                 const int64_t *shape, heddle_error *err);

/* HEDDLE_ENOTFOUND for a name that is no input; the text lists the inputs, parameters last and only counted. */
heddle_status heddle__model_no_input(const heddle_model *m, const char *name, heddle_error *err);

/* The node of an input. */
static inline const heddle__node *heddle__model_arg(const heddle_model *m, uint32_t arg) {
  return &m->graph->nodes[m->graph->args[arg]];
}

/* The program for a wish, from the cache or made now; *out has a reference. Devices are opened. Any thread; blocks. */
heddle_status heddle__model_program(heddle_model *m, const heddle__wish *wish, struct heddle__program **out,
                                    heddle_error *err);

/* Takes a program into the cache; gives it, or the one that was there for its key, with a reference; exact as in the wish.
 * Any thread. */
struct heddle__program *heddle__model_keep(heddle_model *m, struct heddle__program *take, bool exact);

/* Opens a device for the life of the model. Any thread. */
heddle_status heddle__model_open(heddle_model *m, heddle_device *dev, heddle_error *err);

/* Keeps what a hung stream may touch, and frees of what was kept that which nothing touches any more. take: owned. */
void heddle__model_keep_orphan(heddle_model *m, struct heddle__bound *take);
void heddle__model_retry_orphans(heddle_model *m);
/* Bytes that are kept so, those of the models that took its place included. Any thread. */
uint64_t heddle__model_orphan_bytes(heddle_model *m);

/* "NAME", "NAME:OUTPUT" or "#ID[:OUTPUT]" as a value of the graph. HEDDLE_ENOTFOUND, HEDDLE_EINVAL. */
heddle_status heddle__model_find(const heddle_graph *g, const char *text, heddle__keep *out, heddle_error *err);

#endif
