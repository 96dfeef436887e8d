// Batcher and BatchRequest of heddle.hpp: results, options, callbacks, errors, and the end.
#include <atomic>
#include <thread>

#include "check.hpp"
#include "heddle/heddle.hpp"

using namespace std::chrono_literals;
using heddle::Batcher;
using heddle::BatcherOptions;
using heddle::Tensor;

// y = x + x, of n items of 2.
static const char *const twice = R"({"heddle": {"version": 1, "opset": 17}, "nodes": [
  {"op": "null", "name": "x", "inputs": []}, {"op": "Add", "name": "y", "inputs": [[0, 0, 0], [0, 0, 0]]}],
  "arg_nodes": [0], "heads": [[1, 0, 0]], "node_row_ptr": [0, 1, 2],
  "attrs": {"dltype": ["list_str", ["float32", null]], "shape": ["list_shape", [["n", "m"], null]]}})";

static heddle::Model made() {
  const heddle::Context ctx = heddle::Context::create({{"config", "off"}, {"devices", "cpu"}});
  return heddle::Model::create(ctx, heddle::Graph::parse(twice, "twice.json"));
}

static Tensor item(float first, std::int64_t m = 2) {
  std::vector<float> values;
  for (std::int64_t i = 0; i < m; i++) values.push_back(first + static_cast<float>(i));
  return Tensor::copy(values, {1, m});
}

CASE(requests_share_runs) {
  BatcherOptions o;
  o.max_items = 4;
  o.max_delay = 1h;
  const Batcher b(made(), o);
  EQUAL(b.inputs().at(0), "x");
  EQUAL(b.outputs().at(0), "y");
  std::atomic<int> ended{0};
  std::vector<heddle::BatchRequest> requests;
  for (int i = 0; i < 4; i++) {
    heddle::BatchCall call;
    call.priority = i;
    call.deadline = 1min;
    call.done = [&](const heddle::Status &s) { ended += s ? 1 : 100; };
    requests.push_back(i % 2 == 0 ? b.submit({item(static_cast<float>(i))}, call)
                                  : b.submit(heddle::NamedTensors{{"x", item(static_cast<float>(i))}}, call));
  }
  for (int i = 0; i < 4; i++) {
    const heddle::BatchRequest &r = requests[static_cast<std::size_t>(i)];
    r.wait();
    const Tensor y = r.output();
    EQUAL(y.view<float>()[1], 2 * static_cast<float>(i + 1));
    EQUAL(r.cancel(), false);
    THROWS(r.output(1), HEDDLE_ENOTFOUND);
  }
  EQUAL(ended.load(), 4);
  EQUAL(b.stats().runs, 1u);
  EQUAL(b.stats().items, 4u);
}

CASE(threads_and_padding) {
  BatcherOptions o;
  o.max_items = 8;
  o.max_delay = 1ms;
  o.inputs = {{"x", 0, 2, -1.0}};
  o.outputs = {{"y", 0, 2}};
  const Batcher b(made(), o);
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int k = 0; k < 8; k++)
    threads.emplace_back([&, k] {
      heddle::BatchCall call;
      call.wait = 1min;
      for (int i = 0; i < 20; i++) {
        const std::vector<Tensor> y = b.run({item(static_cast<float>(i), 1 + k)}, call);
        if (y.size() != 1 || y[0].shape() != std::vector<std::int64_t>{1, 1 + k} ||
            y[0].view<float>()[static_cast<std::size_t>(k)] != 2 * static_cast<float>(i + k))
          wrong++;
      }
    });
  for (auto &t : threads) t.join();
  EQUAL(wrong.load(), 0);
  b.drain();
  EQUAL(b.stats().succeeded, 160u);
}

CASE(errors_and_the_end) {
  BatcherOptions o;
  o.max_items = 2;
  o.max_queue = 2;
  o.max_delay = 1h;
  Batcher b(made(), o);
  int called = 0;
  heddle::BatchCall call;
  call.done = [&](const heddle::Status &) { called++; };
  THROWS(b.submit(std::vector<Tensor>{}, call), HEDDLE_EINVAL);
  THROWS(b.run(heddle::NamedTensors{{"z", item(0)}}, call), HEDDLE_ENOTFOUND);
  EQUAL(called, 0); // they were not accepted
  const heddle::BatchRequest kept = b.submit({item(1)}), gone = b.submit({item(1, 3)}, call);
  THROWS(b.submit({item(1)}), HEDDLE_EBUSY);
  EQUAL(static_cast<bool>(gone.try_wait(0ms)), false);
  EQUAL(gone.cancel(), true);
  THROWS(gone.wait(), HEDDLE_ECANCELED);
  EQUAL(called, 1);
  b.close();
  kept.wait();
  THROWS(b.submit({item(1)}), HEDDLE_ECANCELED);
  b = Batcher();
  EQUAL(kept.output().view<float>()[0], 2.0f);
  THROWS(b.drain(), HEDDLE_EINVAL);
  o.workers = 1000;
  THROWS(Batcher(made(), o), HEDDLE_EINVAL);
}

int main(int argc, char **argv) {
  return check::main(argc, argv);
}
