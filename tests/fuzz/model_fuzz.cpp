// Any bytes as an ONNX model, through heddle.hpp: loaded, run with values of the declared shapes, and its outputs read
// every way that the wrappers have. What comes out is of the declared type (a wrong shape is a warning), and a failure has
// words.
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "heddle/heddle.hpp"
#include "memory_file.h"

// A model may ask for any size: what is too much fails as it would where memory is out.
extern "C" __attribute__((visibility("default"))) const char *__asan_default_options() { // NOLINT: the run time's name
  return "allocator_may_return_null=1:max_allocation_size_mb=512";
}

namespace {

constexpr std::uint64_t most_bytes = 1 << 18; // of an input

void check(bool good) {
  if (!good) std::abort();
}

template <class Outcome> bool went(const Outcome &outcome) {
  check(outcome || outcome.error().what()[0] != '\0');
  return static_cast<bool>(outcome);
}

// One for the whole process: plugins are loaded once.
const heddle::Context &context() {
  static const heddle::Context made = [] {
    heddle::Result<heddle::Context> c = heddle::Context::try_create(
        {{"config", "off"}, {"plugins", HEDDLE_FUZZ_PLUGINS}, {"log", "off"}, {"probe", "off"}});
    if (!c) std::abort();
    return *c;
  }();
  return made;
}

// A tensor for an input, of small numbers; empty where it would be large or has no dtype.
heddle::Tensor value(const heddle_io_info &info, std::int64_t open) {
  heddle::Shape shape;
  std::uint64_t count = 1;
  for (std::uint32_t d = 0; info.ndim != UINT32_MAX && d < info.ndim; d++) {
    shape.push_back(info.shape[d] >= 0 ? info.shape[d] : open);
    if (shape.back() > 0 && count > most_bytes / static_cast<std::uint64_t>(shape.back())) return {};
    count *= static_cast<std::uint64_t>(shape.back());
  }
  heddle::Result<heddle::Tensor> made = heddle::Tensor::try_create(info.dtype, shape);
  if (!made || made->bytes() > most_bytes) return {};
  auto *bytes = static_cast<unsigned char *>(made->data());
  const std::size_t element = info.dtype.bits >= 8 ? info.dtype.bits / 8u : 1;
  if (info.dtype.code == HEDDLE_DTYPE_INT || info.dtype.code == HEDDLE_DTYPE_UINT ||
      info.dtype.code == HEDDLE_DTYPE_BOOL)
    for (std::size_t i = 0; i < made->bytes(); i += element)
      bytes[i] = static_cast<unsigned char>(info.dtype.code == HEDDLE_DTYPE_BOOL ? i % 2 : 1 + i / element % 3);
  return *made;
}

// Every element is read, as bytes and, where it is a float, through a View.
void read(const heddle::Tensor &t, heddle_dtype declared) {
  using heddle::operator==;
  static volatile unsigned sum;
  if (declared.bits != 0) check(t.dtype() == declared);
  const auto *bytes = static_cast<const unsigned char *>(t.data());
  for (std::size_t i = 0; t.is_contiguous() && i < t.bytes(); i++) sum = sum + bytes[i];
  heddle::Result<heddle::View<float>> view = t.try_view<float>();
  if (!view) return;
  check(view->size() * sizeof(float) == t.bytes());
  for (float x : *view) sum = sum + (x > 0);
}

void outputs(const heddle::Executor &ex, const std::vector<heddle_dtype> &all) {
  for (std::uint32_t i = 0; i < ex.output_count(); i++) {
    heddle::Result<heddle::Tensor> out = ex.try_output(i);
    if (!went(out)) continue;
    read(*out, all[i]);
    heddle::Result<heddle::Tensor> copy = out->try_to();
    if (went(copy)) read(*copy, all[i]);
    heddle::Result<heddle::Tensor> like = heddle::Tensor::try_create(out->dtype(), out->shape());
    if (went(like) && went(ex.try_get_output(i, *like))) read(*like, all[i]);
    heddle::Result<heddle::Tensor> other = heddle::Tensor::try_create<float>({3});
    if (went(other)) (void)went(ex.try_get_output(i, *other));
  }
}

void run(const heddle::Executor &ex, std::int64_t open) {
  for (std::uint32_t i = 0; i < ex.input_count(); i++) {
    heddle::Result<heddle_io_info> info = ex.try_input_info(i);
    if (!went(info) || info->is_param != 0) continue;
    heddle::Tensor t = value(*info, open);
    if (!t || !went(ex.try_set_input(i, t))) return;
  }
  std::vector<heddle_dtype> all(ex.output_count());
  std::vector<heddle::Tensor> bound(ex.output_count());
  for (std::uint32_t i = 0; i < all.size(); i++) {
    heddle::Result<heddle_io_info> info = ex.try_output_info(i);
    if (!went(info)) return;
    all[i] = info->dtype;
    bound[i] = value(*info, open);
  }
  if (went(ex.try_run(std::chrono::seconds(1)))) outputs(ex, all);
  (void)ex.try_cancel();
  (void)ex.try_wait();
  for (std::uint32_t i = 0; i < all.size(); i++) // memory as it is declared, which what comes out may not fit
    if (bound[i]) (void)went(ex.try_bind_output(i, bound[i]));
  if (went(ex.try_run(std::chrono::seconds(1)))) outputs(ex, all);
  (void)ex.try_cancel();
  (void)ex.try_wait();
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
  static const std::string path = [] { // a name that ends in .onnx for the file in memory
    const std::string made = "/tmp/heddle-fuzz-" + std::to_string(getpid()) + ".onnx";
    char target[40];
    memory_path(memory_file(reinterpret_cast<const std::uint8_t *>(""), 0), target);
    (void)unlink(made.c_str());
    check(symlink(target, made.c_str()) == 0);
    return made;
  }();
  static const bool removed = (std::atexit([] { (void)unlink(path.c_str()); }), true);
  (void)removed;
  memory_file(data, size);
  heddle::ModelOptions options;
  options.devices = "cpu:0,sim:0";
  heddle::Result<heddle::Model> model = heddle::Model::try_load(context(), path, options);
  if (!went(model)) return 0;
  heddle::Result<heddle::Executor> ex = heddle::Executor::try_create(*model);
  if (!went(ex)) return 0;
  run(*ex, 3);
  run(*ex, 2);
  return 0;
}
