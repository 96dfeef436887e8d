/* bindings/python/src/module.h: what the files of the module _core share among themselves: the module's objects, and a
 * function or two of each file. There is one _core in a process, as there is one numpy: a second import is refused. */
#ifndef HEDDLE_PYTHON_MODULE_H
#define HEDDLE_PYTHON_MODULE_H

#include "core.h"

/* A Context. ctx is never NULL once __init__ is done. */
typedef struct heddle_py_context {
  PyObject_HEAD heddle_context *ctx;
  struct heddle_py_log *log; /* NULL without a function of the caller's */
} heddle_py_context;

/* The module's objects; written while it is imported, and by set_device_class and set_tensor_class. */
typedef struct heddle_py_objects {
  PyObject *module;
  PyTypeObject *tensor_type; /* Tensor */
  PyTypeObject *result_type; /* what tensor_new makes: Tensor, or the subclass that was set */
  PyTypeObject *context_type;
  PyTypeObject *executor_type;
  PyObject *device_class; /* NULL until set */
  PyObject *errors[HEDDLE_STATUS_COUNT];
} heddle_py_objects;

extern heddle_py_objects heddle_py;

/* Each file's part of the import: adds its types and functions to the module. 0, or -1 with an exception. */
int heddle_py_keep_init(PyObject *module);
int heddle_py_error_init(PyObject *module);
int heddle_py_numpy_init(PyObject *module);
int heddle_py_dtype_init(PyObject *module);
int heddle_py_context_init(PyObject *module);
int heddle_py_tensor_init(PyObject *module);
int heddle_py_dlpack_init(PyObject *module);
int heddle_py_run_init(PyObject *module);
int heddle_py_model_init(PyObject *module);
int heddle_py_executor_init(PyObject *module);
int heddle_py_batcher_init(PyObject *module);
int heddle_py_generator_init(PyObject *module);
int heddle_py_generation_batch_init(PyObject *module);
int heddle_py_exchange_init(PyObject *module);

/* ---- module.c */

/* A type of a spec, added to the module under its last name. A new reference, or NULL. */
PyTypeObject *heddle_py_add_type(PyObject *module, PyType_Spec *spec);

/* ---- error.c: see heddle_py_table.fail */
PyObject *heddle_py_fail(heddle_status status, const heddle_error *err, const char *file);

