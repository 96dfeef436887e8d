/* bindings/python/src/functions/object.c: the type Module: something whose functions are found by name. */
#include "functions.h"

#include <string.h>

static heddle_py_module *of(PyObject *self) {
  return (heddle_py_module *)(void *)self;
}

static PyObject *function(PyObject *self, PyObject *args, PyObject *named) {
  static char *names[] = {"name", "imports", NULL};
  const char *name;
  int imports = 0;
  heddle_function *f = NULL;
  heddle_error err = {0};
  if (!PyArg_ParseTupleAndKeywords(args, named, "s|p:function", names, &name, &imports)) return NULL;
  heddle_py_state *state = of(self)->state;
  heddle_py_thread *thread = heddle_py_thread_get();
  heddle_object *o = of(self)->o;
  heddle_status s;
  if (thread == NULL) return NULL;
  heddle_py_enter_call(state, thread); /* a loader of Python's may be asked */
  Py_BEGIN_ALLOW_THREADS;
  s = heddle_object_function(o, name, imports, &f, &err);
  Py_END_ALLOW_THREADS;
  PyObject *made = s == HEDDLE_OK ? heddle_py_function_new(state, f) : heddle_py_raise(state, s, &err, NULL);
  heddle_py_leave_call(state, thread);
  if (made != NULL) /* an executor's own methods take arrays as they are */
    ((heddle_py_function *)(void *)made)->is_compiled =
        imports || strcmp(heddle_object_kind(of(self)->o), "library") == 0;
  return made;
}

static PyObject *add_import(PyObject *self, PyObject *other) {
  heddle_py_state *state = of(self)->state;
  heddle_error err = {0};
  if (!PyObject_TypeCheck(other, state->module_type)) {
    PyErr_SetString(PyExc_TypeError, "an import is a Module");
    return NULL;
  }
  heddle_status s = heddle_object_import(of(self)->o, of(other)->o, &err);
  return s == HEDDLE_OK ? Py_NewRef(Py_None) : state->core->fail(s, &err, NULL);
}

static PyObject *imports(PyObject *self, PyObject *none) {
  PyObject *list = PyList_New(0);
  heddle_object *o;
  (void)none;
  for (uint32_t i = 0; list != NULL && (o = heddle_object_imported(of(self)->o, i)) != NULL; i++) {
    PyObject *item = heddle_py_module_new(of(self)->state, heddle_object_retain(o));
    if (item == NULL || PyList_Append(list, item) != 0) Py_CLEAR(list);
    Py_XDECREF(item);
  }
  return list;
}

/* ---- what is in a library */

/* One more item, which is taken over; list is given up where it fails. */
static PyObject *append(PyObject *list, PyObject *item) {
  if (item == NULL || PyList_Append(list, item) != 0) Py_CLEAR(list);
  Py_XDECREF(item);
  return list;
}

static PyObject *function_names(const heddle_module *m) {
  PyObject *list = PyList_New(0);
  const char *name;
  for (uint32_t i = 0; list != NULL && (name = heddle_module_function(m, i)) != NULL; i++)
    list = append(list, PyUnicode_FromString(name));
  return list;
}

static PyObject *code_module(const heddle_module *m, uint32_t i, const heddle_import_info *info) {
  PyObject *kernels = PyList_New(0);
  const char *name;
  for (uint32_t k = 0; kernels != NULL && (name = heddle_module_kernel(m, i, k)) != NULL; k++)
    kernels = append(kernels, PyUnicode_FromString(name));
  if (kernels == NULL) return NULL;
  PyObject *code = PyBytes_FromStringAndSize(info->code, info->code != NULL ? (Py_ssize_t)info->bytes : 0);
  if (code == NULL) {
    Py_DECREF(kernels);
    return NULL;
  }
  return Py_BuildValue("{s:s,s:s,s:N,s:N,s:O,s:s}", "kind", info->kind, "format", info->format, "code", code, "kernels",
                       kernels, "is_model", info->is_model ? Py_True : Py_False, "name", info->name);
}

