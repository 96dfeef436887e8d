/* bindings/python/src/numpy.c: numpy arrays as tensors and back, sharing memory where both can have it, and the dtypes of
 * both. bfloat16 and float8 are ml_dtypes' where that is installed, else unsigned integers of their width. */
#define HEDDLE_PYTHON_NUMPY_IMPORT
#include "numpy_api.h"

#include <stdbool.h>
#include <string.h>

enum { MAX_NDIM = 32, MAX_ARRAY_NDIM = 64 }; /* of tensors, and of arrays */

/* ---------------------------------------------------------------- dtypes */

static heddle_dtype plain_dtype(uint8_t code, npy_intp bytes) {
  return (heddle_dtype){code, (uint8_t)(bytes * 8), 1};
}

/* 0, or -1 without an exception: numpy's own numbers by kind and size, others by name (ml_dtypes'). */
static int dtype_of_descr(PyArray_Descr *descr, heddle_dtype *out) {
  npy_intp size = PyDataType_ELSIZE(descr);
  int s = 0;
  if (descr->type_num >= NPY_USERDEF || descr->kind == 'V') {
    PyObject *name = PyObject_GetAttrString((PyObject *)descr, "name");
    PyObject *bytes = name != NULL && PyUnicode_Check(name) ? PyUnicode_AsUTF8String(name) : NULL;
    s = bytes != NULL ? heddle_py_dtype_parse(PyBytes_AsString(bytes), out) : -1;
    Py_XDECREF(bytes);
    Py_XDECREF(name);
    PyErr_Clear();
    return s;
  }
  switch (descr->kind) {
  case 'b': *out = (heddle_dtype){HEDDLE_DTYPE_BOOL, 8, 1}; return 0;
  case 'i': *out = plain_dtype(HEDDLE_DTYPE_INT, size); return 0;
  case 'u': *out = plain_dtype(HEDDLE_DTYPE_UINT, size); return 0;
  case 'f': *out = plain_dtype(HEDDLE_DTYPE_FLOAT, size); return size <= 8 ? 0 : -1;
  case 'c': *out = plain_dtype(HEDDLE_DTYPE_COMPLEX, size); return size <= 16 ? 0 : -1;
  default: return -1;
  }
}

int heddle_py_no_array(PyObject *object) {
  PyErr_Format(PyExc_TypeError,
               "%R is no array: give a Tensor, a numpy array, a buffer, an object with __dlpack__, a number "
               "or a nested list of numbers",
               Py_TYPE(object));
  return -1;
}

static int no_dtype(PyArray_Descr *descr) {
  PyErr_Format(PyExc_TypeError,
               "Heddle has no elements of numpy's %R; convert the array to one of its numbers first, as with "
               "astype('float32')",
               descr);
  return -1;
}

int heddle_py_dtype_of_numpy(PyObject *object, heddle_dtype *out) {
  PyArray_Descr *descr = NULL;
  if (!PyArray_DescrCheck(object) && !PyType_Check(object)) return 1;
  if (!PyArray_DescrConverter(object, &descr)) return -1;
  int s = dtype_of_descr(descr, out) == 0 ? 0 : no_dtype(descr);
  Py_DECREF(descr);
  return s;
}

/* numpy's number of a dtype that it has itself, or -1. */
static int type_num(heddle_dtype d) {
  static const int ints[4] = {NPY_INT8, NPY_INT16, NPY_INT32, NPY_INT64};
  static const int uints[4] = {NPY_UINT8, NPY_UINT16, NPY_UINT32, NPY_UINT64};
  int log2 = d.bits == 8 ? 0 : d.bits == 16 ? 1 : d.bits == 32 ? 2 : d.bits == 64 ? 3 : -1;
  switch (d.code) {
  case HEDDLE_DTYPE_INT: return log2 >= 0 ? ints[log2] : -1;
  case HEDDLE_DTYPE_UINT: return log2 >= 0 ? uints[log2] : -1;
  case HEDDLE_DTYPE_FLOAT: return log2 == 1 ? NPY_FLOAT16 : log2 == 2 ? NPY_FLOAT32 : log2 == 3 ? NPY_FLOAT64 : -1;
  case HEDDLE_DTYPE_COMPLEX: return log2 == 3 ? NPY_COMPLEX64 : d.bits == 128 ? NPY_COMPLEX128 : -1;
  case HEDDLE_DTYPE_BOOL: return log2 == 0 ? NPY_BOOL : -1;
  case HEDDLE_DTYPE_HANDLE: return log2 == 3 ? NPY_UINT64 : -1;
  default: return -1;
  }
}

