// modules/tvm_cxx/object.cpp: types of objects by number and by name, of this process.
#include "modules/tvm_cxx/layout.hpp"

#include <functional>
#include <map>
#include <mutex>

namespace tvm {
namespace runtime {

namespace {

// A type has a range of numbers, its own and those that are kept for types derived from it.
struct Type {
  std::string key;
  uint32_t parent = ROOT;
  uint32_t n_numbers = 0; // 0: there is no type of this number
  uint32_t n_given = 0;   // of those
  bool can_overflow = true;
};

class Types {
public:
  // Never ends: objects of other libraries may end later.
  static Types &all() {
    static Types &types = *new Types;
    return types;
  }

  uint32_t get(const std::string &key, uint32_t static_index, uint32_t parent, uint32_t child_slots,
               bool can_overflow) {
    std::lock_guard<std::mutex> guard(lock_);
    auto known = numbers_.find(key);
    if (known != numbers_.end()) return known->second;
    if (parent >= types_.size() || types_[parent].n_numbers == 0)
      throw Error("the type '" + key + "' is derived from type " + std::to_string(parent) + ", which is not known");
    uint32_t wants = child_slots + 1, number = place(key, static_index, parent, wants);
    if (types_.size() < number + wants) types_.resize(number + wants);
    types_[number] = Type{key, parent, wants, 1, can_overflow};
    numbers_.emplace(key, number);
    return number;
  }

  bool is_derived(uint32_t child, uint32_t parent) {
    std::lock_guard<std::mutex> guard(lock_);
    while (child > parent && child < types_.size() && types_[child].n_numbers > 0) child = types_[child].parent;
    return child == parent;
  }

  std::string key(uint32_t index) {
    std::lock_guard<std::mutex> guard(lock_);
    if (index < types_.size() && types_[index].n_numbers > 0) return types_[index].key;
    throw Error("there is no type of number " + std::to_string(index));
  }

  uint32_t number(const std::string &key) {
    std::lock_guard<std::mutex> guard(lock_);
    auto known = numbers_.find(key);
    if (known != numbers_.end()) return known->second;
    throw Error("there is no type '" + key + "'");
  }

private:
  Types() {
    static const char *const keys[] = {"runtime.Object", "runtime.Module", "runtime.NDArray",    "runtime.String",
                                       "runtime.Array",  "runtime.Map",    "runtime.ShapeTuple", "runtime.PackedFunc"};
    types_.resize(FIRST_DYNAMIC);
    for (uint32_t i = 0; i <= PACKED_FUNC; i++) {
      types_[i] = Type{keys[i], ROOT, 1, 1, true};
      numbers_.emplace(keys[i], i);
    }
  }

  // The numbers between those of all eras and FIRST_DYNAMIC mean one type in one era and "dynamic" in another: they go to
  // those types that have a static number in some era.
  uint32_t place(const std::string &key, uint32_t static_index, uint32_t parent, uint32_t wants) {
    static const char *const statics[] = {"runtime.Closure", "runtime.ADT", "runtime.disco.DRef",
                                          "runtime.RPCObjectRef"};
    for (const char *name : statics)
      if (key == name && wants == 1 && static_index < FIRST_DYNAMIC && types_[static_index].n_numbers == 0)
        return static_index;
    Type &of = types_[parent];
    if (of.n_given + wants <= of.n_numbers) {
      uint32_t number = parent + of.n_given;
      of.n_given += wants;
      return number;
    }
    if (!of.can_overflow) throw Error("the type '" + of.key + "' has no number left for '" + key + "'");
    uint32_t number = next_;
    next_ += wants;
    return number;
  }

  std::mutex lock_; // guards the rest; a leaf
  std::vector<Type> types_;
  std::map<std::string, uint32_t> numbers_;
  uint32_t next_ = FIRST_DYNAMIC;
};

} // namespace

bool Object::DerivedFrom(uint32_t parent) const {
  return Types::all().is_derived(type_index_, parent);
}

std::string Object::TypeIndex2Key(uint32_t index) {
  return Types::all().key(index);
}

size_t Object::TypeIndex2KeyHash(uint32_t index) {
  return std::hash<std::string>()(Types::all().key(index));
}

uint32_t Object::TypeKey2Index(const std::string &key) {
  return Types::all().number(key);
}

uint32_t Object::GetOrAllocRuntimeTypeIndex(const std::string &key, uint32_t static_index, uint32_t parent,
                                            uint32_t child_slots, bool can_overflow) {
  return Types::all().get(key, static_index, parent, child_slots, can_overflow);
}

// ---- errors and messages

detail::LogFatal::Entry &detail::LogFatal::GetEntry() {
  static thread_local Entry entry;
  return entry;
}

const char *detail::LogMessage::level_strings_[] = {": Debug: ", ": ", ": Warning: ", ": Error: ", ": Fatal: "};

// Errors carry no calls: the text of a check and its place are what their readers use.
std::string Backtrace() {
  return std::string();
}

// Signals are the program's: a call of ours is not interrupted by them.
void EnvCheckSignals() {}

} // namespace runtime
} // namespace tvm
