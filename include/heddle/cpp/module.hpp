// heddle/cpp/module.hpp: Module, a compiled library, and Arg, an argument of one of its functions.
// heddle/module.h has the contracts. Calls in this header drop the result of a function; calls in heddle/function.hpp
// return it.
#ifndef HEDDLE_CPP_MODULE_HPP
#define HEDDLE_CPP_MODULE_HPP

#include <string>
#include <utility>
#include <vector>

#include "heddle/cpp/graph.hpp"
#include "heddle/model.h" // heddle_model_unpack
#include "heddle/module.h"

namespace heddle {

// A device as a value: DLPack device type and number.
struct DeviceId {
  std::int32_t type = 1;
  std::int32_t number = 0;
};

using Bytes = std::vector<unsigned char>;

// An argument of one call. Created from a number, text, Bytes, a Tensor, a DeviceId, a heddle_dtype, nullptr, or a
// pointer as void *; also from a Function, an Object or a Value (heddle/function.hpp). It borrows the value, which must
// outlive the call. Text that contains a NUL byte is passed as bytes, because strings of C end at the first NUL.
class Arg {
public:
  Arg(std::nullptr_t) noexcept { // NOLINT: implicit, as all of them
  }
  template <class T, std::enable_if_t<std::is_arithmetic_v<T>, int> = 0> Arg(T number) noexcept {
    if constexpr (std::is_same_v<T, bool>) {
      of_.kind = HEDDLE_VALUE_BOOL;
      of_.of.i = number ? 1 : 0;
    } else if constexpr (std::is_integral_v<T>) {
      of_.kind = HEDDLE_VALUE_INT;
      of_.of.i = static_cast<std::int64_t>(number);
    } else {
      of_.kind = HEDDLE_VALUE_FLOAT;
      of_.of.f = static_cast<double>(number);
    }
  }
  Arg(const char *text) noexcept {
    of_.kind = text != nullptr ? HEDDLE_VALUE_STRING : HEDDLE_VALUE_NONE;
    of_.of.s = text;
  }
  Arg(const std::string &text) noexcept : Arg(text.c_str()) {
    if (text.find('\0') != std::string::npos) set_bytes(text.data(), text.size());
  }
  Arg(const Bytes &bytes) noexcept {
    set_bytes(bytes.data(), bytes.size());
  }
  Arg(const Tensor &tensor) noexcept {
    of_.kind = tensor ? HEDDLE_VALUE_TENSOR : HEDDLE_VALUE_NONE;
    of_.of.t = tensor.get();
  }
  Arg(DeviceId id) noexcept {
    of_.kind = HEDDLE_VALUE_DEVICE;
    of_.of.device.type = id.type;
    of_.of.device.number = id.number;
  }
  Arg(heddle_dtype dtype) noexcept {
    of_.kind = HEDDLE_VALUE_DTYPE;
    of_.of.dtype = dtype;
  }
  template <class T, std::enable_if_t<std::is_same_v<T, void>, int> = 0> Arg(T *pointer) noexcept {
    of_.kind = HEDDLE_VALUE_POINTER;
    of_.of.data = pointer;
  }
  template <class T, class = decltype(std::declval<const T &>().argument())>
  Arg(const T &of) noexcept : of_(of.argument()) {}

  const heddle_value &value() const noexcept {
    return of_;
  }

private:
  void set_bytes(const void *data, std::size_t size) noexcept {
    of_.kind = HEDDLE_VALUE_BYTES;
    of_.of.data = data;
    of_.bytes = size;
  }

  heddle_value of_{};
};

// A library that TVM compiled, or a module that a loader of the program created from one.
class Module : public detail::Shared<Module, heddle_module, heddle_module_retain, heddle_module_release> {
public:
  static constexpr const char *noun() noexcept {
    return "module";
  }

  // Opens a library. The library is code and runs with the rights of the process.
  static Result<Module> try_load(const Context &context, const std::string &path) {
    return make([&](heddle_module **out,
                    heddle_error *err) { return heddle_module_load(context.get(), path.c_str(), out, err); },
                context, path.c_str());
  }

  // The same for a library that a trust file demands to be signed, or that is encrypted; "": as the settings say.
  static Result<Module> try_open(const Context &context, const std::string &path, const std::string &trust,
                                 const std::string &key = {}) {
    heddle_module_options o = detail::sized<heddle_module_options>();
    o.trust = detail::or_null(trust);
    o.key = detail::or_null(key);
    return make([&](heddle_module **out,
                    heddle_error *err) { return heddle_module_open(context.get(), path.c_str(), &o, out, err); },
                context, path.c_str());
  }

