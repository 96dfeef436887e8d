// tvm/runtime/module.h: modules: libraries, executors, models, for programs written for TVM's C++ runtime. Written for
// Heddle; the names are TVM's. A program cannot derive modules of its own from ModuleNode.
#ifndef TVM_RUNTIME_MODULE_H_
#define TVM_RUNTIME_MODULE_H_

#include <tvm/runtime/detail/module_ref.h>
#include <tvm/runtime/packed_func.h>

#endif
