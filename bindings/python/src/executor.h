/* bindings/python/src/executor.h: the type Executor, as its two files share it. */
#ifndef HEDDLE_PYTHON_EXECUTOR_H
#define HEDDLE_PYTHON_EXECUTOR_H

#include "model.h"

typedef struct heddle_py_executor {
  PyObject_HEAD struct heddle_py_executor *next, *before; /* all there are; the GIL guards the list */
  heddle_executor *ex;
  heddle_py_model *model; /* a reference; for its file, and so that its context stays */
  bool is_busy;           /* a thread is in a call that is for one at a time */
} heddle_py_executor;

static inline heddle_py_executor *heddle_py_executor_of(PyObject *self) {
  return (heddle_py_executor *)self;
}

/* ---- executor.c */

/* Begins a call that is for one thread at a time: 0, or -1 with an exception. leave ends it and gives result. */
int heddle_py_executor_enter(heddle_py_executor *e);
PyObject *heddle_py_executor_leave(heddle_py_executor *e, PyObject *result);

/* Sets the exception of a status, with the model's file; gives NULL. done gives None for HEDDLE_OK. */
PyObject *heddle_py_executor_fail(const heddle_py_executor *e, heddle_status s, const heddle_error *err);
PyObject *heddle_py_profile_rows(const heddle_profile_entry *entries, size_t n); /* a list of dicts */
PyObject *heddle_py_executor_done(heddle_py_executor *e, heddle_status s, const heddle_error *err);

/* ---- executor_values.c: methods */

PyObject *heddle_py_executor_input_info(PyObject *self, PyObject *none);
PyObject *heddle_py_executor_output_info(PyObject *self, PyObject *none);
PyObject *heddle_py_executor_set_input(PyObject *self, PyObject *args, PyObject *kwargs);
PyObject *heddle_py_executor_bind_input(PyObject *self, PyObject *args, PyObject *kwargs);
PyObject *heddle_py_executor_get_input(PyObject *self, PyObject *key);
PyObject *heddle_py_executor_bind_output(PyObject *self, PyObject *args, PyObject *kwargs);
PyObject *heddle_py_executor_get_output(PyObject *self, PyObject *args, PyObject *kwargs);
PyObject *heddle_py_executor_view_output(PyObject *self, PyObject *args, PyObject *kwargs);
PyObject *heddle_py_executor_load_params(PyObject *self, PyObject *blob);
PyObject *heddle_py_executor_share_params(PyObject *self, PyObject *args);

/* ---- executor_state.c: methods */

PyObject *heddle_py_executor_state_info(PyObject *self, PyObject *none);
PyObject *heddle_py_executor_reset_state(PyObject *self, PyObject *args, PyObject *kwargs);
PyObject *heddle_py_executor_read_state(PyObject *self, PyObject *key);
PyObject *heddle_py_executor_write_state(PyObject *self, PyObject *args, PyObject *kwargs);
PyObject *heddle_py_executor_truncate_state(PyObject *self, PyObject *args, PyObject *kwargs);
PyObject *heddle_py_executor_save_state(PyObject *self, PyObject *path);
PyObject *heddle_py_executor_load_state(PyObject *self, PyObject *path);
PyObject *heddle_py_executor_fork_state(PyObject *self, PyObject *to);

/* ---- executor_objects.c: methods */

PyObject *heddle_py_executor_text_codes(PyObject *self, PyObject *items);
PyObject *heddle_py_executor_texts(PyObject *self, PyObject *items);
PyObject *heddle_py_executor_sequence(PyObject *self, PyObject *items);
PyObject *heddle_py_executor_sequence_items(PyObject *self, PyObject *number);

#endif
