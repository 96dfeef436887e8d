/* bindings/python/src/executor.c: the type Executor: one run at a time, with inputs that stay set, memory of the caller's
 * that is bound, and runs that are started and waited for. One thread at a time; cancel, wait and done from any. */
#include "model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "numpy_api.h"

typedef struct py_executor {
  PyObject_HEAD struct py_executor *next, *before; /* all there are; the GIL guards the list */
  heddle_executor *ex;
  heddle_py_model *model; /* a reference; for its file, and so that its context stays */
  bool is_busy;           /* a thread is in a call that is for one at a time */
} py_executor;

static py_executor *first;

static PyTypeObject *executor_type(void);

static py_executor *executor_of(PyObject *self) {
  return (py_executor *)self;
}

PyObject *heddle_py_executor_new(heddle_py_model *model, heddle_model *m) {
  heddle_error err;
  heddle_status s;
  PyTypeObject *type = executor_type();
  allocfunc alloc = HEDDLE_PY_FUNCTION(allocfunc, PyType_GetSlot(type, Py_tp_alloc));
  py_executor *e = executor_of(alloc(type, 0));
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

static void dealloc(PyObject *self) {
  py_executor *e = executor_of(self);
  PyTypeObject *type = Py_TYPE(self);
  freefunc release = HEDDLE_PY_FUNCTION(freefunc, PyType_GetSlot(type, Py_tp_free));
  PyObject *kind, *value, *trace;
  PyErr_Fetch(&kind, &value, &trace);
  if (e->next != NULL) e->next->before = e->before;
  if (e->before != NULL) e->before->next = e->next;
  else first = e->next;
  Py_BEGIN_ALLOW_THREADS; /* what is pending is cancelled and waited for */
  heddle_executor_release(e->ex);
  Py_END_ALLOW_THREADS;
  heddle_py_drop_let_go();
  Py_XDECREF((PyObject *)e->model);
  PyErr_Restore(kind, value, trace);
  release(self);
  Py_DECREF(type);
}

void heddle_py_executors_cancel(void) {
  for (py_executor *e = first; e != NULL;) {
    if (e->ex == NULL || heddle_executor_poll(e->ex) != HEDDLE_EBUSY) {
      e = e->next;
      continue;
    }
    Py_INCREF((PyObject *)e); /* the list may change meanwhile, but for this one */
    heddle_py_cancel(e->ex);
    py_executor *next = e->next;
    Py_DECREF((PyObject *)e);
    e = next;
  }
}

static PyObject *fail(const py_executor *e, heddle_status s, const heddle_error *err) {
  return heddle_py_fail(s, err, e->model->file);
}

/* Begins a call that is for one thread at a time: 0, or -1 with an exception. */
static int enter(py_executor *e) {
  if (e->is_busy) {
    heddle_py_fail_words(HEDDLE_EBUSY, "another thread is in a call of this executor; give each thread one of its own");
    return -1;
  }
  e->is_busy = true;
  return 0;
}

static PyObject *leave(py_executor *e, PyObject *result) {
  e->is_busy = false;
  heddle_py_drop_let_go();
  return result;
}

static PyObject *none_or_fail(py_executor *e, heddle_status s, const heddle_error *err) {
  return s == HEDDLE_OK ? Py_NewRef(Py_None) : fail(e, s, err);
}

/* ---- which input or output */

typedef int32_t (*index_fn)(const heddle_executor *ex, const char *name);
typedef heddle_status (*info_fn)(heddle_executor *ex, uint32_t i, heddle_io_info *out, heddle_error *err);

static int say_unknown(const py_executor *e, const char *name, const char *what, uint32_t n, info_fn info) {
  heddle_error err = {.status = HEDDLE_ENOTFOUND};
  size_t used = 0;
  const char *file = e->model->file != NULL ? e->model->file : "graph";
  int put = snprintf(err.text, sizeof err.text, "%.200s: there is no %s '%.200s'; there are:", file, what, name);
  used = put > 0 ? (size_t)put : 0;
  for (uint32_t i = 0; i < n && used + 80 < sizeof err.text; i++) {
    heddle_io_info one = {.struct_size = sizeof one};
    if (info(e->ex, i, &one, NULL) != HEDDLE_OK || one.is_param) continue;
    put = snprintf(err.text + used, sizeof err.text - used, " '%.60s'", one.name);
    used += put > 0 ? (size_t)put : 0;
  }
  fail(e, HEDDLE_ENOTFOUND, &err);
  return -1;
}

static int find(const py_executor *e, PyObject *key, bool of_inputs, uint32_t *out) {
  const char *what = of_inputs ? "input" : "output";
  uint32_t n = of_inputs ? heddle_executor_input_count(e->ex) : heddle_executor_output_count(e->ex);
  if (PyUnicode_Check(key)) {
    const char *name = PyUnicode_AsUTF8AndSize(key, NULL);
    if (name == NULL) return -1;
    int32_t i = (of_inputs ? heddle_executor_input_index : heddle_executor_output_index)(e->ex, name);
    if (i < 0)
      return say_unknown(e, name, what, n, of_inputs ? heddle_executor_input_info : heddle_executor_output_info);
    *out = (uint32_t)i;
    return 0;
  }
  PyObject *number = PyNumber_Index(key);
  long long i = number != NULL ? PyLong_AsLongLong(number) : -1;
  Py_XDECREF(number);
  if (PyErr_Occurred()) return -1;
  if (i >= 0 && i < n) {
    *out = (uint32_t)i;
    return 0;
  }
  heddle_error err = {.status = HEDDLE_ENOTFOUND};
  snprintf(err.text, sizeof err.text, "%.200s: there is no %s %lld; there are %u, counted from 0",
           e->model->file != NULL ? e->model->file : "graph", what, i, (unsigned)n);
  fail(e, HEDDLE_ENOTFOUND, &err);
  return -1;
}

static int info_of(const py_executor *e, uint32_t i, bool of_input, heddle_io_info *out) {
  heddle_error err;
  *out = (heddle_io_info){.struct_size = sizeof *out};
  heddle_status s = (of_input ? heddle_executor_input_info : heddle_executor_output_info)(e->ex, i, out, &err);
  if (s == HEDDLE_OK) return 0;
  fail(e, s, &err);
  return -1;
}

static PyObject *infos(py_executor *e, bool of_inputs) {
  uint32_t n = of_inputs ? heddle_executor_input_count(e->ex) : heddle_executor_output_count(e->ex);
  PyObject *list = PyList_New(0);
  for (uint32_t i = 0; list != NULL && i < n; i++) {
    heddle_io_info info;
    PyObject *one = NULL;
    if (info_of(e, i, of_inputs, &info) == 0) {
      PyObject *shape = heddle_py_shape(info.shape, info.ndim), *dtype = heddle_py_dtype_name(info.dtype);
      if (shape != NULL && dtype != NULL)
        one = of_inputs ? Py_BuildValue("(sOOO)", info.name, shape, dtype, info.is_param ? Py_True : Py_False)
                        : Py_BuildValue("(sOO)", info.name, shape, dtype);
      Py_XDECREF(shape);
      Py_XDECREF(dtype);
    }
    if (one == NULL || PyList_Append(list, one) < 0) Py_CLEAR(list);
    Py_XDECREF(one);
  }
  return list;
}

static PyObject *input_info(PyObject *self, PyObject *none) {
  (void)none;
  py_executor *e = executor_of(self);
  return enter(e) == 0 ? leave(e, infos(e, true)) : NULL;
}

static PyObject *output_info(PyObject *self, PyObject *none) {
  (void)none;
  py_executor *e = executor_of(self);
  return enter(e) == 0 ? leave(e, infos(e, false)) : NULL;
}

/* ---- inputs */

typedef heddle_status (*give_fn)(heddle_executor *ex, uint32_t i, heddle_tensor *t, heddle_error *err);

/* The tensor of an object's own memory, not of a copy. 0, or -1 with an exception. */
static int memory_of(PyObject *value, const char *what, heddle_tensor **out) {
  bool is_array = PyArray_Check(value);
  if (!is_array && !heddle_py_is_tensor(value) && !PyObject_HasAttrString(value, "__dlpack__")) {
    heddle_py_fail_words(HEDDLE_EINVAL, "%s is a numpy array, a Tensor, or an object with __dlpack__", what);
    return -1;
  }
  if (heddle_py_tensor_of(value, NULL, out) < 0) return -1;
  bool is_copy =
      is_array && heddle_tensor_bytes(*out) > 0 && heddle_tensor_data(*out) != PyArray_DATA((PyArrayObject *)value);
  if (!is_copy) return 0;
  heddle_py_tensor_release(*out);
  *out = NULL;
  heddle_py_fail_words(HEDDLE_EINVAL,
                       "%s is an array whose memory cannot be used as it is: its elements are in another byte order, "
                       "not aligned, or not a multiple of their size apart",
                       what);
  return -1;
}

static heddle_status set_copy(heddle_executor *ex, uint32_t i, heddle_tensor *t, heddle_error *err) {
  return heddle_executor_set_input(ex, i, t, err);
}

/* A value for an input: converted to its dtype where it is copied, as it is where it is bound. */
static PyObject *give(py_executor *e, PyObject *args, PyObject *kwargs, give_fn put, bool converts) {
  static char *names[] = {"key", "value", NULL};
  PyObject *key, *value;
  heddle_io_info info;
  heddle_tensor *t = NULL;
  heddle_error err;
  heddle_status s;
  uint32_t i;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO", names, &key, &value)) return NULL;
  if (enter(e) < 0) return NULL;
  if (find(e, key, true, &i) < 0 || info_of(e, i, true, &info) < 0) return leave(e, NULL);
  PyObject *name = PyUnicode_FromString(info.name);
  if (name == NULL) return leave(e, NULL);
  PyObject *result = NULL;
  int failed = converts ? heddle_py_tensor_of(value, &info.dtype, &t) : memory_of(value, "what is bound", &t);
  if (failed < 0) {
    heddle_py_about_input(e->model, name);
  } else {
    Py_BEGIN_ALLOW_THREADS;
    s = put(e->ex, i, t, &err);
    Py_END_ALLOW_THREADS;
    heddle_py_tensor_release(t);
    result = none_or_fail(e, s, &err);
    if (result == NULL) heddle_py_set_node(name);
  }
  Py_DECREF(name);
  return leave(e, result);
}

static PyObject *set_input(PyObject *self, PyObject *args, PyObject *kwargs) {
  return give(executor_of(self), args, kwargs, set_copy, true);
}

static PyObject *bind_input(PyObject *self, PyObject *args, PyObject *kwargs) {
  return give(executor_of(self), args, kwargs, heddle_executor_bind_input, false);
}

static PyObject *get_input(PyObject *self, PyObject *key) {
  py_executor *e = executor_of(self);
  heddle_tensor *t = NULL;
  heddle_error err;
  heddle_status s;
  uint32_t i;
  if (enter(e) < 0) return NULL;
  if (find(e, key, true, &i) < 0) return leave(e, NULL);
  Py_BEGIN_ALLOW_THREADS;
  s = heddle_executor_get_input(e->ex, i, &t, &err);
  Py_END_ALLOW_THREADS;
  return leave(e, s == HEDDLE_OK ? heddle_py_tensor_new(t) : fail(e, s, &err));
}

/* ---- outputs */

static PyObject *bind_output(PyObject *self, PyObject *args, PyObject *kwargs) {
  static char *names[] = {"key", "value", NULL};
  py_executor *e = executor_of(self);
  PyObject *key, *value;
  heddle_tensor *t = NULL;
  heddle_error err;
  heddle_status s;
  uint32_t i;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO:bind_output", names, &key, &value)) return NULL;
  if (enter(e) < 0) return NULL;
  if (find(e, key, false, &i) < 0) return leave(e, NULL);
  if (value != Py_None && memory_of(value, "what is bound", &t) < 0) return leave(e, NULL);
  Py_BEGIN_ALLOW_THREADS;
  s = heddle_executor_bind_output(e->ex, i, t, &err);
  Py_END_ALLOW_THREADS;
  heddle_py_tensor_release(t);
  return leave(e, none_or_fail(e, s, &err));
}

/* A copy, or the values in `to`, which is written to. */
static PyObject *read_output(py_executor *e, uint32_t i, PyObject *to) {
  heddle_error err;
  heddle_status s;
  heddle_tensor *t = NULL, *copy = NULL;
  if (to != NULL && to != Py_None) {
    if (memory_of(to, "out", &t) < 0) return NULL;
    if (heddle_py_tensor_read_only(t)) {
      heddle_py_tensor_release(t);
      return heddle_py_fail_words(HEDDLE_EINVAL, "out is read-only, and an output is to be written there");
    }
    Py_BEGIN_ALLOW_THREADS;
    s = heddle_executor_get_output(e->ex, i, t, &err);
    Py_END_ALLOW_THREADS;
    heddle_py_tensor_release(t);
    return s == HEDDLE_OK ? Py_NewRef(to) : fail(e, s, &err);
  }
  s = heddle_executor_view_output(e->ex, i, &t, &err);
  if (s != HEDDLE_OK) return fail(e, s, &err);
  if (heddle_py_tensor_clone(NULL, t, &copy) < 0) copy = NULL;
  heddle_py_tensor_release(t);
  return copy != NULL ? heddle_py_tensor_new(copy) : NULL;
}

static PyObject *get_output(PyObject *self, PyObject *args, PyObject *kwargs) {
  static char *names[] = {"key", "out", NULL};
  py_executor *e = executor_of(self);
  PyObject *key = NULL, *to = NULL;
  uint32_t i = 0;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|OO:get_output", names, &key, &to)) return NULL;
  if (enter(e) < 0) return NULL;
  if (key != NULL && find(e, key, false, &i) < 0) return leave(e, NULL);
  return leave(e, read_output(e, i, to));
}

static PyObject *view_output(PyObject *self, PyObject *args, PyObject *kwargs) {
  static char *names[] = {"key", NULL};
  py_executor *e = executor_of(self);
  PyObject *key = NULL;
  heddle_tensor *t = NULL;
  heddle_error err;
  uint32_t i = 0;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O:view_output", names, &key)) return NULL;
  if (enter(e) < 0) return NULL;
  if (key != NULL && find(e, key, false, &i) < 0) return leave(e, NULL);
  heddle_status s = heddle_executor_view_output(e->ex, i, &t, &err);
  return leave(e, s == HEDDLE_OK ? heddle_py_tensor_new(t) : fail(e, s, &err));
}

/* ---- runs */

static PyObject *run_or_wait(py_executor *e, PyObject *timeout, bool starts) {
  uint64_t timeout_ns;
  bool is_over;
  if (heddle_py_timeout(timeout, &timeout_ns) < 0) return NULL;
  heddle_status s = heddle_py_run(e->ex, starts, timeout_ns, e->model->file, &is_over);
  return s == HEDDLE_OK ? Py_NewRef(Py_None) : NULL;
}

static PyObject *run(PyObject *self, PyObject *args, PyObject *kwargs) {
  static char *names[] = {"timeout", NULL};
  py_executor *e = executor_of(self);
  PyObject *timeout = NULL;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O:run", names, &timeout)) return NULL;
  return enter(e) == 0 ? leave(e, run_or_wait(e, timeout, true)) : NULL;
}

static PyObject *wait_for(PyObject *self, PyObject *args, PyObject *kwargs) {
  static char *names[] = {"timeout", NULL};
  PyObject *timeout = NULL;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O:wait", names, &timeout)) return NULL;
  return run_or_wait(executor_of(self), timeout, false);
}

static PyObject *start(PyObject *self, PyObject *none) {
  (void)none;
  py_executor *e = executor_of(self);
  heddle_error err;
  heddle_status s;
  if (enter(e) < 0) return NULL;
  Py_BEGIN_ALLOW_THREADS;
  s = heddle_executor_start(e->ex, &err);
  Py_END_ALLOW_THREADS;
  return leave(e, none_or_fail(e, s, &err));
}

static PyObject *cancel(PyObject *self, PyObject *none) {
  (void)none;
  py_executor *e = executor_of(self);
  heddle_error err;
  heddle_status s;
  Py_BEGIN_ALLOW_THREADS;
  s = heddle_executor_cancel(e->ex, &err);
  Py_END_ALLOW_THREADS;
  return none_or_fail(e, s, &err);
}

static PyObject *done(PyObject *self, PyObject *none) {
  (void)none;
  return PyBool_FromLong(heddle_executor_poll(executor_of(self)->ex) != HEDDLE_EBUSY);
}

static PyObject *run_to(PyObject *self, PyObject *args, PyObject *kwargs) {
  static char *names[] = {"node", "output", NULL};
  py_executor *e = executor_of(self);
  const char *node;
  unsigned int output = 0;
  heddle_tensor *t = NULL;
  heddle_error err;
  heddle_status s;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "s|I:run_to", names, &node, &output)) return NULL;
  if (enter(e) < 0) return NULL;
  Py_BEGIN_ALLOW_THREADS;
  s = heddle_executor_run_to(e->ex, node, output, &t, &err);
  Py_END_ALLOW_THREADS;
  return leave(e, s == HEDDLE_OK ? heddle_py_tensor_new(t) : fail(e, s, &err));
}

