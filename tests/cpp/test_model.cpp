// Contexts, graphs, parameters, models and executors of heddle.hpp on the digits net, against what was calculated for it
// in float64, and on a chain that is calculated here.
#include <dlpack/dlpack.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <thread>

#include "check.hpp"
#include "heddle/heddle.hpp"

using namespace std::chrono_literals;
using heddle::Context;
using heddle::Executor;
using heddle::Model;
using heddle::Tensor;

static const std::string digits = HEDDLE_TEST_SOURCE "/examples/digits/";

// y = relu(x + w), of 4 numbers; z = y + y.
static const char *const chain = R"({"heddle": {"version": 1, "opset": 17}, "nodes": [
  {"op": "null", "name": "x", "inputs": []}, {"op": "null", "name": "w", "inputs": []},
  {"op": "Add", "name": "sum", "inputs": [[0, 0, 0], [1, 0, 0]]}, {"op": "Relu", "name": "y", "inputs": [[2, 0, 0]]},
  {"op": "Add", "name": "z", "inputs": [[3, 0, 0], [3, 0, 0]]}],
  "arg_nodes": [0, 1], "heads": [[3, 0, 0], [4, 0, 0]], "node_row_ptr": [0, 1, 2, 3, 4, 5],
  "attrs": {"dltype": ["list_str", ["float32", "float32", null, null, null]],
            "shape": ["list_shape", [["n"], [4], null, null, null]]}})";

static Context context(heddle::Log log = nullptr) {
  return Context::create(
      {{"config", "off"}, {"devices", "cpu,sim:0"}, {"log", "debug"}},
      log ? std::move(log) : [](std::int32_t, const char *, const char *) {});
}

static heddle::Params weights() {
  return heddle::Params::create({{"w", Tensor::copy(std::vector<float>{0, 1, 2, -9}, {4})}});
}

static Model made(const Context &ctx, heddle::ModelOptions options = {}) {
  return Model::create(ctx, heddle::Graph::parse(chain, "chain.json").bind({"n=4"}), weights(), options);
}

static void expect(const Executor &ex, std::vector<float> x) {
  static const float w[] = {0, 1, 2, -9};
  const auto y = ex.output<float>("y");
  const auto z = ex.output<const float>(1);
  for (std::size_t i = 0; i < 4; i++) {
    EQUAL(y[i], std::max(0.0f, x[i] + w[i]));
    EQUAL(z[i], 2 * std::max(0.0f, x[i] + w[i]));
  }
}

CASE(contexts_and_devices) {
  int lines = 0;
  Context ctx = context([&](std::int32_t, const char *, const char *) { lines++; });
  EQUAL(std::string(ctx.setting("devices").value), "cpu,sim:0");
  EQUAL(std::string(ctx.setting("devices").origin), "call");
  THROWS(ctx.setting("no.such"), HEDDLE_ENOTFOUND);
  const auto keys = ctx.setting_keys();
  CHECK(std::find(keys.begin(), keys.end(), "devices") != keys.end());
  CHECK(ctx.devices().size() >= 2 && ctx.plugin_count() >= 2);
  CHECK(ctx.plugin(0).path[0] == '/');
  THROWS(ctx.plugin(999), HEDDLE_EINVAL);
  const auto chosen = ctx.select();
  EQUAL(chosen.size(), 2u);
  EQUAL(std::string(chosen[1].name()), "sim:0");
  EQUAL(ctx.select("sim:1").at(0).info().index, 1u);
  chosen[1].health();
  chosen[1].reopen();
  const heddle::Error e = THROWS(ctx.device("sim:99"), HEDDLE_ENODEV);
  EQUAL(e.device(), "sim:99");
  heddle::Device host;
  CHECK(!host && std::string(host.name()).empty());
  THROWS(host.info(), HEDDLE_EINVAL);
  THROWS(host.health(), HEDDLE_EINVAL);
  THROWS(host.reopen(), HEDDLE_EINVAL);
  const heddle::Device kept = ctx.device("cpu");
  ctx = Context(); // the device has it still
  CHECK(kept.info().struct_size == sizeof(heddle_device_info) && kept.context());
  CHECK(lines > 0);
  CHECK(ctx.devices().empty() && ctx.setting_keys().empty() && ctx.plugin_count() == 0);
  THROWS(ctx.device("cpu"), HEDDLE_EINVAL);
  THROWS(ctx.select(), HEDDLE_EINVAL);
  THROWS(Model::load(ctx, "x.json"), HEDDLE_EINVAL);
  THROWS(heddle::Module::load(ctx, "x.so"), HEDDLE_EINVAL);
  THROWS(Context(heddle::Settings{{"spin_us", "much"}}), HEDDLE_EINVAL);
}

