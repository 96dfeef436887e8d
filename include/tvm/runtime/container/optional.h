// tvm/runtime/container/optional.h: a reference that may be none, of a class whose references may not.
#ifndef TVM_RUNTIME_CONTAINER_OPTIONAL_H_
#define TVM_RUNTIME_CONTAINER_OPTIONAL_H_

#include <tvm/runtime/object.h>

namespace tvm {
namespace runtime {

struct NullOptType {};
static constexpr NullOptType NullOpt{};

template <class T> class Optional : public ObjectRef {
public:
  using ContainerType = typename T::ContainerType;
  static_assert(std::is_base_of<ObjectRef, T>::value, "an Optional is of a class of references");

  Optional() = default;
  Optional(NullOptType) {}
  explicit Optional(std::nullptr_t) {}
  explicit Optional(ObjectPtr<Object> data) : ObjectRef(std::move(data)) {}
  Optional(T other) : ObjectRef(std::move(other)) {}
  template <class U,
            class = std::enable_if_t<std::is_convertible<U, T>::value && !std::is_base_of<ObjectRef, U>::value>>
  Optional(const U &other) : Optional(T(other)) {}
  Optional(const Optional &) = default;
  Optional(Optional &&) = default;
  Optional &operator=(const Optional &) = default;
  Optional &operator=(Optional &&) = default;

  bool has_value() const {
    return defined();
  }
  explicit operator bool() const {
    return defined();
  }
  T value() const {
    if (!defined()) throw Error("an Optional without a value");
    return T(data_);
  }
  T value_or(T other) const {
    return defined() ? T(data_) : other;
  }
  bool operator==(std::nullptr_t) const {
    return !defined();
  }
  bool operator!=(std::nullptr_t) const {
    return defined();
  }
};

} // namespace runtime

using runtime::NullOpt;
using runtime::NullOptType;
using runtime::Optional;

} // namespace tvm

#endif