/* ---- parameters */

static heddle_params *params_of(py_executor *e, PyObject *blob) {
  heddle_error err;
  heddle_status s;
  heddle_params *params = NULL;
  char *data = NULL;
  Py_ssize_t size = 0;
  if (PyBytes_AsStringAndSize(blob, &data, &size) < 0) return NULL;
  Py_BEGIN_ALLOW_THREADS;
  s = heddle_params_parse(data, (size_t)size, "params", NULL, &params, &err);
  Py_END_ALLOW_THREADS;
  if (s == HEDDLE_OK) return params;
  fail(e, s, &err);
  return NULL;
}

static PyObject *load_params(PyObject *self, PyObject *blob) {
  py_executor *e = executor_of(self);
  heddle_error err;
  heddle_status s;
  if (enter(e) < 0) return NULL;
  heddle_params *params = params_of(e, blob);
  if (params == NULL) return leave(e, NULL);
  Py_BEGIN_ALLOW_THREADS;
  s = heddle_executor_load_params(e->ex, params, &err);
  heddle_params_release(params);
  Py_END_ALLOW_THREADS;
  return leave(e, none_or_fail(e, s, &err));
}

static PyObject *share_params(PyObject *self, PyObject *args) {
  py_executor *e = executor_of(self), *other;
  PyObject *from, *blob;
  heddle_error err;
  heddle_status s;
  if (!PyArg_ParseTuple(args, "O!S:share_params", executor_type(), &from, &blob)) return NULL;
  other = executor_of(from);
  if (enter(e) < 0) return NULL;
  if (other != e && enter(other) < 0) return leave(e, NULL);
  heddle_params *params = params_of(e, blob);
  PyObject *result = NULL;
  if (params != NULL) {
    Py_BEGIN_ALLOW_THREADS;
    s = heddle_executor_share_params(e->ex, other->ex, params, &err);
    heddle_params_release(params);
    Py_END_ALLOW_THREADS;
    result = none_or_fail(e, s, &err);
  }
  if (other != e) leave(other, NULL);
  return leave(e, result);
}

