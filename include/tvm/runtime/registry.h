// tvm/runtime/registry.h: functions by name, for this process, for programs written for TVM's C++ runtime. Written for
// Heddle; the names are TVM's. Compiled code calls functions that are registered here.
#ifndef TVM_RUNTIME_REGISTRY_H_
#define TVM_RUNTIME_REGISTRY_H_

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <tvm/runtime/packed_func.h>

namespace tvm {
namespace runtime {

class Registry {
public:
  // The body is the function of the name from then on.
  Registry &set_body(PackedFunc f) {
    detail::must(TVMFuncRegisterGlobal(name_.c_str(), f.handle(), 1));
    return *this;
  }
  template <class F> Registry &set_body_typed(F f) {
    return set_body(TypedPackedFunc<typename detail::Signature<F>::Type>(std::move(f), name_).packed());
  }
  // A member function: of a class of references, or of the class of their objects.
  template <class T, class R, class... Args> Registry &set_body_method(R (T::*f)(Args...)) {
    return set_body_typed([f](T target, Args... args) -> R { return (target.*f)(std::forward<Args>(args)...); });
  }
  template <class T, class R, class... Args> Registry &set_body_method(R (T::*f)(Args...) const) {
    return set_body_typed([f](const T &target, Args... args) -> R { return (target.*f)(std::forward<Args>(args)...); });
  }
  template <class Ref, class Node, class R, class... Args,
            class = std::enable_if_t<std::is_base_of<ObjectRef, Ref>::value>>
  Registry &set_body_method(R (Node::*f)(Args...)) {
    return set_body_typed([f](Ref target, Args... args) -> R {
      return (const_cast<Node *>(static_cast<const Node *>(target.operator->()))->*f)(std::forward<Args>(args)...);
    });
  }
  template <class Ref, class Node, class R, class... Args,
            class = std::enable_if_t<std::is_base_of<ObjectRef, Ref>::value>>
  Registry &set_body_method(R (Node::*f)(Args...) const) {
    return set_body_typed([f](Ref target, Args... args) -> R {
      return (static_cast<const Node *>(target.operator->())->*f)(std::forward<Args>(args)...);
    });
  }

  // A name for set_body. Without can_override a name that is registered is an error.
  static Registry &Register(const std::string &name, bool can_override = false) {
    if (!can_override && find(name) != nullptr) throw Error("Global PackedFunc " + name + " is already registered");
    Names &names = known();
    const std::lock_guard<std::mutex> lock(names.mutex);
    std::unique_ptr<Registry> &one = names.registered[name];
    if (one == nullptr) one.reset(new Registry(name));
    return *one;
  }
  // False where there is none. Code that has the function keeps it.
  static bool Remove(const std::string &name) {
    return find(name) != nullptr && TVMFuncRemoveGlobal(name.c_str()) == 0;
  }
  // NULL where there is none. The function stays valid to the end of the process, though the name is removed.
  static const PackedFunc *Get(const std::string &name) {
    const PackedFunc now = find(name);
    if (now == nullptr) return nullptr;
    Names &names = known();
    const std::lock_guard<std::mutex> lock(names.mutex);
    std::vector<std::unique_ptr<const PackedFunc>> &given = names.given[name];
    for (const std::unique_ptr<const PackedFunc> &one : given)
      if (one->same_as(now)) return one.get();
    given.emplace_back(new PackedFunc(now));
    return given.back().get();
  }
  static std::vector<std::string> ListNames() {
    int n = 0;
    const char **names = nullptr;
    detail::must(TVMFuncListGlobalNames(&n, &names));
    return std::vector<std::string>(names, names + n);
  }

private:
  // What Register and Get returned; never freed, as their references must stay valid.
  struct Names {
    std::mutex mutex;
    std::map<std::string, std::unique_ptr<Registry>> registered;
    std::map<std::string, std::vector<std::unique_ptr<const PackedFunc>>> given;
  };
  static Names &known() {
    static Names *const all = new Names;
    return *all;
  }
  static PackedFunc find(const std::string &name) {
    TVMFunctionHandle made = nullptr;
    detail::must(TVMFuncGetGlobal(name.c_str(), &made));
    return PackedFunc(detail::adopt_handle<PackedFuncObj>(made));
  }

  explicit Registry(std::string name) : name_(std::move(name)) {}
  std::string name_;
};

#define TVM_HEDDLE_JOIN_(a, b) a##b
#define TVM_HEDDLE_JOIN(a, b) TVM_HEDDLE_JOIN_(a, b)
#define TVM_FUNC_REG_VAR_DEF static __attribute__((unused)) ::tvm::runtime::Registry &__mk_TVM
#define TVM_REGISTER_GLOBAL(name) \
  TVM_HEDDLE_JOIN(TVM_FUNC_REG_VAR_DEF, __COUNTER__) = ::tvm::runtime::Registry::Register(name)

} // namespace runtime
} // namespace tvm

#endif
