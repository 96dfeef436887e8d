/* heddle/executor.h: an executor holds the mutable state of a model's runs: memory, streams and bindings.
 * Use an executor from one thread at a time, unless a function says otherwise. Executors of one model may run
 * concurrently.
 *
 * With the model option in_flight N, an executor has up to N runs in flight. Each has its own memory and streams for
 * everything but the constants, so that runs overlap. Their results are returned in start order. A run is pending from
 * start until wait has returned its result; with N = 1 it is pending only until it ends, and wait is optional. Values
 * that are set and tensors that are bound take effect with the next run that starts. Setting and binding require that
 * fewer than N runs are pending. */
#ifndef HEDDLE_EXECUTOR_H
#define HEDDLE_EXECUTOR_H

#include "heddle/model.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct heddle_executor heddle_executor;

#define HEDDLE_FOREVER UINT64_MAX

/* Creates an executor. If all input shapes are known, it is planned and bound at once, otherwise at the first run.
 * Opens the devices and waits at most the model's upload_timeout_ns for constants to reach them, else HEDDLE_ETIMEOUT.
 * *out receives one reference, and holds one to the model. Any thread; blocks in drivers. A plan that cannot be made is
 * reported with node and device: HEDDLE_EUNSUPPORTED, HEDDLE_EINVAL, HEDDLE_ELIMIT for memory, HEDDLE_EDEVICE,
 * HEDDLE_ENOMEM. */
HEDDLE_API heddle_status heddle_executor_create(heddle_model *m, heddle_executor **out, heddle_error *err);

/* Adds a reference and returns ex. Any thread. */
HEDDLE_API heddle_executor *heddle_executor_retain(heddle_executor *ex);

/* Drops a reference; takes NULL. The last release cancels work that is not submitted, waits at most 2 seconds for
 * submitted work, and frees the executor. Memory that a hung stream may still access is kept and counted. Any
 * thread. */
HEDDLE_API void heddle_executor_release(heddle_executor *ex);

/* Describes an input or an output. Inputs are all null nodes of the graph, parameters included, in order. is_param is 1
 * if the bytes are a constant of the model, came from load_params or share_params, or are a state value (state.h): the
 * input need not be set. The shape of an input is the one
 * set last, else the file's. name and shape are borrowed until the executor is used again. */
typedef struct heddle_io_info {
  size_t struct_size;
  const char *name; /* for an output: its node's name, with ":INDEX" if the node has several outputs */
  const int64_t *shape;
  uint32_t ndim; /* UINT32_MAX: not known yet */
  heddle_dtype dtype;
  uint32_t is_param;
} heddle_io_info;

/* How many inputs and outputs there are. Constant for the life of the executor; any thread. Values that the model keeps
 * (heddle_model_options.keep) are outputs after those of the graph. */
HEDDLE_API uint32_t heddle_executor_input_count(const heddle_executor *ex);
HEDDLE_API uint32_t heddle_executor_output_count(const heddle_executor *ex);

/* Describes the i-th input or output. Set out->struct_size first. HEDDLE_ENOTFOUND if there is no such input or
 * output. */
HEDDLE_API heddle_status heddle_executor_input_info(heddle_executor *ex, uint32_t i, heddle_io_info *out,
                                                    heddle_error *err);
HEDDLE_API heddle_status heddle_executor_output_info(heddle_executor *ex, uint32_t i, heddle_io_info *out,
                                                     heddle_error *err);

/* The position for a name, or -1 if there is none. A name that outputs of several nodes share finds none of them (-1):
 * use their positions. */
HEDDLE_API int32_t heddle_executor_input_index(const heddle_executor *ex, const char *name);
HEDDLE_API int32_t heddle_executor_output_index(const heddle_executor *ex, const char *name);

/* Copies a tensor to an input. The value stays set for all later runs; with runs in flight, it is copied to the memory
 * of each run that does not get another value. dtype must match. Where the file leaves the shape open, a new shape is
 * allowed: it is planned before the next run, and the program is cached. Setting a constant makes it an input of this
 * executor. HEDDLE_ENOTFOUND lists the available inputs; HEDDLE_EBUSY while N runs are pending. Blocks only for the
 * copy. */
HEDDLE_API heddle_status heddle_executor_set_input(heddle_executor *ex, uint32_t i, const heddle_tensor *value,
                                                   heddle_error *err);
HEDDLE_API heddle_status heddle_executor_set_input_by_name(heddle_executor *ex, const char *name,
                                                           const heddle_tensor *value, heddle_error *err);

