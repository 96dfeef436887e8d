// examples/tvm-cpp/tvm_runtime_pack.cc: TVM's runtime as one file that a program compiles, as it is in many projects: with TVM
// it includes the runtime's sources. With -I PREFIX/include/tvm the same lines find files of Heddle's that declare the
// runtime, and the program takes the runtime from libheddle_tvm.
#define TVM_USE_LIBBACKTRACE 0
#define DMLC_USE_LOGGING_LIBRARY <tvm/runtime/logging.h>
#include <tvm/runtime/logging.h>

#include "src/runtime/c_runtime_api.cc"
#include "src/runtime/container.cc"
#include "src/runtime/cpu_device_api.cc"
#include "src/runtime/file_utils.cc"
#include "src/runtime/graph_executor/graph_executor.cc"
#include "src/runtime/graph_executor/graph_executor_factory.cc"
#include "src/runtime/library_module.cc"
#include "src/runtime/logging.cc"
#include "src/runtime/module.cc"
#include "src/runtime/ndarray.cc"
#include "src/runtime/object.cc"
#include "src/runtime/registry.cc"
#include "src/runtime/system_library.cc"
#include "src/runtime/thread_pool.cc"
#include "src/runtime/threading_backend.cc"
#include "src/runtime/workspace_pool.cc"
#include "src/runtime/dso_library.cc"
