// tests/cpp/test_tvm.cpp: the headers for programs of TVM's C++ runtime: values, functions, names, arrays, containers, errors,
// and the counts of references.
#include "check.hpp"

#include <atomic>
#include <set>
#include <thread>

#include <tvm/runtime/tvm_runtime_pack.h>

using namespace tvm::runtime;

namespace {

// Counts how many there are.
struct Alive {
  static std::atomic<int> &count() {
    static std::atomic<int> n{0};
    return n;
  }
  Alive() {
    count()++;
  }
  Alive(const Alive &) {
    count()++;
  }
  ~Alive() {
    count()--;
  }
};

class Node : public Object {
public:
  static constexpr const char *_type_key = "test.Node";
  TVM_DECLARE_FINAL_OBJECT_INFO(Node, Object)
  explicit Node(int n) : number(n) {}
  int plus(int more) const {
    return number + more;
  }
  int number;
  Alive alive;
};

class Ref : public ObjectRef {
public:
  TVM_DEFINE_OBJECT_REF_METHODS(Ref, ObjectRef, Node);
  explicit Ref(int n) : Ref(ObjectPtr<Object>(make_object<Node>(n))) {}
  int twice() const {
    return 2 * operator->()->number;
  }
};

const DLDevice cpu{kDLCPU, 0};
const DLDataType f32{kDLFloat, 32, 1};

NDArray floats(const std::vector<float> &values) {
  NDArray out = NDArray::Empty({static_cast<int64_t>(values.size())}, f32, cpu);
  out.CopyFromBytes(values.data(), values.size() * sizeof(float));
  return out;
}

std::vector<float> floats(const NDArray &from) {
  std::vector<float> out(GetDataSize(*from.operator->()) / sizeof(float));
  from.CopyToBytes(out.data(), out.size() * sizeof(float));
  return out;
}

template <class F> std::string thrown(F &&f) {
  try {
    f();
  } catch (const Error &e) {
    return e.what();
  }
  return "nothing was thrown";
}

// Calls a function through the C API, as other languages do.
TVMRetValue through_c(const PackedFunc &f, TVMArgs args) {
  PackedFuncObj plain(f.handle()); // has no body
  TVMRetValue rv;
  TVMObjectRetain(f.handle());
  plain.CallPacked(args, &rv);
  return rv;
}

template <class... Args> TVMRetValue through_c(const PackedFunc &f, const Args &...args) {
  TVMValue values[sizeof...(Args) + 1];
  int codes[sizeof...(Args) + 1];
  TVMArgsSetter set(values, codes);
  std::size_t i = 0;
  const int each[] = {0, (set(i++, args), 0)...};
  (void)each;
  return through_c(f, TVMArgs(values, codes, static_cast<int>(sizeof...(Args))));
}

const PackedFunc same([](TVMArgs args, TVMRetValue *rv) { *rv = args[0]; });

int registered_early = 0;
TVM_REGISTER_GLOBAL("test.early").set_body([](TVMArgs args, TVMRetValue *rv) {
  registered_early += static_cast<int>(args[0]);
  *rv = registered_early;
});
TVM_REGISTER_GLOBAL("test.add").set_body_typed([](int a, double b) { return a + b; });
TVM_REGISTER_GLOBAL("test.twice").set_body_method(&Ref::twice);
TVM_REGISTER_GLOBAL("test.plus").set_body_method<Ref>(&Node::plus);

} // namespace

