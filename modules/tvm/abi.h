/* modules/tvm/abi.h: what crosses between us and code that TVM compiled, in both generations of its calling convention:
 * packed functions (v0.3 to v0.20) and tvm-ffi (v0.21 to v0.27). Layouts as those versions have them on 64-bit
 * machines; nothing here is ours to change. */
#ifndef HEDDLE_MODULES_TVM_ABI_H
#define HEDDLE_MODULES_TVM_ABI_H

#include "heddle/plugin.h"

/* DLTensor of DLPack, 48 bytes. */
typedef struct heddle__dltensor {
  void *data;
  int32_t device_type;
  int32_t device_id;
  int32_t ndim;
  heddle_dtype dtype;
  const int64_t *shape;
  const int64_t *strides; /* NULL: row-major */
  uint64_t byte_offset;
} heddle__dltensor;

_Static_assert(sizeof(heddle__dltensor) == 48, "DLTensor");

/* TVMValue: 8 bytes, with a code beside it. */
typedef union heddle__word {
  int64_t i;
  double f;
  void *p;
  const char *s;
} heddle__word;

enum {
  PACKED_INT = 0,
  PACKED_FLOAT = 2,
  PACKED_HANDLE = 3,
  PACKED_NULL = 4,
  PACKED_DTYPE = 5,  /* in the word itself */
  PACKED_DEVICE = 6, /* in the word itself: type and number, 32 bits each */
  PACKED_TENSOR = 7,
  PACKED_OBJECT = 8,
  PACKED_MODULE = 9,
  PACKED_FUNCTION = 10,
  PACKED_STRING = 11,
  PACKED_BYTES = 12,
  PACKED_NDARRAY = 13,
  PACKED_BOOL = 15 /* v0.19 and v0.20 */
};

/* Up to v0.6 functions have the first three arguments only; on the machines that we run on they may be called with
 * six. 0: done; else it failed, and has left words. */
typedef int (*heddle__packed_fn)(heddle__word *args, int32_t *codes, int32_t n, heddle__word *ret, int32_t *ret_code,
                                 void *resource);

/* TVMFFIAny: 16 bytes. */
typedef struct heddle__any {
  int32_t type;
  uint32_t zero; /* of a small string its length */
  heddle__word v;
} heddle__any;

enum {
  ANY_NONE = 0,
  ANY_INT = 1,
  ANY_BOOL = 2,
  ANY_FLOAT = 3,
  ANY_POINTER = 4,
  ANY_DTYPE = 5,
  ANY_DEVICE = 6,
  ANY_TENSOR = 7, /* DLTensor*, borrowed */
  ANY_STRING = 8, /* const char*, borrowed */
  ANY_BYTES = 9,
  ANY_SMALL_STRING = 11,
  ANY_OBJECT = 64, /* this and above: counted objects */
  ANY_STRING_OBJECT = 65
};

typedef int32_t (*heddle__ffi_fn)(void *self, const heddle__any *args, int32_t n, heddle__any *result);

/* TVMByteArray, TVMFFIByteArray; also the body of a string object. */
typedef struct heddle__bytes {
  const char *data;
  size_t size;
} heddle__bytes;

/* Objects start so: v0.22 and later 24 bytes, v0.21 16. */
typedef struct heddle__object {
  uint64_t counts; /* strong in the low half, weak in the high one; changed with atomics */
  int32_t type;
  uint32_t pad;
  void (*deleter)(void *self, int flags);
} heddle__object;

typedef struct heddle__object21 {
  int32_t type;
  int32_t count;
  void (*deleter)(void *self);
} heddle__object21;

/* What a parallel task gets; it reads num_task, and hands the whole back to the barrier. */
typedef struct heddle__group {
  void *sync;
  int32_t num_task;
} heddle__group;

typedef int (*heddle__lambda)(int task, heddle__group *group, void *data);

#endif
