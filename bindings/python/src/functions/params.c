/* bindings/python/src/functions/params.c: blobs of parameters, as TVM's save_param_dict writes them, byte for byte. */
#include "functions.h"

/* The names' objects are kept by rows, which is what names point into. */
typedef struct entries {
  const char **names;
  heddle_tensor **tensors;
  Py_ssize_t n;
} entries;

static void drop(entries *e) {
  for (Py_ssize_t i = 0; i < e->n; i++) heddle_tensor_release(e->tensors[i]);
  PyMem_Free((void *)e->names);
  PyMem_Free((void *)e->tensors);
}

static int take(heddle_py_state *state, entries *e, PyObject *rows) {
  Py_ssize_t n = PyList_Size(rows);
  *e = (entries){NULL, NULL, 0};
  if (n < 0) return -1;
  e->names = PyMem_Calloc((size_t)n + 1, sizeof(char *));
  e->tensors = PyMem_Calloc((size_t)n + 1, sizeof(heddle_tensor *));
  if (e->names == NULL || e->tensors == NULL) PyErr_NoMemory();
  while (!PyErr_Occurred() && e->n < n) {
    PyObject *row = PyList_GetItem(rows, e->n), *name = PyTuple_GetItem(row, 0), *value = PyTuple_GetItem(row, 1);
    e->names[e->n] = name != NULL ? PyUnicode_AsUTF8AndSize(name, NULL) : NULL;
    if (e->names[e->n] != NULL && value != NULL && state->core->tensor_of(value, NULL, &e->tensors[e->n]) == 0) e->n++;
  }
  return PyErr_Occurred() ? -1 : 0;
}

/* Tensors of devices as copies on the host. */
static heddle_status to_host(entries *e, heddle_error *err) {
  heddle_status s = HEDDLE_OK;
  for (Py_ssize_t i = 0; i < e->n && s == HEDDLE_OK; i++) {
    heddle_tensor *t = e->tensors[i], *copy = NULL;
    if (heddle_tensor_device(t) == NULL) continue;
    s = heddle_tensor_create(NULL, heddle_tensor_dtype(t), heddle_tensor_shape(t), heddle_tensor_ndim(t), &copy, err);
    if (s == HEDDLE_OK) s = heddle_tensor_copy(copy, t, err);
    if (s == HEDDLE_OK) {
      e->tensors[i] = copy;
      copy = t;
    }
    heddle_tensor_release(copy);
  }
  return s;
}

PyObject *heddle_py_params_save(PyObject *module, PyObject *rows) {
  heddle_py_state *state = PyModule_GetState(module);
  heddle_error err = {0};
  heddle_status s = HEDDLE_OK;
  heddle_params *params = NULL;
  void *data = NULL;
  size_t bytes = 0;
  entries e;
  PyObject *blob = NULL;
  if (take(state, &e, rows) == 0) {
    Py_BEGIN_ALLOW_THREADS;
    s = to_host(&e, &err);
    if (s == HEDDLE_OK) s = heddle_params_create(e.names, e.tensors, (size_t)e.n, &params, &err);
    if (s == HEDDLE_OK) s = heddle_params_bytes(params, &data, &bytes, &err);
    Py_END_ALLOW_THREADS;
    blob = s == HEDDLE_OK ? PyByteArray_FromStringAndSize(data, (Py_ssize_t)bytes) : state->core->fail(s, &err, NULL);
  }
  heddle_free(data);
  heddle_params_release(params);
  drop(&e);
  return blob;
}

PyObject *heddle_py_params_load(PyObject *module, PyObject *blob) {
  heddle_py_state *state = PyModule_GetState(module);
  heddle_error err = {0};
  heddle_status s;
  heddle_params *params = NULL;
  Py_buffer view;
  if (PyObject_GetBuffer(blob, &view, PyBUF_SIMPLE) != 0) return NULL;
  Py_BEGIN_ALLOW_THREADS;
  s = heddle_params_parse(view.buf, (size_t)view.len, "the parameters", NULL, &params, &err);
  Py_END_ALLOW_THREADS;
  PyBuffer_Release(&view);
  PyObject *dict = s == HEDDLE_OK ? PyDict_New() : state->core->fail(s, &err, NULL);
  for (uint32_t i = 0; dict != NULL && i < heddle_params_count(params); i++) {
    heddle_tensor *t = NULL;
    s = heddle_params_tensor(params, i, &t, &err);
    PyObject *array = s == HEDDLE_OK ? heddle_py_array_new(state, t) : state->core->fail(s, &err, NULL);
    if (array == NULL || PyDict_SetItemString(dict, heddle_params_name(params, i), array) != 0) Py_CLEAR(dict);
    Py_XDECREF(array);
  }
  heddle_params_release(params);
  return dict;
}
