// heddle/cpp/tensor.hpp: Tensor, an array on the host or on a device, and View, its elements as a C++ type.
// heddle/tensor.h has the contracts; the comments here describe only what C++ adds.
#ifndef HEDDLE_CPP_TENSOR_HPP
#define HEDDLE_CPP_TENSOR_HPP

#include <cstring>
#include <type_traits>
#include <vector>

#include "heddle/cpp/context.hpp"
#include "heddle/tensor.h"

namespace heddle {

using Shape = std::vector<std::int64_t>;

inline bool operator==(heddle_dtype a, heddle_dtype b) noexcept {
  return a.code == b.code && a.bits == b.bits && a.lanes == b.lanes;
}
inline bool operator!=(heddle_dtype a, heddle_dtype b) noexcept {
  return !(a == b);
}

// The dtype of a C++ type: bool, integers, float and double. A program may specialise it for its own type, with a
// member `value`.
template <class T, class = void> struct DType;
template <> struct DType<bool> { static constexpr heddle_dtype value{HEDDLE_DTYPE_BOOL, 8, 1}; };
template <class T> struct DType<T, std::enable_if_t<std::is_integral_v<T> && !std::is_same_v<T, bool>>> {
  static constexpr heddle_dtype value{std::is_signed_v<T> ? HEDDLE_DTYPE_INT : HEDDLE_DTYPE_UINT, 8 * sizeof(T), 1};
};
template <> struct DType<float> { static constexpr heddle_dtype value{HEDDLE_DTYPE_FLOAT, 32, 1}; };
template <> struct DType<double> { static constexpr heddle_dtype value{HEDDLE_DTYPE_FLOAT, 64, 1}; };
template <class T> inline constexpr heddle_dtype dtype_of = DType<std::remove_cv_t<T>>::value;

// The name of a dtype: "float32", "int64", "bool", "float32x4".
inline std::string to_string(heddle_dtype dtype) {
  static constexpr const char *const names[] = {"int", "uint", "float", "handle", "bfloat", "complex", "bool"};
  std::string out = dtype.code < 7 ? names[dtype.code] : "dtype" + std::to_string(dtype.code) + "_";
  if (dtype.code != HEDDLE_DTYPE_BOOL || dtype.bits != 8) out += std::to_string(dtype.bits);
  return dtype.lanes == 1 ? out : out + "x" + std::to_string(dtype.lanes);
}

template <class T> class View;

// An array. Copies share its bytes, which live until the last copy and the last DLPack struct created from it are gone.
// Reference counting is thread-safe; the program must synchronise access to the bytes.
class Tensor : public detail::Shared<Tensor, heddle_tensor, heddle_tensor_retain, heddle_tensor_release> {
public:
  static constexpr const char *noun() noexcept {
    return "tensor";
  }

  // ---- creation

  // Creates zeroed memory on the host or on a device.
  static Result<Tensor> try_create(heddle_dtype dtype, const Shape &shape, const Device &device = {}) {
    return make([&](heddle_tensor **out, heddle_error *err) {
      return heddle_tensor_create(device.get(), dtype, shape.data(), ndim_of(shape), out, err);
    });
  }
  template <class T> static Result<Tensor> try_create(const Shape &shape, const Device &device = {}) {
    return try_create(dtype_of<T>, shape, device);
  }

  // Wraps the caller's memory without a copy; the memory must outlive the tensor. data must point to at least count
  // elements. strides are in elements; empty means row-major. count is not checked against strides.
  template <class T>
  static Result<Tensor> try_wrap(T *data, std::size_t count, const Shape &shape, const Shape &strides = {}) {
    static_assert(!std::is_const_v<T>, "a tensor may be written to: copy what is constant (Tensor::copy)");
    return wrapped(data, count, shape, strides, nullptr, nullptr);
  }

  // The same for a container with data() and size() that the caller keeps: std::vector, std::array, std::span.
  template <class C> static Result<Tensor> try_wrap(C &container, const Shape &shape) {
    return try_wrap(container.data(), container.size(), shape);
  }

