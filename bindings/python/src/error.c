/* bindings/python/src/error.c: the exceptions: a class for each status of the C API, with its members as
 * attributes. heddle/errors.py is where users find them. */
#include "module.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* A class: its name in heddle.errors, its name in _core where that differs, and the class of Python's that it is too. */
static const struct {
  heddle_status status;
  const char *name;
  const char *inner;
  PyObject **python;
  const char *doc;
} classes[] = {
    {HEDDLE_EINVAL, "InvalidError", NULL, &PyExc_ValueError, "An argument is wrong."},
    {HEDDLE_ENOMEM, "OutOfMemoryError", "MemoryError_", &PyExc_MemoryError, "The host or a device has no memory left."},
    {HEDDLE_EIO, "FileError", NULL, &PyExc_OSError, "A file could not be read or written."},
    {HEDDLE_EFORMAT, "FormatError", NULL, &PyExc_ValueError, "A file or its data is malformed."},
    {HEDDLE_ENODEV, "NoDeviceError", NULL, NULL, "There is no such device; the words say what there is."},
    {HEDDLE_ENOTFOUND, "NotFoundError", NULL, &PyExc_KeyError, "There is nothing of that name."},
    {HEDDLE_EUNSUPPORTED, "UnsupportedError", NULL, &PyExc_NotImplementedError,
     "Not supported; the words say by what."},
    {HEDDLE_EBUSY, "BusyError", NULL, NULL, "Still in use, as by another thread's call or by a run."},
    {HEDDLE_ETIMEOUT, "RunTimeoutError", "TimeoutError_", &PyExc_TimeoutError, "The time limit of a run passed."},
    {HEDDLE_ECANCELED, "CanceledError", NULL, NULL, "The run was cancelled."},
    {HEDDLE_EDEVICE, "DeviceLostError", NULL, NULL,
     "A device was lost: its later calls fail until it is opened again."},
    {HEDDLE_EFAILED, "FailedError", NULL, NULL, "A call of a device's driver, or of a function, failed."},
    {HEDDLE_ECOMPILE, "CompileError", NULL, NULL, "Device code did not compile."},
    {HEDDLE_EABI, "AbiError", NULL, NULL, "A plugin or a foreign struct is of another version."},
    {HEDDLE_EFORK, "ForkError", NULL, NULL, "The process was forked from one that had opened a device."},
    {HEDDLE_EPLAN, "PlanError", NULL, NULL, "A plan could not be proved."},
    {HEDDLE_EINTERNAL, "InternalError", NULL, NULL, "A fault of Heddle's own."},
    {HEDDLE_ENEEDSOPEN, "NeedsOpenError", NULL, NULL, "The answer needs an open device."},
    {HEDDLE_ELIMIT, "LimitError", NULL, NULL, "Over a limit, such as that of a file's size."},
    {HEDDLE_EDENIED, "DeniedError", NULL, NULL,
     "A file is not signed as the trust file demands, or a key may be read by others."},
};

/* ---------------------------------------------------------------- raising */

static PyObject *text_or_none(const char *text) {
  return text[0] != '\0' ? PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "replace") : Py_NewRef(Py_None);
}

/* Takes over value. 0, or -1 with an exception. */
static int set(PyObject *object, const char *name, PyObject *value) {
  int s = value != NULL ? PyObject_SetAttrString(object, name, value) : -1;
  Py_XDECREF(value);
  return s;
}

static PyObject *error_class(heddle_status status) {
  return status > 0 && status < HEDDLE_STATUS_COUNT ? heddle_py.errors[status] : heddle_py.errors[0];
}

/* The exception of a status; NULL with another one. */
static PyObject *error_of(heddle_status status, const heddle_error *err, const char *file) {
  const char *text = err != NULL && err->text[0] != '\0' ? err->text : heddle_status_text(status);
  PyObject *words = text_or_none(text);
  PyObject *error = words != NULL ? PyObject_CallFunctionObjArgs(error_class(status), words, NULL) : NULL;
  heddle_failure about = {.struct_size = sizeof about};
  (void)heddle_error_failure(err, &about); /* without members: none of them */
  int made = error != NULL && set(error, "status", PyUnicode_FromString(heddle_status_name(status))) == 0 &&
             set(error, "code", PyLong_FromLong(status)) == 0 &&
             set(error, "api_code", PyLong_FromLong(err != NULL ? err->api_code : 0)) == 0 &&
             set(error, "message", Py_NewRef(words)) == 0 && set(error, "node", text_or_none(about.node_name)) == 0 &&
             set(error, "device", text_or_none(about.device)) == 0 &&
             set(error, "rank", about.rank >= 0 ? PyLong_FromLong(about.rank) : Py_NewRef(Py_None)) == 0 &&
             set(error, "file", file != NULL ? PyUnicode_DecodeFSDefault(file) : Py_NewRef(Py_None)) == 0;
  Py_XDECREF(words);
  if (!made) Py_CLEAR(error);
  return error;
}

