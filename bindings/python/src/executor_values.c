/* bindings/python/src/executor_values.c: what goes in and out of an Executor: inputs, outputs and parameters, copied or in
 * memory of the caller's. */
#include "executor.h"

#include <stdio.h>

#include "numpy_api.h"

/* ---- which input or output */

typedef int32_t (*index_fn)(const heddle_executor *ex, const char *name);
typedef heddle_status (*info_fn)(heddle_executor *ex, uint32_t i, heddle_io_info *out, heddle_error *err);

static int say_unknown(const heddle_py_executor *e, const char *name, const char *what, uint32_t n, info_fn info) {
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
  heddle_py_executor_fail(e, HEDDLE_ENOTFOUND, &err);
  return -1;
}

static int find_port(const heddle_py_executor *e, PyObject *key, bool of_inputs, uint32_t *out) {
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
  heddle_py_executor_fail(e, HEDDLE_ENOTFOUND, &err);
  return -1;
}

static int info_of(const heddle_py_executor *e, uint32_t i, bool of_input, heddle_io_info *out) {
  heddle_error err;
  *out = (heddle_io_info){.struct_size = sizeof *out};
  heddle_status s = (of_input ? heddle_executor_input_info : heddle_executor_output_info)(e->ex, i, out, &err);
  if (s == HEDDLE_OK) return 0;
  heddle_py_executor_fail(e, s, &err);
  return -1;
}

