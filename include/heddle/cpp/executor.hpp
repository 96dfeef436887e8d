// heddle/cpp/executor.hpp: Executor, the mutable state of a model's runs.
// heddle/executor.h has the contracts. Use an executor from one thread at a time, except for wait, cancel and poll.
// Executors of one model may run concurrently.
#ifndef HEDDLE_CPP_EXECUTOR_HPP
#define HEDDLE_CPP_EXECUTOR_HPP

#include <string>
#include <vector>

#include "heddle/cpp/model.hpp"
#include "heddle/executor.h"
#include "heddle/state.h"
#include "heddle/strings.h"

namespace heddle {

// An input or an output, by number or by name.
class Port {
public:
  template <class I, std::enable_if_t<std::is_integral_v<I>, int> = 0>
  Port(I number) noexcept // NOLINT: implicit, as the others; a number out of range finds no port
      : number_(number >= 0 && static_cast<std::uint64_t>(number) < UINT32_MAX ? static_cast<std::uint32_t>(number)
                                                                               : UINT32_MAX) {}
  Port(const char *name) noexcept : name_(name) {}
  Port(const std::string &name) noexcept : name_(name.c_str()) {}
  const char *name() const noexcept { // NULL: the port is given by number
    return name_;
  }
  std::uint32_t number() const noexcept {
    return number_;
  }

private:
  const char *name_ = nullptr;
  std::uint32_t number_ = 0;
};

// One step of a profiled run, in nanoseconds on the host's monotonic clock.
struct ProfileEntry {
  std::string name, op, device;
  std::uint32_t stream, step;
  std::uint64_t start_ns, end_ns;
};

class Executor : private detail::KeptLog,
                 public detail::Shared<Executor, heddle_executor, heddle_executor_retain, heddle_executor_release> {
public:
  Executor() noexcept = default;
  Executor(const Executor &) noexcept = default;
  Executor(Executor &&) noexcept = default;
  Executor &operator=(Executor other) noexcept {
    std::swap(raw_, other.raw_);
    log_.swap(other.log_);
    return *this;
  }
  static constexpr const char *noun() noexcept {
    return "executor";
  }

  // Opens the model's devices, and holds a reference to the model.
  static Result<Executor> try_create(const Model &model) {
    Result<Executor> made = model.made_with<Executor, heddle_executor>(heddle_executor_create);
    if (made) made->log_ = model.log_;
    return made;
  }

  // ---- inputs and outputs: a Port is a number or a name

  std::uint32_t input_count() const noexcept {
    return raw_ != nullptr ? heddle_executor_input_count(raw_) : 0;
  }
  std::uint32_t output_count() const noexcept {
    return raw_ != nullptr ? heddle_executor_output_count(raw_) : 0;
  }
  std::int32_t input_index(const std::string &name) const noexcept { // -1: none
    return raw_ != nullptr ? heddle_executor_input_index(raw_, name.c_str()) : -1;
  }
  std::int32_t output_index(const std::string &name) const noexcept { // -1: none
    return raw_ != nullptr ? heddle_executor_output_index(raw_, name.c_str()) : -1;
  }

  // Strings and shapes in the infos are borrowed until the executor is used again.
  Result<heddle_io_info> try_input_info(const Port &port) const {
    return port_info(port, inputs(), heddle_executor_input_info);
  }
  Result<heddle_io_info> try_output_info(const Port &port) const {
    return port_info(port, outputs(), heddle_executor_output_info);
  }

  // Copies a tensor to an input. The value stays set for later runs.
  Status try_set_input(const Port &port, const Tensor &value) const {
    if (!value) return no_tensor("set_input");
    if (port.name() != nullptr)
      return with([&](heddle_executor *ex, heddle_error *err) {
        return heddle_executor_set_input_by_name(ex, port.name(), value.get(), err);
      });
    return with([&](heddle_executor *ex, heddle_error *err) {
      return heddle_executor_set_input(ex, port.number(), value.get(), err);
    });
  }

  // Binds the tensor's own memory from the next run on. Binding an empty Tensor to an output returns it to the
  // executor's own memory.
  Status try_bind_input(const Port &port, const Tensor &value) const {
    if (!value) return no_tensor("bind_input");
    return at(port, inputs(), [&](heddle_executor *ex, std::uint32_t i, heddle_error *err) {
      return heddle_executor_bind_input(ex, i, value.get(), err);
    });
  }
  Status try_bind_output(const Port &port, const Tensor &value) const {
    return at(port, outputs(), [&](heddle_executor *ex, std::uint32_t i, heddle_error *err) {
      return heddle_executor_bind_output(ex, i, value.get(), err);
    });
  }

  // Returns a copy of an input.
  Result<Tensor> try_get_input(const Port &port) const {
    return tensor_at(port, inputs(), heddle_executor_get_input);
  }

  // An output of the last run. output shares the executor's own memory, whose content is valid until the next run
  // starts; with a type, it returns the elements. get_output copies to a tensor of the same dtype and shape.
  Result<Tensor> try_output(const Port &port = 0) const {
    return tensor_at(port, outputs(), heddle_executor_view_output);
  }
  template <class T> Result<View<T>> try_output(const Port &port = 0) const {
    Result<Tensor> found = try_output(port);
    if (!found) return found.error();
    return found->template try_view<T>();
  }
  Status try_get_output(const Port &port, const Tensor &dst) const {
    if (!dst) return no_tensor("get_output");
    return at(port, outputs(), [&](heddle_executor *ex, std::uint32_t i, heddle_error *err) {
      return heddle_executor_get_output(ex, i, dst.get(), err);
    });
  }

  // Sets every parameter whose name is an input, as an input of this executor; others are ignored.
  Status try_load_params(const Params &params) const {
    return with(
        [&](heddle_executor *ex, heddle_error *err) { return heddle_executor_load_params(ex, params.get(), err); });
  }

  // Uses the parameters of another executor without a copy; only the names come from `names`. The other executor must
  // outlive the runs of this one.
  Status try_share_params(const Executor &other, const Params &names) const {
    return with([&](heddle_executor *ex, heddle_error *err) {
      return heddle_executor_share_params(ex, other.raw_, names.get(), err);
    });
  }

  // ---- state values: outputs that are inputs of the next run (heddle/state.h). A Port is a number, or the name of the
  // input or the output.

  std::uint32_t state_count() const noexcept {
    return raw_ != nullptr ? heddle_executor_state_count(raw_) : 0;
  }
  std::int32_t state_index(const std::string &name) const noexcept { // -1: none
    return raw_ != nullptr ? heddle_executor_state_index(raw_, name.c_str()) : -1;
  }
  // Strings and shape in the info are borrowed until the executor is used again.
  Result<heddle_state_info> try_state_info(const Port &port) const {
    heddle_state_info out = detail::sized<heddle_state_info>();
    Status s = state_at(port, [&](heddle_executor *ex, std::uint32_t i, heddle_error *err) {
      return heddle_executor_state_info(ex, i, &out, err);
    });
    if (!s) return s.error();
    return out;
  }
  // Without a port: of all state values.
  /* Texts and sequences of runs (heddle/strings.h). */
  Result<std::int64_t> try_text_code(const std::string &text) const {
    std::int64_t code = 0;
    Status s = with([&](heddle_executor *ex, heddle_error *err) {
      return heddle_executor_text_code(ex, text.data(), text.size(), &code, err);
    });
    if (!s) return s.error();
    return code;
  }
  Result<std::string> try_text(std::int64_t code) const {
    const char *text = nullptr;
    std::size_t bytes = 0;
    Status s = with(
        [&](heddle_executor *ex, heddle_error *err) { return heddle_executor_text(ex, code, &text, &bytes, err); });
    if (!s) return s.error();
    return std::string(text, bytes);
  }
  Result<std::int64_t> try_sequence(const std::vector<Tensor> &items) const {
    std::int64_t code = 0;
    std::vector<heddle_tensor *> raw;
    for (const Tensor &item : items) raw.push_back(item.get());
    Status s = with([&](heddle_executor *ex, heddle_error *err) {
      return heddle_executor_sequence(ex, raw.data(), raw.size(), &code, err);
    });
    if (!s) return s.error();
    return code;
  }
  Result<std::vector<Tensor>> try_sequence_items(std::int64_t code) const {
    heddle_tensor *const *items = nullptr;
    std::size_t n = 0;
    Status s = with([&](heddle_executor *ex, heddle_error *err) {
      return heddle_executor_sequence_items(ex, code, &items, &n, err);
    });
    if (!s) return s.error();
    std::vector<Tensor> out;
    for (std::size_t i = 0; i < n; i++) out.push_back(Tensor::adopt(heddle_tensor_retain(items[i])));
    return out;
  }

  Status try_reset_state() const {
    return with(
        [](heddle_executor *ex, heddle_error *err) { return heddle_executor_reset_state(ex, HEDDLE_STATE_ALL, err); });
  }
  Status try_reset_state(const Port &port) const {
    return state_at(port, heddle_executor_reset_state);
  }
  Result<Tensor> try_read_state(const Port &port) const {
    heddle_tensor *out = nullptr;
    Status s = state_at(port, [&](heddle_executor *ex, std::uint32_t i, heddle_error *err) {
      return heddle_executor_read_state(ex, i, &out, err);
    });
    if (!s) return s.error();
    return Tensor::adopt(out);
  }
  Status try_write_state(const Port &port, const Tensor &value) const {
    if (!value) return no_tensor("write_state");
    return state_at(port, [&](heddle_executor *ex, std::uint32_t i, heddle_error *err) {
      return heddle_executor_write_state(ex, i, value.get(), err);
    });
  }
  Status try_truncate_state(std::int64_t length) const {
    return with([&](heddle_executor *ex, heddle_error *err) {
      return heddle_executor_truncate_state(ex, HEDDLE_STATE_ALL, length, err);
    });
  }
  Status try_truncate_state(std::int64_t length, const Port &port) const {
    return state_at(port, [&](heddle_executor *ex, std::uint32_t i, heddle_error *err) {
      return heddle_executor_truncate_state(ex, i, length, err);
    });
  }
  Status try_save_state(const std::string &path) const {
    return with(
        [&](heddle_executor *ex, heddle_error *err) { return heddle_executor_save_state(ex, path.c_str(), err); });
  }
  Status try_load_state(const std::string &path) const {
    return with(
        [&](heddle_executor *ex, heddle_error *err) { return heddle_executor_load_state(ex, path.c_str(), err); });
  }
  Status try_fork_state(const Executor &to) const {
    return with([&](heddle_executor *ex, heddle_error *err) { return heddle_executor_fork_state(ex, to.raw_, err); });
  }

  // ---- runs

  // Runs once and waits. HEDDLE_ETIMEOUT leaves the run pending: wait again, or cancel.
  Status try_run(Timeout timeout = {}) const {
    return with([&](heddle_executor *ex, heddle_error *err) { return heddle_executor_run(ex, timeout.ns(), err); });
  }

  // Orders later runs into a stream of the caller's on a device: the vendor's handle (a cl_command_queue, a CUstream, a
  // hipStream_t). An empty device ends that.
  Status try_use_stream(const Device &device, std::uint64_t stream) const {
    return with([&](heddle_executor *ex, heddle_error *err) {
      return heddle_executor_use_stream(ex, device.get(), stream, err);
    });
  }

  // try_start starts a run and returns. try_wait waits for the oldest pending run and returns its result, on any
  // thread.
  Status try_start() const {
    return with([](heddle_executor *ex, heddle_error *err) { return heddle_executor_start(ex, err); });
  }
  Status try_wait(Timeout timeout = {}) const {
    return with([&](heddle_executor *ex, heddle_error *err) { return heddle_executor_wait(ex, timeout.ns(), err); });
  }
  Status try_cancel() const {
    return with([](heddle_executor *ex, heddle_error *err) { return heddle_executor_cancel(ex, err); });
  }

  // Whether wait would return immediately.
  bool is_done() const noexcept {
    return raw_ == nullptr || heddle_executor_poll(raw_) == HEDDLE_OK;
  }

  // ---- inspection

  // Runs up to a node with the current inputs and returns a copy of one of its outputs.
  Result<Tensor> try_run_to(const std::string &node, std::uint32_t output = 0) const {
    return made_with<Tensor, heddle_tensor>([&](heddle_executor *ex, heddle_tensor **out, heddle_error *err) {
      return heddle_executor_run_to(ex, node.c_str(), output, out, err);
    });
  }

  // Runs once, times each step, and returns the steps in start order.
  Result<std::vector<ProfileEntry>> try_profile() const {
    const heddle_profile_entry *found = nullptr;
    std::size_t n = 0;
    Status s =
        with([&](heddle_executor *ex, heddle_error *err) { return heddle_executor_profile(ex, &found, &n, err); });
    if (!s) return s.error();
    std::vector<ProfileEntry> out;
    for (std::size_t i = 0; i < n; i++)
      out.push_back({found[i].name, found[i].op, found[i].device, found[i].stream, found[i].step, found[i].start_ns,
                     found[i].end_ns});
    return out;
  }

  Result<heddle_executor_stats> try_stats() const {
    return filled<heddle_executor_stats>(heddle_executor_get_stats);
  }

  // Describes the plan of the current program.
  Result<std::string> try_explain(heddle_explain_format format = HEDDLE_EXPLAIN_TEXT) const {
    char *out = nullptr;
    Status s =
        with([&](heddle_executor *ex, heddle_error *err) { return heddle_executor_explain(ex, format, &out, err); });
    if (!s) return s.error();
    return detail::taken(out);
  }

#ifndef HEDDLE_CPP_NO_EXCEPTIONS
  explicit Executor(const Model &model) : Executor(try_create(model).value()) {}
  heddle_io_info input_info(const Port &port) const {
    return try_input_info(port).value();
  }
  heddle_io_info output_info(const Port &port) const {
    return try_output_info(port).value();
  }
  void set_input(const Port &port, const Tensor &value) const {
    try_set_input(port, value).value();
  }
  void bind_input(const Port &port, const Tensor &value) const {
    try_bind_input(port, value).value();
  }
  void bind_output(const Port &port, const Tensor &value) const {
    try_bind_output(port, value).value();
  }
  Tensor get_input(const Port &port) const {
    return try_get_input(port).value();
  }
  Tensor output(const Port &port = 0) const {
    return try_output(port).value();
  }
  template <class T> View<T> output(const Port &port = 0) const {
    return try_output<T>(port).value();
  }
  void get_output(const Port &port, const Tensor &dst) const {
    try_get_output(port, dst).value();
  }
  void load_params(const Params &params) const {
    try_load_params(params).value();
  }
  void share_params(const Executor &other, const Params &names) const {
    try_share_params(other, names).value();
  }
  heddle_state_info state_info(const Port &port) const {
    return try_state_info(port).value();
  }
  std::int64_t text_code(const std::string &text) const {
    return try_text_code(text).value();
  }
  std::string text(std::int64_t code) const {
    return try_text(code).value();
  }
  std::int64_t sequence(const std::vector<Tensor> &items) const {
    return try_sequence(items).value();
  }
  std::vector<Tensor> sequence_items(std::int64_t code) const {
    return try_sequence_items(code).value();
  }
  void reset_state() const {
    try_reset_state().value();
  }
  void reset_state(const Port &port) const {
    try_reset_state(port).value();
  }
  Tensor read_state(const Port &port) const {
    return try_read_state(port).value();
  }
  void write_state(const Port &port, const Tensor &value) const {
    try_write_state(port, value).value();
  }
  void truncate_state(std::int64_t length) const {
    try_truncate_state(length).value();
  }
  void truncate_state(std::int64_t length, const Port &port) const {
    try_truncate_state(length, port).value();
  }
  void save_state(const std::string &path) const {
    try_save_state(path).value();
  }
  void load_state(const std::string &path) const {
    try_load_state(path).value();
  }
  void fork_state(const Executor &to) const {
    try_fork_state(to).value();
  }
  void run(Timeout timeout = {}) const {
    try_run(timeout).value();
  }
  void use_stream(const Device &device, std::uint64_t stream) const {
    try_use_stream(device, stream).value();
  }
  void start() const {
    try_start().value();
  }
  void wait(Timeout timeout = {}) const {
    try_wait(timeout).value();
  }
  void cancel() const {
    try_cancel().value();
  }
  Tensor run_to(const std::string &node, std::uint32_t output = 0) const {
    return try_run_to(node, output).value();
  }
  std::vector<ProfileEntry> profile() const {
    return try_profile().value();
  }
  heddle_executor_stats stats() const {
    return try_stats().value();
  }
  std::string explain(heddle_explain_format format = HEDDLE_EXPLAIN_TEXT) const {
    return try_explain(format).value();
  }
#endif

private:
  // The inputs or the outputs of an executor.
  struct Side {
    const char *noun;
    std::uint32_t (*count)(const heddle_executor *);
    std::int32_t (*index)(const heddle_executor *, const char *);
    heddle_status (*info)(heddle_executor *, std::uint32_t, heddle_io_info *, heddle_error *);
  };
  static Side inputs() noexcept {
    return {"input", heddle_executor_input_count, heddle_executor_input_index, heddle_executor_input_info};
  }
  static Side outputs() noexcept {
    return {"output", heddle_executor_output_count, heddle_executor_output_index, heddle_executor_output_info};
  }

  static Error no_tensor(const char *what) {
    return Error(HEDDLE_EINVAL, std::string(what) + ": the tensor is empty");
  }

  Error no_port(const Port &port, const Side &side) const {
    std::string text = std::string("there is no ") + side.noun + " '" + port.name() + "'; there are";
    for (std::uint32_t i = 0, n = side.count(raw_); i < n; i++) {
      heddle_io_info info = detail::sized<heddle_io_info>();
      if (side.info(raw_, i, &info, nullptr) == HEDDLE_OK) text += std::string(i == 0 ? " " : ", ") + info.name;
    }
    return Error(HEDDLE_ENOTFOUND, std::move(text));
  }

  template <class Call> Status at(const Port &port, const Side &side, Call &&call) const {
    if (raw_ == nullptr) return empty();
    std::uint32_t i = port.number();
    if (port.name() != nullptr) {
      const std::int32_t found = side.index(raw_, port.name());
      if (found < 0) return no_port(port, side);
      i = static_cast<std::uint32_t>(found);
    }
    return with([&](heddle_executor *ex, heddle_error *err) { return call(ex, i, err); });
  }

  template <class Call> Status state_at(const Port &port, Call &&call) const {
    if (raw_ == nullptr) return empty();
    std::uint32_t i = port.number();
    if (port.name() != nullptr) {
      const std::int32_t found = heddle_executor_state_index(raw_, port.name());
      if (found < 0) return Error(HEDDLE_ENOTFOUND, std::string("there is no state value '") + port.name() + "'");
      i = static_cast<std::uint32_t>(found);
    } else if (i == HEDDLE_STATE_ALL) { // a number out of range, which is not to mean all
      return Error(HEDDLE_ENOTFOUND, "there is no state value of that number");
    }
    return with([&](heddle_executor *ex, heddle_error *err) { return call(ex, i, err); });
  }

  template <class Call> Result<Tensor> tensor_at(const Port &port, const Side &side, Call &&call) const {
    heddle_tensor *out = nullptr;
    Status s =
        at(port, side, [&](heddle_executor *ex, std::uint32_t i, heddle_error *err) { return call(ex, i, &out, err); });
    if (!s) return s.error();
    return Tensor::adopt(out);
  }

  template <class Call> Result<heddle_io_info> port_info(const Port &port, const Side &side, Call &&call) const {
    heddle_io_info out = detail::sized<heddle_io_info>();
    Status s =
        at(port, side, [&](heddle_executor *ex, std::uint32_t i, heddle_error *err) { return call(ex, i, &out, err); });
    if (!s) return s.error();
    return out;
  }
};

} // namespace heddle

#endif
