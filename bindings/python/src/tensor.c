/* bindings/python/src/tensor.c: the type Tensor: its attributes, copies between the host and devices, and what callers
 * may give where a tensor is wanted. Arrays and capsules are in numpy.c and dlpack.c. */
#include "module.h"

#include <stdlib.h>
#include <string.h>

enum { KEEP_GIL_BYTES = 8192, MAX_NDIM = 32 };

int heddle_py_is_tensor(PyObject *object) {
  return PyObject_TypeCheck(object, heddle_py.tensor_type);
}

static heddle_tensor *of(PyObject *self) {
  return ((heddle_py_tensor *)self)->t;
}

/* ---------------------------------------------------------------- construction and copies */

PyObject *heddle_py_tensor_new(heddle_tensor *t) {
  PyTypeObject *type = heddle_py.result_type;
  allocfunc alloc = HEDDLE_PY_FUNCTION(allocfunc, PyType_GetSlot(type, Py_tp_alloc));
  heddle_py_tensor *self = (heddle_py_tensor *)alloc(type, 0);
  if (self != NULL) self->t = t;
  else heddle_py_tensor_release(t);
  return (PyObject *)self;
}

/* Tensor(value, dtype=None): as_tensor as a constructor, so that subclasses can be made. */
static PyObject *tensor_make(PyTypeObject *type, PyObject *args, PyObject *named) {
  static char *words[] = {"value", "dtype", NULL};
  PyObject *value, *dtype = Py_None;
  heddle_dtype wanted;
  heddle_tensor *t = NULL;
  if (!PyArg_ParseTupleAndKeywords(args, named, "O|O:Tensor", words, &value, &dtype)) return NULL;
  if (dtype != Py_None && heddle_py_dtype_of(dtype, &wanted) < 0) return NULL;
  if (heddle_py_tensor_of(value, dtype != Py_None ? &wanted : NULL, &t) < 0) return NULL;
  allocfunc alloc = HEDDLE_PY_FUNCTION(allocfunc, PyType_GetSlot(type, Py_tp_alloc));
  heddle_py_tensor *self = (heddle_py_tensor *)alloc(type, 0);
  if (self != NULL) self->t = t;
  else heddle_py_tensor_release(t);
  return (PyObject *)self;
}

static void tensor_dealloc(PyObject *object) {
  heddle_py_tensor *self = (heddle_py_tensor *)object;
  heddle_py_tensor_release(self->t);
  Py_XDECREF(self->keep);
  heddle_py_free(object);
}

int heddle_py_tensor_copy(heddle_tensor *dst, const heddle_tensor *src) {
  heddle_error err = {0};
  heddle_status s;
  if (heddle_tensor_bytes(dst) <= KEEP_GIL_BYTES && heddle_tensor_device(dst) == NULL &&
      heddle_tensor_device(src) == NULL) {
    s = heddle_tensor_copy(dst, src, &err);
  } else {
    Py_BEGIN_ALLOW_THREADS;
    s = heddle_tensor_copy(dst, src, &err);
    Py_END_ALLOW_THREADS;
  }
  if (s == HEDDLE_OK) return 0;
  heddle_py_fail(s, &err, NULL);
  return -1;
}

static int create(heddle_device *dev, heddle_dtype dtype, const int64_t *shape, uint32_t ndim, heddle_tensor **out) {
  heddle_error err = {0};
  heddle_status s;
  Py_BEGIN_ALLOW_THREADS;
  s = heddle_tensor_create(dev, dtype, shape, ndim, out, &err);
  Py_END_ALLOW_THREADS;
  if (s == HEDDLE_OK) return 0;
  heddle_py_fail(s, &err, NULL);
  return -1;
}

int heddle_py_tensor_clone(heddle_device *dev, heddle_tensor *t, heddle_tensor **out) {
  if (create(dev, heddle_tensor_dtype(t), heddle_tensor_shape(t), heddle_tensor_ndim(t), out) < 0) return -1;
  if (heddle_py_tensor_copy(*out, t) == 0) return 0;
  heddle_py_tensor_release(*out);
  *out = NULL;
  return -1;
}

/* ---------------------------------------------------------------- what callers give */

static int same_dtype(heddle_dtype a, heddle_dtype b) {
  return a.code == b.code && a.bits == b.bits && a.lanes == b.lanes;
}

