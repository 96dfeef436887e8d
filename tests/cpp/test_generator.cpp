// Generator of heddle.hpp, with a decoder whose next token is the last one and 1.
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <stdexcept>
#include <thread>

#include "check.hpp"
#include "heddle/heddle.hpp"

using namespace std::chrono_literals;
using heddle::Generation;
using heddle::Generator;
using heddle::Tensor;

// logits = table[ids]; the caches are the ids.
static const char *const decoder = R"({"heddle": {"version": 1, "opset": 17}, "nodes": [
  {"op": "null", "name": "input_ids", "inputs": []}, {"op": "null", "name": "table", "inputs": []},
  {"op": "null", "name": "axes", "inputs": []}, {"op": "null", "name": "past_key_values.0.key", "inputs": []},
  {"op": "null", "name": "past_key_values.0.value", "inputs": []},
  {"op": "Gather", "name": "logits", "attrs": {"axis": 0}, "inputs": [[1, 0, 0], [0, 0, 0]]},
  {"op": "Cast", "name": "cast", "attrs": {"to": 1}, "inputs": [[0, 0, 0]]},
  {"op": "Unsqueeze", "name": "wide", "inputs": [[6, 0, 0], [2, 0, 0]]},
  {"op": "Concat", "name": "present.0.key", "attrs": {"axis": 2}, "inputs": [[3, 0, 0], [7, 0, 0]]},
  {"op": "Concat", "name": "present.0.value", "attrs": {"axis": 2}, "inputs": [[4, 0, 0], [7, 0, 0]]}],
  "arg_nodes": [0, 1, 2, 3, 4], "heads": [[5, 0, 0], [8, 0, 0], [9, 0, 0]], "node_row_ptr": [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10],
  "attrs": {"dltype": ["list_str", ["int64", "float32", "int64", "float32", "float32", "float32", "float32", "float32", "float32", "float32"]],
  "shape": ["list_shape", [["batch", "length"], [16, 16], [2], ["batch", 1, "past", 1], ["batch", 1, "past", 1],
  ["batch", "length", 16], ["batch", "length"], ["batch", 1, "length", 1], ["batch", 1, "total", 1], ["batch", 1, "total", 1]]]}})";

static const char *const config = R"({"model_type": "counter", "vocab_size": 16, "max_position_embeddings": 64,
  "num_hidden_layers": 1, "num_key_value_heads": 1, "head_dim": 1, "eos_token_id": [15]})";

static std::string folder() {
  static const std::string made = [] {
    char name[] = "/tmp/heddle-generator-XXXXXX";
    const std::string path = mkdtemp(name) != nullptr ? name : "";
    std::vector<float> table(16 * 16, 0.0F);
    for (std::size_t i = 0; i < 16; i++) table[i * 16 + (i + 1) % 16] = 2.0F;
    std::ofstream(path + "/decoder.json") << decoder;
    std::ofstream(path + "/config.json") << config;
    heddle::Params::create(
        {{"table", Tensor::copy(table, {16, 16})}, {"axes", Tensor::copy(std::vector<std::int64_t>{1, 3}, {2})}})
        .save(path + "/decoder.params");
    return path;
  }();
  return made;
}

struct RemoveFolder {
  std::string path = folder(); // a copy: the other one may be gone first
  ~RemoveFolder() {
    for (const char *name : {"/decoder.json", "/config.json", "/decoder.params", "/masked.json", "/masked.params", ""})
      static_cast<void>(std::remove((path + name).c_str()));
  }
};
static const RemoveFolder remove_folder;

static Generator opened(const heddle::GeneratorOptions &options = {}) {
  const heddle::Context ctx = heddle::Context::create({{"config", "off"}, {"devices", "cpu"}});
  return Generator::open(ctx, folder() + "/decoder.json", options);
}

CASE(tokens_come_one_by_one) {
  const Generator g = opened();
  EQUAL(g.info().vocabulary, 16u);
  EQUAL(g.info().max_length, 64u);
  EQUAL(g.info().layers, 1u);
  g.append({3});
  EQUAL(g.next(), 4);
  EQUAL(g.next(), 5);
  CHECK((g.tokens() == std::vector<std::int64_t>{3, 4, 5}));
  const Tensor row = g.logits();
  EQUAL(static_cast<const float *>(heddle_tensor_data(row.get()))[6], 2.0F);
  const Generator other = g.fork();
  g.truncate(1);
  g.append({9});
  EQUAL(g.next(), 10);
  EQUAL(other.next(), 6);
  EQUAL(other.stats().computed, 0u); // the logits came along
  EQUAL(g.stats().sampled, 3u);
}