static PyObject *library(PyObject *self, PyObject *none) {
  heddle_module *m = heddle_object_library(of(self)->o);
  heddle_module_info info = {.struct_size = sizeof info};
  heddle_error err = {0};
  (void)none;
  if (m == NULL || strcmp(heddle_object_kind(of(self)->o), "library") != 0) return Py_NewRef(Py_None);
  heddle_status s = heddle_module_get_info(m, &info, &err);
  if (s != HEDDLE_OK) return of(self)->state->core->fail(s, &err, NULL);
  PyObject *modules = PyList_New(0);
  for (uint32_t i = 0; i < info.n_imports && modules != NULL; i++) {
    heddle_import_info one = {.struct_size = sizeof one};
    if (heddle_module_import(m, i, &one, NULL) == HEDDLE_OK) modules = append(modules, code_module(m, i, &one));
  }
  PyObject *functions = modules != NULL ? function_names(m) : NULL;
  if (functions == NULL) {
    Py_XDECREF(modules);
    return NULL;
  }
  return Py_BuildValue("{s:s,s:N,s:N}", "path", info.path, "functions", functions, "modules", modules);
}

/* ---- the type */

static PyObject *kind(PyObject *self, void *closure) {
  (void)closure;
  return PyUnicode_FromString(heddle_object_kind(of(self)->o));
}

static PyObject *address(PyObject *self, void *closure) {
  (void)closure;
  return PyLong_FromVoidPtr(of(self)->o);
}

/* The last reference of a library or an executor waits for its work. */
static void dealloc(PyObject *self) {
  heddle_object *o = of(self)->o;
  Py_BEGIN_ALLOW_THREADS;
  heddle_object_release(o);
  Py_END_ALLOW_THREADS;
  heddle_py_free(self);
}

static PyObject *compare(PyObject *self, PyObject *other, int op) {
  if ((op != Py_EQ && op != Py_NE) || !PyObject_TypeCheck(other, of(self)->state->module_type))
    return Py_NewRef(Py_NotImplemented);
  return PyBool_FromLong((of(self)->o == of(other)->o) == (op == Py_EQ));
}

static Py_hash_t hash(PyObject *self) {
  return (Py_hash_t)((uintptr_t)of(self)->o >> 4);
}

static PyMethodDef methods[] = {
    {"function", HEDDLE_PY_METHOD(function), METH_VARARGS | METH_KEYWORDS,
     "function(name, imports=False): the Function of that name; imports: or of the first module that this one imports "
     "which "
     "has one. NotFoundError where there is none."},
    {"add_import", add_import, METH_O, "add_import(module): adds an import. InvalidError for a circle."},
    {"imports", imports, METH_NOARGS, "imports(): the modules that this one imports, a list."},
    {"library", library, METH_NOARGS,
     "library(): of a compiled library a dict with path, functions (names) and modules: the code that it carries, "
     "dicts of "
     "kind, format, code (bytes), kernels, is_model and name. None for a module of another kind."},
    {NULL, NULL, 0, NULL}};

static PyGetSetDef members[] = {
    {"kind", kind, NULL, "\"library\", \"GraphExecutorFactory\", \"GraphExecutor\", ...", NULL},
    {"address", address, NULL, "A number that is this module's alone while it lives.", NULL},
    {NULL, NULL, NULL, NULL, NULL}};

static PyType_Slot slots[] = {
    {Py_tp_doc,
     "A module: a library, a model inside of one, an executor: something whose functions are found by name."},
    {Py_tp_dealloc, HEDDLE_PY_SLOT(dealloc)},
    {Py_tp_methods, methods},
    {Py_tp_getset, members},
    {Py_tp_richcompare, HEDDLE_PY_SLOT(compare)},
    {Py_tp_hash, HEDDLE_PY_SLOT(hash)},
    {0, NULL},
};

static PyType_Spec spec = {"heddle._functions.Module", sizeof(heddle_py_module), 0,
                           Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};

int heddle_py_add_module(heddle_py_state *state) {
  state->module_type = (PyTypeObject *)(void *)PyType_FromModuleAndSpec(state->module, &spec, NULL);
  return state->module_type != NULL ? PyModule_AddType(state->module, state->module_type) : -1;
}

PyObject *heddle_py_module_new(heddle_py_state *state, heddle_object *o) {
  heddle_py_module *made = heddle_py_allocate((PyTypeObject *)(void *)state->module_class, state);
  if (made != NULL) made->o = o;
  else heddle_object_release(o);
  return (PyObject *)made;
}
