// tvm/runtime/packed_func.h: functions of any arguments, for programs written for TVM's C++ runtime. Written for Heddle;
// the names are TVM's.
//
// A function of the program, such as a lambda, is called directly through the PackedFunc that was made of it, and its
// exceptions pass. Through the C API, as a function by name or an argument of compiled code, they become errors with
// their text, and these tvm::runtime::Error.
#ifndef TVM_RUNTIME_PACKED_FUNC_H_
#define TVM_RUNTIME_PACKED_FUNC_H_

#include <functional>

#include <tvm/runtime/container/array.h>
#include <tvm/runtime/detail/ret_value.h>

namespace tvm {
namespace runtime {

// The function of the C API; body is that of a function of this program, which the handle owns.
class PackedFuncObj : public detail::HandleObject {
public:
  static constexpr const char *_type_key = "runtime.PackedFunc";
  TVM_DECLARE_FINAL_OBJECT_INFO(PackedFuncObj, Object)
  using FType = std::function<void(TVMArgs, TVMRetValue *)>;

  explicit PackedFuncObj(TVMFunctionHandle handle) : detail::HandleObject(handle) {}
  void CallPacked(TVMArgs args, TVMRetValue *rv) const {
    if (body != nullptr) {
      (*body)(args, rv);
      return;
    }
    TVMValue value;
    int code = kTVMNullptr;
    detail::must(TVMFuncCall(handle(), const_cast<TVMValue *>(args.values), const_cast<int *>(args.type_codes),
                             args.num_args, &value, &code));
    *rv = TVMRetValue::MoveFromCHost(value, code);
  }
  int heddle_pass(TVMValue *to) const override {
    to->v_handle = handle();
    return kTVMPackedFuncHandle;
  }

  const FType *body = nullptr;
};

class PackedFunc : public ObjectRef {
public:
  using ContainerType = PackedFuncObj;
  using FType = PackedFuncObj::FType;

  PackedFunc() = default;
  PackedFunc(std::nullptr_t) {}
  explicit PackedFunc(ObjectPtr<Object> n) : ObjectRef(std::move(n)) {}
  // Of what is called with TVMArgs and TVMRetValue*.
  template <class F, class = std::enable_if_t<std::is_convertible<F, FType>::value &&
                                              !std::is_base_of<ObjectRef, std::decay_t<F>>::value &&
                                              !std::is_base_of<TVMPODValue_, std::decay_t<F>>::value>>
  PackedFunc(F callable) {
    std::unique_ptr<FType> body(new FType(std::move(callable)));
    TVMFunctionHandle made = nullptr;
    detail::must(TVMFuncCreateFromCFunc(call, body.get(), finish, &made));
    const FType *kept = body.release();
    data_ = detail::adopt_handle<PackedFuncObj>(made);
    static_cast<PackedFuncObj *>(data_.get())->body = kept;
  }

