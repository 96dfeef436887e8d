// modules/tvm_cxx/layout.hpp: objects of TVM's C++ runtime as code that was compiled against its headers has them. Names and
// layouts are TVM's (v0.8 to v0.18, 64-bit, the C++ ABI of GCC 5 and later); docs/tvm-cxx.md says what they were checked
// with. HEDDLE_TVM_CXX_V08: those of v0.8, whose functions are std::function, for a library of their own. Members that such code reaches inline are in TVM's order; only what is marked EXPORT is a symbol of the library.
#ifndef HEDDLE_MODULES_TVM_CXX_LAYOUT_HPP
#define HEDDLE_MODULES_TVM_CXX_LAYOUT_HPP

#include <tvm/runtime/c_runtime_api.h>

#include <atomic>
#include <cstdint>
#include <ctime>
#include <functional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#define EXPORT __attribute__((visibility("default")))

namespace dmlc {
struct Error : std::runtime_error {
  explicit Error(const std::string &text) : std::runtime_error(text) {}
};
} // namespace dmlc

namespace tvm {
namespace runtime {

// What handlers in the program catch; the type is found by its name.
class Error : public dmlc::Error {
public:
  explicit Error(const std::string &text) : dmlc::Error(text) {}
};

// Static numbers of types, the same in all eras; a type that is in no other era's list gets its number when it is asked for.
enum TypeIndex : uint32_t { ROOT, MODULE, NDARRAY, STRING, ARRAY, MAP, SHAPE_TUPLE, PACKED_FUNC, FIRST_DYNAMIC = 64 };

// Codes of values; CODE_OBJECT_REF is that of a pointer to an ObjectRef that may be moved from.
enum TypeCode : int {
  CODE_INT = 0,
  CODE_NULL = 4,
  CODE_TENSOR = 7,
  CODE_OBJECT = 8,
  CODE_MODULE = 9,
  CODE_FUNCTION = 10,
  CODE_STRING = 11,
  CODE_BYTES = 12,
  CODE_NDARRAY = 13,
  CODE_OBJECT_REF = 14
};

// The head of every object, 16 bytes.
class Object {
public:
  typedef void (*FDeleter)(Object *self);
  uint32_t type_index_ = ROOT;
  std::atomic<int32_t> ref_counter_{0};
  FDeleter deleter_ = nullptr; // nullptr: it is never deleted

  EXPORT bool DerivedFrom(uint32_t parent) const;
  EXPORT static std::string TypeIndex2Key(uint32_t index);
  EXPORT static size_t TypeIndex2KeyHash(uint32_t index);
  EXPORT static uint32_t TypeKey2Index(const std::string &key);
  EXPORT static uint32_t GetOrAllocRuntimeTypeIndex(const std::string &key, uint32_t static_index, uint32_t parent,
                                                    uint32_t child_slots, bool can_overflow);
  void IncRef() {
    ref_counter_.fetch_add(1, std::memory_order_relaxed);
  }
  void DecRef() {
    if (ref_counter_.fetch_sub(1, std::memory_order_acq_rel) == 1 && deleter_ != nullptr) deleter_(this);
  }
};

template <typename T> class ObjectPtr {
public:
  Object *data_ = nullptr;

  ObjectPtr() = default;
  explicit ObjectPtr(Object *o) : data_(o) {
    if (o != nullptr) o->IncRef();
  }
  ObjectPtr(const ObjectPtr &other) : ObjectPtr(other.data_) {}
  ObjectPtr(ObjectPtr &&other) noexcept : data_(std::exchange(other.data_, nullptr)) {}
  ObjectPtr &operator=(ObjectPtr other) noexcept {
    std::swap(data_, other.data_);
    return *this;
  }
  ~ObjectPtr() {
    if (data_ != nullptr) data_->DecRef();
  }
  T *get() const {
    return static_cast<T *>(data_);
  }
};

class ObjectRef {
public:
  ObjectPtr<Object> data_;
  ObjectRef() = default;
  explicit ObjectRef(Object *o) : data_(o) {}
};

// ---- containers

class StringObj : public Object {
public:
  const char *data = nullptr;
  uint64_t size = 0;
};

class ShapeTupleObj : public Object {
public:
  int64_t *data = nullptr;
  uint64_t size = 0;
};

// The elements, ObjectRefs, lie behind it.
class ArrayNode : public Object {
public:
  int64_t size_ = 0;
  int64_t capacity_ = 0;
};

class String : public ObjectRef {
public:
  using ObjectRef::ObjectRef;
  std::string text() const; // of one that is not null
};

class ShapeTuple : public ObjectRef {
public:
  using ObjectRef::ObjectRef;
};

template <typename T> class Optional : public ObjectRef {};

// ---- functions

class TVMArgs {
public:
  const TVMValue *values;
  const int *type_codes;
  int num_args;
};

// Owns what it holds: an object's reference, and of a string a std::string.
class TVMRetValue {
public:
  TVMValue value_{};
  int type_code_ = CODE_NULL;
  ~TVMRetValue();
};

#ifdef HEDDLE_TVM_CXX_V08
class PackedFunc {
public:
  std::function<void(TVMArgs args, TVMRetValue *rv)> body_; // throws
};
#else
class PackedFuncObj : public Object {
public:
  typedef void (*FCallPacked)(const PackedFuncObj *self, TVMArgs args, TVMRetValue *rv); // throws
  FCallPacked f_call_packed_ = nullptr;
};

class PackedFunc : public ObjectRef {
public:
  using ObjectRef::ObjectRef;
};
#endif

// ---- errors and messages

namespace detail {
class LogFatal {
public:
  struct Entry { // of the thread; the code that fails writes into it, and throws
    std::ostringstream stream_;
    std::string file_;
    int lineno_ = 0;
  };
  EXPORT static Entry &GetEntry();
};

class LogMessage {
public:
  EXPORT static const char *level_strings_[];
};
} // namespace detail

EXPORT std::string Backtrace();
EXPORT void EnvCheckSignals();

} // namespace runtime
} // namespace tvm

#endif
