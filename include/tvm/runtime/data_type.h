// tvm/runtime/data_type.h: types of elements, and their names, for programs written for TVM's C++ runtime. Written for
// Heddle; the names are TVM's. bool is uint of 1 bit, as in TVM.
#ifndef TVM_RUNTIME_DATA_TYPE_H_
#define TVM_RUNTIME_DATA_TYPE_H_

#include <cstdint>
#include <cstdlib>
#include <functional>
#include <ostream>
#include <string>

#include <tvm/runtime/c_runtime_api.h>
#include <tvm/runtime/logging.h>

namespace tvm {
namespace runtime {

inline bool TypeMatch(DLDataType t, int code, int bits, int lanes = 1) {
  return t.code == code && t.bits == bits && t.lanes == lanes;
}

inline bool TypeEqual(DLDataType a, DLDataType b) {
  return a.code == b.code && a.bits == b.bits && a.lanes == b.lanes;
}

inline int GetVectorBytes(DLDataType t) {
  return (t.bits * t.lanes + 7) / 8;
}

// "float32", "int8x4", "bool", "handle"; "" is void.
inline std::string DLDataType2String(DLDataType t) {
  static const char *const names[] = {"int", "uint", "float", "handle", "bfloat", "complex", "bool"};
  if (t.bits == 0) return "";
  if (t.code == kDLUInt && t.bits == 1 && t.lanes == 1) return "bool";
  std::string name;
  if (t.code < sizeof names / sizeof names[0]) {
    name = names[t.code];
  } else {
    name = "custom[";
    name.append(std::to_string(static_cast<int>(t.code))).append("]");
  }
  if (t.code == kDLOpaqueHandle) return name;
  name.append(std::to_string(static_cast<int>(t.bits)));
  if (t.lanes != 1) name.append("x").append(std::to_string(static_cast<int>(t.lanes)));
  return name;
}

inline DLDataType String2DLDataType(const std::string &text) {
  struct Name {
    const char *text;
    DLDataTypeCode code;
    std::uint8_t bits; // where the name has none
  };
  static const Name names[] = {{"int", kDLInt, 32},
                               {"uint", kDLUInt, 32},
                               {"float", kDLFloat, 32},
                               {"bfloat", kDLBfloat, 16},
                               {"handle", kDLOpaqueHandle, 64}};
  if (text.empty()) return DLDataType{static_cast<std::uint8_t>(kDLOpaqueHandle), 0, 0};
  if (text == "bool") return DLDataType{static_cast<std::uint8_t>(kDLUInt), 1, 1};
  for (const Name &name : names) {
    const std::string begin = name.text;
    if (text.compare(0, begin.size(), begin) != 0) continue;
    const char *at = text.c_str() + begin.size();
    char *end = nullptr;
    unsigned long bits = name.bits, lanes = 1;
    if (*at >= '0' && *at <= '9') bits = std::strtoul(at, &end, 10);
    else end = const_cast<char *>(at);
    if (*end == 'x' && end[1] >= '0' && end[1] <= '9') lanes = std::strtoul(end + 1, &end, 10);
    if (*end != '\0' || bits == 0 || bits > 255 || lanes == 0 || lanes > 65535) break;
    return DLDataType{static_cast<std::uint8_t>(name.code), static_cast<std::uint8_t>(bits),
                      static_cast<std::uint16_t>(lanes)};
  }
  throw Error("unknown type " + text);
}

// A type of elements, with its queries.
class DataType {
public:
  enum TypeCode { kInt = kDLInt, kUInt = kDLUInt, kFloat = kDLFloat, kHandle = kDLOpaqueHandle, kBFloat = kDLBfloat };

  DataType() : DataType(kHandle, 0, 0) {}
  explicit DataType(DLDataType t) : data_(t) {}
  DataType(int code, int bits, int lanes)
      : data_{static_cast<std::uint8_t>(code), static_cast<std::uint8_t>(bits), static_cast<std::uint16_t>(lanes)} {}

  int code() const {
    return data_.code;
  }
  int bits() const {
    return data_.bits;
  }
  int bytes() const {
    return (bits() + 7) / 8;
  }
  int lanes() const {
    return data_.lanes;
  }
  bool is_scalar() const {
    return lanes() == 1;
  }
  bool is_bool() const {
    return code() == kUInt && bits() == 1;
  }
  bool is_float() const {
    return code() == kFloat;
  }
  bool is_float16() const {
    return is_float() && bits() == 16;
  }
  bool is_bfloat16() const {
    return code() == kBFloat && bits() == 16;
  }
  bool is_int() const {
    return code() == kInt;
  }
  bool is_uint() const {
    return code() == kUInt;
  }
  bool is_handle() const {
    return code() == kHandle && !is_void();
  }
  bool is_void() const {
    return code() == kHandle && bits() == 0 && lanes() == 0;
  }
  bool is_vector() const {
    return lanes() > 1;
  }
  bool is_bool_vector() const {
    return is_vector() && bits() == 1;
  }
  DataType with_lanes(int n) const {
    return DataType(code(), bits(), n);
  }
  DataType with_bits(int n) const {
    return DataType(code(), n, lanes());
  }
  DataType element_of() const {
    return with_lanes(1);
  }
  bool operator==(const DataType &other) const {
    return TypeEqual(data_, other.data_);
  }
  bool operator!=(const DataType &other) const {
    return !(*this == other);
  }
  operator DLDataType() const {
    return data_;
  }

  static DataType Int(int bits, int lanes = 1) {
    return DataType(kInt, bits, lanes);
  }
  static DataType UInt(int bits, int lanes = 1) {
    return DataType(kUInt, bits, lanes);
  }
  static DataType Float(int bits, int lanes = 1) {
    return DataType(kFloat, bits, lanes);
  }
  static DataType BFloat(int bits, int lanes = 1) {
    return DataType(kBFloat, bits, lanes);
  }
  static DataType Bool(int lanes = 1) {
    return UInt(1, lanes);
  }
  static DataType Handle(int bits = 64, int lanes = 1) {
    return DataType(kHandle, bits, lanes);
  }
  static DataType Void() {
    return DataType();
  }

private:
  DLDataType data_;
};

inline std::string DLDataType2String(const DataType &t) {
  return DLDataType2String(static_cast<DLDataType>(t));
}
inline std::ostream &operator<<(std::ostream &out, DLDataType t) {
  return out << DLDataType2String(t);
}
inline std::ostream &operator<<(std::ostream &out, const DataType &t) {
  return out << DLDataType2String(t);
}
inline bool operator==(const DLDataType &a, const DLDataType &b) {
  return TypeEqual(a, b);
}
inline bool operator!=(const DLDataType &a, const DLDataType &b) {
  return !TypeEqual(a, b);
}

} // namespace runtime

using runtime::DataType;

} // namespace tvm

namespace std {
template <> struct hash<::tvm::runtime::DataType> {
  size_t operator()(const ::tvm::runtime::DataType &t) const {
    return hash<int>()(t.code() << 24 | t.bits() << 16 | t.lanes());
  }
};
} // namespace std

#endif
