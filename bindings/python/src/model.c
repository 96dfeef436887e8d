/* bindings/python/src/model.c: the type Model: made from a file, from bytes or from text, explained, closed. Calls are in call.c,
 * its executors in pool.c. */
#include "model.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "options.h"

#define MOST_EXECUTORS 1024

static heddle_py_model *model_of(PyObject *self) {
  return (heddle_py_model *)self;
}

/* ---- made and ended */

static uint32_t pool_limit(unsigned int asked) {
  if (asked > 0) return asked < MOST_EXECUTORS ? asked : MOST_EXECUTORS;
  long cores = sysconf(_SC_NPROCESSORS_ONLN);
  return cores < 1 ? 1 : cores < MOST_EXECUTORS ? (uint32_t)cores : MOST_EXECUTORS;
}

/* Without the GIL. */
static heddle_status load_text(heddle_context *ctx, const heddle_py_options *o, heddle_model **out, heddle_error *err) {
  heddle_graph *graph = NULL;
  heddle_params *params = NULL;
  const heddle_read_limits limits = {.struct_size = sizeof limits, .trust = o->model.trust, .key = o->model.key};
  heddle_model_options options = o->model;
  options.trust = options.key = NULL; /* they are the readers' */
  heddle_status s = heddle_graph_parse(o->graph.data, o->graph.size, "graph", &limits, &graph, err);
  if (s == HEDDLE_OK && o->params.data != NULL)
    s = heddle_params_parse(o->params.data, o->params.size, "params", &limits, &params, err);
  if (s == HEDDLE_OK) s = heddle_model_create(ctx, graph, params, &options, out, err);
  heddle_params_release(params);
  heddle_graph_release(graph);
  return s;
}

static heddle_status load(heddle_context *ctx, heddle_py_options *o, heddle_model **out, heddle_error *err) {
  heddle_module *library = NULL;
  heddle_status s = HEDDLE_OK;
  const heddle_module_options opening = {sizeof opening, o->model.trust, o->model.key};
  if (o->library != NULL) s = heddle_module_open(ctx, o->library, &opening, &library, err);
  o->model.library = library;
  if (s == HEDDLE_OK && o->path != NULL) s = heddle_model_load(ctx, o->path, o->params_path, &o->model, out, err);
  else if (s == HEDDLE_OK && o->bytes.obj != NULL)
    s = heddle_model_parse(ctx, o->bytes.buf, (size_t)o->bytes.len, o->folder, &o->model, out, err);
  else if (s == HEDDLE_OK) s = load_text(ctx, o, out, err);
  heddle_module_release(library);
  return s;
}

/* By name: asking a device what it can do has all plugins loaded, other drivers too. */
static bool may_lend(const heddle_model *m) {
  if (heddle_model_library(m) != NULL) return false; /* it wants memory aligned as arrays of numpy are not */
  for (size_t i = 0; i < heddle_model_device_count(m); i++)
    if (strncmp(heddle_device_name(heddle_model_device(m, i)), "cpu:", 4) != 0) return false;
  return true;
}

static int init(PyObject *self, PyObject *args, PyObject *kwargs) {
  heddle_py_model *model = model_of(self);
  heddle_py_options o;
  heddle_error err;
  heddle_model *m = NULL;
  if (model->m != NULL || model->is_closed) {
    heddle_py_fail_words(HEDDLE_EINVAL, "a model is made once; load another");
    return -1;
  }
  if (heddle_py_options_parse(&o, args, kwargs) < 0) return -1;
  heddle_context *ctx = heddle_py_context_of(o.context);
  heddle_status s = HEDDLE_EINVAL;
  char *file = o.path != NULL ? strdup(o.path) : NULL;
  if (ctx != NULL) {
    heddle_context_retain(ctx);
    Py_BEGIN_ALLOW_THREADS;
    s = load(ctx, &o, &m, &err);
    heddle_context_release(ctx);
    Py_END_ALLOW_THREADS;
    if (s != HEDDLE_OK) heddle_py_fail(s, &err, file);
  }
  if (s == HEDDLE_OK && model->m == NULL && heddle_py_pool_init(&model->pool, pool_limit(o.pool)) == 0) {
    model->m = m;
    model->context = Py_NewRef(o.context);
    model->path = file != NULL ? PyUnicode_DecodeFSDefault(file) : Py_NewRef(Py_None);
    model->file = file;
    model->n_nodes = heddle_graph_node_count(heddle_model_graph(m));
    model->lends = may_lend(m);
    model->has_lanes = o.model.in_flight > 1;
  } else {
    heddle_model_release(m);
    free(file);
  }
  heddle_py_options_free(&o);
  return model->path != NULL && !PyErr_Occurred() ? 0 : -1;
}

