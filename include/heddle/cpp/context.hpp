// heddle/cpp/context.hpp: Context, a configuration with its plugins, and Device, one of its devices.
// heddle/device.h has the contracts; the comments here describe only what C++ adds.
#ifndef HEDDLE_CPP_CONTEXT_HPP
#define HEDDLE_CPP_CONTEXT_HPP

#include <chrono>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "heddle/cpp/error.hpp"
#include "heddle/executor.h" // trace
#include "heddle/ranks.h"
#include "heddle/text.h"

namespace heddle {

namespace detail {
// Converts a duration to nanoseconds. Durations that are too long mean no limit; negative ones are 0.
template <class Rep, class Period> std::uint64_t ns_of(std::chrono::duration<Rep, Period> d) noexcept {
  const long double ns = std::chrono::duration<long double, std::nano>(d).count();
  if (!(ns > 0)) return 0;
  return ns >= 9.0e18L ? UINT64_MAX : static_cast<std::uint64_t>(ns);
}
} // namespace detail

// How long to wait: any std::chrono duration, or without limit.
class Timeout {
public:
  Timeout() noexcept = default;
  template <class Rep, class Period>
  Timeout(std::chrono::duration<Rep, Period> d) noexcept : ns_(detail::ns_of(d)) { // NOLINT: implicit
  }
  std::uint64_t ns() const noexcept {
    return ns_;
  }

private:
  std::uint64_t ns_ = HEDDLE_FOREVER;
};

// Receives the log: level, component, one line of text. Called on any thread. Exceptions from it are ignored.
using Log = std::function<void(std::int32_t level, const char *component, const char *text)>;

// Keys and values, such as {{"devices", "cpu"}, {"sim.delay_us", "5"}}.
using Settings = std::vector<std::pair<std::string, std::string>>;

class Device;

namespace detail {
// Declared as a base before the counted reference, so that the log outlives it: releasing the last reference may log.
struct KeptLog {
  std::shared_ptr<Log> log_;
};
} // namespace detail

// Adds a plugin that is linked into the program. Call it before creating the first context.
inline Status try_register_plugin(heddle_plugin_entry_fn entry) {
  return detail::status_of([&](heddle_error *err) { return heddle_plugin_register(entry, err); });
}

// The device type of the devices of a plugin that declares HEDDLE_DEVICE_EXT.
inline std::int32_t plugin_device_type(const std::string &plugin) {
  return heddle_plugin_device_type(plugin.c_str());
}

// Turns text from a file, a driver or a caller into one line without terminal control codes.
inline std::string clean_text(const std::string &text) {
  std::string out(text.size() + 1, '\0');
  out.resize(heddle_text_clean(text.c_str(), &out[0], out.size()));
  return out;
}

// The name in list that a wrong one was probably meant to be; "" if there is none.
inline std::string nearest_text(const std::string &wrong, const std::vector<std::string> &list) {
  std::vector<const char *> names;
  for (const std::string &name : list) names.push_back(name.c_str());
  const char *near = heddle_text_nearest(wrong.c_str(), names.data(), names.size());
  return near != nullptr ? near : "";
}

// A context. Copies refer to the same context. Its log lives as long as any copy, and as long as any device, model or
// executor created from a copy. Keep a Context while other code uses objects created from it. Any thread.
class Context : private detail::KeptLog,
                public detail::Shared<Context, heddle_context, heddle_context_retain, heddle_context_release> {
public:
  Context() noexcept = default;
  Context(const Context &) noexcept = default;
  Context(Context &&) noexcept = default;
  Context &operator=(Context other) noexcept {
    std::swap(raw_, other.raw_);
    log_.swap(other.log_);
    return *this;
  }
  static constexpr const char *noun() noexcept {
    return "context";
  }

  // Creates a context; settings take precedence over every other source. An empty log: as log NULL in
  // heddle_context_create.
  static Result<Context> try_create(const Settings &settings = {}, Log log = nullptr) {
    return try_create_on(heddle_context_create, settings, std::move(log));
  }

  // The same by another function that creates contexts, such as heddle_context_create_mpi with its first argument bound.
  template <class Create>
  static Result<Context> try_create_on(Create create, const Settings &settings = {}, Log log = nullptr) {
    std::vector<heddle_setting> list;
    for (const auto &one : settings) list.push_back({one.first.c_str(), one.second.c_str()});
    std::shared_ptr<Log> kept = log ? std::make_shared<Log>(std::move(log)) : nullptr;
    heddle_context *out = nullptr;
    Status s = detail::status_of([&](heddle_error *err) {
      return create(list.data(), list.size(), kept ? write_log : nullptr, kept.get(), &out, err);
    });
    if (!s) return s.error();
    Context made = adopt(out);
    made.log_ = std::move(kept);
    return made;
  }

  // A context of one rank of several (heddle/ranks.h). All ranks call this.
  static Result<Context> try_create_ranks(const heddle_comm &comm, const Settings &settings = {}, Log log = nullptr) {
    return try_create_on(
        [&comm](const heddle_setting *list, std::size_t n, heddle_log_fn fn, void *user, heddle_context **out,
                heddle_error *err) { return heddle_context_create_ranks(&comm, list, n, fn, user, out, err); },
        settings, std::move(log));
  }

  // Ends the work of all ranks with a failure of one's own.
  void fail_ranks(heddle_status status, const std::string &text) const {
    if (raw_ != nullptr) heddle_context_fail_ranks(raw_, status, text.c_str());
  }

  // The number of this rank, and how many there are: 0 and 1 without ranks.
  std::pair<std::uint32_t, std::uint32_t> rank() const noexcept {
    std::pair<std::uint32_t, std::uint32_t> out{0, 1};
    if (raw_ != nullptr) heddle_context_rank(raw_, &out.first, &out.second);
    return out;
  }

  // The context of the process, without settings from a call. TVM's C API and other languages use it too.
  static Result<Context> try_process() {
    heddle_context *out = nullptr;
    Status s = detail::status_of([&](heddle_error *err) { return heddle_context_process(&out, err); });
    if (!s) return s.error();
    return adopt(out);
  }

  // The value of a setting and its origin, both borrowed from the context. HEDDLE_ENOTFOUND.
  struct Setting {
    const char *value;
    const char *origin;
  };
  Result<Setting> try_setting(const std::string &key) const {
    Setting out{};
    Status s = with([&](heddle_context *c, heddle_error *err) {
      return heddle_context_setting(c, key.c_str(), &out.value, &out.origin, err);
    });
    if (!s) return s.error();
    return out;
  }

  // The keys of all settings that have a value.
  std::vector<std::string> setting_keys() const {
    std::vector<std::string> out;
    for (std::size_t i = 0; raw_ != nullptr; i++) {
      const char *key = heddle_context_setting_key(raw_, i);
      if (key == nullptr) break;
      out.emplace_back(key);
    }
    return out;
  }

  // The i-th setting that the plugins describe; HEDDLE_ENOTFOUND past the end.
  Result<heddle_setting_info> try_described(std::size_t i) const {
    return filled<heddle_setting_info>([&](heddle_context *c, heddle_setting_info *out, heddle_error *err) {
      return heddle_context_described(c, i, out, err);
    });
  }

  std::size_t plugin_count() const noexcept {
    return raw_ != nullptr ? heddle_context_plugin_count(raw_) : 0;
  }
  Result<heddle_plugin_info> try_plugin(std::size_t i) const {
    return filled<heddle_plugin_info>([&](heddle_context *c, heddle_plugin_info *out, heddle_error *err) {
      return heddle_context_plugin(c, i, out, err);
    });
  }

  // The device that DLPack identifies as (type, number).
  inline Result<Device> try_dlpack_device(std::int32_t type, std::int32_t number) const;

  inline std::vector<Device> devices() const;                                        // of all plugins
  inline Result<Device> try_device(const std::string &name) const;                   // "cpu", "sim:1"
  inline Result<std::vector<Device>> try_select(const std::string &list = {}) const; // "": the setting, or the default

  // trace_begin starts to collect spans of runs. trace_write saves them to a file as Chrome trace JSON and stops
  // collecting.
  Status try_trace_begin() const {
    return with([](heddle_context *c, heddle_error *err) { return heddle_trace_begin(c, err); });
  }
  // Reports the devices that a list omits because the probe of their plugin failed, one sentence per line.
  Result<std::string> try_left_out(const std::string &list = {}) const {
    char *text = nullptr;
    Status s = with([&](heddle_context *c, heddle_error *err) {
      return heddle_context_left_out(c, detail::or_null(list), &text, err);
    });
    if (!s) return s.error();
    const std::string out = text;
    heddle_free(text);
    return out;
  }
  Status try_trace_write(const std::string &path) const {
    return with([&](heddle_context *c, heddle_error *err) { return heddle_trace_write(c, path.c_str(), err); },
                path.c_str());
  }

#ifndef HEDDLE_CPP_NO_EXCEPTIONS
  explicit Context(const Settings &settings, Log log = nullptr) : Context(create(settings, std::move(log))) {}
  static Context create(const Settings &settings = {}, Log log = nullptr) {
    return try_create(settings, std::move(log)).value();
  }
  static Context process() {
    return try_process().value();
  }
  Setting setting(const std::string &key) const {
    return try_setting(key).value();
  }
  heddle_plugin_info plugin(std::size_t i) const {
    return try_plugin(i).value();
  }
  std::string left_out(const std::string &list = {}) const {
    return try_left_out(list).value();
  }
  inline Device device(const std::string &name) const;
  inline Device dlpack_device(std::int32_t type, std::int32_t number) const;
  inline std::vector<Device> select(const std::string &list = {}) const;
  void trace_begin() const {
    try_trace_begin().value();
  }
  void trace_write(const std::string &path) const {
    try_trace_write(path).value();
  }
#endif

private:
  friend class Model;
  friend class Generator;

  static void write_log(void *user, std::int32_t level, const char *component, const char *text) {
#ifndef HEDDLE_CPP_NO_EXCEPTIONS
    try {
      (*static_cast<Log *>(user))(level, component, text);
    } catch (...) {}
#else
    (*static_cast<Log *>(user))(level, component, text);
#endif
  }
};

// A device, with a reference to its context. An empty Device stands for the host.
class Device {
public:
  Device() noexcept = default;
  Device(Context context, heddle_device *raw) noexcept : context_(std::move(context)), raw_(raw) {}

