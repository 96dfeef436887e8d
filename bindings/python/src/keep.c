/* bindings/python/src/keep.c: references on Python objects that tensors hold, which any thread may let go of.
 * A thread without the GIL never asks for it: it leaves the reference in a list, and the main thread is asked to empty it
 * (Py_AddPendingCall). So nothing blocks, and nothing happens once the interpreter began to end. */
#include "module.h"

#include <pthread.h>
#include <stdlib.h>

typedef struct token {
  PyObject *object;
  struct token *next;
} token;

static struct {
  pthread_mutex_t lock;
  token *first; /* let go of, not yet dropped */
  int asked;    /* the main thread was asked to drop them */
  int ending;   /* the interpreter began to end */
} list = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* How deep this thread is between release_begin and release_end, which has the GIL, and what was let go of there. */
static _Thread_local int releasing;
static _Thread_local token *mine;

static void drop(token *t) {
  while (t != NULL) {
    token *next = t->next;
    Py_DECREF(t->object);
    free(t);
    t = next;
  }
}

void *heddle_py_hold(PyObject *object) {
  token *t = malloc(sizeof *t);
  if (t == NULL) return PyErr_NoMemory();
  t->object = Py_NewRef(object);
  t->next = NULL;
  return t;
}

void heddle_py_drop_let_go(void) {
  if (__atomic_load_n(&list.first, __ATOMIC_RELAXED) == NULL) return;
  pthread_mutex_lock(&list.lock);
  token *t = list.first;
  list.first = NULL;
  pthread_mutex_unlock(&list.lock);
  drop(t);
}

static int drop_pending(void *none) {
  (void)none;
  pthread_mutex_lock(&list.lock);
  list.asked = 0;
  pthread_mutex_unlock(&list.lock);
  heddle_py_drop_let_go();
  return 0;
}

void heddle_py_let_go(void *user) {
  token *t = user;
  if (releasing > 0) {
    t->next = mine;
    mine = t;
    return;
  }
  pthread_mutex_lock(&list.lock);
  t->next = list.first;
  __atomic_store_n(&list.first, t, __ATOMIC_RELAXED);
  /* Under the lock: the interpreter cannot begin to end between the question and the call. A full queue (-1) is asked
   * again by the next one, or emptied by a call of drop_let_go. */
  if (!list.ending && !list.asked) list.asked = Py_AddPendingCall(drop_pending, NULL) == 0;
  pthread_mutex_unlock(&list.lock);
}

void heddle_py_release_begin(void) {
  releasing++;
}

void heddle_py_release_end(void) {
  if (--releasing > 0 || mine == NULL) return;
  token *dropped = mine;
  mine = NULL;
  drop(dropped);
}

void heddle_py_tensor_release(heddle_tensor *t) {
  if (t == NULL) return;
  heddle_py_release_begin();
  if (heddle_tensor_device(t) == NULL) {
    heddle_tensor_release(t);
  } else {
    Py_BEGIN_ALLOW_THREADS; /* a driver may wait for work before it frees */
    heddle_tensor_release(t);
    Py_END_ALLOW_THREADS;
  }
  heddle_py_release_end();
}

int heddle_py_ending(void) {
  pthread_mutex_lock(&list.lock);
  int ending = list.ending;
  pthread_mutex_unlock(&list.lock);
  return ending;
}

static PyObject *end(PyObject *self, PyObject *none) {
  (void)self, (void)none;
  pthread_mutex_lock(&list.lock);
  list.ending = 1;
  pthread_mutex_unlock(&list.lock);
  Py_RETURN_NONE;
}

int heddle_py_keep_init(PyObject *module) {
  static PyMethodDef method = {"_end", end, METH_NOARGS, NULL};
  (void)module;
  PyObject *atexit = PyImport_ImportModule("atexit"), *function = PyCFunction_New(&method, NULL), *result = NULL;
  if (atexit != NULL && function != NULL) result = PyObject_CallMethod(atexit, "register", "O", function);
  Py_XDECREF(atexit);
  Py_XDECREF(function);
  Py_XDECREF(result);
  return result != NULL ? 0 : -1;
}