/* Idle executors go now, others when their calls have ended; the model itself with the last of them. */
static void close_model(heddle_py_model *model) {
  model->is_closed = true;
  heddle_py_pool_trim(model);
  heddle_py_pool_drop_model(model);
}

/* A cycle goes on through the attributes of a subclass, or the context's log, which clear it. */
static int traverse(PyObject *self, visitproc visit, void *arg) {
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(model_of(self)->context);
  return 0;
}

static void dealloc(PyObject *self) {
  heddle_py_model *model = model_of(self);
  PyObject_GC_UnTrack(self);
  PyObject *kind, *value, *trace;
  PyErr_Fetch(&kind, &value, &trace);
  close_model(model); /* no thread is in a call: a call holds the model */
  heddle_py_pool_free(&model->pool);
  heddle_py_ports_free(model->inputs, model->n_inputs);
  heddle_py_ports_free(model->outputs, model->n_outputs);
  Py_CLEAR(model->input_infos);
  Py_CLEAR(model->output_infos);
  Py_CLEAR(model->context);
  Py_CLEAR(model->path);
  free(model->file);
  PyErr_Restore(kind, value, trace);
  heddle_py_free(self);
}

static PyObject *close_it(PyObject *self, PyObject *none) {
  (void)none;
  close_model(model_of(self));
  Py_RETURN_NONE;
}

static PyObject *trim(PyObject *self, PyObject *none) {
  (void)none;
  return PyLong_FromUnsignedLong(heddle_py_pool_trim(model_of(self)));
}

/* The C model, with a reference; NULL with an exception where it is closed. */
static heddle_model *open_model(const heddle_py_model *model) {
  if (model->m != NULL && !model->is_closed) return heddle_model_retain(model->m);
  heddle_py_say_closed(model);
  return NULL;
}

/* ---- reports */

static int format_of(PyObject *word, heddle_explain_format *out) {
  static const char *const words[] = {"text", "json", "dot"};
  for (int i = 0; i < 3; i++) {
    if (PyUnicode_CompareWithASCIIString(word, words[i]) != 0) continue;
    *out = (heddle_explain_format)i;
    return 0;
  }
  heddle_py_fail_words(HEDDLE_EINVAL, "explain: the format is \"text\", \"json\" or \"dot\"");
  return -1;
}

PyObject *heddle_py_take_text(heddle_status s, char *text, const heddle_error *err, const char *file) {
  if (s != HEDDLE_OK) return heddle_py_fail(s, err, file);
  PyObject *string = PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "replace");
  heddle_free(text);
  return string;
}

int heddle_py_explain_format(PyObject *word, heddle_explain_format *out) {
  *out = HEDDLE_EXPLAIN_TEXT;
  if (word == NULL) return 0;
  if (PyUnicode_Check(word)) return format_of(word, out);
  PyErr_SetString(PyExc_TypeError, "format is a str");
  return -1;
}

/* Names and tensors of a mapping; what is got is to be freed, after a failure too. */
typedef struct given {
  PyObject *items;
  const char **names;
  heddle_tensor **tensors;
  size_t n;
} given;

int heddle_py_is_mapping(PyObject *object) {
  if (PyDict_Check(object)) return 1;
  if (PyList_Check(object) || PyTuple_Check(object) || heddle_py_is_array(object) || heddle_py_is_tensor(object))
    return 0;
  PyObject *abc = PyImport_ImportModule("collections.abc");
  PyObject *mapping = abc != NULL ? PyObject_GetAttrString(abc, "Mapping") : NULL;
  int is = mapping != NULL ? PyObject_IsInstance(object, mapping) : -1;
  Py_XDECREF(mapping);
  Py_XDECREF(abc);
  return is;
}

