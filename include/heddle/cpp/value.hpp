// heddle/cpp/value.hpp: Value, an argument or result of a function, and the handles Function and Object that it may
// hold.
// A part of heddle/function.hpp, which programs include.
#ifndef HEDDLE_CPP_VALUE_HPP
#define HEDDLE_CPP_VALUE_HPP

#include <limits>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "heddle/cpp/module.hpp"
#include "heddle/function.h"

namespace heddle {

class Function;
class Object;

namespace detail {
using FunctionHandle = Shared<Function, heddle_function, heddle_function_retain, heddle_function_release>;
using ObjectHandle = Shared<Object, heddle_object, heddle_object_retain, heddle_object_release>;

template <class T> struct IsResult : std::false_type {};
template <class T> struct IsResult<Result<T>> : std::true_type {};
} // namespace detail

class Value;

// A function of the program, of a library, or registered by name. Any thread.
class Function : public detail::FunctionHandle {
public:
  Function() noexcept = default;
  static constexpr const char *noun() noexcept {
    return "function";
  }

  // Creates a function from a callable. The callable takes either `const std::vector<Value> &` (all arguments) or typed
  // arguments (numbers, bool, std::string, Bytes, Tensor, Function, Object, DeviceId, heddle_dtype, void *, Value),
  // whose number and kinds are checked. It returns one of these types, void, or a Result of one. It may be called on
  // any thread. A Tensor may be a view of memory that compiled code owns: copy data that must outlive the call. An
  // exception becomes an error with the same text. If the outer call was made through this header on the same thread,
  // that call rethrows the same exception.
  template <class F> static Result<Function> try_of(F callable);

  // Finds a registered function by name. HEDDLE_ENOTFOUND.
  static Result<Function> try_find(const std::string &name) {
    heddle_function *found = heddle_function_find(name.c_str());
    if (found == nullptr)
      return Error(HEDDLE_ENOTFOUND, "there is no function '" + name + "' by that name in this process");
    return adopt(found);
  }

  // Calls the function and waits for the work that it launches.
  template <class... T> Result<Value> try_call(const T &...args) const;

  heddle_value argument() const noexcept {
    heddle_value v{};
    v.kind = raw_ != nullptr ? HEDDLE_VALUE_FUNCTION : HEDDLE_VALUE_NONE;
    v.of.function = raw_;
    return v;
  }

#ifndef HEDDLE_CPP_NO_EXCEPTIONS
  template <class F> static Function of(F callable) {
    return try_of(std::move(callable)).value();
  }
  static Function find(const std::string &name) {
    return try_find(name).value();
  }
  template <class... T> Value operator()(const T &...args) const;
#endif
};

// A module whose functions are found by name: a library, a model inside one, an executor. Any thread.
class Object : public detail::ObjectHandle {
public:
  Object() noexcept = default;
  static constexpr const char *noun() noexcept {
    return "object";
  }

  // Loads a file. format "": from its suffix. Its devices are those of Context::process().
  static Result<Object> try_load(const std::string &path, const std::string &format = {}) {
    heddle_object *out = nullptr;
    Status s = detail::status_of(
        [&](heddle_error *err) { return heddle_object_load(path.c_str(), detail::or_null(format), &out, err); },
        path.c_str());
    if (!s) return s.error();
    return adopt(out);
  }

  // try_of: the Object of an open library. library: the Module of an Object; empty if the Object neither is nor imports
  // a library.
  static Result<Object> try_of(const Module &library) {
    if (!library) return Error(HEDDLE_EINVAL, "this module is empty: it was moved from, or never set");
    heddle_object *out = nullptr;
    Status s = detail::status_of([&](heddle_error *err) { return heddle_object_of(library.get(), &out, err); });
    if (!s) return s.error();
    return adopt(out);
  }
  Module library() const noexcept {
    return raw_ != nullptr ? Module::share(heddle_object_library(raw_)) : Module();
  }

  // The kind: "library", "GraphExecutor", ...; "" if this is empty.
  const char *kind() const noexcept {
    return raw_ != nullptr ? heddle_object_kind(raw_) : "";
  }

  // Finds a function of the module or, with imports, of a module that it imports. HEDDLE_ENOTFOUND.
  Result<Function> try_function(const std::string &name, bool imports = true) const {
    return made_with<Function, heddle_function>([&](heddle_object *o, heddle_function **out, heddle_error *err) {
      return heddle_object_function(o, name.c_str(), imports ? 1 : 0, out, err);
    });
  }

  // Adds an import. No other thread may use the module during the call.
  Status try_import(const Object &other) const {
    if (!other) return other.empty();
    return with([&](heddle_object *o, heddle_error *err) { return heddle_object_import(o, other.raw_, err); });
  }

