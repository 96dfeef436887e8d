/* bindings/python/src/generation_batch.c: the types GenerationBatch and GenerationRequest, of which heddle.GenerationBatch is
 * made. No C callback is used: tokens are read. Calls may come from any thread. */
#include <stdlib.h>
#include <string.h>

#include "generator.h"

typedef struct batch {
  PyObject_HEAD heddle_generation_batch *b;
  PyObject *generator; /* its context stays */
} batch;

typedef struct request {
  PyObject_HEAD heddle_generation_request *r;
  PyObject *batch;
} request;

static PyTypeObject *batch_type, *request_type;

static PyObject *new_of(PyTypeObject *type) {
  return HEDDLE_PY_FUNCTION(allocfunc, PyType_GetSlot(type, Py_tp_alloc))(type, 0);
}

static void batch_dealloc(PyObject *object) {
  batch *self = (batch *)object;
  PyObject *kind, *value, *trace;
  PyErr_Fetch(&kind, &value, &trace);
  Py_BEGIN_ALLOW_THREADS;
  heddle_generation_batch_release(self->b);
  Py_END_ALLOW_THREADS;
  Py_CLEAR(self->generator);
  PyErr_Restore(kind, value, trace);
  heddle_py_free(object);
}

static void request_dealloc(PyObject *object) {
  request *self = (request *)object;
  heddle_generation_request_release(self->r);
  Py_CLEAR(self->batch);
  heddle_py_free(object);
}

/* ---- batches */

static PyObject *open_batch(PyObject *module, PyObject *args) {
  PyObject *given;
  unsigned int rows, max_queue;
  heddle_error err = {0};
  heddle_status s;
  (void)module;
  if (!PyArg_ParseTuple(args, "OII", &given, &rows, &max_queue)) return NULL;
  heddle_py_generator *g = heddle_py_generator_of(given);
  if (g == NULL) return NULL;
  if (g->is_busy) return heddle_py_fail_words(HEDDLE_EBUSY, "another thread uses the generator");
  batch *self = (batch *)new_of(batch_type);
  if (self == NULL) return NULL;
  self->generator = Py_NewRef(given);
  const heddle_generation_batch_options o = {.struct_size = sizeof o, .rows = rows, .max_queue = max_queue};
  g->is_busy = true;
  Py_BEGIN_ALLOW_THREADS;
  s = heddle_generation_batch_create(g->g, &o, &self->b, &err);
  Py_END_ALLOW_THREADS;
  g->is_busy = false;
  if (s == HEDDLE_OK) return (PyObject *)self;
  heddle_py_fail(s, &err, g->file);
  Py_DECREF((PyObject *)self);
  return NULL;
}

/* What a row of int64 is; NULL with an exception. */
static heddle_tensor *row_of(PyObject *given) {
  const heddle_dtype wanted = {HEDDLE_DTYPE_INT, 64, 1};
  heddle_tensor *t;
  if (heddle_py_tensor_of(given, &wanted, &t) < 0) return NULL;
  if (heddle_tensor_is_contiguous(t) && heddle_tensor_ndim(t) == 1 && heddle_tensor_device(t) == NULL) return t;
  heddle_py_tensor_release(t);
  heddle_py_fail_words(HEDDLE_EINVAL, "tokens are a list of whole numbers");
  return NULL;
}

static PyObject *submit(PyObject *object, PyObject *args) {
  batch *self = (batch *)object;
  PyObject *tokens, *stops, *given;
  unsigned long long max_tokens, deadline_ns, wait_ns;
  int past_stops;
  heddle_py_sampling sampling;
  heddle_error err = {0};
  heddle_status s = HEDDLE_OK;
  if (!PyArg_ParseTuple(args, "OO!OKpKK", &tokens, &PyTuple_Type, &given, &stops, &max_tokens, &past_stops,
                        &deadline_ns, &wait_ns))
    return NULL;
  heddle_tensor *prompt = row_of(tokens), *ends = prompt != NULL ? row_of(stops) : NULL;
  request *made = ends != NULL ? (request *)new_of(request_type) : NULL;
  if (made != NULL && heddle_py_sampling_parse(given, &sampling) == 0) {
    made->batch = Py_NewRef(object);
    const heddle_generation o = {.struct_size = sizeof o,
                                 .sampling = &sampling.s,
                                 .stop_tokens = heddle_tensor_data(ends),
                                 .n_stop_tokens = (size_t)(heddle_tensor_bytes(ends) / sizeof(int64_t)),
                                 .max_tokens = max_tokens,
                                 .deadline_ns = deadline_ns,
                                 .flags = past_stops ? HEDDLE_GENERATE_PAST_STOPS : 0};
    const heddle_generation_call call = {.struct_size = sizeof call,
                                         .tokens = heddle_tensor_data(prompt),
                                         .n_tokens = (size_t)(heddle_tensor_bytes(prompt) / sizeof(int64_t)),
                                         .generation = &o,
                                         .wait_ns = wait_ns};
    Py_BEGIN_ALLOW_THREADS;
    s = heddle_generation_batch_submit(self->b, &call, &made->r, &err);
    Py_END_ALLOW_THREADS;
    free(sampling.tokens);
    free(sampling.biases);
    if (s != HEDDLE_OK) heddle_py_fail(s, &err, NULL);
  }
  heddle_py_tensor_release(prompt);
  heddle_py_tensor_release(ends);
  if (PyErr_Occurred() != NULL) {
    Py_XDECREF((PyObject *)made);
    return NULL;
  }
  return (PyObject *)made;
}

