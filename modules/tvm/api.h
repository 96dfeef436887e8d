/* modules/tvm/api.h: what the files of TVM's C API (api_*.c) share. Handles that callers give are looked at before they
 * are used: NULL and handles of another kind are refused with a message. */
#ifndef HEDDLE_MODULES_TVM_API_H
#define HEDDLE_MODULES_TVM_API_H

#include <tvm/runtime/c_runtime_api.h>

#include "modules/tvm/object.h"

_Static_assert(sizeof(TVMValue) == sizeof(heddle__word) && sizeof(DLTensor) == sizeof(heddle__dltensor) &&
                   sizeof(TVMByteArray) == sizeof(heddle__bytes),
               "what crosses has one layout");

/* Says the words and gives -1. */
int heddle__api_refuse(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The thing behind a handle; NULL with words that name the caller. */
heddle_function *heddle__api_function(const char *caller, void *handle);
heddle_object *heddle__api_module(const char *caller, void *handle);

/* A device's memory as an array of bytes for TVM's type and number, on the host or on a device; NULL with words. */
heddle_status heddle__api_tensor(int32_t type, int32_t number, heddle_dtype dtype, const int64_t *shape, uint32_t ndim,
                                 heddle_tensor **out);

/* Copies all bytes of one tensor into another of as many bytes; shapes and dtypes may differ where both are compact. */
heddle_status heddle__api_copy(heddle_tensor *dst, const heddle_tensor *src, heddle_error *err);

/* The name that TVM has for a dtype, in the thread's text: "float32", "int8x4", "bool", "handle". NULL with words. */
const char *heddle__api_dtype_name(heddle_dtype dtype);

#endif
