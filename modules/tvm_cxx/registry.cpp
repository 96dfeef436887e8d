// modules/tvm_cxx/registry.cpp: functions by name. libheddle_tvm has them all; what C++ holds pointers to stays here.
#include "modules/tvm_cxx/registry.hpp"

#include <map>
#include <mutex>

namespace rt = tvm::runtime;
using heddle_tvm_cxx::check;
using heddle_tvm_cxx::Era;

namespace {

// An entry as code of an era sees it: its name, and behind it the function.
template <typename Name> struct Entry {
  Name name;
  rt::PackedFunc function;
  TVMFunctionHandle handle = nullptr; // what libheddle_tvm has for it, with a reference that stays
};
using NewEntry = Entry<rt::String>;
using OldEntry = Entry<std::string>;

// What Get gave, for as long as the process lives; of one name there are several where it was registered anew.
struct Found {
  TVMFunctionHandle handle;
  Era era;
  rt::PackedFunc function;
};

struct Tables {
  std::mutex lock; // guards the rest; a leaf
  std::map<std::string, NewEntry> entries;
  std::map<std::string, OldEntry> old_entries;
  std::multimap<std::string, Found> found;
};

// Never ends: constructors and destructors of other libraries use it.
Tables &tables() {
  static Tables &all = *new Tables;
  return all;
}

void refuse_taken(const std::string &name, bool can_override) {
  TVMFunctionHandle there = nullptr;
  if (can_override) return;
  check(TVMFuncGetGlobal(name.c_str(), &there));
  if (there == nullptr) return;
  (void)TVMFuncFree(there);
  throw rt::Error("function '" + name + "' is registered already");
}

// What code of the same era registered, as long as nothing else has its name: every object can be passed to it. Locked.
template <typename Name>
const rt::PackedFunc *own(std::map<std::string, Entry<Name>> &entries, const std::string &name,
                          TVMFunctionHandle handle) {
  auto at = entries.find(name);
  return at != entries.end() && at->second.handle == handle ? &at->second.function : nullptr;
}

const rt::PackedFunc *get(const std::string &name, Era era) {
  TVMFunctionHandle handle = nullptr;
  check(TVMFuncGetGlobal(name.c_str(), &handle));
  if (handle == nullptr) return nullptr;
  rt::PackedFunc function;
  Tables &t = tables();
  std::lock_guard<std::mutex> guard(t.lock);
  const rt::PackedFunc *mine = era == Era::STRING ? own(t.entries, name, handle) : own(t.old_entries, name, handle);
  if (mine != nullptr) {
    (void)TVMFuncFree(handle);
    return mine;
  }
  auto range = t.found.equal_range(name);
  for (auto at = range.first; at != range.second; ++at)
    if (at->second.handle == handle && at->second.era == era) {
      (void)TVMFuncFree(handle);
      return &at->second.function;
    }
  function = heddle_tvm_cxx::make_function(handle, era);
  return &t.found.emplace(name, Found{handle, era, function})->second.function;
}

std::vector<std::string> names() {
  int n = 0;
  const char **all = nullptr;
  check(TVMFuncListGlobalNames(&n, &all));
  return std::vector<std::string>(all, all + n);
}

template <typename Name> void set(Entry<Name> &entry, const std::string &name, const rt::PackedFunc &f, Era era) {
  if (heddle_tvm_cxx::is_null(f)) throw rt::Error("function '" + name + "': the function is null");
  TVMFunctionHandle handle = heddle_tvm_cxx::handle_of_function(f, era);
  if (TVMFuncRegisterGlobal(name.c_str(), handle, 1) != 0) {
    (void)TVMFuncFree(handle);
    throw rt::Error(TVMGetLastError());
  }
  std::lock_guard<std::mutex> guard(tables().lock);
  entry.function = f;
  entry.handle = handle;
}

// Devices as programs ask for them; whether there is one of the kind.
bool has_device(const std::string &target) {
  static const struct {
    const char *name;
    int type;
  } kinds[] = {{"cuda", 2}, {"nvptx", 2}, {"opencl", 4}, {"vulkan", 7}, {"metal", 8}, {"rocm", 10}, {"hexagon", 16}};
  if (target == "cpu" || target == "llvm" || target == "c" || target == "stackvm") return target != "stackvm";
  for (const auto &kind : kinds) {
    if (target.compare(0, std::string(kind.name).size(), kind.name) != 0) continue;
    const rt::PackedFunc *f = get("runtime.GetDeviceAttr", Era::STRING);
    TVMValue args[3] = {{kind.type}, {0}, {0}};
    int codes[3] = {rt::CODE_INT, rt::CODE_INT, rt::CODE_INT};
    rt::TVMRetValue there;
    heddle_tvm_cxx::call(*f, rt::TVMArgs{args, codes, 3}, &there);
    return there.type_code_ == rt::CODE_INT && there.value_.v_int64 != 0;
  }
  return false;
}

} // namespace

rt::Registry &rt::Registry::Register(const String &name, bool can_override) {
  std::string text = name.text();
  refuse_taken(text, can_override);
  std::lock_guard<std::mutex> guard(tables().lock);
  NewEntry &entry = tables().entries[text];
  entry.name = name;
  return *reinterpret_cast<Registry *>(&entry);
}

rt::Registry &rt::Registry::Register(const std::string &name, bool can_override) {
  refuse_taken(name, can_override);
  std::lock_guard<std::mutex> guard(tables().lock);
  OldEntry &entry = tables().old_entries[name];
  entry.name = name;
  return *reinterpret_cast<Registry *>(&entry);
}

// Which kind of entry it is, its address tells.
rt::Registry &rt::Registry::set_body(PackedFunc f) {
  NewEntry *entry = nullptr;
  OldEntry *old = nullptr;
  {
    Tables &t = tables();
    std::lock_guard<std::mutex> guard(t.lock);
    for (auto &at : t.entries)
      if (static_cast<void *>(&at.second) == this) entry = &at.second;
    for (auto &at : t.old_entries)
      if (static_cast<void *>(&at.second) == this) old = &at.second;
  }
  if (entry != nullptr) set(*entry, entry->name.text(), f, Era::STRING);
  else if (old != nullptr) set(*old, old->name, f, Era::STD_STRING);
  else throw Error("Registry::set_body: Registry::Register did not give this entry");
  return *this;
}

bool rt::Registry::Remove(const std::string &name) {
  return TVMFuncRemoveGlobal(name.c_str()) == 0;
}

bool rt::Registry::Remove(const String &name) {
  return Remove(name.text());
}

const rt::PackedFunc *rt::Registry::Get(const String &name) {
  return get(name.text(), Era::STRING);
}

const rt::PackedFunc *rt::Registry::Get(const std::string &name) {
  return get(name, Era::STD_STRING);
}

std::vector<rt::String> rt::Registry::ListNames() {
  std::vector<String> out;
  for (std::string &name : names()) {
    out.emplace_back();
    out.back().data_ = heddle_tvm_cxx::make_string(std::move(name));
  }
  return out;
}

// Of v0.9 to v0.12: it differs from the other in what it returns only.
EXPORT std::vector<std::string> heddle_tvm_cxx_old_names() __asm__("_ZN3tvm7runtime8Registry9ListNamesB5cxx11Ev");
std::vector<std::string> heddle_tvm_cxx_old_names() {
  return names();
}

bool rt::RuntimeEnabled(const std::string &target) {
  return has_device(target);
}

bool rt::RuntimeEnabled(const String &target) {
  return has_device(target.text());
}
