/* bindings/python/src/functions/module.c: the extension module heddle._functions: functions by name, modules of files,
 * and the module's state. */
#include "functions.h"

heddle_py_state *heddle_py_state_of(PyTypeObject *type) {
  for (; type != NULL; type = PyType_GetSlot(type, Py_tp_base)) {
    heddle_py_state *state = PyType_GetModuleState(type);
    if (state != NULL) return state;
    PyErr_Clear();
    if ((PyType_GetFlags(type) & Py_TPFLAGS_HEAPTYPE) == 0) break;
  }
  PyErr_SetString(PyExc_TypeError, "the type is not one of heddle._functions");
  return NULL;
}

void *heddle_py_allocate(PyTypeObject *type, heddle_py_state *state) {
  allocfunc allocate = HEDDLE_PY_FUNCTION(allocfunc, PyType_GetSlot(type, Py_tp_alloc));
  PyObject *o = allocate(type, 0);
  if (o != NULL) ((heddle_py_function *)(void *)o)->state = state;
  return o;
}

/* ---- functions of the module */

/* A path as the file system has it: a new bytes object. */
static PyObject *path_bytes(PyObject *path) {
  PyObject *bytes = NULL;
  return PyUnicode_FSConverter(path, &bytes) ? bytes : NULL;
}

static PyObject *load_module(PyObject *module, PyObject *args, PyObject *named) {
  static char *names[] = {"path", "format", NULL};
  heddle_py_state *state = PyModule_GetState(module);
  heddle_py_thread *thread = heddle_py_thread_get();
  PyObject *path;
  const char *format = "";
  heddle_object *o = NULL;
  heddle_error err = {0};
  heddle_status s;
  if (thread == NULL || !PyArg_ParseTupleAndKeywords(args, named, "O|s:load_module", names, &path, &format))
    return NULL;
  PyObject *bytes = path_bytes(path);
  const char *name = bytes != NULL ? PyBytes_AsString(bytes) : NULL;
  if (name == NULL) return NULL;
  heddle_py_enter_call(state, thread);
  Py_BEGIN_ALLOW_THREADS;
  s = heddle_object_load(name, format[0] != '\0' ? format : NULL, &o, &err);
  Py_END_ALLOW_THREADS;
  PyObject *made = s == HEDDLE_OK ? heddle_py_module_new(state, o) : heddle_py_raise(state, s, &err, name);
  heddle_py_leave_call(state, thread);
  Py_DECREF(bytes);
  return made;
}

static PyObject *register_function(PyObject *module, PyObject *args, PyObject *named) {
  static char *names[] = {"name", "function", "replace", NULL};
  heddle_py_state *state = PyModule_GetState(module);
  const char *name;
  PyObject *f;
  int replace = 0;
  heddle_error err = {0};
  if (!PyArg_ParseTupleAndKeywords(args, named, "sO!|p:register", names, &name, state->function_type, &f, &replace))
    return NULL;
  heddle_status s;
  Py_BEGIN_ALLOW_THREADS; /* the former function may be the last user of a module */
  s = heddle_function_register(name, ((heddle_py_function *)(void *)f)->f, replace, &err);
  Py_END_ALLOW_THREADS;
  return s == HEDDLE_OK ? Py_NewRef(Py_None) : state->core->fail(s, &err, NULL);
}

static PyObject *register_loader(PyObject *module, PyObject *args) {
  heddle_py_state *state = PyModule_GetState(module);
  const char *kind;
  PyObject *f;
  heddle_error err = {0};
  if (!PyArg_ParseTuple(args, "sO:register_loader", &kind, &f)) return NULL;
  if (f != Py_None && !PyObject_TypeCheck(f, state->function_type)) {
    PyErr_SetString(PyExc_TypeError, "a loader is a Function, or None");
    return NULL;
  }
  heddle_status s =
      heddle_function_register_loader(kind, f != Py_None ? ((heddle_py_function *)(void *)f)->f : NULL, &err);
  return s == HEDDLE_OK ? Py_NewRef(Py_None) : state->core->fail(s, &err, NULL);
}

static PyObject *find_function(PyObject *module, PyObject *arg) {
  const char *name = PyUnicode_AsUTF8AndSize(arg, NULL);
  if (name == NULL) return NULL;
  heddle_function *f = heddle_function_find(name);
  return f != NULL ? heddle_py_function_new(PyModule_GetState(module), f) : Py_NewRef(Py_None);
}

static PyObject *remove_function(PyObject *module, PyObject *arg) {
  heddle_py_state *state = PyModule_GetState(module);
  const char *name = PyUnicode_AsUTF8AndSize(arg, NULL);
  heddle_error err = {0};
  if (name == NULL) return NULL;
  heddle_status s;
  Py_BEGIN_ALLOW_THREADS;
  s = heddle_function_remove(name, &err);
  Py_END_ALLOW_THREADS;
  return s == HEDDLE_OK ? Py_NewRef(Py_None) : state->core->fail(s, &err, NULL);
}