  // The modules that this one imports.
  std::vector<Object> imported() const {
    std::vector<Object> out;
    for (std::uint32_t i = 0; raw_ != nullptr; i++) {
      heddle_object *one = heddle_object_imported(raw_, i);
      if (one == nullptr) break;
      out.push_back(share(one));
    }
    return out;
  }

  heddle_value argument() const noexcept {
    heddle_value v{};
    v.kind = raw_ != nullptr ? HEDDLE_VALUE_MODULE : HEDDLE_VALUE_NONE;
    v.of.module = raw_;
    return v;
  }

#ifndef HEDDLE_CPP_NO_EXCEPTIONS
  static Object load(const std::string &path, const std::string &format = {}) {
    return try_load(path, format).value();
  }
  static Object of(const Module &library) {
    return try_of(library).value();
  }
  Function function(const std::string &name, bool imports = true) const {
    return try_function(name, imports).value();
  }
  void import(const Object &other) const {
    try_import(other).value();
  }
#endif
};

// A value that owns its content. as<T> converts it to a C++ type: numbers if they fit, a float from an int, std::string
// and Bytes from each other, otherwise only its own type.
class Value {
public:
  Value() noexcept = default;
  template <class T, std::enable_if_t<std::is_arithmetic_v<T>, int> = 0> Value(T number) noexcept {
    if constexpr (std::is_same_v<T, bool>) of_ = number;
    else if constexpr (std::is_integral_v<T>) of_ = static_cast<std::int64_t>(number);
    else of_ = static_cast<double>(number);
  }
  Value(const char *text) : of_(std::string(text)) {}
  Value(std::string text) noexcept : of_(std::move(text)) {}
  Value(Bytes bytes) noexcept : of_(std::move(bytes)) {}
  Value(Tensor tensor) noexcept {
    if (tensor) of_ = std::move(tensor);
  }
  Value(Object object) noexcept {
    if (object) of_ = std::move(object);
  }
  Value(Function function) noexcept {
    if (function) of_ = std::move(function);
  }
  Value(DeviceId id) noexcept : of_(id) {}
  Value(heddle_dtype dtype) noexcept : of_(dtype) {}
  template <class T, std::enable_if_t<std::is_same_v<T, void>, int> = 0> Value(T *pointer) noexcept : of_(pointer) {}

  // From a C value: lent for an argument (text is copied, other kinds add a reference), given for a result (takes over
  // its reference).
  static Value lent(const heddle_value &v) {
    return made(v, true);
  }
  static Value given(const heddle_value &v) {
    return made(v, false);
  }

  std::int32_t kind() const noexcept { // HEDDLE_VALUE_*
    return argument().kind;
  }
  bool is_none() const noexcept {
    return of_.index() == 0;
  }

  // This value as an argument, which borrows from it.
  heddle_value argument() const noexcept;

  // HEDDLE_EINVAL if the value is of another kind (the message names both kinds) or the number does not fit.
  template <class T> Result<T> try_as() const;

#ifndef HEDDLE_CPP_NO_EXCEPTIONS
  template <class T> T as() const {
    return try_as<T>().value();
  }
#endif

private:
  using Of = std::variant<std::monostate, std::int64_t, double, bool, std::string, Bytes, Tensor, void *, Object,
                          Function, DeviceId, heddle_dtype>;

  static Value made(const heddle_value &v, bool lent);

  const char *kind_name() const noexcept {
    static constexpr const char *const names[] = {"nothing",  "an int",     "a float",  "a bool",
                                                  "a string", "bytes",      "a tensor", "a pointer",
                                                  "a module", "a function", "a device", "a dtype"};
    return names[of_.index()];
  }