/* Binds the tensor's own memory, without a copy, from the next run on. The executor holds a reference to the tensor
 * until the binding is replaced. dtype, shape, row-major strides and the alignment of a host address are checked;
 * HEDDLE_EINVAL reports which check failed. The executor's own buffers of inputs and outputs are in host memory.
 * A tensor in memory of a device that the model may use is used there: nodes on that device read and write it, and only
 * other devices and the host get copies. Another device's tensor, or one that cannot replace a buffer, is copied by each
 * run. Device memory cannot be bound to an input that decides shapes.
 * An output that is bound to device memory may be bound to an input of another executor, which may be started as soon as
 * start of the first has returned: the devices order the two runs by events, and the host waits for neither. The same
 * holds for a run that writes memory which a pending run reads. A start reports HEDDLE_EBUSY where the run before it
 * still has work of the host's to do, and HEDDLE_EFAILED where the run that was to write an input has failed.
 * Bindings that overlap each other are refused if one of them is written. Binding NULL to an output returns it to the
 * executor's own memory. A run may keep values between nodes in an output's memory until it writes the output.
 * With N runs in flight, an input's binding applies to all later runs. An output's binding applies to the next run and
 * every N-th run after it: bind N tensors, one before each of N starts. Do not write the bytes of a bound input while
 * runs that read them are pending. HEDDLE_EBUSY while N runs are pending. */
HEDDLE_API heddle_status heddle_executor_bind_input(heddle_executor *ex, uint32_t i, heddle_tensor *value,
                                                    heddle_error *err);
HEDDLE_API heddle_status heddle_executor_bind_output(heddle_executor *ex, uint32_t i, heddle_tensor *value,
                                                     heddle_error *err);

/* Reads an input back, also a constant. *out receives a new tensor in host memory with a copy, and one reference.
 * Blocks for the copy. HEDDLE_EINVAL if the input has no value, HEDDLE_ENOTFOUND if there is no such input,
 * HEDDLE_EBUSY while N runs are pending. */
HEDDLE_API heddle_status heddle_executor_get_input(heddle_executor *ex, uint32_t i, heddle_tensor **out,
                                                   heddle_error *err);

/* Sets every parameter of the blob whose name is an input, as an input of this executor. Other parameters are ignored,
 * as in TVM. All are checked before the first is set. share_params uses the tensors of another executor (of any model)
 * instead of copying; the blob supplies only the names. The other executor must outlive the runs of this one; both may
 * run in different threads. HEDDLE_EINVAL where dtype or shape of a parameter differ, HEDDLE_EBUSY while N runs are
 * pending. */
HEDDLE_API heddle_status heddle_executor_load_params(heddle_executor *ex, const heddle_params *params,
                                                     heddle_error *err);
HEDDLE_API heddle_status heddle_executor_share_params(heddle_executor *ex, heddle_executor *other,
                                                      const heddle_params *names, heddle_error *err);

/* Runs once and waits at most timeout_ns nanoseconds. HEDDLE_ETIMEOUT leaves the run pending: wait again, or cancel. If
 * poll then reports that no run is pending, the run needed a plan, and a constant did not reach its device in time.
 * HEDDLE_EINVAL names an input that was never set. HEDDLE_EBUSY while any run is pending, also with N > 1. A device
 * failure is reported with device and node; the executor stays usable on devices that are not lost. If the model's
 * on_failure requests it, the run is first tried again, within the same timeout; this also applies to start, wait and
 * profile. */
HEDDLE_API heddle_status heddle_executor_run(heddle_executor *ex, uint64_t timeout_ns, heddle_error *err);

/* Starts a run and returns. A thread of the executor drives the run unless a caller waits for it. HEDDLE_EBUSY while N
 * runs are pending.
 * wait blocks at most timeout_ns nanoseconds for the oldest pending run. Several threads may wait at once; all get the
 * result of that run. get_output and view_output then read its outputs. With no run pending, wait returns the last
 * result again. A run that fails does not affect the others.
 * cancel stops work that is not yet submitted and ends all pending runs with HEDDLE_ECANCELED; with N > 1, each of them
 * must still be waited for. poll returns HEDDLE_EBUSY if wait would block, else HEDDLE_OK. wait, cancel and poll may be
 * called from any thread. */
HEDDLE_API heddle_status heddle_executor_start(heddle_executor *ex, heddle_error *err);
HEDDLE_API heddle_status heddle_executor_wait(heddle_executor *ex, uint64_t timeout_ns, heddle_error *err);
HEDDLE_API heddle_status heddle_executor_cancel(heddle_executor *ex, heddle_error *err);
HEDDLE_API heddle_status heddle_executor_poll(heddle_executor *ex);

/* Orders all later runs into a stream of the caller's on dev: stream is the vendor's handle (a cl_command_queue, a CUstream,
 * a hipStream_t; 0 to 2 are CUDA's default streams). A run begins after the work that is in the stream when it is
 * started. When start has returned, work that the caller enqueues in the stream begins after the run. The device orders
 * them by events; the host waits for nothing where every step of the run is dev's, or of a device that shares events with
 * it. Otherwise start waits for what comes before such a step, on the host. Inputs and outputs that are host memory are
 * read and written by the run, not by the stream: wait before you use them. dev NULL: no stream any more. The stream
 * must outlive its use. After an error the stream of before stays. HEDDLE_EINVAL where the stream is of another device,
 * which the message names, or the model does not use dev; HEDDLE_EUNSUPPORTED where the plugin takes no streams of others
 * (opencl, cuda, rocm and sim do), or the model runs in stages; HEDDLE_EBUSY while a run is pending. */
