/* bindings/python/src/executor.c: the type Executor: one run at a time, with inputs that stay set, memory of the caller's
 * that is bound, and runs that are started and waited for. One thread at a time; cancel, wait and done from any.
 * Values in and out are in executor_values.c. */
#include "executor.h"

static heddle_py_executor *first;

PyObject *heddle_py_executor_new(heddle_py_model *model, heddle_model *m) {
  heddle_error err;
  heddle_status s;
  PyTypeObject *type = heddle_py.executor_type;
  allocfunc alloc = HEDDLE_PY_FUNCTION(allocfunc, PyType_GetSlot(type, Py_tp_alloc));
  heddle_py_executor *e = heddle_py_executor_of(alloc(type, 0));
  if (e != NULL) {
    e->model = (heddle_py_model *)Py_NewRef((PyObject *)model);
    e->next = first;
    if (first != NULL) first->before = e;
    first = e;
  }
  Py_BEGIN_ALLOW_THREADS;
  s = e != NULL ? heddle_executor_create(m, &e->ex, &err) : HEDDLE_ENOMEM;
  heddle_model_release(m);
  Py_END_ALLOW_THREADS;
  if (e == NULL || s == HEDDLE_OK) return (PyObject *)e;
  e->ex = NULL;
  heddle_py_fail(s, &err, model->file);
  Py_DECREF(e);
  return NULL;
}

/* A cycle goes on through the model's attributes or its context, which clear it. */
static int traverse(PyObject *self, visitproc visit, void *arg) {
  Py_VISIT(Py_TYPE(self));
  Py_VISIT((PyObject *)heddle_py_executor_of(self)->model);
  return 0;
}

static void dealloc(PyObject *self) {
  heddle_py_executor *e = heddle_py_executor_of(self);
  PyObject_GC_UnTrack(self);
  PyObject *kind, *value, *trace;
  PyErr_Fetch(&kind, &value, &trace);
  if (e->next != NULL) e->next->before = e->before;
  if (e->before != NULL) e->before->next = e->next;
  else if (first == e) first = e->next; /* else it was forgotten */
  Py_BEGIN_ALLOW_THREADS;               /* what is pending is cancelled and waited for */
  heddle_executor_release(e->ex);
  Py_END_ALLOW_THREADS;
  heddle_py_drop_let_go();
  Py_XDECREF((PyObject *)e->model);
  PyErr_Restore(kind, value, trace);
  heddle_py_free(self);
}

void heddle_py_executors_cancel(void) {
  for (heddle_py_executor *e = first; e != NULL;) {
    if (e->ex == NULL || heddle_executor_poll(e->ex) != HEDDLE_EBUSY) {
      e = e->next;
      continue;
    }
    Py_INCREF((PyObject *)e); /* the list may change meanwhile, but for this one */
    heddle_py_cancel(e->ex);
    heddle_py_executor *next = e->next;
    Py_DECREF((PyObject *)e);
    e = next;
  }
}

void heddle_py_executors_forget(void) {
  for (heddle_py_executor *e = first; e != NULL; e = first) {
    first = e->next;
    e->next = e->before = NULL;
  }
}

PyObject *heddle_py_executor_fail(const heddle_py_executor *e, heddle_status s, const heddle_error *err) {
  return heddle_py_fail(s, err, e->model->file);
}

int heddle_py_executor_enter(heddle_py_executor *e) {
  if (e->is_busy) {
    heddle_py_fail_words(HEDDLE_EBUSY, "another thread is in a call of this executor; give each thread one of its own");
    return -1;
  }
  e->is_busy = true;
  return 0;
}

PyObject *heddle_py_executor_leave(heddle_py_executor *e, PyObject *result) {
  e->is_busy = false;
  heddle_py_drop_let_go();
  return result;
}

PyObject *heddle_py_executor_done(heddle_py_executor *e, heddle_status s, const heddle_error *err) {
  return s == HEDDLE_OK ? Py_NewRef(Py_None) : heddle_py_executor_fail(e, s, err);
}

/* ---- runs */

static PyObject *run_or_wait(heddle_py_executor *e, PyObject *timeout, bool starts) {
  uint64_t timeout_ns;
  bool is_over;
  if (heddle_py_timeout(timeout, &timeout_ns) < 0) return NULL;
  heddle_status s = heddle_py_run(e->ex, starts, timeout_ns, e->model->file, &is_over);
  return s == HEDDLE_OK ? Py_NewRef(Py_None) : NULL;
}