/* ml_dtypes' dtype of that name, or NULL without an exception where the package or the name is not there. */
static PyArray_Descr *ml_descr(heddle_dtype d) {
  PyArray_Descr *descr = NULL;
  d.lanes = 1;
  PyObject *package = PyImport_ImportModule("ml_dtypes"), *name = package != NULL ? heddle_py_dtype_name(d) : NULL;
  PyObject *type = name != NULL ? PyObject_GetAttr(package, name) : NULL;
  if (type != NULL && !PyArray_DescrConverter(type, &descr)) descr = NULL;
  Py_XDECREF(type);
  Py_XDECREF(name);
  Py_XDECREF(package);
  PyErr_Clear();
  return descr;
}

/* The numpy dtype of an element (of one lane). A new reference, or NULL with an exception. */
static PyArray_Descr *descr_of(heddle_dtype d, int plain) {
  int num = type_num(d);
  if (num >= 0) return PyArray_DescrFromType(num);
  PyArray_Descr *descr = plain ? NULL : ml_descr(d);
  if (descr != NULL) return descr;
  unsigned bytes = (d.bits + 7u) / 8u;
  num = bytes == 1   ? d.code == HEDDLE_DTYPE_INT ? NPY_INT8 : NPY_UINT8
        : bytes == 2 ? NPY_UINT16
        : bytes == 4 ? NPY_UINT32
        : bytes == 8 ? NPY_UINT64
                     : -1;
  if (num >= 0) return PyArray_DescrFromType(num);
  PyObject *name = heddle_py_dtype_name(d);
  if (name != NULL) PyErr_Format(PyExc_TypeError, "numpy has no elements like Heddle's %U", name);
  Py_XDECREF(name);
  return NULL;
}

/* ---------------------------------------------------------------- tensors as arrays */

/* Shape as numpy has it: lanes are one more dimension. Gives the number of dimensions. */
static int array_shape(heddle_tensor *t, npy_intp *dims, npy_intp *strides) {
  heddle_dtype d = heddle_tensor_dtype(t);
  int ndim = (int)heddle_tensor_ndim(t);
  npy_intp part = (d.bits + 7) / 8, whole = ((npy_intp)d.bits * d.lanes + 7) / 8;
  for (int i = 0; i < ndim; i++) {
    dims[i] = heddle_tensor_shape(t)[i];
    strides[i] = heddle_tensor_strides(t)[i] * whole;
  }
  if (d.lanes == 1) return ndim;
  dims[ndim] = d.lanes;
  strides[ndim] = part;
  return ndim + 1;
}

PyObject *heddle_py_array_view(heddle_tensor *t, PyObject *owner, int plain) {
  npy_intp dims[MAX_NDIM + 1], strides[MAX_NDIM + 1];
  int ndim = array_shape(t, dims, strides);
  PyArray_Descr *descr = descr_of(heddle_tensor_dtype(t), plain);
  if (descr == NULL) return NULL;
  void *data = heddle_tensor_data(t);
  int flags = NPY_ARRAY_ALIGNED | (heddle_py_tensor_read_only(t) ? 0 : NPY_ARRAY_WRITEABLE);
  if (data == NULL)
    return PyArray_NewFromDescr(&PyArray_Type, descr, ndim, dims, NULL, NULL, 0, NULL); /* no elements */
  PyObject *array = PyArray_NewFromDescr(&PyArray_Type, descr, ndim, dims, strides, data, flags, NULL);
  if (array != NULL && PyArray_SetBaseObject((PyArrayObject *)array, Py_NewRef(owner)) < 0) Py_CLEAR(array);
  return array;
}

