/* bindings/python/src/functions/sign.c: keys, signatures and encryption: what heddle.signing calls. */
#include <string.h>

#include "functions.h"

static heddle_py_state *state_of(PyObject *module) {
  return PyModule_GetState(module);
}

PyObject *heddle_py_key_create(PyObject *module, PyObject *args) {
  const char *path;
  unsigned kind;
  heddle_error err = {0};
  heddle_status s;
  if (!PyArg_ParseTuple(args, "sI", &path, &kind)) return NULL;
  Py_BEGIN_ALLOW_THREADS;
  s = heddle_key_create(path, kind, &err);
  Py_END_ALLOW_THREADS;
  return s == HEDDLE_OK ? Py_NewRef(Py_None) : state_of(module)->core->fail(s, &err, path);
}

PyObject *heddle_py_key_public(PyObject *module, PyObject *args) {
  const char *path;
  char *text = NULL;
  heddle_error err = {0};
  if (!PyArg_ParseTuple(args, "s", &path)) return NULL;
  heddle_status s = heddle_key_public(path, &text, &err);
  if (s != HEDDLE_OK) return state_of(module)->core->fail(s, &err, path);
  PyObject *out = PyUnicode_FromString(text);
  heddle_free(text);
  return out;
}

PyObject *heddle_py_sign(PyObject *module, PyObject *args) {
  const char *path, *out_path;
  heddle_sign_options o = {.struct_size = sizeof o};
  unsigned long long sequence;
  unsigned flags;
  heddle_error err = {0};
  heddle_status s;
  if (!PyArg_ParseTuple(args, "szzzKI", &path, &out_path, &o.sign, &o.encrypt, &sequence, &flags)) return NULL;
  o.sequence = sequence;
  o.flags = flags;
  Py_BEGIN_ALLOW_THREADS;
  s = heddle_sign(path, out_path, &o, &err);
  Py_END_ALLOW_THREADS;
  return s == HEDDLE_OK ? Py_NewRef(Py_None) : state_of(module)->core->fail(s, &err, path);
}

/* (flags, key id, sequence number, id of the encryption key, bytes). */
static PyObject *give(const heddle_signature *s) {
  return Py_BuildValue("IsKsK", (unsigned)s->flags, s->key_id, (unsigned long long)s->sequence, s->encryption_key_id,
                       (unsigned long long)s->bytes);
}

PyObject *heddle_py_signature(PyObject *module, PyObject *args) {
  const char *path;
  heddle_signature out = {.struct_size = sizeof out};
  heddle_error err = {0};
  if (!PyArg_ParseTuple(args, "s", &path)) return NULL;
  heddle_status s = heddle_signature_read(path, &out, &err);
  return s == HEDDLE_OK ? give(&out) : state_of(module)->core->fail(s, &err, path);
}

PyObject *heddle_py_verify(PyObject *module, PyObject *args) {
  const char *path, *trust;
  heddle_signature out = {.struct_size = sizeof out};
  heddle_error err = {0};
  heddle_status s;
  if (!PyArg_ParseTuple(args, "sz", &path, &trust)) return NULL;
  Py_BEGIN_ALLOW_THREADS;
  s = heddle_verify(path, trust, &out, &err);
  Py_END_ALLOW_THREADS;
  return s == HEDDLE_OK ? give(&out) : state_of(module)->core->fail(s, &err, path);
}

PyObject *heddle_py_decrypt(PyObject *module, PyObject *args) {
  const char *path, *out_path, *key;
  heddle_error err = {0};
  heddle_status s;
  if (!PyArg_ParseTuple(args, "ssz", &path, &out_path, &key)) return NULL;
  Py_BEGIN_ALLOW_THREADS;
  s = heddle_decrypt(path, out_path, key, &err);
  Py_END_ALLOW_THREADS;
  return s == HEDDLE_OK ? Py_NewRef(Py_None) : state_of(module)->core->fail(s, &err, path);
}

static void set_words(heddle_error *err, heddle_status status, const char *words) {
  if (err == NULL) return;
  *err = (heddle_error){.status = status};
  strncpy(err->text, words, sizeof err->text - 1);
}

/* user is the Python function: None and an exception of it, and a key that is not 32 bytes, are no key. */
static heddle_status ask(void *user, const char *id, unsigned char key[32], heddle_error *err) {
  PyGILState_STATE held = PyGILState_Ensure();
  heddle_status s = HEDDLE_EFAILED;
  char *bytes = NULL;
  Py_ssize_t n = 0;
  PyObject *given = PyObject_CallFunction(user, "s", id);
  if (given == Py_None) {
    s = HEDDLE_ENOTFOUND;
  } else if (given != NULL && PyBytes_Check(given) && PyBytes_AsStringAndSize(given, &bytes, &n) == 0 && n == 32) {
    memcpy(key, bytes, 32);
    s = HEDDLE_OK;
  } else if (given != NULL) {
    set_words(err, s, "it returned neither None nor 32 bytes");
  } else {
    set_words(err, s, "it raised an exception, which is printed");
    PyErr_WriteUnraisable(user);
  }
  PyErr_Clear();
  Py_XDECREF(given);
  PyGILState_Release(held);
  return s;
}

PyObject *heddle_py_key_callback(PyObject *module, PyObject *function) {
  static PyObject *kept; /* of the one that is set; guarded by the GIL, and by libheddle's lock while it is called */
  heddle_error err = {0};
  heddle_status s;
  PyObject *given = function == Py_None ? NULL : Py_NewRef(function);
  Py_BEGIN_ALLOW_THREADS; /* it waits for calls, which want the GIL */
  s = heddle_key_callback(given != NULL ? ask : NULL, given, &err);
  Py_END_ALLOW_THREADS;
  if (s != HEDDLE_OK) {
    Py_XDECREF(given);
    return state_of(module)->core->fail(s, &err, NULL);
  }
  PyObject *old = kept;
  kept = given;
  Py_XDECREF(old);
  return Py_NewRef(Py_None);
}
