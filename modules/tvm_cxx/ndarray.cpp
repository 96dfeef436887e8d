// modules/tvm_cxx/ndarray.cpp: arrays of numbers as TVM's C++ runtime makes and copies them.
#include "modules/tvm_cxx/functions.hpp"

#include <memory>

namespace rt = tvm::runtime;
using heddle_tvm_cxx::check;
using heddle_tvm_cxx::Container;
using heddle_tvm_cxx::make_ndarray;
using heddle_tvm_cxx::make_shape;

namespace tvm {
namespace runtime {

class DataType {
public:
  DLDataType data_;
};

class NDArray : public ObjectRef {
public:
  EXPORT void CopyFromBytes(const void *data, size_t bytes);
  EXPORT void CopyToBytes(void *data, size_t bytes) const;
  EXPORT NDArray CreateView(ShapeTuple shape, DLDataType dtype);                  // up to v0.16
  EXPORT NDArray CreateView(ShapeTuple shape, DLDataType dtype, uint64_t offset); // v0.17 and later
  EXPORT NDArray CopyTo(const DLDevice &device, Optional<String> scope) const;    // of v0.17 and later
  EXPORT DLManagedTensor *ToDLPack() const;
  EXPORT static NDArray Empty(ShapeTuple shape, DLDataType dtype, DLDevice device, Optional<String> scope);
#ifdef HEDDLE_TVM_CXX_V08 // of its development before it had ShapeTuple
  EXPORT NDArray CreateView(std::vector<int64_t> shape, DLDataType dtype);
  EXPORT static NDArray Empty(std::vector<int64_t> shape, DLDataType dtype, DLDevice device, Optional<String> scope);
  EXPORT static NDArray Empty(std::vector<int64_t> shape, DLDataType dtype, DLDevice device);
#endif
  EXPORT static NDArray FromExternalDLTensor(const DLTensor &tensor);
  EXPORT static NDArray NewFromDLTensor(DLTensor *tensor, const DLDevice &device);
  EXPORT static NDArray FromDLPack(DLManagedTensor *tensor);
  EXPORT static void CopyFromTo(const DLTensor *from, DLTensor *to, void *stream);
  EXPORT ShapeTuple Shape() const;
  EXPORT runtime::DataType DataType() const;
  EXPORT static bool AbilityOfZeroCopyForDLTensor(DLTensor *tensor, const DLDevice &device);
  EXPORT static bool IsAligned(const DLTensor &tensor);

  Container *node() const {
    if (data_.data_ == nullptr) throw Error("an NDArray is null");
    return static_cast<Container *>(data_.data_);
  }
  // As the C API takes it.
  TVMArrayHandle handle() const {
    TVMArrayHandle own = heddle_tvm_cxx::handle_of(node());
    return own != nullptr ? own : &node()->dl_tensor;
  }
  static NDArray of(TVMArrayHandle handle) {
    NDArray out;
    out.data_ = make_ndarray(handle);
    return out;
  }
};

} // namespace runtime
} // namespace tvm

namespace {

enum { ALIGNMENT = 64 };

TVMArrayHandle empty(const int64_t *shape, int ndim, DLDataType dtype, DLDevice device) {
  TVMArrayHandle out = nullptr;
  check(TVMArrayAlloc(shape, ndim, dtype.code, dtype.bits, dtype.lanes, device.device_type, device.device_id, &out));
  return out;
}

void refuse_scope(const rt::ObjectRef &scope) {
  if (scope.data_.data_ == nullptr) return;
  auto *text = static_cast<rt::StringObj *>(scope.data_.data_);
  if (text->size > 0 && std::string(text->data, text->size) != "global")
    throw rt::Error("an NDArray in memory of scope '" + std::string(text->data, text->size) + "' cannot be made");
}

uint64_t bytes_of(const DLTensor &t) {
  uint64_t n = (uint64_t{t.dtype.bits} * t.dtype.lanes + 7) / 8;
  for (int32_t i = 0; i < t.ndim; i++) n *= static_cast<uint64_t>(t.shape[i]);
  return n;
}

bool is_compact(const DLTensor &t) {
  int64_t expected = 1;
  for (int32_t i = t.ndim; i-- > 0 && t.strides != nullptr;) {
    if (t.shape[i] != 1 && t.strides[i] != expected) return false;
    expected *= t.shape[i];
  }
  return true;
}

// An array over memory that something else owns.
struct View {
  DLManagedTensor managed{};
  std::vector<int64_t> shape, strides;
  rt::ObjectRef owner;
};

rt::NDArray make_view(const DLTensor &tensor, const rt::ObjectRef &owner) {
  auto view = std::make_unique<View>();
  view->owner = owner;
  if (tensor.ndim > 0) view->shape.assign(tensor.shape, tensor.shape + tensor.ndim);
  if (tensor.ndim > 0 && tensor.strides != nullptr) view->strides.assign(tensor.strides, tensor.strides + tensor.ndim);
  view->managed.dl_tensor = tensor;
  view->managed.dl_tensor.shape = view->shape.data();
  view->managed.dl_tensor.strides = tensor.strides != nullptr ? view->strides.data() : nullptr;
  view->managed.manager_ctx = view.get();
  view->managed.deleter = [](DLManagedTensor *self) { delete static_cast<View *>(self->manager_ctx); };
  TVMArrayHandle handle = nullptr;
  check(TVMArrayFromDLPack(&view->managed, &handle));
  (void)view.release();
  return rt::NDArray::of(handle);
}

} // namespace