  // Takes ownership of a container, which lives as long as the tensor.
  template <class C> static Result<Tensor> try_own(C container, const Shape &shape) {
    auto kept = std::make_unique<C>(std::move(container));
    auto made = wrapped(
        kept->data(), kept->size(), shape, {}, [](void *user) { delete static_cast<C *>(user); }, kept.get());
    if (made) kept.release();
    return made;
  }

  // Copies the caller's elements into a new tensor.
  template <class T> static Result<Tensor> try_copy(const T *data, std::size_t count, const Shape &shape) {
    static_assert(std::is_trivially_copyable_v<T>, "elements are copied as bytes");
    if (!fits(shape, count)) return misfit(shape, count);
    Result<Tensor> made = try_create<T>(shape);
    if (made && count != 0) std::memcpy(made->data(), data, count * sizeof(T));
    return made;
  }
  template <class C> static Result<Tensor> try_copy(const C &container, const Shape &shape) {
    return try_copy(container.data(), container.size(), shape);
  }

  static Result<Tensor> try_load_npy(const std::string &path) {
    return make([&](heddle_tensor **out, heddle_error *err) { return heddle_tensor_load_npy(path.c_str(), out, err); },
                path.c_str());
  }

  // Takes over a DLPack struct. On success its deleter runs when the last reference is gone. On failure the caller
  // keeps the struct, unless it is a versioned one of another major version. Device memory belongs to `device`, or else
  // to the device that the process's context has for the type and number in the struct.
  static Result<Tensor> try_from_dlpack(DLManagedTensor *m, const Device &device = {}) {
    return make([&](heddle_tensor **out, heddle_error *err) {
      return heddle_tensor_from_dlpack_on(device.get(), m, out, err);
    });
  }
  static Result<Tensor> try_from_dlpack(DLManagedTensorVersioned *m, const Device &device = {}) {
    return make([&](heddle_tensor **out, heddle_error *err) {
      return heddle_tensor_from_dlpack_versioned_on(device.get(), m, out, err);
    });
  }

  // ---- properties

  heddle_dtype dtype() const noexcept {
    return raw_ != nullptr ? heddle_tensor_dtype(raw_) : heddle_dtype{};
  }
  std::size_t ndim() const noexcept {
    return raw_ != nullptr ? heddle_tensor_ndim(raw_) : 0;
  }
  Shape shape() const {
    return raw_ != nullptr ? Shape(heddle_tensor_shape(raw_), heddle_tensor_shape(raw_) + ndim()) : Shape();
  }
  Shape strides() const {
    return raw_ != nullptr ? Shape(heddle_tensor_strides(raw_), heddle_tensor_strides(raw_) + ndim()) : Shape();
  }
  std::size_t size() const noexcept { // elements
    std::size_t n = raw_ != nullptr ? 1 : 0;
    for (std::size_t i = 0; i < ndim(); i++) n *= static_cast<std::size_t>(heddle_tensor_shape(raw_)[i]);
    return n;
  }
  std::uint64_t bytes() const noexcept {
    return raw_ != nullptr ? heddle_tensor_bytes(raw_) : 0;
  }
  bool is_contiguous() const noexcept {
    return raw_ != nullptr && heddle_tensor_is_contiguous(raw_) != 0;
  }

  // The address; NULL for device memory that the host cannot read.
  void *data() const noexcept {
    return raw_ != nullptr ? heddle_tensor_data(raw_) : nullptr;
  }

  // The device that holds the memory, borrowed from its context; NULL: the host.
  heddle_device *device() const noexcept {
    return raw_ != nullptr ? heddle_tensor_device(raw_) : nullptr;
  }

  // ---- access and copies

  // The elements, row-major, as T. HEDDLE_EINVAL for another dtype, for gaps, and for memory that the host cannot read.
  template <class T> Result<View<T>> try_view() const;

  // Copies all elements of src, which has the same dtype and shape, into this tensor. Each may be on the host or on a
  // device. Blocks.
  Status try_copy_from(const Tensor &src) const {
    if (!src) return src.empty();
    return with([&](heddle_tensor *t, heddle_error *err) { return heddle_tensor_copy(t, src.raw_, err); });
  }

