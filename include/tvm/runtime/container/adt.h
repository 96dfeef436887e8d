// tvm/runtime/container/adt.h: a tag with fields, and tuples. Written for Heddle; the names are TVM's.
#ifndef TVM_RUNTIME_CONTAINER_ADT_H_
#define TVM_RUNTIME_CONTAINER_ADT_H_

#include <initializer_list>
#include <vector>

#include <tvm/runtime/object.h>

namespace tvm {
namespace runtime {

class ADTObj : public Object {
public:
  static constexpr const char *_type_key = "runtime.ADT";
  TVM_DECLARE_FINAL_OBJECT_INFO(ADTObj, Object)

  ADTObj(int32_t a_tag, std::vector<ObjectRef> all)
      : tag(a_tag), size(static_cast<uint32_t>(all.size())), fields(std::move(all)) {}

  const int32_t tag;
  const uint32_t size;
  std::vector<ObjectRef> fields;
};

class ADT : public ObjectRef {
public:
  using ContainerType = ADTObj;

  ADT() = default;
  explicit ADT(ObjectPtr<Object> n) : ObjectRef(std::move(n)) {}
  ADT(int32_t tag, std::vector<ObjectRef> fields) : ObjectRef(make_object<ADTObj>(tag, std::move(fields))) {}
  ADT(int32_t tag, std::initializer_list<ObjectRef> fields) : ADT(tag, std::vector<ObjectRef>(fields)) {}
  template <class Iterator>
  ADT(int32_t tag, Iterator first, Iterator last) : ADT(tag, std::vector<ObjectRef>(first, last)) {}
  template <class... T> static ADT Tuple(T &&...fields) {
    return ADT(0, std::vector<ObjectRef>{std::forward<T>(fields)...});
  }

  // A field, which may be assigned.
  ObjectRef &operator[](std::size_t i) {
    return field(i);
  }
  const ObjectRef &operator[](std::size_t i) const {
    return field(i);
  }
  std::size_t size() const {
    return data_ != nullptr ? node()->fields.size() : 0;
  }
  int32_t tag() const {
    if (data_ == nullptr) throw Error("the tag of no object");
    return node()->tag;
  }
  const ADTObj *operator->() const {
    return node();
  }

private:
  ADTObj *node() const {
    return static_cast<ADTObj *>(data_.get());
  }
  ObjectRef &field(std::size_t i) const {
    if (i >= size()) throw Error("field " + std::to_string(i) + " of an object of " + std::to_string(size()));
    return node()->fields[i];
  }
};

} // namespace runtime

using runtime::ADT;
using runtime::ADTObj;

} // namespace tvm

#endif
