// tvm/runtime/container/shape_tuple.h: a shape as an object. Written for Heddle; the names are TVM's.
#ifndef TVM_RUNTIME_CONTAINER_SHAPE_TUPLE_H_
#define TVM_RUNTIME_CONTAINER_SHAPE_TUPLE_H_

#include <initializer_list>
#include <ostream>
#include <vector>

#include <tvm/runtime/object.h>

namespace tvm {
namespace runtime {

class ShapeTupleObj : public Object {
public:
  static constexpr const char *_type_key = "runtime.ShapeTuple";
  TVM_DECLARE_FINAL_OBJECT_INFO(ShapeTupleObj, Object)
  using index_type = tvm_index_t;

  explicit ShapeTupleObj(std::vector<index_type> dims)
      : shape(std::move(dims)), data(shape.data()), size(shape.size()) {}
  ShapeTupleObj(const ShapeTupleObj &) = delete;
  ShapeTupleObj &operator=(const ShapeTupleObj &) = delete;

  const std::vector<index_type> shape;
  const index_type *const data;
  const std::size_t size;
};

class ShapeTuple : public ObjectRef {
public:
  using ContainerType = ShapeTupleObj;
  using index_type = ShapeTupleObj::index_type;

  ShapeTuple() : ShapeTuple(std::vector<index_type>()) {}
  explicit ShapeTuple(ObjectPtr<Object> n) : ObjectRef(std::move(n)) {}
  ShapeTuple(std::vector<index_type> shape) : ObjectRef(make_object<ShapeTupleObj>(std::move(shape))) {}
  ShapeTuple(std::initializer_list<index_type> shape) : ShapeTuple(std::vector<index_type>(shape)) {}
  template <class Iterator, class = decltype(*std::declval<Iterator &>())>
  ShapeTuple(Iterator first, Iterator last) : ShapeTuple(std::vector<index_type>(first, last)) {}
  ShapeTuple(const ShapeTuple &) = default;
  ShapeTuple(ShapeTuple &&) = default;
  ShapeTuple &operator=(const ShapeTuple &) = default;
  ShapeTuple &operator=(ShapeTuple &&) = default;

  const index_type *data() const {
    return data_ != nullptr ? get()->data : nullptr;
  }
  std::size_t size() const {
    return data_ != nullptr ? get()->size : 0;
  }
  bool empty() const {
    return size() == 0;
  }
  index_type operator[](std::size_t i) const {
    return at(i);
  }
  index_type at(std::size_t i) const {
    if (i >= size()) throw Error("index " + std::to_string(i) + " of a shape of " + std::to_string(size()));
    return data()[i];
  }
  index_type front() const {
    return at(0);
  }
  index_type back() const {
    return at(size() - 1);
  }
  const index_type *begin() const {
    return data();
  }
  const index_type *end() const {
    return data() + size();
  }
  const ShapeTupleObj *get() const {
    return static_cast<const ShapeTupleObj *>(data_.get());
  }
  const ShapeTupleObj *operator->() const {
    return get();
  }
};

inline std::ostream &operator<<(std::ostream &out, const ShapeTuple &shape) {
  out << '[';
  for (std::size_t i = 0; i < shape.size(); i++) out << (i > 0 ? ", " : "") << shape[i];
  return out << ']';
}

} // namespace runtime

using runtime::ShapeTuple;
using runtime::ShapeTupleObj;

} // namespace tvm

#endif
