// modules/tvm_cxx/packed.cpp: what a PackedFunc is: up to v0.8 a std::function, then an object.
#include "modules/tvm_cxx/functions.hpp"

#include <memory>

namespace rt = tvm::runtime;

namespace heddle_tvm_cxx {

#ifdef HEDDLE_TVM_CXX_V08

bool is_null(const PackedFunc &f) {
  return f.body_ == nullptr;
}

void call(const PackedFunc &f, rt::TVMArgs args, rt::TVMRetValue *rv) {
  f.body_(args, rv);
}

PackedFunc make_function(TVMFunctionHandle f, Era era) {
  std::shared_ptr<void> handle(f, TVMFuncFree);
  return PackedFunc{[handle, era](rt::TVMArgs args, rt::TVMRetValue *rv) { call_handle(handle.get(), era, args, rv); }};
}

PackedFunc function_of(void *pointer) {
  return *static_cast<PackedFunc *>(pointer);
}

void *keep_function(PackedFunc f) {
  return new PackedFunc(std::move(f));
}

void drop_function(void *pointer) {
  delete static_cast<PackedFunc *>(pointer);
}

#else

namespace {

// A function of libheddle_tvm's.
struct Outer : rt::PackedFuncObj {
  TVMFunctionHandle handle = nullptr;
  Era era = Era::STRING;
  ~Outer() {
    if (handle != nullptr) (void)TVMFuncFree(handle);
  }
};

void call_outer(const rt::PackedFuncObj *self, rt::TVMArgs args, rt::TVMRetValue *rv) {
  const auto *f = static_cast<const Outer *>(self);
  call_handle(f->handle, f->era, args, rv);
}

} // namespace

bool is_null(const PackedFunc &f) {
  return f.data_.data_ == nullptr;
}

void call(const PackedFunc &f, rt::TVMArgs args, rt::TVMRetValue *rv) {
  const auto *self = static_cast<rt::PackedFuncObj *>(f.data_.get());
  self->f_call_packed_(self, args, rv);
}

PackedFunc make_function(TVMFunctionHandle f, Era era) {
  std::unique_ptr<void, int (*)(void *)> guard(f, TVMFuncFree);
  auto *made = new Outer;
  PackedFunc out;
  made->handle = guard.release();
  made->era = era;
  made->f_call_packed_ = call_outer;
  out.data_ = first(made, rt::PACKED_FUNC);
  return out;
}

PackedFunc function_of(void *pointer) {
  return PackedFunc(static_cast<Object *>(pointer));
}

void *keep_function(PackedFunc f) {
  return std::exchange(f.data_.data_, nullptr);
}

void drop_function(void *pointer) {
  static_cast<Object *>(pointer)->DecRef();
}

#endif

} // namespace heddle_tvm_cxx