CASE(generations_end) {
  const Generator g = opened();
  g.append({12});
  heddle_generated done = g.generate();
  EQUAL(done.tokens, 3u);
  EQUAL(done.end, static_cast<std::uint32_t>(HEDDLE_GENERATION_STOP));
  Generation o;
  o.past_stops = true;
  o.max_tokens = 5;
  std::vector<std::int64_t> seen;
  o.token = [&](std::int64_t token) {
    seen.push_back(token);
    return true;
  };
  done = g.generate(o);
  EQUAL(done.end, static_cast<std::uint32_t>(HEDDLE_GENERATION_LENGTH));
  CHECK((seen == std::vector<std::int64_t>{0, 1, 2, 3, 4}));
  o.token = [](std::int64_t token) { return token != 6; };
  EQUAL(g.generate(o).end, static_cast<std::uint32_t>(HEDDLE_GENERATION_CALLBACK));
  EQUAL(g.tokens().back(), 6);
  o.token = [](std::int64_t) -> bool { throw std::runtime_error("enough"); };
  try {
    g.generate(o);
    CHECK(false);
  } catch (const std::runtime_error &e) {
    EQUAL(std::string(e.what()), "enough");
  }
  o = {};
  o.stop_tokens = {10};
  EQUAL(g.generate(o).tokens, 3u);
  o.past_stops = true;
  o.stop_tokens = {};
  g.generate(o);
  EQUAL(g.tokens().size(), 64u);
  EQUAL(g.try_next().error().status(), HEDDLE_ELIMIT);
}

CASE(a_draft_guesses) {
  const Generator g = opened();
  g.append({3});
  g.speculate(opened(), 3);
  Generation o;
  o.past_stops = true;
  o.max_tokens = 20;
  EQUAL(g.generate(o).tokens, 20u);
  const std::vector<std::int64_t> all = g.tokens();
  for (std::size_t k = 1; k < all.size(); k++) EQUAL(all[k], (all[k - 1] + 1) % 16);
  EQUAL(g.stats().guessed, 15u);
  EQUAL(g.stats().accepted, 15u);
  EQUAL(g.stats().runs, 5u); // each computes three guesses and chooses one token more
  heddle::Sampling s;
  s.biases = {{1, 100.0F}};
  EQUAL(g.next(s), 1);
  g.append({9});
  EQUAL(g.next(), 10);
  g.speculate(Generator());
  EQUAL(g.next(), 11);
  EQUAL(g.try_speculate(opened(), 17).error().status(), HEDDLE_EINVAL);
  EQUAL(Generator().try_speculate(g).error().status(), HEDDLE_EINVAL);
}

CASE(sampling_options_count) {
  const Generator g = opened();
  g.append({3});
  heddle::Sampling s;
  s.biases = {{7, 100.0F}};
  EQUAL(g.next(s), 7);
  s = {};
  s.temperature = 1;
  s.top_k = 1;
  EQUAL(g.next(s), 8);
  s.top_k = 0;
  s.top_p = 2;
  EQUAL(g.try_next(s).error().status(), HEDDLE_EINVAL);
  EQUAL(heddle::try_sample(Tensor::copy(std::vector<float>{1, 3, 2}, {3})).value(), 1);
  EQUAL(heddle::try_sample(Tensor()).error().status(), HEDDLE_EINVAL);
}

CASE(cancel_from_another_thread) {
  const Generator g = opened();
  g.speculate(opened());
  std::atomic<bool> over{false};
  std::thread other([&] {
    while (!over) {
      g.cancel();
      std::this_thread::sleep_for(50us);
    }
  });
  int cancelled = 0;
  Generation o;
  o.past_stops = true;
  for (int i = 0; i < 300; i++) {
    g.truncate(0);
    g.append({1, 2, 3});
    const heddle::Result<heddle_generated> done = g.try_generate(o);
    if (!done) {
      EQUAL(done.error().status(), HEDDLE_ECANCELED);
      cancelled++;
    }
    const std::vector<std::int64_t> all = g.tokens();
    for (std::size_t k = 3; k < all.size(); k++) EQUAL(all[k], (all[k - 1] + 1) % 16);
  }
  over = true;
  other.join();
  CHECK(cancelled > 0);
}

