/* bindings/python/src/batcher.c: the types Batcher and BatchRequest. What ends is put into a list by threads that do not know
 * Python; a thread of Python's takes it from there (Batcher.next) and resolves futures. */
#include <stdlib.h>
#include <unistd.h>

#include "executor.h"
#include "model.h"

#define SLICE_NS UINT64_C(100000000) /* how long a signal may have to wait */
#define ROOM 8                       /* inputs that need no heap */

typedef struct input {
  PyObject *name; /* interned */
  heddle_dtype dtype;
} input;

struct request;

typedef struct batcher {
  PyObject_HEAD heddle_batcher *b;
  heddle_py_model *model;
  input *inputs;
  uint32_t n_inputs, n_outputs;
  pid_t process;            /* which made it; a forked child finds lock and condition as its threads had them */
  bool has_lock, is_closed; /* lock guards is_closed and the list */
  pthread_mutex_t lock;
  pthread_cond_t some;
  struct request *first, *last; /* that have ended and are to be taken, each with a reference */
} batcher;

typedef struct request {
  PyObject_HEAD heddle_batch_request *r;
  batcher *owner;  /* a reference */
  PyObject *token; /* of the caller's; a request with one is given to `next` when it has ended. NULL: none */
  struct request *next;
} request;

static PyTypeObject *batcher_type, *request_type;

static batcher *batcher_of(PyObject *self) {
  return (batcher *)self;
}

static request *request_of(PyObject *self) {
  return (request *)self;
}

static PyObject *new_of(PyTypeObject *type) {
  return HEDDLE_PY_FUNCTION(allocfunc, PyType_GetSlot(type, Py_tp_alloc))(type, 0);
}

/* ---- made and ended */

static int learn_inputs(batcher *self, heddle_model *m) {
  const heddle_graph *g = heddle_model_graph(m);
  while (heddle_batcher_input_name(self->b, self->n_inputs) != NULL) self->n_inputs++;
  while (heddle_batcher_output_name(self->b, self->n_outputs) != NULL) self->n_outputs++;
  self->inputs = calloc(self->n_inputs + 1, sizeof *self->inputs);
  if (self->inputs == NULL) {
    PyErr_NoMemory();
    return -1;
  }
  for (uint32_t i = 0; i < self->n_inputs; i++) {
    self->inputs[i].name = PyUnicode_InternFromString(heddle_batcher_input_name(self->b, i));
    if (self->inputs[i].name == NULL) return -1;
    for (uint32_t k = 0; k < heddle_graph_input_count(g); k++) {
      heddle_value_info v = {.struct_size = sizeof v};
      if (heddle_graph_input(g, k, &v, NULL) == HEDDLE_OK &&
          PyUnicode_CompareWithASCIIString(self->inputs[i].name, v.name) == 0)
        self->inputs[i].dtype = v.dtype;
    }
  }
  return 0;
}

/* (name, axis, pad_axes, pad_value, pad_multiple, pad_max, pad_input or None) of each port; to be freed. */
static heddle_batch_port *ports_of(PyObject *list, size_t *n) {
  const Py_ssize_t count = PyList_Size(list);
  if (count < 0) return NULL;
  heddle_batch_port *ports = calloc((size_t)count + 1, sizeof *ports);
  if (ports == NULL) PyErr_NoMemory();
  for (Py_ssize_t i = 0; ports != NULL && i < count; i++) {
    heddle_batch_port *p = &ports[i];
    unsigned int pad_axes, pad_multiple;
    int axis;
    long long pad_max;
    if (!PyArg_ParseTuple(PyList_GetItem(list, i), "siIdILz", &p->name, &axis, &pad_axes, &p->pad_value, &pad_multiple,
                          &pad_max, &p->pad_input)) {
      free(ports);
      return NULL;
    }
    p->axis = axis, p->pad_axes = pad_axes, p->pad_multiple = pad_multiple, p->pad_max = pad_max;
  }
  *n = (size_t)count;
  return ports;
}

