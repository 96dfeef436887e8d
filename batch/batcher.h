/* batch/batcher.h: what a batcher is inside: ports, requests, groups of requests that may share a run, and workers.
 * Public functions of executors, models, graphs and tensors do the work; nothing here reads their insides.
 *
 * One lock guards the queue, the states of requests and the counters. Copies and runs happen without it. A request has a
 * lock of its own for those who wait for it. Lock order: the batcher's, then a request's or an executor's own. */
#ifndef HEDDLE_BATCH_BATCHER_H
#define HEDDLE_BATCH_BATCHER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "heddle/batch.h"

enum { HEDDLE__BATCH_DIMS = 32, HEDDLE__BATCH_WORKERS = 64 };

/* ---- ports: what the model takes and gives (batch/ports.c) */

typedef struct heddle__batch_port {
  char *name;
  uint32_t index;                       /* in the executor */
  int32_t axis;                         /* the batch dimension; -1: none */
  uint32_t pad_axes;                    /* inputs: padded; outputs: cut */
  uint32_t ndim;                        /* UINT32_MAX: not known */
  heddle_dtype dtype;                   /* bits 0: not known */
  int64_t shape[HEDDLE__BATCH_DIMS];    /* -1: open */
  uint32_t symbols[HEDDLE__BATCH_DIMS]; /* of an open dimension: its name's number + 1; 0: it has none */
  /* inputs */
  double pad_value;
  int64_t pad_multiple; /* at least 1 */
  int64_t pad_max;      /* 0: no limit */
  /* outputs: which input's dimension has the length that dimension k is cut to */
  uint32_t cut_input[HEDDLE__BATCH_DIMS];
  uint32_t cut_axis[HEDDLE__BATCH_DIMS];
} heddle__batch_port;

typedef struct heddle__batch_ports {
  heddle__batch_port *inputs, *outputs; /* inputs: those that are no parameters */
  uint32_t n_inputs, n_outputs;
  uint32_t first_batched; /* an input with a batch dimension */
  uint32_t n_symbols;
  char **symbols;
  int64_t fixed; /* the batch dimension of a model that has a fixed one; else 0 */
  bool pads;     /* an input is padded */
} heddle__batch_ports;

/* Reads them from an executor and the model's graph. free takes what is half-made. */
heddle_status heddle__batch_ports_read(heddle__batch_ports *p, heddle_model *m, heddle_executor *ex,
                                       const heddle_batcher_options *o, heddle_error *err);
void heddle__batch_ports_free(heddle__batch_ports *p);

/* ---- requests (batch/request.c) */

typedef enum heddle__batch_state {
  HEDDLE__BATCH_QUEUED,
  HEDDLE__BATCH_GATHER,  /* a worker reads its inputs */
  HEDDLE__BATCH_RUNNING, /* its inputs are not needed any more, unless the run is repeated */
  HEDDLE__BATCH_SCATTER, /* a worker writes its outputs */
  HEDDLE__BATCH_DONE
} heddle__batch_state;

typedef struct heddle__batch_worker heddle__batch_worker;
typedef struct heddle__batch_group heddle__batch_group;

/* What the steps of a run took; its requests share it. Their strings follow the entries. */
typedef struct heddle__batch_steps {
  atomic_uint references;
  size_t n;
  heddle_profile_entry entries[];
} heddle__batch_steps;

struct heddle_batch_request {
  atomic_uint references;
  heddle_batcher *b;
  heddle_tensor **inputs;  /* in the order of ports; retained until it is done */
  heddle_tensor **outputs; /* the caller's, or made when the run has ended */
  int64_t *dims;           /* the value of each symbol: scratch of the check */
  int64_t items;
  int32_t priority;
  uint32_t flags;                            /* HEDDLE_BATCH_CALL_ */
  uint64_t accepted_ns, due_ns, deadline_ns; /* on the monotonic clock; UINT64_MAX: no deadline */
  uint64_t number;                           /* in the order of acceptance */
  uint64_t hash;                             /* of what a run's requests have in common */
  heddle_batch_done_fn done_fn;
  void *user;
  /* guarded by the batcher's lock */
  heddle__batch_state state;
  heddle_status stop; /* in GATHER: how it is to end */
  heddle__batch_group *group;
  heddle__batch_worker *worker;
  uint64_t taken_ns, run_ns, ran_ns, ended_ns;
  int64_t run_items, run_rows;
  heddle__batch_steps *steps;                /* a reference, or NULL */
  heddle_batch_request *next, *prev;         /* in its group, by priority */
  heddle_batch_request *next_all, *prev_all; /* of all that are not done, by number */
  heddle_batch_request *next_done;           /* a list to be finished, or of free requests */
  heddle_error err;                          /* of a result that is not HEDDLE_OK */
  /* for those who wait */
  pthread_mutex_t lock;
  pthread_cond_t ended;
  bool has_ended; /* guarded by lock */
};

/* Requests that may share a run. A group exists while it has requests. */
struct heddle__batch_group {
  heddle__batch_group *next, *prev;
  heddle_batch_request *first, *last; /* by priority */
  int64_t items;
  uint64_t due_ns; /* the earliest */
};

/* ---- workers (batch/worker.c) */

/* Memory for an input of a run, bound to the worker's executor. */
typedef struct heddle__batch_stage {
  void *data;
  uint64_t bytes;
  heddle_tensor *bound; /* over data; NULL: nothing is bound */
} heddle__batch_stage;