/* A tensor as one of another dtype, through numpy. */
static int convert(heddle_tensor *t, heddle_dtype dtype, int unsafe, heddle_tensor **out) {
  PyObject *array = heddle_py_array_copy(t);
  int s = array != NULL ? heddle_py_tensor_of_array(array, &dtype, unsafe, out) : -1;
  Py_XDECREF(array);
  return s;
}

static int tensor_of(PyObject *object, const heddle_dtype *dtype, int unsafe, heddle_tensor **out) {
  heddle_tensor *t = NULL;
  *out = NULL;
  if (heddle_py_is_array(object)) return heddle_py_tensor_of_array(object, dtype, unsafe, out);
  if (heddle_py_is_tensor(object)) {
    t = heddle_tensor_retain(of(object));
  } else if (PyCapsule_CheckExact(object) ||
             (PyObject_HasAttrString(object, "__dlpack__") && !PyObject_HasAttrString(object, "__array_interface__"))) {
    if (heddle_py_tensor_of_dlpack(object, &t) < 0) return -1;
  } else if (PyUnicode_Check(object) || PyBytes_Check(object) || object == Py_None) {
    return heddle_py_no_array(object);
  } else {
    return heddle_py_tensor_of_array(object, dtype, unsafe, out);
  }
  if (dtype == NULL || same_dtype(heddle_tensor_dtype(t), *dtype)) {
    *out = t;
    return 0;
  }
  int s = convert(t, *dtype, unsafe, out);
  heddle_py_tensor_release(t);
  return s;
}

int heddle_py_tensor_of(PyObject *object, const heddle_dtype *dtype, heddle_tensor **out) {
  return tensor_of(object, dtype, 0, out);
}

/* ---------------------------------------------------------------- attributes */

static PyObject *tuple_of(const int64_t *values, uint32_t n) {
  PyObject *tuple = PyTuple_New((Py_ssize_t)n);
  for (uint32_t i = 0; i < n && tuple != NULL; i++) {
    PyObject *value = PyLong_FromLongLong(values[i]);
    if (value == NULL || PyTuple_SetItem(tuple, (Py_ssize_t)i, value) < 0) Py_CLEAR(tuple);
  }
  return tuple;
}

void heddle_py_tensor_device(heddle_tensor *t, int *type, int *number) {
  heddle_device *dev = heddle_tensor_device(t);
  heddle_device_info info = {.struct_size = sizeof info};
  heddle_error err = {0};
  *type = HEDDLE_DEVICE_CPU;
  *number = 0;
  if (dev == NULL || heddle_device_get_info(dev, &info, &err) != HEDDLE_OK) return;
  *type = (int)info.type;
  *number = (int)info.index;
}

static PyObject *get_shape(PyObject *self, void *none) {
  (void)none;
  return tuple_of(heddle_tensor_shape(of(self)), heddle_tensor_ndim(of(self)));
}

static PyObject *get_strides(PyObject *self, void *none) {
  (void)none;
  return tuple_of(heddle_tensor_strides(of(self)), heddle_tensor_ndim(of(self)));
}

static PyObject *get_dtype(PyObject *self, void *none) {
  (void)none;
  return heddle_py_dtype_name(heddle_tensor_dtype(of(self)));
}

static PyObject *get_ndim(PyObject *self, void *none) {
  (void)none;
  return PyLong_FromUnsignedLong(heddle_tensor_ndim(of(self)));
}

static PyObject *get_nbytes(PyObject *self, void *none) {
  (void)none;
  return PyLong_FromUnsignedLongLong(heddle_tensor_bytes(of(self)));
}

static PyObject *get_contiguous(PyObject *self, void *none) {
  (void)none;
  return PyBool_FromLong(heddle_tensor_is_contiguous(of(self)));
}

static PyObject *get_address(PyObject *self, void *none) {
  (void)none;
  return PyLong_FromVoidPtr(heddle_tensor_data(of(self)));
}

static PyObject *get_device_key(PyObject *self, void *none) {
  (void)none;
  return heddle_py_tensor_dlpack_device(self, NULL);
}

static PyObject *get_device_name(PyObject *self, void *none) {
  heddle_device *dev = heddle_tensor_device(of(self));
  (void)none;
  return PyUnicode_FromString(dev != NULL ? heddle_device_name(dev) : "cpu");
}