static int make(batcher *self, heddle_model *m, PyObject *args) {
  heddle_batcher_options o = {.struct_size = sizeof o};
  unsigned int max_items, max_queue, workers, flags;
  unsigned long long delay_ns, run_timeout_ns;
  PyObject *inputs, *outputs;
  heddle_error err;
  heddle_status s;
  if (!PyArg_ParseTuple(args, "IIIIKKO!O!", &max_items, &max_queue, &workers, &flags, &delay_ns, &run_timeout_ns,
                        &PyList_Type, &inputs, &PyList_Type, &outputs))
    return -1;
  if (pthread_mutex_init(&self->lock, NULL) != 0 || pthread_cond_init(&self->some, NULL) != 0) {
    PyErr_NoMemory();
    return -1;
  }
  self->has_lock = true;
  self->process = getpid();
  o.max_items = max_items, o.max_queue = max_queue, o.workers = workers, o.flags = flags;
  o.max_delay_ns = delay_ns, o.run_timeout_ns = run_timeout_ns;
  heddle_batch_port *in = ports_of(inputs, &o.n_inputs), *out = in != NULL ? ports_of(outputs, &o.n_outputs) : NULL;
  o.inputs = in, o.outputs = out;
  if (out == NULL) {
    free(in);
    return -1;
  }
  Py_BEGIN_ALLOW_THREADS;
  s = heddle_batcher_create(m, &o, &self->b, &err);
  Py_END_ALLOW_THREADS;
  free(in);
  free(out);
  if (s == HEDDLE_OK) return learn_inputs(self, m);
  heddle_py_fail(s, &err, self->model->file);
  return -1;
}

PyObject *heddle_py_batcher_new(heddle_py_model *model, heddle_model *m, PyObject *args) {
  PyObject *self = new_of(batcher_type);
  if (self != NULL) {
    batcher_of(self)->model = (heddle_py_model *)Py_NewRef((PyObject *)model);
    if (make(batcher_of(self), m, args) < 0) Py_CLEAR(self);
  }
  heddle_model_release(m);
  return self;
}

static int traverse(PyObject *self, visitproc visit, void *arg) {
  Py_VISIT(Py_TYPE(self));
  Py_VISIT((PyObject *)batcher_of(self)->model);
  return 0;
}

/* Requests hold their batcher: none is left, neither in the list. */
static void dealloc(PyObject *object) {
  batcher *self = batcher_of(object);
  PyObject *kind, *value, *trace;
  PyObject_GC_UnTrack(object);
  PyErr_Fetch(&kind, &value, &trace);
  Py_BEGIN_ALLOW_THREADS;
  heddle_batcher_release(self->b);
  Py_END_ALLOW_THREADS;
  if (self->has_lock && self->process == getpid()) {
    pthread_cond_destroy(&self->some);
    pthread_mutex_destroy(&self->lock);
  }
  for (uint32_t i = 0; i < self->n_inputs && self->inputs != NULL; i++) Py_XDECREF(self->inputs[i].name);
  free(self->inputs);
  heddle_py_drop_let_go();
  Py_XDECREF((PyObject *)self->model);
  PyErr_Restore(kind, value, trace);
  heddle_py_free(object);
}

/* ---- requests */

/* On a thread of the batcher's, or of one that cancels; with the GIL or without it. */
static void note_end(void *user, heddle_batch_request *r, heddle_status s, const heddle_error *err) {
  request *ended = user;
  batcher *b = ended->owner;
  (void)r, (void)s, (void)err;
  pthread_mutex_lock(&b->lock);
  ended->next = NULL;
  if (b->last != NULL) b->last->next = ended;
  else b->first = ended;
  b->last = ended;
  pthread_cond_signal(&b->some);
  pthread_mutex_unlock(&b->lock);
}

static void request_dealloc(PyObject *object) {
  request *self = request_of(object);
  heddle_py_release_begin();
  heddle_batch_request_release(self->r);
  heddle_py_release_end();
  Py_XDECREF(self->token);
  Py_XDECREF((PyObject *)self->owner);
  heddle_py_free(object);
}

static int say_name(const batcher *self, const char *what, PyObject *name, heddle_status status) {
  const char *text = PyUnicode_Check(name) ? PyUnicode_AsUTF8AndSize(name, NULL) : "?";
  if (text != NULL)
    heddle_py_fail_words(status, "%.200s: %s '%.200s'", self->model->file != NULL ? self->model->file : "graph", what,
                         text);
  return -1;
}