static PyObject *close_it(PyObject *object, PyObject *args) {
  batch *self = (batch *)object;
  unsigned long long timeout_ns;
  int cancel;
  heddle_error err = {0};
  heddle_status s;
  if (!PyArg_ParseTuple(args, "pK", &cancel, &timeout_ns)) return NULL;
  Py_BEGIN_ALLOW_THREADS;
  s = heddle_generation_batch_close(self->b, cancel, timeout_ns, &err);
  Py_END_ALLOW_THREADS;
  if (s != HEDDLE_OK) return heddle_py_fail(s, &err, NULL);
  Py_RETURN_NONE;
}

static PyObject *stats(PyObject *object, PyObject *none) {
  heddle_generation_batch_stats a = {.struct_size = sizeof a};
  heddle_error err = {0};
  (void)none;
  const heddle_status s = heddle_generation_batch_get_stats(((batch *)object)->b, &a, &err);
  if (s != HEDDLE_OK) return heddle_py_fail(s, &err, NULL);
#define NUMBER(name) #name, (unsigned long long)a.name
  return Py_BuildValue("{s:K,s:K,s:K,s:K,s:K,s:K,s:K,s:K,s:K,s:K,s:K,s:K,s:K,s:K}", NUMBER(requests), NUMBER(finished),
                       NUMBER(failed), NUMBER(rejected), NUMBER(runs), NUMBER(chunks), NUMBER(computed), NUMBER(reused),
                       NUMBER(sampled), NUMBER(run_ns), NUMBER(join_ns), NUMBER(queued), NUMBER(running), NUMBER(rows));
}

/* ---- requests */

static PyObject *wait_it(PyObject *object, PyObject *args) {
  static const char *const ends[] = {"stop", "length", "callback"};
  unsigned long long timeout_ns;
  heddle_generated g = {.struct_size = sizeof g};
  heddle_error err = {0};
  heddle_status s;
  if (!PyArg_ParseTuple(args, "K", &timeout_ns)) return NULL;
  Py_BEGIN_ALLOW_THREADS;
  s = heddle_generation_request_wait(((request *)object)->r, timeout_ns, &g, &err);
  Py_END_ALLOW_THREADS;
  if (s != HEDDLE_OK) return heddle_py_fail(s, &err, NULL);
  return Py_BuildValue("{s:K,s:K,s:K,s:s}", "tokens", (unsigned long long)g.tokens, "first_ns",
                       (unsigned long long)g.first_ns, "rest_ns", (unsigned long long)g.rest_ns, "end", ends[g.end]);
}

static PyObject *read_it(PyObject *object, PyObject *args) {
  enum { ROOM = 64 };
  unsigned long long first, timeout_ns;
  int64_t tokens[ROOM];
  size_t n = 0;
  heddle_error err = {0};
  heddle_status s;
  if (!PyArg_ParseTuple(args, "KK", &first, &timeout_ns)) return NULL;
  Py_BEGIN_ALLOW_THREADS;
  s = heddle_generation_request_read(((request *)object)->r, first, tokens, ROOM, timeout_ns, &n, &err);
  Py_END_ALLOW_THREADS;
  if (s != HEDDLE_OK) return heddle_py_fail(s, &err, NULL);
  PyObject *list = PyList_New((Py_ssize_t)n);
  for (size_t i = 0; list != NULL && i < n; i++) {
    PyObject *one = PyLong_FromLongLong(tokens[i]);
    if (one == NULL) Py_CLEAR(list);
    else PyList_SetItem(list, (Py_ssize_t)i, one);
  }
  return list;
}

static PyObject *cancel_it(PyObject *object, PyObject *none) {
  (void)none;
  Py_BEGIN_ALLOW_THREADS;
  heddle_generation_request_cancel(((request *)object)->r);
  Py_END_ALLOW_THREADS;
  Py_RETURN_NONE;
}

static PyMethodDef batch_methods[] = {
    {"submit", submit, METH_VARARGS,
     "submit(tokens, sampling, stop_tokens, max_tokens, past_stops, deadline_ns, wait_ns): a GenerationRequest"},
    {"close", close_it, METH_VARARGS, "close(cancel, timeout_ns)"},
    {"stats", stats, METH_NOARGS, "Counters, as a dict."},
    {NULL, NULL, 0, NULL},
};

static PyMethodDef request_methods[] = {
    {"wait", wait_it, METH_VARARGS, "wait(timeout_ns): what heddle_generated has, as a dict"},
    {"read", read_it, METH_VARARGS, "read(first, timeout_ns): some new tokens; none at the end"},
    {"cancel", cancel_it, METH_NOARGS, "Ends it."},
    {NULL, NULL, 0, NULL},
};

static PyMethodDef functions[] = {
    {"open_generation_batch", open_batch, METH_VARARGS, "open_generation_batch(generator, rows, max_queue)"},
    {NULL, NULL, 0, NULL},
};

static PyTypeObject *add(PyObject *module, const char *name, int size, const char *doc, destructor dealloc,
                         PyMethodDef *methods) {
  PyType_Slot slots[] = {{Py_tp_doc, (void *)(uintptr_t)doc},
                         {Py_tp_dealloc, HEDDLE_PY_SLOT(dealloc)},
                         {Py_tp_methods, methods},
                         {0, NULL}};
  PyType_Spec spec = {
      .name = name, .basicsize = size, .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, .slots = slots};
  return heddle_py_add_type(module, &spec);
}

int heddle_py_generation_batch_init(PyObject *module) {
  batch_type = add(module, "heddle._core.GenerationBatch", sizeof(batch), "Several texts that share runs.",
                   batch_dealloc, batch_methods);
  request_type = add(module, "heddle._core.GenerationRequest", sizeof(request), "A text of a batch.", request_dealloc,
                     request_methods);
  return batch_type != NULL && request_type != NULL && PyModule_AddFunctions(module, functions) == 0 ? 0 : -1;
}