static PyObject *get_device(PyObject *self, void *none) {
  int type, number;
  (void)none;
  heddle_py_tensor_device(of(self), &type, &number);
  if (heddle_py.device_class == NULL) return Py_BuildValue("(ii)", type, number);
  heddle_device *dev = heddle_tensor_device(of(self));
  return dev == NULL ? PyObject_CallFunction(heddle_py.device_class, "ii", type, number)
                     : PyObject_CallFunction(heddle_py.device_class, "iis", type, number, heddle_device_name(dev));
}

static PyGetSetDef attributes[] = {
    {"shape", get_shape, NULL, "The extents, a tuple of int.", NULL},
    {"strides", get_strides, NULL, "Elements from one position to the next, by dimension.", NULL},
    {"dtype", get_dtype, NULL, "The name of the element's type, 'float32'.", NULL},
    {"ndim", get_ndim, NULL, "The number of dimensions.", NULL},
    {"nbytes", get_nbytes, NULL, "The bytes of the elements, without gaps.", NULL},
    {"is_contiguous", get_contiguous, NULL, "Whether the elements lie row-major without gaps.", NULL},
    {"address", get_address, NULL, "Where the elements begin; 0 where the host cannot read them.", NULL},
    {"device_key", get_device_key, NULL, "DLPack's type and number of the device; (1, 0) is the host.", NULL},
    {"device_name", get_device_name, NULL, "The device's name, such as 'sim:0'; 'cpu' for memory of the host.", NULL},
    {"device", get_device, NULL, "The device as a heddle.Device.", NULL},
    {NULL, NULL, NULL, NULL, NULL}};

/* ---------------------------------------------------------------- methods */

static PyObject *tensor_numpy(PyObject *self, PyObject *none) {
  (void)none;
  return heddle_tensor_device(of(self)) == NULL ? heddle_py_array_view(of(self), self, 0)
                                                : heddle_py_array_copy(of(self));
}

static int same_shape(heddle_tensor *a, heddle_tensor *b) {
  uint32_t n = heddle_tensor_ndim(a);
  return n == heddle_tensor_ndim(b) &&
         (n == 0 || memcmp(heddle_tensor_shape(a), heddle_tensor_shape(b), n * sizeof(int64_t)) == 0);
}

/* dst <- src, which has its dtype: shapes that differ are named. */
static PyObject *copy(heddle_tensor *dst, heddle_tensor *src) {
  if (!same_shape(dst, src)) {
    PyObject *from = tuple_of(heddle_tensor_shape(src), heddle_tensor_ndim(src));
    PyObject *to = tuple_of(heddle_tensor_shape(dst), heddle_tensor_ndim(dst));
    PyObject *words =
        from != NULL && to != NULL ? PyUnicode_FromFormat("shape %R does not go into shape %R", from, to) : NULL;
    PyObject *bytes = words != NULL ? PyUnicode_AsUTF8String(words) : NULL;
    if (bytes != NULL) heddle_py_fail_words(HEDDLE_EINVAL, "%s", PyBytes_AsString(bytes));
    Py_XDECREF(bytes);
    Py_XDECREF(words);
    Py_XDECREF(to);
    Py_XDECREF(from);
    return NULL;
  }
  if (heddle_py_tensor_read_only(dst))
    return heddle_py_fail_words(HEDDLE_EINVAL,
                                "the tensor is of memory that may only be read, such as a constant or a numpy "
                                "array that is not writeable");
  if (heddle_py_tensor_copy(dst, src) < 0) return NULL;
  Py_RETURN_NONE;
}

static PyObject *tensor_copy_from(PyObject *self, PyObject *other) {
  heddle_dtype dtype = heddle_tensor_dtype(of(self));
  heddle_tensor *t = NULL;
  if (tensor_of(other, &dtype, 1, &t) < 0) return NULL;
  PyObject *result = copy(of(self), t);
  heddle_py_tensor_release(t);
  return result;
}

static PyObject *tensor_copy_to(PyObject *self, PyObject *other) {
  if (!heddle_py_is_tensor(other))
    return PyErr_Format(PyExc_TypeError, "copy_to takes a Tensor, not %R", Py_TYPE(other));
  return tensor_copy_from(other, self);
}

