/* bindings/python/src/functions/quantize.c: quantize(path, output, bits, block, flags, accuracy_level, keep): a list with a tuple for each
 * weight that was looked at: node, operator, weight, why it is kept or None, rows, columns, error, worst, bytes before and after. */
#include "functions.h"

#include "heddle/quantize.h"

typedef struct report {
  PyObject *list;
  PyThreadState *thread; /* of the caller, who let go of the interpreter's lock */
  bool failed;           /* with an exception */
} report;

static void take(void *ctx, const heddle_quantize_layer *l) {
  report *r = ctx;
  PyEval_RestoreThread(r->thread);
  PyObject *row = r->failed ? NULL
                            : Py_BuildValue("sssz(LL)(dd)(KK)", l->node, l->op, l->tensor, l->kept, (long long)l->rows,
                                            (long long)l->columns, l->error, l->worst,
                                            (unsigned long long)l->bytes_before, (unsigned long long)l->bytes_after);
  if (row == NULL || PyList_Append(r->list, row) != 0) r->failed = true;
  Py_XDECREF(row);
  r->thread = PyEval_SaveThread();
}

PyObject *heddle_py_quantize(PyObject *module, PyObject *args) {
  heddle_py_state *state = PyModule_GetState(module);
  heddle_quantize_options o = {.struct_size = sizeof o, .report = take};
  const char *path, *output;
  PyObject *keep;
  heddle_error err = {0};
  if (!PyArg_ParseTuple(args, "ssIIIIO!", &path, &output, &o.bits, &o.block, &o.flags, &o.accuracy_level, &PyList_Type,
                        &keep))
    return NULL;
  const Py_ssize_t n = PyList_Size(keep);
  const char **patterns = PyMem_Calloc((size_t)n + 1, sizeof *patterns);
  report r = {.list = PyList_New(0), .failed = patterns == NULL};
  if (patterns == NULL) PyErr_NoMemory();
  for (Py_ssize_t i = 0; i < n && !r.failed; i++) {
    PyObject *item = PyList_GetItem(keep, i);
    patterns[i] = item != NULL ? PyUnicode_AsUTF8AndSize(item, NULL) : NULL;
    r.failed = patterns[i] == NULL;
  }
  if (r.list == NULL || r.failed) {
    Py_XDECREF(r.list);
    PyMem_Free((void *)patterns);
    return NULL;
  }
  o.keep = patterns;
  o.n_keep = (size_t)n;
  o.ctx = &r;
  r.thread = PyEval_SaveThread();
  const heddle_status s = heddle_quantize(path, output, &o, &err);
  PyEval_RestoreThread(r.thread);
  PyMem_Free((void *)patterns);
  if (s == HEDDLE_OK && !r.failed) return r.list;
  Py_DECREF(r.list);
  return r.failed ? NULL : state->core->fail(s, &err, path);
}
