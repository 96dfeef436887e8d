// heddle/cpp/generator.hpp: Generator makes tokens with a language model, GenerationBatch those of several texts in the same runs.
// heddle/generate.h and generate_batch.h have the contracts. One thread uses a generator, any thread a batch; any may call cancel().
#ifndef HEDDLE_CPP_GENERATOR_HPP
#define HEDDLE_CPP_GENERATOR_HPP

#include <exception>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "heddle/cpp/executor.hpp"
#include "heddle/generate_batch.h"

namespace heddle {

// A member that is not set has its default; heddle_generator_options describes each. state of model is not set.
struct GeneratorOptions {
  ModelOptions model = {};
  std::uint32_t max_length = 0;
  std::uint32_t chunk = 0;
};

// How a token is chosen; heddle_sampling describes each member.
struct Sampling {
  double temperature = 0;
  double top_p = 0;
  double min_p = 0;
  double repetition_penalty = 0;
  std::uint64_t seed = 0;
  std::uint32_t top_k = 0;
  std::vector<std::pair<std::int64_t, float>> biases = {};
};

namespace detail {
// As C takes them.
struct RawSampling {
  explicit RawSampling(const Sampling &s) : raw(sized<heddle_sampling>()) {
    for (const auto &one : s.biases) {
      tokens.push_back(one.first);
      biases.push_back(one.second);
    }
    raw.temperature = s.temperature;
    raw.top_p = s.top_p;
    raw.min_p = s.min_p;
    raw.repetition_penalty = s.repetition_penalty;
    raw.seed = s.seed;
    raw.top_k = s.top_k;
    raw.n_biases = static_cast<std::uint32_t>(tokens.size());
    raw.bias_tokens = tokens.data();
    raw.biases = biases.data();
  }
  RawSampling(const RawSampling &) = delete;
  RawSampling &operator=(const RawSampling &) = delete;