/* ---- told */

static PyObject *profile_rows(const heddle_profile_entry *entries, size_t n) {
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
  py_executor *e = executor_of(self);
  const heddle_profile_entry *entries = NULL;
  size_t n = 0;
  heddle_error err;
  heddle_status s;
  if (enter(e) < 0) return NULL;
  Py_BEGIN_ALLOW_THREADS;
  s = heddle_executor_profile(e->ex, &entries, &n, &err);
  Py_END_ALLOW_THREADS;
  return leave(e, s == HEDDLE_OK ? profile_rows(entries, n) : fail(e, s, &err));
}

static PyObject *stats(PyObject *self, PyObject *none) {
  (void)none;
  py_executor *e = executor_of(self);
  heddle_executor_stats t = {.struct_size = sizeof t};
  heddle_error err;
  if (enter(e) < 0) return NULL;
  heddle_status s = heddle_executor_get_stats(e->ex, &t, &err);
  leave(e, NULL);
  if (s != HEDDLE_OK) return fail(e, s, &err);
  return Py_BuildValue("{s:K,s:K,s:K,s:K,s:K,s:K,s:K,s:K}", "runs", (unsigned long long)t.runs, "bytes_copied",
                       (unsigned long long)t.bytes_copied, "copies", (unsigned long long)t.copies, "device_bytes",
                       (unsigned long long)t.device_bytes, "orphan_bytes", (unsigned long long)t.orphan_bytes,
                       "replays", (unsigned long long)t.replays, "retries", (unsigned long long)t.retries, "failovers",
                       (unsigned long long)t.failovers);
}

