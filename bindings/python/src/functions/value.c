/* bindings/python/src/functions/value.c: Python objects as the values that functions take and give, both ways. */
#include "functions.h"

#include <stdlib.h>
#include <string.h>

void heddle_py_drop(heddle_py_owned *own) {
  heddle_tensor_release(own->tensor);
  heddle_tensor_release(own->original);
  if (own->has_bytes) PyBuffer_Release(&own->bytes);
  heddle_function_release(own->function); /* of a callable: ours, which waits for nothing */
  *own = (heddle_py_owned){0};
}

/* ---- Python to values */

static int refuse(PyObject *type, int position, const char *why) {
  if (position < 0) PyErr_Format(type, "the result of a function: %s", why);
  else PyErr_Format(type, "argument %d: %s", position, why);
  return -1;
}

static int unknown(PyObject *object, int position) {
  PyObject *name = PyType_GetName(Py_TYPE(object));
  if (name == NULL) return -1;
  PyObject *words =
      PyUnicode_FromFormat("a value of type '%U' cannot be passed to or from a function; numbers, str, bytes, "
                           "arrays, Device, dtype, Module, functions and None can",
                           name);
  const char *text = words != NULL ? PyUnicode_AsUTF8AndSize(words, NULL) : NULL;
  if (text != NULL) refuse(PyExc_TypeError, position, text);
  Py_XDECREF(words);
  Py_DECREF(name);
  return -1;
}

static int integer(PyObject *object, int position, heddle_value *out) {
  int over = 0;
  long long i = PyLong_AsLongLongAndOverflow(object, &over);
  if (over != 0) return refuse(PyExc_OverflowError, position, "an integer that has no place in 64 bits with a sign");
  if (i == -1 && PyErr_Occurred()) return -1;
  *out = (heddle_value){.kind = HEDDLE_VALUE_INT, .of.i = i};
  return 0;
}

static int text(PyObject *object, int position, heddle_value *out) {
  Py_ssize_t n;
  const char *s = PyUnicode_AsUTF8AndSize(object, &n);
  if (s == NULL) return -1;
  if (strlen(s) != (size_t)n) return refuse(PyExc_ValueError, position, "a str with a NUL character in it; pass bytes");
  *out = (heddle_value){.kind = HEDDLE_VALUE_STRING, .of.s = s};
  return 0;
}

static int bytes(PyObject *object, heddle_value *out, heddle_py_owned *own) {
  if (PyObject_GetBuffer(object, &own->bytes, PyBUF_SIMPLE) != 0) return -1;
  own->has_bytes = true;
  *out = (heddle_value){.kind = HEDDLE_VALUE_BYTES, .of.data = own->bytes.buf, .bytes = (uint64_t)own->bytes.len};
  return 0;
}

static int tensor(heddle_py_state *state, PyObject *object, heddle_value *out, heddle_py_owned *own) {
  if (state->core->tensor_of(object, NULL, &own->tensor) != 0) return -1;
  *out = (heddle_value){.kind = HEDDLE_VALUE_TENSOR, .of.t = own->tensor};
  return 0;
}

static int dtype(heddle_py_state *state, PyObject *object, heddle_value *out) {
  out->kind = HEDDLE_VALUE_DTYPE;
  return state->core->dtype_of(object, &out->of.dtype);
}

/* numpy's numbers: 1, or -1 with an exception; 0: it is none. */
static int numpy_number(heddle_py_state *state, PyObject *object, int position, heddle_value *out) {
  int is = PyObject_IsInstance(object, state->numpy_generic);
  if (is <= 0) return is;
  if ((is = PyObject_IsInstance(object, state->numpy_bool)) != 0) {
    *out = (heddle_value){.kind = HEDDLE_VALUE_BOOL, .of.i = PyObject_IsTrue(object)};
    return is;
  }
  if ((is = PyObject_IsInstance(object, state->numpy_integer)) < 0) return -1;
  PyObject *number = is ? PyNumber_Index(object) : NULL;
  if (is == 0 && (is = PyObject_IsInstance(object, state->numpy_floating)) > 0) number = PyNumber_Float(object);
  if (is <= 0) return is;
  if (number == NULL) return -1;
  if (PyLong_Check(number)) is = integer(number, position, out) == 0 ? 1 : -1;
  else *out = (heddle_value){.kind = HEDDLE_VALUE_FLOAT, .of.f = PyFloat_AsDouble(number)};
  Py_DECREF(number);
  return is;
}

/* An optional attribute: 1 with a new reference, 0: there is none, -1. */
static int attribute(PyObject *object, const char *name, PyObject **out) {
  *out = PyObject_GetAttrString(object, name);
  if (*out != NULL) return 1;
  if (!PyErr_ExceptionMatches(PyExc_AttributeError)) return -1;
  PyErr_Clear();
  return 0;
}

