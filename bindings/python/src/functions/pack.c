/* bindings/python/src/functions/pack.c: packed files: pack(path, libraries, models, imports, flags, compiler, targets, dims), unpack(path,
 * folder), link(folder, name, models, targets). */
#include "functions.h"

/* What the lists become; the lists' objects are kept by their owner. */
typedef struct packing {
  heddle_pack_options options;
  const char **targets, **dims;
  const char **libraries;
  heddle_pack_model *models;
  const heddle_pack_model **model_list;
  heddle_params **params; /* of models */
  heddle_pack_import *imports;
  const heddle_pack_import **import_list;
  Py_ssize_t n_libraries, n_models, n_imports;
} packing;

static void drop(packing *p) {
  for (Py_ssize_t i = 0; i < p->n_models && p->params != NULL; i++) heddle_params_release(p->params[i]);
  PyMem_Free((void *)p->libraries);
  PyMem_Free((void *)p->targets);
  PyMem_Free((void *)p->dims);
  PyMem_Free(p->models);
  PyMem_Free((void *)p->model_list);
  PyMem_Free((void *)p->params);
  PyMem_Free(p->imports);
  PyMem_Free((void *)p->import_list);
}

static int room(packing *p, PyObject *libraries, PyObject *models, PyObject *imports) {
  p->n_libraries = PyList_Size(libraries);
  p->n_models = PyList_Size(models);
  p->n_imports = PyList_Size(imports);
  if (p->n_libraries < 0 || p->n_models < 0 || p->n_imports < 0) return -1;
  p->libraries = PyMem_Calloc((size_t)p->n_libraries + 1, sizeof(char *));
  p->models = PyMem_Calloc((size_t)p->n_models + 1, sizeof *p->models);
  p->model_list = PyMem_Calloc((size_t)p->n_models + 1, sizeof(heddle_pack_model *));
  p->params = PyMem_Calloc((size_t)p->n_models + 1, sizeof(heddle_params *));
  p->imports = PyMem_Calloc((size_t)p->n_imports + 1, sizeof *p->imports);
  p->import_list = PyMem_Calloc((size_t)p->n_imports + 1, sizeof(heddle_pack_import *));
  if (p->libraries && p->models && p->model_list && p->params && p->imports && p->import_list) return 0;
  PyErr_NoMemory();
  return -1;
}

/* (name, graph, blob of parameters, path of the graph): str, bytes, bytes, str; each may be None. */
static int take_model(heddle_py_state *state, packing *p, Py_ssize_t i, PyObject *row) {
  heddle_pack_model *m = &p->models[i];
  heddle_error err = {0};
  const char *blob = NULL, *graph = NULL, *name = NULL, *path = NULL;
  Py_ssize_t blob_bytes = 0, bytes = 0;
  if (!PyArg_ParseTuple(row, "zz#z#z", &name, &graph, &bytes, &blob, &blob_bytes, &path)) return -1;
  *m = (heddle_pack_model){
      .struct_size = sizeof *m, .name = name, .graph_path = path, .graph = graph, .graph_bytes = (size_t)bytes};
  p->model_list[i] = m;
  if (blob == NULL) return 0;
  heddle_status s = heddle_params_parse(blob, (size_t)blob_bytes, "the parameters", NULL, &p->params[i], &err);
  m->params = p->params[i];
  if (s == HEDDLE_OK) return 0;
  state->core->fail(s, &err, NULL);
  return -1;
}

static int take(heddle_py_state *state, packing *p, PyObject *libraries, PyObject *models, PyObject *imports) {
  if (room(p, libraries, models, imports) != 0) return -1;
  for (Py_ssize_t i = 0; i < p->n_libraries; i++) {
    p->libraries[i] = PyUnicode_AsUTF8AndSize(PyList_GetItem(libraries, i), NULL);
    if (p->libraries[i] == NULL) return -1;
  }
  for (Py_ssize_t i = 0; i < p->n_models; i++)
    if (take_model(state, p, i, PyList_GetItem(models, i)) != 0) return -1;
  for (Py_ssize_t i = 0; i < p->n_imports; i++) {
    Py_ssize_t bytes = 0;
    heddle_pack_import *m = &p->imports[i];
    const char *data = NULL;
    if (!PyArg_ParseTuple(PyList_GetItem(imports, i), "sy#", &m->kind, &data, &bytes)) return -1;
    m->struct_size = sizeof *m;
    m->data = data;
    m->bytes = (size_t)bytes;
    p->import_list[i] = m;
  }
  return 0;
}