static PyObject *all_names(PyObject *module, PyObject *none) {
  heddle_py_state *state = PyModule_GetState(module);
  const char *const *names;
  size_t n;
  heddle_error err = {0};
  (void)none;
  heddle_status s = heddle_function_names(&names, &n, &err);
  if (s != HEDDLE_OK) return state->core->fail(s, &err, NULL);
  PyObject *list = PyList_New(0);
  for (size_t i = 0; i < n && list != NULL; i++) {
    PyObject *name = PyUnicode_FromString(names[i]);
    if (name == NULL || PyList_Append(list, name) != 0) Py_CLEAR(list);
    Py_XDECREF(name);
  }
  return list;
}

static PyObject *set_classes(PyObject *module, PyObject *args) {
  heddle_py_state *state = PyModule_GetState(module);
  PyTypeObject *bases[] = {state->function_type, state->module_type, state->core->tensor_type};
  PyObject **classes[] = {&state->function_class, &state->module_class, &state->array_class, &state->array_class},
           *given[3];
  if (!PyArg_ParseTuple(args, "OOO:set_classes", &given[0], &given[1], &given[2])) return NULL;
  for (int i = 0; i < 3; i++)
    if (!PyType_Check(given[i]) || !PyType_IsSubtype((PyTypeObject *)(void *)given[i], bases[i])) {
      PyErr_SetString(PyExc_TypeError, "set_classes takes subclasses of Function, Module and Tensor");
      return NULL;
    }
  for (int i = 0; i < 3; i++) {
    PyObject *old = *classes[i];
    *classes[i] = Py_NewRef(given[i]);
    Py_DECREF(old);
  }
  return Py_NewRef(Py_None);
}

static PyObject *end(PyObject *module, PyObject *none) {
  (void)module, (void)none;
  heddle_py_close();
  return Py_NewRef(Py_None);
}

static PyMethodDef methods[] = {
    {"load_module", HEDDLE_PY_METHOD(load_module), METH_VARARGS | METH_KEYWORDS,
     "load_module(path, format=\"\"): the Module of a file: a shared library, or what the function "
     "\"runtime.module.loadfile_FORMAT\" that is registered makes of it. Blocks."},
    {"register", HEDDLE_PY_METHOD(register_function), METH_VARARGS | METH_KEYWORDS,
     "register(name, function, replace=False): gives a Function a name in this process. InvalidError where it is "
     "taken."},
    {"register_loader", register_loader, METH_VARARGS,
     "register_loader(kind, function): what reads modules of a kind (heddle_function_register_loader); None: nothing."},
    {"find", find_function, METH_O, "find(name): the Function that is registered, or None."},
    {"remove", remove_function, METH_O, "remove(name): NotFoundError where there is none."},
    {"names", all_names, METH_NOARGS, "names(): all names, in alphabetical order."},
    {"set_classes", set_classes, METH_VARARGS,
     "set_classes(function, module, array): subclasses of Function, Module and Tensor that results have from then on."},
    {"pack", heddle_py_pack, METH_VARARGS,
     "pack(path, libraries, models, imports, flags, compiler, targets): models (name, graph, blob, path) and imports "
     "(kind, "
     "bytes) with libraries, as one file."},
    {"link", heddle_py_link, METH_VARARGS,
     "link(folder, name, row, targets): a model (name, graph, blob, path) as an object file with a C header."},
    {"unpack", heddle_py_unpack, METH_VARARGS, "unpack(path, folder): what a packed file holds, as files."},
    {"quantize", heddle_py_quantize, METH_VARARGS,
     "quantize(path, output, bits, block, flags, accuracy_level, keep): what became of each weight."},
    {"key_create", heddle_py_key_create, METH_VARARGS, "key_create(path, kind)"},
    {"key_public", heddle_py_key_public, METH_VARARGS, "key_public(path): the line of a trust file."},
    {"sign", heddle_py_sign, METH_VARARGS, "sign(path, out_path, key, encrypt, sequence, flags)"},
    {"signature", heddle_py_signature, METH_VARARGS,
     "signature(path): (flags, key id, sequence, id of the encryption key, bytes) as the file says."},
    {"verify", heddle_py_verify, METH_VARARGS, "verify(path, trust): the same, verified."},
    {"decrypt", heddle_py_decrypt, METH_VARARGS, "decrypt(path, out_path, key)"},
    {"key_callback", heddle_py_key_callback, METH_O, "key_callback(function): function(id) gives 32 bytes, or None."},
    {"params_load", heddle_py_params_load, METH_O, "params_load(blob): the arrays of a blob of parameters, by name."},
    {"params_save", heddle_py_params_save, METH_O,
     "params_save([(name, array), ...]): the blob of parameters, in this order, a bytearray."},
    {"_end", end, METH_NOARGS, "Called by atexit."},
    {NULL, NULL, 0, NULL}};