PyObject *heddle_py_items(PyObject *mapping) {
  PyObject *items = PyMapping_Items(mapping);
  if (items == NULL && PyErr_ExceptionMatches(PyExc_AttributeError))
    PyErr_Format(PyExc_TypeError, "a mapping of names to values is wanted, not %R", Py_TYPE(mapping));
  for (Py_ssize_t i = 0; items != NULL && i < PyList_Size(items); i++) {
    PyObject *item = PyList_GetItem(items, i);
    if (PyTuple_Check(item) && PyTuple_Size(item) == 2) continue;
    PyErr_Format(PyExc_TypeError, "items() of %R gave an item that is no tuple of a name and a value",
                 Py_TYPE(mapping));
    Py_CLEAR(items);
  }
  return items;
}

static int given_of(PyObject *inputs, given *g) {
  *g = (given){NULL, NULL, NULL, 0};
  if (inputs == NULL || inputs == Py_None) return 0;
  g->items = heddle_py_items(inputs);
  if (g->items == NULL) return -1;
  Py_ssize_t n = PyList_Size(g->items);
  g->names = calloc((size_t)n + 1, sizeof *g->names);
  g->tensors = calloc((size_t)n + 1, sizeof(heddle_tensor *));
  if (g->names == NULL || g->tensors == NULL) {
    PyErr_NoMemory();
    return -1;
  }
  for (Py_ssize_t i = 0; i < n; i++) {
    PyObject *item = PyList_GetItem(g->items, i);
    g->names[i] = PyUnicode_AsUTF8AndSize(PyTuple_GetItem(item, 0), NULL);
    if (g->names[i] == NULL) return -1;
    if (heddle_py_tensor_of(PyTuple_GetItem(item, 1), NULL, &g->tensors[i]) < 0) return -1;
    g->n++;
  }
  return 0;
}

static void given_free(given *g) {
  for (size_t i = 0; i < g->n; i++) heddle_py_tensor_release(g->tensors[i]);
  free(g->names);
  free(g->tensors);
  Py_XDECREF(g->items);
}

/* The plan of the last call's shapes, where a model's own are open; else, or where no call was made, fails. */
static PyObject *explain_last(heddle_py_model *model, heddle_explain_format format, const heddle_error *before) {
  heddle_error err = *before;
  heddle_status s = before->status;
  char *text = NULL;
  slot *used = model->pool.idle; /* the one that was given back last */
  if (used != NULL && used->has_run) {
    used = heddle_py_pool_take(model);
    if (used == NULL) return NULL;
    Py_BEGIN_ALLOW_THREADS;
    s = heddle_executor_explain(used->ex, format, &text, &err);
    Py_END_ALLOW_THREADS;
    heddle_py_pool_give(model, used, true);
  }
  return heddle_py_take_text(s, text, &err, model->file);
}

static PyObject *explain(PyObject *self, PyObject *args, PyObject *kwargs) {
  static char *names[] = {"format", "inputs", NULL};
  heddle_py_model *model = model_of(self);
  PyObject *word = NULL, *inputs = NULL;
  heddle_explain_format format;
  heddle_error err;
  heddle_status s;
  char *text = NULL;
  given g;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|OO:explain", names, &word, &inputs)) return NULL;
  if (heddle_py_explain_format(word, &format) < 0) return NULL;
  if (given_of(inputs, &g) < 0) {
    given_free(&g);
    return NULL;
  }
  PyObject *result = NULL;
  heddle_model *m = open_model(model);
  if (m != NULL) {
    Py_BEGIN_ALLOW_THREADS;
    s = heddle_model_explain(m, format, g.names, g.tensors, g.n, &text, &err);
    heddle_model_release(m);
    Py_END_ALLOW_THREADS;
    if (s == HEDDLE_EINVAL && g.items == NULL) result = explain_last(model, format, &err);
    else result = heddle_py_take_text(s, text, &err, model->file);
  }
  given_free(&g);
  return result;
}

static PyObject *graph_json(PyObject *self, PyObject *none) {
  (void)none;
  heddle_error err;
  heddle_status s;
  char *text = NULL;
  heddle_model *m = open_model(model_of(self));
  if (m == NULL) return NULL;
  Py_BEGIN_ALLOW_THREADS;
  s = heddle_graph_text(heddle_model_graph(m), &text, NULL, &err);
  heddle_model_release(m);
  Py_END_ALLOW_THREADS;
  return heddle_py_take_text(s, text, &err, model_of(self)->file);
}

