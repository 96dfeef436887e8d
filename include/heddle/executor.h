/* heddle/executor.h: the mutable state of runs of a model: memory, streams, bindings.
 * One thread at a time per executor, unless a function says otherwise; many executors of one model may run at once.
 *
 * An executor of a model whose option in_flight is N has up to N runs in flight. Each has memory and streams of its own
 * for all but the constants, so that it overlaps with the others. They are told in the order of their starts: a run is
 * pending from start until wait has given its end (with N = 1 until its end; nobody need wait). What is set and bound
 * is for the run that is started next, and needs that fewer than N are pending. */
#ifndef HEDDLE_EXECUTOR_H
#define HEDDLE_EXECUTOR_H

#include "heddle/model.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct heddle_executor heddle_executor;

#define HEDDLE_FOREVER UINT64_MAX

/* Makes an executor. Where all input shapes are known it is planned and bound at once, else at the first run. Opens
 * the devices, and waits for constants to reach them at most the model's upload_timeout_ns: HEDDLE_ETIMEOUT then. *out
 * has one reference, and one on the model. */
HEDDLE_API heddle_status heddle_executor_create(heddle_model *m, heddle_executor **out, heddle_error *err);
HEDDLE_API heddle_executor *heddle_executor_retain(heddle_executor *ex);

/* The last release cancels what has not been submitted, waits for the rest at most 2 seconds and frees; memory that a
 * hung stream may still touch is kept and counted. Takes NULL. Any thread. */
HEDDLE_API void heddle_executor_release(heddle_executor *ex);

/* Inputs are all null nodes of the graph, parameters included, in order. is_param: its bytes are a constant of the
 * model or came with load_params or share_params. shape of an input is what was set last, else the file's. */
typedef struct heddle_io_info {
  size_t struct_size;
  const char *name; /* of an output: its node's name, with ":INDEX" where the node has several */
  const int64_t *shape;
  uint32_t ndim; /* UINT32_MAX where not known yet */
  heddle_dtype dtype;
  uint32_t is_param;
} heddle_io_info;

HEDDLE_API uint32_t heddle_executor_input_count(const heddle_executor *ex);
HEDDLE_API uint32_t heddle_executor_output_count(const heddle_executor *ex);
HEDDLE_API heddle_status heddle_executor_input_info(heddle_executor *ex, uint32_t i, heddle_io_info *out,
                                                    heddle_error *err);
HEDDLE_API heddle_status heddle_executor_output_info(heddle_executor *ex, uint32_t i, heddle_io_info *out,
                                                     heddle_error *err);
/* -1: none. Outputs of several nodes of one name are found by number alone, so that their name is none: -1. */
HEDDLE_API int32_t heddle_executor_input_index(const heddle_executor *ex, const char *name);
HEDDLE_API int32_t heddle_executor_output_index(const heddle_executor *ex, const char *name);

/* Copies a tensor to an input; it stays set for all later runs (with runs in flight it is copied to the memory of
 * each that does not get another value). dtype must match; a new shape is planned before the
 * next run (the program is cached), where the file's shape leaves it open. Setting a constant makes it an input of this
 * executor. HEDDLE_ENOTFOUND lists the inputs there are; HEDDLE_EBUSY while N runs are pending. Blocks only for the
 * copy. */
HEDDLE_API heddle_status heddle_executor_set_input(heddle_executor *ex, uint32_t i, const heddle_tensor *value,
                                                   heddle_error *err);
HEDDLE_API heddle_status heddle_executor_set_input_by_name(heddle_executor *ex, const char *name,
                                                           const heddle_tensor *value, heddle_error *err);

/* Uses the tensor's memory itself, without a copy, from the next run on; a reference is held until it is replaced.
 * Checked: dtype, shape, row-major strides, and alignment of an address. HEDDLE_EINVAL says which check failed. The
 * slots of inputs and outputs lie on the host: what cannot take a slot's place, and memory of a device, is copied by
 * each run (and may not be bound to an input that decides shapes).
 * Bindings that overlap one another are refused where one is written. An output that NULL is bound to goes to the
 * executor's own memory again. A run may keep values between nodes in an output's memory until it writes the output.
 * With N runs in flight an input's binding is for all later runs, an output's for the next one and every N-th after it:
 * bind N tensors, one before each of N starts. The bytes of an input are left alone while runs that read them are
 * pending. */
HEDDLE_API heddle_status heddle_executor_bind_input(heddle_executor *ex, uint32_t i, heddle_tensor *value,
                                                    heddle_error *err);
HEDDLE_API heddle_status heddle_executor_bind_output(heddle_executor *ex, uint32_t i, heddle_tensor *value,
                                                     heddle_error *err);

/* Reads an input back (of a constant too): *out holds a copy. */
HEDDLE_API heddle_status heddle_executor_get_input(heddle_executor *ex, uint32_t i, heddle_tensor **out,
                                                   heddle_error *err);

/* Sets every parameter of the blob whose name is an input (others are ignored, as TVM does), as an input of this
 * executor. share_params takes the tensors of another executor (of any model) instead of copying; the blob gives only
 * the names. The other executor must outlive this one's runs; both may run in different threads. */
HEDDLE_API heddle_status heddle_executor_load_params(heddle_executor *ex, const heddle_params *params,
                                                     heddle_error *err);
