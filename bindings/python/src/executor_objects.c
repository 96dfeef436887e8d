/* bindings/python/src/executor_objects.c: the texts and sequences of an Executor (heddle/strings.h): numbers for what its
 * inputs have, and what numbers of its outputs stand for. heddle/text.py calls these. */
#include "executor.h"

#include <stdlib.h>

#include "heddle/strings.h"

static PyObject *code_of(heddle_py_executor *e, PyObject *item) {
  heddle_error err;
  int64_t code = 0;
  Py_ssize_t n = 0;
  const char *text = NULL;
  if (PyUnicode_Check(item)) {
    text = PyUnicode_AsUTF8AndSize(item, &n);
  } else if (PyBytes_Check(item)) {
    text = PyBytes_AsString(item);
    n = PyBytes_Size(item);
  } else {
    PyErr_Format(PyExc_TypeError, "a text is str or bytes, not %R", Py_TYPE(item));
  }
  if (text == NULL) return NULL;
  heddle_status s = heddle_executor_text_code(e->ex, text, (size_t)n, &code, &err);
  return s == HEDDLE_OK ? PyLong_FromLongLong(code) : heddle_py_executor_fail(e, s, &err);
}

static PyObject *text_of(heddle_py_executor *e, PyObject *item) {
  heddle_error err;
  const char *text = NULL;
  size_t n = 0;
  const long long code = PyLong_AsLongLong(item);
  if (code == -1 && PyErr_Occurred() != NULL) return NULL;
  heddle_status s = heddle_executor_text(e->ex, code, &text, &n, &err);
  return s == HEDDLE_OK ? PyUnicode_DecodeUTF8(text, (Py_ssize_t)n, "surrogateescape")
                        : heddle_py_executor_fail(e, s, &err);
}

/* A list of what each item of a list becomes. */
static PyObject *each(PyObject *self, PyObject *items, PyObject *(*call)(heddle_py_executor *, PyObject *)) {
  heddle_py_executor *e = heddle_py_executor_of(self);
  if (!PyList_Check(items)) return PyErr_Format(PyExc_TypeError, "a list is wanted, not %R", Py_TYPE(items));
  const Py_ssize_t n = PyList_Size(items);
  PyObject *list = PyList_New(n);
  if (heddle_py_executor_enter(e) < 0) Py_CLEAR(list);
  else {
    for (Py_ssize_t i = 0; list != NULL && i < n; i++) {
      PyObject *one = call(e, PyList_GetItem(items, i));
      if (one == NULL || PyList_SetItem(list, i, one) < 0) Py_CLEAR(list);
    }
    heddle_py_executor_leave(e, NULL);
  }
  return list;
}

PyObject *heddle_py_executor_text_codes(PyObject *self, PyObject *items) {
  return each(self, items, code_of);
}

PyObject *heddle_py_executor_texts(PyObject *self, PyObject *items) {
  return each(self, items, text_of);
}

PyObject *heddle_py_executor_sequence(PyObject *self, PyObject *items) {
  heddle_py_executor *e = heddle_py_executor_of(self);
  if (!PyList_Check(items)) return PyErr_Format(PyExc_TypeError, "a list is wanted, not %R", Py_TYPE(items));
  const Py_ssize_t n = PyList_Size(items);
  heddle_tensor **list = calloc((size_t)n + 1, sizeof *list);
  heddle_error err;
  int64_t code = 0;
  Py_ssize_t got = 0;
  if (list == NULL) return PyErr_NoMemory();
  while (got < n && heddle_py_tensor_of(PyList_GetItem(items, got), NULL, &list[got]) == 0) got++;
  PyObject *result = NULL;
  if (got == n && heddle_py_executor_enter(e) == 0) {
    heddle_status s = heddle_executor_sequence(e->ex, list, (size_t)n, &code, &err);
    result =
        heddle_py_executor_leave(e, s == HEDDLE_OK ? PyLong_FromLongLong(code) : heddle_py_executor_fail(e, s, &err));
  }
  for (Py_ssize_t i = 0; i < got; i++) heddle_py_tensor_release(list[i]);
  free(list);
  return result;
}

PyObject *heddle_py_executor_sequence_items(PyObject *self, PyObject *number) {
  heddle_py_executor *e = heddle_py_executor_of(self);
  heddle_tensor *const *items = NULL;
  heddle_error err;
  size_t n = 0;
  const long long code = PyLong_AsLongLong(number);
  if ((code == -1 && PyErr_Occurred() != NULL) || heddle_py_executor_enter(e) < 0) return NULL;
  heddle_status s = heddle_executor_sequence_items(e->ex, code, &items, &n, &err);
  PyObject *list = s == HEDDLE_OK ? PyList_New((Py_ssize_t)n) : heddle_py_executor_fail(e, s, &err);
  for (size_t i = 0; list != NULL && i < n; i++) {
    PyObject *one = heddle_py_tensor_new(heddle_tensor_retain(items[i]));
    if (one == NULL || PyList_SetItem(list, (Py_ssize_t)i, one) < 0) Py_CLEAR(list);
  }
  return heddle_py_executor_leave(e, list);
}