CASE(values_come_back_as_they_were) {
  for (const bool direct : {true, false}) {
    const auto back = [direct](const auto &value) { return direct ? same(value) : through_c(same, value); };
    EQUAL(static_cast<int>(back(-7)), -7);
    EQUAL(static_cast<int64_t>(back(INT64_MIN)), INT64_MIN);
    EQUAL(static_cast<bool>(back(true)), true);
    EQUAL(static_cast<double>(back(2.5f)), 2.5);
    EQUAL(static_cast<double>(back(3)), 3.0);
    EQUAL(back("text").operator std::string(), "text");
    EQUAL(back(std::string("te\0xt", 5)).operator std::string(), std::string("te\0xt", 5));
    EQUAL(back(std::string()).operator std::string(), "");
    EQUAL(back(String("object")).operator std::string(), "object");
    EQUAL(String(back(String(std::string("a\0b", 3)))).size(), 3u);
    const TVMByteArray bytes{"\0\1\2", 3};
    EQUAL(back(bytes).operator std::string(), std::string("\0\1\2", 3));
    EQUAL(back(bytes).type_code(), kTVMBytes);
    EQUAL(back(nullptr).type_code(), kTVMNullptr);
    int here = 0;
    CHECK_EQ(static_cast<void *>(back(static_cast<void *>(&here))), static_cast<void *>(&here));
    CHECK(static_cast<DLDevice>(back(DLDevice{kDLOpenCL, 3})) == (DLDevice{kDLOpenCL, 3}));
    CHECK(DataType(static_cast<DLDataType>(back(DataType::Float(16, 4)))) == DataType::Float(16, 4));
    EQUAL(back(kDLCUDA).type_code(), kDLInt);
    CHECK(!static_cast<NDArray>(back(NDArray())).defined());
  }
  CONTAINS(thrown([] { same(UINT64_MAX); }), "too large");
}

CASE(conversions_are_checked) {
  CONTAINS(thrown([] { (void)static_cast<int>(same("text")); }), "expected int but got str");
  CONTAINS(thrown([] { (void)static_cast<int>(same(INT64_MAX)); }), "does not fit");
  CONTAINS(thrown([] { (void)static_cast<double>(same(nullptr)); }), "expected float but got NULL");
  CONTAINS(thrown([] { (void)same(1).operator std::string(); }), "expected str but got int");
  CONTAINS(thrown([] { (void)static_cast<Module>(same(1)); }), "expected Module but got int");
  CONTAINS(thrown([] { (void)static_cast<NDArray>(same("x")); }), "expected NDArray but got str");
  CONTAINS(thrown([] { (void)static_cast<PackedFunc>(same("x")); }), "expected PackedFunc but got str");
  CONTAINS(thrown([] { (void)static_cast<DLTensor *>(same(same)); }), "expected DLTensor* or NDArray");
  CONTAINS(thrown([] { (void)static_cast<DLDevice>(same(1)); }), "expected DLDevice but got int");
  CONTAINS(thrown([] { same(ShapeTuple({1})).AsObjectRef<Ref>(); }), "Downcast from runtime.ShapeTuple to test.Node");
  const PackedFunc second([](TVMArgs args, TVMRetValue *rv) { *rv = args[1]; });
  CONTAINS(thrown([&] { second(1); }), "1 passed, but argument 1 is read");
  CONTAINS(thrown([] { PackedFunc()(1); }), "a null PackedFunc is called");
  EQUAL(static_cast<DLDataType>(same("float16x2")).lanes, 2);
}

CASE(results_own_what_they_hold) {
  TVMRetValue a;
  a = std::string("short");
  TVMRetValue b = a, c = std::move(a);
  EQUAL(b.operator std::string(), "short");
  EQUAL(c.operator std::string(), "short");
  const TVMRetValue &self = b;
  b = self;
  b = std::move(c);
  EQUAL(std::string(b.value().v_str), "short");
  std::vector<TVMRetValue> many;
  for (int i = 0; i < 20; i++) {
    TVMRetValue v;
    v = TVMByteArray{"bytes", 5};
    many.push_back(std::move(v));
  }
  for (const TVMRetValue &v : many) EQUAL(v.operator std::string(), "bytes");
  const NDArray array = floats({1, 2});
  EQUAL(array.use_count(), 1);
  a = array;
  EQUAL(array.use_count(), 2);
  CHECK(static_cast<NDArray>(a).same_as(array));
  a = nullptr;
  EQUAL(array.use_count(), 1);
  TVMValue value;
  int code;
  a = array;
  a.MoveToCHost(&value, &code);
  EQUAL(code, kTVMNDArrayHandle);
  EQUAL(a.type_code(), kTVMNullptr);
  CHECK(static_cast<NDArray>(TVMRetValue::MoveFromCHost(value, code)).same_as(array));
  b = "text";
  CONTAINS(thrown([&] { b.MoveToCHost(&value, &code); }), "not moved");
}