static PyObject *get_devices(PyObject *self, void *none) {
  (void)none;
  heddle_model *m = open_model(model_of(self));
  if (m == NULL) return NULL;
  size_t n = heddle_model_device_count(m);
  PyObject *tuple = PyTuple_New((Py_ssize_t)n);
  for (size_t i = 0; tuple != NULL && i < n; i++) {
    PyObject *name = PyUnicode_FromString(heddle_device_name(heddle_model_device(m, i)));
    if (name == NULL) Py_CLEAR(tuple);
    else PyTuple_SetItem(tuple, (Py_ssize_t)i, name);
  }
  heddle_model_release(m);
  return tuple;
}

static PyObject *get_input_names(PyObject *self, void *none) {
  (void)none;
  heddle_py_model *model = model_of(self);
  return heddle_py_ports_need(model) == 0 ? heddle_py_names(model->inputs, model->n_inputs) : NULL;
}

static PyObject *get_output_names(PyObject *self, void *none) {
  (void)none;
  heddle_py_model *model = model_of(self);
  return heddle_py_ports_need(model) == 0 ? heddle_py_names(model->outputs, model->n_outputs) : NULL;
}

static PyObject *get_input_infos(PyObject *self, void *none) {
  (void)none;
  heddle_py_model *model = model_of(self);
  return heddle_py_ports_need(model) == 0 ? Py_NewRef(model->input_infos) : NULL;
}

static PyObject *get_output_infos(PyObject *self, void *none) {
  (void)none;
  heddle_py_model *model = model_of(self);
  return heddle_py_ports_need(model) == 0 ? Py_NewRef(model->output_infos) : NULL;
}

/* (name, kind, keys of a map) of each port that stands for something else than numbers. */
static int add_string_ports(PyObject *list, const heddle_graph *g, const port *ports, uint32_t n) {
  for (uint32_t i = 0; i < n; i++) {
    const char *name = PyUnicode_AsUTF8AndSize(ports[i].name, NULL);
    if (name == NULL) return -1;
    const heddle_string_kind kind = heddle_graph_string_kind(g, name);
    if (kind == HEDDLE_STRING_NONE) continue;
    PyObject *keys = PyList_New(0);
    int64_t key = 0;
    int failed = keys == NULL ? -1 : 0;
    for (uint32_t k = 0; failed == 0 && heddle_graph_map_key(g, name, k, &key, NULL) == HEDDLE_OK; k++) {
      PyObject *number = PyLong_FromLongLong(key);
      failed = number == NULL ? -1 : PyList_Append(keys, number);
      Py_XDECREF(number);
    }
    PyObject *one = failed == 0 ? Py_BuildValue("(OiO)", ports[i].name, (int)kind, keys) : NULL;
    Py_XDECREF(keys);
    failed = one == NULL ? -1 : PyList_Append(list, one);
    Py_XDECREF(one);
    if (failed != 0) return -1;
  }
  return 0;
}

static PyObject *get_strings(PyObject *self, void *none) {
  (void)none;
  heddle_py_model *model = model_of(self);
  heddle_model *m = open_model(model);
  if (m == NULL) return NULL;
  const heddle_graph *g = heddle_model_graph(m);
  PyObject *list = PyList_New(0);
  for (uint64_t i = 0; list != NULL; i++) {
    const char *text = heddle_graph_string(g, i);
    if (text == NULL) break;
    PyObject *one = PyUnicode_FromString(text);
    if (one == NULL || PyList_Append(list, one) < 0) Py_CLEAR(list);
    Py_XDECREF(one);
  }
  heddle_model_release(m);
  return list;
}

static PyObject *get_string_ports(PyObject *self, void *none) {
  (void)none;
  heddle_py_model *model = model_of(self);
  if (heddle_py_ports_need(model) < 0) return NULL;
  PyObject *list = PyList_New(0);
  const heddle_graph *g = heddle_model_graph(model->m);
  if (list != NULL && (add_string_ports(list, g, model->inputs, model->n_inputs) < 0 ||
                       add_string_ports(list, g, model->outputs, model->n_outputs) < 0))
    Py_CLEAR(list);
  return list;
}

