// Functions, values and modules of heddle/function.hpp, and calls through code that a compiler made: tests/tvm/calls.c is
// a library as TVM v0.14 compiled it, whose forward(...) calls the function test.seen and whose apply(f, ...) calls f.
// Where TVM_LIBRARY names a library of the TVM wheel's (tests/python/test_cpp_tvm.py), also through that one's middle(x).
#include <algorithm>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <thread>

#include "check.hpp"
#include "heddle/function.hpp"
#include "heddle/heddle.hpp"

using heddle::Bytes;
using heddle::Function;
using heddle::Module;
using heddle::Object;
using heddle::Tensor;
using heddle::Value;

static const std::string library = HEDDLE_TEST_BUILD "/tests/tvm_calls.so";

struct Special : std::runtime_error {
  explicit Special(int n) : std::runtime_error("special " + std::to_string(n)), number(n) {}
  int number;
};

static int add(int a, int b) {
  return a + b;
}

CASE(values_pass_and_return) {
  const Function same = Function::of([](const Value &v) { return v; });
  EQUAL(same(7).as<int>(), 7);
  EQUAL(same(INT64_MIN).as<std::int64_t>(), INT64_MIN);
  EQUAL(same(2.5).as<double>(), 2.5);
  EQUAL(same(2.5f).as<float>(), 2.5f);
  EQUAL(same(3).as<double>(), 3.0);
  EQUAL(same(true).as<bool>(), true);
  EQUAL(same("text").as<std::string>(), "text");
  EQUAL(same(std::string(5000, 'a')).as<std::string>().size(), 5000u);
  CHECK((same(Value(Bytes{1, 0, 2})).as<Bytes>() == Bytes{1, 0, 2}));
  const Bytes blob{0, 1, 0, 2, 0};
  const std::string text("\0a\0b\0", 5);
  CHECK(same(blob).as<Bytes>() == blob && same(Bytes{}).as<Bytes>().empty());
  CHECK(same(text).as<std::string>() == text && same(Value(text)).as<std::string>() == text);
  EQUAL(same(text).kind(), HEDDLE_VALUE_BYTES);
  EQUAL(Value(text).kind(), HEDDLE_VALUE_BYTES);
  const Function size = Function::of([](const std::string &t) { return t.size(); });
  CHECK(size(text).as<int>() == 5 && size(blob).as<int>() == 5 && size("").as<int>() == 0);
  CHECK(Function::of([](const Bytes &b) { return b; })("ab").as<Bytes>() == (Bytes{'a', 'b'}));
  EQUAL(same(heddle::DeviceId{4, 2}).as<heddle::DeviceId>().number, 2);
  EQUAL(heddle::to_string(same(heddle::dtype_of<float>).as<heddle_dtype>()), "float32");
  CHECK(same(nullptr).is_none() && same(Tensor()).is_none() && same(static_cast<const char *>(nullptr)).is_none());
  int here = 0;
  CHECK(same(static_cast<void *>(&here)).as<void *>() == &here);
  const Tensor t = Tensor::copy(std::vector<int>{1, 2}, {2});
  CHECK(same(t).as<Tensor>().view<int>().data() == t.view<int>().data());
  EQUAL(same(same).as<Function>()(4).as<int>(), 4);
  EQUAL(same(same).kind(), HEDDLE_VALUE_FUNCTION);
  EQUAL(Function::of(add)(3, 4).as<int>(), 7);
  CHECK(Function::of([] {})().is_none());
  EQUAL(Function::of([](const std::vector<Value> &all) { return all.size(); })(1, "2", 3.0).as<int>(), 3);
  EQUAL(Function::of([](std::string a, const std::string &b) { return a + b; })("x", "y").as<std::string>(), "xy");
  EQUAL(Function::of([n = 0](int k) mutable { return n += k; })(5).as<int>(), 5);
}