PyObject *heddle_py_fail(heddle_status status, const heddle_error *err, const char *file) {
  PyObject *error = error_of(status, err, file);
  if (error != NULL) PyErr_SetObject((PyObject *)Py_TYPE(error), error);
  Py_XDECREF(error);
  return NULL;
}

PyObject *heddle_py_fail_words(heddle_status status, const char *format, ...) {
  heddle_error err = {.status = status};
  va_list list;
  va_start(list, format);
  vsnprintf(err.text, sizeof err.text, format, list);
  va_end(list);
  return heddle_py_fail(status, &err, NULL);
}

static PyObject *module_error_of(PyObject *module, PyObject *args) {
  heddle_error err = {0};
  const char *words;
  (void)module;
  if (!PyArg_ParseTuple(args, "is:error_of", &err.status, &words)) return NULL;
  snprintf(err.text, sizeof err.text, "%s", words);
  return error_of(err.status, &err, NULL);
}

/* ---------------------------------------------------------------- the classes */

/* The words alone: KeyError would put them in quotes. */
static PyObject *error_str(PyObject *self) {
  PyObject *args = PyObject_GetAttrString(self, "args"), *first;
  if (args == NULL) return NULL;
  if (PyTuple_Check(args) && PyTuple_Size(args) == 1) first = PyObject_Str(PyTuple_GetItem(args, 0));
  else first = PyTuple_Check(args) && PyTuple_Size(args) == 0 ? PyUnicode_FromString("") : PyObject_Str(args);
  Py_DECREF(args);
  return first;
}

/* The base, with the values of attributes that an exception made by hand has. */
static int add_base(PyObject *module) {
  static PyType_Slot slots[] = {
      {Py_tp_str, HEDDLE_PY_SLOT(error_str)},
      {Py_tp_doc,
       "The base of all of Heddle's exceptions. str() is the library's words.\n\n"
       "status: the name of the status, such as 'HEDDLE_EINVAL'; code: its number; api_code: the number of the\n"
       "driver's that failed, or 0; message: the words; node, device, file: what they are about, or None."},
      {0, NULL}};
  static PyType_Spec spec = {"heddle.errors.Error", 0, 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, slots};
  PyObject *base = PyType_FromSpecWithBases(&spec, PyExc_RuntimeError);
  if (base == NULL) return -1;
  heddle_py.errors[0] = base;
  if (set(base, "status", PyUnicode_FromString("")) < 0 || set(base, "code", PyLong_FromLong(0)) < 0 ||
      set(base, "api_code", PyLong_FromLong(0)) < 0 || set(base, "message", PyUnicode_FromString("")) < 0 ||
      set(base, "node", Py_NewRef(Py_None)) < 0 || set(base, "device", Py_NewRef(Py_None)) < 0 ||
      set(base, "file", Py_NewRef(Py_None)) < 0)
    return -1;
  return PyModule_AddObjectRef(module, "Error", base);
}

int heddle_py_error_init(PyObject *module) {
  static PyMethodDef functions[] = {{"error_of", module_error_of, METH_VARARGS,
                                     "error_of(code, words) -> Error\n\nThe exception that a call of the C API with "
                                     "that status and those words raises."},
                                    {NULL, NULL, 0, NULL}};
  if (add_base(module) < 0 || PyModule_AddFunctions(module, functions) < 0) return -1;
  for (size_t i = 0; i < sizeof classes / sizeof classes[0]; i++) {
    char name[64];
    snprintf(name, sizeof name, "heddle.errors.%s", classes[i].name);
    PyObject *bases = classes[i].python != NULL ? PyTuple_Pack(2, heddle_py.errors[0], *classes[i].python)
                                                : PyTuple_Pack(1, heddle_py.errors[0]);
    PyObject *class = bases != NULL ? PyErr_NewExceptionWithDoc(name, classes[i].doc, bases, NULL) : NULL;
    Py_XDECREF(bases);
    if (class == NULL) return -1;
    heddle_py.errors[classes[i].status] = class;
    if (set(class, "status", PyUnicode_FromString(heddle_status_name(classes[i].status))) < 0 ||
        set(class, "code", PyLong_FromLong(classes[i].status)) < 0 ||
        PyModule_AddObjectRef(module, classes[i].inner != NULL ? classes[i].inner : classes[i].name, class) < 0)
      return -1;
  }
  return 0;
}
