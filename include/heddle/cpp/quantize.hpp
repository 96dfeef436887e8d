// heddle/cpp/quantize.hpp: weights of an ONNX model as integers of 4 or 8 bits in blocks, in a new model.
// heddle/quantize.h has the contract. Any thread; it blocks.
#ifndef HEDDLE_CPP_QUANTIZE_HPP
#define HEDDLE_CPP_QUANTIZE_HPP

#include <string>
#include <utility>
#include <vector>

#include "heddle/cpp/graph.hpp"
#include "heddle/quantize.h"

namespace heddle {

// A weight of a product or of an embedding that was looked at.
struct QuantizedLayer {
  std::string node, op, tensor;
  std::string kept = {}; // why it stays as it is; empty: it is quantised
  std::int64_t rows = 0, columns = 0;
  double error = 0, worst = 0;
  std::uint64_t bytes_before = 0, bytes_after = 0;
};

struct QuantizeOptions {
  std::uint32_t bits = 4, block = 32;
  std::uint32_t flags = 0; // HEDDLE_QUANTIZE_*
  std::uint32_t accuracy_level = 0;
  std::vector<std::string> keep = {}; // patterns of nodes and weights that stay as they are
};

namespace detail {
inline void take_layer(void *ctx, const heddle_quantize_layer *l) noexcept {
  QuantizedLayer layer;
  layer.node = l->node;
  layer.op = l->op;
  layer.tensor = l->tensor;
  if (l->kept != nullptr) layer.kept = l->kept;
  layer.rows = l->rows;
  layer.columns = l->columns;
  layer.error = l->error;
  layer.worst = l->worst;
  layer.bytes_before = l->bytes_before;
  layer.bytes_after = l->bytes_after;
  static_cast<std::vector<QuantizedLayer> *>(ctx)->push_back(std::move(layer));
}
} // namespace detail

// Writes the model in a file to another one with quantised weights; gives what became of each.
inline Result<std::vector<QuantizedLayer>> try_quantize(const std::string &model, const std::string &output,
                                                        const QuantizeOptions &options = {}) {
  std::vector<QuantizedLayer> layers;
  const std::vector<const char *> keep = detail::pointers(options.keep);
  heddle_quantize_options o = detail::sized<heddle_quantize_options>();
  o.bits = options.bits;
  o.block = options.block;
  o.flags = options.flags;
  o.accuracy_level = options.accuracy_level;
  o.keep = keep.data();
  o.n_keep = keep.size();
  o.report = detail::take_layer;
  o.ctx = &layers;
  Status s = detail::status_of(
      [&](heddle_error *err) { return heddle_quantize(model.c_str(), output.c_str(), &o, err); }, model.c_str());
  if (!s) return s.error();
  return layers;
}

#ifndef HEDDLE_CPP_NO_EXCEPTIONS
inline std::vector<QuantizedLayer> quantize(const std::string &model, const std::string &output,
                                            const QuantizeOptions &options = {}) {
  return try_quantize(model, output, options).value();
}
#endif

} // namespace heddle

#endif
