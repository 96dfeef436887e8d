/* bindings/python/src/dlpack.c: tensors as DLPack capsules and back, in the legacy form and the versioned one, as the
 * Python array API standard says. A capsule that was not taken frees its struct; one that was taken is renamed. */
#include "module.h"

#include <stdlib.h>
#include <string.h>

#include "dlpack.h"

static const char legacy_name[] = "dltensor", legacy_used[] = "used_dltensor";
static const char versioned_name[] = "dltensor_versioned", versioned_used[] = "used_dltensor_versioned";

/* ---------------------------------------------------------------- out */

static void free_legacy(PyObject *capsule) {
  if (!PyCapsule_IsValid(capsule, legacy_name)) return; /* taken */
  struct DLManagedTensor *m = PyCapsule_GetPointer(capsule, legacy_name);
  heddle_py_release_begin();
  if (m->deleter != NULL) m->deleter(m);
  heddle_py_release_end();
}

static void free_versioned(PyObject *capsule) {
  if (!PyCapsule_IsValid(capsule, versioned_name)) return;
  struct DLManagedTensorVersioned *m = PyCapsule_GetPointer(capsule, versioned_name);
  heddle_py_release_begin();
  if (m->deleter != NULL) m->deleter(m);
  heddle_py_release_end();
}

static PyObject *refuse(const heddle_error *err) {
  PyErr_SetString(PyExc_BufferError, err->text);
  return NULL;
}

static PyObject *legacy_capsule(heddle_tensor *t) {
  struct DLManagedTensor *m = NULL;
  heddle_error err = {0};
  if (heddle_tensor_to_dlpack(t, &m, &err) != HEDDLE_OK) return refuse(&err);
  PyObject *capsule = PyCapsule_New(m, legacy_name, free_legacy);
  if (capsule == NULL) m->deleter(m);
  return capsule;
}

static PyObject *versioned_capsule(heddle_tensor *t, int copied) {
  struct DLManagedTensorVersioned *m = NULL;
  heddle_error err = {0};
  if (heddle_tensor_to_dlpack_versioned(t, &m, &err) != HEDDLE_OK) return refuse(&err);
  if (copied) m->flags |= HEDDLE_PY_DL_COPIED;
  PyObject *capsule = PyCapsule_New(m, versioned_name, free_versioned);
  if (capsule == NULL) m->deleter(m);
  return capsule;
}

/* The arguments of __dlpack__: major is 0 for the legacy form, copy -1 where it is left open, type 0 without a device. */
typedef struct request {
  int major, copy, type, number;
  PyObject *stream; /* borrowed */
} request;

static int read_request(PyObject *args, PyObject *named, heddle_tensor *t, request *r) {
  static char *words[] = {"stream", "max_version", "dl_device", "copy", NULL};
  PyObject *stream = Py_None, *version = Py_None, *device = Py_None, *copy = Py_None;
  int minor = 0;
  *r = (request){.copy = -1, .stream = Py_None};
  if (!PyArg_ParseTupleAndKeywords(args, named, "|$OOOO:__dlpack__", words, &stream, &version, &device, &copy))
    return -1;
  if (stream != Py_None && heddle_tensor_device(t) == NULL) {
    PyErr_SetString(PyExc_BufferError, "stream must be None for memory of the host");
    return -1;
  }
  r->stream = stream;
  if (version != Py_None &&
      (!PyTuple_Check(version) || !PyArg_ParseTuple(version, "ii;max_version is (major, minor)", &r->major, &minor))) {
    if (!PyErr_Occurred()) PyErr_SetString(PyExc_TypeError, "max_version is a tuple (major, minor), or None");
    return -1;
  }
  if (device != Py_None &&
      (!PyTuple_Check(device) || !PyArg_ParseTuple(device, "ii;dl_device is (type, number)", &r->type, &r->number))) {
    if (!PyErr_Occurred()) PyErr_SetString(PyExc_TypeError, "dl_device is a tuple (type, number), or None");
    return -1;
  }
  if (copy != Py_None) r->copy = PyObject_IsTrue(copy);
  return copy != Py_None && r->copy < 0 ? -1 : 0;
}

/* DLPack's numbers of streams: without one it is CUDA's and HIP's default stream, and -1 asks for no order. Memory of other
 * APIs is complete when it is given away without a stream. 0, or -1 with an exception. */