struct heddle__batch_worker {
  heddle_batcher *b;
  heddle_executor *ex; /* NULL: made before the next run */
  pthread_t thread;
  heddle__batch_stage *stages;    /* one an input */
  heddle_tensor **views;          /* the outputs of the run */
  heddle_batch_request **batch;   /* of the run */
  heddle_batch_request **present; /* of the batch: those that still want a result */
  uint32_t n_batch;
  uint32_t n_waited;          /* requests of the run that are not done; guarded by the batcher's lock */
  bool in_run;                /* guarded by the batcher's lock */
  heddle__batch_steps *steps; /* of the run, or NULL */
};

struct heddle_batcher {
  atomic_uint references; /* of the caller's */
  atomic_uint holds;      /* that keep the memory: the references together, and each request that somebody holds */
  heddle_model *model;
  unsigned forks; /* before it was made: a child of its process has none of its threads */
  heddle__batch_ports ports;
  uint32_t max_items, max_queue, n_workers, flags;
  uint64_t max_delay_ns, run_timeout_ns;
  heddle__batch_worker *workers;
  uint32_t n_threads; /* of the workers that were started */
  pthread_t keeper;   /* ends requests at their deadlines */
  bool has_keeper;

  pthread_mutex_t lock;
  pthread_cond_t work;  /* for workers */
  pthread_cond_t room;  /* for those who submit to a full queue */
  pthread_cond_t fewer; /* for those who drain or close */
  pthread_cond_t time;  /* for the keeper */
  bool closed;
  uint32_t drains, idle; /* how many drain; how many workers wait */
  heddle__batch_group *groups, *free_groups;
  heddle_batch_request *first, *last; /* all that have no result */
  heddle_batch_request *free;
  uint64_t numbers;
  int64_t queued, running; /* items */
  uint64_t next_deadline_ns;
  heddle_batcher_stats stats;
};

/* HEDDLE_EFORK in a child of the process that made the batcher: it has none of its threads. */
heddle_status heddle__batch_check_process(const heddle_batcher *b, heddle_error *err);

/* ---- batch/check.c: fills r->inputs, items and hash from a call, which is checked against the ports. */
heddle_status heddle__batch_check(heddle_batcher *b, const heddle_batch_call *call, heddle_batch_request *r,
                                  heddle_error *err);
/* May two requests share a run? Their hashes are equal. */
bool heddle__batch_alike(const heddle_batcher *b, const heddle_batch_request *x, const heddle_batch_request *y);

/* ---- batch/queue.c: all with the batcher's lock held */
heddle_status heddle__batch_enqueue(heddle_batcher *b, heddle_batch_request *r, heddle_error *err);
/* Takes the requests of the next run, which is due, to w->batch; 0: none is. *next_ns: when one will be. */
uint32_t heddle__batch_take(heddle_batcher *b, heddle__batch_worker *w, uint64_t now_ns, uint64_t *next_ns);
/* Gives a request its result, and puts it into a list for heddle__batch_finish. words may be NULL: they are the status's own. */
void heddle__batch_end(heddle_batch_request *r, heddle_status status, const heddle_error *words,
                       heddle_batch_request **list);
/* Ends a request before its run has: at once, or in GATHER when the worker has read its inputs. false: it gets its result
 * now, or has it. */
bool heddle__batch_stop(heddle_batch_request *r, heddle_status status, heddle_batch_request **list);

/* Without the lock: calls callbacks, wakes those who wait, and lets go of the requests. */
void heddle__batch_finish(heddle_batcher *b, heddle_batch_request *list);

/* ---- batch/request.c */
heddle_batch_request *heddle__batch_request_make(heddle_batcher *b, heddle_error *err);
void heddle__batch_request_free(heddle_batch_request *r);
/* Lets go of the tensors. */
void heddle__batch_request_clear(heddle_batch_request *r);
void heddle__batch_unhold(heddle_batcher *b);

uint64_t heddle__batch_after(uint64_t now_ns, uint64_t ns); /* saturates */

/* ---- batch/times.c */

/* Runs w->ex once and keeps what its steps took in w->steps; without memory for them, nothing. */
heddle_status heddle__batch_run_steps(heddle__batch_worker *w, heddle_error *err);
heddle__batch_steps *heddle__batch_steps_retain(heddle__batch_steps *steps);
void heddle__batch_steps_release(heddle__batch_steps *steps); /* takes NULL */

/* ---- batch/gather.c */

/* Copies the inputs of the w->present requests (n) to the stages, for `rows` items, and binds what changed. */
heddle_status heddle__batch_gather(heddle__batch_worker *w, uint32_t n, int64_t rows, heddle_error *err);
/* Copies a request's outputs, which begin at an item of a run of `rows`. */
heddle_status heddle__batch_scatter(heddle__batch_worker *w, heddle_batch_request *r, int64_t first, int64_t rows,
                                    heddle_error *err);

void heddle__batch_stage_free(heddle__batch_stage *stage);

/* ---- batch/copy.c */

/* Copies a box of elements between host memory; strides are in bytes. */
void heddle__batch_copy(char *dst, const int64_t *dst_strides, const char *src, const int64_t *src_strides,
                        const int64_t *shape, uint32_t ndim, size_t element);
/* Fills n elements with a number as a dtype has it. false: the dtype has none. */
bool heddle__batch_fill(void *dst, uint64_t n, heddle_dtype dtype, double value);

/* ---- batch/worker.c */
void *heddle__batch_work(void *worker);
void *heddle__batch_keep(void *batcher);

#endif
