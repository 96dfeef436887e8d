/* bindings/python/src/numpy_api.h: numpy's C API for the files of _core that use it, as of numpy 1.25 and later.
 * numpy.c imports its table, which is the same for all of them. */
#ifndef HEDDLE_PYTHON_NUMPY_API_H
#define HEDDLE_PYTHON_NUMPY_API_H

#include "module.h"

#define NPY_NO_DEPRECATED_API NPY_1_25_API_VERSION
#define NPY_TARGET_VERSION NPY_1_25_API_VERSION
#define PY_ARRAY_UNIQUE_SYMBOL heddle_py_numpy_table
#ifndef HEDDLE_PYTHON_NUMPY_IMPORT
#define NO_IMPORT_ARRAY
#endif
#include <numpy/arrayobject.h>

#endif