static int give_in_order(heddle_tensor *t, PyObject *stream) {
  int type, number;
  heddle_error err = {0};
  heddle_status s = HEDDLE_EUNSUPPORTED;
  if (heddle_tensor_device(t) == NULL) return 0;
  heddle_py_tensor_device(t, &type, &number);
  const int has_default = type == HEDDLE_DEVICE_CUDA || type == HEDDLE_DEVICE_ROCM;
  if (stream == Py_None) {
    Py_BEGIN_ALLOW_THREADS;
    if (has_default) s = heddle_tensor_before_stream(t, 0, &err);
    if (s == HEDDLE_EUNSUPPORTED || s == HEDDLE_EINVAL) s = heddle_tensor_wait(t, HEDDLE_FOREVER, &err);
    Py_END_ALLOW_THREADS;
  } else {
    const long long handle = PyLong_AsLongLong(stream);
    if (handle == -1 && PyErr_Occurred()) return -1;
    if (handle == -1) return 0;
    if (handle < 0 || (type == HEDDLE_DEVICE_CUDA && handle == 0) ||
        (type == HEDDLE_DEVICE_ROCM && (handle == 1 || handle == 2))) {
      PyErr_Format(PyExc_BufferError, "DLPack has no stream %lld on a device of type %d", handle, type);
      return -1;
    }
    s = heddle_tensor_before_stream(t, (uint64_t)handle, &err);
  }
  if (s == HEDDLE_OK) return 0;
  heddle_py_fail(s, &err, NULL);
  return -1;
}

PyObject *heddle_py_tensor_dlpack(PyObject *self, PyObject *args, PyObject *named) {
  heddle_tensor *t = ((heddle_py_tensor *)self)->t, *copy = NULL;
  heddle_device *to = heddle_tensor_device(t);
  request r;
  int type, number;
  if (read_request(args, named, t, &r) < 0) return NULL;
  heddle_py_tensor_device(t, &type, &number);
  if (r.type != 0 && (r.type != type || r.number != number)) {
    if (r.type != HEDDLE_DEVICE_CPU) {
      PyErr_Format(PyExc_BufferError,
                   "the tensor is on device (%d, %d): it is given there or on the host (1, 0), not on (%d, %d)", type,
                   number, r.type, r.number);
      return NULL;
    }
    if (r.copy == 0) {
      PyErr_Format(PyExc_BufferError,
                   "the tensor is on device (%d, %d), and the host needs a copy, which copy=False forbids", type,
                   number);
      return NULL;
    }
    r.copy = 1;
    to = NULL;
  }
  if (r.copy == 1) {
    if (heddle_py_tensor_clone(to, t, &copy) < 0) return NULL;
    t = copy;
  } else if (give_in_order(t, r.stream) < 0) {
    return NULL;
  }
  PyObject *capsule = r.major >= 1 ? versioned_capsule(t, copy != NULL) : legacy_capsule(t);
  heddle_py_tensor_release(copy);
  return capsule;
}

PyObject *heddle_py_tensor_dlpack_device(PyObject *self, PyObject *none) {
  int type, number;
  (void)none;
  heddle_py_tensor_device(((heddle_py_tensor *)self)->t, &type, &number);
  return Py_BuildValue("(ii)", type, number);
}

int heddle_py_tensor_read_only(heddle_tensor *t) {
  struct DLManagedTensorVersioned *m = NULL;
  heddle_error err = {0};
  if (heddle_tensor_device(t) != NULL || heddle_tensor_to_dlpack_versioned(t, &m, &err) != HEDDLE_OK) return 0;
  int read_only = (m->flags & HEDDLE_PY_DL_READ_ONLY) != 0;
  m->deleter(m); /* the caller has another reference */
  return read_only;
}

/* ---------------------------------------------------------------- in */

/* A struct of ours round memory that a token holds. */
typedef struct held {
  struct DLManagedTensorVersioned m;
  void *token;
  int64_t extents[]; /* shape, then strides */
} held;

static void free_held(struct DLManagedTensorVersioned *m) {
  held *h = m->manager;
  heddle_py_let_go(h->token);
  free(h);
}

