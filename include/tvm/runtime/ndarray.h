// tvm/runtime/ndarray.h: arrays, for programs written for TVM's C++ runtime. Written for Heddle; the names are TVM's.
// Copies are complete on return.
#ifndef TVM_RUNTIME_NDARRAY_H_
#define TVM_RUNTIME_NDARRAY_H_

#include <limits>
#include <memory>
#include <vector>

#include <tvm/runtime/container/optional.h>
#include <tvm/runtime/container/shape_tuple.h>
#include <tvm/runtime/container/string.h>
#include <tvm/runtime/data_type.h>
#include <tvm/runtime/detail/handle.h>

namespace tvm {
namespace runtime {

// Bytes of the elements; those of less than one byte are packed, but for bool, which has one byte each.
inline std::size_t GetDataSize(const DLTensor &t) {
  std::size_t n = 1;
  for (int i = 0; i < t.ndim; i++) n *= static_cast<std::size_t>(t.shape[i]);
  const std::size_t bits = static_cast<std::size_t>(t.dtype.bits) * t.dtype.lanes;
  return bits == 1 ? n : (n * bits + 7) / 8;
}

inline bool IsContiguous(const DLTensor &t) {
  if (t.strides == nullptr) return true;
  int64_t wanted = 1;
  for (int i = t.ndim; i-- > 0;) {
    if (t.shape[i] != 1 && t.strides[i] != wanted) return false;
    wanted *= t.shape[i];
  }
  return true;
}

namespace detail {

inline DLTensor *plain(const DLTensor *t) { // the C API takes what it reads without const
  return const_cast<DLTensor *>(t);
}

// A tensor of memory that another owns: `owner` is released with it.
struct Lent {
  DLManagedTensor tensor;
  std::vector<int64_t> shape, strides;
  DLManagedTensor *owner;

  static DLManagedTensor *of(const DLTensor &t, std::vector<int64_t> shape, DLDataType dtype, DLManagedTensor *owner) {
    std::unique_ptr<Lent> made(new Lent{});
    made->shape = std::move(shape);
    if (t.strides != nullptr && owner == nullptr) made->strides.assign(t.strides, t.strides + t.ndim);
    made->owner = owner;
    made->tensor.dl_tensor = t;
    made->tensor.dl_tensor.dtype = dtype;
    made->tensor.dl_tensor.ndim = static_cast<int>(made->shape.size());
    made->tensor.dl_tensor.shape = made->shape.data();
    made->tensor.dl_tensor.strides = made->strides.empty() ? nullptr : made->strides.data();
    made->tensor.manager_ctx = made.get();
    made->tensor.deleter = release;
    return &made.release()->tensor;
  }
  static void release(DLManagedTensor *tensor) {
    std::unique_ptr<Lent> made(static_cast<Lent *>(tensor->manager_ctx));
    TVMDLManagedTensorCallDeleter(made->owner);
  }
};

} // namespace detail

class NDArray : public ObjectRef {
public:
  // The array of the C API.
  class Container : public detail::HandleObject {
  public:
    static constexpr const char *_type_key = "runtime.NDArray";
    TVM_DECLARE_FINAL_OBJECT_INFO(Container, Object)
    using detail::HandleObject::HandleObject;
    const DLTensor *tensor() const {
      return static_cast<const DLTensor *>(handle());
    }
    int heddle_pass(TVMValue *to) const override {
      to->v_handle = handle();
      return kTVMNDArrayHandle;
    }
  };
  using ContainerBase = Container;
  using ContainerType = Container;

  NDArray() = default;
  explicit NDArray(ObjectPtr<Object> data) : ObjectRef(std::move(data)) {}