static PyObject *get_has_objects(PyObject *self, void *none) {
  (void)none;
  heddle_model *m = open_model(model_of(self));
  if (m == NULL) return NULL;
  const bool has = heddle_graph_has_objects(heddle_model_graph(m)) != 0;
  heddle_model_release(m);
  return PyBool_FromLong(has);
}

static PyObject *get_has_strings(PyObject *self, void *none) {
  (void)none;
  heddle_model *m = open_model(model_of(self));
  if (m == NULL) return NULL;
  const heddle_graph *g = heddle_model_graph(m);
  bool has = heddle_graph_string(g, 0) != NULL || heddle_graph_has_objects(g) != 0;
  for (uint32_t i = 0; !has && i < heddle_graph_input_count(g) + heddle_graph_output_count(g); i++) {
    heddle_value_info info = {.struct_size = sizeof info};
    const uint32_t n = heddle_graph_input_count(g);
    heddle_status s = i < n ? heddle_graph_input(g, i, &info, NULL) : heddle_graph_output(g, i - n, &info, NULL);
    has = s == HEDDLE_OK && heddle_graph_string_kind(g, info.name) != HEDDLE_STRING_NONE;
  }
  heddle_model_release(m);
  return PyBool_FromLong(has);
}

static PyObject *get_path(PyObject *self, void *none) {
  (void)none;
  PyObject *path = model_of(self)->path;
  return Py_NewRef(path != NULL ? path : Py_None);
}

static PyObject *get_context(PyObject *self, void *none) {
  (void)none;
  PyObject *context = model_of(self)->context;
  return Py_NewRef(context != NULL ? context : Py_None);
}

static PyObject *get_closed(PyObject *self, void *none) {
  (void)none;
  return PyBool_FromLong(model_of(self)->is_closed || model_of(self)->m == NULL);
}

static PyObject *get_pool(PyObject *self, void *none) {
  (void)none;
  return PyLong_FromUnsignedLong(model_of(self)->pool.limit);
}

static PyObject *get_executors(PyObject *self, void *none) {
  (void)none;
  return PyLong_FromUnsignedLong(model_of(self)->pool.made);
}

/* ---- run */

/* ONNX Runtime's order of arguments: its first one is None or a list of outputs, never a mapping. */
static PyObject *run_as_session(PyObject *self, PyObject *args, PyObject *kwargs) {
  static char *names[] = {"output_names", "input_feed", "run_options", "timeout", NULL};
  PyObject *outputs = Py_None, *inputs = NULL, *options = Py_None, *timeout = NULL;
  uint64_t timeout_ns;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|OOO$O:run", names, &outputs, &inputs, &options, &timeout))
    return NULL;
  if (heddle_py_timeout(timeout, &timeout_ns) < 0) return NULL;
  if (inputs == NULL) {
    PyErr_SetString(PyExc_TypeError, "run(output_names, input_feed): the mapping of inputs is missing");
    return NULL;
  }
  if (options != Py_None) {
    PyErr_SetString(PyExc_TypeError, "run_options of ONNX Runtime are not supported; timeout= limits a run");
    return NULL;
  }
  return heddle_py_model_run_list(self, outputs, inputs, timeout_ns);
}

static bool is_for_session(PyObject *args, PyObject *kwargs) {
  PyObject *first = PyTuple_Size(args) > 0 ? PyTuple_GetItem(args, 0) : NULL;
  if (first != NULL) return first == Py_None || PyList_Check(first) || PyTuple_Check(first);
  return kwargs != NULL &&
         (PyDict_GetItemString(kwargs, "output_names") != NULL || PyDict_GetItemString(kwargs, "input_feed") != NULL);
}

static PyObject *run_model(PyObject *self, PyObject *args, PyObject *kwargs) {
  static char *names[] = {"inputs", "timeout", NULL};
  PyObject *inputs, *timeout = NULL;
  uint64_t timeout_ns;
  if (is_for_session(args, kwargs)) return run_as_session(self, args, kwargs);
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|O:run", names, &inputs, &timeout)) return NULL;
  if (heddle_py_timeout(timeout, &timeout_ns) < 0) return NULL;
  return heddle_py_model_run(self, inputs, timeout_ns);
}