PyObject *heddle_py_array_like(heddle_tensor *t) {
  npy_intp dims[MAX_NDIM + 1], strides[MAX_NDIM + 1];
  int ndim = array_shape(t, dims, strides);
  PyArray_Descr *descr = descr_of(heddle_tensor_dtype(t), 0);
  return descr != NULL ? PyArray_NewFromDescr(&PyArray_Type, descr, ndim, dims, NULL, NULL, 0, NULL) : NULL;
}

int heddle_py_array_wrap(PyObject *array, heddle_tensor *like, heddle_tensor **out) {
  PyArrayObject *to = (PyArrayObject *)array;
  heddle_error err = {0};
  *out = NULL;
  if ((uint64_t)PyArray_NBYTES(to) != heddle_tensor_bytes(like) || !PyArray_ISCARRAY(to)) {
    heddle_py_fail_words(HEDDLE_EINTERNAL, "an array of %lld bytes was made for a tensor of %llu",
                         (long long)PyArray_NBYTES(to), (unsigned long long)heddle_tensor_bytes(like));
    return -1;
  }
  heddle_status s = heddle_tensor_wrap(PyArray_DATA(to), heddle_tensor_dtype(like), heddle_tensor_shape(like),
                                       heddle_tensor_ndim(like), NULL, NULL, NULL, out, &err);
  if (s == HEDDLE_OK) return 0;
  heddle_py_fail(s, &err, NULL);
  return -1;
}

PyObject *heddle_py_array_copy(heddle_tensor *t) {
  PyObject *array = heddle_py_array_like(t);
  heddle_tensor *to = NULL;
  if (array == NULL || heddle_tensor_bytes(t) == 0) return array;
  if (heddle_py_array_wrap(array, t, &to) < 0 || heddle_py_tensor_copy(to, t) < 0) Py_CLEAR(array);
  heddle_py_tensor_release(to);
  return array;
}

/* ---------------------------------------------------------------- arrays as tensors */

/* Strides in elements; 0, or -1 where one is not a whole number of them. */
static int element_strides(PyArrayObject *array, int64_t *out) {
  npy_intp size = PyArray_ITEMSIZE(array);
  for (int i = 0; i < PyArray_NDIM(array); i++) {
    npy_intp stride = PyArray_STRIDES(array)[i];
    if (PyArray_DIM(array, i) <= 1) stride = 0; /* never taken, and may be anything */
    if (stride % size != 0) return -1;
    out[i] = stride / size;
  }
  return 0;
}

/* An array whose bytes are as they are in a tensor: native order, aligned, whole strides. Takes over array. */
static PyArrayObject *as_plain_array(PyArrayObject *array, int64_t *strides) {
  if (array != NULL && PyArray_ISBEHAVED_RO(array) && element_strides(array, strides) == 0) return array;
  if (array == NULL) return NULL;
  PyArray_Descr *native = PyArray_DescrNewByteorder(PyArray_DESCR(array), NPY_NATIVE);
  PyArrayObject *plain = native != NULL
                             ? (PyArrayObject *)PyArray_FromArray(
                                   array, native, NPY_ARRAY_C_CONTIGUOUS | NPY_ARRAY_ALIGNED | NPY_ARRAY_ENSURECOPY)
                             : NULL;
  Py_DECREF(array);
  if (plain != NULL) element_strides(plain, strides);
  return plain;
}

/* Converts to a dtype; takes over array. */
static PyArrayObject *convert(PyArrayObject *array, heddle_dtype dtype, int unsafe) {
  PyArray_Descr *descr = descr_of(dtype, 0);
  if (descr != NULL && !PyArray_CanCastArrayTo(array, descr, unsafe ? NPY_UNSAFE_CASTING : NPY_SAME_KIND_CASTING)) {
    PyErr_Format(
        PyExc_TypeError,
        "elements of %R do not become %R without loss of meaning (numpy's rule 'same_kind'); convert them with "
        "astype first",
        PyArray_DESCR(array), descr);
    Py_CLEAR(descr);
  }
  PyArrayObject *out = NULL;
  if (descr != NULL) out = (PyArrayObject *)PyArray_FromArray(array, descr, NPY_ARRAY_FORCECAST | NPY_ARRAY_ALIGNED);
  Py_DECREF(array);
  return out;
}

