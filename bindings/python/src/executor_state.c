/* bindings/python/src/executor_state.c: the state values of an Executor: read, written, kept in files, shared. */
#include "executor.h"

#include "heddle/state.h"

/* ---- which */

static int find_state(const heddle_py_executor *e, PyObject *key, uint32_t *out) {
  uint32_t n = heddle_executor_state_count(e->ex);
  *out = HEDDLE_STATE_ALL;
  if (key == NULL || key == Py_None) return 0;
  if (PyUnicode_Check(key)) {
    const char *name = PyUnicode_AsUTF8AndSize(key, NULL);
    if (name == NULL) return -1;
    int32_t i = heddle_executor_state_index(e->ex, name);
    *out = (uint32_t)i;
    if (i >= 0) return 0;
    heddle_py_fail_words(HEDDLE_ENOTFOUND, "there is no state value '%.200s'; there are %u", name, (unsigned)n);
    return -1;
  }
  PyObject *number = PyNumber_Index(key);
  long long i = number != NULL ? PyLong_AsLongLong(number) : -1;
  Py_XDECREF(number);
  if (PyErr_Occurred()) return -1;
  *out = (uint32_t)i;
  if (i >= 0 && i < n) return 0;
  heddle_py_fail_words(HEDDLE_ENOTFOUND, "there is no state value %lld; there are %u, counted from 0", i, (unsigned)n);
  return -1;
}

/* ---- what there is */

static PyObject *info_of(const heddle_state_info *t) {
  PyObject *shape = heddle_py_shape(t->shape, t->ndim), *dtype = heddle_py_dtype_name(t->dtype), *axis = NULL;
  PyObject *out = NULL;
  axis = t->axis == HEDDLE_STATE_NO_AXIS ? Py_NewRef(Py_None) : PyLong_FromUnsignedLong(t->axis);
  if (shape != NULL && dtype != NULL && axis != NULL)
    out = Py_BuildValue("{s:s,s:s,s:O,s:O,s:s,s:K,s:O,s:O}", "input", t->input, "output", t->output, "shape", shape,
                        "dtype", dtype, "device", t->device != NULL ? heddle_device_name(t->device) : "cpu", "bytes",
                        (unsigned long long)t->bytes, "axis", axis, "is_reset", t->is_reset ? Py_True : Py_False);
  Py_XDECREF(shape);
  Py_XDECREF(dtype);
  Py_XDECREF(axis);
  return out;
}

PyObject *heddle_py_executor_state_info(PyObject *self, PyObject *none) {
  (void)none;
  heddle_py_executor *e = heddle_py_executor_of(self);
  if (heddle_py_executor_enter(e) < 0) return NULL;
  PyObject *list = PyList_New(0);
  for (uint32_t i = 0; list != NULL && i < heddle_executor_state_count(e->ex); i++) {
    heddle_state_info t = {.struct_size = sizeof t};
    heddle_error err;
    heddle_status s = heddle_executor_state_info(e->ex, i, &t, &err);
    PyObject *one = s == HEDDLE_OK ? info_of(&t) : heddle_py_executor_fail(e, s, &err);
    if (one == NULL || PyList_Append(list, one) < 0) Py_CLEAR(list);
    Py_XDECREF(one);
  }
  return heddle_py_executor_leave(e, list);
}

/* ---- values */

PyObject *heddle_py_executor_reset_state(PyObject *self, PyObject *args, PyObject *kwargs) {
  static char *names[] = {"key", NULL};
  heddle_py_executor *e = heddle_py_executor_of(self);
  PyObject *key = NULL;
  heddle_error err;
  uint32_t i;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O:reset_state", names, &key)) return NULL;
  if (heddle_py_executor_enter(e) < 0) return NULL;
  if (find_state(e, key, &i) < 0) return heddle_py_executor_leave(e, NULL);
  heddle_status s = heddle_executor_reset_state(e->ex, i, &err);
  return heddle_py_executor_leave(e, heddle_py_executor_done(e, s, &err));
}

PyObject *heddle_py_executor_read_state(PyObject *self, PyObject *key) {
  heddle_py_executor *e = heddle_py_executor_of(self);
  heddle_tensor *t = NULL;
  heddle_error err;
  heddle_status s;
  uint32_t i;
  if (heddle_py_executor_enter(e) < 0) return NULL;
  if (find_state(e, key, &i) < 0) return heddle_py_executor_leave(e, NULL);
  Py_BEGIN_ALLOW_THREADS;
  s = heddle_executor_read_state(e->ex, i, &t, &err);
  Py_END_ALLOW_THREADS;
  return heddle_py_executor_leave(e, s == HEDDLE_OK ? heddle_py_tensor_new(t) : heddle_py_executor_fail(e, s, &err));
}

