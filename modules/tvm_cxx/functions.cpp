// modules/tvm_cxx/functions.cpp: functions as objects of C++, and the values that cross when they are called.
#include "modules/tvm_cxx/functions.hpp"

#include <cstring>
#include <deque>
#include <memory>

#include "modules/tvm_cxx/modules.hpp"

namespace rt = tvm::runtime;

rt::TVMRetValue::~TVMRetValue() {
  switch (type_code_) {
  case CODE_STRING:
  case CODE_BYTES: delete static_cast<std::string *>(value_.v_handle); break;
  case CODE_OBJECT:
  case CODE_MODULE: static_cast<Object *>(value_.v_handle)->DecRef(); break;
  case CODE_FUNCTION: heddle_tvm_cxx::drop_function(value_.v_handle); break;
  case CODE_NDARRAY: heddle_tvm_cxx::container_of(static_cast<DLTensor *>(value_.v_handle))->DecRef(); break;
  default: break;
  }
}

namespace heddle_tvm_cxx {

void check(int rc) {
  if (rc != 0) throw rt::Error(TVMGetLastError());
}

namespace {

// What arguments need while a call lasts.
struct Kept {
  std::deque<TVMFunctionHandle> functions;
  std::deque<TVMModuleHandle> modules;
  ~Kept() {
    for (TVMFunctionHandle f : functions) (void)TVMFuncFree(f);
    for (TVMModuleHandle m : modules) (void)TVMModFree(m);
  }
};

[[noreturn]] void refuse(const Object *o, const char *why) {
  throw rt::Error("an object of type '" + Object::TypeIndex2Key(o->type_index_) + "' " + why);
}

void lower_function(const PackedFunc &f, Era era, TVMValue *value, int *code, Kept *kept) {
  kept->functions.push_back(handle_of_function(f, era));
  value->v_handle = kept->functions.back();
  *code = rt::CODE_FUNCTION;
}

// An object of C++ as the C API takes it, while the call lasts.
void lower(Object *o, [[maybe_unused]] Era era, TVMValue *value, int *code, Kept *kept) {
  *code = rt::CODE_NULL;
  value->v_handle = nullptr;
  if (o == nullptr) return;
  switch (o->type_index_) {
  case rt::STRING: {
    // Strings of the C API end with a zero, and have none inside.
    auto *s = static_cast<rt::StringObj *>(o);
    if (std::memchr(s->data, 0, s->size) != nullptr)
      refuse(o, "has a zero byte, which functions of Heddle do not take");
    value->v_str = s->data;
    *code = rt::CODE_STRING;
    return;
  }
  case rt::NDARRAY: {
    TVMArrayHandle handle = handle_of(o);
    value->v_handle = handle != nullptr ? handle : &static_cast<Container *>(o)->dl_tensor;
    *code = handle != nullptr ? rt::CODE_NDARRAY : rt::CODE_TENSOR;
    return;
  }
#ifndef HEDDLE_TVM_CXX_V08
  case rt::PACKED_FUNC: lower_function(function_of(o), era, value, code, kept); return;
#endif
  case rt::MODULE:
    value->v_handle = handle_of_module(o);
    if (value->v_handle == nullptr) {
      kept->modules.push_back(handle_of_own(o));
      value->v_handle = kept->modules.back();
    }
    *code = rt::CODE_MODULE;
    return;
  default: refuse(o, "cannot be given to a function of Heddle");
  }
}

} // namespace

void call_handle(TVMFunctionHandle f, Era era, rt::TVMArgs args, rt::TVMRetValue *rv) {
  enum { FEW = 16 };
  TVMValue few[FEW], *values = few, ret{};
  int few_codes[FEW], *codes = few_codes, code = rt::CODE_NULL;
  std::vector<TVMValue> more;
  std::vector<int> more_codes;
  Kept kept;
  if (args.num_args > FEW) {
    more.resize(static_cast<size_t>(args.num_args));
    more_codes.resize(more.size());
    values = more.data();
    codes = more_codes.data();
  }
  for (int i = 0; i < args.num_args; i++) {
    values[i] = args.values[i];
    codes[i] = args.type_codes[i];
    void *p = values[i].v_handle;
    if (codes[i] == rt::CODE_NDARRAY && p != nullptr) p = container_of(static_cast<DLTensor *>(p));
    else if (codes[i] == rt::CODE_OBJECT_REF) p = *static_cast<Object **>(p);
    else if (codes[i] < rt::CODE_OBJECT || codes[i] > rt::CODE_FUNCTION) continue;
    if (codes[i] == rt::CODE_FUNCTION && p != nullptr)
      lower_function(function_of(p), era, &values[i], &codes[i], &kept);
    else lower(static_cast<Object *>(p), era, &values[i], &codes[i], &kept);
  }
  check(TVMFuncCall(f, values, codes, args.num_args, &ret, &code));
  give(ret, code, era, rv);
}

namespace {

// A PackedFunc of C++, behind a function of libheddle_tvm's.
struct Inner {
  PackedFunc function;
  Era era;
};

// The values that a function of C++ is given: what the C API has as handles become objects.
struct Raised {
  std::vector<TVMValue> values;
  std::vector<int> codes;
  std::deque<rt::TVMRetValue> kept;