CASE(functions_are_counted) {
  {
    const auto held = std::make_shared<Alive>();
    PackedFunc f([held](TVMArgs, TVMRetValue *rv) { *rv = 1; });
    const PackedFunc copy = f;
    EQUAL(static_cast<int>(through_c(f)), 1);
    PackedFunc again = through_c(same, f);
    CHECK(again.same_as(f));
    CHECK(f != nullptr);
    CHECK(f.body() != nullptr);
    CHECK(again.body() == nullptr); // it came through the C API
    EQUAL(static_cast<int>(again()), 1);
    f = PackedFunc();
    CHECK(f == nullptr);
    EQUAL(held.use_count(), 2L);
  }
  EQUAL(Alive::count().load(), 0);
}

CASE(errors_cross) {
  const PackedFunc bad([](TVMArgs, TVMRetValue *) { throw std::out_of_range("beyond"); });
  try {
    bad();
    NOT_REACHED();
  } catch (const std::out_of_range &e) { // called directly
    EQUAL(std::string(e.what()), "beyond");
  }
  EQUAL(thrown([&] { through_c(bad); }), "beyond");
  const PackedFunc odd([](TVMArgs, TVMRetValue *) { throw 7; });
  CONTAINS(thrown([&] { through_c(odd); }), "no std::exception");
  const PackedFunc check([](TVMArgs args, TVMRetValue *) { CHECK_EQ(static_cast<int>(args[0]), 1) << "as asked"; });
  CONTAINS(thrown([&] { check(2); }), "Check failed: static_cast<int>(args[0]) == 1 (2 vs. 1): as asked");
  CONTAINS(thrown([&] { through_c(check, 2); }), "(2 vs. 1): as asked");
  CHECK(through_c(check, 1).type_code() == kTVMNullptr);
  const PackedFunc outer([&](TVMArgs, TVMRetValue *) { through_c(check, 3); });
  CONTAINS(thrown([&] { through_c(outer); }), "(3 vs. 1): as asked");
  CONTAINS(thrown([] { Module::LoadFromFile("/nowhere/lib.so"); }), "/nowhere/lib.so");
  try {
    Module::LoadFromFile("/nowhere/lib.so");
    NOT_REACHED();
  } catch (const dmlc::Error &) {}
  CONTAINS(thrown([] { Module().GetFunction("f"); }), "null Module");
  CONTAINS(thrown([] { Module().Import(Module()); }), "null Module");
}

CASE(typed_functions) {
  TypedPackedFunc<int(int, std::string)> f = [](int n, const std::string &text) {
    return n + static_cast<int>(text.size());
  };
  EQUAL(f(1, "ab"), 3);
  EQUAL(static_cast<int>(f.packed()(1, "ab")), 3);
  EQUAL(static_cast<int>(through_c(f.packed(), 1, "ab")), 3);
  CONTAINS(thrown([&] { f.packed()(1); }), "expects 2 arguments, but 1 were provided");
  CONTAINS(thrown([&] { f.packed()("x", "y"); }), "argument 0: expected int but got str");
  const TypedPackedFunc<int(int, std::string)> again = same(f);
  EQUAL(again(2, ""), 2);
  int called = 0;
  const TypedPackedFunc<void(float, bool, uint8_t)> none = [&](float x, bool b, uint8_t n) {
    called += static_cast<int>(x) + (b ? 1 : 0) + n;
  };
  none(2, true, 200);
  EQUAL(called, 203);
  CONTAINS(thrown([&] { none.packed()(1.0, false, 300); }), "argument 2: the value 300 does not fit");
  const TypedPackedFunc<NDArray(NDArray)> arrays = [](NDArray a) { return a; };
  CHECK(!arrays(NDArray()).defined());
  const TypedPackedFunc<PackedFunc(Module, PackedFunc)> handles = [](Module, PackedFunc g) { return g; };
  CHECK(handles(Module(), same).same_as(same));
  const TypedPackedFunc<void()> empty;
  CHECK(empty == nullptr);
  CONTAINS(thrown([&] { empty(); }), "null PackedFunc");
  const TypedPackedFunc<TVMRetValue(TVMArgValue)> raw = [](TVMArgValue v) {
    TVMRetValue rv;
    rv = v;
    return rv;
  };
  EQUAL(raw.packed()("abc").operator std::string(), "abc");
}

