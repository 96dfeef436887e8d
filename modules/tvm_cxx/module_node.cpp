// modules/tvm_cxx/module_node.cpp: what TVM's class of modules does itself, for modules of ours and for classes of the
// program's own that are derived from it.
#include "modules/tvm_cxx/modules.hpp"
#include "modules/tvm_cxx/registry.hpp"

#include <cstring>
#include <memory>
#include <type_traits>

namespace rt = tvm::runtime;

namespace heddle_tvm_cxx {

namespace {

// What a module or one of its imports has; own and of each import by the virtual function of its era.
template <typename Node, typename Name> rt::PackedFunc search(Node *node, const Name &name, bool imports) {
  Object *o = node;
  ObjectPtr<Object> self(o);
  rt::PackedFunc out = node->GetFunction(name, self);
  if (!is_null(out) || !imports) return out;
  if (TVMModuleHandle handle = handle_of_module(o))
    out = find_in(handle, text_of(name), true, std::is_same<Name, rt::String>::value ? Era::STRING : Era::STD_STRING);
  for (size_t i = 0; i < node->imports_.size() && is_null(out); i++)
    out = search(static_cast<Node *>(node->imports_[i].data_.data_), name, true);
  return out;
}

bool reaches(const rt::ModuleNode *from, const rt::ModuleNode *to) {
  bool found = from == to;
  for (size_t i = 0; i < from->imports_.size() && !found; i++)
    found = reaches(static_cast<const rt::ModuleNode *>(from->imports_[i].data_.data_), to);
  return found;
}

// For code of the module's own, which asks by name: first its imports, then what is registered.
template <typename Node, typename Name> const rt::PackedFunc *from_env(Node *node, const Name &name) {
  static std::mutex &lock = *new std::mutex; // of all modules' caches: those of v0.8 have none of their own
  std::string key = text_of(name);
  {
    std::lock_guard<std::mutex> guard(lock);
    auto known = node->import_cache_.find(key);
    if (known != node->import_cache_.end()) return known->second.get();
  }
  rt::PackedFunc found;
  for (size_t i = 0; i < node->imports_.size() && is_null(found); i++)
    found = search(static_cast<Node *>(node->imports_[i].data_.data_), name, false);
  if (is_null(found)) {
    const rt::PackedFunc *global = rt::Registry::Get(name);
    if (global == nullptr)
      throw rt::Error("there is no function '" + key + "' in the imported modules, nor is one registered");
    return global;
  }
  std::lock_guard<std::mutex> guard(lock);
  auto &place = node->import_cache_[key];
  if (place == nullptr) place = std::make_shared<rt::PackedFunc>(found);
  return place.get();
}

} // namespace

} // namespace heddle_tvm_cxx

using heddle_tvm_cxx::Era;
using heddle_tvm_cxx::OldModuleNode;

namespace {

[[noreturn]] void not_implemented(const char *what) {
  throw rt::Error(std::string("a module of this class does not implement ") + what);
}

} // namespace

// GetFormat of v0.9 to v0.12: it differs from the other in what it returns only.
EXPORT std::string
heddle_tvm_cxx_old_format(rt::ModuleNode *) __asm__("_ZN3tvm7runtime10ModuleNode9GetFormatB5cxx11Ev");
std::string heddle_tvm_cxx_old_format(rt::ModuleNode *) {
  not_implemented("GetFormat");
}

#ifdef HEDDLE_TVM_CXX_V08
bool heddle_tvm_cxx::is_old(const rt::ModuleNode *) {
  return true;
}
#else
// Whether the class of a module is of v0.9 to v0.12: it inherits at least one of these from the class of that era. A class
// that has all three itself is taken for one of v0.13 and later.
bool heddle_tvm_cxx::is_old(const rt::ModuleNode *node) {
  enum { SAVE_TO_FILE = 4, GET_SOURCE = 6, GET_FORMAT = 7 };
  void (rt::ModuleNode::*save)(const std::string &, const std::string &) = &rt::ModuleNode::SaveToFile;
  std::string (rt::ModuleNode::*source)(const std::string &) = &rt::ModuleNode::GetSource;
  std::string (*format)(rt::ModuleNode *) = heddle_tvm_cxx_old_format;
  void *functions[3];
  void *const *table;
  std::memcpy(&functions[0], &save, sizeof functions[0]); // the address, for functions that are not virtual
  std::memcpy(&functions[1], &source, sizeof functions[1]);
  std::memcpy(&functions[2], &format, sizeof functions[2]);
  std::memcpy(&table, static_cast<const void *>(node), sizeof table);
  return table[SAVE_TO_FILE] == functions[0] || table[GET_SOURCE] == functions[1] || table[GET_FORMAT] == functions[2];
}
#endif

