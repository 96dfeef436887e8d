/* bindings/python/src/model.h: what the files on models share: the Model object, its bounded pool of executors, and how
 * a run is waited for. The GIL guards all members but those that say otherwise. */
#ifndef HEDDLE_PYTHON_MODEL_H
#define HEDDLE_PYTHON_MODEL_H

#include <pthread.h>
#include <stdbool.h>
#include <sys/types.h>

#include "module.h"

/* An input that a call gives (parameters are none), or an output. */
typedef struct port {
  PyObject *name; /* interned */
  uint32_t index; /* the executor's */
  heddle_dtype dtype;
  int typenum;  /* numpy's for that, or -1 where it has none */
  bool is_open; /* its shape is not wholly known before a run */
} port;

/* An input of one pooled executor: memory that is bound to it and that small values are copied to, or NULL, where a
 * caller's array is bound for the time of a run. */
typedef struct slot_input {
  heddle_tensor *stage;
} slot_input;

/* An output of one pooled executor: memory that is bound to it, or NULL before the first run and where the shape may
 * differ from run to run. */
typedef struct slot_output {
  heddle_tensor *stage;
} slot_output;

/* A pooled executor. The thread that has taken it is its only user. */
typedef struct slot {
  heddle_executor *ex;
  struct slot *next;
  slot_input *inputs;
  slot_output *outputs;
  bool has_run; /* its outputs have memory that stays bound, where they can */
} slot;

/* A thread that waits for an executor, on its stack; in order of arrival. */
typedef struct waiter {
  pthread_cond_t woken; /* with pool.lock */
  bool is_served;       /* pool.lock; slot NULL then means: make one */
  slot *given;
  struct waiter *next;
} waiter;

typedef struct pool {
  pthread_mutex_t lock; /* of waiters' is_served; held for moments, never while the GIL is waited for */
  slot *idle;
  uint32_t limit, made, out; /* executors at most, now, and in use (those being made too) */
  pid_t process;             /* whose threads have them */
  waiter *first, *last;
} pool;

typedef struct heddle_py_model {
  PyObject_HEAD heddle_model *m; /* NULL: closed, or never made */
  PyObject *context;
  PyObject *path; /* str; None for a graph given as text */
  char *file;     /* path for errors, or NULL */
  port *inputs, *outputs;
  uint32_t n_inputs, n_outputs;
  PyObject *input_infos, *output_infos; /* tuples of (name, shape, dtype); of open dimensions the name, or None */
  uint32_t n_nodes;
  bool has_ports; /* inputs and outputs are known */
  bool lends;     /* runs may use memory of the caller's: all devices compute on the host, and no compiled library */
  bool has_lanes; /* in_flight is more than 1: a bound output is for every N-th run only */
  bool is_closed;
  pool pool;
} heddle_py_model;

/* A value that a call gives to an input: a tensor (with a reference), or where t is NULL an array's memory. */
typedef struct source {
  PyObject *object; /* what was given; a reference */
  heddle_tensor *t;
  void *data;
  const int64_t *shape;
  uint32_t ndim;
  uint64_t bytes;
} source;

/* ---- run.c: runs with the GIL given up; signals are looked after while one lasts */

/* Runs, or waits for a run that was started, at most timeout_ns. After a signal whose handler raised, the run is
 * cancelled. HEDDLE_OK, or the status with an exception (HEDDLE_ECANCELED after a signal); is_over says whether nothing
 * is pending any more. */
heddle_status heddle_py_run(heddle_executor *ex, bool start, uint64_t timeout_ns, const char *file, bool *is_over);

/* Cancels what is pending and waits for its end for a moment; returns whether it has ended. Keeps an exception. */
bool heddle_py_cancel(heddle_executor *ex);

/* A number of seconds, or None, as nanoseconds. 0, or -1 with an exception. */
int heddle_py_timeout(PyObject *seconds, uint64_t *out);

/* ---- pool.c */