/* The tensors of a dict of inputs. 0, or -1 with an exception; what was made is to be released. */
static int tensors_of(const batcher *self, PyObject *given, heddle_tensor **tensors) {
  Py_ssize_t at = 0;
  PyObject *name, *value;
  for (uint32_t i = 0; i < self->n_inputs; i++) {
    value = PyDict_GetItemWithError(given, self->inputs[i].name);
    if (value == NULL)
      return PyErr_Occurred() ? -1 : say_name(self, "a request lacks the input", self->inputs[i].name, HEDDLE_EINVAL);
    if (heddle_py_tensor_of(value, self->inputs[i].dtype.bits != 0 ? &self->inputs[i].dtype : NULL, &tensors[i]) < 0) {
      tensors[i] = NULL;
      heddle_py_about_input(self->model, self->inputs[i].name);
      return -1;
    }
  }
  while (PyDict_Size(given) > (Py_ssize_t)self->n_inputs && PyDict_Next(given, &at, &name, &value)) {
    uint32_t i = 0;
    while (i < self->n_inputs && PyObject_RichCompareBool(self->inputs[i].name, name, Py_EQ) == 0) i++;
    if (i == self->n_inputs) return say_name(self, "there is no input", name, HEDDLE_ENOTFOUND);
  }
  return 0;
}

static heddle_status submit_c(batcher *self, const heddle_batch_call *c, heddle_batch_request **out,
                              heddle_error *err) {
  heddle_status s;
  if (c->done != NULL)
    return heddle_batcher_submit(self->b, c, out, err); /* `next` is called with the GIL: out is set then */
  Py_BEGIN_ALLOW_THREADS;
  s = heddle_batcher_submit(self->b, c, out, err);
  Py_END_ALLOW_THREADS;
  return s;
}

/* Waits for room in the queue, and looks after signals meanwhile. */
static heddle_status submit_slices(batcher *self, heddle_batch_call *c, heddle_batch_request **out, heddle_error *err) {
  uint64_t left_ns = c->wait_ns;
  for (;;) {
    c->wait_ns = left_ns < SLICE_NS ? left_ns : SLICE_NS;
    heddle_status s = submit_c(self, c, out, err);
    if (s != HEDDLE_EBUSY || left_ns <= SLICE_NS) return s;
    if (left_ns != HEDDLE_FOREVER) left_ns -= SLICE_NS;
    if (PyErr_CheckSignals() < 0) return HEDDLE_ECANCELED;
  }
}

static PyObject *submit(PyObject *object, PyObject *args) {
  batcher *self = batcher_of(object);
  heddle_tensor *room[ROOM] = {NULL}, **tensors = room;
  PyObject *given;
  unsigned long long deadline_ns, wait_ns;
  PyObject *token;
  int priority, with_steps = 0;
  heddle_error err = {0};
  if (!PyArg_ParseTuple(args, "O!iKKO|p", &PyDict_Type, &given, &priority, &deadline_ns, &wait_ns, &token, &with_steps))
    return NULL;
  const bool notifies = token != Py_None;
  if (self->n_inputs > ROOM) tensors = calloc(self->n_inputs, sizeof(heddle_tensor *));
  request *made = tensors != NULL ? request_of(new_of(request_type)) : NULL;
  if (tensors == NULL) return PyErr_NoMemory();
  if (made != NULL) made->owner = batcher_of(Py_NewRef(object));
  if (made != NULL && notifies) made->token = Py_NewRef(token);
  if (made != NULL && tensors_of(self, given, tensors) == 0) {
    heddle_batch_call c = {.struct_size = sizeof c, .inputs = tensors, .n_inputs = self->n_inputs};
    c.flags = with_steps ? HEDDLE_BATCH_CALL_STEPS : 0;
    c.priority = priority, c.deadline_ns = deadline_ns, c.wait_ns = notifies ? 0 : wait_ns;
    if (notifies) c.done = note_end, c.user = Py_NewRef((PyObject *)made);
    heddle_status s = submit_slices(self, &c, &made->r, &err);
    if (s != HEDDLE_OK && notifies) Py_DECREF((PyObject *)made);
    if (s != HEDDLE_OK && !PyErr_Occurred()) heddle_py_fail(s, &err, self->model->file);
  }
  for (uint32_t i = 0; i < self->n_inputs; i++) heddle_py_tensor_release(tensors[i]);
  if (tensors != room) free(tensors);
  if (PyErr_Occurred()) Py_CLEAR(made);
  heddle_py_drop_let_go();
  return (PyObject *)made;
}

static PyObject *outputs_of(request *self) {
  const uint32_t n = self->owner->n_outputs;
  PyObject *all = PyTuple_New((Py_ssize_t)n);
  for (uint32_t i = 0; all != NULL && i < n; i++) {
    heddle_tensor *t = NULL;
    heddle_error err;
    const heddle_status s = heddle_batch_request_output(self->r, i, &t, &err);
    PyObject *owner = s == HEDDLE_OK ? heddle_py_tensor_new(t) : heddle_py_fail(s, &err, NULL);
    PyObject *array = owner != NULL ? heddle_py_array_view(t, owner, 0) : NULL;
    Py_XDECREF(owner);
    if (array == NULL) Py_CLEAR(all);
    else PyTuple_SetItem(all, (Py_ssize_t)i, array);
  }
  return all;
}