CASE(what_does_not_fit_is_refused) {
  CONTAINS(THROWS(Value("a").as<int>(), HEDDLE_EINVAL).what(), "this is a string, not an int");
  THROWS(Value(300).as<std::uint8_t>(), HEDDLE_EINVAL);
  THROWS(Value(-1).as<std::uint64_t>(), HEDDLE_EINVAL);
  EQUAL(Value(-128).as<std::int8_t>(), -128);
  THROWS(Value().as<Tensor>(), HEDDLE_EINVAL);
  THROWS(Value(1.0).as<bool>(), HEDDLE_EINVAL);
  const Function f = Function::of([](int, Tensor) {});
  CONTAINS(THROWS(f(1), HEDDLE_EINVAL).what(), "takes 2 arguments, not 1");
  CONTAINS(THROWS(f(1, 2), HEDDLE_EINVAL).what(), "argument 1: this is an int, not a tensor");
  const Function none;
  THROWS(none(1), HEDDLE_EINVAL);
}

CASE(exceptions_come_out_as_they_went_in) {
  const Function f = Function::of([](int n) -> int { throw Special(n); });
  try {
    f(5);
    NOT_REACHED();
  } catch (const Special &e) {
    EQUAL(e.number, 5);
  }
  const heddle::Result<Value> r = f.try_call(6); // words, and the exception as the cause
  EQUAL(r.status(), HEDDLE_EFAILED);
  CONTAINS(r.error().what(), "special 6");
  CHECK(r.error().cause() != nullptr);
  const Function busy = Function::of([]() -> int { throw heddle::Error(HEDDLE_EBUSY, "come back later"); });
  CONTAINS(THROWS(busy(), HEDDLE_EBUSY).what(), "come back later");
  const Function odd = Function::of([]() -> int { throw 5; });
  try {
    odd();
    NOT_REACHED();
  } catch (int n) {
    EQUAL(n, 5);
  }
  EQUAL(Function::of([]() -> int { throw std::bad_alloc(); }).try_call().status(), HEDDLE_ENOMEM);
  const Function result = Function::of([]() -> heddle::Result<int> { return heddle::Error(HEDDLE_ELIMIT, "no more"); });
  EQUAL(result.try_call().status(), HEDDLE_ELIMIT);
  CHECK(result.try_call().error().cause() == nullptr);
  EQUAL(Function::of([]() -> heddle::Status { return {}; })().is_none(), true);
  EQUAL(Function::of([]() -> heddle::Result<int> { return 5; })().as<int>(), 5);
  // A function that catches what another threw, and one that fails with the other's Error.
  EQUAL(Function::of([&f](int n) {
          try {
            return f(n).as<int>();
          } catch (const Special &e) {
            return -e.number;
          }
        })(9)
            .as<int>(),
        -9);
  const Function passes = Function::of([&f](int n) { return f.try_call(n); });
  try {
    passes(11);
    NOT_REACHED();
  } catch (const Special &e) {
    EQUAL(e.number, 11);
  }
}

CASE(the_same_text_is_not_the_same_exception) {
  const Function first = Function::of([]() -> int { throw Special(1); });
  const Function other = Function::of([&first]() -> heddle::Status {
    CHECK(first.try_call().error().cause() != nullptr);
    (void)heddle_function_call(first.get(), nullptr, 0, nullptr, nullptr); // its exception stays with the thread
    return heddle::Error(HEDDLE_EFAILED, Special(1).what());
  });
  const heddle::Result<Value> r = other.try_call();
  EQUAL(r.status(), HEDDLE_EFAILED);
  CONTAINS(r.error().what(), "special 1");
  CHECK(r.error().cause() == nullptr);
}

CASE(closures_die_with_their_last_reference) {
  auto alive = std::make_shared<int>(3);
  {
    Function a = Function::of([alive] { return *alive; }), b = a, c = std::move(a);
    CHECK(!a && b && c);
    EQUAL(alive.use_count(), 2);
    const Value kept(b);
    b = c = Function();
    EQUAL(kept.as<Function>()().as<int>(), 3);
  }
  EQUAL(alive.use_count(), 1);
}