int heddle_py_pool_init(pool *p, uint32_t limit);
void heddle_py_pool_free(pool *p); /* nothing of it is in use */

/* An executor for the caller alone, waiting for one without the GIL where all are in use; NULL with an exception. The
 * ports are known then. */
slot *heddle_py_pool_take(heddle_py_model *model);

/* Gives it back; is_sound false: it is released instead, and the next who needs one makes one. Keeps an exception. */
void heddle_py_pool_give(heddle_py_model *model, slot *s, bool is_sound);

/* Sets the exception of a model that is closed; gives NULL. */
PyObject *heddle_py_say_closed(const heddle_py_model *model);

/* Releases the C model of one that is closed, once no executor is in use. */
void heddle_py_pool_drop_model(heddle_py_model *model);

/* Releases those that are not in use; returns how many. */
uint32_t heddle_py_pool_trim(heddle_py_model *model);

/* ---- ports.c */

/* Learns the inputs and outputs from an executor that was never used. 0, or -1 with an exception. */
int heddle_py_ports_learn(heddle_py_model *model, heddle_executor *ex);
void heddle_py_ports_free(port *ports, uint32_t n);
int heddle_py_ports_need(heddle_py_model *model);               /* makes an executor where none was made: 0, or -1 */
PyObject *heddle_py_shape(const int64_t *shape, uint32_t ndim); /* a tuple, None in it for -1; None for UINT32_MAX */
PyObject *heddle_py_names(const port *ports, uint32_t n);

/* The position of an input by its name, or -1, without an exception. */
int32_t heddle_py_port_find(const port *ports, uint32_t n, PyObject *name);

/* ---- words.c: exceptions that are about one input or output */

/* With words of printf's, behind the model's file. */
void heddle_py_fail_input(const heddle_py_model *model, heddle_status status, PyObject *name, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

void heddle_py_say_missing(const heddle_py_model *model, PyObject *name);
void heddle_py_say_unknown(const heddle_py_model *model, PyObject *name);
void heddle_py_say_unknown_output(const heddle_py_model *model, PyObject *name);

/* The attribute node of the present exception, if it is a heddle.Error whose words name none. */
void heddle_py_set_node(PyObject *name);

/* Makes the present exception one about an input: its name is in front of the words and is the attribute node. */
void heddle_py_about_input(const heddle_py_model *model, PyObject *name);

/* ---- call.c */

PyObject *heddle_py_model_call(PyObject *self, PyObject *args, PyObject *kwargs); /* tp_call */
PyObject *heddle_py_model_run(PyObject *self, PyObject *inputs, uint64_t timeout_ns);

/* A list of arrays: of the outputs that a list or tuple names, in its order, or of all where it is None or empty. */
PyObject *heddle_py_model_run_list(PyObject *self, PyObject *outputs, PyObject *inputs, uint64_t timeout_ns);

/* ---- executor.c */

/* An Executor of the model's, not of its pool; takes over the reference m, also on failure. */
PyObject *heddle_py_executor_new(heddle_py_model *model, heddle_model *m);

/* When the interpreter ends: cancels runs that were started and not waited for, and waits for their end for a moment. */
void heddle_py_executors_cancel(void);
void heddle_py_executors_forget(void); /* in a forked child: those that there are have runs of the parent only */

/* ---- batcher.c */

/* A Batcher of a model with the tuple of options that heddle.Batcher gives; takes over the reference m, also on failure. */
PyObject *heddle_py_batcher_new(heddle_py_model *model, heddle_model *m, PyObject *args);

/* ---- model.c */

/* The text of a call that gave one, which is freed; else its exception, and NULL. */
PyObject *heddle_py_take_text(heddle_status s, char *text, const heddle_error *err, const char *file);

/* "text", "json" or "dot"; NULL: text. 0, or -1 with an exception. */
int heddle_py_explain_format(PyObject *word, heddle_explain_format *out);

#endif
