// heddle/rpc.hpp: sessions with servers of TVM's RPC, for C++17 and newer. A program that includes it links with libheddle_rpc in
// addition to libheddle. heddle/rpc.h has the contracts.
#ifndef HEDDLE_RPC_HPP
#define HEDDLE_RPC_HPP

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "heddle/cpp/error.hpp"
#include "heddle/rpc.h"

namespace heddle {
namespace rpc {

using Value = heddle_rpc_value;
using Tensor = heddle_rpc_tensor;

// Arguments of a call. Text, bytes and tensors are borrowed.
inline Value none() noexcept {
  return Value{};
}
inline Value value(std::int64_t i) noexcept {
  Value out{};
  out.kind = HEDDLE_RPC_INT;
  out.of.i = i;
  return out;
}
inline Value value(int i) noexcept {
  return value(static_cast<std::int64_t>(i));
}
inline Value value(bool b) noexcept {
  Value out = value(static_cast<std::int64_t>(b));
  out.kind = HEDDLE_RPC_BOOL;
  return out;
}
inline Value value(double f) noexcept {
  Value out{};
  out.kind = HEDDLE_RPC_FLOAT;
  out.of.f = f;
  return out;
}
inline Value value(const char *text) noexcept {
  Value out{};
  out.kind = HEDDLE_RPC_STRING;
  out.of.s = text;
  return out;
}
inline Value value(const void *data, std::size_t bytes) noexcept {
  Value out{};
  out.kind = HEDDLE_RPC_BYTES;
  out.of.data = data;
  out.bytes = bytes;
  return out;
}
inline Value value(const Tensor &t) noexcept {
  Value out{};
  out.kind = HEDDLE_RPC_TENSOR;
  out.of.tensor = &t;
  return out;
}

// A handle as an argument: kind is HEDDLE_RPC_MODULE, HEDDLE_RPC_FUNCTION or HEDDLE_RPC_OBJECT.
inline Value handle(std::int32_t kind, std::uint64_t number) noexcept {
  Value out{};
  out.kind = kind;
  out.of.handle = number;
  return out;
}

struct Options {
  double session_seconds = 0;   // after which the server ends the session; 0: never
  std::uint32_t connect_ms = 0; // to reach the server; 0: 30,000
};

namespace detail_rpc {
struct Close {
  void operator()(heddle_rpc *rpc) const noexcept {
    heddle_rpc_close(rpc);
  }
};
inline heddle_rpc_options options_of(const Options &options) noexcept {
  heddle_rpc_options out = detail::sized<heddle_rpc_options>();
  out.session_seconds = options.session_seconds;
  out.connect_ms = options.connect_ms;
  return out;
}
} // namespace detail_rpc

// A session. It ends with the object. One thread at a time.
class Session {
public:
  static Result<Session> try_connect(const std::string &host, std::uint16_t port, const std::string &key = {},
                                     const Options &options = {}) {
    const heddle_rpc_options o = detail_rpc::options_of(options);
    heddle_rpc *out = nullptr;
    Status s = detail::status_of(
        [&](heddle_error *err) { return heddle_rpc_connect(host.c_str(), port, key.c_str(), &o, &out, err); });
    if (!s) return s.error();
    return Session(out);
  }

  // On the next server of a key that a tracker has.
  static Result<Session> try_request(const std::string &tracker, std::uint16_t port, const std::string &key,
                                     double priority = 1, const Options &options = {}) {
    const heddle_rpc_options o = detail_rpc::options_of(options);
    heddle_rpc *out = nullptr;
    Status s = detail::status_of([&](heddle_error *err) {
      return heddle_rpc_request(tracker.c_str(), port, key.c_str(), priority, &o, &out, err);
    });
    if (!s) return s.error();
    return Session(out);
  }

  // Puts bytes into the session's folder.
  Status try_upload(const std::string &name, const void *data, std::size_t bytes) {
    return detail::status_of(
        [&](heddle_error *err) { return heddle_rpc_upload(rpc_.get(), name.c_str(), data, bytes, err); });
  }

  // The bytes of a file of the session.
  Result<std::vector<unsigned char>> try_download(const std::string &name) {
    const void *data = nullptr;
    std::size_t bytes = 0;
    Status s = detail::status_of(
        [&](heddle_error *err) { return heddle_rpc_download(rpc_.get(), name.c_str(), &data, &bytes, err); });
    if (!s) return s.error();
    const unsigned char *from = static_cast<const unsigned char *>(data);
    return std::vector<unsigned char>(from, from + bytes);
  }

  // The module of a library that was uploaded; freed with free.
  Result<std::uint64_t> try_load(const std::string &name) {
    std::uint64_t out = 0;
    Status s =
        detail::status_of([&](heddle_error *err) { return heddle_rpc_load(rpc_.get(), name.c_str(), &out, err); });
    if (!s) return s.error();
    return out;
  }

  // A function of a module, or with module 0 of the server; freed with free.
  Result<std::uint64_t> try_function(const std::string &name, std::uint64_t module = 0) {
    std::uint64_t out = 0;
    Status s = detail::status_of(
        [&](heddle_error *err) { return heddle_rpc_function(rpc_.get(), module, name.c_str(), &out, err); });
    if (!s) return s.error();
    return out;
  }

  // Calls a function. Text, bytes and a tensor's struct in the result are valid until the next call.
  Result<Value> try_call(std::uint64_t of, const std::vector<Value> &args = {}) {
    Value out{};
    Status s = detail::status_of([&](heddle_error *err) {
      return heddle_rpc_call(rpc_.get(), of, args.data(), static_cast<std::uint32_t>(args.size()), &out, err);
    });
    if (!s) return s.error();
    return out;
  }

