// heddle/cpp/pack.hpp: a graph and a library become one file, which is a model, and back.
#include <fstream>
#include <sstream>

#include "check.hpp"
#include "heddle/heddle.hpp"

using heddle::PackModel;
using heddle::PackOptions;

static const std::string library = HEDDLE_TEST_BUILD "/tests/tvm_calls.so";
static const std::string packed = HEDDLE_TEST_BUILD "/tests/cpp_packed.so";
static const std::string folder = HEDDLE_TEST_BUILD "/tests/cpp_unpacked";
static const std::string graph =
    R"({"nodes":[{"op":"null","name":"x","inputs":[]}],"arg_nodes":[0],"node_row_ptr":[0,1],"heads":[[0,0,0]],)"
    R"("attrs":{"shape":["list_shape",[[2]]],"dltype":["list_str",["float32"]],"storage_id":["list_int",[0]]}})";

static std::string text_of(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

CASE(models_are_packed_and_come_back) {
  PackOptions options;
  options.libraries = {library};
  options.models = {PackModel(), PackModel()};
  options.models[0].graph = options.models[1].graph = graph;
  EQUAL(heddle::try_pack(packed, options).error().status(), HEDDLE_EINVAL); // two have one name
  options.models[1].name = "other";
  heddle::pack(packed, options);
  heddle::unpack(packed, folder);
  EQUAL(text_of(folder + "/default.json"), graph);
  EQUAL(text_of(folder + "/other.json"), graph);
  const heddle::Context context = heddle::Context::create({{"plugins", "off"}});
  const heddle::Module module = heddle::Module::load(context, packed);
  EQUAL(module.unpack("other").first.node_count(), 1U);
}

CASE(graphs_of_operators_are_linked) {
  PackOptions options;
  options.models = {PackModel()};
  EQUAL(heddle::try_link(folder, "1", options).error().status(), HEDDLE_EINVAL);
  options.targets = {"cpu"};
  options.libraries = {library};
  EQUAL(heddle::try_pack(packed, options).error().status(), HEDDLE_EINVAL); // only graphs of operators are prepared
  const heddle::Context context = heddle::Context::create({{"plugins", "off"}});
  alignas(64) const unsigned char data[64] = {0};
  EQUAL(heddle::Model::try_load_memory(context, data, sizeof data).error().status(), HEDDLE_EFORMAT);
  EQUAL(heddle::Model::try_load_memory(context, data + 1, 8).error().status(), HEDDLE_EINVAL);
}

int main(int argc, char **argv) {
  return check::main(argc, argv);
}
