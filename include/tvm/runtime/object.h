// tvm/runtime/object.h: counted objects and references to them, for programs written for TVM's C++ runtime. Written for
// Heddle; the names are TVM's, the layouts are not: objects of these headers and of TVM's own do not mix. Objects are
// known by their C++ type; the numbers of types (RuntimeTypeIndex, _type_index) are left out.
#ifndef TVM_RUNTIME_OBJECT_H_
#define TVM_RUNTIME_OBJECT_H_

#include <atomic>
#include <cstddef>
#include <functional>
#include <string>
#include <type_traits>
#include <utility>

#include <tvm/runtime/c_runtime_api.h>
#include <tvm/runtime/logging.h>

namespace tvm {
namespace runtime {

// The base class of what is counted. A class of a program's own derives from it, with the TVM_DECLARE macros below.
class Object {
public:
  static constexpr const char *_type_key = "runtime.Object";

  Object() : references_(0) {}
  Object(const Object &) : references_(0) {} // a copy has its own count
  Object &operator=(const Object &) {
    return *this;
  }
  virtual ~Object() {}

  std::string GetTypeKey() const {
    return heddle_type_key();
  }
  template <class T> bool IsInstance() const {
    return dynamic_cast<const T *>(this) != nullptr;
  }
  bool unique() const {
    return use_count() == 1;
  }
  int use_count() const {
    return references_.load(std::memory_order_relaxed);
  }

  // ---- for these headers

  virtual const char *heddle_type_key() const {
    return _type_key;
  }
  // Two objects with one identity are the same: of a handle of the C API there may be several.
  virtual const void *heddle_identity() const {
    return this;
  }
  // Stores the object as an argument, borrowed, and returns its type code.
  virtual int heddle_pass(TVMValue *to) const {
    to->v_handle = const_cast<Object *>(this);
    return kTVMObjectHandle;
  }
  void IncRef() const {
    references_.fetch_add(1, std::memory_order_relaxed);
  }
  void DecRef() const {
    if (references_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
  }

private:
  mutable std::atomic<int> references_;
};

// A counted pointer.
template <class T> class ObjectPtr {
public:
  ObjectPtr() : data_(nullptr) {}
  ObjectPtr(std::nullptr_t) : data_(nullptr) {}
  explicit ObjectPtr(T *data) : data_(data) {
    if (data_ != nullptr) data_->IncRef();
  }
  ObjectPtr(const ObjectPtr &other) : ObjectPtr(other.get()) {}
  ObjectPtr(ObjectPtr &&other) noexcept : data_(other.release()) {}
  template <class U, class = std::enable_if_t<std::is_convertible<U *, T *>::value>>
  ObjectPtr(const ObjectPtr<U> &other) : ObjectPtr(other.get()) {}
  template <class U, class = std::enable_if_t<std::is_convertible<U *, T *>::value>>
  ObjectPtr(ObjectPtr<U> &&other) noexcept : data_(other.release()) {}
  ~ObjectPtr() {
    reset();
  }
  ObjectPtr &operator=(ObjectPtr other) noexcept {
    swap(other);
    return *this;
  }

  void swap(ObjectPtr &other) noexcept {
    std::swap(data_, other.data_);
  }
  T *get() const {
    return data_;
  }
  T *operator->() const {
    return data_;
  }
  T &operator*() const {
    return *data_;
  }
  explicit operator bool() const {
    return data_ != nullptr;
  }
  void reset() noexcept {
    if (T *data = release()) data->DecRef();
  }
  T *release() noexcept { // for these headers: the caller has the reference
    T *data = data_;
    data_ = nullptr;
    return data;
  }
  int use_count() const {
    return data_ != nullptr ? data_->use_count() : 0;
  }
  bool unique() const {
    return use_count() == 1;
  }
  bool operator==(const ObjectPtr &other) const {
    return data_ == other.data_;
  }
  bool operator!=(const ObjectPtr &other) const {
    return data_ != other.data_;
  }
  bool operator==(std::nullptr_t) const {
    return data_ == nullptr;
  }
  bool operator!=(std::nullptr_t) const {
    return data_ != nullptr;
  }

private:
  T *data_;
};

template <class T, class... Args> ObjectPtr<T> make_object(Args &&...args) {
  return ObjectPtr<T>(new T(std::forward<Args>(args)...));
}

// A reference to an object, or to none. Classes of references derive from it.
class ObjectRef {
public:
  using ContainerType = Object;
  static constexpr bool _type_is_nullable = true;

  ObjectRef() = default;
  explicit ObjectRef(ObjectPtr<Object> data) : data_(std::move(data)) {}

  bool same_as(const ObjectRef &other) const {
    return identity() == other.identity();
  }
  bool operator==(const ObjectRef &other) const {
    return same_as(other);
  }
  bool operator!=(const ObjectRef &other) const {
    return !same_as(other);
  }
  bool operator<(const ObjectRef &other) const {
    return std::less<const void *>()(identity(), other.identity());
  }
  bool defined() const {
    return data_ != nullptr;
  }
  const Object *get() const {
    return data_.get();
  }
  const Object *operator->() const {
    return get();
  }
  bool unique() const {
    return data_.unique();
  }
  int use_count() const {
    return data_.use_count();
  }
  // The object as one of that class, or null.
  template <class T, class = std::enable_if_t<std::is_base_of<Object, T>::value>> const T *as() const {
    return dynamic_cast<const T *>(get());
  }
  const void *identity() const { // for these headers
    return data_ != nullptr ? data_->heddle_identity() : nullptr;
  }

protected:
  ObjectPtr<Object> data_;

