// modules/tvm_cxx/functions.hpp: functions and values between libheddle_tvm, which has them as TVM's C API does, and code of
// C++, which has them as objects.
#ifndef HEDDLE_MODULES_TVM_CXX_FUNCTIONS_HPP
#define HEDDLE_MODULES_TVM_CXX_FUNCTIONS_HPP

#include "modules/tvm_cxx/containers.hpp"

namespace heddle_tvm_cxx {

// What differs between the eras of one library: the texts in names, and with them the virtual
// functions of modules. Every object that leads to others knows for whom it was made.
enum class Era {
  STD_STRING, // v0.8 to v0.12
  STRING      // v0.13 to v0.18
};

inline const std::string &text_of(const std::string &text) {
  return text;
}
inline std::string text_of(const tvm::runtime::String &text) {
  return text.text();
}

// Throws tvm::runtime::Error with the words of TVMGetLastError where a call of the C API returned rc.
void check(int rc);

// ---- packed.cpp: what a PackedFunc is, an object or a std::function

using tvm::runtime::PackedFunc;

bool is_null(const PackedFunc &f);
void call(const PackedFunc &f, tvm::runtime::TVMArgs args, tvm::runtime::TVMRetValue *rv);

// A PackedFunc that calls a function of libheddle_tvm's, whose reference it takes over.
PackedFunc make_function(TVMFunctionHandle f, Era era);

// A function as a value has it: what an argument points to; a pointer for a result, which drop_function ends.
PackedFunc function_of(void *pointer);
void *keep_function(PackedFunc f);
void drop_function(void *pointer);

// ---- functions.cpp

// What make_function's PackedFunc does when it is called.
void call_handle(TVMFunctionHandle f, Era era, tvm::runtime::TVMArgs args, tvm::runtime::TVMRetValue *rv);

// A function of libheddle_tvm's, with one reference, that calls a PackedFunc.
TVMFunctionHandle handle_of_function(const PackedFunc &function, Era era);

// Sets *rv to a result of the C API, which it takes over.
void give(TVMValue value, int code, Era era, tvm::runtime::TVMRetValue *rv);

} // namespace heddle_tvm_cxx

#endif