CASE(functions_by_name) {
  EQUAL(static_cast<int>((*Registry::Get("test.early"))(5)), registered_early);
  EQUAL(registered_early, 5);
  EQUAL(static_cast<double>((*Registry::Get("test.add"))(1, 2.5)), 3.5);
  EQUAL(static_cast<int>((*Registry::Get("test.twice"))(Ref(21))), 42);
  EQUAL(static_cast<int>((*Registry::Get("test.plus"))(Ref(40), 2)), 42);
  CONTAINS(thrown([] { (*Registry::Get("test.add"))(1); }), "Function test.add expects 2 arguments");
  CHECK(Registry::Get("test.none") == nullptr);
  CHECK(!Registry::Remove("test.none"));
  CONTAINS(thrown([] { Registry::Register("test.add"); }), "test.add is already registered");
  const PackedFunc *first = Registry::Get("test.add");
  CHECK(first == Registry::Get("test.add"));
  Registry::Register("test.add", true).set_body_typed([](int a) { return -a; });
  EQUAL(static_cast<int>((*Registry::Get("test.add"))(3)), -3);
  EQUAL(static_cast<double>((*first)(1, 1)), 2.0); // what Get returned stays
  const std::vector<std::string> names = Registry::ListNames();
  CHECK(std::set<std::string>(names.begin(), names.end()).count("test.add") == 1);
  CHECK(Registry::Remove("test.add"));
  CHECK(Registry::Get("test.add") == nullptr);
  Registry::Register("test.add").set_body(same);
  CHECK(Registry::Get("test.add")->same_as(same));
  CHECK(Registry::Get("tvm.graph_executor.create") != nullptr);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; i++)
    threads.emplace_back([] {
      for (int k = 0; k < 200; k++) CHECK((*Registry::Get("test.add"))(k).operator int() == k);
    });
  for (std::thread &t : threads) t.join();
}

CASE(arrays) {
  NDArray a = floats({1, 2, 3, 4, 5, 6});
  EQUAL(a->ndim, 1);
  EQUAL(a.Shape()[0], 6);
  CHECK(a.DataType() == DataType::Float(32));
  CHECK(a.IsContiguous());
  NDArray b = NDArray::Empty({2, 3}, f32, cpu);
  EQUAL(floats(b)[5], 0.0f);
  NDArray view = a.CreateView({2, 3}, f32);
  EQUAL(view->ndim, 2);
  EQUAL(view->data, a->data);
  b.CopyFrom(view);
  static_cast<float *>(a->data)[0] = 10;
  EQUAL(floats(view)[0], 10.0f);
  EQUAL(floats(b)[0], 1.0f);
  view = NDArray();
  NDArray small = a.CreateView({3}, DLDataType{kDLInt, 16, 1});
  a = NDArray(); // the view keeps the memory
  EQUAL(GetDataSize(*small.operator->()), 6u);
  int16_t words[3];
  small.CopyToBytes(words, sizeof words);
  CONTAINS(thrown([&] { b.CreateView({7}, f32); }), "28 bytes, and the array 24");
  CONTAINS(thrown([&] { b.CreateView({INT64_MAX, 2}, f32); }), "not possible");
  CONTAINS(thrown([&] { b.CreateView({-1}, f32); }), "not possible");
  CHECK(floats(b.CopyTo(cpu)) == floats(b));
  NDArray c = NDArray::Empty({6}, f32, cpu);
  b.CopyTo(c);
  CHECK(floats(c) == floats(b));
  CONTAINS(thrown([&] { b.CopyFromBytes(words, 1); }), "24 bytes");
  CONTAINS(thrown([&] { NDArray::Empty({2}, f32, cpu, String("texture")); }), "texture");
  EQUAL(NDArray::Empty({2}, f32, cpu, String("global")).use_count(), 1);
  CONTAINS(thrown([] { NDArray().Shape(); }), "without memory");
  CONTAINS(thrown([] { NDArray::Empty({1}, f32, DLDevice{kDLMetal, 7}); }), "");
  const NDArray flags = NDArray::Empty({3}, DataType::Bool(), cpu);
  EQUAL(GetDataSize(*flags.operator->()), 3u);
  EQUAL(flags.CreateView({3, 1}, DataType::Bool())->ndim, 2);
  DLTensor *raw = same(b);
  EQUAL(raw, b.operator->());
}