CASE(functions_by_name) {
  heddle::register_function("cpp.add", Function::of(add));
  const auto object = heddle::create_object("mine", [](const std::string &name) {
    if (name == "bad") throw std::runtime_error("no such luck");
    return name == "add" ? Function::of(add) : Function();
  });
  EQUAL(std::string(object.kind()), "mine");
  EQUAL(object.function("add")(2, 3).as<int>(), 5);
  EQUAL(object.try_function("none").error().status(), HEDDLE_ENOTFOUND);
  try {
    object.function("bad");
    CHECK(false);
  } catch (const std::runtime_error &e) {
    EQUAL(std::string(e.what()), "no such luck");
  }
  heddle::register_loader("cpp.kind",
                          Function::of([](const std::string &, const heddle::Bytes &) { return Function(); }));
  heddle::register_loader("cpp.kind", Function());
  EQUAL(heddle::try_register_loader("", Function()).error().status(), HEDDLE_EINVAL);
  EQUAL(Function::find("cpp.add")(1, 2).as<int>(), 3);
  THROWS(heddle::register_function("cpp.add", Function::of(add)), HEDDLE_EINVAL);
  heddle::register_function("cpp.add", Function::of([](int a, int b) { return a * b; }), true);
  EQUAL(Function::find("cpp.add")(5, 2).as<int>(), 10);
  const auto names = heddle::function_names();
  CHECK(std::find(names.begin(), names.end(), "cpp.add") != names.end());
  heddle::remove_function("cpp.add");
  CONTAINS(THROWS(Function::find("cpp.add"), HEDDLE_ENOTFOUND).what(), "cpp.add");
  THROWS(heddle::remove_function("cpp.add"), HEDDLE_ENOTFOUND);
  THROWS(heddle::register_function("cpp.none", Function()), HEDDLE_EINVAL);
}

CASE(libraries) {
  const heddle::Context ctx = heddle::Context::process();
  const Module m = Module::load(ctx, library);
  const auto names = m.functions();
  CHECK(std::find(names.begin(), names.end(), "twice") != names.end());
  EQUAL(std::string(m.info().abi), "packed");
  EQUAL(m.info().n_imports, 0u);
  THROWS(m.import(0), HEDDLE_ENOTFOUND);
  CHECK(m.kernels(0).empty());
  const Tensor t = Tensor::copy(std::vector<float>{1, 2, 3, 4, 5, 6, 7, 8}, {8});
  m.call("twice", t);
  EQUAL(t.view<float>()[7], 16.0f);
  CHECK(heddle::call(m, "twice", t).is_none());
  EQUAL(t.view<float>()[7], 32.0f);
  THROWS(m.call("nobody"), HEDDLE_ENOTFOUND);
  CONTAINS(THROWS(m.call("twice", 1), HEDDLE_EFAILED).what(), "expected a tensor");
  EQUAL(THROWS(Module::load(ctx, "/nowhere/x.so"), HEDDLE_EIO).file(), "/nowhere/x.so");
  THROWS(m.unpack(), HEDDLE_ENOTFOUND);
  Module empty;
  CHECK(empty.functions().empty());
  THROWS(empty.call("twice", t), HEDDLE_EINVAL);
  THROWS(Object::of(empty), HEDDLE_EINVAL);
  CHECK(Module::system(ctx, "cpp_none_"));
  THROWS(Module::register_loader("opencl", nullptr), HEDDLE_EINVAL);
}

