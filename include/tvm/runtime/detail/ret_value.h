// tvm/runtime/detail/ret_value.h: values of calls that own what they name, and arguments that are stored for a call; part
// of packed_func.h.
#ifndef TVM_RUNTIME_DETAIL_RET_VALUE_H_
#define TVM_RUNTIME_DETAIL_RET_VALUE_H_

#include <memory>
#include <vector>

#include <tvm/runtime/detail/arg_value.h>

namespace tvm {
namespace runtime {

// A result. It has its own text and bytes, and a reference of an object.
class TVMRetValue : public TVMPODValue_ {
public:
  TVMRetValue() {}
  TVMRetValue(const TVMRetValue &other) : TVMPODValue_() {
    assign(other);
  }
  TVMRetValue(TVMRetValue &&other) noexcept : TVMPODValue_() {
    swap(other);
  }
  TVMRetValue &operator=(const TVMRetValue &other) {
    if (this != &other) assign(other);
    return *this;
  }
  TVMRetValue &operator=(TVMRetValue &&other) noexcept {
    TVMRetValue taken(std::move(other));
    swap(taken);
    return *this;
  }
  TVMRetValue &operator=(const TVMPODValue_ &other) { // an argument: what it names is shared or copied
    assign(other);
    return *this;
  }
  TVMRetValue &operator=(std::nullptr_t) {
    return set(kTVMNullptr, TVMValue());
  }
  TVMRetValue &operator=(double x) {
    TVMValue v = TVMValue();
    v.v_float64 = x;
    return set(kDLFloat, v);
  }
  template <class T, class = std::enable_if_t<std::is_integral<T>::value || std::is_enum<T>::value>>
  TVMRetValue &operator=(T x) {
    TVMValue v = TVMValue();
    v.v_int64 = static_cast<int64_t>(x);
    return set(kDLInt, v);
  }
  TVMRetValue &operator=(void *x) {
    TVMValue v = TVMValue();
    v.v_handle = x;
    return set(x != nullptr ? kTVMOpaqueHandle : kTVMNullptr, v);
  }
  TVMRetValue &operator=(DLDevice x) {
    TVMValue v = TVMValue();
    v.v_device = x;
    return set(kDLDevice, v);
  }
  TVMRetValue &operator=(DLDataType x) {
    TVMValue v = TVMValue();
    v.v_type = x;
    return set(kTVMDataType, v);
  }
  TVMRetValue &operator=(const DataType &x) {
    return *this = static_cast<DLDataType>(x);
  }
  TVMRetValue &operator=(std::string x) {
    return set_text(std::move(x), kTVMStr);
  }
  TVMRetValue &operator=(const char *x) {
    return set_text(x, kTVMStr);
  }
  TVMRetValue &operator=(const TVMByteArray &x) {
    return set_text(x.size > 0 ? std::string(x.data, x.size) : std::string(), kTVMBytes);
  }
  TVMRetValue &operator=(const ObjectRef &x) {
    return set_object(ObjectPtr<Object>(const_cast<Object *>(x.get())));
  }
  template <class F> TVMRetValue &operator=(const TypedPackedFunc<F> &x) {
    return *this = static_cast<const ObjectRef &>(x.packed());
  }

  // Moves the value out for a caller in C, which takes a reference over. Texts and bytes have no owner there.
  void MoveToCHost(TVMValue *value, int *type_code) {
    if (type_code_ == kTVMStr || type_code_ == kTVMBytes) throw Error("texts and bytes are not moved to C");
    *value = value_;
    *type_code = type_code_;
    if (type_code_ == kTVMObjectHandle) object_.release();
    else if (object_ != nullptr) detail::must(TVMObjectRetain(value_.v_handle));
    *this = nullptr;
  }
  // Takes a result of the C API over; its text and bytes are copied.
  static TVMRetValue MoveFromCHost(TVMValue value, int type_code) {
    TVMRetValue out;
    switch (type_code) {
    case kTVMModuleHandle: out.set_object(detail::adopt_handle<ModuleNode>(value.v_handle)); break;
    case kTVMNDArrayHandle: out.set_object(detail::adopt_handle<NDArray::Container>(value.v_handle)); break;
    case kTVMPackedFuncHandle: out.set_object(adopt_function(value.v_handle)); break;
    case kTVMObjectHandle: {
      ObjectPtr<Object> one(static_cast<Object *>(value.v_handle));
      if (one != nullptr) one->DecRef(); // the reference that came
      out.set_object(std::move(one));
      break;
    }
    default: out.assign(TVMArgValue(value, type_code)); break;
    }
    return out;
  }

private:
  ObjectPtr<Object> object_;
  std::string text_;
  TVMByteArray bytes_ = TVMByteArray();

  inline static ObjectPtr<Object> adopt_function(TVMFunctionHandle handle);