/* Whether elements are of that dtype as they are, or are its bits: bfloat16 from uint16 where numpy has no bfloat16. */
static int same_dtype(heddle_dtype have, heddle_dtype want) {
  if (have.code == want.code && have.bits == want.bits) return 1;
  if (type_num(want) >= 0 || have.code != HEDDLE_DTYPE_UINT || have.bits != want.bits) return 0;
  PyArray_Descr *descr = ml_descr(want);
  Py_XDECREF((PyObject *)descr);
  return descr == NULL;
}

/* Wraps an array, whose reference it takes over. */
static int wrap(PyArrayObject *array, heddle_dtype dtype, const int64_t *strides, heddle_tensor **out) {
  heddle_error err = {0};
  heddle_status s = HEDDLE_OK;
  int ndim = PyArray_NDIM(array);
  void *token = heddle_py_hold((PyObject *)array);
  Py_DECREF(array);
  if (token == NULL) return -1;
  int64_t shape[MAX_ARRAY_NDIM];
  for (int i = 0; i < ndim; i++) shape[i] = PyArray_DIM(array, i);
  if (PyArray_ISWRITEABLE(array))
    s = heddle_tensor_wrap(PyArray_DATA(array), dtype, shape, (uint32_t)ndim, strides, heddle_py_let_go, token, out,
                           &err);
  else s = heddle_py_wrap_read_only(PyArray_DATA(array), dtype, shape, (uint32_t)ndim, strides, token, out, &err);
  if (s == HEDDLE_OK) return 0;
  heddle_py_let_go(token);
  heddle_py_drop_let_go();
  heddle_py_fail(s, &err, NULL);
  return -1;
}

int heddle_py_is_array(PyObject *object) {
  return PyArray_Check(object);
}

int heddle_py_tensor_of_array(PyObject *object, const heddle_dtype *dtype, int unsafe, heddle_tensor **out) {
  *out = NULL;
  int64_t strides[MAX_ARRAY_NDIM];
  PyArrayObject *array;
  if (PyArray_Check(object)) array = (PyArrayObject *)Py_NewRef(object);
  else array = (PyArrayObject *)PyArray_FromAny(object, NULL, 0, 0, 0, NULL);
  if (array == NULL) return -1;
  heddle_dtype have = {0};
  bool is_long = strchr("fc", PyArray_DESCR(array)->kind) != NULL; /* long double has to be converted */
  if (dtype_of_descr(PyArray_DESCR(array), &have) < 0 && !(dtype != NULL && is_long)) {
    /* numpy makes an array of one object of what it cannot iterate over, such as a mapping. */
    bool is_array = PyArray_NDIM(array) > 0 || PyArray_DESCR(array)->kind != 'O' || PyArray_Check(object);
    if (is_array) no_dtype(PyArray_DESCR(array));
    else heddle_py_no_array(object);
    Py_DECREF(array);
    return -1;
  }
  if (dtype != NULL && dtype->lanes != 1) {
    heddle_py_fail_words(HEDDLE_EUNSUPPORTED, "arrays of numpy do not become elements of %u lanes",
                         (unsigned)dtype->lanes);
    Py_DECREF(array);
    return -1;
  }
  if (dtype != NULL && same_dtype(have, *dtype)) have = *dtype;
  else if (dtype != NULL) {
    array = convert(array, *dtype, unsafe);
    have = *dtype;
  }
  array = as_plain_array(array, strides);
  return array != NULL ? wrap(array, have, strides, out) : -1;
}

int heddle_py_numpy_init(PyObject *module) {
  (void)module;
  return PyArray_ImportNumPyAPI();
}
