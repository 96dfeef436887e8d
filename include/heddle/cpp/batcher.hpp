// heddle/cpp/batcher.hpp: Batcher gathers requests of one item, or of a few, into runs of many; BatchRequest is one of them.
// heddle/batch.h has the contracts. Any thread may use both.
#ifndef HEDDLE_CPP_BATCHER_HPP
#define HEDDLE_CPP_BATCHER_HPP

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "heddle/batch.h"
#include "heddle/cpp/executor.hpp"

namespace heddle {

// What differs from the default for an input or an output; heddle_batch_port describes each member.
struct BatchPort {
  std::string name;
  std::int32_t axis = 0;
  std::uint32_t pad_axes = 0;
  double pad_value = 0;
  std::uint32_t pad_multiple = 0;
  std::int64_t pad_max = 0;
  std::string pad_input = {};
};

// A member that is not set has its default; heddle_batcher_options describes each.
struct BatcherOptions {
  std::uint32_t max_items = 0;
  std::uint32_t max_queue = 0;
  std::uint32_t workers = 0;
  std::uint32_t flags = 0; // HEDDLE_BATCH_*
  std::chrono::nanoseconds max_delay = std::chrono::nanoseconds(0);
  std::chrono::nanoseconds run_timeout = std::chrono::nanoseconds(0);
  std::vector<BatchPort> inputs = {};
  std::vector<BatchPort> outputs = {};
};

// How a request is served.
struct BatchCall {
  std::int32_t priority = 0;
  std::chrono::nanoseconds deadline = std::chrono::nanoseconds(0); // 0: none
  std::chrono::nanoseconds wait = std::chrono::nanoseconds(0);     // for room in the queue
  std::vector<Tensor> outputs = {};                                // receive the outputs; an empty one: a new tensor
  std::uint32_t flags = 0;                                         // HEDDLE_BATCH_CALL_*
  // With the result, on another thread; it must not throw or block. Not of try_run.
  std::function<void(const Status &)> done = nullptr;
};

class BatchRequest : public detail::Shared<BatchRequest, heddle_batch_request, heddle_batch_request_retain,
                                           heddle_batch_request_release> {
public:
  BatchRequest() noexcept = default;
  static constexpr const char *noun() noexcept {
    return "request";
  }

  // The result. HEDDLE_EBUSY: there is none yet.
  Status try_wait(Timeout timeout = {}) const {
    return with(
        [&](heddle_batch_request *r, heddle_error *err) { return heddle_batch_request_wait(r, timeout.ns(), err); });
  }

  // Ends the request. false: it has its result, or is about to get it.
  bool cancel() const noexcept {
    return raw_ != nullptr && heddle_batch_request_cancel(raw_) == HEDDLE_OK;
  }

  // An output of a request that succeeded.
  Result<Tensor> try_output(std::uint32_t i = 0) const {
    return made_with<Tensor, heddle_tensor>([&](heddle_batch_request *r, heddle_tensor **out, heddle_error *err) {
      return heddle_batch_request_output(r, i, out, err);
    });
  }

  // When it passed what; its steps are borrowed from the request.
  Result<heddle_batch_times> try_times() const {
    return filled<heddle_batch_times>(heddle_batch_request_times);
  }

#ifndef HEDDLE_CPP_NO_EXCEPTIONS
  void wait(Timeout timeout = {}) const {
    try_wait(timeout).value();
  }
  heddle_batch_times times() const {
    return try_times().value();
  }
  Tensor output(std::uint32_t i = 0) const {
    return try_output(i).value();
  }
#endif
};

class Batcher : private detail::KeptLog,
                public detail::Shared<Batcher, heddle_batcher, heddle_batcher_retain, heddle_batcher_release> {
public:
  Batcher() noexcept = default;
  Batcher(const Batcher &) noexcept = default;
  Batcher(Batcher &&) noexcept = default;
  Batcher &operator=(Batcher other) noexcept {
    std::swap(raw_, other.raw_);
    log_.swap(other.log_);
    return *this;
  }
  static constexpr const char *noun() noexcept {
    return "batcher";
  }

  static Result<Batcher> try_create(const Model &model, const BatcherOptions &options = {}) {
    const std::vector<heddle_batch_port> inputs = ports(options.inputs), outputs = ports(options.outputs);
    heddle_batcher_options o = detail::sized<heddle_batcher_options>();
    o.max_items = options.max_items;
    o.max_queue = options.max_queue;
    o.workers = options.workers;
    o.flags = options.flags;
    o.max_delay_ns = detail::ns_of(options.max_delay);
    o.run_timeout_ns = detail::ns_of(options.run_timeout);
    o.inputs = inputs.data();
    o.n_inputs = inputs.size();
    o.outputs = outputs.data();
    o.n_outputs = outputs.size();
    Result<Batcher> made =
        model.made_with<Batcher, heddle_batcher>([&](heddle_model *m, heddle_batcher **out, heddle_error *err) {
          return heddle_batcher_create(m, &o, out, err);
        });
    if (made) made->log_ = model.log_;
    return made;
  }

  // The inputs that a request gives, in their order, and the outputs.
  std::vector<std::string> inputs() const {
    return names_of(heddle_batcher_input_name);
  }
  std::vector<std::string> outputs() const {
    return names_of(heddle_batcher_output_name);
  }

  // Submits a request of all inputs, in the model's order or by name.
  Result<BatchRequest> try_submit(const std::vector<Tensor> &inputs, BatchCall call = {}) const {
    return submit_it(Given(inputs), call);
  }
  Result<BatchRequest> try_submit(const NamedTensors &inputs, BatchCall call = {}) const {
    return submit_it(Given(inputs), call);
  }

  // Submits a request and waits for its outputs.
  Result<std::vector<Tensor>> try_run(const std::vector<Tensor> &inputs, const BatchCall &call = {}) const {
    return run_it(Given(inputs), call);
  }
  Result<std::vector<Tensor>> try_run(const NamedTensors &inputs, const BatchCall &call = {}) const {
    return run_it(Given(inputs), call);
  }

  // Waits until all requests that were accepted before have their results.
  Status try_drain(Timeout timeout = {}) const {
    return with([&](heddle_batcher *b, heddle_error *err) { return heddle_batcher_drain(b, timeout.ns(), err); });
  }

  // Accepts no more requests, and waits for those that were accepted; cancels them first where that is asked for.
  Status try_close(bool cancel = false, Timeout timeout = {}) const {
    return with([&](heddle_batcher *b, heddle_error *err) {
      return heddle_batcher_close(b, cancel ? 1 : 0, timeout.ns(), err);
    });
  }

  Result<heddle_batcher_stats> try_stats() const {
    return filled<heddle_batcher_stats>(heddle_batcher_get_stats);
  }

#ifndef HEDDLE_CPP_NO_EXCEPTIONS
  explicit Batcher(const Model &model, const BatcherOptions &options = {})
      : Batcher(try_create(model, options).value()) {}
  BatchRequest submit(const std::vector<Tensor> &inputs, BatchCall call = {}) const {
    return try_submit(inputs, std::move(call)).value();
  }
  BatchRequest submit(const NamedTensors &inputs, BatchCall call = {}) const {
    return try_submit(inputs, std::move(call)).value();
  }
  std::vector<Tensor> run(const std::vector<Tensor> &inputs, const BatchCall &call = {}) const {
    return try_run(inputs, call).value();
  }
  std::vector<Tensor> run(const NamedTensors &inputs, const BatchCall &call = {}) const {
    return try_run(inputs, call).value();
  }
  void drain(Timeout timeout = {}) const {
    try_drain(timeout).value();
  }
  void close(bool cancel = false, Timeout timeout = {}) const {
    try_close(cancel, timeout).value();
  }
  heddle_batcher_stats stats() const {
    return try_stats().value();
  }
#endif

private:
  static std::vector<heddle_batch_port> ports(const std::vector<BatchPort> &list) {
    std::vector<heddle_batch_port> out;
    for (const BatchPort &p : list)
      out.push_back({p.name.c_str(), p.axis, p.pad_axes, p.pad_value, p.pad_multiple, 0, p.pad_max,
                     detail::or_null(p.pad_input)});
    return out;
  }

  // The inputs of a request, as C takes them.
  struct Given {
    explicit Given(const std::vector<Tensor> &inputs) {
      for (const Tensor &t : inputs) tensors.push_back(t.get());
    }
    explicit Given(const NamedTensors &inputs) {
      for (const auto &one : inputs) {
        names.push_back(one.first.c_str());
        tensors.push_back(one.second.get());
      }
    }
    std::vector<const char *> names;
    std::vector<heddle_tensor *> tensors;
  };

  using Done = std::function<void(const Status &)>;
  static void report(void *user, heddle_batch_request *, heddle_status status, const heddle_error *err) noexcept {
    const std::unique_ptr<Done> done(static_cast<Done *>(user));
    (*done)(detail::status_of([&](heddle_error *out) {
      if (err != nullptr) *out = *err;
      return status;
    }));
  }

  std::vector<std::string> names_of(const char *(*name)(const heddle_batcher *, std::uint32_t)) const {
    std::vector<std::string> out;
    for (std::uint32_t i = 0; name(raw_, i) != nullptr; i++) out.emplace_back(name(raw_, i));
    return out;
  }

  // A request as C takes it. heddle_batcher_submit or _run is called with it by `call_c`.
  template <class Call> Status send(const Given &given, const BatchCall &call, Done *done, Call &&call_c) const {
    heddle_batch_call c = detail::sized<heddle_batch_call>();
    std::vector<heddle_tensor *> outputs;
    for (const Tensor &t : call.outputs) outputs.push_back(t.get());
    c.names = given.names.empty() ? nullptr : given.names.data();
    c.inputs = given.tensors.data();
    c.n_inputs = given.tensors.size();
    c.outputs = outputs.data();
    c.n_outputs = outputs.size();
    c.priority = call.priority;
    c.flags = call.flags;
    c.deadline_ns = detail::ns_of(call.deadline);
    c.wait_ns = detail::ns_of(call.wait);
    c.done = done != nullptr ? report : nullptr;
    c.user = done;
    return with([&](heddle_batcher *b, heddle_error *err) { return call_c(b, &c, err); });
  }

  static std::unique_ptr<Done> boxed(Done done) {
    return done ? std::make_unique<Done>(std::move(done)) : nullptr;
  }

  Result<BatchRequest> submit_it(const Given &given, BatchCall &call) const {
    std::unique_ptr<Done> done = boxed(std::move(call.done));
    heddle_batch_request *out = nullptr;
    const Status s =
        send(given, call, done.get(), [&](heddle_batcher *b, const heddle_batch_call *c, heddle_error *err) {
          return heddle_batcher_submit(b, c, &out, err);
        });
    if (!s) return s.error();
    done.release(); // NOLINT: report has it
    return BatchRequest::adopt(out);
  }

  // `done` is not called for what is waited for: the result is the function's own.
  Result<std::vector<Tensor>> run_it(const Given &given, const BatchCall &call) const {
    std::vector<heddle_tensor *> raw(outputs().size());
    const Status s = send(given, call, nullptr, [&](heddle_batcher *b, const heddle_batch_call *c, heddle_error *err) {
      return heddle_batcher_run(b, c, raw.data(), raw.size(), err);
    });
    if (!s) return s.error();
    std::vector<Tensor> out;
    for (heddle_tensor *t : raw) out.push_back(Tensor::adopt(t));
    return out;
  }
};

} // namespace heddle

#endif