  // Order between a tensor on a device and a stream of the caller's there, by the vendor's handle: Heddle's later use of
  // the tensor comes after the work in the stream; the stream's later work comes after the runs with the tensor. Neither
  // blocks. wait blocks until these runs have finished.
  Status try_after_stream(std::uint64_t stream) const {
    return with([&](heddle_tensor *t, heddle_error *err) { return heddle_tensor_after_stream(t, stream, err); });
  }
  Status try_before_stream(std::uint64_t stream) const {
    return with([&](heddle_tensor *t, heddle_error *err) { return heddle_tensor_before_stream(t, stream, err); });
  }
  Status try_wait(Timeout timeout = {}) const {
    return with([&](heddle_tensor *t, heddle_error *err) { return heddle_tensor_wait(t, timeout.ns(), err); });
  }

  // Returns a row-major copy on the host or on a device. Blocks.
  Result<Tensor> try_to(const Device &device = {}) const {
    if (raw_ == nullptr) return empty();
    Result<Tensor> made = try_create(dtype(), shape(), device);
    if (!made) return made;
    Status s = made->try_copy_from(*this);
    if (!s) return s.error();
    return made;
  }

  // Returns a DLPack struct that holds a reference. Its owner calls its deleter, on any thread.
  Result<DLManagedTensor *> try_to_dlpack() const {
    DLManagedTensor *out = nullptr;
    Status s = with([&](heddle_tensor *t, heddle_error *err) { return heddle_tensor_to_dlpack(t, &out, err); });
    if (!s) return s.error();
    return out;
  }
  Result<DLManagedTensorVersioned *> try_to_dlpack_versioned() const {
    DLManagedTensorVersioned *out = nullptr;
    Status s =
        with([&](heddle_tensor *t, heddle_error *err) { return heddle_tensor_to_dlpack_versioned(t, &out, err); });
    if (!s) return s.error();
    return out;
  }

  Status try_save_npy(const std::string &path) const {
    return with([&](heddle_tensor *t, heddle_error *err) { return heddle_tensor_save_npy(t, path.c_str(), err); },
                path.c_str());
  }

#ifndef HEDDLE_CPP_NO_EXCEPTIONS
  static Tensor create(heddle_dtype dtype, const Shape &shape, const Device &device = {}) {
    return try_create(dtype, shape, device).value();
  }
  template <class T> static Tensor create(const Shape &shape, const Device &device = {}) {
    return try_create<T>(shape, device).value();
  }
  template <class T> static Tensor wrap(T *data, std::size_t count, const Shape &shape, const Shape &strides = {}) {
    return try_wrap(data, count, shape, strides).value();
  }
  template <class C> static Tensor wrap(C &container, const Shape &shape) {
    return try_wrap(container, shape).value();
  }
  template <class C> static Tensor own(C container, const Shape &shape) {
    return try_own(std::move(container), shape).value();
  }
  template <class T> static Tensor copy(const T *data, std::size_t count, const Shape &shape) {
    return try_copy(data, count, shape).value();
  }
  template <class C> static Tensor copy(const C &container, const Shape &shape) {
    return try_copy(container, shape).value();
  }
  static Tensor load_npy(const std::string &path) {
    return try_load_npy(path).value();
  }
  template <class M> static Tensor from_dlpack(M *m, const Device &device = {}) {
    return try_from_dlpack(m, device).value();
  }
  template <class T> View<T> view() const;
  void copy_from(const Tensor &src) const {
    try_copy_from(src).value();
  }
  void after_stream(std::uint64_t stream) const {
    try_after_stream(stream).value();
  }
  void before_stream(std::uint64_t stream) const {
    try_before_stream(stream).value();
  }
  void wait(Timeout timeout = {}) const {
    try_wait(timeout).value();
  }
  Tensor to(const Device &device = {}) const {
    return try_to(device).value();
  }
  DLManagedTensor *to_dlpack() const {
    return try_to_dlpack().value();
  }
  DLManagedTensorVersioned *to_dlpack_versioned() const {
    return try_to_dlpack_versioned().value();
  }
  void save_npy(const std::string &path) const {
    try_save_npy(path).value();
  }
#endif

private:
  static std::uint32_t ndim_of(const Shape &shape) noexcept {
    return shape.size() > UINT32_MAX ? UINT32_MAX : static_cast<std::uint32_t>(shape.size());
  }