  TVMRetValue &set(int type_code, TVMValue value) {
    object_.reset();
    value_ = value;
    type_code_ = type_code;
    return *this;
  }
  TVMRetValue &set_text(std::string text, int type_code) {
    object_.reset();
    text_ = std::move(text);
    type_code_ = type_code;
    point();
    return *this;
  }
  // The object itself, or the handle or text that it holds.
  TVMRetValue &set_object(ObjectPtr<Object> object) {
    TVMValue value = TVMValue();
    if (object == nullptr) return set(kTVMNullptr, value);
    if (const StringObj *text = dynamic_cast<const StringObj *>(object.get()))
      return set_text(text->text, object->heddle_pass(&value));
    const int type_code = object->heddle_pass(&value);
    set(type_code, value);
    object_ = std::move(object);
    return *this;
  }
  void point() {
    bytes_ = TVMByteArray{text_.data(), text_.size()};
    if (type_code_ == kTVMStr) value_.v_str = text_.c_str();
    else if (type_code_ == kTVMBytes) value_.v_handle = &bytes_;
  }
  void swap(TVMRetValue &other) noexcept {
    object_.swap(other.object_);
    text_.swap(other.text_);
    std::swap(value_, other.value_);
    std::swap(type_code_, other.type_code_);
    point();
    other.point();
  }
  void assign(const TVMPODValue_ &other) {
    switch (other.type_code()) {
    case kTVMStr:
    case kTVMBytes: set_text(detail::To<std::string>::of(other), other.type_code()); break;
    case kTVMObjectHandle:
    case kTVMModuleHandle:
    case kTVMPackedFuncHandle:
    case kTVMNDArrayHandle: set_object(other.object()); break;
    default: set(other.type_code(), other.value()); break;
    }
  }
};

// Stores the arguments of a call in arrays of values and codes. What it stores is borrowed from the arguments.
class TVMArgsSetter {
public:
  TVMArgsSetter(TVMValue *values, int *type_codes) : values_(values), type_codes_(type_codes) {}

  template <class T, class = std::enable_if_t<std::is_integral<T>::value || std::is_enum<T>::value>>
  void operator()(std::size_t i, T x) {
    if (std::is_same<T, uint64_t>::value && static_cast<uint64_t>(x) > static_cast<uint64_t>(INT64_MAX))
      throw Error("an argument of " + std::to_string(static_cast<uint64_t>(x)) + " is too large");
    values_[i].v_int64 = static_cast<int64_t>(x);
    type_codes_[i] = kDLInt;
  }
  void operator()(std::size_t i, double x) {
    values_[i].v_float64 = x;
    type_codes_[i] = kDLFloat;
  }
  void operator()(std::size_t i, std::nullptr_t) {
    pointer(i, nullptr, kTVMNullptr);
  }
  void operator()(std::size_t i, void *x) {
    pointer(i, x, x != nullptr ? kTVMOpaqueHandle : kTVMNullptr);
  }
  void operator()(std::size_t i, const DLTensor *x) {
    pointer(i, x, kTVMDLTensorHandle);
  }
  void operator()(std::size_t i, DLTensor *x) {
    pointer(i, x, kTVMDLTensorHandle);
  }
  void operator()(std::size_t i, DLDevice x) {
    values_[i].v_device = x;
    type_codes_[i] = kDLDevice;
  }
  void operator()(std::size_t i, DLDataType x) {
    values_[i].v_type = x;
    type_codes_[i] = kTVMDataType;
  }
  void operator()(std::size_t i, const DataType &x) {
    (*this)(i, static_cast<DLDataType>(x));
  }
  void operator()(std::size_t i, const char *x) {
    pointer(i, x, x != nullptr ? kTVMStr : kTVMNullptr);
  }
  // A text with NUL bytes goes as bytes, which are not cut.
  void operator()(std::size_t i, const std::string &x) {
    if (x.find('\0') == std::string::npos) {
      (*this)(i, x.c_str());
      return;
    }
    bytes_.emplace_back(new TVMByteArray{x.data(), x.size()});
    (*this)(i, *bytes_.back());
  }
  void operator()(std::size_t i, const TVMByteArray &x) {
    pointer(i, &x, kTVMBytes);
  }
  void operator()(std::size_t i, const TVMPODValue_ &x) {
    values_[i] = x.value();
    type_codes_[i] = x.type_code();
  }
  void operator()(std::size_t i, const ObjectRef &x) {
    if (x.defined()) type_codes_[i] = x.get()->heddle_pass(&values_[i]);
    else pointer(i, nullptr, kTVMNullptr);
  }
  template <class F> void operator()(std::size_t i, const TypedPackedFunc<F> &x) {
    (*this)(i, static_cast<const ObjectRef &>(x.packed()));
  }

private:
  TVMValue *values_;
  int *type_codes_;
  std::vector<std::unique_ptr<TVMByteArray>> bytes_;

  void pointer(std::size_t i, const void *x, int type_code) {
    values_[i].v_handle = const_cast<void *>(x);
    type_codes_[i] = type_code;
  }
};

} // namespace runtime
} // namespace tvm

#endif