/* The same with words of our own. Gives NULL. */
PyObject *heddle_py_fail_words(heddle_status status, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* ---- keep.c: Python objects whose memory a tensor is, which any thread may let go of */

/* A token that holds a reference on object, for heddle_tensor_wrap's user, with heddle_py_let_go as the function; NULL
 * with an exception. The GIL is held here, and need not be in let_go: that drops the reference at once between
 * heddle_py_release_begin and _end, else as soon as the main thread runs Python code; after the interpreter began to end, never. */
void *heddle_py_hold(PyObject *object);
void heddle_py_let_go(void *token);

/* Round a call that may let go of objects: they are dropped at once, by release_end. The GIL is held at both. */
void heddle_py_release_begin(void);
void heddle_py_release_end(void);

/* heddle_tensor_release between the two; memory of a device is freed without the GIL meanwhile. Takes NULL. */
void heddle_py_tensor_release(heddle_tensor *t);

/* Drops what other threads let go of; cheap. The GIL is held. Worth a call after a run that was given arrays. */
void heddle_py_drop_let_go(void);

/* 1 once the interpreter began to end: no thread may ask for the GIL then. */
int heddle_py_ending(void);

/* ---- context.c */

/* The context of a Context, or of the process for NULL and None; borrowed from the object, or from the process. NULL with
 * an exception. */
heddle_context *heddle_py_context_of(PyObject *object);

/* A device by name, or by (DLPack type, number); *out NULL for host memory, which is None, "cpu" as a type of (1, 0) too.
 * 0, or -1 with an exception. May load plugins, without the GIL. */
int heddle_py_device_of(heddle_context *ctx, PyObject *object, heddle_device **out);

/* ---- dtype.c */

PyObject *heddle_py_dtype_name(heddle_dtype dtype);
int heddle_py_dtype_of(PyObject *object, heddle_dtype *out);

/* The dtype of a name, "float32"; 0, or -1 without an exception. */
int heddle_py_dtype_parse(const char *name, heddle_dtype *out);

/* ---- tensor.c */

PyObject *heddle_py_tensor_new(heddle_tensor *t);
int heddle_py_tensor_of(PyObject *object, const heddle_dtype *dtype, heddle_tensor **out);

/* 1 for an object of type Tensor or a subclass. */
int heddle_py_is_tensor(PyObject *object);

/* heddle_tensor_copy, without the GIL where it moves more than a few KiB or a device is in it. 0, or -1. */
int heddle_py_tensor_copy(heddle_tensor *dst, const heddle_tensor *src);

/* A new tensor on dev (NULL: host) with the elements of t. 0, or -1. */
int heddle_py_tensor_clone(heddle_device *dev, heddle_tensor *t, heddle_tensor **out);

/* (type, number) as DLPack counts them; host memory: 1, 0. */
void heddle_py_tensor_device(heddle_tensor *t, int *type, int *number);

/* ---- numpy.c: an array is a PyObject here, so that only files that need it include numpy's headers */

/* An array that shares the memory of a host tensor and keeps owner, which keeps that; plain: user-defined dtypes
 * (bfloat16) as unsigned integers of their width, which a buffer can have. NULL with an exception. */
PyObject *heddle_py_array_view(heddle_tensor *t, PyObject *owner, int plain);

/* An array with memory of its own and the elements of t, wherever that is. This and heddle_py_array_like are all that
 * makes arrays for results: dtype, shape and size are the tensor's, whatever a file declares. */
PyObject *heddle_py_array_copy(heddle_tensor *t);

/* An array of the dtype and shape of t, whose content is of no meaning. */
PyObject *heddle_py_array_like(heddle_tensor *t);

/* The memory of such an array as a tensor like t, which the array has to outlive. 0, or -1 with an exception. */
int heddle_py_array_wrap(PyObject *array, heddle_tensor *t, heddle_tensor **out);

/* 1 for a numpy array. */
int heddle_py_is_array(PyObject *object);

/* A host tensor of an array, a buffer, a number or a nested sequence. unsafe: converts to dtype whatever is lost, as
 * assignment does. 0, or -1 with an exception. */
int heddle_py_tensor_of_array(PyObject *object, const heddle_dtype *dtype, int unsafe, heddle_tensor **out);

/* A TypeError with what an array can be made of; gives -1. */
int heddle_py_no_array(PyObject *object);

/* heddle_dtype of a numpy dtype object: 0; 1 where the object is none; -1 with an exception where Heddle has none such. */
int heddle_py_dtype_of_numpy(PyObject *descr, heddle_dtype *out);

/* ---- model.c */

/* 1 for a dict and other objects of collections.abc.Mapping, 0 for others; -1 with an exception. */
int heddle_py_is_mapping(PyObject *object);

/* The items of a mapping, a list of pairs; NULL with an exception, which is a TypeError where it is none. */
PyObject *heddle_py_items(PyObject *mapping);

/* ---- dlpack.c */

/* 1 for memory that may only be read. */
int heddle_py_tensor_read_only(heddle_tensor *t);

/* A tensor of memory that may only be read; as heddle_tensor_wrap with heddle_py_let_go. */
heddle_status heddle_py_wrap_read_only(void *data, heddle_dtype dtype, const int64_t *shape, uint32_t ndim,
                                       const int64_t *strides, void *token, heddle_tensor **out, heddle_error *err);

/* A tensor of an object with __dlpack__, or a capsule. 0, or -1 with an exception. */
int heddle_py_tensor_of_dlpack(PyObject *object, heddle_tensor **out);

/* Methods of Tensor that are in dlpack.c. */
PyObject *heddle_py_tensor_dlpack(PyObject *self, PyObject *args, PyObject *named);
PyObject *heddle_py_tensor_dlpack_device(PyObject *self, PyObject *none);

#endif