  template <class... Args> TVMRetValue operator()(Args &&...args) const {
    constexpr int n = static_cast<int>(sizeof...(Args));
    TVMValue values[n > 0 ? n : 1];
    int codes[n > 0 ? n : 1];
    TVMArgsSetter set(values, codes);
    std::size_t i = 0;
    const int each[] = {0, (set(i++, args), 0)...};
    (void)each;
    (void)i;
    TVMRetValue rv;
    CallPacked(TVMArgs(values, codes, n), &rv);
    return rv;
  }
  void CallPacked(TVMArgs args, TVMRetValue *rv) const {
    if (data_ == nullptr) throw Error("a null PackedFunc is called");
    operator->()->CallPacked(args, rv);
  }
  // A function of this program as it was given; empty for others.
  FType body() const {
    return data_ != nullptr && operator->()->body != nullptr ? *operator->()->body : FType();
  }
  bool operator==(std::nullptr_t) const {
    return data_ == nullptr;
  }
  bool operator!=(std::nullptr_t) const {
    return data_ != nullptr;
  }
  using ObjectRef::operator==;
  using ObjectRef::operator!=;
  const PackedFuncObj *operator->() const {
    return static_cast<const PackedFuncObj *>(data_.get());
  }
  TVMFunctionHandle handle() const { // for these headers
    return detail::handle_of(data_.get());
  }

private:
  static void finish(void *body) {
    delete static_cast<FType *>(body);
  }
  inline static int call(TVMValue *args, int *codes, int n, TVMRetValueHandle ret, void *body);
};

namespace detail {

// Runs what may throw for a caller in C: 0, or -1 with the text.
template <class F> int guarded(F &&f) {
  try {
    f();
    return 0;
  } catch (const std::exception &e) {
    TVMAPISetLastError(e.what());
  } catch (...) {
    TVMAPISetLastError("a function of the program threw what is no std::exception");
  }
  return -1;
}

template <> struct To<NDArray> {
  static NDArray of(const TVMPODValue_ &v) {
    if (v.type_code() == kTVMNullptr) return NDArray();
    if (v.type_code() != kTVMNDArrayHandle) v.wrong("NDArray");
    return NDArray(share_handle<NDArray::Container>(v.value().v_handle));
  }
};
template <> struct To<Module> {
  static Module of(const TVMPODValue_ &v) {
    if (v.type_code() == kTVMNullptr) return Module();
    if (v.type_code() != kTVMModuleHandle) v.wrong("Module");
    return Module(share_handle<ModuleNode>(v.value().v_handle));
  }
};
template <> struct To<PackedFunc> {
  static PackedFunc of(const TVMPODValue_ &v) {
    if (v.type_code() == kTVMNullptr) return PackedFunc();
    if (v.type_code() != kTVMPackedFuncHandle) v.wrong("PackedFunc");
    return PackedFunc(share_handle<PackedFuncObj>(v.value().v_handle));
  }
};
template <> struct To<TVMRetValue> {
  static TVMRetValue of(const TVMPODValue_ &v) {
    TVMRetValue out;
    out = v;
    return out;
  }
};
template <> struct To<TVMArgValue> {
  static TVMArgValue of(const TVMPODValue_ &v) {
    return TVMArgValue(v.value(), v.type_code());
  }
};
template <class F> struct To<TypedPackedFunc<F>> {
  static TypedPackedFunc<F> of(const TVMPODValue_ &v) {
    return TypedPackedFunc<F>(To<PackedFunc>::of(v));
  }
};
template <class T> struct To<T, std::enable_if_t<IsRef<T>::value>> {
  static T of(const TVMPODValue_ &v) {
    return downcast<T>(v.object());
  }
};

} // namespace detail

inline ObjectPtr<Object> TVMPODValue_::object() const {
  switch (type_code_) {
  case kTVMNullptr: return nullptr;
  case kTVMObjectHandle: return ObjectPtr<Object>(ptr<Object>());
  case kTVMNDArrayHandle: return detail::share_handle<NDArray::Container>(value_.v_handle);
  case kTVMModuleHandle: return detail::share_handle<ModuleNode>(value_.v_handle);
  case kTVMPackedFuncHandle: return detail::share_handle<PackedFuncObj>(value_.v_handle);
  case kTVMStr:
  case kTVMBytes: return make_object<StringObj>(detail::To<std::string>::of(*this));
  default: wrong("Object");
  }
}

#define TVM_HEDDLE_CONVERT(T) \
  inline TVMPODValue_::operator T() const { \
    return detail::To<T>::of(*this); \
  }
TVM_HEDDLE_CONVERT(double)
TVM_HEDDLE_CONVERT(int64_t)
TVM_HEDDLE_CONVERT(uint64_t)
TVM_HEDDLE_CONVERT(int)
TVM_HEDDLE_CONVERT(bool)
TVM_HEDDLE_CONVERT(void *)
TVM_HEDDLE_CONVERT(DLTensor *)
TVM_HEDDLE_CONVERT(DLDevice)
TVM_HEDDLE_CONVERT(DLDataType)
TVM_HEDDLE_CONVERT(DataType)
TVM_HEDDLE_CONVERT(std::string)
TVM_HEDDLE_CONVERT(NDArray)
TVM_HEDDLE_CONVERT(Module)
TVM_HEDDLE_CONVERT(PackedFunc)
#undef TVM_HEDDLE_CONVERT
template <class F> TVMPODValue_::operator TypedPackedFunc<F>() const {
  return detail::To<TypedPackedFunc<F>>::of(*this);
}

inline ObjectPtr<Object> TVMRetValue::adopt_function(TVMFunctionHandle handle) {
  return detail::adopt_handle<PackedFuncObj>(handle);
}

// The result's reference goes to the caller: of an object of these headers by hand, of others by the C API.
inline int PackedFunc::call(TVMValue *args, int *codes, int n, TVMRetValueHandle ret, void *body) {
  return detail::guarded([=] {
    TVMRetValue rv;
    (*static_cast<const FType *>(body))(TVMArgs(args, codes, n), &rv);
    int code = rv.type_code();
    if (code == kTVMNullptr) return;
    TVMValue value = rv.value();
    detail::must(TVMCFuncSetReturn(ret, &value, &code, 1));
    if (code == kTVMObjectHandle) rv.ptr<Object>()->IncRef();
  });
}

inline PackedFunc ModuleNode::GetFunction(const std::string &name, bool query_imports) const {
  TVMFunctionHandle made = nullptr;
  detail::must(TVMModGetFunction(handle(), name.c_str(), query_imports ? 1 : 0, &made));
  return PackedFunc(detail::adopt_handle<PackedFuncObj>(made));
}
inline std::vector<Module> ModuleNode::imports() const {
  std::vector<Module> out;
  const heddle_object *own = static_cast<const heddle_object *>(handle());
  for (uint32_t i = 0; heddle_object *one = heddle_object_imported(own, i); i++)
    out.push_back(Module(detail::share_handle<ModuleNode>(one)));
  return out;
}
inline void ModuleNode::Import(Module other) const {
  detail::must(TVMModImport(handle(), other.handle()));
}
inline PackedFunc Module::GetFunction(const std::string &name, bool query_imports) const {
  if (!defined()) throw Error("a function '" + name + "' of a null Module");
  return (*this)->GetFunction(name, query_imports);
}
inline void Module::Import(Module other) const {
  if (!defined()) throw Error("an import of a null Module");
  (*this)->Import(std::move(other));
}

} // namespace runtime
} // namespace tvm

#include <tvm/runtime/detail/typed_packed_func.h>

#endif