heddle_status heddle_py_wrap_read_only(void *data, heddle_dtype dtype, const int64_t *shape, uint32_t ndim,
                                       const int64_t *strides, void *token, heddle_tensor **out, heddle_error *err) {
  held *h = calloc(1, sizeof *h + 2 * ndim * sizeof *h->extents);
  if (h == NULL) {
    *err = (heddle_error){.status = HEDDLE_ENOMEM, .text = "out of memory"};
    return HEDDLE_ENOMEM;
  }
  h->token = token;
  h->m = (struct DLManagedTensorVersioned){.major = HEDDLE_PY_DL_MAJOR,
                                           .minor = HEDDLE_PY_DL_MINOR,
                                           .manager = h,
                                           .deleter = free_held,
                                           .flags = HEDDLE_PY_DL_READ_ONLY,
                                           .tensor = {.data = data,
                                                      .device_type = HEDDLE_DEVICE_CPU,
                                                      .ndim = (int32_t)ndim,
                                                      .dtype = dtype,
                                                      .shape = h->extents,
                                                      .strides = strides != NULL ? h->extents + ndim : NULL}};
  for (uint32_t i = 0; i < ndim; i++) {
    h->extents[i] = shape[i];
    h->extents[ndim + i] = strides != NULL ? strides[i] : 0;
  }
  heddle_status s = heddle_tensor_from_dlpack_versioned(&h->m, out, err);
  if (s != HEDDLE_OK) free(h);
  return s;
}

/* Takes what a capsule has. It is renamed before the GIL is let go, so that no other thread takes it too, and gets its name
 * back where its struct stays the producer's. dev: whose memory it is, or NULL. 0, or -1 with an exception. */
static int take_capsule(PyObject *capsule, heddle_device *dev, heddle_tensor **out) {
  heddle_error err = {0};
  heddle_status s;
  if (PyCapsule_IsValid(capsule, versioned_name)) {
    struct DLManagedTensorVersioned *m = PyCapsule_GetPointer(capsule, versioned_name);
    PyCapsule_SetName(capsule, versioned_used);
    Py_BEGIN_ALLOW_THREADS;
    s = heddle_tensor_from_dlpack_versioned_on(dev, m, out, &err);
    Py_END_ALLOW_THREADS;
    if (s != HEDDLE_OK && s != HEDDLE_EABI) PyCapsule_SetName(capsule, versioned_name); /* EABI: it was freed */
  } else if (PyCapsule_IsValid(capsule, legacy_name)) {
    struct DLManagedTensor *m = PyCapsule_GetPointer(capsule, legacy_name);
    PyCapsule_SetName(capsule, legacy_used);
    Py_BEGIN_ALLOW_THREADS;
    s = heddle_tensor_from_dlpack_on(dev, m, out, &err);
    Py_END_ALLOW_THREADS;
    if (s != HEDDLE_OK) PyCapsule_SetName(capsule, legacy_name);
  } else {
    const char *name = PyCapsule_GetName(capsule);
    heddle_py_fail_words(
        HEDDLE_EINVAL,
        "the capsule is named '%s'; a DLPack capsule is 'dltensor' or 'dltensor_versioned', and one that "
        "was taken in before ('used_...') cannot be taken again",
        name != NULL ? name : "");
    return -1;
  }
  if (s == HEDDLE_OK) return 0;
  heddle_py_fail(s, &err, NULL);
  return -1;
}

/* object.__dlpack__: with max_version, then as before DLPack 1.0. */
static PyObject *ask(PyObject *object, PyObject *stream) {
  PyObject *method = PyObject_GetAttrString(object, "__dlpack__"), *none = PyTuple_New(0);
  PyObject *named = Py_BuildValue("{s:(ii)}", "max_version", HEDDLE_PY_DL_MAJOR, HEDDLE_PY_DL_MINOR), *capsule = NULL;
  const int has_stream = stream != Py_None;
  if (named != NULL && has_stream && PyDict_SetItemString(named, "stream", stream) < 0) Py_CLEAR(named);
  if (method != NULL && none != NULL && named != NULL) capsule = PyObject_Call(method, none, named);
  if (capsule == NULL && method != NULL && PyErr_ExceptionMatches(PyExc_TypeError)) {
    PyErr_Clear();
    if (named != NULL && PyDict_DelItemString(named, "max_version") == 0) capsule = PyObject_Call(method, none, named);
  }
  Py_XDECREF(method);
  Py_XDECREF(none);
  Py_XDECREF(named);
  if (capsule == NULL || PyCapsule_CheckExact(capsule)) return capsule;
  PyErr_Format(PyExc_TypeError, "__dlpack__ of %R gave no capsule", Py_TYPE(object));
  Py_DECREF(capsule);
  return NULL;
}

