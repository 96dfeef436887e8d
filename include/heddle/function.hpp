// heddle/function.hpp: functions as values, functions by name, and modules whose functions are found by name, for C++17
// and newer. A program that includes it links with libheddle_tvm in addition to libheddle. heddle/function.h has the
// contracts.
#ifndef HEDDLE_FUNCTION_HPP
#define HEDDLE_FUNCTION_HPP

#include <cstring>
#include <new>
#include <tuple>

#include "heddle/cpp/value.hpp"

namespace heddle {

namespace detail {

// The signature of a call of F: its result and, unless it takes all values as one list, its typed arguments.
template <class F> struct Signature : Signature<decltype(&F::operator())> {};
template <class R, class... A> struct Signature<R (*)(A...)> {
  using Result = R;
  using Arguments = std::tuple<std::decay_t<A>...>;
};
template <class R, class... A> struct Signature<R (*)(A...) noexcept> : Signature<R (*)(A...)> {};
template <class C, class R, class... A> struct Signature<R (C::*)(A...)> : Signature<R (*)(A...)> {};
template <class C, class R, class... A> struct Signature<R (C::*)(A...) const> : Signature<R (*)(A...)> {};
template <class C, class R, class... A> struct Signature<R (C::*)(A...) noexcept> : Signature<R (*)(A...)> {};
template <class C, class R, class... A> struct Signature<R (C::*)(A...) const noexcept> : Signature<R (*)(A...)> {};

// The text that a function of this thread returned last. C copies it after the function has returned.
inline Value &returned() noexcept {
  static thread_local Value one;
  return one;
}

// Copies as much of the text as fits.
template <std::size_t N> void copy_text(char (&to)[N], const char *text) noexcept {
  std::size_t n = 0;
  for (; n + 1 < N && text[n] != '\0'; n++) to[n] = text[n];
  to[n] = '\0';
}

inline heddle_status fail(heddle_status status, const char *text, heddle_error *err) noexcept {
  if (err == nullptr) return status;
  err->status = status;
  err->api_code = 0;
  copy_text(err->text, text);
  for (char *c = err->text; *c != '\0'; c++) // errors are one line
    if (*c == '\n' || *c == '\r') *c = ' ';
  return status;
}

#ifndef HEDDLE_CPP_NO_EXCEPTIONS
// Reports the error text to C, and keeps the exception for the call that rethrows it.
inline heddle_status pass(heddle_status status, const char *text, std::exception_ptr exception,
                          heddle_error *err) noexcept {
  fail(status, text, err);
  if (err != nullptr) keep_passing(*err, std::move(exception));
  return status;
}
#endif

inline heddle_status fail(const Error &error, heddle_error *err) noexcept {
  const heddle_status status = error.status() != HEDDLE_OK ? error.status() : HEDDLE_EFAILED;
#ifndef HEDDLE_CPP_NO_EXCEPTIONS
  if (error.cause()) return pass(status, error.what(), error.cause(), err);
#endif
  return fail(status, error.what(), err);
}

// Passes a value to C. The thread keeps text; other values carry a reference for the caller.
inline void give(Value value, heddle_value *out) {
  *out = value.argument();
  switch (out->kind) {
  case HEDDLE_VALUE_STRING:
  case HEDDLE_VALUE_BYTES: *out = (returned() = std::move(value)).argument(); break;
  case HEDDLE_VALUE_TENSOR: heddle_tensor_retain(out->of.t); break;
  case HEDDLE_VALUE_MODULE: heddle_object_retain(out->of.module); break;
  case HEDDLE_VALUE_FUNCTION: heddle_function_retain(out->of.function); break;
  default: break;
  }
}

// Calls what may throw; what it throws becomes an error of C.
template <class Call> heddle_status guarded(Call &&call, heddle_error *err) noexcept {
#ifndef HEDDLE_CPP_NO_EXCEPTIONS
  try {
    return call();
  } catch (const Error &e) {
    return pass(e.status() != HEDDLE_OK ? e.status() : HEDDLE_EFAILED, e.what(), std::current_exception(), err);
  } catch (const std::bad_alloc &) {
    return pass(HEDDLE_ENOMEM, "a function of the program is out of memory", std::current_exception(), err);
  } catch (const std::exception &e) {
    return pass(HEDDLE_EFAILED, e.what(), std::current_exception(), err);
  } catch (...) {
    return pass(HEDDLE_EFAILED, "a function of the program threw what is no std::exception", std::current_exception(),
                err);
  }
#else
  static_cast<void>(err);
  return call();
#endif
}

// A callable of the program as a heddle_find_fn.
template <class F> struct Finder {
  F callable;

  static void release(void *self) {
    delete static_cast<Finder *>(self);
  }

  static heddle_status find(void *self, const char *name, heddle_function **out, heddle_error *err) {
    *out = nullptr;
    return guarded(
        [&] {
          const Function found = static_cast<Finder *>(self)->callable(std::string(name));
          *out = heddle_function_retain(found.get());
          return HEDDLE_OK;
        },
        err);
  }
};

// A callable of the program as a heddle_callback.
template <class F> struct Closure {
  F callable;

  static void release(void *self) {
    delete static_cast<Closure *>(self);
  }

  static heddle_status call(void *self, const heddle_value *args, std::uint32_t n, heddle_value *result,
                            heddle_error *err) {
    F &f = static_cast<Closure *>(self)->callable;
    return guarded([&] { return checked(f, args, n, result, err); }, err);
  }

private:
  // Calls f as Closure::call does, without catching what f throws.
  static heddle_status checked(F &f, const heddle_value *args, std::uint32_t n, heddle_value *result,
                               heddle_error *err) {
    if constexpr (std::is_invocable_v<F &, const std::vector<Value> &>) {
      std::vector<Value> list;
      for (std::uint32_t i = 0; i < n; i++) list.push_back(Value::lent(args[i]));
      return finish([&]() -> decltype(auto) { return f(std::as_const(list)); }, result, err);
    } else {
      using Arguments = typename Signature<F>::Arguments;
      constexpr std::uint32_t wanted = std::tuple_size_v<Arguments>;
      if (n != wanted)
        return fail(Error(HEDDLE_EINVAL,
                          "this function takes " + std::to_string(wanted) + " arguments, not " + std::to_string(n)),
                    err);
      return typed<Arguments>(f, args, result, err, std::make_index_sequence<wanted>());
    }
  }

  template <class Arguments, std::size_t... I>
  static heddle_status typed(F &f, const heddle_value *args, heddle_value *result, heddle_error *err,
                             std::index_sequence<I...>) {
    (void)args;
    std::tuple<Result<std::tuple_element_t<I, Arguments>>...> list{
        Value::lent(args[I]).template try_as<std::tuple_element_t<I, Arguments>>()...};
    Error wrong;
    std::size_t which = 0;
    ((wrong.status() == HEDDLE_OK && !std::get<I>(list) ? (wrong = std::get<I>(list).error(), which = I) : 0), ...);
    if (wrong.status() != HEDDLE_OK)
      return fail(Error(wrong.status(), "argument " + std::to_string(which) + ": " + wrong.what()), err);
    return finish([&]() -> decltype(auto) { return f(*std::move(std::get<I>(list))...); }, result, err);
  }

  template <class Call> static heddle_status finish(Call &&call, heddle_value *result, heddle_error *err) {
    using R = std::decay_t<decltype(call())>;
    if constexpr (std::is_void_v<R>) {
      call();
    } else if constexpr (std::is_same_v<R, Status>) {
      Status s = call();
      if (!s) return fail(s.error(), err);
    } else if constexpr (IsResult<R>::value) {
      R made = call();
      if (!made) return fail(made.error(), err);
      give(Value(*std::move(made)), result);
    } else {
      give(Value(call()), result);
    }
    return HEDDLE_OK;
  }
};

} // namespace detail

template <class F> Result<Function> Function::try_of(F callable) {
  using Closure = detail::Closure<F>;
  std::unique_ptr<Closure> closure(new Closure{std::move(callable)});
  heddle_function *out = nullptr;
  Status s = detail::status_of([&](heddle_error *err) {
    return heddle_function_create(Closure::call, closure.get(), Closure::release, &out, err);
  });
  if (!s) return s.error();
  closure.release();
  return adopt(out);
}

// Calls a function of a library and returns its result, which Module::call drops.
template <class... T> Result<Value> try_call(const Module &module, const std::string &function, const T &...args) {
  Result<Object> object = Object::try_of(module);
  if (!object) return object.error();
  Result<Function> found = object->try_function(function);
  if (!found) return found.error();
  return found->try_call(args...);
}

// Creates a module of the application. find takes a name and gives a Function, an empty one where there is none of that name;
// it is called from any thread, several at once.
template <class F> Result<Object> try_create_object(const std::string &kind, F find) {
  using Finder = detail::Finder<F>;
  std::unique_ptr<Finder> finder(new Finder{std::move(find)});
  heddle_object *out = nullptr;
  Status s = detail::status_of([&](heddle_error *err) {
    return heddle_object_create(kind.c_str(), Finder::find, finder.get(), Finder::release, &out, err);
  });
  if (!s) return s.error();
  finder.release();
  return Object::adopt(out);
}

// Modules of a kind are read and written by a function, which heddle_function_register_loader describes. Empty: no more. Any thread.
inline Status try_register_loader(const std::string &kind, const Function &load) {
  return detail::status_of(
      [&](heddle_error *err) { return heddle_function_register_loader(kind.c_str(), load.get(), err); });
}

// ---- functions by name, for this process

// Registers a function. HEDDLE_EINVAL if the name is taken and replace is false. Any thread.
inline Status try_register_function(const std::string &name, const Function &function, bool replace = false) {
  if (!function) return Error(HEDDLE_EINVAL, "the function to register as '" + name + "' is empty");
  return detail::status_of(
      [&](heddle_error *err) { return heddle_function_register(name.c_str(), function.get(), replace ? 1 : 0, err); });
}

// Removes a registered function. HEDDLE_ENOTFOUND if there is none. Any thread.
inline Status try_remove_function(const std::string &name) {
  return detail::status_of([&](heddle_error *err) { return heddle_function_remove(name.c_str(), err); });
}

// The names of all registered functions, in alphabetical order.
inline Result<std::vector<std::string>> try_function_names() {
  const char *const *names = nullptr;
  std::size_t n = 0;
  Status s = detail::status_of([&](heddle_error *err) { return heddle_function_names(&names, &n, err); });
  if (!s) return s.error();
  return n > 0 ? std::vector<std::string>(names, names + n) : std::vector<std::string>();
}

#ifndef HEDDLE_CPP_NO_EXCEPTIONS
template <class... T> Value call(const Module &module, const std::string &function, const T &...args) {
  return try_call(module, function, args...).value();
}
template <class F> Object create_object(const std::string &kind, F find) {
  return try_create_object(kind, std::move(find)).value();
}
inline void register_loader(const std::string &kind, const Function &load) {
  try_register_loader(kind, load).value();
}
inline void register_function(const std::string &name, const Function &function, bool replace = false) {
  try_register_function(name, function, replace).value();
}
inline void remove_function(const std::string &name) {
  try_remove_function(name).value();
}
inline std::vector<std::string> function_names() {
  return try_function_names().value();
}
#endif

} // namespace heddle

#endif
