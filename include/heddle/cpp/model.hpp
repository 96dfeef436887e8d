// heddle/cpp/model.hpp: Model, a graph with its constants and the options that place it on devices; and these options.
// heddle/model.h has the contracts. A model is immutable and may be used by any thread.
#ifndef HEDDLE_CPP_MODEL_HPP
#define HEDDLE_CPP_MODEL_HPP

#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "heddle/cpp/module.hpp"
#include "heddle/model.h"

namespace heddle {

// How to run a model. A member that is not set has its default. docs/cpp.md and heddle/model.h describe each member.
struct ModelOptions {
  std::string devices = {};            // "vulkan:0,cpu"; "": the context's
  std::vector<std::string> place = {}; // {"conv*=sim:0", "auto"}
  std::vector<std::string> keep = {};  // values that stay readable: "NAME", "NAME:OUTPUT"
  std::uint32_t flags = 0;             // HEDDLE_MODEL_*
  std::uint32_t max_streams = 0;
  std::uint32_t max_programs = 0;
  std::uint32_t in_flight = 0;
  Module library = {};         // with the functions that the graph calls
  std::string model_name = {}; // selects a model in a library with several
  std::chrono::nanoseconds upload_timeout = std::chrono::nanoseconds(0);
  std::string optimize = {};          // "off", "on", names
  std::vector<std::string> dims = {}; // {"batch=4", "length<=512"}
  std::string memory = {};            // "sim:0=64MiB"
  std::string on_failure = {};        // "error", "retry", "retry:N", "failover"
  std::string trust = {};             // of load: a trust file, by which every file must be signed
  std::string key = {};               // of load: the file of the key of encrypted files
  std::string state = {};             // "past*:present*", "auto"
  std::uint64_t seed = 0;             // of random operators that have none; 0: from their names
};

namespace detail {
// Calls call(const heddle_model_options *) with the options as C takes them, and returns what it returns.
template <class Call> auto with_model_options(const ModelOptions &options, Call &&call) {
  const std::vector<const char *> place = pointers(options.place), keep = pointers(options.keep),
                                  dims = pointers(options.dims);
  heddle_model_options o = sized<heddle_model_options>();
  o.devices = or_null(options.devices);
  o.place = place.data();
  o.n_place = place.size();
  o.keep = keep.data();
  o.n_keep = keep.size();
  o.flags = options.flags;
  o.max_streams = options.max_streams;
  o.max_programs = options.max_programs;
  o.in_flight = options.in_flight;
  o.library = options.library.get();
  o.model_name = or_null(options.model_name);
  o.upload_timeout_ns = ns_of(options.upload_timeout);
  o.optimize = or_null(options.optimize);
  o.dims = dims.data();
  o.n_dims = dims.size();
  o.memory = or_null(options.memory);
  o.on_failure = or_null(options.on_failure);
  o.trust = or_null(options.trust);
  o.key = or_null(options.key);
  o.state = or_null(options.state);
  o.seed = options.seed;
  return call(&o);
}
} // namespace detail

using NamedTensors = std::vector<std::pair<std::string, Tensor>>;

class Model : private detail::KeptLog,
              public detail::Shared<Model, heddle_model, heddle_model_retain, heddle_model_release> {
public:
  Model() noexcept = default;
  Model(const Model &) noexcept = default;
  Model(Model &&) noexcept = default;
  Model &operator=(Model other) noexcept {
    std::swap(raw_, other.raw_);
    log_.swap(other.log_);
    return *this;
  }
  static constexpr const char *noun() noexcept {
    return "model";
  }

  // Loads a graph's .json with the .params beside it, an .onnx file, or a library that contains a model. params names
  // another file with parameters.
  static Result<Model> try_load(const Context &context, const std::string &path, const ModelOptions &options = {},
                                const std::string &params = {}) {
    return make(context, options, path.c_str(),
                [&](const heddle_model_options *o, heddle_model **out, heddle_error *err) {
                  return heddle_model_load(context.get(), path.c_str(), detail::or_null(params), o, out, err);
                });
  }

  // Creates a model from bytes in memory: an ONNX model, or a graph's JSON. They are not needed after the call. folder is
  // where weights outside of an ONNX model lie; without one, such a model is refused.
  static Result<Model> try_parse(const Context &context, const void *data, std::size_t bytes,
                                 const ModelOptions &options = {}, const std::string &folder = {}) {
    return make(context, options, nullptr, [&](const heddle_model_options *o, heddle_model **out, heddle_error *err) {
      return heddle_model_parse(context.get(), data, bytes, detail::or_null(folder), o, out, err);
    });
  }

  // Loads a packed graph of operators from memory, at a multiple of 64, which is used in place and stays.
  static Result<Model> try_load_memory(const Context &context, const void *data, std::size_t bytes,
                                       const ModelOptions &options = {}, const std::string &name = {}) {
    return make(context, options, nullptr, [&](const heddle_model_options *o, heddle_model **out, heddle_error *err) {
      return heddle_model_load_memory(context.get(), data, bytes, detail::or_null(name), o, out, err);
    });
  }

  // Creates a model from a graph and parameters in memory. Both are shared; params may be empty.
  static Result<Model> try_create(const Context &context, const Graph &graph, const Params &params = {},
                                  const ModelOptions &options = {}) {
    if (!graph) return Error(HEDDLE_EINVAL, "a model needs a graph: this one is empty");
    return make(context, options, nullptr, [&](const heddle_model_options *o, heddle_model **out, heddle_error *err) {
      return heddle_model_create(context.get(), graph.get(), params.get(), o, out, err);
    });
  }

  Graph graph() const noexcept {
    return raw_ != nullptr ? Graph::share(const_cast<heddle_graph *>(heddle_model_graph(raw_))) : Graph();
  }
  Module library() const noexcept {
    return raw_ != nullptr ? Module::share(heddle_model_library(raw_)) : Module();
  }

  // The names of the devices that the model may use, in order.
  std::vector<std::string> devices() const {
    std::vector<std::string> out;
    for (std::size_t i = 0, n = raw_ != nullptr ? heddle_model_device_count(raw_) : 0; i < n; i++)
      out.emplace_back(heddle_device_name(heddle_model_device(raw_, i)));
    return out;
  }

  // Describes where each node would run and why, for inputs with the graph's shapes or with those of the tensors named
  // here.
  Result<std::string> try_explain(heddle_explain_format format = HEDDLE_EXPLAIN_TEXT,
                                  const NamedTensors &inputs = {}) const {
    std::vector<const char *> names;
    std::vector<heddle_tensor *> tensors;
    for (const auto &one : inputs) {
      if (!one.second) return Error(HEDDLE_EINVAL, "the tensor of input '" + one.first + "' is empty");
      names.push_back(one.first.c_str());
      tensors.push_back(one.second.get());
    }
    char *out = nullptr;
    Status s = with([&](heddle_model *m, heddle_error *err) {
      return heddle_model_explain(m, format, names.data(), tensors.data(), names.size(), &out, err);
    });
    if (!s) return s.error();
    return detail::taken(out);
  }

#ifndef HEDDLE_CPP_NO_EXCEPTIONS
  static Model load(const Context &context, const std::string &path, const ModelOptions &options = {},
                    const std::string &params = {}) {
    return try_load(context, path, options, params).value();
  }
  static Model parse(const Context &context, const void *data, std::size_t bytes, const ModelOptions &options = {},
                     const std::string &folder = {}) {
    return try_parse(context, data, bytes, options, folder).value();
  }
  static Model load_memory(const Context &context, const void *data, std::size_t bytes,
                           const ModelOptions &options = {}, const std::string &name = {}) {
    return try_load_memory(context, data, bytes, options, name).value();
  }
  static Model create(const Context &context, const Graph &graph, const Params &params = {},
                      const ModelOptions &options = {}) {
    return try_create(context, graph, params, options).value();
  }
  std::string explain(heddle_explain_format format = HEDDLE_EXPLAIN_TEXT, const NamedTensors &inputs = {}) const {
    return try_explain(format, inputs).value();
  }
#endif

private:
  friend class Executor;
  friend class Batcher;
  friend class Generator;

  template <class Call>
  static Result<Model> make(const Context &context, const ModelOptions &options, const char *file, Call &&call) {
    if (!context) return Error(HEDDLE_EINVAL, "a model needs a context: this one is empty");
    heddle_model *out = nullptr;
    Status s = detail::with_model_options(options, [&](const heddle_model_options *o) {
      return detail::status_of([&](heddle_error *err) { return call(o, &out, err); }, file);
    });
    if (!s) return s.error();
    Model made = adopt(out);
    made.log_ = context.log_;
    return made;
  }
};

} // namespace heddle

#endif
