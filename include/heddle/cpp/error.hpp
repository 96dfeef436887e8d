// heddle/cpp/error.hpp: the results of calls that can fail (Result<T>, Status and Error), and the counted handle on
// which the classes of heddle.hpp are built.
//
// Each function that can fail has two forms: try_NAME returns a Result; NAME returns the value and throws the Error. If
// HEDDLE_CPP_NO_EXCEPTIONS is defined (this header defines it under -fno-exceptions), only try_NAME exists. All files
// of a program must make the same choice.
#ifndef HEDDLE_CPP_ERROR_HPP
#define HEDDLE_CPP_ERROR_HPP

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <memory>
#include <string>
#include <utility>
#include <variant>

#include "heddle/status.h"

#if !defined(HEDDLE_CPP_NO_EXCEPTIONS) && !defined(__cpp_exceptions)
#define HEDDLE_CPP_NO_EXCEPTIONS 1
#endif

namespace heddle {

namespace detail {

// The node and device that an error names; each is empty if not given.
inline heddle_failure failure_of(const heddle_error &err) noexcept {
  heddle_failure about = {};
  about.struct_size = sizeof about;
  (void)heddle_error_failure(&err, &about);
  return about;
}

#ifndef HEDDLE_CPP_NO_EXCEPTIONS
// Exceptions that left functions of the program and pass through Heddle to the calls that rethrow them on the same
// thread. The number of heddle_error_mark identifies each. The thread keeps the last few: code in between may handle one
// failure and report another.
struct Passing {
  static constexpr std::size_t room = 4;
  std::exception_ptr exception[room];
  std::uint64_t origin[room] = {};
  std::size_t next = 0;
};

HEDDLE_API inline Passing &passing() noexcept {
  static thread_local Passing one;
  return one;
}

inline void keep_passing(heddle_error &err, std::exception_ptr exception) noexcept {
  Passing &p = passing();
  p.origin[p.next] = heddle_error_mark(&err);
  p.exception[p.next] = std::move(exception);
  p.next = (p.next + 1) % Passing::room;
}

inline std::exception_ptr take_passing(const heddle_error &err) noexcept {
  const std::uint64_t origin = heddle_error_origin(&err);
  if (origin == 0) return nullptr;
  Passing &p = passing();
  for (std::size_t i = 0; i < Passing::room; i++)
    if (p.origin[i] == origin) return std::exchange(p.exception[i], nullptr);
  return nullptr;
}
#endif

} // namespace detail

// Describes why a call failed. Copies share the text. A default Error has the status HEDDLE_OK. The class is exported,
// so that an Error can be caught in another library than the one that threw it.
class HEDDLE_API Error : public std::exception {
public:
  Error() noexcept = default;

  // For functions of the program that report an error: the caller receives the status and the text.
  Error(heddle_status status, std::string text, std::string file = {}, std::int32_t api_code = 0)
      : facts_(std::make_shared<const Facts>(
            Facts{status, api_code, -1, std::move(text), std::move(file), {}, {}, nullptr})) {}

  // From a C call. file is the path that the call used, or NULL.
  Error(heddle_status status, const heddle_error &err, const char *file)
      : Error(status, err, detail::failure_of(err), file) {}

  heddle_status status() const noexcept {
    return facts_ ? facts_->status : HEDDLE_OK;
  }

  // The name of the status, such as "HEDDLE_EINVAL".
  const char *status_name() const noexcept {
    return heddle_status_name(status());
  }

  // The message: one line that names the file, node or device and says what to do.
  const char *what() const noexcept override {
    return facts_ ? facts_->text.c_str() : "";
  }

  // The driver's own error code, or 0.
  std::int32_t api_code() const noexcept {
    return facts_ ? facts_->api_code : 0;
  }

  // The rank whose failure it is, in a context of ranks; -1 if none is named.
  std::int32_t rank() const noexcept {
    return facts_ ? facts_->rank : -1;
  }

  // The node and the device of the failure ("conv1", "sim:0"), and the path of the call; "" if there is none.
  std::string node() const {
    return facts_ ? facts_->node : std::string();
  }
  std::string device() const {
    return facts_ ? facts_->device : std::string();
  }
  std::string file() const {
    return facts_ ? facts_->file : std::string();
  }

  // The exception that a function of the program threw on this thread during the call, or none.
  std::exception_ptr cause() const noexcept {
    return facts_ ? facts_->cause : nullptr;
  }

#ifndef HEDDLE_CPP_NO_EXCEPTIONS
  // Throws the cause if there is one, otherwise this error.
  [[noreturn]] void raise() const {
    if (cause()) std::rethrow_exception(cause());
    throw *this;
  }
#endif

private:
  struct Facts {
    heddle_status status;
    std::int32_t api_code, rank;
    std::string text, file, node, device;
    std::exception_ptr cause;
  };

  Error(heddle_status status, const heddle_error &err, const heddle_failure &about, const char *file)
      : facts_(std::make_shared<const Facts>(
            Facts{status, err.api_code, about.rank, err.text[0] != '\0' ? err.text : heddle_status_text(status),
                  file != nullptr ? file : "", about.node_name, about.device, cause_of(err)})) {}

  static std::exception_ptr cause_of(const heddle_error &err) noexcept {
#ifndef HEDDLE_CPP_NO_EXCEPTIONS
    return detail::take_passing(err);
#else
    (void)err;
    return nullptr;
#endif
  }

