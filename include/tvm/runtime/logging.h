// tvm/runtime/logging.h: the exceptions, LOG, CHECK and ICHECK for programs written for TVM's C++ runtime. Written for
// Heddle; the names are TVM's. C++14 and newer.
//
// LOG(INFO), LOG(WARNING) and LOG(ERROR) write one line to stderr. LOG(FATAL), CHECK and ICHECK throw
// tvm::runtime::InternalError, which is a dmlc::Error and a std::runtime_error.
#ifndef TVM_RUNTIME_LOGGING_H_
#define TVM_RUNTIME_LOGGING_H_

#include <cstddef>
#include <cstdio>
#include <ctime>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>

#include <tvm/runtime/c_runtime_api.h>

namespace dmlc {

struct Error : public std::runtime_error {
  explicit Error(const std::string &text) : std::runtime_error(text) {}
};

} // namespace dmlc

namespace tvm {
namespace runtime {

// What a call of the C API reports, with its text.
class Error : public ::dmlc::Error {
public:
  explicit Error(const std::string &text) : ::dmlc::Error(text) {}
};

// What LOG(FATAL), CHECK and ICHECK throw.
class InternalError : public Error {
public:
  InternalError(const std::string &file, int line, const std::string &message)
      : Error(file + ":" + std::to_string(line) + ": " + message), file_(file), message_(message), line_(line) {}
  const std::string &file() const {
    return file_;
  }
  const std::string &message() const {
    return message_;
  }
  int lineno() const {
    return line_;
  }

private:
  std::string file_, message_;
  int line_;
};

namespace detail {

// Throws the error of a call of the C API that failed.
inline void must(int status) {
  if (status != 0) throw Error(TVMGetLastError());
}

// Collects a message, and throws it where the statement ends.
class LogFatal {
public:
  LogFatal(const char *file, int line) : file_(file), line_(line) {}
  LogFatal(const LogFatal &) = delete;
  LogFatal &operator=(const LogFatal &) = delete;
  [[noreturn]] ~LogFatal() noexcept(false) {
    throw InternalError(file_, line_, text_.str());
  }
  std::ostringstream &stream() {
    return text_;
  }

private:
  std::ostringstream text_;
  const char *file_;
  int line_;
};

// Collects a message, and writes it where the statement ends.
class LogMessage {
public:
  LogMessage(const char *file, int line, const char *level) {
    char when[16] = "";
    const std::time_t now = std::time(nullptr);
    std::tm parts;
    if (localtime_r(&now, &parts) != nullptr) std::strftime(when, sizeof when, "%H:%M:%S", &parts);
    text_ << '[' << when << "] " << file << ':' << line << ": " << level;
  }
  LogMessage(const LogMessage &) = delete;
  LogMessage &operator=(const LogMessage &) = delete;
  ~LogMessage() {
    text_ << '\n';
    std::fputs(text_.str().c_str(), stderr);
  }
  std::ostringstream &stream() {
    return text_;
  }

private:
  std::ostringstream text_;
};

// Makes the value of a conditional expression void; & binds weaker than << and stronger than ?:.
struct LogVoidify {
  void operator&(std::ostream &) const {}
};

template <class T> void log_value(std::ostream &out, const T &value) {
  out << value;
}
inline void log_value(std::ostream &out, std::nullptr_t) { // C++14 has no << for it
  out << "nullptr";
}

// The two values of a comparison that does not hold; null where it holds.
#define TVM_HEDDLE_COMPARE(name, op) \
  template <class X, class Y> std::unique_ptr<std::string> LogCheck_##name(const X &x, const Y &y) { \
    if (x op y) return nullptr; \
    std::ostringstream text; \
    text << " ("; \
    log_value(text, x); \
    text << " vs. "; \
    log_value(text, y); \
    text << ")"; \
    return std::unique_ptr<std::string>(new std::string(text.str())); \
  } \
  inline std::unique_ptr<std::string> LogCheck_##name(int x, int y) { \
    return LogCheck_##name<int, int>(x, y); \
  }
#if defined(__GNUC__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wsign-compare"
#endif
TVM_HEDDLE_COMPARE(LT, <)
TVM_HEDDLE_COMPARE(GT, >)
TVM_HEDDLE_COMPARE(LE, <=)
TVM_HEDDLE_COMPARE(GE, >=)
TVM_HEDDLE_COMPARE(EQ, ==)
TVM_HEDDLE_COMPARE(NE, !=)
#if defined(__GNUC__)
#pragma GCC diagnostic pop
#endif
#undef TVM_HEDDLE_COMPARE

template <class T> T &&CheckNotNull(const char *file, int line, const char *text, T &&value) {
  if (value == nullptr) LogFatal(file, line).stream() << text;
  return static_cast<T &&>(value);
}

} // namespace detail
} // namespace runtime

using runtime::Error;
using runtime::InternalError;

} // namespace tvm