/* The producer has put its work before later work of the stream: so Heddle's comes after that. Without a number it is the
 * default stream of CUDA or HIP. 0, or -1 with an exception. */
static int take_in_order(heddle_tensor *t, PyObject *stream) {
  int type, number;
  heddle_error err = {0};
  uint64_t handle = 0;
  if (heddle_tensor_device(t) == NULL) return 0;
  heddle_py_tensor_device(t, &type, &number);
  if (stream == Py_None && type != HEDDLE_DEVICE_CUDA && type != HEDDLE_DEVICE_ROCM) return 0;
  if (stream != Py_None) handle = PyLong_AsUnsignedLongLong(stream);
  if (stream != Py_None && PyErr_Occurred()) return -1;
  const heddle_status s = heddle_tensor_after_stream(t, handle, &err);
  if (s == HEDDLE_OK) return 0;
  heddle_py_fail(s, &err, NULL);
  return -1;
}

static int tensor_of_dlpack(PyObject *object, heddle_device *dev, PyObject *stream, heddle_tensor **out) {
  *out = NULL;
  if (heddle_py_is_tensor(object) && dev == NULL) {
    *out = heddle_tensor_retain(((heddle_py_tensor *)object)->t);
    return stream == Py_None ? 0 : take_in_order(*out, stream);
  }
  PyObject *capsule = PyCapsule_CheckExact(object) ? Py_NewRef(object) : ask(object, stream);
  if (capsule == NULL) return -1;
  int s = take_capsule(capsule, dev, out);
  Py_DECREF(capsule);
  if (s == 0 && take_in_order(*out, stream) < 0) {
    heddle_py_tensor_release(*out);
    *out = NULL;
    s = -1;
  }
  return s;
}

int heddle_py_tensor_of_dlpack(PyObject *object, heddle_tensor **out) {
  return tensor_of_dlpack(object, NULL, Py_None, out);
}

static PyObject *from_dlpack(PyObject *module, PyObject *args, PyObject *named) {
  static char *words[] = {"value", "device", "context", "stream", NULL};
  PyObject *value, *device = Py_None, *context = Py_None, *stream = Py_None;
  heddle_device *dev = NULL;
  heddle_tensor *t = NULL;
  (void)module;
  if (!PyArg_ParseTupleAndKeywords(args, named, "O|OOO:from_dlpack", words, &value, &device, &context, &stream))
    return NULL;
  if (!PyCapsule_CheckExact(value) && !PyObject_HasAttrString(value, "__dlpack__"))
    return PyErr_Format(PyExc_TypeError, "%R has no __dlpack__ and is no capsule", Py_TYPE(value));
  if (device != Py_None) {
    heddle_context *ctx = heddle_py_context_of(context);
    if (ctx == NULL || heddle_py_device_of(ctx, device, &dev) < 0) return NULL;
  }
  return tensor_of_dlpack(value, dev, stream, &t) == 0 ? heddle_py_tensor_new(t) : NULL;
}

static const char from_dlpack_doc[] =
    "from_dlpack(value, device=None, context=None, stream=None) -> Tensor\n\nA tensor of an object with __dlpack__, or "
    "of a "
    "DLPack capsule,\nthat shares its memory and keeps it. Memory of the host, with any strides, or of a device, "
    "row-major.\n"
    "stream: the caller's stream after which Heddle uses the memory, as a number (CUDA, HIP) or a cl_command_queue's "
    "address;\n"
    "the producer is asked to finish its work before later work there. None: the default stream of CUDA or HIP; of "
    "other "
    "APIs\n"
    "the producer's work is done before.\n"
    "device: whose memory it is, by name, (type, number) or Device; by default the process's context says. TypeError "
    "for\n"
    "what has no DLPack; NoDeviceError, UnsupportedError, InvalidError (also for a capsule that was taken before),\n"
    "AbiError for a major that is not 1.";

int heddle_py_dlpack_init(PyObject *module) {
  static PyMethodDef functions[] = {
      {"from_dlpack", (PyCFunction)(void (*)(void))from_dlpack, METH_VARARGS | METH_KEYWORDS, from_dlpack_doc},
      {NULL, NULL, 0, NULL}};
  return PyModule_AddFunctions(module, functions);
}
