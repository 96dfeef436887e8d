// heddle/cpp/graph.hpp: Graph, the operators of a model as data, and Params, its parameters.
// heddle/graph.h has the contracts. Both are immutable and may be used by any thread. Pointers in their infos are
// borrowed.
#ifndef HEDDLE_CPP_GRAPH_HPP
#define HEDDLE_CPP_GRAPH_HPP

#include <string>
#include <utility>
#include <vector>

#include "heddle/cpp/tensor.hpp"
#include "heddle/graph.h"
#include "heddle/strings.h"

namespace heddle {

// Limits of a reader; 0 means the default.
struct ReadLimits {
  std::uint64_t max_bytes = 0;
  std::uint32_t max_nodes = 0;
  std::uint32_t max_depth = 0;
  std::string trust = {}; // a trust file: what is read must be signed
  std::string key = {};   // the file of the key of encrypted files
};

namespace detail {

inline heddle_read_limits limits_of(const ReadLimits &limits) noexcept {
  heddle_read_limits out = sized<heddle_read_limits>();
  out.max_bytes = limits.max_bytes;
  out.max_nodes = limits.max_nodes;
  out.max_depth = limits.max_depth;
  out.trust = or_null(limits.trust);
  out.key = or_null(limits.key);
  return out;
}

inline std::vector<const char *> pointers(const std::vector<std::string> &list) {
  std::vector<const char *> out;
  for (const std::string &one : list) out.push_back(one.c_str());
  return out;
}

// Copies text that C allocated, and frees the original.
inline std::string taken(char *text) {
  std::unique_ptr<char, void (*)(void *)> kept(text, heddle_free);
  return text != nullptr ? std::string(text) : std::string();
}

} // namespace detail

class Graph : public detail::Shared<Graph, heddle_graph, heddle_graph_retain, heddle_graph_release> {
public:
  static constexpr const char *noun() noexcept {
    return "graph";
  }

  // Reads a .json file, or an ONNX model if the path ends in .onnx.
  static Result<Graph> try_load(const std::string &path, const ReadLimits &limits = {}) {
    const heddle_read_limits l = detail::limits_of(limits);
    return make([&](heddle_graph **out, heddle_error *err) { return heddle_graph_load(path.c_str(), &l, out, err); },
                path.c_str());
  }

  // Reads JSON text. name stands for the file in errors.
  static Result<Graph> try_parse(const std::string &text, const std::string &name = "graph",
                                 const ReadLimits &limits = {}) {
    const heddle_read_limits l = detail::limits_of(limits);
    return make([&](heddle_graph **out, heddle_error *err) {
      return heddle_graph_parse(text.data(), text.size(), name.c_str(), &l, out, err);
    });
  }

  // Creates a graph in which numbers replace named dimensions: {"batch=4"}.
  Result<Graph> try_bind(const std::vector<std::string> &dims) const {
    const std::vector<const char *> list = detail::pointers(dims);
    return made_with<Graph, heddle_graph>([&](heddle_graph *g, heddle_graph **out, heddle_error *err) {
      return heddle_graph_bind(g, list.data(), list.size(), out, err);
    });
  }

  // Writes the graph as JSON that the reader accepts.
  Result<std::string> try_text() const {
    char *out = nullptr;
    std::size_t bytes = 0;
    Status s = with([&](heddle_graph *g, heddle_error *err) { return heddle_graph_text(g, &out, &bytes, err); });
    if (!s) return s.error();
    return detail::taken(out);
  }
  Status try_save(const std::string &path) const {
    return with([&](heddle_graph *g, heddle_error *err) { return heddle_graph_save(g, path.c_str(), err); },
                path.c_str());
  }

  std::uint32_t node_count() const noexcept {
    return raw_ != nullptr ? heddle_graph_node_count(raw_) : 0;
  }
  Result<heddle_node_info> try_node(std::uint32_t node) const {
    return filled<heddle_node_info>([&](heddle_graph *g, heddle_node_info *out, heddle_error *err) {
      return heddle_graph_node(g, node, out, err);
    });
  }

