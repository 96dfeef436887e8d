/* bindings/python/src/functions/functions.h: what the files of heddle._functions share: the module's state, values both
 * ways, Python callables as functions, and exceptions that pass through compiled code.
 * The GIL is held in all of these. */
#ifndef HEDDLE_PYTHON_FUNCTIONS_H
#define HEDDLE_PYTHON_FUNCTIONS_H

#include "../core.h"

#include <stdbool.h>

#include "heddle/function.h"

/* An exception that left a callback and is on its way back through code that is not Python's. origin is the number of
 * the error (heddle_error_mark), by which the call that fails finds it. */
typedef struct heddle_py_raised {
  PyObject *exception; /* NULL: there is none */
  uint64_t origin;
} heddle_py_raised;

/* Exceptions that are kept, of one thread and of all that no call of Python's is on: code in between may handle one
 * failure and report another. */
enum { HEDDLE_PY_KEPT = 4, HEDDLE_PY_STRAYS = 64 };

typedef struct heddle_py_state {
  const heddle_py_table *core;
  PyObject *module; /* borrowed: the state lives in it */
  PyTypeObject *function_type, *module_type;
  PyObject *function_class, *module_class, *array_class; /* of results: the types, or what set_classes got */
  PyObject *numpy_ndarray, *numpy_generic, *numpy_bool, *numpy_integer, *numpy_floating, *numpy_dtype;
  PyObject *c_void_p, *c_pointer, *c_cast;   /* of ctypes */
  PyObject *device_class;                    /* heddle.device.Device, when one was first needed */
  heddle_py_raised strays[HEDDLE_PY_STRAYS]; /* of threads that no call of Python's is on; a ring */
  unsigned next_stray;
  unsigned calls; /* of Python's that are on their way, in all threads */
} heddle_py_state;

/* Objects: one reference on what they name. state is the module's, which the object's type keeps alive. */
typedef struct heddle_py_function {
  PyObject_HEAD heddle_py_state *state;
  heddle_function *f;
  bool is_compiled; /* of a library, which wants compact arrays that are aligned to 64 bytes */
} heddle_py_function;

typedef struct heddle_py_module {
  PyObject_HEAD heddle_py_state *state;
  heddle_object *o;
} heddle_py_module;

/* A function of Python's three arguments as a method has it. */
#define HEDDLE_PY_METHOD(function) ((PyCFunction)(void (*)(void))(function))

/* The state behind a type of ours or a subclass of one; NULL with an exception. */
heddle_py_state *heddle_py_state_of(PyTypeObject *type);

/* An allocated object of a class, with its state; NULL with an exception. */
void *heddle_py_allocate(PyTypeObject *type, heddle_py_state *state);

/* function.c, object.c: make the types. 0, or -1. */
int heddle_py_add_function(heddle_py_state *state);
int heddle_py_add_module(heddle_py_state *state);

/* Objects of results; they take over the reference, also on failure. */
PyObject *heddle_py_function_new(heddle_py_state *state, heddle_function *f);
PyObject *heddle_py_module_new(heddle_py_state *state, heddle_object *o);
PyObject *heddle_py_array_new(heddle_py_state *state, heddle_tensor *t);

/* params.c: blobs of parameters: params_load(bytes) -> dict, params_save([(name, array)]) -> bytearray. */
PyObject *heddle_py_params_load(PyObject *module, PyObject *arg);
PyObject *heddle_py_params_save(PyObject *module, PyObject *arg);

/* pack.c: packed files. */
PyObject *heddle_py_pack(PyObject *module, PyObject *args);
PyObject *heddle_py_link(PyObject *module, PyObject *args);
PyObject *heddle_py_unpack(PyObject *module, PyObject *args);
PyObject *heddle_py_quantize(PyObject *module, PyObject *args); /* quantize.c */

/* sign.c: keys, signatures and encryption. */
PyObject *heddle_py_key_create(PyObject *module, PyObject *args);
PyObject *heddle_py_key_public(PyObject *module, PyObject *args);
PyObject *heddle_py_sign(PyObject *module, PyObject *args);
PyObject *heddle_py_signature(PyObject *module, PyObject *args);
PyObject *heddle_py_verify(PyObject *module, PyObject *args);
PyObject *heddle_py_decrypt(PyObject *module, PyObject *args);
PyObject *heddle_py_key_callback(PyObject *module, PyObject *function);

/* ---- values (value.c) */

/* What an argument needed to become a value. Zeroed before use. */
typedef struct heddle_py_owned {
  heddle_tensor *tensor;
  heddle_tensor *original; /* align.c: what tensor is a copy of, or NULL */
  bool is_output;          /* and is copied back to */
  heddle_function *function;
  Py_buffer bytes;
  bool has_bytes;
} heddle_py_owned;

/* A value of a Python object; what it points to lives as long as own and the object. position: for words ("argument
 * 2"), or -1: a result. 0, or -1 with an exception; own is then empty. */
int heddle_py_to_value(heddle_py_state *state, PyObject *object, int position, heddle_value *out, heddle_py_owned *own);
void heddle_py_drop(heddle_py_owned *own);

/* align.c: an argument that is a numpy array which compiled code would refuse, for its strides or its address, becomes
 * an aligned copy; finish copies it back to where it may be written. 0, or -1 with an exception. */
int heddle_py_align(heddle_py_state *state, PyObject *object, heddle_value *v, heddle_py_owned *own);
int heddle_py_align_finish(heddle_py_state *state, heddle_py_owned *own);

/* A value as the result of a callback: what it carries is the caller's, and strings and bytes live until this thread's
 * next one. 0, or -1 with an exception. */
int heddle_py_to_result(heddle_py_state *state, PyObject *object, heddle_value *out);

/* A Python object of a value. taken: the references that it carries are taken over, also on failure; else they stay. */
PyObject *heddle_py_from_value(heddle_py_state *state, const heddle_value *v, bool taken);

/* ---- Python callables as functions (callback.c) */

/* A function that calls a Python callable; NULL with an exception. From threads of any kind; when the interpreter ends,
 * calls are errors. */
heddle_function *heddle_py_callback(heddle_py_state *state, PyObject *callable);

/* Called when Python ends (atexit): from here on nothing enters the interpreter, and callables are let go. */
void heddle_py_close(void);

/* ---- exceptions on their way (raised.c) */

/* A thread's own: what it has to keep between a callback's return and the use of its result. NULL with MemoryError. */
typedef struct heddle_py_thread {
  unsigned depth;                          /* calls of Python's that this thread is in */
  heddle_py_raised raised[HEDDLE_PY_KEPT]; /* a ring */
  unsigned next_raised;                    /* 0: there is none */
  char *text;                              /* of the last result of a callback */
  size_t room;
} heddle_py_thread;

heddle_py_thread *heddle_py_thread_get(void);

/* Around a call: leave drops what was not asked for when the thread's outermost call ends. */
void heddle_py_enter_call(heddle_py_state *state, heddle_py_thread *thread);
void heddle_py_leave_call(heddle_py_state *state, heddle_py_thread *thread);

/* Takes the exception that is set, as the error of a callback, which gets a number. */
heddle_status heddle_py_raised_keep(heddle_py_state *state, heddle_error *err);

/* Sets the exception of a failed call: the one that a callback raised where the error has its number, else one of
 * Heddle's. Gives NULL. */
PyObject *heddle_py_raise(heddle_py_state *state, heddle_status status, const heddle_error *err, const char *file);

#endif
