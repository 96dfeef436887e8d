/* bindings/python/src/options.h: the arguments of Model as heddle_model_options. */
#ifndef HEDDLE_PYTHON_OPTIONS_H
#define HEDDLE_PYTHON_OPTIONS_H

#include "module.h"

typedef struct heddle_py_bytes {
  const char *data; /* NULL: none given */
  size_t size;
} heddle_py_bytes;

/* Strings are borrowed from the arguments, which live for the call, and from keeps. */
typedef struct heddle_py_options {
  heddle_model_options model; /* without library */
  PyObject *context;          /* borrowed */
  const char *path, *params_path, *library;
  heddle_py_bytes graph, params;
  Py_buffer bytes;    /* of a model in memory; buf NULL: none is given */
  const char *folder; /* where weights outside of it lie, or NULL */
  unsigned int pool;
  PyObject *keeps[7];
  const char **lists[3];
} heddle_py_options;

/* 0, or -1 with an exception and nothing to free. */
int heddle_py_options_parse(heddle_py_options *o, PyObject *args, PyObject *kwargs);
void heddle_py_options_free(heddle_py_options *o);

#endif