  // Zeroed memory on a device.
  static NDArray Empty(ShapeTuple shape, DLDataType dtype, Device dev, Optional<String> mem_scope = NullOpt) {
    if (mem_scope.defined() && mem_scope.value() != "" && mem_scope.value() != "global")
      throw Error("NDArray::Empty: memory of scope '" + mem_scope.value().str() + "' is not available");
    TVMArrayHandle made = nullptr;
    detail::must(TVMArrayAlloc(shape.data(), static_cast<int>(shape.size()), dtype.code, dtype.bits, dtype.lanes,
                               dev.device_type, dev.device_id, &made));
    return adopt(made);
  }
  // Memory that the caller keeps for as long as the array and copies of the reference exist.
  static NDArray FromExternalDLTensor(const DLTensor &t) {
    return FromDLPack(detail::Lent::of(t, std::vector<int64_t>(t.shape, t.shape + t.ndim), t.dtype, nullptr));
  }
  // A copy on a device.
  static NDArray NewFromDLTensor(DLTensor *t, Device dev) {
    NDArray made = Empty(ShapeTuple(t->shape, t->shape + t->ndim), t->dtype, dev);
    made.CopyFrom(t);
    return made;
  }
  // Takes the tensor over, on failure too.
  static NDArray FromDLPack(DLManagedTensor *tensor) {
    TVMArrayHandle made = nullptr;
    if (TVMArrayFromDLPack(tensor, &made) != 0) {
      const Error error(TVMGetLastError());
      TVMDLManagedTensorCallDeleter(tensor);
      throw error;
    }
    return adopt(made);
  }
  // Shares the memory; the caller calls the deleter.
  DLManagedTensor *ToDLPack() const {
    DLManagedTensor *out = nullptr;
    detail::must(TVMArrayToDLPack(detail::plain(get()), &out));
    return out;
  }
  // Shares the memory, as another shape and type of as many bytes or fewer.
  NDArray CreateView(ShapeTuple shape, DLDataType dtype) const {
    const DLTensor &t = need();
    if (!runtime::IsContiguous(t)) throw Error("CreateView: the array is not contiguous");
    std::vector<int64_t> dims(shape.begin(), shape.end());
    DLTensor view = t;
    std::size_t room = std::numeric_limits<std::size_t>::max() / 512;
    for (int64_t n : dims) {
      if (n < 0 || (n > 0 && static_cast<std::size_t>(n) > room)) throw Error("CreateView: the shape is not possible");
      if (n > 0) room /= static_cast<std::size_t>(n);
    }
    view.ndim = static_cast<int>(dims.size());
    view.shape = dims.data();
    view.dtype = dtype;
    if (GetDataSize(view) > GetDataSize(t))
      throw Error("CreateView: the view has " + std::to_string(GetDataSize(view)) + " bytes, and the array " +
                  std::to_string(GetDataSize(t)));
    DLManagedTensor *owner = ToDLPack();
    DLManagedTensor *lent;
    try {
      lent = detail::Lent::of(owner->dl_tensor, std::move(dims), dtype, owner);
    } catch (...) {
      TVMDLManagedTensorCallDeleter(owner);
      throw;
    }
    return FromDLPack(lent);
  }

  void CopyFrom(const DLTensor *from) {
    CopyFromTo(from, detail::plain(&need()));
  }
  void CopyFrom(const NDArray &from) {
    CopyFrom(&from.need());
  }
  void CopyTo(DLTensor *to) const {
    CopyFromTo(&need(), to);
  }
  void CopyTo(const NDArray &to) const {
    CopyTo(detail::plain(&to.need()));
  }
  NDArray CopyTo(const Device &dev, Optional<String> mem_scope = NullOpt) const {
    NDArray made = Empty(Shape(), need().dtype, dev, mem_scope);
    CopyTo(made);
    return made;
  }
  // As many bytes as the array has.
  void CopyFromBytes(const void *data, std::size_t n) {
    detail::must(TVMArrayCopyFromBytes(detail::plain(&need()), const_cast<void *>(data), n));
  }
  void CopyToBytes(void *data, std::size_t n) const {
    detail::must(TVMArrayCopyToBytes(detail::plain(&need()), data, n));
  }
  static void CopyFromTo(const DLTensor *from, DLTensor *to, TVMStreamHandle stream = nullptr) {
    detail::must(TVMDeviceCopyDataFromTo(detail::plain(from), to, stream));
  }

  ShapeTuple Shape() const {
    return ShapeTuple(need().shape, need().shape + need().ndim);
  }
  runtime::DataType DataType() const {
    return runtime::DataType(need().dtype);
  }
  bool IsContiguous() const {
    return runtime::IsContiguous(need());
  }
  const DLTensor *operator->() const {
    return get();
  }
  const DLTensor *get() const {
    return static_cast<const DLTensor *>(detail::handle_of(data_.get()));
  }
  void reset() {
    data_.reset();
  }
  bool operator==(std::nullptr_t) const {
    return !defined();
  }
  bool operator!=(std::nullptr_t) const {
    return defined();
  }
  using ObjectRef::operator==;
  using ObjectRef::operator!=;

  static NDArray adopt(TVMArrayHandle handle) { // for these headers: takes the reference over
    return NDArray(detail::adopt_handle<Container>(handle));
  }

private:
  const DLTensor &need() const {
    if (data_ == nullptr) throw Error("an NDArray without memory");
    return *get();
  }
};

} // namespace runtime

using runtime::NDArray;

} // namespace tvm

#endif