  Raised(const TVMValue *args, const int *type_codes, int n, Era era)
      : values(args, args + n), codes(type_codes, type_codes + n) {
    for (size_t i = 0; i < values.size(); i++) {
      if (codes[i] != rt::CODE_MODULE && codes[i] != rt::CODE_FUNCTION && codes[i] != rt::CODE_NDARRAY) continue;
      TVMValue own = values[i];
      int code = codes[i];
      check(TVMCbArgToReturn(&own, &code)); // with a reference of its own
      kept.emplace_back();
      give(own, code, era, &kept.back());
      values[i] = kept.back().value_;
      codes[i] = kept.back().type_code_;
    }
  }
};

int call_inner(TVMValue *args, int *codes, int n, TVMRetValueHandle ret, void *resource) {
  const auto *inner = static_cast<Inner *>(resource);
  try {
    Raised raised(args, codes, n, inner->era);
    rt::TVMRetValue rv;
    call(inner->function, rt::TVMArgs{raised.values.data(), raised.codes.data(), n}, &rv);
    if (rv.type_code_ == rt::CODE_NULL) return 0;
    TVMValue value = rv.value_;
    TVMByteArray bytes;
    int code = rv.type_code_;
    Kept kept;
    if (code == rt::CODE_STRING || code == rt::CODE_BYTES) {
      auto *text = static_cast<std::string *>(value.v_handle);
      bytes = {text->data(), text->size()};
      value.v_str = text->c_str();
      if (code == rt::CODE_BYTES || text->find('\0') != std::string::npos) {
        value.v_handle = &bytes;
        code = rt::CODE_BYTES;
      }
    } else if (code == rt::CODE_FUNCTION) {
      lower_function(function_of(value.v_handle), inner->era, &value, &code, &kept);
    } else if (code == rt::CODE_OBJECT || code == rt::CODE_MODULE) {
      lower(static_cast<Object *>(value.v_handle), inner->era, &value, &code, &kept);
    } else if (code == rt::CODE_NDARRAY) {
      lower(container_of(static_cast<DLTensor *>(value.v_handle)), inner->era, &value, &code, &kept);
      if (code != rt::CODE_NDARRAY)
        throw rt::Error("the NDArray that it returned was made by a class of the program's own");
    }
    return TVMCFuncSetReturn(ret, &value, &code, 1);
  } catch (const std::exception &e) {
    TVMAPISetLastError(e.what());
  } catch (...) {
    TVMAPISetLastError("a function of C++ threw what is no std::exception");
  }
  return -1;
}

// The reference of a pointer.
Object *take(ObjectPtr<Object> from) {
  return std::exchange(from.data_, nullptr);
}

} // namespace

void give(TVMValue value, int code, Era era, rt::TVMRetValue *rv) {
  rt::TVMRetValue made; // swapped in when nothing can fail any more
  switch (code) {
  case rt::CODE_STRING: made.value_.v_handle = new std::string(value.v_str); break;
  case rt::CODE_BYTES: {
    const auto *bytes = static_cast<TVMByteArray *>(value.v_handle);
    made.value_.v_handle = new std::string(bytes->data, bytes->size);
    break;
  }
  case rt::CODE_MODULE: made.value_.v_handle = take(make_module(value.v_handle, era)); break;
  case rt::CODE_FUNCTION: made.value_.v_handle = keep_function(make_function(value.v_handle, era)); break;
  case rt::CODE_NDARRAY:
    made.value_.v_handle =
        &static_cast<Container *>(take(make_ndarray(static_cast<TVMArrayHandle>(value.v_handle))))->dl_tensor;
    break;
  default: made.value_ = value; break;
  }
  made.type_code_ = code;
  std::swap(rv->value_, made.value_);
  std::swap(rv->type_code_, made.type_code_);
}

TVMFunctionHandle handle_of_function(const PackedFunc &function, Era era) {
  TVMFunctionHandle out = nullptr;
  auto inner = std::make_unique<Inner>(Inner{function, era});
  check(TVMFuncCreateFromCFunc(
      call_inner, inner.get(), [](void *p) { delete static_cast<Inner *>(p); }, &out));
  (void)inner.release();
  return out;
}

} // namespace heddle_tvm_cxx