CASE(a_log_that_throws_is_no_harm) {
  const Context ctx = context([](std::int32_t, const char *, const char *) { throw 1; });
  CHECK(!ctx.devices().empty());
}

CASE(the_process_s_context) {
  const Context a = Context::process(), b = Context::process();
  CHECK(a && a.get() == b.get());
}

CASE(graphs) {
  const heddle::Graph g = heddle::Graph::parse(chain, "chain.json");
  EQUAL(g.node_count(), 5u);
  EQUAL(std::string(g.node(g.find_node("y")).op), "Relu");
  THROWS(g.node(99), HEDDLE_ENOTFOUND);
  THROWS(g.find_node("nobody"), HEDDLE_ENOTFOUND);
  EQUAL(g.input_count(), 2u);
  EQUAL(g.output_count(), 2u);
  EQUAL(g.input(0).shape[0], -1);
  EQUAL(std::string(g.input(0).symbols[0]), "n");
  EQUAL(g.bind({"n=4"}).input(0).shape[0], 4);
  THROWS(g.bind({"m=4"}), HEDDLE_ENOTFOUND);
  EQUAL(std::string(g.output(1).name), "z");
  THROWS(g.output(2), HEDDLE_ENOTFOUND);
  CHECK(!g.inner(3, 0).first);
  EQUAL(heddle::Graph::parse(g.text()).node_count(), 5u);
  g.save("cpp_test_graph.json");
  EQUAL(heddle::Graph::load("cpp_test_graph.json").node_count(), 5u);
  std::remove("cpp_test_graph.json");
  CONTAINS(THROWS(heddle::Graph::parse("{", "bad.json"), HEDDLE_EFORMAT).what(), "bad.json");
  EQUAL(THROWS(heddle::Graph::load("none.json"), HEDDLE_EIO).file(), "none.json");
  heddle::ReadLimits tight;
  tight.max_nodes = 2;
  THROWS(heddle::Graph::parse(chain, "chain.json", tight), HEDDLE_ELIMIT);
  const heddle::Graph none;
  EQUAL(none.node_count() + none.input_count() + none.output_count(), 0u);
  THROWS(none.text(), HEDDLE_EINVAL);
  THROWS(Model::create(context(), none), HEDDLE_EINVAL);
  THROWS(Model::parse(context(), "{}", 2), HEDDLE_EFORMAT);
  THROWS(Model::parse(context(), "\x08", 1, {}, "."), HEDDLE_EFORMAT);
}

CASE(parameters) {
  const heddle::Params p = weights();
  EQUAL(p.count(), 1u);
  EQUAL(p.name(0), "w");
  EQUAL(p.name(1), "");
  Tensor w = p.tensor(0);
  EQUAL(w.view<float>()[3], -9.0f);
  THROWS(p.tensor(1), HEDDLE_ENOTFOUND);
  const std::string blob = p.bytes();
  p.save("cpp_test.params");
  EQUAL(heddle::Params::load("cpp_test.params").bytes(), blob);
  std::remove("cpp_test.params");
  EQUAL(heddle::Params::parse(blob.data(), blob.size()).tensor(0).view<float>()[2], 2.0f);
  THROWS(heddle::Params::parse(blob.data(), blob.size() - 1, "cut.params"), HEDDLE_EFORMAT);
  THROWS(heddle::Params::create({{"w", Tensor()}}), HEDDLE_EINVAL);
}

