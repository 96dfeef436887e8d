/* bindings/python/src/functions/raised.c: exceptions that leave a callback as an error and come back to Python as the same
 * object. An exception waits with the thread that raised it while a call of Python's is on that thread, else (a thread
 * that compiled code started) with the module; the number of its error identifies it. */
#include "functions.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t key;
static int has_key;

/* No exception waits here: the thread's last call of Python's has ended. */
static void finish(void *p) {
  heddle_py_thread *thread = p;
  free(thread->text);
  free(thread);
}

static void make_key(void) {
  has_key = pthread_key_create(&key, finish) == 0;
}

heddle_py_thread *heddle_py_thread_get(void) {
  pthread_once(&once, make_key);
  heddle_py_thread *thread = has_key ? pthread_getspecific(key) : NULL;
  if (thread != NULL) return thread;
  thread = has_key ? calloc(1, sizeof *thread) : NULL;
  if (thread != NULL && pthread_setspecific(key, thread) == 0) return thread;
  free(thread);
  PyErr_NoMemory();
  return NULL;
}

static void forget(heddle_py_raised *raised) {
  PyObject *exception = raised->exception;
  raised->exception = NULL;
  Py_XDECREF(exception); /* last: it may run code that comes here */
}

void heddle_py_enter_call(heddle_py_state *state, heddle_py_thread *thread) {
  thread->depth++;
  state->calls++;
}

void heddle_py_leave_call(heddle_py_state *state, heddle_py_thread *thread) {
  state->calls--;
  if (--thread->depth > 0) return;
  if (thread->next_raised == 0 && (state->calls > 0 || state->next_stray == 0)) return;
  PyObject *type, *value, *trace; /* of the call that ends, which may have failed */
  PyErr_Fetch(&type, &value, &trace);
  thread->next_raised = 0;
  for (unsigned i = 0; i < HEDDLE_PY_KEPT; i++) forget(&thread->raised[i]);
  if (state->calls == 0) {
    state->next_stray = 0;
    for (unsigned i = 0; i < HEDDLE_PY_STRAYS; i++) forget(&state->strays[i]);
  }
  PyErr_Restore(type, value, trace);
}

/* "ValueError: the words"; of one of Heddle's errors the words alone, and its status. */
static heddle_status describe(PyObject *exception, heddle_error *err) {
  PyObject *code = PyObject_GetAttrString(exception, "code"), *name = NULL, *said = NULL, *all = NULL;
  PyObject *ours = code != NULL ? PyObject_GetAttrString(exception, "api_code") : NULL;
  long status = ours != NULL && PyLong_Check(code) ? PyLong_AsLong(code) : HEDDLE_EFAILED;
  bool is_ours = ours != NULL && status > HEDDLE_OK && status < HEDDLE_STATUS_COUNT;
  PyErr_Clear();
  if (is_ours) err->api_code = PyLong_Check(ours) ? (int32_t)PyLong_AsLong(ours) : 0;
  PyErr_Clear();
  name = PyType_GetName(Py_TYPE(exception));
  said = PyObject_Str(exception);
  if (said == NULL) PyErr_Clear();
  if (said != NULL && is_ours) all = Py_NewRef(said);
  else if (name != NULL && said != NULL && PyUnicode_GetLength(said) > 0)
    all = PyUnicode_FromFormat("%U: %U", name, said);
  else if (name != NULL) all = Py_NewRef(name);
  PyObject *bytes = all != NULL ? PyUnicode_AsEncodedString(all, "utf-8", "replace") : NULL;
  const char *words = bytes != NULL ? PyBytes_AsString(bytes) : "an exception of Python's";
  size_t n = strlen(words);
  if (n > sizeof err->text - 1) n = sizeof err->text - 1;
  for (size_t i = 0; i < n; i++) err->text[i] = words[i] == '\n' || words[i] == '\r' ? ' ' : words[i];
  err->text[n] = '\0';
  PyErr_Clear();
  Py_XDECREF(code);
  Py_XDECREF(ours);
  Py_XDECREF(name);
  Py_XDECREF(said);
  Py_XDECREF(all);
  Py_XDECREF(bytes);
  return err->status = is_ours ? (heddle_status)status : HEDDLE_EFAILED;
}

heddle_status heddle_py_raised_keep(heddle_py_state *state, heddle_error *err) {
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);
  PyErr_NormalizeException(&type, &value, &trace);
  if (value == NULL) PyErr_Clear(); /* no memory for it */
  if (value != NULL && trace != NULL) PyException_SetTraceback(value, trace);
  err->status = HEDDLE_EFAILED;
  heddle_status s = value != NULL ? describe(value, err) : HEDDLE_EFAILED;
  heddle_py_thread *thread = heddle_py_thread_get();
  PyErr_Clear();
  heddle_py_raised *place = NULL;
  if (thread != NULL && thread->depth > 0) place = &thread->raised[thread->next_raised++ % HEDDLE_PY_KEPT];
  else if (state->calls > 0) place = &state->strays[state->next_stray++ % HEDDLE_PY_STRAYS];
  if (place != NULL && value != NULL) {
    PyObject *old = place->exception;
    place->exception = Py_NewRef(value);
    place->origin = heddle_error_mark(err);
    Py_XDECREF(old);
  }
  Py_XDECREF(type);
  Py_XDECREF(value);
  Py_XDECREF(trace);
  return s;
}

static bool take(heddle_py_raised *raised, unsigned n, uint64_t origin) {
  unsigned i = 0;
  while (i < n && (raised[i].exception == NULL || raised[i].origin != origin)) i++;
  if (i == n) return false;
  PyObject *exception = raised[i].exception;
  raised[i].exception = NULL;
  PyErr_Restore(Py_NewRef((PyObject *)Py_TYPE(exception)), exception, PyException_GetTraceback(exception));
  return true;
}

PyObject *heddle_py_raise(heddle_py_state *state, heddle_status status, const heddle_error *err, const char *file) {
  const uint64_t origin = heddle_error_origin(err);
  heddle_py_thread *thread = heddle_py_thread_get();
  PyErr_Clear();
  if (origin != 0 && thread != NULL && take(thread->raised, HEDDLE_PY_KEPT, origin)) return NULL;
  if (origin != 0 && take(state->strays, HEDDLE_PY_STRAYS, origin)) return NULL;
  return state->core->fail(status, err, file);
}
