// heddle/cpp/pack.hpp: pack and unpack, models and the libraries that they run as one file.
// heddle/pack.h has the contracts. Any thread; they block.
#ifndef HEDDLE_CPP_PACK_HPP
#define HEDDLE_CPP_PACK_HPP

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "heddle/cpp/context.hpp"
#include "heddle/cpp/sign.hpp"
#include "heddle/pack.h"

namespace heddle {

// A model that is packed: the path of its graph, and the path of its parameters or the parameters; both may be absent.
struct PackModel {
  std::string name = "default";
  std::string graph_path = {};
  std::string graph = {}; // the graph's text, if there is no path
  std::string params_path = {};
  Params params = {};
};

// What is packed. docs/packages.md describes each member.
struct PackOptions {
  std::vector<std::string> libraries = {}; // .so, or objects: .o, .a, .tar
  std::vector<PackModel> models = {};
  std::vector<std::pair<std::string, std::string>> imports = {}; // modules of other kinds: kind, bytes
  std::uint32_t flags = 0;                                       // HEDDLE_PACK_*
  std::string compiler = {};
  std::vector<std::string> targets = {}; // lists of devices that a graph of operators is prepared for
  std::vector<std::string> dims = {};    // with targets: "NAME=NUMBER" for dimensions that have names
  std::string memory = {};               // with targets: limits on devices' memory, "sim:0=64MiB"; "": none
  SignOptions sign = {};                 // the keys that sign and encrypt the file
};

namespace detail {
// Calls with the C struct of the options, which is gone afterwards.
template <typename F> Status with_packing(const PackOptions &options, const std::string &about, F call) {
  std::vector<heddle_pack_model> models;
  std::vector<heddle_pack_import> imports;
  for (const PackModel &m : options.models) {
    heddle_pack_model one = detail::sized<heddle_pack_model>();
    one.name = m.name.c_str();
    one.graph_path = detail::or_null(m.graph_path);
    one.graph = m.graph.data();
    one.graph_bytes = m.graph.size();
    one.params_path = detail::or_null(m.params_path);
    one.params = m.params.get();
    models.push_back(one);
  }
  for (const auto &m : options.imports) {
    heddle_pack_import one = detail::sized<heddle_pack_import>();
    one.kind = m.first.c_str();
    one.data = m.second.data();
    one.bytes = m.second.size();
    imports.push_back(one);
  }
  std::vector<const heddle_pack_model *> model_list;
  for (const heddle_pack_model &m : models) model_list.push_back(&m);
  std::vector<const heddle_pack_import *> import_list;
  for (const heddle_pack_import &m : imports) import_list.push_back(&m);
  const std::vector<const char *> libraries = detail::pointers(options.libraries);
  heddle_pack_options o = detail::sized<heddle_pack_options>();
  o.libraries = libraries.data();
  o.n_libraries = libraries.size();
  o.models = model_list.data();
  o.n_models = model_list.size();
  o.imports = import_list.data();
  o.n_imports = import_list.size();
  o.flags = options.flags;
  o.compiler = detail::or_null(options.compiler);
  const std::vector<const char *> targets = detail::pointers(options.targets);
  o.targets = targets.data();
  o.n_targets = targets.size();
  const std::vector<const char *> dims = detail::pointers(options.dims);
  o.dims = dims.data();
  o.n_dims = dims.size();
  if (!options.memory.empty()) o.memory = options.memory.c_str();
  const heddle_sign_options sign = detail::sign_options_of(options.sign);
  if (sign.sign != nullptr || sign.encrypt != nullptr || sign.sequence != 0 || sign.flags != 0) o.sign = &sign;
  return detail::status_of([&](heddle_error *err) { return call(&o, err); }, about.c_str());
}
} // namespace detail

// Writes a library that holds the models and the code of the libraries; or one graph of operators as a file.
inline Status try_pack(const std::string &path, const PackOptions &options) {
  return detail::with_packing(options, path, [&](const heddle_pack_options *o, heddle_error *err) {
    return heddle_pack(path.c_str(), o, err);
  });
}

// Writes FOLDER/NAME.o and FOLDER/NAME.h of a graph of operators, for heddle::Model::load_memory.
inline Status try_link(const std::string &folder, const std::string &name, const PackOptions &options) {
  return detail::with_packing(options, folder, [&](const heddle_pack_options *o, heddle_error *err) {
    return heddle_link(folder.c_str(), name.c_str(), o, err);
  });
}

// Writes what a packed file holds to a folder: NAME.json and NAME.params of each model, and lib.so.
inline Status try_unpack(const std::string &path, const std::string &folder) {
  return detail::status_of([&](heddle_error *err) { return heddle_unpack(path.c_str(), folder.c_str(), err); },
                           path.c_str());
}

// What the parameters' package carries for devices, as JSON text, compared with those of a context.
inline Result<std::string> try_prepared(const Params &params, const Context &context = {}) {
  char *out = nullptr;
  Status s = detail::status_of(
      [&](heddle_error *err) { return heddle_params_prepared(params.get(), context.get(), &out, err); });
  if (!s) return s.error();
  std::unique_ptr<void, void (*)(void *)> kept(out, heddle_free);
  return std::string(out);
}

#ifndef HEDDLE_CPP_NO_EXCEPTIONS
inline std::string prepared(const Params &params, const Context &context = {}) {
  return try_prepared(params, context).value();
}
inline void pack(const std::string &path, const PackOptions &options) {
  try_pack(path, options).value();
}
inline void link(const std::string &folder, const std::string &name, const PackOptions &options) {
  try_link(folder, name, options).value();
}
inline void unpack(const std::string &path, const std::string &folder) {
  try_unpack(path, folder).value();
}
#endif

} // namespace heddle

#endif