OldModuleNode *heddle_tvm_cxx::old(rt::ModuleNode *node) {
  return static_cast<OldModuleNode *>(static_cast<rt::Object *>(node));
}

rt::PackedFunc rt::ModuleNode::GetFunction(const String &name, bool query_imports) {
  return heddle_tvm_cxx::search(this, name, query_imports);
}

rt::PackedFunc rt::ModuleNode::GetFunction(const std::string &name, bool query_imports) {
  return heddle_tvm_cxx::search(heddle_tvm_cxx::old(this), name, query_imports);
}

const rt::PackedFunc *rt::ModuleNode::GetFuncFromEnv(const String &name) {
  return heddle_tvm_cxx::from_env(this, name);
}

const rt::PackedFunc *rt::ModuleNode::GetFuncFromEnv(const std::string &name) {
  return heddle_tvm_cxx::from_env(heddle_tvm_cxx::old(this), name);
}

void rt::ModuleNode::Import(Module other) {
  auto *node = static_cast<ModuleNode *>(other.data_.data_);
  if (node == nullptr) throw Error("an import: the module is null");
  if (heddle_tvm_cxx::reaches(node, this))
    throw Error("an import: the module is the one that would import it, or imports that");
  TVMModuleHandle own = heddle_tvm_cxx::handle_of_module(this), of = heddle_tvm_cxx::handle_of_module(node);
  if (own != nullptr) {
    std::unique_ptr<void, int (*)(void *)> kept(of == nullptr ? of = heddle_tvm_cxx::handle_of_own(node) : nullptr,
                                                TVMModFree);
    heddle_tvm_cxx::check(TVMModImport(own, of));
  }
  imports_.push_back(other);
}

void rt::ModuleNode::SaveToFile(const String &, const String &) {
  not_implemented("SaveToFile");
}

void rt::ModuleNode::SaveToFile(const std::string &, const std::string &) {
  not_implemented("SaveToFile");
}

void rt::ModuleNode::SaveToBinary(dmlc::Stream *) {
  not_implemented("SaveToBinary");
}

rt::String rt::ModuleNode::GetSource(const String &) {
  not_implemented("GetSource");
}

std::string rt::ModuleNode::GetSource(const std::string &) {
  not_implemented("GetSource");
}

rt::String rt::ModuleNode::GetFormat() {
  not_implemented("GetFormat");
}

bool rt::ModuleNode::IsDSOExportable() const {
  return false;
}

bool rt::ModuleNode::ImplementsFunction(const String &name, bool query_imports) {
  return !heddle_tvm_cxx::is_null(heddle_tvm_cxx::is_old(this) ? GetFunction(name.text(), query_imports)
                                                               : GetFunction(name, query_imports));
}

rt::Module rt::Module::LoadFromFile(const std::string &name, const std::string &format) {
  TVMModuleHandle handle = nullptr;
  heddle_tvm_cxx::check(TVMModLoadFromFile(name.c_str(), format.c_str(), &handle));
  Module out;
  out.data_ = heddle_tvm_cxx::make_module(handle, Era::STD_STRING);
  return out;
}

rt::Module rt::Module::LoadFromFile(const String &name, const String &format) {
  TVMModuleHandle handle = nullptr;
  heddle_tvm_cxx::check(TVMModLoadFromFile(name.text().c_str(), format.text().c_str(), &handle));
  Module out;
  out.data_ = heddle_tvm_cxx::make_module(handle, Era::STRING);
  return out;
}