static PyObject *run_executor(PyObject *self, PyObject *args, PyObject *kwargs) {
  static char *names[] = {"timeout", NULL};
  heddle_py_executor *e = heddle_py_executor_of(self);
  PyObject *timeout = NULL;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O:run", names, &timeout)) return NULL;
  return heddle_py_executor_enter(e) == 0 ? heddle_py_executor_leave(e, run_or_wait(e, timeout, true)) : NULL;
}

static PyObject *wait_for(PyObject *self, PyObject *args, PyObject *kwargs) {
  static char *names[] = {"timeout", NULL};
  PyObject *timeout = NULL;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O:wait", names, &timeout)) return NULL;
  return run_or_wait(heddle_py_executor_of(self), timeout, false);
}

static PyObject *start(PyObject *self, PyObject *none) {
  (void)none;
  heddle_py_executor *e = heddle_py_executor_of(self);
  heddle_error err;
  heddle_status s;
  if (heddle_py_executor_enter(e) < 0) return NULL;
  Py_BEGIN_ALLOW_THREADS;
  s = heddle_executor_start(e->ex, &err);
  Py_END_ALLOW_THREADS;
  return heddle_py_executor_leave(e, heddle_py_executor_done(e, s, &err));
}

static PyObject *use_stream(PyObject *self, PyObject *args, PyObject *kwargs) {
  static char *names[] = {"device", "stream", NULL};
  heddle_py_executor *e = heddle_py_executor_of(self);
  PyObject *device;
  unsigned long long stream = 0;
  heddle_device *dev = NULL;
  heddle_error err;
  heddle_status s;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|K:use_stream", names, &device, &stream)) return NULL;
  if (heddle_py_executor_enter(e) < 0) return NULL;
  if (device != Py_None && heddle_py_device_of(heddle_py_context_of(e->model->context), device, &dev) < 0)
    return heddle_py_executor_leave(e, NULL);
  Py_BEGIN_ALLOW_THREADS;
  s = heddle_executor_use_stream(e->ex, dev, stream, &err);
  Py_END_ALLOW_THREADS;
  return heddle_py_executor_leave(e, heddle_py_executor_done(e, s, &err));
}

static PyObject *cancel(PyObject *self, PyObject *none) {
  (void)none;
  heddle_py_executor *e = heddle_py_executor_of(self);
  heddle_error err;
  heddle_status s;
  Py_BEGIN_ALLOW_THREADS;
  s = heddle_executor_cancel(e->ex, &err);
  Py_END_ALLOW_THREADS;
  return heddle_py_executor_done(e, s, &err);
}

static PyObject *done(PyObject *self, PyObject *none) {
  (void)none;
  return PyBool_FromLong(heddle_executor_poll(heddle_py_executor_of(self)->ex) != HEDDLE_EBUSY);
}

static PyObject *run_to(PyObject *self, PyObject *args, PyObject *kwargs) {
  static char *names[] = {"node", "output", NULL};
  heddle_py_executor *e = heddle_py_executor_of(self);
  const char *node;
  unsigned int output = 0;
  heddle_tensor *t = NULL;
  heddle_error err;
  heddle_status s;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "s|I:run_to", names, &node, &output)) return NULL;
  if (heddle_py_executor_enter(e) < 0) return NULL;
  Py_BEGIN_ALLOW_THREADS;
  s = heddle_executor_run_to(e->ex, node, output, &t, &err);
  Py_END_ALLOW_THREADS;
  return heddle_py_executor_leave(e, s == HEDDLE_OK ? heddle_py_tensor_new(t) : heddle_py_executor_fail(e, s, &err));
}

/* ---- reports */

PyObject *heddle_py_profile_rows(const heddle_profile_entry *entries, size_t n) {
  PyObject *list = PyList_New(0);
  for (size_t i = 0; list != NULL && i < n; i++) {
    const heddle_profile_entry *p = &entries[i];
    PyObject *row = Py_BuildValue("{s:s,s:s,s:s,s:I,s:I,s:K,s:K}", "name", p->name, "op", p->op, "device", p->device,
                                  "stream", (unsigned int)p->stream, "step", (unsigned int)p->step, "start_ns",
                                  (unsigned long long)p->start_ns, "end_ns", (unsigned long long)p->end_ns);
    if (row == NULL || PyList_Append(list, row) < 0) Py_CLEAR(list);
    Py_XDECREF(row);
  }
  return list;
}

