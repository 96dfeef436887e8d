// modules/tvm_cxx/modules.cpp: modules of libheddle_tvm's as objects of C++, and what TVM's class of modules does itself.
#include "modules/tvm_cxx/modules.hpp"

#include <cstdio>
#include <map>
#include <memory>

#include "heddle/function.h"

namespace rt = tvm::runtime;

namespace heddle_tvm_cxx {

rt::PackedFunc find_in(TVMModuleHandle handle, const std::string &name, bool imports, Era era) {
  TVMFunctionHandle f = nullptr;
  check(TVMModGetFunction(handle, name.c_str(), imports, &f));
  rt::PackedFunc out;
  if (f != nullptr) out = make_function(f, era);
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
    return heddle_object_kind(static_cast<heddle_object *>(handle));
  }
  rt::PackedFunc GetFunction(const rt::String &name, const ObjectPtr<Object> &) override {
    return find_in(handle, name.text(), false, Era::STRING);
  }
  void SaveToFile(const rt::String &, const rt::String &) override {
    no_saving();
  }
  bool ImplementsFunction(const rt::String &name, bool query_imports) override {
    return !is_null(find_in(handle, name.text(), query_imports, Era::STRING));
  }
};

class OldLoaded final : public OldModuleNode {
public:
  TVMModuleHandle handle = nullptr;
  ~OldLoaded() override {
    if (handle != nullptr) (void)TVMModFree(handle);
  }
  const char *type_key() const override {
    return heddle_object_kind(static_cast<heddle_object *>(handle));
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
    return !is_null(find_in(handle, name.text(), query_imports, Era::STD_STRING));
  }
};

void delete_loaded(Object *self) {
  delete static_cast<Loaded *>(self);
}

void delete_old_loaded(Object *self) {
  delete static_cast<OldLoaded *>(self);
}

template <typename Node> ObjectPtr<Object> make(TVMModuleHandle handle, Era era, Object::FDeleter deleter) {
  auto made = std::make_unique<Node>();
  made->handle = handle;
  auto *self = static_cast<heddle_object *>(handle);
  for (uint32_t i = 0; heddle_object *of = heddle_object_imported(self, i); i++) {
    made->imports_.emplace_back();
    made->imports_.back().data_ = make_module(heddle_object_retain(of), era);
  }
  ObjectPtr<Object> out = first(made.release(), rt::MODULE);
  out.data_->deleter_ = deleter;
  return out;
}

// Modules of classes of the program's own that libheddle_tvm has.
struct Own {
  ObjectPtr<Object> node;
  heddle_object *handle = nullptr;
};

struct Owns {
  std::mutex lock; // guards all; a leaf
  std::map<void *, Object *> all;
};

// Never ends: other libraries may end later.
Owns &owns() {
  static Owns &table = *new Owns;
  return table;
}

heddle_status find_in_own(void *self, const char *name, heddle_function **out, heddle_error *err) {
  Object *node = static_cast<Own *>(self)->node.data_;
  auto *module = static_cast<rt::ModuleNode *>(node);
  try {
    const Era era = is_old(module) ? Era::STD_STRING : Era::STRING;
    PackedFunc f = era == Era::STD_STRING
                       ? old(module)->GetFunction(std::string(name), static_cast<Own *>(self)->node)
                       : module->GetFunction(rt::String(make_string(name).data_), static_cast<Own *>(self)->node);
    *out = is_null(f) ? nullptr : static_cast<heddle_function *>(handle_of_function(f, era));
    return HEDDLE_OK;
  } catch (const std::exception &e) {
    std::snprintf(err->text, sizeof err->text, "%.800s", e.what());
  } catch (...) {
    std::snprintf(err->text, sizeof err->text, "a module of C++ threw what is no std::exception");
  }
  return HEDDLE_EFAILED;
}

void release_own(void *self) {
  std::unique_ptr<Own> own(static_cast<Own *>(self));
  std::lock_guard<std::mutex> guard(owns().lock);
  owns().all.erase(own->handle);
}

// The node itself, if it is still held; its wrapper has a reference while the caller has one of the wrapper.
ObjectPtr<Object> own_of(TVMModuleHandle handle) {
  std::lock_guard<std::mutex> guard(owns().lock);
  auto at = owns().all.find(handle);
  return at != owns().all.end() ? ObjectPtr<Object>(at->second) : ObjectPtr<Object>();
}

} // namespace

ObjectPtr<Object> make_module(TVMModuleHandle handle, Era era) {
  std::unique_ptr<void, int (*)(void *)> guard(handle, TVMModFree);
  ObjectPtr<Object> out = own_of(handle);
  if (out.data_ != nullptr) return out;
  return era == Era::STRING ? make<Loaded>(guard.release(), era, delete_loaded)
                            : make<OldLoaded>(guard.release(), era, delete_old_loaded);
}

TVMModuleHandle handle_of_own(Object *module) {
  auto *node = static_cast<rt::ModuleNode *>(module);
  auto own = std::make_unique<Own>();
  heddle_object *made = nullptr;
  heddle_error err{};
  own->node = ObjectPtr<Object>(module);
  if (heddle_object_create(node->type_key(), find_in_own, own.get(), release_own, &made, &err) != HEDDLE_OK)
    throw rt::Error(err.text);
  std::unique_ptr<void, int (*)(void *)> guard(made, TVMModFree);
  own.release()->handle = made;
  {
    std::lock_guard<std::mutex> lock(owns().lock);
    owns().all.emplace(made, module);
  }
  for (rt::Module &import : node->imports_) {
    TVMModuleHandle of = handle_of_module(import.data_.data_);
    std::unique_ptr<void, int (*)(void *)> kept(of == nullptr ? of = handle_of_own(import.data_.data_) : nullptr,
                                                TVMModFree);
    check(TVMModImport(made, of));
  }
  return guard.release();
}

TVMModuleHandle handle_of_module(Object *o) {
  if (o->deleter_ == delete_loaded) return static_cast<Loaded *>(o)->handle;
  return o->deleter_ == delete_old_loaded ? static_cast<OldLoaded *>(o)->handle : nullptr;
}

} // namespace heddle_tvm_cxx
