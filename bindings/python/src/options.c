/* bindings/python/src/options.c: the arguments of Model as heddle_model_options, and what they borrow from Python. */
#include "options.h"

#include <stdlib.h>

/* The strings of a sequence; *keep holds what they are borrowed from. */
static int strings_of(PyObject *object, const char *what, const char ***out, size_t *n, PyObject **keep) {
  *out = NULL;
  *n = 0;
  if (object == NULL || object == Py_None) return 0;
  if (PyUnicode_Check(object)) {
    PyErr_Format(PyExc_TypeError, "%s is a sequence of str, not one str", what);
    return -1;
  }
  *keep = PySequence_Tuple(object);
  if (*keep == NULL) return -1;
  Py_ssize_t count = PyTuple_Size(*keep);
  const char **strings = calloc((size_t)count + 1, sizeof *strings);
  if (strings == NULL) {
    PyErr_NoMemory();
    return -1;
  }
  *out = strings;
  for (Py_ssize_t i = 0; i < count; i++) {
    PyObject *one = PyTuple_GetItem(*keep, i);
    strings[i] = PyUnicode_Check(one) ? PyUnicode_AsUTF8AndSize(one, NULL) : NULL;
    if (strings[i] != NULL) continue;
    if (!PyErr_Occurred()) PyErr_Format(PyExc_TypeError, "%s is a sequence of str", what);
    return -1;
  }
  *n = (size_t)count;
  return 0;
}

static int bytes_of(PyObject *object, const char *what, heddle_py_bytes *out) {
  Py_ssize_t size = 0;
  *out = (heddle_py_bytes){NULL, 0};
  if (object == NULL || object == Py_None) return 0;
  if (PyUnicode_Check(object)) {
    out->data = PyUnicode_AsUTF8AndSize(object, &size);
  } else if (PyBytes_Check(object)) {
    char *data = NULL;
    if (PyBytes_AsStringAndSize(object, &data, &size) == 0) out->data = data;
  } else {
    PyErr_Format(PyExc_TypeError, "%s is str or bytes", what);
  }
  out->size = (size_t)size;
  return out->data != NULL ? 0 : -1;
}

/* What os.fspath gives, in the file system's encoding; *keep holds it. NULL for None. */
static int path_of(PyObject *object, const char **out, PyObject **keep) {
  *out = NULL;
  if (object == NULL || object == Py_None) return 0;
  if (!PyUnicode_FSConverter(object, keep)) return -1;
  *out = PyBytes_AsString(*keep);
  return *out != NULL ? 0 : -1;
}

static int parse(heddle_py_options *o, PyObject *args, PyObject *kwargs) {
  static char *names[] = {"context",     "path",
                          "graph",       "params",
                          "library",     "model_name",
                          "devices",     "place",
                          "keep",        "flags",
                          "max_streams", "max_programs",
                          "in_flight",   "upload_timeout_ns",
                          "optimize",    "dims",
                          "memory",      "on_failure",
                          "pool",        "plan_timeout_ns",
                          "bytes",       "folder",
                          "trust",       "key",
                          "state",       "seed",
                          NULL};
  PyObject *bytes = NULL, *folder = NULL;
  PyObject *path = NULL, *graph = NULL, *params = NULL, *library = NULL, *place = NULL, *keep = NULL, *dims = NULL;
  unsigned long long upload_ns = 0, plan_ns = 0, seed = 0;
  unsigned int flags = 0, streams = 0, programs = 0, in_flight = 0;
  heddle_model_options *m = &o->model;
  if (!PyArg_ParseTupleAndKeywords(
          args, kwargs, "O|O$OOOzzOOIIIIKzOzzIKOOzzzK:Model", names, &o->context, &path, &graph, &params, &library,
          &m->model_name, &m->devices, &place, &keep, &flags, &streams, &programs, &in_flight, &upload_ns, &m->optimize,
          &dims, &m->memory, &m->on_failure, &o->pool, &plan_ns, &bytes, &folder, &m->trust, &m->key, &m->state, &seed))
    return -1;
  m->flags = flags;
  m->seed = seed;
  m->max_streams = streams;
  m->max_programs = programs;
  m->in_flight = in_flight;
  m->upload_timeout_ns = upload_ns;
  m->plan_timeout_ns = plan_ns;
  if (path_of(path, &o->path, &o->keeps[0]) < 0) return -1;
  if (path_of(library, &o->library, &o->keeps[1]) < 0) return -1;
  if (bytes_of(graph, "graph", &o->graph) < 0) return -1;
  if (o->path == NULL) {
    if (bytes_of(params, "params of a graph that is given itself", &o->params) < 0) return -1;
  } else if (path_of(params, &o->params_path, &o->keeps[2]) < 0) {
    return -1;
  }
  if (strings_of(place, "place", &o->lists[0], &m->n_place, &o->keeps[3]) < 0) return -1;
  if (strings_of(keep, "keep", &o->lists[1], &m->n_keep, &o->keeps[4]) < 0) return -1;
  if (strings_of(dims, "dims", &o->lists[2], &m->n_dims, &o->keeps[5]) < 0) return -1;
  m->place = o->lists[0];
  m->keep = o->lists[1];
  m->dims = o->lists[2];
  if (path_of(folder, &o->folder, &o->keeps[6]) < 0) return -1;
  if (bytes != NULL && bytes != Py_None && PyObject_GetBuffer(bytes, &o->bytes, PyBUF_SIMPLE) < 0) return -1;
  if ((o->path != NULL) + (o->graph.data != NULL) + (o->bytes.obj != NULL) == 1) return 0;
  PyErr_SetString(PyExc_TypeError, "a model needs one of: a path, a graph, bytes");
  return -1;
}

int heddle_py_options_parse(heddle_py_options *o, PyObject *args, PyObject *kwargs) {
  *o = (heddle_py_options){.model = {.struct_size = sizeof o->model}};
  if (parse(o, args, kwargs) == 0) return 0;
  heddle_py_options_free(o);
  return -1;
}

void heddle_py_options_free(heddle_py_options *o) {
  if (o->bytes.obj != NULL) PyBuffer_Release(&o->bytes);
  for (size_t i = 0; i < sizeof o->keeps / sizeof o->keeps[0]; i++) Py_CLEAR(o->keeps[i]);
  for (size_t i = 0; i < sizeof o->lists / sizeof o->lists[0]; i++) {
    free(o->lists[i]);
    o->lists[i] = NULL;
  }
}