void rt::NDArray::CopyFromBytes(const void *data, size_t bytes) {
  check(TVMArrayCopyFromBytes(handle(), const_cast<void *>(data), bytes));
}

void rt::NDArray::CopyToBytes(void *data, size_t bytes) const {
  check(TVMArrayCopyToBytes(handle(), data, bytes));
}

rt::NDArray rt::NDArray::CreateView(ShapeTuple shape, DLDataType dtype, uint64_t offset) {
  const auto *dims = static_cast<ShapeTupleObj *>(shape.data_.data_);
  DLTensor t = node()->dl_tensor;
  uint64_t there = bytes_of(t);
  if (!is_compact(t)) throw Error("CreateView: the array is not compact");
  t.shape = dims->data;
  t.ndim = static_cast<int32_t>(dims->size);
  t.dtype = dtype;
  t.strides = nullptr;
  t.byte_offset += offset;
  if (offset > there || bytes_of(t) > there - offset) throw Error("CreateView: the view is larger than the array");
  return make_view(t, *this);
}

rt::NDArray rt::NDArray::CreateView(ShapeTuple shape, DLDataType dtype) {
  return CreateView(shape, dtype, 0);
}

rt::NDArray rt::NDArray::CopyTo(const DLDevice &device, Optional<String> scope) const {
  const DLTensor &t = node()->dl_tensor;
  refuse_scope(scope);
  NDArray out = of(empty(t.shape, t.ndim, t.dtype, device));
  check(TVMArrayCopyFromTo(handle(), out.handle(), nullptr));
  return out;
}

DLManagedTensor *rt::NDArray::ToDLPack() const {
  DLManagedTensor *out = nullptr;
  check(TVMArrayToDLPack(handle(), &out));
  return out;
}

rt::NDArray rt::NDArray::Empty(ShapeTuple shape, DLDataType dtype, DLDevice device, Optional<String> scope) {
  const auto *dims = static_cast<ShapeTupleObj *>(shape.data_.data_);
  refuse_scope(scope);
  return of(empty(dims->data, static_cast<int>(dims->size), dtype, device));
}

#ifdef HEDDLE_TVM_CXX_V08
rt::NDArray rt::NDArray::CreateView(std::vector<int64_t> shape, DLDataType dtype) {
  return CreateView(ShapeTuple(make_shape(std::move(shape)).data_), dtype);
}

rt::NDArray rt::NDArray::Empty(std::vector<int64_t> shape, DLDataType dtype, DLDevice device, Optional<String> scope) {
  refuse_scope(scope);
  return of(empty(shape.data(), static_cast<int>(shape.size()), dtype, device));
}

rt::NDArray rt::NDArray::Empty(std::vector<int64_t> shape, DLDataType dtype, DLDevice device) {
  return Empty(std::move(shape), dtype, device, Optional<String>());
}
#endif

// The memory is the caller's, and must outlive the array.
rt::NDArray rt::NDArray::FromExternalDLTensor(const DLTensor &tensor) {
  return make_view(tensor, ObjectRef());
}

rt::NDArray rt::NDArray::NewFromDLTensor(DLTensor *tensor, const DLDevice &device) {
  NDArray out = of(empty(tensor->shape, tensor->ndim, tensor->dtype, device));
  check(TVMArrayCopyFromTo(tensor, out.handle(), nullptr));
  return out;
}

rt::NDArray rt::NDArray::FromDLPack(DLManagedTensor *tensor) {
  TVMArrayHandle out = nullptr;
  check(TVMArrayFromDLPack(tensor, &out));
  return of(out);
}

void rt::NDArray::CopyFromTo(const DLTensor *from, DLTensor *to, void *stream) {
  check(TVMArrayCopyFromTo(const_cast<DLTensor *>(from), to, stream));
}

rt::ShapeTuple rt::NDArray::Shape() const {
  const DLTensor &t = node()->dl_tensor;
  ShapeTuple out;
  out.data_ = make_shape(t.ndim > 0 ? std::vector<int64_t>(t.shape, t.shape + t.ndim) : std::vector<int64_t>());
  return out;
}

rt::DataType rt::NDArray::DataType() const {
  return runtime::DataType{node()->dl_tensor.dtype};
}

bool rt::NDArray::IsAligned(const DLTensor &tensor) {
  return (reinterpret_cast<uintptr_t>(static_cast<char *>(tensor.data) + tensor.byte_offset) % ALIGNMENT) == 0;
}

bool rt::NDArray::AbilityOfZeroCopyForDLTensor(DLTensor *tensor, const DLDevice &device) {
  return device.device_type == tensor->device.device_type && IsAligned(*tensor) && is_compact(*tensor);
}