  Of of_;
};

inline heddle_value Value::argument() const noexcept {
  heddle_value v{};
  v.kind = static_cast<std::int32_t>(of_.index());
  if (auto *i = std::get_if<std::int64_t>(&of_)) v.of.i = *i;
  else if (auto *f = std::get_if<double>(&of_)) v.of.f = *f;
  else if (auto *b = std::get_if<bool>(&of_)) v = Arg(*b).value();
  else if (auto *s = std::get_if<std::string>(&of_)) v = Arg(*s).value();
  else if (auto *bytes = std::get_if<Bytes>(&of_)) v = Arg(*bytes).value();
  else if (auto *t = std::get_if<Tensor>(&of_)) v.of.t = t->get();
  else if (auto *p = std::get_if<void *>(&of_)) v.of.data = *p;
  else if (auto *o = std::get_if<Object>(&of_)) v.of.module = o->get();
  else if (auto *fn = std::get_if<Function>(&of_)) v.of.function = fn->get();
  else if (auto *d = std::get_if<DeviceId>(&of_)) v = Arg(*d).value();
  else if (auto *dtype = std::get_if<heddle_dtype>(&of_)) v.of.dtype = *dtype;
  return v;
}

inline Value Value::made(const heddle_value &v, bool lent) {
  const auto *data = static_cast<const unsigned char *>(v.of.data);
  switch (v.kind) {
  case HEDDLE_VALUE_INT: return Value(v.of.i);
  case HEDDLE_VALUE_FLOAT: return Value(v.of.f);
  case HEDDLE_VALUE_BOOL: return Value(v.of.i != 0);
  case HEDDLE_VALUE_STRING: return Value(std::string(v.of.s));
  case HEDDLE_VALUE_BYTES: return Value(Bytes(data, data + v.bytes));
  case HEDDLE_VALUE_TENSOR: return Value(lent ? Tensor::share(v.of.t) : Tensor::adopt(v.of.t));
  case HEDDLE_VALUE_POINTER: return Value(const_cast<void *>(v.of.data));
  case HEDDLE_VALUE_MODULE: return Value(lent ? Object::share(v.of.module) : Object::adopt(v.of.module));
  case HEDDLE_VALUE_FUNCTION: return Value(lent ? Function::share(v.of.function) : Function::adopt(v.of.function));
  case HEDDLE_VALUE_DEVICE: return Value(DeviceId{v.of.device.type, v.of.device.number});
  case HEDDLE_VALUE_DTYPE: return Value(v.of.dtype);
  default: return Value();
  }
}

template <class T> Result<T> Value::try_as() const {
  const auto refuse = [this](const char *wanted) {
    return Error(HEDDLE_EINVAL, std::string("this is ") + kind_name() + ", not " + wanted);
  };
  if constexpr (std::is_same_v<T, Value>) {
    return *this;
  } else if constexpr (std::is_same_v<T, bool>) {
    if (auto *b = std::get_if<bool>(&of_)) return *b;
    if (auto *i = std::get_if<std::int64_t>(&of_)) return *i != 0;
    return refuse("a bool");
  } else if constexpr (std::is_integral_v<T>) {
    std::int64_t n = 0;
    if (auto *i = std::get_if<std::int64_t>(&of_)) n = *i;
    else if (auto *b = std::get_if<bool>(&of_)) n = *b ? 1 : 0;
    else return refuse("an int");
    const bool low = std::is_unsigned_v<T> ? n < 0 : n < static_cast<std::int64_t>(std::numeric_limits<T>::min());
    if (low || (n > 0 && static_cast<std::uint64_t>(n) > static_cast<std::uint64_t>(std::numeric_limits<T>::max())))
      return Error(HEDDLE_EINVAL, std::to_string(n) + " does not fit the type that it is wanted as");
    return static_cast<T>(n);
  } else if constexpr (std::is_floating_point_v<T>) {
    if (auto *f = std::get_if<double>(&of_)) return static_cast<T>(*f);
    if (auto *i = std::get_if<std::int64_t>(&of_)) return static_cast<T>(*i);
    return refuse("a float");
  } else {
    constexpr const char *wanted = std::is_same_v<T, std::string> ? "a string"
                                   : std::is_same_v<T, Bytes>     ? "bytes"
                                   : std::is_same_v<T, Tensor>    ? "a tensor"
                                   : std::is_same_v<T, void *>    ? "a pointer"
                                   : std::is_same_v<T, Object>    ? "a module"
                                   : std::is_same_v<T, Function>  ? "a function"
                                   : std::is_same_v<T, DeviceId>  ? "a device"
                                                                  : "a dtype";
    if (auto *held = std::get_if<T>(&of_)) return *held;
    if constexpr (std::is_same_v<T, std::string>)
      if (auto *bytes = std::get_if<Bytes>(&of_)) return std::string(bytes->begin(), bytes->end());
    if constexpr (std::is_same_v<T, Bytes>)
      if (auto *text = std::get_if<std::string>(&of_)) return Bytes(text->begin(), text->end());
    return refuse(wanted);
  }
}

template <class... T> Result<Value> Function::try_call(const T &...args) const {
  const heddle_value list[] = {Arg(args).value()..., heddle_value{}};
  heddle_value result{};
  Status s = with([&](heddle_function *f, heddle_error *err) {
    return heddle_function_call(f, list, std::uint32_t{sizeof...(args)}, &result, err);
  });
  if (!s) return s.error();
  return Value::given(result);
}

#ifndef HEDDLE_CPP_NO_EXCEPTIONS
template <class... T> Value Function::operator()(const T &...args) const {
  return try_call(args...).value();
}
#endif

} // namespace heddle

#endif