/* The result, waited for; a signal whose handler raises cancels the request. */
static PyObject *result(PyObject *object, PyObject *none) {
  request *self = request_of(object);
  heddle_error err;
  heddle_status s;
  (void)none;
  for (;;) {
    Py_BEGIN_ALLOW_THREADS;
    s = heddle_batch_request_wait(self->r, SLICE_NS, &err);
    Py_END_ALLOW_THREADS;
    if (s != HEDDLE_EBUSY) break;
    if (PyErr_CheckSignals() == 0) continue;
    Py_BEGIN_ALLOW_THREADS;
    heddle_batch_request_cancel(self->r);
    Py_END_ALLOW_THREADS;
    return NULL;
  }
  heddle_py_drop_let_go();
  return s == HEDDLE_OK ? outputs_of(self) : heddle_py_fail(s, &err, self->owner->model->file);
}

static PyObject *cancel(PyObject *object, PyObject *none) {
  heddle_status s;
  (void)none;
  Py_BEGIN_ALLOW_THREADS;
  s = heddle_batch_request_cancel(request_of(object)->r);
  Py_END_ALLOW_THREADS;
  return PyBool_FromLong(s == HEDDLE_OK);
}

static PyObject *times(PyObject *object, PyObject *none) {
  heddle_batch_times t = {.struct_size = sizeof t};
  heddle_error err;
  (void)none;
  const heddle_status s = heddle_batch_request_times(request_of(object)->r, &t, &err);
  if (s != HEDDLE_OK) return heddle_py_fail(s, &err, request_of(object)->owner->model->file);
  PyObject *steps = heddle_py_profile_rows(t.steps, t.n_steps);
  if (steps == NULL) return NULL;
#define TIME(name) #name, (unsigned long long)t.name
  return Py_BuildValue("{s:K,s:K,s:K,s:K,s:K,s:K,s:K,s:N}", TIME(accepted_ns), TIME(taken_ns), TIME(run_ns),
                       TIME(ran_ns), TIME(ended_ns), TIME(items), TIME(rows), "steps", steps);
}

/* ---- what has ended */

static PyObject *next_ended(PyObject *object, PyObject *none) {
  batcher *self = batcher_of(object);
  request *first;
  (void)none;
  Py_BEGIN_ALLOW_THREADS;
  pthread_mutex_lock(&self->lock);
  while (self->first == NULL && !self->is_closed) pthread_cond_wait(&self->some, &self->lock);
  first = self->first;
  self->first = self->last = NULL;
  pthread_mutex_unlock(&self->lock);
  Py_END_ALLOW_THREADS;
  if (first == NULL) Py_RETURN_NONE;
  PyObject *list = PyList_New(0);
  while (first != NULL) {
    request *r = first;
    first = r->next;
    if (list != NULL && PyList_Append(list, (PyObject *)r) < 0) Py_CLEAR(list);
    Py_DECREF((PyObject *)r);
  }
  return list;
}

static PyObject *done(const batcher *self, heddle_status s, const heddle_error *err) {
  return s == HEDDLE_OK ? Py_NewRef(Py_None) : heddle_py_fail(s, err, self->model->file);
}

static PyObject *drain(PyObject *object, PyObject *args) {
  unsigned long long timeout_ns;
  heddle_error err;
  heddle_status s;
  if (!PyArg_ParseTuple(args, "K", &timeout_ns)) return NULL;
  Py_BEGIN_ALLOW_THREADS;
  s = heddle_batcher_drain(batcher_of(object)->b, timeout_ns, &err);
  Py_END_ALLOW_THREADS;
  return done(batcher_of(object), s, &err);
}

static PyObject *close_it(PyObject *object, PyObject *args) {
  batcher *self = batcher_of(object);
  unsigned long long timeout_ns;
  heddle_error err;
  heddle_status s;
  int cancels;
  if (!PyArg_ParseTuple(args, "pK", &cancels, &timeout_ns)) return NULL;
  Py_BEGIN_ALLOW_THREADS;
  s = heddle_batcher_close(self->b, cancels, timeout_ns, &err);
  if (s == HEDDLE_OK) {
    pthread_mutex_lock(&self->lock);
    self->is_closed = true;
    pthread_cond_broadcast(&self->some);
    pthread_mutex_unlock(&self->lock);
  }
  Py_END_ALLOW_THREADS;
  heddle_py_drop_let_go();
  return done(self, s, &err);
}

