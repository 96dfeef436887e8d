/* bindings/python/src/core.h: what the files of the two extension modules share: _core (devices, tensors, models, runs),
 * and _functions (functions, modules and values, of libheddle_tvm), which reaches _core through the table below.
 * Built against CPython's stable ABI of 3.11; every type is a heap type, every module has its own state. */
#ifndef HEDDLE_PYTHON_CORE_H
#define HEDDLE_PYTHON_CORE_H

#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030b0000
#include <Python.h>

#include "heddle/heddle.h"

/* A function as the value of a PyType_Slot, and a slot's value as a function: ISO C has no such cast, POSIX does. */
#define HEDDLE_PY_SLOT(function) (__extension__(void *)(function))
#define HEDDLE_PY_FUNCTION(type, slot) (__extension__(type)(slot))

/* The end of tp_dealloc of a type on the heap: the object's memory, and its reference to the type. */
static inline void heddle_py_free(PyObject *object) {
  PyTypeObject *type = Py_TYPE(object);
  HEDDLE_PY_FUNCTION(freefunc, PyType_GetSlot(type, Py_tp_free))(object);
  Py_DECREF(type);
}

/* A Tensor: one reference on t, which is never NULL. keep is an object whose memory t is, or NULL. */
typedef struct heddle_py_tensor {
  PyObject_HEAD heddle_tensor *t;
  PyObject *keep;
} heddle_py_tensor;

/* What _core gives to _functions, as the capsule "heddle._core._table". The GIL is held in all calls. */
typedef struct heddle_py_table {
  size_t struct_size;
  PyTypeObject *tensor_type;

  /* A Tensor that takes over the reference t, also on failure; its type is a subclass that was set, or Tensor. */
  PyObject *(*tensor_new)(heddle_tensor *t);

  /* Sets the exception of a status: its class, with the words, and the attributes status, node, device, file (file is
   * the path that a call was about, or NULL). Gives NULL. */
  PyObject *(*fail)(heddle_status status, const heddle_error *err, const char *file);

  /* A heddle_tensor of what a caller gave: a Tensor, a numpy array or another buffer, an object with __dlpack__, a number
   * or nested sequence (through numpy). *out has a reference; memory is shared where it can be, and held as long as *out
   * lives. 0, or -1 with an exception. dtype NULL: as the object has it; else it is converted where numpy would do so
   * with casting "same_kind". */
  int (*tensor_of)(PyObject *object, const heddle_dtype *dtype, heddle_tensor **out);

  /* "float32" and back. dtype_name gives a new str; dtype_of takes str, numpy dtypes and types: 0, or -1. */
  PyObject *(*dtype_name)(heddle_dtype dtype);
  int (*dtype_of)(PyObject *object, heddle_dtype *out);
} heddle_py_table;

#define HEDDLE_PY_TABLE "heddle._core._table"

#endif