static PyObject *tensor_array(PyObject *self, PyObject *args, PyObject *named) {
  static char *words[] = {"dtype", "copy", NULL};
  PyObject *dtype = Py_None, *wanted = Py_None;
  if (!PyArg_ParseTupleAndKeywords(args, named, "|OO:__array__", words, &dtype, &wanted)) return NULL;
  int must = wanted != Py_None ? PyObject_IsTrue(wanted) : -1;
  if (wanted != Py_None && must < 0) return NULL;
  if (must == 0 && heddle_tensor_device(of(self)) != NULL) {
    PyErr_SetString(PyExc_ValueError, "an array of a device's memory is a copy, which copy=False forbids");
    return NULL;
  }
  PyObject *array = must == 1 ? heddle_py_array_copy(of(self)) : tensor_numpy(self, NULL);
  if (array == NULL || dtype == Py_None) return array;
  PyObject *have = PyObject_GetAttrString(array, "dtype"), *other = NULL;
  int same = have != NULL ? PyObject_RichCompareBool(have, dtype, Py_EQ) : -1;
  if (same == 0 && must == 0) PyErr_SetString(PyExc_ValueError, "another dtype needs a copy, which copy=False forbids");
  else if (same == 0) other = PyObject_CallMethod(array, "astype", "O", dtype);
  else if (same == 1) other = Py_NewRef(array);
  Py_XDECREF(have);
  Py_DECREF(array);
  return other;
}

static PyObject *tensor_repr(PyObject *self) {
  PyObject *shape = get_shape(self, NULL), *dtype = get_dtype(self, NULL), *device = get_device_name(self, NULL);
  PyObject *text = NULL, *name = PyObject_GetAttrString((PyObject *)Py_TYPE(self), "__name__");
  if (shape != NULL && dtype != NULL && device != NULL && name != NULL)
    text = PyUnicode_FromFormat("<%U shape=%R dtype=%U device=%U>", name, shape, dtype, device);
  Py_XDECREF(name);
  Py_XDECREF(device);
  Py_XDECREF(dtype);
  Py_XDECREF(shape);
  return text;
}

static Py_ssize_t tensor_length(PyObject *self) {
  if (heddle_tensor_ndim(of(self)) > 0) return (Py_ssize_t)heddle_tensor_shape(of(self))[0];
  PyErr_SetString(PyExc_TypeError, "a tensor without dimensions has no length");
  return -1;
}

/* numpy fills in the view, with its own rules for what each request asks. */
static int tensor_buffer(PyObject *self, Py_buffer *view, int flags) {
  view->obj = NULL;
  if (heddle_tensor_device(of(self)) != NULL) {
    PyErr_SetString(PyExc_BufferError, "memory of a device is no buffer; numpy() gives a copy of it");
    return -1;
  }
  PyObject *array = heddle_py_array_view(of(self), self, 1);
  int s = array != NULL ? PyObject_GetBuffer(array, view, flags) : -1;
  Py_XDECREF(array);
  return s;
}

/* ---------------------------------------------------------------- functions of the module */

/* A shape of a sequence of numbers, or of one number. The number of dimensions, or -1. */
static int shape_of(PyObject *object, int64_t shape[MAX_NDIM]) {
  PyObject *list = PyLong_Check(object) ? PyTuple_Pack(1, object) : PySequence_Tuple(object);
  if (list == NULL) return -1;
  Py_ssize_t n = PyTuple_Size(list);
  if (n > MAX_NDIM) {
    heddle_py_fail_words(HEDDLE_EINVAL, "%zd dimensions, at most %d are possible", n, (int)MAX_NDIM);
    n = -1;
  }
  for (Py_ssize_t i = 0; i < n; i++) {
    PyObject *number = PyNumber_Index(PyTuple_GetItem(list, i));
    shape[i] = number != NULL ? PyLong_AsLongLong(number) : -1;
    Py_XDECREF(number);
    if (PyErr_Occurred()) n = -1;
  }
  Py_DECREF(list);
  return (int)n;
}

static PyObject *empty(PyObject *module, PyObject *args, PyObject *named) {
  static char *words[] = {"shape", "dtype", "device", "context", NULL};
  PyObject *extents, *type = NULL, *device = Py_None, *context = Py_None;
  int64_t shape[MAX_NDIM];
  heddle_dtype dtype = HEDDLE_FLOAT32;
  heddle_device *dev = NULL;
  heddle_tensor *t = NULL;
  (void)module;
  if (!PyArg_ParseTupleAndKeywords(args, named, "O|OOO:empty", words, &extents, &type, &device, &context)) return NULL;
  int ndim = shape_of(extents, shape);
  if (ndim < 0 || (type != NULL && heddle_py_dtype_of(type, &dtype) < 0)) return NULL;
  if (device != Py_None) {
    heddle_context *ctx = heddle_py_context_of(context);
    if (ctx == NULL || heddle_py_device_of(ctx, device, &dev) < 0) return NULL;
  }
  return create(dev, dtype, shape, (uint32_t)ndim, &t) == 0 ? heddle_py_tensor_new(t) : NULL;
}

