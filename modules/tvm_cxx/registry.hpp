// modules/tvm_cxx/registry.hpp: functions by name, as TVM's C++ runtime has them.
#ifndef HEDDLE_MODULES_TVM_CXX_REGISTRY_HPP
#define HEDDLE_MODULES_TVM_CXX_REGISTRY_HPP

#include "modules/tvm_cxx/functions.hpp"

namespace tvm {
namespace runtime {

// An entry; programs read its name, which has the type of its era (registry.cpp).
class Registry {
public:
  EXPORT Registry &set_body(PackedFunc f);
  EXPORT static Registry &Register(const String &name, bool can_override);
  EXPORT static Registry &Register(const std::string &name, bool can_override);
  EXPORT static bool Remove(const String &name);
  EXPORT static bool Remove(const std::string &name);
  EXPORT static const PackedFunc *Get(const String &name); // nullptr: there is none
  EXPORT static const PackedFunc *Get(const std::string &name);
  EXPORT static std::vector<String> ListNames();
};

EXPORT bool RuntimeEnabled(const String &target);
EXPORT bool RuntimeEnabled(const std::string &target);

} // namespace runtime
} // namespace tvm

#endif
