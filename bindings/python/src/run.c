/* bindings/python/src/run.c: runs of an executor with the GIL given up. Now and then a run is left to go on by itself
 * for a moment, so that Ctrl-C and other signals reach Python's handlers while it lasts. */
#include "model.h"

#include <math.h>
#include <string.h>
#include <time.h>

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

static uint64_t slice(uint64_t timeout_ns, uint64_t began_ns) {
  if (timeout_ns == HEDDLE_FOREVER) return SLICE_NS;
  uint64_t gone = now_ns() - began_ns, left = gone < timeout_ns ? timeout_ns - gone : 0;
  return left < SLICE_NS ? left : SLICE_NS;
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
  for (bool goes_on = true; goes_on;) {
    uint64_t part = slice(timeout_ns, began_ns);
    PyThreadState *thread = PyEval_SaveThread();
    s = start ? heddle_executor_run(ex, part, &err) : heddle_executor_wait(ex, part, &err);
    *is_over = s != HEDDLE_ETIMEOUT || heddle_executor_poll(ex) != HEDDLE_EBUSY;
    PyEval_RestoreThread(thread);
    if (*is_over) break;
    start = false;
    if (PyErr_CheckSignals() < 0) {
      *is_over = heddle_py_cancel(ex);
      return HEDDLE_ECANCELED;
    }
    goes_on = timeout_ns == HEDDLE_FOREVER || now_ns() - began_ns < timeout_ns;
  }
  if (s != HEDDLE_OK) heddle_py_fail(s, &err, file);
  return s;
}
