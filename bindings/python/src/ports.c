/* bindings/python/src/ports.c: a model's inputs and outputs as calls see them: names in order, dtypes, shapes. Inputs
 * whose values the model has, its parameters, are none of them. */
#include "model.h"

#include <stdlib.h>

#include "numpy_api.h"

static int typenum_of(heddle_dtype dtype) {
  static const struct {
    uint8_t code, bits;
    int typenum;
  } known[] = {
      {HEDDLE_DTYPE_FLOAT, 32, NPY_FLOAT32},     {HEDDLE_DTYPE_FLOAT, 64, NPY_FLOAT64},
      {HEDDLE_DTYPE_FLOAT, 16, NPY_FLOAT16},     {HEDDLE_DTYPE_INT, 64, NPY_INT64},
      {HEDDLE_DTYPE_INT, 32, NPY_INT32},         {HEDDLE_DTYPE_INT, 16, NPY_INT16},
      {HEDDLE_DTYPE_INT, 8, NPY_INT8},           {HEDDLE_DTYPE_UINT, 8, NPY_UINT8},
      {HEDDLE_DTYPE_UINT, 16, NPY_UINT16},       {HEDDLE_DTYPE_UINT, 32, NPY_UINT32},
      {HEDDLE_DTYPE_UINT, 64, NPY_UINT64},       {HEDDLE_DTYPE_BOOL, 8, NPY_BOOL},
      {HEDDLE_DTYPE_COMPLEX, 64, NPY_COMPLEX64}, {HEDDLE_DTYPE_COMPLEX, 128, NPY_COMPLEX128},
  };
  for (size_t i = 0; dtype.lanes == 1 && i < sizeof known / sizeof known[0]; i++)
    if (known[i].code == dtype.code && known[i].bits == dtype.bits) return known[i].typenum;
  return -1;
}

static bool is_open(const heddle_io_info *info) {
  if (info->ndim == UINT32_MAX) return true;
  for (uint32_t i = 0; i < info->ndim; i++)
    if (info->shape[i] < 0) return true;
  return false;
}

static int fill_port(port *p, uint32_t index, const heddle_io_info *info) {
  PyObject *name = PyUnicode_FromString(info->name);
  if (name == NULL) return -1;
  PyUnicode_InternInPlace(&name);
  *p = (port){name, index, info->dtype, typenum_of(info->dtype), is_open(info)};
  return 0;
}

void heddle_py_ports_free(port *ports, uint32_t n) {
  for (uint32_t i = 0; ports != NULL && i < n; i++) Py_XDECREF(ports[i].name);
  free(ports);
}

/* ---- as Python sees them */

PyObject *heddle_py_names(const port *ports, uint32_t n) {
  PyObject *names = PyTuple_New(n);
  for (uint32_t i = 0; names != NULL && i < n; i++) PyTuple_SetItem(names, i, Py_NewRef(ports[i].name));
  return names;
}

PyObject *heddle_py_shape(const int64_t *shape, uint32_t ndim) {
  if (ndim == UINT32_MAX) Py_RETURN_NONE;
  PyObject *tuple = PyTuple_New(ndim);
  for (uint32_t i = 0; tuple != NULL && i < ndim; i++) {
    PyObject *size = shape[i] >= 0 ? PyLong_FromLongLong(shape[i]) : Py_NewRef(Py_None);
    if (size == NULL) Py_CLEAR(tuple);
    else PyTuple_SetItem(tuple, i, size);
  }
  return tuple;
}

/* A shape with the names that the file gives to dimensions which a run decides; None for those without one. */
static PyObject *named_shape(const heddle_value_info *info) {
  if (info->ndim == UINT32_MAX) Py_RETURN_NONE;
  PyObject *tuple = PyTuple_New(info->ndim);
  for (uint32_t i = 0; tuple != NULL && i < info->ndim; i++) {
    bool is_named = info->shape[i] < 0 && info->symbols != NULL && info->symbols[i] != NULL;
    PyObject *size = is_named             ? PyUnicode_FromString(info->symbols[i])
                     : info->shape[i] < 0 ? Py_NewRef(Py_None)
                                          : PyLong_FromLongLong(info->shape[i]);
    if (size == NULL) Py_CLEAR(tuple);
    else PyTuple_SetItem(tuple, i, size);
  }
  return tuple;
}

typedef heddle_status (*io_info_fn)(heddle_executor *ex, uint32_t i, heddle_io_info *out, heddle_error *err);
typedef heddle_status (*value_info_fn)(const heddle_graph *g, uint32_t i, heddle_value_info *out, heddle_error *err);