/* 1, 0 or -1 as above: something with device_type and device_id. */
static int device(PyObject *object, heddle_value *out) {
  PyObject *type, *id = NULL;
  int has = attribute(object, "device_type", &type);
  if (has > 0) has = attribute(object, "device_id", &id);
  if (has > 0) {
    long t = PyLong_AsLong(type), n = PyErr_Occurred() ? -1 : PyLong_AsLong(id);
    if (PyErr_Occurred()) has = -1;
    else {
      *out = (heddle_value){.kind = HEDDLE_VALUE_DEVICE};
      out->of.device.type = (int32_t)t;
      out->of.device.number = (int32_t)n;
    }
  }
  Py_XDECREF(type);
  Py_XDECREF(id);
  return has;
}

/* 1, 0 or -1: a pointer of ctypes. */
static int pointer(heddle_py_state *state, PyObject *object, heddle_value *out) {
  PyObject *cast = NULL, *address = NULL;
  int is = PyObject_IsInstance(object, state->c_void_p);
  if (is == 0 && (is = PyObject_IsInstance(object, state->c_pointer)) > 0) {
    cast = PyObject_CallFunctionObjArgs(state->c_cast, object, state->c_void_p, NULL);
    if (cast == NULL) return -1;
  }
  if (is > 0) address = PyObject_GetAttrString(cast != NULL ? cast : object, "value");
  if (is > 0 && address == NULL) is = -1;
  if (is > 0)
    *out =
        (heddle_value){.kind = HEDDLE_VALUE_POINTER, .of.data = address != Py_None ? PyLong_AsVoidPtr(address) : NULL};
  if (is > 0 && PyErr_Occurred()) is = -1;
  Py_XDECREF(cast);
  Py_XDECREF(address);
  return is;
}

/* What is no plain value: 0, or -1 with an exception. */
static int others(heddle_py_state *state, PyObject *object, int position, heddle_value *out, heddle_py_owned *own) {
  int is = PyObject_IsInstance(object, state->numpy_ndarray);
  if (is > 0) return tensor(state, object, out, own);
  if (is == 0) is = numpy_number(state, object, position, out);
  if (is == 0) is = pointer(state, object, out); /* pointers are buffers too */
  if (is == 0 && PyObject_CheckBuffer(object)) return tensor(state, object, out, own);
  if (is == 0) is = device(object, out);
  if (is == 0 && (is = PyObject_IsInstance(object, state->numpy_dtype)) > 0) return dtype(state, object, out);
  if (is == 0 && PyType_Check(object)) {
    is = PyObject_IsSubclass(object, state->numpy_generic);
    if (is > 0) return dtype(state, object, out);
  }
  PyObject *found = NULL;
  if (is == 0 && !PyType_Check(object) && (is = attribute(object, "__dlpack__", &found)) > 0) {
    Py_DECREF(found);
    return tensor(state, object, out, own);
  }
  if (is == 0 && PyCallable_Check(object)) {
    own->function = heddle_py_callback(state, object);
    *out = (heddle_value){.kind = HEDDLE_VALUE_FUNCTION, .of.function = own->function};
    return own->function != NULL ? 0 : -1;
  }
  return is > 0 ? 0 : is < 0 ? -1 : unknown(object, position);
}

int heddle_py_to_value(heddle_py_state *state, PyObject *object, int position, heddle_value *out,
                       heddle_py_owned *own) {
  *own = (heddle_py_owned){0};
  *out = (heddle_value){.kind = HEDDLE_VALUE_NONE};
  if (object == Py_None) return 0;
  if (PyObject_TypeCheck(object, state->core->tensor_type)) {
    *out = (heddle_value){.kind = HEDDLE_VALUE_TENSOR, .of.t = ((heddle_py_tensor *)(void *)object)->t};
    own->tensor = heddle_tensor_retain(out->of.t);
    return 0;
  }
  if (PyBool_Check(object)) {
    *out = (heddle_value){.kind = HEDDLE_VALUE_BOOL, .of.i = object == Py_True};
    return 0;
  }
  if (PyLong_Check(object)) return integer(object, position, out);
  if (PyUnicode_Check(object)) return text(object, position, out);
  if (PyFloat_Check(object)) {
    *out = (heddle_value){.kind = HEDDLE_VALUE_FLOAT, .of.f = PyFloat_AsDouble(object)};
    return 0;
  }
  if (PyBytes_Check(object) || PyByteArray_Check(object)) return bytes(object, out, own);
  if (PyObject_TypeCheck(object, state->function_type)) {
    *out = (heddle_value){.kind = HEDDLE_VALUE_FUNCTION, .of.function = ((heddle_py_function *)(void *)object)->f};
    return 0;
  }
  if (PyObject_TypeCheck(object, state->module_type)) {
    *out = (heddle_value){.kind = HEDDLE_VALUE_MODULE, .of.module = ((heddle_py_module *)(void *)object)->o};
    return 0;
  }
  return others(state, object, position, out, own);
}