static PyObject *stats(PyObject *object, PyObject *none) {
  heddle_batcher_stats a = {.struct_size = sizeof a};
  heddle_error err;
  (void)none;
  const heddle_status s = heddle_batcher_get_stats(batcher_of(object)->b, &a, &err);
  if (s != HEDDLE_OK) return heddle_py_fail(s, &err, batcher_of(object)->model->file);
#define NUMBER(name) #name, (unsigned long long)a.name
  return Py_BuildValue("{s:K,s:K,s:K,s:K,s:K,s:K,s:K,s:K,s:K,s:K,s:K,s:K,s:K,s:K}", NUMBER(requests), NUMBER(succeeded),
                       NUMBER(failed), NUMBER(expired), NUMBER(cancelled), NUMBER(rejected), NUMBER(refused),
                       NUMBER(runs), NUMBER(items), NUMBER(filled), NUMBER(repeated), NUMBER(queued), NUMBER(running),
                       NUMBER(most_items));
}

static PyObject *get_token(PyObject *object, void *unused) {
  (void)unused;
  return Py_NewRef(request_of(object)->token != NULL ? request_of(object)->token : Py_None);
}

static int set_token(PyObject *object, PyObject *token, void *unused) {
  PyObject *before = request_of(object)->token;
  (void)unused;
  request_of(object)->token = token != NULL && token != Py_None ? Py_NewRef(token) : NULL;
  Py_XDECREF(before);
  return 0;
}

static PyObject *get_input_names(PyObject *object, void *unused) {
  const batcher *self = batcher_of(object);
  PyObject *names = PyTuple_New((Py_ssize_t)self->n_inputs);
  (void)unused;
  for (uint32_t i = 0; names != NULL && i < self->n_inputs; i++)
    PyTuple_SetItem(names, (Py_ssize_t)i, Py_NewRef(self->inputs[i].name));
  return names;
}

static PyGetSetDef batcher_getters[] = {
    {"input_names", get_input_names, NULL, "The names of the inputs of a request, in order.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMethodDef batcher_methods[] = {
    {"submit", submit, METH_VARARGS,
     "submit(inputs, priority, deadline_ns, wait_ns, token, steps=False): a BatchRequest; next() has it if token is "
     "not None."},
    {"next", next_ended, METH_NOARGS, "Waits for requests that notify and have ended: a list; None once it is closed."},
    {"drain", drain, METH_VARARGS, "drain(timeout_ns)"},
    {"close", close_it, METH_VARARGS, "close(cancel, timeout_ns)"},
    {"stats", stats, METH_NOARGS, "Counters since the batcher was made, as a dict."},
    {NULL, NULL, 0, NULL},
};

static PyMethodDef request_methods[] = {
    {"result", result, METH_NOARGS, "Waits for the outputs: a tuple of arrays."},
    {"cancel", cancel, METH_NOARGS, "Ends the request; False where it has its result, or is about to get it."},
    {"times", times, METH_NOARGS,
     "When it passed what, as a dict, and the steps of its run; BusyError before its result."},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef request_getters[] = {
    {"token", get_token, set_token, "What submit() was given, or None.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

int heddle_py_batcher_init(PyObject *module) {
  PyType_Slot slots[] = {
      {Py_tp_doc, (void *)"Requests gathered into runs; heddle.Batcher is made of it."},
      {Py_tp_dealloc, HEDDLE_PY_SLOT(dealloc)},
      {Py_tp_traverse, HEDDLE_PY_SLOT(traverse)},
      {Py_tp_methods, batcher_methods},
      {Py_tp_getset, batcher_getters},
      {0, NULL},
  };
  PyType_Slot request_slots[] = {
      {Py_tp_doc, (void *)"A request of a Batcher."},
      {Py_tp_dealloc, HEDDLE_PY_SLOT(request_dealloc)},
      {Py_tp_methods, request_methods},
      {Py_tp_getset, request_getters},
      {0, NULL},
  };
  PyType_Spec spec = {
      .name = "heddle._core.Batcher",
      .basicsize = sizeof(batcher),
      .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION,
      .slots = slots,
  };
  PyType_Spec request_spec = {
      .name = "heddle._core.BatchRequest",
      .basicsize = sizeof(request),
      .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
      .slots = request_slots,
  };
  batcher_type = heddle_py_add_type(module, &spec);
  request_type = batcher_type != NULL ? heddle_py_add_type(module, &request_spec) : NULL;
  return request_type != NULL ? 0 : -1;
}