static PyObject *executor(PyObject *self, PyObject *none) {
  (void)none;
  heddle_model *m = open_model(model_of(self));
  return m != NULL ? heddle_py_executor_new(model_of(self), m) : NULL;
}

static PyObject *batcher(PyObject *self, PyObject *args) {
  heddle_model *m = open_model(model_of(self));
  return m != NULL ? heddle_py_batcher_new(model_of(self), m, args) : NULL;
}

#define NAMED(name, function, doc) \
  { name, (PyCFunction)(void (*)(void))(function), METH_VARARGS | METH_KEYWORDS, doc }

static PyMethodDef methods[] = {
    NAMED("run", run_model,
          "run(inputs, timeout=None): runs with a mapping of names to values; a dict of arrays by the outputs' names.\n"
          "run(output_names, input_feed, timeout=None): as ONNX Runtime's sessions; a list of arrays, of the outputs "
          "that "
          "a list names, or of all for None."),
    NAMED("explain", explain,
          "explain(format='text', inputs=None): where each node runs and why; 'text', 'json', 'dot'."),
    {"executor", executor, METH_NOARGS, "An executor of the caller's own, which is not one of the pool."},
    {"_batcher", batcher, METH_VARARGS, "What heddle.Batcher is made of."},
    {"graph_json", graph_json, METH_NOARGS, "The graph as JSON."},
    {"trim", trim, METH_NOARGS, "Frees the executors that no call uses now, with their memory; returns how many."},
    {"close", close_it, METH_NOARGS,
     "Frees executors and the model, those in use when their calls end. Later calls fail."},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef getters[] = {
    {"devices", get_devices, NULL, "Names of the devices that it may use, in order of preference.", NULL},
    {"input_names", get_input_names, NULL, "Names of the inputs, without parameters, in order.", NULL},
    {"output_names", get_output_names, NULL, "Names of the outputs, in order.", NULL},
    {"input_infos", get_input_infos, NULL, "(name, shape, dtype) of each input; names or None for open dimensions.",
     NULL},
    {"output_infos", get_output_infos, NULL, "(name, shape, dtype) of each output.", NULL},
    {"has_strings", get_has_strings, NULL, "Whether it has strings or maps; heddle.text.TextModel.", NULL},
    {"has_objects", get_has_objects, NULL, "Whether runs make texts or sequences; heddle.text.ObjectModel.", NULL},
    {"strings", get_strings, NULL, "The texts that numbers of its tensors of strings stand for.", NULL},
    {"string_ports", get_string_ports, NULL, "(name, kind, keys) of inputs and outputs that stand for strings or maps.",
     NULL},
    {"path", get_path, NULL, "The file, or None for a graph that was given as text.", NULL},
    {"context", get_context, NULL, "The context whose devices it uses.", NULL},
    {"closed", get_closed, NULL, "Whether close() was called.", NULL},
    {"pool", get_pool, NULL, "How many executors calls may use at once.", NULL},
    {"executors", get_executors, NULL, "How many executors the pool holds now.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

int heddle_py_model_init(PyObject *module) {
  PyType_Slot slots[] = {
      {Py_tp_doc, (void *)"A model and a bounded pool of its executors; any thread may call it."},
      {Py_tp_new, HEDDLE_PY_SLOT(PyType_GenericNew)},
      {Py_tp_init, HEDDLE_PY_SLOT(init)},
      {Py_tp_dealloc, HEDDLE_PY_SLOT(dealloc)},
      {Py_tp_traverse, HEDDLE_PY_SLOT(traverse)},
      {Py_tp_call, HEDDLE_PY_SLOT(heddle_py_model_call)},
      {Py_tp_methods, methods},
      {Py_tp_getset, getters},
      {0, NULL},
  };
  PyType_Spec spec = {
      .name = "heddle._core.Model",
      .basicsize = sizeof(heddle_py_model),
      .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
      .slots = slots,
  };
  PyTypeObject *type = heddle_py_add_type(module, &spec);
  Py_XDECREF((PyObject *)type);
  return type != NULL ? 0 : -1;
}
