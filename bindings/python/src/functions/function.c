/* bindings/python/src/functions/function.c: the type Function: a counted function that Python calls. */
#include "functions.h"

enum { FEW = 8 };

/* Where the arguments of a call are. */
typedef struct arguments {
  heddle_value few[FEW], *values;
  heddle_py_owned few_own[FEW], *own;
  uint32_t n;
} arguments;

static void end(arguments *a) {
  for (uint32_t i = 0; i < a->n; i++) heddle_py_drop(&a->own[i]);
  if (a->values != a->few) PyMem_Free(a->values);
  if (a->own != a->few_own) PyMem_Free(a->own);
}

static int begin(heddle_py_state *state, arguments *a, PyObject *args, bool is_compiled) {
  Py_ssize_t n = PyTuple_Size(args);
  a->n = 0;
  a->values = n > FEW ? PyMem_Calloc((size_t)n, sizeof *a->values) : a->few;
  a->own = n > FEW ? PyMem_Calloc((size_t)n, sizeof *a->own) : a->few_own;
  if (n < 0 || a->values == NULL || a->own == NULL) {
    if (n >= 0) PyErr_NoMemory();
    end(a);
    return -1;
  }
  while (a->n < (uint32_t)n) {
    uint32_t i = a->n;
    PyObject *object = PyTuple_GetItem(args, (Py_ssize_t)i);
    int rc = heddle_py_to_value(state, object, (int)i, &a->values[i], &a->own[i]);
    if (rc == 0) a->n++;
    if (rc == 0 && is_compiled) rc = heddle_py_align(state, object, &a->values[i], &a->own[i]);
    if (rc != 0) {
      end(a);
      return -1;
    }
  }
  return 0;
}

static PyObject *call(PyObject *self, PyObject *args, PyObject *named) {
  heddle_py_function *o = (heddle_py_function *)(void *)self;
  heddle_py_state *state = o->state;
  heddle_py_thread *thread = heddle_py_thread_get();
  heddle_value result;
  heddle_error err = {0};
  heddle_status s;
  arguments a;
  if (thread == NULL) return NULL;
  if (named != NULL && PyDict_Size(named) > 0) {
    PyErr_SetString(PyExc_TypeError, "a function takes arguments by position only");
    return NULL;
  }
  if (begin(state, &a, args, o->is_compiled) != 0) return NULL;
  heddle_py_enter_call(state, thread);
  Py_BEGIN_ALLOW_THREADS;
  s = heddle_function_call(o->f, a.values, a.n, &result, &err);
  Py_END_ALLOW_THREADS;
  /* strings and bytes are this thread's until its next ones: read before anything else runs */
  PyObject *given = s == HEDDLE_OK ? heddle_py_from_value(state, &result, true) : heddle_py_raise(state, s, &err, NULL);
  heddle_py_leave_call(state, thread);
  for (uint32_t i = 0; i < a.n && given != NULL && o->is_compiled; i++)
    if (heddle_py_align_finish(state, &a.own[i]) != 0) Py_CLEAR(given);
  end(&a);
  return given;
}

static PyObject *new (PyTypeObject *type, PyObject *args, PyObject *named) {
  PyObject *callable;
  heddle_py_state *state = heddle_py_state_of(type);
  if (state == NULL || !PyArg_ParseTuple(args, "O:Function", &callable)) return NULL;
  if (named != NULL && PyDict_Size(named) > 0) {
    PyErr_SetString(PyExc_TypeError, "Function(callable) takes no named arguments");
    return NULL;
  }
  heddle_py_function *o = heddle_py_allocate(type, state);
  if (o == NULL) return NULL;
  if (PyObject_TypeCheck(callable, state->function_type)) {
    const heddle_py_function *other = (const heddle_py_function *)(const void *)callable;
    o->f = heddle_function_retain(other->f);
    o->is_compiled = other->is_compiled;
  } else {
    o->f = heddle_py_callback(state, callable);
  }
  if (o->f != NULL) return (PyObject *)o;
  Py_DECREF(o);
  return NULL;
}

/* The last reference may end modules, which waits for their work. */
static void dealloc(PyObject *self) {
  heddle_function *f = ((heddle_py_function *)(void *)self)->f;
  if (f != NULL) {
    Py_BEGIN_ALLOW_THREADS;
    heddle_function_release(f);
    Py_END_ALLOW_THREADS;
  }
  heddle_py_free(self);
}

static PyObject *compare(PyObject *self, PyObject *other, int op) {
  heddle_py_function *a = (heddle_py_function *)(void *)self;
  if ((op != Py_EQ && op != Py_NE) || !PyObject_TypeCheck(other, a->state->function_type))
    return Py_NewRef(Py_NotImplemented);
  return PyBool_FromLong((a->f == ((heddle_py_function *)(void *)other)->f) == (op == Py_EQ));
}

static Py_hash_t hash(PyObject *self) {
  return (Py_hash_t)((uintptr_t)((heddle_py_function *)(void *)self)->f >> 4);
}

static PyObject *address(PyObject *self, void *closure) {
  (void)closure;
  return PyLong_FromVoidPtr(((heddle_py_function *)(void *)self)->f);
}

static PyGetSetDef members[] = {
    {"address", address, NULL, "A number that is this function's alone while it lives.", NULL},
    {NULL, NULL, NULL, NULL, NULL}};

static PyType_Slot slots[] = {
    {Py_tp_doc,
     "Function(callable): a function that compiled code can call. Calls of it pass None, bool, int, float, str, "
     "bytes, arrays, devices, dtypes, modules, functions, callables and pointers of ctypes; the GIL is released "
     "meanwhile. What a callable raises comes back to the Python code that made the call as the same object."},
    {Py_tp_new, HEDDLE_PY_SLOT(new)},
    {Py_tp_dealloc, HEDDLE_PY_SLOT(dealloc)},
    {Py_tp_call, HEDDLE_PY_SLOT(call)},
    {Py_tp_richcompare, HEDDLE_PY_SLOT(compare)},
    {Py_tp_hash, HEDDLE_PY_SLOT(hash)},
    {Py_tp_getset, members},
    {0, NULL},
};

static PyType_Spec spec = {"heddle._functions.Function", sizeof(heddle_py_function), 0,
                           Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, slots};

int heddle_py_add_function(heddle_py_state *state) {
  state->function_type = (PyTypeObject *)(void *)PyType_FromModuleAndSpec(state->module, &spec, NULL);
  return state->function_type != NULL ? PyModule_AddType(state->module, state->function_type) : -1;
}

PyObject *heddle_py_function_new(heddle_py_state *state, heddle_function *f) {
  heddle_py_function *o = heddle_py_allocate((PyTypeObject *)(void *)state->function_class, state);
  if (o != NULL) o->f = f;
  else heddle_function_release(f);
  return (PyObject *)o;
}