  heddle_device *get() const noexcept {
    return raw_;
  }
  explicit operator bool() const noexcept {
    return raw_ != nullptr;
  }
  const Context &context() const noexcept {
    return context_;
  }

  // The name, such as "sim:0"; "" if this is empty.
  const char *name() const noexcept {
    return raw_ != nullptr ? heddle_device_name(raw_) : "";
  }

  // The properties of the device. Strings are borrowed from the device.
  Result<heddle_device_info> try_info() const {
    heddle_device_info out = detail::sized<heddle_device_info>();
    Status s = with([&](heddle_error *err) { return heddle_device_get_info(raw_, &out, err); });
    if (!s) return s.error();
    return out;
  }

  // Success, or HEDDLE_EDEVICE with the first error message if the device was lost since it was opened.
  Status try_health() const {
    return with([&](heddle_error *err) { return heddle_device_health(raw_, err); });
  }

  // Reopens a lost device. HEDDLE_EBUSY while an executor or a model uses it.
  Status try_reopen() const {
    return with([&](heddle_error *err) { return heddle_device_reopen(raw_, err); });
  }

#ifndef HEDDLE_CPP_NO_EXCEPTIONS
  heddle_device_info info() const {
    return try_info().value();
  }
  void health() const {
    try_health().value();
  }
  void reopen() const {
    try_reopen().value();
  }
#endif

private:
  template <class Call> Status with(Call &&call) const {
    if (raw_ == nullptr) return Error(HEDDLE_EINVAL, "this device is empty: it stands for the host");
    return detail::status_of(call);
  }