CASE(reads_digits) {
  const Tensor images = Tensor::load_npy(digits + "images.npy"), expected = Tensor::load_npy(digits + "expected.npy");
  heddle::ModelOptions options;
  options.devices = "cpu,sim:0";
  options.place = {"wide*=sim:0"};
  options.flags = HEDDLE_MODEL_IGNORE_ANNOTATIONS;
  const Context ctx = context();
  const Model model = Model::load(ctx, digits + "digits.json", options);
  CHECK((model.devices() == std::vector<std::string>{"cpu:0", "sim:0"}));
  CHECK(model.graph().node_count() > 10 && !model.library());
  CONTAINS(model.explain(), "sim:0");
  CONTAINS(model.explain(HEDDLE_EXPLAIN_DOT, {{"image", Tensor::create<float>({1, 1, 8, 8})}}), "digraph");
  THROWS(model.explain(HEDDLE_EXPLAIN_TEXT, {{"image", Tensor()}}), HEDDLE_EINVAL);
  const Executor ex(model);
  CONTAINS(ex.explain(HEDDLE_EXPLAIN_JSON), "\"sim:0\"");
  for (std::size_t n = 0; n < 3; n++) {
    const auto *pixels = images.view<std::uint8_t>().data() + 64 * n;
    ex.set_input("image", Tensor::own(std::vector<float>(pixels, pixels + 64), {1, 1, 8, 8}));
    ex.run(60s);
    const auto out = ex.output<float>();
    EQUAL(out.size(), 10u);
    for (std::size_t i = 0; i < 10; i++) CHECK(std::fabs(out[i] - expected.view<float>()[10 * n + i]) < 1e-4);
  }
}

CASE(inputs_and_outputs_by_name_and_number) {
  const Executor ex(made(context()));
  EQUAL(ex.input_count(), 2u);
  EQUAL(ex.output_count(), 2u);
  EQUAL(ex.input_index("w"), 1);
  EQUAL(ex.input_index("v"), -1);
  EQUAL(ex.output_index("z"), 1);
  EQUAL(ex.input_info("w").is_param, 1u);
  EQUAL(ex.input_info(0).shape[0], 4);
  EQUAL(std::string(ex.output_info(1).name), "z");
  const std::vector<float> x{1, -5, 3, 20};
  ex.set_input("x", Tensor::copy(x, {4}));
  ex.run();
  expect(ex, x);
  EQUAL(ex.get_input(0).view<float>()[3], 20.0f);
  const Tensor mine = Tensor::create<float>({4});
  ex.get_output("z", mine);
  EQUAL(mine.view<float>()[2], 10.0f);

  std::vector<float> in(x), out(4);
  ex.bind_input("x", Tensor::wrap(in, {4}));
  ex.bind_output("y", Tensor::wrap(out, {4}));
  in[0] = 100;
  ex.run();
  EQUAL(out[0], 100.0f);
  ex.bind_output(0, Tensor());
  ex.set_input(0u, Tensor::copy(x, {4}));
  ex.run();
  EQUAL(out[0], 100.0f);

  const heddle::Error e = THROWS(ex.bind_input("v", mine), HEDDLE_ENOTFOUND);
  CONTAINS(e.what(), "there is no input 'v'; there are x, w");
  CONTAINS(THROWS(ex.set_input("v", mine), HEDDLE_ENOTFOUND).what(), "x");
  THROWS(ex.output("none"), HEDDLE_ENOTFOUND);
  THROWS(ex.output(-1), HEDDLE_ENOTFOUND);
  THROWS(ex.set_input(std::uint64_t{1} << 40, mine), HEDDLE_ENOTFOUND);
  THROWS(ex.set_input("x", Tensor()), HEDDLE_EINVAL);
  THROWS(ex.bind_input("x", Tensor()), HEDDLE_EINVAL);
  THROWS(ex.get_output(0, Tensor()), HEDDLE_EINVAL);
  THROWS(ex.set_input("x", Tensor::create<double>({4})), HEDDLE_EINVAL);
  THROWS(ex.output<int>(), HEDDLE_EINVAL);
}