  Object *get_mutable() const {
    return data_.get();
  }
};

struct ObjectPtrHash {
  std::size_t operator()(const ObjectRef &one) const {
    return std::hash<const void *>()(one.identity());
  }
  template <class T> std::size_t operator()(const ObjectPtr<T> &one) const {
    return std::hash<T *>()(one.get());
  }
};

struct ObjectPtrEqual {
  bool operator()(const ObjectRef &a, const ObjectRef &b) const {
    return a.same_as(b);
  }
  template <class T> bool operator()(const ObjectPtr<T> &a, const ObjectPtr<T> &b) const {
    return a == b;
  }
};

// A reference to an object that is counted already.
template <class RefType, class T> RefType GetRef(const T *object) {
  static_assert(std::is_base_of<typename RefType::ContainerType, T>::value, "the reference is for another class");
  return RefType(ObjectPtr<Object>(const_cast<Object *>(static_cast<const Object *>(object))));
}

template <class BaseType, class T> ObjectPtr<BaseType> GetObjectPtr(T *object) {
  return ObjectPtr<BaseType>(static_cast<BaseType *>(object));
}

namespace detail {

// A reference of class T to an object that may be of another class: throws if it is.
template <class T> T downcast(const ObjectPtr<Object> &object) {
  using Node = typename T::ContainerType;
  if (object == nullptr ? T::_type_is_nullable : dynamic_cast<Node *>(object.get()) != nullptr) return T(object);
  throw Error("Downcast from " + (object != nullptr ? object->GetTypeKey() : "nullptr") + " to " + Node::_type_key +
              " failed.");
}

} // namespace detail

template <class SubRef, class BaseRef> SubRef Downcast(const BaseRef &ref) {
  const ObjectRef &base = ref;
  return detail::downcast<SubRef>(ObjectPtr<Object>(const_cast<Object *>(base.get())));
}

// ---- in a class derived from Object that has _type_key, and in a class of references to it

#define TVM_DECLARE_BASE_OBJECT_INFO(TypeName, ParentType) \
  static_assert(::std::is_base_of<::tvm::runtime::Object, ParentType>::value, "the parent is no object"); \
  const char *heddle_type_key() const override { \
    return TypeName::_type_key; \
  }
#define TVM_DECLARE_FINAL_OBJECT_INFO(TypeName, ParentType) TVM_DECLARE_BASE_OBJECT_INFO(TypeName, ParentType)
#define TVM_REGISTER_OBJECT_TYPE(TypeName) \
  static_assert(::std::is_base_of<::tvm::runtime::Object, TypeName>::value, "the class is no object")

#define TVM_DEFINE_DEFAULT_COPY_MOVE_AND_ASSIGN(TypeName) \
  TypeName(const TypeName &other) = default; \
  TypeName(TypeName &&other) = default; \
  TypeName &operator=(const TypeName &other) = default; \
  TypeName &operator=(TypeName &&other) = default
#define TVM_HEDDLE_REF(TypeName, ParentType, ObjectName, Constness) \
  explicit TypeName(::tvm::runtime::ObjectPtr<::tvm::runtime::Object> n) : ParentType(::std::move(n)) {} \
  TVM_DEFINE_DEFAULT_COPY_MOVE_AND_ASSIGN(TypeName); \
  Constness ObjectName *operator->() const { \
    return static_cast<Constness ObjectName *>(data_.get()); \
  } \
  using ContainerType = ObjectName
#define TVM_DEFINE_OBJECT_REF_METHODS(TypeName, ParentType, ObjectName) \
  TypeName() = default; \
  TVM_HEDDLE_REF(TypeName, ParentType, ObjectName, const); \
  const ObjectName *get() const { \
    return operator->(); \
  }
#define TVM_DEFINE_MUTABLE_OBJECT_REF_METHODS(TypeName, ParentType, ObjectName) \
  TypeName() = default; \
  TVM_HEDDLE_REF(TypeName, ParentType, ObjectName, )
#define TVM_DEFINE_NOTNULLABLE_OBJECT_REF_METHODS(TypeName, ParentType, ObjectName) \
  TVM_HEDDLE_REF(TypeName, ParentType, ObjectName, const); \
  static constexpr bool _type_is_nullable = false; \
  const ObjectName *get() const { \
    return operator->(); \
  }
#define TVM_DEFINE_MUTABLE_NOTNULLABLE_OBJECT_REF_METHODS(TypeName, ParentType, ObjectName) \
  TVM_HEDDLE_REF(TypeName, ParentType, ObjectName, ); \
  static constexpr bool _type_is_nullable = false
#define TVM_DEFINE_OBJECT_REF_COW_METHOD(ObjectName) \
  ObjectName *CopyOnWrite() { \
    if (!data_.unique()) data_ = ::tvm::runtime::make_object<ObjectName>(*operator->()); \
    return static_cast<ObjectName *>(data_.get()); \
  }

} // namespace runtime

using runtime::Downcast;
using runtime::GetRef;
using runtime::make_object;
using runtime::Object;
using runtime::ObjectPtr;
using runtime::ObjectPtrEqual;
using runtime::ObjectPtrHash;
using runtime::ObjectRef;

} // namespace tvm

#endif
