// tvm/runtime/container/string.h: text as an object, for programs written for TVM's C++ runtime. Written for Heddle; the
// names are TVM's. In a call a String is a string, as std::string is; with NUL bytes in it, it is passed as bytes.
#ifndef TVM_RUNTIME_CONTAINER_STRING_H_
#define TVM_RUNTIME_CONTAINER_STRING_H_

#include <cstring>
#include <initializer_list>
#include <ostream>
#include <string>

#include <tvm/runtime/object.h>

namespace tvm {
namespace runtime {

class StringObj : public Object {
public:
  static constexpr const char *_type_key = "runtime.String";
  TVM_DECLARE_FINAL_OBJECT_INFO(StringObj, Object)

  explicit StringObj(std::string s) : text(std::move(s)), bytes{text.data(), text.size()} {}
  StringObj(const StringObj &) = delete;
  StringObj &operator=(const StringObj &) = delete;
  int heddle_pass(TVMValue *to) const override {
    if (std::memchr(text.data(), 0, text.size()) == nullptr) {
      to->v_str = text.c_str();
      return kTVMStr;
    }
    to->v_handle = const_cast<TVMByteArray *>(&bytes);
    return kTVMBytes;
  }

  const std::string text;
  const TVMByteArray bytes;
};

class String : public ObjectRef {
public:
  using ContainerType = StringObj;

  String() : String(std::string()) {}
  String(const char *text) : String(std::string(text)) {}
  String(const char *data, std::size_t n) : String(std::string(data, n)) {}
  // Of a std::string only, so that a result converts to a String in one way.
  template <class T, class = std::enable_if_t<std::is_same<std::decay_t<T>, std::string>::value>>
  String(T &&text) : ObjectRef(make_object<StringObj>(std::forward<T>(text))) {}
  explicit String(std::nullptr_t) {}
  explicit String(ObjectPtr<Object> n) : ObjectRef(std::move(n)) {}
  String(const String &) = default;
  String(String &&) = default;
  String &operator=(const String &) = default;
  String &operator=(String &&) = default;
  String &operator=(std::string text) {
    return *this = String(std::move(text));
  }
  String &operator=(const char *text) {
    return *this = String(text);
  }

  const char *c_str() const {
    return str().c_str();
  }
  const char *data() const {
    return str().data();
  }
  std::size_t size() const {
    return str().size();
  }
  std::size_t length() const {
    return size();
  }
  bool empty() const {
    return size() == 0;
  }
  char at(std::size_t i) const {
    return str().at(i);
  }
  int compare(const String &other) const {
    return str().compare(other.str());
  }
  int compare(const std::string &other) const {
    return str().compare(other);
  }
  int compare(const char *other) const {
    return str().compare(other);
  }
  operator std::string() const {
    return str();
  }
  const std::string &str() const { // for these headers; "" where there is no object
    static const std::string none;
    return data_ != nullptr ? static_cast<const StringObj *>(data_.get())->text : none;
  }
  static bool CanConvertFrom(const std::string &) {
    return true;
  }
};

inline String operator+(const String &a, const String &b) {
  return String(a.str() + b.str());
}
inline String operator+(const String &a, const std::string &b) {
  return String(a.str() + b);
}
inline String operator+(const std::string &a, const String &b) {
  return String(a + b.str());
}
inline String operator+(const String &a, const char *b) {
  return String(a.str() + b);
}
inline String operator+(const char *a, const String &b) {
  return String(a + b.str());
}

#define TVM_HEDDLE_STRING_COMPARE(op) \
  inline bool operator op(const String &a, const String &b) { \
    return a.str() op b.str(); \
  } \
  inline bool operator op(const String &a, const std::string &b) { \
    return a.str() op b; \
  } \
  inline bool operator op(const std::string &a, const String &b) { \
    return a op b.str(); \
  } \
  inline bool operator op(const String &a, const char *b) { \
    return a.str() op b; \
  } \
  inline bool operator op(const char *a, const String &b) { \
    return a op b.str(); \
  }
TVM_HEDDLE_STRING_COMPARE(==)
TVM_HEDDLE_STRING_COMPARE(!=)
TVM_HEDDLE_STRING_COMPARE(<)
TVM_HEDDLE_STRING_COMPARE(>)
TVM_HEDDLE_STRING_COMPARE(<=)
TVM_HEDDLE_STRING_COMPARE(>=)
#undef TVM_HEDDLE_STRING_COMPARE

inline std::ostream &operator<<(std::ostream &out, const String &text) {
  return out << text.str();
}

} // namespace runtime

using runtime::String;
using runtime::StringObj;

} // namespace tvm

namespace std {
template <> struct hash<::tvm::runtime::String> {
  size_t operator()(const ::tvm::runtime::String &text) const {
    return hash<string>()(text.str());
  }
};
} // namespace std

#endif