static PyObject *as_tensor(PyObject *module, PyObject *args, PyObject *named) {
  static char *words[] = {"value", "dtype", NULL};
  PyObject *value, *dtype = Py_None;
  heddle_dtype wanted;
  heddle_tensor *t = NULL;
  (void)module;
  if (!PyArg_ParseTupleAndKeywords(args, named, "O|O:as_tensor", words, &value, &dtype)) return NULL;
  if (dtype != Py_None && heddle_py_dtype_of(dtype, &wanted) < 0) return NULL;
  if (heddle_py_is_tensor(value) && dtype == Py_None) return Py_NewRef(value);
  return heddle_py_tensor_of(value, dtype != Py_None ? &wanted : NULL, &t) == 0 ? heddle_py_tensor_new(t) : NULL;
}

static PyObject *load_npy(PyObject *module, PyObject *args) {
  PyObject *path = NULL;
  heddle_tensor *t = NULL;
  heddle_error err = {0};
  heddle_status s;
  (void)module;
  if (!PyArg_ParseTuple(args, "O&:load_npy", PyUnicode_FSConverter, &path)) return NULL;
  const char *name = PyBytes_AsString(path);
  Py_BEGIN_ALLOW_THREADS;
  s = heddle_tensor_load_npy(name, &t, &err);
  Py_END_ALLOW_THREADS;
  if (s != HEDDLE_OK) heddle_py_fail(s, &err, name);
  Py_DECREF(path);
  return s == HEDDLE_OK ? heddle_py_tensor_new(t) : NULL;
}

static PyObject *save_npy(PyObject *module, PyObject *args) {
  PyObject *object, *path = NULL;
  heddle_tensor *t = NULL;
  heddle_error err = {0};
  heddle_status s;
  (void)module;
  if (!PyArg_ParseTuple(args, "OO&:save_npy", &object, PyUnicode_FSConverter, &path)) return NULL;
  if (heddle_py_tensor_of(object, NULL, &t) < 0) {
    Py_DECREF(path);
    return NULL;
  }
  const char *name = PyBytes_AsString(path);
  Py_BEGIN_ALLOW_THREADS;
  s = heddle_tensor_save_npy(t, name, &err);
  Py_END_ALLOW_THREADS;
  heddle_py_tensor_release(t);
  if (s != HEDDLE_OK) heddle_py_fail(s, &err, name);
  Py_DECREF(path);
  if (s != HEDDLE_OK) return NULL;
  Py_RETURN_NONE;
}

static PyObject *set_device_class(PyObject *module, PyObject *class) {
  (void)module;
  PyObject *before = heddle_py.device_class;
  heddle_py.device_class = Py_NewRef(class);
  Py_XDECREF(before);
  Py_RETURN_NONE;
}

static PyObject *set_tensor_class(PyObject *module, PyObject *class) {
  (void)module;
  if (!PyType_Check(class) || !PyType_IsSubtype((PyTypeObject *)class, heddle_py.tensor_type))
    return PyErr_Format(PyExc_TypeError, "%R is no subclass of Tensor", class);
  PyTypeObject *before = heddle_py.result_type;
  heddle_py.result_type = (PyTypeObject *)Py_NewRef(class);
  Py_DECREF(before);
  Py_RETURN_NONE;
}

/* ---------------------------------------------------------------- the type */