CASE(objects) {
  const Object o = Object::load(library);
  EQUAL(std::string(o.kind()), "library");
  CHECK(o.library() && Object::of(o.library()).library().get() == o.library().get());
  const Tensor t = Tensor::copy(std::vector<float>(8, 1), {8});
  o.function("twice")(t);
  EQUAL(t.view<float>()[0], 2.0f);
  THROWS(o.function("nobody"), HEDDLE_ENOTFOUND);
  THROWS(Object::load("x.nothing"), HEDDLE_EFAILED);
  const Object none;
  CHECK(std::string(none.kind()).empty() && !none.library());
  THROWS(o.import(none), HEDDLE_EINVAL);
  THROWS(o.import(o), HEDDLE_EINVAL);
  CHECK(o.imported().empty() && none.imported().empty());
  const Function module = Function::of([](const Object &x) { return std::string(x.kind()); });
  EQUAL(module(o).as<std::string>(), "library");
}

CASE(a_closure_that_throws_within_compiled_code) {
  const Module m = Module::load(heddle::Context::process(), library);
  const Function apply = Object::of(m).function("apply");
  const Function f = Function::of([](int n) {
    if (n < 0) throw Special(n);
    return n + 1;
  });
  EQUAL(apply(f, 41).as<int>(), 42);
  for (int round = 1; round < 100; round++) {
    try {
      apply(f, -round);
      NOT_REACHED();
    } catch (const Special &e) {
      EQUAL(e.number, -round);
    }
    EQUAL(heddle::call(m, "apply", f, round).as<int>(), round + 1);
  }
  heddle::register_function("test.seen", f);
  EQUAL(heddle::call(m, "forward", 1).as<int>(), 2);
  try {
    m.call("forward", -7);
    NOT_REACHED();
  } catch (const Special &e) {
    EQUAL(e.number, -7);
  }
  heddle::remove_function("test.seen");
}

// middle(x) sets x[0] to 1, calls test.middle(x[3]) and sets x[1] to 2, of 4 numbers.
CASE(a_closure_that_throws_within_a_library_of_the_wheel) {
  const char *path = std::getenv("TVM_LIBRARY");
  if (path == nullptr) return;
  const Module m = Module::load(heddle::Context::process(), path);
  const Tensor x = Tensor::create<float>({4});
  THROWS(m.call("middle", x), HEDDLE_EFAILED); // there is no test.middle
  heddle::register_function("test.middle", Function::of([](double n) {
                              if (n < 0) throw Special(static_cast<int>(n));
                            }));
  const heddle::View<float> seen = x.view<float>();
  for (int round = 1; round < 50; round++) {
    seen[0] = seen[1] = 0;
    seen[3] = static_cast<float>(-round);
    try {
      m.call("middle", x);
      NOT_REACHED();
    } catch (const Special &e) {
      EQUAL(e.number, -round);
    }
    EQUAL(seen[0], 1.0f); // it was in the middle
    EQUAL(seen[1], 0.0f);
    seen[3] = 5;
    heddle::call(m, "middle", x);
    EQUAL(seen[1], 2.0f);
  }
  heddle::remove_function("test.middle");
  std::printf("through %s\n", path);
}

CASE(threads_call_and_throw_at_once) {
  const Module m = Module::load(heddle::Context::process(), library);
  const Function f = Function::of([](int n) -> int { throw Special(n); });
  std::vector<std::thread> threads;
  std::vector<int> wrong(4, 0);
  for (int t = 0; t < 4; t++)
    threads.emplace_back([&, t] {
      for (int n = 0; n < 100; n++) {
        try {
          heddle::call(m, "apply", f, 1000 * t + n);
          wrong[static_cast<std::size_t>(t)]++;
        } catch (const Special &e) {
          if (e.number != 1000 * t + n) wrong[static_cast<std::size_t>(t)]++;
        } catch (...) {
          wrong[static_cast<std::size_t>(t)]++;
        }
      }
    });
  for (std::thread &t : threads) t.join();
  for (int n : wrong) EQUAL(n, 0);
}

int main(int argc, char **argv) {
  return check::main(argc, argv);
}