/* ---- results of callbacks */

/* A copy that outlives the Python object; NULL with MemoryError. */
static const void *keep(const void *data, size_t n, bool terminate) {
  heddle_py_thread *thread = heddle_py_thread_get();
  if (thread == NULL) return NULL;
  if (n + 1 > thread->room) {
    free(thread->text);
    thread->room = 0;
    thread->text = malloc(n + 1);
    if (thread->text == NULL) return PyErr_NoMemory();
    thread->room = n + 1;
  }
  if (n > 0) memcpy(thread->text, data, n);
  if (terminate) thread->text[n] = '\0';
  return thread->text;
}

int heddle_py_to_result(heddle_py_state *state, PyObject *object, heddle_value *out) {
  heddle_value v;
  heddle_py_owned own;
  if (heddle_py_to_value(state, object, -1, &v, &own) != 0) return -1;
  int rc = 0;
  if (v.kind == HEDDLE_VALUE_STRING && (v.of.s = keep(v.of.s, strlen(v.of.s), true)) == NULL) rc = -1;
  else if (v.kind == HEDDLE_VALUE_BYTES && (v.of.data = keep(v.of.data, (size_t)v.bytes, false)) == NULL) rc = -1;
  else if (v.kind == HEDDLE_VALUE_MODULE) heddle_object_retain(v.of.module);
  else if (v.kind == HEDDLE_VALUE_FUNCTION) heddle_function_retain(v.of.function);
  else if (v.kind == HEDDLE_VALUE_TENSOR) heddle_tensor_retain(v.of.t);
  heddle_py_drop(&own);
  if (rc == 0) *out = v;
  return rc;
}

/* ---- values to Python */

static PyObject *device_object(heddle_py_state *state, int32_t type, int32_t number) {
  if (state->device_class == NULL) {
    PyObject *module = PyImport_ImportModule("heddle.device");
    state->device_class = module != NULL ? PyObject_GetAttrString(module, "Device") : NULL;
    Py_XDECREF(module);
    if (state->device_class == NULL) return NULL;
  }
  return PyObject_CallFunction(state->device_class, "ii", (int)type, (int)number);
}

PyObject *heddle_py_array_new(heddle_py_state *state, heddle_tensor *t) {
  allocfunc allocate =
      HEDDLE_PY_FUNCTION(allocfunc, PyType_GetSlot((PyTypeObject *)(void *)state->array_class, Py_tp_alloc));
  PyObject *o = allocate((PyTypeObject *)(void *)state->array_class, 0);
  if (o != NULL) ((heddle_py_tensor *)(void *)o)->t = t;
  else heddle_tensor_release(t);
  return o;
}

PyObject *heddle_py_from_value(heddle_py_state *state, const heddle_value *v, bool taken) {
  switch (v->kind) {
  case HEDDLE_VALUE_INT: return PyLong_FromLongLong(v->of.i);
  case HEDDLE_VALUE_BOOL: return PyBool_FromLong(v->of.i != 0);
  case HEDDLE_VALUE_FLOAT: return PyFloat_FromDouble(v->of.f);
  case HEDDLE_VALUE_STRING:
    return v->of.s != NULL ? PyUnicode_DecodeUTF8(v->of.s, (Py_ssize_t)strlen(v->of.s), "replace") : Py_NewRef(Py_None);
  case HEDDLE_VALUE_BYTES: return PyByteArray_FromStringAndSize(v->of.data, (Py_ssize_t)v->bytes);
  case HEDDLE_VALUE_TENSOR:
    if (v->of.t == NULL) break;
    return heddle_py_array_new(state, taken ? v->of.t : heddle_tensor_retain(v->of.t));
  case HEDDLE_VALUE_MODULE:
    if (v->of.module == NULL) break;
    return heddle_py_module_new(state, taken ? v->of.module : heddle_object_retain(v->of.module));
  case HEDDLE_VALUE_FUNCTION:
    if (v->of.function == NULL) break;
    return heddle_py_function_new(state, taken ? v->of.function : heddle_function_retain(v->of.function));
  case HEDDLE_VALUE_DEVICE: return device_object(state, v->of.device.type, v->of.device.number);
  case HEDDLE_VALUE_DTYPE: return state->core->dtype_name(v->of.dtype);
  case HEDDLE_VALUE_POINTER:
    return PyObject_CallFunction(state->c_void_p, "N", PyLong_FromVoidPtr((void *)(uintptr_t)v->of.data));
  default: break;
  }
  return Py_NewRef(Py_None);
}
