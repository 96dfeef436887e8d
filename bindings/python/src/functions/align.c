/* bindings/python/src/functions/align.c: numpy arrays for compiled functions, which take arrays that are compact and begin
 * at a multiple of 64 bytes, and refuse others: whether a numpy array does is chance, so it is copied where it does not. */
#include "functions.h"

enum { ALIGNMENT = 64 };

static bool is_fit(const heddle_tensor *t) {
  return heddle_tensor_device(t) != NULL || heddle_tensor_bytes(t) == 0 ||
         (heddle_tensor_is_contiguous(t) && (uintptr_t)heddle_tensor_data(t) % ALIGNMENT == 0);
}

/* Whether a numpy array may be written to: 1, 0, or -1 with an exception. */
static int is_writable(PyObject *array) {
  PyObject *flags = PyObject_GetAttrString(array, "flags");
  PyObject *flag = flags != NULL ? PyObject_GetAttrString(flags, "writeable") : NULL;
  int is = flag != NULL ? PyObject_IsTrue(flag) : -1;
  Py_XDECREF(flags);
  Py_XDECREF(flag);
  return is;
}

static heddle_status copy(heddle_tensor *to, const heddle_tensor *from, heddle_error *err) {
  heddle_status s;
  Py_BEGIN_ALLOW_THREADS;
  s = heddle_tensor_copy(to, from, err);
  Py_END_ALLOW_THREADS;
  return s;
}

static int failed(heddle_py_state *state, heddle_status s, const heddle_error *err) {
  if (s == HEDDLE_OK) return 0;
  state->core->fail(s, err, NULL);
  return -1;
}

int heddle_py_align(heddle_py_state *state, PyObject *object, heddle_value *v, heddle_py_owned *own) {
  heddle_error err = {0};
  heddle_tensor *made = NULL;
  if (v->kind != HEDDLE_VALUE_TENSOR || is_fit(v->of.t)) return 0;
  int is = PyObject_IsInstance(object, state->numpy_ndarray);
  if (is <= 0) return is;
  if ((is = is_writable(object)) < 0) return -1;
  heddle_tensor *t = v->of.t;
  heddle_status s =
      heddle_tensor_create(NULL, heddle_tensor_dtype(t), heddle_tensor_shape(t), heddle_tensor_ndim(t), &made, &err);
  if (s == HEDDLE_OK) s = copy(made, t, &err);
  if (s != HEDDLE_OK) {
    heddle_tensor_release(made);
    return failed(state, s, &err);
  }
  own->original = own->tensor;
  own->is_output = is > 0;
  v->of.t = own->tensor = made;
  return 0;
}

int heddle_py_align_finish(heddle_py_state *state, heddle_py_owned *own) {
  heddle_error err = {0};
  if (own->original == NULL || !own->is_output) return 0;
  return failed(state, copy(own->original, own->tensor, &err), &err);
}
