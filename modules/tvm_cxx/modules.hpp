// modules/tvm_cxx/modules.hpp: modules as objects of C++. A module is a class with virtual functions, whose signatures are
// of two kinds; the head of the object lies behind the pointer to them.
#ifndef HEDDLE_MODULES_TVM_CXX_MODULES_HPP
#define HEDDLE_MODULES_TVM_CXX_MODULES_HPP

#include <memory>
#include <mutex>
#include <unordered_map>

#include "modules/tvm_cxx/functions.hpp"

namespace dmlc {
class Stream;
}

namespace tvm {
namespace runtime {

class Module : public ObjectRef {
public:
  using ObjectRef::ObjectRef;
  EXPORT static Module LoadFromFile(const String &name, const String &format);
  EXPORT static Module LoadFromFile(const std::string &name, const std::string &format);
};

// Of v0.13 to v0.18, and base of classes of programs of that era; those of the other have the same members, and see
// OldModuleNode for their virtual functions.
class EXPORT ModuleNode : public Object {
public:
  virtual ~ModuleNode() = default;
  virtual const char *type_key() const = 0;
  virtual PackedFunc GetFunction(const String &name, const ObjectPtr<Object> &self) = 0;
  EXPORT virtual void SaveToFile(const String &name, const String &format);
  EXPORT virtual void SaveToBinary(dmlc::Stream *stream);
  EXPORT virtual String GetSource(const String &format);
  EXPORT virtual String GetFormat();
  virtual int GetPropertyMask() const {
    return 0;
  }
  EXPORT virtual bool ImplementsFunction(const String &name, bool query_imports);

  EXPORT PackedFunc GetFunction(const String &name, bool query_imports);
  EXPORT PackedFunc GetFunction(const std::string &name, bool query_imports);
  EXPORT const PackedFunc *GetFuncFromEnv(const String &name);
  EXPORT const PackedFunc *GetFuncFromEnv(const std::string &name);
  EXPORT void Import(Module other);
  EXPORT void SaveToFile(const std::string &name, const std::string &format);
  EXPORT std::string GetSource(const std::string &format);
  EXPORT bool IsDSOExportable() const;

  std::vector<Module> imports_;
  std::unordered_map<std::string, std::shared_ptr<PackedFunc>> import_cache_;
  std::mutex mutex_;
};
#if defined(__x86_64__) && defined(__GLIBCXX__)
static_assert(sizeof(ModuleNode) == 144, "classes of programs put their members behind it");
#endif

} // namespace runtime
} // namespace tvm

namespace heddle_tvm_cxx {

// The virtual functions of v0.8 to v0.12, in the same places; the members are those of ModuleNode. v0.8 has them up to
// GetSource, or a few more, and no mutex: of classes of programs nothing behind these is used.
class OldModuleNode : public Object {
public:
  virtual ~OldModuleNode() = default;
  virtual const char *type_key() const = 0;
  virtual tvm::runtime::PackedFunc GetFunction(const std::string &name, const ObjectPtr<Object> &self) = 0;
  virtual void SaveToFile(const std::string &name, const std::string &format) = 0;
  virtual void SaveToBinary(dmlc::Stream *stream) = 0;
  virtual std::string GetSource(const std::string &format) = 0;
  virtual std::string GetFormat() = 0;
  virtual int GetPropertyMask() const = 0; // up to v0.11 IsDSOExportable, a bool
  virtual bool ImplementsFunction(const tvm::runtime::String &name, bool query_imports) = 0;

  std::vector<tvm::runtime::Module> imports_;
  std::unordered_map<std::string, std::shared_ptr<tvm::runtime::PackedFunc>> import_cache_;
  std::mutex mutex_;
};
static_assert(sizeof(OldModuleNode) == sizeof(tvm::runtime::ModuleNode), "the members are the same");

// A function of a module of libheddle_tvm's; null: there is none.
tvm::runtime::PackedFunc find_in(TVMModuleHandle handle, const std::string &name, bool imports, Era era);

// A module of libheddle_tvm's, whose reference it takes over.
ObjectPtr<Object> make_module(TVMModuleHandle handle, Era era);

// The handle of one that make_module made, borrowed; nullptr: it is of a class of the program's own.
TVMModuleHandle handle_of_module(Object *module);

// A module of libheddle_tvm's, with one reference, for one of a class of the program's own with what it imports; make_module gives
// that one back.
TVMModuleHandle handle_of_own(Object *module);

// module_node.cpp: whether the virtual functions of a class of the program's own take names as std::string.
bool is_old(const tvm::runtime::ModuleNode *node);
OldModuleNode *old(tvm::runtime::ModuleNode *node);

} // namespace heddle_tvm_cxx

#endif