  Context context_;
  heddle_device *raw_ = nullptr;
};

inline std::vector<Device> Context::devices() const {
  std::vector<Device> out;
  for (std::size_t i = 0, n = raw_ != nullptr ? heddle_context_device_count(raw_) : 0; i < n; i++)
    out.emplace_back(*this, heddle_context_device(raw_, i));
  return out;
}

inline Result<Device> Context::try_device(const std::string &name) const {
  heddle_device *out = nullptr;
  Status s = with(
      [&](heddle_context *c, heddle_error *err) { return heddle_context_find_device(c, name.c_str(), &out, err); });
  if (!s) return s.error();
  return Device(*this, out);
}

inline Result<Device> Context::try_dlpack_device(std::int32_t type, std::int32_t number) const {
  heddle_device *out = nullptr;
  Status s = with(
      [&](heddle_context *c, heddle_error *err) { return heddle_context_dlpack_device(c, type, number, &out, err); });
  if (!s) return s.error();
  return Device(*this, out);
}

inline Result<std::vector<Device>> Context::try_select(const std::string &list) const {
  std::vector<heddle_device *> found(16);
  std::size_t n = 0;
  for (;;) {
    Status s = with([&](heddle_context *c, heddle_error *err) {
      return heddle_context_select(c, detail::or_null(list), found.data(), found.size(), &n, nullptr, err);
    });
    if (!s) return s.error();
    if (n <= found.size()) break;
    found.resize(n);
  }
  std::vector<Device> out;
  for (std::size_t i = 0; i < n; i++) out.emplace_back(*this, found[i]);
  return out;
}

#ifndef HEDDLE_CPP_NO_EXCEPTIONS
inline Device Context::device(const std::string &name) const {
  return try_device(name).value();
}
inline Device Context::dlpack_device(std::int32_t type, std::int32_t number) const {
  return try_dlpack_device(type, number).value();
}
inline std::vector<Device> Context::select(const std::string &list) const {
  return try_select(list).value();
}
#endif

} // namespace heddle

#endif