/* ---- the module */

/* An attribute of another module; NULL with an exception. */
static PyObject *imported(const char *module, const char *name) {
  PyObject *m = PyImport_ImportModule(module);
  PyObject *found = m != NULL ? PyObject_GetAttrString(m, name) : NULL;
  Py_XDECREF(m);
  return found;
}

/* Types of other packages by which values are recognised; 0, or -1. */
static int import_types(heddle_py_state *state) {
  const struct {
    PyObject **to;
    const char *module, *name;
  } wanted[] = {
      {&state->numpy_ndarray, "numpy", "ndarray"},
      {&state->numpy_generic, "numpy", "generic"},
      {&state->numpy_bool, "numpy", "bool_"},
      {&state->numpy_integer, "numpy", "integer"},
      {&state->numpy_floating, "numpy", "floating"},
      {&state->numpy_dtype, "numpy", "dtype"},
      {&state->c_void_p, "ctypes", "c_void_p"},
      {&state->c_pointer, "_ctypes", "_Pointer"},
      {&state->c_cast, "ctypes", "cast"},
  };
  for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++)
    if ((*wanted[i].to = imported(wanted[i].module, wanted[i].name)) == NULL) return -1;
  return 0;
}

static int at_exit(PyObject *module) {
  PyObject *add = imported("atexit", "register");
  PyObject *close = add != NULL ? PyObject_GetAttrString(module, "_end") : NULL;
  PyObject *done = close != NULL ? PyObject_CallFunctionObjArgs(add, close, NULL) : NULL;
  Py_XDECREF(add);
  Py_XDECREF(close);
  Py_XDECREF(done);
  return done != NULL ? 0 : -1;
}

static int execute(PyObject *module) {
  heddle_py_state *state = PyModule_GetState(module);
  PyObject *core = PyImport_ImportModule("heddle._core"); /* the table is its */
  if (core == NULL) return -1;
  Py_DECREF(core);
  state->module = module;
  state->core = PyCapsule_Import(HEDDLE_PY_TABLE, 0);
  if (state->core == NULL) return -1;
  if (state->core->struct_size < sizeof *state->core) {
    PyErr_SetString(PyExc_ImportError, "heddle._core and heddle._functions are of different versions");
    return -1;
  }
  if (import_types(state) != 0 || heddle_py_add_function(state) != 0 || heddle_py_add_module(state) != 0) return -1;
  state->function_class = Py_NewRef((PyObject *)state->function_type);
  state->module_class = Py_NewRef((PyObject *)state->module_type);
  state->array_class = Py_NewRef((PyObject *)state->core->tensor_type);
  return at_exit(module);
}

/* The objects that the state holds. */
static PyObject **held(heddle_py_state *state, size_t i) {
  PyObject **all[] = {&state->function_class, &state->module_class, &state->array_class,   &state->numpy_ndarray,
                      &state->numpy_generic,  &state->numpy_bool,   &state->numpy_integer, &state->numpy_floating,
                      &state->numpy_dtype,    &state->c_void_p,     &state->c_pointer,     &state->c_cast,
                      &state->device_class};
  return i < sizeof all / sizeof all[0] ? all[i] : NULL;
}

static int traverse(PyObject *module, visitproc visit, void *arg) {
  heddle_py_state *state = PyModule_GetState(module);
  PyObject **p;
  if (state == NULL) return 0;
  for (size_t i = 0; (p = held(state, i)) != NULL; i++) Py_VISIT(*p);
  for (size_t i = 0; i < HEDDLE_PY_STRAYS; i++) Py_VISIT(state->strays[i].exception);
  Py_VISIT((PyObject *)state->function_type);
  Py_VISIT((PyObject *)state->module_type);
  return 0;
}

static int clear(PyObject *module) {
  heddle_py_state *state = PyModule_GetState(module);
  PyObject **p;
  if (state == NULL) return 0;
  for (size_t i = 0; (p = held(state, i)) != NULL; i++) Py_CLEAR(*p);
  for (size_t i = 0; i < HEDDLE_PY_STRAYS; i++) Py_CLEAR(state->strays[i].exception);
  Py_CLEAR(state->function_type);
  Py_CLEAR(state->module_type);
  return 0;
}

static void finish(void *module) {
  clear(module);
}

static PyModuleDef_Slot module_slots[] = {{Py_mod_exec, HEDDLE_PY_SLOT(execute)}, {0, NULL}};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "heddle._functions",
    .m_doc = "Functions, modules and values of libheddle_tvm; heddle.runtime is what users see.",
    .m_size = sizeof(heddle_py_state),
    .m_methods = methods,
    .m_slots = module_slots,
    .m_traverse = traverse,
    .m_clear = clear,
    .m_free = finish,
};

PyMODINIT_FUNC PyInit__functions(void) {
  return PyModuleDef_Init(&definition);
}
