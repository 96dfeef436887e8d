// Tensors and views of heddle.hpp: made in each way, moved, copied between devices, through DLPack and files; errors.
#include <dlpack/dlpack.h>

#include <array>
#include <cstdio>
#include <memory>
#include <type_traits>

#include "check.hpp"
#include "heddle/heddle.hpp"

using heddle::Tensor;

template <class T>
constexpr bool moves_safely =
    std::is_nothrow_move_constructible_v<T> &&std::is_nothrow_move_assignable_v<T> &&std::is_nothrow_swappable_v<T>;
static_assert(moves_safely<Tensor> && moves_safely<heddle::Context> && moves_safely<heddle::Device>);
static_assert(moves_safely<heddle::Graph> && moves_safely<heddle::Params> && moves_safely<heddle::Module>);
static_assert(moves_safely<heddle::Model> && moves_safely<heddle::Executor> && moves_safely<heddle::Error>);
static_assert(std::is_nothrow_copy_constructible_v<heddle::Error>);

static heddle::Context context() {
  return heddle::Context::create({{"config", "off"}, {"devices", "cpu,sim:0"}});
}

static std::string dtype(const Tensor &t) {
  return heddle::to_string(t.dtype());
}

CASE(made_zeroed) {
  const Tensor t = Tensor::create<float>({2, 3});
  EQUAL(t.size(), 6u);
  EQUAL(t.bytes(), 24u);
  EQUAL(t.ndim(), 2u);
  CHECK((t.shape() == heddle::Shape{2, 3} && t.strides() == heddle::Shape{3, 1}));
  CHECK(t.is_contiguous() && t.device() == nullptr && reinterpret_cast<std::uintptr_t>(t.data()) % 256 == 0);
  for (float x : t.view<float>()) EQUAL(x, 0.0f);
  EQUAL(dtype(t), "float32");
  EQUAL(dtype(Tensor::create<bool>({1})), "bool");
  EQUAL(dtype(Tensor::create<std::int8_t>({})), "int8");
  EQUAL(Tensor::create<std::int8_t>({}).size(), 1u);
  EQUAL(dtype(Tensor::create<std::uint64_t>({0})), "uint64");
  EQUAL(dtype(Tensor::create(heddle_dtype{HEDDLE_DTYPE_BFLOAT, 16, 1}, {4})), "bfloat16");
  EQUAL(dtype(Tensor::create<double>({1})), "float64");
}

CASE(wraps_borrowed_and_owned_memory) {
  std::vector<int> mine{1, 2, 3, 4};
  Tensor t = Tensor::wrap(mine, {2, 2});
  t.view<int>()[3] = 40;
  EQUAL(mine[3], 40);
  std::array<float, 3> three{1, 2, 3};
  EQUAL(Tensor::wrap(three, {3}).view<float>()[2], 3.0f);
  t = Tensor::wrap(mine.data(), 4, {2, 2}, {1, 2}); // transposed
  CHECK(!t.is_contiguous());
  EQUAL(t.to().view<int>()[1], 3);

  auto alive = std::make_shared<int>(7);
  struct Kept {
    std::vector<float> numbers;
    std::shared_ptr<int> alive;
    float *data() {
      return numbers.data();
    }
    std::size_t size() const {
      return numbers.size();
    }
  };
  Tensor owner = Tensor::own(Kept{{1, 2}, alive}, {2});
  const heddle::View<float> seen = owner.view<float>();
  owner = Tensor();
  EQUAL(seen[1], 2.0f); // the view holds it
  EQUAL(alive.use_count(), 2);
  { const heddle::View<float> last = std::move(const_cast<heddle::View<float> &>(seen)); }
  EQUAL(alive.use_count(), 1);

  const std::vector<double> constant{1, 2, 3};
  Tensor copy = Tensor::copy(constant, {3, 1});
  copy.view<double>()[0] = 9;
  EQUAL(constant[0], 1.0);
  EQUAL(copy.view<const double>()[2], 3.0);
}

CASE(moved_from_is_empty_and_says_so) {
  Tensor a = Tensor::create<float>({2}), b = std::move(a);
  CHECK(!a && b);
  EQUAL(a.size(), 0u);
  CHECK(a.data() == nullptr && a.shape().empty() && !a.is_contiguous() && a.bytes() == 0 && a.ndim() == 0);
  CONTAINS(THROWS(a.view<float>(), HEDDLE_EINVAL).what(), "this tensor is empty");
  THROWS(a.copy_from(b), HEDDLE_EINVAL);
  THROWS(b.copy_from(a), HEDDLE_EINVAL);
  THROWS(a.to(), HEDDLE_EINVAL);
  THROWS(a.save_npy("x.npy"), HEDDLE_EINVAL);
  THROWS(a.to_dlpack(), HEDDLE_EINVAL);
  a = b; // and may be used again
  CHECK(a.get() == b.get());
  Tensor &same = a;
  a = same;
  CHECK(a.size() == 2);
  std::swap(a, b);
  a.swap(b);
  heddle_tensor *raw = a.detach();
  CHECK(!a);
  a = Tensor::adopt(raw);
  b = Tensor::share(raw);
  CHECK(a && b);
}