HEDDLE_API heddle_status heddle_executor_use_stream(heddle_executor *ex, heddle_device *dev, uint64_t stream,
                                                    heddle_error *err);

/* The i-th output of the last run; with runs in flight, of the last run whose result wait returned. get copies it to a
 * tensor of the same dtype and shape. view returns a tensor that shares the executor's memory and holds a reference to
 * it, with one reference; its content is valid until the next run starts. get blocks for the copy. HEDDLE_EINVAL before
 * the first finished run, HEDDLE_ENOTFOUND if there is no such output, HEDDLE_EBUSY while N runs are pending. */
HEDDLE_API heddle_status heddle_executor_get_output(heddle_executor *ex, uint32_t i, heddle_tensor *dst,
                                                    heddle_error *err);
HEDDLE_API heddle_status heddle_executor_view_output(heddle_executor *ex, uint32_t i, heddle_tensor **out,
                                                     heddle_error *err);

/* Runs the graph up to a node with the current inputs, with a program that keeps the node's value, and returns a copy
 * of one of its outputs. node is a name, or "#12" for node 12; an ambiguous name is an error that lists the ids of the
 * nodes. HEDDLE_EBUSY while a run is pending. Blocks without a time limit. */
HEDDLE_API heddle_status heddle_executor_run_to(heddle_executor *ex, const char *node, uint32_t output,
                                                heddle_tensor **out, heddle_error *err);

/* One step of a profiled run. Times are nanoseconds on the host's monotonic clock, measured by the device if it has a
 * clock, else by the host around the call. Strings are borrowed until the next profile or the release. */
typedef struct heddle_profile_entry {
  const char *name; /* node, or the value that is copied */
  const char *op;   /* operator, compiled function, or "h2d", ... */
  const char *device;
  uint32_t stream;
  uint32_t step;
  uint64_t start_ns;
  uint64_t end_ns;
} heddle_profile_entry;

/* Runs once, times each step, and returns the steps in start order. Slightly slower than a normal run, because nothing
 * is captured. Blocks without a time limit. HEDDLE_EBUSY while a run is pending. Of a model that runs in stages
 * (docs/graph-json.md) they are the steps of all stages, and step is their number in this list: a step of a loop is in
 * it once for each iteration. */
HEDDLE_API heddle_status heddle_executor_profile(heddle_executor *ex, const heddle_profile_entry **out, size_t *n,
                                                 heddle_error *err);

/* Counters since the executor was created. runs counts runs that succeeded. HEDDLE_EBUSY while a run of a model in
 * stages (If, Loop, Scan) is pending. */
typedef struct heddle_executor_stats {
  size_t struct_size;
  uint64_t runs;
  uint64_t bytes_copied; /* between devices, by steps of runs */
  uint64_t copies;
  uint64_t device_bytes; /* memory held by this executor on all devices */
  uint64_t orphan_bytes; /* kept because hung streams of the model may access it */
  uint64_t replays;      /* segments replayed from a capture */
  uint64_t retries;      /* failed runs and plans that were repeated unchanged, as the model's on_failure requests */
  uint64_t failovers;    /* failed runs and plans that were planned again, on other devices or with less memory */
  uint64_t growths;      /* programs for larger bounds of open dimensions that the executor went over to */
} heddle_executor_stats;
HEDDLE_API heddle_status heddle_executor_get_stats(heddle_executor *ex, heddle_executor_stats *out, heddle_error *err);

/* The plan of this executor's current program, in the format of heddle_model_explain. *out is freed with heddle_free.
 * Plans first where inputs have new shapes, and then fails as a run that plans does. HEDDLE_EBUSY while N runs are
 * pending. */
HEDDLE_API heddle_status heddle_executor_explain(heddle_executor *ex, heddle_explain_format format, char **out,
                                                 heddle_error *err);

/* begin starts to collect host and device spans of runs. write saves them to a file as Chrome trace JSON and stops
 * collecting; it blocks for the file. Any thread. write: HEDDLE_EINVAL if no trace was begun, HEDDLE_EIO if the file
 * cannot be written, HEDDLE_ENOMEM. */
HEDDLE_API heddle_status heddle_trace_begin(heddle_context *ctx, heddle_error *err);
HEDDLE_API heddle_status heddle_trace_write(heddle_context *ctx, const char *path, heddle_error *err);

#ifdef __cplusplus
}
#endif

#endif