static PyObject *profile(PyObject *self, PyObject *none) {
  (void)none;
  heddle_py_executor *e = heddle_py_executor_of(self);
  const heddle_profile_entry *entries = NULL;
  size_t n = 0;
  heddle_error err;
  heddle_status s;
  if (heddle_py_executor_enter(e) < 0) return NULL;
  Py_BEGIN_ALLOW_THREADS;
  s = heddle_executor_profile(e->ex, &entries, &n, &err);
  Py_END_ALLOW_THREADS;
  return heddle_py_executor_leave(e, s == HEDDLE_OK ? heddle_py_profile_rows(entries, n)
                                                    : heddle_py_executor_fail(e, s, &err));
}

static PyObject *stats(PyObject *self, PyObject *none) {
  (void)none;
  heddle_py_executor *e = heddle_py_executor_of(self);
  heddle_executor_stats t = {.struct_size = sizeof t};
  heddle_error err;
  if (heddle_py_executor_enter(e) < 0) return NULL;
  heddle_status s = heddle_executor_get_stats(e->ex, &t, &err);
  heddle_py_executor_leave(e, NULL);
  if (s != HEDDLE_OK) return heddle_py_executor_fail(e, s, &err);
  return Py_BuildValue("{s:K,s:K,s:K,s:K,s:K,s:K,s:K,s:K,s:K}", "runs", (unsigned long long)t.runs, "bytes_copied",
                       (unsigned long long)t.bytes_copied, "copies", (unsigned long long)t.copies, "device_bytes",
                       (unsigned long long)t.device_bytes, "orphan_bytes", (unsigned long long)t.orphan_bytes,
                       "replays", (unsigned long long)t.replays, "retries", (unsigned long long)t.retries, "failovers",
                       (unsigned long long)t.failovers, "growths", (unsigned long long)t.growths);
}

static PyObject *explain(PyObject *self, PyObject *args, PyObject *kwargs) {
  static char *names[] = {"format", NULL};
  heddle_py_executor *e = heddle_py_executor_of(self);
  PyObject *word = NULL;
  heddle_explain_format format;
  heddle_error err;
  heddle_status s;
  char *text = NULL;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O:explain", names, &word)) return NULL;
  if (heddle_py_explain_format(word, &format) < 0 || heddle_py_executor_enter(e) < 0) return NULL;
  Py_BEGIN_ALLOW_THREADS;
  s = heddle_executor_explain(e->ex, format, &text, &err);
  Py_END_ALLOW_THREADS;
  return heddle_py_executor_leave(e, heddle_py_take_text(s, text, &err, e->model->file));
}

static PyObject *get_model(PyObject *self, void *none) {
  (void)none;
  return Py_NewRef((PyObject *)heddle_py_executor_of(self)->model);
}

#define NAMED(name, function, doc) \
  { name, (PyCFunction)(void (*)(void))(function), METH_VARARGS | METH_KEYWORDS, doc }

