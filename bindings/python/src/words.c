/* bindings/python/src/words.c: exceptions that are about one input of a model: its name is in the words, and is the
 * attribute node, since an input is a node of the graph. */
#include "model.h"

#include <stdarg.h>
#include <stdio.h>

void heddle_py_set_node(PyObject *name) {
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);
  PyErr_NormalizeException(&type, &value, &trace);
  PyObject *node = value != NULL ? PyObject_GetAttrString(value, "node") : NULL;
  if (node == Py_None) PyObject_SetAttrString(value, "node", name);
  Py_XDECREF(node);
  PyErr_Clear();
  PyErr_Restore(type, value, trace);
}

static void fail_input(const heddle_py_model *model, heddle_error *err, PyObject *name) {
  heddle_py_fail(err->status, err, model->file);
  if (name != NULL) heddle_py_set_node(name);
}

void heddle_py_fail_input(const heddle_py_model *model, heddle_status status, PyObject *name, const char *format, ...) {
  heddle_error err = {.status = status};
  char words[768];
  va_list args;
  va_start(args, format);
  vsnprintf(words, sizeof words, format, args);
  va_end(args);
  snprintf(err.text, sizeof err.text, "%.200s: %s", model->file != NULL ? model->file : "graph", words);
  fail_input(model, &err, name);
}

/* The names of ports as text; "" where there is no memory for them. */
static void list_ports(const port *ports, uint32_t count, char *words, size_t room) {
  size_t used = 0;
  words[0] = '\0';
  for (uint32_t i = 0; i < count && used + 1 < room; i++) {
    const char *name = PyUnicode_AsUTF8AndSize(ports[i].name, NULL);
    int n = snprintf(words + used, room - used, "%s%s", i > 0 ? ", " : "", name != NULL ? name : "?");
    used += n > 0 ? (size_t)n : 0;
  }
  if (count == 0) snprintf(words, room, "none");
}

static void list_inputs(const heddle_py_model *model, char *words, size_t room) {
  list_ports(model->inputs, model->n_inputs, words, room);
}

void heddle_py_say_missing(const heddle_py_model *model, PyObject *name) {
  char all[400];
  const char *input = PyUnicode_AsUTF8AndSize(name, NULL);
  list_inputs(model, all, sizeof all);
  heddle_py_fail_input(model, HEDDLE_EINVAL, name, "input '%.200s' is missing; the model's inputs: %s",
                       input != NULL ? input : "?", all);
}

void heddle_py_say_unknown(const heddle_py_model *model, PyObject *name) {
  char all[400];
  const char *input = PyUnicode_Check(name) ? PyUnicode_AsUTF8AndSize(name, NULL) : NULL;
  list_inputs(model, all, sizeof all);
  if (input == NULL) heddle_py_fail_input(model, HEDDLE_EINVAL, NULL, "names of inputs are str; there are: %s", all);
  else
    heddle_py_fail_input(model, HEDDLE_ENOTFOUND, name, "there is no input '%.200s'; the model's inputs: %s", input,
                         all);
}

void heddle_py_say_unknown_output(const heddle_py_model *model, PyObject *name) {
  char all[400];
  const char *output = PyUnicode_Check(name) ? PyUnicode_AsUTF8AndSize(name, NULL) : NULL;
  list_ports(model->outputs, model->n_outputs, all, sizeof all);
  if (output == NULL) heddle_py_fail_input(model, HEDDLE_EINVAL, NULL, "names of outputs are str; there are: %s", all);
  else
    heddle_py_fail_input(model, HEDDLE_ENOTFOUND, name, "there is no output '%.200s'; the model's outputs: %s", output,
                         all);
}

void heddle_py_about_input(const heddle_py_model *model, PyObject *name) {
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);
  PyErr_NormalizeException(&type, &value, &trace);
  if (trace != NULL) PyException_SetTraceback(value, trace);
  PyObject *code = PyObject_GetAttrString(value, "code"); /* only a heddle.Error has one that is a number */
  PyErr_Clear();
  bool is_ours = code != NULL && PyLong_Check(code);
  PyObject *text = is_ours || type == PyExc_TypeError || type == PyExc_ValueError ? PyObject_Str(value) : NULL;
  const char *words = text != NULL ? PyUnicode_AsUTF8AndSize(text, NULL) : NULL;
  const char *input = PyUnicode_AsUTF8AndSize(name, NULL);
  PyErr_Clear();
  if (words == NULL || input == NULL) { /* of the object itself */
    PyErr_Restore(type, value, trace);
  } else {
    heddle_status status = is_ours ? (heddle_status)PyLong_AsLong(code) : HEDDLE_EINVAL;
    heddle_py_fail_input(model, status, name, "input '%.200s': %s", input, words);
    Py_DECREF(type);
    Py_DECREF(value);
    Py_XDECREF(trace);
  }
  Py_XDECREF(text);
  Py_XDECREF(code);
}
