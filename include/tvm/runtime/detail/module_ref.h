// tvm/runtime/detail/module_ref.h: modules and references to them; part of module.h.
#ifndef TVM_RUNTIME_DETAIL_MODULE_REF_H_
#define TVM_RUNTIME_DETAIL_MODULE_REF_H_

#include <string>
#include <vector>

#include <heddle/function.h>
#include <tvm/runtime/c_runtime_api.h>
#include <tvm/runtime/container/string.h>
#include <tvm/runtime/detail/handle.h>

namespace tvm {
namespace runtime {

class Module;
class PackedFunc;

// The module of the C API.
class ModuleNode : public detail::HandleObject {
public:
  static constexpr const char *_type_key = "runtime.Module";
  TVM_DECLARE_FINAL_OBJECT_INFO(ModuleNode, Object)
  using detail::HandleObject::HandleObject;

  // A null function where there is none.
  inline PackedFunc GetFunction(const std::string &name, bool query_imports = false) const;
  // "GraphExecutor", "library", "opencl", ...
  const char *type_key() const {
    return heddle_object_kind(static_cast<const heddle_object *>(handle()));
  }
  inline std::vector<Module> imports() const;
  inline void Import(Module other) const;
  int heddle_pass(TVMValue *to) const override {
    to->v_handle = handle();
    return kTVMModuleHandle;
  }
};

class Module : public ObjectRef {
public:
  using ContainerType = ModuleNode;

  Module() = default;
  explicit Module(ObjectPtr<Object> n) : ObjectRef(std::move(n)) {}

  // format "": by the suffix of the file.
  static Module LoadFromFile(const std::string &file_name, const std::string &format = "") {
    TVMModuleHandle made = nullptr;
    detail::must(TVMModLoadFromFile(file_name.c_str(), format.c_str(), &made));
    return Module(detail::adopt_handle<ModuleNode>(made));
  }
  inline PackedFunc GetFunction(const std::string &name, bool query_imports = false) const;
  inline void Import(Module other) const;
  ModuleNode *operator->() const {
    return static_cast<ModuleNode *>(get_mutable());
  }
  TVMModuleHandle handle() const { // for these headers
    return detail::handle_of(data_.get());
  }
};

namespace symbol { // names of symbols that compiled libraries have
constexpr const char *tvm_module_ctx = "__tvm_module_ctx";
constexpr const char *tvm_dev_mblob = "__tvm_dev_mblob";
constexpr const char *tvm_set_device = "__tvm_set_device";
constexpr const char *tvm_module_main = "__tvm_main__";
constexpr const char *tvm_global_barrier_state = "__tvm_global_barrier_state";
} // namespace symbol

} // namespace runtime
} // namespace tvm

#endif