  std::vector<std::int64_t> tokens;
  std::vector<float> biases;
  heddle_sampling raw;
};
} // namespace detail

// Chooses a token by logits on the host; heddle_sample describes it.
inline Result<std::int64_t> try_sample(const Tensor &logits, const Sampling &sampling = {},
                                       const std::vector<std::int64_t> &history = {}, std::uint64_t index = 0) {
  const detail::RawSampling s(sampling);
  std::int64_t token = 0;
  Status done = detail::status_of([&](heddle_error *err) {
    return heddle_sample(logits.get(), history.data(), history.size(), index, &s.raw, &token, err);
  });
  if (!done) return done.error();
  return token;
}

struct Generation {
  Sampling sampling = {};
  std::vector<std::int64_t> stop_tokens = {}; // besides the configuration's
  bool past_stops = false;                    // the configuration's are like others
  std::uint64_t max_tokens = 0;               // 0: as many as fit
  Timeout deadline = {};
  std::function<bool(std::int64_t)> token = nullptr; // for each token that is no stop token; false: no more
};

namespace detail {
inline heddle_generation raw_generation(const Generation &options, const RawSampling &s) {
  heddle_generation o = sized<heddle_generation>();
  o.sampling = &s.raw;
  o.stop_tokens = options.stop_tokens.data();
  o.n_stop_tokens = options.stop_tokens.size();
  o.max_tokens = options.max_tokens;
  o.deadline_ns = options.deadline.ns() == HEDDLE_FOREVER ? 0 : options.deadline.ns() + 1;
  o.flags = options.past_stops ? HEDDLE_GENERATE_PAST_STOPS : 0;
  return o;
}
} // namespace detail

class Generator
    : private detail::KeptLog,
      public detail::Shared<Generator, heddle_generator, heddle_generator_retain, heddle_generator_release> {
public:
  Generator() noexcept = default;
  Generator(const Generator &) noexcept = default;
  Generator(Generator &&) noexcept = default;
  Generator &operator=(Generator other) noexcept {
    std::swap(raw_, other.raw_);
    log_.swap(other.log_);
    return *this;
  }
  static constexpr const char *noun() noexcept {
    return "generator";
  }

  // A folder with a configuration and an ONNX model, or that model.
  static Result<Generator> try_open(const Context &context, const std::string &path,
                                    const GeneratorOptions &options = {}) {
    heddle_generator_options o = detail::sized<heddle_generator_options>();
    o.max_length = options.max_length;
    o.chunk = options.chunk;
    Result<Generator> made = detail::with_model_options(options.model, [&](const heddle_model_options *model) {
      o.model = model;
      return context.made_with<Generator, heddle_generator>(
          [&](heddle_context *c, heddle_generator **out, heddle_error *err) {
            return heddle_generator_open(c, path.c_str(), &o, out, err);
          },
          path.c_str());
    });
    if (made) made->log_ = context.log_;
    return made;
  }

  // With the same tokens; what was computed for them is shared.
  Result<Generator> try_fork() const {
    Result<Generator> made = made_with<Generator, heddle_generator>(heddle_generator_fork);
    if (made) made->log_ = log_;
    return made;
  }

  // A smaller model of the same vocabulary guesses so many tokens (0: 4), which one run computes.
  Status try_speculate(const Generator &draft, std::uint32_t tokens = 0) const {
    return with([&](heddle_generator *g, heddle_error *err) {
      return heddle_generator_speculate(g, draft.get(), tokens, err);
    });
  }

  Result<heddle_generator_info> try_info() const {
    return filled<heddle_generator_info>(heddle_generator_get_info);
  }
  Result<heddle_generator_stats> try_stats() const {
    return filled<heddle_generator_stats>(heddle_generator_get_stats);
  }

  std::vector<std::int64_t> tokens() const {
    std::size_t n = 0;
    const std::int64_t *all = heddle_generator_tokens(raw_, &n);
    return std::vector<std::int64_t>(all, all + n);
  }
  Status try_append(const std::vector<std::int64_t> &tokens) const {
    return with([&](heddle_generator *g, heddle_error *err) {
      return heddle_generator_append(g, tokens.data(), tokens.size(), err);
    });
  }
  Status try_truncate(std::size_t n = 0) const {
    return with([&](heddle_generator *g, heddle_error *err) { return heddle_generator_truncate(g, n, err); });
  }

  // Computes what was appended.
  Status try_evaluate(Timeout timeout = {}) const {
    return with(
        [&](heddle_generator *g, heddle_error *err) { return heddle_generator_evaluate(g, timeout.ns(), err); });
  }
  // Of the next token: [vocabulary], float32.
  Result<Tensor> try_logits(Timeout timeout = {}) const {
    return made_with<Tensor, heddle_tensor>([&](heddle_generator *g, heddle_tensor **out, heddle_error *err) {
      return heddle_generator_logits(g, timeout.ns(), out, err);
    });
  }
  // Chooses a token and adds it.
  Result<std::int64_t> try_next(const Sampling &sampling = {}, Timeout timeout = {}) const {
    const detail::RawSampling s(sampling);
    std::int64_t token = 0;
    Status done = with([&](heddle_generator *g, heddle_error *err) {
      return heddle_generator_next(g, &s.raw, timeout.ns(), &token, err);
    });
    if (!done) return done.error();
    return token;
  }

  // Adds tokens until one stops it. An exception of options.token ends it, and is thrown again.
  Result<heddle_generated> try_generate(const Generation &options = {}) const {
    const detail::RawSampling s(options.sampling);
    Callback callback{options.token, nullptr};
    heddle_generation o = detail::raw_generation(options, s);
    heddle_generated out = detail::sized<heddle_generated>();
    if (options.token) {
      o.token = call;
      o.user = &callback;
    }
    Status done =
        with([&](heddle_generator *g, heddle_error *err) { return heddle_generator_generate(g, &o, &out, err); });
#ifndef HEDDLE_CPP_NO_EXCEPTIONS
    if (callback.thrown) std::rethrow_exception(callback.thrown);
#endif
    if (!done) return done.error();
    return out;
  }

  // Ends the call that computes, or else the next one, with HEDDLE_ECANCELED. Any thread.
  void cancel() const noexcept {
    if (raw_ != nullptr) heddle_generator_cancel(raw_);
  }

#ifndef HEDDLE_CPP_NO_EXCEPTIONS
  static Generator open(const Context &context, const std::string &path, const GeneratorOptions &options = {}) {
    return try_open(context, path, options).value();
  }
  Generator fork() const {
    return try_fork().value();
  }
  void speculate(const Generator &draft, std::uint32_t tokens = 0) const {
    try_speculate(draft, tokens).value();
  }
  heddle_generator_info info() const {
    return try_info().value();
  }
  heddle_generator_stats stats() const {
    return try_stats().value();
  }
  void append(const std::vector<std::int64_t> &tokens) const {
    try_append(tokens).value();
  }
  void truncate(std::size_t n = 0) const {
    try_truncate(n).value();
  }
  void evaluate(Timeout timeout = {}) const {
    try_evaluate(timeout).value();
  }
  Tensor logits(Timeout timeout = {}) const {
    return try_logits(timeout).value();
  }
  std::int64_t next(const Sampling &sampling = {}, Timeout timeout = {}) const {
    return try_next(sampling, timeout).value();
  }
  heddle_generated generate(const Generation &options = {}) const {
    return try_generate(options).value();
  }
#endif

private:
  friend class GenerationBatch;
  struct Callback {
    const std::function<bool(std::int64_t)> &token;
    std::exception_ptr thrown;
  };

  static int call(void *user, std::int64_t token) {
    Callback *c = static_cast<Callback *>(user);
#ifndef HEDDLE_CPP_NO_EXCEPTIONS
    try {
      return c->token(token) ? 0 : 1;
    } catch (...) {
      c->thrown = std::current_exception();
      return 1;
    }
#else
    return c->token(token) ? 0 : 1;
#endif
  }
};

// A member that is not set has its default; heddle_generation_batch_options describes each.
struct GenerationBatchOptions {
  std::uint32_t rows = 0;
  std::uint32_t max_queue = 0;
};

class GenerationRequest : public detail::Shared<GenerationRequest, heddle_generation_request,
                                                heddle_generation_request_retain, heddle_generation_request_release> {
public:
  GenerationRequest() noexcept = default;
  static constexpr const char *noun() noexcept {
    return "request";
  }

  // What became of it. HEDDLE_EBUSY: it has not ended.
  Result<heddle_generated> try_wait(Timeout timeout = {}) const {
    heddle_generated out = detail::sized<heddle_generated>();
    Status done = with([&](heddle_generation_request *r, heddle_error *err) {
      return heddle_generation_request_wait(r, timeout.ns(), &out, err);
    });
    if (!done) return done.error();
    return out;
  }

  // New tokens, from number `first` of those behind the prompt; none: it has ended. HEDDLE_EBUSY: none came in time.
  Result<std::vector<std::int64_t>> try_read(std::uint64_t first = 0, Timeout timeout = {}) const {
    std::vector<std::int64_t> tokens(64);
    std::size_t n = 0;
    Status done = with([&](heddle_generation_request *r, heddle_error *err) {
      return heddle_generation_request_read(r, first, tokens.data(), tokens.size(), timeout.ns(), &n, err);
    });
    if (!done) return done.error();
    tokens.resize(n);
    return tokens;
  }

  void cancel() const noexcept {
    if (raw_ != nullptr) heddle_generation_request_cancel(raw_);
  }

#ifndef HEDDLE_CPP_NO_EXCEPTIONS
  heddle_generated wait(Timeout timeout = {}) const {
    return try_wait(timeout).value();
  }
  std::vector<std::int64_t> read(std::uint64_t first = 0, Timeout timeout = {}) const {
    return try_read(first, timeout).value();
  }
#endif
};

// Several texts of one model share its runs. The generator stays the caller's.
class GenerationBatch : private detail::KeptLog,
                        public detail::Shared<GenerationBatch, heddle_generation_batch, heddle_generation_batch_retain,
                                              heddle_generation_batch_release> {
public:
  GenerationBatch() noexcept = default;
  GenerationBatch(const GenerationBatch &) noexcept = default;
  GenerationBatch(GenerationBatch &&) noexcept = default;
  GenerationBatch &operator=(GenerationBatch other) noexcept {
    std::swap(raw_, other.raw_);
    log_.swap(other.log_);
    return *this;
  }
  static constexpr const char *noun() noexcept {
    return "batch";
  }

  static Result<GenerationBatch> try_create(const Generator &generator, const GenerationBatchOptions &options = {}) {
    heddle_generation_batch_options o = detail::sized<heddle_generation_batch_options>();
    o.rows = options.rows;
    o.max_queue = options.max_queue;
    Result<GenerationBatch> made = generator.made_with<GenerationBatch, heddle_generation_batch>(
        [&](heddle_generator *g, heddle_generation_batch **out, heddle_error *err) {
          return heddle_generation_batch_create(g, &o, out, err);
        });
    if (made) made->log_ = generator.log_;
    return made;
  }

  // Tokens are read from the request: options.token is not used. wait: for room in the queue.
  Result<GenerationRequest> try_submit(const std::vector<std::int64_t> &prompt, const Generation &options = {},
                                       Timeout wait = {}) const {
    const detail::RawSampling s(options.sampling);
    const heddle_generation o = detail::raw_generation(options, s);
    heddle_generation_call c = detail::sized<heddle_generation_call>();
    c.tokens = prompt.data();
    c.n_tokens = prompt.size();
    c.generation = &o;
    c.wait_ns = wait.ns();
    return made_with<GenerationRequest, heddle_generation_request>(
        [&](heddle_generation_batch *b, heddle_generation_request **out, heddle_error *err) {
          return heddle_generation_batch_submit(b, &c, out, err);
        });
  }

  Status try_close(bool cancel = false, Timeout timeout = {}) const {
    return with([&](heddle_generation_batch *b, heddle_error *err) {
      return heddle_generation_batch_close(b, cancel ? 1 : 0, timeout.ns(), err);
    });
  }
  Result<heddle_generation_batch_stats> try_stats() const {
    return filled<heddle_generation_batch_stats>(heddle_generation_batch_get_stats);
  }

#ifndef HEDDLE_CPP_NO_EXCEPTIONS
  static GenerationBatch create(const Generator &generator, const GenerationBatchOptions &options = {}) {
    return try_create(generator, options).value();
  }
  GenerationRequest submit(const std::vector<std::int64_t> &prompt, const Generation &options = {},
                           Timeout wait = {}) const {
    return try_submit(prompt, options, wait).value();
  }
  void close(bool cancel = false, Timeout timeout = {}) const {
    try_close(cancel, timeout).value();
  }
  heddle_generation_batch_stats stats() const {
    return try_stats().value();
  }
#endif
};

} // namespace heddle

#endif