CASE(errors_tell_what_was_wrong) {
  std::vector<int> three{1, 2, 3};
  CONTAINS(THROWS(Tensor::wrap(three, {2, 2}), HEDDLE_EINVAL).what(),
           "3 elements do not fill a tensor of shape [2, 2]");
  CONTAINS(THROWS(Tensor::wrap(three.data(), 3, {3}, {1, 1}), HEDDLE_EINVAL).what(), "2 strides");
  THROWS(Tensor::copy(three, {1, -3}), HEDDLE_EINVAL);
  THROWS(Tensor::create<float>({-1}), HEDDLE_EINVAL);
  THROWS(Tensor::create<float>({INT64_MAX, INT64_MAX}), HEDDLE_ELIMIT);
  THROWS(Tensor::own(three, {INT64_MAX, 4}), HEDDLE_EINVAL);
  CONTAINS(THROWS(Tensor::wrap(three, {3}).view<float>(), HEDDLE_EINVAL).what(), "int32 cannot be seen as float32");
  CONTAINS(THROWS(Tensor::wrap(three.data(), 3, {1}, {2}).copy_from(Tensor::wrap(three, {3})), HEDDLE_EINVAL).what(),
           "shape");
  CONTAINS(THROWS(Tensor::wrap(three.data(), 3, {2}, {2}).view<int>(), HEDDLE_EINVAL).what(), "gaps");
  const heddle::Error e = THROWS(Tensor::load_npy("/nowhere/x.npy"), HEDDLE_EIO);
  EQUAL(e.file(), "/nowhere/x.npy");
  EQUAL(e.node(), "");
  CONTAINS(e.what(), "/nowhere/x.npy");
}

CASE(members_become_attributes) {
  const auto of = [](const char *words) { return heddle::Error(HEDDLE_EFAILED, words); };
  EQUAL(of("net.json: node 'conv:1' on sim:0: out of luck").node(), ""); /* words alone are about nothing */
  EQUAL(of("net.json: node 'conv:1' on sim:0: out of luck").device(), "");
  heddle_error err = {};
  heddle_graph *graph = nullptr;
  const char text[] =
      "{\"heddle\":{\"version\":1,\"opset\":17},\"nodes\":[{\"op\":\"NoSuch\",\"name\":\"it is on 'sim:7'\","
      "\"inputs\":[]}],\"arg_nodes\":[],\"heads\":[[0,0,0]],\"node_row_ptr\":[0,1],"
      "\"attrs\":{\"dltype\":[\"list_str\",[null]],\"shape\":[\"list_shape\",[null]]}}";
  const heddle_status s = heddle_graph_parse(text, sizeof text - 1, "g.json", nullptr, &graph, &err);
  EQUAL(s, HEDDLE_EUNSUPPORTED);
  const heddle::Error e(s, err, "g.json");
  EQUAL(e.node(), "it is on 'sim:7'");
  EQUAL(e.device(), "");
  EQUAL(e.file(), "g.json");
  EQUAL(heddle::Error().status(), HEDDLE_OK);
  EQUAL(std::string(heddle::Error().what()), "");
  EQUAL(std::string(of("x").status_name()), "HEDDLE_EFAILED");
  EQUAL(of("x").api_code(), 0);
}

CASE(through_files) {
  const char *path = "cpp_test_tensor.npy";
  Tensor::copy(std::vector<std::int16_t>{1, -2, 3}, {3, 1}).save_npy(path);
  const Tensor back = Tensor::load_npy(path);
  CHECK((back.shape() == heddle::Shape{3, 1}));
  EQUAL(back.view<std::int16_t>()[1], -2);
  std::remove(path);
}

CASE(through_devices) {
  const heddle::Context ctx = context();
  const heddle::Device sim = ctx.device("sim:0");
  const Tensor host = Tensor::copy(std::vector<float>{1, 2, 3}, {3});
  const Tensor there = host.to(sim);
  EQUAL(std::string(heddle_device_name(there.device())), "sim:0");
  CHECK(there.data() == nullptr);
  CONTAINS(THROWS(there.view<float>(), HEDDLE_EINVAL).what(), "memory of sim:0");
  EQUAL(there.to().view<float>()[2], 3.0f);
  EQUAL(Tensor::create<float>({2}, sim).to().view<float>()[1], 0.0f);
}

CASE(through_dlpack) {
  Tensor t = Tensor::copy(std::vector<float>{1, 2, 3, 4}, {2, 2});
  const float *data = t.view<float>().data();
  DLManagedTensor *m = t.to_dlpack();
  DLManagedTensorVersioned *v = t.to_dlpack_versioned();
  t = Tensor();
  EQUAL(static_cast<float *>(m->dl_tensor.data)[3], 4.0f); // it keeps the memory
  CHECK(m->dl_tensor.data == data);
  Tensor one = Tensor::from_dlpack(m), two = Tensor::from_dlpack(v);
  CHECK(one.view<float>().data() == data && two.view<float>().data() == data);
  one = Tensor();
  EQUAL(two.view<float>()[0], 1.0f);
  DLManagedTensor *unused = two.to_dlpack();
  unused->deleter(unused);
}

CASE(through_dlpack_on_a_device) {
  const heddle::Context ctx = context();
  const heddle::Device sim = ctx.device("sim:1");
  Tensor there = Tensor::copy(std::vector<float>{1, 2, 3}, {3}).to(sim);
  DLManagedTensor *m = there.to_dlpack();
  EQUAL(m->dl_tensor.device.device_id, 1);
  CHECK(ctx.dlpack_device(m->dl_tensor.device.device_type, 1).get() == sim.get());
  THROWS(ctx.dlpack_device(m->dl_tensor.device.device_type, 99), HEDDLE_ENODEV);
  there = Tensor();
  CHECK(!Tensor::try_from_dlpack(m, ctx.device("sim:0"))); // which has other memory; the struct stays the caller's
  Tensor back = Tensor::from_dlpack(m, sim);
  EQUAL(back.to().view<float>()[2], 3.0f);
  DLManagedTensorVersioned *v = back.to_dlpack_versioned();
  back = Tensor::from_dlpack(v, sim);
  EQUAL(back.to().view<float>()[0], 1.0f);
}

int main(int argc, char **argv) {
  return check::main(argc, argv);
}