  template <class Call> static Result<Tensor> make(Call &&call, const char *file = nullptr) {
    heddle_tensor *out = nullptr;
    Status s = detail::status_of([&](heddle_error *err) { return call(&out, err); }, file);
    if (!s) return s.error();
    return adopt(out);
  }

  // Whether count elements fill the shape exactly.
  static bool fits(const Shape &shape, std::size_t count) noexcept {
    std::uint64_t n = 1;
    for (const std::int64_t d : shape) {
      if (d < 0) return true; // the C call reports the error
      if (d != 0 && n > UINT64_MAX / static_cast<std::uint64_t>(d)) return false;
      n *= static_cast<std::uint64_t>(d);
    }
    return n == count;
  }

  template <class T>
  static Result<Tensor> wrapped(T *data, std::size_t count, const Shape &shape, const Shape &strides,
                                heddle_release_fn release, void *user) {
    if (!strides.empty() && strides.size() != shape.size())
      return Error(HEDDLE_EINVAL, "a tensor of " + std::to_string(shape.size()) + " dimensions cannot have " +
                                      std::to_string(strides.size()) + " strides");
    if (strides.empty() && !fits(shape, count)) return misfit(shape, count);
    return make([&](heddle_tensor **out, heddle_error *err) {
      return heddle_tensor_wrap(data, dtype_of<T>, shape.data(), ndim_of(shape),
                                strides.empty() ? nullptr : strides.data(), release, user, out, err);
    });
  }

  static Error misfit(const Shape &shape, std::size_t count) {
    std::string text = std::to_string(count) + " elements do not fill a tensor of shape [";
    for (std::size_t i = 0; i < shape.size(); i++) text += (i == 0 ? "" : ", ") + std::to_string(shape[i]);
    return Error(HEDDLE_EINVAL, text + "]");
  }
};

// The elements of a tensor, row-major. The view keeps the tensor alive. A copy shows the same elements.
template <class T> class View {
public:
  using value_type = std::remove_cv_t<T>;

  View() noexcept = default;

  T *data() const noexcept {
    return data_;
  }
  std::size_t size() const noexcept {
    return size_;
  }
  bool empty() const noexcept {
    return size_ == 0;
  }
  T *begin() const noexcept {
    return data_;
  }
  T *end() const noexcept {
    return data_ + size_;
  }
  T &operator[](std::size_t i) const noexcept {
    return data_[i];
  }
  Shape shape() const {
    return tensor_.shape();
  }
  const Tensor &tensor() const noexcept {
    return tensor_;
  }

private:
  friend class Tensor;
  explicit View(Tensor tensor) noexcept
      : tensor_(std::move(tensor)), data_(static_cast<T *>(tensor_.data())), size_(tensor_.size()) {}

  Tensor tensor_;
  T *data_ = nullptr;
  std::size_t size_ = 0;
};

template <class T> Result<View<T>> Tensor::try_view() const {
  if (raw_ == nullptr) return empty();
  if (dtype() != dtype_of<T>)
    return Error(HEDDLE_EINVAL, "a tensor of " + to_string(dtype()) + " cannot be seen as " + to_string(dtype_of<T>));
  if (data() == nullptr && size() != 0)
    return Error(HEDDLE_EINVAL, std::string("the host cannot read memory of ") +
                                    (device() != nullptr ? heddle_device_name(device()) : "a device") +
                                    ": copy it to the host (Tensor::to)");
  if (!is_contiguous())
    return Error(HEDDLE_EINVAL, "a tensor with gaps or in another order cannot be seen as a row: copy it (Tensor::to)");
  return View<T>(*this);
}

#ifndef HEDDLE_CPP_NO_EXCEPTIONS
template <class T> View<T> Tensor::view() const {
  return try_view<T>().value();
}
#endif

} // namespace heddle

#endif
