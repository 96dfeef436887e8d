// tvm/runtime/detail/typed_packed_func.h: functions of a signature, and functions that a library exports for compiled
// code; part of packed_func.h.
#ifndef TVM_RUNTIME_DETAIL_TYPED_PACKED_FUNC_H_
#define TVM_RUNTIME_DETAIL_TYPED_PACKED_FUNC_H_

#include <tuple>
#include <utility>

#include <tvm/runtime/packed_func.h>

namespace tvm {
namespace runtime {

template <class F> class TypedPackedFunc;

namespace detail {

// The signature of a callable, as R(Args...).
template <class F> struct Signature : Signature<decltype(&F::operator())> {};
template <class R, class... A> struct Signature<R(A...)> { using Type = R(A...); };
template <class R, class... A> struct Signature<R (*)(A...)> : Signature<R(A...)> {};
template <class C, class R, class... A> struct Signature<R (C::*)(A...)> : Signature<R(A...)> {};
template <class C, class R, class... A> struct Signature<R (C::*)(A...) const> : Signature<R(A...)> {};
#if defined(__cpp_noexcept_function_type)
template <class R, class... A> struct Signature<R (*)(A...) noexcept> : Signature<R(A...)> {};
template <class C, class R, class... A> struct Signature<R (C::*)(A...) noexcept> : Signature<R(A...)> {};
template <class C, class R, class... A> struct Signature<R (C::*)(A...) const noexcept> : Signature<R(A...)> {};
#endif

// An argument of a parameter's type; an error names which it is.
template <class T> T argument(const TVMArgs &args, std::size_t i, const std::string &name) {
  try {
    return To<T>::of(args[static_cast<int>(i)]);
  } catch (const Error &e) {
    throw Error("In function " + name + ": argument " + std::to_string(i) + ": " + e.what());
  }
}

template <class R> struct Unpack {
  template <class... A, class F, std::size_t... I>
  static void call(F &f, const TVMArgs &args, TVMRetValue *rv, const std::string &name, std::index_sequence<I...>) {
    (void)args; // where there are none
    (void)name;
    *rv = f(argument<std::decay_t<A>>(args, I, name)...);
  }
};
template <> struct Unpack<void> {
  template <class... A, class F, std::size_t... I>
  static void call(F &f, const TVMArgs &args, TVMRetValue *, const std::string &name, std::index_sequence<I...>) {
    (void)args;
    (void)name;
    f(argument<std::decay_t<A>>(args, I, name)...);
  }
};

template <class R, class... A, class F>
void call_unpacked(F &f, const TVMArgs &args, TVMRetValue *rv, const std::string &name) {
  if (args.size() != static_cast<int>(sizeof...(A)))
    throw Error("Function " + name + " expects " + std::to_string(sizeof...(A)) + " arguments, but " +
                std::to_string(args.size()) + " were provided.");
  Unpack<R>::template call<A...>(f, args, rv, name, std::index_sequence_for<A...>());
}

template <class F, class R, class Enable, class... A> struct IsCallable : std::false_type {};
template <class F, class R, class... A>
struct IsCallable<F, R,
                  std::enable_if_t<std::is_void<R>::value ||
                                   std::is_convertible<decltype(std::declval<F &>()(std::declval<A>()...)), R>::value>,
                  A...> : std::true_type {};

template <class R> struct Result {
  static R of(const TVMRetValue &rv) {
    return To<R>::of(rv);
  }
};
template <> struct Result<void> {
  static void of(const TVMRetValue &) {}
};

} // namespace detail

template <class R, class... Args> class TypedPackedFunc<R(Args...)> {
public:
  TypedPackedFunc() = default;
  TypedPackedFunc(std::nullptr_t) {}
  TypedPackedFunc(PackedFunc packed) : packed_(std::move(packed)) {}
  explicit TypedPackedFunc(const TVMPODValue_ &value) : packed_(detail::To<PackedFunc>::of(value)) {}
  template <class F,
            class = std::enable_if_t<detail::IsCallable<F, R, void, Args...>::value &&
                                     !std::is_base_of<ObjectRef, F>::value && !std::is_base_of<TVMPODValue_, F>::value>>
  TypedPackedFunc(F f) : TypedPackedFunc(std::move(f), "(anonymous)") {}
  template <class F, class = std::enable_if_t<detail::IsCallable<F, R, void, Args...>::value>>
  TypedPackedFunc(F f, std::string name) {
    packed_ = PackedFunc(
        [f, name](TVMArgs args, TVMRetValue *rv) mutable { detail::call_unpacked<R, Args...>(f, args, rv, name); });
  }

  R operator()(Args... args) const {
    return detail::Result<R>::of(packed_(std::forward<Args>(args)...));
  }
  const PackedFunc &packed() const {
    return packed_;
  }
  operator PackedFunc() const {
    return packed_;
  }
  bool operator==(std::nullptr_t) const {
    return packed_ == nullptr;
  }
  bool operator!=(std::nullptr_t) const {
    return packed_ != nullptr;
  }

private:
  PackedFunc packed_;
};

namespace detail {

// A function that a library exports for compiled code and loaders. Its texts live until the thread's next.
inline int exported(const PackedFuncObj::FType &body, const TVMArgs &args, TVMValue *out, int *out_code) {
  return guarded([&] {
    static thread_local TVMRetValue last;
    TVMRetValue rv;
    body(args, &rv);
    if (rv.type_code() == kTVMStr || rv.type_code() == kTVMBytes) {
      last = std::move(rv);
      *out = last.value();
      *out_code = last.type_code();
    } else {
      rv.MoveToCHost(out, out_code);
    }
  });
}

template <class F> struct ExportTyped;
template <class R, class... A> struct ExportTyped<R(A...)> {
  template <class F> static void call(F &f, const TVMArgs &args, TVMRetValue *rv, const char *name) {
    call_unpacked<R, A...>(f, args, rv, name);
  }
};

} // namespace detail

#define TVM_HEDDLE_EXPORT(ExportName, Body) \
  extern "C" TVM_DLL int ExportName(TVMValue *tvm_values, int *tvm_codes, int tvm_n, TVMValue *tvm_out, \
                                    int *tvm_out_code, void *tvm_resource); \
  int ExportName(TVMValue *tvm_values, int *tvm_codes, int tvm_n, TVMValue *tvm_out, int *tvm_out_code, void *) { \
    return ::tvm::runtime::detail::exported(Body, ::tvm::runtime::TVMArgs(tvm_values, tvm_codes, tvm_n), tvm_out, \
                                            tvm_out_code); \
  }
#define TVM_DLL_EXPORT_PACKED_FUNC(ExportName, Function) TVM_HEDDLE_EXPORT(ExportName, Function)
#define TVM_DLL_EXPORT_TYPED_FUNC(ExportName, Function) \
  TVM_HEDDLE_EXPORT(ExportName, ([](::tvm::runtime::TVMArgs tvm_args, ::tvm::runtime::TVMRetValue *tvm_rv) { \
                      auto tvm_f = Function; \
                      using TVMF = ::tvm::runtime::detail::Signature<decltype(tvm_f)>::Type; \
                      ::tvm::runtime::detail::ExportTyped<TVMF>::call(tvm_f, tvm_args, tvm_rv, #ExportName); \
                    }))

} // namespace runtime
} // namespace tvm

#endif