CASE(arrays_by_dlpack) {
  static int released = 0;
  const auto lent = [](float *data) {
    static int64_t shape[1] = {2};
    DLManagedTensor *t = new DLManagedTensor();
    t->dl_tensor = DLTensor{data, cpu, 1, f32, shape, nullptr, 0};
    t->deleter = [](DLManagedTensor *self) {
      released++;
      delete self;
    };
    return t;
  };
  alignas(64) float data[2] = {1, 2};
  {
    const NDArray a = NDArray::FromDLPack(lent(data));
    EQUAL(a->data, static_cast<void *>(data));
    DLManagedTensor *out = a.ToDLPack();
    EQUAL(out->dl_tensor.data, static_cast<void *>(data));
    EQUAL(released, 0);
    out->deleter(out);
  }
  EQUAL(released, 1);
  DLManagedTensor *bad = lent(data);
  bad->dl_tensor.ndim = -1;
  CHECK(thrown([&] { NDArray::FromDLPack(bad); }) != "nothing was thrown");
  EQUAL(released, 2);
  int64_t shape[2] = {1, 2};
  DLTensor plain{data, cpu, 2, f32, shape, nullptr, 0};
  const NDArray outside = NDArray::FromExternalDLTensor(plain), copy = NDArray::NewFromDLTensor(&plain, cpu);
  shape[1] = 9;
  data[1] = 5;
  EQUAL(outside.Shape()[1], 2);
  EQUAL(floats(outside)[1], 5.0f);
  EQUAL(floats(copy)[1], 2.0f);
}

CASE(objects_are_counted) {
  {
    Ref a(3);
    EQUAL(Alive::count().load(), 1);
    ObjectRef b = a;
    EQUAL(a.use_count(), 2);
    CHECK(b.as<Node>() != nullptr && b.as<StringObj>() == nullptr);
    EQUAL(Downcast<Ref>(b)->number, 3);
    EQUAL(b->GetTypeKey(), "test.Node");
    CONTAINS(thrown([&] { Downcast<String>(b); }), "Downcast from test.Node to runtime.String failed");
    const Ref c = GetRef<Ref>(a.get());
    CHECK(c.same_as(a) && c == a);
    EQUAL(through_c(same, a).AsObjectRef<Ref>()->number, 3); // as an argument and a result through the C API
    const PackedFunc make([](TVMArgs args, TVMRetValue *rv) { *rv = Ref(static_cast<int>(args[0])); });
    EQUAL(through_c(make, 8).AsObjectRef<Ref>()->number, 8);
    EQUAL(make(9).AsObjectRef<Ref>()->number, 9);
    TVMRetValue kept = through_c(make, 1);
    EQUAL(Alive::count().load(), 2);
    ObjectPtr<Node> p = make_object<Node>(4);
    ObjectPtr<Object> q = p;
    EQUAL(p.use_count(), 2);
    q = std::move(p);
    CHECK(p == nullptr && q.unique());
  }
  EQUAL(Alive::count().load(), 0);
}