static PyObject *infos(heddle_py_executor *e, bool of_inputs) {
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

PyObject *heddle_py_executor_input_info(PyObject *self, PyObject *none) {
  (void)none;
  heddle_py_executor *e = heddle_py_executor_of(self);
  return heddle_py_executor_enter(e) == 0 ? heddle_py_executor_leave(e, infos(e, true)) : NULL;
}

PyObject *heddle_py_executor_output_info(PyObject *self, PyObject *none) {
  (void)none;
  heddle_py_executor *e = heddle_py_executor_of(self);
  return heddle_py_executor_enter(e) == 0 ? heddle_py_executor_leave(e, infos(e, false)) : NULL;
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
static PyObject *give(heddle_py_executor *e, PyObject *args, PyObject *kwargs, give_fn put, bool converts) {
  static char *names[] = {"key", "value", NULL};
  PyObject *key, *value;
  heddle_io_info info;
  heddle_tensor *t = NULL;
  heddle_error err;
  heddle_status s;
  uint32_t i;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO", names, &key, &value)) return NULL;
  if (heddle_py_executor_enter(e) < 0) return NULL;
  if (find_port(e, key, true, &i) < 0 || info_of(e, i, true, &info) < 0) return heddle_py_executor_leave(e, NULL);
  PyObject *name = PyUnicode_FromString(info.name);
  if (name == NULL) return heddle_py_executor_leave(e, NULL);
  PyObject *result = NULL;
  int failed = converts ? heddle_py_tensor_of(value, &info.dtype, &t) : memory_of(value, "what is bound", &t);
  if (failed < 0) {
    heddle_py_about_input(e->model, name);
  } else {
    Py_BEGIN_ALLOW_THREADS;
    s = put(e->ex, i, t, &err);
    Py_END_ALLOW_THREADS;
    heddle_py_tensor_release(t);
    result = heddle_py_executor_done(e, s, &err);
    if (result == NULL) heddle_py_set_node(name);
  }
  Py_DECREF(name);
  return heddle_py_executor_leave(e, result);
}

PyObject *heddle_py_executor_set_input(PyObject *self, PyObject *args, PyObject *kwargs) {
  return give(heddle_py_executor_of(self), args, kwargs, set_copy, true);
}

PyObject *heddle_py_executor_bind_input(PyObject *self, PyObject *args, PyObject *kwargs) {
  return give(heddle_py_executor_of(self), args, kwargs, heddle_executor_bind_input, false);
}

PyObject *heddle_py_executor_get_input(PyObject *self, PyObject *key) {
  heddle_py_executor *e = heddle_py_executor_of(self);
  heddle_tensor *t = NULL;
  heddle_error err;
  heddle_status s;
  uint32_t i;
  if (heddle_py_executor_enter(e) < 0) return NULL;
  if (find_port(e, key, true, &i) < 0) return heddle_py_executor_leave(e, NULL);
  Py_BEGIN_ALLOW_THREADS;
  s = heddle_executor_get_input(e->ex, i, &t, &err);
  Py_END_ALLOW_THREADS;
  return heddle_py_executor_leave(e, s == HEDDLE_OK ? heddle_py_tensor_new(t) : heddle_py_executor_fail(e, s, &err));
}

/* ---- outputs */

PyObject *heddle_py_executor_bind_output(PyObject *self, PyObject *args, PyObject *kwargs) {
  static char *names[] = {"key", "value", NULL};
  heddle_py_executor *e = heddle_py_executor_of(self);
  PyObject *key, *value;
  heddle_tensor *t = NULL;
  heddle_error err;
  heddle_status s;
  uint32_t i;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO:bind_output", names, &key, &value)) return NULL;
  if (heddle_py_executor_enter(e) < 0) return NULL;
  if (find_port(e, key, false, &i) < 0) return heddle_py_executor_leave(e, NULL);
  if (value != Py_None && memory_of(value, "what is bound", &t) < 0) return heddle_py_executor_leave(e, NULL);
  Py_BEGIN_ALLOW_THREADS;
  s = heddle_executor_bind_output(e->ex, i, t, &err);
  Py_END_ALLOW_THREADS;
  heddle_py_tensor_release(t);
  return heddle_py_executor_leave(e, heddle_py_executor_done(e, s, &err));
}

/* A copy, or the values in `to`, which is written to. */
static PyObject *read_output(heddle_py_executor *e, uint32_t i, PyObject *to) {
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
    return s == HEDDLE_OK ? Py_NewRef(to) : heddle_py_executor_fail(e, s, &err);
  }
  s = heddle_executor_view_output(e->ex, i, &t, &err);
  if (s != HEDDLE_OK) return heddle_py_executor_fail(e, s, &err);
  if (heddle_py_tensor_clone(NULL, t, &copy) < 0) copy = NULL;
  heddle_py_tensor_release(t);
  return copy != NULL ? heddle_py_tensor_new(copy) : NULL;
}

PyObject *heddle_py_executor_get_output(PyObject *self, PyObject *args, PyObject *kwargs) {
  static char *names[] = {"key", "out", NULL};
  heddle_py_executor *e = heddle_py_executor_of(self);
  PyObject *key = NULL, *to = NULL;
  uint32_t i = 0;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|OO:get_output", names, &key, &to)) return NULL;
  if (heddle_py_executor_enter(e) < 0) return NULL;
  if (key != NULL && find_port(e, key, false, &i) < 0) return heddle_py_executor_leave(e, NULL);
  return heddle_py_executor_leave(e, read_output(e, i, to));
}

PyObject *heddle_py_executor_view_output(PyObject *self, PyObject *args, PyObject *kwargs) {
  static char *names[] = {"key", NULL};
  heddle_py_executor *e = heddle_py_executor_of(self);
  PyObject *key = NULL;
  heddle_tensor *t = NULL;
  heddle_error err;
  uint32_t i = 0;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O:view_output", names, &key)) return NULL;
  if (heddle_py_executor_enter(e) < 0) return NULL;
  if (key != NULL && find_port(e, key, false, &i) < 0) return heddle_py_executor_leave(e, NULL);
  heddle_status s = heddle_executor_view_output(e->ex, i, &t, &err);
  return heddle_py_executor_leave(e, s == HEDDLE_OK ? heddle_py_tensor_new(t) : heddle_py_executor_fail(e, s, &err));
}

/* ---- parameters */

static heddle_params *params_of(heddle_py_executor *e, PyObject *blob) {
  heddle_error err;
  heddle_status s;
  heddle_params *params = NULL;
  Py_buffer view;
  if (PyObject_GetBuffer(blob, &view, PyBUF_SIMPLE) != 0) return NULL;
  Py_BEGIN_ALLOW_THREADS;
  s = heddle_params_parse(view.buf, (size_t)view.len, "params", NULL, &params, &err);
  Py_END_ALLOW_THREADS;
  PyBuffer_Release(&view);
  if (s == HEDDLE_OK) return params;
  heddle_py_executor_fail(e, s, &err);
  return NULL;
}

PyObject *heddle_py_executor_load_params(PyObject *self, PyObject *blob) {
  heddle_py_executor *e = heddle_py_executor_of(self);
  heddle_error err;
  heddle_status s;
  if (heddle_py_executor_enter(e) < 0) return NULL;
  heddle_params *params = params_of(e, blob);
  if (params == NULL) return heddle_py_executor_leave(e, NULL);
  Py_BEGIN_ALLOW_THREADS;
  s = heddle_executor_load_params(e->ex, params, &err);
  heddle_params_release(params);
  Py_END_ALLOW_THREADS;
  return heddle_py_executor_leave(e, heddle_py_executor_done(e, s, &err));
}

PyObject *heddle_py_executor_share_params(PyObject *self, PyObject *args) {
  heddle_py_executor *e = heddle_py_executor_of(self), *other;
  PyObject *from, *blob;
  heddle_error err;
  heddle_status s;
  if (!PyArg_ParseTuple(args, "O!O:share_params", heddle_py.executor_type, &from, &blob)) return NULL;
  other = heddle_py_executor_of(from);
  if (heddle_py_executor_enter(e) < 0) return NULL;
  if (other != e && heddle_py_executor_enter(other) < 0) return heddle_py_executor_leave(e, NULL);
  heddle_params *params = params_of(e, blob);
  PyObject *result = NULL;
  if (params != NULL) {
    Py_BEGIN_ALLOW_THREADS;
    s = heddle_executor_share_params(e->ex, other->ex, params, &err);
    heddle_params_release(params);
    Py_END_ALLOW_THREADS;
    result = heddle_py_executor_done(e, s, &err);
  }
  if (other != e) heddle_py_executor_leave(other, NULL);
  return heddle_py_executor_leave(e, result);
}
