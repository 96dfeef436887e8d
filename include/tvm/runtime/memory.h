// tvm/runtime/memory.h: make_object, under the name of the header that TVM has it in.
#ifndef TVM_RUNTIME_MEMORY_H_
#define TVM_RUNTIME_MEMORY_H_

#include <tvm/runtime/object.h>

#endif