CASE(strings) {
  const String a = "abc", b = std::string("abd");
  CHECK(a == "abc" && a != b && a < b && "abb" < a && a == std::string("abc"));
  EQUAL(a + b, "abcabd");
  EQUAL(std::string(a + "x"), "abcx");
  EQUAL(a.size(), 3u);
  EQUAL(a.at(1), 'b');
  EQUAL(a.compare("abc"), 0);
  EQUAL(std::hash<String>()(a), std::hash<std::string>()("abc"));
  EQUAL(String().size(), 0u);
  CHECK(!String(nullptr).defined());
  std::ostringstream out;
  out << a;
  EQUAL(out.str(), "abc");
}

CASE(containers) {
  Array<Ref> a = {Ref(1), Ref(2)};
  const Array<Ref> before = a;
  a.push_back(Ref(3));
  a.Set(0, Ref(7));
  EQUAL(before.size(), 2u);
  EQUAL(before[0]->number, 1);
  int sum = 0;
  for (Ref one : a) sum += one->number;
  EQUAL(sum, 12);
  a.erase(a.begin());
  a.insert(a.begin(), Ref(5));
  EQUAL(a.front()->number + a.back()->number, 8);
  EQUAL(a.Map([](Ref one) { return String(std::to_string(one->number)); })[1], "2");
  CONTAINS(thrown([&] { (void)a[3]; }), "index 3 of an array of 3");
  CONTAINS(thrown([&] { (void)a[-1]; }), "index -1");
  CONTAINS(thrown([&] { (void)Downcast<Array<String>>(a)[0]; }), "Downcast");
  a.resize(1);
  a.pop_back();
  CONTAINS(thrown([&] { a.pop_back(); }), "without elements");
  EQUAL(Array<Ref>(through_c(same, before)).size(), 2u);
  const Array<ObjectRef> mixed = {floats({1}), String("x"), same, ShapeTuple({4})};
  EQUAL(floats(Downcast<NDArray>(mixed[0]))[0], 1.0f);
  EQUAL(Downcast<String>(mixed[1]), "x");
  CHECK(Downcast<PackedFunc>(mixed[2]).same_as(same));

  Map<String, NDArray> m = {{"b", floats({2})}, {"a", floats({1})}};
  const Map<String, NDArray> old = m;
  m.Set("c", floats({3}));
  m.Set("b", floats({4}));
  std::string keys;
  for (auto pair : m) keys += std::string(pair.first);
  EQUAL(keys, "bac");
  EQUAL(floats(m["b"])[0], 4.0f);
  EQUAL(floats(old.at("b"))[0], 2.0f);
  CHECK(m.find("z") == m.end() && m.count("a") == 1 && m.Get("z") == nullptr && m.Get("a").has_value());
  EQUAL(floats(m.find("c")->second)[0], 3.0f);
  CONTAINS(thrown([&] { m.at("z"); }), "cannot find the key");
  m.erase("b");
  EQUAL(m.size(), 2u);
  EQUAL(floats(m["c"])[0], 3.0f);

  const ShapeTuple shape(std::vector<int64_t>{2, 3});
  std::ostringstream out;
  out << shape;
  EQUAL(out.str(), "[2, 3]");
  CONTAINS(thrown([&] { (void)shape[2]; }), "index 2 of a shape of 2");
  EQUAL(ShapeTuple(through_c(same, shape)).back(), 3);
  ADT pair = ADT::Tuple(String("x"), Ref(1));
  pair[1] = Ref(2);
  EQUAL(Downcast<Ref>(pair[1])->number, 2);
  EQUAL(pair.size(), 2u);
  EQUAL(ADT(5, {}).tag(), 5);
  CONTAINS(thrown([&] { (void)pair[2]; }), "field 2 of an object of 2");
  const Optional<String> none = NullOpt, some = String("y");
  CHECK(!none && some.value() == "y" && none.value_or("z") == "z");
  CONTAINS(thrown([&] { (void)none.value(); }), "without a value");
}