HEDDLE_API heddle_status heddle_executor_share_params(heddle_executor *ex, heddle_executor *other,
                                                      const heddle_params *names, heddle_error *err);

/* Runs once and waits, at most timeout_ns. HEDDLE_ETIMEOUT leaves the run pending: wait again, or cancel; but where
 * poll then says that none is, it had to be planned, and a constant did not reach its device in time. An input that was
 * never set is HEDDLE_EINVAL with its name. HEDDLE_EBUSY while a run is pending, with runs in flight too. A device that
 * fails gives an error with device and node; the executor can be used again, on devices that are not lost. Where the
 * model's on_failure says so, it is tried again first, here and in start, wait and profile, within the same time. */
HEDDLE_API heddle_status heddle_executor_run(heddle_executor *ex, uint64_t timeout_ns, heddle_error *err);

/* Starts a run and returns; a thread of the executor drives it unless somebody waits. HEDDLE_EBUSY while N runs are
 * pending. wait is for the oldest pending run: it may be called from any thread, by several at once, who are all given
 * that run's result, and makes its outputs those that are read; without one it gives the last result again. A run that
 * fails leaves the others alone. cancel stops what is not yet submitted and makes all pending runs end with
 * HEDDLE_ECANCELED; each is still waited for where there may be several. poll is HEDDLE_EBUSY where wait would wait,
 * else HEDDLE_OK. */
HEDDLE_API heddle_status heddle_executor_start(heddle_executor *ex, heddle_error *err);
HEDDLE_API heddle_status heddle_executor_wait(heddle_executor *ex, uint64_t timeout_ns, heddle_error *err);
HEDDLE_API heddle_status heddle_executor_cancel(heddle_executor *ex, heddle_error *err);
HEDDLE_API heddle_status heddle_executor_poll(heddle_executor *ex);

/* The i-th output of the last run, with runs in flight of the last that wait has given. get copies to a tensor of the
 * same dtype and shape; view gives a tensor that shares the executor's memory and holds a reference to it: its content
 * is valid until the next run starts. HEDDLE_EBUSY while N runs are pending. */
HEDDLE_API heddle_status heddle_executor_get_output(heddle_executor *ex, uint32_t i, heddle_tensor *dst,
                                                    heddle_error *err);
HEDDLE_API heddle_status heddle_executor_view_output(heddle_executor *ex, uint32_t i, heddle_tensor **out,
                                                     heddle_error *err);

/* Runs the graph up to a node with the present inputs and gives a copy of one of its outputs, under a program that
 * keeps that value. HEDDLE_EBUSY while a run is pending. The node is given by name; an ambiguous name is an error that
 * lists the nodes' ids; "#12" is node 12. */
HEDDLE_API heddle_status heddle_executor_run_to(heddle_executor *ex, const char *node, uint32_t output,
                                                heddle_tensor **out, heddle_error *err);

/* One step of a profiled run. Times are nanoseconds on the host's monotonic clock; device times where the device has
 * a clock, else the host's around the call. Strings are borrowed until the next profile or the release. */
typedef struct heddle_profile_entry {
  const char *name; /* node, or what is copied */
  const char *op;   /* operator, compiled function, or "h2d", ... */
  const char *device;
  uint32_t stream;
  uint32_t step;
  uint64_t start_ns;
  uint64_t end_ns;
} heddle_profile_entry;

/* Runs once with each step timed (a little slower: no capture) and gives the steps in order of start. HEDDLE_EBUSY
 * while a run is pending. HEDDLE_EUNSUPPORTED where the model runs in stages (docs/graph-json.md); a trace has the
 * steps of those. */
HEDDLE_API heddle_status heddle_executor_profile(heddle_executor *ex, const heddle_profile_entry **out, size_t *n,
                                                 heddle_error *err);

/* Numbers since the executor was made; runs counts those that ended well. HEDDLE_EBUSY while a run of a model in stages
 * (If, Loop, Scan) is pending. */
typedef struct heddle_executor_stats {
  size_t struct_size;
  uint64_t runs;
  uint64_t bytes_copied; /* between devices, by the steps of runs */
  uint64_t copies;
  uint64_t device_bytes; /* memory held by this executor, all devices */
  uint64_t orphan_bytes; /* of hung streams, kept */
  uint64_t replays;      /* segments replayed from a capture */
  uint64_t retries;      /* runs (and plans) that failed and were tried again as they were, by the model's on_failure */
  uint64_t failovers;    /* those that were planned again, on other devices or with less memory */
} heddle_executor_stats;
HEDDLE_API heddle_status heddle_executor_get_stats(heddle_executor *ex, heddle_executor_stats *out, heddle_error *err);

/* The plan of this executor's present program, as heddle_model_explain gives it. */
HEDDLE_API heddle_status heddle_executor_explain(heddle_executor *ex, heddle_explain_format format, char **out,
                                                 heddle_error *err);

/* From begin on, host and device spans of runs are collected; write gives them as Chrome trace JSON and ends that. */
HEDDLE_API heddle_status heddle_trace_begin(heddle_context *ctx, heddle_error *err);
HEDDLE_API heddle_status heddle_trace_write(heddle_context *ctx, const char *path, heddle_error *err);

#ifdef __cplusplus
}
#endif

#endif