CASE(errors_are_values) {
  const heddle::Context ctx = heddle::Context::create({{"config", "off"}, {"devices", "cpu"}});
  EQUAL(Generator::try_open(ctx, "/nothing/there").error().status(), HEDDLE_EIO);
  heddle::GeneratorOptions o;
  o.model.state = "auto";
  EQUAL(Generator::try_open(ctx, folder() + "/decoder.json", o).error().status(), HEDDLE_EINVAL);
  const Generator g = opened();
  EQUAL(g.try_next().error().status(), HEDDLE_EINVAL);
  EQUAL(g.try_append({16}).error().status(), HEDDLE_EINVAL);
  EQUAL(g.try_truncate(1).error().status(), HEDDLE_EINVAL);
  EQUAL(g.try_evaluate().error().status(), HEDDLE_EINVAL);
  g.append({1});
  EQUAL(g.try_evaluate(0ns).error().status(), HEDDLE_ETIMEOUT);
  EQUAL(Generator().try_next().error().status(), HEDDLE_EINVAL);
}

// The decoder with the inputs that a batch of texts needs.
static Generator masked() {
  std::string text = decoder;
  const auto change = [&](const std::string &from, const std::string &to) {
    text.replace(text.find(from), from.size(), to);
  };
  change("[[4, 0, 0], [7, 0, 0]]}],", R"([[4, 0, 0], [7, 0, 0]]},
    {"op": "null", "name": "attention_mask", "inputs": []}, {"op": "null", "name": "position_ids", "inputs": []}],)");
  change("\"arg_nodes\": [0, 1, 2, 3, 4]", "\"arg_nodes\": [0, 1, 2, 3, 4, 10, 11]");
  change("8, 9, 10]", "8, 9, 10, 11, 12]");
  change("\"float32\"]]", "\"float32\", \"int64\", \"int64\"]]");
  change("1]]]}}", "1], [\"batch\", \"all\"], [\"batch\", \"length\"]]]}}");
  std::ofstream(folder() + "/masked.json") << text;
  std::ofstream(folder() + "/masked.params", std::ios::binary)
      << std::ifstream(folder() + "/decoder.params", std::ios::binary).rdbuf();
  const heddle::Context ctx = heddle::Context::create({{"config", "off"}, {"devices", "cpu"}});
  return Generator::open(ctx, folder() + "/masked.json");
}

CASE(texts_share_runs) {
  heddle::GenerationBatchOptions o;
  o.rows = 2;
  const auto b = heddle::GenerationBatch::create(masked(), o);
  Generation g;
  g.past_stops = true;
  std::vector<heddle::GenerationRequest> made;
  for (std::int64_t i = 0; i < 5; i++) {
    g.max_tokens = static_cast<std::uint64_t>(3 + i);
    made.push_back(b.submit(std::vector<std::int64_t>(static_cast<std::size_t>(1 + i), i), g));
  }
  for (std::int64_t i = 0; i < 5; i++) {
    EQUAL(made[static_cast<std::size_t>(i)].wait().tokens, static_cast<std::uint64_t>(3 + i));
    const auto tokens = made[static_cast<std::size_t>(i)].read();
    for (std::size_t k = 0; k < tokens.size(); k++) EQUAL(tokens[k], i + 1 + static_cast<std::int64_t>(k));
    EQUAL(made[static_cast<std::size_t>(i)].read(tokens.size()).size(), 0u);
  }
  g.max_tokens = 0;
  const auto longest = b.submit({1}, g);
  longest.cancel();
  EQUAL(longest.try_wait().error().status(), HEDDLE_ECANCELED);
  EQUAL(b.stats().finished, 5u);
  EQUAL(b.stats().rows, 2u);
  b.close();
  EQUAL(b.try_submit({1}).error().status(), HEDDLE_ECANCELED);
  EQUAL(heddle::GenerationBatch::try_create(opened()).error().status(), HEDDLE_EUNSUPPORTED); // no mask
  EQUAL(heddle::GenerationBatch::try_create(Generator()).error().status(), HEDDLE_EINVAL);
  EQUAL(heddle::GenerationRequest().try_wait().error().status(), HEDDLE_EINVAL);
}

int main(int argc, char **argv) {
  return check::main(argc, argv);
}
