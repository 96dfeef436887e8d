// modules/tvm_cxx/containers.hpp: objects that this library makes: strings, shapes, arrays, and arrays of numbers.
#ifndef HEDDLE_MODULES_TVM_CXX_CONTAINERS_HPP
#define HEDDLE_MODULES_TVM_CXX_CONTAINERS_HPP

#include "modules/tvm_cxx/layout.hpp"

namespace heddle_tvm_cxx {

using tvm::runtime::Object;
using tvm::runtime::ObjectPtr;

// NDArray::Container: behind the head lie a DLTensor, whose address is the array's handle, and what follows it.
struct Container : Object {
  DLTensor dl_tensor{};
  void *manager_ctx = nullptr;
  tvm::runtime::ShapeTuple shape_;
};
static_assert(sizeof(Object) == 16 && sizeof(DLTensor) == 48 && sizeof(Container) == 80, "as TVM has them");

// The object whose handle this is.
inline Container *container_of(DLTensor *handle) {
  return reinterpret_cast<Container *>(reinterpret_cast<char *>(handle) - sizeof(Object));
}

// A pointer with the first reference.
template <typename T> ObjectPtr<Object> first(T *made, uint32_t type) {
  made->type_index_ = type;
  made->deleter_ = [](Object *self) { delete static_cast<T *>(self); };
  return ObjectPtr<Object>(made);
}

ObjectPtr<Object> make_string(std::string text);
ObjectPtr<Object> make_shape(std::vector<int64_t> dims);
ObjectPtr<Object> make_array(const std::vector<ObjectPtr<Object>> &items);

// An NDArray of a TVMArrayHandle of libheddle_tvm's, whose reference it takes over, also where it throws.
ObjectPtr<Object> make_ndarray(TVMArrayHandle handle);

// The TVMArrayHandle behind an NDArray that make_ndarray made; nullptr: it is another's.
TVMArrayHandle handle_of(const Object *ndarray);

} // namespace heddle_tvm_cxx

#endif
