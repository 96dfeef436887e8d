// heddle.hpp and heddle/function.hpp without exceptions and RTTI: what can fail gives a Result, and nothing else is there.
#include "check.hpp"
#include "heddle/function.hpp"
#include "heddle/heddle.hpp"

#ifndef HEDDLE_CPP_NO_EXCEPTIONS
#error "this file is to be compiled without exceptions"
#endif

using heddle::Tensor;

template <class T> std::string words(const heddle::Result<T> &r) {
  return std::string(r.error().status_name()) + " " + r.error().what();
}

CASE(a_model_runs) {
  const std::string digits = HEDDLE_TEST_SOURCE "/examples/digits/";
  heddle::Result<heddle::Context> ctx = heddle::Context::try_create({{"config", "off"}, {"devices", "cpu"}});
  CHECK(ctx.ok());
  heddle::ModelOptions options;
  options.flags = HEDDLE_MODEL_IGNORE_ANNOTATIONS;
  heddle::Result<heddle::Model> model = heddle::Model::try_load(*ctx, digits + "digits.json", options);
  CHECK(model.ok());
  heddle::Result<heddle::Executor> ex = heddle::Executor::try_create(*model);
  CHECK(ex.ok());
  heddle::Result<Tensor> image = Tensor::try_own(std::vector<float>(64, 0.5f), {1, 1, 8, 8});
  CHECK(image.ok());
  CHECK(ex->try_set_input("image", *image).ok());
  CHECK(ex->try_run().ok());
  const heddle::Result<heddle::View<float>> out = ex->try_output<float>();
  CHECK(out.ok());
  float sum = 0;
  for (float x : *out) sum += x;
  CHECK(sum > 0.999f && sum < 1.001f); // of a softmax
  CHECK(ex->try_output<int>().status() == HEDDLE_EINVAL);
  CHECK(!ex->try_set_input("nobody", *image));
}

CASE(errors_are_values) {
  const heddle::Result<Tensor> none = Tensor::try_load_npy("/nowhere/x.npy");
  CHECK(!none);
  EQUAL(none.status(), HEDDLE_EIO);
  EQUAL(none.error().file(), "/nowhere/x.npy");
  CHECK(none.error().cause() == nullptr);
  CONTAINS(words(heddle::Context::try_create({{"spin_us", "much"}})), "HEDDLE_EINVAL");
  CHECK(!Tensor::try_load_npy("/nowhere/x.npy").value_or(Tensor()));
  const heddle::Status good;
  CHECK(good.ok() && good.error().status() == HEDDLE_OK);
}

CASE(functions_fail_by_what_they_return) {
  auto f = heddle::Function::try_of([](int n) -> heddle::Result<std::string> {
    if (n < 0) return heddle::Error(HEDDLE_ELIMIT, "below zero");
    return std::to_string(n);
  });
  CHECK(f.ok());
  EQUAL(*f->try_call(12)->try_as<std::string>(), "12");
  CONTAINS(words(f->try_call(-1)), "HEDDLE_ELIMIT below zero");
  CONTAINS(words(f->try_call("x")), "argument 0: this is a string, not an int");
  CHECK(heddle::try_register_function("plain.f", *f).ok());
  EQUAL(*heddle::Function::try_find("plain.f")->try_call(3)->try_as<std::string>(), "3");
  CHECK(heddle::try_function_names()->size() > 0);
  CHECK(heddle::try_remove_function("plain.f").ok());
}

int main(int argc, char **argv) {
  return check::main(argc, argv);
}