static int take_texts(const char ***out, PyObject *texts) {
  const Py_ssize_t n = PyList_Size(texts);
  *out = n >= 0 ? PyMem_Calloc((size_t)n + 1, sizeof(char *)) : NULL;
  if (*out == NULL) return PyErr_NoMemory(), -1;
  for (Py_ssize_t i = 0; i < n; i++)
    if (((*out)[i] = PyUnicode_AsUTF8AndSize(PyList_GetItem(texts, i), NULL)) == NULL) return -1;
  return 0;
}

PyObject *heddle_py_pack(PyObject *module, PyObject *args) {
  heddle_py_state *state = PyModule_GetState(module);
  PyObject *libraries, *models, *imports, *targets, *dims, *done = NULL;
  const char *path, *compiler;
  unsigned flags;
  packing p = {.n_models = 0};
  heddle_error err = {0};
  heddle_status s;
  heddle_sign_options how = {.struct_size = sizeof how};
  unsigned long long sequence = 0;
  const char *memory = NULL;
  heddle_py_thread *thread = heddle_py_thread_get();
  if (thread == NULL || !PyArg_ParseTuple(args, "sO!O!O!IzO!O!|zzKz", &path, &PyList_Type, &libraries, &PyList_Type,
                                          &models, &PyList_Type, &imports, &flags, &compiler, &PyList_Type, &targets,
                                          &PyList_Type, &dims, &how.sign, &how.encrypt, &sequence, &memory))
    return NULL;
  how.sequence = sequence;
  if (take(state, &p, libraries, models, imports) == 0 && take_texts(&p.targets, targets) == 0 &&
      take_texts(&p.dims, dims) == 0) {
    p.options = (heddle_pack_options){.struct_size = sizeof p.options,
                                      .libraries = p.libraries,
                                      .n_libraries = (size_t)p.n_libraries,
                                      .models = p.model_list,
                                      .n_models = (size_t)p.n_models,
                                      .imports = p.import_list,
                                      .n_imports = (size_t)p.n_imports,
                                      .flags = flags,
                                      .compiler = compiler,
                                      .targets = p.targets,
                                      .n_targets = (size_t)PyList_Size(targets),
                                      .dims = p.dims,
                                      .n_dims = (size_t)PyList_Size(dims),
                                      .memory = memory};
    if (how.sign != NULL || how.encrypt != NULL || sequence != 0) p.options.sign = &how;
    heddle_py_enter_call(state, thread); /* loaders of Python's read and save */
    Py_BEGIN_ALLOW_THREADS;
    s = heddle_pack(path, &p.options, &err);
    Py_END_ALLOW_THREADS;
    done = s == HEDDLE_OK ? Py_NewRef(Py_None) : heddle_py_raise(state, s, &err, path);
    heddle_py_leave_call(state, thread);
  }
  drop(&p);
  return done;
}

PyObject *heddle_py_link(PyObject *module, PyObject *args) {
  heddle_py_state *state = PyModule_GetState(module);
  PyObject *models, *targets, *empty = PyList_New(0), *done = NULL;
  const char *folder, *name;
  packing p = {.n_models = 0};
  heddle_error err = {0};
  heddle_status s;
  if (empty != NULL &&
      PyArg_ParseTuple(args, "ssO!O!", &folder, &name, &PyList_Type, &models, &PyList_Type, &targets) &&
      take(state, &p, empty, models, empty) == 0 && take_texts(&p.targets, targets) == 0) {
    p.options = (heddle_pack_options){.struct_size = sizeof p.options,
                                      .models = p.model_list,
                                      .n_models = (size_t)p.n_models,
                                      .targets = p.targets,
                                      .n_targets = (size_t)PyList_Size(targets)};
    Py_BEGIN_ALLOW_THREADS;
    s = heddle_link(folder, name, &p.options, &err);
    Py_END_ALLOW_THREADS;
    done = s == HEDDLE_OK ? Py_NewRef(Py_None) : state->core->fail(s, &err, folder);
  }
  drop(&p);
  Py_XDECREF(empty);
  return done;
}

PyObject *heddle_py_unpack(PyObject *module, PyObject *args) {
  heddle_py_state *state = PyModule_GetState(module);
  const char *path, *folder;
  heddle_error err = {0};
  heddle_status s;
  if (!PyArg_ParseTuple(args, "ss", &path, &folder)) return NULL;
  Py_BEGIN_ALLOW_THREADS;
  s = heddle_unpack(path, folder, &err);
  Py_END_ALLOW_THREADS;
  return s == HEDDLE_OK ? Py_NewRef(Py_None) : state->core->fail(s, &err, path);
}
