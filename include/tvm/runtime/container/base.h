// tvm/runtime/container/base.h: keys and elements of containers: texts by what they hold, other objects by what they are.
#ifndef TVM_RUNTIME_CONTAINER_BASE_H_
#define TVM_RUNTIME_CONTAINER_BASE_H_

#include <tvm/runtime/container/string.h>

namespace tvm {
namespace runtime {

struct ObjectHash {
  std::size_t operator()(const ObjectRef &one) const {
    if (const StringObj *text = one.as<StringObj>()) return std::hash<std::string>()(text->text);
    return ObjectPtrHash()(one);
  }
};

struct ObjectEqual {
  bool operator()(const ObjectRef &a, const ObjectRef &b) const {
    const StringObj *x = a.as<StringObj>(), *y = b.as<StringObj>();
    return x != nullptr && y != nullptr ? x->text == y->text : a.same_as(b);
  }
};

} // namespace runtime

using runtime::ObjectEqual;
using runtime::ObjectHash;

} // namespace tvm

#endif
