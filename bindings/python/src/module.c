/* bindings/python/src/module.c: the module heddle._core: imports what its files add, and hands heddle._functions the
 * table of core.h. */
#include "module.h"

#include <string.h>

heddle_py_objects heddle_py;

PyTypeObject *heddle_py_add_type(PyObject *module, PyType_Spec *spec) {
  PyObject *type = PyType_FromModuleAndSpec(module, spec, NULL);
  const char *name = strrchr(spec->name, '.');
  if (type == NULL || PyModule_AddObjectRef(module, name != NULL ? name + 1 : spec->name, type) < 0) {
    Py_XDECREF(type);
    return NULL;
  }
  return (PyTypeObject *)type;
}

/* tensor_new as _functions has it: with the result type of the time of the call. */
static heddle_py_table table = {
    .struct_size = sizeof table,
    .tensor_new = heddle_py_tensor_new,
    .fail = heddle_py_fail,
    .tensor_of = heddle_py_tensor_of,
    .dtype_name = heddle_py_dtype_name,
    .dtype_of = heddle_py_dtype_of,
};

static int add_table(PyObject *module) {
  table.tensor_type = heddle_py.tensor_type;
  PyObject *capsule = PyCapsule_New(&table, HEDDLE_PY_TABLE, NULL);
  int failed = capsule == NULL || PyModule_AddObjectRef(module, "_table", capsule) < 0;
  Py_XDECREF(capsule);
  return failed ? -1 : 0;
}

static int add_version(PyObject *module) {
  return PyModule_AddStringConstant(module, "version", heddle_version());
}

static int import(PyObject *module) {
  static int (*const parts[])(PyObject *) = {
      add_version,
      heddle_py_keep_init,
      heddle_py_error_init,
      heddle_py_numpy_init,
      heddle_py_dtype_init,
      heddle_py_context_init,
      heddle_py_tensor_init,
      heddle_py_dlpack_init,
      heddle_py_run_init,
      heddle_py_model_init,
      heddle_py_executor_init,
      heddle_py_batcher_init,
      heddle_py_generator_init,
      heddle_py_generation_batch_init,
      heddle_py_exchange_init,
      add_table,
  };
  if (heddle_py.module != NULL) {
    PyErr_SetString(PyExc_ImportError, "heddle._core is imported already; a process has one of it, in one interpreter");
    return -1;
  }
  heddle_py.module = Py_NewRef(module);
  for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
    if (parts[i](module) < 0) {
      Py_CLEAR(heddle_py.module);
      return -1;
    }
  return 0;
}

/* heddle_text_clean of a str, whose bytes may be no UTF-8. */
static PyObject *clean_text(PyObject *module, PyObject *text) {
  (void)module;
  PyObject *bytes = PyUnicode_Check(text) ? PyUnicode_AsEncodedString(text, "utf-8", "replace") : NULL;
  if (bytes == NULL) {
    if (!PyErr_Occurred()) PyErr_Format(PyExc_TypeError, "%R is no str", Py_TYPE(text));
    return NULL;
  }
  char *words = PyBytes_AsString(bytes); /* of this function alone */
  const size_t n = heddle_text_clean(words, words, (size_t)PyBytes_Size(bytes) + 1);
  PyObject *made = PyUnicode_DecodeUTF8(words, (Py_ssize_t)n, "replace");
  Py_DECREF(bytes);
  return made;
}

static PyMethodDef methods[] = {
    {"clean_text", clean_text, METH_O, "A text from a file or driver as a terminal may show it, on one line."},
    {NULL, NULL, 0, NULL},
};

static PyModuleDef_Slot slots[] = {{Py_mod_exec, HEDDLE_PY_SLOT(import)}, {0, NULL}};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "heddle._core",
    .m_doc = "Heddle's C API as Python types; the package heddle is what to use.",
    .m_methods = methods,
    .m_slots = slots,
};

PyMODINIT_FUNC PyInit__core(void) {
  return PyModuleDef_Init(&definition);
}