CASE(started_waited_for_and_cancelled) {
  heddle::ModelOptions options;
  options.devices = "sim:0";
  options.in_flight = 2;
  const Executor ex(made(context(), options));
  const std::vector<float> x{1, 2, 3, 4};
  CONTAINS(THROWS(ex.run(), HEDDLE_EINVAL).what(), "x"); // never set
  ex.set_input("x", Tensor::copy(x, {4}));
  ex.start();
  ex.start();
  THROWS(ex.start(), HEDDLE_EBUSY);
  ex.wait(60s);
  expect(ex, x);
  ex.wait(std::chrono::duration<double>(60));
  CHECK(ex.is_done());
  ex.start();
  ex.cancel();
  const heddle::Status s = ex.try_wait();
  CHECK(s.ok() || s.status() == HEDDLE_ECANCELED);
  EQUAL(ex.stats().runs >= 2, true);
  EQUAL(heddle::Timeout(-1s).ns(), 0u);
  EQUAL(heddle::Timeout(std::chrono::hours::max()).ns(), HEDDLE_FOREVER);
  EQUAL(heddle::Timeout(1500us).ns(), 1500000u);
}

CASE(a_slow_run_times_out) {
  const Context ctx = Context::create({{"config", "off"}, {"sim.op_us", "200000"}});
  heddle::ModelOptions options;
  options.devices = "sim:0";
  const Executor ex(made(ctx, options));
  ex.set_input("x", Tensor::create<float>({4}));
  const heddle::Status s = ex.try_run(1ns);
  if (!s) {
    EQUAL(s.status(), HEDDLE_ETIMEOUT);
    ex.wait();
  }
  expect(ex, {0, 0, 0, 0});
}

CASE(looked_into) {
  const Context ctx = context();
  const Executor ex(made(ctx));
  ctx.trace_begin();
  ex.set_input("x", Tensor::copy(std::vector<float>{-1, -2, 3, 4}, {4}));
  EQUAL(ex.run_to("sum").view<float>()[1], -1.0f);
  THROWS(ex.run_to("nobody"), HEDDLE_ENOTFOUND);
  const auto steps = ex.profile();
  CHECK(!steps.empty() && steps[0].device == "cpu:0" && steps[0].end_ns >= steps[0].start_ns);
  ctx.trace_write("cpp_test_trace.json");
  std::ifstream trace("cpp_test_trace.json");
  CHECK(trace.get() == '[' || trace.peek() == '"' || trace.good());
  std::remove("cpp_test_trace.json");
}

CASE(parameters_set_later) {
  const Context ctx = context();
  const Executor a(made(ctx)), b(made(ctx));
  const heddle::Params other = heddle::Params::create({{"w", Tensor::copy(std::vector<float>{5, 5, 5, 5}, {4})}});
  a.load_params(other);
  b.share_params(a, other);
  for (const Executor *ex : {&a, &b}) {
    ex->set_input("x", Tensor::create<float>({4}));
    ex->run();
    EQUAL(ex->output<float>()[3], 5.0f);
  }
}

CASE(a_device_that_fails_is_named) {
  const Context ctx = Context::create({{"config", "off"}, {"sim.fail", "run:1"}});
  heddle::ModelOptions options;
  options.devices = "sim:0";
  options.flags = HEDDLE_MODEL_NO_CAPTURE;
  const Executor ex(made(ctx, options));
  ex.set_input("x", Tensor::create<float>({4}));
  const heddle::Status s = ex.try_run();
  CHECK(!s);
  EQUAL(s.error().device(), "sim:0");
  CHECK(!s.error().node().empty());
}

CASE(threads_on_one_model) {
  const Model model = made(context());
  std::vector<std::thread> threads;
  std::vector<int> wrong(4, 0);
  for (std::size_t t = 0; t < wrong.size(); t++)
    threads.emplace_back([&, t] {
      const Executor ex(model);
      for (int n = 0; n < 50; n++) {
        const float x = static_cast<float>(n) + static_cast<float>(t) * 100;
        ex.set_input("x", Tensor::own(std::vector<float>(4, x), {4}));
        ex.run();
        if (ex.output<float>("z")[1] != 2 * (x + 1)) wrong[t]++;
      }
    });
  for (std::thread &t : threads) t.join();
  for (int n : wrong) EQUAL(n, 0);
}

