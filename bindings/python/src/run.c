/* bindings/python/src/run.c: runs of an executor with the GIL given up. Now and then a run is left to go on by itself
 * for a moment, so that Ctrl-C and other signals reach Python's handlers while it lasts. When the interpreter ends, runs
 * of daemon threads are cancelled and waited for, since drivers are taken down next. */
#include "model.h"

#include <math.h>
#include <time.h>
#include <unistd.h>

#define SLICE_NS UINT64_C(100000000)    /* how long a signal may have to wait */
#define GIVE_UP_NS UINT64_C(2000000000) /* how long a cancelled run may take to end */

int heddle_py_timeout(PyObject *seconds, uint64_t *out) {
  *out = HEDDLE_FOREVER;
  if (seconds == NULL || seconds == Py_None) return 0;
  double value = PyFloat_AsDouble(seconds);
  if (value == -1.0 && PyErr_Occurred()) return -1;
  if (isnan(value) || value < 0) {
    heddle_py_fail_words(HEDDLE_EINVAL, "a timeout is a number of seconds, 0 or more, or None");
    return -1;
  }
  if (value < 1e9) *out = (uint64_t)(value * 1e9);
  return 0;
}

static uint64_t now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static uint64_t slice(uint64_t timeout_ns, uint64_t began_ns, uint64_t most) {
  if (timeout_ns == HEDDLE_FOREVER) return most;
  uint64_t gone = now_ns() - began_ns, left = gone < timeout_ns ? timeout_ns - gone : 0;
  return left < most ? left : most;
}

/* A run that a thread waits for, on its stack. */
typedef struct active {
  heddle_executor *ex;
  struct active *next, *before;
} active;

/* The GIL guards it. */
static struct {
  active *first;
  unsigned long main_thread;
  bool is_ending;
} all;

static void enter(active *a) {
  a->next = all.first;
  a->before = NULL;
  if (all.first != NULL) all.first->before = a;
  all.first = a;
}

static void leave(active *a) {
  if (a->before != NULL) a->before->next = a->next;
  else all.first = a->next;
  if (a->next != NULL) a->next->before = a->before;
}

/* A daemon thread begins no run and gets no result once the interpreter has begun to end: it sleeps for good, since a
 * return would run its program on, while modules and drivers are taken down. */
static void stop_here(void) {
  if (!all.is_ending || PyThread_get_thread_ident() == all.main_thread) return;
  Py_BEGIN_ALLOW_THREADS;
  for (;;) pause();
  Py_END_ALLOW_THREADS;
}

static PyObject *end_runs(PyObject *self, PyObject *none) {
  (void)self, (void)none;
  all.is_ending = true;
  for (active *a = all.first; a != NULL; a = a->next) heddle_executor_cancel(a->ex, NULL);
  heddle_py_executors_cancel();
  uint64_t until_ns = now_ns() + GIVE_UP_NS;
  while (all.first != NULL && now_ns() < until_ns) {
    struct timespec moment = {0, 1000000};
    Py_BEGIN_ALLOW_THREADS;
    nanosleep(&moment, NULL);
    Py_END_ALLOW_THREADS;
  }
  Py_RETURN_NONE;
}

/* In a forked child: the threads that run are the parent's, and the one that is here is the main one. */
static void forget(void) {
  all.first = NULL;
  all.main_thread = PyThread_get_thread_ident();
  heddle_py_executors_forget();
}

int heddle_py_run_init(PyObject *module) {
  static PyMethodDef method = {"_end_runs", end_runs, METH_NOARGS, NULL};
  (void)module;
  PyObject *threading = PyImport_ImportModule("threading"), *main = NULL, *ident = NULL;
  if (pthread_atfork(NULL, NULL, forget) != 0) {
    PyErr_NoMemory();
    return -1;
  }
  if (threading != NULL) main = PyObject_CallMethod(threading, "main_thread", NULL);
  if (main != NULL) ident = PyObject_GetAttrString(main, "ident");
  if (ident != NULL) all.main_thread = PyLong_AsUnsignedLong(ident);
  PyObject *atexit = ident != NULL ? PyImport_ImportModule("atexit") : NULL;
  PyObject *function = atexit != NULL ? PyCFunction_New(&method, NULL) : NULL;
  PyObject *done = function != NULL ? PyObject_CallMethod(atexit, "register", "O", function) : NULL;
  Py_XDECREF(done);
  Py_XDECREF(function);
  Py_XDECREF(atexit);
  Py_XDECREF(ident);
  Py_XDECREF(main);
  Py_XDECREF(threading);
  return done != NULL ? 0 : -1;
}

/* How many runs have ended well. */
static uint64_t runs_of(heddle_executor *ex) {
  heddle_executor_stats t = {.struct_size = sizeof t.struct_size + sizeof t.runs};
  return heddle_executor_get_stats(ex, &t, NULL) == HEDDLE_OK ? t.runs : 0;
}

bool heddle_py_cancel(heddle_executor *ex) {
  heddle_status s;
  Py_BEGIN_ALLOW_THREADS;
  heddle_executor_cancel(ex, NULL);
  s = heddle_executor_wait(ex, GIVE_UP_NS, NULL);
  Py_END_ALLOW_THREADS;
  return s != HEDDLE_ETIMEOUT;
}

heddle_status heddle_py_run(heddle_executor *ex, bool start, uint64_t timeout_ns, const char *file, bool *is_over) {
  heddle_error err;
  uint64_t began_ns = timeout_ns != HEDDLE_FOREVER ? now_ns() : 0;
  heddle_status s;
  active here = {ex, NULL, NULL};
  uint64_t most = SLICE_NS;
  stop_here();
  uint64_t runs = start ? runs_of(ex) : 0;
  enter(&here);
  for (bool goes_on = true; goes_on;) {
    uint64_t part = slice(timeout_ns, began_ns, most), part_ns = now_ns();
    PyThreadState *thread = PyEval_SaveThread();
    s = start ? heddle_executor_run(ex, part, &err) : heddle_executor_wait(ex, part, &err);
    *is_over = s != HEDDLE_ETIMEOUT || heddle_executor_poll(ex) != HEDDLE_EBUSY;
    /* Where it ended after its time and before the question, its result is there; where none did, it never began. */
    const bool never_began = s == HEDDLE_ETIMEOUT && *is_over && start && runs_of(ex) == runs;
    if (s == HEDDLE_ETIMEOUT && *is_over && !never_began) s = heddle_executor_wait(ex, 0, &err);
    PyEval_RestoreThread(thread);
    /* A plan that the values of inputs decide may take longer than a slice: it is made again, with more time. */
    const bool plans = never_began && now_ns() - part_ns >= part;
    if (*is_over && !plans) break;
    start = plans;
    most *= plans ? 8 : 1;
    if (PyErr_CheckSignals() < 0) {
      *is_over = heddle_py_cancel(ex);
      leave(&here);
      return HEDDLE_ECANCELED;
    }
    goes_on = timeout_ns == HEDDLE_FOREVER || now_ns() - began_ns < timeout_ns;
  }
  leave(&here);
  stop_here();
  if (s != HEDDLE_OK) heddle_py_fail(s, &err, file);
  return s;
}