PyObject *heddle_py_executor_write_state(PyObject *self, PyObject *args, PyObject *kwargs) {
  static char *names[] = {"key", "value", NULL};
  heddle_py_executor *e = heddle_py_executor_of(self);
  PyObject *key, *value;
  heddle_state_info info = {.struct_size = sizeof info};
  heddle_tensor *t = NULL;
  heddle_error err;
  heddle_status s;
  uint32_t i;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO:write_state", names, &key, &value)) return NULL;
  if (heddle_py_executor_enter(e) < 0) return NULL;
  if (find_state(e, key, &i) < 0) return heddle_py_executor_leave(e, NULL);
  s = heddle_executor_state_info(e->ex, i, &info, &err);
  if (s != HEDDLE_OK) return heddle_py_executor_leave(e, heddle_py_executor_fail(e, s, &err));
  if (heddle_py_tensor_of(value, &info.dtype, &t) < 0) return heddle_py_executor_leave(e, NULL);
  Py_BEGIN_ALLOW_THREADS;
  s = heddle_executor_write_state(e->ex, i, t, &err);
  Py_END_ALLOW_THREADS;
  heddle_py_tensor_release(t);
  return heddle_py_executor_leave(e, heddle_py_executor_done(e, s, &err));
}

PyObject *heddle_py_executor_truncate_state(PyObject *self, PyObject *args, PyObject *kwargs) {
  static char *names[] = {"length", "key", NULL};
  heddle_py_executor *e = heddle_py_executor_of(self);
  PyObject *key = NULL;
  long long length = 0;
  heddle_error err;
  heddle_status s;
  uint32_t i;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "L|O:truncate_state", names, &length, &key)) return NULL;
  if (heddle_py_executor_enter(e) < 0) return NULL;
  if (find_state(e, key, &i) < 0) return heddle_py_executor_leave(e, NULL);
  Py_BEGIN_ALLOW_THREADS;
  s = heddle_executor_truncate_state(e->ex, i, length, &err);
  Py_END_ALLOW_THREADS;
  return heddle_py_executor_leave(e, heddle_py_executor_done(e, s, &err));
}

/* ---- files, and other executors */

typedef heddle_status (*file_fn)(heddle_executor *ex, const char *path, heddle_error *err);

static PyObject *with_file(PyObject *self, PyObject *path, file_fn call) {
  heddle_py_executor *e = heddle_py_executor_of(self);
  PyObject *bytes = NULL;
  heddle_error err;
  heddle_status s;
  if (!PyUnicode_FSConverter(path, &bytes)) return NULL;
  const char *name = PyBytes_AsString(bytes);
  if (heddle_py_executor_enter(e) < 0) {
    Py_DECREF(bytes);
    return NULL;
  }
  Py_BEGIN_ALLOW_THREADS;
  s = call(e->ex, name, &err);
  Py_END_ALLOW_THREADS;
  PyObject *result = heddle_py_executor_done(e, s, &err);
  Py_DECREF(bytes);
  return heddle_py_executor_leave(e, result);
}

PyObject *heddle_py_executor_save_state(PyObject *self, PyObject *path) {
  return with_file(self, path, heddle_executor_save_state);
}

PyObject *heddle_py_executor_load_state(PyObject *self, PyObject *path) {
  return with_file(self, path, heddle_executor_load_state);
}

PyObject *heddle_py_executor_fork_state(PyObject *self, PyObject *to) {
  heddle_py_executor *e = heddle_py_executor_of(self);
  heddle_error err;
  if (!PyObject_TypeCheck(to, heddle_py.executor_type)) {
    PyErr_SetString(PyExc_TypeError, "a state is forked to an Executor");
    return NULL;
  }
  heddle_py_executor *other = heddle_py_executor_of(to);
  if (heddle_py_executor_enter(e) < 0) return NULL;
  if (other != e && heddle_py_executor_enter(other) < 0) return heddle_py_executor_leave(e, NULL);
  heddle_status s = heddle_executor_fork_state(e->ex, other->ex, &err);
  if (other != e) heddle_py_executor_leave(other, NULL);
  return heddle_py_executor_leave(e, heddle_py_executor_done(e, s, &err));
}