CASE(an_output_outlives_its_model) {
  DLManagedTensor *m = nullptr;
  Tensor view;
  {
    const Executor ex(made(context()));
    ex.set_input("x", Tensor::copy(std::vector<float>{7, 7, 7, 7}, {4}));
    ex.run();
    m = ex.output("y").to_dlpack();
    view = ex.output("z");
  }
  EQUAL(static_cast<float *>(m->dl_tensor.data)[1], 8.0f);
  EQUAL(view.view<float>()[1], 16.0f);
  m->deleter(m);
}

CASE(a_state_value_stays) {
  static const char *const sums = R"({"heddle": {"version": 1, "opset": 17}, "nodes": [
    {"op": "null", "name": "x", "inputs": []}, {"op": "null", "name": "s", "inputs": []},
    {"op": "Add", "name": "total", "inputs": [[0, 0, 0], [1, 0, 0]]}],
    "arg_nodes": [0, 1], "heads": [[2, 0, 0]], "node_row_ptr": [0, 1, 2, 3],
    "attrs": {"dltype": ["list_str", ["float32", "float32", null]], "shape": ["list_shape", [[2], [2], null]]}})";
  heddle::ModelOptions options;
  options.devices = "sim:0,cpu";
  options.state = "s:total";
  const Model model = Model::create(context(), heddle::Graph::parse(sums, "sums.json"), {}, options);
  const Executor ex(model), other(model);
  const auto add = [](const Executor &to, float x) {
    to.set_input("x", Tensor::copy(std::vector<float>{0, x}, {2}));
    to.run();
    return to.read_state("total").view<float>()[1];
  };
  EQUAL(ex.state_count(), 1u);
  EQUAL(ex.state_index("s"), 0);
  EQUAL(ex.state_index("x"), -1);
  EQUAL(add(ex, 1), 1.0f);
  EQUAL(add(ex, 2), 3.0f);
  EQUAL(std::string(ex.state_info(0).input), "s");
  EQUAL(ex.state_info("total").bytes, 8u);
  ex.fork_state(other);
  EQUAL(add(other, 4), 7.0f);
  EQUAL(add(ex, 1), 4.0f);
  const std::string path = "cpp_state_file";
  ex.save_state(path);
  ex.reset_state();
  EQUAL(add(ex, 1), 1.0f);
  ex.load_state(path);
  std::remove(path.c_str());
  EQUAL(add(ex, 1), 5.0f);
  ex.write_state(0, other.read_state(0));
  EQUAL(add(ex, 1), 8.0f);
  ex.reset_state("s");
  EQUAL(add(ex, 2), 2.0f);
  EQUAL(ex.try_truncate_state(1).error().status(), HEDDLE_EINVAL);
  EQUAL(ex.try_truncate_state(1, "s").error().status(), HEDDLE_EINVAL);
  EQUAL(ex.try_read_state("x").error().status(), HEDDLE_ENOTFOUND);
  EQUAL(ex.try_reset_state(7).error().status(), HEDDLE_ENOTFOUND);
  EQUAL(ex.try_reset_state(-1).error().status(), HEDDLE_ENOTFOUND);
  EQUAL(ex.try_write_state(0, Tensor()).error().status(), HEDDLE_EINVAL);
  EQUAL(ex.try_load_state("no/such/file").error().status(), HEDDLE_EIO);
}

CASE(moved_from_models_and_executors) {
  Model model = made(context()), taken = std::move(model);
  CHECK(!model && taken && model.devices().empty() && !model.graph() && !model.library());
  THROWS(model.explain(), HEDDLE_EINVAL);
  THROWS(Executor(model), HEDDLE_EINVAL);
  Executor ex(taken), other = std::move(ex);
  EQUAL(ex.input_count() + ex.output_count(), 0u);
  CHECK(ex.is_done() && ex.input_index("x") == -1 && ex.output_index("y") == -1);
  THROWS(ex.run(), HEDDLE_EINVAL);
  THROWS(ex.output("y"), HEDDLE_EINVAL);
  THROWS(ex.profile(), HEDDLE_EINVAL);
  THROWS(ex.stats(), HEDDLE_EINVAL);
  ex = other;
  CHECK(ex.get() == other.get());
  model = taken;
  CHECK(model.get() == taken.get());
}

int main(int argc, char **argv) {
  return check::main(argc, argv);
}