static PyMethodDef methods[] = {
    {"input_info", heddle_py_executor_input_info, METH_NOARGS,
     "(name, shape, dtype, is_param) of each input, parameters included."},
    {"output_info", heddle_py_executor_output_info, METH_NOARGS,
     "(name, shape, dtype) of each output; None for what is not known yet."},
    NAMED("set_input", heddle_py_executor_set_input,
          "set_input(key, value): copies to an input, by name or number; it stays for later runs. Other dtypes are "
          "converted where numpy does so with casting 'same_kind'."),
    NAMED("bind_input", heddle_py_executor_bind_input,
          "bind_input(key, value): the value's own memory from the next run on; row-major, of the input's dtype."),
    NAMED("bind_output", heddle_py_executor_bind_output,
          "bind_output(key, value): runs write to the value's own memory; None: to the executor's again."),
    {"get_input", heddle_py_executor_get_input, METH_O, "get_input(key): a copy of an input, or of a parameter."},
    NAMED("get_output", heddle_py_executor_get_output,
          "get_output(key=0, out=None): a copy of an output of the last run; with out the values are copied there, and "
          "out is given back."),
    NAMED("view_output", heddle_py_executor_view_output,
          "view_output(key=0): the executor's own memory, whose content is valid until the next run starts."),
    NAMED("run", run_executor,
          "run(timeout=None): runs once and waits. RunTimeoutError after so many seconds: the run is then pending "
          "still; wait for it, or cancel it."),
    NAMED("use_stream", use_stream,
          "use_stream(device, stream): later runs come after the work in a stream of the caller's on a device, by the "
          "vendor's number, when they are started, and before what is enqueued there after start(); device None ends "
          "that."),
    {"start", start, METH_NOARGS, "Starts a run and returns; wait() gives its end."},
    NAMED("wait", wait_for, "wait(timeout=None): waits for the oldest pending run, and raises what it failed with."),
    {"cancel", cancel, METH_NOARGS, "Ends what is pending with CanceledError; wait() for it."},
    {"done", done, METH_NOARGS, "Whether wait() would return at once."},
    NAMED("run_to", run_to, "run_to(node, output=0): runs up to a node, and gives a copy of one of its outputs."),
    {"load_params", heddle_py_executor_load_params, METH_O,
     "load_params(blob): sets every parameter of the blob that is an input."},
    {"share_params", heddle_py_executor_share_params, METH_VARARGS,
     "share_params(other, blob): as load_params, with the tensors of another executor, which are not copied."},
    {"state_info", heddle_py_executor_state_info, METH_NOARGS,
     "A dict for each state value: input, output, shape, dtype, device, bytes, axis, is_reset."},
    NAMED("reset_state", heddle_py_executor_reset_state,
          "reset_state(key=None): sets a state value, or all of them, to its beginning."),
    {"read_state", heddle_py_executor_read_state, METH_O,
     "read_state(key): a copy of a state value on the host; by the name of its input or output, or by number."},
    NAMED("write_state", heddle_py_executor_write_state, "write_state(key, value): copies to a state value."),
    NAMED("truncate_state", heddle_py_executor_truncate_state,
          "truncate_state(length, key=None): keeps the first elements along the open dimension of a state value, or of "
          "all."),
    {"save_state", heddle_py_executor_save_state, METH_O, "save_state(path): writes all state values to a file."},
    {"load_state", heddle_py_executor_load_state, METH_O, "load_state(path): reads all state values from a file."},
    {"fork_state", heddle_py_executor_fork_state, METH_O,
     "fork_state(to): another executor of the model gets the state values; their memory is shared until a run replaces "
     "it."},
    {"text_codes", heddle_py_executor_text_codes, METH_O,
     "text_codes(texts): the numbers that stand for a list of texts, for inputs of strings."},
    {"texts", heddle_py_executor_texts, METH_O,
     "texts(codes): the texts of a list of numbers, of outputs of strings, until the next run."},
    {"sequence", heddle_py_executor_sequence, METH_O,
     "sequence(tensors): the number that stands for a sequence of copies of them, for inputs that are sequences."},
    {"sequence_items", heddle_py_executor_sequence_items, METH_O,
     "sequence_items(code): the tensors of a sequence that an output is, until the next run."},
    {"profile", profile, METH_NOARGS, "Runs once with each step timed; a list of dicts, in order of start."},
    {"stats", stats, METH_NOARGS, "Numbers since the executor was made: runs, copies, bytes, ..."},
    NAMED("explain", explain, "explain(format='text'): the present plan; 'text', 'json', 'dot'."),
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef getters[] = {
    {"model", get_model, NULL, "The model.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

int heddle_py_executor_init(PyObject *module) {
  PyType_Slot slots[] = {
      {Py_tp_doc, (void *)"The mutable state of runs; one thread at a time. Model.executor() makes one."},
      {Py_tp_dealloc, HEDDLE_PY_SLOT(dealloc)},
      {Py_tp_traverse, HEDDLE_PY_SLOT(traverse)},
      {Py_tp_methods, methods},
      {Py_tp_getset, getters},
      {0, NULL},
  };
  PyType_Spec spec = {
      .name = "heddle._core.Executor",
      .basicsize = sizeof(heddle_py_executor),
      .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION,
      .slots = slots,
  };
  heddle_py.executor_type = heddle_py_add_type(module, &spec);
  return heddle_py.executor_type != NULL ? 0 : -1;
}