#undef LOG
#undef LOG_INFO
#undef LOG_WARNING
#undef LOG_ERROR
#undef LOG_FATAL
#undef LOG_IF
#undef DLOG
#undef DLOG_INFO
#undef VLOG
#undef CHECK
#undef CHECK_LT
#undef CHECK_GT
#undef CHECK_LE
#undef CHECK_GE
#undef CHECK_EQ
#undef CHECK_NE
#undef CHECK_NOTNULL
#undef DCHECK
#undef DCHECK_LT
#undef DCHECK_GT
#undef DCHECK_LE
#undef DCHECK_GE
#undef DCHECK_EQ
#undef DCHECK_NE

#define TVM_HEDDLE_VOID ::tvm::runtime::detail::LogVoidify()
#ifdef NDEBUG
#define TVM_HEDDLE_DEBUG 0
#else
#define TVM_HEDDLE_DEBUG 1
#endif

#define LOG_INFO ::tvm::runtime::detail::LogMessage(__FILE__, __LINE__, "").stream()
#define LOG_WARNING ::tvm::runtime::detail::LogMessage(__FILE__, __LINE__, "Warning: ").stream()
#define LOG_ERROR ::tvm::runtime::detail::LogMessage(__FILE__, __LINE__, "Error: ").stream()
#define LOG_FATAL ::tvm::runtime::detail::LogFatal(__FILE__, __LINE__).stream()
#define LOG_DEBUG DLOG_INFO
#define DLOG_INFO !TVM_HEDDLE_DEBUG ? (void)0 : TVM_HEDDLE_VOID &LOG_INFO
#define DLOG_WARNING !TVM_HEDDLE_DEBUG ? (void)0 : TVM_HEDDLE_VOID &LOG_WARNING
#define DLOG_ERROR !TVM_HEDDLE_DEBUG ? (void)0 : TVM_HEDDLE_VOID &LOG_ERROR
#define LOG(level) LOG_##level
#define DLOG(level) DLOG_##level
#define LOG_IF(level, condition) !(condition) ? (void)0 : TVM_HEDDLE_VOID &LOG(level)
#define DLOG_IF(level, condition) !(TVM_HEDDLE_DEBUG && (condition)) ? (void)0 : TVM_HEDDLE_VOID &LOG(level)
#define VLOG(level) true ? (void)0 : TVM_HEDDLE_VOID &LOG_INFO /* TVM_LOG_DEBUG has no effect */
#define VLOG_IS_ON(level) false

#define CHECK(x) (x) ? (void)0 : TVM_HEDDLE_VOID &LOG_FATAL << "Check failed: (" #x << ") is false: "
#define TVM_HEDDLE_CHECK_BINARY(name, op, x, y) \
  for (auto tvm_check = ::tvm::runtime::detail::LogCheck_##name(x, y); tvm_check;) \
  LOG_FATAL << "Check failed: " << #x " " #op " " #y << *tvm_check << ": "
#define CHECK_LT(x, y) TVM_HEDDLE_CHECK_BINARY(LT, <, x, y)
#define CHECK_GT(x, y) TVM_HEDDLE_CHECK_BINARY(GT, >, x, y)
#define CHECK_LE(x, y) TVM_HEDDLE_CHECK_BINARY(LE, <=, x, y)
#define CHECK_GE(x, y) TVM_HEDDLE_CHECK_BINARY(GE, >=, x, y)
#define CHECK_EQ(x, y) TVM_HEDDLE_CHECK_BINARY(EQ, ==, x, y)
#define CHECK_NE(x, y) TVM_HEDDLE_CHECK_BINARY(NE, !=, x, y)
#define CHECK_NOTNULL(x) ::tvm::runtime::detail::CheckNotNull(__FILE__, __LINE__, "Check not null: " #x, x)

#define ICHECK(x) CHECK(x)
#define ICHECK_LT(x, y) CHECK_LT(x, y)
#define ICHECK_GT(x, y) CHECK_GT(x, y)
#define ICHECK_LE(x, y) CHECK_LE(x, y)
#define ICHECK_GE(x, y) CHECK_GE(x, y)
#define ICHECK_EQ(x, y) CHECK_EQ(x, y)
#define ICHECK_NE(x, y) CHECK_NE(x, y)
#define ICHECK_NOTNULL(x) CHECK_NOTNULL(x)

#define DCHECK(x) \
  (!TVM_HEDDLE_DEBUG || (x)) ? (void)0 : TVM_HEDDLE_VOID &LOG_FATAL << "Check failed: (" #x << ") is false: "
#define TVM_HEDDLE_DCHECK_BINARY(name, x, y) \
  for (bool tvm_once = TVM_HEDDLE_DEBUG != 0; tvm_once; tvm_once = false) CHECK_##name(x, y)
#define DCHECK_LT(x, y) TVM_HEDDLE_DCHECK_BINARY(LT, x, y)
#define DCHECK_GT(x, y) TVM_HEDDLE_DCHECK_BINARY(GT, x, y)
#define DCHECK_LE(x, y) TVM_HEDDLE_DCHECK_BINARY(LE, x, y)
#define DCHECK_GE(x, y) TVM_HEDDLE_DCHECK_BINARY(GE, x, y)
#define DCHECK_EQ(x, y) TVM_HEDDLE_DCHECK_BINARY(EQ, x, y)
#define DCHECK_NE(x, y) TVM_HEDDLE_DCHECK_BINARY(NE, x, y)

#endif
