// tvm/runtime/detail/arg_value.h: values of calls, borrowed, and what they are converted to; part of packed_func.h.
#ifndef TVM_RUNTIME_DETAIL_ARG_VALUE_H_
#define TVM_RUNTIME_DETAIL_ARG_VALUE_H_

#include <limits>
#include <string>

#include <tvm/runtime/data_type.h>
#include <tvm/runtime/detail/module_ref.h>
#include <tvm/runtime/ndarray.h>

namespace tvm {
namespace runtime {

class PackedFunc;
template <class F> class TypedPackedFunc;

inline const char *ArgTypeCode2Str(int code) {
  switch (code) {
  case kDLInt: return "int";
  case kDLUInt: return "uint";
  case kDLFloat: return "float";
  case kTVMStr: return "str";
  case kTVMBytes: return "bytes";
  case kTVMOpaqueHandle: return "handle";
  case kTVMNullptr: return "NULL";
  case kTVMDLTensorHandle: return "ArrayHandle";
  case kTVMDataType: return "DLDataType";
  case kDLDevice: return "DLDevice";
  case kTVMPackedFuncHandle: return "FunctionHandle";
  case kTVMModuleHandle: return "ModuleHandle";
  case kTVMNDArrayHandle: return "NDArrayContainer";
  case kTVMObjectHandle: return "Object";
  case kTVMObjectRValueRefArg: return "ObjectRValueRefArg";
  default: return "a value of an unknown type";
  }
}

namespace detail {

template <class T, class = void> struct To; // To<T>::of(value): the value as a T, or an exception

// Classes of references that convert by what the object is.
template <class T>
struct IsRef
    : std::integral_constant<bool, std::is_base_of<ObjectRef, T>::value && !std::is_same<T, Module>::value &&
                                       !std::is_same<T, NDArray>::value && !std::is_same<T, PackedFunc>::value> {};

} // namespace detail

// A value with its type code, borrowed from where it is.
class TVMPODValue_ {
public:
  operator double() const;
  operator int64_t() const;
  operator uint64_t() const;
  operator int() const;
  operator bool() const;
  operator void *() const;
  operator DLTensor *() const;
  operator DLDevice() const;
  operator DLDataType() const;
  operator DataType() const;
  operator std::string() const;
  operator NDArray() const;
  operator Module() const;
  operator PackedFunc() const;
  template <class F> operator TypedPackedFunc<F>() const;
  template <class T, class = std::enable_if_t<detail::IsRef<T>::value>> operator T() const {
    return detail::To<T>::of(*this);
  }

  int type_code() const {
    return type_code_;
  }
  const TVMValue &value() const {
    return value_;
  }
  template <class T> T *ptr() const {
    return static_cast<T *>(value_.v_handle);
  }
  // Whether it is an object of the class, or none.
  template <class T> bool IsObjectRef() const {
    if (type_code_ == kTVMNullptr) return T::_type_is_nullable;
    const bool is_counted = type_code_ == kTVMObjectHandle || type_code_ == kTVMStr || type_code_ == kTVMModuleHandle ||
                            type_code_ == kTVMPackedFuncHandle || type_code_ == kTVMNDArrayHandle;
    if (!is_counted) return false;
    const ObjectPtr<Object> one = object();
    return dynamic_cast<const typename T::ContainerType *>(one.get()) != nullptr;
  }
  template <class T> T AsObjectRef() const {
    return detail::To<T>::of(*this);
  }
  inline ObjectPtr<Object> object() const; // for these headers: the value as an object, with a reference

  [[noreturn]] void wrong(const char *expected) const { // for these headers
    throw Error(std::string("expected ") + expected + " but got " + ArgTypeCode2Str(type_code_));
  }

protected:
  TVMPODValue_() : type_code_(kTVMNullptr) {
    value_.v_handle = nullptr;
  }
  TVMPODValue_(TVMValue value, int type_code) : value_(value), type_code_(type_code) {}

  TVMValue value_;
  int type_code_;
};

// An argument of a call, valid for the call.
class TVMArgValue : public TVMPODValue_ {
public:
  TVMArgValue() = default;
  TVMArgValue(TVMValue value, int type_code) : TVMPODValue_(value, type_code) {}
};

// The arguments of a call.
class TVMArgs {
public:
  const TVMValue *values;
  const int *type_codes;
  int num_args;

