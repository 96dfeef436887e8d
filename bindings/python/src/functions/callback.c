/* bindings/python/src/functions/callback.c: Python callables as functions of Heddle's, called from threads of any
 * kind; and the end of the interpreter, after which such calls fail and nothing touches Python any more. */
#include "functions.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* A thread that waits for the GIL when Python ends is lost with all that its stack holds. So it says first that it is
 * on its way in, and the end waits for those; for those that are in, which may stay for long, only a moment. */
static atomic_bool closed;
static atomic_uint entering, inside;

static bool enter(PyGILState_STATE *gil) {
  atomic_fetch_add(&entering, 1);
  bool is_open = !atomic_load(&closed) && Py_IsInitialized();
  if (is_open) *gil = PyGILState_Ensure();
  if (is_open) atomic_fetch_add(&inside, 1);
  atomic_fetch_sub(&entering, 1);
  return is_open;
}

static void leave(PyGILState_STATE gil) {
  PyGILState_Release(gil);
  atomic_fetch_sub(&inside, 1);
}

enum { LIVE, RELEASED, DROPPED };

typedef struct callback {
  heddle_py_state *state;
  PyObject *module; /* keeps state */
  PyObject *callable;
  struct callback **link, *next; /* in the list of all */
  atomic_int fate;               /* when Python ends: the last reference went, or the callable; the second one frees */
} callback;

static callback *all; /* those whose callables are held; guarded by the GIL */

static void hold(callback *c, heddle_py_state *state, PyObject *callable) {
  c->state = state;
  c->module = Py_NewRef(state->module);
  c->callable = Py_NewRef(callable);
  c->link = &all;
  c->next = all;
  if (all != NULL) all->link = &c->next;
  all = c;
}

static void let_go(callback *c) {
  PyObject *callable = c->callable, *module = c->module;
  *c->link = c->next;
  if (c->next != NULL) c->next->link = c->link;
  c->callable = c->module = NULL;
  Py_DECREF(callable); /* may run code that comes here */
  Py_DECREF(module);
}

/* Nothing is called any more, so the callables go too: they may hold what has to be ended. */
void heddle_py_close(void) {
  enum { WAIT_MS = 2000, MOMENT_MS = 300 };
  const struct timespec pause = {0, 1000000};
  atomic_store(&closed, true);
  Py_BEGIN_ALLOW_THREADS;
  for (int i = 0; i < WAIT_MS && (atomic_load(&entering) > 0 || (i < MOMENT_MS && atomic_load(&inside) > 0)); i++)
    nanosleep(&pause, NULL);
  Py_END_ALLOW_THREADS;
  while (all != NULL) {
    callback *c = all;
    let_go(c);
    if (atomic_exchange(&c->fate, DROPPED) == RELEASED) free(c);
  }
}

static PyObject *call_python(const callback *c, const heddle_value *args, uint32_t n_args) {
  PyObject *tuple = PyTuple_New((Py_ssize_t)n_args);
  for (uint32_t i = 0; i < n_args && tuple != NULL; i++) {
    PyObject *item = heddle_py_from_value(c->state, &args[i], false);
    if (item != NULL) PyTuple_SetItem(tuple, (Py_ssize_t)i, item);
    else Py_CLEAR(tuple);
  }
  PyObject *callable = Py_NewRef(c->callable); /* the end may come meanwhile */
  PyObject *result = tuple != NULL ? PyObject_Call(callable, tuple, NULL) : NULL;
  Py_DECREF(callable);
  Py_XDECREF(tuple);
  return result;
}

static heddle_status call(void *self, const heddle_value *args, uint32_t n_args, heddle_value *result,
                          heddle_error *err) {
  const callback *c = self;
  PyGILState_STATE gil;
  if (!enter(&gil)) {
    err->status = HEDDLE_ECANCELED;
    snprintf(err->text, sizeof err->text, "a Python function is called while Python ends, or after");
    return HEDDLE_ECANCELED;
  }
  heddle_status s = HEDDLE_OK;
  PyObject *given = call_python(c, args, n_args);
  if (given == NULL || heddle_py_to_result(c->state, given, result) != 0) s = heddle_py_raised_keep(c->state, err);
  Py_XDECREF(given);
  leave(gil);
  return s;
}

static void release(void *self) {
  callback *c = self;
  PyGILState_STATE gil;
  if (!enter(&gil)) {
    if (atomic_exchange(&c->fate, RELEASED) == DROPPED) free(c);
    return;
  }
  PyObject *type, *value, *trace; /* pending in the caller that releases the function */
  PyErr_Fetch(&type, &value, &trace);
  let_go(c);
  PyErr_Restore(type, value, trace);
  leave(gil);
  free(c);
}

heddle_function *heddle_py_callback(heddle_py_state *state, PyObject *callable) {
  heddle_function *made = NULL;
  heddle_error err = {0};
  if (!PyCallable_Check(callable)) {
    PyErr_Format(PyExc_TypeError, "expected a callable, and it is a value of type '%S'", (PyObject *)Py_TYPE(callable));
    return NULL;
  }
  callback *c = calloc(1, sizeof *c);
  if (c == NULL) {
    PyErr_NoMemory();
    return NULL;
  }
  heddle_status s = heddle_function_create(call, c, release, &made, &err);
  if (s == HEDDLE_OK) {
    hold(c, state, callable);
    return made;
  }
  state->core->fail(s, &err, NULL);
  free(c);
  return NULL;
}