  std::shared_ptr<const Facts> facts_;
};

// A value or an Error. Reading the value of a failed Result with * or -> is a programming error, as with std::optional;
// value() throws.
template <class T> class [[nodiscard]] Result {
public:
  Result(T value) : of_(std::in_place_index<0>, std::move(value)) {}
  Result(Error error) noexcept : of_(std::in_place_index<1>, std::move(error)) {}

  bool ok() const noexcept {
    return of_.index() == 0;
  }
  explicit operator bool() const noexcept {
    return ok();
  }
  heddle_status status() const noexcept {
    return ok() ? HEDDLE_OK : std::get_if<1>(&of_)->status();
  }
  Error error() const noexcept {
    return ok() ? Error() : *std::get_if<1>(&of_);
  }

  T &operator*() &noexcept {
    return *std::get_if<0>(&of_);
  }
  const T &operator*() const &noexcept {
    return *std::get_if<0>(&of_);
  }
  T &&operator*() &&noexcept {
    return std::move(*std::get_if<0>(&of_));
  }
  T *operator->() noexcept {
    return std::get_if<0>(&of_);
  }
  const T *operator->() const noexcept {
    return std::get_if<0>(&of_);
  }
  T value_or(T other) && {
    return ok() ? std::move(**this) : std::move(other);
  }

#ifndef HEDDLE_CPP_NO_EXCEPTIONS
  T value() && {
    if (!ok()) std::get_if<1>(&of_)->raise();
    return std::move(**this);
  }
  const T &value() const & {
    if (!ok()) std::get_if<1>(&of_)->raise();
    return **this;
  }
#endif

private:
  std::variant<T, Error> of_;
};

template <> class [[nodiscard]] Result<void> {
public:
  Result() noexcept = default;
  Result(Error error) noexcept : error_(std::move(error)) {}

  bool ok() const noexcept {
    return error_.status() == HEDDLE_OK;
  }
  explicit operator bool() const noexcept {
    return ok();
  }
  heddle_status status() const noexcept {
    return error_.status();
  }
  Error error() const noexcept {
    return error_;
  }

#ifndef HEDDLE_CPP_NO_EXCEPTIONS
  void value() const {
    if (!ok()) error_.raise();
  }
#endif

private:
  Error error_;
};

using Status = Result<void>;

// The version of the library, such as "0.1.0".
inline const char *version() noexcept {
  return heddle_version();
}

namespace detail {

// Makes a C call: call(heddle_error *) returns a status. file is the path that the call uses, or NULL.
template <class Call> Status status_of(Call &&call, const char *file = nullptr) {
  heddle_error err;
  err.status = HEDDLE_OK;
  err.api_code = 0;
  err.text[0] = '\0';
  const heddle_status status = call(&err);
  if (status == HEDDLE_OK) return {};
  return Error(status, err, file);
}

// A zeroed C struct whose struct_size is set.
template <class T> T sized() noexcept {
  T out{};
  out.struct_size = sizeof out;
  return out;
}

inline const char *or_null(const std::string &text) noexcept {
  return text.empty() ? nullptr : text.c_str();
}

// A counted reference to a C object. A copy adds a reference. An object that was moved from or default-constructed is
// empty: it converts to false, its functions that can fail return an error, and the others return zeros.
template <class Self, class Raw, Raw *(*Retain)(Raw *), void (*Release)(Raw *)> class Shared {
public:
  Shared() noexcept = default;
  Shared(const Shared &other) noexcept : raw_(other.raw_ != nullptr ? Retain(other.raw_) : nullptr) {}
  Shared(Shared &&other) noexcept : raw_(std::exchange(other.raw_, nullptr)) {}
  Shared &operator=(Shared other) noexcept {
    std::swap(raw_, other.raw_);
    return *this;
  }
  ~Shared() {
    if (raw_ != nullptr) Release(raw_);
  }

  // adopt takes over a reference from C code; share adds one.
  static Self adopt(Raw *raw) noexcept {
    Self made;
    made.raw_ = raw;
    return made;
  }
  static Self share(Raw *raw) noexcept {
    return adopt(raw != nullptr ? Retain(raw) : nullptr);
  }

  // The C object, borrowed, for calls of the C API.
  Raw *get() const noexcept {
    return raw_;
  }
  explicit operator bool() const noexcept {
    return raw_ != nullptr;
  }

  // Transfers the reference to C code and leaves this empty.
  Raw *detach() noexcept {
    return std::exchange(raw_, nullptr);
  }

  void swap(Shared &other) noexcept {
    std::swap(raw_, other.raw_);
  }

protected:
  static Error empty() {
    return Error(HEDDLE_EINVAL, std::string("this ") + Self::noun() + " is empty: it was moved from, or never set");
  }

  // Makes call(raw, heddle_error *) on this object.
  template <class Call> Status with(Call &&call, const char *file = nullptr) const {
    if (raw_ == nullptr) return empty();
    return status_of([&](heddle_error *err) { return call(raw_, err); }, file);
  }

  // The same for a call that also creates an object of class Other: call(raw, Other's raw **, heddle_error *).
  template <class Other, class OtherRaw, class Call>
  Result<Other> made_with(Call &&call, const char *file = nullptr) const {
    OtherRaw *out = nullptr;
    Status s = with([&](Raw *raw, heddle_error *err) { return call(raw, &out, err); }, file);
    if (!s) return s.error();
    return Other::adopt(out);
  }

  // Returns a struct that call(raw, T *, heddle_error *) fills; struct_size is set before the call.
  template <class T, class Call> Result<T> filled(Call &&call) const {
    T out = sized<T>();
    Status s = with([&](Raw *raw, heddle_error *err) { return call(raw, &out, err); });
    if (!s) return s.error();
    return out;
  }

  Raw *raw_ = nullptr;
};

} // namespace detail
} // namespace heddle

#endif