  TVMArgs(const TVMValue *values_, const int *type_codes_, int num_args_)
      : values(values_), type_codes(type_codes_), num_args(num_args_) {}
  int size() const {
    return num_args;
  }
  TVMArgValue operator[](int i) const {
    if (i < 0 || i >= num_args)
      throw Error("not enough arguments: " + std::to_string(num_args) + " passed, but argument " + std::to_string(i) +
                  " is read");
    return TVMArgValue(values[i], type_codes[i]);
  }
  template <class T> T At(int i) const {
    return detail::To<T>::of((*this)[i]);
  }
};

namespace detail {

// Numbers: the value has to fit.
template <class T> struct To<T, std::enable_if_t<std::is_integral<T>::value || std::is_enum<T>::value>> {
  static T of(const TVMPODValue_ &v) {
    if (v.type_code() == kTVMNullptr && std::is_same<T, int64_t>::value) return static_cast<T>(0);
    if (v.type_code() != kDLInt) v.wrong("int");
    const int64_t n = v.value().v_int64;
    if (std::is_same<T, bool>::value) return static_cast<T>(n != 0);
    const T out = static_cast<T>(n);
    const bool is_wide = sizeof(T) == sizeof(int64_t); // uint64 has all bits
    if (!is_wide && static_cast<int64_t>(out) != n) throw Error("the value " + std::to_string(n) + " does not fit");
    return out;
  }
};
template <class T> struct To<T, std::enable_if_t<std::is_floating_point<T>::value>> {
  static T of(const TVMPODValue_ &v) {
    if (v.type_code() == kDLInt) return static_cast<T>(v.value().v_int64);
    if (v.type_code() != kDLFloat) v.wrong("float");
    return static_cast<T>(v.value().v_float64);
  }
};
template <> struct To<void *> {
  static void *of(const TVMPODValue_ &v) {
    switch (v.type_code()) {
    case kTVMNullptr: return nullptr;
    case kTVMOpaqueHandle:
    case kTVMDLTensorHandle:
    case kTVMNDArrayHandle: return v.value().v_handle;
    default: v.wrong("handle");
    }
  }
};
template <> struct To<DLTensor *> {
  static DLTensor *of(const TVMPODValue_ &v) {
    if (v.type_code() == kTVMNullptr) return nullptr;
    if (v.type_code() != kTVMDLTensorHandle && v.type_code() != kTVMNDArrayHandle) v.wrong("DLTensor* or NDArray");
    return static_cast<DLTensor *>(v.value().v_handle);
  }
};
template <> struct To<const char *> { // valid as long as the value is
  static const char *of(const TVMPODValue_ &v) {
    if (v.type_code() != kTVMStr) v.wrong("str");
    return v.value().v_str;
  }
};
template <> struct To<std::string> {
  static std::string of(const TVMPODValue_ &v) {
    if (v.type_code() == kTVMDataType) return DLDataType2String(v.value().v_type);
    if (v.type_code() == kTVMBytes) {
      const TVMByteArray *bytes = v.ptr<TVMByteArray>();
      return bytes->size > 0 ? std::string(bytes->data, bytes->size) : std::string();
    }
    if (v.type_code() == kTVMObjectHandle)
      if (const StringObj *text = dynamic_cast<const StringObj *>(v.ptr<Object>())) return text->text;
    if (v.type_code() != kTVMStr) v.wrong("str");
    return v.value().v_str;
  }
};
template <> struct To<DLDevice> {
  static DLDevice of(const TVMPODValue_ &v) {
    if (v.type_code() != kDLDevice) v.wrong("DLDevice");
    return v.value().v_device;
  }
};
template <> struct To<DLDataType> { // also by its name
  static DLDataType of(const TVMPODValue_ &v) {
    if (v.type_code() == kTVMStr) return String2DLDataType(v.value().v_str);
    if (v.type_code() == kTVMNullptr) return DataType::Void();
    if (v.type_code() != kTVMDataType) v.wrong("DLDataType");
    return v.value().v_type;
  }
};
template <> struct To<DataType> {
  static DataType of(const TVMPODValue_ &v) {
    return DataType(To<DLDataType>::of(v));
  }
};

} // namespace detail
} // namespace runtime
} // namespace tvm

#endif