static PyObject *explain(PyObject *self, PyObject *args, PyObject *kwargs) {
  static char *names[] = {"format", NULL};
  py_executor *e = executor_of(self);
  PyObject *word = NULL;
  heddle_explain_format format;
  heddle_error err;
  heddle_status s;
  char *text = NULL;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O:explain", names, &word)) return NULL;
  if (heddle_py_explain_format(word, &format) < 0 || enter(e) < 0) return NULL;
  Py_BEGIN_ALLOW_THREADS;
  s = heddle_executor_explain(e->ex, format, &text, &err);
  Py_END_ALLOW_THREADS;
  return leave(e, heddle_py_take_text(s, text, &err, e->model->file));
}

static PyObject *get_model(PyObject *self, void *none) {
  (void)none;
  return Py_NewRef((PyObject *)executor_of(self)->model);
}

#define NAMED(name, function, doc) \
  { name, (PyCFunction)(void (*)(void))(function), METH_VARARGS | METH_KEYWORDS, doc }

static PyMethodDef methods[] = {
    {"input_info", input_info, METH_NOARGS, "(name, shape, dtype, is_param) of each input, parameters included."},
    {"output_info", output_info, METH_NOARGS, "(name, shape, dtype) of each output; None for what is not known yet."},
    NAMED("set_input", set_input,
          "set_input(key, value): copies to an input, by name or number; it stays for later runs. Other dtypes are "
          "converted where numpy does so with casting 'same_kind'."),
    NAMED("bind_input", bind_input,
          "bind_input(key, value): the value's own memory from the next run on; row-major, of the input's dtype."),
    NAMED("bind_output", bind_output,
          "bind_output(key, value): runs write to the value's own memory; None: to the executor's again."),
    {"get_input", get_input, METH_O, "get_input(key): a copy of an input, or of a parameter."},
    NAMED("get_output", get_output,
          "get_output(key=0, out=None): a copy of an output of the last run; with out the values are copied there, and "
          "out is given back."),
    NAMED("view_output", view_output,
          "view_output(key=0): the executor's own memory, whose content is valid until the next run starts."),
    NAMED("run", run,
          "run(timeout=None): runs once and waits. RunTimeoutError after so many seconds: the run is then pending "
          "still; wait for it, or cancel it."),
    {"start", start, METH_NOARGS, "Starts a run and returns; wait() gives its end."},
    NAMED("wait", wait_for, "wait(timeout=None): waits for the oldest pending run, and raises what it failed with."),
    {"cancel", cancel, METH_NOARGS, "Ends what is pending with CanceledError; wait() for it."},
    {"done", done, METH_NOARGS, "Whether wait() would return at once."},
    NAMED("run_to", run_to, "run_to(node, output=0): runs up to a node, and gives a copy of one of its outputs."),
    {"load_params", load_params, METH_O, "load_params(blob): sets every parameter of the blob that is an input."},
    {"share_params", share_params, METH_VARARGS,
     "share_params(other, blob): as load_params, with the tensors of another executor, which are not copied."},
    {"profile", profile, METH_NOARGS, "Runs once with each step timed; a list of dicts, in order of start."},
    {"stats", stats, METH_NOARGS, "Numbers since the executor was made: runs, copies, bytes, ..."},
    NAMED("explain", explain, "explain(format='text'): the present plan; 'text', 'json', 'dot'."),
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef getters[] = {
    {"model", get_model, NULL, "The model.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyTypeObject *executor_type(void) {
  return heddle_py.executor_type;
}

int heddle_py_executor_init(PyObject *module) {
  PyType_Slot slots[] = {
      {Py_tp_doc, (void *)"The mutable state of runs; one thread at a time. Model.executor() makes one."},
      {Py_tp_dealloc, HEDDLE_PY_SLOT(dealloc)},
      {Py_tp_methods, methods},
      {Py_tp_getset, getters},
      {0, NULL},
  };
  PyType_Spec spec = {
      .name = "heddle._core.Executor",
      .basicsize = sizeof(py_executor),
      .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
      .slots = slots,
  };
  heddle_py.executor_type = heddle_py_add_type(module, &spec);
  return heddle_py.executor_type != NULL ? 0 : -1;
}