  // Frees a module, a function or an object.
  Status try_free(std::uint64_t handle) {
    return detail::status_of([&](heddle_error *err) { return heddle_rpc_free(rpc_.get(), handle, err); });
  }

  // Seconds of one call, from each of the measurements on the server.
  Result<std::vector<double>> try_time(const std::string &name, std::uint64_t module, std::int32_t device_type,
                                       std::int32_t device_number, const std::vector<Value> &args, std::uint32_t number,
                                       std::uint32_t repeat, std::uint32_t min_repeat_ms = 0) {
    std::vector<double> out(repeat);
    Status s = detail::status_of([&](heddle_error *err) {
      return heddle_rpc_time(rpc_.get(), module, name.c_str(), device_type, device_number, args.data(),
                             static_cast<std::uint32_t>(args.size()), number, repeat, min_repeat_ms, out.data(), err);
    });
    if (!s) return s.error();
    return out;
  }

  // Whether the server has a device.
  Result<bool> try_device_exists(std::int32_t device_type, std::int32_t device_number) {
    int out = 0;
    Status s = detail::status_of(
        [&](heddle_error *err) { return heddle_rpc_device_exists(rpc_.get(), device_type, device_number, &out, err); });
    if (!s) return s.error();
    return out != 0;
  }

  // A tensor in the server's memory; freed with free_tensor.
  Result<Tensor> try_tensor(std::int32_t device_type, std::int32_t device_number, heddle_dtype dtype,
                            const std::vector<std::int64_t> &shape) {
    Tensor out{};
    Status s = detail::status_of([&](heddle_error *err) {
      return heddle_rpc_tensor_create(rpc_.get(), device_type, device_number, dtype, shape.data(),
                                      static_cast<std::uint32_t>(shape.size()), &out, err);
    });
    if (!s) return s.error();
    return out;
  }

  // Frees a tensor.
  Status try_free_tensor(const Tensor &t) {
    return detail::status_of([&](heddle_error *err) { return heddle_rpc_tensor_free(rpc_.get(), &t, err); });
  }

  // Copies all bytes of a tensor to the server.
  Status try_write(const Tensor &t, const void *data, std::size_t bytes) {
    return detail::status_of([&](heddle_error *err) { return heddle_rpc_write(rpc_.get(), &t, data, bytes, err); });
  }

  // Copies all bytes of a tensor from the server.
  Status try_read(const Tensor &t, void *data, std::size_t bytes) {
    return detail::status_of([&](heddle_error *err) { return heddle_rpc_read(rpc_.get(), &t, data, bytes, err); });
  }

#ifndef HEDDLE_CPP_NO_EXCEPTIONS
  static Session connect(const std::string &host, std::uint16_t port, const std::string &key = {},
                         const Options &options = {}) {
    return try_connect(host, port, key, options).value();
  }
  static Session request(const std::string &tracker, std::uint16_t port, const std::string &key, double priority = 1,
                         const Options &options = {}) {
    return try_request(tracker, port, key, priority, options).value();
  }
  void upload(const std::string &name, const void *data, std::size_t bytes) {
    try_upload(name, data, bytes).value();
  }
  std::vector<unsigned char> download(const std::string &name) {
    return try_download(name).value();
  }
  std::uint64_t load(const std::string &name) {
    return try_load(name).value();
  }
  std::uint64_t function(const std::string &name, std::uint64_t module = 0) {
    return try_function(name, module).value();
  }
  Value call(std::uint64_t of, const std::vector<Value> &args = {}) {
    return try_call(of, args).value();
  }
  void free(std::uint64_t handle) {
    try_free(handle).value();
  }
  std::vector<double> time(const std::string &name, std::uint64_t module, std::int32_t device_type,
                           std::int32_t device_number, const std::vector<Value> &args, std::uint32_t number,
                           std::uint32_t repeat, std::uint32_t min_repeat_ms = 0) {
    return try_time(name, module, device_type, device_number, args, number, repeat, min_repeat_ms).value();
  }
  bool device_exists(std::int32_t device_type, std::int32_t device_number) {
    return try_device_exists(device_type, device_number).value();
  }
  Tensor tensor(std::int32_t device_type, std::int32_t device_number, heddle_dtype dtype,
                const std::vector<std::int64_t> &shape) {
    return try_tensor(device_type, device_number, dtype, shape).value();
  }
  void free_tensor(const Tensor &t) {
    try_free_tensor(t).value();
  }
  void write(const Tensor &t, const void *data, std::size_t bytes) {
    try_write(t, data, bytes).value();
  }
  void read(const Tensor &t, void *data, std::size_t bytes) {
    try_read(t, data, bytes).value();
  }
#endif

private:
  explicit Session(heddle_rpc *rpc) noexcept : rpc_(rpc) {}

  std::unique_ptr<heddle_rpc, detail_rpc::Close> rpc_;
};

// What a tracker knows, as JSON.
inline Result<std::string> try_summary(const std::string &tracker, std::uint16_t port) {
  char *out = nullptr;
  Status s = detail::status_of([&](heddle_error *err) { return heddle_rpc_summary(tracker.c_str(), port, &out, err); });
  if (!s) return s.error();
  std::string text(out);
  heddle_rpc_release(out);
  return text;
}
#ifndef HEDDLE_CPP_NO_EXCEPTIONS
inline std::string summary(const std::string &tracker, std::uint16_t port) {
  return try_summary(tracker, port).value();
}
#endif

} // namespace rpc
} // namespace heddle

#endif
