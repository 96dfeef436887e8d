// tvm/runtime/tvm_runtime_pack.h: all headers for TVM's C++ programs. Projects that compile TVM's runtime from its sources,
// in one file of their own that includes them, include this one instead, and link with libheddle_tvm.
#ifndef TVM_RUNTIME_TVM_RUNTIME_PACK_H_
#define TVM_RUNTIME_TVM_RUNTIME_PACK_H_

#include <dmlc/logging.h>
#include <tvm/runtime/c_backend_api.h>
#include <tvm/runtime/c_runtime_api.h>
#include <tvm/runtime/container.h>
#include <tvm/runtime/data_type.h>
#include <tvm/runtime/device_api.h>
#include <tvm/runtime/logging.h>
#include <tvm/runtime/memory.h>
#include <tvm/runtime/module.h>
#include <tvm/runtime/ndarray.h>
#include <tvm/runtime/object.h>
#include <tvm/runtime/packed_func.h>
#include <tvm/runtime/registry.h>

#endif
