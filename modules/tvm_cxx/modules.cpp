// modules/tvm_cxx/modules.cpp: modules of libheddle_tvm's as objects of C++, and what TVM's class of modules does itself.
#include "modules/tvm_cxx/modules.hpp"

#include <memory>

namespace rt = tvm::runtime;

namespace heddle_tvm_cxx {

rt::PackedFunc find_in(TVMModuleHandle handle, const std::string &name, bool imports, Era era) {
  TVMFunctionHandle f = nullptr;
  check(TVMModGetFunction(handle, name.c_str(), imports, &f));
  rt::PackedFunc out;
  if (f != nullptr) out.data_ = make_function(f, era);
  return out;
}

namespace {

[[noreturn]] void no_saving() {
  throw rt::Error("a module of Heddle's cannot be saved by TVM's C++ interface");
}

class Loaded final : public rt::ModuleNode {
public:
  TVMModuleHandle handle = nullptr;
  ~Loaded() override {
    if (handle != nullptr) (void)TVMModFree(handle);
  }
  const char *type_key() const override {
    return "library";
  }
  rt::PackedFunc GetFunction(const rt::String &name, const ObjectPtr<Object> &) override {
    return find_in(handle, name.text(), false, Era::STRING);
  }
  void SaveToFile(const rt::String &, const rt::String &) override {
    no_saving();
  }
  bool ImplementsFunction(const rt::String &name, bool query_imports) override {
    return find_in(handle, name.text(), query_imports, Era::STRING).data_.data_ != nullptr;
  }
};

class OldLoaded final : public OldModuleNode {
public:
  TVMModuleHandle handle = nullptr;
  ~OldLoaded() override {
    if (handle != nullptr) (void)TVMModFree(handle);
  }
  const char *type_key() const override {
    return "library";
  }
  rt::PackedFunc GetFunction(const std::string &name, const ObjectPtr<Object> &) override {
    return find_in(handle, name, false, Era::STD_STRING);
  }
  void SaveToFile(const std::string &, const std::string &) override {
    no_saving();
  }
  void SaveToBinary(dmlc::Stream *) override {
    no_saving();
  }
  std::string GetSource(const std::string &) override {
    return std::string();
  }
  std::string GetFormat() override {
    return std::string();
  }
  int GetPropertyMask() const override {
    return 0;
  }
  bool ImplementsFunction(const rt::String &name, bool query_imports) override {
    return find_in(handle, name.text(), query_imports, Era::STD_STRING).data_.data_ != nullptr;
  }
};

void delete_loaded(Object *self) {
  delete static_cast<Loaded *>(self);
}

void delete_old_loaded(Object *self) {
  delete static_cast<OldLoaded *>(self);
}

} // namespace

ObjectPtr<Object> make_module(TVMModuleHandle handle, Era era) {
  std::unique_ptr<void, int (*)(void *)> guard(handle, TVMModFree);
  if (era == Era::STRING) {
    auto *made = new Loaded;
    made->handle = guard.release();
    ObjectPtr<Object> out = first(made, rt::MODULE);
    made->deleter_ = delete_loaded;
    return out;
  }
  auto *made = new OldLoaded;
  made->handle = guard.release();
  ObjectPtr<Object> out = first(made, rt::MODULE);
  made->deleter_ = delete_old_loaded;
  return out;
}

TVMModuleHandle handle_of_module(Object *o) {
  if (o->deleter_ == delete_loaded) return static_cast<Loaded *>(o)->handle;
  return o->deleter_ == delete_old_loaded ? static_cast<OldLoaded *>(o)->handle : nullptr;
}

} // namespace heddle_tvm_cxx