  // The functions that were linked into this program with TVM's --system-lib.
  static Result<Module> try_system(const Context &context, const std::string &prefix = {}) {
    return make([&](heddle_module **out,
                    heddle_error *err) { return heddle_module_system(context.get(), prefix.c_str(), out, err); },
                context, nullptr);
  }

  Result<heddle_module_info> try_info() const {
    return filled<heddle_module_info>([](heddle_module *m, heddle_module_info *out, heddle_error *err) {
      return heddle_module_get_info(m, out, err);
    });
  }

  // The names of the library's functions.
  std::vector<std::string> functions() const {
    return names([this](std::uint32_t i) { return heddle_module_function(raw_, i); });
  }

  // A module inside the library, and the names of that module's kernels.
  Result<heddle_import_info> try_import(std::uint32_t i) const {
    return filled<heddle_import_info>([&](heddle_module *m, heddle_import_info *out, heddle_error *err) {
      return heddle_module_import(m, i, out, err);
    });
  }
  std::vector<std::string> kernels(std::uint32_t import) const {
    return names([this, import](std::uint32_t i) { return heddle_module_kernel(raw_, import, i); });
  }

  // Calls a function by name. After the call, tensors contain what the function wrote. Any thread.
  template <class... T> Status try_call(const std::string &function, const T &...args) const {
    const heddle_value list[] = {Arg(args).value()..., heddle_value{}};
    return with([&](heddle_module *m, heddle_error *err) {
      return heddle_module_call(m, function.c_str(), list, std::uint32_t{sizeof...(args)}, nullptr, err);
    });
  }

  // The graph and the parameters of a model in the library. name "": its root.
  Result<std::pair<Graph, Params>> try_unpack(const std::string &name = {}) const {
    heddle_graph *graph = nullptr;
    heddle_params *params = nullptr;
    Status s = with([&](heddle_module *m, heddle_error *err) {
      return heddle_model_unpack(m, detail::or_null(name), &graph, &params, err);
    });
    if (!s) return s.error();
    return std::pair<Graph, Params>(Graph::adopt(graph), Params::adopt(params));
  }

  // Registers a loader for modules of a kind that Heddle does not know. The program keeps ownership of loader and self;
  // loader NULL removes it.
  static Status try_register_loader(const std::string &kind, const heddle_module_loader *loader, void *self = nullptr) {
    return detail::status_of(
        [&](heddle_error *err) { return heddle_module_register_loader(kind.c_str(), loader, self, err); });
  }

#ifndef HEDDLE_CPP_NO_EXCEPTIONS
  static Module load(const Context &context, const std::string &path) {
    return try_load(context, path).value();
  }
  static Module open(const Context &context, const std::string &path, const std::string &trust,
                     const std::string &key = {}) {
    return try_open(context, path, trust, key).value();
  }
  static Module system(const Context &context, const std::string &prefix = {}) {
    return try_system(context, prefix).value();
  }
  heddle_module_info info() const {
    return try_info().value();
  }
  heddle_import_info import(std::uint32_t i) const {
    return try_import(i).value();
  }
  template <class... T> void call(const std::string &function, const T &...args) const {
    try_call(function, args...).value();
  }
  std::pair<Graph, Params> unpack(const std::string &name = {}) const {
    return try_unpack(name).value();
  }
  static void register_loader(const std::string &kind, const heddle_module_loader *loader, void *self = nullptr) {
    try_register_loader(kind, loader, self).value();
  }
#endif

private:
  template <class Call> static Result<Module> make(Call &&call, const Context &context, const char *file) {
    if (!context) return Error(HEDDLE_EINVAL, "a module needs a context: this one is empty");
    heddle_module *out = nullptr;
    Status s = detail::status_of([&](heddle_error *err) { return call(&out, err); }, file);
    if (!s) return s.error();
    return adopt(out);
  }

  template <class Name> std::vector<std::string> names(Name &&name) const {
    std::vector<std::string> out;
    for (std::uint32_t i = 0; raw_ != nullptr; i++) {
      const char *one = name(i);
      if (one == nullptr) break;
      out.emplace_back(one);
    }
    return out;
  }
};

} // namespace heddle

#endif
