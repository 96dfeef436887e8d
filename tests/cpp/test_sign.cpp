// heddle/cpp/sign.hpp: keys, signing, trust and encryption from C++.
#include <cstdlib>
#include <fstream>
#include <string>

#include "check.hpp"
#include "heddle/heddle.hpp"

static const std::string graph =
    R"({"nodes":[{"op":"null","name":"x","inputs":[]}],"arg_nodes":[0],"node_row_ptr":[0,1],"heads":[[0,0,0]],)"
    R"("attrs":{"shape":["list_shape",[[2]]],"dltype":["list_str",["float32"]],"storage_id":["list_int",[0]]}})";

static heddle_status no_key(void *, const char *, unsigned char *, heddle_error *) {
  return HEDDLE_ENOTFOUND;
}

CASE(files_are_signed_and_encrypted) {
  char folder[] = "/tmp/heddle-cpp-sign-XXXXXX";
  EQUAL(mkdtemp(folder) != nullptr, true);
  const std::string in = std::string(folder) + "/", model = in + "net.json", trust = in + "a.pub";
  std::ofstream(model) << graph;
  const heddle::Status made = heddle::try_create_key(in + "a", HEDDLE_KEY_SIGNING);
  if (made.error().status() != HEDDLE_EUNSUPPORTED) {
    EQUAL(made.ok(), true);
    heddle::create_key(in + "c", HEDDLE_KEY_ENCRYPTION);
    heddle::SignOptions how;
    how.sign = in + "a";
    how.encrypt = in + "c";
    how.sequence = 7;
    heddle::sign(model, how, in + "enc.json");
    EQUAL(heddle::verify(in + "enc.json", trust).sequence, 7U);
    EQUAL(heddle::read_signature(in + "enc.json").flags, HEDDLE_SIGNATURE_SIGNED | HEDDLE_SIGNATURE_ENCRYPTED);
    heddle::ReadLimits limits;
    limits.trust = trust;
    EQUAL(heddle::Graph::try_load(in + "enc.json", limits).error().status(), HEDDLE_EDENIED);
    heddle::set_key_callback(no_key);
    EQUAL(heddle::Graph::try_load(in + "enc.json", limits).error().status(), HEDDLE_EDENIED);
    heddle::set_key_callback(nullptr);
    limits.key = in + "c";
    EQUAL(heddle::Graph::load(in + "enc.json", limits).node_count(), 1U);
    EQUAL(heddle::Graph::try_load(model, limits).error().status(), HEDDLE_EDENIED);
    heddle::decrypt(in + "enc.json", in + "plain.json", in + "c");
    EQUAL(heddle::public_key(trust), heddle::public_key(in + "a"));
    const heddle::Context context = heddle::Context::create({{"plugins", "off"}});
    heddle::ModelOptions options;
    options.trust = trust;
    EQUAL(heddle::Model::try_load(context, model, options).error().status(), HEDDLE_EDENIED);
    EQUAL(heddle::Module::try_open(context, model, trust).error().status(), HEDDLE_EDENIED);
  }
  EQUAL(std::system(("rm -rf " + in).c_str()), 0);
}

int main(int argc, char **argv) {
  return check::main(argc, argv);
}