  // The i-th inner graph of a node (If, Loop, Scan) and the name of its attribute; an empty Graph if there is none.
  std::pair<Graph, std::string> inner(std::uint32_t node, std::uint32_t i) const {
    const char *name = nullptr;
    const heddle_graph *found = raw_ != nullptr ? heddle_graph_inner(raw_, node, i, &name) : nullptr;
    return {share(const_cast<heddle_graph *>(found)), found != nullptr && name != nullptr ? name : ""};
  }

  // Finds a node by name. HEDDLE_ENOTFOUND; HEDDLE_EINVAL if several nodes share the name.
  Result<std::uint32_t> try_find_node(const std::string &name) const {
    std::uint32_t out = 0;
    Status s =
        with([&](heddle_graph *g, heddle_error *err) { return heddle_graph_find_node(g, name.c_str(), &out, err); });
    if (!s) return s.error();
    return out;
  }

  // Inputs, parameters included, and outputs, as the file declares them.
  std::uint32_t input_count() const noexcept {
    return raw_ != nullptr ? heddle_graph_input_count(raw_) : 0;
  }
  std::uint32_t output_count() const noexcept {
    return raw_ != nullptr ? heddle_graph_output_count(raw_) : 0;
  }
  Result<heddle_value_info> try_input(std::uint32_t i) const {
    return filled<heddle_value_info>(
        [&](heddle_graph *g, heddle_value_info *out, heddle_error *err) { return heddle_graph_input(g, i, out, err); });
  }
  Result<heddle_value_info> try_output(std::uint32_t i) const {
    return filled<heddle_value_info>([&](heddle_graph *g, heddle_value_info *out, heddle_error *err) {
      return heddle_graph_output(g, i, out, err);
    });
  }

  /* What stands for strings (heddle/strings.h); NULL and HEDDLE_STRING_NONE where nothing does. */
  const char *string(std::uint64_t i) const noexcept {
    return raw_ != nullptr ? heddle_graph_string(raw_, i) : nullptr;
  }
  bool has_objects() const noexcept {
    return raw_ != nullptr && heddle_graph_has_objects(raw_) != 0;
  }
  heddle_string_kind string_kind(const std::string &name) const noexcept {
    return raw_ != nullptr ? heddle_graph_string_kind(raw_, name.c_str()) : HEDDLE_STRING_NONE;
  }
  Result<std::int64_t> try_map_key(const std::string &name, std::uint32_t i) const {
    std::int64_t out = 0;
    Status s =
        with([&](heddle_graph *g, heddle_error *err) { return heddle_graph_map_key(g, name.c_str(), i, &out, err); });
    if (!s) return s.error();
    return out;
  }

#ifndef HEDDLE_CPP_NO_EXCEPTIONS
  static Graph load(const std::string &path, const ReadLimits &limits = {}) {
    return try_load(path, limits).value();
  }
  static Graph parse(const std::string &text, const std::string &name = "graph", const ReadLimits &limits = {}) {
    return try_parse(text, name, limits).value();
  }
  Graph bind(const std::vector<std::string> &dims) const {
    return try_bind(dims).value();
  }
  std::string text() const {
    return try_text().value();
  }
  void save(const std::string &path) const {
    try_save(path).value();
  }
  heddle_node_info node(std::uint32_t i) const {
    return try_node(i).value();
  }
  std::uint32_t find_node(const std::string &name) const {
    return try_find_node(name).value();
  }
  std::int64_t map_key(const std::string &name, std::uint32_t i) const {
    return try_map_key(name, i).value();
  }
  heddle_value_info input(std::uint32_t i) const {
    return try_input(i).value();
  }
  heddle_value_info output(std::uint32_t i) const {
    return try_output(i).value();
  }
#endif

private:
  template <class Call> static Result<Graph> make(Call &&call, const char *file = nullptr) {
    heddle_graph *out = nullptr;
    Status s = detail::status_of([&](heddle_error *err) { return call(&out, err); }, file);
    if (!s) return s.error();
    return adopt(out);
  }
};

class Params : public detail::Shared<Params, heddle_params, heddle_params_retain, heddle_params_release> {
public:
  using Named = std::vector<std::pair<std::string, Tensor>>;

