// modules/tvm_cxx/containers.cpp: objects that this library makes, and the table that libheddle_tvm takes them by.
#include "modules/tvm_cxx/containers.hpp"

#include <memory>
#include <new>

#include "modules/tvm_cxx/entry.h"

namespace rt = tvm::runtime;

std::string rt::String::text() const {
  const auto *s = static_cast<const StringObj *>(data_.data_);
  return std::string(s->data, s->size);
}

namespace heddle_tvm_cxx {

namespace {

struct OwnString : rt::StringObj {
  std::string text;
};

struct OwnShape : rt::ShapeTupleObj {
  std::vector<int64_t> dims;
};

// Allocated with its elements behind it.
void delete_array(Object *self) {
  auto *array = static_cast<rt::ArrayNode *>(self);
  auto *items = reinterpret_cast<ObjectPtr<Object> *>(array + 1);
  for (int64_t i = array->size_; i > 0; i--) items[i - 1].~ObjectPtr();
  array->~ArrayNode();
  ::operator delete(static_cast<void *>(array));
}

void delete_ndarray(Object *self) {
  auto *c = static_cast<Container *>(self);
  (void)TVMArrayFree(static_cast<TVMArrayHandle>(c->manager_ctx));
  delete c;
}

} // namespace

ObjectPtr<Object> make_string(std::string text) {
  auto made = std::make_unique<OwnString>();
  made->text = std::move(text);
  made->data = made->text.data();
  made->size = made->text.size();
  return first(made.release(), rt::STRING);
}

ObjectPtr<Object> make_shape(std::vector<int64_t> dims) {
  auto made = std::make_unique<OwnShape>();
  made->dims = std::move(dims);
  made->data = made->dims.data();
  made->size = made->dims.size();
  return first(made.release(), rt::SHAPE_TUPLE);
}

ObjectPtr<Object> make_array(const std::vector<ObjectPtr<Object>> &items) {
  void *memory = ::operator new(sizeof(rt::ArrayNode) + items.size() * sizeof items[0]);
  auto *array = new (memory) rt::ArrayNode;
  auto *at = reinterpret_cast<ObjectPtr<Object> *>(array + 1);
  array->type_index_ = rt::ARRAY;
  array->deleter_ = delete_array;
  array->size_ = array->capacity_ = static_cast<int64_t>(items.size());
  for (const auto &item : items) new (at++) ObjectPtr<Object>(item);
  return ObjectPtr<Object>(array);
}

ObjectPtr<Object> make_ndarray(TVMArrayHandle handle) {
  std::unique_ptr<DLTensor, int (*)(TVMArrayHandle)> guard(handle, TVMArrayFree);
  auto made = std::make_unique<Container>();
  made->shape_ =
      rt::ShapeTuple(make_shape(handle->ndim > 0 ? std::vector<int64_t>(handle->shape, handle->shape + handle->ndim)
                                                 : std::vector<int64_t>())
                         .data_);
  made->dl_tensor = *handle;
  made->dl_tensor.shape = static_cast<rt::ShapeTupleObj *>(made->shape_.data_.data_)->data;
  made->manager_ctx = guard.release();
  made->type_index_ = rt::NDARRAY;
  made->deleter_ = delete_ndarray;
  return ObjectPtr<Object>(made.release());
}

TVMArrayHandle handle_of(const Object *ndarray) {
  const auto *c = static_cast<const Container *>(ndarray);
  return c->deleter_ == delete_ndarray ? static_cast<TVMArrayHandle>(c->manager_ctx) : nullptr;
}

} // namespace heddle_tvm_cxx

// ---- the table

namespace {

using namespace heddle_tvm_cxx;

void *arrays(void *const *handles, uint64_t n) {
  uint64_t taken = 0;
  try {
    std::vector<ObjectPtr<Object>> items;
    items.reserve(n);
    while (taken < n) {
      auto *handle = static_cast<TVMArrayHandle>(handles[taken++]);
      items.push_back(make_ndarray(handle));
    }
    ObjectPtr<Object> array = make_array(items);
    return std::exchange(array.data_, nullptr);
  } catch (const std::bad_alloc &) {
    while (taken < n) (void)TVMArrayFree(static_cast<TVMArrayHandle>(handles[taken++]));
    return nullptr;
  }
}

void release(void *object) {
  static_cast<Object *>(object)->DecRef();
}

#ifdef HEDDLE_TVM_CXX_V08
const heddle__tvm_cxx_table table = {HEDDLE_VERSION, "v0.8", arrays, release, 1};
#else
const heddle__tvm_cxx_table table = {HEDDLE_VERSION, "v0.9 to v0.18", arrays, release, 0};
#endif

} // namespace

const heddle__tvm_cxx_table *heddle_tvm_cxx_entry(void) {
  return &table;
}