/* What an executor that was never used knows of the shape, and where that is open, what the file says. */
static PyObject *one_info(const heddle_py_model *model, heddle_executor *ex, const port *p, io_info_fn ask,
                          value_info_fn ask_file, uint32_t n_in_file) {
  heddle_error err;
  heddle_io_info info = {.struct_size = sizeof info};
  heddle_value_info file = {.struct_size = sizeof file, .ndim = UINT32_MAX};
  heddle_status s = ask(ex, p->index, &info, &err);
  bool from_file = s == HEDDLE_OK && is_open(&info) && p->index < n_in_file; /* not of nodes that are kept */
  if (from_file) s = ask_file(heddle_model_graph(model->m), p->index, &file, &err);
  if (s != HEDDLE_OK) return heddle_py_fail(s, &err, model->file);
  PyObject *shape = from_file ? named_shape(&file) : heddle_py_shape(info.shape, info.ndim);
  PyObject *dtype = heddle_py_dtype_name(p->dtype);
  PyObject *all = shape != NULL && dtype != NULL ? PyTuple_Pack(3, p->name, shape, dtype) : NULL;
  Py_XDECREF(shape);
  Py_XDECREF(dtype);
  return all;
}

static PyObject *infos_of(const heddle_py_model *model, heddle_executor *ex, const port *ports, uint32_t n,
                          bool are_inputs) {
  const heddle_graph *g = heddle_model_graph(model->m);
  PyObject *tuple = PyTuple_New(n);
  for (uint32_t i = 0; tuple != NULL && i < n; i++) {
    PyObject *one = are_inputs ? one_info(model, ex, &ports[i], heddle_executor_input_info, heddle_graph_input,
                                          heddle_graph_input_count(g))
                               : one_info(model, ex, &ports[i], heddle_executor_output_info, heddle_graph_output,
                                          heddle_graph_output_count(g));
    if (one == NULL) Py_CLEAR(tuple);
    else PyTuple_SetItem(tuple, i, one);
  }
  return tuple;
}

/* ---- learning */

int heddle_py_ports_learn(heddle_py_model *model, heddle_executor *ex) {
  heddle_error err;
  heddle_status s = HEDDLE_OK;
  uint32_t n_inputs = heddle_executor_input_count(ex), n_outputs = heddle_executor_output_count(ex), used = 0, got = 0;
  port *inputs = calloc(n_inputs + 1, sizeof *inputs), *outputs = calloc(n_outputs + 1, sizeof *outputs);
  bool any_open = false;
  int failed = 0;
  if (inputs == NULL || outputs == NULL) PyErr_NoMemory(), failed = -1;
  for (uint32_t i = 0; failed == 0 && s == HEDDLE_OK && i < n_inputs; i++) {
    heddle_io_info info = {.struct_size = sizeof info};
    s = heddle_executor_input_info(ex, i, &info, &err);
    if (s != HEDDLE_OK || info.is_param) continue;
    failed = fill_port(&inputs[used], i, &info);
    any_open = any_open || inputs[used].is_open;
    used++;
  }
  for (; failed == 0 && s == HEDDLE_OK && got < n_outputs; got++) {
    heddle_io_info info = {.struct_size = sizeof info};
    s = heddle_executor_output_info(ex, got, &info, &err);
    if (s != HEDDLE_OK) break;
    failed = fill_port(&outputs[got], got, &info);
    outputs[got].is_open = outputs[got].is_open || any_open;
  }
  if (s != HEDDLE_OK) heddle_py_fail(s, &err, model->file), failed = -1;
  PyObject *in = failed == 0 ? infos_of(model, ex, inputs, used, true) : NULL;
  PyObject *out = in != NULL ? infos_of(model, ex, outputs, got, false) : NULL;
  if (out == NULL) failed = -1;
  if (failed == 0 && !model->has_ports) { /* else another thread was here first */
    model->inputs = inputs;
    model->outputs = outputs;
    model->input_infos = in;
    model->output_infos = out;
    model->n_inputs = used;
    model->n_outputs = n_outputs;
    model->has_ports = true;
    return 0;
  }
  Py_XDECREF(in);
  Py_XDECREF(out);
  heddle_py_ports_free(inputs, used);
  heddle_py_ports_free(outputs, got);
  return failed;
}

int heddle_py_ports_need(heddle_py_model *model) {
  if (model->has_ports && !model->is_closed) return 0;
  slot *s = heddle_py_pool_take(model);
  if (s == NULL) return -1;
  heddle_py_pool_give(model, s, true);
  return 0;
}

int32_t heddle_py_port_find(const port *ports, uint32_t n, PyObject *name) {
  for (uint32_t i = 0; i < n; i++)
    if (ports[i].name == name) return (int32_t)i;
  for (uint32_t i = 0; PyUnicode_Check(name) && i < n; i++)
    if (PyUnicode_Compare(ports[i].name, name) == 0) return (int32_t)i;
  return -1;
}