static PyMethodDef methods[] = {
    {"numpy", tensor_numpy, METH_NOARGS,
     "numpy() -> numpy.ndarray\n\nHost memory: an array that shares it and keeps it, of the same shape and strides. A "
     "device's\n"
     "memory: a copy; blocks. bfloat16, float8 and int4 have ml_dtypes' dtypes where that package is installed, else "
     "they\n"
     "are unsigned integers of their width (bfloat16: uint16). Elements of several lanes get one more dimension."},
    {"copy_from", tensor_copy_from, METH_O,
     "copy_from(other)\n\nTakes the elements of a Tensor, an array, a buffer or an object with __dlpack__, of the same "
     "shape; the\n"
     "dtype is converted as numpy's assignment does. InvalidError for another shape, or memory that may only be read.\n"
     "Blocks, without the GIL."},
    {"copy_to", tensor_copy_to, METH_O,
     "copy_to(other)\n\nGives its elements to another Tensor, as other.copy_from(self) does."},
    {"__dlpack__", (PyCFunction)(void (*)(void))heddle_py_tensor_dlpack, METH_VARARGS | METH_KEYWORDS,
     "__dlpack__(*, stream=None, max_version=None, dl_device=None, copy=None) -> capsule\n\nDLPack, as the array API "
     "standard\n"
     "says: versioned from max_version (1, 0) on. All work on the memory is done when it returns, whatever the "
     "stream.\n"
     "dl_device=(1, 0) gives a device's memory as a copy on the host. BufferError where it cannot be given."},
    {"__dlpack_device__", heddle_py_tensor_dlpack_device, METH_NOARGS,
     "__dlpack_device__() -> (type, number)\n\nThe device, in DLPack's numbers."},
    {"__array__", (PyCFunction)(void (*)(void))tensor_array, METH_VARARGS | METH_KEYWORDS,
     "__array__(dtype=None, copy=None) -> numpy.ndarray\n\nWhat numpy.asarray calls."},
    {NULL, NULL, 0, NULL}};

static PyMethodDef functions[] = {
    {"empty", (PyCFunction)(void (*)(void))empty, METH_VARARGS | METH_KEYWORDS,
     "empty(shape, dtype='float32', device=None, context=None) -> Tensor\n\nNew memory, zeroed, on the host or a "
     "device: its name,\n"
     "DLPack's (type, number), or a heddle.Device. Blocks in drivers. InvalidError, LimitError, NoDeviceError,\n"
     "OutOfMemoryError."},
    {"as_tensor", (PyCFunction)(void (*)(void))as_tensor, METH_VARARGS | METH_KEYWORDS,
     "as_tensor(value, dtype=None) -> Tensor\n\nA tensor of an array, a buffer, an object with __dlpack__, a number or "
     "a nested\n"
     "list. Memory is shared where it can be, and held; a dtype is converted by numpy's rule 'same_kind'. TypeError "
     "for\n"
     "what is no array."},
    {"load_npy", load_npy, METH_VARARGS,
     "load_npy(path) -> Tensor\n\nReads a .npy file. Blocks; FileError, FormatError."},
    {"save_npy", save_npy, METH_VARARGS,
     "save_npy(tensor, path)\n\nWrites a .npy file of a tensor or an array; bfloat16 as uint16. Blocks; FileError."},
    {"set_device_class", set_device_class, METH_O,
     "set_device_class(cls)\n\nWhat Tensor.device makes, of (type, number), or of (type, number, name) on a device."},
    {"set_tensor_class", set_tensor_class, METH_O,
     "set_tensor_class(cls)\n\nThe subclass of Tensor that results have."},
    {NULL, NULL, 0, NULL}};

int heddle_py_tensor_init(PyObject *module) {
  static PyType_Slot slots[] = {
      {Py_tp_new, HEDDLE_PY_SLOT(tensor_make)},
      {Py_tp_dealloc, HEDDLE_PY_SLOT(tensor_dealloc)},
      {Py_tp_repr, HEDDLE_PY_SLOT(tensor_repr)},
      {Py_tp_methods, methods},
      {Py_tp_getset, attributes},
      {Py_sq_length, HEDDLE_PY_SLOT(tensor_length)},
      {Py_bf_getbuffer, HEDDLE_PY_SLOT(tensor_buffer)},
      {Py_tp_doc,
       "Tensor(value, dtype=None)\n\nAn array on the host or on a device, of as_tensor's value. Its memory lives "
       "until\n"
       "the last that has it is gone: tensors, numpy arrays, DLPack consumers. Any thread may use it; writers and\n"
       "readers of the elements are the caller's to order."},
      {0, NULL}};
  static PyType_Spec spec = {"heddle._core.Tensor", sizeof(heddle_py_tensor), 0,
                             Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, slots};
  heddle_py.tensor_type = heddle_py_add_type(module, &spec);
  if (heddle_py.tensor_type == NULL) return -1;
  heddle_py.result_type = (PyTypeObject *)Py_NewRef((PyObject *)heddle_py.tensor_type);
  return PyModule_AddFunctions(module, functions);
}