CASE(types_and_devices) {
  for (const char *name : {"int8", "uint16", "float32", "float64x4", "bfloat16", "bool", "handle", ""})
    EQUAL(DLDataType2String(String2DLDataType(name)), name);
  EQUAL(DLDataType2String(DLDataType{kDLUInt, 1, 1}), "bool");
  EQUAL(String2DLDataType("int").bits, 32);
  CONTAINS(thrown([] { String2DLDataType("float32y"); }), "unknown type float32y");
  CONTAINS(thrown([] { String2DLDataType("float9999"); }), "unknown type");
  CHECK(DataType::Int(8, 4).is_vector() && DataType::Void().is_void() && DataType::BFloat(16).is_bfloat16());
  CHECK(TypeMatch(f32, kDLFloat, 32));
  std::ostringstream out;
  out << cpu << ' ' << DataType::UInt(8);
  EQUAL(out.str(), "cpu(0) uint8");
  CONTAINS(thrown([] { DeviceName(999); }), "999");
  DeviceAPI *api = DeviceAPI::Get(cpu);
  CHECK(api != nullptr && DeviceAPI::Get(DLDevice{kDLMetal, 7}, true) == nullptr);
  CHECK(thrown([] { DeviceAPI::Get(DLDevice{kDLMetal, 7}); }) != "nothing was thrown");
  void *memory = api->AllocDataSpace(cpu, 128, kAllocAlignment, f32);
  EQUAL(reinterpret_cast<uintptr_t>(memory) % kAllocAlignment, 0u);
  api->FreeDataSpace(cpu, memory);
  void *scratch = api->AllocWorkspace(cpu, 100);
  api->FreeWorkspace(cpu, scratch);
  TVMStreamHandle stream = api->CreateStream(cpu);
  api->SetStream(cpu, stream);
  api->StreamSync(cpu, stream);
  api->SetStream(cpu, nullptr);
  api->FreeStream(cpu, stream);
  CHECK(IsRPCSessionDevice(DLDevice{static_cast<DLDeviceType>(kRPCSessMask + 1), 0}));
}

CASE(modules) {
  const Module system = (*Registry::Get("runtime.SystemLib"))();
  CHECK(system.defined());
  CHECK(system.GetFunction("there is none") == nullptr);
  CHECK(system->GetFunction("there is none", true) == nullptr);
  EQUAL(std::string(system->type_key()).empty(), false);
  EQUAL(system->imports().size(), 0u);
  CONTAINS(thrown([&] { Module(system).Import(system); }), "");
  CHECK(Module(through_c(same, system)).same_as(system));
}

CASE(checks_and_logs) {
  CHECK(true) << "not reached";
  ICHECK_EQ(1, 1);
  CHECK_LT(1, 2u);
  CHECK_GE(2, 2);
  if (false) CHECK(false);
  else CHECK(true);
  CONTAINS(thrown([] { CHECK(1 > 2) << "so " << 3; }), "test_tvm.cpp");
  CONTAINS(thrown([] { CHECK(1 > 2) << "so " << 3; }), "Check failed: (1 > 2) is false: so 3");
  CONTAINS(thrown([] { ICHECK_LE(3, 2); }), "Check failed: 3 <= 2 (3 vs. 2): ");
  CONTAINS(thrown([] { LOG(FATAL) << "the end"; }), "the end");
  int *none = nullptr;
  CONTAINS(thrown([&] { *CHECK_NOTNULL(none) = 1; }), "Check not null: none");
  int n = 1;
  EQUAL(CHECK_NOTNULL(&n), &n);
  CHECK_NE(&n, nullptr);
  CONTAINS(thrown([&] { CHECK_NE(none, nullptr); }), "vs. nullptr)");
  LOG(INFO) << "a line of the test";
  LOG_IF(INFO, false) << "none";
  VLOG(1) << "none";
  DLOG(INFO) << "in debug builds";
  DCHECK_EQ(1, 1) << "none";
  try {
    LOG(FATAL) << "words";
    NOT_REACHED();
  } catch (const InternalError &e) {
    EQUAL(e.message(), "words");
    CHECK(e.lineno() > 0);
  }
}

int main(int argc, char **argv) {
  return check::main(argc, argv);
}
