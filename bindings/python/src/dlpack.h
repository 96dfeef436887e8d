/* bindings/python/src/dlpack.h: DLPack's structs, as version 1.0 of its specification lays them out (dlpack.h of
 * github.com/dmlc/dlpack), so that the binding builds without that header. */
#ifndef HEDDLE_PYTHON_DLPACK_H
#define HEDDLE_PYTHON_DLPACK_H

#include "heddle/tensor.h"

typedef struct heddle_py_dltensor {
  void *data;
  int32_t device_type;
  int32_t device_id;
  int32_t ndim;
  heddle_dtype dtype;
  int64_t *shape;
  int64_t *strides; /* NULL: row-major */
  uint64_t byte_offset;
} heddle_py_dltensor;

struct DLManagedTensor {
  heddle_py_dltensor tensor;
  void *manager;
  void (*deleter)(struct DLManagedTensor *self);
};

struct DLManagedTensorVersioned {
  uint32_t major;
  uint32_t minor;
  void *manager;
  void (*deleter)(struct DLManagedTensorVersioned *self);
  uint64_t flags;
  heddle_py_dltensor tensor;
};

_Static_assert(sizeof(heddle_py_dltensor) == 48 && sizeof(struct DLManagedTensor) == 64 &&
                   sizeof(struct DLManagedTensorVersioned) == 80,
               "DLPack's structs");

enum { HEDDLE_PY_DL_MAJOR = 1, HEDDLE_PY_DL_MINOR = 1, HEDDLE_PY_DL_READ_ONLY = 1, HEDDLE_PY_DL_COPIED = 2 };

#endif