  static constexpr const char *noun() noexcept {
    return "set of parameters";
  }

  // Reads a file that TVM's save_param_dict wrote, or the parameters of an ONNX model.
  static Result<Params> try_load(const std::string &path, const ReadLimits &limits = {}) {
    const heddle_read_limits l = detail::limits_of(limits);
    return make([&](heddle_params **out, heddle_error *err) { return heddle_params_load(path.c_str(), &l, out, err); },
                path.c_str());
  }

  // Reads a blob; its bytes are copied. name stands for the file in errors.
  static Result<Params> try_parse(const void *data, std::size_t bytes, const std::string &name = "params",
                                  const ReadLimits &limits = {}) {
    const heddle_read_limits l = detail::limits_of(limits);
    return make([&](heddle_params **out, heddle_error *err) {
      return heddle_params_parse(data, bytes, name.c_str(), &l, out, err);
    });
  }

  // Creates params from named tensors in host memory, in this order. The bytes are copied.
  static Result<Params> try_create(const Named &named) {
    std::vector<const char *> names;
    std::vector<heddle_tensor *> tensors;
    for (const auto &one : named) {
      if (!one.second) return Error(HEDDLE_EINVAL, "the tensor of parameter '" + one.first + "' is empty");
      names.push_back(one.first.c_str());
      tensors.push_back(one.second.get());
    }
    return make([&](heddle_params **out, heddle_error *err) {
      return heddle_params_create(names.data(), tensors.data(), names.size(), out, err);
    });
  }

  Status try_save(const std::string &path) const {
    return with([&](heddle_params *p, heddle_error *err) { return heddle_params_save(p, path.c_str(), err); },
                path.c_str());
  }

  // The blob in the format of TVM's save_param_dict.
  Result<std::string> try_bytes() const {
    void *out = nullptr;
    std::size_t n = 0;
    Status s = with([&](heddle_params *p, heddle_error *err) { return heddle_params_bytes(p, &out, &n, err); });
    if (!s) return s.error();
    std::unique_ptr<void, void (*)(void *)> kept(out, heddle_free);
    return std::string(static_cast<const char *>(out), n);
  }

  std::uint32_t count() const noexcept {
    return raw_ != nullptr ? heddle_params_count(raw_) : 0;
  }
  std::string name(std::uint32_t i) const { // "" past the end
    const char *found = raw_ != nullptr ? heddle_params_name(raw_, i) : nullptr;
    return found != nullptr ? found : "";
  }

  // A tensor that shares the bytes of the parameter and keeps them alive.
  Result<Tensor> try_tensor(std::uint32_t i) const {
    return made_with<Tensor, heddle_tensor>(
        [&](heddle_params *p, heddle_tensor **out, heddle_error *err) { return heddle_params_tensor(p, i, out, err); });
  }

#ifndef HEDDLE_CPP_NO_EXCEPTIONS
  static Params load(const std::string &path, const ReadLimits &limits = {}) {
    return try_load(path, limits).value();
  }
  static Params parse(const void *data, std::size_t bytes, const std::string &name = "params",
                      const ReadLimits &limits = {}) {
    return try_parse(data, bytes, name, limits).value();
  }
  static Params create(const Named &named) {
    return try_create(named).value();
  }
  void save(const std::string &path) const {
    try_save(path).value();
  }
  std::string bytes() const {
    return try_bytes().value();
  }
  Tensor tensor(std::uint32_t i) const {
    return try_tensor(i).value();
  }
#endif

private:
  template <class Call> static Result<Params> make(Call &&call, const char *file = nullptr) {
    heddle_params *out = nullptr;
    Status s = detail::status_of([&](heddle_error *err) { return call(&out, err); }, file);
    if (!s) return s.error();
    return adopt(out);
  }
};

} // namespace heddle

#endif
